//! Compares GRED, step by step: a RED for each virtual queue, as in [`red`](super::red).
//!
//! The average of a virtual queue is computed for each of its arrivals from the one that Linux had before,
//! and from the length that GRED counts. During an idle time the average of Linux falls linearly, and at most
//! by half; the average of the Rust discipline falls as if packets of no length had arrived. So only the half
//! is tested there, and the average of Linux is taken. Packets that Linux kept must leave the Rust discipline
//! in the same calls.
//!
//! With `grio` some rules differ between Linux and the Rust discipline. Each [`Rule`] is tested: with all of
//! them the decisions must be equal.

use giveway_disciplines::gred::Config;
use giveway_disciplines::{Spec, red};
use giveway_qdisc::{Bytes, Invalid, Limit, LinkContext, Share, Time};

use super::calls::{Arrival, Call, compare};
use super::error::OracleError;
use super::flows::plain;
use super::red::{Follower, Found, Seen};
use super::verdict::Verdict;

/// A rule of Linux that differs from the Rust discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// If any two virtual queues have the same priority, all count the whole queue and have one average. In
    /// the Rust discipline each counts the queues of the same or a higher priority.
    Pair,
    /// An idle virtual queue adds nothing.
    Awake,
    /// With equal priorities the limit of a virtual queue holds for the whole queue; in the Rust discipline
    /// for its own packets.
    Shared,
}

impl Rule {
    const ALL: [Rule; 3] = [Rule::Pair, Rule::Awake, Rule::Shared];

    const fn name(self) -> &'static str {
        match self {
            Rule::Pair => "two equal priorities make all equal",
            Rule::Awake => "idle queues are not added",
            Rule::Shared => "equal priorities share the limits",
        }
    }
}

/// Compares the calls of GRED with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(calls: &[Call], config: &Config, context: &LinkContext) -> Result<Verdict, OracleError> {
    if let Some(wrong) = order(calls, config, context)? {
        return Ok(Verdict::Different(wrong));
    }
    let needed = |rule: &Rule| -> Result<bool, Invalid> {
        let others: Vec<Rule> = Rule::ALL.into_iter().filter(|other| other != rule).collect();
        Ok(!Follow::new(config, context, &others)?.all(calls).found.verdict("").holds())
    };
    let Follow { found, waked, halved, .. } = Follow::new(config, context, &Rule::ALL)?.all(calls);
    let mut names = Vec::new();
    for rule in Rule::ALL {
        if needed(&rule)? {
            names.push(rule.name());
        }
    }
    let rules = if names.is_empty() {
        String::new()
    } else {
        format!(", with these rules of Linux: {}", names.join(", "))
    };
    Ok(found.verdict(&format!(
        "; {waked} idle times, of which {halved} halved the average and none took more; kept packets leave equally{rules}"
    )))
}

/// Makes the calls of a GRED that drops nothing, without the packets that Linux dropped. Returns the first
/// difference, in words.
fn order(calls: &[Call], config: &Config, context: &LinkContext) -> Result<Option<String>, OracleError> {
    let (min, max, limit) = (Some(Limit::Bytes(1 << 33)), Some(Limit::Bytes(1 << 34)), Limit::Bytes(1 << 35));
    let open = |_: &Spec| {
        let weight = Share::new(0.001);
        Spec::red(red::Config { limit, min, max, weight, ..red::Config::default() })
    };
    let vqs = config.vqs.iter().map(open).collect();
    let spec = Spec::gred(Config { vqs, limit: Some(Bytes(1 << 35)), ..config.clone() });
    let kept: Vec<Call> =
        calls.iter().filter(|call| call.arrival.is_none() || call.dropped.is_empty()).cloned().collect();
    let mut rust = spec.build_numbered(context)?;
    Ok(compare(&kept, &mut *rust, &plain).map(|difference| difference.to_string()))
}

/// A virtual queue of Linux.
struct Vq {
    follower: Follower,
    limit: Limit,
    prio: u16,
    bytes: u64,
    /// The average, in steps of the weight.
    state: u64,
    /// True from the departure that left it empty to the next arrival.
    idle: bool,
}

/// All virtual queues.
struct Follow<'a> {
    rules: &'a [Rule],
    default: usize,
    grio: bool,
    /// True if all count the whole queue and have one average.
    shared: bool,
    limit: u64,
    vqs: Vec<Vq>,
    found: Found,
    /// Number of idle times.
    waked: u64,
    /// Number of those that halved the average.
    halved: u64,
}

