//! Properties of the measures of every run, over random scenarios: bounds, sums, and invariance.

use std::collections::BTreeMap;

use giveway_measure::{Record, Unit, named};
use giveway_scenario::Scenario;
use proptest::prelude::*;

/// A dumbbell: senders, a measured bottleneck, a receiver.
#[derive(Clone, Debug)]
struct Dumbbell {
    discipline: &'static str,
    /// The bottleneck, kbit/s.
    rate: u64,
    delay_ms: u64,
    warmup_ms: u64,
    cooldown_ms: u64,
    seed: u64,
    /// Entries of traffic, each a table without its header.
    traffic: Vec<String>,
}

const DURATION_MS: u64 = 4_000;
const DISCIPLINES: [&str; 9] = [
    "fifo limit 50p",
    "fifo limit 20kb drop head",
    "drr limit 60p",
    "fq_codel",
    "efd limit 80p",
    "red avpkt 1000b",
    "pie limit 200p",
    "sfq limit 64p",
    "tbf rate 900kbit burst 5kb",
];

impl Dumbbell {
    fn scenario(&self, order: &[usize]) -> Scenario {
        let mut text = format!(
            "duration = \"{DURATION_MS} ms\"\nwarmup = \"{} ms\"\ncooldown = \"{} ms\"\nseeds = [{}]\n\
             disciplines = [\"{}\"]\n\n\
             [[link]]\nfrom = \"s[1-3]\"\nto = \"r\"\nrate = \"100 Mbit/s\"\ndelay = \"2 ms\"\n\n\
             [[link]]\nfrom = \"r\"\nto = \"d\"\nrate = \"{} kbit/s\"\ndelay = \"{} ms\"\nqdisc = \"compare\"\n",
            self.warmup_ms, self.cooldown_ms, self.seed, self.discipline, self.rate, self.delay_ms,
        );
        for index in order {
            text.push_str(&format!("\n[[traffic]]\n{}\n", self.traffic[*index]));
        }
        text.push_str("\n[record]\nport = \"r->d\"\nsample = \"50 ms\"\n");
        Scenario::parse(&text, "").unwrap_or_else(|wrong| panic!("{:?}\n{text}", wrong.diagnostics))
    }

    fn run(&self, order: &[usize]) -> Record {
        let scenario = self.scenario(order);
        let trial = scenario.trials().remove(0);
        giveway_observe::observe(&scenario, &trial, true, &|_| true).expect("the run is not stopped").0
    }

    fn in_order(&self) -> Vec<usize> {
        (0..self.traffic.len()).collect()
    }
}

fn dumbbells() -> impl Strategy<Value = Dumbbell> {
    let entry = (0..7usize, 1..4u64, 1..150u64, 1..4u32);
    (
        prop::sample::select(&DISCIPLINES[..]),
        prop::sample::select(vec![500u64, 1_000, 3_000, 10_000]),
        0..30u64,
        0..2_500u64,
        prop::sample::select(vec![0u64, 0, 700]),
        0..1_000u64,
        prop::collection::vec(entry, 1..5),
    )
        .prop_map(|(discipline, rate, delay_ms, warmup_ms, cooldown_ms, seed, entries)| {
            let entry = |(place, (kind, node, percent, flows)): (usize, (usize, u64, u64, u32))| {
                let asked = (rate * percent / 100).max(8);
                let (kind, rest) = match kind {
                    0 => ("bulk", format!("flows = {flows}")),
                    1 => ("cbr", format!("rate = \"{asked} kbit/s\"\nflows = {flows}\npacket = \"700b\"")),
                    2 => ("poisson", format!("rate = \"{asked} kbit/s\"\npacket = \"1200b\"")),
                    3 => ("audio", String::new()),
                    4 => (
                        "transfers",
                        format!("load = \"{asked} kbit/s\"\nsize = {{ pareto = {{ shape = 1.3, min = \"2kb\", max = \"2mb\" }} }}"),
                    ),
                    5 => ("web", "upload = true\nthink = \"300 ms\"\nreport = \"objects\"".to_owned()),
                    _ => ("bulk", format!("size = \"{}kb\"\nspread = \"2 s\"\nflows = {flows}", 10 * percent)),
                };
                format!("kind = \"{kind}\"\nname = \"{kind}-{place}\"\nfrom = \"s{node}\"\nto = \"d\"\n{rest}")
            };
            let traffic = entries.into_iter().enumerate().map(entry).collect();
            Dumbbell { discipline, rate, delay_ms, warmup_ms, cooldown_ms, seed, traffic }
        })
}

