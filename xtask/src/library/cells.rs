//! The cells of the library: a rate and a congestion control each.

/// The folder of the captures.
pub const FOLDER: &str = "examples/library";
/// Measured runs of each discipline. The first one with `fifo` is captured.
pub const RUNS: u32 = 3;
/// Time by which the upload begins later from run to run, in milliseconds: no multiple of the call's 20 ms.
const LATER_MS: u32 = 7;

/// A quantity that is measured and predicted.
pub struct Measure {
    /// Its name in tables.
    pub name: &'static str,
    /// The metric of the test bed, without the quantile.
    pub measured: &'static str,
    /// The metric of the prediction, without the quantile.
    pub predicted: &'static str,
    /// The one-way delay of the path, in seconds, if a prediction does not have it.
    pub path: f64,
}

/// All of them. A simulated datagram stream from a capture crosses the link only.
pub const MEASURES: [Measure; 2] = [
    Measure { name: "short uploads", measured: "fct_le30kB_", predicted: "fct_le30kB_", path: 0.0 },
    Measure {
        name: "delay of the call",
        measured: "src.call.delay_",
        predicted: "src.voice-like.delay_",
        path: 0.015,
    },
];
/// Quantiles of each measure, as metrics and tables name them.
pub const QUANTILES: [(&str, &str); 3] = [("p50_s", "median"), ("p95_s", "p95"), ("p99_s", "p99")];
/// Bounds on the error of the first two quantiles, in percent.
pub const BOUNDS: [f64; 2] = [10.0, 20.0];

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

    /// Rates upstream and downstream, as flags and scenarios have them.
    pub fn rates(&self) -> [String; 2] {
        [format!("{}mbit", self.rate), format!("{}mbit", (8 * self.rate).min(250))]
    }

    /// The discipline of Linux, as in scenarios.
    pub fn kernel(&self, discipline: usize) -> String {
        match QDISCS[discipline].0 {
            "fifo" => format!("kernel:bfifo limit {}", self.buffer()),
            "cake" => "kernel:cake unlimited besteffort".to_owned(),
            other => format!("kernel:{other}"),
        }
    }

    /// The discipline of the simulator.
    pub fn ours(&self, discipline: usize) -> String {
        match QDISCS[discipline] {
            ("fifo", words) => format!("{words} {}b", self.buffer()),
            (_, words) => words.to_owned(),
        }
    }

    /// The congestion control of the simulator. Linux's BBR paces one percent below its estimate.
    pub fn congestion(&self) -> &'static str {
        if self.congestion == "bbr" { "bbr margin 0.01" } else { self.congestion }
    }

    /// Changes of the scenario for a run. The upload takes a quarter of it, if it has the link alone. It
    /// begins a few milliseconds later in each run, so that runs differ as they do by chance.
    pub fn settings(&self, run: u32) -> Vec<String> {
        let Cell { rate, congestion, seconds } = self;
        let stop = seconds - 1;
        let [up, down] = self.rates();
        vec![
            format!("link.1.rate={up}"),
            format!("link.1.back.rate={down}"),
            format!("tcp.congestion={congestion}"),
            format!("duration={seconds}s"),
            format!("traffic.upload.size={}b", rate * seconds * 31_250),
            format!("traffic.upload.start={}ms", seconds * 1000 / 6 + run * LATER_MS),
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
