//! BBR version 1: draft-cardwell-iccrg-bbr-congestion-control-00. Its names are in parentheses.

use giveway_qdisc::{Rate, Span, Time};

use super::draws::Draws;
use crate::tcp::controller::{Ack, Controller, Feedback, Loss, Needs, Phase, Start};

/// 2 / ln 2, with which the rate doubles each round trip (BBRHighGain).
const HIGH_GAIN: f64 = 2.885_390_081_777_926_8;
/// Rounds of the filter of the bandwidth (BtlBwFilterLen).
const BANDWIDTH_ROUNDS: usize = 10;
/// Age of the smallest round-trip time at which it is measured again (RTpropFilterLen).
const RTPROP_AGE: Span = Span::s(10);
/// Duration of the measurement (ProbeRTTDuration).
const PROBE_RTT: Span = Span::ms(200);
/// The gains of the cycle: one phase each lasts for a round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window in the cycle.
const CWND_GAIN: f64 = 2.0;
/// Smallest window, segments (BBRMinPipeCwnd).
const MIN_SEGMENTS: f64 = 4.0;
/// Growth of the bandwidth in a round of startup without which the pipe may be full.
const GROWTH: f64 = 1.25;
/// Rounds without growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;

/// Modes of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of BBR version 1: windows in bytes, rates in bytes per second.
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
    window: f64,
    /// The last rounds with samples, each at its number modulo the length, and their largest rates
    /// (BtlBwFilter).
    rates: [(u64, f64); BANDWIDTH_ROUNDS],
    /// The largest of them (BtlBw).
    bandwidth: f64,
    /// Smallest round-trip time (RTprop); none yet.
    rtprop: Option<Span>,
    rtprop_at: Time,
    /// Rounds so far, and whether this acknowledgement started one.
    round: u64,
    round_start: bool,
    /// The round ends when a segment is acknowledged that was sent after this much was delivered.
    next_round: u64,
    filled: bool,
    full_bandwidth: f64,
    full_rounds: u32,
    /// Phase of the cycle, and its start.
    phase: usize,
    phase_at: Time,
    /// End of the measurement of the round-trip time; none before the window has shrunk.
    probe_until: Option<Time>,
    probe_round_done: bool,
    /// The window from before a recovery or a measurement (prior_cwnd).
    prior_window: f64,
    /// Fast recovery conserves packets until a segment is acknowledged that was sent after this much was
    /// delivered.
    conserves: Option<u64>,
    recovering: bool,
    idle_restart: bool,
    /// A round-trip time was measured, so the initial rate is final.
    rate_known: bool,
}

impl Bbr {
    /// `part` is the part of the bandwidth at which it paces with a gain of one.
    pub fn new(start: Start, part: f64) -> Bbr {
        let initial_window = start.initial_window as f64;
        Bbr {
            mss: start.mss as f64,
            initial_window,
            part,
            draws: Draws::new(start.seed),
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            // The first round-trip time is taken to be a millisecond until it is measured.
            pacing_rate: HIGH_GAIN * initial_window / 0.001,
            window: initial_window,
            rates: [(0, 0.0); BANDWIDTH_ROUNDS],
            bandwidth: 0.0,
            rtprop: None,
            rtprop_at: Time::ZERO,
            round: 0,
            round_start: false,
            next_round: 0,
            filled: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            phase: 0,
            phase_at: Time::ZERO,
            probe_until: None,
            probe_round_done: false,
            prior_window: 0.0,
            conserves: None,
            recovering: false,
            idle_restart: false,
            rate_known: false,
        }
    }

    // -- the model ----------------------------------------------------------------------------------

    /// Counts rounds (BBRUpdateRound).
    fn update_round(&mut self, feedback: &Feedback) {
        self.round_start = feedback.newly_delivered > 0 && feedback.prior_delivered >= self.next_round;
        if self.round_start {
            self.next_round = feedback.delivered;
            self.round += 1;
        }
    }

    /// Updates the bandwidth (BBRUpdateBtlBw). A sample that the application limited counts only if it is
    /// larger.
    fn update_bandwidth(&mut self, feedback: &Feedback) {
        let rate = feedback.rate();
        if rate == 0.0 || (rate < self.bandwidth && feedback.app_limited) {
            return;
        }
        let round = self.round;
        let slot = &mut self.rates[round as usize % BANDWIDTH_ROUNDS];
        *slot = if slot.0 == round { (round, slot.1.max(rate)) } else { (round, rate) };
        // Rounds without a sample leave their place to what was there ten rounds ago, which counts no longer.
        let recent = self.rates.iter().filter(|(at, _)| at + BANDWIDTH_ROUNDS as u64 > round);
        self.bandwidth = recent.map(|(_, most)| *most).fold(0.0, f64::max);
    }

