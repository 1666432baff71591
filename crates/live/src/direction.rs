//! One direction of a bridge: frames arrive, wait in a discipline, and leave when the link is free.
//!
//! [`Core`] is the direction without devices and thread: its methods get frames and the time as arguments, so
//! that it can be tested without either. [`driver`] is the loop of the thread.
//!
//! # Time
//! The port gets arrivals at the time stamps of the kernel, and dequeues packets at the times at which its
//! link becomes free, in the order of these times ([`Core::advance`]). The schedule is therefore the same as
//! on a link that is never late, even if the thread is late, and a long run has exactly the configured rate.
//! There is one bound: a link that was late for more than [`CATCH_UP`] loses the excess (a *stall*, which is
//! counted). Otherwise a thread that did not run for a while would send seconds of traffic at once.
//!
//! A link whose rate varies has a [`Transmitter`], as in the network simulator: it says when a transmission
//! starts and ends, and the port is informed of each change of the rate before its next call. What passes in
//! a stall is lost, as it is on a link that nobody uses.

pub mod driver;
mod varying;

use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

use giveway_links::{Fate, Transmitter};
use giveway_qdisc::{
    Backlog, ClassState, DropReason, Ecn, FiveTuple, Next, Packet, Port, PortCounters, PortId, Probe, Qdisc,
    Rate, Span, Streams, Time,
};
use giveway_watch::Status;
use giveway_wire::fragment::{Cut, Taken};

use crate::clock::{Clock, wall_ns};
use crate::command::{Build, Command};
use crate::device::{Arrival, BATCH, Sender};
use crate::emulation::{InFlight, LinkEmulation, LinkEmulator, Transmission};
use crate::fragments::{self, FragmentGroups, PartialFrameDiscard};
use crate::headers::{Counting, Frame, HeaderParser, ParsedHeaders};
use crate::pool::Pool;
use crate::reservations::flows::ReservedFlows;
use crate::statistics::Statistics;

/// Longest time of the link for which a late thread still sends the frames.
pub const CATCH_UP: Span = Span::ms(20);
/// A discipline that is not empty but returns no packet for this long is stuck.
pub const STUCK: Span = Span::s(5);
/// Class of frames that this program generates: network control (RFC 4594).
const NETWORK_CONTROL: u16 = 0;

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The link accepted the frame.
    Sent {
        /// True if the discipline of this direction marked the frame (ECN).
        marked: bool,
    },
    /// The discipline dropped the frame, or the link emulation lost it.
    Dropped(DropReason),
}

/// Receives the bytes of frames that are sent or dropped. It is called in the thread of the direction and
/// must not block.
pub trait Tap: Send {
    /// Called once for each frame. `wall_ns` is the time of the event, in nanoseconds since 1970.
    fn frame(&mut self, bytes: &[u8], outcome: Outcome, wall_ns: u64);
}

/// The parts of a direction.
pub struct Parts {
    /// Id of the port in calls to the probe.
    pub id: PortId,
    /// Rate of the link; the mean if it varies.
    pub rate: Rate,
    /// Builds the discipline.
    pub build: Build,
    /// The rate over time, and delay, loss and other impairments after the link.
    pub emulation: LinkEmulation,
    /// Time at which the rate and the delay over time start. Nothing passes before if the rate varies.
    pub start: Time,
    /// Rules for the counted length of a packet.
    pub counting: Counting,
    /// True if frames start with an Ethernet header.
    pub ethernet: bool,
    /// Cutting and joining of fragments.
    pub fragments: fragments::Settings,
    /// Length of the longest incoming frame, in bytes.
    pub longest_in: usize,
    /// Length of the longest frame that the outgoing interface accepts, in bytes.
    pub longest_out: usize,
    /// Number of buffers for frames.
    pub buffers: u32,
    /// Random streams.
    pub streams: Streams,
    /// Prime of the TRR paper's flow hash; `None` for a keyed hash.
    pub xor_mod: Option<NonZeroU32>,
    /// Reservations of the direction; `None` if reservations are not configured.
    pub reserved_flows: Option<ReservedFlows>,
    /// Probe of the port.
    pub probe: Option<Box<dyn Probe<Frame> + Send>>,
    /// Receives the bytes of sent and dropped frames.
    pub tap: Option<Box<dyn Tap>>,
    /// Clock of the direction.
    pub clock: Clock,
}

