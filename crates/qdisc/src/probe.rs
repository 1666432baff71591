//! Observers of a run. A backend calls a [`Probe`] at each event. `()` is the probe that observes nothing, at
//! no cost.

use std::ops::{AddAssign, Sub};

use crate::backlog::Backlog;
use crate::classes::ClassState;
use crate::cx::DropReason;
use crate::packet::Meta;
use crate::qdisc::FlowTable;
use crate::units::{Rate, Span, Time};

/// Number of an output port of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// An observer of a run: the backend calls a method at each event, in the order of time. A probe that needs
/// less may permit the backend to leave calls out, or to make them later ([`Probe::interest`]).
///
/// Each method does nothing unless it is overridden. A pair of probes is a probe: the first observes each
/// event before the second does. So are a reference to a probe, a boxed probe, and an optional one.
pub trait Probe<P> {
    /// The reports of a port that the probe needs, and their order. The answer must not change during a run.
    fn interest(&self, _at: PortId) -> Interest {
        Interest::Everything
    }
    /// A packet arrived at the port.
    fn on_arrival(&mut self, _at: PortId, _meta: &Meta, _now: Time) {}
    /// The link started to transmit a packet, whose sojourn time was `now - meta.arrived`.
    fn on_transmission(&mut self, _at: PortId, _meta: &Meta, _payload: &P, _now: Time) {}
    /// The port dropped a packet, or the link behind it lost one.
    fn on_drop(&mut self, _at: PortId, _meta: &Meta, _payload: &P, _why: DropReason, _now: Time) {}
    /// The port marked a packet (ECN).
    fn on_mark(&mut self, _at: PortId, _meta: &Meta, _now: Time) {}
    /// A packet reached its destination host.
    fn on_delivery(&mut self, _node: u16, _meta: &Meta, _payload: &P, _now: Time) {}
    /// An end host sent a packet.
    fn on_emission(&mut self, _node: u16, _meta: &Meta, _payload: &P, _now: Time) {}
    /// A transfer or a stream ended, or the run did.
    fn on_flow(&mut self, _report: &FlowReport) {}
    /// A periodic sample of a port: its backlog, and the flow table and the gauges of its discipline.
    fn on_sample(
        &mut self,
        _at: PortId,
        _backlog: Backlog,
        _table: &FlowTable,
        _gauges: &[(&'static str, f64)],
        _now: Time,
    ) {
    }
    /// The counters of a class of a discipline at the start of the measurement interval, and again at the end
    /// of the run. A class is reported before those below it.
    fn on_class(&mut self, _at: PortId, _state: &ClassState, _now: Time) {}
    /// A periodic sample of a TCP sender.
    fn on_sender(&mut self, _sample: &SenderSample) {}
}

/// The reports of a port that a probe needs: the lower ones permit a faster simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// No report of an arrival or of a transmission. Drops are reported, but possibly late.
    Nothing,
    /// All reports of the port in the order of time, but possibly later than the reports of other ports.
    Port,
    /// All reports, in one order of time with the reports of all other ports.
    Everything,
}

/// A probe that can observe a run in parts: each part of the network has its own probe.
pub trait Divisible<P>: Probe<P> + Sized {
    /// A new, empty probe of the same kind.
    fn fresh(&self) -> Self;
    /// Adds what a probe of a part has observed. `has` is true for the ports of the part. Reports of flows
    /// and of senders come from one part for each source.
    fn join(&mut self, part: Self, has: &dyn Fn(PortId) -> bool);
}

impl<P> Divisible<P> for () {
    fn fresh(&self) {}
    fn join(&mut self, (): (), _: &dyn Fn(PortId) -> bool) {}
}

impl<P> Probe<P> for () {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Nothing
    }
}

