//! Snapshots to show: two directions that have everything, and any others.

#![allow(dead_code)]

use std::time::Duration;

use giveway_qdisc::{Backlog, DropReason, FlowKey, Rate, Span};
use giveway_watch::{Direction, Drops, Flow, Fragments, Quantiles, Recent, Reservations, Snapshot};
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

/// A busy uplink and an idle way back that was given up.
pub fn two() -> Vec<Snapshot> {
    let mut dropped = Drops::default();
    (0..1234).for_each(|_| dropped.add(DropReason::Overlimit, 1500));
    (0..5).for_each(|_| dropped.add(DropReason::Congested, 1000));
    let flow = |key, text: &str, packets, bytes| Flow {
        key: FlowKey(key),
        text: text.to_owned(),
        sent: Backlog { packets, bytes },
    };
    let uplink = Snapshot {
        from: "eth0".to_owned(),
        to: "eth1".to_owned(),
        direction: Direction::Forward,
        spelling: "fq_codel limit 300p target 5ms".to_owned(),
        kind: "fq_codel".to_owned(),
        handle: "1:".to_owned(),
        rate: Rate::mbit(100),
        uptime: Duration::new(3 * 86_400 + 4 * 3600 + 12 * 60 + 33, 250_000_000),
        plain_forwarding: false,
        arrived: Backlog { packets: 12_345_678, bytes: 9_876_543_210 },
        sent: Backlog { packets: 12_344_316, bytes: 9_874_500_000 },
        dropped,
        marked: Backlog { packets: 77, bytes: 115_500 },
        held: Backlog { packets: 123, bytes: 184_500 },
        line_lost: Backlog { packets: 12, bytes: 18_000 },
        ring_drops: 0,
        stalls: 1,
        fragments: None,
        sojourn: quantiles(12_344_316, 800),
        lateness: quantiles(12_344_316, 12),
        recent: Recent {
            arrived: Backlog { packets: 7000, bytes: 9_000_000 },
            sent: Backlog { packets: 6543, bytes: 8_123_456 },
            sojourn: quantiles(6543, 1200),
            lateness: quantiles(6543, 9),
            flows: vec![
                flow(1, "tcp 10.0.0.1:443 > 10.0.0.2:50000", 4000, 6_000_000),
                flow(2, "udp [fe80::1]:5004 > [fe80::2]:5004", 50, 10_000),
                flow(0xabcd, "", 1, 64),
            ],
        },
        gauges: vec![
            ("dropping".to_owned(), 2.0),
            ("share".to_owned(), 0.125),
            ("none".to_owned(), f64::NAN),
        ],
        reservations: None,
    };
    let back = Snapshot {
        from: "eth1".to_owned(),
        to: "a \"strange\" \\ name\n".to_owned(),
        direction: Direction::Reverse,
        spelling: "fifo".to_owned(),
        kind: "fifo".to_owned(),
        handle: "2:".to_owned(),
        rate: Rate::mbit(16),
        plain_forwarding: true,
        ring_drops: 3,
        ..Snapshot::default()
    };
    vec![uplink, back]
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

/// Any snapshot; its handle is given, so that several have different labels.
pub fn snapshot(handle: usize) -> impl Strategy<Value = Snapshot> {
    let texts = prop::array::uniform4("(?s).{0,12}");
    let counts = prop::array::uniform8(backlog());
    let delays = prop::array::uniform4(any_quantiles());
    let flows = prop::collection::vec(("(?s).{0,40}", backlog(), any::<u64>()), 0..6);
    let gauges = prop::collection::btree_map("[a-z_]{1,8}", any::<f64>(), 0..4);
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>());
    (texts, counts, delays, flows, gauges, numbers).prop_map(
        move |(
            [from, to, spelling, kind],
            counts,
            delays,
            flows,
            gauges,
            (rate, up, ring_drops, stalls, plain),
        )| {
            let [arrived, sent, marked, held, line_lost, recent_arrived, recent_sent, _] = counts;
            let [sojourn, lateness, recent_sojourn, recent_lateness] = delays;
            let flows = flows.into_iter().map(|(text, sent, key)| Flow { key: FlowKey(key), text, sent });
            Snapshot {
                from,
                to,
                direction: if plain { Direction::Forward } else { Direction::Reverse },
                spelling,
                kind,
                handle: format!("{handle}:"),
                rate: Rate::bit(rate),
                uptime: Duration::from_nanos(up),
                plain_forwarding: plain,
                arrived,
                sent,
                dropped: Drops::default(),
                marked,
                held,
                line_lost,
                ring_drops,
                stalls,
                // Of one of the two there are some, and a reason with everything in its name that has to be written in another way.
                fragments: plain.then(|| Fragments {
                    cut: stalls,
                    pieces: ring_drops,
                    lost: vec![("expired", stalls), ("a \"\\\n", 1)],
                    ..Fragments::default()
                }),
                sojourn,
                lateness,
                recent: Recent {
                    arrived: recent_arrived,
                    sent: recent_sent,
                    sojourn: recent_sojourn,
                    lateness: recent_lateness,
                    flows: flows.collect(),
                },
                gauges: gauges.into_iter().collect(),
                reservations: (!plain).then(|| Reservations {
                    capacity: Rate::bit(rate),
                    reserved: Rate::bit(up),
                    flows: stalls,
                    messages: vec![("granted", ring_drops), ("refused", 0)],
                }),
            }
        },
    )
}