/// A direction without devices and thread.
pub struct Core {
    port: Port<Frame>,
    build: Build,
    /// The transmitter, if the rate varies.
    transmitter: Option<Transmitter>,
    /// Time before which the transmitter does not start a transmission, as far as it was asked.
    ready: Time,
    /// Latest time that the port got.
    at: Time,
    /// Time of the next call to the port; never, if nothing is queued.
    next_pull: Time,
    /// True while another process sends: the link is busy.
    held: bool,
    /// Time since which the discipline returns no packet although it is not empty.
    denied: Option<Time>,
    fragments: fragments::Work,
    /// Groups of fragments, once frames were cut.
    groups: Option<Rc<RefCell<FragmentGroups>>>,
    pool: Pool,
    parser: HeaderParser,
    reserved_flows: Option<ReservedFlows>,
    emulator: LinkEmulator,
    statistics: Statistics,
    /// Probe of the user.
    probe: Option<Box<dyn Probe<Frame> + Send>>,
    tap: Option<Box<dyn Tap>>,
    clock: Clock,
    longest_out: usize,
    /// True once the outgoing interface was removed.
    out_gone: bool,
    number: u64,
    /// Counters of the port before the clock was restarted.
    earlier: PortCounters,
    /// Uptime before the clock was restarted.
    earlier_time: Span,
    gauges: Vec<(&'static str, f64)>,
    /// Classes of the discipline, as of the last second.
    classes: Vec<ClassState>,
    /// Time of the next look at the classes.
    classes_due: Time,
}

impl Core {
    /// Creates a direction from its parts.
    pub fn new(mut parts: Parts) -> Core {
        let fragments = fragments::Work::new(
            parts.fragments,
            parts.ethernet,
            parts.longest_out,
            // The time in microseconds, so that the numbers of frames differ from those before a restart.
            (parts.clock.to_wall_ns(Time::ZERO) / 1000) as u32,
            &parts.streams,
        );
        let groups = fragments.cuts().then(|| FragmentGroups::new(parts.buffers));
        let qdisc = build_discipline(&mut parts.build, parts.rate, groups.as_ref());
        Core {
            port: Port::new(parts.id, qdisc, parts.rate),
            build: parts.build,
            transmitter: parts
                .emulation
                .impairments
                .rate
                .as_ref()
                .map(|profile| Transmitter::starting(profile, parts.rate, parts.start)),
            ready: Time::ZERO,
            fragments,
            groups,
            at: Time::ZERO,
            next_pull: Time::NEVER,
            held: false,
            denied: None,
            // The kernel strips a VLAN tag, which is inserted again: 4 bytes.
            pool: Pool::new(parts.buffers, parts.longest_in.max(parts.longest_out) + 4),
            parser: HeaderParser::new(parts.ethernet, parts.counting, &parts.streams)
                .with_xor_mod(parts.xor_mod),
            reserved_flows: parts.reserved_flows,
            emulator: LinkEmulator::new(
                &parts.emulation,
                &parts.streams,
                parts.buffers as usize,
                parts.start,
            ),
            statistics: Statistics::default(),
            probe: parts.probe,
            tap: parts.tap,
            clock: parts.clock,
            longest_out: parts.longest_out,
            out_gone: false,
            number: 0,
            earlier: PortCounters::default(),
            earlier_time: Span::ZERO,
            gauges: Vec::with_capacity(64),
            classes: Vec::new(),
            classes_due: Time::ZERO,
        }
    }

    /// Accepts a frame at time `now`. A fragment is kept until its frame is complete if fragments are joined.
    pub fn arrive(&mut self, arrival: &Arrival<'_>, now: Time) {
        let Some(mut joiner) = self.fragments.take_joiner() else { return self.arrive_whole(arrival, now) };
        match joiner.take(arrival, now) {
            Taken::Other => self.arrive_whole(arrival, now),
            Taken::Kept => {}
            Taken::Whole(bytes) => {
                let length = bytes.len() as u32;
                // The bridge that cut the frame completed its checksum before (see `offer`).
                let (wall_ns, checksum_missing) = (arrival.wall_ns, false);
                self.arrive_whole(&Arrival { bytes, vlan: None, wall_ns, length, checksum_missing }, now);
            }
        }
        self.fragments.give_joiner(joiner);
    }

