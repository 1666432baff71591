//! TCP, packet by packet: tables of the segments that a sender sends and receives.
//!
//! The path has 8 Mbit/s and 50 ms in each direction. Segments have 960 bytes, so that a packet of 1,000
//! bytes takes a millisecond and a round trip about 101. Times are in milliseconds. `-> 5` sends segment 5.
//! `<- wants 6` receives an acknowledgement of everything before segment 6, and `has 8-9` are its SACK
//! blocks. `x 5` is the loss of segment 5. The tables are in `snapshots/`; review each change of them before
//! you accept it.

use crate::support::{Counters, Lab};
use crate::trace::Trace;
use giveway_qdisc::{Bytes, Packets, Time};
use giveway_sim::TcpConfig;
use giveway_sim::tcp::{Congestion, Counting};

const MSS: u64 = 960;

fn reno() -> TcpConfig {
    TcpConfig {
        congestion: Congestion::named("reno"),
        counting: Counting::Acks,
        mss: Bytes(MSS),
        initial_window: Packets(2),
        delayed_ack: false,
        ..TcpConfig::rfc()
    }
}

/// The path with a transfer of `segments` segments, on which the listed segments are dropped and marked.
fn path(tcp: &TcpConfig, segments: u64, lose: &[u64], mark: &[u64]) -> Lab {
    Lab::gated(tcp, segments, lose, mark)
}

/// The trace of that transfer at the sender.
fn trace_of(tcp: &TcpConfig, segments: u64, lose: &[u64], mark: &[u64]) -> String {
    let mut trace = Trace::new(0, MSS, 400);
    path(tcp, segments, lose, mark).run(Time::s(400), Time::ZERO, &mut trace);
    trace.text
}

/// The longest pause of that transfer at its receiver, and the sum of those above half a second, when the run
/// ends at `until`: in microseconds.
fn pauses(segments: u64, lose: &[u64], until: Time) -> (u64, u64) {
    let mut counters = Counters::default();
    path(&reno(), segments, lose, &[]).run(until, Time::ZERO, &mut counters);
    let report = &counters.flows[0];
    (report.longest_pause.as_ps() / 1_000_000, report.paused.as_ps() / 1_000_000)
}

/// Two segments, then two for each acknowledgement: 2, 4, 8. The last segment carries the FIN.
#[test]
fn slow_start() {
    insta::assert_snapshot!(trace_of(&reno(), 14, &[], &[]));
}

/// Segments 9, 11 and 12 of a window are lost. SACK reports all three holes, and the sender fills them within
/// one round trip, at half the window: RFC 6675.
#[test]
fn three_losses_in_a_window_with_sack() {
    insta::assert_snapshot!(trace_of(&reno(), 40, &[9, 11, 12], &[]));
}

/// Segments 9, 11 and 12 are lost without SACK. Each partial acknowledgement reveals one more hole, so
/// recovery takes a round trip for each: RFC 6582.
#[test]
fn three_losses_in_a_window_without_sack() {
    insta::assert_snapshot!(trace_of(&TcpConfig { sack: false, ..reno() }, 40, &[9, 11, 12], &[]));
}

/// Segment 5 is lost, and its retransmissions are lost, too: only the timer detects that. It doubles, and
/// after the repair the window starts from one segment: RFC 6298, RFC 5681 section 3.1.
#[test]
fn timeout_and_back_off() {
    insta::assert_snapshot!(trace_of(&reno(), 12, &[5, 5, 5], &[]));
}

/// The last segment is lost. There are no duplicate acknowledgements, so the timer repairs the loss.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    insta::assert_snapshot!(trace_of(&reno(), 6, &[6], &[]));
}

/// The SYN is lost twice: timeouts of one and two seconds, and an initial window of one segment: RFC 6298
/// section 5.7, RFC 5681 section 3.1.
#[test]
fn a_lost_handshake() {
    insta::assert_snapshot!(trace_of(&reno(), 3, &[0, 0], &[]));
}

/// A sender that gives up: after three timeouts in a row nothing more is sent.
#[test]
fn giving_up() {
    let lose = [4; 20];
    insta::assert_snapshot!(trace_of(&TcpConfig { give_up: 3, ..reno() }, 8, &lose, &[]));
}

/// Segment 6 is marked instead of lost. Acknowledgements carry the echo until the sender confirms with CWR
/// that it has reduced its window. Nothing is retransmitted: RFC 3168 section 6.1.
#[test]
fn a_mark_halves_the_window_without_a_loss() {
    insta::assert_snapshot!(trace_of(&TcpConfig { ecn: true, ..reno() }, 24, &[], &[6]));
}

/// Every second segment is acknowledged; the odd one waits for the timer of 40 ms.
#[test]
fn delayed_acknowledgements() {
    insta::assert_snapshot!(trace_of(&TcpConfig { delayed_ack: true, ..reno() }, 9, &[], &[]));
}

/// Limited transmit: the first of three segments is lost, so there are only two duplicate acknowledgements.
/// Each permits a new segment, which causes the third duplicate: RFC 3042. Without limited transmit the
/// sender waits for the timer.
#[test]
fn limited_transmit_saves_a_small_window() {
    let tcp = TcpConfig { sack: false, initial_window: Packets(3), ..reno() };
    insta::assert_snapshot!("limited_transmit", trace_of(&tcp, 8, &[1], &[]));
    let without = TcpConfig { limited_transmit: false, ..tcp };
    insta::assert_snapshot!("no_limited_transmit", trace_of(&without, 8, &[1], &[]));
}

/// Nothing is lost. The longest pause is that before the first segment, which is sent at 100.104 ms, after
/// the handshake, and takes 51 ms. That is not a long pause.
#[test]
fn a_smooth_transfer_pauses_for_its_first_round_trip() {
    assert_eq!(pauses(6, &[], Time::s(400)), (151_104, 0));
}

/// The SYN is lost twice, so the first segment is sent at 3,100.104 ms, as in `a_lost_handshake`.
#[test]
fn waiting_for_the_handshake_is_a_pause() {
    assert_eq!(pauses(3, &[0, 0], Time::s(400)), (3_151_104, 3_151_104));
}

/// Segment 5 arrives at 254.144 ms and segment 6, which the timer retransmits at 1,304.184 ms, 51 ms after
/// that, as in `a_lost_tail_waits_for_the_timer`.
#[test]
fn a_timeout_is_a_pause() {
    assert_eq!(pauses(6, &[6], Time::s(400)), (1_101_040, 1_101_040));
}

/// The last segment and its retransmission are lost. The pause lasts until the end of the run, as it does for
/// a transfer that never starts.
#[test]
fn the_end_of_the_run_ends_a_pause() {
    assert_eq!(pauses(6, &[6, 6], Time::ms(2_000)), (1_745_856, 1_745_856));
    assert_eq!(pauses(6, &[0; 9], Time::ms(900)), (900_000, 900_000));
}

/// The SYN is lost once, which delays everything by a second, and then the last segment: 1,151.104 ms and
/// 1,101.04 ms.
#[test]
fn long_pauses_add_up() {
    assert_eq!(pauses(6, &[0, 6], Time::s(400)), (1_151_104, 2_252_144));
}
