//! Every registered arbiter keeps the contract, for all demands and sizes of switches.

use crate::support::{Paper, Shape, build, iterated, variants};
use giveway_qdisc::Streams;
use giveway_switch::arbiter::Matching;
use giveway_switch::options::{Options, Queueing};
use giveway_switch::packet::Class;
use giveway_switch::registry::ALL;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Mode, Plan, PortSet, Spec};
use proptest::prelude::*;

/// Consecutive slots of a test.
const SLOTS: u64 = 6;

fn shape(ports: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Shape> {
    let filled = prop_oneof![Just(5u64), Just(30), Just(100), 0..=100u64];
    let busy = prop_oneof![Just(0u64), Just(80), 0..=100u64];
    (ports, filled, busy, any::<u64>()).prop_map(|(ports, filled, busy, seed)| Shape {
        ports,
        filled,
        busy,
        seed,
    })
}

/// The pairs of each slot.
fn answers<const W: usize>(spec: &Spec, shape: Shape) -> Vec<Vec<(u16, u16)>> {
    let mut arbiter = build::<W>(spec, shape.ports, shape.seed);
    let mut matching = Matching::new();
    let slots = shape.slots::<W>(spec.queueing(), SLOTS);
    let answer = |paper: &Paper<W>| {
        paper.ask(&mut *arbiter, &mut matching);
        matching.pairs().to_vec()
    };
    slots.iter().map(answer).collect()
}

/// Every pair is requested, its ports are free, and no port is in two pairs.
fn check<const W: usize>(paper: &Paper<W>, pairs: &[(u16, u16)]) -> Result<(), String> {
    let (mut inputs, mut outputs) = (PortSet::<W>::EMPTY, PortSet::<W>::EMPTY);
    for (input, output) in pairs.iter().map(|(input, output)| (usize::from(*input), usize::from(*output))) {
        if !paper.inputs.has(input) || !paper.outputs.has(output) {
            return Err(format!("{input}-{output}: one of the ports is not free"));
        }
        if !paper.requests.of_input[input].has(output) {
            return Err(format!("{input}-{output} is not requested"));
        }
        if inputs.has(input) || outputs.has(output) {
            return Err(format!("{input}-{output}: one of the ports is matched twice"));
        }
        inputs.insert(input);
        outputs.insert(output);
    }
    Ok(())
}

fn keeps_the_contract<const W: usize>(shape: Shape) -> Result<(), TestCaseError> {
    for entry in ALL {
        for spec in variants(entry, shape.ports) {
            let answers = answers::<W>(&spec, shape);
            for (paper, pairs) in shape.slots::<W>(spec.queueing(), SLOTS).iter().zip(&answers) {
                if let Err(why) = check(paper, pairs) {
                    return Err(TestCaseError::fail(format!("{spec}: {why}")));
                }
            }
        }
    }
    Ok(())
}

/// Arbiters whose matchings are maximal, always or with as many iterations as ports.
const MAXIMAL: [&str; 10] = ["islip", "p_spf", "pim", "rrm", "drrm", "firm", "ilqf", "iocf", "serena", "qps"];

/// A pair that could be added.
fn addable<const W: usize>(paper: &Paper<W>, pairs: &[(u16, u16)]) -> Option<(usize, usize)> {
    let inputs: PortSet<W> = pairs.iter().map(|(input, _)| usize::from(*input)).collect();
    let outputs: PortSet<W> = pairs.iter().map(|(_, output)| usize::from(*output)).collect();
    (paper.inputs & !inputs).iter().find_map(|input| {
        let left = paper.requests.of_input[input] & paper.outputs & !outputs;
        left.lowest().map(|output| (input, output))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_contract_holds(shape in shape(2..=64)) {
        keeps_the_contract::<1>(shape)?;
    }

    /// Rows of any sufficient width give the same pairs: an arbiter works on ports, not on words. Since
    /// every arbiter is built anew, this is also: same seed, same answers.
    #[test]
    fn answers_do_not_depend_on_the_width_of_rows(shape in shape(2..=64)) {
        for entry in ALL {
            for spec in variants(entry, shape.ports) {
                let narrow = answers::<1>(&spec, shape);
                prop_assert_eq!(&narrow, &answers::<1>(&spec, shape), "{:?} again", spec);
                prop_assert_eq!(&narrow, &answers::<2>(&spec, shape), "{:?}, 2 words", spec);
                prop_assert_eq!(&narrow, &answers::<4>(&spec, shape), "{:?}, 4 words", spec);
                prop_assert_eq!(&narrow, &answers::<16>(&spec, shape), "{:?}, 16 words", spec);
            }
        }
    }

    #[test]
    fn enough_iterations_leave_nothing_to_add(shape in shape(2..=64)) {
        for entry in ALL.iter().filter(|entry| MAXIMAL.contains(&entry.name)) {
            let spec = iterated(entry, shape.ports).unwrap_or_else(|| entry.default());
            let answers = answers::<1>(&spec, shape);
            for (paper, pairs) in shape.slots::<1>(spec.queueing(), SLOTS).iter().zip(&answers) {
                let addable = addable(paper, pairs);
                prop_assert_eq!(addable, None, "{:?} could have added it to {:?}", spec, pairs);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_contract_holds_in_larger_switches(two in shape(65..=128), four in shape(129..=256)) {
        keeps_the_contract::<2>(two)?;
        keeps_the_contract::<4>(four)?;
    }
}

#[test]
fn maximal_arbiters_are_registered() {
    for name in MAXIMAL {
        assert!(ALL.iter().any(|entry| entry.name == name), "{name}");
    }
}

/// In every mode, every arbiter carries a moderate load of short and long packets.
#[test]
fn every_arbiter_works_in_every_mode() {
    for entry in ALL {
        let modes: &[Mode] = match entry.default().queueing() {
            Queueing::Virtual => &[Mode::Cell, Mode::Packet, Mode::Spf, Mode::Preemptive],
            Queueing::Fifo | Queueing::Output => &[Mode::Cell, Mode::Packet],
            Queueing::Combined => &[Mode::Cell],
        };
        for mode in modes {
            let onoff = SOURCES.iter().find(|source| source.name == "onoff").expect("onoff is registered");
            let plan = Plan {
                ports: 5,
                arbiter: Spec {
                    options: Options { mode: Some(*mode), ..Options::default() },
                    algorithm: entry.default().algorithm,
                },
                traffic: (onoff.from_json)(serde_json::json!({ "load": 0.4 })).unwrap(),
                slots: 20_000,
                warmup: 2_000,
                streams: Streams::new(5),
                folder: std::path::PathBuf::new(),
            };
            let outcome = giveway_switch::run(&plan).unwrap();
            let (offered, carried) = (outcome.offered, outcome.throughput);
            assert!((offered - carried).abs() < 0.01, "{} {mode:?}: {carried} of {offered}", entry.name);
            for class in Class::ALL {
                assert!(
                    outcome.class(class).count > 1000,
                    "{} {mode:?}: {} packets",
                    entry.name,
                    class.name()
                );
            }
        }
    }
}
