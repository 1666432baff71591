//! Deficit round robin between a bulk flow and a call: prints the order in which packets leave.

use giveway_disciplines::Spec;
use giveway_qdisc::{FlowKey, LinkContext, Next, Packet, Port, PortId, Rate, Streams, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate = Rate::mbit(10);
    let context = LinkContext::new(rate, Streams::new(1));
    let spec: Spec = "drr limit 1000p quantum 1500b".parse()?;
    let mut port = Port::new(PortId(0), spec.build::<&str>(&context)?, rate);

    port.offer(Packet::new(FlowKey(1), 1500, "bulk 1"), Time::ZERO, &mut ());
    port.offer(Packet::new(FlowKey(1), 1500, "bulk 2"), Time::ZERO, &mut ());
    port.offer(Packet::new(FlowKey(2), 100, "voice"), Time::ZERO, &mut ());

    let mut order = Vec::new();
    while let Next::Packet(pkt) = port.pull(port.free_at(), &mut ()) {
        order.push(pkt.payload);
    }
    assert_eq!(order, ["bulk 1", "voice", "bulk 2"]);
    println!("{}", order.join(", "));
    Ok(())
}