    /// Decides whether the pipe is full (BBRCheckFullPipe).
    fn check_full_pipe(&mut self, feedback: &Feedback) {
        if self.filled || !self.round_start || feedback.app_limited {
            return;
        }
        // Startup doubles the rate each round, so growth by less than a quarter means that the pipe is full
        // or the receiver slow.
        if self.bandwidth >= self.full_bandwidth * GROWTH {
            self.full_bandwidth = self.bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    /// Updates the smallest round-trip time (BBRUpdateRTprop). True if the last one is too old.
    fn update_rtprop(&mut self, feedback: &Feedback) -> bool {
        let expired = feedback.now > self.rtprop_at + RTPROP_AGE;
        if let Some(rtt) = feedback.sample
            && (expired || self.rtprop.is_none_or(|least| rtt <= least))
        {
            self.rtprop = Some(rtt);
            self.rtprop_at = feedback.now;
        }
        expired
    }

    // -- the state machine --------------------------------------------------------------------------

    fn enter(&mut self, mode: Mode, pacing_gain: f64, cwnd_gain: f64) {
        (self.mode, self.pacing_gain, self.cwnd_gain) = (mode, pacing_gain, cwnd_gain);
    }

    /// Starts the cycle in any phase except the phase of 0.75 (BBREnterProbeBW).
    fn enter_probe_bw(&mut self, now: Time) {
        self.enter(Mode::ProbeBw, 1.0, CWND_GAIN);
        self.phase = CYCLE.len() - 1 - self.draws.below(7) as usize;
        self.advance_phase(now);
    }

    fn advance_phase(&mut self, now: Time) {
        self.phase_at = now;
        self.phase = (self.phase + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.phase];
    }

    /// True if the next phase starts (BBRIsNextCyclePhase).
    fn phase_over(&self, feedback: &Feedback) -> bool {
        let over = self.rtprop.is_none_or(|rtprop| feedback.now.since(self.phase_at) > rtprop);
        // A probe lasts until the data in flight shows its effect, or data is lost; draining ends as soon as
        // the queue is gone.
        if self.pacing_gain > 1.0 {
            let reached = feedback.prior_flight as f64 >= self.inflight(self.pacing_gain);
            over && (feedback.newly_lost > 0 || reached)
        } else if self.pacing_gain < 1.0 {
            over || feedback.prior_flight as f64 <= self.inflight(1.0)
        } else {
            over
        }
    }

    /// Leaves startup when the pipe is full, and drain when the queue is empty (BBRCheckDrain).
    fn check_drain(&mut self, feedback: &Feedback) {
        if self.mode == Mode::Startup && self.filled {
            self.enter(Mode::Drain, 1.0 / HIGH_GAIN, HIGH_GAIN);
        }
        if self.mode == Mode::Drain && feedback.flight as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(feedback.now);
        }
    }

    /// Measures the round-trip time without a queue (BBRCheckProbeRTT).
    fn check_probe_rtt(&mut self, feedback: &Feedback, expired: bool) {
        if self.mode != Mode::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.enter(Mode::ProbeRtt, 1.0, 1.0);
            self.probe_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(feedback);
        }
        self.idle_restart = false;
    }

    fn probe_rtt(&mut self, feedback: &Feedback) {
        match self.probe_until {
            None if feedback.flight as f64 <= MIN_SEGMENTS * self.mss => {
                self.probe_until = Some(feedback.now + PROBE_RTT);
                self.probe_round_done = false;
                self.next_round = feedback.delivered;
            }
            None => {}
            Some(until) => {
                self.probe_round_done |= self.round_start;
                // At least a round trip with the small window, so that a sample without a queue has come
                // back.
                if self.probe_round_done && feedback.now > until {
                    self.rtprop_at = feedback.now;
                    self.restore_window();
                    match self.filled {
                        true => self.enter_probe_bw(feedback.now),
                        false => self.enter(Mode::Startup, HIGH_GAIN, HIGH_GAIN),
                    }
                }
            }
        }
    }

