//! Outcomes that others have published come out in the cells.

use giveway_evaluate::{Card, Verdict};
use giveway_observe::observe;
use giveway_scenario::Scenario;

use crate::cards::{card, request, verdict};
use giveway_evaluate::Request;

/// A card over the long form of a cell.
fn long(candidate: &str, against: &str, cell: &str, seeds: u32) -> Card {
    card(Request { seeds, short: false, ..request(candidate, &[against], &[cell]) })
}

/// The mean values of a metric: of the discipline, and of the baseline.
fn values(card: &Card, metric: &str) -> (f64, f64) {
    let line = card.lines.iter().find(|line| line.metric == metric).expect("the cell has the metric");
    let difference = line.compared.difference.as_ref().expect("it was measured");
    (difference.after, difference.before)
}

/// heistp/l4s-tests, scenario 2: a queue with CoDel needs 4,346 ms after the rate has fallen from 50 to 1
/// Mbit/s with a round-trip time of 80 ms. DualPI2 drops at once.
#[test]
fn codel_is_slow_after_a_step_of_the_rate() {
    let found = long("fq_codel", "dualpi2", "l4s/step-prague", 3);
    let (codel, dualpi2) = values(&found, "sojourn_p95_s");
    assert!((codel / 4.346 - 1.0).abs() < 0.1, "{codel}");
    assert!(dualpi2 < 0.1, "{dualpi2}");
}

/// Shreedhar and Varghese, 1995: flows get equal bytes, whatever they send. A queue of one flow for all does
/// not do that.
#[test]
fn drr_is_fair() {
    let found = long("drr", "fifo", "rfc7928/aggressive-cubic", 8);
    let (drr, fifo) = values(&found, "jain");
    assert!(drr > 0.999 && fifo < 0.98, "{drr} {fifo}");
    assert_eq!(verdict(&found, "rfc7928/aggressive-cubic", "jain"), Verdict::Better);
}

/// RFC 9332, section 1: neither of a scalable and a classic flow starves the other, at equal round-trip
/// times. Without a second queue that serves it earlier, Prague takes most of a queue that marks both alike.
#[test]
fn dualpi2_lets_prague_and_cubic_coexist() {
    let found = long("dualpi2", "codel ecn", "l4s/prague-beside-cubic", 4);
    let (cubic, beside_codel) = values(&found, "src.cubic.goodput_bps");
    // Of about 48 Mbit/s.
    let ratio = (48e6 - cubic) / cubic;
    assert!((0.5..2.0).contains(&ratio), "Prague has {ratio} times as much as CUBIC");
    assert!(beside_codel < cubic / 4.0, "{beside_codel} {cubic}");
}

/// EFD's weakness: on a link of 1 Mbit/s a call is a long flow, and waits behind short ones.
#[test]
fn efd_delays_calls_on_slow_links() {
    let found = long("efd", "fq_codel", "short-flows/slow-uplink", 6);
    assert_eq!(verdict(&found, "short-flows/slow-uplink", "src.call.delay_p99_s"), Verdict::Worse);
    let (efd, fq_codel) = values(&found, "src.call.delay_p99_s");
    assert!(efd > 5.0 * fq_codel, "{efd} {fq_codel}");
}

/// RFC 8033, section 4.4: bursts shorter than the allowance are not dropped while the queue was empty before.
/// These bursts take a third of a second in the mean; the default allowance is 150 ms.
#[test]
fn pie_lets_bursts_pass() {
    let scenario = Scenario::parse(BURSTS, "").unwrap();
    let mut drops = [0.0; 3];
    for trial in scenario.trials() {
        let (record, _) = observe(&scenario, &trial, false, &|_| true).expect("nothing stops it");
        drops[trial.discipline] += record.summary.metrics.value("drops").expect("it counts drops");
    }
    let [none, default, long] = drops;
    assert!(default <= none && long < 0.6 * none, "{drops:?}");
}

const BURSTS: &str = r#"
title = "Bursts into PIE"
duration = "60 s"
warmup = "1 s"
seeds = 5
disciplines = ["pie max_burst 0ms", "pie", "pie max_burst 300ms"]

[[link]]
from = "server"
to = "home"
rate = "10 Mbit/s"
delay = "6 ms"
qdisc = "compare"
back = { qdisc = "fifo limit 100p" }

[[traffic]]
kind = "onoff"
name = "burst"
from = "server"
to = "home"
rate = "20 Mbit/s"
packet = "1500b"
law = "exponential"
on = "100 ms"
off = "3 s"
"#;
