//! The pace of a call: whether a train looks like one, and the times at which its packets were sent.
//!
//! # Principles
//! - A call has small packets at an even pace. Voice codecs send every 10 to 60 ms.
//! - A queue before the capture point stretches some gaps and shortens others: a packet that waits delays
//!   those behind it, and they arrive together. Such packets were sent one interval apart. So the times of
//!   sending are the latest ones that are no later than the captured times and nearly an interval apart
//!   ([`TIGHT`]). Where no queue was, they are the captured times.
//!
//! # Deviations
//! - A wait of all packets by the same time is not seen, and is not needed: only its changes are.
//! - The interval of a call with silences is not known from its mean rate. Such a call keeps its captured
//!   times.

use crate::model::Train;

/// The number and the time of packets from which a train can be a call: fewer show no pace.
const FEWEST: u64 = 50;
const SHORTEST: u64 = 1_000_000_000;
/// The maximum mean length of the packets of a call, bytes.
const SMALL: u64 = 300;
/// Packets a second.
const RATES: std::ops::RangeInclusive<f64> = 10.0..=120.0;
/// A gap is near the mean if it differs by less than this share. 22 % of random (exponential) gaps are near.
const NEAR: f64 = 0.3;
/// The inverse of the share of the gaps of a call that are near the mean.
const OF: u64 = 3;
/// The minimum gap between packets at the sender, as a share of the interval: clocks and schedulers are not
/// exact.
const TIGHT: f64 = 0.95;

/// The interval between packets, ns; `None` if the train does not look like a voice call.
pub fn of(train: &Train) -> Option<f64> {
    let (count, span) = (train.packets.len() as u64, train.span());
    if count < FEWEST || span < SHORTEST || train.bytes() > SMALL * count {
        return None;
    }
    let mean = span as f64 / (count - 1) as f64;
    let is_near = |gap: u64| (gap as f64 - mean).abs() < NEAR * mean;
    let near = train.packets.iter().skip(1).filter(|(gap, _)| is_near(*gap)).count() as u64;
    (RATES.contains(&(1e9 / mean)) && OF * near >= count - 1).then_some(mean)
}

/// The train as it was sent, if its interval is this one, ns.
pub fn as_sent(train: &Train, interval: f64) -> Train {
    let least = (TIGHT * interval) as u64;
    let mut now = train.start;
    let mut times: Vec<u64> = Vec::with_capacity(train.packets.len());
    for (at, (gap, _)) in train.packets.iter().enumerate() {
        now += if at == 0 { 0 } else { gap };
        times.push(now);
    }
    for at in (1..times.len()).rev() {
        times[at - 1] = times[at - 1].min(times[at].saturating_sub(least));
    }
    let mut sent = Train { start: times[0], packets: Default::default(), ..train.clone() };
    let mut before = times[0];
    for ((_, bytes), time) in train.packets.iter().zip(times) {
        sent.packets.push(time - before, bytes);
        before = time;
    }
    sent
}
