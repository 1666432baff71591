//! PIE, step by step.
//!
//! The kernel's timer updates the probability from the delay; each update is made again from what the delay
//! was, by RFC 8033's law, and with the rules in which the kernel's differs. What chance has no say in is
//! compared at each arrival: nothing is dropped while a burst is let pass, while delay and probability are
//! low, while two packets or less are queued (the kernel: less than two), and before the probability have
//! summed up to 0.85; at 8.5 everything is. The delay is that of the last update, as in the RFC; the kernel's
//! is that of the last packet that left. In between both draw, and the drops that were to be expected are
//! summed up. How long a burst is let pass is taken from the kernel, which counts it down when packets leave;
//! ours does at updates, as the RFC.

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Outbox, Packet, Qdisc, Span, Time};

use super::calls::{Came, calls};
use super::verdict::Verdict;
use crate::journal::{Entry, What};

/// The kernel's probability in parts of 1: 2^56 - 1.
const CERTAIN: f64 = ((1u64 << 56) - 1) as f64;
/// Nanoseconds of a tick of its clock for packet schedulers.
const TICK_NS: u64 = 64;
/// The gains are whole numbers of the kernel's parts, shifted by up to eleven places.
const CLOSE: f64 = 1e-4;
/// The largest difference between the clocks of the journal and of the kernel.
const BESIDE: Span = Span::us(50);
/// Standard deviations that chance may be away.
const SIGMA: f64 = 4.0;

/// A rule of the kernel's that RFC 8033 does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Without delay the probability fall by a 64th per update, not by 2 %.
    Sixtyfourth,
    /// Beyond 250 ms they rise by 2 % more per update.
    Quarter,
    /// They rise above 1.
    Beyond,
}

const RULES: [Rule; 3] = [Rule::Sixtyfourth, Rule::Quarter, Rule::Beyond];

/// No packet of a journal waits so long.
const LONGEST: Span = Span::s(60);

/// An update.
#[derive(Clone, Copy, Debug)]
struct Update {
    delay: Span,
    probability: f64,
}

/// The law of RFC 8033, section 4.2 and 5.5, from one update to the next.
fn law(before: Update, delay: Span, config: &giveway_disciplines::pie::Config, rules: &[Rule]) -> f64 {
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
    if delay.is_zero() && before.delay.is_zero() {
        probability *= if rules.contains(&Rule::Sixtyfourth) { 1.0 - 1.0 / 64.0 } else { 0.98 };
    }
    probability.clamp(0.0, if rules.contains(&Rule::Beyond) { f64::INFINITY } else { 1.0 })
}

/// Compares.
///
/// # Errors
/// If the discipline cannot be built: a sentence.
pub fn ask(
    journal: &[Entry],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
) -> Result<Verdict, String> {
    let kernel: Vec<Update> = journal
        .iter()
        .filter(|entry| entry.what == What::Updated)
        .map(|entry| Update {
            delay: Span::ns(entry.flow.saturating_mul(TICK_NS)),
            probability: entry.reserved as f64 / CERTAIN,
        })
        .collect();
    if let Some(at) = kernel.iter().position(|update| update.delay > LONGEST) {
        return Err(format!(
            "update {at} has a delay of {}, and no packet waits longer than {LONGEST}",
            kernel[at].delay
        ));
    }
    let steps = |rules: &[Rule]| -> Vec<usize> {
        let off = |(at, pair): (usize, &[Update])| {
            let probability = law(pair[0], pair[1].delay, config, rules);
            ((probability - pair[1].probability).abs() > CLOSE * probability.max(1e-4)).then_some(at)
        };
        kernel.windows(2).enumerate().filter_map(off).collect()
    };
    if let Some(wrong) = ours_differs(&kernel, config, context) {
        return Ok(Verdict::Different(wrong));
    }
    let by_rfc = steps(&[]);
    if let Some(at) = steps(&RULES).first() {
        let (before, after) = (kernel[*at], kernel[at + 1]);
        let here = law(before, after.delay, config, &RULES);
        return Ok(Verdict::Different(format!(
            "update {at}: from {:.6} with delays of {} and {} to {:.6} in the kernel, {here:.6} here",
            before.probability, before.delay, after.delay, after.probability
        )));
    }
    let updates = kernel.len();
    let laws = match by_rfc.len() {
        0 => format!("{updates} updates by the RFC's law"),
        others => format!(
            "{updates} updates, {} by the RFC's law, {others} by rules of the kernel's own (a 64th off without delay, 2 % on above 250 ms, and no end at 1)",
            updates - others
        ),
    };
    decisions(journal, &kernel, config, context).map(|found| match found {
        Ok(decided) => Verdict::Alike(format!("{laws}; {decided}")),
        Err(wrong) => Verdict::Different(wrong),
    })
}