    // -- window and rate ----------------------------------------------------------------------------

    /// The data in flight for a gain, with three bursts (BBRInflight), bytes.
    fn inflight(&self, gain: f64) -> f64 {
        match self.rtprop {
            None => self.initial_window,
            Some(rtprop) => gain * self.bandwidth * rtprop.as_s() + 3.0 * self.burst(),
        }
    }

    /// The data that leaves at once, at most (BBRSetSendQuantum), bytes.
    fn burst(&self) -> f64 {
        // The draft: a segment below 1.2 Mbit/s, two below 24 Mbit/s, a millisecond above.
        if self.pacing_rate < 1.2e6 / 8.0 {
            self.mss
        } else if self.pacing_rate < 24e6 / 8.0 {
            2.0 * self.mss
        } else {
            (self.pacing_rate * 0.001).min(65_536.0)
        }
    }

    /// Sets the rate (BBRSetPacingRate). In startup it never falls.
    fn set_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth * self.part;
        if self.filled || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Remembers the window before it shrinks (BBRSaveCwnd).
    fn save_window(&mut self) {
        // A window that has shrunk already must not replace the one from before.
        let keeps = !self.recovering && self.mode != Mode::ProbeRtt;
        self.prior_window = if keeps { self.window } else { self.prior_window.max(self.window) };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// Sets the window (BBRSetCwnd).
    fn set_window(&mut self, feedback: &Feedback) {
        let newly = feedback.newly_delivered as f64;
        if feedback.newly_lost > 0 {
            self.window = (self.window - feedback.newly_lost as f64).max(self.mss);
        }
        if self.conserves.is_some() {
            self.window = self.window.max(feedback.flight as f64 + newly);
        } else {
            let target = self.inflight(self.cwnd_gain);
            if self.filled {
                self.window = (self.window + newly).min(target);
            // Before the pipe is full the bandwidth is a guess, so the window is not cut to it.
            } else if self.window < target || (feedback.delivered as f64) < self.initial_window {
                self.window += newly;
            }
            self.window = self.window.max(MIN_SEGMENTS * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(MIN_SEGMENTS * self.mss);
        }
    }

    /// Follows the phases of loss recovery (BBRModulateCwndForRecovery).
    fn follow_recovery(&mut self, feedback: &Feedback) {
        let recovering = feedback.phase != Phase::Open;
        if recovering && !self.recovering && feedback.phase == Phase::Recovery {
            self.save_window();
            let newly = (feedback.newly_delivered as f64).max(self.mss);
            // The first round of recovery conserves packets: one leaves for each that arrives.
            self.window = feedback.flight as f64 + newly;
            self.conserves = Some(feedback.delivered);
        } else if self.recovering && !recovering {
            self.conserves = None;
            self.restore_window();
        } else if self.conserves.is_some_and(|until| feedback.prior_delivered >= until) {
            self.conserves = None;
        }
        self.recovering = recovering;
    }
}

impl Controller for Bbr {
    fn needs(&self) -> Needs {
        Needs { feedback: true, pacing: true, own_recovery: true, ..Needs::default() }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_feedback(&mut self, feedback: &Feedback) {
        if !self.rate_known && !feedback.rtt.is_zero() {
            self.rate_known = true;
            self.pacing_rate = HIGH_GAIN * self.initial_window / feedback.rtt.as_s();
        }
        self.update_round(feedback);
        self.follow_recovery(feedback);
        self.update_bandwidth(feedback);
        if self.mode == Mode::ProbeBw && self.phase_over(feedback) {
            self.advance_phase(feedback.now);
        }
        self.check_full_pipe(feedback);
        self.check_drain(feedback);
        let expired = self.update_rtprop(feedback);
        self.check_probe_rtt(feedback, expired);
        self.set_rate(self.pacing_gain);
        self.set_window(feedback);
    }

    fn on_resume(&mut self, _: Time) {
        self.idle_restart = true;
        if self.mode == Mode::ProbeBw {
            self.set_rate(1.0);
        }
    }

    /// A loss is followed by its phase in the feedback.
    fn on_loss(&mut self, _: &Loss) {}
    fn on_mark(&mut self, _: &Loss) {}

    fn on_timeout(&mut self, _: &Loss, _: bool) {
        self.save_window();
        self.window = self.mss;
        self.conserves = None;
        self.recovering = true;
    }

    fn on_undo(&mut self, _: u64, _: u64, _: Time) {
        self.restore_window();
        self.conserves = None;
        self.recovering = false;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tcp::{Counting, HyStartRule};

    /// BBR against a second implementation, written from the draft alone: `validation/bbr/oracle.py`. The
    /// table contains the events of that program's traces and the state after each; nothing is rounded there,
    /// so windows may differ by two bytes.
    #[test]
    fn equals_the_second_implementation() {
        let mut lines = include_str!("../../../../tests/data/bbr_trace.csv").lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut bbr: Option<Bbr> = None;
        let (mut phase, mut rows) = (Phase::Open, 0);
        for line in lines {
            let row: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
            let number = |name: &str| row[name].parse::<u64>().ok();
            let now = Time::us(number("time_us").unwrap());
            let sample = number("rtt_us").map(Span::us);
            match row["event"] {
                "start" => {
                    let mut new = Bbr::new(
                        Start {
                            preset: crate::tcp::Preset::Rfc,
                            mss: number("mss").unwrap(),
                            initial_window: number("initial_window").unwrap(),
                            counting: Counting::Bytes,
                            hystart: HyStartRule::Off,
                            cubic_probe: 0,
                            seed: 0,
                        },
                        1.0,
                    );
                    new.rtprop_at = now;
                    if let Some(rtt) = sample {
                        new.rtprop = Some(rtt);
                        new.rate_known = true;
                        new.pacing_rate = HIGH_GAIN * new.initial_window / rtt.as_s();
                    }
                    bbr = Some(new);
                    phase = Phase::Open;
                }
                "timeout" => {
                    bbr.as_mut().unwrap().on_timeout(&Loss::default(), true);
                    phase = Phase::Timeout;
                }
                "idle_restart" => bbr.as_mut().unwrap().on_resume(now),
                "ack" => {
                    match row["recovery"] {
                        "begin" => phase = Phase::Recovery,
                        "end" => phase = Phase::Open,
                        _ => {}
                    }
                    let bbr = bbr.as_mut().unwrap();
                    bbr.draws.1 = number("draw");
                    bbr.on_feedback(&Feedback {
                        now,
                        newly_delivered: number("newly").unwrap(),
                        newly_lost: number("lost").unwrap(),
                        delivered: number("delivered").unwrap(),
                        prior_delivered: number("prior_delivered").unwrap_or(0),
                        rate_bytes: number("sample_bytes").unwrap_or(0),
                        interval: Span::us(number("interval_us").unwrap_or(0)),
                        app_limited: row["app_limited"] == "1",
                        sample,
                        rtt: sample.unwrap_or_default(),
                        flight: number("inflight").unwrap(),
                        prior_flight: number("prior_inflight").unwrap(),
                        phase,
                        ..Feedback::default()
                    });
                }
                other => panic!("unknown event {other}"),
            }
            compare(bbr.as_ref().unwrap(), &row, line);
            rows += 1;
        }
        assert!(rows > 1000, "{rows} rows");
    }

    fn compare(bbr: &Bbr, row: &BTreeMap<&str, &str>, line: &str) {
        let mode = match bbr.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw => "probe_bw",
            Mode::ProbeRtt => "probe_rtt",
        };
        assert_eq!(mode, row["mode"], "{line}");
        let near = |name: &str, value: f64, tolerance: f64| {
            let expected: f64 = row[name].parse().unwrap();
            let off = (value - expected).abs();
            assert!(off <= tolerance * expected.max(1.0), "{name}: {value} instead of {expected} at {line}");
        };
        near("pacing_gain", bbr.pacing_gain, 1e-5);
        near("cwnd_gain", bbr.cwnd_gain, 1e-5);
        near("btlbw", bbr.bandwidth, 1e-9);
        near("round", bbr.round as f64, 0.0);
        near("full_pipe", f64::from(u8::from(bbr.filled)), 0.0);
        near("pacing_rate", bbr.pacing_rate, 1e-6);
        let rtprop = bbr.rtprop.map(|rtprop| (rtprop.as_ps() / 1_000_000).to_string()).unwrap_or_default();
        assert_eq!(rtprop, row["rtprop_us"], "{line}");
        let window: f64 = row["cwnd"].parse().unwrap();
        assert!((bbr.window - window).abs() <= 2.0, "cwnd: {} instead of {window} at {line}", bbr.window);
    }
}
