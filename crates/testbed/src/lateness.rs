//! Wake-up latency of the load generator: the time between the requested and the actual wake-up of a source.

use giveway_qdisc::Span;
use hdrhistogram::Histogram;

/// A run does not count if the 99th percentile of the wake-up latency exceeds this: the machine was too busy.
pub const LATE: Span = Span::ms(5);

/// Wake-up latencies of the sources of a run.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// In nanoseconds.
    times: Histogram<u32>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        // From a microsecond to a thousand seconds, with a resolution of 1 %.
        let times = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 2);
        Lateness { times: times.expect("the bounds are in order") }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, late: Span) {
        self.times.saturating_record(late.as_ps() / 1000);
    }

    /// The 99th percentile; zero if no source was woken.
    pub fn p99(&self) -> Span {
        Span::ns(self.times.value_at_quantile(0.99))
    }

    /// The maximum.
    pub fn most(&self) -> Span {
        Span::ns(self.times.max())
    }

    /// True if the machine was too busy for the run to count.
    pub fn too_much(&self) -> bool {
        self.p99() > LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_wake_in_a_hundred_is_too_much_and_one_in_a_thousand_is_not() {
        let mut lateness = Lateness::default();
        assert!(!lateness.too_much());
        for number in 0..1000 {
            lateness.record(if number == 0 { Span::ms(100) } else { Span::us(50) });
        }
        assert!(!lateness.too_much() && lateness.most() >= Span::ms(99));
        for _ in 0..20 {
            lateness.record(Span::ms(6));
        }
        assert!(lateness.too_much(), "{}", lateness.p99());
    }
}
