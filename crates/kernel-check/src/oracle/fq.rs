//! Compares FQ, call by call: departures, drops and marks.
//!
//! The journal contains the facts of each packet: the departure time, rate and priority that its sender gave
//! it, and the hash that selects its queue. It also contains the times that FQ reads from the clock. A
//! [`model`] has an option for each rule that differs. With the rules of Linux it must make every decision of
//! the kernel. With ours it must make every decision of the Rust discipline.

pub mod model;

use std::collections::BTreeMap;

use giveway_disciplines::Spec;
use giveway_disciplines::fq::Config;
use giveway_qdisc::{Dscp, Header, Label, LinkContext, Meta, Rate, Time};

use self::model::{Model, Rule};
use super::cake;
use super::calls::{Arrival, Call, Difference, compare, results};
use super::error::OracleError;
use super::flows::orphans;
use super::verdict::{Verdict, explained};

/// A DSCP of each priority that the traffic has.
const DSCPS: [(u64, u8); 3] = [(0, 0), (2, 2), (6, 4)];

/// Metadata of the packets, by their numbers.
struct Packets(Vec<Meta>);

impl Packets {
    /// The packets of these calls. Flows without their own socket get a key that the Rust discipline hashes
    /// to the same queue as Linux.
    fn new(calls: &[Call], config: &Config, context: &LinkContext) -> Packets {
        let arrivals = || calls.iter().filter_map(|call| Some((call, call.arrival?)));
        // A packet that is not classified has no hash; other packets of the flow have the same one.
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        for (call, arrival) in arrivals() {
            let hash = call.state & u64::from(u32::MAX);
            if hash != 0 {
                places.insert(arrival.mark, hash & u64::from(config.orphan_mask));
            }
        }
        let keys = orphans(config.orphan_mask, context);
        let meta = |(call, arrival): (&Call, Arrival)| {
            let [departure, rate, priority] = call.facts[..].try_into().unwrap_or_default();
            let dscp = DSCPS.iter().find(|(of, _)| *of == priority).map_or(0, |(_, dscp)| *dscp);
            let plain = cake::headers(&arrival);
            let place = places.get(&arrival.mark).and_then(|place| keys.get(*place as usize));
            let label = match departure {
                0 => Label::NONE,
                ns => Label::departing(Time::from_ps(ns.saturating_mul(1000))),
            };
            Meta {
                flow: place.copied().unwrap_or(plain.flow),
                reserved: Rate::bit(rate.saturating_mul(8)),
                label,
                header: Header::new(Dscp::new(dscp).expect("a DSCP has six bits"), false),
                ..plain
            }
        };
        Packets(arrivals().map(meta).collect())
    }

    fn of(&self, arrival: &Arrival) -> Meta {
        self.0[arrival.number as usize]
    }
}

/// Compares the calls of FQ with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(
    calls: &[Call],
    spec: &Spec,
    config: &Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    let marked = |call: &Call| call.sent.is_some() && call.state & 1 == 1;
    let calls: Vec<Call> =
        calls.iter().map(|call| Call { marked: Some(marked(call)), ..call.clone() }).collect();
    let packets = Packets::new(&calls, config, context);
    let headers = |arrival: &Arrival| packets.of(arrival);
    let mut rust = spec.build_numbered(context)?;
    let Some(difference) = compare(&calls, &mut *rust, &headers) else { return Ok(Verdict::Equal) };
    explain(&calls, difference, spec, config, context, &packets)
}

