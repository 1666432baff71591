//! Results of the literature on switches of cells, reproduced: saturation throughputs and mean waiting times
//! under independent, uniform arrivals.

use crate::bands::{assert_within, mean_and_band, throughput};
use giveway_qdisc::Streams;
use giveway_switch::options::Options;
use giveway_switch::outcome::Outcome;
use giveway_switch::registry::ALL;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Mode, Plan, Spec};

/// Cells arrive independently at `load` in a pattern; the first half of the run is not measured.
fn run_pattern(
    name: &str,
    parameters: serde_json::Value,
    ports: usize,
    load: f64,
    pattern: impl Into<serde_json::Value>,
    slots: u64,
) -> Outcome {
    run_seeded(name, parameters, ports, load, pattern.into(), slots, 11)
}

fn run_seeded(
    name: &str,
    parameters: serde_json::Value,
    ports: usize,
    load: f64,
    pattern: serde_json::Value,
    slots: u64,
    seed: u64,
) -> Outcome {
    let entry = ALL.iter().find(|entry| entry.name == name).expect("the name is registered");
    let bernoulli = SOURCES.iter().find(|source| source.name == "bernoulli").expect("the name is registered");
    let plan = Plan {
        ports,
        arbiter: Spec {
            options: Options { mode: Some(Mode::Cell), ..Options::default() },
            algorithm: (entry.from_json)(parameters).unwrap().algorithm,
        },
        traffic: (bernoulli.from_json)(serde_json::json!({ "load": load, "pattern": pattern })).unwrap(),
        slots,
        warmup: slots / 2,
        streams: Streams::new(seed),
        folder: std::path::PathBuf::new(),
    };
    giveway_switch::run(&plan).unwrap()
}

fn run(name: &str, iterations: Option<u32>, ports: usize, load: f64, slots: u64) -> Outcome {
    let parameters = iterations.map_or(serde_json::json!({}), |n| serde_json::json!({ "iterations": n }));
    run_pattern(name, parameters, ports, load, "uniform", slots)
}

/// Karol, Hluchyj and Morgan 1987, table I: saturation of input queues with heads of line, by size of the
/// switch.
#[test]
fn head_of_line_blocking_limits_throughput() {
    for (ports, want) in [(2, 0.75), (4, 325.0 / 496.0), (8, 0.6184)] {
        assert_within(throughput(&run("fifo", None, ports, 1.0, 400_000)), want);
    }
    let (large, _) = throughput(&run("fifo", None, 64, 1.0, 20_000));
    assert!(large > 0.586 && large < 0.60, "the limit of large switches is 2 - sqrt(2) = 0.586: {large}");
}

/// The mean waiting time of output queues: (N - 1)/N * p/(2 (1 - p)), the equation of Karol, Hluchyj and
/// Morgan 1987 for the queue at one output.
#[test]
fn mean_waiting_time_of_output_queues() {
    for load in [0.5, 0.8] {
        for ports in [4, 16] {
            let outcome = run("oq", None, ports, load, 400_000);
            let wait = mean_and_band(&outcome, |batch| {
                let all = batch.means[2];
                // Without the slot in which the cell leaves.
                all.through.unwrap() - all.delay.unwrap() - 1.0
            });
            let n = ports as f64;
            assert_within(wait, (n - 1.0) / n * load / (2.0 * (1.0 - load)));
        }
    }
}

/// The throughput of one iteration of PIM with every queue filled is 1 - (1 - 1/N)^N: an input is matched
/// unless no output grants it. With queue-proportional proposals alone the same holds for outputs, once all
/// queues have about the same length.
#[test]
fn random_choices_collide() {
    for (ports, want) in [(4, 0.683_594), (16, 0.643_926)] {
        assert_within(throughput(&run("pim", Some(1), ports, 1.0, 60_000)), want);
    }
    assert_within(throughput(&run("qps", Some(0), 16, 1.0, 60_000)), 0.643_926);
}

/// McKeown 1999, section II: the pointers of RRM synchronise. The throughput of a 2 x 2 switch is one half. A
/// 16 x 16 switch carries a load of 0.62. At higher loads its throughput is below that, and depends on how
/// the pointers synchronised.
#[test]
fn synchronised_pointers_collide() {
    assert_within(throughput(&run("rrm", Some(1), 2, 1.0, 20_000)), 0.5);
    let stable = run("rrm", Some(1), 16, 0.62, 100_000);
    assert!((stable.throughput - stable.offered).abs() < 0.003, "{} of 0.62", stable.throughput);
    let overloaded = run("rrm", Some(1), 16, 0.65, 100_000);
    assert!(overloaded.throughput < 0.6, "{} of 0.65", overloaded.throughput);
}

