//! Traces that name packets, and laws.

use proptest::prelude::*;

use giveway_qdisc::{
    ClassState, Cx, Dscp, FlowKey, Header, Hosts, LinkContext, Meta, Next, Outbox, Packet, Qdisc, Rate,
    Streams, Time,
};

use crate::Spec;
use crate::testing::events::build_error;
use crate::testing::trace::{trace, trace_on};

/// A link of 1,000 bytes per millisecond.
const LINK: u64 = 1000;

#[test]
fn a_class_saves_its_burst_and_then_sends_at_its_rate() {
    // Half of the link. A1 uses what was saved, A2 is sent on credit, and the others wait until it is paid
    // off.
    assert_eq!(
        trace(
            "htb default a classes [(name a rate 4mbit burst 1000b cburst 1000b)]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000, A4 1000"
        ),
        "A1[0-1] A2[1-2] A3[2-3] A4[4-5] |"
    );
}

/// A has a quarter of the link and may have all of it, B three quarters.
const TWO: &str = "htb default b classes [(name all rate 8mbit burst 1000b cburst 1000b classes [\
    (name a rate 2mbit ceil 8mbit burst 1000b cburst 1000b match [(class 0)]) \
    (name b rate 6mbit ceil 8mbit burst 1000b cburst 1000b)])]";

#[test]
fn a_class_borrows_what_another_does_not_use() {
    assert_eq!(
        trace(TWO, LINK, "0 A1 1000, A2 1000, A3 1000, A4 1000"),
        "A1[0-1] A2[1-2] A3[2-3] A4[3-4] |",
        "alone it has the whole link"
    );
}

#[test]
fn own_rates_go_before_borrowed_ones() {
    // A borrows from 2 ms on, until B arrives; then B has its own rate first.
    assert_eq!(
        trace(
            TWO,
            LINK,
            "0 A1 1000, A2 1000, A3 1000, A4 1000, A5 1000, A6 1000, A7 1000; 2.5 B1 1000, B2 1000, B3 1000, B4 1000"
        ),
        "A1[0-1] A2[1-2] A3[2-3] B1[3-4] A4[4-5] B2[5-6] B3[6-7] B4[7-8] A5[8-9] A6[9-10] A7[10-11] |",
        "A4 has the credit of A's own rate again; B, with three quarters, has three packets of each four"
    );
}

#[test]
fn the_priority_decides_who_borrows() {
    let classes = |prios: [u8; 2]| {
        format!(
            "htb default b classes [(name all rate 8mbit burst 1000b cburst 1000b classes [\
             (name a rate 1mbit ceil 8mbit prio {} burst 1000b cburst 1000b quantum 1000b match [(class 0)]) \
             (name b rate 1mbit ceil 8mbit prio {} burst 1000b cburst 1000b quantum 1000b)])]",
            prios[0], prios[1]
        )
    };
    let arrivals = "0 A1 1000, A2 1000, A3 1000, A4 1000, B1 1000, B2 1000, B3 1000, B4 1000";
    assert_eq!(
        [trace(&classes([0, 0]), LINK, arrivals), trace(&classes([1, 0]), LINK, arrivals)],
        [
            "A1[0-1] B1[1-2] A2[2-3] B2[3-4] A3[4-5] B3[5-6] A4[6-7] B4[7-8] |",
            "B1[0-1] B2[1-2] A1[2-3] A2[3-4] B3[4-5] B4[5-6] A3[6-7] A4[7-8] |"
        ],
        "with equal priorities they take turns; otherwise B goes first, with its own rate and when both borrow"
    );
}

#[test]
fn packets_without_a_class_go_first() {
    assert_eq!(
        trace(
            "htb classes [(name a rate 1mbit match [(class 0)])]",
            LINK,
            "0 A1 1000, A2 1000, B1 1000, B2 1000"
        ),
        "B1[0-1] B2[1-2] A1[2-3] A2[3-4] |"
    );
}

#[test]
fn a_leaf_that_holds_its_packets_back_is_passed_over() {
    let spec = "htb default b classes [(name a rate 8mbit match [(class 0)] leaf (tbf rate 2mbit burst 1000b)) \
                (name b rate 8mbit)]";
    assert_eq!(
        trace(spec, LINK, "0 A1 1000, A2 1000, B1 1000; 1.5 B2 1000, B3 1000, B4 1000"),
        "A1[0-1] B1[1-2] B2[2-3] B3[3-4] B4[4-5] A2[5-6] |",
        "A2 may leave at 4 ms, and B has its turn then"
    );
}

