//! What it costs to be watched, per packet: at a port that is not measured, and at the bottleneck.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use qdisc::{FlowKey, Meta, PortId, Probe, Rate, Span, Time};
use record::{Layout, Recorder};

/// Packets per round: the clock of the benchmark is slower than one packet.
const PACKETS: u64 = 10_000;

fn recorder(keep_series: bool) -> Recorder {
    let rates = (0..6).map(|port| (PortId(port), Rate::gbit(1))).collect();
    let until = Time::s(3_600);
    Recorder::new(Layout { measured: vec![PortId(3)], rates, until, keep_series, ..Layout::default() })
}

/// Packets arrive and leave some ten microseconds later, one after the other.
fn pass(recorder: &mut Recorder, port: PortId, start: Time) -> Time {
    let mut now = start;
    for i in 0..PACKETS {
        let meta = Meta { bytes: 1_500, flow: FlowKey(i % 10), arrived: now, ..Meta::default() };
        Probe::<()>::arrived(recorder, black_box(port), &meta, now);
        let left = now + Span::us(10 + i % 7);
        Probe::<()>::sent(recorder, black_box(port), &meta, &(), left);
        now = left;
    }
    now
}

fn watched(c: &mut Criterion) {
    let mut group = c.benchmark_group("arrived and sent");
    group.throughput(Throughput::Elements(PACKETS));
    let cases = [
        ("not measured", PortId(1), false),
        ("bottleneck", PortId(3), false),
        ("bottleneck, with shares over time", PortId(3), true),
    ];
    for (name, port, keep_series) in cases {
        group.bench_function(name, |b| {
            let (mut watcher, mut now) = (recorder(keep_series), Time::ZERO);
            b.iter(|| now = pass(&mut watcher, port, now));
        });
    }
}

criterion_group!(benches, watched);
criterion_main!(benches);
