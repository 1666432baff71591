//! Delays over time of small networks, whose delays are calculated by hand.

use giveway_measure::{DelayRow, DelaySummary, Record};
use giveway_observe::{observe, observe_network, run_divided};
use giveway_qdisc::{PortId, Rate, Time};
use giveway_scenario::Scenario;
use giveway_sim::Gain;

/// A call over two links, of which the second falls from 8 Mbit/s to 1 Mbit/s, and a call in the opposite
/// direction. Each packet of 200 bytes takes 0.2 ms on the first link, and 0.2 or 1.6 ms on the second one.
const CALLS: &str = r#"
duration = "2 s"
disciplines = ["fifo limit 10p", "fq_codel"]

[[link]]
from = "home"
to = "isp"
rate = "8 Mbit/s"
delay = "3 ms"

[[link]]
from = "isp"
to = "server"
rate = { steps = [["0s", "8mbit"], ["1010ms", "1mbit"]] }
delay = "10 ms"
qdisc = "compare"
back = { rate = "8 Mbit/s", delay = "1 ms" }

[[traffic]]
kind = "cbr"
name = "call"
from = "home"
to = "server"
rate = "80 kbit/s"
packet = "200b"

[[traffic]]
kind = "cbr"
name = "back"
from = "server"
to = "home"
rate = "80 kbit/s"
packet = "200b"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "").unwrap_or_else(|wrong| panic!("{:?}", wrong.diagnostics))
}

fn record(scenario: &Scenario) -> Record {
    observe(scenario, &scenario.trials()[0], true, &|_| true).expect("the run is not stopped").0
}

/// The sums of a list of delays: the number of packets, their mean and the largest.
fn whole(delays: impl Iterator<Item = Option<DelaySummary>>) -> Option<DelaySummary> {
    delays.flatten().reduce(DelaySummary::and)
}

#[test]
fn delays_follow_the_rate_of_the_link() {
    let record = record(&scenario(CALLS));
    assert!(record.delays.iter().all(|row| row.port == "isp->server" && row.source == "call"));
    assert_eq!(record.delays.len(), 100, "stretches of 20 ms");
    let part = |from: u64, until: u64| {
        let inside = move |row: &&DelayRow| Time::ms(from) <= row.time && row.time < Time::ms(until);
        record.delays.iter().filter(inside)
    };
    // 0.2 + 3 + 0.2 + 10 ms, exactly, as long as the rate is 8 Mbit/s; then 1.6 ms instead of 0.2.
    for (from, until, delay_s) in [(0, 1_000, 0.0134), (1_060, 2_000, 0.0148)] {
        let found = whole(part(from, until).map(|row| row.one_way)).unwrap();
        assert!(found.packets > 40 && found.max_s == delay_s, "{found:?}");
        assert!((found.mean_s - delay_s).abs() < 1e-12);
        let waited = whole(part(from, until).map(|row| row.sojourn)).unwrap();
        assert_eq!((waited.mean_s, waited.max_s), (0.0, 0.0), "the queue is always empty");
    }
    let rates = |from, until| part(from, until).map(|row| row.rate.unwrap()).collect::<Vec<_>>();
    assert!(rates(0, 1_000).iter().all(|rate| *rate == Rate::mbit(8)));
    // Half of this stretch has 8 Mbit/s.
    assert_eq!(rates(1_000, 1_020), [Rate::kbit(4_500)]);
    assert!(rates(1_020, 2_000).iter().all(|rate| *rate == Rate::mbit(1)));
    // The link sent 1,600 bits for each packet; it offered 8 Mbit/s for 1.01 s, and 1 Mbit/s for 0.99 s.
    let sent = whole(record.delays.iter().map(|row| row.sojourn)).unwrap().packets;
    let offered = 8e6 * 1.01 + 1e6 * 0.99;
    let used = record.summary.metrics.value("utilization").unwrap();
    assert!((used - sent as f64 * 1_600.0 / offered).abs() < 1e-3, "{used}");
    assert_eq!(record.layout.varying, [PortId(2)]);
}

/// The packets of all flows, with transfers of two sources, on any number of threads.
#[test]
fn delays_are_the_same_on_any_number_of_threads() {
    let more = r#"
[[traffic]]
kind = "bulk"
name = "download"
from = "home"
to = "server"
flows = 3
"#;
    let scenario = scenario(&format!("{CALLS}{more}"));
    let expected = record(&scenario).delays;
    let (network, trial) = (scenario.network().unwrap(), &scenario.trials()[0]);
    let names: Vec<&str> = expected.iter().take(2).map(|row| row.source.as_str()).collect();
    assert_eq!(names, ["call", "download"]);
    let mut parts = Vec::new();
    for threads in [2, 8] {
        let partition = network.partition(trial, threads, Gain::Any);
        parts.push(partition.parts());
        let (record, _) = observe_network(network, true, |recorder| {
            run_divided(network, trial, (&partition, 2), recorder, &|_| true)
        })
        .expect("the run is not stopped");
        assert_eq!(record.delays, expected, "{threads} threads");
    }
    assert_eq!(parts, [2, 2], "the network is divided");
}

/// The sums over all stretches are the metrics of the port, which are measured without them.
#[test]
fn stretches_add_up_to_the_metrics() {
    let text = include_str!("../../../scenarios/quickstart.toml");
    let record = record(&scenario(text));
    let sojourn = whole(record.delays.iter().map(|row| row.sojourn)).unwrap();
    let mean = record.summary.metrics.value("sojourn_mean_s").unwrap();
    assert!((sojourn.mean_s - mean).abs() < 1e-12 * mean.max(1.0), "{} and {mean}", sojourn.mean_s);
    let longest = record.sojourn_times.iter().map(|row| row.sojourn_s).fold(0.0, f64::max);
    assert!((sojourn.max_s - longest).abs() < 1e-3 * longest, "{} and {longest}", sojourn.max_s);
    let sources: Vec<&str> = ["backup", "call", "web"].to_vec();
    for row in &record.delays {
        assert!(sources.contains(&row.source.as_str()) && row.rate.is_none());
    }
}
