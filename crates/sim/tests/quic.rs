//! QUIC, packet by packet: tables of the packets that a client sends and receives.
//!
//! The path has 8 Mbit/s and 50 ms in each direction. A full packet has 1,222 bytes of UDP payload, so that
//! it takes 1.25 ms on the link. Times are in milliseconds. `-> 5 1-rtt 1222 b, 1193 data` sends packet 5,
//! `has 0-3` are the packets that it acknowledges, `x 5` is the loss of packet 5. The tables are in
//! `snapshots/`; review each change of them before you accept it.

use giveway_links::Reorder;
use giveway_qdisc::{Bytes, Packets, Rate, Share, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::tcp::Congestion;
use giveway_sim::{Event, HostId, LinkPlan, Net, Plan, Protocol, QuicConfig, Side, Sim, Source, TcpConfig};
use serde_json::json;

use crate::quic_trace::{Gate, Trace};
use crate::support::{Counters, Lab};

fn reno() -> QuicConfig {
    QuicConfig {
        congestion: Congestion::named("reno"),
        datagram: Bytes(1222),
        initial_window: Packets(4),
        pacing: false,
        ..QuicConfig::default()
    }
}

/// The path with these queues from the client to the server and back.
fn path(quic: QuicConfig, forth: Gate, back: Gate) -> Lab {
    let mut lab = Lab::new(2, 1);
    lab.quic = quic;
    for (from, to, gate) in [(0, 1, forth), (1, 0, back)] {
        lab.network.link(LinkPlan {
            name: format!("{from}->{to}"),
            from,
            to,
            rate: Rate::mbit(8),
            delay: Span::ms(50),
            jitter: Span::ZERO,
            loss: Share::default(),
            cost: 1,
            impairments: Default::default(),
            outages: Vec::new(),
            medium: None,
            qdisc: Box::new(gate),
        });
    }
    lab
}

fn transfer(lab: &mut Lab, bytes: Option<u64>) {
    let parameters = match bytes {
        Some(bytes) => json!({ "size": format!("{bytes}b"), "spread": "0s" }),
        None => json!({ "spread": "0s" }),
    };
    let config: giveway_sim::traffic::quic::Config = serde_json::from_value(parameters).unwrap();
    lab.source(&config, &[(0, 1)], &Default::default());
}

/// The trace of a transfer at its client, of which these packets are lost.
fn trace_of(quic: QuicConfig, bytes: u64, lose: &[u64]) -> String {
    let mut lab = path(quic, Gate { lose: lose.to_vec(), ..Gate::default() }, Gate::default());
    transfer(&mut lab, Some(bytes));
    traced(lab)
}

fn traced(lab: Lab) -> String {
    let mut trace = Trace { most: 400, ..Trace::default() };
    lab.run(Time::s(100), Time::ZERO, &mut trace);
    trace.text
}

/// The client's first packet has 1,200 bytes. The server answers with 3,000 bytes of certificates, and data
/// leave after one round trip.
#[test]
fn handshake_with_one_round_trip() {
    insta::assert_snapshot!(trace_of(reno(), 4000, &[]));
}

/// Data leave with the first packet, and the server sends no certificates. Before the client has proved its
/// address the server sends at most three times what it has received.
#[test]
fn handshake_without_a_round_trip() {
    insta::assert_snapshot!(trace_of(QuicConfig { zero_rtt: true, ..reno() }, 4000, &[]));
}

/// With 9,000 bytes of certificates the server must wait for the proof of the client's address: one round
/// trip more. The first packet of the client is lost, too, and its probe timeout of 999 ms repeats it.
#[test]
fn a_long_handshake_waits_for_the_address_and_a_lost_one_for_the_probe_timeout() {
    let quic = QuicConfig { certificates: Bytes(9000), ..reno() };
    insta::assert_snapshot!(trace_of(quic, 1000, &[0]));
}

/// Packet 8 is lost. Three later packets are acknowledged, and its data leave again in a packet with a new
/// number; the window is halved once.
#[test]
fn a_loss_is_found_by_three_later_packets() {
    insta::assert_snapshot!(trace_of(reno(), 24_000, &[8]));
}

/// Packet 4 is lost, and too few packets follow it: it counts as lost after 9/8 of a round trip.
#[test]
fn a_loss_is_found_by_time() {
    insta::assert_snapshot!(trace_of(reno(), 4700, &[4]));
}

/// The last packets are lost. After the probe timeout two packets repeat their data; the window stays.
#[test]
fn two_probes_repeat_a_lost_tail() {
    insta::assert_snapshot!(trace_of(reno(), 4700, &[5, 6, 7]));
}

/// The link is dark for two seconds. Probes back off, and when one arrives all packets of more than three
/// probe timeouts are lost: persistent congestion, and the window starts again with two packets.
#[test]
fn persistent_congestion_closes_the_window() {
    let dark = Gate { dark: Some((Time::ms(420), Time::ms(2600))), ..Gate::default() };
    let mut lab = path(reno(), dark, Gate::default());
    transfer(&mut lab, Some(60_000));
    insta::assert_snapshot!(traced(lab));
}

/// A mark halves the window, and nothing is retransmitted. The count is in the acknowledgements.
#[test]
fn a_mark_halves_the_window_without_a_loss() {
    let quic = QuicConfig { ecn: true, ..reno() };
    let mut lab = path(quic, Gate { mark: vec![8], ..Gate::default() }, Gate::default());
    transfer(&mut lab, Some(24_000));
    insta::assert_snapshot!(traced(lab));
}

/// The client requests an acknowledgement for ten packets instead of two.
#[test]
fn fewer_acknowledgements_on_request() {
    let quic = QuicConfig { ack_every: Packets(10), initial_window: Packets(12), ..reno() };
    insta::assert_snapshot!(trace_of(quic, 30_000, &[]));
}

/// No host answers: the connection is given up after the idle timeout.
#[test]
fn giving_up() {
    let silent = Gate { dark: Some((Time::ZERO, Time::NEVER)), ..Gate::default() };
    let mut lab = path(QuicConfig { idle_timeout: Span::s(20), ..reno() }, silent, Gate::default());
    transfer(&mut lab, Some(1000));
    insta::assert_snapshot!(traced(lab));
}

// -- streams ----------------------------------------------------------------------------------------

/// A client that sends three objects of 3,000 bytes at once, on one stream each or one after the other, and
/// notes when each has arrived.
struct Objects {
    protocol: Protocol,
    arrived: std::rc::Rc<std::cell::RefCell<Vec<(u32, Time)>>>,
}

const OBJECT: u64 = 3000;

impl Source for Objects {
    fn wake(&mut self, net: &mut Net<'_>) {
        let conn = net.connect_over(self.protocol, (0, 1), HostId::default());
        for object in 0..3 {
            match self.protocol {
                Protocol::Quic => net.send_stream(conn, Side::Client, object, OBJECT),
                Protocol::Tcp => net.send(conn, Side::Client, OBJECT),
            }
        }
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        if let Event::Received { stream, total, .. } = event {
            let mut arrived = self.arrived.borrow_mut();
            let whole = total / OBJECT;
            let known =
                arrived.iter().filter(|(known, _)| self.protocol == Protocol::Tcp || *known == stream);
            for object in known.count() as u64..whole {
                let number = if self.protocol == Protocol::Tcp { object as u32 } else { stream };
                arrived.push((number, net.now()));
            }
        }
    }
}

/// Arrivals of three objects, in milliseconds, if the second packet with data is lost.
fn arrivals(protocol: Protocol) -> Vec<(u32, u64)> {
    let arrived = std::rc::Rc::default();
    let gate = match protocol {
        // Packet 3 completes the handshake and has the first data, those of object 0.
        Protocol::Quic => Gate { lose: vec![4], ..Gate::default() },
        // The second segment.
        Protocol::Tcp => Gate { lose: vec![1 + 1193], ..Gate::default() },
    };
    let quic = QuicConfig { initial_window: Packets(20), ..reno() };
    let tcp = TcpConfig {
        congestion: Congestion::named("reno"),
        mss: Bytes(1193),
        initial_window: Packets(20),
        ..TcpConfig::rfc()
    };
    let mut lab = path(quic.clone(), gate, Gate::default());
    let source = Objects { protocol, arrived: std::rc::Rc::clone(&arrived) };
    lab.sources.push(SourcePlan { tcp, quic, ..SourcePlan::new("objects", Box::new(source)) });
    lab.run(Time::s(10), Time::ZERO, &mut ());
    let arrived = arrived.borrow();
    arrived.iter().map(|(object, at)| (*object, at.as_ps() / 1_000_000_000)).collect()
}

/// The second packet with data is lost. Over TCP all objects wait for it to be retransmitted; over QUIC only
/// the one does whose data it has, object 1.
#[test]
fn a_loss_delays_one_stream_only() {
    let (tcp, quic) = (arrivals(Protocol::Tcp), arrivals(Protocol::Quic));
    insta::assert_debug_snapshot!((tcp, quic));
}

// -- conservation -----------------------------------------------------------------------------------

/// On a link that loses five percent of the packets in both directions every byte arrives once, with every
/// congestion control.
#[test]
fn every_byte_arrives_once_on_a_lossy_link() {
    for control in giveway_sim::tcp::CONTROLLERS {
        let congestion = Congestion::named(control.name);
        let mut quic = QuicConfig { congestion, ..QuicConfig::default() };
        let needs_ecn = quic.implies().any(|(key, on)| key == "ecn" && on);
        quic.ecn = needs_ecn;
        let mut lab = Lab::new(2, 7);
        lab.quic = quic;
        lab.lossy_link(0, 1, Rate::mbit(20), Span::ms(10), "fifo limit 50p", 0.05);
        lab.lossy_link(1, 0, Rate::mbit(20), Span::ms(10), "fifo limit 50p", 0.05);
        for _ in 0..3 {
            transfer(&mut lab, Some(300_000));
        }
        let mut counters = Counters::default();
        lab.run(Time::s(120), Time::ZERO, &mut counters);
        assert_eq!(counters.flows.len(), 3);
        for flow in &counters.flows {
            let name = control.name;
            assert_eq!((flow.delivered, flow.goodput_bytes), (300_000, 300_000), "{name}");
            assert_eq!(flow.ending, giveway_qdisc::Ending::Completed, "{name}");
            assert!(flow.retransmitted > 0 && flow.packets < 500, "{name}: {flow:?}");
        }
    }
}

/// Every hundredth packet is overtaken by ten others, and nothing is lost. Without adaptation each of them is
/// retransmitted. With it the first ones are, after which the sender waits for ten packets.
#[test]
fn a_sender_that_adapts_learns_how_late_packets_are() {
    let retransmitted = |adapt_reordering: bool| {
        let quic = QuicConfig { adapt_reordering, ..QuicConfig::default() };
        let mut lab = path(quic, Gate::default(), Gate::default());
        let reorder = Reorder { percent: Share::new(0.01).unwrap(), distance: 10 };
        lab.network.links_mut()[0].impairments.reorder = Some(reorder);
        transfer(&mut lab, Some(3_000_000));
        let mut counters = Counters::default();
        lab.run(Time::s(60), Time::ZERO, &mut counters);
        assert_eq!(counters.flows[0].ending, giveway_qdisc::Ending::Completed);
        counters.flows[0].retransmitted
    };
    let (rigid, adapting) = (retransmitted(false), retransmitted(true));
    assert!(rigid >= 12 && adapting <= 3, "{rigid} and {adapting}");
}

/// Flow control holds a sender back to a window per round trip, and its limits are raised in time.
#[test]
fn flow_control_limits_the_rate() {
    let window = 20 * 1222;
    let quic = QuicConfig { max_stream_data: Bytes(window), ..reno() };
    let mut lab = path(quic, Gate::default(), Gate::default());
    transfer(&mut lab, Some(500_000));
    let mut counters = Counters::default();
    lab.run(Time::s(60), Time::ZERO, &mut counters);
    let flow = &counters.flows[0];
    assert_eq!(flow.delivered, 500_000);
    let seconds = flow.end.since(flow.start).as_s();
    // Half a window to a window for each round trip of 0.1 s.
    let least = 500_000.0 / window as f64 * 0.1;
    assert!((least..2.5 * least).contains(&seconds), "{seconds} s");
}

/// A running transfer does not allocate for a packet.
#[test]
fn a_packet_allocates_nothing() {
    let mut lab = Lab::new(2, 1);
    lab.link(0, 1, Rate::mbit(100), Span::ms(5), "fifo limit 100p");
    lab.link(1, 0, Rate::mbit(100), Span::ms(5), "fifo");
    transfer(&mut lab, None);
    let plan: Plan = lab.plan(Time::s(40));
    let mut sim = Sim::new(plan);
    sim.step_to(Time::s(20), &mut ());
    let (calls, events) = (giveway_counting::calls(), sim.events());
    sim.step_to(Time::s(40), &mut ());
    let (calls, events) = (giveway_counting::calls() - calls, sim.events() - events);
    assert!(events > 200_000, "{events}");
    assert!(calls < 20, "{calls} allocations in {events} events");
}
