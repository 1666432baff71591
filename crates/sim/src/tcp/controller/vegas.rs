//! Vegas: a window that keeps a few segments in the queue, Brakmo, O'Malley and Peterson 1994.
//!
//! # Principles
//! - The smallest round-trip time tells the rate that the window would have without a queue (Expected). The
//!   data sent during a round trip tell the rate that it has (Actual). The difference, times the smallest
//!   round-trip time, is the number of segments in the queue.
//! - Fewer than alpha: the window grows by a segment each round trip. More than beta: it shrinks by one.
//! - In slow start the window doubles every other round trip, and stays in between for a comparison. It ends
//!   when more than gamma segments are in the queue.
//! - A loss or a timeout is answered as Reno does.
//!
//! # Deviations
//! - The retransmission by a fine-grained clock (part 3.1 of the paper) is left out: loss recovery belongs to
//!   the sender.
//! - The window changes at once at the end of a round trip; the paper spreads the step over the next one.
//! - A round trip in which the window grew in slow start, or data was lost, is not compared.
//! - Linux compares with the window and the smallest round-trip time of the round, not with the data sent,
//!   and leaves slow start with a smaller window.
//!
//! # Cost
//! - Two divisions per round trip; 90 bytes per connection.
//!
//! # References
//! - Brakmo, O'Malley and Peterson, "TCP Vegas: new techniques for congestion detection and avoidance",
//!   SIGCOMM 1994, part 3: alpha and beta come from its implementation; RFC 3465, section 2.3.

use giveway_qdisc::{Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Start};

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Minimum number of segments in the queue: with less the window grows.
    pub alpha: f64,
    /// Maximum number of segments in the queue: with more the window shrinks.
    pub beta: f64,
    /// Segments in the queue that end slow start.
    pub gamma: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { alpha: 2.0, beta: 4.0, gamma: 1.0 }
    }
}

impl Control for Config {
    const SUMMARY: &'static str = "window keeps two to four segments in the queue (Brakmo et al. 1994)";

    fn check(&self) -> Result<(), Invalid> {
        if !(self.alpha > 0.0 && self.alpha <= self.beta && self.beta.is_finite()) {
            let message = format!("{} must be above 0 and at most beta, {}", self.alpha, self.beta);
            return Err(Invalid::new("alpha", message));
        }
        if !(self.gamma > 0.0 && self.gamma.is_finite()) {
            return Err(Invalid::new("gamma", format!("{} must be above 0", self.gamma)));
        }
        Ok(())
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(Vegas {
            config: *self,
            mss: start.mss as f64,
            initial_window: start.initial_window as f64 / start.mss as f64,
            window: start.initial_window as f64 / start.mss as f64,
            threshold: f64::INFINITY,
            least: None,
            distinguished: None,
            growing: false,
            lossy: false,
            after_timeout: false,
        })
    }
}

/// State of the Vegas algorithm; windows are in segments, as in the paper.
#[derive(Debug)]
pub struct Vegas {
    config: Config,
    mss: f64,
    initial_window: f64,
    /// Congestion window.
    window: f64,
    /// Slow-start threshold.
    threshold: f64,
    /// Smallest round-trip time (BaseRTT).
    least: Option<Span>,
    /// The first byte of the segment whose acknowledgement ends the round trip; none before the first
    /// acknowledgement.
    distinguished: Option<u64>,
    /// The window grows in this round trip of slow start.
    growing: bool,
    /// Data was lost in this round trip.
    lossy: bool,
    /// True if this slow start follows a timeout.
    after_timeout: bool,
}

impl Vegas {
    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn end_round(&mut self, ack: &Ack, begin: u64) {
        // A round trip in which the window grew, or data was lost, has no rate that could be compared.
        if let (Some(rtt), Some(least)) = (ack.sample, self.least)
            && !self.lossy
            && !self.growing
        {
            self.compare((ack.next - begin) as f64 / self.mss, rtt.as_s(), least.as_s());
        }
        // Slow start grows every other round trip, and compares in the others.
        self.growing = self.in_slow_start() && !self.growing;
        self.after_timeout &= self.in_slow_start();
        self.distinguished = Some(ack.next);
        self.lossy = false;
    }

    /// Compares the rates. `sent` segments left in the round trip of `rtt` seconds.
    fn compare(&mut self, sent: f64, rtt: f64, least: f64) {
        let (expected, actual) = (self.window / least, sent / rtt);
        // The difference of the rates, times the path without a queue, is the data in the queue.
        let queued = (expected - actual) * least;
        let Config { alpha, beta, gamma } = self.config;
        if self.in_slow_start() {
            if queued > gamma {
                self.threshold = self.window.max(2.0);
                self.window = self.threshold;
            }
        } else if queued < alpha {
            self.window += 1.0;
        } else if queued > beta {
            self.window -= 1.0;
            // Otherwise a window below the threshold would mean slow start again.
            self.threshold = self.threshold.min(self.window.max(2.0));
        }
    }

    fn half(&self, flight: u64) -> f64 {
        ((flight as f64 / self.mss).min(self.window) / 2.0).max(2.0)
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.sample {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        let begin = *self.distinguished.get_or_insert(ack.una.saturating_sub(ack.bytes));
        if ack.una > begin {
            self.end_round(ack, begin);
        }
        if self.in_slow_start() && self.growing && ack.cwnd_limited {
            // RFC 3465, section 2.3.
            let most = if self.after_timeout { 1.0 } else { 2.0 };
            self.window += (ack.bytes as f64 / self.mss).min(most);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.threshold = self.half(loss.flight);
        self.window = self.threshold;
        self.after_timeout = false;
        self.growing = false;
        self.distinguished = Some(loss.next);
        self.lossy = true;
    }

    fn on_timeout(&mut self, loss: &Loss, first: bool) {
        if first {
            self.threshold = self.half(loss.flight);
        }
        self.window = 1.0;
        self.after_timeout = true;
        self.growing = true;
        self.distinguished = Some(loss.next);
        self.lossy = true;
    }

    fn on_undo(&mut self, window: u64, threshold: u64, _: Time) {
        self.window = self.window.max(window as f64 / self.mss);
        self.threshold = if threshold == u64::MAX { f64::INFINITY } else { threshold as f64 / self.mss };
    }

    fn on_idle(&mut self, _: Time) {
        self.window = self.window.min(self.initial_window);
    }
    fn on_unused(&mut self, window: u64, threshold: u64) {
        self.window = self.window.min(window as f64 / self.mss);
        self.threshold = self.threshold.max(threshold as f64 / self.mss);
    }

    fn window(&self) -> u64 {
        (self.window * self.mss) as u64
    }
    fn threshold(&self) -> u64 {
        if self.threshold.is_finite() { (self.threshold * self.mss) as u64 } else { u64::MAX }
    }
}
