//! The contract suite: drives a discipline with a list of operations and checks the contract after each.
//! Property tests and the fuzz target share it.

use std::collections::BTreeMap;

use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason, Outbox};
use crate::dscp::Dscp;
use crate::label::Label;
use crate::packet::{Ecn, FlowKey, Header, Meta, NextHops, Packet};
use crate::qdisc::{Next, Properties, Qdisc};
use crate::units::{Rate, Span, Time};

/// An operation on a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A packet arrives. Numbers are reduced to a valid range.
    Enqueue {
        /// Number of the flow.
        flow: u8,
        /// Length.
        bytes: u16,
        /// Class.
        class: u8,
        /// True if its transport supports ECN.
        ecn: bool,
    },
    /// A packet of any length from 1 to 65,535 bytes arrives. Packets may exceed the MTU because hosts
    /// offload segmentation.
    EnqueueAny {
        /// Number of the flow.
        flow: u8,
        /// Length; 0 stands for 1.
        bytes: u16,
        /// Class.
        class: u8,
    },
    /// The link dequeues a packet.
    Dequeue,
    /// Time passes, in microseconds.
    Wait(u16),
    /// A long time passes, in seconds: up to 18 hours.
    Pause(u16),
    /// Time passes until [`Next::At`], if the last dequeue returned it.
    WaitUntilAsked,
    /// The rate of the link changes: 1 kbit/s to 100 Gbit/s.
    Rate(u8),
    /// The discipline is reset.
    Reset,
}

/// A departure or a drop. Two runs are equal if their events are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet left: number and time.
    Sent(u64, Time),
    /// A packet was dropped: number, reason and time.
    Dropped(u64, DropReason, Time),
}

/// A violation of the contract, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Smallest and largest length of a packet of [`Op::Enqueue`].
pub const LENGTHS: std::ops::RangeInclusive<u32> = 40..=1500;

/// Drives `qdisc` through `ops`, then drains it, and checks the contract after each call.
///
/// # Errors
/// The first violation of the contract.
pub fn drive(
    qdisc: &mut impl Qdisc<u64>,
    properties: Properties,
    ops: &[Op],
) -> Result<Vec<Event>, Violation> {
    let mut run = Run::new(qdisc, properties);
    for (step, op) in ops.iter().enumerate() {
        run.apply(*op).map_err(|v| Violation(format!("step {step} ({op:?}): {}", v.0)))?;
    }
    run.drain()?;
    Ok(run.events)
}

struct Run<'a, Q> {
    qdisc: &'a mut Q,
    properties: Properties,
    now: Time,
    out: Outbox<u64>,
    /// Metadata of the queued packets, by number.
    queued: BTreeMap<u64, Meta>,
    backlog: Backlog,
    serial: u64,
    /// Number of the last packet of each flow that left.
    last_sent: BTreeMap<FlowKey, u64>,
    wake_at: Option<Time>,
    events: Vec<Event>,
}