impl Follow<'_> {
    fn new<'a>(config: &Config, context: &LinkContext, rules: &'a [Rule]) -> Result<Follow<'a>, Invalid> {
        let vq = |(number, spec): (usize, &Spec)| {
            let Spec::red(red) = spec else { return Err(Invalid::new("vqs", "write each as \"(red ...)\"")) };
            Ok(Vq {
                follower: Follower::new(red, context)?,
                limit: red.limit,
                prio: config.prios.get(number).copied().unwrap_or(16),
                bytes: 0,
                state: 0,
                idle: false,
            })
        };
        let vqs = config.vqs.iter().enumerate().map(vq).collect::<Result<Vec<Vq>, Invalid>>()?;
        if usize::from(config.default) >= vqs.len() {
            return Err(Invalid::new(
                "vqs",
                "write the virtual queues, which the oracle does not set up by itself",
            ));
        }
        let equals = vqs.iter().map(|vq| vqs.iter().filter(|other| other.prio == vq.prio).count());
        let same = if rules.contains(&Rule::Pair) { 2 } else { vqs.len() };
        let shared = config.grio && equals.max().is_some_and(|most| most >= same);
        let limit = config.limit.map_or(u64::MAX, |limit| limit.0);
        Ok(Follow {
            rules,
            default: usize::from(config.default),
            grio: config.grio,
            shared,
            limit,
            vqs,
            found: Found::default(),
            waked: 0,
            halved: 0,
        })
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Follows all calls, up to the first difference.
    fn all(mut self, calls: &[Call]) -> Self {
        let mut queued = std::collections::BTreeMap::new();
        for call in calls {
            match call.arrival {
                Some(arrival) => {
                    let at = usize::try_from(arrival.mark).ok().filter(|at| *at < self.vqs.len());
                    let at = at.unwrap_or(self.default);
                    if self.arrived(call, arrival, at) {
                        queued.insert(arrival.number, (at, arrival.bytes));
                    }
                }
                None => {
                    let Some((at, bytes)) = call.sent.and_then(|sent| queued.remove(&sent)) else { continue };
                    self.vqs[at].bytes -= u64::from(bytes);
                    if self.vqs[at].bytes == 0 && !self.shared {
                        self.vqs[at].idle = true;
                    }
                    if self.shared && self.whole() == 0 {
                        self.vqs[0].idle = true;
                    }
                }
            }
            if self.found.wrong.is_some() {
                break;
            }
        }
        self
    }

    /// Bytes of all virtual queues.
    fn whole(&self) -> u64 {
        self.vqs.iter().map(|vq| vq.bytes).sum()
    }

    /// Compares the decision about a packet. Returns true if Linux kept it.
    fn arrived(&mut self, call: &Call, arrival: Arrival, at: usize) -> bool {
        let Arrival { number, bytes, .. } = arrival;
        let (whole, dropped) = (self.whole(), call.dropped == [number]);
        let counted = if self.shared { whole } else { self.vqs[at].bytes };
        let limited = if self.shared && self.has(Rule::Shared) { whole } else { self.vqs[at].bytes };
        let beyond = whole + u64::from(bytes) > self.limit;
        let added = self.added(at);
        // A shared average and its idle time are those of the first virtual queue.
        let average_of = if self.shared { 0 } else { at };
        let Vq { state, idle, .. } = &mut self.vqs[average_of];
        let (before, idle) = (std::mem::replace(state, call.state), std::mem::take(idle));
        let Vq { follower, limit, .. } = &mut self.vqs[at];
        let full = beyond || !limit.admits(giveway_qdisc::Backlog { packets: 0, bytes: limited }, bytes);
        let now = Time::from_ps(call.now.saturating_mul(1000));
        let set = |follower: &mut Follower, state: u64| {
            follower.detector.reset();
            follower.detector.observe(state as f64, 0, now);
        };
        let woke = idle && before > 0;
        // Steps are integers, so half of them can be one less.
        let strange = woke && !(before / 2 - u64::from(before > 1)..=before).contains(&call.state);
        if idle {
            set(follower, call.state);
        } else {
            set(follower, before);
            follower.detector.observe(counted as f64, 0, now);
        }
        self.waked += u64::from(woke);
        self.halved += u64::from(woke && call.state <= before / 2 + 1);
        follower.decided(Seen { number, state: call.state, added, full, dropped }, &mut self.found);
        if strange && self.found.wrong.is_none() {
            let state = call.state;
            self.found.wrong = Some(format!(
                "packet {number}: an idle time changed the average from {before} to {state} steps"
            ));
        }
        if !dropped {
            self.vqs[at].bytes += u64::from(bytes);
        }
        !dropped
    }

    /// The averages that are added to a virtual queue's own, in bytes.
    fn added(&self, at: usize) -> f64 {
        if !self.grio || self.shared {
            return 0.0;
        }
        let of = &self.vqs[at];
        let adds = |(number, vq): &(usize, &Vq)| {
            *number != at && vq.prio <= of.prio && !(vq.idle && self.has(Rule::Awake))
        };
        // Linux adds its words, whatever the weights are.
        let sum: u64 = self.vqs.iter().enumerate().filter(adds).map(|(_, vq)| vq.state).sum();
        sum as f64 * of.follower.weight
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use giveway_qdisc::Streams;

    use super::*;

    /// Largest averages of the three virtual queues, in bytes. The range above `min` is short, and the
    /// probability in it small, so that a qdisc that drops nothing there is plausible.
    const MAX: [u64; 3] = [8000, 6000, 4000];

    /// The calls of a GRED with the averages of Linux, which are integers. With `shared` there is one average
    /// of the whole queue.
    fn linux(shared: bool) -> Vec<Call> {
        let (mut calls, mut queue, mut number, mut now) = (Vec::new(), VecDeque::new(), 0, 0);
        let (mut averages, mut bytes_of, mut idle) = ([0u64; 3], [0u64; 3], [false; 3]);
        while number < 6000 {
            for _ in 0..20 + number % 40 {
                let (mark, bytes) = (number % 3, 200 + (number * 97 % 1300) as u32);
                let (at, group) = (mark as usize, if shared { 0 } else { mark as usize });
                let length = if shared { bytes_of.iter().sum() } else { bytes_of[at] };
                if !std::mem::take(&mut idle[group]) {
                    averages[group] = averages[group] + length - (averages[group] >> 6);
                }
                let state = averages[group];
                let dropped = if state >= MAX[at] << 6 { vec![number] } else { Vec::new() };
                if dropped.is_empty() {
                    bytes_of[at] += u64::from(bytes);
                    queue.push_back((number, at, bytes));
                }
                let arrival = Some(Arrival { number, bytes, mark });
                calls.push(Call { now, arrival, dropped, state, ..Call::default() });
                number += 1;
                now += 10_000;
            }
            for _ in 0..35 {
                let sent = queue.pop_front();
                if let Some((_, at, bytes)) = sent {
                    bytes_of[at] -= u64::from(bytes);
                    let empty = if shared { queue.is_empty() } else { bytes_of[at] == 0 };
                    idle[if shared { 0 } else { at }] |= empty;
                }
                let sent = sent.map(|(number, ..)| number);
                let dropped = Vec::new();
                calls.push(Call { now, dropped, sent, ..Call::default() });
                now += 100_000;
            }
        }
        calls
    }

    fn judged(calls: &[Call], words: &str) -> Verdict {
        let vq = |max: u64| {
            format!("(red limit 10mb min {}b max {max}b weight 0.015625 probability 0.001)", max - 500)
        };
        let text = format!("gred key class {words} vqs [{}]", MAX.map(vq).join(" "));
        let Spec::gred(config) = text.parse().unwrap() else { panic!("the spec is gred") };
        let context = LinkContext {
            mtu: Bytes(1514),
            ..LinkContext::new(giveway_qdisc::Rate::mbit(10), Streams::new(1))
        };
        judge(calls, &config, &context).unwrap()
    }

    #[test]
    fn averages_drops_and_departures_of_each_virtual_queue_are_compared() {
        let calls = linux(false);
        let verdict = judged(&calls, "").to_string();
        assert!(verdict.starts_with("alike") && !verdict.contains("and 0 above max"), "{verdict}");
        assert!(!verdict.contains("rules of Linux"), "{verdict}");
        let mut wrong = calls.clone();
        wrong.iter_mut().rfind(|call| call.arrival.is_some()).unwrap().state += 2 << 6;
        assert!(!judged(&wrong, "").holds());
        let mut wrong = calls.clone();
        let places: Vec<usize> = (0..calls.len()).filter(|at| calls[*at].sent.is_some()).collect();
        (wrong[places[7]].sent, wrong[places[8]].sent) = (calls[places[8]].sent, calls[places[7]].sent);
        let verdict = judged(&wrong, "");
        assert!(!verdict.holds() && verdict.to_string().contains("the kernel sends"), "{verdict}");
        assert!(!judged(&calls, "grio prios [1 2 3]").holds());
    }

    #[test]
    fn two_equal_priorities_are_a_rule_of_linux() {
        let calls = linux(true);
        let verdict = judged(&calls, "grio prios [1 2 2]").to_string();
        assert!(verdict.starts_with("alike") && verdict.contains(Rule::Pair.name()), "{verdict}");
        let verdict = judged(&calls, "grio prios [2 2 2]").to_string();
        assert!(verdict.starts_with("alike") && !verdict.contains(Rule::Pair.name()), "{verdict}");
        assert!(!judged(&calls, "").holds());
    }
}
