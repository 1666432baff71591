//! Compares HFSC, call by call: every departure.
//!
//! The journal contains the times that HFSC reads from the clock. A [`model`] has an option for each rule
//! that differs. With the rules of Linux it must make every decision of the kernel. With ours it must make
//! every decision of the Rust discipline.

mod curve;
pub mod model;

use giveway_disciplines::Spec;
use giveway_disciplines::hfsc::Config;
use giveway_qdisc::LinkContext;

use self::model::{Model, Rule};
use super::calls::{Call, compare, results};
use super::error::OracleError;
use super::flows::plain;
use super::verdict::{Verdict, explained};

/// Compares the calls of HFSC with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(
    calls: &[Call],
    spec: &Spec,
    config: &Config,
    context: &LinkContext,
) -> Result<Verdict, OracleError> {
    let mut rust = spec.build_numbered(context)?;
    let Some(difference) = compare(calls, &mut *rust, &plain) else { return Ok(Verdict::Equal) };
    let mut rust = spec.build_numbered(context)?;
    let here = results(calls, &mut *rust, &plain);
    let modelled = |calls: &[Call], rules: &[Rule]| {
        compare(calls, &mut Model::new(config, context.mtu, rules, calls), &plain)
    };
    let own = modelled(&here, &[]);
    Ok(explained(difference, own, (&Rule::ALL, Rule::name), |rules| modelled(calls, rules)))
}

#[cfg(test)]
mod tests {
    use super::super::calls::Arrival;
    use super::*;
    use giveway_qdisc::hash::mix;
    use giveway_qdisc::{Bytes, Rate, Streams};

    /// Bursts and pauses of five classes, without results.
    fn traffic(packets: u64) -> Vec<Call> {
        let mut word = 1u64;
        let mut random = |below: u64| {
            word = mix(word, 0x1234_5678);
            word % below
        };
        let (mut now, mut calls, mut number) = (1_000_000, Vec::new(), 0);
        // The second reading of the clock is 5 us after the first.
        let call = |now, arrival| Call { now, arrival, state: now + 5_000, ..Call::default() };
        while number < packets {
            for _ in 0..random(60) {
                let arrival = Arrival { number, bytes: 60 + random(1455) as u32, mark: random(5) };
                calls.push(call(now, Some(arrival)));
                number += 1;
                now += random(30_000);
            }
            for _ in 0..random(90) {
                calls.push(call(now, None));
                now += random(400_000);
            }
        }
        calls
    }

    const SPECS: [&str; 2] = [
        "hfsc classes [(name all ls (rate 30mbit) ul (rate 30mbit) classes [(name a rt (m1 20mbit d 5ms m2 4mbit) \
         ls (rate 8mbit) match [(class 0)]) (name b ls (rate 12mbit) match [(class 1)]) (name c ls (rate 4mbit) ul \
         (rate 8mbit) match [(class 2)]) (name d sc (rate 4mbit) match [(class 3)]) (name e rt (rate 2mbit) match \
         [(class 4)])])]",
        "hfsc classes [(name a sc (m1 20mbit d 2ms m2 2mbit) match [(class 0)]) (name x ls (rate 20mbit) classes \
         [(name b rt (m1 0kbit d 10ms m2 5mbit) ls (rate 20mbit) ul (rate 15mbit) match [(class 1)]) (name c ls (m1 \
         20mbit d 10ms m2 10mbit) ul (rate 10mbit) match [(class 2)])]) (name y ls (rate 10mbit) ul (rate 20mbit) \
         classes [(name d sc (umax 1500b dmax 5ms rate 1mbit) match [(class 3)]) (name e ls (rate 19mbit) match \
         [(class 4)])])]",
    ];

    fn context() -> LinkContext {
        LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::gbit(1), Streams::new(1)) }
    }

    /// The tree, with long queues in its leaves.
    fn config(text: &str) -> (Spec, Config) {
        let text = text.replace(")])", ")] leaf (fifo limit 100000p))");
        let spec: Spec = text.parse().expect("it is valid");
        let Spec::hfsc(config) = spec.clone() else { panic!("{text} is hfsc") };
        (spec, config)
    }

    #[test]
    fn without_rules_of_linux_the_model_decides_like_the_rust_discipline() {
        let calls = traffic(20_000);
        for text in SPECS {
            let (spec, config) = config(text);
            let mut rust = spec.build_numbered(&context()).expect("it is valid");
            let here = results(&calls, &mut *rust, &plain);
            let held = here.iter().filter(|call| call.arrival.is_none() && call.sent.is_none()).count();
            assert!(held > 1000, "{text}: {held}");
            let mut model = Model::new(&config, Bytes(1514), &[], &here);
            assert_eq!(compare(&here, &mut model, &plain), None, "{text}");
        }
    }

    /// A qdisc with the rules of Linux differs from the Rust discipline, and its rules explain this.
    #[test]
    fn a_difference_is_explained_by_rules_of_linux() {
        for text in SPECS {
            let (spec, config) = config(text);
            let traffic = traffic(20_000);
            let mut linux = Model::new(&config, Bytes(1514), &Rule::ALL, &traffic);
            let mut calls = results(&traffic, &mut linux, &plain);
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
