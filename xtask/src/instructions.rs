//! Counts the processor instructions per packet of a fixed set of workloads, and compares them with a table.
//!
//! Callgrind counts instructions, so the result does not depend on the load of the machine, and hardly on the
//! machine. The workloads are those of the crate `giveway-instructions`. The table is
//! `docs/instructions.csv`: each row has a label, a workload and its instructions per packet. The last label
//! is the reference. A label is added with `--record LABEL` after a change that is meant to alter the speed,
//! so the table is the history of the speed of Giveway.

mod table;

use std::fs;
use std::path::Path;

use crate::repository::{Done, Repository};
use crate::tools;
use table::{Count, FILE as TABLE, HEADER};

/// The function of the program whose calls are counted.
const COUNTED: &str = "giveway_instructions::measured";
/// A workload fails if it takes this many times the instructions of the table.
const MOST: f64 = 1.03;

/// Installs valgrind if it is missing.
///
/// # Errors
/// If it cannot be installed.
pub fn set_up(repository: &Repository) -> Done {
    if repository.has("valgrind", &["--version"]) {
        return Ok(());
    }
    tools::install(repository, &["valgrind"])
}

/// Counts, and fails if a workload takes more than the table allows.
pub fn check(repository: &Repository) -> Done {
    let table = read(repository)?;
    let (label, known) =
        table.last().ok_or(format!("{TABLE} has no rows: cargo xtask instructions --record LABEL"))?;
    let mut worse = Vec::new();
    println!("{:<36} {:>12} {:>12}  ratio", "instructions per packet", "now", label);
    for count in count(repository)? {
        let before = known.iter().find(|known| known.workload == count.workload);
        let Some(before) = before else {
            worse.push(format!("\"{}\" is not in {TABLE}", count.workload));
            continue;
        };
        let ratio = count.instructions / before.instructions;
        println!(
            "{:<36} {:>12.1} {:>12.1}  {ratio:.3}",
            count.workload, count.instructions, before.instructions
        );
        if ratio > MOST {
            worse.push(format!("\"{}\" takes {ratio:.3} times the instructions", count.workload));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nThe limit is {MOST}. If the change is worth it, say why in the commit, and run cargo xtask instructions --record \
         LABEL",
        worse.join("\n")
    ))
}

/// Counts, and adds the result to the table under this label.
pub fn record(repository: &Repository, label: &str) -> Done {
    if label.is_empty() || label.contains([',', '"', '\n']) {
        return Err(format!("\"{label}\": write a label without commas and quotes, such as 2026-11-25"));
    }
    let mut table = read(repository)?;
    table.retain(|(other, _)| other != label);
    table.push((label.to_owned(), count(repository)?));
    let mut text = format!("{HEADER}\n");
    for (label, counts) in &table {
        for Count { workload, instructions } in counts {
            text.push_str(&format!("{label},\"{workload}\",{instructions:.1}\n"));
        }
    }
    let path = repository.root.join(TABLE);
    fs::write(&path, text).map_err(|error| format!("{TABLE}: {error}"))?;
    println!("wrote {TABLE}; cargo xtask docs draws it");
    Ok(())
}

/// The table, label by label; empty without a file.
fn read(repository: &Repository) -> Result<Vec<(String, Vec<Count>)>, String> {
    table::parse(&fs::read_to_string(repository.root.join(TABLE)).unwrap_or_default())
}

/// Builds the program and counts.
fn count(repository: &Repository) -> Result<Vec<Count>, String> {
    set_up(repository)?;
    let profile =
        ["build", "--quiet", "--locked", "--profile", "instructions", "--package", "giveway-instructions"];
    repository.cargo(&profile)?;
    let folder = repository.target()?.join("xtask/instructions");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let out = folder.join("out");
    let program = repository.built("instructions", "giveway-instructions")?.to_string_lossy().into_owned();
    let arguments = [
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", out.display()),
        format!("--zero-before={COUNTED}"),
        format!("--dump-after={COUNTED}"),
        program,
    ];
    let printed = repository.output("valgrind", &arguments)?;
    let counted = |(line, number): (&str, usize)| {
        let (workload, packets) = line.rsplit_once(' ')?;
        let packets: f64 = packets.parse().ok()?;
        let total = total(&out.with_extension(number.to_string())).ok()?;
        (packets > 0.0).then(|| Count { workload: workload.to_owned(), instructions: total / packets })
    };
    let counts: Option<Vec<Count>> = printed.lines().zip(1..).map(counted).collect();
    counts
        .filter(|counts| !counts.is_empty())
        .ok_or(format!("{} has no count for each workload", folder.display()))
}

/// The instructions in a dump of callgrind.
///
/// # Errors
/// If the file cannot be read, or has no total.
pub fn total(dump: &Path) -> Result<f64, String> {
    let text = fs::read_to_string(dump).map_err(|error| format!("{}: {error}", dump.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| format!("{}: callgrind has no totals", dump.display()))
}

#[cfg(test)]
mod tests {
    use super::table::row;

    #[test]
    fn a_row_has_a_label_a_workload_and_a_number() {
        let (label, count) = row("2026-11-25,\"fifo, 100 flows\",63.5").expect("it is right");
        assert_eq!(
            (label.as_str(), count.workload.as_str(), count.instructions),
            ("2026-11-25", "fifo, 100 flows", 63.5)
        );
        for wrong in ["", "a,b,c", "a,\"b\",c", "a,\"b\""] {
            assert!(row(wrong).is_none(), "{wrong}");
        }
    }
}
