//! LEDBAT++: a background transfer that gives way as soon as a queue of 60 ms forms,
//! draft-irtf-iccrg-ledbat-plus-plus.
//!
//! # Principles
//! - The queueing delay is the smallest of the last four round-trip times, less the smallest of the last ten
//!   minutes. Below the target of 60 ms the window grows as Reno's, or slower; above it, it shrinks in
//!   proportion to the excess, by at most a half per round trip.
//! - The growth is divided by up to 16 where the target is long compared with the path, so that transfers of
//!   this kind give way to each other as well.
//! - Slow start grows with the same divisor, and ends at three quarters of the target.
//! - Two round trips after slow start, and then each time after nine times the time of the last one, the
//!   window is two segments for two round trips. So the path without a queue is measured, and latecomers do
//!   not take all.
//! - A loss halves the window.
//!
//! # Deviations
//! - The history of the smallest round-trip times has a minute per entry, by the clock of the run.
//! - The initial window comes from the scenario; the draft starts with two segments.
//!
//! # Cost
//! - A dozen floating-point operations per acknowledgement; 250 bytes per connection.
//!
//! # References
//! - Balasubramanian, Ertugay and Havey, draft-irtf-iccrg-ledbat-plus-plus-01, part 4; RFC 6817, sections 2
//!   and 3.

use giveway_qdisc::{Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Start};

/// Samples of which the smallest is the present round-trip time.
const CURRENT: usize = 4;
/// Minutes of which the smallest is the path without a queue.
const HISTORY: usize = 10;
/// Largest divisor of the growth.
const MAX_DIVISOR: f64 = 16.0;
/// Smallest window, and the window of a slowdown, segments.
const MIN_SEGMENTS: f64 = 2.0;
/// The time between slowdowns in durations of a slowdown.
const SLOWDOWN_RATIO: u64 = 9;

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The queueing delay that it keeps to.
    pub target: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config { target: Span::ms(60) }
    }
}

impl Control for Config {
    const SUMMARY: &'static str = "background transfer that keeps to 60 ms of queue (LEDBAT++)";

    fn check(&self) -> Result<(), Invalid> {
        if self.target.is_zero() || self.target > Span::s(10) {
            let message = format!("{} is not above 0 and at most \"10s\"", self.target);
            return Err(Invalid::new("target", message));
        }
        Ok(())
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(Ledbat {
            target: self.target.as_s(),
            mss: start.mss as f64,
            initial_window: start.initial_window as f64,
            window: start.initial_window as f64,
            threshold: f64::INFINITY,
            recent: [Span::from_ps(u64::MAX); CURRENT],
            recent_at: 0,
            base: [Span::from_ps(u64::MAX); HISTORY],
            minute: 0,
            slowdown: Slowdown::SlowStart,
            began: Time::ZERO,
        })
    }
}

/// The plan of slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slowdown {
    /// The first slow start.
    SlowStart,
    /// A slowdown starts at this time.
    At(Time),
    /// The window is two segments until this time.
    Down(Time),
    /// The window grows back to the threshold.
    Up,
}

/// State of the LEDBAT++ algorithm: windows in bytes, times in seconds.
#[derive(Debug)]
struct Ledbat {
    target: f64,
    mss: f64,
    initial_window: f64,
    window: f64,
    threshold: f64,
    /// The last samples, and the place of the next.
    recent: [Span; CURRENT],
    recent_at: usize,
    /// Smallest sample of each of the last minutes.
    base: [Span; HISTORY],
    /// The present minute.
    minute: u64,
    slowdown: Slowdown,
    /// Start of the slowdown, or of the connection.
    began: Time,
}

impl Ledbat {
    fn measure(&mut self, rtt: Span, now: Time) {
        self.recent[self.recent_at] = rtt;
        self.recent_at = (self.recent_at + 1) % CURRENT;
        let minute = now.as_ps() / Span::s(60).as_ps();
        while self.minute < minute {
            // A route may change, so the base of a minute ten minutes ago is forgotten.
            self.minute += 1;
            self.base[(self.minute % HISTORY as u64) as usize] = Span::from_ps(u64::MAX);
        }
        let slot = &mut self.base[(minute % HISTORY as u64) as usize];
        *slot = (*slot).min(rtt);
    }

    fn base(&self) -> f64 {
        self.base.iter().min().expect("it has entries").as_s()
    }

    /// The queueing delay, seconds.
    fn delay(&self) -> f64 {
        (self.recent.iter().min().expect("it has entries").as_s() - self.base()).max(0.0)
    }

    /// Segments by which the window grows in a round trip.
    fn gain(&self) -> f64 {
        // The draft: slower than Reno by up to 16, the more so the longer the target is compared with the
        // path.
        1.0 / (2.0 * self.target / self.base()).ceil().clamp(1.0, MAX_DIVISOR)
    }

    /// Follows the plan of slowdowns. True while the window stays at two segments.
    fn slows_down(&mut self, rtt: Span, now: Time) -> bool {
        match self.slowdown {
            Slowdown::At(time) if now >= time => {
                self.threshold = self.window;
                self.window = MIN_SEGMENTS * self.mss;
                self.began = now;
                // Two round trips with two segments empty the queue, so that all senders of this kind see the
                // path without a queue.
                self.slowdown = Slowdown::Down(now + rtt * 2);
                true
            }
            Slowdown::Down(until) if now < until => true,
            Slowdown::Down(_) => {
                self.slowdown = Slowdown::Up;
                false
            }
            _ => false,
        }
    }

    /// Slow start has ended, the first or a slowdown's.
    fn plan_slowdown(&mut self, rtt: Span, now: Time) {
        self.slowdown = match self.slowdown {
            Slowdown::SlowStart => Slowdown::At(now + rtt * 2),
            // The draft: nine times as long as the slowdown took, so that slowdowns cost at most a tenth of
            // the time.
            Slowdown::Up => Slowdown::At(now + now.since(self.began) * SLOWDOWN_RATIO),
            other => other,
        };
    }
}

impl Controller for Ledbat {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.sample {
            self.measure(rtt, ack.now);
        }
        if self.slows_down(ack.rtt, ack.now) || !ack.cwnd_limited {
            return;
        }
        let (delay, gain) = (self.delay(), self.gain());
        let bytes = ack.bytes as f64;
        if self.window < self.threshold {
            let first = self.threshold.is_infinite();
            // The draft: only the first slow start ends early, at three quarters of the target. After a
            // slowdown the window returns to where it was.
            if !first || delay <= 0.75 * self.target {
                self.window += bytes * gain;
            } else {
                self.threshold = self.window;
            }
            if self.window >= self.threshold {
                self.window = self.threshold;
                self.plan_slowdown(ack.rtt, ack.now);
            }
            return;
        }
        if delay < self.target {
            self.window += gain * self.mss * bytes / self.window;
            return;
        }
        // The excess shrinks the window by at most a half per round trip: each acknowledgement takes its
        // part.
        let excess = (delay / self.target - 1.0) * self.window;
        let change = (gain * self.mss - excess).max(-self.window / 2.0);
        self.window = (self.window + change * bytes / self.window).max(MIN_SEGMENTS * self.mss);
        self.threshold = self.threshold.min(self.window);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = (self.window / 2.0).max(MIN_SEGMENTS * self.mss);
        self.threshold = self.window;
        if matches!(self.slowdown, Slowdown::SlowStart | Slowdown::Up) {
            self.slowdown = Slowdown::At(loss.now + Span::s(1));
        }
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
}
