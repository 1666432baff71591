//! BBR version 3: draft-ietf-ccwg-bbr. Its names are in parentheses.
//!
//! The draft looks at each lost packet; here the state of the newest packet of an acknowledgement stands for
//! those that were lost before it.

use giveway_qdisc::{Rate, Span, Time};

use super::draws::Draws;
use crate::tcp::controller::{Ack, Controller, Feedback, Loss, Needs, Phase, Start};

/// Gains of startup: 4 ln 2 for the rate.
const STARTUP: (f64, f64) = (2.77, 2.0);
/// Gains of drain.
const DRAIN: (f64, f64) = (0.5, 2.0);
/// Gain of the window in ProbeRTT, of the bandwidth-delay product.
const PROBE_RTT_GAIN: f64 = 0.5;
/// The part of packets of a round whose loss is too much (LossThresh).
const LOSS_THRESH: f64 = 0.02;
/// Multiplicative decrease (Beta).
const BETA: f64 = 0.7;
/// The part of the bound that is left to others (Headroom).
const HEADROOM: f64 = 0.15;
const MIN_SEGMENTS: f64 = 4.0;
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Acknowledgements with losses in a round that end startup (StartupFullLossCnt).
const STARTUP_LOSSES: u32 = 6;
const MIN_RTT_AGE: Span = Span::s(10);
const PROBE_RTT_INTERVAL: Span = Span::s(5);
const PROBE_RTT: Span = Span::ms(200);
/// Maximum number of rounds between probes, next to Reno.
const RENO_ROUNDS: u64 = 63;
/// Rounds of the filter of aggregation (ExtraAckedFilterLen).
const AGGREGATION_ROUNDS: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The stage of a probe that acknowledgements show at present (ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// State of BBR version 3: windows in bytes, rates in bytes per second; infinite bounds are none.
#[derive(Debug)]
pub(super) struct Bbr {
    mss: f64,
    initial_window: f64,
    part: f64,
    draws: Draws,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    pacing_rate: f64,
    rate_known: bool,
    window: f64,
    prior_window: f64,
    recovering: bool,
    idle_restart: bool,

    // Rounds, by deliveries.
    round_start: bool,
    next_round: u64,
    rounds_since_probe: u64,
    loss_round_start: bool,
    next_loss_round: u64,
    loss_in_round: bool,
    losses_in_round: u32,

    /// Largest rates of the cycle before and of this one (MaxBwFilter).
    rates: [f64; 2],
    bandwidth_latest: f64,
    inflight_latest: f64,
    /// Bounds from losses of the last rounds (bw_shortterm, inflight_shortterm).
    bandwidth_low: f64,
    inflight_low: f64,
    /// Bound from losses of the last probes (inflight_longterm).
    inflight_high: f64,

    min_rtt: Option<Span>,
    min_rtt_at: Time,
    probe_rtt_least: Option<Span>,
    probe_rtt_at: Time,
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,

    filled: bool,
    full_now: bool,
    full_bandwidth: f64,
    full_rounds: u32,

    ack_phase: AckPhase,
    /// The samples of a probe may still set the bound.
    probe_samples: bool,
    cycle_at: Time,
    probe_wait: Span,
    probe_up_rounds: u32,
    probe_up_bytes: f64,
    probe_up_count: f64,

    /// Aggregation: start of the interval, what was delivered in it, and the largest excess of the
    /// last rounds.
    aggregation_at: Time,
    aggregated: f64,
    excess: [f64; AGGREGATION_ROUNDS],
}

impl Bbr {
    /// `part` is the part of the bandwidth at which it paces with a gain of one (PacingMarginPercent).
    pub fn new(start: Start, part: f64) -> Bbr {
        let initial_window = start.initial_window as f64;
        Bbr {
            mss: start.mss as f64,
            initial_window,
            part,
            draws: Draws::new(start.seed),
            mode: Mode::Startup,
            pacing_gain: STARTUP.0,
            cwnd_gain: STARTUP.1,
            pacing_rate: STARTUP.0 * initial_window / 0.001,
            rate_known: false,
            window: initial_window,
            prior_window: 0.0,
            recovering: false,
            idle_restart: false,
            round_start: false,
            next_round: 0,
            rounds_since_probe: 0,
            loss_round_start: false,
            next_loss_round: 0,
            loss_in_round: false,
            losses_in_round: 0,
            rates: [0.0; 2],
            bandwidth_latest: 0.0,
            inflight_latest: 0.0,
            bandwidth_low: f64::INFINITY,
            inflight_low: f64::INFINITY,
            inflight_high: f64::INFINITY,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_least: None,
            probe_rtt_at: Time::ZERO,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            filled: false,
            full_now: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            ack_phase: AckPhase::Init,
            probe_samples: false,
            cycle_at: Time::ZERO,
            probe_wait: Span::ZERO,
            probe_up_rounds: 0,
            probe_up_bytes: 0.0,
            probe_up_count: f64::INFINITY,
            aggregation_at: Time::ZERO,
            aggregated: 0.0,
            excess: [0.0; AGGREGATION_ROUNDS],
        }
    }

    // -- the model ----------------------------------------------------------------------------------

    /// The largest rate of the last two cycles (max_bw).
    fn most_bandwidth(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }
    /// The rate that the path is taken to have (bw).
    fn bandwidth(&self) -> f64 {
        self.most_bandwidth().min(self.bandwidth_low)
    }
    fn probes(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up)
    }
    fn cycles(&self) -> bool {
        matches!(self.mode, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    fn product(&self, bandwidth: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window, |rtt| bandwidth * rtt.as_s())
    }

    /// The data in flight for a gain (BBRInflight), bytes.
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.with_bursts(gain * self.product(bandwidth))
    }

    /// Room for bursts of sender and receiver (BBRQuantizationBudget).
    fn with_bursts(&self, inflight: f64) -> f64 {
        let up = if self.mode == Mode::Up { 2.0 * self.mss } else { 0.0 };
        inflight.max(3.0 * self.burst()).max(MIN_SEGMENTS * self.mss) + up
    }

    fn burst(&self) -> f64 {
        (self.pacing_rate * 0.001).min(65_536.0).max(2.0 * self.mss)
    }

    fn target_inflight(&self) -> f64 {
        self.product(self.bandwidth()).min(self.window)
    }

    /// The bound less what is left to others (BBRInflightWithHeadroom).
    fn with_headroom(&self) -> f64 {
        if self.inflight_high.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_high).max(self.mss);
        (self.inflight_high - headroom).max(MIN_SEGMENTS * self.mss)
    }

    /// Rounds and the signals of the newest (BBRUpdateLatestDeliverySignals, BBRUpdateRound).
    fn update_rounds(&mut self, feedback: &Feedback) {
        let delivers = feedback.newly_delivered > 0;
        self.loss_round_start = delivers && feedback.prior_delivered >= self.next_loss_round;
        self.bandwidth_latest = self.bandwidth_latest.max(feedback.rate());
        self.inflight_latest = self.inflight_latest.max(feedback.rate_bytes as f64);
        if self.loss_round_start {
            self.next_loss_round = feedback.delivered;
        }
        self.round_start = delivers && feedback.prior_delivered >= self.next_round;
        if self.round_start {
            self.next_round = feedback.delivered;
            self.rounds_since_probe += 1;
            self.excess.rotate_left(1);
            self.excess[AGGREGATION_ROUNDS - 1] = 0.0;
        }
    }

    fn begin_round(&mut self, feedback: &Feedback) {
        self.next_round = feedback.delivered;
    }

    /// Bandwidth, and the bounds from losses (BBRUpdateCongestionSignals).
    fn update_bounds(&mut self, feedback: &Feedback) {
        let rate = feedback.rate();
        // A rate that the application limited is a lower bound: it counts only if it is the largest.
        if rate > 0.0 && (rate >= self.most_bandwidth() || !feedback.app_limited) {
            self.rates[1] = self.rates[1].max(rate);
        }
        if feedback.newly_lost > 0 {
            self.loss_in_round = true;
            self.losses_in_round += 1;
        }
        if !self.loss_round_start {
            return;
        }
        // A probe is meant to find the bound, so its losses do not lower the short-term bounds.
        if !self.probes() && self.loss_in_round {
            if self.bandwidth_low.is_infinite() {
                self.bandwidth_low = self.most_bandwidth();
            }
            if self.inflight_low.is_infinite() {
                self.inflight_low = self.window;
            }
            // Cut by BETA per round, but never below what this round has delivered.
            self.bandwidth_low = self.bandwidth_latest.max(BETA * self.bandwidth_low);
            self.inflight_low = self.inflight_latest.max(BETA * self.inflight_low);
        }
        self.loss_in_round = false;
    }

    fn forget_losses(&mut self) {
        (self.bandwidth_low, self.inflight_low) = (f64::INFINITY, f64::INFINITY);
    }

    /// Measures the deliveries above the bandwidth (BBRUpdateACKAggregation).
    fn update_aggregation(&mut self, feedback: &Feedback) {
        let expected = self.bandwidth() * feedback.now.since(self.aggregation_at).as_s();
        let mut expected_or_reset = expected;
        // Deliveries have fallen behind the bandwidth: the interval starts again.
        if self.aggregated <= expected {
            (self.aggregated, self.aggregation_at, expected_or_reset) = (0.0, feedback.now, 0.0);
        }
        self.aggregated += feedback.newly_delivered as f64;
        let excess = (self.aggregated - expected_or_reset).min(self.window);
        let newest = &mut self.excess[AGGREGATION_ROUNDS - 1];
        *newest = newest.max(excess);
    }

    fn reset_full(&mut self) {
        (self.full_bandwidth, self.full_rounds, self.full_now) = (0.0, 0, false);
    }

    /// Decides whether the pipe is full (BBRCheckFullBWReached).
    fn check_full(&mut self, feedback: &Feedback) {
        if self.full_now || !self.round_start || feedback.app_limited {
            return;
        }
        // Still growing: the count of rounds without growth starts again.
        if feedback.rate() >= self.full_bandwidth * GROWTH {
            self.reset_full();
            self.full_bandwidth = feedback.rate();
            return;
        }
        self.full_rounds += 1;
        self.full_now = self.full_rounds >= FULL_ROUNDS;
        self.filled |= self.full_now;
    }

    /// Ends startup after a round with many losses (BBRCheckStartupHighLoss).
    fn check_startup_losses(&mut self, feedback: &Feedback) {
        if self.loss_round_start {
            if !self.filled
                && feedback.phase == Phase::Recovery
                && self.losses_in_round >= STARTUP_LOSSES
                && is_too_high(feedback)
            {
                self.filled = true;
                self.inflight_high = self.product(self.most_bandwidth()).max(self.inflight_latest);
            }
            self.losses_in_round = 0;
        }
    }

    // -- the state machine --------------------------------------------------------------------------

    fn enter(&mut self, mode: Mode, (pacing_gain, cwnd_gain): (f64, f64)) {
        (self.mode, self.pacing_gain, self.cwnd_gain) = (mode, pacing_gain, cwnd_gain);
    }

    fn enter_down(&mut self, feedback: &Feedback) {
        (self.loss_in_round, self.bandwidth_latest, self.inflight_latest) = (false, 0.0, 0.0);
        self.probe_up_count = f64::INFINITY;
        // Random, so that flows which share a bottleneck do not probe at the same time.
        self.rounds_since_probe = self.draws.below(2);
        self.probe_wait = Span::s(2) + Span::ms(self.draws.below(1000));
        self.cycle_at = feedback.now;
        self.ack_phase = AckPhase::Stopping;
        self.begin_round(feedback);
        self.enter(Mode::Down, (0.9, 2.0));
    }

    fn enter_refill(&mut self, feedback: &Feedback) {
        self.forget_losses();
        (self.probe_up_rounds, self.probe_up_bytes) = (0, 0.0);
        self.ack_phase = AckPhase::Refilling;
        self.begin_round(feedback);
        self.enter(Mode::Refill, (1.0, 2.0));
    }

    fn enter_up(&mut self, feedback: &Feedback) {
        self.ack_phase = AckPhase::Starting;
        self.begin_round(feedback);
        self.reset_full();
        self.full_bandwidth = feedback.rate();
        self.cycle_at = feedback.now;
        self.enter(Mode::Up, (1.25, 2.25));
        self.steepen();
    }

    fn update_mode(&mut self, feedback: &Feedback) {
        if self.mode == Mode::Startup && self.filled {
            self.enter(Mode::Drain, DRAIN);
        }
        let flight = feedback.flight as f64;
        if self.mode == Mode::Drain && flight <= self.inflight(self.bandwidth(), 1.0) {
            self.enter_down(feedback);
        }
        if !self.filled {
            return;
        }
        self.adapt_bound(feedback);
        match self.mode {
            Mode::Down | Mode::Cruise => {
                if self.is_time_to_probe(feedback) {
                    self.enter_refill(feedback);
                } else if self.mode == Mode::Down
                    && flight <= self.with_headroom()
                    && flight <= self.inflight(self.most_bandwidth(), 1.0)
                {
                    self.enter(Mode::Cruise, (1.0, 2.0));
                }
            }
            Mode::Refill if self.round_start => {
                self.probe_samples = true;
                self.enter_up(feedback);
            }
            Mode::Up => {
                if feedback.cwnd_limited && self.window >= self.inflight_high {
                    self.reset_full();
                    self.full_bandwidth = feedback.rate();
                } else if self.full_now {
                    self.enter_down(feedback);
                }
            }
            _ => {}
        }
    }

    /// True if it is time to look for more bandwidth (BBRIsTimeToProbeBW).
    fn is_time_to_probe(&self, feedback: &Feedback) -> bool {
        // Reno would need as many round trips to fill the path again after a loss. A probe at least as often
        // leaves it its share.
        let reno = (self.target_inflight() / self.mss) as u64;
        feedback.now.since(self.cycle_at) > self.probe_wait
            || self.rounds_since_probe >= reno.min(RENO_ROUNDS)
    }

    /// Moves the bound of the data in flight (BBRAdaptLongTermModel).
    fn adapt_bound(&mut self, feedback: &Feedback) {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            self.ack_phase = AckPhase::Init;
            if self.cycles() && !feedback.app_limited {
                // The filter covers two cycles. It moves when the samples of the probe have come back.
                self.rates = [self.rates[1], 0.0];
                self.rates[1] = feedback.rate();
            }
        }
        if is_too_high(feedback) {
            if self.probe_samples {
                self.lower_bound(feedback);
            }
            return;
        }
        if self.inflight_high.is_infinite() {
            return;
        }
        // This much was in flight without too many losses.
        self.inflight_high = self.inflight_high.max(feedback.flight_at_send as f64);
        if self.mode == Mode::Up {
            self.raise_bound(feedback);
        }
    }

    /// A probe has led to too many losses (BBRHandleInflightTooHigh).
    fn lower_bound(&mut self, feedback: &Feedback) {
        // One answer for each probe: later losses are of the same flight.
        self.probe_samples = false;
        if !feedback.app_limited {
            self.inflight_high = (feedback.flight_at_send as f64).max(self.target_inflight() * BETA);
        }
        if self.mode == Mode::Up {
            self.enter_down(feedback);
        }
    }

    /// A probe goes well (BBRProbeInflightLongtermUpward).
    fn raise_bound(&mut self, feedback: &Feedback) {
        if !feedback.cwnd_limited || self.window < self.inflight_high {
            return;
        }
        self.probe_up_bytes += feedback.newly_delivered as f64;
        if self.probe_up_bytes >= self.probe_up_count * self.mss {
            let segments = (self.probe_up_bytes / (self.probe_up_count * self.mss)) as u64 as f64;
            self.probe_up_bytes -= segments * self.probe_up_count * self.mss;
            self.inflight_high += segments * self.mss;
        }
        if self.round_start {
            self.steepen();
        }
    }

    /// The bound grows twice as fast in the next round (BBRRaiseInflightLongtermSlope).
    fn steepen(&mut self) {
        // The bound grows by 1, 2, 4, ... segments per round: slowly at first, since other flows may have
        // just left room.
        let growth = (1u64 << self.probe_up_rounds) as f64;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_count = (self.window / self.mss / growth).max(1.0);
    }

    /// The smallest round-trip time, and its measurement (BBRUpdateMinRTT, BBRCheckProbeRTT).
    fn update_min_rtt(&mut self, feedback: &Feedback) {
        let now = feedback.now;
        let expired = now > self.probe_rtt_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = feedback.sample
            && (expired || self.probe_rtt_least.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_least, self.probe_rtt_at) = (Some(rtt), now);
        }
        let old = now > self.min_rtt_at + MIN_RTT_AGE;
        if let Some(least) = self.probe_rtt_least
            && (old || self.min_rtt.is_none_or(|min| least < min))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(least), self.probe_rtt_at);
        }
        if self.mode != Mode::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.enter(Mode::ProbeRtt, (1.0, PROBE_RTT_GAIN));
            self.probe_rtt_until = None;
            self.ack_phase = AckPhase::Stopping;
            self.begin_round(feedback);
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(feedback);
        }
        if feedback.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt_window(&self) -> f64 {
        (PROBE_RTT_GAIN * self.product(self.bandwidth())).max(MIN_SEGMENTS * self.mss)
    }

    fn probe_rtt(&mut self, feedback: &Feedback) {
        match self.probe_rtt_until {
            None if feedback.flight as f64 <= self.probe_rtt_window() => {
                self.probe_rtt_until = Some(feedback.now + PROBE_RTT);
                self.probe_rtt_round_done = false;
                self.begin_round(feedback);
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && feedback.now > until {
                    self.probe_rtt_at = feedback.now;
                    self.window = self.window.max(self.prior_window);
                    self.forget_losses();
                    if self.filled {
                        self.enter_down(feedback);
                        self.enter(Mode::Cruise, (1.0, 2.0));
                    } else {
                        self.enter(Mode::Startup, STARTUP);
                    }
                }
            }
        }
    }

    // -- window and rate ----------------------------------------------------------------------------

    fn save_window(&mut self) {
        let keeps = !self.recovering && self.mode != Mode::ProbeRtt;
        self.prior_window = if keeps { self.window } else { self.prior_window.max(self.window) };
    }

    fn set_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * self.part;
        if rate > 0.0 && (self.filled || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Sets the window (BBRSetCwnd, BBRBoundCwndForModel).
    fn set_window(&mut self, feedback: &Feedback) {
        let newly = feedback.newly_delivered as f64;
        // Receivers that acknowledge in bursts would otherwise leave the window empty between two of them.
        let extra = self.excess.iter().copied().fold(0.0, f64::max);
        let most = self.with_bursts(self.cwnd_gain * self.product(self.bandwidth()) + extra);
        if feedback.newly_lost > 0 {
            self.window = (self.window - feedback.newly_lost as f64).max(self.mss);
        }
        if self.filled {
            self.window = (self.window + newly).min(most);
        } else if self.window < most || (feedback.delivered as f64) < self.initial_window {
            self.window += newly;
        }
        let least = MIN_SEGMENTS * self.mss;
        self.window = self.window.max(least);
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        // The long-term bound holds where the sender probes for it or drains; cruising leaves headroom below
        // it to others.
        let bound = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.inflight_high,
            Mode::Cruise | Mode::ProbeRtt => self.with_headroom(),
            Mode::Startup | Mode::Drain => f64::INFINITY,
        };
        self.window = self.window.min(bound.min(self.inflight_low).max(least));
    }

    fn follow_recovery(&mut self, feedback: &Feedback) {
        let recovering = feedback.phase != Phase::Open;
        if recovering && !self.recovering {
            self.save_window();
        } else if self.recovering && !recovering {
            self.window = self.window.max(self.prior_window);
        }
        self.recovering = recovering;
    }
}

