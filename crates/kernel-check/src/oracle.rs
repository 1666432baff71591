//! Uses the qdiscs of Linux as an oracle for the Rust disciplines: both get the same arrivals at the same
//! times, and their decisions are compared.
//!
//! A BPF program records each call of a qdisc of Linux with its result (`kernel/test/oracle.bpf.c`). The Rust
//! discipline of the same name gets the same calls.
//!
//! - `drr`, `ets`, `sfq`, `htb`, `codel` and `fq_codel` use no random numbers: every departure and every
//!   drop is compared. If the rules of CoDel differ, a [`model`] that can follow either set of rules finds
//!   the rules that differ. The explanation is tested: with the rules of the Rust discipline, the model must
//!   decide like the Rust discipline, and with the rules of Linux, like Linux.
//! - [`hfsc`] and [`fq`] have other rules in Linux, and a model of each that can follow them.
//! - [`cake`] draws random numbers, which the journal has: a model of it decides with the same numbers.
//! - [`red`] and [`pie`] use random numbers. Their averages or probabilities are compared at each step,
//!   decisions without chance exactly, and random decisions by their number. [`gred`] and [`fq_pie`] do the
//!   same for each virtual queue and each flow, and compare the departures of the packets that Linux kept.
//!
//! In Linux the mark of a packet selects its queue. Here a flow is chosen for each queue that the Rust
//! discipline hashes to the bucket of the same number, so that neither side has collisions, and ties are
//! resolved equally.

pub mod cake;
pub mod calls;
mod error;
mod flows;
pub mod fq;
pub mod fq_pie;
mod gaps;
pub mod gred;
pub mod hfsc;
pub mod model;
pub mod pie;
pub mod red;
mod verdict;

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, LinkContext, Rate, Span, Streams};

use self::calls::{Call, Difference, Headers, calls, compare};
use self::flows::{headers, keys, plain};
use self::gaps::Gaps;
use self::model::{Model, Rule, STEP_NS, Setup};
use crate::journal::{Entry, Event};

pub use self::error::OracleError;
pub use self::verdict::Verdict;
use self::verdict::explained;

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Number of packets that arrived at the qdisc of Linux.
    pub arrived: u64,
    /// Number of packets that it sent.
    pub sent: u64,
    /// Number of packets that it dropped.
    pub dropped: u64,
    /// Gaps of the link.
    pub gaps: Gaps,
    /// Equality of the decisions.
    pub verdict: Verdict,
}

/// Compares a discipline with the qdisc of Linux that wrote a journal. `rate` is the rate of the link.
///
/// # Errors
/// If the text is not a discipline, or the journal is inconsistent.
pub fn judge(journal: &[Entry], text: &str, rate: Rate) -> Result<Comparison, OracleError> {
    let spec: Spec = text.parse()?;
    // The kernel counts the header of the link.
    let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(rate, Streams::new(1)) };
    let count = |is: fn(&Event) -> bool| journal.iter().filter(|entry| is(&entry.event)).count() as u64;
    let arrived = count(|event| *event == Event::Enqueued);
    let sent = count(|event| *event == Event::Sent);
    let dropped = count(|event| matches!(event, Event::Dropped(_)));
    let calls = calls(journal, matches!(spec, Spec::drr(_) | Spec::ets(_)))?;
    let gaps = Gaps::of(&calls);
    let verdict = match &spec {
        Spec::red(config) => red::judge(&calls, config, &context)?,
        Spec::gred(config) => gred::judge(&calls, config, &context)?,
        Spec::pie(config) => pie::judge(journal, config, &context)?,
        Spec::fq_pie(config) => fq_pie::judge(journal, config, &context)?,
        // CAKE adds the header of the link to the MTU.
        Spec::cake(config) => {
            let context = LinkContext { mtu: Bytes(1500), ..context };
            cake::judge(&calls, &spec, config, &context)?
        }
        Spec::fq(config) => fq::judge(&calls, &spec, config, &context)?,
        Spec::hfsc(config) => hfsc::judge(&calls, &spec, config, &context)?,
        _ => deterministic(&calls, &spec, &context)?,
    };
    Ok(Comparison { arrived, sent, dropped, gaps, verdict })
}

/// Compares a discipline without random numbers.
fn deterministic(calls: &[Call], spec: &Spec, context: &LinkContext) -> Result<Verdict, OracleError> {
    let keys = keys(spec, context);
    let key = headers(&keys);
    let mut rust = spec.build_numbered(context)?;
    let flows = keys.len() as u64;
    let marks = calls.iter().filter_map(|call| Some(call.arrival?.mark));
    if let Some(mark) = marks.max().filter(|mark| flows > 0 && *mark >= flows) {
        return Err(OracleError::Mark { mark, spec: Box::new(spec.clone()), last: flows - 1 });
    }
    let Some(difference) = compare(calls, &mut *rust, &key) else { return Ok(Verdict::Equal) };
    match setup(spec, context) {
        Some(setup) => Ok(explain(calls, difference, spec, context, &key, setup)),
        None => Ok(Verdict::Different(difference.to_string())),
    }
}

