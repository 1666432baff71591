//! Flows and recorders that several tests share.

#![allow(dead_code, reason = "not every test uses everything")]

use giveway_measure::{Layout, Record, Recorder};
use giveway_qdisc::{Ending, FlowKind, FlowReport, PortId, Probe, Rate, Span, Time};

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

/// The measured port.
pub const BOTTLENECK: PortId = PortId(1);

/// A recorder for a 1 Mbit/s bottleneck, measuring from 1 s to 2 s.
pub fn layout() -> Layout {
    Layout {
        measured: vec![BOTTLENECK],
        rates: vec![(PortId(0), Rate::mbit(10)), (BOTTLENECK, Rate::mbit(1))],
        source_names: vec!["web".into(), "calls".into()],
        from: Time::s(1),
        until: Time::s(2),
        ..Layout::default()
    }
}

/// The record of a run with these flows.
pub fn with_flows(flows: impl IntoIterator<Item = FlowReport>) -> Record {
    let mut recorder = Recorder::new(layout());
    flows.into_iter().for_each(|flow| Probe::<()>::on_flow(&mut recorder, &flow));
    recorder.finish()
}

/// Asserts the value of a metric, up to rounding.
#[track_caller]
pub fn close(record: &Record, name: &str, expected: f64) {
    let found = record.summary.metrics.value(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{name} is {found}, not {expected}");
}

/// Asserts that a metric is named and has no value.
#[track_caller]
pub fn missing(record: &Record, name: &str) {
    assert_eq!(record.summary.metrics.entry(name), Some(None), "{name} must be named and have no value");
}
