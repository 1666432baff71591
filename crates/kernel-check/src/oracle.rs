//! The kernel's own qdiscs as an oracle for ours: the same arrivals at the same times, and do they do the
//! same?
//!
//! A program of ours stands before and behind the functions of the kernel's qdisc and writes down each call
//! with what came of it (`kernel/test/oracle.bpf.c`). Here the Rust discipline of the same name is asked the
//! same.
//!
//! - `drr`, `sfq`, `codel` and `fq_codel` decide by their calls alone, without random numbers:
//!   every departure and every drop is compared. Where CoDel's rules differ, a [`model`] of both says in
//!   which; that is an experiment, not an excuse: with ours it must do what ours does, with the kernel's what
//!   the kernel did.
//! - [`red`] and [`pie`] draw. What they draw against is compared at each step, what is certain
//!   exactly, and the draws by their sum.
//!
//! Queues are chosen by the mark of a packet in the kernel. Here a flow is found for each of them that ours
//! hashes to the bucket of the same number, so that neither has collisions and a tie goes to the same.

pub mod calls;
pub mod model;
pub mod pie;
pub mod red;
mod verdict;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Bytes, FlowKey, LinkContext, Rate, Span, Streams};

use crate::journal::{Entry, What};
use calls::{Call, Difference, calls, compare};
use model::{Model, Rule, STEP_NS, Setup};

pub use verdict::Verdict;

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Packets that came to the kernel's qdisc.
    pub came: u64,
    /// Packets that left it.
    pub sent: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Equality of the decisions.
    pub verdict: Verdict,
}

/// Compares a discipline with the kernel's qdisc that wrote a journal. `rate` is the rate of the link.
///
/// # Errors
/// A sentence if the text is not a discipline, or the journal is inconsistent.
pub fn ask(journal: &[Entry], text: &str, rate: Rate) -> Result<Answer, String> {
    let spec: Spec = text.parse().map_err(|error| format!("{error}"))?;
    // The kernel counts the header of the link.
    let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(rate, Streams::new(1)) };
    let count = |what: fn(&What) -> bool| journal.iter().filter(|entry| what(&entry.what)).count() as u64;
    let came = count(|what| *what == What::Enqueued);
    let sent = count(|what| *what == What::Sent);
    let dropped = count(|what| matches!(what, What::Dropped(_)));
    let calls = calls(journal, matches!(spec, Spec::drr(_)))?;
    let verdict = match &spec {
        Spec::red(config) => red::ask(&calls, config, &context)?,
        Spec::pie(config) => pie::ask(journal, config, &context)?,
        _ => same(&calls, &spec, &context)?,
    };
    Ok(Answer { came, sent, dropped, verdict })
}

/// Compares a discipline without random numbers.
fn same(calls: &[Call], spec: &Spec, context: &LinkContext) -> Result<Verdict, String> {
    let keys = keys(spec, context);
    let key = |mark: u64| keys.get(mark as usize).copied().unwrap_or(FlowKey(mark));
    let mut ours = spec.build_numbered(context).map_err(|invalid| invalid.to_string())?;
    let flows = keys.len() as u64;
    let marks = calls.iter().filter_map(|call| Some(call.came?.mark));
    if let Some(mark) = marks.max().filter(|mark| flows > 0 && *mark >= flows) {
        return Err(format!("a packet has mark {mark}, and {spec} has flows 0 to {}", flows - 1));
    }
    let Some(difference) = compare(calls, &mut *ours, &key) else { return Ok(Verdict::Equal) };
    match setup(spec, context) {
        Some(setup) => Ok(explain(calls, difference, spec, context, &key, setup)),
        None => Ok(Verdict::Different(difference.to_string())),
    }
}

/// The rules that are the reason, if they are.
fn explain(
    calls: &[Call],
    difference: Difference,
    spec: &Spec,
    context: &LinkContext,
    key: &dyn Fn(u64) -> FlowKey,
    setup: Setup,
) -> Verdict {
    let modelled = |rules: &[Rule]| compare(calls, &mut Model::new(setup, rules), &FlowKey);
    // With our rules the model does what ours does, beyond where the kernel does something else.
    let mut ours = spec.build_numbered(context).expect("it was built before");
    let answers = calls::answers(calls, &mut *ours, key);
    if let Some(wrong) = compare(&answers, &mut Model::new(setup, &[]), &FlowKey) {
        return Verdict::Different(format!("{difference}; and the model is not ours: {wrong}"));
    }
    if let Some(other) = modelled(&Rule::ALL) {
        return Verdict::Different(format!("{difference}; with all of the kernel's rules: {other}"));
    }
    let without = |rule: &Rule| Rule::ALL.into_iter().filter(|other| other != rule).collect::<Vec<_>>();
    let needed = Rule::ALL.into_iter().filter(|rule| modelled(&without(rule)).is_some()).collect::<Vec<_>>();
    match modelled(&needed) {
        None => Verdict::Explained(difference, needed),
        // Each of two may do where both are missed.
        Some(_) => Verdict::Explained(difference, Rule::ALL.to_vec()),
    }
}