/// Finds the rules of Linux that explain a difference, if any do.
fn explain(
    calls: &[Call],
    difference: Difference,
    spec: &Spec,
    context: &LinkContext,
    key: Headers<'_>,
    setup: Setup,
) -> Verdict {
    let modelled = |rules: &[Rule]| compare(calls, &mut Model::new(setup, rules), &plain);
    let mut rust = spec.build_numbered(context).expect("the discipline was built before");
    let results = calls::results(calls, &mut *rust, key);
    let own = compare(&results, &mut Model::new(setup, &[]), &plain);
    explained(difference, own, (&Rule::ALL, Rule::name), modelled)
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
    use giveway_qdisc::hash::mix;

    use super::calls::{Arrival, results};
    use super::*;

    /// Calls without results: bursts of packets of 60 to 1,514 bytes in eight flows, and dequeues, at times
    /// in steps of CoDel's clock.
    fn traffic(packets: u64) -> Vec<Call> {
        let mut word = 1u64;
        let mut random = |below: u64| {
            word = mix(word, 0x1234_5678);
            word % below
        };
        let (mut now, mut calls) = (0, Vec::new());
        let mut number = 0;
        while number < packets {
            for _ in 0..random(60) {
                let arrival = Arrival { number, bytes: 60 + random(1455) as u32, mark: random(8) };
                calls.push(Call { now: now * STEP_NS, arrival: Some(arrival), ..Call::default() });
                number += 1;
                now += random(30);
            }
            for _ in 0..random(70) {
                calls.push(Call { now: now * STEP_NS, arrival: None, ..Call::default() });
                now += random(900);
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
    fn a_mark_without_a_flow_is_refused() {
        let entry = |event, number, flow| Entry { now: 0, flow, reserved: 0, number, bytes: 100, event };
        let journal = [entry(Event::Enqueued, 0, 16), entry(Event::Empty, 0, 0)];
        let message = judge(&journal, SPECS[3], Rate::mbit(8)).unwrap_err().to_string();
        assert!(message.contains("mark 16") && message.contains("flows 0 to 15"), "{message}");
    }

    #[test]
    fn without_rules_of_linux_the_model_decides_like_the_rust_discipline() {
        let calls = traffic(20_000);
        for text in SPECS {
            let spec: Spec = text.parse().unwrap();
            let keys = keys(&spec, &context());
            let mut rust = spec.build_numbered(&context()).unwrap();
            let results = results(&calls, &mut *rust, &headers(&keys));
            let dropped: usize = results.iter().map(|call| call.dropped.len()).sum();
            assert!(dropped > 100, "{text}: {dropped}");
            let setup = setup(&spec, &context()).unwrap();
            assert_eq!(compare(&results, &mut Model::new(setup, &[]), &plain), None, "{text}");
            assert!(matches!(deterministic(&results, &spec, &context()), Ok(Verdict::Equal)), "{text}");
        }
    }

    /// A qdisc with the rules of Linux differs from the Rust discipline by exactly these rules.
    #[test]
    fn a_difference_is_explained_by_the_rules_that_cause_it() {
        let calls = traffic(20_000);
        for (text, rules) in [
            (SPECS[1], vec![Rule::Root]),
            (SPECS[2], vec![Rule::Root, Rule::Behind, Rule::Alone, Rule::Half, Rule::Count]),
        ] {
            let spec: Spec = text.parse().unwrap();
            let mut kernel = Model::new(setup(&spec, &context()).unwrap(), &Rule::ALL);
            let results = results(&calls, &mut kernel, &plain);
            let Ok(Verdict::Explained(_, found)) = deterministic(&results, &spec, &context()) else {
                panic!("{text}")
            };
            assert_eq!(found, rules.into_iter().map(Rule::name).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn a_difference_that_no_rule_explains_is_reported() {
        let spec: Spec = SPECS[2].parse().unwrap();
        let mut kernel = Model::new(setup(&spec, &context()).unwrap(), &Rule::ALL);
        let mut results = results(&traffic(5000), &mut kernel, &plain);
        let last = results.iter_mut().rfind(|call| call.sent.is_some()).unwrap();
        last.sent = Some(0);
        let verdict = deterministic(&results, &spec, &context()).unwrap();
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

    /// RED as in Linux, with an integer average. It drops every fiftieth packet between the thresholds.
    fn red(calls: &[Call]) -> Vec<Call> {
        let (mut average, mut backlog, mut queue) = (0u64, 0u64, std::collections::VecDeque::new());
        let (mut count, mut results) = (0, Vec::new());
        for call in calls {
            let mut call = call.clone();
            match call.arrival {
                Some(Arrival { number, bytes, .. }) => {
                    average = average + backlog - (average >> 6);
                    call.state = average;
                    let between = (20_000 << 6..60_000 << 6).contains(&average);
                    count += u64::from(between);
                    if average >= 60_000 << 6 || (between && count % 50 == 0) {
                        call.dropped = vec![number];
                    } else {
                        backlog += u64::from(bytes);
                        queue.push_back((number, bytes));
                    }
                }
                None => {
                    let (number, bytes) = queue.pop_front().unzip();
                    (call.sent, backlog) = (number, backlog - u64::from(bytes.unwrap_or(0)));
                }
            }
            results.push(call);
        }
        results
    }

    #[test]
    fn averages_and_certain_drops_of_red_are_compared() {
        let text = "red limit 10mb min 20000b max 60000b avpkt 1000b weight 0.015625 probability 0.02";
        let Spec::red(config) = text.parse().unwrap() else { panic!("the spec is red") };
        let mut calls = red(&traffic(20_000));
        let verdict = red::judge(&calls, &config, &context()).unwrap();
        let text = verdict.to_string();
        assert!(text.contains("averages within") && !text.contains("of 0 between"), "{text}");
        let kept = calls.iter_mut().filter(|call| call.arrival.is_some() && call.dropped.is_empty());
        kept.last().unwrap().state += 2 << 6;
        assert!(!red::judge(&calls, &config, &context()).unwrap().holds());
    }
}
