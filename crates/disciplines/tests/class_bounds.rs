//! The services that classes are guaranteed hold for any traffic: a search for violations.
//!
//! With the finish times of a class at its rate, F_k = max(a_k, F_(k-1)) + L_k / R, the last bit of packet k
//! leaves by F_k and the latency. The greatest share of the allowance that a run used is compared,
//! too, so that a bound that is far too large is noticed.

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Next, Outbox, Packet, Rate, Span, Streams, Time};
use proptest::prelude::*;

const LINK: Rate = Rate::mbit(100);
/// Picoseconds of a byte on the link.
const PS_PER_BYTE: u64 = 80_000;

fn context() -> LinkContext {
    LinkContext::new(LINK, Streams::new(1).within("bounds"))
}

/// Arrivals: gap in bytes on the link, class, length, number of packets.
type Arrivals = Vec<(u32, u16, u32, usize)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![4 => Just(0u32), 2 => 1..3000u32, 2 => 3000..200_000u32];
    let bytes = prop_oneof![3 => Just(1500u32), 1 => 64..1500u32];
    prop::collection::vec((gap, 0..4u16, bytes, 1..40usize), 1..40)
}

/// Runs the arrivals. Returns the largest lateness of a packet relative to the latency of its class, as a
/// part of it; above 1 the bound is violated.
fn worst(spec: &Spec, arrivals: &Arrivals) -> f64 {
    let context = context();
    let service = |class: u16| {
        let number = spec.class_of(&Meta { class, ..Meta::default() }, &context)?;
        spec.class_service(number, &context).ok()
    };
    let services: Vec<_> = (0..4).map(service).collect();
    assert!(services.iter().any(Option::is_some), "{spec}: no class has a service to check");
    let mut finish = [Time::ZERO; 4];
    let mut qdisc = spec.build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let (mut arrived, mut free, mut worst) = (Time::ZERO, Time::ZERO, 0f64);
    let mut stamps: Vec<Time> = Vec::new();
    let mut coming = arrivals.iter().flat_map(|(gap, class, bytes, packets)| {
        (0..*packets).map(move |nth| (if nth == 0 { *gap } else { 0 }, *class, *bytes))
    });
    let mut next = coming.next();
    loop {
        while let Some((gap, class, bytes)) = next
            && arrived + Span::from_ps(u64::from(gap) * PS_PER_BYTE) <= free
        {
            arrived += Span::from_ps(u64::from(gap) * PS_PER_BYTE);
            let mut pkt = Packet::new(FlowKey(u64::from(class)), bytes, stamps.len() as u64);
            (pkt.meta.class, pkt.meta.arrived) = (class, arrived);
            let last = &mut finish[usize::from(class)];
            if let Some(service) = &services[usize::from(class)] {
                *last = (*last).max(arrived) + service.m2.time_for(u64::from(bytes));
            }
            stamps.push(*last);
            qdisc.enqueue(pkt, &mut Cx::new(arrived, &mut out));
            assert!(out.dropped.is_empty(), "the queues are long enough");
            next = coming.next();
        }
        match qdisc.dequeue(&mut Cx::new(free, &mut out)) {
            Next::Packet(pkt) => {
                free += LINK.time_for(u64::from(pkt.bytes()));
                if let Some(service) = &services[usize::from(pkt.meta.class)] {
                    let late = free.since(stamps[pkt.payload as usize]);
                    worst = worst.max(late.as_ps() as f64 / service.latency.as_ps() as f64);
                }
            }
            stops => {
                let gap = next.map(|(gap, ..)| arrived + Span::from_ps(u64::from(gap) * PS_PER_BYTE));
                let at = if let Next::At(at) = stops { Some(at) } else { None };
                match (gap, at) {
                    (None, None) => return worst,
                    (Some(one), Some(other)) => free = one.min(other).max(free),
                    (Some(at), None) | (None, Some(at)) => free = at.max(free),
                }
            }
        }
    }
}

