//! The cells of the library: a rate, and a congestion control or another load; or a home.

use super::homes::{HOMES, Home};
use super::measure::Measure;

/// The folder of the captures.
pub const FOLDER: &str = "examples/library";
/// Measured runs of each discipline. The first one with `fifo` is captured.
pub const RUNS: u32 = 3;
/// Time by which the upload starts later from run to run, in milliseconds: no multiple of the call's 20 ms.
const LATER_MS: u32 = 7;

/// A simulated datagram stream from a capture crosses the link only.
const CALL: Measure = Measure {
    name: "delay of the call",
    measured: "src.call.delay_",
    predicted: "src.voice-like.delay_",
    path: 0.015,
    quantiles: 3,
};
/// Measures of a cell with short uploads.
const UPLOADS: [Measure; 2] = [
    Measure {
        name: "short uploads",
        measured: "fct_le30kB_",
        predicted: "fct_le30kB_",
        path: 0.0,
        quantiles: 3,
    },
    CALL,
];
/// Measures of a cell with web pages. The measured flows are the pages and one long upload.
const PAGES: [Measure; 2] = [
    Measure { name: "page loads", measured: "fct_", predicted: "page_load_", path: 0.0, quantiles: 3 },
    CALL,
];

/// The load next to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// A long upload and short ones over TCP with this congestion control.
    Uploads(&'static str),
    /// A long upload and web pages over TCP.
    Pages,
    /// A long upload and short ones over QUIC.
    Quic,
    /// Pages, an upload and a call in both directions.
    Home(&'static Home),
}

/// A capture with its measurements.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Rate of the bottleneck upstream, in Mbit/s.
    rate: u32,
    /// Load next to the call.
    load: Load,
    /// Duration of the run, in seconds.
    seconds: u32,
}

/// Cells with one load. A faster link needs less time for the same number of packets.
const LOADS: [Cell; 10] = [
    Cell { rate: 2, load: Load::Uploads("cubic"), seconds: 24 },
    Cell { rate: 10, load: Load::Uploads("cubic"), seconds: 12 },
    Cell { rate: 50, load: Load::Uploads("cubic"), seconds: 5 },
    Cell { rate: 100, load: Load::Uploads("cubic"), seconds: 4 },
    Cell { rate: 2, load: Load::Uploads("bbr"), seconds: 24 },
    Cell { rate: 10, load: Load::Uploads("bbr"), seconds: 12 },
    Cell { rate: 50, load: Load::Uploads("bbr"), seconds: 5 },
    Cell { rate: 100, load: Load::Uploads("bbr"), seconds: 4 },
    Cell { rate: 10, load: Load::Pages, seconds: 30 },
    Cell { rate: 10, load: Load::Quic, seconds: 12 },
];

/// All cells.
fn all() -> impl Iterator<Item = Cell> {
    let home = |home: &'static Home| Cell { rate: home.up, load: Load::Home(home), seconds: home.seconds };
    LOADS.into_iter().chain(HOMES.iter().map(home))
}

/// Disciplines: the kernel's name, and the simulator's name with its parameters.
pub const QDISCS: [(&str, &str); 3] =
    [("fifo", "fifo limit"), ("fq_codel", "fq_codel"), ("cake", "cake unlimited besteffort")];

impl Cell {
    /// As in `10mbit-cubic`.
    pub fn name(&self) -> String {
        let load = match self.load {
            Load::Uploads(congestion) => congestion,
            Load::Pages => "pages",
            Load::Quic => "quic",
            Load::Home(home) => return home.name.to_owned(),
        };
        format!("{}mbit-{load}", self.rate)
    }

