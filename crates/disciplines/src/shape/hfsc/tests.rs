//! Traces that name packets, and laws.

use proptest::prelude::*;

use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Rate, Span, Streams, Time};

use crate::Spec;
use crate::testing::events::build_error;
use crate::testing::trace::trace;

/// A link of 1,000 bytes per millisecond.
const LINK: u64 = 1000;

#[test]
fn shares_of_the_link_follow_the_curves() {
    // A has three quarters. The letter of a packet is its class.
    assert_eq!(
        trace(
            "hfsc default b classes [(name a ls (rate 6mbit) match [(class 0)]) (name b ls (rate 2mbit))]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000, A4 1000, A5 1000, A6 1000, B1 1000, B2 1000, B3 1000"
        ),
        "A1[0-1] B1[1-2] A2[2-3] A3[3-4] A4[4-5] B2[5-6] A5[6-7] A6[7-8] B3[8-9] |"
    );
}

#[test]
fn a_deadline_goes_before_shares() {
    // B has an eighth of the link, but its first 1,000 bytes within 2 ms.
    assert_eq!(
        trace(
            "hfsc default a classes [(name a ls (rate 7mbit)) (name b sc (umax 1000b dmax 2ms rate 1mbit) match [(class 1)])]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000, A4 1000; 1.5 B1 1000, B2 1000; 4.5 A5 1000"
        ),
        "A1[0-1] A2[1-2] B1[2-3] A3[3-4] B2[4-5] A4[5-6] A5[6-7] |",
        "B1 is due at 3.5 ms; B2 is due at 11.5 ms and eligible from 3.5 ms on"
    );
}

#[test]
fn an_upper_limit_leaves_the_link_idle() {
    assert_eq!(
        trace(
            "hfsc default a classes [(name a ls (rate 1mbit) ul (rate 4mbit))]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000"
        ),
        "A1[0-1] A2[2-3] A3[4-5] |"
    );
}

/// B1 arrives while the limit of A holds A, and so their parent, back until 4 ms.
#[test]
fn an_arrival_frees_a_class_that_waits_for_others_below_it() {
    assert_eq!(
        trace(
            "hfsc default a classes [(name all ls (rate 8mbit) classes [(name a ls (rate 1mbit) ul (rate 2mbit)) (name b ls \
             (rate 1mbit) match [(class 1)])])]",
            LINK,
            "0 A1 1000, A2 1000; 1.5 B1 1000"
        ),
        "A1[0-1] B1[1.5-2.5] A2[4-5] |"
    );
}

#[test]
fn mistakes_are_refused_with_the_class() {
    let said = [
        "hfsc default a classes [(name a)]",
        "hfsc default a classes [(name a sc (rate 1mbit) rt (rate 1mbit))]",
        "hfsc default b classes [(name a rt (rate 1mbit) ls (rate 1mbit) classes [(name b ls (rate 1mbit))])]",
        "hfsc default a classes [(name a sc (m1 1mbit m2 1mbit))]",
        "hfsc default a classes [(name a sc (m1 1mbit))]",
        "hfsc default a classes [(name a rt (rate 1mbit) ul (rate 1mbit))]",
        "hfsc default a classes [(name a sc (rate 0bit))]",
    ]
    .map(|text| build_error(text).to_string());
    assert_eq!(
        said,
        [
            "classes: class \"a\": it needs a curve, such as sc (rate 1mbit)",
            "classes: class \"a\": \"sc\" is \"rt\" and \"ls\" in one: remove it or them",
            "classes: class \"a\": a real-time curve has no effect on a class with classes below: give it to those",
            "classes: class \"a\": sc: \"m1\" and \"d\" belong together",
            "classes: class \"a\": sc: a curve is (rate 1mbit), (m1 5mbit d 10ms m2 1mbit) or (umax 1500b dmax 10ms rate 1mbit)",
            "classes: class \"a\": an upper limit bounds link sharing, so it needs \"ls\"",
            "classes: class \"a\": sc: a curve with the rate 0 serves nothing in the end: write at least 1kbit",
        ]
    );
}

