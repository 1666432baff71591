//! The numbers of one run are consistent: quantiles are in order, neither they nor the mean are above the
//! maximum, and shares add up to one.

use std::collections::BTreeMap;

use giveway_qdisc::Streams;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{ALL, Outcome, Packets, Plan, Times};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

fn check_times(what: &str, times: &Times) {
    let counted: u64 = times.counts.iter().map(|(_, count)| count).sum();
    assert_eq!(counted > 0, times.mean.is_some(), "{what}");
    assert_eq!(counted > 0, times.max.is_some(), "{what}");
    let (Some(mean), Some(max)) = (times.mean, times.max) else { return };
    let quantile = |q: f64| times.quantile(q).expect("the times are those of packets");
    let quantiles = [0.0, 0.25, 0.5, 0.95, 0.99, 0.9999, 1.0].map(quantile);
    assert!(quantiles.is_sorted(), "{what}: {quantiles:?}");
    assert!(quantiles[6] <= max, "{what}: {quantiles:?}, max {max}");
    // The counts include the longest time.
    assert_eq!(quantiles[6], max, "{what}");
    assert!(mean <= max, "{what}: mean {mean}, max {max}");
    // The definition, computed independently. The upper end of a range may exceed the longest time.
    let at_most = |time: f64| -> u64 {
        times.counts.iter().filter(|(other, _)| other.min(max) <= time).map(|(_, count)| count).sum()
    };
    for q in [0.25, 0.5, 0.95, 0.99] {
        let time = quantile(q);
        assert!(at_most(time) as f64 >= q * counted as f64, "{what}: {q}");
        let before = times.counts.iter().map(|(other, _)| *other).rfind(|other| *other < time);
        assert!(before.is_none_or(|before| (at_most(before) as f64) < q * counted as f64), "{what}: {q}");
    }
    // Each count has its exact time or the upper end of a range, so the mean of the counts is slightly above
    // the exact one.
    let rough: f64 =
        times.counts.iter().map(|(time, count)| time * *count as f64).sum::<f64>() / counted as f64;
    assert!(rough >= mean * (1.0 - 1e-12) && rough <= mean * 1.001 + 1e-12, "{what}: {rough} and {mean}");
}

fn check_packets(what: &str, packets: &Packets) {
    check_times(&format!("{what}: wait"), &packets.wait);
    check_times(&format!("{what}: delay"), &packets.delay);
    check_times(&format!("{what}: through"), &packets.through);
    let counted: u64 = packets.wait.counts.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, packets.count, "{what}");
}

fn check(outcome: &Outcome) {
    check_packets("all", &outcome.all);
    outcome.classes.iter().for_each(|of| check_packets("class", of));
    outcome.kinds.iter().for_each(|(kind, of)| check_packets(&format!("{kind:?}"), of));
    assert_eq!(outcome.kinds.iter().map(|(_, of)| of.count).sum::<u64>(), outcome.all.count);
    assert_eq!(outcome.classes.iter().map(|of| of.count).sum::<u64>(), outcome.all.count);

    // The named numbers of tables.
    let numbers: BTreeMap<String, f64> =
        outcome.numbers().into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    for (name, p50) in numbers.iter().filter(|(name, _)| name.ends_with("_p50_slots")) {
        let other = |which: &str| numbers[&name.replace("_p50_", which)];
        let ordered = [*p50, other("_p95_"), other("_p99_"), other("_max_")];
        assert!(ordered.is_sorted(), "{name}: {ordered:?}");
        assert!(other("_mean_") <= other("_max_"), "{name}");
    }
    let shares: Vec<f64> = ["short", "long", "blocked", "held", "unmatched", "idle"]
        .iter()
        .map(|name| numbers[&format!("output_{name}")])
        .collect();
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    assert!(numbers["input_max_cells"] >= numbers["queue_max_cells"]);
}

/// An arbiter as it is written in scenarios, in a mode that it supports.
fn arbiters() -> impl Strategy<Value = String> {
    let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    let mode = select(vec!["", " mode cell", " mode packet", " mode spf", " mode preemptive"]);
    let speedup = select(vec!["", " speedup 1.176", " speedup 1.2", " speedup 4/3", " speedup 2"]);
    let input = select(vec!["", " input store_and_forward"]);
    (select(names), mode, speedup, input).prop_map(|(name, mode, speedup, input)| {
        let mode = match name {
            "fifo" | "oq" if mode.contains("spf") || mode.contains("preemptive") => "",
            "cioq" => "",
            _ => mode,
        };
        format!("{name}{mode}{speedup}{input}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn numbers_agree(
        arbiter in arbiters(),
        kind in select(vec!["onoff", "bernoulli"]),
        load in select(vec![0.05, 0.5, 0.9, 1.0]),
        pattern in select(vec!["uniform", "diagonal"]),
        ports in 2usize..=9,
        slots in 40u64..5_000,
        seed in 0u64..1_000,
    ) {
        let source = SOURCES.iter().find(|source| source.name == kind).expect("the source is registered");
        let sizes = json!({ "trimodel": { "a": 1, "b": 9, "c": 24, "pa": 0.559, "pb": 0.2 } });
        let parameters = json!({ "load": load, "pattern": pattern, "sizes": sizes });
        let plan = Plan {
            ports,
            arbiter: arbiter.parse().expect("the arbiter is valid"),
            traffic: (source.from_json)(parameters).expect("the parameters are valid"),
            slots,
            warmup: slots / 7,
            streams: Streams::new(seed),
            folder: Default::default(),
        };
        check(&giveway_switch::run(&plan).expect("the plan is valid"));
    }
}
