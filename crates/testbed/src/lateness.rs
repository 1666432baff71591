//! How late the load generator was: the time from when a source asked to be woken to when it was.

use hdrhistogram::Histogram;
use qdisc::Span;

/// Later than this at the 99th percentile, and the machine was too busy for the run to count.
pub const LATE: Span = Span::ms(5);

/// How late a run's sources were woken.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Nanoseconds.
    times: Histogram<u32>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        // A microsecond to a thousand seconds, 1 %.
        let times = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 2);
        Lateness { times: times.expect("the bounds are in order") }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, late: Span) {
        self.times.saturating_record(late.as_ps() / 1000);
    }

    /// The 99th percentile; zero when nobody was woken.
    pub fn p99(&self) -> Span {
        Span::ns(self.times.value_at_quantile(0.99))
    }

    /// The longest.
    pub fn most(&self) -> Span {
        Span::ns(self.times.max())
    }

    /// Whether the machine was too busy for the run to count.
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
