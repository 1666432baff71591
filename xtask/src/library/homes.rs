//! Cells of the library with the load of a home: pages, an upload, and a call in both directions.
//!
//! They are measured with each discipline in both directions, as a comparison simulates them, and with the
//! setups of a recommendation that has a shaper upstream only, at [`SHAPED`] of the line's rate. So they show
//! both whether a prediction is right and whether a recommendation is true.

use super::measure::Measure;

/// A home and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Home {
    /// Name of the cell.
    pub name: &'static str,
    /// Rate upstream, in Mbit/s.
    pub up: u32,
    /// Rate downstream, in Mbit/s.
    pub down: u32,
    /// Times that the line needs to send a full fifo, upstream and downstream, in milliseconds.
    full: [u32; 2],
    /// Mean time after which servers respond, in milliseconds.
    respond: u32,
    /// Duration of the upload, if it has the line alone, in seconds; 0 for a home that uploads photos.
    upload: u32,
    /// Duration of the run, in seconds.
    pub seconds: u32,
}

const fn home(name: &'static str, [up, down]: [u32; 2], full: [u32; 2]) -> Home {
    Home { name, up, down, full, respond: 0, upload: 14, seconds: 40 }
}

/// All homes.
pub static HOMES: [Home; 6] = [
    Home { upload: 26, seconds: 60, ..home("home-1-1", [1, 1], [600, 600]) },
    home("home-2-2", [2, 2], [400, 400]),
    home("home-2-16", [2, 16], [600, 100]),
    Home { respond: 150, ..home("home-2-16-late", [2, 16], [600, 100]) },
    home("home-5-50", [5, 50], [250, 60]),
    Home { upload: 0, ..home("photos-5-50", [5, 50], [250, 60]) },
];

/// The rate of a shaper, in percent of the line's.
const SHAPED: u32 = 95;
/// Measured runs of each discipline. A run of a home has more packets than one of the other cells.
pub const RUNS: u32 = 2;

const fn call(name: &'static str, measured: &'static str, predicted: &'static str) -> Measure {
    Measure { name, measured, predicted, path: 0.015, quantiles: 3 }
}

const CALLS: [Measure; 2] = [
    call("delay of the call upstream", "src.call-up.delay_", "at.local->far.src.voice-like.delay_"),
    call("delay of the call downstream", "src.call-down.delay_", "at.far->local.src.voice-like.delay_"),
];

/// Measures of a home. Pages have up to 2.6 MB, and the upload has more than 3 MB.
const MEASURES: [Measure; 4] = [
    Measure {
        name: "page loads",
        measured: "fct_le3MB_",
        predicted: "at.far->local.page_load_",
        path: 0.0,
        quantiles: 3,
    },
    Measure {
        name: "upload",
        measured: "fct_gt3MB_",
        predicted: "at.local->far.fct_gt3MB_",
        path: 0.0,
        quantiles: 1,
    },
    CALLS[0],
    CALLS[1],
];

/// Measures of a home that uploads photos.
const OF_PHOTOS: [Measure; 4] = [
    Measure {
        name: "page loads",
        measured: "fct_le200kB_",
        predicted: "at.far->local.page_load_",
        path: 0.0,
        quantiles: 3,
    },
    Measure {
        name: "photos",
        measured: "fct_gt200kB_",
        predicted: "at.local->far.fct_le3MB_",
        path: 0.0,
        quantiles: 3,
    },
    CALLS[0],
    CALLS[1],
];

/// A discipline upstream with a shaper in front of the line, as recommendations name it. Downstream a shaper
/// is behind the line's own queue, which a test bed cannot have in its reverse direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup(&'static str);

/// All setups.
pub const SETUPS: [Setup; 2] = [Setup("fq_codel"), Setup("cake")];

impl Setup {
    /// As in `fq_codel upstream only`.
    pub fn name(&self) -> String {
        format!("{} upstream only", self.0)
    }

    /// Changes of the scenario of a home: the discipline upstream, and its rate.
    pub fn settings(&self, home: &Home) -> Vec<String> {
        let rate = format!("{}kbit", home.up * 10 * SHAPED);
        // CAKE shapes by itself. Any other discipline is measured as on a slower line.
        let mut settings = match self.0 {
            "cake" => vec![format!("disciplines=[\"kernel:cake bandwidth {rate}\"]")],
            other => vec![format!("disciplines=[\"kernel:{other}\"]"), format!("link.1.rate={rate}")],
        };
        settings.push(format!("link.1.back.qdisc=fifo limit {}b", home.buffers()[1]));
        settings
    }
}

impl Home {
    /// The quantities that are measured and predicted.
    pub fn measures(&self) -> &'static [Measure] {
        if self.has_photos() { &OF_PHOTOS } else { &MEASURES }
    }

    fn has_photos(&self) -> bool {
        self.upload == 0
    }

    /// The scenario, as a path in the repository.
    pub fn scenario(&self) -> &'static str {
        if self.has_photos() { "scenarios/testbed/home-photos.toml" } else { "scenarios/testbed/home.toml" }
    }

    /// Capacities of `fifo` upstream and downstream, in bytes.
    pub fn buffers(&self) -> [u32; 2] {
        [self.up * self.full[0] * 125, self.down * self.full[1] * 125]
    }

    /// Changes of the scenario for a run whose upload starts this much later, in milliseconds.
    pub fn settings(&self, later: u32) -> Vec<String> {
        let stop = self.seconds - 2;
        let line = vec![
            format!("link.1.rate={}mbit", self.up),
            format!("link.1.back.rate={}mbit", self.down),
            format!("duration={}s", self.seconds),
            format!("traffic.light.stop={stop}s"),
            format!("traffic.call-up.stop={}s", self.seconds - 1),
            format!("traffic.call-down.stop={}s", self.seconds - 1),
        ];
        let load = match self.has_photos() {
            true => vec![format!("traffic.photos.stop={stop}s"), format!("traffic.photos.start={later}ms")],
            false => vec![
                format!("traffic.pages.stop={stop}s"),
                format!("traffic.pages.respond={}ms", self.respond),
                format!("traffic.light.respond={}ms", self.respond),
                format!("traffic.upload.size={}b", self.up * self.upload * 125_000),
                format!("traffic.upload.start={}ms", 8000 + later),
            ],
        };
        [line, load].concat()
    }
}
