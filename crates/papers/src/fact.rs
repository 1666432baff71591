//! Numbers without a run: computed from the definitions of a paper, or measured outside the study.
//!
//! ```toml
//! [[claim.test]]
//! measure = { kind = "fact", name = "figure_2_rounds" }     # computed here
//! at_least = 7
//!
//! [[claim.test]]
//! measure = { kind = "measured", what = "largest delay over the bound" }   # from measured.toml
//! at_most = 1
//! ```
//!
//! `measured.toml` has the command, the machine and the date of each measurement, which needs privileges that
//! a study does not have.

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Outbox, Packet, Rate, Streams, Time};
use giveway_theory::pages;
use serde::Deserialize;

/// A number that was measured outside the study.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    /// The name of the number, in words. Claims use it.
    pub what: String,
    /// The value.
    pub value: f64,
    /// The command that measures it.
    pub how: String,
    /// The machine on which it was measured.
    pub machine: String,
    /// The day of the measurement.
    pub date: String,
}

/// `measured.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredFile {
    #[serde(default)]
    pub measured: Vec<Measured>,
}

/// The facts that can be computed: the name of each, and its words in a sentence.
const FACTS: [(&str, &str); 5] = [
    ("figure_2_rounds", "rounds of figure 2 in which the shift clock and the order are those printed"),
    ("page_packets", "packets of {at} bytes in a page"),
    ("page_rest", "bytes of a page that packets of {at} bytes leave"),
    ("flows_without_structures", "flows in 128 KiB, counting packets"),
    ("flows_with_structures", "flows in 128 KiB with structures of {at} bytes"),
];

/// The words for a fact; `None` if it does not exist.
pub(crate) fn words(name: &str) -> Option<&'static str> {
    FACTS.iter().find(|(known, _)| *known == name).map(|(_, words)| *words)
}

/// Computes a fact, with the argument `at` if it is a function; `None` if it does not exist.
pub(crate) fn compute(name: &str, at: Option<f64>) -> Option<f64> {
    let at = at.unwrap_or_default() as u32;
    let of_page = |pick: fn((u32, u32)) -> u32| pages::packets_in_page(at).map(pick);
    let number = match name {
        "figure_2_rounds" => Some(figure_2_rounds()),
        "page_packets" => of_page(|(packets, _)| packets),
        "page_rest" => of_page(|(_, rest)| rest),
        "flows_without_structures" => Some(pages::flows(pages::KERNEL, pages::SMALLEST)),
        "flows_with_structures" => Some(pages::flows_with_pointers(pages::KERNEL, pages::SMALLEST, at)),
        _ => None,
    };
    number.map(f64::from)
}

/// Figure 2(b) of the TRR paper, computed with `trr_round`: packets of 300 units, and flows with reservations
/// of 100, 50, 75 and 75 units per unit of time. The result is the number of rounds, of seven, in which the
/// shift clock is the printed one and flows leave in the order of the printed stamps.
fn figure_2_rounds() -> u32 {
    // A unit of time is a millisecond, and a unit of length is a byte.
    let rate = |units: u64| Rate::bit(units * 8000);
    let context = LinkContext::new(rate(300), Streams::new(1));
    let spec: Spec = "trr_round slots 101 unit 1ms".parse().expect("the spec is valid");
    let mut trr = spec.build_numbered(&context).expect("it can be built");
    let mut out = Outbox::default();
    let mut cx = Cx::new(Time::ZERO, &mut out);
    // The arrivals before each round as flow and packets, the printed clock, and the flows in the order of
    // their printed stamps.
    type Round = (&'static [(u64, u32)], f64, &'static [u64]);
    let rounds: [Round; 7] = [
        (&[(1, 7), (4, 1)], 0.0, &[1, 4]),
        (&[(2, 1), (3, 2)], 3.0, &[1, 3, 2]),
        (&[(2, 2)], 6.0, &[1, 3, 2]),
        (&[], 9.0, &[1, 2]),
        (&[(4, 3)], 12.0, &[1, 4]),
        (&[(3, 1)], 15.0, &[1, 3, 4]),
        (&[], 18.0, &[1, 4]),
    ];
    let mut matching = 0;
    for (arrivals, clock, order) in rounds {
        for (flow, packets) in arrivals {
            for _ in 0..*packets {
                let mut pkt = Packet::new(FlowKey(*flow), 300, *flow);
                pkt.meta.reserved = rate([100, 50, 75, 75][*flow as usize - 1]);
                trr.enqueue(pkt, &mut cx);
            }
        }
        let mut left = Vec::new();
        let mut shown = None;
        for _ in order {
            left.extend(trr.dequeue(&mut cx).packet().map(|pkt| pkt.payload));
            trr.gauges(&mut |name, value| {
                if name == "shift_clock_s" {
                    shown = Some(value * 1e3);
                }
            });
        }
        matching += u32::from(left == order && shown.is_some_and(|shown| (shown - clock).abs() < 1e-6));
    }
    matching
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_can_be_computed() {
        for (name, what) in FACTS {
            assert!(compute(name, Some(500.0)).is_some_and(f64::is_finite), "{name}");
            assert_eq!(words(name), Some(what));
        }
        assert_eq!((compute("unknown", None), words("unknown")), (None, None));
    }
}
