//! WebAssembly modules, and a queue that runs them: a module may be wrong in any way, and the queue keeps the
//! contract.

use giveway_qdisc::{Bytes, Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};
use giveway_wasm::{Failure, Limits, Module, Queue};

/// Packets that are offered to a module.
const PACKETS: u64 = 50;

/// Input: a module.
pub fn run(input: &[u8]) {
    let limits = Limits { fuel: 200, saved_calls: 10, memory: Bytes(1 << 20) };
    let Ok(module) = Module::read(input, limits) else { return };
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let failure = Failure::default();
    let Ok(mut queue) = Queue::<u64>::new(&module, &context, &failure) else { return };
    let mut out = Outbox::default();
    let (mut sent, mut dropped) = (0, 0);
    for number in 0..PACKETS {
        let mut cx = Cx::new(Time::ms(number), &mut out);
        queue.enqueue(Packet::new(FlowKey(number % 5), 100 + number as u32, number), &mut cx);
        if number % 3 > 0 {
            let next = queue.dequeue(&mut cx);
            assert!(!matches!(next, Next::At(at) if at <= cx.now()), "it waits for the past");
            sent += u64::from(next.packet().is_some());
        }
        dropped += out.dropped.drain(..).len() as u64;
        assert_eq!(sent + dropped + queue.backlog().packets, number + 1, "a packet is lost");
    }
    queue.reset(&mut Cx::new(Time::s(1), &mut out));
    assert_eq!(queue.backlog().packets, 0);
    assert_eq!(sent + dropped + out.dropped.len() as u64, PACKETS);
}
