//! Compares PIE, step by step.
//!
//! A timer of Linux updates the drop probability from the delay. Each update is computed again from the
//! delays in the journal, by the formula of RFC 8033 and with the rules of Linux that differ from it.
//!
//! Decisions without chance are compared at each arrival. No packet is dropped during the burst allowance,
//! while delay and probability are low, while at most two packets are queued (Linux: fewer than two), and
//! before the accumulated probability is 0.85. From 8.5 on every packet is dropped. The RFC uses the delay at
//! the last update, and Linux the delay of the last packet that left. Between 0.85 and 8.5 decisions are
//! random, and the number of drops is compared with the expected number. The burst allowance is taken from
//! the journal, because Linux decreases it at departures, and the RFC and the Rust discipline at updates.

use std::collections::BTreeSet;

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Outbox, Packet, Qdisc, Span, Time};

use super::calls::{Arrival, calls};
use super::error::OracleError;
use super::verdict::Verdict;
use crate::journal::{Entry, Event, JournalError};

/// Probability 1 in Linux: 2^56 - 1.
const CERTAIN: f64 = ((1u64 << 56) - 1) as f64;
/// Tick of the clock for packet schedulers in Linux, in nanoseconds.
const TICK_NS: u64 = 64;
/// Relative tolerance of a probability. The integer arithmetic of Linux shifts the gains by up to eleven
/// bits.
const CLOSE: f64 = 1e-4;
/// The largest difference between the clocks of the journal and of the kernel.
const BESIDE: Span = Span::us(50);
/// Largest deviation of the number of random drops, in standard deviations.
const SIGMA: f64 = 4.0;

/// A rule of Linux that differs from RFC 8033.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Without delay the probability decreases by a 64th per update, instead of 2 %.
    Sixtyfourth,
    /// Above a delay of 250 ms the probability increases by another 2 % per update.
    Quarter,
    /// The probability can be above 1.
    Beyond,
    /// Without delay the probability decreases only if nothing is queued.
    Empty,
}

const RULES: [Rule; 4] = [Rule::Sixtyfourth, Rule::Quarter, Rule::Beyond, Rule::Empty];

/// Largest plausible delay in a journal.
const LONGEST: Span = Span::s(60);

/// An update.
#[derive(Clone, Copy, Debug)]
struct Update {
    delay: Span,
    probability: f64,
    /// Bytes queued.
    bytes: u32,
}

/// The probability after an update, by the formula of RFC 8033, sections 4.2 and 5.5, and with some rules of
/// Linux.
fn law(
    before: Update,
    (delay, bytes): (Span, u32),
    config: &giveway_disciplines::pie::Config,
    rules: &[Rule],
) -> f64 {
    let seconds = |a: Span, b: Span| a.as_s() - b.as_s();
    let step = f64::from(config.alpha) / 16.0 * seconds(delay, config.target)
        + f64::from(config.beta) / 16.0 * seconds(delay, before.delay);
    let scale = match before.probability {
        probability if probability < 1e-6 => 2048.0,
        probability if probability < 1e-5 => 512.0,
        probability if probability < 1e-4 => 128.0,
        probability if probability < 1e-3 => 32.0,
        probability if probability < 1e-2 => 8.0,
        probability if probability < 1e-1 => 2.0,
        _ => 1.0,
    };
    let mut step = step / scale;
    if before.probability >= 0.1 {
        step = step.min(0.02);
    }
    if rules.contains(&Rule::Quarter) && delay > Span::ms(250) {
        step += 0.02;
    }
    let mut probability = before.probability + step;
    let steady = rules.contains(&Rule::Empty) && bytes > 0;
    if delay.is_zero() && before.delay.is_zero() && !steady {
        probability *= if rules.contains(&Rule::Sixtyfourth) { 1.0 - 1.0 / 64.0 } else { 0.98 };
    }
    probability.clamp(0.0, if rules.contains(&Rule::Beyond) { f64::INFINITY } else { 1.0 })
}

/// Compares a journal of PIE with the Rust discipline.
///
/// # Errors
/// If a delay in the journal is not plausible, or a packet leaves that is not queued.
pub fn judge(
    journal: &[Entry],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    Ok(match found(journal, config, context, &BTreeSet::new())? {
        Ok(found) => found.verdict(""),
        Err(wrong) => Verdict::Different(wrong),
    })
}