/// True if more was lost than the path may lose: of what was in flight with the newest packet
/// (IsInflightTooHigh).
fn is_too_high(feedback: &Feedback) -> bool {
    feedback.lost_since_send as f64 > feedback.flight_at_send as f64 * LOSS_THRESH
}

impl Controller for Bbr {
    fn needs(&self) -> Needs {
        Needs { feedback: true, pacing: true, own_recovery: true, ..Needs::default() }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_feedback(&mut self, feedback: &Feedback) {
        if !self.rate_known && !feedback.rtt.is_zero() {
            self.rate_known = true;
            self.pacing_rate = STARTUP.0 * self.initial_window / feedback.rtt.as_s();
        }
        self.update_rounds(feedback);
        self.follow_recovery(feedback);
        self.update_bounds(feedback);
        self.update_aggregation(feedback);
        self.check_full(feedback);
        self.check_startup_losses(feedback);
        self.update_mode(feedback);
        self.update_min_rtt(feedback);
        if self.loss_round_start {
            self.bandwidth_latest = feedback.rate();
            self.inflight_latest = feedback.rate_bytes as f64;
        }
        self.set_rate(self.pacing_gain);
        self.set_window(feedback);
    }

    fn on_resume(&mut self, _: Time) {
        self.idle_restart = true;
        if self.cycles() {
            self.set_rate(1.0);
        }
    }

    fn on_loss(&mut self, _: &Loss) {}
    fn on_mark(&mut self, _: &Loss) {}

    fn on_timeout(&mut self, _: &Loss, _: bool) {
        self.save_window();
        self.window = self.mss;
        self.recovering = true;
    }

    fn on_undo(&mut self, _: u64, _: u64, _: Time) {
        self.window = self.window.max(self.prior_window);
        self.recovering = false;
        self.forget_losses();
    }

    fn on_idle(&mut self, _: Time) {}

    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
    fn window(&self) -> u64 {
        self.window as u64
    }
    fn threshold(&self) -> u64 {
        u64::MAX
    }
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::bit((self.pacing_rate * 8.0).max(1.0) as u64))
    }
}