/// Finds the rules of Linux that explain a difference, if any do.
fn explain(
    calls: &[Call],
    difference: Difference,
    spec: &Spec,
    config: &Config,
    context: &LinkContext,
    packets: &Packets,
) -> Result<Verdict, OracleError> {
    let headers = |arrival: &Arrival| packets.of(arrival);
    let mut rust = spec.build_numbered(context)?;
    let here = results(calls, &mut *rust, &headers);
    let modelled = |calls: &[Call], rules: &[Rule]| {
        compare(calls, &mut Model::new(config, context, rules, calls), &headers)
    };
    let own = modelled(&here, &[]);
    Ok(explained(difference, own, (&Rule::ALL, Rule::name), |rules| modelled(calls, rules)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::hash::mix;
    use giveway_qdisc::{Bytes, Streams};

    /// Bursts and pauses of 24 flows, of which some have rates or departure times, without results.
    fn traffic(packets: u64) -> Vec<Call> {
        let mut word = 1u64;
        let mut random = |below: u64| {
            word = mix(word, 0x1234_5678);
            word % below
        };
        let (mut now, mut calls, mut number) = (100_000_000u64, Vec::new(), 0);
        let state = |now: u64| (now / 4_000_000) << 32;
        while number < packets {
            for _ in 0..random(60) {
                let flow = random(24);
                let mark = flow | (flow * flow % 5) << 12 | (flow / 2 % 3) << 18 | (flow % 4) << 30;
                let rate = if flow % 4 == 2 { 50_000 << (flow / 4 % 4) } else { 0 };
                let departure = if flow % 4 == 3 { now - 1_000_000 + random(12_000_000) } else { 0 };
                let bytes = 60 + random(1455) as u32;
                calls.push(Call {
                    now,
                    arrival: Some(Arrival { number, bytes, mark }),
                    state: state(now) | mix(flow, 7) >> 32,
                    facts: vec![departure, rate, [0, 2, 6][flow as usize % 3]],
                    marked: Some(false),
                    ..Call::default()
                });
                number += 1;
                now += random(30_000);
            }
            for _ in 0..random(70) {
                calls.push(Call { now, state: state(now), marked: Some(false), ..Call::default() });
                now += random(400_000);
            }
        }
        calls
    }

    const SPECS: [&str; 4] = [
        "fq limit 300p flow_limit 20p quantum 500 initial_quantum 1000 orphan_mask 7 ce_threshold 5ms",
        "fq limit 1000p quantum 1514 initial_quantum 3028 orphan_mask 4294967295 maxrate 2mbit refill_delay 8ms",
        "fq flow_limit 60p quantum 1514 initial_quantum 3028 horizon 8ms ce_threshold 2ms",
        "fq quantum 3028 initial_quantum 3028 maxrate 8mbit horizon 8ms horizon_cap weights [20000 18000 16384]",
    ];

    fn context() -> LinkContext {
        LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::gbit(1), Streams::new(1)) }
    }

    fn config(text: &str) -> (Spec, Config) {
        let spec: Spec = text.parse().expect("it is valid");
        let Spec::fq(config) = spec.clone() else { panic!("{text} is fq") };
        (spec, config)
    }

    #[test]
    fn without_rules_of_linux_the_model_decides_like_the_rust_discipline() {
        let calls = traffic(20_000);
        for text in SPECS {
            let (spec, config) = config(text);
            let packets = Packets::new(&calls, &config, &context());
            let headers = |arrival: &Arrival| packets.of(arrival);
            let mut rust = spec.build_numbered(&context()).expect("it is valid");
            let here = results(&calls, &mut *rust, &headers);
            let sent = here.iter().filter(|call| call.sent.is_some()).count();
            assert!(sent > 5000, "{text}: {sent}");
            let mut model = Model::new(&config, &context(), &[], &here);
            assert_eq!(compare(&here, &mut model, &headers), None, "{text}");
        }
    }

    /// A qdisc with the rules of Linux differs from the Rust discipline, and its rules explain this.
    #[test]
    fn a_difference_is_explained_by_rules_of_linux() {
        let traffic = traffic(20_000);
        for text in SPECS {
            let (spec, config) = config(text);
            let packets = Packets::new(&traffic, &config, &context());
            let headers = |arrival: &Arrival| packets.of(arrival);
            let mut linux = Model::new(&config, &context(), &Rule::ALL, &traffic);
            let mut calls = results(&traffic, &mut linux, &headers);
            for call in calls.iter_mut().filter(|call| call.arrival.is_none()) {
                call.state |= u64::from(call.marked == Some(true));
            }
            let verdict = judge(&calls, &spec, &config, &context()).expect("it is valid");
            assert!(
                matches!(&verdict, Verdict::Explained(_, rules) if !rules.is_empty()),
                "{text}: {verdict}"
            );
            let last = calls.iter_mut().rfind(|call| call.sent.is_some()).expect("packets were sent");
            last.sent = Some(0);
            assert!(!judge(&calls, &spec, &config, &context()).expect("it is valid").holds(), "{text}");
        }
    }
}
