//! Closed forms from `theory` that a panel draws next to the measurements.
//!
//! ```toml
//! [[figure.panel]]
//! curve = { kind = "over", measure = { kind = "metric", name = "long_wait_mean_slots" }, axis = "slots" }
//! formulas = ["long_wait", "corrected_long_wait"]
//! ```
//!
//! A formula is drawn at those points of the family at which it is defined. Waiting times are for TRIMODEL(1,
//! 9, 24, 0.559, 0.200) and 16 ports, as in the P-SPF paper, over the offered load. `max_throughput` and
//! `blocked` are over the number of ports.

use giveway_theory::crossbar::Ports;
use giveway_theory::crossbar::mix::Mix;
use giveway_theory::crossbar::preemption;
use serde::Deserialize;

/// A closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Formula {
    /// P-SPF, equation (2), slots.
    ShortWait,
    /// P-SPF, equation (4), slots.
    LongWait,
    /// P-SPF, equation (5), slots.
    OverallWait,
    /// P-SPF, equation (6), slots.
    GeneralWait,
    /// Equation (4) with the outputs that are blocked, slots.
    CorrectedLongWait,
    /// Equation (5) with the outputs that are blocked, slots.
    CorrectedOverallWait,
    /// P-SPF, equation (10), over the number of ports.
    MaxThroughput,
    /// P-SPF, equation (8), over the number of ports.
    Blocked,
}

const PORTS: Ports = Ports::Finite(16);

impl Formula {
    /// The name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Formula::ShortWait => "equation (2)",
            Formula::LongWait => "equation (4)",
            Formula::OverallWait => "equation (5)",
            Formula::GeneralWait => "equation (6)",
            Formula::CorrectedLongWait => "(4), corrected",
            Formula::CorrectedOverallWait => "(5), corrected",
            Formula::MaxThroughput => "equation (10)",
            Formula::Blocked => "equation (8)",
        }
    }

    /// The value at `x`; `None` where the formula is not defined.
    pub fn at(self, x: f64) -> Option<f64> {
        let mix = Mix::trimodel([1, 9, 24], 0.559, 0.2).ok()?;
        let ports = Ports::Finite(x as u32);
        match self {
            Formula::ShortWait => preemption::short_wait(&mix, x, PORTS),
            Formula::LongWait => preemption::long_wait(&mix, x),
            Formula::OverallWait => preemption::overall_wait(&mix, x),
            Formula::GeneralWait => preemption::general_wait(&mix, x),
            Formula::CorrectedLongWait => preemption::corrected_long_wait(&mix, x, PORTS),
            Formula::CorrectedOverallWait => preemption::corrected_overall_wait(&mix, x, PORTS),
            Formula::MaxThroughput => preemption::max_throughput(&mix, ports),
            Formula::Blocked => preemption::blocked(preemption::short_rate_at_full_load(&mix), ports),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_end_where_they_are_not_defined() {
        assert!((Formula::MaxThroughput.at(16.0).unwrap() - 0.93966).abs() < 1e-5);
        assert!((1.0 - Formula::Blocked.at(16.0).unwrap() - 0.93966).abs() < 1e-5);
        assert!(Formula::LongWait.at(0.94).unwrap() < Formula::CorrectedLongWait.at(0.94).unwrap());
        assert_eq!(Formula::CorrectedLongWait.at(0.95), None, "its pole is the capacity");
        assert_eq!(Formula::LongWait.at(1.0), None);
    }
}
