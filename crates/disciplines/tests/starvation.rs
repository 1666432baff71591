//! No flow starves: after any earlier traffic, a long flow that sends steadily gets a good part of its fair
//! share, once short flows leave a part of the link and the earlier traffic has ended.
//!
//! A scenario has three parts, at a link of 1 Mbit/s: one second of any traffic (floods of new flows, streams
//! that start and end, pauses, forged labels); then steady streams with short flows that leave at least half
//! of the link, first one second to settle, then a measurement interval of two seconds.
//!
//! `cargo xtask starvation` tries a million scenarios with each discipline.

use std::collections::BinaryHeap;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, Label, LinkContext, Outbox, Packet, Qdisc, Rate, Rng, Span, Streams, Time};
use proptest::prelude::*;

const LINK: Rate = Rate::mbit(1);
const STEADY_FROM: Time = Time::s(1);
const MEASURED_FROM: Time = Time::s(2);
const END: Time = Time::s(4);

/// A sender of packets.
#[derive(Clone, Debug)]
enum Sender {
    /// One flow, steadily from a time on until the end.
    Stream { kbit: u64, bytes: u32, from: Time },
    /// One flow with an end.
    Passing { kbit: u64, bytes: u32, from: Time, until: Time, label: Option<u64> },
    /// A new flow with each packet.
    Flood { kbit: u64, bytes: u32, from: Time, until: Time },
}

impl Sender {
    fn pace(&self) -> (u64, u32, Time, Time) {
        match *self {
            Sender::Stream { kbit, bytes, from } => (kbit, bytes, from, END),
            Sender::Passing { kbit, bytes, from, until, .. } | Sender::Flood { kbit, bytes, from, until } => {
                (kbit, bytes, from, until)
            }
        }
    }
}

fn moment() -> impl Strategy<Value = Time> {
    (0..1000u64).prop_map(Time::ms)
}

/// Lengths of packets, short enough for an exact share in two seconds.
fn bytes() -> impl Strategy<Value = u32> {
    200..600u32
}

fn stream() -> impl Strategy<Value = Sender> {
    // Every stream sends more than the smallest fair share.
    (75..2000u64, bytes(), prop_oneof![moment(), Just(STEADY_FROM)])
        .prop_map(|(kbit, bytes, from)| Sender::Stream { kbit, bytes, from })
}

fn earlier() -> impl Strategy<Value = Sender> {
    prop_oneof![
        (50..3000u64, bytes(), moment(), moment(), prop::option::of(1..1_000_000_000_000u64)).prop_map(
            |(kbit, bytes, from, until, label)| Sender::Passing { kbit, bytes, from, until, label }
        ),
        (50..3000u64, 100..1500u32, moment(), moment())
            .prop_map(|(kbit, bytes, from, until)| Sender::Flood { kbit, bytes, from, until }),
    ]
}

/// Short flows until the end, at most half of the link.
fn mice() -> impl Strategy<Value = Sender> {
    (1..500u64, 100..1500u32).prop_map(|(kbit, bytes)| Sender::Flood {
        kbit,
        bytes,
        from: STEADY_FROM,
        until: END,
    })
}

fn scenario() -> impl Strategy<Value = Vec<Sender>> {
    let parts = (
        prop::collection::vec(stream(), 1..5),
        prop::collection::vec(earlier(), 0..4),
        prop::collection::vec(mice(), 0..2),
    );
    parts.prop_map(|(streams, earlier, mice)| [streams, earlier, mice].concat())
}