    /// Accepts a whole frame: intercepts it if it is a control packet, or else offers it to the link.
    fn arrive_whole(&mut self, arrival: &Arrival<'_>, now: Time) {
        if !self.reserved_flows.as_mut().is_some_and(|flows| flows.intercept(arrival)) {
            self.offer(arrival, now, None);
        }
    }

    /// Offers a frame to the link: parses it, completes its checksum and cuts it if necessary. `class`
    /// overrides the class of its headers.
    fn offer(&mut self, arrival: &Arrival<'_>, now: Time, class: Option<u16>) {
        // The time of the arrival is its time stamp, so that sojourn times include the wait in the ring. It
        // is at most `CATCH_UP` ago, and not before the last call to the port, whose times must never go
        // back.
        let stamp =
            if arrival.wall_ns == 0 { now } else { self.clock.of_stamp(arrival.wall_ns, now, CATCH_UP) };
        let floor = Time::ZERO + now.since(Time::ZERO).saturating_sub(CATCH_UP);
        let then = stamp.max(floor).min(now).max(self.at);
        // The port must see events in the order of their times: departures before this arrival come first.
        self.advance(then);
        self.at = then;
        let length = arrival.whole();
        // Such a frame is several packets that the kernel merged, or truncated. It cannot be sent, so it does
        // not enter the discipline, where it would take time of the link.
        if arrival.is_too_long(self.longest_out) {
            self.statistics.losses.too_long += 1;
            return;
        }
        let Some(buffer) = self.pool.allocate() else {
            self.statistics.losses.no_buffer += 1;
            return;
        };
        let place = &mut self.pool.buffer_mut(buffer)[..length];
        arrival.write(place);
        let mut headers = self.parser.parse(place, then);
        // Reading the wall clock takes time for each packet, so it is read only if there are reservations.
        if let (Some(flows), Some(tuple)) = (&self.reserved_flows, &headers.tuple)
            && !flows.is_empty()
        {
            let key = self.parser.keyed(tuple, headers.meta.flow);
            let wall_ns = || if arrival.wall_ns == 0 { wall_ns() } else { arrival.wall_ns };
            headers.meta.reserved = flows.reserved(key, tuple, wall_ns);
        }
        headers.meta.class = class.unwrap_or(headers.meta.class);
        let ip_at = headers.tuple.map(|_| usize::from(headers.ip_at));
        if arrival.complete_checksum(place, |_| ip_at) {
            self.statistics.checksums += 1;
        }
        let number = self.number;
        self.number += 1;
        if let Some(cut) = self.fragments.plan(place) {
            return self.enter_cut(buffer, length, &cut, &headers, number, then);
        }
        let frame = Frame { buffer, length: length as u32, number, ip_at: headers.ip_at, group: 0 };
        self.enter(Packet { meta: headers.meta, payload: frame }, headers.tuple, then);
    }

    /// Cuts the frame in buffer `whole` and offers its fragments to the discipline.
    fn enter_cut(
        &mut self,
        whole: u32,
        length: usize,
        cut: &Cut,
        headers: &ParsedHeaders,
        number: u64,
        then: Time,
    ) {
        // All fragments need a buffer, or none is sent: a part of a frame is useless.
        if (self.pool.free() as usize) < cut.count() {
            self.pool.release(whole);
            self.statistics.losses.no_buffer += 1;
            return;
        }
        let groups = Rc::clone(self.groups.get_or_insert_with(|| FragmentGroups::new(self.pool.capacity())));
        let group = groups.borrow_mut().open();
        let mut offered = 0;
        // `enter` is false as soon as the discipline has dropped a fragment of this frame.
        while offered < cut.count() && groups.borrow_mut().enter(group) {
            let index = offered;
            offered += 1;
            let buffer = self.pool.allocate().expect("enough buffers are free, and departures free more");
            let (from, to) = self.pool.two(whole, buffer);
            let bytes = cut.write(&from[..length], index, to);
            let mut meta = headers.meta;
            meta.bytes = self.parser.charge((bytes - cut.header_at()) as u32);
            meta.offset = meta.offset.saturating_add(cut.range(index).start as u32);
            let ip_at = cut.header_at() as u16;
            let frame = Frame { buffer, length: bytes as u32, number, ip_at, group };
            self.enter(Packet { meta, payload: frame }, headers.tuple, then);
        }
        groups.borrow_mut().close(group);
        self.pool.release(whole);
        self.fragments.record_cut(offered, cut.count());
    }

