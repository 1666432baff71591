//! The library of captures, and the comparison of predictions with what was measured.
//!
//! A cell is a rate and a congestion control. Its capture was recorded with `fifo`. `giveway compare`
//! predicts from it the completion times and the delay of the call with `fifo`, `fq_codel` and `cake`; the
//! file beside the capture has those that were measured with the qdiscs of Linux.

use std::fs;

use serde_json::Value;

use crate::repository::{Done, Repository};

/// The folder of the captures.
pub const FOLDER: &str = "examples/library";
/// One-way delay of the path without queues, in seconds. The simulation of a datagram stream has none.
const PATH_S: f64 = 0.015;
/// Length of a packet of the call, in bits. A shaper of the kernel passes a packet on at once, so its
/// transmission takes no time, as it does in the simulation.
const CALL_BITS: f64 = 1600.0;
/// Bounds on the error of the median and of the 95th percentile, in percent.
const BOUNDS: [f64; 2] = [10.0, 20.0];

/// A capture with its measurements.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Rate of the bottleneck, in Mbit/s.
    rate: u32,
    /// Congestion control.
    congestion: &'static str,
    /// Duration of the run, in seconds.
    seconds: u32,
}

/// All cells. A faster link needs less time for the same number of packets.
pub const CELLS: [Cell; 8] = [
    Cell { rate: 2, congestion: "cubic", seconds: 24 },
    Cell { rate: 10, congestion: "cubic", seconds: 12 },
    Cell { rate: 50, congestion: "cubic", seconds: 5 },
    Cell { rate: 100, congestion: "cubic", seconds: 4 },
    Cell { rate: 2, congestion: "bbr", seconds: 24 },
    Cell { rate: 10, congestion: "bbr", seconds: 12 },
    Cell { rate: 50, congestion: "bbr", seconds: 5 },
    Cell { rate: 100, congestion: "bbr", seconds: 4 },
];

/// Disciplines: the name of the kernel's, and that of the simulator with its parameters.
pub const QDISCS: [(&str, &str); 3] =
    [("fifo", "fifo limit"), ("fq_codel", "fq_codel"), ("cake", "cake unlimited besteffort")];

impl Cell {
    /// As in `10mbit-cubic`.
    pub fn name(&self) -> String {
        format!("{}mbit-{}", self.rate, self.congestion)
    }

    /// Capacity of `fifo`: what the link sends in a quarter of a second, in bytes.
    fn buffer(&self) -> u32 {
        self.rate * 31_250
    }

    /// The discipline of Linux, as in scenarios.
    pub fn kernel(&self, discipline: usize) -> String {
        match QDISCS[discipline].0 {
            "fifo" => format!("kernel:bfifo limit {}", self.buffer()),
            "cake" => "kernel:cake unlimited besteffort".to_owned(),
            other => format!("kernel:{other}"),
        }
    }

    fn ours(&self, discipline: usize) -> String {
        match QDISCS[discipline] {
            ("fifo", words) => format!("{words} {}b", self.buffer()),
            (_, words) => words.to_owned(),
        }
    }

    /// Changes of the scenario. The upload takes a quarter of the run, if it has the link alone.
    pub fn settings(&self) -> Vec<String> {
        let Cell { rate, congestion, seconds } = self;
        let stop = seconds - 1;
        vec![
            format!("link.1.rate={rate}mbit"),
            format!("link.1.back.rate={}mbit", (8 * rate).min(250)),
            format!("tcp.congestion={congestion}"),
            format!("duration={seconds}s"),
            format!("traffic.upload.size={}b", rate * seconds * 31_250),
            format!("traffic.upload.start={}ms", seconds * 1000 / 6),
            format!("traffic.short.load={}kbit", rate * 200),
            format!("traffic.short.stop={stop}s"),
            format!("traffic.call.stop={stop}s"),
        ]
    }
}

/// The cells with these names; all without a name.
///
/// # Errors
/// The names that exist, if one does not.
pub fn chosen(names: &[&str]) -> Result<Vec<Cell>, String> {
    let all: Vec<String> = CELLS.iter().map(Cell::name).collect();
    if let Some(wrong) = names.iter().find(|name| !all.iter().any(|other| other == *name)) {
        return Err(format!("there is no cell {wrong}: write some of {}", all.join(" ")));
    }
    Ok(CELLS.into_iter().filter(|cell| names.is_empty() || names.contains(&&*cell.name())).collect())
}

