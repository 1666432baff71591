//! Counters of a flow in progress, shared by all carriers.

use giveway_qdisc::{FlowReport, Span, Time};
use hdrhistogram::Histogram;

/// Pauses of a transfer: times in which the receiving application gets no more data in order.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// Time of the last arrival of data; the start of the transfer before the first arrival.
    since: Time,
    longest: Span,
    /// Sum of the pauses longer than [`Pauses::LONG`].
    long: Span,
}

impl Pauses {
    /// Lower bound of a long pause. Shorter times without progress come from round trips and queues.
    const LONG: Span = Span::ms(500);

    /// The pauses of a transfer that starts at `start`.
    pub fn since(start: Time) -> Pauses {
        Pauses { since: start, longest: Span::ZERO, long: Span::ZERO }
    }

    /// Records that data arrived in order.
    pub fn progress(&mut self, now: Time) {
        let pause = now.since(self.since);
        self.since = now;
        self.longest = self.longest.max(pause);
        if pause > Pauses::LONG {
            self.long += pause;
        }
    }

    /// The longest pause, and the sum of the long pauses, of a transfer that ends at `now`.
    pub fn until(mut self, now: Time) -> (Span, Span) {
        self.progress(now);
        (self.longest, self.long)
    }
}

/// Counters of the datagrams of a stream.
///
/// Loss and delay count the datagrams that were *sent* within the measurement interval; goodput is what
/// *arrived* within it. All bytes are data bytes, without headers.
#[derive(Clone, Debug, Default)]
pub struct Datagrams {
    sent: u64,
    received: u64,
    bytes_sent: u64,
    bytes_received: u64,
    goodput_bytes: u64,
    delay_sum: u128,
    delay_max: Span,
    delays: Delays,
    /// Time of the last arrival of a datagram, within the interval or not.
    last: Option<Time>,
}

impl Datagrams {
    /// Records a datagram of `bytes` data bytes that was sent within the interval.
    pub fn sent(&mut self, bytes: u32) {
        self.sent += 1;
        self.bytes_sent += u64::from(bytes);
    }

    /// Removes a sent datagram from the count because it is still in the network when the run ends: it is
    /// neither received nor lost. Its bytes still count as offered by the application.
    pub fn under_way(&mut self) {
        self.sent -= 1;
    }

    /// Records an arrival, at any time after sending; `within` if the datagram arrived within the interval.
    pub fn on_arrival(&mut self, bytes: u32, now: Time, within: bool) {
        self.last = Some(now);
        if within {
            self.goodput_bytes += u64::from(bytes);
        }
    }

    /// Records the arrival of a datagram that was sent within the interval.
    pub fn on_receipt(&mut self, bytes: u32, sent: Time, now: Time) {
        let delay = now.since(sent);
        self.received += 1;
        self.bytes_received += u64::from(bytes);
        self.delay_sum += u128::from(delay.as_ps());
        self.delay_max = self.delay_max.max(delay);
        self.delays.record(delay.as_ps() / 1000);
    }

    fn delay(&self, share: f64) -> Span {
        Span::ns(self.delays.quantile(share)).min(self.delay_max)
    }

    /// The report of the stream at the end of the run: `known`, with all counters filled in.
    pub fn report(&self, known: FlowReport, now: Time) -> FlowReport {
        let mean = if self.received == 0 { 0 } else { (self.delay_sum / u128::from(self.received)) as u64 };
        FlowReport {
            end: self.last.unwrap_or(now),
            bytes: self.bytes_sent,
            delivered: self.bytes_received,
            goodput_bytes: self.goodput_bytes,
            packets: self.sent,
            lost: Some(self.sent - self.received),
            delay_mean: Span::from_ps(mean),
            delay_p50: self.delay(0.5),
            delay_p95: self.delay(0.95),
            delay_p99: self.delay(0.99),
            delay_max: self.delay_max,
            ..known
        }
    }
}

/// Delays of the datagrams of a stream, nanoseconds. A capture has thousands of streams with a few packets
/// each, and a histogram takes 13 kB, so that only longer streams have one.
#[derive(Clone, Debug)]
enum Delays {
    Few(Vec<u64>),
    Many(Box<Histogram<u32>>),
}

impl Default for Delays {
    fn default() -> Delays {
        Delays::Few(Vec::new())
    }
}

impl Delays {
    /// Largest number of delays in a list. Of fewer than a hundred values the 99th percentile is the largest.
    const FEW: usize = 64;

    fn record(&mut self, ns: u64) {
        if let Delays::Few(values) = self {
            if values.len() < Delays::FEW {
                return values.push(ns);
            }
            // From a microsecond to a thousand seconds, with an error of at most 1 %.
            let bounds = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 2);
            let mut histogram = bounds.expect("the bounds are in order");
            values.iter().for_each(|value| histogram.saturating_record(*value));
            *self = Delays::Many(Box::new(histogram));
        }
        if let Delays::Many(histogram) = self {
            histogram.saturating_record(ns);
        }
    }

    /// The smallest delay that at least this share of the delays does not exceed; 0 without delays.
    fn quantile(&self, share: f64) -> u64 {
        match self {
            Delays::Few(values) => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let rank = (share * sorted.len() as f64).ceil() as usize;
                sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
            }
            Delays::Many(histogram) => histogram.value_at_quantile(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 datagrams are counted exactly, and of 1,000 the histogram has the quantiles within a percent.
    #[test]
    fn quantiles_of_delays_are_ranks() {
        let quantiles = |count: u64| {
            let mut delays = Delays::default();
            (1..=count).rev().for_each(|ms| delays.record(ms * 1_000_000));
            [0.5, 0.95, 0.99].map(|share| delays.quantile(share) as f64 / 1e6)
        };
        assert_eq!(quantiles(0), [0.0; 3]);
        assert_eq!(quantiles(40), [20.0, 38.0, 40.0]);
        for (quantile, exact) in quantiles(1000).into_iter().zip([500.0, 950.0, 990.0]) {
            assert!((quantile / exact - 1.0).abs() < 0.01, "{quantile} instead of {exact}");
        }
    }
}
