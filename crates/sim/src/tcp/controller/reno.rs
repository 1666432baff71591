//! Reno: slow start and congestion avoidance of RFC 5681, with the recovery of NewReno or SACK.
//!
//! # Principles
//! - Slow start doubles the window each round trip until the threshold; congestion avoidance adds one segment
//!   each.
//! - A loss or a mark sets the window to half the data in flight; a timeout sets it to one segment.
//! - The window grows only while it limits the sender.
//!
//! # Deviations
//! - Growth counts bytes by default (RFC 3465 with L = 2), so delayed acknowledgements do not halve it;
//!   `counting = "acks"` is RFC 5681's equation (3) to the letter.
//! - With the preset "linux" the half is one of whole segments, as in Linux: of 9 segments it is 4.
//!
//! # Cost
//! - A few integers per connection, O(1) per acknowledgement.
//!
//! # References
//! - RFC 5681, sections 3.1, 3.2 and 4.1; RFC 3465; RFC 6582, section 3.2.

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
    const SUMMARY: &'static str = "slow start and additive increase, halving on loss (RFC 5681)";

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(new(start))
    }
}

/// A Reno controller.
pub fn new(start: Start) -> Reno {
    Reno {
        start,
        window: start.initial_window,
        threshold: u64::MAX,
        counted: 0,
        after_timeout: false,
        hystart: HyStart::new(start.hystart),
    }
}

/// State of the Reno algorithm.
#[derive(Debug)]
pub struct Reno {
    start: Start,
    /// Congestion window (cwnd), bytes.
    window: u64,
    /// Slow-start threshold (ssthresh), bytes.
    threshold: u64,
    /// Bytes acknowledged since additive increase last added a segment.
    counted: u64,
    /// True if this slow start follows a timeout.
    after_timeout: bool,
    /// Set if HyStart++ ends the first slow start.
    hystart: Option<Box<HyStart>>,
}

impl Reno {
    /// RFC 5681, section 3.1, equation (4): half the data in flight, but at least two segments.
    fn half(&self, flight: u64) -> u64 {
        let mss = self.start.mss;
        let half = if self.start.preset == Preset::Linux { flight / mss / 2 * mss } else { flight / 2 };
        half.max(2 * mss)
    }

    /// Reduces the window to `window` bytes, and the threshold with it.
    pub(super) fn reduce_to(&mut self, window: u64) {
        self.window = window;
        self.threshold = window.max(2 * self.start.mss);
        self.counted = 0;
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        // A window that the application does not fill has not been tested against the path, so it does not
        // grow.
        if !ack.cwnd_limited {
            return;
        }
        let mss = self.start.mss;
        if self.window < self.threshold {
            let most = match self.start.counting {
                // RFC 3465, section 2.3: L is 2, but 1 after a timeout, because an acknowledgement then often
                // covers segments that arrived long before.
                Counting::Bytes if self.after_timeout => mss,
                Counting::Bytes => 2 * mss,
                // Linux grows by all that was acknowledged, up to the threshold.
                Counting::All => self.threshold - self.window,
                // RFC 5681, section 3.1, equation (2): at most one segment per acknowledgement.
                Counting::Acks => mss,
            };
            let mut growth = ack.bytes.min(most);
            if let Some(hystart) = &mut self.hystart
                && self.threshold == u64::MAX
            {
                let over;
                (growth, over) = hystart.grow(ack, self.window / mss, growth);
                if over {
                    self.threshold = self.window + growth;
                }
            }
            self.window += growth;
            return;
        }
        self.after_timeout = false;
        match self.start.counting {
            // RFC 3465, section 2.1: one segment for each window of bytes acknowledged.
            Counting::Bytes | Counting::All => {
                self.counted += ack.bytes;
                if self.counted >= self.window {
                    self.counted -= self.window;
                    self.window += mss;
                }
            }
            // RFC 5681, section 3.1, equation (3); rounding up to a byte keeps large windows growing.
            Counting::Acks => self.window += (mss * mss / self.window).max(1),
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // FlightSize, not the window.
        self.threshold = self.half(loss.flight);
        self.window = self.threshold;
        self.counted = 0;
    }

    fn on_timeout(&mut self, loss: &Loss, first: bool) {
        // RFC 5681, section 3.1: a segment that was retransmitted before leaves the threshold unchanged.
        if first {
            self.threshold = self.half(loss.flight);
        }
        // RFC 5681, section 3.1: the loss window is one segment.
        self.window = self.start.mss;
        self.counted = 0;
        self.after_timeout = true;
    }

    fn on_undo(&mut self, window: u64, threshold: u64, _: Time) {
        self.window = self.window.max(window);
        self.threshold = self.threshold.max(threshold);
        self.after_timeout = false;
    }

    fn on_idle(&mut self, _: Time) {
        // RFC 5681, section 4.1: the restart window.
        self.window = self.window.min(self.start.initial_window);
    }
    fn on_unused(&mut self, window: u64, threshold: u64) {
        self.window = self.window.min(window);
        self.threshold = self.threshold.max(threshold);
    }

    fn window(&self) -> u64 {
        self.window
    }
    fn threshold(&self) -> u64 {
        self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::HyStartRule;
    use giveway_qdisc::Span;

    fn ack(bytes: u64) -> Ack {
        Ack {
            now: Time::ZERO,
            bytes,
            rtt: Span::ms(10),
            sample: None,
            una: 0,
            next: 0,
            flight: bytes,
            cwnd_limited: true,
        }
    }

    fn start(counting: Counting) -> Start {
        Start {
            preset: crate::tcp::Preset::Rfc,
            mss: 1000,
            initial_window: 2000,
            counting,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            seed: 0,
        }
    }

    #[test]
    fn the_first_rounds_double_then_add_one() {
        let mut reno = new(start(Counting::Acks));
        for window in [3000, 4000, 5000] {
            reno.on_ack(&ack(1000));
            assert_eq!(reno.window(), window);
        }
        reno.on_loss(&Loss { flight: 5000, ..Loss::default() });
        assert_eq!((reno.window(), reno.threshold()), (2500, 2500));
        reno.on_ack(&ack(1000));
        assert_eq!(reno.window(), 2900, "one segment per window: 1000 * 1000 / 2500");
        reno.on_timeout(&Loss { flight: 2900, ..Loss::default() }, true);
        assert_eq!((reno.window(), reno.threshold()), (1000, 2000), "never below two segments");
    }

    /// 5,999 bytes have five whole segments.
    #[test]
    fn linux_halves_whole_segments() {
        let mut reno = new(Start { preset: Preset::Linux, ..start(Counting::All) });
        reno.on_loss(&Loss { flight: 5999, ..Loss::default() });
        assert_eq!((reno.window(), reno.threshold()), (2000, 2000));
    }

    #[test]
    fn bytes_are_counted_and_not_acknowledgements() {
        let mut reno = new(start(Counting::Bytes));
        reno.on_loss(&Loss { flight: 8000, ..Loss::default() });
        for bytes in [3000, 1000] {
            reno.on_ack(&ack(bytes));
        }
        assert_eq!(reno.window(), 5000, "a full window of 4000 bytes adds one segment");
    }
}
