//! Snapshots for tests: two directions with all counters, and random ones.

#![allow(dead_code)]

use giveway_qdisc::{Backlog, ClassState, DropReason, FiveTuple, FlowKey, PortCounters, Rate, Span};
use giveway_watch::{
    Direction, Drops, Fragments, Losses, OpenShare, Quantiles, Reservations, Snapshot, Status, TopFlow,
};
use proptest::prelude::*;

fn quantiles(count: u64, us: u64) -> Quantiles {
    Quantiles {
        count,
        sum_ps: u128::from(count) * u128::from(us) * 1_000_000,
        p50: Span::us(us),
        p90: Span::us(3 * us),
        p99: Span::us(10 * us),
        p999: Span::us(20 * us),
        max: Span::ns(25_000 * us + 125),
    }
}

/// A busy uplink and an idle reverse direction that has failed.
pub fn two() -> Vec<Snapshot> {
    let mut dropped = Drops::default();
    (0..1234).for_each(|_| dropped.add(DropReason::Overlimit, 1500));
    (0..5).for_each(|_| dropped.add(DropReason::Congested, 1000));
    let mapped = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    let local = |last| [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let tuple =
        |(from, from_port), (to, to_port), protocol| FiveTuple { from, to, from_port, to_port, protocol };
    let flow = |key, tuple, packets, bytes| TopFlow {
        flow: FlowKey(key),
        tuple,
        arrived: Backlog { packets, bytes },
    };
    let uplink = Snapshot {
        from: "eth0".to_owned(),
        to: "eth1".to_owned(),
        direction: Direction::Forward,
        spec: "fq_codel limit 300p target 5ms".to_owned(),
        kind: "fq_codel".to_owned(),
        handle: "1:".to_owned(),
        status: Status {
            rate: Rate::mbit(100),
            uptime: Span::ms((3 * 86_400 + 4 * 3600 + 12 * 60 + 33) * 1000 + 250),
            counters: PortCounters {
                arrived: Backlog { packets: 12_345_678, bytes: 9_876_543_210 },
                sent: Backlog { packets: 12_344_316, bytes: 9_874_500_000 },
                dropped: dropped.total(),
                marked: 77,
            },
            dropped,
            backlog: Backlog { packets: 123, bytes: 184_500 },
            losses: Losses { emulated: 12, ..Losses::default() },
            stalls: 1,
            stalled: Span::ms(7),
            sojourn: [quantiles(12_344_316, 800), quantiles(6543, 1200)],
            lateness: [quantiles(12_344_316, 12), quantiles(6543, 9)],
            last_second: Backlog { packets: 6543, bytes: 8_123_456 },
            top: vec![
                flow(1, Some(tuple((mapped(1), 443), (mapped(2), 50_000), 6)), 4000, 6_000_000),
                flow(2, Some(tuple((local(1), 5004), (local(2), 5004), 17)), 50, 10_000),
                flow(0xabcd, None, 1, 64),
            ],
            gauges: vec![("dropping".into(), 2.0), ("share".into(), 0.125), ("none".into(), f64::NAN)],
            classes: vec![class("line", 1, 5), class("line/\"office\"", 2, 5)],
            scheduling: "SCHED_FIFO, priority 50".to_owned(),
            ..Status::default()
        },
        ..Snapshot::default()
    };
    let reverse = Snapshot {
        from: "eth1".to_owned(),
        to: "a \"strange\" \\ name\n".to_owned(),
        direction: Direction::Reverse,
        spec: "fifo".to_owned(),
        kind: "fifo".to_owned(),
        handle: "2:".to_owned(),
        status: Status {
            rate: Rate::mbit(16),
            plain: Some("a test".to_owned()),
            losses: Losses { ring: 3, ..Losses::default() },
            ..Status::default()
        },
        ..Snapshot::default()
    };
    vec![uplink, reverse]
}

fn backlog() -> impl Strategy<Value = Backlog> {
    (any::<u64>(), any::<u64>()).prop_map(|(packets, bytes)| Backlog { packets, bytes })
}

fn any_quantiles() -> impl Strategy<Value = Quantiles> {
    (any::<u64>(), any::<u128>(), prop::array::uniform5(any::<u64>())).prop_map(
        |(count, sum_ps, mut spans)| {
            spans.sort_unstable();
            let [p50, p90, p99, p999, max] = spans.map(Span::from_ps);
            Quantiles { count, sum_ps, p50, p90, p99, p999, max }
        },
    )
}

/// Random snapshots. The handle is given, so that several snapshots have different labels.
pub fn snapshot(handle: usize) -> impl Strategy<Value = Snapshot> {
    let texts = prop::array::uniform4("(?s).{0,12}");
    let counts = prop::array::uniform4(backlog());
    let delays = prop::array::uniform4(any_quantiles());
    let tuple = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
        |(from, to, from_port, to_port, protocol)| FiveTuple { from, to, from_port, to_port, protocol },
    );
    let flows = prop::collection::vec((prop::option::of(tuple), backlog(), any::<u64>()), 0..6);
    let gauges = prop::collection::btree_map("[a-z_]{1,8}", any::<f64>(), 0..4);
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>());
    (texts, counts, delays, flows, gauges, numbers).prop_map(
        move |([from, to, spec, kind], counts, delays, flows, gauges, (rate, up, ring, stalls, plain))| {
            let [arrived, sent, backlog, last_second] = counts;
            let [sojourn, lateness, recent_sojourn, recent_lateness] = delays;
            let flows =
                flows.into_iter().map(|(tuple, arrived, key)| TopFlow { flow: FlowKey(key), tuple, arrived });
            // One of two snapshots has fragments.
            let mut fragments = Fragments::default();
            if plain {
                fragments = Fragments { cut: stalls, pieces: ring, ..Fragments::default() };
                fragments.joined.lost[0] = stalls;
            }
            Snapshot {
                from,
                to,
                direction: if plain { Direction::Forward } else { Direction::Reverse },
                spec,
                kind,
                handle: format!("{handle}:"),
                status: Status {
                    rate: Rate::bit(rate),
                    uptime: Span::from_ps(up),
                    counters: PortCounters { arrived, sent, dropped: Backlog::ZERO, marked: ring },
                    backlog,
                    losses: Losses { ring, emulated: stalls, ..Losses::default() },
                    stalls,
                    fragments,
                    sojourn: [sojourn, recent_sojourn],
                    lateness: [lateness, recent_lateness],
                    last_second,
                    top: flows.collect(),
                    gauges: gauges.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                    plain: plain.then(|| "a test".to_owned()),
                    ..Status::default()
                },
                reservations: (!plain).then(|| Reservations {
                    capacity: Rate::bit(rate),
                    reserved: Rate::bit(up),
                    flows: stalls,
                    open: OpenShare {
                        capacity: Rate::bit(rate),
                        reserved: Rate::bit(up),
                        flows: stalls,
                        owners: stalls,
                    },
                    // An outcome with every character that must be escaped.
                    messages: vec![("granted", ring), ("a \"\\\n", 1)],
                    malformed: vec![("short", stalls)],
                }),
                ..Snapshot::default()
            }
        },
    )
}

/// A class that sent some packets.
fn class(path: &str, level: u16, packets: u64) -> ClassState {
    ClassState {
        path: path.to_owned(),
        level,
        leaf: level == 2,
        rate: Some(Rate::mbit(2)),
        arrived: Backlog { packets: packets + 3, bytes: 1000 * packets + 300 },
        sent: Backlog { packets, bytes: 1000 * packets },
        dropped: Backlog { packets: 1, bytes: 100 },
        backlog: Backlog { packets: 2, bytes: 200 },
        borrowed: 4000,
        waited: Span::ms(7) * packets,
        longest: Span::ms(12),
        ..ClassState::default()
    }
}
