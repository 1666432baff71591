//! Any bytes are parsed as an operation trace, or rejected with a position.

use giveway_disciplines::Spec;
use giveway_qdisc::{FlowKey, LinkContext, Packet, Port, PortId, Rate, Streams, Time};
use giveway_replay::{Options, Recording, WhenFull};

use crate::memory::Memory;

#[path = "../../../replay/tests/support/bytes.rs"]
mod bytes;

/// Input: a trace file; also tested as the operations inside a valid file.
pub fn run(input: &[u8]) {
    bytes::trace(input);
}

/// Seeds: traces of a few packets.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    ["fifo limit 2p", "codel limit 20p target 50us interval 500us ecn", "drr limit 3p"].map(recorded).to_vec()
}

fn recorded(spec: &str) -> Vec<u8> {
    let memory = Memory::default();
    let spec: Spec = spec.parse().expect("the discipline is in the registry");
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let options = Options { when_full: WhenFull::Wait, ..Options::default() };
    let recording = Recording::start(memory.clone(), "fuzz", options).expect("memory can be written");
    let traced = recording.tracer().build("eth0->eth1", &spec, &context).expect("the parameters are valid");
    let mut port = Port::new(PortId(0), Box::new(traced), context.rate);
    for number in 0..6u64 {
        let packet = Packet::new(FlowKey(number % 2), 600 + 100 * number as u32, number);
        port.offer(packet, Time::us(100 * number), &mut ());
    }
    for number in 0..4 {
        let _ = port.pull(Time::ms(1 + number), &mut ());
    }
    drop(port);
    recording.finish().expect("memory can be written");
    memory.take()
}
