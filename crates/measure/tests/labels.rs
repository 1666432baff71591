//! Tests of the labels of metrics.

use std::collections::BTreeMap;

use giveway_measure::figures::NumberStyle;
use giveway_measure::{
    Definition, METRICS, MetricName, Statistic, Subject, behind, label, named, short_label,
};

/// A name of a definition as a run has it.
fn in_a_run(definition: &Definition, name: &str) -> String {
    let word = match name {
        "short_wait_*_slots" | "short_delay_*_slots" | "short_through_*_slots" => "p99",
        "long_wait_*_slots" | "long_delay_*_slots" | "long_through_*_slots" => "max",
        _ => "le30kB",
    };
    let name = name.replace('*', word);
    match definition.subject {
        Subject::Source => format!("src.web.{name}"),
        Subject::Class => format!("class.line.{name}"),
        Subject::Flows | Subject::Ports | Subject::Switch => name,
    }
}

#[test]
fn every_metric_has_its_own_label_and_all_other_texts() {
    let mut of_label: BTreeMap<String, String> = BTreeMap::new();
    for definition in METRICS {
        let Definition { labels, names, description, edges, missing, .. } = definition;
        assert!(labels.len() == 1 || labels.len() == names.len(), "{names:?}");
        assert!([description, edges, missing].iter().all(|text| text.ends_with('.')), "{names:?}");
        for pattern in *names {
            let name = in_a_run(definition, pattern);
            let MetricName { definition: found, texts, .. } = named(&name).expect("the name is defined");
            assert_eq!((found.names, found.subject), (*names, definition.subject), "{name}");
            assert!(!texts.noun.is_empty() && !short_label(&name).is_empty(), "{name}");
            assert!(!label(&name).contains('*') && !short_label(&name).contains('*'), "{name}");
            if let Some(other) = of_label.insert(label(&name), name.clone()) {
                panic!("{name} and {other} have the label \"{}\"", label(&name));
            }
        }
    }
}

#[test]
fn the_statistic_is_in_the_label() {
    for (name, expected, short) in [
        ("fct_mean_s", "mean flow completion time", "mean"),
        ("fct_p50_s", "median flow completion time", "p50"),
        ("fct_gt3MB_p95_s", "95th percentile of the completion times of transfers above 3 MB", "p95"),
        ("fct_le30kB_p50_s", "median completion time of transfers in the class up to 30 kB", "p50"),
        (
            "at.home->isp.small_sojourn_p99_s",
            "99th percentile of the sojourn times of small packets at home->isp",
            "small p99",
        ),
        ("src.call.delay_p95_s", "95th percentile of the delay of call", "p95"),
        ("voice_loss", "packet loss of calls", "lost"),
        ("flows_incomplete", "number of unfinished transfers", "unfinished"),
        ("flow_table_max", "maximum number of tracked flows", "table max"),
        ("run_length_weighted", "mean run length of a packet", "of a packet"),
        ("drops_pushout", "number of drops (pushout)", "drops"),
        ("short_wait_mean_slots", "mean wait of short packets", "short"),
        ("long_wait_ci_slots", "half of the 95 % interval of the mean wait of long packets", "long ci"),
        ("class.homes/home1.wait_max_s", "maximum wait of the class homes/home1", "longest"),
        ("of_no_table", "of_no_table", "of_no_table"),
    ] {
        assert_eq!((label(name).as_str(), short_label(name).as_str()), (expected, short), "{name}");
    }
}

#[test]
fn every_quantile_has_a_name() {
    for (per_mille, name) in [
        (10, "1st percentile"),
        (20, "2nd percentile"),
        (110, "11th percentile"),
        (500, "median"),
        (900, "90th percentile"),
        (930, "93rd percentile"),
        (999, "99.9th percentile"),
    ] {
        assert_eq!(Statistic::Quantile(per_mille).name(), name);
    }
    assert_eq!(behind("fct_p90_s"), Some(("flows_completed".to_owned(), 10)));
    assert_eq!(behind("sojourn_p999_s"), Some(("sojourn_packets".to_owned(), 1_000)));
}

#[test]
fn the_unit_and_the_digits_follow_from_the_definition() {
    let text = |name: &str, value: f64| NumberStyle::of(name).text(value, true);
    assert_eq!(text("fct_p50_s", 0.0123), "12.3 ms");
    assert_eq!(text("goodput_bps", 9.5e6), "9.50 Mbit/s");
    assert_eq!(text("utilization", 0.875), "87.5 %");
    assert_eq!(text("backlog_mean_packets", 12.25), "12.2 pkts");
    assert_eq!(text("drops", 7.0).trim_end(), "7");
    assert_eq!(text("jain", 0.5).trim_end(), "0.500");
}
