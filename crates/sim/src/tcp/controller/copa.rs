//! Copa: a rate of one segment per delta times the queueing delay, Arun and Balakrishnan 2018.
//!
//! # Principles
//! - The queueing delay is the smallest round-trip time of the last half round trip (the standing one), less
//!   the smallest of the last ten seconds. The target rate is one segment in delta times that delay, with
//!   delta = 0.5: flows that follow it share a link equally, with few segments in its queue.
//! - Below the target the window grows by velocity / delta segments per round trip, above it shrinks by as
//!   much. The velocity doubles each round trip in which the window keeps its direction, from the third one
//!   on.
//! - Such flows empty the queue every five round trips. If the queue is not seen nearly empty in that time,
//!   there are others who fill it: delta then follows additive increase and multiplicative decrease of 1 /
//!   delta, so that the flow keeps its share.
//!
//! # Deviations
//! - A loss outside of that mode changes nothing but what recovery needs: the paper gives no rule.
//!
//! # Cost
//! - A dozen floating-point operations per acknowledgement; 250 bytes per connection.
//!
//! # References
//! - Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018,
//!   parts 2 and 3.

use giveway_qdisc::{Invalid, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Control, Controller, Loss, Needs, Start};

/// Age at which a smallest round-trip time is forgotten.
const MIN_AGE: Span = Span::s(10);
/// Round trips within which the queue of flows of this kind is nearly empty once.
const EMPTY_ROUNDS: u64 = 5;
/// The part of the largest queueing delay below which the queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Smallest window, segments.
const MIN_SEGMENTS: f64 = 2.0;

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of delay against throughput: about 1 / delta segments are in the queue.
    pub delta: f64,
    /// Keeps its share next to flows that fill the queue.
    pub competes: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { delta: 0.5, competes: true }
    }
}

impl Control for Config {
    const SUMMARY: &'static str = "few segments in the queue, by a target rate (Arun and Balakrishnan 2018)";
    const IMPLIES: &'static [(&'static str, bool)] = &[("pacing", true)];

    fn check(&self) -> Result<(), Invalid> {
        if !(0.004..=10.0).contains(&self.delta) {
            return Err(Invalid::new("delta", format!("{} is not between 0.004 and 10", self.delta)));
        }
        Ok(())
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        Box::new(Copa {
            config: *self,
            delta: self.delta,
            mss: start.mss as f64,
            initial_window: start.initial_window as f64,
            window: start.initial_window as f64,
            slow_start: true,
            velocity: 1.0,
            rising: true,
            same: 0,
            round_until: 0,
            round_window: start.initial_window as f64,
            standing: Least::default(),
            least: Least::default(),
            most: Span::ZERO,
            empty_at: Time::ZERO,
            lost: false,
        })
    }
}

/// The smallest sample of a sliding time, in its present part and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    before: Option<Span>,
    present: Option<Span>,
    since: Time,
}

impl Least {
    fn add(&mut self, rtt: Span, part: Span, now: Time) {
        if now.since(self.since) >= part {
            (self.before, self.present, self.since) = (self.present, None, now);
        }
        self.present = Some(self.present.map_or(rtt, |present| present.min(rtt)));
    }

    fn get(&self) -> Option<Span> {
        [self.before, self.present].into_iter().flatten().min()
    }
}

/// State of the Copa algorithm: windows in bytes.
#[derive(Debug)]
struct Copa {
    config: Config,
    /// The delta in use.
    delta: f64,
    mss: f64,
    initial_window: f64,
    window: f64,
    slow_start: bool,
    velocity: f64,
    /// The direction of the last round trip, and the round trips that it has lasted.
    rising: bool,
    same: u32,
    /// The round trip ends when this is acknowledged; the window at its start.
    round_until: u64,
    round_window: f64,
    /// Smallest round-trip times of half a round trip, and of ten seconds.
    standing: Least,
    least: Least,
    /// Largest round-trip time of the last rounds.
    most: Span,
    /// Time at which the queue was last seen nearly empty.
    empty_at: Time,
    /// A loss in this round trip.
    lost: bool,
}

impl Copa {
    /// Ends a round trip: velocity, and mode.
    fn end_round(&mut self, ack: &Ack) {
        if (self.window > self.round_window) == self.rising {
            self.same += 1;
        } else {
            (self.velocity, self.same) = (1.0, 0);
        }
        // Three round trips in one direction: the target is far away, and the steps double.
        if self.same >= 3 {
            self.velocity = (self.velocity * 2.0).min(1e6);
        }
        (self.round_until, self.round_window) = (ack.next, self.window);
        let competes = self.config.competes && ack.now.since(self.empty_at) > ack.rtt * EMPTY_ROUNDS;
        self.delta = match competes {
            false => self.config.delta,
            // 1 / delta grows by one per round trip and halves with a loss, as the window of Reno does.
            true if self.lost => (2.0 * self.delta).min(self.config.delta),
            true => 1.0 / (1.0 / self.delta + 1.0),
        };
        self.lost = false;
        // The largest round-trip time fades, so that one long ago does not make every queue look nearly
        // empty.
        self.most = self.most.scale(7, 8);
    }
}

impl Controller for Copa {
    fn needs(&self) -> Needs {
        Needs { pacing: true, ..Needs::default() }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.sample {
            self.standing.add(rtt, ack.rtt / 4, ack.now);
            self.least.add(rtt, MIN_AGE / 2, ack.now);
            self.most = self.most.max(rtt);
        }
        let (Some(standing), Some(least)) = (self.standing.get(), self.least.get()) else { return };
        let queued = standing.saturating_sub(least).as_s();
        let range = self.most.saturating_sub(least).as_s();
        // Senders of this kind empty the queue every few round trips. If it is not seen empty for longer,
        // another kind fills it.
        if queued <= NEARLY_EMPTY * range {
            self.empty_at = ack.now;
        }
        let rate = self.window / standing.as_s().max(1e-9);
        // The target rate of the paper: 1 / (delta times the queueing delay), in segments.
        let below = queued <= 0.0 || rate <= self.mss / (self.delta * queued);
        let bytes = ack.bytes as f64;
        if self.slow_start {
            if below {
                self.window += if ack.cwnd_limited { bytes } else { 0.0 };
            } else {
                self.slow_start = false;
            }
        }
        if !self.slow_start {
            if below != self.rising {
                // The direction has changed: the window has reached its target.
                (self.velocity, self.same, self.rising) = (1.0, 0, below);
            }
            let step = self.velocity * self.mss * bytes / (self.delta * self.window);
            if below {
                self.window += if ack.cwnd_limited { step.min(bytes) } else { 0.0 };
            } else {
                self.window = (self.window - step.min(bytes)).max(MIN_SEGMENTS * self.mss);
            }
        }
        if ack.una > self.round_until {
            self.end_round(ack);
        }
    }

    fn on_loss(&mut self, _: &Loss) {
        self.lost = true;
        self.slow_start = false;
    }

    fn on_timeout(&mut self, _: &Loss, _: bool) {
        self.window = MIN_SEGMENTS * self.mss;
        self.velocity = 1.0;
        self.lost = true;
    }

    fn on_idle(&mut self, _: Time) {
        self.window = self.window.min(self.initial_window);
    }

    fn window(&self) -> u64 {
        self.window as u64
    }
    fn threshold(&self) -> u64 {
        if self.slow_start { u64::MAX } else { self.window as u64 }
    }
    /// Twice the window in the standing round-trip time, so that pacing does not limit the window.
    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.standing.get()?.as_s();
        (standing > 0.0).then(|| Rate::bit((16.0 * self.window / standing).max(1.0) as u64))
    }
}