/// The methods of a probe that passes each event to the probes in these options.
macro_rules! forward {
    ($this:ident to $($probe:expr),+; all of $($shared:expr),+) => {
        fn interest(&$this, at: PortId) -> Interest {
            [$($shared.map_or(Interest::Nothing, |probe| probe.interest(at))),+]
                .into_iter()
                .fold(Interest::Nothing, Interest::max)
        }
        #[inline]
        fn on_arrival(&mut $this, at: PortId, meta: &Meta, now: Time) {
            $(if let Some(probe) = $probe { probe.on_arrival(at, meta, now) })+
        }
        #[inline]
        fn on_transmission(&mut $this, at: PortId, meta: &Meta, payload: &P, now: Time) {
            $(if let Some(probe) = $probe { probe.on_transmission(at, meta, payload, now) })+
        }
        #[inline]
        fn on_drop(&mut $this, at: PortId, meta: &Meta, payload: &P, why: DropReason, now: Time) {
            $(if let Some(probe) = $probe { probe.on_drop(at, meta, payload, why, now) })+
        }
        #[inline]
        fn on_mark(&mut $this, at: PortId, meta: &Meta, now: Time) {
            $(if let Some(probe) = $probe { probe.on_mark(at, meta, now) })+
        }
        #[inline]
        fn on_delivery(&mut $this, node: u16, meta: &Meta, payload: &P, now: Time) {
            $(if let Some(probe) = $probe { probe.on_delivery(node, meta, payload, now) })+
        }
        #[inline]
        fn on_emission(&mut $this, node: u16, meta: &Meta, payload: &P, now: Time) {
            $(if let Some(probe) = $probe { probe.on_emission(node, meta, payload, now) })+
        }
        #[inline]
        fn on_flow(&mut $this, report: &FlowReport) {
            $(if let Some(probe) = $probe { probe.on_flow(report) })+
        }
        #[inline]
        fn on_sample(
            &mut $this,
            at: PortId,
            backlog: Backlog,
            table: &FlowTable,
            gauges: &[(&'static str, f64)],
            now: Time,
        ) {
            $(if let Some(probe) = $probe { probe.on_sample(at, backlog, table, gauges, now) })+
        }
        fn on_class(&mut $this, at: PortId, state: &ClassState, now: Time) {
            $(if let Some(probe) = $probe { probe.on_class(at, state, now) })+
        }
        #[inline]
        fn on_sender(&mut $this, sample: &SenderSample) {
            $(if let Some(probe) = $probe { probe.on_sender(sample) })+
        }
    };
}

impl<P, A: Probe<P>, B: Probe<P>> Probe<P> for (A, B) {
    forward!(self to Some(&mut self.0), Some(&mut self.1); all of Some(&self.0), Some(&self.1));
}

impl<P, A: Probe<P> + ?Sized> Probe<P> for &mut A {
    forward!(self to Some(&mut **self); all of Some(&**self));
}

impl<P, A: Probe<P> + ?Sized> Probe<P> for Box<A> {
    forward!(self to Some(&mut **self); all of Some(&**self));
}

impl<P, A: Probe<P>> Probe<P> for Option<A> {
    forward!(self to self.as_mut(); all of self.as_ref());
}

/// Kind of a flow in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// Data of a known size: a file, a request with its response, or a page with a single report.
    Transfer,
    /// Several transfers that also have their own reports, such as a page whose objects are reported. The
    /// transfers already report its bytes, which must not be counted again.
    Group,
    /// Data without an end, sent as fast as the network permits.
    Endless,
    /// Datagrams, sent when they are due, without feedback.
    Datagrams,
}

impl FlowKind {
    /// Name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            FlowKind::Transfer => "transfer",
            FlowKind::Group => "group",
            FlowKind::Endless => "endless",
            FlowKind::Datagrams => "datagrams",
        }
    }
}

/// End of a flow.
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
    /// Name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Aborted => "aborted",
            Ending::Unfinished => "unfinished",
        }
    }
}

