//! Arbiters that a caller brings.

use giveway_qdisc::Streams;
use giveway_switch::arbiter::ArbiterContext;
use giveway_switch::packet::Class;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Mode, Outside, Plan, Sim, SlotRequests, run};
use serde_json::json;

fn plan(ports: usize, arbiter: &str) -> Plan {
    let onoff = SOURCES.iter().find(|entry| entry.name == "onoff").expect("onoff is registered");
    Plan {
        ports,
        arbiter: arbiter.parse().expect("it is an arbiter"),
        traffic: (onoff.from_json)(json!({ "load": 0.6 })).expect("onoff needs only a load"),
        slots: 6_000,
        warmup: 600,
        streams: Streams::new(3),
        folder: std::path::PathBuf::new(),
    }
}

/// The longest queue first.
struct Longest;

impl Outside for Longest {
    fn decide(&mut self, asked: &SlotRequests<'_>, pairs: &mut Vec<(usize, usize)>) -> Result<(), String> {
        let mut requests = asked.pairs.to_vec();
        requests
            .sort_by_key(|&(input, output)| (std::cmp::Reverse(asked.cells(input, output)), input, output));
        for (input, output) in requests {
            if pairs.iter().all(|&(one, other)| one != input && other != output) {
                pairs.push((input, output));
            }
        }
        Ok(())
    }
}

/// Matches pairs by a function of the slot and the requests.
struct By<F>(F);

impl<F: FnMut(u64, &[(usize, usize)]) -> Result<Vec<(usize, usize)>, String> + Send> Outside for By<F> {
    fn decide(&mut self, asked: &SlotRequests<'_>, pairs: &mut Vec<(usize, usize)>) -> Result<(), String> {
        *pairs = (self.0)(asked.slot, asked.pairs)?;
        Ok(())
    }
}

/// A decision from the number of a slot and its requests.
type Decide = fn(u64, &[(usize, usize)]) -> Result<Vec<(usize, usize)>, String>;

/// The mistake of an arbiter.
fn mistake(decide: Decide) -> String {
    let plan = plan(4, "islip mode cell");
    let mut sim = Sim::with_arbiter(&plan, &|_, _| Box::new(By(decide))).expect("it can be built");
    sim.step_to(plan.slots);
    sim.mistake().expect("it makes a mistake")
}

/// Without ties among equal weights, `greedy weight queue_length ties fixed` is the same arbiter.
#[test]
fn it_decides_as_one_of_the_registry_in_every_mode() {
    for mode in [Mode::Cell, Mode::Packet, Mode::Spf, Mode::Preemptive] {
        for ports in [4, 70] {
            let mut plan = plan(ports, "greedy weight queue_length ties fixed");
            plan.arbiter.options.mode = Some(mode);
            let mut sim = Sim::with_arbiter(&plan, &|_, _| Box::new(Longest)).expect("it can be built");
            sim.step_to(plan.slots);
            assert_eq!(sim.mistake(), None);
            let outcome = sim.outcome();
            assert!((outcome.throughput - outcome.offered).abs() < 0.02, "{mode:?}: {}", outcome.throughput);
            assert!(outcome == run(&plan).expect("the plan is valid"), "{mode:?}, {ports} ports");
        }
    }
}

#[test]
fn a_matching_is_checked() {
    let twice = mistake(|_, asked| Ok(vec![asked[0], asked[0]]));
    assert!(twice.contains("is in two pairs") && twice.starts_with("slot "), "{twice}");
    let output = mistake(|_, asked| {
        let (input, output) = asked[0];
        let other = asked.iter().find(|(one, same)| *one != input && *same == output);
        Ok(other.map_or_else(Vec::new, |other| vec![(input, output), *other]))
    });
    assert!(output.contains(": output ") && output.contains("is in two pairs"), "{output}");
    let idle = mistake(|_, asked| {
        let absent = (0..4).map(|output| (asked[0].0, output)).find(|pair| !asked.contains(pair));
        Ok(absent.into_iter().collect())
    });
    assert!(idle.contains("does not request output"), "{idle}");
    assert!(mistake(|_, _| Ok(vec![(0, 4)])).contains("the pair (0, 4) is not one of ports 0 to 3"));
    assert_eq!(mistake(|_, _| Err("it gave up".into())), "it gave up");
}

/// After a mistake nothing crosses, and the first sentence stays.
#[test]
fn a_mistake_ends_all_matches() {
    let plan = plan(4, "islip mode cell");
    let build = |_: &ArbiterContext, class: Class| -> Box<dyn Outside> {
        assert_eq!(class, Class::Long, "this mode has no classes");
        Box::new(By(
            |slot, asked: &[(usize, usize)]| {
                if slot < 100 { Ok(vec![asked[0]]) } else { Err(format!("slot {slot} is enough")) }
            },
        ))
    };
    let mut sim = Sim::with_arbiter(&plan, &build).expect("it can be built");
    sim.step_to(plan.slots);
    let mistake = sim.mistake().expect("there is one");
    assert!(mistake.starts_with("slot 10"), "{mistake}");
    assert_eq!(sim.outcome().throughput, 0.0, "it failed before the measurement");
}

#[test]
fn a_switch_without_an_arbiter_is_refused() {
    for arbiter in ["oq", "cioq"] {
        let refused =
            Sim::with_arbiter(&plan(4, arbiter), &|_, _| Box::new(Longest)).map(|_| ()).unwrap_err();
        assert!(refused.message.contains("no place for another arbiter"), "{refused}");
    }
}