/// Compared updates and decisions, of one queue or of several.
#[derive(Default)]
pub(super) struct Found {
    updates: usize,
    /// Updates that do not follow the formula of the RFC, but rules of Linux.
    others: usize,
    /// Decisions without chance.
    certain: u64,
    by_departure: u64,
    random: u64,
    /// Random drops.
    drops: u64,
    expected: f64,
    variance: f64,
}

impl Found {
    /// Adds what was found for another queue.
    pub fn add(&mut self, other: &Found) {
        self.updates += other.updates;
        self.others += other.others;
        self.certain += other.certain;
        self.by_departure += other.by_departure;
        self.random += other.random;
        self.drops += other.drops;
        self.expected += other.expected;
        self.variance += other.variance;
    }

    /// The verdict. `more` is a further result, in words.
    pub fn verdict(&self, more: &str) -> Verdict {
        let Found { updates, others, certain, by_departure, random, drops, expected, variance } = self;
        let laws = match others {
            0 => format!("{updates} updates by the formula of the RFC"),
            others => format!(
                "{updates} updates, {} by the formula of the RFC, {others} by rules of Linux (1/64 less without delay if nothing is queued, 2 % more above 250 ms, \
                 no limit at 1)",
                updates - others
            ),
        };
        let deviation = if *variance > 0.0 { (*drops as f64 - expected) / f64::sqrt(*variance) } else { 0.0 };
        let what = format!(
            "{laws}; {certain} arrivals without chance have equal decisions ({by_departure} of all decided by the delay of the last departure, not of the last update); of {random} others {drops} dropped, {expected:.0} expected \
             ({deviation:+.1} sigma){more}"
        );
        if deviation.abs() <= SIGMA { Verdict::Alike(what) } else { Verdict::Different(what) }
    }
}

/// Compares a journal of PIE. `beyond` are packets that exceed a limit of several queues together. The inner
/// error is the first difference, in words.
pub(super) fn found(
    journal: &[Entry],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
    beyond: &BTreeSet<u32>,
) -> Result<Result<Found, String>, OracleError> {
    let kernel: Vec<Update> = journal
        .iter()
        .filter(|entry| entry.event == Event::Updated)
        .map(|entry| Update {
            delay: Span::ns(entry.flow.saturating_mul(TICK_NS)),
            probability: entry.reserved as f64 / CERTAIN,
            bytes: entry.bytes,
        })
        .collect();
    if let Some(at) = kernel.iter().position(|update| update.delay > LONGEST) {
        return Err(OracleError::Delay { at, delay: kernel[at].delay, most: LONGEST });
    }
    let steps = |rules: &[Rule]| -> Vec<usize> {
        let deviates = |(at, pair): (usize, &[Update])| {
            let probability = law(pair[0], (pair[1].delay, pair[1].bytes), config, rules);
            ((probability - pair[1].probability).abs() > CLOSE * probability.max(1e-4)).then_some(at)
        };
        kernel.windows(2).enumerate().filter_map(deviates).collect()
    };
    if let Some(wrong) = rust_difference(&kernel, config, context) {
        return Ok(Err(wrong));
    }
    let by_rfc = steps(&[]);
    if let Some(at) = steps(&RULES).first() {
        let (before, after) = (kernel[*at], kernel[at + 1]);
        let here = law(before, (after.delay, after.bytes), config, &RULES);
        return Ok(Err(format!(
            "update {at}: from {:.6} with delays of {} and {} to {:.6} in the kernel, {here:.6} by the formula",
            before.probability, before.delay, after.delay, after.probability
        )));
    }
    let (updates, others) = (kernel.len(), by_rfc.len());
    Ok(decisions(journal, &kernel, config, context, beyond)?.map(|found| Found { updates, others, ..found }))
}

