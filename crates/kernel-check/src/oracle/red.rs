//! Compares RED, step by step.
//!
//! The [`Detector`] of the Rust discipline gets the queue length of Linux at each arrival, and the averages
//! are compared. Below `min` no packet may be dropped, and above `max` every packet must be. Between them
//! decisions are random, so the number of drops is compared with the expected number.
//!
//! Floyd and Jacobson describe two methods: a random number for each packet and, for implementations, one for
//! each gap between drops. They are equivalent while the average is constant. The Rust discipline uses the
//! first, Linux the second: with R uniform from 0 to 1, the n-th packet is dropped when n p_b exceeds R. Both
//! expected numbers are computed, and the drops of Linux are compared with the number of its method.
//!
//! Linux detects that the link is idle only by a dequeue of an empty queue. A parent that counts packets,
//! such as HTB, makes no such call, so idle times are ignored here.

use giveway_disciplines::red::Config;
use giveway_qdisc::blocks::red::{Curve, Detector, spread};
use giveway_qdisc::{Backlog, Invalid, LinkContext, Time};

use super::calls::{Arrival, Call};
use super::error::OracleError;
use super::verdict::Verdict;

/// Largest difference of the averages, in bytes. Linux truncates the average to a multiple of 2^-w bytes at
/// each arrival, which adds up to at most a byte.
const GAP: f64 = 1.0;
/// Largest deviation of the number of random drops, in standard deviations.
const SIGMA: f64 = 4.0;

/// Compares the calls of RED with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(calls: &[Call], config: &Config, context: &LinkContext) -> Result<Verdict, OracleError> {
    Ok(found(calls, config, context)?.verdict(""))
}

/// Numbers of compared decisions.
#[derive(Default)]
pub(super) struct Found {
    arrivals: u64,
    below: u64,
    above: u64,
    /// Packets beyond the limit.
    full: u64,
    /// Arrivals with different decisions because the averages are on different sides of a threshold.
    near: u64,
    between: u64,
    /// Random drops between the thresholds.
    drops: u64,
    /// Expected number of random drops with one random number per packet, as in the Rust discipline.
    per_packet: f64,
    /// Expected number of random drops with one random number per gap, as in Linux.
    expected: f64,
    variance: f64,
    /// The largest difference of the averages, in bytes.
    gap: f64,
    /// The first difference.
    pub wrong: Option<String>,
}

impl Found {
    /// The verdict. `more` is a further result, in words.
    pub fn verdict(self, more: &str) -> Verdict {
        let Found { arrivals, below, above, full, near, between, drops, .. } = self;
        let Found { per_packet, expected, variance, gap, wrong, .. } = self;
        if let Some(wrong) = wrong {
            return Verdict::Different(wrong);
        }
        let deviation = if variance > 0.0 { (drops as f64 - expected) / variance.sqrt() } else { 0.0 };
        let full = if full > 0 { format!(" and {full} beyond the limit") } else { String::new() };
        let what = format!(
            "{arrivals} averages within {gap:.2} bytes; {below} below min and {above} above max{full} have equal decisions, {near} \
             within a byte of a threshold differ; of {between} between them {drops} dropped, {expected:.0} expected with a random number per \
             gap ({deviation:+.1} sigma), {per_packet:.0} with one per packet{more}"
        );
        if deviation.abs() <= SIGMA { Verdict::Alike(what) } else { Verdict::Different(what) }
    }
}

/// An arrival at a RED of Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub number: u64,
    /// The average in Linux, in steps of the weight.
    pub state: u64,
    /// An average that is added before the decision, in bytes.
    pub added: f64,
    /// True if the packet exceeds a limit.
    pub full: bool,
    pub dropped: bool,
}

/// A RED of Linux, followed with the detector of the Rust discipline.
pub(super) struct Follower {
    curve: Curve,
    probability: f64,
    pub weight: f64,
    pub detector: Detector,
    /// Packets since the last drop, and the value that R is known to exceed since; `None` outside of the
    /// thresholds.
    count: Option<(f64, f64)>,
    /// True after a packet beyond the limit, until the count starts anew: Linux may have drawn before it
    /// looked at the limit.
    unknown: bool,
}

