//! The switch against the formulae of `giveway_theory::crossbar`, which share no code with it.

use std::path::PathBuf;

use crate::bands::{assert_within, mean_and_band, throughput};

use giveway_qdisc::Streams;
use giveway_switch::packet::Class;
use giveway_switch::stability::Stability;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Outcome, Plan};
use giveway_theory::crossbar::mix::Mix;
use giveway_theory::crossbar::{Ports, cells, fifo, preemption, speedup};
use serde_json::{Value, json};

/// Runs an arbiter; the first half is not measured.
fn run(arbiter: &str, ports: u32, source: &str, traffic: Value, slots: u64) -> Outcome {
    let source = SOURCES.iter().find(|entry| entry.name == source).expect("the source is registered");
    let plan = Plan {
        ports: ports as usize,
        arbiter: arbiter.parse().expect("the text is valid"),
        traffic: (source.from_json)(traffic).expect("the text is valid"),
        slots,
        warmup: slots / 2,
        streams: Streams::new(5),
        folder: PathBuf::new(),
    };
    giveway_switch::run(&plan).expect("the plan is valid")
}

/// Cells that arrive independently.
fn cells_at(arbiter: &str, ports: u32, load: f64, pattern: &str, slots: u64) -> Outcome {
    run(arbiter, ports, "bernoulli", json!({ "load": load, "pattern": pattern }), slots)
}

/// The traffic of the P-SPF paper: TRIMODEL(1, 9, 24, 0.559, 0.200), one packet to a burst.
fn packets_at(arbiter: &str, ports: u32, load: f64, slots: u64) -> Outcome {
    run(arbiter, ports, "onoff", json!({ "load": load }), slots)
}

fn paper() -> Mix {
    Mix::trimodel([1, 9, 24], 0.559, 0.200).expect("the shares are valid")
}

#[track_caller]
fn assert_stable(outcome: &Outcome, what: &str) {
    let trend = outcome.trend().expect("the run has eight batches or more");
    assert_eq!(trend.verdict, Stability::Stable, "{what}: {trend:?}");
}

/// Equation (1) of the P-SPF paper, by Karol, Hluchyj and Morgan: the mean waiting time of cells in output
/// queues.
#[test]
fn output_queues() {
    for ports in [4, 16] {
        for load in [0.2, 0.9] {
            let outcome = cells_at("oq mode cell", ports, load, "uniform", 400_000);
            let wait = mean_and_band(&outcome, |batch| {
                let all = batch.means[2];
                // Without the slot in which the cell leaves.
                all.through.expect("cells left") - all.delay.expect("cells crossed") - 1.0
            });
            assert_within(wait, cells::output_queueing_wait(load, Ports::Finite(ports)).unwrap());
        }
    }
}

/// The saturation throughput of input queues, from the Markov chain of the heads of line.
#[test]
fn input_queues_at_saturation() {
    for ports in [2, 4, 16] {
        let outcome = cells_at("fifo mode cell", ports, 1.0, "uniform", 200_000);
        assert_within(throughput(&outcome), fifo::saturation_throughput(Ports::Finite(ports)).unwrap());
    }
}

/// Two iterations of PIM with all queues filled: the recursion over the ports that the first iteration leaves
/// unmatched.
#[test]
fn parallel_iterative_matching_at_saturation() {
    for ports in [4, 16] {
        let outcome = cells_at("pim iterations 2 mode cell", ports, 1.0, "uniform", 100_000);
        assert_within(throughput(&outcome), cells::pim_throughput(ports, 2).unwrap());
    }
}

/// Equations (8) and (10): the cost of short packets if every link is fully loaded. An output is blocked
/// while its long packet is stopped, in its first slot (`held`) or later. The formulae are approximations
/// with an error of at most 0.0005. The bound of 0.001 allows for the length of the run as well.
#[test]
fn throughput_lost_to_preemption() {
    let mix = paper();
    let short_rate = preemption::short_rate_at_full_load(&mix);
    for ports in [4, 8, 16, 32, 64] {
        let outcome = packets_at("p_spf", ports, 1.0, 300_000);
        let all = (outcome.fabric_slots * u64::from(ports)) as f64;
        let blocked = (outcome.outputs.blocked + outcome.outputs.held) as f64 / all;
        let expected = preemption::blocked(short_rate, Ports::Finite(ports)).unwrap();
        assert!((blocked - expected).abs() < 0.001, "N = {ports}: {blocked} of {expected}");
        let most = preemption::max_throughput(&mix, Ports::Finite(ports)).unwrap();
        // In a run of this length some queues are still empty at times. The formula assumes full queues.
        assert!((outcome.throughput - most).abs() < 0.0015, "N = {ports}: {} of {most}", outcome.throughput);
    }
}

/// The capacity is above equation (10): if not every link is fully loaded, fewer short packets interrupt.
#[test]
fn capacity_with_preemption() {
    let capacity = preemption::capacity(&paper(), Ports::Finite(16)).unwrap();
    assert_stable(&packets_at("p_spf", 16, capacity - 0.02, 4_000_000), "below");
    let above = packets_at("p_spf", 16, capacity + 0.01, 1_000_000);
    let trend = above.trend().expect("the run has eight batches or more");
    assert!(trend.slope > 0.005 + 3.0 * trend.error, "{trend:?}");
    let most = preemption::max_throughput(&paper(), Ports::Finite(16)).unwrap();
    assert!((most..=capacity).contains(&above.throughput), "{most}, {}, {capacity}", above.throughput);
}

/// Equation (2): short packets wait only for each other, as at an output queue. At higher loads short packets
/// arrive in runs, and the equation underestimates the waiting time.
#[test]
fn waiting_time_of_short_packets() {
    for (ports, slots) in [(8, 4_000_000), (16, 2_000_000)] {
        let outcome = packets_at("p_spf", ports, 0.2, slots);
        let wait = outcome.class(Class::Short).wait.mean.expect("short packets crossed");
        let expected = preemption::short_wait(&paper(), 0.2, Ports::Finite(ports)).unwrap();
        assert!((wait / expected - 1.0).abs() < 0.1, "N = {ports}: {wait} of {expected}");
    }
}

/// A maximal matching is not enough for every traffic, but it is at a speedup of 2 (Dai and Prabhakar 2000).
#[test]
fn maximal_matching_needs_a_speedup() {
    let with = |speedup: f64| {
        let arbiter = format!("islip iterations 16 mode cell speedup {speedup}");
        cells_at(&arbiter, 16, 0.95, "diagonal", 100_000)
    };
    let trend = with(1.0).trend().expect("the run has eight batches or more");
    assert_eq!(trend.verdict, Stability::Growing, "{trend:?}");
    assert_stable(&with(speedup::MAXIMAL_MATCHING), "speedup 2");
}

/// Maximum weight matching is stable at every admissible traffic (McKeown, Mekkittikul, Anantharam and
/// Walrand 1999).
#[test]
fn maximum_weight_is_stable() {
    for pattern in ["diagonal", "log_diagonal", "quasi_diagonal"] {
        assert_stable(&cells_at("mwm mode cell", 8, 0.95, pattern, 200_000), pattern);
    }
}