/// The value of a metric that must exist.
fn value(record: &Record, name: &str) -> f64 {
    record.summary.metrics.value(name).unwrap_or_else(|| panic!("{name} is missing"))
}

/// The sum of a metric over all groups of sources. A missing value counts as 0.
fn sum_of_groups(record: &Record, metric: &str) -> f64 {
    let end = format!(".{metric}");
    let mine =
        record.summary.metrics.iter().filter(|(name, _)| name.starts_with("src.") && name.ends_with(&end));
    mine.filter_map(|(_, value)| value).sum()
}

/// Each flow as text, with the name of its source in place of its index in the list.
fn flows(record: &Record) -> Vec<String> {
    let named = record.flows.iter().map(|flow| {
        let name = record.layout.source_name(flow.source);
        let mut flow = flow.clone();
        flow.source = 0;
        format!("{name} {flow:?}")
    });
    let mut named: Vec<String> = named.collect();
    named.sort();
    named
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn bounds_and_sums_hold(dumbbell in dumbbells()) {
        let record = dumbbell.run(&dumbbell.in_order());
        let metrics = &record.summary.metrics;
        let seconds = record.layout.measured_time().as_s();
        let expected = (DURATION_MS - dumbbell.warmup_ms - dumbbell.cooldown_ms) as f64 / 1e3;
        prop_assert!((seconds - expected).abs() < 1e-9);

        // At most the bytes that the link carries arrive, and a packet that was on it when the interval
        // began.
        let carried = dumbbell.rate as f64 * 1e3 * seconds;
        let goodput = metrics.value("goodput_bps").unwrap_or(0.0);
        prop_assert!(goodput * seconds <= carried + 1_500.0 * 8.0, "{goodput} bit/s through {} kbit/s", dumbbell.rate);

        for (name, value) in metrics.iter() {
            let Some(named) = named(name) else { panic!("{name} is not defined") };
            let Some(value) = value else { continue };
            // The lead of one of two flows is the only difference among the metrics.
            let lowest = if name.ends_with(".lead") { -1.0 } else { 0.0 };
            prop_assert!(value >= lowest, "{name} = {value}");
            if named.definition.unit == Unit::Share {
                prop_assert!(value <= 1.0 + 1e-12, "{name} = {value}");
            }
        }
        for what in ["fct", "sojourn", "small_sojourn", "page_load"] {
            let quantiles = ["p50", "p95", "p99"].map(|part| metrics.value(&format!("{what}_{part}_s")));
            prop_assert!(quantiles.is_sorted(), "{what}: {quantiles:?}");
        }
        let largest = record.sojourn_times.iter().map(|row| row.sojourn_s).fold(0.0, f64::max);
        for name in ["sojourn_p99_s", "sojourn_mean_s", "small_sojourn_p99_s"] {
            prop_assert!(metrics.value(name).is_none_or(|value| value <= largest + 1e-9), "{name} is above {largest}");
        }

        // All flows cross the bottleneck here.
        let all: u64 = record.flows.iter().map(|flow| flow.goodput_bytes).sum();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        prop_assert!(close(goodput, all as f64 * 8.0 / seconds));
        prop_assert!(close(goodput, sum_of_groups(&record, "goodput_bps")));
        prop_assert!(close(metrics.value("drops").unwrap(), sum_of_groups(&record, "drops")));
        for count in ["flows_completed", "flows_incomplete", "flows_aborted"] {
            prop_assert!(close(metrics.value(count).unwrap_or(0.0), sum_of_groups(&record, count)), "{count}");
        }
        for flow in &record.flows {
            prop_assert!(flow.lost.is_none_or(|lost| lost <= flow.packets), "{flow:?}");
            prop_assert!(flow.retransmitted <= flow.packets && flow.end >= flow.start, "{flow:?}");
        }
    }

    /// A list with the same traffic in another order gives the same run: all metrics, all flows and the
    /// fingerprint.
    #[test]
    fn the_order_of_the_list_does_not_matter(dumbbell in dumbbells(), turn in 0..8usize) {
        let order = dumbbell.in_order();
        let mut other = order.clone();
        other.rotate_left(turn % order.len().max(1));
        if turn > 3 {
            other.reverse();
        }
        let (one, two) = (dumbbell.run(&order), dumbbell.run(&other));
        let metrics = |record: &Record| -> BTreeMap<String, Option<f64>> {
            record.summary.metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        prop_assert_eq!(flows(&one), flows(&two));
        prop_assert_eq!(metrics(&one), metrics(&two));
        prop_assert_eq!(one.summary.fingerprint, two.summary.fingerprint);
        prop_assert_eq!(one.summary.events, two.summary.events);
    }
}

/// The length of the warm-up changes no metric of traffic that repeats. These streams send equal packets
/// without jitter and repeat every 100 ms.
#[test]
fn a_longer_warmup_changes_nothing_of_steady_traffic() {
    let run = |warmup_ms: u64| {
        let text = format!(
            "duration = \"{} ms\"\nwarmup = \"{warmup_ms} ms\"\ndisciplines = [\"drr limit 50p\"]\n\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"3 ms\"\nqdisc = \"compare\"\n\n\
             [[traffic]]\nkind = \"cbr\"\nname = \"fast\"\nfrom = \"a\"\nto = \"b\"\nrate = \"800 kbit/s\"\njitter = 0\n\n\
             [[traffic]]\nkind = \"cbr\"\nname = \"slow\"\nfrom = \"a\"\nto = \"b\"\nrate = \"160 kbit/s\"\npacket = \"200b\"\njitter = 0\n\n\
             [record]\nsample = \"10 ms\"\n",
            warmup_ms + 2_000
        );
        let scenario = Scenario::parse(&text, "").unwrap_or_else(|wrong| panic!("{:?}", wrong.diagnostics));
        let trial = scenario.trials().remove(0);
        giveway_observe::observe(&scenario, &trial, false, &|_| true).expect("the run is not stopped").0
    };
    let whole_run = ["bottleneck_packets"];
    let (short, long) = (run(1_000), run(5_000));
    for ((name, one), (_, two)) in short.summary.metrics.iter().zip(long.summary.metrics.iter()) {
        if whole_run.contains(&name) {
            continue;
        }
        match (one, two) {
            (Some(one), Some(two)) => {
                assert!((one - two).abs() <= 1e-9 * one.abs(), "{name}: {one} and {two}");
            }
            _ => assert_eq!(one, two, "{name}"),
        }
    }
    // 972 of 1,000 and 172 of 200 bytes are data.
    let goodput = value(&short, "goodput_bps");
    assert!((goodput - (800e3 * 0.972 + 160e3 * 0.86)).abs() < 8.0 * 1_000.0, "{goodput}");
    assert!((value(&short, "utilization") - 0.96).abs() < 1e-9);
}

/// Random traffic: over 16 seeds the mean of no metric moves by more than chance when the warm-up is longer.
/// The interval is 20 s long, and starts after 3 s or after 15 s.
#[test]
fn a_longer_warmup_moves_no_mean_of_stationary_traffic() {
    let run = |warmup: u64, seed: u64| {
        let text = format!(
            "duration = \"{} s\"\nwarmup = \"{warmup} s\"\nseeds = [{seed}]\ndisciplines = [\"fifo limit 40p\"]\n\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"2 Mbit/s\"\ndelay = \"3 ms\"\nqdisc = \"compare\"\n\n\
             [[traffic]]\nkind = \"poisson\"\nname = \"rain\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n\n\
             [[traffic]]\nkind = \"audio\"\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\n\n\
             [[traffic]]\nkind = \"transfers\"\nname = \"web\"\nfrom = \"a\"\nto = \"b\"\nload = \"300 kbit/s\"\n\
             size = {{ fixed = \"10kb\" }}\n",
            warmup + 20
        );
        let scenario = Scenario::parse(&text, "").unwrap_or_else(|wrong| panic!("{:?}", wrong.diagnostics));
        let trial = scenario.trials().remove(0);
        giveway_observe::observe(&scenario, &trial, false, &|_| true).expect("the run is not stopped").0
    };
    const SEEDS: u64 = 16;
    let pairs: Vec<(Record, Record)> =
        (0..SEEDS).map(|seed| (run(3, 2 * seed), run(15, 2 * seed + 1))).collect();
    let names: Vec<String> = pairs[0].0.summary.metrics.iter().map(|(name, _)| name.to_owned()).collect();
    let mut compared = 0;
    for name in names.iter().filter(|name| *name != "bottleneck_packets") {
        let of = |record: &Record| record.summary.metrics.value(name);
        let differences: Vec<f64> = pairs.iter().filter_map(|(one, two)| Some(of(one)? - of(two)?)).collect();
        if differences.len() < SEEDS as usize {
            continue;
        }
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0);
        // Student's t for one in a million at 15 degrees of freedom is 7.6; about 60 metrics are compared.
        let bound = 7.6 * (variance / n).sqrt() + 1e-9;
        assert!(mean.abs() <= bound, "{name} moves by {mean} ± {bound}");
        compared += 1;
    }
    assert!(compared > 25, "only {compared} metrics have a value in all runs");
}

