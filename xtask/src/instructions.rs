//! Counts the processor instructions per packet of a fixed set of workloads, and compares them with a table.
//!
//! Callgrind counts instructions, so the result does not depend on the load of the machine, and hardly on the
//! machine. The workloads come from the crate `giveway-instructions`. The table is `docs/instructions.csv`:
//! each row has a label, a workload and its instructions per packet. The last label is the reference. A label
//! is added with `--record LABEL` after a change that is meant to alter the speed, so the table is the
//! history of the speed of Giveway.
//!
//! Some rows are whole commands of the program, without a division: what a start costs, and what results in a
//! folder cost more than results on the terminal. They are not workloads of `giveway-instructions`, since a
//! program that links everything shares code that is compiled with less optimisation.

mod table;

use std::fs;
use std::path::Path;

use crate::recorded::{self, Recorded};
use crate::repository::{Done, Repository};
use crate::tools;
use table::{Count, by_label};

/// The function of the program whose calls are counted.
const COUNTED: &str = "giveway_instructions::measured";
/// Commands whose instructions are counted, each with its name. OUT is a folder that does not exist.
const COMMANDS: [(&str, &str); 4] = [
    ("giveway --version", "--version"),
    ("giveway check", "check scenarios/quickstart.toml"),
    ("giveway run, one seed", "run scenarios/quickstart.toml --seeds 1 --jobs 1 --quiet"),
    (
        "giveway run, one seed, with --out",
        "run scenarios/quickstart.toml --seeds 1 --jobs 1 --quiet --out OUT",
    ),
];
/// A workload fails if it takes this many times the instructions of the table.
const MAX: f64 = 1.03;

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
    let table: Vec<Count> = recorded::read(&repository.root)?;
    let known =
        by_label(&table).pop().ok_or("the table has no rows: cargo xtask instructions --record LABEL")?;
    let mut worse = Vec::new();
    println!("{:<36} {:>12} {:>12}  ratio", "instructions per packet", "now", known[0].label);
    for count in count(repository, "now")? {
        let before = known.iter().find(|known| known.workload == count.workload);
        let Some(before) = before else {
            worse.push(format!("\"{}\" is not in {}", count.workload, Count::FILE));
            continue;
        };
        let ratio = count.instructions / before.instructions;
        println!(
            "{:<36} {:>12.1} {:>12.1}  {ratio:.3}",
            count.workload, count.instructions, before.instructions
        );
        if ratio > MAX {
            worse.push(format!("\"{}\" takes {ratio:.3} times the instructions", count.workload));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nThe limit is {MAX}. If the change is worth it, say why in the commit, and run cargo xtask instructions --record \
         LABEL",
        worse.join("\n")
    ))
}

/// Counts, and adds the result to the table under this label.
pub fn record(repository: &Repository, label: &str) -> Done {
    if label.is_empty() || label.contains('\n') {
        return Err(format!("\"{label}\": write a label of one line, such as 2026-11-25"));
    }
    let mut table: Vec<Count> = recorded::read(&repository.root)?;
    table.retain(|count| count.label != label);
    table.extend(count(repository, label)?);
    recorded::store(&repository.root, None, &table)
}

/// Builds the program, and counts under a label.
fn count(repository: &Repository, label: &str) -> Result<Vec<Count>, String> {
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
        (packets > 0.0).then(|| Count {
            label: label.to_owned(),
            workload: workload.to_owned(),
            instructions: total / packets,
        })
    };
    let counts: Option<Vec<Count>> = printed.lines().zip(1..).map(counted).collect();
    let mut counts = counts
        .filter(|counts| !counts.is_empty())
        .ok_or(format!("{} has no count for each workload", folder.display()))?;
    counts.extend(commands(repository, &folder, label)?);
    Ok(counts)
}

/// Counts the instructions of commands.
fn commands(repository: &Repository, folder: &Path, label: &str) -> Result<Vec<Count>, String> {
    repository.cargo(&["build", "--quiet", "--locked", "--profile", "instructions", "--bin", "giveway"])?;
    let program = repository.built("instructions", "giveway")?.to_string_lossy().into_owned();
    let one = |(name, command): &(&str, &str)| {
        let (dump, kept) = (folder.join("command"), folder.join("kept"));
        let _ = fs::remove_dir_all(&kept);
        let kept = kept.to_string_lossy();
        let words = command.split(' ').map(|word| if word == "OUT" { &*kept } else { word });
        let tool = ["--tool=callgrind".to_owned(), format!("--callgrind-out-file={}", dump.display())];
        let all = tool.into_iter().chain([program.clone()]).chain(words.map(str::to_owned));
        repository.output("valgrind", &all.collect::<Vec<_>>())?;
        Ok(Count { label: label.to_owned(), workload: (*name).to_owned(), instructions: total(&dump)? })
    };
    COMMANDS.iter().map(one).collect()
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
