//! Flows that several tests record.

use giveway_qdisc::{Ending, FlowKind, FlowReport, Span, Time};

/// A transfer of 1,000 bytes in one packet, from 1.0 s to 1.1 s.
pub fn transfer(id: u64) -> FlowReport {
    FlowReport {
        id,
        source: 0,
        kind: FlowKind::Transfer,
        from: 0,
        to: 1,
        start: Time::ms(1_000),
        end: Time::ms(1_100),
        bytes: 1_000,
        delivered: 1_000,
        goodput_bytes: 1_000,
        packets: 1,
        retransmitted: 0,
        lost: None,
        causes: Default::default(),
        timeouts: 0,
        delay_mean: Span::ZERO,
        delay_p50: Span::ZERO,
        delay_p95: Span::ZERO,
        delay_p99: Span::ZERO,
        delay_max: Span::ZERO,
        longest_pause: Span::ZERO,
        paused: Span::ZERO,
        ending: Ending::Completed,
    }
}
