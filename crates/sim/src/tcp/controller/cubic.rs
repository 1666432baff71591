//! CUBIC: a window that grows with the cube of the time since the last loss, RFC 9438.
//!
//! # Principles
//! - After a loss the window returns to its old maximum along a cubic curve: fast, then flat near the
//!   maximum, then probing above it. The curve runs in real time, so flows with different round trips grow
//!   alike.
//! - Where Reno would be faster (short round trips, small windows) CUBIC follows an estimate of Reno's
//!   window.
//! - Fast convergence: a flow that lost before it reached its old maximum lowers its claim.
//!
//! # Deviations
//! - Slow start is RFC 5681's, which RFC 9438, section 4.10 allows; HyStart++ (RFC 9406), which it prefers,
//!   with `hystart`.
//! - With `counting = "bytes"` each segment acknowledged moves the window by (target - cwnd) / cwnd; RFC
//!   9438, sections 4.4 and 4.5 have each acknowledgement do so, which halves the pace under delayed
//!   acknowledgements and misses the target of RFC 9438, section 4.2. No acknowledgement carries the window
//!   past the target. `counting = "acks"` is to the letter.
//! - RFC 9438, section 4.8 begins without a plateau at the flat part of the curve, so a window that left slow
//!   start too early hardly grows for seconds. With `cubic_probe`, as in the preset "linux", it grows by at
//!   least so many percent per round-trip time.
//! - With the preset "linux" a loss counts whole segments, as the window of Linux does: the reduced window of
//!   8.6 segments is 5 of them, and not 6. Below ten segments there are a quarter fewer losses then.
//! - Spurious losses (RFC 9438, section 4.9) are detected if `dsack` or `frto` is on, as in the preset
//!   "linux".
//! - Slow start ends at the threshold (RFC 5681, section 3.1 allows either there); RFC 9438, section 4.10 has
//!   it act once more at equality, which would add a segment or two right after each loss.
//! - Where the stage starts above W_max (fast convergence at two segments), K is zero and the window its own
//!   plateau; equation (2) would be the root of a negative number, and the curve steep from the start.
//! - Data in flight above the window (limited transmit) does not count: RFC 5681, section 3.2, step 2.
//!
//! # Cost
//! - A cube root per loss and a handful of multiplications per acknowledgement; about 100 bytes per
//!   connection. Arithmetic is in double precision with a portable cube root, so that every machine computes
//!   the same curve.
//!
//! # References
//! - RFC 9438, sections 4.1 to 4.8; constants C = 0.4 and beta = 0.7 from RFC 9438, sections 5.1 and 4.6. RFC
//!   3465, section 2.3.

use giveway_qdisc::Time;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Start};
use crate::tcp::hystart::HyStart;
use crate::tcp::{Counting, Preset};

/// Parameters of this control: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Control for Config {
    const SUMMARY: &'static str =
        "window grows with the cube of the time since the last loss (RFC 9438); the default of Linux";

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(new(start))
    }
}

/// Aggressiveness, segments per second cubed: RFC 9438, section 5.1.
const C: f64 = 0.4;
/// Multiplicative decrease factor of the window after a loss: RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// Additive increase with which Reno has the same rate at BETA, 3 (1 - beta) / (1 + beta): RFC 9438, section
/// 4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A CUBIC controller.
pub fn new(start: Start) -> Cubic {
    Cubic {
        mss: start.mss as f64,
        whole: start.preset == Preset::Linux,
        initial_window: start.initial_window as f64 / start.mss as f64,
        counting: start.counting,
        window: start.initial_window as f64 / start.mss as f64,
        threshold: f64::INFINITY,
        maximum: 0.0,
        prior: 0.0,
        estimate: 0.0,
        epoch: Time::NEVER,
        last_ack: Time::ZERO,
        origin: 0.0,
        k: 0.0,
        after_timeout: false,
        hystart: HyStart::new(start.hystart),
        probe: start.cubic_probe as u8,
    }
}

