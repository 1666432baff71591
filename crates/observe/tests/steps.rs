//! A run in steps is the run at once.

use giveway_observe::{Sojourns, Steps, observe};
use giveway_qdisc::{Span, Time};
use giveway_scenario::{Draft, discipline};

#[test]
fn steps_give_the_record_of_a_run_at_once() {
    let text = include_str!("../../../scenarios/quickstart.toml");
    // A short queue drops packets in the first seconds.
    let scenario = Draft::parse(text, "").set("disciplines=[\"drr limit 100p\"]").finish().unwrap();
    let scenario = scenario.short().unwrap();
    let trial = scenario.trials().remove(0);
    let (whole, remarks) = observe(&scenario, &trial, false, &|_| true).unwrap();

    let network = scenario.network().unwrap();
    let build = |_: &_, spec: &_, context: &_| discipline(spec, context);
    let mut steps = Steps::new(network, &trial, &build, false);
    let uplink = steps.trial().port("home->isp").unwrap();
    let mut seen = Sojourns::default();
    let mut time = Time::ZERO;
    while steps.trial().now() < steps.trial().until() {
        time += Span::ms(250);
        steps.step_to(time);
        let since = steps.since(uplink);
        seen.packets += since.packets;
        seen.bytes += since.bytes;
        seen.dropped += since.dropped;
    }
    assert_eq!(steps.since(uplink), Sojourns::default(), "all was read");
    let counters = steps.trial().sim().port(uplink.0).unwrap().counters();
    let [sent, dropped] = [counters.sent, counters.dropped];
    assert!(sent.packets > 1_000 && dropped.packets > 0, "{sent:?} {dropped:?}");
    assert_eq!((seen.packets, seen.bytes, seen.dropped), (sent.packets, sent.bytes, dropped.packets));

    let (record, own_remarks) = steps.finish();
    assert_eq!(record.summary.fingerprint, whole.summary.fingerprint);
    assert_eq!(record.summary.metrics, whole.summary.metrics);
    assert_eq!(own_remarks, remarks);
}
