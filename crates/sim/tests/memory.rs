//! The cost of a run: memory per connection, and no allocation per packet.

use crate::support::Lab;
use giveway_qdisc::{Rate, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Net, Plan, Sim, Source, TcpConfig};

/// Opens many connections, one every 10 µs, sends 1,000 bytes on each, and leaves them open.
struct Idle {
    left: u32,
}

impl Source for Idle {
    fn wake(&mut self, net: &mut Net<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let conn = net.connect(0, 1);
            net.send(conn, giveway_sim::Side::Client, 1000);
            net.wake_at(net.now() + Span::us(10));
        }
    }
}

#[test]
fn a_hundred_thousand_idle_connections_fit_200_megabytes() {
    let before = giveway_counting::held();
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::gbit(10), Span::ms(1));
    lab.sources.push(SourcePlan::new("idle", Box::new(Idle { left: 100_000 })));
    let mut sim = Sim::new(plan(lab, Time::s(10)));
    sim.step_to(Time::s(10), &mut ());
    let bytes = usize::try_from(giveway_counting::held() - before).expect("the run takes memory");
    let (_, connections) = sim.connection_memory();
    assert_eq!(connections, 100_000);
    println!("{} bytes per idle connection", bytes / connections);
    assert!(bytes < 200_000_000, "{bytes} bytes");
    let totals = sim.finish(&mut ());
    assert!(totals.events > 300_000, "every connection was opened and sent data");
}

#[test]
fn a_running_simulation_allocates_nothing_per_packet() {
    let mut lab = Lab::new(12, 1);
    lab.link(0, 1, Rate::mbit(100), Span::ms(5), "fifo limit 100p");
    lab.link(1, 0, Rate::mbit(100), Span::ms(5), "fifo");
    for i in 0..5 {
        lab.wire(2 + i, 0, Rate::gbit(1), Span::ms(1));
        lab.wire(7 + i, 1, Rate::gbit(1), Span::ms(1));
    }
    let pairs: Vec<(u16, u16)> = (0..5).map(|i| (2 + i, 7 + i)).collect();
    lab.bulk(&pairs, None, &TcpConfig::default());
    let mut sim = Sim::new(plan(lab, Time::s(60)));
    // Queues and scoreboards grow to their largest size first.
    sim.step_to(Time::s(30), &mut ());
    let (calls, events) = (giveway_counting::calls(), sim.events());
    sim.step_to(Time::s(60), &mut ());
    let (calls, events) = (giveway_counting::calls() - calls, sim.events() - events);
    assert!(events > 300_000, "more than one for each of 250,000 packets");
    // A scoreboard with a wider hole than ever before may still grow; a packet allocates nothing.
    assert!(calls < 20, "{calls} allocations in {events} events");
}

fn plan(lab: Lab, until: Time) -> Plan {
    Plan {
        network: lab.network,
        sources: lab.sources,
        until,
        measured: Time::ZERO..until,
        sample: None,
        sample_senders: false,
        streams: lab.streams.within("run"),
        lookahead: 0,
    }
}