/// State of the CUBIC algorithm; windows are in segments, as in the RFC.
#[derive(Debug)]
pub struct Cubic {
    /// Segment size, bytes.
    mss: f64,
    /// A loss counts whole segments.
    whole: bool,
    initial_window: f64,
    counting: Counting,
    /// Congestion window (cwnd).
    window: f64,
    /// Slow-start threshold (ssthresh).
    threshold: f64,
    /// Window at the plateau of the curve (W_max).
    maximum: f64,
    /// The window at the last loss (cwnd_prior).
    prior: f64,
    /// Estimate of the window of Reno (W_est).
    estimate: f64,
    /// Start of this stage of congestion avoidance (t_epoch); never in slow start.
    epoch: Time,
    /// Time of the last acknowledgement.
    last_ack: Time,
    /// W_max as this stage uses it: the window itself where the stage started without a loss.
    origin: f64,
    /// Seconds from the epoch to the plateau (K).
    k: f64,
    /// True if this slow start follows a timeout.
    after_timeout: bool,
    /// Set if HyStart++ ends the first slow start.
    hystart: Option<Box<HyStart>>,
    /// Minimum growth while no plateau is known, percent of the window per round-trip time, at most 100. A
    /// byte, because an idle connection must stay below a kilobyte.
    probe: u8,
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        let idle = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        if !ack.cwnd_limited {
            // RFC 9438, sections 4.2 and 5.8: the time of the curve stops while the application limits the
            // sender. Otherwise the window would jump when the application has more data.
            if self.epoch != Time::NEVER {
                self.epoch += idle;
            }
            return;
        }
        let segments = ack.bytes as f64 / self.mss;
        if self.window < self.threshold {
            let most = match self.counting {
                // RFC 3465, section 2.3: after a timeout an acknowledgement often covers segments that
                // arrived long before.
                Counting::Bytes if self.after_timeout => 1.0,
                Counting::Bytes => 2.0,
                // Linux grows by all that was acknowledged, up to the threshold.
                Counting::All => self.threshold - self.window,
                Counting::Acks => 1.0,
            };
            let mut growth = segments.min(most);
            if let Some(hystart) = &mut self.hystart
                && self.threshold.is_infinite()
            {
                let over;
                (growth, over) = hystart.grow(ack, self.window as u64, growth);
                if over {
                    self.threshold = self.window + growth;
                }
            }
            self.window += growth;
            return;
        }
        let epoch = match self.epoch {
            Time::NEVER => self.begin_stage(ack.now),
            epoch => epoch,
        };
        // RFC 9438, section 4.2: the target is the curve one round trip ahead, within [cwnd, 1.5 cwnd].
        let t = ack.now.since(epoch).as_s();
        let target = self.curve(t + ack.rtt.as_s()).clamp(self.window, 1.5 * self.window);
        // RFC 9438, section 4.3, equation (4); once the estimate reaches the prior window, the increase of
        // Reno itself.
        let alpha = if self.estimate >= self.prior { 1.0 } else { ALPHA };
        self.estimate += alpha * segments / self.window;
        let least =
            if self.maximum == 0.0 { self.window + f64::from(self.probe) / 100.0 * segments } else { 0.0 };
        // RFC 9438, section 4.3: in the Reno-friendly region the window follows the estimate.
        if self.curve(t) < self.estimate {
            self.window = self.window.max(self.estimate);
        } else {
            // RFC 9438, sections 4.4 and 4.5: concave and convex region.
            let share = match self.counting {
                Counting::Bytes | Counting::All => (segments / self.window).min(1.0),
                Counting::Acks => 1.0 / self.window,
            };
            self.window += (target - self.window) * share;
        }
        self.window = self.window.max(least);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = self.reduce(loss.flight).max(2.0);
    }

    /// Reduces as for a loss, but down to one segment: RFC 9438, section 4.6.
    fn on_mark(&mut self, loss: &Loss) {
        self.window = self.reduce(loss.flight).max(1.0);
    }

    fn on_timeout(&mut self, loss: &Loss, first: bool) {
        if first {
            self.reduce(loss.flight);
        }
        // RFC 9438, section 4.8: the next stage begins without a plateau to return to.
        self.maximum = 0.0;
        self.epoch = Time::NEVER;
        self.window = 1.0;
        self.after_timeout = true;
    }

    fn on_undo(&mut self, window: u64, threshold: u64, _: Time) {
        // RFC 9438, section 4.9. The plateau stays where the spurious loss has put it, which is the window
        // itself unless the loss came before the last plateau was reached.
        self.window = self.window.max(window as f64 / self.mss);
        self.threshold = if threshold == u64::MAX { f64::INFINITY } else { threshold as f64 / self.mss };
        self.epoch = Time::NEVER;
        self.after_timeout = false;
    }

    fn on_idle(&mut self, _: Time) {
        self.window = self.window.min(self.initial_window);
        // RFC 9438, section 5.8: the window does not grow by time in which nothing is sent.
        self.epoch = Time::NEVER;
    }
    fn on_unused(&mut self, window: u64, threshold: u64) {
        self.window = self.window.min(window as f64 / self.mss);
        self.threshold = self.threshold.max(threshold as f64 / self.mss);
        // RFC 9438, section 5.8: as after an idle time.
        self.epoch = Time::NEVER;
    }

    fn window(&self) -> u64 {
        (self.window * self.mss) as u64
    }
    fn threshold(&self) -> u64 {
        if self.threshold.is_finite() { (self.threshold * self.mss) as u64 } else { u64::MAX }
    }
}

