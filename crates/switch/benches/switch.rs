//! Speed of the simulation: slots of a link per second, by arbiter and mode.
//!
//! The traffic comes from the P-SPF paper (section 5): one packet to a burst, TRIMODEL(1, 9, 24, 0.559,
//! 0.200), at a load of 0.9. In cell mode the same packets cross cell by cell. The switch is warm: its queues
//! have the length of that load, and every iteration continues where the one before ended. Arrivals are drawn
//! within the slots; `arrivals alone` measures them separately. The bars, in million slots per second at 16
//! ports: 8 for `p_spf` and `islip`, 6 for `msm`, 4 for `mwm`; at 64 ports 2 for `p_spf`.
//!
//! Run one row with `cargo bench -p giveway-switch -- 'switch/p_spf/16'`.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use giveway_qdisc::Streams;
use giveway_switch::traffic::{SOURCES, TrafficContext, TrafficSpec};
use giveway_switch::{Plan, Sim};
use serde_json::json;

/// Slots of one measurement.
const BATCH: u64 = 10_000;
/// Slots before the first measurement, after which queues are stationary.
const WARM: u64 = 50_000;
const LOAD: f64 = 0.9;
/// Slots of a plan, more than any measurement runs: a day at ten million slots per second.
const END: u64 = 1 << 40;

/// Arbiters and numbers of ports.
const CASES: [(&str, usize); 11] = [
    ("islip", 16),
    ("p_spf", 16),
    ("msm", 16),
    ("mwm", 16),
    ("p_msm", 16),
    ("p_mwm_ql", 16),
    ("islip mode cell", 16),
    ("mwm mode cell", 16),
    ("pim mode cell", 16),
    ("p_spf", 64),
    ("p_spf", 256),
];

fn traffic() -> TrafficSpec {
    let onoff = SOURCES.iter().find(|source| source.name == "onoff").expect("onoff is registered");
    (onoff.from_json)(json!({ "load": LOAD })).expect("onoff needs only a load")
}

fn arbiters(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("switch");
    group.throughput(Throughput::Elements(BATCH));
    for (arbiter, ports) in CASES {
        let plan = Plan {
            ports,
            arbiter: arbiter.parse().expect("the arbiter is valid"),
            traffic: traffic(),
            slots: END,
            warmup: 0,
            streams: Streams::new(1),
            folder: PathBuf::new(),
        };
        let mut sim = Sim::new(&plan).expect("the plan is valid");
        let mut slot = WARM;
        sim.step_to(slot);
        group.bench_function(BenchmarkId::new(arbiter, ports), |bencher| {
            bencher.iter(|| {
                slot += BATCH;
                sim.step_to(slot);
            });
        });
        black_box(sim.outcome().throughput);
    }
    group.finish();
}

/// Measures drawing the arrivals of as many slots, at 16 ports.
fn arrivals(criterion: &mut Criterion) {
    let context = TrafficContext { ports: 16, streams: Streams::new(1), folder: PathBuf::new() };
    let mut offered = traffic().build(&context).expect("the traffic is valid");
    let mut fresh = Vec::with_capacity(16);
    // By input: the first slot whose arrivals are not drawn yet.
    let mut drawn = [0; 16];
    let mut slot = 0;
    let mut group = criterion.benchmark_group("switch");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function(BenchmarkId::new("arrivals alone", 16), |bencher| {
        bencher.iter(|| {
            slot += BATCH;
            for (source, drawn) in offered.sources.iter_mut().zip(&mut drawn) {
                while *drawn < slot {
                    fresh.clear();
                    source.fill(&mut fresh);
                    *drawn = black_box(&fresh).last().expect("these sources never end").first;
                }
            }
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = arbiters, arrivals
}
criterion_main!(benches);