    /// The scenario, as a path in the repository.
    pub fn scenario(&self) -> &'static str {
        match self.load {
            Load::Uploads(_) => "scenarios/testbed/library.toml",
            Load::Pages => "scenarios/testbed/library-pages.toml",
            Load::Quic => "scenarios/testbed/library-quic.toml",
            Load::Home(home) => home.scenario(),
        }
    }

    /// The quantities that are measured and predicted.
    pub fn measures(&self) -> &'static [Measure] {
        match self.load {
            Load::Uploads(_) | Load::Quic => &UPLOADS,
            Load::Pages => &PAGES,
            Load::Home(home) => home.measures(),
        }
    }

    /// The home, if the cell is one.
    pub fn home(&self) -> Option<&'static Home> {
        if let Load::Home(home) = self.load { Some(home) } else { None }
    }

    /// Capacity of `fifo` upstream: what the link sends in a quarter of a second, in bytes.
    fn buffer(&self) -> u32 {
        self.home().map_or(self.rate * 31_250, |home| home.buffers()[0])
    }

    /// Rates upstream and downstream, as flags and scenarios have them.
    pub fn rates(&self) -> [String; 2] {
        let down = self.home().map_or((8 * self.rate).min(250), |home| home.down);
        [format!("{}mbit", self.rate), format!("{down}mbit")]
    }

    /// Changes of the scenario for a discipline of Linux: upstream, and in a home in both directions.
    pub fn disciplines(&self, discipline: usize) -> Vec<String> {
        let kernel = match QDISCS[discipline] {
            ("fifo", _) => format!("kernel:bfifo limit {}", self.buffer()),
            (_, words) => format!("kernel:{words}"),
        };
        let [_, down] = self.ours(discipline);
        let down = self.home().map(|_| format!("link.1.back.qdisc={down}"));
        std::iter::once(format!("disciplines=[\"{kernel}\"]")).chain(down).collect()
    }

    /// The discipline of the simulator upstream and downstream.
    pub fn ours(&self, discipline: usize) -> [String; 2] {
        let [up, down] = self.home().map_or([self.buffer(); 2], |home| home.buffers());
        match QDISCS[discipline] {
            ("fifo", words) => [format!("{words} {up}b"), format!("{words} {down}b")],
            (_, words) => [words.to_owned(), words.to_owned()],
        }
    }

    /// The congestion control of the simulator. Linux's BBR paces one percent below its estimate.
    pub fn congestion(&self) -> &'static str {
        match self.load {
            Load::Uploads("bbr") => "bbr margin 0.01",
            Load::Uploads(other) => other,
            Load::Pages | Load::Quic | Load::Home(_) => "cubic",
        }
    }

    /// Changes of the scenario for a run. The upload takes a quarter of it, if it has the link alone. It
    /// starts a few milliseconds later in each run, so that runs differ as they do by chance.
    pub fn settings(&self, run: u32) -> Vec<String> {
        let Cell { rate, load, seconds } = self;
        if let Load::Home(home) = load {
            return home.settings(run * LATER_MS);
        }
        let stop = seconds - 1;
        let [up, down] = self.rates();
        let mut settings = vec![
            format!("link.1.rate={up}"),
            format!("link.1.back.rate={down}"),
            format!("duration={seconds}s"),
            format!("traffic.upload.size={}b", rate * seconds * 31_250),
            format!("traffic.upload.start={}ms", seconds * 1000 / 6 + run * LATER_MS),
            format!("traffic.call.stop={stop}s"),
        ];
        if let Load::Uploads(congestion) = load {
            settings.push(format!("tcp.congestion={congestion}"));
        }
        let short = if *load == Load::Pages { "pages" } else { "short" };
        settings.push(format!("traffic.{short}.stop={stop}s"));
        if *load != Load::Pages {
            settings.push(format!("traffic.short.load={}kbit", rate * 200));
        }
        settings
    }
}

/// The cells with these names; all without a name.
///
/// # Errors
/// If a cell is unknown; the message lists the cells.
pub fn chosen(names: &[&str]) -> Result<Vec<Cell>, String> {
    let all: Vec<String> = self::all().map(|cell| cell.name()).collect();
    if let Some(wrong) = names.iter().find(|name| !all.iter().any(|other| other == *name)) {
        return Err(format!("unknown cell {wrong}; cells: {}", all.join(" ")));
    }
    Ok(self::all().filter(|cell| names.is_empty() || names.contains(&&*cell.name())).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_cell_has_its_own_name_and_a_scenario_with_its_traffic() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository");
        let mut names: Vec<String> = all().map(|cell| cell.name()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all().count());
        for cell in all() {
            let scenario = std::fs::read_to_string(root.join(cell.scenario())).expect("there is a scenario");
            for setting in cell.settings(0) {
                let Some(key) = setting.strip_prefix("traffic.") else { continue };
                let (name, rest) = key.split_once('.').expect("a key of a source");
                let (key, _) = rest.split_once('=').expect("a value");
                let from = scenario.find(&format!("name = \"{name}\"")).expect("the source is there");
                let source = scenario[from..].split("\n\n").next().unwrap_or_default();
                assert!(source.contains(&format!("\n{key} = ")), "{}: {name} has no {key}", cell.name());
            }
        }
    }
}
