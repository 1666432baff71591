//! The senders and the phases that a scenario has by default.

use giveway_scenario::{Draft, Scenario};

/// One transfer over 100 Mbit/s, with a round-trip time of 22 ms.
const ONE: &str = r#"
duration = "15 s"
warmup = "5 s"
disciplines = ["fifo limit 80p"]

[[link]]
from = "sender"
to = "router"
rate = "1 Gbit/s"
delay = "10 ms"

[[link]]
from = "router"
to = "receiver"
rate = "100 Mbit/s"
delay = "1 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
name = "transfer"
from = "sender"
to = "receiver"
"#;

/// Two equal senders, on links as fast as the port at which they meet.
const EQUAL: &str = r#"
duration = "20 s"
warmup = "5 s"
seeds = 5
disciplines = ["fifo limit 60p"]

[[link]]
from = "[1-2]"
to = "switch"
rate = "100 Mbit/s"
delay = "500 us"

[[link]]
from = "switch"
to = "receiver"
rate = "100 Mbit/s"
delay = "500 us"
qdisc = "compare"

[[traffic]]
kind = "bulk"
name = "one"
from = "1"
to = "receiver"

[[traffic]]
kind = "bulk"
name = "other"
from = "2"
to = "receiver"
"#;

/// A scenario with some of its keys changed.
fn changed(text: &str, changes: &[&str]) -> Scenario {
    let draft = Draft::parse(text, "");
    changes.iter().fold(draft, |draft, change| draft.set(change)).finish().unwrap()
}

/// The values of these metrics in each trial, and all remarks.
fn measured<const N: usize>(scenario: &Scenario, metrics: [&str; N]) -> (Vec<[f64; N]>, Vec<String>) {
    let mut all = Vec::new();
    let each = scenario.trials().into_iter().map(|trial| {
        let (record, remarks) = giveway_observe::observe(scenario, &trial, false, &|_| true).unwrap();
        all.extend(remarks);
        metrics.map(|metric| record.summary.metrics.value(metric).unwrap())
    });
    (each.collect(), all)
}

/// On the wire with jitter packets overtake each other. The default keeps 96 of the 97 Mbit/s that data can
/// have; the preset of the RFCs takes late packets for lost ones.
#[test]
fn the_default_sender_keeps_its_rate_when_packets_change_their_order() {
    let jitter = ["link.0.jitter=1ms", "link.0.unordered=true", "disciplines=[\"fifo limit 1000p\"]"];
    let goodput = |preset: &[&str]| {
        let scenario = changed(ONE, &[&jitter, preset].concat());
        measured(&scenario, ["src.transfer.goodput_bps"]).0[0][0] / 1e6
    };
    let (linux, rfc) = (goodput(&[]), goodput(&["tcp.preset=rfc"]));
    assert!(linux > 96.0 && rfc < 20.0, "{linux} and {rfc} Mbit/s");
}

/// BBR of Linux paces 1 % below the bandwidth that it measures, so that it does not fill a queue of 80
/// packets. Its draft has no such margin.
#[test]
fn bbr_has_the_margin_of_linux_by_default() {
    let drops = |congestion: &str| {
        let scenario = changed(ONE, &[&format!("tcp.congestion=\"{congestion}\"")]);
        measured(&scenario, ["drops"]).0[0][0]
    };
    assert_eq!((drops("bbr"), drops("bbr margin 1%")), (0.0, 0.0));
    assert!(drops("bbr margin 0") > 100.0);
}

#[test]
fn equal_senders_have_equal_shares_under_each_seed() {
    let (goodputs, remarks) =
        measured(&changed(EQUAL, &[]), ["src.one.goodput_bps", "src.other.goodput_bps"]);
    for [one, other] in &goodputs {
        let share = one / (one + other);
        assert!((0.4..0.6).contains(&share), "{goodputs:?}");
    }
    assert!(remarks.is_empty(), "{remarks:?}");
}

/// With the TCP of the RFCs and exact phases the first sender finds the only free place every time.
#[test]
fn a_lock_in_of_equal_senders_is_remarked_on() {
    let exact = changed(EQUAL, &["tcp.preset=rfc", "phase=exact"]);
    let (goodputs, remarks) = measured(&exact, ["src.one.goodput_bps", "src.other.goodput_bps"]);
    assert!(goodputs.iter().all(|[one, other]| one.max(*other) > 10.0 * one.min(*other)), "{goodputs:?}");
    assert_eq!(remarks.len(), goodputs.len());
    assert!(remarks[0].starts_with("equal sources one and other differ"), "{}", remarks[0]);
    assert!(remarks[0].contains("phase effect"), "{}", remarks[0]);
    // They are not equal if one of them has another control.
    let other = changed(EQUAL, &["tcp.preset=rfc", "phase=exact", "traffic.other.tcp.congestion=reno"]);
    assert_eq!(measured(&other, ["utilization"]).1, Vec::<String>::new());
}

/// Windows of 3 and 10 next to a long transfer: the median time of short transfers does not depend on whether
/// the buffer holds an even number of packets.
#[test]
fn a_packet_of_buffer_more_changes_no_median_by_a_third() {
    let text = include_str!("../../../scenarios/evaluate/rfc7928/tcp-initial-window.toml");
    let mean = |limit: u32| {
        let limit = format!("disciplines=[\"fifo limit {limit}p\"]");
        let times = measured(&changed(text, &[&limit, "seeds=5"]), ["fct_p50_s"]).0;
        times.iter().flatten().sum::<f64>() / times.len() as f64
    };
    let means = [999, 1000, 1001].map(mean);
    let (least, most) =
        (means.iter().fold(f64::MAX, |a, b| a.min(*b)), means.iter().fold(0.0, |a: f64, b| a.max(*b)));
    assert!(most < 1.05 * least, "{means:?}");
}
