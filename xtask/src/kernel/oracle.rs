//! Uses the qdiscs of Linux as an oracle for the Rust disciplines of the same names.
//! `kernel/test/oracle.bpf.c` records their calls, and `crates/kernel-check/src/oracle.rs` compares them.

use std::fs;
use std::path::Path;

use super::disk::ENTRIES;
use super::fetch::Kernel;
use super::machine::journals;
use crate::repository::{Done, Repository};

/// Packets per qdisc and mix; the second number is for `--quick`.
pub const PACKETS: [u32; 2] = [20_000, 5_000];

/// A qdisc of Linux, with the functions that are recorded.
struct Watched {
    kind: &'static str,
    /// Interface of the qdisc. Both interfaces run in parallel.
    lane: &'static str,
    enqueue: &'static str,
    dequeue: &'static str,
    /// Macro for the part of the state that the journal records.
    state: &'static str,
}

const WATCHED: [Watched; 6] = [
    Watched {
        kind: "drr",
        lane: "lane0",
        enqueue: "drr_enqueue",
        dequeue: "drr_dequeue",
        state: "WATCH_NONE",
    },
    Watched {
        kind: "sfq",
        lane: "lane1",
        enqueue: "sfq_enqueue",
        dequeue: "sfq_dequeue",
        state: "WATCH_NONE",
    },
    Watched {
        kind: "fq_codel",
        lane: "lane1",
        enqueue: "fq_codel_enqueue",
        dequeue: "fq_codel_dequeue",
        state: "WATCH_FQ_CODEL",
    },
    Watched {
        kind: "codel",
        lane: "lane0",
        enqueue: "codel_qdisc_enqueue",
        dequeue: "codel_qdisc_dequeue",
        state: "WATCH_CODEL",
    },
    Watched {
        kind: "red",
        lane: "lane1",
        enqueue: "red_enqueue",
        dequeue: "red_dequeue",
        state: "WATCH_RED",
    },
    Watched {
        kind: "pie",
        lane: "lane0",
        enqueue: "pie_qdisc_enqueue",
        dequeue: "pie_qdisc_dequeue",
        state: "WATCH_PIE",
    },
];

