//! The measured burstiness of traffic: on/off sources with heavy tails are self-similar, Poisson streams are
//! not.

use giveway_measure::{Layout, Record, Recorder};
use giveway_qdisc::PortId;
use giveway_scenario::Scenario;
use giveway_theory::hurst::on_off_hurst;

/// The on/off sources of the reproduction of the BSQ paper: 32 sources of 12.5 Mbit/s with packets of 500
/// bytes. Next to them a Poisson stream of the same load, made of bursts of one packet and exponential
/// pauses. There are no losses.
const SCENARIO: &str = r#"
duration = "500 s"
seeds = 7
disciplines = "fifo limit 1000p"

[[link]]
from = "sender[1-2]"
to = "receiver[1-2]"
rate = "20 Mbit/s"
delay = "1 ms"
qdisc = "compare"

[[traffic]]
kind = "onoff"
name = "heavy"
from = "sender1"
to = "receiver1"
rate = "12.5 Mbit/s"
packet = "500b"
sources = 32
shape_on = 1.4
shape_off = 1.2
load = "3.4 Mbit/s"
merge = true

[[traffic]]
kind = "onoff"
name = "poisson"
from = "sender2"
to = "receiver2"
rate = "12.5 Mbit/s"
packet = "500b"
sources = 32
law = "exponential"
on = "0.32 ms"
load = "3.4 Mbit/s"

[record]
bursts = true
"#;

/// The records of all seeds.
fn records(scenario: &Scenario) -> Vec<Record> {
    let network = scenario.network().expect("the backend is a network");
    let measured = network.measured();
    let layout = Layout {
        measured: measured.ports,
        crossed: Some(giveway_measure::PortsOnRoute::new(measured.crossed)),
        port_names: (0..).map(PortId).zip(measured.port_names).collect(),
        source_names: measured.sources,
        from: measured.from,
        until: measured.until,
        bursts: network.bursts,
        ..Layout::default()
    };
    let trials = scenario.trials();
    std::thread::scope(|threads| {
        let run = |trial| {
            let layout = layout.clone();
            threads.spawn(move || {
                let mut recorder =
                    Recorder::new(layout).with_sources(|segment: &giveway_sim::Segment| segment.source);
                network.run(trial, &mut recorder, &|_| true).expect("the run is not stopped");
                recorder.finish()
            })
        };
        let running: Vec<_> = trials.iter().map(run).collect();
        running.into_iter().map(|run| run.join().expect("the run does not panic")).collect()
    })
}

/// Theory has H = (3 - 1.2)/2 = 0.9 in the limit of many sources and long times. With 32 sources and 500 s
/// the estimates are lower and scatter widely. So the median of 7 seeds and three estimators must be within
/// 0.15 of 0.9, and the median of the Poisson streams within 0.05 of 1/2. For every seed the two must differ.
#[test]
fn heavy_tails_are_measured_as_self_similar() {
    let scenario = Scenario::parse(SCENARIO, ".").expect("it is valid");
    let records = records(&scenario);
    let estimates = |source: &str| -> Vec<f64> {
        let named = |record: &Record, method: &str| {
            record
                .summary
                .metrics
                .value(&format!("src.{source}.hurst_{method}"))
                .expect("the run is long enough")
        };
        let three = ["rs", "variance", "wavelet"];
        records.iter().flat_map(|record| three.map(|method| named(record, method))).collect()
    };
    let theory = on_off_hurst(1.4, 1.2).expect("both distributions have means");
    let (heavy, poisson) = (estimates("heavy"), estimates("poisson"));
    println!("theory {theory}, heavy {heavy:.2?}, poisson {poisson:.2?}");
    assert!((median(&heavy) - theory).abs() < 0.15, "{heavy:?}");
    assert!((median(&poisson) - 0.5).abs() < 0.05, "{poisson:?}");
    for record in &records {
        let [heavy, poisson] =
            ["src.heavy.hurst", "src.poisson.hurst"].map(|name| record.summary.metrics.value(name).unwrap());
        assert!(heavy > poisson + 0.05, "{heavy} and {poisson}");
    }

    // The arrivals at the ports agree. A Poisson stream has an index of dispersion of 1 in windows of every
    // length. That of a self-similar stream grows by a factor of 10^(2H - 1), in the limit 6.3, if the window
    // grows by a factor of 10.
    for record in &records {
        let index = |port: &str, window: &str| {
            let name = format!("at.{port}.arrivals_idc_{window}");
            record.summary.metrics.value(&name).expect("burstiness is measured")
        };
        for window in ["1ms", "10ms", "100ms", "1s"] {
            let flat = index("sender2->receiver2", window);
            assert!((0.7..1.2).contains(&flat), "{flat} at {window}");
        }
        let growth = index("sender1->receiver1", "1s") / index("sender1->receiver1", "10ms");
        assert!(growth > 4.0, "{growth}");
        // All packets leave the network at the next node, so there is one run, without a next hop.
        assert!(record.bursts.iter().all(|row| row.next_hop.is_none() && row.runs == 1));
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