/// A tree with filters of all kinds, at a link whose hosts have names.
#[test]
fn filters_choose_the_class() {
    let hosts = ["nas", "home1", "home2", "home3"].into_iter().zip(0..).map(|(name, at)| (name.into(), at));
    let context =
        LinkContext { hosts: Hosts::new(hosts), ..LinkContext::new(Rate::mbit(100), Streams::new(1)) };
    let spec: Spec = "htb default rest classes [(name voice rate 1mbit match [(dscp EF) (dscp CS6 from nas)]) \
                      (name homes rate 20mbit match [(from nas)] classes [(name home[1-3] rate 1mbit ceil 20mbit \
                      match [(to home[1-3])])]) (name rest rate 1mbit)]"
        .parse()
        .unwrap();
    assert_eq!(spec.warnings(&context), [] as [String; 0]);
    let mut qdisc = spec.build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let mut arrive = |dscp: u8, from, to| {
        let header = Header::new(Dscp::new(dscp).unwrap(), false);
        let meta = Meta { bytes: 100, header, from, to, flow: FlowKey(1), ..Meta::default() };
        let before = arrivals(&*qdisc);
        qdisc.enqueue(Packet { meta, payload: 0 }, &mut Cx::new(Time::ZERO, &mut out));
        let now = arrivals(&*qdisc);
        let last = now.into_iter().zip(before).rfind(|(now, before)| now != before);
        last.expect("it is in a class").0.0
    };
    assert_eq!(arrive(46, 1, 2), "voice");
    assert_eq!(arrive(48, 0, 2), "voice");
    assert_eq!(arrive(48, 1, 2), "rest");
    assert_eq!(arrive(0, 0, 2), "homes/home2");
    assert_eq!(arrive(0, 1, 2), "rest", "the filter of \"homes\" holds for the classes below");
}

/// Packets that arrived at each class.
fn arrivals(qdisc: &dyn Qdisc<u64>) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    qdisc.classes(&mut |state| all.push((state.path.clone(), state.arrived.packets)));
    all
}

fn states(qdisc: &dyn Qdisc<u64>) -> Vec<ClassState> {
    let mut all = Vec::new();
    qdisc.classes(&mut |state| all.push(state));
    all
}

#[test]
fn mistakes_are_refused_with_the_class() {
    let said = [
        "htb default b classes [(name all rate 5mbit classes [(name b rate 1mbit ceil 6mbit)])]",
        "htb default bluk classes [(name bulk rate 1mbit)]",
        "htb default a classes [(name a)]",
        "htb classes [(name a rate 1mbit)]",
        "htb classes [(name a rate 1mbit match [(to nas)])]",
        "htb default a classes [(name a rate 1mbit) (name a rate 2mbit)]",
        "htb default a classes [(name a rate 2mbit ceil 1mbit)]",
        "htb default a classes [(name a rate 2mbit leaf (fifo limit 0p))]",
        "htb default a classes [(name a[1-3] rate 1mbit classes [(name b[1-4] rate 1mbit)])]",
        "htb default all classes [(name all rate 5mbit classes [(name b rate 1mbit)])]",
        "htb default b classes [(name a[1-2] rate 5mbit classes [(name b rate 1mbit)])]",
        "htb default 1",
    ]
    .map(|text| build_error(text).to_string());
    assert_eq!(
        said,
        [
            "classes: class \"b\": its ceil 6mbit is above the ceil 5mbit of its parent \"all\"",
            "default: unknown class \"bluk\"; did you mean \"bulk\"?",
            "classes: class \"a\": it needs a rate, such as rate 5mbit",
            "classes: no packet can be in class \"a\": write a filter, as in match [(class 1)], or name it as the default",
            "classes: class \"a\": \"nas\" is not a host: no names are known here, write its number",
            "classes: class \"a\": there are two classes \"a\" here: rename one",
            "classes: class \"a\": its ceil 1mbit is below its rate 2mbit",
            "classes: class \"a\": leaf: limit: 0 packets are too few: write at least \"1p\"",
            "classes: class \"b[1-4]\": 4 classes cannot be divided among 3 classes above: use a multiple of 3",
            "default: class \"all\" has classes below: name one of them",
            "default: there are 2 classes \"b\": write a path, \"a1/b\"",
            "default: unknown class \"1\"; there are no classes: name them in \"classes\"",
        ]
    );
}