    /// Enqueues a packet and advances the link.
    fn enter(&mut self, pkt: Packet<Frame>, tuple: Option<FiveTuple>, then: Time) {
        self.statistics.record_arrival(pkt.meta.flow, tuple, pkt.meta.bytes);
        if let Some(transmitter) = &mut self.transmitter {
            transmitter.inform(&mut self.port, then);
        }
        let probe = &mut (&mut self.statistics, &mut self.probe);
        self.port.offer_with(pkt, tuple.as_ref(), then, probe);
        self.recycle(then);
        // After an arrival the discipline may have a packet earlier: call it as soon as the link is free.
        self.next_pull = self.port.free_at().max(then);
        self.advance(then);
    }

    /// Advances the link to `until`: dequeues each packet that the link would have sent by then, at its time.
    pub fn advance(&mut self, until: Time) {
        while self.next_pull <= until && !self.held {
            let then = self.next_pull.max(self.at);
            self.at = then;
            if self.transmitter.is_some() && !self.is_ready(then) {
                continue;
            }
            let next = self.port.pull(then, &mut (&mut self.statistics, &mut self.probe));
            self.recycle(then);
            self.next_pull = match next {
                Next::Packet(pkt) => {
                    self.denied = None;
                    if let Some(transmitter) = &mut self.transmitter {
                        let end = transmitter.transmit(pkt.meta.bytes, then);
                        self.port.occupy_until(end);
                    }
                    self.depart(pkt, then);
                    self.port.free_at()
                }
                Next::At(at) => {
                    assert!(
                        at > then,
                        "the discipline requests a call at {at}, which is not after the current time {then}"
                    );
                    at.min(self.transmitter.as_ref().map_or(Time::NEVER, Transmitter::next_change))
                }
                Next::Empty => {
                    self.denied = match self.port.counters().backlog().packets {
                        0 => None,
                        _ => self.denied.or(Some(then)),
                    };
                    Time::NEVER
                }
            };
        }
    }

    /// Sets whether another process still sends to the outgoing interface. While it does, the link is busy:
    /// packets wait in the discipline.
    pub fn hold(&mut self, held: bool, now: Time) {
        if self.held && !held && self.next_pull != Time::NEVER {
            // That time is not lost, so it does not count as a stall.
            self.next_pull = self.next_pull.max(now);
        }
        self.held = held;
    }

    /// True while another process still sends.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Skips the time of the link that is longer than [`CATCH_UP`] ago (a stall), and checks that the queue
    /// is not stuck. Call this first at each wake-up.
    ///
    /// # Panics
    /// If the discipline is not empty but has returned no packet for [`STUCK`].
    pub fn catch_up(&mut self, now: Time) {
        if self.held {
            return;
        }
        let floor = Time::ZERO + now.since(Time::ZERO).saturating_sub(CATCH_UP);
        if self.next_pull < floor {
            let statistics = &mut self.statistics;
            statistics.stalls += 1;
            statistics.stalled += floor.since(self.next_pull);
            statistics.longest_stall = statistics.longest_stall.max(floor.since(self.next_pull));
            self.next_pull = floor;
        }
        if self.next_pull == Time::NEVER && self.port.free_at() <= floor {
            self.pass_idle(floor);
        }
        if let Some(since) = self.denied {
            let backlog = self.port.counters().backlog().packets;
            assert!(
                now.since(Time::ZERO) < since.since(Time::ZERO) + STUCK,
                "the queue is stuck: its backlog is {backlog} packets, and none has left for {STUCK}"
            );
            // The discipline may return a packet at a later time.
            self.next_pull = self.next_pull.min(now);
        }
    }

