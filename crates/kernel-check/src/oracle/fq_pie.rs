//! Compares FQ-PIE, which is PIE in each flow, and turns among flows.
//!
//! Linux hashes the headers of a packet to a flow, and has no filter that could choose another one, so the
//! journal contains the flow. [`pie`](super::pie) compares each flow alone: probability, decisions without
//! chance, and the number of random drops.
//!
//! Departures are compared without the packets that Linux dropped, which reach no side. The Rust discipline
//! gets a target that it never reaches.

use std::collections::{BTreeMap, BTreeSet};

use giveway_disciplines::fq_pie::Config;
use giveway_disciplines::{Spec, pie};
use giveway_qdisc::{Bytes, LinkContext, Span};

use super::calls::{Call, calls, compare};
use super::error::OracleError;
use super::flows::{headers, keys, plain};
use super::model::{Model, Rule, Setup};
use super::pie::Found;
use super::verdict::Verdict;
use crate::journal::{Entry, Event};

/// Bits of the flow in the journal; above them is the burst allowance.
const FLOW: u32 = 16;

/// Compares a journal of FQ-PIE with the Rust discipline.
///
/// # Errors
/// If the journal is inconsistent, or the parameters are invalid.
pub fn judge(journal: &[Entry], config: &Config, context: &LinkContext) -> Result<Verdict, OracleError> {
    let Config { limit, target, tupdate, alpha, beta, .. } = config.clone();
    let pie = pie::Config { limit, target, tupdate, alpha, beta, ..pie::Config::default() };
    let mut all = Found::default();
    let (by_flow, beyond) = match by_flow(journal, limit.0) {
        Ok(split) => split,
        Err(kept) => return Ok(Verdict::Different(format!("packet {kept} is kept beyond the limit"))),
    };
    for (flow, journal) in &by_flow {
        match super::pie::found(journal, &pie, context, &beyond)? {
            Ok(found) => all.add(&found),
            Err(wrong) => return Ok(Verdict::Different(format!("flow {flow}: {wrong}"))),
        }
    }
    let (flows, full) = (by_flow.len(), beyond.len());
    Ok(match turns(journal, config, context)? {
        Ok(turns) => all.verdict(&format!("; {full} beyond the limit dropped; {flows} flows, {turns}")),
        Err(wrong) => Verdict::Different(wrong),
    })
}

/// A journal of PIE for each flow that had a packet.
type ByFlow = BTreeMap<u64, Vec<Entry>>;

/// The journal of each flow, and the packets beyond the limit of all flows. The error is such a packet that
/// Linux kept.
fn by_flow(journal: &[Entry], limit: u64) -> Result<(ByFlow, BTreeSet<u32>), u32> {
    let (mut flow_of, mut flows) = (BTreeMap::new(), ByFlow::new());
    let (mut queued, mut beyond) = (0, BTreeSet::new());
    for entry in journal {
        let mut entry = *entry;
        let flow = match entry.event {
            Event::Enqueued => {
                let flow = entry.flow & ((1 << FLOW) - 1);
                entry.flow >>= FLOW;
                flow_of.insert(entry.number, flow);
                if queued >= limit {
                    beyond.insert(entry.number);
                }
                queued += 1;
                flow
            }
            Event::Updated => u64::from(entry.number),
            Event::Sent if beyond.contains(&entry.number) => return Err(entry.number),
            Event::Dropped(_) | Event::Sent => {
                queued -= 1;
                let Some(flow) = flow_of.get(&entry.number) else { continue };
                *flow
            }
            _ => continue,
        };
        flows.entry(flow).or_default().push(entry);
    }
    flows.retain(|_, journal| journal.iter().any(|entry| entry.event == Event::Enqueued));
    Ok((flows, beyond))
}

