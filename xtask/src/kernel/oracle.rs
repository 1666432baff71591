//! Uses the qdiscs of Linux as an oracle for the Rust disciplines of the same names.
//! `kernel/test/oracle.bpf.c` records their calls, and `crates/kernel-check/src/oracle.rs` compares them.

use std::fs;
use std::path::Path;

mod qdiscs;
mod watched;

use self::qdiscs::WATCHED;
use self::watched::{Case, Watched};
use super::disk::ENTRIES;
use super::fetch::Kernel;
use super::machine::journals;
use crate::repository::{Done, Repository};

/// Packets per qdisc and mix; the second number is for `--quick`.
pub const PACKETS: [u32; 2] = [20_000, 5_000];
/// Drops at the ends of gaps that a mix with gaps has at least. With fewer, the AQM had little to make up
/// for.
const GAP_DROPS: u32 = 50;

/// Number of journals.
pub fn journal_count(gaps: bool) -> usize {
    cases(gaps).count()
}

/// Each qdisc with each of its mixes. Mixes on links with gaps are left out without `gaps`: the commands that
/// stop a link run beside the other mixes, whose shapers compare times to a microsecond.
fn cases(gaps: bool) -> impl Iterator<Item = (&'static Watched, &'static Case)> {
    let all = WATCHED.iter().flat_map(|watched| watched.cases.iter().map(move |case| (watched, case)));
    all.filter(move |(_, case)| gaps || !case.gaps)
}

/// Names of all runs, in order. Runs of a qdisc with the same mix have a number.
fn names(gaps: bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (Watched { kind, .. }, Case { flows, sizes, .. }) in cases(gaps) {
        let name = format!("kernel-{kind}-{sizes}-{flows}");
        let same = names.iter().filter(|other| other.split('.').next() == Some(&name)).count();
        names.push(if same == 0 { name } else { format!("{name}.{}", same + 1) });
    }
    names
}

/// Compiles the programs that record the calls, for the kernel of the machine.
pub fn programs(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    let objects = folder.join("objects/oracle");
    let types = folder.join("types");
    for folder in [&objects, &types] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let header = repository
        .output("bpftool", &["btf", "dump", "file", &kernel.types.to_string_lossy(), "format", "c"])?;
    fs::write(types.join("vmlinux.h"), header).map_err(|error| error.to_string())?;
    for Watched { kind, enqueue, dequeue, state, .. } in WATCHED {
        let out = objects.join(format!("{kind}.o")).to_string_lossy().into_owned();
        let defined = [
            format!("-DJOURNAL={ENTRIES}"),
            format!("-DQDISC_ENQUEUE=\"{enqueue}\""),
            format!("-DQDISC_DEQUEUE=\"{dequeue}\""),
            format!("-D{state}"),
        ];
        let types = types.to_string_lossy();
        let mut words =
            vec!["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86"];
        words.extend(["-isystem", &types]);
        words.extend(defined.iter().map(String::as_str));
        words.extend(["-c", "kernel/test/oracle.bpf.c", "-o", &out]);
        repository.run("clang-19", &words)?;
    }
    Ok(())
}

/// The script of the machine: runs the qdiscs on two interfaces in parallel. The journals start at the slot
/// `first` of the disk.
pub fn plan(first: usize, packets: u32, with_gaps: bool) -> String {
    let mut plan = include_str!("../../../kernel/test/oracle.sh").to_owned();
    let names = names(with_gaps);
    for lane in ["lane0", "lane1"] {
        plan.push_str("{\n");
        for (slot, ((watched, case), name)) in (first..).zip(cases(with_gaps).zip(&names)) {
            let Watched { kind, .. } = watched;
            let Case { flows, sizes, headers, link, parameters, gaps, .. } = case;
            let headers = headers.word();
            let steady = if *gaps { "steady" } else { "" };
            if watched.lane == lane {
                plan.push_str(&format!(
                    "oracle {lane} {name} {slot} {kind} {link} {packets} {flows} {sizes} '{parameters}' {headers} {steady}\n"
                ));
            }
        }
        plan.push_str("} &\n");
    }
    plan.push_str("wait\n");
    plan
}

/// Compares the journals with the Rust disciplines. `output` is the output of the machine.
///
/// # Errors
/// If a qdisc differs in a way that is not documented.
pub fn judge(
    repository: &Repository,
    folder: &Path,
    first: usize,
    (packets, with_gaps): (u32, bool),
    output: &str,
) -> Done {
    let files = journals(folder, first, &names(with_gaps), output)?;
    let mut words = Vec::new();
    for (file, (_, Case { link, discipline, gaps, .. })) in files.into_iter().zip(cases(with_gaps)) {
        // Beyond its own shaper a qdisc at the root has a link without a limit.
        let rate = if *link == "root" { "100gbit" } else { link };
        let least = if *gaps { format!("{packets}/{GAP_DROPS}") } else { packets.to_string() };
        words.extend([file, rate.to_owned(), (*discipline).to_owned(), least]);
    }
    let judge = repository.target()?.join("debug/kernel-oracle");
    match repository.command(&judge.to_string_lossy()).args(&words).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => {
            Err("a qdisc of Linux differs from the Rust discipline in a way that is not documented"
                .to_owned())
        }
        Err(error) => Err(format!("kernel-oracle cannot be run: {error}")),
    }
}
