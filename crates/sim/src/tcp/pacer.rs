//! The pacer: packets of a window leave one after the other, at a rate, instead of back to back. TCP and QUIC
//! share it.

use giveway_qdisc::{Rate, Span, Time};

use super::controller::Controller;
use super::delivery::Delivery;

/// The schedule of a sender that paces.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Earliest time of the next packet; in the past when the pacer does not delay.
    until: Time,
    /// Packets that may still follow the last one back to back.
    burst: u16,
}

/// The packets of a pacer that leave back to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// The time that a burst takes at the rate of the pacer.
    pub time: Span,
    /// The minimum number of packets.
    pub least: u64,
    /// The largest number of packets.
    pub most: u64,
}

/// The rate of a pacer whose controller sets none, in percent of window per round-trip time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratios {
    /// In slow start.
    pub slow_start: u32,
    /// In congestion avoidance.
    pub avoidance: u32,
}

/// The time that a full packet of `mss` bytes takes at the rate of the controller, or else at a window per
/// round trip and a little more, so that pacing does not limit growth; `None` as long as there is no rate.
#[inline]
pub(crate) fn gap(
    controller: &dyn Controller,
    window: u64,
    rtt: Span,
    mss: u64,
    ratios: Ratios,
) -> Option<Span> {
    if let Some(rate) = controller.pacing_rate() {
        return Some(rate.time_for(mss));
    }
    if rtt.is_zero() {
        return None;
    }
    let window = window.max(1);
    let in_slow_start = window < controller.threshold();
    // The window doubles in a round trip of slow start: a pacer at one window per round trip would hold it
    // back.
    let ratio = if in_slow_start { ratios.slow_start } else { ratios.avoidance };
    Some(rtt.scale(mss * 100, window * u64::from(ratio)))
}

/// Rate of a pacer that sends `mss` bytes in each `gap`, and of the latest delivery; zero without them.
pub(crate) fn rates(gap: Option<Span>, mss: u64, delivery: Option<&Delivery>) -> (Rate, Rate) {
    let rate = |bytes: u64, time: Span| match time.is_zero() {
        true => Rate::default(),
        false => Rate::bit((bytes as f64 * 8.0 / time.as_s()) as u64),
    };
    let (bytes, time) = delivery.map_or_else(Default::default, |delivery| delivery.latest());
    (gap.map_or_else(Rate::default, |gap| rate(mss, gap)), rate(bytes, time))
}

impl Bursts {
    /// One packet at a time.
    pub const NONE: Bursts = Bursts { time: Span::ZERO, least: 1, most: 1 };

    /// Bursts of at most `time` at the rate and at most `bytes`, in packets of `size` bytes. A controller
    /// that wants bursts of at most `limit` gets shorter ones; zero does not limit them.
    pub fn of(time: Span, bytes: u64, size: u64, limit: Span) -> Bursts {
        let most = (bytes / size).max(1);
        match limit.is_zero() {
            // Linux has at least two segments in a burst (`tcp_min_tso_segs`).
            true => Bursts { time, least: most.min(2), most },
            false => Bursts { time: time.min(limit), least: 1, most },
        }
    }

    /// Number of packets that leave back to back.
    #[inline]
    fn packets(self, gap: Span) -> u64 {
        if self.most <= 1 || gap.is_zero() {
            return 1;
        }
        // A slow sender sends one packet at a time, and a fast one bursts of the same time.
        (self.time.as_ps() / gap.as_ps()).max(self.least).min(self.most)
    }
}

impl Pacer {
    /// A pacer that delays nothing yet.
    pub fn new() -> Pacer {
        Pacer { until: Time::ZERO, burst: 0 }
    }

    /// The time that the next packet must wait for; `None` if it may leave now, and then it takes its place
    /// in the schedule. A packet takes `gap`.
    #[inline]
    pub fn delays(&mut self, gap: Span, bursts: Bursts, now: Time) -> Option<Time> {
        // The burst was scheduled as a whole with its first packet.
        if self.burst > 0 {
            self.burst -= 1;
            return None;
        }
        if now < self.until {
            return Some(self.until);
        }
        let burst = bursts.packets(gap);
        self.burst = (burst - 1) as u16;
        // A pacer that was idle gains at most one packet of credit.
        let earliest = Time::ZERO + now.since(Time::ZERO).saturating_sub(gap);
        self.until = self.until.max(earliest) + gap * burst;
        None
    }

    /// Forgets the schedule of a window that is lost.
    pub fn restart(&mut self, now: Time) {
        self.until = now;
    }

    /// Forgets the schedule, and the burst that is under way.
    pub fn restart_burst(&mut self, now: Time) {
        (self.until, self.burst) = (now, 0);
    }
}