impl<'a, Q: Qdisc<u64>> Run<'a, Q> {
    fn new(qdisc: &'a mut Q, properties: Properties) -> Run<'a, Q> {
        Run {
            qdisc,
            properties,
            // Not zero, to detect a discipline that confuses "never" with the epoch.
            now: Time::ms(1),
            out: Outbox::default(),
            queued: BTreeMap::new(),
            backlog: Backlog::ZERO,
            serial: 0,
            last_sent: BTreeMap::new(),
            wake_at: None,
            events: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) -> Result<(), Violation> {
        match op {
            Op::Enqueue { flow, bytes, class, ecn } => {
                let span = LENGTHS.end() - LENGTHS.start() + 1;
                let length = LENGTHS.start() + u32::from(bytes) % span;
                self.enqueue(flow, length, bytes, class, ecn)
            }
            Op::EnqueueAny { flow, bytes, class } => {
                self.enqueue(flow, u32::from(bytes.max(1)), bytes, class, bytes.is_multiple_of(2))
            }
            Op::Dequeue => self.dequeue().map(|_| ()),
            Op::Wait(us) => {
                self.now += Span::us(u64::from(us));
                Ok(())
            }
            Op::Pause(s) => {
                self.now += Span::s(u64::from(s));
                Ok(())
            }
            Op::WaitUntilAsked => {
                if let Some(at) = self.wake_at.take() {
                    self.now = self.now.max(at);
                }
                Ok(())
            }
            Op::Rate(step) => {
                let rate = Rate::kbit(10u64.pow(u32::from(step) / 32)).as_bit();
                self.qdisc.rate_changed(Rate::bit(rate * (1 + u64::from(step) % 10)), self.now);
                // The backlog stays, and the discipline may release a packet earlier or later.
                self.wake_at = None;
                self.settle(None)
            }
            Op::Reset => {
                self.qdisc.reset(&mut Cx::new(self.now, &mut self.out));
                self.settle(Some(DropReason::Reset))?;
                self.last_sent.clear();
                self.wake_at = None;
                ensure(self.queued.is_empty(), || "a reset must drop every queued packet".into())?;
                ensure(matches!(self.dequeue()?, Got::Nothing), || "a reset discipline holds nothing".into())
            }
        }
    }

    /// Offers a packet of `length` bytes. Its other metadata follow from `bytes`.
    fn enqueue(&mut self, flow: u8, length: u32, bytes: u16, class: u8, ecn: bool) -> Result<(), Violation> {
        let flow = flow % 16;
        let meta = Meta {
            bytes: length,
            flow: FlowKey(u64::from(flow)),
            from: u16::from(flow / 4),
            to: u16::from(flow % 5),
            next_hops: next_hops(flow),
            class: u16::from(class % 4),
            header: Header::new(dscp(flow), bytes.is_multiple_of(8)).with_advance(bytes.is_multiple_of(3)),
            ecn: if ecn { capable(bytes) } else { Ecn::NotCapable },
            arrived: self.now,
            offset: u32::try_from(self.serial * 700).unwrap_or(u32::MAX),
            remaining: u32::from(bytes) * 8,
            label: match bytes % 8 {
                0 | 4 => Label::NONE,
                1 | 5 => Label::SHORT,
                // Up to 65 ms after the arrival, or long before it.
                7 if bytes.is_multiple_of(3) => Label::departing(Time::us(u64::from(bytes))),
                7 => Label::departing(self.now + Span::us(u64::from(bytes))),
                _ => Label::of(Rate::kbit(u64::from(bytes))),
            },
            reserved: reserved(flow, bytes),
        };
        self.serial += 1;
        self.queued.insert(self.serial, meta);
        self.backlog.add(meta.bytes);
        let pkt = Packet { meta, payload: self.serial };
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.settle(None)
    }

    fn dequeue(&mut self) -> Result<Got, Violation> {
        let next = self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out));
        let got = match next {
            Next::Packet(pkt) => {
                let Some(meta) = self.queued.remove(&pkt.payload) else {
                    return violation(format!("packet {} left, but it is not queued", pkt.payload));
                };
                self.backlog.sub(meta.bytes);
                ensure(pkt.meta.bytes == meta.bytes && pkt.meta.flow == meta.flow, || {
                    format!("packet {} was changed in the queue", pkt.payload)
                })?;
                if self.properties.keeps_flow_order {
                    let last = self.last_sent.insert(meta.flow, pkt.payload).unwrap_or(0);
                    ensure(last < pkt.payload, || {
                        format!("packet {} of flow {} left after packet {last}", pkt.payload, meta.flow.0)
                    })?;
                }
                self.events.push(Event::Sent(pkt.payload, self.now));
                self.wake_at = None;
                Got::Packet
            }
            Next::At(at) => {
                ensure(at > self.now, || {
                    format!("dequeue returned At({at}), which is not after {}", self.now)
                })?;
                ensure(!self.properties.work_conserving, || {
                    "dequeue returned At, but the discipline is not a shaper".into()
                })?;
                self.wake_at = Some(at);
                Got::Later
            }
            Next::Empty => Got::Nothing,
        };
        self.settle(None)?;
        if matches!(got, Got::Nothing) {
            ensure(self.queued.is_empty(), || {
                format!("dequeue returned Empty with a backlog of {} packets", self.queued.len())
            })?;
        }
        if matches!(got, Got::Later) {
            ensure(!self.queued.is_empty(), || "dequeue returned At without a backlog".into())?;
        }
        Ok(got)
    }

