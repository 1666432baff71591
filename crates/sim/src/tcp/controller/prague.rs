//! Prague: the scalable control of L4S, draft-briscoe-iccrg-prague-congestion-control.
//!
//! # Principles
//! - Packets carry ECT(1), so an L4S queue marks them early and often. The receiver reports each mark
//!   (accurate ECN), and the sender keeps an average alpha of the marked share, as DCTCP does.
//! - A round with marks shrinks the window by alpha / 2. Bytes without a mark make it grow at the same time:
//!   it is not frozen after a mark.
//! - Packets are paced at a window per round-trip time, so that marks answer the queue and not bursts.
//! - Below a round-trip time of 25 ms the sender grows, and averages, as if it had 25 ms: so flows with
//!   shorter paths do not take more.
//! - If a share p of the packets is marked at random, the window is x / p segments, where
//!   x / 2 = (1 - p)(1 + 1 / x): 2.7 / p for a small p, and not 2 / p. After a round trip in which marks are
//!   ignored, the next reduction waits for another mark, 1 / p packets on average. Reno has 1.31 / sqrt(p)
//!   (Ott, Kemperman, Mathis 1996). So with p = 2 p' for Prague and p'^2 for Reno, as `dualpi2` has them,
//!   both have equal windows, and rates in the inverse ratio of their round-trip times.
//! - A loss is answered as Reno does. If the peer reports marks in the classic way only, Prague is Reno with
//!   classic ECN and ECT(0).
//!
//! # Deviations
//! - A classic queue that marks cannot be distinguished from an L4S queue; the draft has an optional
//!   detector, which Linux has switched off.
//! - The window is at least two segments; the draft wants smaller ones, with pacing alone.
//!
//! # Cost
//! - A dozen floating-point operations per acknowledgement; 130 bytes per connection.
//!
//! # References
//! - draft-briscoe-iccrg-prague-congestion-control, its parts on the moving average, the response to marks,
//!   and the dependence on the round-trip time; RFC 9331, section 4.1; RFC 8257.
//! - Ott, Kemperman, Mathis 1996: "The Stationary Behavior of Ideal TCP Congestion Avoidance".

use giveway_qdisc::{Invalid, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Marks, Needs, Start};

/// Weight of the newest round in alpha.
const GAIN: f64 = 1.0 / 16.0;
/// Smallest window, segments.
const MIN_SEGMENTS: f64 = 2.0;

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The round-trip time as which shorter ones count; zero makes growth depend on the real one.
    pub virtual_rtt: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config { virtual_rtt: Span::ms(25) }
    }
}

impl Control for Config {
    const SUMMARY: &'static str =
        "the scalable control of L4S: ECT(1), accurate ECN, pacing (Briscoe et al.)";
    const IMPLIES: &'static [(&'static str, bool)] = &[("ecn", true), ("accecn", true), ("pacing", true)];

    fn check(&self) -> Result<(), Invalid> {
        if self.virtual_rtt > Span::s(1) {
            return Err(Invalid::new("virtual_rtt", format!("{} is above \"1s\"", self.virtual_rtt)));
        }
        Ok(())
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(Prague {
            virtual_rtt: self.virtual_rtt,
            mss: start.mss as f64,
            initial_window: start.initial_window as f64,
            window: start.initial_window as f64,
            threshold: f64::INFINITY,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            round_at: Time::ZERO,
            reduced_until: 0,
            reduced_at: Time::ZERO,
            rtt: Span::ZERO,
            growth: None,
        })
    }
}

/// State of the Prague algorithm: windows in bytes.
#[derive(Debug)]
pub struct Prague {
    virtual_rtt: Span,
    mss: f64,
    initial_window: f64,
    window: f64,
    threshold: f64,
    /// Moving average of the marked share.
    alpha: f64,
    /// Bytes acknowledged in this round, and the marked ones among them.
    acked: u64,
    marked: u64,
    /// Start of this round.
    round_at: Time,
    /// The window has shrunk for the marks of everything below this sequence number, at this time.
    reduced_until: u64,
    reduced_at: Time,
    /// Smoothed round-trip time.
    rtt: Span,
    /// Bytes of the current acknowledgement without a mark; `None` without counts of marks, when all of them
    /// count.
    growth: Option<u64>,
}

