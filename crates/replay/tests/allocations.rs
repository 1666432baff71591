//! A traced discipline does not allocate per packet in the thread of its backend: the ring is allocated when
//! the discipline is built.

use std::io::Cursor;

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Time};

#[test]
fn nothing_is_allocated_per_packet() {
    let (recording, file) = crate::support::recording(crate::support::PATIENT);
    let spec: Spec = "codel limit 100p target 50us interval 500us ecn".parse().unwrap();
    let mut traced =
        recording.tracer().build("up", &spec, &crate::support::context(Rate::mbit(10), 1)).unwrap();
    let mut out = Outbox::default();
    let mut pass = |from: u64, until: u64| {
        // Only of this thread, because the writer may allocate.
        let before = giveway_counting::calls();
        for number in from..until {
            let now = Time::us(100 * number);
            let mut pkt = Packet::new(FlowKey(number % 7), 1000, number);
            pkt.meta.arrived = now;
            if number % 2 == 0 {
                pkt.meta.ecn = giveway_qdisc::Ecn::Ect0;
            }
            traced.enqueue(pkt, &mut Cx::new(now, &mut out));
            if number % 3 > 0 {
                let _ = traced.dequeue(&mut Cx::new(now, &mut out));
            }
            out.dropped.clear();
            out.marked.clear();
        }
        giveway_counting::calls() - before
    };
    assert!(pass(0, 10_000) > 0, "queues grow at the first packets");
    assert_eq!(pass(10_000, 100_000), 0);
    drop(traced);
    recording.finish().unwrap();
    let outcome = giveway_replay::check(Cursor::new(file.bytes())).unwrap();
    assert!(outcome.equal() && outcome.complete());
    let totals = outcome.sections[0].totals;
    assert!(totals.dropped > 100 && totals.marked > 100, "{totals:?}");
}