    /// Counts the packets that the last call dropped, and compares the backlog that the discipline reports
    /// with the actual one.
    fn settle(&mut self, only: Option<DropReason>) -> Result<(), Violation> {
        ensure(self.properties.marks || self.out.marked.is_empty(), || {
            "a packet was marked, and the discipline is said not to mark".into()
        })?;
        self.out.marked.clear();
        for (pkt, why) in self.out.dropped.drain(..) {
            let Some(meta) = self.queued.remove(&pkt.payload) else {
                return violation(format!("packet {} was dropped, but it is not queued", pkt.payload));
            };
            self.backlog.sub(meta.bytes);
            ensure((why == DropReason::Reset) == (only == Some(DropReason::Reset)), || {
                format!("packet {} was dropped for the reason \"{}\"", pkt.payload, why.name())
            })?;
            self.events.push(Event::Dropped(pkt.payload, why, self.now));
        }
        let reported = self.qdisc.backlog();
        ensure(reported == self.backlog, || {
            format!("the backlog is {:?}, but {reported:?} is reported", self.backlog)
        })?;
        match self.properties.limit {
            Some(limit) => ensure(limit.allows(reported), || {
                format!("the backlog of {reported:?} exceeds the limit of {limit}")
            }),
            None => Ok(()),
        }
    }

    /// Dequeues the whole backlog, in bounded time.
    fn drain(&mut self) -> Result<(), Violation> {
        let mut calls = 0u64;
        loop {
            match self.dequeue()? {
                Got::Packet => {}
                Got::Later => self.now = self.wake_at.take().expect("the last dequeue returned a time"),
                Got::Nothing => return Ok(()),
            }
            // Each packet takes some time on the link.
            self.now += Span::us(10);
            calls += 1;
            ensure(calls < 4 * self.serial + 1000, || {
                "cannot be drained: a wake-up leads to no packet".into()
            })?;
        }
    }
}

/// DSCP of a flow, which never changes: CS0, CS1, EF, AF41 and others.
fn dscp(flow: u8) -> Dscp {
    Dscp::of_service([0, 8, 46, 34, 0, 16, 1, 63][usize::from(flow % 8)] << 2)
}

/// ECN field of a packet whose transport supports ECN.
fn capable(bytes: u16) -> Ecn {
    [Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Marked][usize::from(bytes / 4 % 4)]
}

/// Next hops of a flow, which never change. Routes separate after zero, one, two or more hops, or never.
fn next_hops(flow: u8) -> NextHops {
    let hops = [&[][..], &[1], &[2], &[1, 1], &[1, 2], &[2, 1, 1], &[3, 1, 2, 1, 1, 4], &[3, 1, 2, 1, 1, 5]];
    NextHops::new(hops[usize::from(flow % 8)].iter().copied())
}

/// Reservation of a packet. Most flows have one, with a sum above 10 Mbit/s, and sometimes a flow requests
/// another rate, or none.
fn reserved(flow: u8, bytes: u16) -> Rate {
    let kbit = [0, 64, 900, 3000][usize::from(flow % 4)];
    match bytes % 32 {
        0 => Rate::default(),
        1 => Rate::kbit(2 * kbit + 100),
        _ => Rate::kbit(kbit),
    }
}

enum Got {
    Packet,
    Later,
    Nothing,
}

fn ensure(holds: bool, or: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { violation(or()) }
}

fn violation<T>(message: String) -> Result<T, Violation> {
    Err(Violation(message))
}

/// Operations from raw bytes, four per operation: for fuzzers.
pub fn ops_from_bytes(bytes: &[u8]) -> Vec<Op> {
    let (quads, _) = bytes.as_chunks::<4>();
    quads
        .iter()
        .map(|[kind, a, b, c]| match kind % 16 {
            0..7 => Op::Enqueue {
                flow: *a,
                bytes: u16::from_le_bytes([*b, *c]),
                class: kind >> 4,
                ecn: c & 1 == 1,
            },
            7 => Op::EnqueueAny { flow: *a, bytes: u16::from_le_bytes([*b, *c]), class: kind >> 4 },
            8..13 => Op::Dequeue,
            13 => Op::Wait(u16::from_le_bytes([*a, *b])),
            14 => Op::WaitUntilAsked,
            _ if *a == 0 => Op::Reset,
            _ if *a > 191 => Op::Rate(*b),
            _ if *a < 64 => Op::Pause(u16::from_le_bytes([*b, *c])),
            _ => Op::Wait(u16::from(*b)),
        })
        .collect()
}