/// A tree of `htb` with these rates in percent and priorities. The bursts cover the waits of the classes that
/// go first, at least.
fn htb(rates: &[(u64, u8)], ceil: bool) -> Spec {
    let ceil = if ceil { "ceil 100mbit" } else { "" };
    let leaf = |(class, (rate, prio)): (usize, &(u64, u8))| {
        format!(
            "(name c{class} rate {rate}mbit {ceil} prio {prio} quantum {}b burst 30kb cburst 200kb match [(class {class})] leaf \
             (fifo limit 5000p))",
            150 * rate
        )
    };
    let leaves: Vec<String> = rates.iter().enumerate().map(leaf).collect();
    format!("htb default c0 classes [{}]", leaves.join(" ")).parse().unwrap()
}

fn check(spec: &Spec, arrivals: &Arrivals) -> Result<(), TestCaseError> {
    let worst = worst(spec, arrivals);
    prop_assert!(worst <= 1.0, "{spec}: {worst:.3} of the latency");
    Ok(())
}

proptest! {
    #[test]
    fn htb_keeps_its_rates(arrivals in arrivals(), prios in prop::array::uniform4(0..3u8), ceil: bool) {
        for shares in [[25, 25, 25, 25], [40, 30, 20, 10], [10, 10, 10, 10], [70, 10, 10, 5]] {
            let rates: Vec<(u64, u8)> = shares.into_iter().zip(prios).collect();
            check(&htb(&rates, ceil), &arrivals)?;
        }
    }

    #[test]
    fn ets_and_prio_keep_their_shares(arrivals in arrivals()) {
        for spec in [
            "ets quanta [1500b 1500b 1500b 1500b] children [F F F F]",
            "ets quanta [6000b 3000b 1500b 500b] children [F F F F]",
            "ets strict 2 quanta [3000b 1500b] children [F F F F]",
            "prio bands 4 children [F F F F]",
        ] {
            check(&spec.replace('F', "(fifo limit 5000p)").parse().unwrap(), &arrivals)?;
        }
    }

    #[test]
    fn hfsc_keeps_its_curves(arrivals in arrivals()) {
        let class = |(class, rate): (usize, u64)| {
            format!("(name c{class} sc (rate {rate}mbit) match [(class {class})] leaf (fifo limit 5000p))")
        };
        for shares in [[25, 25, 25, 25], [70, 10, 10, 5]] {
            let classes: Vec<String> = shares.into_iter().enumerate().map(class).collect();
            check(&format!("hfsc classes [{}]", classes.join(" ")).parse().unwrap(), &arrivals)?;
        }
    }
}

/// A band that goes first waits for nearly the packet that its bound allows, and a class of `htb` for a
/// noticeable part of its wait.
#[test]
fn bounds_are_not_far_too_large() {
    let late = [(0, 3, 1500, 2), (10, 0, 1500, 1)].to_vec();
    let prio = "prio bands 4 children [(fifo) (fifo) (fifo) (fifo)]".parse().unwrap();
    assert!(worst(&prio, &late) > 0.99, "{}", worst(&prio, &late));
    let all: Arrivals = (0..4).rev().map(|class| (0, class, 1500, 40)).collect();
    let htb = htb(&[(25, 0), (25, 0), (25, 0), (25, 0)], false);
    assert!(worst(&htb, &all) > 0.1, "{}", worst(&htb, &all));
}

/// The reasons why a class has no bound.
#[test]
fn classes_without_a_service_say_why() {
    let reason =
        |text: &str, class: u32| text.parse::<Spec>().unwrap().class_service(class, &context()).unwrap_err();
    let of = |rest: &str| {
        format!("htb classes [(name a rate 40mbit) (name b rate 20mbit match [(class 1)])] {rest}")
    };
    assert!(
        reason(&of("").replace("(name a rate 40mbit)", "(name a rate 40mbit match [(class 0)])"), 0)
            .contains("name a class in \"default\"")
    );
    assert!(reason(&of("default a"), 0).contains("write burst "), "{}", reason(&of("default a"), 0));
    assert!(reason(&of("default a").replace("40", "90"), 0).contains("and the link has 100"));
    assert!(reason("prio bands 2", 1).contains("nothing limits band 0"));
    assert!(reason("ets strict 1 quanta [2000b] children [(fq_codel) (fifo)]", 0).contains("needs a fifo"));
    assert!(reason("hfsc default a classes [(name a ls (rate 1mbit) rt (rate 1mbit)) (name b ls (rate 1mbit) match [(class 1)])]", 1).contains("no real-time curve"));
}
