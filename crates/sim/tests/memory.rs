//! The cost of a run: memory per connection, and no allocation per packet.

use crate::support::Lab;
use giveway_qdisc::{Rate, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Net, Plan, Side, Sim, Source, TcpConfig};

/// Opens many connections, one every 10 µs, sends 10,000 bytes on each from these ends, and leaves them open.
struct Idle {
    left: u32,
    senders: &'static [Side],
}

impl Source for Idle {
    fn wake(&mut self, net: &mut Net<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let conn = net.connect(0, 1);
            self.senders.iter().for_each(|side| net.send(conn, *side, 10_000));
            net.wake_at(net.now() + Span::us(10));
        }
    }
}

/// The bytes that a connection takes once it is idle, all parts of the simulation together. Lists double when
/// they are full; of 130,000 connections they are nearly full.
fn idle(senders: &'static [Side]) -> usize {
    let left = 130_000;
    let before = giveway_counting::held();
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::gbit(10), Span::ms(1));
    let tcp = TcpConfig::rfc();
    lab.sources.push(SourcePlan { tcp, ..SourcePlan::new("idle", Box::new(Idle { left, senders })) });
    let mut sim = Sim::new(plan(lab, Time::s(10)));
    sim.step_to(Time::s(10), &mut ());
    let bytes = usize::try_from(giveway_counting::held() - before).expect("the run takes memory");
    let (_, connections) = sim.connection_memory();
    assert_eq!(connections, left as usize);
    println!("{} bytes per idle connection, senders {senders:?}", bytes / connections);
    let totals = sim.finish(&mut ());
    assert!(totals.events > 3 * u64::from(left), "every connection was opened and sent data");
    bytes / connections
}

#[test]
fn an_idle_connection_takes_at_most_a_kilobyte() {
    assert!(idle(&[Side::Client]) <= 1000);
    assert!(idle(&[Side::Client, Side::Server]) <= 1000);
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
    lab.bulk(&pairs, None, &TcpConfig::rfc());
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
        timing: giveway_sim::Timing::default(),
    }
}