/// Gives the Rust discipline the delays of the journal. Returns a message if its probability differs from
/// [`law`] without rules of Linux.
fn rust_difference(
    kernel: &[Update],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
) -> Option<String> {
    let mut qdisc = Spec::pie(config.clone()).build_numbered(context).ok()?;
    let mut out = Outbox::default();
    let mut update = Update { delay: Span::ZERO, probability: 0.0, bytes: 0 };
    // Late enough that a packet can have the largest delay.
    let mut now = Time::ZERO + LONGEST;
    let arrive = |qdisc: &mut dyn Qdisc<u64>, out: &mut Outbox<u64>, at: Time, arrived: Time| {
        let meta = Meta { bytes: 60, flow: FlowKey(0), arrived, ..Meta::default() };
        qdisc.enqueue(Packet { meta, payload: 0 }, &mut Cx::new(at, out));
    };
    arrive(&mut *qdisc, &mut out, now, now);
    for (at, of) in kernel.iter().enumerate() {
        // Just before the update, a packet with this delay leaves, and another one stays queued. Without
        // delay no packet stays.
        let before = now + config.tupdate - Span::ns(1);
        while qdisc.dequeue(&mut Cx::new(before, &mut out)).packet().is_some() {}
        if !of.delay.is_zero() {
            arrive(&mut *qdisc, &mut out, before, Time::from_ps(before.as_ps() - of.delay.as_ps()));
            arrive(&mut *qdisc, &mut out, before, before);
            let _ = qdisc.dequeue(&mut Cx::new(before, &mut out));
        }
        now += config.tupdate;
        arrive(&mut *qdisc, &mut out, now, now);
        let probability = law(update, (of.delay, of.bytes), config, &[]);
        update = Update { delay: of.delay, probability, bytes: of.bytes };
        let mut actual = 0.0;
        qdisc.gauges(&mut |name, value| {
            if name == "drop_probability" {
                actual = value;
            }
        });
        if (actual - probability).abs() > 1e-9 {
            return Some(format!(
                "update {at}: the probability is {probability} by the formula, {actual} in the Rust discipline"
            ));
        }
    }
    None
}

/// Compares the decisions at arrivals. The inner error is the first difference, in words.
fn decisions(
    journal: &[Entry],
    kernel: &[Update],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
    beyond: &BTreeSet<u32>,
) -> Result<Result<Found, String>, JournalError> {
    let calls = calls(journal, false)?;
    let updates_before = updates_before(journal);
    let (mut backlog, mut bytes_of) = (0u64, std::collections::BTreeMap::new());
    let (mut packets, mut accumulated, mut certain, mut random, mut drops) = (0u64, 0.0, 0u64, 0u64, 0u64);
    let (mut expected, mut variance) = (0.0, 0.0);
    // Sojourn time of the last departure, as in Linux: zero if the queue was empty after it.
    let mut sojourn = Span::ZERO;
    let mut by_departure = 0u64;
    let (mut nth, mut updates) = (0, 0);
    // True if an update came after the last compared sum.
    let mut updated = false;
    for call in &calls {
        let Some(Arrival { number, bytes, mark }) = call.arrival else {
            if let Some((arrived, bytes)) = call.sent.and_then(|sent| bytes_of.remove(&sent)) {
                backlog -= u64::from(bytes);
                packets -= 1;
                sojourn = if backlog == 0 { Span::ZERO } else { Span::ns(call.now.saturating_sub(arrived)) };
            }
            continue;
        };
        updated |= updates < updates_before[nth];
        updates = updates_before[nth];
        let update = match updates {
            0 => Update { delay: Span::ZERO, probability: 0.0, bytes: 0 },
            n => kernel[n - 1],
        };
        nth += 1;
        let dropped = call.dropped == [number];
        // The mark is the burst allowance after the call, in ticks.
        let burst = mark > 0;
        let full =
            packets >= config.limit.0 || u32::try_from(number).is_ok_and(|number| beyond.contains(&number));
        // The RFC and the Rust discipline also spare exactly two packets.
        let low = |delay: Span| delay < config.target / 2 && update.probability < 0.2;
        let always = burst || backlog < 2 * context.mtu.0;
        let spared = always || low(sojourn);
        by_departure += u64::from(spared != (always || low(update.delay)));
        let kernel = call.state as f64 / CERTAIN;
        // A sojourn time of about half the target: the journal has a second reading of the clock, so the
        // comparison in Linux is uncertain.
        let half = config.target / 2;
        if !always && !full && sojourn.max(half) - sojourn.min(half) < BESIDE {
            accumulated = kernel;
        } else {
            let expected_drop = if full {
                Some(true)
            } else if spared {
                Some(false)
            } else {
                accumulated = if update.probability == 0.0 { 0.0 } else { accumulated + update.probability };
                match accumulated {
                    sum if sum < 0.85 => Some(false),
                    sum if sum >= 8.5 => Some(true),
                    _ => None,
                }
            };
            match expected_drop {
                Some(expected_drop) if expected_drop != dropped => {
                    return Ok(Err(format!(
                        "packet {number}: {} in the kernel, with a probability of {:.4}, accumulated to {accumulated:.4}, a delay of {sojourn} and {backlog} bytes queued",
                        if dropped { "dropped" } else { "kept" },
                        update.probability,
                    )));
                }
                Some(_) => certain += 1,
                None => {
                    // The probability is known, but not the random number.
                    random += 1;
                    drops += u64::from(dropped);
                    let probability = update.probability.min(1.0);
                    expected += probability;
                    variance += probability * (1.0 - probability);
                }
            }
            if dropped {
                accumulated = 0.0;
            }
            // After a time without delay Linux begins the sum anew, at an update.
            if updated && !spared && !full && !dropped && (update.probability - kernel).abs() <= CLOSE {
                accumulated = kernel;
            }
            updated &= spared || full;
            if !spared && !full && (accumulated - kernel).abs() > CLOSE {
                return Ok(Err(format!(
                    "packet {number}: the accumulated probability is {accumulated:.6}, in the kernel {kernel:.6}"
                )));
            }
        }
        if !dropped {
            backlog += u64::from(bytes);
            packets += 1;
            bytes_of.insert(number, (call.now, bytes));
        }
    }
    Ok(Ok(Found { certain, by_departure, random, drops, expected, variance, ..Found::default() }))
}

