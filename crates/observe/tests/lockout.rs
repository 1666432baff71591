//! Lock-outs with TCP: the results of `scenarios/lockout.toml` agree with its description.

use giveway_scenario::Scenario;

/// The longest pause of the first transfer under each discipline, seconds.
fn pauses() -> Vec<(String, f64)> {
    let scenario = Scenario::parse(include_str!("../../../scenarios/lockout.toml"), "").unwrap();
    let pause = |trial: &giveway_scenario::Trial| {
        let (record, _) = giveway_observe::observe(&scenario, trial, false, &|_| true).unwrap();
        let first =
            record.flows.iter().find(|flow| record.layout.source_name(flow.source) == "first").unwrap();
        let name = scenario.network().unwrap().discipline(trial).name();
        (name.to_owned(), first.longest_pause.as_s())
    };
    scenario.trials().iter().map(pause).collect()
}

#[test]
fn las_locks_a_long_transfer_out_and_the_others_do_not() {
    let pauses = pauses();
    let of = |name: &str| pauses.iter().find(|(known, _)| known == name).unwrap().1;
    // The new transfer is served until it has received as much as the first transfer had before.
    assert!((9.0..=12.0).contains(&of("las")), "{pauses:?}");
    // 100 packets drain in 0.12 s. A transfer that lost the last packet of a window also waits for a timeout
    // of 1 s and one or two round trips.
    const DRAIN_AND_TIMEOUT: f64 = 0.12 + 1.0 + 2.0 * 0.02;
    assert!(of("lars") <= 2.0 + DRAIN_AND_TIMEOUT, "the half-life is 2 s: {pauses:?}");
    for name in ["efd", "run2c", "fifo"] {
        assert!(of(name) <= DRAIN_AND_TIMEOUT, "{name}: {pauses:?}");
    }
}
