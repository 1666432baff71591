//! The delay over time when the rate of a link falls from 50 to 1 Mbit/s, in the simulator and on a test bed.
//! Both write the operations of their disciplines, so that the same measurement is made of both. It takes ten
//! minutes and an idle machine, so it is run explicitly, as root, and writes `docs/step.csv`:
//!
//! ```sh
//! sudo cargo test --release -p giveway-cli --test all -- step:: --ignored --nocapture
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use giveway_qdisc::{Rate, Span, Time};
use giveway_replay::{Answer, Call, Item, Reader};

use super::programs::giveway;

/// The rate after the step.
const AFTER: Rate = Rate::mbit(1);
/// Length of a bin.
const BIN: Span = Span::ms(100);
/// The bins before and after the step.
const BINS: (i64, i64) = (-10, 200);
/// Packets up to this length are small, in bytes.
const SMALL: u32 = 256;

const DISCIPLINES: [&str; 4] = ["fifo limit 250p", "codel", "fq_codel", "pie"];
const SEEDS: u32 = 3;

/// Sojourn times by bin: their sum in seconds, and their number; of small packets, then of all others.
type Bins = BTreeMap<i64, [(f64, u32); 2]>;

/// Adds the sojourn times of the packets that leave a link to the bins of the times at which they leave,
/// relative to the step.
fn add(trace: &Path, bins: &mut Bins) {
    let mut reader = Reader::new(BufReader::new(File::open(trace).unwrap())).unwrap();
    let mut forward = None;
    // Arrival and length of each packet; departure, sojourn time and length of those that left.
    let mut arrived: Vec<(Time, u32)> = Vec::new();
    let mut left: Vec<(Time, Span, u32)> = Vec::new();
    let mut step = None;
    while let Some(item) = reader.next().unwrap() {
        match item {
            // The simulator traces one port, and the router both directions.
            Item::Begin { section, build } if build.name == "left->right" || build.name == "forward" => {
                forward = Some(section);
            }
            Item::Operation { section, operation } if forward == Some(section) => match operation.call {
                Call::Enqueue(meta) => arrived.push((operation.now, meta.bytes)),
                Call::Dequeue(Answer::Packet { number, .. }) => {
                    let (at, bytes) = arrived[number as usize];
                    left.push((operation.now, operation.now.since(at), bytes));
                }
                Call::Rate(rate) if rate == AFTER => step = step.or(Some(operation.now)),
                _ => {}
            },
            _ => {}
        }
    }
    let step = step.expect("the discipline was informed of the step");
    let bin = |at: Time| {
        let ps = at.as_ps() as i64 - step.as_ps() as i64;
        ps.div_euclid(BIN.as_ps() as i64)
    };
    for (at, sojourn, bytes) in left {
        let (sum, count) = &mut bins.entry(bin(at)).or_default()[usize::from(bytes > SMALL)];
        *sum += sojourn.as_s();
        *count += 1;
    }
}

#[test]
#[ignore = "takes minutes, and needs root"]
fn a_step_of_the_rate_in_the_simulator_and_on_a_test_bed() {
    giveway_testbed::ready().unwrap_or_else(|error| panic!("{error}"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scenario = root.join("scenarios/testbed/step.toml");
    let scenario = scenario.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut csv = String::from("discipline,backend,time_s,small_ms,large_ms\n");
    for discipline in DISCIPLINES {
        for backend in ["simulation", "testbed"] {
            let mut bins = Bins::new();
            for seed in 1..=SEEDS {
                let trace: PathBuf = folder.path().join("trace");
                let _ = std::fs::remove_file(&trace);
                let only = format!("disciplines=[\"{discipline}\"]");
                let seeds = format!("seeds=[{seed}]");
                let mut args = match backend {
                    "simulation" => vec!["run", scenario, "--set", "backend=network", "--trace-port"],
                    _ => vec!["testbed", scenario, "--trace"],
                };
                let port = format!("left->right={}", trace.display());
                args.push(if backend == "simulation" { &port } else { trace.to_str().unwrap() });
                args.extend(["--set", &only, "--set", &seeds, "--quiet"]);
                let (code, _, errors) = giveway(&args);
                assert_eq!(code, Some(0), "{errors}");
                println!("{discipline}, {backend}, seed {seed}: {}", errors.trim());
                add(&trace, &mut bins);
            }
            for (bin, kinds) in bins.range(BINS.0..BINS.1) {
                let cell = |(sum, count): (f64, u32)| match count {
                    0 => String::new(),
                    count => format!("{:.2}", 1e3 * sum / f64::from(count)),
                };
                let time = *bin as f64 * BIN.as_s();
                csv += &format!("{discipline},{backend},{time:.1},{},{}\n", cell(kinds[0]), cell(kinds[1]));
            }
        }
    }
    std::fs::write(root.join("docs/step.csv"), csv).unwrap();
}