#[test]
fn curves_that_exceed_the_link_are_warned_of() {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let warned = [
        "hfsc default a classes [(name a sc (rate 6mbit)) (name b sc (rate 6mbit) match [(class 1)])]",
        "hfsc default a classes [(name a sc (m1 8mbit d 5ms m2 1mbit)) (name b sc (m1 8mbit d 9ms m2 1mbit) match \
         [(class 1)])]",
        "hfsc classes [(name a sc (rate 6mbit) match [(class 1)])]",
    ]
    .map(|text| text.parse::<Spec>().unwrap().warnings(&context).join("; "));
    assert_eq!(
        warned,
        [
            "the real-time curves need 12mbit together, and the link has 10mbit",
            "the real-time curves together need more than the link after 5ms: deadlines will be missed",
            "packets that match no filter are dropped: name a class in \"default\"",
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Theorem 2 of the paper: if the real-time curves fit into the link, a packet leaves at most one packet
    /// of the largest length after its deadline, whatever the others send.
    ///
    /// The deadlines are computed here from the definition: the service that a class must have had by a time
    /// is the minimum of its service curves from the start of each busy period.
    #[test]
    fn deadlines_are_met(
        curves in prop::collection::vec((1u64..8, 1u64..40, 1u64..8), 2..6),
        lengths in prop::collection::vec(64u32..1500, 6),
        gaps in prop::collection::vec(0u64..30, 60),
    ) {
        // Steep pieces and rates together are at most the link.
        let steep: u64 = curves.iter().map(|(m1, _, m2)| m1.max(m2)).sum();
        let classes: Vec<String> = curves.iter().enumerate().map(|(n, (m1, d, m2))| {
            format!("(name c{n} rt (m1 {m1}00kbit d {d}ms m2 {m2}00kbit) match [(class {n})])")
        }).collect();
        let text = format!("hfsc default rest classes [{} (name rest ls (rate 9mbit))]", classes.join(" "));
        let link = Rate::kbit(steep * 100);
        let mut qdisc =
            text.parse::<Spec>().unwrap().build_numbered(&LinkContext::new(link, Streams::new(1))).unwrap();
        // The time in which the curve of a class has so many bytes, rounded up to a microsecond.
        let time_of = |class: usize, bytes: u64| {
            let (m1, d, m2) = curves[class];
            let (bits, first) = (bytes * 8, m1 * 100 * d);
            let us = if bits <= first {
                (bits * 1000).div_ceil(m1 * 100)
            } else {
                d * 1000 + ((bits - first) * 1000).div_ceil(m2 * 100)
            };
            Span::us(us + 1)
        };
        let slack = link.time_for(1500);
        let mut out = Outbox::default();
        let (mut now, mut n) = (Time::ms(1), 0);
        // Of each class: begins of its busy periods with the bytes before, its bytes, and the deadline of its
        // packet.
        let mut periods: Vec<Vec<(Time, u64)>> = vec![Vec::new(); curves.len()];
        let mut served = vec![0u64; curves.len()];
        let mut due: Vec<Option<Time>> = vec![None; curves.len()];
        let mut next: Vec<Time> = (0..curves.len()).map(|class| Time::ms(1 + class as u64)).collect();
        while now < Time::s(1) {
            for class in 0..curves.len() {
                if due[class].is_none() && next[class] <= now {
                    let mut pkt = Packet::new(FlowKey(class as u64), lengths[class], 0);
                    pkt.meta.class = class as u16;
                    qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
                    periods[class].push((now, served[class]));
                    let wanted = served[class] + u64::from(lengths[class]);
                    let of_period = |(begin, before): &(Time, u64)| *begin + time_of(class, wanted - before);
                    due[class] = periods[class].iter().map(of_period).max();
                }
            }
            // Traffic without a guarantee is always there.
            while qdisc.backlog().packets < 10 {
                let mut pkt = Packet::new(FlowKey(99), 1500, 0);
                pkt.meta.class = 99;
                qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
            }
            match qdisc.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    now += link.time_for(u64::from(pkt.bytes()));
                    let class = usize::from(pkt.meta.class);
                    if let Some(due) = due.get_mut(class) {
                        let wanted = due.take().expect("it was there") + slack;
                        prop_assert!(now <= wanted, "class {class} left at {now} instead of {wanted}: {text}");
                        served[class] += u64::from(pkt.bytes());
                        n += 1;
                        next[class] = now + Span::ms(gaps[n % gaps.len()]);
                    }
                }
                other => prop_assert!(false, "{other:?} although there is a backlog"),
            }
        }
        prop_assert!(n > 10);
    }
}
