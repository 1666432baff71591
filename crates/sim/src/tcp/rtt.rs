//! How long to wait for an acknowledgement: RFC 6298, in integers.

use qdisc::Span;

use super::TcpConfig;

/// Smoothed round trip, its variation, and the timeout that follows from them.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    /// SRTT; none before the first measurement.
    smoothed: Option<Span>,
    /// RTTVAR.
    variation: Span,
    /// RTO, backed off where it must be.
    timeout: Span,
}

impl RttEstimator {
    /// Nothing measured yet: section 2.1.
    pub fn new(config: &TcpConfig) -> RttEstimator {
        RttEstimator { smoothed: None, variation: Span::ZERO, timeout: config.rto_initial }
    }

    /// A round trip was measured on a segment that was sent once (Karn's rule): sections 2.2 and 2.3.
    pub fn measured(&mut self, rtt: Span, config: &TcpConfig) {
        let rtt = on_clock(rtt, config.clock);
        let smoothed = match self.smoothed {
            None => {
                self.variation = rtt / 2;
                rtt
            }
            Some(smoothed) => {
                let off = if smoothed > rtt { smoothed - rtt } else { rtt - smoothed };
                self.variation = (self.variation * 3 + off) / 4;
                (smoothed * 7 + rtt) / 8
            }
        };
        self.smoothed = Some(smoothed);
        let timeout = smoothed + (self.variation * 4).max(config.clock);
        self.timeout = timeout.max(config.rto_min).min(config.rto_max);
    }

    /// The timer ran out: section 5.5.
    pub fn back_off(&mut self, config: &TcpConfig) {
        self.timeout = (self.timeout * 2).min(config.rto_max);
    }

    /// The handshake needed more than one try, so nothing is known: section 5.7.
    pub fn after_slow_handshake(&mut self, config: &TcpConfig) {
        if self.smoothed.is_none() {
            self.timeout = Span::s(3).max(config.rto_min).min(config.rto_max);
        }
    }

    /// The retransmission timeout.
    pub fn timeout(&self) -> Span {
        self.timeout
    }
    /// The smoothed round trip, zero before the first measurement.
    pub fn smoothed(&self) -> Span {
        self.smoothed.unwrap_or(Span::ZERO)
    }
}

/// Rounds up to a whole number of clock ticks, at least one.
fn on_clock(rtt: Span, clock: Span) -> Span {
    if clock.is_zero() {
        return rtt;
    }
    Span::from_ps(rtt.as_ps().div_ceil(clock.as_ps()).max(1) * clock.as_ps())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recursion of section 2 by hand, with RTO = SRTT + max(G, 4 RTTVAR):
    ///
    /// | R' | SRTT | RTTVAR | SRTT + 4 RTTVAR |
    /// | --- | --- | --- | --- |
    /// | 100 ms | 100 | 50 | 300 |
    /// | 200 ms | 112.5 | 62.5 | 362.5 |
    /// | 112 ms | 112.4375 | 47 | 300.4375 |
    #[test]
    fn follows_rfc_6298() {
        let config = TcpConfig { rto_min: Span::us(1), clock: Span::us(1), ..TcpConfig::default() };
        let mut rtt = RttEstimator::new(&config);
        assert_eq!(rtt.timeout(), Span::s(1));
        let mut table = Vec::new();
        for sample in [100, 200, 112] {
            rtt.measured(Span::ms(sample), &config);
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
    fn the_clock_and_the_bounds_count() {
        let config = TcpConfig { clock: Span::ms(10), ..TcpConfig::default() };
        let mut rtt = RttEstimator::new(&config);
        rtt.measured(Span::us(10_001), &config);
        assert_eq!(rtt.smoothed(), Span::ms(20), "rounded up to the clock");
        assert_eq!(rtt.timeout(), Span::s(1), "never below the minimum");
        for _ in 0..10 {
            rtt.back_off(&config);
        }
        assert_eq!(rtt.timeout(), Span::s(60), "never above the maximum");
    }
}