#[test]
fn usual_mistakes_are_warned_of() {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let warned = [
        "htb classes [(name a rate 20mbit match [(class 1)])]",
        "htb default c classes [(name a rate 1mbit match [(class 1)]) (name b rate 1mbit match [(class 1 to 3)]) \
         (name c rate 100kbit)]",
        "htb default a classes [(name all rate 1mbit classes [(name a rate 1mbit) (name b rate 1mbit match \
         [(class 1)])])]",
    ]
    .map(|text| text.parse::<Spec>().unwrap().warnings(&context).join("; "));
    assert_eq!(
        warned,
        [
            "packets that match no filter leave at the rate of the link, before all others: name a class in \"default\"; the rates of the classes are 20mbit together, and the link has 10mbit",
            "class \"b\": an earlier filter takes all packets of one of its filters; class \"c\": its quantum of 1250 bytes is less than a packet of 1500, so shares are uneven: write quantum 1500b",
            "the classes below \"all\" have rates of 2mbit together, and it has 1mbit: they cannot all have theirs",
        ]
    );
}

/// The turn of x is 200,000 bytes and a packet, in which y may have half as many at its ceil.
#[test]
fn a_class_that_cannot_borrow_because_of_its_cburst_is_warned_of() {
    let warnings = |x: &str, y: &str| {
        let text = format!(
            "htb default y classes [(name all rate 1gbit classes [(name x rate 100mbit {x} match [(class 0)]) (name y \
             rate 100mbit {y})])]"
        );
        text.parse::<Spec>().unwrap().warnings(&LinkContext::new(Rate::gbit(1), Streams::new(1)))
    };
    assert_eq!(
        warnings("ceil 1gbit", "ceil 500mbit"),
        [
            "class \"y\": its default cburst of 1600 bytes is full long before \"x\" has had its turn, so that it borrows only a packet for each turn: write cburst 100750b, or give \"x\" a quantum of 1500b"
        ]
    );
    for (x, y) in [
        ("ceil 1gbit", "ceil 500mbit cburst 100750b"),
        ("ceil 1gbit quantum 1500b", "ceil 500mbit"),
        ("ceil 1gbit", "ceil 900mbit"),
        ("ceil 500mbit", "ceil 500mbit"),
        ("ceil 1gbit", "ceil 100mbit"),
        ("ceil 1gbit prio 1", "ceil 500mbit"),
    ] {
        assert_eq!(warnings(x, y), [] as [String; 0], "{x}, {y}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever others send, a class that always has packets gets its guaranteed rate, and none exceeds its
    /// ceil, if the rates of siblings fit into the rate of their parent, and all rates into the link.
    #[test]
    fn guaranteed_rates_are_kept_and_ceils_hold(
        rates in prop::collection::vec((50u64..400, 0u64..2000, 0u8..8), 2..6),
        lengths in prop::collection::vec(64u32..1500, 6),
        busy in prop::collection::vec(any::<bool>(), 6),
    ) {
        let total: u64 = rates.iter().map(|(rate, ..)| rate).sum();
        let ceil = |rate: u64, more: u64| (rate + more).min(total * 2);
        let classes: Vec<String> = rates.iter().enumerate().map(|(n, (rate, more, prio))| format!(
            "(name c{n} rate {rate}kbit ceil {}kbit prio {prio} quantum 1500b match [(class {n})])",
            ceil(*rate, *more),
        )).collect();
        let text = format!(
            "htb default c0 classes [(name all rate {total}kbit ceil {}kbit classes [{}])]", total * 2, classes.join(" ")
        );
        let link = Rate::kbit(total * 2);
        let mut qdisc =
            text.parse::<Spec>().unwrap().build_numbered(&LinkContext::new(link, Streams::new(1))).unwrap();
        let mut out = Outbox::default();
        let end = Time::s(20);
        let (mut now, mut sent) = (Time::ZERO, vec![0u64; rates.len()]);
        let mut refill = |qdisc: &mut dyn Qdisc<u64>, class: usize, now| {
            let mut pkt = Packet::new(FlowKey(class as u64), lengths[class], 0);
            pkt.meta.class = class as u16;
            qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
        };
        // The first class is always busy. The others begin in the middle, or always are.
        let mut begun = vec![false; rates.len()];
        while now < end {
            for class in 0..rates.len() {
                if !begun[class] && (class == 0 || busy[class] || now > Time::s(10)) {
                    begun[class] = true;
                    (0..3).for_each(|_| refill(&mut *qdisc, class, now));
                }
            }
            let mut out = Outbox::default();
            match qdisc.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    let class = usize::from(pkt.meta.class);
                    sent[class] += u64::from(pkt.bytes());
                    now += link.time_for(u64::from(pkt.bytes()));
                    refill(&mut *qdisc, class, now);
                }
                Next::At(at) => { prop_assert!(at > now); now = at; }
                Next::Empty => prop_assert!(false, "there is a backlog"),
            }
        }
        for (class, (rate, more, _)) in rates.iter().enumerate() {
            let seconds = if class == 0 || busy[class] { 20 } else { 10 };
            let (least, most) = (rate * 1000 / 8 * seconds, ceil(*rate, *more) * 1000 / 8 * 20 + 1600 + 1500);
            // A packet of each class may be in the way, and one is not finished.
            let slack = 1500 * (rates.len() as u64 + 1);
            prop_assert!(sent[class] + slack >= least, "class {class} sent {} of {least}: {text}", sent[class]);
            prop_assert!(sent[class] <= most, "class {class} sent {} above {most}: {text}", sent[class]);
        }
        // Every inner class has the sum of its leaves.
        let states = states(&*qdisc);
        let sum: u64 = states.iter().filter(|state| state.leaf).map(|state| state.sent.bytes).sum();
        prop_assert_eq!(states[0].sent.bytes, sum);
        prop_assert_eq!(sum, sent.iter().sum::<u64>());
    }
}