/// Bytes of each sender that the link sent in the measurement interval.
fn throughput(spec: &str, senders: &[Sender], seed: u64) -> Vec<u64> {
    let context = LinkContext::new(LINK, Streams::new(seed).within("discipline"));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut rng = Streams::new(seed).within("senders").rng();
    let mut out = Outbox::default();
    let mut got = vec![0; senders.len()];
    let mut next: BinaryHeap<std::cmp::Reverse<(Time, usize)>> = BinaryHeap::new();
    for (which, sender) in senders.iter().enumerate() {
        let (kbit, bytes, from, _) = sender.pace();
        next.push(std::cmp::Reverse((
            from + part(&mut rng, Rate::kbit(kbit).time_for(u64::from(bytes))),
            which,
        )));
    }
    let (mut free, mut serial) = (Time::ZERO, 1000);
    while let Some(std::cmp::Reverse((now, which))) = next.pop() {
        let sender = &senders[which];
        let (kbit, bytes, _, until) = sender.pace();
        if now >= until {
            continue;
        }
        while free <= now {
            match qdisc.dequeue(&mut Cx::new(free, &mut out)).packet() {
                Some(pkt) => {
                    got[pkt.payload as usize] += u64::from(free >= MEASURED_FROM) * u64::from(pkt.bytes());
                    free += LINK.time_for(u64::from(pkt.bytes()));
                }
                // The link starts again with the packet that arrives now.
                None => free = now + Span::from_ps(1),
            }
        }
        let flow = if let Sender::Flood { .. } = sender { serial } else { which as u64 };
        serial += 1;
        let mut pkt = Packet::new(FlowKey(mix(flow, 3)), bytes, which as u64);
        if let Sender::Passing { label: Some(label), .. } = sender {
            pkt.meta.label = Label::of(Rate::bit(*label));
        }
        qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
        out.dropped.clear();
        let gap = Rate::kbit(kbit).time_for(u64::from(bytes));
        next.push(std::cmp::Reverse((now + gap.scale(1, 2) + part(&mut rng, gap), which)));
    }
    got
}

fn part(rng: &mut Rng, gap: Span) -> Span {
    Span::from_ps(rng.below(gap.as_ps() + 1))
}

/// Streams with less than this part of their fair share, in words.
fn starved(spec: &str, senders: &[Sender], seed: u64, part: f64) -> Vec<String> {
    let got = throughput(spec, senders, seed);
    let measured = END.since(MEASURED_FROM).as_s();
    let streams = || senders.iter().enumerate().filter(|(_, sender)| matches!(sender, Sender::Stream { .. }));
    let mice: u64 = senders
        .iter()
        .map(|sender| match sender {
            Sender::Flood { kbit, until, .. } if *until == END => *kbit,
            _ => 0,
        })
        .sum();
    let share = (LINK.as_bit() / 1000 - mice) as f64 / streams().count() as f64;
    let rates =
        streams().map(|(which, sender)| (which, sender.pace().0, got[which] as f64 * 8e-3 / measured));
    rates
        .filter(|(_, asks, gets)| *gets < part * share.min(*asks as f64))
        .map(|(which, asks, gets)| {
            format!("sender {which} sends {asks} kbit/s and gets {gets:.1} of a fair share of {share:.1}")
        })
        .collect()
}

/// Eight times the usual number of cases of a property.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.saturating_mul(8), ..usual }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn no_long_flow_starves_under_fpip(senders in scenario(), seed in 0..1000u64) {
        let starved = starved("fpip limit 60kb target 20p", &senders, seed, 0.25);
        prop_assert!(starved.is_empty(), "{}", starved.join("; "));
    }

    #[test]
    fn no_flow_starves_under_csfq(senders in scenario(), seed in 0..1000u64) {
        let starved = starved("csfq limit 60kb threshold 20kb", &senders, seed, 0.25);
        prop_assert!(starved.is_empty(), "{}", starved.join("; "));
    }
}

/// The check detects starvation: with a fifo one stream starves.
#[test]
fn starvation_in_a_fifo_is_detected() {
    let senders = [
        Sender::Stream { kbit: 3000, bytes: 500, from: STEADY_FROM },
        Sender::Stream { kbit: 3000, bytes: 500, from: STEADY_FROM },
        Sender::Stream { kbit: 75, bytes: 500, from: STEADY_FROM },
    ];
    assert_eq!(starved("fifo limit 60kb", &senders, 1, 0.25).len(), 1);
    assert_eq!(starved("fpip limit 60kb target 20p", &senders, 1, 0.25), Vec::<String>::new());
}
