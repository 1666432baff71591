//! What is counted of a flow while it lasts, whoever carries it.

use hdrhistogram::Histogram;
use qdisc::{FlowReport, Span, Time};

/// When the receiving application got nothing more in order.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// When it last got something; the start, before it did.
    since: Time,
    longest: Span,
    /// Sum of those longer than [`Pauses::LONG`].
    long: Span,
}

impl Pauses {
    /// Shorter times without progress are those of a round trip or a queue.
    const LONG: Span = Span::ms(500);

    /// Of a transfer that begins now.
    pub fn since(start: Time) -> Pauses {
        Pauses { since: start, longest: Span::ZERO, long: Span::ZERO }
    }

    /// Something arrived.
    pub fn progress(&mut self, now: Time) {
        let pause = now.since(self.since);
        self.since = now;
        self.longest = self.longest.max(pause);
        if pause > Pauses::LONG {
            self.long += pause;
        }
    }

    /// The longest, and the sum of the long ones, of a transfer that ends now.
    pub fn until(mut self, now: Time) -> (Span, Span) {
        self.progress(now);
        (self.longest, self.long)
    }
}

/// What became of the datagrams of a stream.
///
/// Loss and delay are those of the datagrams that were *sent* within the measurement interval; goodput is what *arrived*
/// within it. All bytes are data bytes, without headers.
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
    /// When one of any time last arrived.
    last: Option<Time>,
}

impl Datagrams {
    /// One with so many data bytes was sent within the interval.
    pub fn sent(&mut self, bytes: u32) {
        self.sent += 1;
        self.bytes_sent += u64::from(bytes);
    }

    /// One that was sent within the interval is still on its way when the run ends: it is neither received nor lost. It
    /// remains one that the application wanted to send.
    pub fn under_way(&mut self) {
        self.sent -= 1;
    }

    /// One arrived, whenever it was sent.
    pub fn arrived(&mut self, bytes: u32, now: Time, within: bool) {
        self.last = Some(now);
        if within {
            self.goodput_bytes += u64::from(bytes);
        }
    }

    /// One that was sent within the interval arrived.
    pub fn received(&mut self, bytes: u32, sent: Time, now: Time) {
        let delay = now.since(sent);
        self.received += 1;
        self.bytes_received += u64::from(bytes);
        self.delay_sum += u128::from(delay.as_ps());
        self.delay_max = self.delay_max.max(delay);
        self.delays.record(delay.as_ps() / 1000);
    }

    /// The report of the stream, at the end of the run: `known` says who it is, the rest is filled in.
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
            delay_p99: Span::ns(self.delays.p99()).min(self.delay_max),
            delay_max: self.delay_max,
            ..known
        }
    }
}

/// Delays of a stream's datagrams, nanoseconds. A capture has thousands of streams with a few packets each, and a
/// histogram takes 13 kB: only streams of some length have one.
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
    /// Below a hundred values their 99th percentile is the largest.
    const FEW: usize = 64;

    fn record(&mut self, ns: u64) {
        if let Delays::Few(values) = self {
            if values.len() < Delays::FEW {
                return values.push(ns);
            }
            // A microsecond to a thousand seconds, 1 %.
            let bounds = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 2);
            let mut histogram = bounds.expect("the bounds are in order");
            values.iter().for_each(|value| histogram.saturating_record(*value));
            *self = Delays::Many(Box::new(histogram));
        }
        if let Delays::Many(histogram) = self {
            histogram.saturating_record(ns);
        }
    }

    fn p99(&self) -> u64 {
        match self {
            Delays::Few(values) => values.iter().copied().max().unwrap_or(0),
            Delays::Many(histogram) => histogram.value_at_quantile(0.99),
        }
    }
}
