//! Ten long flows through one bottleneck, for profiling: prints the numbers of packets, drops and events.

#[path = "../tests/support/mod.rs"]
mod support;

use giveway_qdisc::{PortId, Rate, Span, Time};
use giveway_sim::TcpConfig;
use support::{Counters, Lab};

fn main() {
    let mut lab = Lab::new(22, 1);
    // 0: left router, 1: right router, 2..12 senders, 12..22 receivers.
    let port = lab.link(0, 1, Rate::gbit(1), Span::ms(8), "fifo limit 1667p");
    lab.link(1, 0, Rate::gbit(1), Span::ms(8), "fifo limit 100000p");
    for i in 0..10 {
        lab.wire(2 + i, 0, Rate::gbit(10), Span::ms(1));
        lab.wire(12 + i, 1, Rate::gbit(10), Span::ms(1));
    }
    let tcp = TcpConfig { congestion: giveway_sim::tcp::Congestion::named("reno"), ..TcpConfig::rfc() };
    let pairs: Vec<(u16, u16)> = (0..10).map(|i| (2 + i, 12 + i)).collect();
    lab.bulk(&pairs, None, &tcp);
    let mut counters = Counters { port: PortId(port), ..Counters::default() };
    let begin = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10);
    let totals = lab.run(Time::s(begin), Time::s(1), &mut counters);
    println!("{} packets, {} dropped, {} events", counters.sent, counters.dropped, totals.events);
    for flow in &counters.flows {
        println!(
            "{} bytes, {} packets, {} retransmitted, {} timeouts",
            flow.delivered, flow.packets, flow.retransmitted, flow.timeouts
        );
    }
}