    /// Transmits a dequeued packet: writes its ECN mark, calls the tap, and passes it to the link emulation.
    fn depart(&mut self, pkt: Packet<Frame>, begin: Time) {
        let Frame { buffer, length, ip_at, group, .. } = pkt.payload;
        let mut marked = false;
        if pkt.meta.ecn == Ecn::Marked {
            let packet = &mut self.pool.buffer_mut(buffer)[usize::from(ip_at)..length as usize];
            if group > 0 {
                giveway_wire::fragment::mark(packet);
            }
            marked = group > 0 || giveway_wire::ecn::mark(packet) == giveway_wire::ecn::Marked::Now;
        }
        // A discipline may have changed the DSCP.
        if ip_at > 0 && group == 0 {
            let packet = &mut self.pool.buffer_mut(buffer)[usize::from(ip_at)..length as usize];
            giveway_wire::dscp::set(packet, pkt.meta.header.dscp());
        }
        if let Some(tap) = &mut self.tap {
            let bytes = &self.pool.buffer(buffer)[..length as usize];
            tap.frame(bytes, Outcome::Sent { marked }, self.clock.to_wall_ns(begin));
        }
        let (bytes, end, rate) = (pkt.meta.bytes, self.port.free_at(), self.port.rate());
        // A frame that waits for a better rate in the middle of its transmission has not left before its end.
        let leaves = if self.transmitter.is_some() { end } else { begin };
        match self.emulator.fate(Transmission { bytes, begin: leaves, end, rate }) {
            Fate::Arrives(due) => self.emulator.push(InFlight { due, buffer, length }),
            Fate::ArrivesTwice(due) => self.send_twice(InFlight { due, buffer, length }),
            Fate::Lost => {
                self.statistics.losses.emulated += 1;
                self.port.lose(&pkt, DropReason::Wire, begin, &mut (&mut self.statistics, &mut self.probe));
                let wall_ns = self.clock.to_wall_ns(begin);
                recycle(&pkt.payload, DropReason::Wire, wall_ns, &mut self.tap, &mut self.pool);
            }
        }
    }

    /// Calls the tap for the frames that the last call to the port dropped, and releases their buffers.
    #[inline]
    fn recycle(&mut self, now: Time) {
        for (pkt, reason) in self.port.dropped() {
            recycle(&pkt.payload, reason, self.clock.to_wall_ns(now), &mut self.tap, &mut self.pool);
        }
    }

    /// Sends the frames that are due. Returns false if the interface accepts no more for the moment.
    pub fn flush(&mut self, mut now: Time, sender: &mut dyn Sender) -> bool {
        loop {
            // On the stack: borrowed frames of the pool cannot be kept between calls, and a `Vec` would
            // allocate for each batch.
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            let mut count = 0;
            for frame in self.emulator.due(now, BATCH) {
                batch[count] = &self.pool.buffer(frame.buffer)[..frame.length as usize];
                count += 1;
            }
            if count == 0 {
                return true;
            }
            let (sent, refused) = match sender.send(&batch[..count]) {
                Ok(sent) => (sent, false),
                Err(refused) => {
                    self.out_gone |= refused.is_gone();
                    (refused.sent, true)
                }
            };
            self.statistics.sends += 1;
            now = now.max(self.clock.now());
            // Frames count as sent when the system call has returned, so its duration is part of their
            // lateness.
            for _ in 0..sent {
                let Some(frame) = self.emulator.sent() else { break };
                self.statistics.record_lateness(now.since(frame.due.min(now)));
                self.pool.release(frame.buffer);
            }
            // The next frame can never be sent. Without skipping it, the loop would offer it again and again.
            if refused {
                self.statistics.losses.unsent += 1;
                if let Some(frame) = self.emulator.sent() {
                    self.pool.release(frame.buffer);
                }
            } else if sent < count {
                // The other frames stay in the emulator, in order, until the interface accepts frames again.
                return false;
            }
        }
    }