/// Every number on the page of the book that explains the first table agrees with the run.
#[test]
fn the_book_explains_the_numbers_of_the_quickstart() {
    let text = include_str!("../../../scenarios/quickstart.toml");
    let page = include_str!("../../../docs/book/numbers.md").replace('\n', " ");
    let scenario = Scenario::parse(text, "").unwrap_or_else(|wrong| panic!("{:?}", wrong.diagnostics));
    let trial =
        scenario.trials().into_iter().find(|trial| trial.name == "fifo limit 300p" && trial.seed == 1);
    let record = giveway_observe::observe(&scenario, &trial.unwrap(), true, &|_| true)
        .expect("the run is not stopped")
        .0;
    let contains =
        |fact: &str| assert!(page.contains(fact), "docs/book/numbers.md does not contain {fact:?}");
    let grouped = |number: u64| {
        let digits = number.to_string();
        let groups = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap());
        groups.collect::<Vec<_>>().join(",")
    };
    let source =
        |name: &str| record.layout.source_names.iter().position(|known| known == name).unwrap() as u16;

    let sent = |name: &str| -> u64 {
        let rows = record.shares.iter().filter(|row| row.source == source(name));
        rows.map(|row| row.bytes).sum()
    };
    for name in ["backup", "call", "web"] {
        contains(&format!("| {name} | {} |", grouped(sent(name))));
    }
    let all = sent("backup") + sent("call") + sent("web");
    contains(&format!("{} × 8 / 10,000,000 = {:.5} s", grouped(all), all as f64 * 8.0 / 1e7));
    contains(&format!(
        "sending for {:.5} s of 50 s: {:.4}",
        value(&record, "utilization") * 50.0,
        value(&record, "utilization")
    ));

    let flow = |name: &str| record.flows.iter().find(|flow| flow.source == source(name)).unwrap();
    let (backup, call) = (flow("backup"), flow("call"));
    contains(&format!(
        "{} of the backup and {} of the call",
        grouped(backup.goodput_bytes),
        grouped(call.goodput_bytes)
    ));
    contains(&format!(
        "({} + {}) × 8 / 50 s = {} bit/s",
        grouped(backup.goodput_bytes),
        grouped(call.goodput_bytes),
        grouped(value(&record, "goodput_bps").round() as u64),
    ));

    let mut times: Vec<f64> = record
        .flows
        .iter()
        .filter(|flow| flow.source == source("web") && record.layout.measures(flow.start))
        .filter(|flow| flow.ending == giveway_qdisc::Ending::Completed)
        .map(|flow| flow.end.since(flow.start).as_s())
        .collect();
    times.sort_by(f64::total_cmp);
    contains(&format!("{} pages started within the interval and completed", times.len()));
    for (quantile, part) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let rank = (times.len() as f64 * part).ceil() as usize;
        contains(&format!("so {rank} | {:.5} s |", times[rank - 1]));
        let metric = value(&record, &format!("fct_{quantile}_s"));
        assert!((metric - times[rank - 1]).abs() < 1e-9, "{quantile}");
    }
    contains(&format!(
        "{} had not arrived when the run ended",
        grouped(value(&record, "bytes_incomplete") as u64)
    ));

    let lost = call.lost.unwrap();
    contains(&format!(
        "= {} packets within the interval, {} data bytes",
        grouped(call.bytes / 132),
        grouped(call.bytes)
    ));
    contains(&format!("{} of them were still in transit", call.bytes / 132 - call.packets));
    contains(&format!("{lost} / {} = {:.5}", grouped(call.packets), lost as f64 / call.packets as f64));
    contains(&format!("Of the other {} the queue dropped {lost}", grouped(call.packets)));
    contains(&format!("**Drops: {}.**", value(&record, "drops")));
    let whole = record.links.iter().find(|link| record.layout.port_name(link.port) == "home->isp").unwrap();
    contains(&format!("In the whole run there were {}", whole.dropped.packets));
    contains(&format!("**Mean {:.0} packets.**", value(&record, "backlog_mean_packets")));
    contains(&format!("a mean sojourn time of {:.0} ms", value(&record, "sojourn_mean_s") * 1e3));
}