impl Cubic {
    /// Sets the new threshold (RFC 9438, section 4.6) and the plateau with fast convergence (RFC 9438,
    /// section 4.7). Returns the reduced window before its lower bound is applied.
    fn reduce(&mut self, flight: u64) -> f64 {
        self.maximum =
            if self.window < self.maximum { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.prior = self.window;
        // RFC 9438, section 4.6 uses the data in flight: an application-limited window does not reflect the
        // path.
        let used = (flight as f64 / self.mss).min(self.window);
        let reduced = if self.whole { libm::floor(libm::floor(used) * BETA) } else { used * BETA };
        self.threshold = reduced.max(2.0);
        self.epoch = Time::NEVER;
        self.after_timeout = false;
        reduced
    }

    /// Starts a stage of congestion avoidance at `now`, and returns `now`: RFC 9438, sections 4.2 and 4.8.
    fn begin_stage(&mut self, now: Time) -> Time {
        self.epoch = now;
        self.after_timeout = false;
        self.estimate = self.window;
        if self.window < self.maximum {
            self.origin = self.maximum;
            self.k = libm::cbrt((self.maximum - self.window) / C);
        } else {
            self.origin = self.window;
            self.k = 0.0;
        }
        now
    }

    /// The cubic function, W_cubic(t) = C (t - K)^3 + W_max: RFC 9438, section 4.2, equation (1).
    fn curve(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::HyStartRule;
    use giveway_qdisc::Span;

    fn ack(at_ms: u64, bytes: u64) -> Ack {
        Ack {
            now: Time::ms(at_ms),
            bytes,
            rtt: Span::ms(100),
            sample: None,
            una: 0,
            next: 0,
            flight: bytes,
            cwnd_limited: true,
        }
    }

    fn start(segments: u64) -> Start {
        Start {
            preset: crate::tcp::Preset::Rfc,
            mss: 1000,
            initial_window: segments * 1000,
            counting: Counting::Bytes,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            seed: 0,
        }
    }

    /// RFC 9438, section 4.2: two flows that differ by a pause of the application have the same windows.
    #[test]
    fn the_curve_does_not_run_while_the_application_pauses() {
        let mut busy = new(start(40));
        let mut paused = new(start(40));
        for cubic in [&mut busy, &mut paused] {
            cubic.on_loss(&Loss { flight: 40_000, ..Loss::default() });
            for i in 1..=50 {
                cubic.on_ack(&ack(20 * i, 4000));
            }
        }
        for second in [5, 20, 40] {
            paused.on_ack(&Ack { cwnd_limited: false, ..ack(1000 * second, 1000) });
        }
        for i in 1..=50 {
            busy.on_ack(&ack(1000 + 20 * i, 4000));
            paused.on_ack(&ack(40_000 + 20 * i, 4000));
            assert_eq!(busy.window(), paused.window(), "acknowledgement {i} after the pause");
        }
    }

    /// 8,600 bytes have eight whole segments; 0.7 of them are 5.6.
    #[test]
    fn linux_reduces_whole_segments() {
        for (preset, threshold) in [(Preset::Linux, 5000), (Preset::Rfc, 6020)] {
            let mut cubic = new(Start { preset, ..start(10) });
            cubic.on_loss(&Loss { flight: 8600, ..Loss::default() });
            assert_eq!((cubic.window(), cubic.threshold()), (threshold, threshold), "{preset:?}");
        }
    }

    /// Linux's growth of 5 % per round trip while no plateau is known: an acknowledgement of the whole window
    /// is a round trip. After a loss the plateau is known, and the curve alone counts.
    #[test]
    fn without_a_plateau_the_window_grows_by_the_probe() {
        let grown = |cubic_probe, lost: bool| {
            let mut cubic = new(Start { cubic_probe, ..start(100) });
            if lost {
                cubic.on_loss(&Loss { flight: 100_000, ..Loss::default() });
            } else {
                cubic.threshold = 100.0; // slow start has ended without a loss
            }
            let before = cubic.window;
            cubic.on_ack(&Ack { rtt: Span::ms(1), ..ack(1000, before as u64 * 1000) });
            cubic.window / before
        };
        assert!((grown(5, false) - 1.05).abs() < 1e-12, "{}", grown(5, false));
        assert!(grown(0, false) < 1.02, "the estimate of Reno only: {}", grown(0, false));
        assert_eq!(grown(5, true), grown(0, true));
    }

    /// RFC 9438, sections 4.4 and 4.5: to the letter with `acks`; with `bytes` in proportion, and never past
    /// the target.
    #[test]
    fn the_target_is_approached_by_acknowledgements_or_by_bytes() {
        let grown = |counting, bytes| {
            let mut cubic = new(Start { counting, ..start(100) });
            cubic.on_loss(&Loss { flight: 20_000, ..Loss::default() });
            // Far below the plateau the target is half as much again: 14 segments and 7.
            cubic.on_ack(&Ack { rtt: Span::s(1), ..ack(1000, 100) });
            let before = cubic.window;
            cubic.on_ack(&Ack { rtt: Span::s(1), ..ack(2000, bytes) });
            cubic.window / before
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let one = grown(Counting::Acks, 1000);
        assert!(one > 1.03 && one < 1.04, "half of the window, divided by the window: {one}");
        assert!(near(grown(Counting::Acks, 4000), one));
        assert!(near(grown(Counting::Bytes, 4000) - 1.0, 4.0 * (grown(Counting::Bytes, 1000) - 1.0)));
        assert!(near(grown(Counting::Bytes, 40_000), 1.5), "the target, and not above");
    }

    /// RFC 3465, section 2.3: at most one segment for an acknowledgement until congestion avoidance, or a
    /// loss.
    #[test]
    fn slow_start_after_a_timeout_counts_one_segment() {
        let mut cubic = new(start(10));
        cubic.on_ack(&ack(0, 5000));
        assert_eq!(cubic.window(), 12_000);
        cubic.on_timeout(&Loss { flight: 12_000, ..Loss::default() }, true);
        cubic.on_ack(&ack(1000, 5000));
        assert_eq!(cubic.window(), 2000);
    }

    /// RFC 9438, section 4.6, figure 5.
    #[test]
    fn marks_leave_one_segment_and_losses_two() {
        let mut cubic = new(start(2));
        for window in [1400, 1000, 1000] {
            let flight = cubic.window();
            cubic.on_mark(&Loss { flight, ..Loss::default() });
            assert_eq!(cubic.window(), window);
        }
        assert_eq!(cubic.threshold(), 2000);
        cubic.on_loss(&Loss { flight: 1000, ..Loss::default() });
        assert_eq!((cubic.window(), cubic.threshold()), (2000, 2000));
    }
}
