//! ECN in the handshake, packet by packet. ACE are the flags AE, CWR and ECE of a SYN, and the count of marks
//! of other segments. The tables are read as in `tcp_scenarios.rs`.

use crate::support::Lab;
use crate::trace::Trace;
use giveway_qdisc::{Bytes, Ecn, Meta, Packets, Probe, Time};
use giveway_sim::tcp::{Congestion, EcnMode};
use giveway_sim::{Segment, TcpConfig};

const MSS: u64 = 948;

fn prague() -> TcpConfig {
    TcpConfig {
        congestion: Congestion::named("prague"),
        ecn: true,
        accecn: true,
        pacing: true,
        mss: Bytes(MSS),
        initial_window: Packets(4),
        ..TcpConfig::linux()
    }
}

/// The trace of the sender, and the ECN fields of its data packets.
struct Observed {
    trace: Trace,
    fields: Vec<Ecn>,
}

impl Probe<Segment> for Observed {
    fn on_emission(&mut self, node: u16, meta: &Meta, segment: &Segment, now: Time) {
        self.trace.on_emission(node, meta, segment, now);
        if segment.len > 0 {
            self.fields.push(meta.ecn);
        }
    }
    fn on_delivery(&mut self, node: u16, meta: &Meta, segment: &Segment, now: Time) {
        self.trace.on_delivery(node, meta, segment, now);
    }
}

/// A transfer of 40 segments over a link of 8 Mbit/s that loses the segments `lose`, of which 0 is the SYN,
/// and marks the segments `mark`.
fn transfer(tcp: &TcpConfig, lose: &[u64], mark: &[u64]) -> Observed {
    let lab = Lab::gated(tcp, 40, lose, mark);
    let mut observed = Observed { trace: Trace::new(0, MSS, 14), fields: Vec::new() };
    lab.run(Time::s(100), Time::ZERO, &mut observed);
    observed
}

/// Both ends have accurate ECN. The SYN asks for it, the SYN-ACK and the first segment have the code of a
/// packet that was not ECN-capable, and the counts start with 5. Data carry ECT(1).
#[test]
fn accurate_ecn() {
    let observed = transfer(&prague(), &[], &[2]);
    insta::assert_snapshot!(observed.trace.text, @r"
      0.000 -> SYN ACE 111
    100.104             <- SYN ACK ACE 010
    100.104 -> 1 ACE 010
    100.104 -> 2 ACE 101
    112.617 -> 3 ACE 101
    125.130 -> 4 ACE 101
    201.164             <- wants 2 ACE 101
    201.164 -> 5 ACE 101
    201.164 -> 6 ACE 101
    202.164             <- wants 3 ACE 110
    213.677             <- wants 4 ACE 110
    226.190             <- wants 5 ACE 110
    226.190 -> 7 ACE 101
    302.224             <- wants 6 ACE 110
    ");
    assert!(observed.fields.iter().all(|field| *field == Ecn::Ect1));
}

/// The peer has classic ECN only. Prague sends ECT(0), and halves its window for the marks of a round trip as
/// Reno does.
#[test]
fn a_classic_peer() {
    let tcp = TcpConfig { peer_ecn: Some(EcnMode::Classic), ..prague() };
    let observed = transfer(&tcp, &[], &[2]);
    insta::assert_snapshot!(observed.trace.text, @r"
      0.000 -> SYN ACE 111
    100.104             <- SYN ACK ACE 001
    100.104 -> 1
    100.104 -> 2
    112.617 -> 3
    125.130 -> 4
    201.156             <- wants 2
    201.156 -> 5
    201.156 -> 6
    202.156             <- wants 3 ECE
    211.178 -> 7 CWR
    213.669             <- wants 4 ECE
    226.182             <- wants 5 ECE
    251.267 -> 8
    ");
    assert!(observed.fields.iter().all(|field| *field == Ecn::Ect0));
}

/// The peer has no ECN, and nothing is ECN-capable.
#[test]
fn a_peer_without_ecn() {
    let tcp = TcpConfig { peer_ecn: Some(EcnMode::Off), ..prague() };
    let observed = transfer(&tcp, &[], &[]);
    insta::assert_snapshot!(observed.trace.text, @r"
      0.000 -> SYN ACE 111
    100.104             <- SYN ACK
    100.104 -> 1
    100.104 -> 2
    112.617 -> 3
    125.130 -> 4
    201.156             <- wants 2
    201.156 -> 5
    201.156 -> 6
    202.156             <- wants 3
    211.178 -> 7
    213.669             <- wants 4
    219.549 -> 8
    226.182             <- wants 5
    ");
    assert!(observed.fields.iter().all(|field| *field == Ecn::NotCapable));
}

/// RFC 9768, section 3.1.4.1: the first retransmission of a SYN repeats the request, the second one does not.
#[test]
fn a_syn_that_is_lost_twice_asks_for_nothing() {
    let once = transfer(&prague(), &[0], &[]);
    assert!(once.fields.iter().all(|field| *field == Ecn::Ect1));
    let twice = transfer(&prague(), &[0, 0], &[]);
    insta::assert_snapshot!(twice.trace.text, @r"
       0.000 -> SYN ACE 111
    1000.000 -> SYN ACE 111
    3000.000 -> SYN
    3100.104             <- SYN ACK
    3100.104 -> 1
    3201.156             <- wants 2
    3201.156 -> 2
    3201.156 -> 3
    3302.208             <- wants 3
    3302.208 -> 4
    3302.208 -> 5
    3303.208             <- wants 4
    3319.050 -> 6
    3331.697 -> 7
    ");
    assert!(twice.fields.iter().all(|field| *field == Ecn::NotCapable));
}
