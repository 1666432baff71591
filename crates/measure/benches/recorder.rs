//! The cost of recording, per packet: at a port that is not measured, and at the bottleneck with each option.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use giveway_measure::{Layout, Recorder};
use giveway_qdisc::{FlowKey, Meta, NextHops, PortId, Probe, Rate, Span, Time};

/// Packets per round. One packet is faster than the clock of the benchmark can measure.
const PACKETS: u64 = 10_000;

/// The options of a recording.
#[derive(Clone, Copy, Default)]
struct Asked {
    keep_series: bool,
    bursts: bool,
}

fn recorder(asked: Asked) -> Recorder {
    let rates = (0..6).map(|port| (PortId(port), Rate::gbit(1))).collect();
    let until = Time::s(3_600);
    let Asked { keep_series, bursts } = asked;
    Recorder::new(Layout {
        measured: vec![PortId(3)],
        rates,
        until,
        keep_series,
        bursts,
        ..Layout::default()
    })
}

/// Packets are emitted, arrive, and depart about ten microseconds later, each with one of three next hops.
fn pass(recorder: &mut Recorder, port: PortId, start: Time) -> Time {
    let mut now = start;
    for i in 0..PACKETS {
        let next_hops = NextHops::new([(i % 5 % 3) as u16]);
        let meta = Meta { bytes: 1_500, flow: FlowKey(i % 10), arrived: now, next_hops, ..Meta::default() };
        Probe::<()>::on_emission(recorder, 0, &meta, &(), now);
        Probe::<()>::on_arrival(recorder, black_box(port), &meta, now);
        let left = now + Span::us(10 + i % 7);
        Probe::<()>::on_transmission(recorder, black_box(port), &meta, &(), left);
        now = left;
    }
    now
}

fn watched(c: &mut Criterion) {
    let mut group = c.benchmark_group("emitted, arrived and sent");
    group.throughput(Throughput::Elements(PACKETS));
    let cases = [
        ("not measured", PortId(1), Asked::default()),
        ("bottleneck", PortId(3), Asked::default()),
        ("bottleneck, with shares over time", PortId(3), Asked { keep_series: true, ..Asked::default() }),
        ("bottleneck, with bursts", PortId(3), Asked { bursts: true, ..Asked::default() }),
    ];
    for (name, port, asked) in cases {
        group.bench_function(name, |b| {
            let (mut watcher, mut now) = (recorder(asked), Time::ZERO);
            b.iter(|| now = pass(&mut watcher, port, now));
        });
    }
}

criterion_group!(benches, watched);
criterion_main!(benches);
