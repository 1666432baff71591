//! The alert rules and the dashboard name metrics that the program has, with labels that they have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::two;
use giveway_watch::Reservations;
use giveway_watch::openmetrics::render;

const RULES: &str = "packaging/monitoring/giveway-live.rules.yml";
const DASHBOARD: &str = "packaging/monitoring/giveway-live.grafana.json";

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !word(c)).filter(|name| name.starts_with("giveway_")).collect()
}

/// Expressions of the dashboard and its variables.
fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(&read(DASHBOARD)).expect("it is JSON");
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let panels = list(&dashboard["panels"]);
    let targets = panels.iter().flat_map(|panel| list(&panel["targets"]));
    let variables = list(&dashboard["templating"]["list"]);
    let texts = targets.map(|target| target["expr"].clone());
    let texts = texts.chain(variables.into_iter().map(|variable| variable["query"].clone()));
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

#[test]
fn alerts_and_dashboard_use_metrics_that_exist() {
    let mut bridge = two();
    // Only a bridge with `--reserve` has them.
    bridge[0].reservations = Some(Reservations::default());
    let page = render(&bridge);
    let samples: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let (rules, expressions) = (read(RULES), expressions().join("\n"));
    for text in [&rules, &expressions] {
        let used = names(text);
        assert!(used.len() > 5, "{used:?}");
        let missing: Vec<_> = used.iter().filter(|name| !samples.contains(**name)).collect();
        assert!(missing.is_empty(), "the program has no {missing:?}");
        // A quantile that the program does not compute would never alert.
        for quantile in text.split("quantile=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("quantile=\"{quantile}\"")), "{quantile}");
        }
    }
}

#[test]
fn a_metric_that_does_not_exist_is_found() {
    assert_eq!(names("rate(giveway_sent[5m]) > giveway_x"), ["giveway_sent", "giveway_x"].into());
}
