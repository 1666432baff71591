//! RED, step by step.
//!
//! The averages are those of our own [`Detector`], which is shown the queue as the kernel had it at each
//! arrival. Below `min` nothing may be dropped, above `max` everything must be. In between both draw, and
//! single draws cannot be compared: the drops that were to be expected are summed up, and the kernel's
//! counted.
//!
//! Floyd and Jacobson have two ways, a draw for each packet and, where they speak of the implementation, one
//! for each gap. They are the same as long as the average does not move. Ours is the first, the kernel's the
//! second: with R from 0 to 1, the n-th packet goes when n p_b exceeds R. So there are two sums, and the
//! kernel's drops are held against that of its own way.
//!
//! The kernel learns that the link is idle only when it is asked for a packet and has none. A parent that
//! counts packets never asks then, and HTB is one. So here no time is ever idle.

use giveway_qdisc::blocks::red::{Curve, Detector, RedDecision, spread};
use giveway_qdisc::{Backlog, LinkContext, Time};

use super::calls::{Call, Came};
use super::verdict::Verdict;

/// The kernel's average is a whole number of 2^-w bytes, cut off at each arrival: that adds up to at most a
/// byte.
const GAP: f64 = 1.0;
/// Standard deviations that chance may be away.
const SIGMA: f64 = 4.0;

/// Compares.
///
/// # Errors
/// If the discipline cannot be built: a sentence.
pub fn ask(
    calls: &[Call],
    config: &giveway_disciplines::red::Config,
    context: &LinkContext,
) -> Result<Verdict, String> {
    let found = Found::of(calls, config, context)?;
    let Found { arrivals, below, above, near, between, drops, ours, expected, variance, gap, wrong } = found;
    if let Some(wrong) = wrong {
        return Ok(Verdict::Different(wrong));
    }
    let off = if variance > 0.0 { (drops as f64 - expected) / variance.sqrt() } else { 0.0 };
    let what = format!(
        "{arrivals} averages within {gap:.2} bytes; {below} below min and {above} above max decided the same, {near} \
         within a byte of a threshold not; of {between} between {drops} dropped where one draw per gap expects {expected:.0} \
         ({off:+.1} sigma) and one per packet {ours:.0}"
    );
    Ok(if off.abs() <= SIGMA { Verdict::Alike(what) } else { Verdict::Different(what) })
}

/// Numbers of compared decisions.
#[derive(Default)]
struct Found {
    arrivals: u64,
    below: u64,
    above: u64,
    /// Decided otherwise because the averages are on two sides of a threshold.
    near: u64,
    between: u64,
    /// Of those between.
    drops: u64,
    /// Expected drops of the Rust discipline among these, with the kernel's gap before each.
    ours: f64,
    /// Expected drops of the kernel's rule among these.
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
    ) -> Result<Found, String> {
        let (curve, weight) = config.law(context).map_err(|invalid| invalid.to_string())?;
        let Curve { min, max, .. } = curve;
        let mut detector = Detector::new(curve, weight, config.probability.get(), false, None);
        let mut held = Backlog::ZERO;
        let mut bytes_of = std::collections::BTreeMap::new();
        // Packets since the last drop, where they count, and what R is known to exceed since.
        let mut count: Option<(f64, f64)> = None;
        let mut found = Found::default();
        for call in calls {
            let Some(Came { number, bytes, .. }) = call.came else {
                if let Some(bytes) = call.sent.and_then(|sent| bytes_of.remove(&sent)) {
                    held.sub(bytes);
                }
                continue;
            };
            let dropped = call.dropped == [number];
            let full = !config.limit.admits(held, bytes);
            let length = held.bytes as f64;
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
                    "packet {number}: the average is {average:.2} here, {:.2} in the kernel, and it is {}",
                    call.state as f64 * weight,
                    if dropped { "dropped there" } else { "kept there" }
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
            // Only what is decided by chance. The first one between only starts the count, in both.
            if let (None, false, Some((since, passed))) = (here, full, count) {
                let reached = ((since + 1.0) * p_b).clamp(passed, 1.0);
                let probability = if passed < 1.0 { (reached - passed) / (1.0 - passed) } else { 1.0 };
                found.ours += spread(p_b, since + 1.0, false);
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
            // Ours decides as the kernel did.
            let _: RedDecision = detector.decide(length, 1.0, || if dropped { 0.0 } else { f64::INFINITY });
            if !dropped {
                held.add(bytes);
                bytes_of.insert(number, bytes);
            }
        }
        Ok(found)
    }
}
