//! DCTCP: a window that shrinks in proportion to the share of marked bytes, RFC 8257.
//!
//! # Principles
//! - The receiver echoes exactly which segments carried a mark. Once per window of data the sender updates
//!   its estimate alpha of the marked share.
//! - A window of data with a mark shrinks the window by alpha / 2: a few marks cost little, and a queue that
//!   marks everything halves it.
//! - Slow start, growth, and the answer to a loss follow Reno.
//!
//! # Deviations
//! - The window shrinks with the first acknowledgement that echoes a mark of a window of data; RFC 8257,
//!   section 3.3 also allows the end of the window of observation.
//! - The window grows with acknowledgements that echo marks, except with the one that shrinks it.
//!
//! # Cost
//! - A multiplication per window of data; some 100 bytes per connection.
//!
//! # References
//! - RFC 8257, sections 3.2, 3.3 and 3.4; RFC 5681; RFC 3465.

use giveway_qdisc::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Marks, Needs, Start, reno};

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of the newest window of data in alpha, above 0 and at most 1 (g of RFC 8257, section 4.2:
    /// 1/16).
    pub gain: f64,
    /// The estimate alpha at the start, 0 to 1 (RFC 8257, section 3.3: 1).
    pub alpha: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { gain: 1.0 / 16.0, alpha: 1.0 }
    }
}

impl Control for Config {
    const SUMMARY: &'static str = "window shrinks with the share of marked bytes (RFC 8257)";
    const IMPLIES: &'static [(&'static str, bool)] = &[("ecn", true)];
    const ECHOES_PRECISELY: bool = true;

    fn check(&self) -> Result<(), Invalid> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(Invalid::new("gain", format!("{} is not above 0 and at most 1", self.gain)));
        }
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(Invalid::new("alpha", format!("{} is not between 0 and 1", self.alpha)));
        }
        Ok(())
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(Dctcp {
            config: *self,
            reno: reno::new(start),
            alpha: self.alpha,
            observed_until: 0,
            delivered: 0,
            marked: 0,
            mss: start.mss,
        })
    }
}

/// State of the DCTCP algorithm.
#[derive(Debug)]
pub struct Dctcp {
    config: Config,
    /// The window, and its growth.
    reno: reno::Reno,
    /// Estimate of the share of marked bytes (DCTCP.Alpha).
    alpha: f64,
    /// The window of observation ends when this is acknowledged (DCTCP.WindowEnd).
    observed_until: u64,
    /// Bytes acknowledged in this window (DCTCP.BytesAcked).
    delivered: u64,
    /// Bytes of these that were marked (DCTCP.BytesMarked).
    marked: u64,
    /// Segment size, bytes.
    mss: u64,
}

impl Dctcp {
    /// The estimate of the share of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Controller for Dctcp {
    fn needs(&self) -> Needs {
        Needs { marks: true, ..Needs::default() }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.reno.on_ack(ack);
    }

    /// RFC 8257, section 3.3: the steps for an acknowledgement.
    fn on_mark_counts(&mut self, marks: &Marks) {
        // RFC 8257, section 3.3, steps 2 and 3.
        self.delivered += marks.acked;
        self.marked += marks.marked.min(marks.acked);
        // Step 4: the window of observation is not over.
        if marks.una <= self.observed_until {
            return;
        }
        // Steps 5 and 6: alpha moves towards the marked share of this window.
        if self.delivered > 0 {
            let share = self.marked as f64 / self.delivered as f64;
            self.alpha = self.alpha * (1.0 - self.config.gain) + self.config.gain * share;
        }
        // Steps 7 and 8: the next window of observation.
        self.observed_until = marks.next;
        (self.delivered, self.marked) = (0, 0);
    }

    /// RFC 8257, section 3.3, step 9: cwnd = cwnd * (1 - alpha / 2).
    fn on_mark(&mut self, _: &Loss) {
        let window = self.reno.window() as f64 * (1.0 - self.alpha / 2.0);
        self.reno.reduce_to((window as u64).max(self.mss));
    }

    fn on_loss(&mut self, loss: &Loss) {
        // RFC 8257, section 3.4: a loss is answered as TCP without DCTCP does.
        self.reno.on_loss(loss);
    }
    fn on_timeout(&mut self, loss: &Loss, first: bool) {
        self.reno.on_timeout(loss, first);
    }
    fn on_undo(&mut self, window: u64, threshold: u64, now: Time) {
        self.reno.on_undo(window, threshold, now);
    }
    fn on_idle(&mut self, now: Time) {
        self.reno.on_idle(now);
    }
    fn on_unused(&mut self, window: u64, threshold: u64) {
        self.reno.on_unused(window, threshold);
    }
    fn window(&self) -> u64 {
        self.reno.window()
    }
    fn threshold(&self) -> u64 {
        self.reno.threshold()
    }
}