/// The number of updates before each arrival.
fn updates_before(journal: &[Entry]) -> Vec<usize> {
    let mut updates = 0;
    let mut before = Vec::new();
    for entry in journal {
        match entry.event {
            Event::Updated => updates += 1,
            Event::Enqueued => before.push(updates),
            _ => {}
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::{Bytes, Rate, Streams};

    fn update(delay_us: u64, probability: f64) -> Entry {
        let (flow, reserved) = (delay_us * 1000 / TICK_NS, (probability * CERTAIN) as u64);
        Entry { now: 0, flow, reserved, number: 0, bytes: 0, event: Event::Updated }
    }

    /// A journal whose probabilities follow the formula with these rules of Linux.
    fn journal(rules: &[Rule], config: &giveway_disciplines::pie::Config) -> Vec<Entry> {
        let delays =
            [0, 8000, 16_000, 40_000, 120_000, 240_000, 320_000, 320_000, 64_000, 16_000, 0, 0, 0, 0, 0];
        let mut before = Update { delay: Span::ZERO, probability: 0.0, bytes: 0 };
        let mut entries = Vec::new();
        for delay in delays.iter().cycle().take(300) {
            let probability = law(before, (Span::us(*delay), 0), config, rules);
            before = Update { delay: Span::us(*delay), probability, bytes: 0 };
            entries.push(update(*delay, probability));
        }
        entries
    }

    #[test]
    fn an_update_by_no_rule_is_a_difference() {
        let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) };
        let config = giveway_disciplines::pie::Config { tupdate: Span::ms(16), ..Default::default() };
        let verdict = |journal: &[Entry]| judge(journal, &config, &context).unwrap().to_string();
        let kernel = verdict(&journal(&RULES, &config));
        assert!(
            kernel.starts_with("alike: 300 updates, ") && kernel.contains("by rules of Linux"),
            "{kernel}"
        );
        let mut wrong = journal(&RULES, &config);
        wrong[200].reserved += 1 << 54;
        assert!(verdict(&wrong).contains("DIFFERENT: update 199"), "{}", verdict(&wrong));
    }

    #[test]
    fn the_rust_discipline_follows_the_formula() {
        let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) };
        let config = giveway_disciplines::pie::Config { tupdate: Span::ms(16), ..Default::default() };
        let updates: Vec<Update> = journal(&[], &config)
            .iter()
            .map(|entry| Update {
                delay: Span::ns(entry.flow.saturating_mul(TICK_NS)),
                probability: 0.0,
                bytes: 0,
            })
            .collect();
        assert_eq!(rust_difference(&updates, &config, &context), None);
        let other = giveway_disciplines::pie::Config { alpha: 3, ..config };
        assert_eq!(rust_difference(&updates, &other, &context), None);
    }
}
