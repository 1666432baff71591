//! Compares CAKE, call by call: departures, drops, marks, and the times at which the shaper lets a packet go.
//!
//! The mark of a packet carries its flow, hosts, DSCP and ECN field. The journal contains the times that CAKE
//! reads from the clock, and the random numbers that it draws. A [`model`] has an option for each rule that
//! differs. With the rules of Linux it must make every decision of the kernel. With ours it must make every
//! decision of the Rust discipline.

pub mod model;

use giveway_disciplines::Spec;
use giveway_disciplines::cake::Config;
use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, LinkContext, Meta};

use self::model::{Draws, Model, Rule};
use super::calls::{Arrival, Call, Difference, compare, results};
use super::error::OracleError;
use super::verdict::{Verdict, explained};

/// Metadata of a packet, from its mark: 12 bits of the flow, 6 of the source, 6 of the destination, 6 of the
/// DSCP, and 2 of the ECN field (`kernel/test/drive.c`).
pub fn headers(arrival: &Arrival) -> Meta {
    let mark = arrival.mark;
    let six = |shift: u32| (mark >> shift & 63) as u8;
    Meta {
        bytes: arrival.bytes,
        flow: FlowKey(mark & 0xfff),
        from: u16::from(six(12)),
        // Hosts of different directions have different numbers.
        to: 64 + u16::from(six(18)),
        header: Header::new(Dscp::of_service(six(24) << 2), false),
        ecn: match mark >> 30 & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Marked,
        },
        ..Meta::default()
    }
}

/// Compares the calls of CAKE with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(
    calls: &[Call],
    spec: &Spec,
    config: &Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    let calls: Vec<Call> = calls
        .iter()
        .map(|call| Call { marked: Some(call.sent.is_some() && call.state == 1), ..call.clone() })
        .collect();
    let mut rust = spec.build_numbered(context)?;
    let Some(difference) = compare(&calls, &mut *rust, &headers) else { return Ok(Verdict::Equal) };
    explain(&calls, difference, spec, config, context)
}

/// Finds the rules of Linux that explain a difference, if any do.
fn explain(
    calls: &[Call],
    difference: Difference,
    spec: &Spec,
    config: &Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    let mut rust = spec.build_numbered(context)?;
    let here = results(calls, &mut *rust, &headers);
    let draws = Draws::Own(context.streams.rng());
    let own = compare(&here, &mut Model::new(config, context, &[], draws, calls), &headers);
    let modelled = |rules: &[Rule]| {
        compare(calls, &mut Model::new(config, context, rules, Draws::of(calls), calls), &headers)
    };
    Ok(explained(difference, own, (&Rule::ALL, Rule::name), modelled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::hash::mix;
    use giveway_qdisc::{Bytes, Rate, Streams};

    /// Bursts and pauses of fifty flows of five sources and three destinations, without results.
    fn traffic(packets: u64) -> Vec<Call> {
        let mut word = 1u64;
        let mut random = |below: u64| {
            word = mix(word, 0x1234_5678);
            word % below
        };
        let (mut now, mut calls, mut number) = (1_000_000, Vec::new(), 0);
        let call = |now, arrival| Call { now, arrival, marked: Some(false), ..Call::default() };
        while number < packets {
            for _ in 0..random(60) {
                let flow = random(50);
                let mark = flow | (flow * flow % 5) << 12 | (flow / 2 % 3) << 18 | (flow % 4) << 30;
                let bytes = 60 + random(1455) as u32;
                calls.push(call(now, Some(Arrival { number, bytes, mark })));
                number += 1;
                now += random(30_000);
            }
            for _ in 0..random(70) {
                calls.push(call(now, None));
                now += random(900_000);
            }
        }
        calls
    }

    #[test]
    fn without_rules_of_linux_the_model_decides_like_the_rust_discipline() {
        let context = LinkContext { mtu: Bytes(1500), ..LinkContext::new(Rate::gbit(1), Streams::new(1)) };
        let calls = traffic(20_000);
        for text in [
            "cake besteffort flows rtt 5ms",
            "cake diffserv4 triple-isolate rtt 5ms",
            "cake bandwidth 20mbit diffserv3 dual-srchost rtt 5ms overhead 30 atm",
            "cake bandwidth 30mbit besteffort dual-dsthost rtt 5ms ingress overhead 16 ptm",
        ] {
            let spec: Spec = text.parse().unwrap();
            let Spec::cake(config) = &spec else { panic!("{text} is cake") };
            let here = results(&calls, &mut *spec.build_numbered(&context).unwrap(), &headers);
            let signals = here.iter().filter(|call| call.marked == Some(true) || !call.dropped.is_empty());
            assert!(signals.count() > 20, "{text}");
            let own = Draws::Own(context.streams.rng());
            let model = &mut Model::new(config, &context, &[], own, &here);
            assert_eq!(compare(&here, model, &headers), None, "{text}");
        }
    }
}
