//! TCP with the preset "linux", packet by packet: RACK, tail loss probes, proportional rate reduction, D-SACK
//! and F-RTO. The tables are read as in `tcp_scenarios.rs`, and have the path of that file: 8 Mbit/s, 50 ms
//! each way, segments of 960 bytes.

use crate::support::Lab;
use crate::trace::Trace;
use giveway_links::{Impairments, Profile, Quantity, Shape};
use giveway_qdisc::{Bytes, Packets, Span, Time};
use giveway_sim::TcpConfig;
use giveway_sim::tcp::{Congestion, HyStartRule};

const MSS: u64 = 948;

fn linux() -> TcpConfig {
    TcpConfig {
        congestion: Congestion::named("reno"),
        mss: Bytes(MSS),
        initial_window: Packets(4),
        hystart: HyStartRule::Off,
        ..TcpConfig::linux()
    }
}

/// The trace of a transfer of `segments` segments at its sender, of which the listed ones are lost.
fn trace_of(tcp: &TcpConfig, segments: u64, lose: &[u64]) -> String {
    let lab = Lab::gated(tcp, segments, lose, &[]);
    let mut trace = Trace::new(0, MSS, 400);
    lab.run(Time::s(400), Time::ZERO, &mut trace);
    trace.text
}

/// A trace of the same kind. Acknowledgements that leave after `from` arrive later by `delay`.
fn trace_with_late_acknowledgements(segments: u64, lose: &[u64], from: Span, delay: Span) -> String {
    let mut lab = Lab::gated(&linux(), segments, lose, &[]);
    let delay = [(Span::ZERO, Span::ms(50).as_ps()), (from, (Span::ms(50) + delay).as_ps())];
    let delay = Profile::points(Quantity::Delay, Shape::Steps, &delay, false).unwrap();
    lab.network.links_mut()[1].impairments = Impairments { delay: Some(delay), ..Impairments::default() };
    let mut trace = Trace::new(0, MSS, 400);
    lab.run(Time::s(400), Time::ZERO, &mut trace);
    trace.text
}

/// Segment 9 is lost. The acknowledgements of segments 10 to 12 make it a loss, as three duplicates would,
/// and the window falls segment by segment.
#[test]
fn a_loss_in_the_middle() {
    insta::assert_snapshot!(trace_of(&linux(), 40, &[9]));
}

/// The last segment is lost. A probe repeats it after two round trips, and its acknowledgement shrinks the
/// window: the timeout never expires.
#[test]
fn a_probe_finds_a_lost_tail() {
    insta::assert_snapshot!(trace_of(&linux(), 6, &[6]));
}

/// The last three segments are lost. The SACK of the probe shows that the other two are lost, too.
#[test]
fn a_probe_starts_fast_recovery() {
    insta::assert_snapshot!(trace_of(&linux(), 12, &[10, 11, 12]));
}

/// Segment 9 is lost, and so is its retransmission. Later segments arrive after that, which shows the second
/// loss a round trip later. RFC 6675 must wait for the timeout.
#[test]
fn a_lost_retransmission_is_detected() {
    let text = trace_of(&linux(), 60, &[9, 9]);
    assert_eq!(text.matches("-> 9\n").count() + text.matches("-> 9 ").count(), 3, "{text}");
    insta::assert_snapshot!(text);
}

/// Everything of a window is lost but its first segment: the timeout starts, and the first acknowledgement
/// shows that the loss was real.
#[test]
fn a_timeout_with_real_losses() {
    insta::assert_snapshot!(trace_of(&linux(), 14, &[5, 6, 7, 8, 9, 10, 11, 12, 8]));
}

/// Segments 5 to 12 are lost, a whole window, and 13, the probe. After the timeout segment 5 leaves again,
/// and its acknowledgement lets new data leave: segments 14 and 15. They arrive, but the timeout was not
/// spurious: the others leave again in slow start, and there is no second timeout.
#[test]
fn new_data_does_not_make_a_timeout_spurious() {
    let text = trace_of(&linux(), 40, &[5, 6, 7, 8, 9, 10, 11, 12, 13]);
    let last = text.lines().last().and_then(|line| line.split_whitespace().next());
    let end: f64 = last.unwrap().parse().unwrap();
    assert!(end < 1800.0, "a round trip takes 101 ms, and a timeout at least 200 ms\n{text}");
    insta::assert_snapshot!(text);
}

/// Segment 5 is lost, and so is its retransmission. The acknowledgements of segments 10 to 14 come after the
/// timeout, since they are late. They do not make it spurious: F-RTO does not start during a recovery, RFC
/// 5682, section 3.1, step 1. So no new data leaves before the lost segment has arrived.
#[test]
fn a_timeout_during_a_recovery_is_not_spurious() {
    let text = trace_with_late_acknowledgements(20, &[5, 5], Span::us(255_500), Span::ms(400));
    assert!(text.find("<- wants 15") < text.find("-> 15"), "{text}");
    insta::assert_snapshot!(text);
}

/// Acknowledgements are late from segment 5 on, so the timeout is spurious. Segment 11, which left before it,
/// is lost. The window falls for that, from 14 segments to 7, since the timeout has not reduced it in the
/// end. The D-SACK of segment 5 is for the timeout, and does not make the loss spurious.
#[test]
fn a_loss_from_before_a_spurious_timeout_shrinks_the_window() {
    let text = trace_with_late_acknowledgements(40, &[11], Span::us(204_500), Span::ms(700));
    // Segments 25 to 31 leave within a round trip.
    assert!(text.find("<- wants 26") < text.find("-> 32"), "{text}");
    insta::assert_snapshot!(text);
}