/// Predicts from each capture that was recorded, and prints the table of errors.
///
/// # Errors
/// If there is no capture, or a number is missing.
pub fn compare(repository: &Repository, names: &[&str]) -> Done {
    repository.cargo(&["build", "--quiet", "--locked", "--workspace", "--bin", "giveway"])?;
    println!(
        "| capture | qdisc | | measured, ms: median, p95, p99 | predicted, ms | error, %: median, p95, p99 | bounds 10 %, 20 % |\n\
         |---|---|---|---:|---:|---:|---|"
    );
    let mut cells = [0, 0];
    for cell in chosen(names)? {
        if !repository.root.join(format!("{FOLDER}/{}.json", cell.name())).exists() {
            println!("| {} | not recorded | | | | | |", cell.name());
            continue;
        }
        for holds in rows(repository, &cell)? {
            cells[usize::from(holds)] += 1;
        }
    }
    println!("\n{} of {} numbers with a bound are within it", cells[1], cells[0] + cells[1]);
    if cells == [0, 0] { Err("no capture of the library is there".to_owned()) } else { Ok(()) }
}

/// Prints the rows of a cell, and returns for each number with a bound whether it is within it.
fn rows(repository: &Repository, cell: &Cell) -> Result<Vec<bool>, String> {
    let name = cell.name();
    let file = format!("{FOLDER}/{name}.json");
    let text = fs::read_to_string(repository.root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    let measured: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    let capture = format!("{FOLDER}/{name}.pcapng.gz");
    let rates = [format!("{}mbit", cell.rate), format!("{}mbit", (8 * cell.rate).min(250))];
    let mut words =
        vec!["compare", &capture, "--rate-up", &rates[0], "--rate-down", &rates[1], "--json", "--quiet"];
    let ours: Vec<String> = (0..QDISCS.len()).map(|discipline| cell.ours(discipline)).collect();
    ours.iter().for_each(|spec| words.extend(["--qdisc", spec]));
    let program = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let predicted: Value =
        serde_json::from_str(&repository.output(&program, &words)?).map_err(|error| error.to_string())?;
    let predicted = &predicted["links"][0]["table"]["results"];
    let mut holds = Vec::new();
    for (discipline, (qdisc, _)) in QDISCS.iter().enumerate() {
        for (what, real, simulated, path) in [
            ("short uploads", "fct_le30kB_", "fct_le30kB_", 0.0),
            (
                "delay of the call",
                "src.call.delay_",
                "src.voice-like.delay_",
                PATH_S - CALL_BITS / (f64::from(cell.rate) * 1e6),
            ),
        ] {
            let mut texts = [const { String::new() }; 3];
            for (at, quantile) in ["p50_s", "p95_s", "p99_s"].iter().enumerate() {
                let number = |metrics: &Value, start: &str| {
                    let metric = format!("{start}{quantile}");
                    metrics[&metric]["mean"].as_f64().ok_or_else(|| format!("{name}, {qdisc}: no {metric}"))
                };
                let real = number(&measured[qdisc], real)?;
                let simulated = number(&predicted[discipline]["metrics"], simulated)? + path;
                let error = 100.0 * (simulated / real - 1.0);
                let separator = if at == 0 { "" } else { ", " };
                texts[0] += &format!("{separator}{:.1}", real * 1e3);
                texts[1] += &format!("{separator}{:.1}", simulated * 1e3);
                texts[2] += &format!("{separator}{error:+.0}");
                holds.extend(BOUNDS.get(at).map(|bound| error.abs() <= *bound));
            }
            let word = |holds: &bool| if *holds { "met" } else { "missed" };
            let [.., median, p95] = &holds[..] else { unreachable!("two numbers were added") };
            println!(
                "| {name} | {qdisc} | {what} | {} | {} | {} | {}, {} |",
                texts[0],
                texts[1],
                texts[2],
                word(median),
                word(p95)
            );
        }
    }
    Ok(holds)
}
