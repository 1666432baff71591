//! The interface of a measure.

use giveway_measure::Record;
use giveway_qdisc::Rate;

use super::select::bits_per_s;
use super::unit::Unit;
use crate::fact::Measured;

/// The record of a run, and the values that it is compared with.
pub(crate) struct Run<'a> {
    pub record: &'a Record,
    /// The fair share of each flow, from the experiment.
    pub ideal: Option<Rate>,
    /// The bound of the discipline on the delay of a source, seconds.
    pub bound: &'a dyn Fn(&str) -> Option<f64>,
}

impl Run<'_> {
    /// The fair share of each flow, bit/s.
    pub fn ideal_bps(&self) -> Option<f64> {
        self.ideal.map(bits_per_s)
    }
}

/// The data that a measure needs in addition to the metrics and the flows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The number of times that each flow became backlogged.
    pub episodes: bool,
    /// Samples over time.
    pub series: bool,
    /// The burstiness of the traffic.
    pub bursts: bool,
    /// The fair share of the experiment.
    pub ideal: bool,
    /// Timings of an experiment with a cost, in place of a run.
    pub timing: bool,
    /// Neither a run nor timings.
    pub no_run: bool,
}

/// One kind of measure.
pub(crate) trait Kind {
    /// The number of a run; `None` if the run has no data to measure.
    fn of(&self, _run: &Run<'_>) -> Option<f64> {
        None
    }

    /// The number of an experiment with a cost: enqueue and dequeue took `pair_ns` nanoseconds, with packets
    /// of `bytes`.
    fn of_cost(&self, _pair_ns: f64, _bytes: u32) -> Option<f64> {
        None
    }

    /// The number without a run. `measured` contains the numbers of `measured.toml`.
    fn of_paper(&self, _measured: &[Measured]) -> Option<f64> {
        None
    }

    /// The name of the number in sentences and titles.
    fn label(&self) -> String;

    /// The unit of the number.
    fn unit(&self) -> Unit {
        Unit::Plain
    }

    /// The source of traffic that it names.
    fn source(&self) -> Option<&str> {
        None
    }

    /// True if the measure can be negative.
    fn is_signed(&self) -> bool {
        false
    }

    /// True if the number is a total, which grows with the length of a run.
    fn is_total(&self) -> bool {
        false
    }

    /// The data that it needs.
    fn needs(&self) -> Needs {
        Needs::default()
    }
}
