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

use giveway_qdisc::blocks::red::{Curve, Detector, RedDecision, spread};
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
pub fn judge(
    calls: &[Call],
    config: &giveway_disciplines::red::Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    let found = Found::of(calls, config, context)?;
    let Found { arrivals, below, above, near, between, drops, per_packet, expected, variance, gap, wrong } =
        found;
    if let Some(wrong) = wrong {
        return Ok(Verdict::Different(wrong));
    }
    let deviation = if variance > 0.0 { (drops as f64 - expected) / variance.sqrt() } else { 0.0 };
    let what = format!(
        "{arrivals} averages within {gap:.2} bytes; {below} below min and {above} above max have equal decisions, {near} \
         within a byte of a threshold differ; of {between} between them {drops} dropped, {expected:.0} expected with a random number per \
         gap ({deviation:+.1} sigma), {per_packet:.0} with one per packet"
    );
    Ok(if deviation.abs() <= SIGMA { Verdict::Alike(what) } else { Verdict::Different(what) })
}

/// Numbers of compared decisions.
#[derive(Default)]
struct Found {
    arrivals: u64,
    below: u64,
    above: u64,
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
    wrong: Option<String>,
}

impl Found {
    fn of(
        calls: &[Call],
        config: &giveway_disciplines::red::Config,
        context: &LinkContext,
    ) -> Result<Found, Invalid> {
        let (curve, weight) = config.law(context)?;
        let Curve { min, max, .. } = curve;
        let mut detector = Detector::new(curve, weight, config.probability.get(), false, None);
        let mut backlog = Backlog::ZERO;
        let mut bytes_of = std::collections::BTreeMap::new();
        // Packets since the last drop, and the value that R is known to exceed since; `None` outside of the
        // thresholds.
        let mut count: Option<(f64, f64)> = None;
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
            let length = backlog.bytes as f64;
            detector.observe(length, 0, Time::from_ps(call.now.saturating_mul(1000)));
            let average = detector.average();
            found.arrivals += 1;
            let gap = (average - call.state as f64 * weight).abs();
            found.gap = found.gap.max(gap);
            let p_b = detector.base();
            let certain = average >= max;
            let near = [min, max].iter().any(|threshold| (average - threshold).abs() <= GAP);
            let here = match (certain, average < min) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            };
            if gap > GAP || (here.is_some_and(|here| here != dropped && !full) && !near) {
                found.wrong = Some(format!(
                    "packet {number}: the average is {average:.2} in the Rust discipline, {:.2} in the kernel, which {}",
                    call.state as f64 * weight,
                    if dropped { "drops the packet" } else { "keeps it" }
                ));
                return Ok(found);
            }
            match here {
                _ if full => {}
                Some(here) if here != dropped => found.near += 1,
                Some(true) => found.above += 1,
                Some(false) => found.below += 1,
                None => found.between += 1,
            }
            // Random decisions only. The first arrival between the thresholds only starts the count, on both
            // sides.
            if let (None, false, Some((since, passed))) = (here, full, count) {
                let reached = ((since + 1.0) * p_b).clamp(passed, 1.0);
                let probability = if passed < 1.0 { (reached - passed) / (1.0 - passed) } else { 1.0 };
                found.per_packet += spread(p_b, since + 1.0, false);
                found.expected += probability;
                found.variance += probability * (1.0 - probability);
                found.drops += u64::from(dropped);
            }
            count = match (here, dropped && !full) {
                (Some(_), _) => None,
                (None, true) => Some((0.0, 0.0)),
                (None, false) => {
                    let next =
                        |(since, passed): (f64, f64)| (since + 1.0, ((since + 1.0) * p_b).clamp(passed, 1.0));
                    Some(count.map_or((0.0, 0.0), next))
                }
            };
            // The detector gets the decision of Linux.
            let _: RedDecision = detector.decide(length, 1.0, || if dropped { 0.0 } else { f64::INFINITY });
            if !dropped {
                backlog.add(bytes);
                bytes_of.insert(number, bytes);
            }
        }
        Ok(found)
    }
}
