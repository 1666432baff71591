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
    let entry = ALL.iter().find(|entry| entry.name == name).expect("it is registered");
    let bernoulli = SOURCES.iter().find(|source| source.name == "bernoulli").expect("it is registered");
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
fn heads_of_line_block() {
    for (ports, want) in [(2, 0.75), (4, 325.0 / 496.0), (8, 0.6184)] {
        assert_within(throughput(&run("fifo", None, ports, 1.0, 400_000)), want);
    }
    let (large, _) = throughput(&run("fifo", None, 64, 1.0, 20_000));
    assert!(large > 0.586 && large < 0.60, "2 - sqrt(2) = 0.586 is what remains of large ones: {large}");
}

/// The mean wait of output queues: (N - 1)/N * p/(2 (1 - p)), the article's equation for the queue at one
/// output.
#[test]
fn output_queues_wait_as_known() {
    for load in [0.5, 0.8] {
        for ports in [4, 16] {
            let outcome = run("oq", None, ports, load, 400_000);
            let wait = mean_and_band(&outcome, |batch| {
                let all = batch.means[2];
                // Less the slot in which the cell itself leaves.
                all.through.unwrap() - all.delay.unwrap() - 1.0
            });
            let n = ports as f64;
            assert_within(wait, (n - 1.0) / n * load / (2.0 * (1.0 - load)));
        }
    }
}

/// With one iteration of PIM and every queue filled, an input is matched unless no output grants it: 1 - (1 -
/// 1/N)^N. Of queue-proportional proposals alone the same holds for outputs, once all queues have about the
/// same length.
#[test]
fn ports_that_choose_by_lot_collide() {
    for (ports, want) in [(4, 0.683_594), (16, 0.643_926)] {
        assert_within(throughput(&run("pim", Some(1), ports, 1.0, 60_000)), want);
    }
    assert_within(throughput(&run("qps", Some(0), 16, 1.0, 60_000)), 0.643_926);
}

/// McKeown 1999, section II: the pointers of RRM march in step. A switch of 2 x 2 carries one half; one of 16
/// x 16 keeps up at a load of 0.62. Its throughput at higher loads depends on how the pointers synchronised,
/// and is less.
#[test]
fn pointers_that_march_in_step_collide() {
    assert_within(throughput(&run("rrm", Some(1), 2, 1.0, 20_000)), 0.5);
    let stable = run("rrm", Some(1), 16, 0.62, 100_000);
    assert!((stable.throughput - stable.offered).abs() < 0.003, "{} of 0.62", stable.throughput);
    let beyond = run("rrm", Some(1), 16, 0.65, 100_000);
    assert!(beyond.throughput < 0.6, "{} of 0.65", beyond.throughput);
}

/// At a load of 0.63 RRM is metastable: over the same time some runs keep up with short queues, and others
/// have tipped over, with queues that only grow. Longer runs all tip over, so no load there is called stable.
#[test]
fn pointers_may_fall_into_step_late() {
    let one = serde_json::json!({ "iterations": 1 });
    let lost = |seed: u64| {
        let outcome = run_seeded("rrm", one.clone(), 16, 0.63, "uniform".into(), 600_000, seed);
        outcome.offered - outcome.throughput
    };
    let lost: Vec<f64> = (7..=10).map(lost).collect();
    assert!(lost.iter().any(|lost| lost.abs() < 0.003), "{lost:?}");
    assert!(lost.iter().any(|lost| *lost > 0.05), "{lost:?}");
}

/// Pointers that slip apart carry any uniform load below 1, with a single iteration.
#[test]
fn pointers_that_slip_apart_do_not_collide() {
    for name in ["islip", "drrm", "firm"] {
        let outcome = run(name, Some(1), 16, 1.0, 100_000);
        assert!(outcome.throughput > 0.99, "{name}: {}", outcome.throughput);
    }
}

/// A queue with one slot in N to itself, at load p/N: its mean wait is (N - 1)/(2 (1 - p)).
///
/// A frame of N slots brings A cells, binomial with mean p and E[A(A - 1)] = p^2 (N - 1)/N, and takes one. So
/// E[A(A - 1)]/(2 (1 - p)) cells are left from earlier frames, E[A(A - 1)]/(2 p) are before a cell in its own
/// frame, each costs N slots, and the next slot of the queue is (N - 1)/2 slots away.
#[test]
fn fixed_slots_wait_as_known() {
    for load in [0.5, 0.8] {
        let outcome = run("tdm", None, 16, load, 400_000);
        let wait = mean_and_band(&outcome, |batch| batch.means[2].wait.unwrap());
        assert_within(wait, 15.0 / (2.0 * (1.0 - load)));
    }
}

/// Two thirds to the output opposite, one third to the next (Giaccone, Prabhakar, Shah 2003): arbiters with
/// pointers or random choices alone lose more than a tenth; those that remember the last matching carry all
/// of it.
#[test]
fn diagonal_traffic_needs_weights_and_memory() {
    let carried =
        |name: &str| run_pattern(name, serde_json::json!({}), 16, 0.98, "diagonal", 60_000).throughput;
    for name in ["islip", "pim", "firm"] {
        assert!(carried(name) < 0.88, "{name}: {}", carried(name));
    }
    assert!((carried("serena") - 0.98).abs() < 0.005, "serena: {}", carried("serena"));
}

/// Chang, Chen and Huang 2000: a fixed schedule carries the traffic that it was made for, and only that.
#[test]
fn a_fixed_schedule_carries_what_it_was_made_for() {
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
    assert!(other < 0.2, "two slots in 16 are all that a diagonal has of a uniform schedule: {other}");
}

/// With output queueing, packets whose cells arrive at once cross at once: no packet waits at an input.
#[test]
fn output_queues_take_whole_packets() {
    let bernoulli = SOURCES.iter().find(|source| source.name == "bernoulli").expect("it is registered");
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
