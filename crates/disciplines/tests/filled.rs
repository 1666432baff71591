//! Values that parameters have if they are not given, written out.

use giveway_disciplines::Spec;
use giveway_qdisc::{FlowKey, LinkContext, Next, Packet, Port, PortId, Rate, Streams, Time};

use crate::tested;

const LINK: Rate = Rate::mbit(10);

fn context() -> LinkContext {
    LinkContext::new(LINK, Streams::new(7).within("filled"))
}

/// The packets that leave an overloaded link, with their times.
fn departures(spec: &Spec) -> Vec<(u64, Time)> {
    let qdisc = spec.build_numbered(&context()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let mut port: Port<u64> = Port::new(PortId(0), qdisc, LINK);
    let mut left = Vec::new();
    for number in 0..4000 {
        let now = Time::us(600 * number);
        port.offer(Packet::new(FlowKey(number % 7), 1000 + (number % 3) as u32 * 200, number), now, &mut ());
        while port.free_at() <= now {
            match port.pull(now, &mut ()) {
                Next::Packet(pkt) => left.push((pkt.payload, now)),
                Next::At(_) | Next::Empty => break,
            }
        }
        port.dropped().for_each(drop);
    }
    left
}

#[test]
fn a_discipline_does_the_same_with_its_values_written_out() {
    for entry in tested() {
        let plain = entry.default();
        let filled = plain.filled(&context());
        assert_eq!(filled.filled(&context()), filled, "{filled}");
        assert_eq!(departures(&filled), departures(&plain), "{filled}");
    }
}

#[test]
fn values_that_follow_from_others_are_written_out() {
    let filled = |text: &str| text.parse::<Spec>().unwrap().filled(&context()).to_string();
    assert_eq!(filled("red"), "red min 25000b max 75000b burst 41p");
    assert_eq!(filled("red max 60kb weight 0.002"), "red min 20kb max 60kb weight 0.002");
    assert_eq!(filled("fq_codel target 2ms"), "fq_codel quantum 1514b target 2ms");
    assert_eq!(filled("sfb"), "sfb max 25p target 20p");
    assert_eq!(filled("fifo"), "fifo");
}