/// A qdisc under a mix of traffic: name, number of flows, sizes, rate, parameters for tc (for drr the quantum
/// of each class and the limit of its queue), and the Rust discipline. Linux rounds the times of CoDel down
/// to multiples of 1,024 ns: 5 ms are 4,999,168 ns.
type Case = (&'static str, u32, &'static str, &'static str, &'static str, &'static str);

const CASES: [Case; 16] = [
    ("drr", 2, "equal", "100mbit", "1514 60", "drr limit 100000p quantum 1514b"),
    ("drr", 50, "mixed", "50mbit", "500 40", "drr limit 100000p quantum 500b"),
    ("drr", 500, "mixed", "50mbit", "1514 20", "drr limit 100000p quantum 1514b"),
    (
        "sfq",
        2,
        "equal",
        "100mbit",
        "limit 127 depth 127 flows 127 divisor 1024 quantum 1514",
        "sfq limit 127 depth 127 flows 127 divisor 1024 quantum 1514",
    ),
    (
        "sfq",
        50,
        "mixed",
        "50mbit",
        "limit 300 depth 20 flows 30 divisor 256 quantum 500 headdrop",
        "sfq limit 300 depth 20 flows 30 divisor 256 quantum 500 headdrop",
    ),
    (
        "sfq",
        500,
        "mixed",
        "50mbit",
        "limit 250 depth 127 flows 500 divisor 1024 quantum 1514",
        "sfq limit 250 depth 127 flows 500 divisor 1024 quantum 1514",
    ),
    (
        "fq_codel",
        2,
        "equal",
        "100mbit",
        "limit 10240 flows 1024 quantum 1514 target 5ms interval 100ms noecn memory_limit 512mb",
        "fq_codel limit 10240p flows 1024 quantum 1514 target 4999168ns interval 99999744ns noecn memory_limit 512mb",
    ),
    (
        "fq_codel",
        50,
        "mixed",
        "50mbit",
        "limit 10240 flows 64 quantum 300 target 1ms interval 10ms noecn memory_limit 512mb",
        "fq_codel limit 10240p flows 64 quantum 300 target 999424ns interval 9999360ns noecn memory_limit 512mb",
    ),
    (
        "fq_codel",
        500,
        "mixed",
        "50mbit",
        "limit 100 flows 512 quantum 300 target 1ms interval 10ms noecn memory_limit 512mb",
        "fq_codel limit 100p flows 512 quantum 300 target 999424ns interval 9999360ns noecn memory_limit 512mb",
    ),
    (
        "codel",
        2,
        "equal",
        "100mbit",
        "limit 1000 target 5ms interval 100ms noecn",
        "codel limit 1000p target 4999168ns interval 99999744ns noecn",
    ),
    (
        "codel",
        50,
        "mixed",
        "50mbit",
        "limit 300 target 1ms interval 10ms noecn",
        "codel limit 300p target 999424ns interval 9999360ns noecn",
    ),
    (
        "codel",
        500,
        "mixed",
        "50mbit",
        "limit 10000 target 5ms interval 100ms noecn",
        "codel limit 10000p target 4999168ns interval 99999744ns noecn",
    ),
    (
        "red",
        50,
        "equal",
        "100mbit",
        "limit 600000 min 50000 max 150000 avpkt 1000 burst 85 probability 0.02",
        "red limit 600000b min 50000b max 150000b avpkt 1000b burst 85p probability 0.02",
    ),
    (
        "red",
        500,
        "mixed",
        "50mbit",
        "limit 300000 min 25000 max 75000 avpkt 1000 burst 42 probability 0.1",
        "red limit 300000b min 25000b max 75000b avpkt 1000b burst 42p probability 0.1",
    ),
    (
        "pie",
        50,
        "equal",
        "100mbit",
        "limit 1000 target 15ms tupdate 16ms alpha 2 beta 20 noecn",
        "pie limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 noecn",
    ),
    (
        "pie",
        500,
        "mixed",
        "50mbit",
        "limit 10000 target 5ms tupdate 16ms alpha 2 beta 20 noecn",
        "pie limit 10000p target 5ms tupdate 16ms alpha 2 beta 20 noecn",
    ),
];

/// Number of journals.
pub const JOURNALS: usize = CASES.len();

fn name(case: &Case) -> String {
    let (kind, flows, sizes, ..) = case;
    format!("kernel-{kind}-{sizes}-{flows}")
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

/// The script of the machine: runs the qdiscs on two interfaces in parallel. The journals begin at the slot
/// `first` of the disk.
pub fn plan(first: usize, packets: u32) -> String {
    let mut plan = include_str!("../../../kernel/test/oracle.sh").to_owned();
    for lane in ["lane0", "lane1"] {
        plan.push_str("{\n");
        for (slot, case) in (first..).zip(&CASES) {
            let (kind, flows, sizes, rate, parameters, _) = case;
            if WATCHED.iter().any(|watched| watched.kind == *kind && watched.lane == lane) {
                let name = name(case);
                plan.push_str(&format!(
                    "oracle {lane} {name} {slot} {kind} {rate} {packets} {flows} {sizes} '{parameters}'\n"
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
pub fn judge(repository: &Repository, folder: &Path, first: usize, packets: u32, output: &str) -> Done {
    let names: Vec<String> = CASES.iter().map(name).collect();
    let files = journals(folder, first, &names, output)?;
    let mut words = Vec::new();
    for (file, (_, _, _, rate, _, discipline)) in files.into_iter().zip(&CASES) {
        words.extend([file, (*rate).to_owned(), (*discipline).to_owned(), packets.to_string()]);
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