    /// Applies a command.
    pub fn apply(&mut self, command: Command) {
        let rate = match command {
            Command::Emulation(emulation) => {
                self.emulator.set(&emulation, self.clock.now().max(self.at));
                None
            }
            Command::Cut(size) => {
                self.fragments.cut_to(size);
                let first = self.groups.is_none() && self.fragments.cuts();
                self.groups = self.groups.take().or(first.then(|| FragmentGroups::new(self.pool.capacity())));
                // The current discipline was built without partial frame discard: build it again.
                first.then(|| self.port.rate())
            }
            Command::Join(join) => {
                self.fragments.join(join);
                None
            }
            Command::Rate(rate) => {
                self.vary(rate, None);
                Some(rate)
            }
            Command::VaryingRate(rate, profile) => {
                self.vary(rate, Some(&profile));
                Some(rate)
            }
            Command::Reserve(change) => {
                let key = self.parser.keyed_hash(change.tuple());
                if let Some(flows) = &mut self.reserved_flows {
                    flows.apply(key, change);
                }
                return;
            }
            Command::Frame(bytes) => {
                let (length, now) = (bytes.len() as u32, self.clock.now());
                let bytes = &bytes[..];
                let frame = Arrival { bytes, vlan: None, wall_ns: 0, length, checksum_missing: false };
                return self.offer(&frame, now, Some(NETWORK_CONTROL));
            }
            Command::Qdisc(build) => {
                self.build = build;
                Some(self.port.rate())
            }
        };
        if let Some(rate) = rate {
            self.port.set_rate(rate);
            let qdisc = build_discipline(&mut self.build, rate, self.groups.as_ref());
            // The last call may be long ago, and the link would make up for the time since.
            self.at = self.at.max(self.clock.now());
            let probe = &mut (&mut self.statistics, &mut self.probe);
            self.port.replace(qdisc, self.at, probe);
            self.recycle(self.at);
            // It may have a packet earlier than the one before, whose packets it has taken over.
            self.next_pull = self.port.free_at().max(self.at);
        }
        self.statistics.changes += 1;
    }

    /// Restarts the clock once it is old enough ([`Clock::OLD`]) and no queued packet carries a time stamp.
    pub fn rebase(&mut self, now: Time) {
        if !self.clock.is_old(now)
            || self.port.counters().backlog() != Backlog::ZERO
            || self.next_pull != Time::NEVER
        {
            return;
        }
        if let Some(transmitter) = &mut self.transmitter {
            transmitter.inform(&mut self.port, now);
        }
        let (id, rate, counters) = (self.port.id(), self.port.rate(), *self.port.counters());
        self.earlier = sum(&self.earlier, &counters);
        self.earlier_time += now.since(Time::ZERO);
        self.port = Port::new(id, build_discipline(&mut self.build, rate, self.groups.as_ref()), rate);
        self.clock = self.clock.restart();
        self.emulator.rebase(now);
        if let Some(transmitter) = &mut self.transmitter {
            transmitter.rebase(now);
        }
        self.ready = Time::ZERO;
        self.fragments.rebase(now);
        self.statistics.rebase();
        self.at = Time::ZERO;
    }

