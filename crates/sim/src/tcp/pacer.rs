//! The pacer: packets of a window leave one after the other, at a rate, instead of back to back. TCP and QUIC
//! share it.

use giveway_qdisc::{Span, Time};

use super::controller::Controller;

/// The schedule of a sender that paces.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Earliest time of the next packet; in the past when the pacer does not delay.
    until: Time,
    /// Packets that may still follow the last one back to back.
    burst: u16,
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
    let ratio = if in_slow_start { ratios.slow_start } else { ratios.avoidance };
    Some(rtt.scale(mss * 100, window * u64::from(ratio)))
}

impl Pacer {
    /// A pacer that delays nothing yet.
    pub fn new() -> Pacer {
        Pacer { until: Time::ZERO, burst: 0 }
    }

    /// The time that the next packet must wait for; `None` if it may leave now, and then it takes its place
    /// in the schedule. A packet takes `gap`. `most` is the number of packets that may leave back to back.
    #[inline]
    pub fn delays(&mut self, gap: Span, most: u64, now: Time) -> Option<Time> {
        if self.burst > 0 {
            self.burst -= 1;
            return None;
        }
        if now < self.until {
            return Some(self.until);
        }
        let burst = match gap.is_zero() {
            true => 1,
            // Linux sizes a burst for a millisecond, with at least two segments (`tcp_min_tso_segs`).
            false => (Span::ms(1).as_ps() / gap.as_ps()).max(2).min(most).max(1),
        };
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