/// A flow for each bucket of ours, in their order; none if each flow has its own queue.
fn keys(spec: &Spec, context: &LinkContext) -> Vec<FlowKey> {
    let secret = context.streams.rng().word();
    let (buckets, bucket): (u32, Box<dyn Fn(u64) -> u64>) = match spec {
        Spec::sfq(config) => {
            let (key, mask) = (mix(0, secret), u64::from(config.divisor - 1));
            (config.divisor, Box::new(move |flow| mix(flow, key) & mask))
        }
        Spec::fq_codel(config) => {
            let flows = u128::from(config.flows);
            (config.flows, Box::new(move |flow| ((u128::from(mix(flow, secret)) * flows) >> 64) as u64))
        }
        _ => return Vec::new(),
    };
    let mut keys = vec![None; buckets as usize];
    let mut missing = buckets;
    for flow in 0.. {
        let place = &mut keys[bucket(flow) as usize];
        if place.is_none() {
            *place = Some(FlowKey(flow));
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    keys.into_iter().flatten().collect()
}

/// Parameters of the model.
fn setup(spec: &Spec, context: &LinkContext) -> Option<Setup> {
    let steps = |span: Span| span.as_ps() / 1000 / STEP_NS;
    let mtu = context.mtu.0;
    match spec {
        Spec::codel(config) => Some(Setup {
            limit: config.limit.0,
            flows: 0,
            quantum: 0,
            batch: 1,
            target: steps(config.target),
            interval: steps(config.interval),
            mtu,
        }),
        Spec::fq_codel(config) => Some(Setup {
            limit: config.limit.0,
            flows: config.flows,
            quantum: config.quantum.map_or(mtu + 14, |quantum| quantum.0) as i64,
            batch: config.drop_batch as usize,
            target: steps(config.target),
            interval: steps(config.interval),
            mtu,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::calls::{Came, answers};
    use super::*;

    /// Bursts and pauses, in CoDel's steps: packets of 60 to 1,514 bytes in eight flows come, and the link
    /// asks for one after the other. What came of it is for a discipline to say.
    fn traffic(packets: u64) -> Vec<Call> {
        let mut word = 1u64;
        let mut drawn = |below: u64| {
            word = mix(word, 0x1234_5678);
            word % below
        };
        let (mut now, mut calls) = (0, Vec::new());
        let mut number = 0;
        while number < packets {
            for _ in 0..drawn(60) {
                let came = Came { number, bytes: 60 + drawn(1455) as u32, mark: drawn(8) };
                calls.push(Call {
                    now: now * STEP_NS,
                    came: Some(came),
                    dropped: vec![],
                    sent: None,
                    state: 0,
                });
                number += 1;
                now += drawn(30);
            }
            for _ in 0..drawn(70) {
                calls.push(Call { now: now * STEP_NS, came: None, dropped: vec![], sent: None, state: 0 });
                now += drawn(900);
            }
        }
        calls
    }

    fn context() -> LinkContext {
        LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) }
    }

    const SPECS: [&str; 4] = [
        "codel limit 200p target 4999168ns interval 99999744ns",
        "codel limit 1000p target 999424ns interval 9999360ns",
        "fq_codel limit 100p flows 8 quantum 1514 target 999424ns interval 9999360ns noecn",
        "fq_codel limit 10240p flows 16 quantum 300 target 499712ns interval 4999168ns noecn",
    ];

    #[test]
    fn a_mark_that_is_no_flow_is_refused() {
        let entry = |what, number, flow| Entry { now: 0, flow, reserved: 0, number, bytes: 100, what };
        let journal = [entry(What::Enqueued, 0, 16), entry(What::NothingHeld, 0, 0)];
        let sentence = ask(&journal, SPECS[3], Rate::mbit(8)).unwrap_err();
        assert!(sentence.contains("mark 16") && sentence.contains("flows 0 to 15"), "{sentence}");
    }

    #[test]
    fn with_our_rules_the_model_does_what_ours_does() {
        let calls = traffic(20_000);
        for text in SPECS {
            let spec: Spec = text.parse().unwrap();
            let keys = keys(&spec, &context());
            let key = |mark: u64| keys.get(mark as usize).copied().unwrap_or(FlowKey(mark));
            let answers = answers(&calls, &mut *spec.build(&context()).unwrap(), &key);
            let dropped: usize = answers.iter().map(|call| call.dropped.len()).sum();
            assert!(dropped > 100, "{text}: {dropped}");
            let setup = setup(&spec, &context()).unwrap();
            assert_eq!(compare(&answers, &mut Model::new(setup, &[]), &FlowKey), None, "{text}");
            assert!(matches!(same(&answers, &spec, &context()), Ok(Verdict::Equal)), "{text}");
        }
    }

    /// A qdisc with the kernel's rules differs from the Rust discipline by exactly these rules.
    #[test]
    fn a_difference_is_explained_by_the_rules_that_make_it() {
        let calls = traffic(20_000);
        for (text, rules) in [
            (SPECS[1], vec![Rule::Root]),
            (SPECS[2], vec![Rule::Root, Rule::Behind, Rule::Alone, Rule::Half, Rule::Count]),
        ] {
            let spec: Spec = text.parse().unwrap();
            let mut kernel = Model::new(setup(&spec, &context()).unwrap(), &Rule::ALL);
            let answers = answers(&calls, &mut kernel, &FlowKey);
            let Ok(Verdict::Explained(_, found)) = same(&answers, &spec, &context()) else {
                panic!("{text}")
            };
            assert_eq!(found, rules, "{text}");
        }
    }

    #[test]
    fn what_no_rule_explains_is_different() {
        let spec: Spec = SPECS[2].parse().unwrap();
        let mut kernel = Model::new(setup(&spec, &context()).unwrap(), &Rule::ALL);
        let mut answers = answers(&traffic(5000), &mut kernel, &FlowKey);
        let last = answers.iter_mut().rfind(|call| call.sent.is_some()).unwrap();
        last.sent = Some(0);
        let verdict = same(&answers, &spec, &context()).unwrap();
        assert!(!verdict.holds() && verdict.to_string().contains("the kernel sends 0"), "{verdict}");
    }

    #[test]
    fn each_bucket_has_a_flow() {
        let spec: Spec = "sfq divisor 64".parse().unwrap();
        let keys = keys(&spec, &context());
        let secret = mix(0, context().streams.rng().word());
        let buckets: Vec<u64> = keys.iter().map(|key| mix(key.0, secret) & 63).collect();
        assert_eq!(buckets, (0..64).collect::<Vec<_>>());
    }

    /// RED as the kernel has it, with an average in whole numbers; it drops every fiftieth packet between the
    /// thresholds.
    fn red(calls: &[Call]) -> Vec<Call> {
        let (mut average, mut held, mut queue) = (0u64, 0u64, std::collections::VecDeque::new());
        let (mut count, mut answers) = (0, Vec::new());
        for call in calls {
            let mut call = call.clone();
            match call.came {
                Some(Came { number, bytes, .. }) => {
                    average = average + held - (average >> 6);
                    call.state = average;
                    let between = (20_000 << 6..60_000 << 6).contains(&average);
                    count += u64::from(between);
                    if average >= 60_000 << 6 || (between && count % 50 == 0) {
                        call.dropped = vec![number];
                    } else {
                        held += u64::from(bytes);
                        queue.push_back((number, bytes));
                    }
                }
                None => {
                    let (number, bytes) = queue.pop_front().unzip();
                    (call.sent, held) = (number, held - u64::from(bytes.unwrap_or(0)));
                }
            }
            answers.push(call);
        }
        answers
    }

    #[test]
    fn averages_and_certain_drops_of_red_are_compared() {
        let text = "red limit 10mb min 20000b max 60000b avpkt 1000b weight 0.015625 probability 0.02";
        let Spec::red(config) = text.parse().unwrap() else { panic!("it is red") };
        let mut calls = red(&traffic(20_000));
        let verdict = red::ask(&calls, &config, &context()).unwrap();
        let sentence = verdict.to_string();
        assert!(sentence.contains("averages within") && !sentence.contains("of 0 between"), "{sentence}");
        let kept = calls.iter_mut().filter(|call| call.came.is_some() && call.dropped.is_empty());
        kept.last().unwrap().state += 2 << 6;
        assert!(!red::ask(&calls, &config, &context()).unwrap().holds());
    }
}