impl Follower {
    pub fn new(config: &Config, context: &LinkContext) -> Result<Follower, Invalid> {
        let (curve, weight) = config.law(context)?;
        let probability = config.probability.get();
        let detector = Detector::new(curve, weight, probability, false, None);
        Ok(Follower { curve, probability, weight, detector, count: None, unknown: false })
    }

    /// Compares the decision about a packet that the detector has observed.
    pub fn decided(&mut self, seen: Seen, found: &mut Found) {
        let Seen { number, state, added, full, dropped } = seen;
        let Curve { min, max, .. } = self.curve;
        let kernel = state as f64 * self.weight;
        let gap = (self.detector.average() - kernel).abs();
        let average = self.detector.average() + added;
        found.arrivals += 1;
        found.gap = found.gap.max(gap);
        let p_b = self.curve.base(average, self.probability);
        let near = [min, max].iter().any(|threshold| (average - threshold).abs() <= GAP);
        let here = match (average >= max, average < min) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        let expected = if full { Some(true) } else { here };
        if gap > GAP || (expected.is_some_and(|expected| expected != dropped) && (full || !near)) {
            found.wrong = Some(format!(
                "packet {number}: the average is {average:.2} in the Rust discipline, {:.2} in the kernel, which {}",
                kernel + added,
                if dropped { "drops the packet" } else { "keeps it" }
            ));
            return;
        }
        match here {
            _ if full => found.full += 1,
            Some(here) if here != dropped => found.near += 1,
            Some(true) => found.above += 1,
            Some(false) => found.below += 1,
            None => found.between += 1,
        }
        // Random decisions only. The first arrival between the thresholds only starts the count, on both
        // sides.
        let known = !full && !self.unknown;
        if let (None, true, Some((since, passed))) = (here, known, self.count) {
            let reached = ((since + 1.0) * p_b).clamp(passed, 1.0);
            let probability = if passed < 1.0 { (reached - passed) / (1.0 - passed) } else { 1.0 };
            found.per_packet += spread(p_b, since + 1.0, false);
            found.expected += probability;
            found.variance += probability * (1.0 - probability);
            found.drops += u64::from(dropped);
        }
        self.unknown = here.is_none() && (full || (self.unknown && !dropped));
        self.count = match (here, dropped && !full) {
            (Some(_), _) => None,
            (None, true) => Some((0.0, 0.0)),
            (None, false) => {
                let next =
                    |(since, passed): (f64, f64)| (since + 1.0, ((since + 1.0) * p_b).clamp(passed, 1.0));
                Some(self.count.map_or((0.0, 0.0), next))
            }
        };
    }
}

fn found(calls: &[Call], config: &Config, context: &LinkContext) -> Result<Found, Invalid> {
    let mut follower = Follower::new(config, context)?;
    let mut backlog = Backlog::ZERO;
    let mut bytes_of = std::collections::BTreeMap::new();
    let mut found = Found::default();
    for call in calls {
        let Some(Arrival { number, bytes, .. }) = call.arrival else {
            if let Some(bytes) = call.sent.and_then(|sent| bytes_of.remove(&sent)) {
                backlog.sub(bytes);
            }
            continue;
        };
        let dropped = call.dropped == [number];
        let full = !config.limit.admits(backlog, bytes);
        let now = Time::from_ps(call.now.saturating_mul(1000));
        follower.detector.observe(backlog.bytes as f64, 0, now);
        follower.decided(Seen { number, state: call.state, added: 0.0, full, dropped }, &mut found);
        if found.wrong.is_some() {
            return Ok(found);
        }
        if !dropped {
            backlog.add(bytes);
            bytes_of.insert(number, bytes);
        }
    }
    Ok(found)
}
