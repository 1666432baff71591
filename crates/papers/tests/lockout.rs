//! Lock-outs, with TCP: `scenarios/lockout.toml` shows what its description says.

use giveway_scenario::Scenario;

/// How long the first transfer stood still, in seconds, under each discipline.
fn pauses() -> Vec<(String, f64)> {
    let scenario = Scenario::parse(include_str!("../../../scenarios/lockout.toml"), "").unwrap();
    let pause = |trial: &giveway_scenario::Trial| {
        let (record, _) = giveway_papers::observe(&scenario, trial, false, &|_| true).unwrap();
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
    // The newcomer needs as long as the first had before it.
    assert!((9.0..=12.0).contains(&of("las")), "{pauses:?}");
    // 100 packets drain in 0.12 s; who lost the last packet of a window waits a timeout, 1 s, on top, and a round trip
    // or two.
    const DRAIN_AND_TIMEOUT: f64 = 0.12 + 1.0 + 2.0 * 0.02;
    assert!(of("lars") <= 2.0 + DRAIN_AND_TIMEOUT, "the half-life is 2 s: {pauses:?}");
    for name in ["efd", "run2c", "fifo"] {
        assert!(of(name) <= DRAIN_AND_TIMEOUT, "{name}: {pauses:?}");
    }
}