    /// Time of the next departure or transmission if no frame arrives.
    pub fn next(&self) -> Option<Time> {
        let next_pull = (self.next_pull != Time::NEVER && !self.held).then_some(self.next_pull);
        match (next_pull, self.emulator.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// True if the transmitter is busy at `now`.
    pub fn busy(&self, now: Time) -> bool {
        self.next_pull != Time::NEVER && self.port.free_at().max(self.ready) > now
    }

    /// Number of frames in the discipline and in the link emulation.
    pub fn backlog(&self) -> u64 {
        self.port.counters().backlog().packets + self.emulator.len() as u64
    }

    /// Clock of the direction.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
    /// True once the outgoing interface was removed.
    pub(crate) fn out_gone(&self) -> bool {
        self.out_gone
    }
    /// Compares the clocks of the system, to detect that the wall clock was set.
    pub(crate) fn compare_clocks(&mut self) {
        self.clock.compare();
    }
    /// True if fragments are joined.
    pub fn joins(&self) -> bool {
        self.fragments.joins()
    }
    /// The counters of the direction.
    pub fn statistics(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// Passes backlog and gauges to the probe.
    pub fn sample(&mut self, now: Time) {
        if self.probe.is_some() {
            // A frame with an earlier time stamp may be read later, and a generated frame may have entered
            // after `now` was read. The times that the probe gets must never go back.
            self.at = self.at.max(now);
            self.port.sample(self.at, &mut self.gauges, &mut self.probe);
        }
    }

    /// Writes a snapshot for time `now` into `status`.
    pub fn snapshot(&mut self, now: Time, status: &mut Status) {
        self.statistics.roll(now);
        self.statistics.copy_to(status);
        status.uptime = self.earlier_time + now.since(Time::ZERO);
        status.rate = self.port.rate();
        status.counters = sum(&self.earlier, self.port.counters());
        status.backlog = self.port.counters().backlog();
        status.in_flight = self.emulator.len() as u64;
        status.fragments = self.fragments.snapshot(now);
        status.buffers = [self.pool.free(), self.pool.least_free(), self.pool.capacity()];
        status.leaving = self.port.leaving();
        status.gauges.clear();
        status
            .gauges
            .extend(self.port.flow_table().named().map(|(name, value)| (Cow::Borrowed(name), value)));
        self.port.gauges(&mut |name, value| status.gauges.push((Cow::Borrowed(name), value)));
        self.snapshot_classes(now, status);
    }

    /// Writes the classes into `status`. Their names are copied, which takes a while for many classes, so
    /// this happens once a second and for a bounded number.
    fn snapshot_classes(&mut self, now: Time, status: &mut Status) {
        const MAX: usize = 1000;
        const EVERY: Span = Span::s(1);
        if now >= self.classes_due {
            self.classes_due = now + EVERY;
            self.classes.clear();
            let classes = &mut self.classes;
            self.port.classes(&mut |state| {
                if classes.len() < MAX {
                    classes.push(state);
                }
            });
        }
        status.classes.clone_from(&self.classes);
    }

    /// Ends the direction: drops the backlog, writes the last snapshot, and returns the probe.
    pub fn finish(mut self, status: &mut Status) -> Option<Box<dyn Probe<Frame> + Send>> {
        let now = self.clock.now().max(self.at);
        // A reset clears the counters of the classes, so they are read before, and what waits is dropped.
        self.classes_due = now;
        self.snapshot_classes(now, status);
        for class in &mut self.classes {
            class.dropped = class.dropped.plus(std::mem::take(&mut class.backlog));
        }
        self.port.reset(now, &mut (&mut self.statistics, &mut self.probe));
        self.recycle(now);
        self.statistics.roll(now + Span::s(1));
        self.snapshot(now, status);
        self.probe
    }
}

/// Calls the tap for a dropped frame and releases its buffer.
fn recycle(frame: &Frame, reason: DropReason, wall_ns: u64, tap: &mut Option<Box<dyn Tap>>, pool: &mut Pool) {
    if let Some(tap) = tap {
        tap.frame(&pool.buffer(frame.buffer)[..frame.length as usize], Outcome::Dropped(reason), wall_ns);
    }
    pool.release(frame.buffer);
}

/// Builds the discipline for a rate; with partial frame discard if frames are cut.
fn build_discipline(
    build: &mut Build,
    rate: Rate,
    groups: Option<&Rc<RefCell<FragmentGroups>>>,
) -> Box<dyn Qdisc<Frame>> {
    let qdisc = build(rate);
    match groups {
        Some(groups) => Box::new(PartialFrameDiscard::new(qdisc, Rc::clone(groups))),
        None => qdisc,
    }
}

fn sum(a: &PortCounters, b: &PortCounters) -> PortCounters {
    PortCounters {
        arrived: a.arrived.plus(b.arrived),
        sent: a.sent.plus(b.sent),
        dropped: a.dropped.plus(b.dropped),
        marked: a.marked + b.marked,
    }
}

#[cfg(test)]
mod tests;