/// Our discipline gets the same delays, and must have the probability of the law above, with the RFC's rules.
fn ours_differs(
    kernel: &[Update],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
) -> Option<String> {
    let mut ours = Spec::pie(config.clone()).build_numbered(context).ok()?;
    let mut out = Outbox::default();
    let mut update = Update { delay: Span::ZERO, probability: 0.0 };
    // A minute after nothing: a packet may have waited for long.
    let mut now = Time::ZERO + LONGEST;
    let come = |ours: &mut dyn Qdisc<u64>, out: &mut Outbox<u64>, at: Time, arrived: Time| {
        let meta = Meta { bytes: 60, flow: FlowKey(0), arrived, ..Meta::default() };
        ours.enqueue(Packet { meta, payload: 0 }, &mut Cx::new(at, out));
    };
    come(&mut *ours, &mut out, now, now);
    for (at, of) in kernel.iter().enumerate() {
        // Just before the update one leaves that waited as long, and another one stays behind it; without
        // delay nobody stays.
        let before = now + config.tupdate - Span::ns(1);
        while ours.dequeue(&mut Cx::new(before, &mut out)).packet().is_some() {}
        if !of.delay.is_zero() {
            come(&mut *ours, &mut out, before, Time::from_ps(before.as_ps() - of.delay.as_ps()));
            come(&mut *ours, &mut out, before, before);
            let _ = ours.dequeue(&mut Cx::new(before, &mut out));
        }
        now += config.tupdate;
        come(&mut *ours, &mut out, now, now);
        let probability = law(update, of.delay, config, &[]);
        update = Update { delay: of.delay, probability };
        let mut here = 0.0;
        ours.gauges(&mut |name, value| {
            if name == "drop_probability" {
                here = value;
            }
        });
        if (here - probability).abs() > 1e-9 {
            return Some(format!("update {at}: the law of the judge gives {probability}, ours {here}"));
        }
    }
    None
}

