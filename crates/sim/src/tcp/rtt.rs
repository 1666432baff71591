//! The retransmission timeout of RFC 6298, in integers.

use giveway_qdisc::Span;

use super::TcpConfig;

/// No round-trip time. An `Option` would take twice the memory.
const NOT_MEASURED: Span = Span::from_ps(u64::MAX);

/// Smoothed round-trip time and its variation. TCP and QUIC share them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smoothed {
    /// Smoothed round-trip time (SRTT); [`NOT_MEASURED`] before the first measurement.
    mean: Span,
    /// Round-trip time variation (RTTVAR).
    variation: Span,
}

impl Smoothed {
    /// Nothing is measured yet.
    pub const fn new() -> Smoothed {
        Smoothed { mean: NOT_MEASURED, variation: Span::ZERO }
    }

    /// Adds a round-trip time.
    pub fn add_sample(&mut self, rtt: Span) {
        self.mean = match self.mean {
            // RFC 6298, section 2, rule (2.2): SRTT = R, RTTVAR = R / 2.
            NOT_MEASURED => {
                self.variation = rtt / 2;
                rtt
            }
            // RFC 6298, section 2, rule (2.3), with alpha = 1/8 and beta = 1/4. RTTVAR comes first: it uses
            // the old SRTT.
            mean => {
                let off = if mean > rtt { mean - rtt } else { rtt - mean };
                self.variation = (self.variation * 3 + off) / 4;
                (mean * 7 + rtt) / 8
            }
        };
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    pub fn mean(&self) -> Option<Span> {
        (self.mean != NOT_MEASURED).then_some(self.mean)
    }

    /// The variation; zero before the first measurement.
    pub fn variation(&self) -> Span {
        self.variation
    }
}

/// Smoothed round-trip time, its variation, and the retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    smoothed: Smoothed,
    /// Retransmission timeout (RTO), including back-offs.
    timeout: Span,
}

impl RttEstimator {
    /// An estimator before the first measurement: RFC 6298, section 2, rule (2.1).
    pub fn new(config: &TcpConfig) -> RttEstimator {
        RttEstimator { smoothed: Smoothed::new(), timeout: config.rto_initial }
    }

    /// Adds a round-trip time, which must come from a segment that was sent once: RFC 6298, section 3 (Karn).
    /// It also undoes any back-off.
    pub fn add_sample(&mut self, rtt: Span, config: &TcpConfig) {
        let rtt = on_clock(rtt, config.clock);
        self.smoothed.add_sample(rtt);
        let Smoothed { mean, variation } = self.smoothed;
        // RFC 6298, section 2: RTO = SRTT + max(G, 4 RTTVAR). Rules (2.4) and (2.5): the bounds.
        // Linux adds at least its smallest timeout to SRTT.
        let timeout = mean + (variation * 4).max(config.clock).max(config.rto_margin);
        self.timeout = timeout.max(config.rto_min).min(config.rto_max);
    }

    /// Doubles the timeout after it expired, up to the maximum: RFC 6298, section 5, rule (5.5).
    pub fn back_off(&mut self, config: &TcpConfig) {
        self.timeout = (self.timeout * 2).min(config.rto_max);
    }

    /// Sets the timeout to 3 s after a handshake that needed a retransmission, so that nothing was measured:
    /// RFC 6298, section 5, rule (5.7).
    pub fn after_slow_handshake(&mut self, config: &TcpConfig) {
        if self.smoothed.mean().is_none() {
            self.timeout = Span::s(3).max(config.rto_min).min(config.rto_max);
        }
    }

    /// The retransmission timeout.
    pub fn timeout(&self) -> Span {
        self.timeout
    }
    /// The smoothed round-trip time; zero before the first measurement.
    pub fn smoothed(&self) -> Span {
        self.smoothed.mean().unwrap_or_default()
    }
}

/// Rounds up to a whole number of clock ticks, at least one: RFC 6298, section 4.
fn on_clock(rtt: Span, clock: Span) -> Span {
    if clock.is_zero() {
        return rtt;
    }
    Span::from_ps(rtt.as_ps().div_ceil(clock.as_ps()).max(1) * clock.as_ps())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recursion of RFC 6298, section 2 by hand, with RTO = SRTT + max(G, 4 RTTVAR):
    ///
    /// | R' | SRTT | RTTVAR | SRTT + 4 RTTVAR |
    /// | --- | --- | --- | --- |
    /// | 100 ms | 100 | 50 | 300 |
    /// | 200 ms | 112.5 | 62.5 | 362.5 |
    /// | 112 ms | 112.4375 | 47 | 300.4375 |
    #[test]
    fn follows_rfc_6298() {
        let config = TcpConfig { rto_min: Span::us(1), clock: Span::us(1), ..TcpConfig::rfc() };
        let mut rtt = RttEstimator::new(&config);
        assert_eq!(rtt.timeout(), Span::s(1));
        let mut table = Vec::new();
        for sample in [100, 200, 112] {
            rtt.add_sample(Span::ms(sample), &config);
            table.push((rtt.smoothed(), rtt.timeout()));
        }
        assert_eq!(
            table,
            [
                (Span::ms(100), Span::ms(300)),
                (Span::us(112_500), Span::us(362_500)),
                (Span::ns(112_437_500), Span::ns(300_437_500)),
            ]
        );
        rtt.back_off(&config);
        assert_eq!(rtt.timeout(), Span::ns(600_875_000));
    }

    #[test]
    fn the_clock_and_the_bounds_are_applied() {
        let config = TcpConfig { clock: Span::ms(10), ..TcpConfig::rfc() };
        let mut rtt = RttEstimator::new(&config);
        rtt.add_sample(Span::us(10_001), &config);
        assert_eq!(rtt.smoothed(), Span::ms(20), "rounded up to the clock");
        assert_eq!(rtt.timeout(), Span::s(1), "never below the minimum");
        for _ in 0..10 {
            rtt.back_off(&config);
        }
        assert_eq!(rtt.timeout(), Span::s(60), "never above the maximum");
    }
}
