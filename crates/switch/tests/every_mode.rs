//! Every arbiter in every mode: it carries a moderate load, and the same run gives the same result.

use giveway_qdisc::Streams;
use giveway_switch::options::{Options, Phases, Queueing};
use giveway_switch::traffic::SOURCES;
use giveway_switch::{ALL, Mode, Outcome, Plan, Spec};
use serde_json::json;

const SLOTS: u64 = 6_000;

fn run(ports: usize, name: &str, parameters: &serde_json::Value, options: Options) -> Outcome {
    let entry = ALL.iter().find(|entry| entry.name == name).expect("the arbiter is registered");
    let algorithm = (entry.from_json)(parameters.clone()).expect("the parameters are valid").algorithm;
    let onoff = SOURCES.iter().find(|entry| entry.name == "onoff").expect("onoff is registered");
    let plan = Plan {
        ports,
        arbiter: Spec { options, algorithm },
        traffic: (onoff.from_json)(json!({ "load": 0.6 })).expect("onoff needs only a load"),
        slots: SLOTS,
        warmup: SLOTS / 10,
        streams: Streams::new(3),
        folder: std::path::PathBuf::new(),
    };
    giveway_switch::run(&plan).expect("the plan is valid")
}

/// Arbiters with virtual output queues, with parameters that change their results.
fn arbiters() -> Vec<(&'static str, serde_json::Value)> {
    let mut all = Vec::new();
    for entry in ALL.iter().filter(|entry| entry.default().queueing() == Queueing::Virtual) {
        let properties = (entry.schema)().as_value()["properties"].clone();
        let has = |name: &str| properties.get(name).is_some();
        all.push((entry.name, json!({})));
        if has("ties") {
            all.push((entry.name, json!({ "ties": "fixed" })));
            all.push((entry.name, json!({ "ties": "rotating" })));
        }
        if has("weight") {
            all.push((entry.name, json!({ "weight": "cell_age" })));
            all.push((entry.name, json!({ "weight": "port_occupancy" })));
        }
    }
    all
}

fn check(ports: usize, options: &Options) {
    for (name, parameters) in arbiters() {
        let outcome = run(ports, name, &parameters, options.clone());
        let what = format!("{ports} ports, {name} {parameters}, {options:?}");
        assert!((outcome.throughput - outcome.offered).abs() < 0.02, "{what}: {}", outcome.throughput);
        assert!(
            outcome == run(ports, name, &parameters, options.clone()),
            "{what}: a second run has another result"
        );
    }
}

#[test]
fn every_mode() {
    for mode in [Mode::Cell, Mode::Packet, Mode::Spf, Mode::Preemptive] {
        for ports in [2, 9] {
            check(ports, &Options { mode: Some(mode), ..Options::default() });
        }
    }
}

#[test]
fn every_kind_of_preemption() {
    let preemptive = Options { mode: Some(Mode::Preemptive), ..Options::default() };
    check(8, &Options { phases: Some(Phases::Parallel), ..preemptive.clone() });
    check(8, &Options { hold: false, ..preemptive.clone() });
    check(8, &Options { lazy: 8, ..preemptive });
}

#[test]
fn a_faster_fabric() {
    for speedup in ["1.176", "2"] {
        let options = Options { speedup: Some(speedup.parse().expect("a speedup")), ..Options::default() };
        check(8, &options);
        check(8, &Options { mode: Some(Mode::Cell), ..options });
    }
}

#[test]
fn more_ports_than_a_word_has_bits() {
    for mode in [Mode::Cell, Mode::Packet, Mode::Preemptive] {
        let options = Options { mode: Some(mode), ..Options::default() };
        for (name, parameters) in arbiters() {
            // A fixed schedule of 70 ports needs more slots than this run has to fill its queues.
            if parameters != json!({}) || name == "tdm" {
                continue;
            }
            let outcome = run(70, name, &parameters, options.clone());
            let what = format!("{name} {options:?}");
            assert!((outcome.throughput - outcome.offered).abs() < 0.02, "{what}: {}", outcome.throughput);
        }
    }
}
