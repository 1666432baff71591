//! The ack filter of cake: the results of `scenarios/links/slow-upstream.toml` agree with its description.

use giveway_scenario::{Scenario, Trial};

/// Bytes that the download got, and its timeouts, under each discipline.
fn downloads(scenario: &Scenario) -> Vec<(f64, u64)> {
    let download = |trial: &Trial| {
        let (record, _) = giveway_observe::observe(scenario, trial, false, &|_| true).unwrap();
        let mut flows = record.flows.iter();
        let flow = flows.find(|flow| record.layout.source_name(flow.source) == "download").unwrap();
        (flow.goodput_bytes as f64, flow.timeouts)
    };
    scenario.trials().iter().map(download).collect()
}

/// RFC 3449, section 5.2.1: acknowledgements are cumulative, so a slow way back needs only the last ones. The
/// download gets at least 30 % more, and waits for no timeout.
#[test]
fn the_ack_filter_speeds_a_download_up_and_causes_no_timeout() {
    let scenario = Scenario::parse(include_str!("../../../scenarios/links/slow-upstream.toml"), "").unwrap();
    let [without, with, aggressive] = downloads(&scenario.short().unwrap())[..] else {
        panic!("there are three disciplines")
    };
    for (goodput, timeouts) in [with, aggressive] {
        assert!(goodput > 1.3 * without.0, "{goodput} and {without:?}");
        assert_eq!(timeouts, 0);
    }
}