/// At a load of 0.63 RRM is metastable: over the same time some runs keep short queues, and in others the
/// pointers have synchronised and the queues only grow. In longer runs the pointers always synchronise, so
/// loads in this range do not count as stable.
#[test]
fn pointers_may_synchronise_late() {
    let one = serde_json::json!({ "iterations": 1 });
    let lost = |seed: u64| {
        let outcome = run_seeded("rrm", one.clone(), 16, 0.63, "uniform".into(), 600_000, seed);
        outcome.offered - outcome.throughput
    };
    let lost: Vec<f64> = (7..=10).map(lost).collect();
    assert!(lost.iter().any(|lost| lost.abs() < 0.003), "{lost:?}");
    assert!(lost.iter().any(|lost| *lost > 0.05), "{lost:?}");
}

/// Arbiters whose pointers slip apart carry any uniform load below 1, with a single iteration.
#[test]
fn pointers_that_slip_apart_do_not_collide() {
    for name in ["islip", "drrm", "firm"] {
        let outcome = run(name, Some(1), 16, 1.0, 100_000);
        assert!(outcome.throughput > 0.99, "{name}: {}", outcome.throughput);
    }
}

/// The mean waiting time of a queue with one fixed slot in N, at load p/N: (N - 1)/(2 (1 - p)).
///
/// A frame of N slots brings A cells, binomial with mean p and E[A(A - 1)] = p^2 (N - 1)/N, and takes one. So
/// E[A(A - 1)]/(2 (1 - p)) cells are left from earlier frames, E[A(A - 1)]/(2 p) are before a cell in its own
/// frame, each costs N slots, and the next slot of the queue is (N - 1)/2 slots away.
#[test]
fn mean_waiting_time_of_fixed_slots() {
    for load in [0.5, 0.8] {
        let outcome = run("tdm", None, 16, load, 400_000);
        let wait = mean_and_band(&outcome, |batch| batch.means[2].wait.unwrap());
        assert_within(wait, 15.0 / (2.0 * (1.0 - load)));
    }
}

/// Diagonal traffic, two thirds to the opposite output and one third to the next (Giaccone, Prabhakar, Shah
/// 2003): arbiters with only pointers or random choices lose more than a tenth of the load. Arbiters that
/// keep the last matching carry all of it.
#[test]
fn diagonal_traffic_needs_the_last_matching() {
    let carried =
        |name: &str| run_pattern(name, serde_json::json!({}), 16, 0.98, "diagonal", 60_000).throughput;
    for name in ["islip", "pim", "firm"] {
        assert!(carried(name) < 0.88, "{name}: {}", carried(name));
    }
    assert!((carried("serena") - 0.98).abs() < 0.005, "serena: {}", carried("serena"));
}

/// Chang, Chen and Huang 2000: a fixed schedule carries only the traffic for which it was computed.
#[test]
fn a_fixed_schedule_carries_only_its_own_pattern() {
    use serde_json::json;
    for (pattern, own) in [
        (json!("uniform"), json!({ "pattern": "uniform" })),
        (json!("diagonal"), json!({ "pattern": "diagonal" })),
        (json!("log_diagonal"), json!({ "pattern": "log_diagonal" })),
        (json!("quasi_diagonal"), json!({ "pattern": "quasi_diagonal" })),
        (json!({ "unbalanced": 0.4 }), json!({ "pattern": "unbalanced", "share": 0.4 })),
    ] {
        let outcome = run_pattern("tdm", own, 16, 0.95, pattern.clone(), 200_000);
        let lost = (outcome.offered - outcome.throughput).abs();
        assert!(lost < 0.003, "{pattern}: {} of {}", outcome.throughput, outcome.offered);
    }
    let other = run_pattern("tdm", json!({}), 16, 0.95, "diagonal", 20_000).throughput;
    assert!(other < 0.2, "a uniform schedule has only two of 16 slots for a diagonal: {other}");
}

/// With output queueing, packets whose cells arrive in one slot cross in one slot and never wait at an input.
#[test]
fn output_queues_take_whole_packets() {
    let bernoulli = SOURCES.iter().find(|source| source.name == "bernoulli").expect("the name is registered");
    let parameters = serde_json::json!({ "load": 0.6, "sizes": { "fixed": 9 } });
    let plan = Plan {
        ports: 4,
        arbiter: "oq".parse().unwrap(),
        traffic: (bernoulli.from_json)(parameters).unwrap(),
        slots: 20_000,
        warmup: 0,
        streams: Streams::new(11),
        folder: std::path::PathBuf::new(),
    };
    let outcome = giveway_switch::run(&plan).unwrap();
    assert!(outcome.all.count > 4_000, "{} packets", outcome.all.count);
    assert_eq!((outcome.all.wait.max, outcome.all.delay.max), (Some(0.0), Some(1.0)));
}