#[test]
fn a_dscp_is_not_a_class() {
    // The letter of a packet is its class; all have the DSCP 0.
    let spec: Spec =
        "htb default b classes [(name a rate 1mbit match [(dscp CS0 class 0)]) (name b rate 1mbit)]"
            .parse()
            .unwrap();
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
    let line = trace_on(spec.build_numbered(&context).unwrap(), LINK, "0 A1 1000; 0.1 B1 1000", |_| {});
    assert_eq!(line, "A1[0-1] B1[1-2] |");
}

/// While C occupies the link, A and B get credit again. The turn was B's, and passed on when B had to wait.
#[test]
fn a_class_that_has_to_wait_loses_its_turn() {
    assert_eq!(
        trace(
            "htb default c classes [(name a rate 1mbit burst 1000b cburst 1000b quantum 9000b match [(class 0)]) \
             (name b rate 1mbit burst 1000b cburst 1000b quantum 9000b match [(class 1)]) (name c rate 8mbit prio 1)]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000; 1.5 B1 1000, B2 1000, B3 1000, C1 9000"
        ),
        "A1[0-1] A2[1-2] B1[2-3] B2[3-4] C1[4-13] A3[13-14] B3[14-15] |"
    );
}

/// A borrows from a class without further inner classes, and B from one with: both lend at the same level.
#[test]
fn levels_count_from_the_link() {
    assert_eq!(
        trace(
            "htb default b classes [(name all rate 8mbit classes [(name x rate 4mbit ceil 8mbit burst 9000b classes [\
             (name a rate 8kbit ceil 8mbit burst 1b cburst 9000b quantum 1000b match [(class 0)])]) \
             (name y rate 4mbit ceil 8mbit burst 9000b classes [(name z rate 8kbit ceil 8mbit burst 1b cburst 9000b \
             classes [(name b rate 8kbit ceil 8mbit burst 1b cburst 9000b quantum 1000b)])])])]",
            LINK,
            "0 A1 1000, A2 1000, A3 1000, A4 1000, B1 1000, B2 1000, B3 1000, B4 1000"
        ),
        "A1[0-1] B1[1-2] A2[2-3] A3[3-4] B2[4-5] A4[5-6] B3[6-7] B4[7-8] |"
    );
}