impl Prague {
    /// The round-trip time as which the real one counts.
    fn round(&self) -> Span {
        self.rtt.max(self.virtual_rtt)
    }

    /// The growth in a real round trip, segments: a rate grows as fast as with the virtual round-trip time.
    fn step(&self) -> f64 {
        let ratio = self.rtt.as_s() / self.round().as_s().max(1e-9);
        ratio * ratio
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn shrink_to(&mut self, window: f64) {
        self.window = window.max(MIN_SEGMENTS * self.mss);
        self.threshold = self.window;
    }
}

impl Controller for Prague {
    fn needs(&self) -> Needs {
        Needs {
            marks: true,
            own_marks: true,
            pacing: true,
            ect1: true,
            // A burst must not reach the threshold of an L4S queue, a millisecond.
            most_burst: Span::us(250),
            ..Needs::default()
        }
    }

    fn on_mark_counts(&mut self, marks: &Marks) {
        self.rtt = marks.rtt;
        self.acked += marks.acked;
        self.marked += marks.marked;
        self.growth = Some(marks.acked.saturating_sub(marks.marked));
        if marks.now.since(self.round_at) >= self.round() && self.acked > 0 {
            // The reports of marks may come later than the acknowledgement of their bytes, so the share may
            // exceed 1.
            let share = (self.marked as f64 / self.acked as f64).min(1.0);
            self.alpha += GAIN * (share - self.alpha);
            (self.acked, self.marked, self.round_at) = (0, 0, marks.now);
        }
        // Once per round trip, real and virtual.
        if marks.marked > 0
            && marks.una > self.reduced_until
            && (marks.now.since(self.reduced_at) >= self.round() || self.in_slow_start())
        {
            self.shrink_to(self.window * (1.0 - self.alpha / 2.0));
            self.reduced_until = marks.next;
            self.reduced_at = marks.now;
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = ack.rtt;
        // Bytes with a mark do not let the window grow, and the others do so even in a round trip with marks.
        let bytes = self.growth.take().unwrap_or(ack.bytes).min(ack.bytes) as f64;
        if !ack.cwnd_limited {
            return;
        }
        if self.in_slow_start() {
            // Not past the threshold: after a timeout one acknowledgement often covers what had arrived
            // before.
            self.window = (self.window + bytes).min(self.threshold);
        } else {
            self.window += self.step() * self.mss * bytes / self.window;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // RFC 9331, section 4.3: a scalable control answers a loss as a Reno-friendly one does.
        self.shrink_to(self.window.min(loss.flight as f64) / 2.0);
    }

    /// A mark by classic feedback, once per round trip: it counts as a loss. Accurate counts are answered as
    /// they arrive.
    fn on_mark(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    fn on_timeout(&mut self, loss: &Loss, first: bool) {
        if first {
            self.threshold = (loss.flight as f64 / 2.0).max(MIN_SEGMENTS * self.mss);
        }
        self.window = self.mss;
    }

    fn on_undo(&mut self, window: u64, threshold: u64, _: Time) {
        self.window = self.window.max(window as f64);
        self.threshold = if threshold == u64::MAX { f64::INFINITY } else { threshold as f64 };
    }

    fn on_idle(&mut self, _: Time) {
        self.window = self.window.min(self.initial_window);
    }
    fn on_unused(&mut self, window: u64, threshold: u64) {
        self.window = self.window.min(window as f64);
        self.threshold = self.threshold.max(threshold as f64);
    }

    fn window(&self) -> u64 {
        self.window as u64
    }
    fn threshold(&self) -> u64 {
        if self.threshold.is_finite() { self.threshold as u64 } else { u64::MAX }
    }
    fn pacing_rate(&self) -> Option<Rate> {
        let rtt = self.rtt.as_s();
        // At one window per round trip the pacer would stop the window from doubling.
        let gain = if self.in_slow_start() { 2.0 } else { 1.0 };
        (rtt > 0.0).then(|| Rate::bit((8.0 * gain * self.window / rtt).max(1.0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::Streams;

    use super::*;
    use crate::tcp::{Counting, HyStartRule};

    fn prague(segments: u64) -> Box<dyn Controller> {
        Config::default().build(Start {
            preset: crate::tcp::Preset::Rfc,
            mss: 1000,
            initial_window: 1000 * segments,
            counting: Counting::Bytes,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            seed: 0,
        })
    }

    /// One acknowledgement of a segment at each round-trip time, of which every `nth` is marked.
    fn run(control: &mut dyn Controller, acks: u64, rtt: Span, nth: u64) {
        for n in 1..=acks {
            let window = control.window();
            let marked = if n % nth == 0 { 1000 } else { 0 };
            let now = Time::ZERO + rtt.scale(1000 * n, window.max(1)) * 1;
            let (una, next) = (1000 * n, 1000 * n + window);
            control.on_mark_counts(&Marks { now, acked: 1000, marked, una, next, rtt });
            let (bytes, flight) = (1000, window);
            let sample = Some(rtt);
            control.on_ack(&Ack { now, bytes, rtt, sample, una, next, flight, cwnd_limited: true });
        }
    }

    /// The first mark ends slow start, and alpha is nearly one then: the window halves.
    #[test]
    fn the_first_mark_halves_the_window() {
        let mut control = prague(20);
        run(&mut *control, 9, Span::ms(25), u64::MAX);
        assert_eq!(control.window(), 29_000);
        let (rtt, now) = (Span::ms(25), Time::ms(100));
        control.on_mark_counts(&Marks { now, acked: 1000, marked: 1000, una: 10_000, next: 40_000, rtt });
        assert!((14_000..16_000).contains(&control.window()), "{}", control.window());
        assert_eq!(control.window(), control.threshold());
    }

    /// Below 25 ms the growth in a round trip falls with its square, so that the growth in a second is the
    /// same as at 25 ms.
    #[test]
    fn short_paths_grow_as_slowly_as_long_ones() {
        let growth = |rtt: Span| {
            let mut control = prague(20);
            control.on_loss(&Loss { flight: 20_000, ..Loss::default() });
            run(&mut *control, 10, rtt, u64::MAX);
            control.window() as f64 - 10_000.0
        };
        let (short, long) = (growth(Span::ms(5)), growth(Span::ms(25)));
        assert!((long / short / 25.0 - 1.0).abs() < 0.05, "{long} in 25 ms, {short} in 5 ms");
    }

    /// Each packet is marked with the probability p. With x = p W the window grows by 1 - p segments in a
    /// round trip, and shrinks by x / 2 segments after each 1 + 1 / x round trips.
    #[test]
    fn random_marks_balance_the_window() {
        let rtt = Span::ms(40);
        for percent in [2, 5] {
            let p = percent as f64 / 100.0;
            let mut control = prague(50);
            control.on_loss(&Loss { flight: 100_000, ..Loss::default() });
            let mut rng = Streams::new(1).rng();
            let (mut now, mut packets, mut round_trips) = (Time::ZERO, 0.0, 0.0);
            for n in 1..=1_000_000 {
                let window = control.window();
                now += rtt.scale(1000, window);
                let marked = if rng.below(100) < percent { 1000 } else { 0 };
                let (una, next) = (1000 * n, 1000 * n + window);
                control.on_mark_counts(&Marks { now, acked: 1000, marked, una, next, rtt });
                let (bytes, sample, flight) = (1000, Some(rtt), window);
                control.on_ack(&Ack { now, bytes, rtt, sample, una, next, flight, cwnd_limited: true });
                // A deviation of the window decays in about x / p round trips, each of x / p packets: within
                // 18,000 packets for the smaller p.
                if n > 100_000 {
                    (packets, round_trips) = (packets + 1.0, round_trips + 1000.0 / window as f64);
                }
            }
            let q = 1.0 - p;
            let x = q + libm::sqrt(q * q + 2.0 * q);
            let measured = p * packets / round_trips;
            assert!((measured / x - 1.0).abs() < 0.03, "p {p}: p W is {measured} instead of {x}");
        }
    }
}
