//! Where observations go. Hosts tell a [`Probe`] what happened; `()` observes nothing and costs nothing.

use crate::cx::DropReason;
use crate::packet::{Meta, Packet};
use crate::qdisc::Backlog;
use crate::units::{Span, Time};

/// A queueing point: which output of the host this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// Told what happens, as it happens. Every method does nothing unless it is overridden.
pub trait Probe<P> {
    /// A packet came to the port.
    fn arrived(&mut self, _at: PortId, _meta: &Meta, _now: Time) {}
    /// A packet began its way over the link; it waited `now - meta.arrived`.
    fn sent(&mut self, _at: PortId, _meta: &Meta, _payload: &P, _now: Time) {}
    /// The port lost a packet. It is given away here: a host that must recycle buffers does it in its probe.
    fn dropped(&mut self, _at: PortId, _pkt: Packet<P>, _why: DropReason, _now: Time) {}
    /// The port marked a packet.
    fn marked(&mut self, _at: PortId, _meta: &Meta, _now: Time) {}
    /// A packet reached the host that it was for.
    fn delivered(&mut self, _node: u16, _meta: &Meta, _payload: &P, _now: Time) {}
    /// An end host sent a packet on its way.
    fn emitted(&mut self, _node: u16, _meta: &Meta, _payload: &P, _now: Time) {}
    /// A transfer or a stream ended, or the run did.
    fn flow(&mut self, _report: &FlowReport) {}
    /// The regular sample of a port: what it holds, and the gauges of its discipline.
    fn sample(&mut self, _at: PortId, _held: Backlog, _gauges: &[(&'static str, f64)], _now: Time) {}
    /// The regular sample of a sender.
    fn sender(&mut self, _sample: &SenderSample) {}
}

impl<P> Probe<P> for () {}

/// What kind of flow is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// Data of a known size: a file, a request with its response, a page that is reported as one.
    Transfer,
    /// Several transfers that are reported each by itself, too: a page, where its objects are reported. Its bytes are
    /// theirs, and are not counted again.
    Group,
    /// Data without an end, sent as fast as the network takes them.
    Endless,
    /// Datagrams, sent when they are due whatever becomes of them.
    Datagrams,
}

impl FlowKind {
    /// Its name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            FlowKind::Transfer => "transfer",
            FlowKind::Group => "group",
            FlowKind::Endless => "endless",
            FlowKind::Datagrams => "datagrams",
        }
    }
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Everything arrived.
    Completed,
    /// The sender gave up.
    Aborted,
    /// The run ended first.
    Unfinished,
}

impl Ending {
    /// Its name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Aborted => "aborted",
            Ending::Unfinished => "unfinished",
        }
    }
}

/// What became of one flow: a transfer, a request with its response, or a stream of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Its number: no other flow of the group of its source has it. Within a source, in the order of starting, where the
    /// source does not say that it numbers its flows otherwise.
    pub id: u64,
    /// Which traffic source it belongs to: its place in the scenario.
    pub source: u16,
    /// What kind of flow it is.
    pub kind: FlowKind,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// When the application asked for it.
    pub start: Time,
    /// When the last byte reached the receiving application, or when the flow was given up, or the end of the run.
    pub end: Time,
    /// Data bytes that the application wanted to send; of datagrams those sent within the measurement interval.
    pub bytes: u64,
    /// Data bytes that the receiving application got, in order and in the whole run; of datagrams those of `bytes` that
    /// arrived.
    pub delivered: u64,
    /// Data bytes that reached the receiving host within the measurement interval, in order or not, each counted once,
    /// whenever they were sent.
    pub goodput_bytes: u64,
    /// Data packets sent in the whole run, retransmissions included; of datagrams those sent within the measurement
    /// interval, without those that are still on their way at the end of the run.
    pub packets: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// How many of these datagrams never arrived; `None` of TCP, whose sender does not know what was lost.
    pub lost: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Mean one-way delay of its datagrams, or of its data packets where it is a transfer on a connection of its own: of
    /// those sent within the measurement interval that arrived, copies too. Zero where there are none.
    pub delay_mean: Span,
    /// 99th percentile of that delay.
    pub delay_p99: Span,
    /// The largest one-way delay of its datagrams; zero for other flows.
    pub delay_max: Span,
    /// The longest time for which the receiving application got nothing more in order, between the start and the end. Of
    /// transfers on a connection of their own, with an end or without; zero, which means not measured, of datagrams, of
    /// groups, and of requests that share a connection.
    pub longest_pause: Span,
    /// The sum of those of these times that were longer than half a second.
    pub paused: Span,
    /// How it ended.
    pub ending: Ending,
}

/// The inner state of one sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderSample {
    /// The traffic source that the flow belongs to: its place in the scenario.
    pub source: u16,
    /// The flow's number.
    pub id: u64,
    /// When.
    pub now: Time,
    /// Congestion window, bytes.
    pub window: u64,
    /// Slow-start threshold, bytes.
    pub threshold: u64,
    /// Bytes on their way.
    pub flight: u64,
    /// Data bytes that were acknowledged, all in order.
    pub acked: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
}