/// Checks the arrivals. Returns a sentence in both cases: the result, or the difference.
fn decisions(
    journal: &[Entry],
    kernel: &[Update],
    config: &giveway_disciplines::pie::Config,
    context: &LinkContext,
) -> Result<Result<String, String>, String> {
    // Calls and updates in the order in which they were.
    let calls = calls(journal, false)?;
    let updates_before = updates_before(journal);
    let (mut held, mut bytes_of) = (0u64, std::collections::BTreeMap::new());
    let (mut packets, mut accumulated, mut certain, mut drawn, mut drops) = (0u64, 0.0, 0u64, 0u64, 0u64);
    let (mut expected, mut variance) = (0.0, 0.0);
    // How long the last packet waited, in the kernel's reckoning: not at all, when nothing stayed behind it.
    let mut waited = Span::ZERO;
    let mut otherwise = 0u64;
    let mut nth = 0;
    for call in &calls {
        let Some(Came { number, bytes, mark }) = call.came else {
            if let Some((came, bytes)) = call.sent.and_then(|sent| bytes_of.remove(&sent)) {
                held -= u64::from(bytes);
                packets -= 1;
                waited = if held == 0 { Span::ZERO } else { Span::ns(call.now.saturating_sub(came)) };
            }
            continue;
        };
        let update = match updates_before[nth] {
            0 => Update { delay: Span::ZERO, probability: 0.0 },
            n => kernel[n - 1],
        };
        nth += 1;
        let dropped = call.dropped == [number];
        // The mark is the burst allowance behind the call, in ticks.
        let burst = mark > 0;
        let full = packets >= config.limit.0;
        // The RFC and ours spare two packets exactly, too.
        let low = |delay: Span| delay < config.target / 2 && update.probability < 0.2;
        let always = burst || held < 2 * context.mtu.0;
        let spared = always || low(waited);
        otherwise += u64::from(spared != (always || low(update.delay)));
        let kernel = call.state as f64 / CERTAIN;
        // What waited half the target, as far as can be said: the clock was read once more for the journal.
        let half = config.target / 2;
        if !always && !full && waited.max(half) - waited.min(half) < BESIDE {
            accumulated = kernel;
        } else {
            let fate = if full {
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
            match fate {
                Some(fate) if fate != dropped => {
                    return Ok(Err(format!(
                        "packet {number}: {} in the kernel, with probability of {:.4}, {accumulated:.4} in all, a delay of {waited} and {held} bytes queued",
                        if dropped { "dropped" } else { "kept" },
                        update.probability,
                    )));
                }
                Some(_) => certain += 1,
                None => {
                    // What it draws against is known at all of these.
                    drawn += 1;
                    drops += u64::from(dropped);
                    let probability = update.probability.min(1.0);
                    expected += probability;
                    variance += probability * (1.0 - probability);
                }
            }
            if dropped {
                accumulated = 0.0;
            }
            if !spared && !full && (accumulated - kernel).abs() > CLOSE {
                return Ok(Err(format!(
                    "packet {number}: the probability sum up to {accumulated:.6}, in the kernel to {kernel:.6}"
                )));
            }
        }
        if !dropped {
            held += u64::from(bytes);
            packets += 1;
            bytes_of.insert(number, (call.now, bytes));
        }
    }
    let off = if variance > 0.0 { (drops as f64 - expected) / f64::sqrt(variance) } else { 0.0 };
    let what = format!(
        "{certain} arrivals without chance decided the same, {otherwise} of all by the last packet's delay and not by the last update's; of {drawn} others {drops} dropped where {expected:.0} were expected \
         ({off:+.1} sigma)"
    );
    Ok(if off.abs() <= SIGMA { Ok(what) } else { Err(what) })
}

/// For each arrival, how many updates there were.
fn updates_before(journal: &[Entry]) -> Vec<usize> {
    let mut updates = 0;
    let mut before = Vec::new();
    for entry in journal {
        match entry.what {
            What::Updated => updates += 1,
            What::Enqueued => before.push(updates),
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
        Entry { now: 0, flow, reserved, number: 0, bytes: 0, what: What::Updated }
    }

    /// A kernel whose probability follow the law under these rules.
    fn journal(rules: &[Rule], config: &giveway_disciplines::pie::Config) -> Vec<Entry> {
        let delays =
            [0, 8000, 16_000, 40_000, 120_000, 240_000, 320_000, 320_000, 64_000, 16_000, 0, 0, 0, 0, 0];
        let mut before = Update { delay: Span::ZERO, probability: 0.0 };
        let mut entries = Vec::new();
        for delay in delays.iter().cycle().take(300) {
            let probability = law(before, Span::us(*delay), config, rules);
            before = Update { delay: Span::us(*delay), probability };
            entries.push(update(*delay, probability));
        }
        entries
    }

    #[test]
    fn updates_are_distinguished_by_their_rules() {
        let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) };
        let config = giveway_disciplines::pie::Config { tupdate: Span::ms(16), ..Default::default() };
        let verdict = |journal: &[Entry]| ask(journal, &config, &context).unwrap().to_string();
        let kernel = verdict(&journal(&RULES, &config));
        assert!(
            kernel.starts_with("alike: 300 updates, ") && kernel.contains("rules of the kernel's own"),
            "{kernel}"
        );
        let mut wrong = journal(&RULES, &config);
        wrong[200].reserved += 1 << 54;
        assert!(verdict(&wrong).contains("DIFFERENT: update 199"), "{}", verdict(&wrong));
    }

    #[test]
    fn the_law_is_that_of_ours() {
        let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) };
        let config = giveway_disciplines::pie::Config { tupdate: Span::ms(16), ..Default::default() };
        let updates: Vec<Update> = journal(&[], &config)
            .iter()
            .map(|entry| Update { delay: Span::ns(entry.flow.saturating_mul(TICK_NS)), probability: 0.0 })
            .collect();
        assert_eq!(ours_differs(&updates, &config, &context), None);
        let other = giveway_disciplines::pie::Config { alpha: 3, ..config };
        assert_eq!(ours_differs(&updates, &other, &context), None);
    }
}