/// Report of a flow: a transfer, a request with its response, or a stream of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Number of the flow, unique in the group of its source. A source numbers its flows in the order of
    /// their start, unless its documentation gives another order.
    pub id: u64,
    /// Number of the traffic source: its index in the scenario.
    pub source: u16,
    /// Kind of the flow.
    pub kind: FlowKind,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Time of the request by the application.
    pub start: Time,
    /// Time at which the last byte reached the receiving application, the sender gave up, or the run ended.
    pub end: Time,
    /// Data bytes that the application wanted to send; of datagrams those sent within the measurement
    /// interval.
    pub bytes: u64,
    /// Data bytes that the receiving application got, in order and in the whole run; of datagrams the part of
    /// `bytes` that arrived.
    pub delivered: u64,
    /// Data bytes that reached the receiving host within the measurement interval, in order or not, each
    /// counted once, whenever they were sent.
    pub goodput_bytes: u64,
    /// Data packets sent in the whole run, retransmissions included; of datagrams those sent within the
    /// measurement interval, without those that are still in the network at the end of the run.
    pub packets: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Number of these datagrams that never arrived; `None` for TCP, whose sender does not know what was
    /// lost.
    pub lost: Option<u64>,
    /// Causes of the retransmissions, as far as the sender distinguishes them.
    pub causes: Causes,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Mean one-way delay of its datagrams, or of its data packets if it is a transfer on its own connection.
    /// Packets count that were sent within the measurement interval and arrived, copies included. Zero if
    /// there are none.
    pub delay_mean: Span,
    /// Median of the one-way delay of its datagrams; zero for other flows.
    pub delay_p50: Span,
    /// 95th percentile of the delay of its datagrams; zero for other flows.
    pub delay_p95: Span,
    /// 99th percentile of the delay of its datagrams; zero for other flows.
    pub delay_p99: Span,
    /// The largest one-way delay of its datagrams; zero for other flows.
    pub delay_max: Span,
    /// The longest time for which the receiving application got nothing more in order, between the start and
    /// the end. It is measured for transfers on their own connection, with an end or without. It is zero,
    /// which means not measured, for datagrams, groups, and requests that share a connection.
    pub longest_pause: Span,
    /// The sum of the pauses, as in `longest_pause`, that were longer than half a second.
    pub paused: Span,
    /// End of the flow.
    pub ending: Ending,
}

/// Causes of retransmissions, and how many were needless. A retransmission with none of these causes is one
/// of fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Segments retransmitted during the recovery from a timeout.
    pub after_timeout: u64,
    /// Probes of a tail that may be lost, whether they repeat data or not: RFC 8985, section 7.
    pub probes: u64,
    /// Retransmissions that the receiver reports as needless (D-SACK, RFC 2883).
    pub needless: u64,
}

impl AddAssign for Causes {
    fn add_assign(&mut self, more: Causes) {
        self.after_timeout += more.after_timeout;
        self.probes += more.probes;
        self.needless += more.needless;
    }
}

impl Sub for Causes {
    type Output = Causes;

    fn sub(self, before: Causes) -> Causes {
        Causes {
            after_timeout: self.after_timeout - before.after_timeout,
            probes: self.probes - before.probes,
            needless: self.needless - before.needless,
        }
    }
}

/// State of a TCP sender at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderSample {
    /// Number of the traffic source: its index in the scenario.
    pub source: u16,
    /// The flow's number.
    pub id: u64,
    /// Time of the sample.
    pub now: Time,
    /// Congestion window, bytes.
    pub window: u64,
    /// Slow-start threshold, bytes.
    pub threshold: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// Data bytes that were acknowledged, all in order.
    pub acked: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Rate of the pacer; zero if segments leave as soon as the window allows.
    pub pacing_rate: Rate,
    /// Latest sample of the rate at which data are delivered; zero if the sender takes none.
    pub delivery_rate: Rate,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the probes that observed an event, in order.
    #[derive(Default)]
    struct Order(Vec<u8>);

    struct Numbered<'a>(u8, &'a std::cell::RefCell<Order>);

    impl Probe<()> for Numbered<'_> {
        fn on_arrival(&mut self, _: PortId, _: &Meta, _: Time) {
            self.1.borrow_mut().0.push(self.0);
        }
        fn on_drop(&mut self, _: PortId, _: &Meta, (): &(), _: DropReason, _: Time) {
            self.1.borrow_mut().0.push(10 + self.0);
        }
    }

    #[test]
    fn each_probe_of_a_pair_observes_each_event_the_first_one_first() {
        let order = std::cell::RefCell::default();
        let mut last = Numbered(3, &order);
        let boxed: Box<dyn Probe<()>> = Box::new(Numbered(2, &order));
        let mut all = ((Numbered(1, &order), Some(boxed)), (None::<Numbered<'_>>, &mut last));
        all.on_arrival(PortId(0), &Meta::default(), Time::ZERO);
        all.on_drop(PortId(0), &Meta::default(), &(), DropReason::Early, Time::ZERO);
        assert_eq!(order.borrow().0, [1, 2, 3, 11, 12, 13]);
    }
}