/// Compares the departures of the packets that Linux kept. The inner error is a difference, in words.
fn turns(
    journal: &[Entry],
    config: &Config,
    context: &LinkContext,
) -> Result<Result<String, String>, OracleError> {
    let mut plainly = journal.to_vec();
    for entry in plainly.iter_mut().filter(|entry| entry.event == Event::Enqueued) {
        entry.flow &= (1 << FLOW) - 1;
    }
    let mut kept: Vec<Call> = calls(&plainly, false)?;
    kept.retain(|call| call.arrival.is_none() || call.dropped.is_empty());
    let spec = Spec::fq_pie(Config { target: Span::s(60), memory_limit: Bytes(1 << 34), ..config.clone() });
    let keys = keys(&spec, context);
    let mut rust = spec.build_numbered(context)?;
    let Some(difference) = compare(&kept, &mut *rust, &headers(&keys)) else {
        return Ok(Ok("whose kept packets leave equally".to_owned()));
    };
    let quantum = config.quantum.map_or(context.mtu.0 + 14, |quantum| quantum.0) as i64;
    let mtu = context.mtu.0;
    let (limit, target, interval) = (u64::MAX, u64::MAX, 1);
    let setup = Setup { limit, flows: config.flows, quantum, batch: 1, target, interval, mtu };
    Ok(match compare(&kept, &mut Model::new(setup, &[Rule::Alone]), &plain) {
        None => Ok(format!(
            "whose kept packets leave equally with a rule of Linux: {}; without it, {difference}",
            Rule::Alone.name()
        )),
        Some(other) => Err(format!("{difference}; with the rule of Linux, {other}")),
    })
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{Rate, Streams};

    use super::super::calls::{Arrival, results};
    use super::*;

    fn context() -> LinkContext {
        LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::mbit(10), Streams::new(1)) }
    }

    fn config(limit: &str) -> Config {
        let text = format!("fq_pie flows 4 quantum 500 limit {limit}");
        let Spec::fq_pie(config) = text.parse().unwrap() else { panic!("the spec is fq_pie") };
        config
    }

    /// The journal of the Rust discipline, during a burst allowance, so that nothing is dropped at random.
    fn journal(config: &Config) -> Vec<Entry> {
        let (mut calls, mut number, mut now) = (Vec::new(), 0, 1_000_000);
        let call = |now, arrival| Call { now, arrival, ..Call::default() };
        for turn in 0..20 {
            for _ in 0..10 + turn % 5 {
                let arrival =
                    Arrival { number, bytes: 100 + (number * 97 % 1300) as u32, mark: number * 7 % 11 % 4 };
                calls.push(call(now, Some(arrival)));
                number += 1;
            }
            for _ in 0..13 {
                now += 100_000;
                calls.push(call(now, None));
            }
        }
        let spec = Spec::fq_pie(config.clone());
        let keys = keys(&spec, &context());
        let mut rust = spec.build_numbered(&context()).unwrap();
        let mut journal = Vec::new();
        for call in results(&calls, &mut *rust, &headers(&keys)) {
            let entry = |event, number: u64| {
                let (bytes, flow) =
                    call.arrival.map_or((0, 0), |arrival| (arrival.bytes, arrival.mark | 1 << FLOW));
                Entry { now: call.now, flow, reserved: 0, number: number as u32, bytes, event }
            };
            match (call.arrival, call.sent) {
                (Some(arrival), _) => journal.push(entry(Event::Enqueued, arrival.number)),
                (None, Some(sent)) => journal.push(entry(Event::Sent, sent)),
                (None, None) => journal.push(entry(Event::Empty, 0)),
            }
            let overlimit = Event::Dropped(giveway_qdisc::DropReason::Overlimit);
            journal.extend(call.dropped.iter().map(|number| entry(overlimit, *number)));
        }
        journal
    }

    #[test]
    fn departures_are_compared_without_dropped_packets() {
        for (limit, words) in
            [("1000p", "; 0 beyond the limit"), ("8p", " beyond the limit dropped; 4 flows")]
        {
            let config = config(limit);
            let mut journal = journal(&config);
            let verdict = judge(&journal, &config, &context()).unwrap().to_string();
            assert!(verdict.starts_with("alike") && verdict.contains(words), "{verdict}");
            assert!(verdict.ends_with("whose kept packets leave equally"), "{verdict}");
            let sent = |journal: &[Entry], from: usize| {
                (from..journal.len()).find(|at| journal[*at].event == Event::Sent)
            };
            let first = sent(&journal, 0).unwrap();
            let second = sent(&journal, first + 1).unwrap();
            (journal[first].number, journal[second].number) = (journal[second].number, journal[first].number);
            assert!(!judge(&journal, &config, &context()).unwrap().holds());
        }
    }

    #[test]
    fn a_packet_beyond_the_limit_must_be_dropped() {
        let verdict = judge(&journal(&config("1000p")), &config("8p"), &context()).unwrap().to_string();
        assert!(verdict.ends_with("is kept beyond the limit"), "{verdict}");
    }
}
