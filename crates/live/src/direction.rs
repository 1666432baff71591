//! One direction of a bridge: frames come, wait in a discipline, leave when the link is free.
//!
//! [`Core`] is all of it but the devices and the thread: it is told what came and what time it is, and can be tested so.
//! [`run`] is the loop of the thread.
//!
//! # Time
//! The port is told arrivals with the kernel's stamps and asked for departures at the times at which its link is free, in
//! one order ([`Core::advance`]). So the schedule is that of a link that is never late, however late the thread is, and a
//! long run has exactly the rate. Two bounds: a link that was late for more than [`CATCH_UP`] loses the time beyond (a
//! *stall*, counted), so that a thread that was away does not send seconds of traffic at once; and while the link is busy
//! the thread sleeps at least [`TOGETHER`], because waking for each frame of a fast link costs more than it gives.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use qdisc::{
    Backlog, Books, DropReason, Ecn, FiveTuple, Meta, Next, Packet, Port, PortId, Probe, Qdisc, Rate, Span,
    Streams, Time,
};
use wire::fragment::{Cut, Taken};

use crate::bridge::{End, Shared, Stop};
use crate::clock::{Clock, wall_ns};
use crate::device::{Arrival, BATCH, Receiver, Sender};
use crate::fragments::{self, Groups, Together};
use crate::line::{Line, Settings};
use crate::look::{Counting, Frame, Looker, Seen};
use crate::pool::Pool;
use crate::reservations::{Change, Gate};
use crate::tally::{Status, Tally};

/// How much of the link's time may be made up for.
pub const CATCH_UP: Span = Span::ms(20);
/// How long the thread sleeps at least while the link is busy.
pub const TOGETHER: Span = Span::us(50);
/// How long it sleeps at most while the link is busy: a ring of 4,096 frames is not full so soon.
const AT_MOST: Span = Span::ms(1);
/// How long it waits at most while nothing is to be done.
const IDLE: Span = Span::ms(50);
/// How often it shows how it is.
const SHOW: Span = Span::ms(100);
/// How long packets may wait in a queue that says that it is empty.
pub const STUCK: Span = Span::s(5);

/// Builds a discipline for a link of this rate.
pub type Build = Box<dyn FnMut(Rate) -> Box<dyn Qdisc<Frame>> + Send>;

/// A change while it runs. Nothing that is queued is lost or overtaken.
pub enum Order {
    /// Another rate; the discipline is built anew for it.
    Rate(Rate),
    /// Another discipline.
    Qdisc(Build),
    /// Another line.
    Line(Settings),
    /// Frames are cut to another size, or no longer.
    Cut(Option<wire::fragment::Size>),
    /// Fragments are joined, or no longer.
    Join(bool),
    /// A flow has a reservation from now on, or has it no longer.
    Reserve(Change),
    /// A frame of our own, which waits its turn like any other.
    Frame(Vec<u8>),
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The link took it; the discipline may have marked it.
    Sent {
        /// It carries a mark that this discipline set.
        marked: bool,
    },
    /// The discipline dropped it, or the line lost it.
    Dropped(DropReason),
}

/// Sees the bytes of frames as they leave or are dropped, in the thread of the direction: it must not wait.
pub trait Tap: Send {
    /// `wall_ns` is when, in nanoseconds since 1970.
    fn frame(&mut self, bytes: &[u8], fate: Fate, wall_ns: u64);
}

/// What a direction is made of.
pub struct Parts {
    /// Which port it is for its probe.
    pub id: PortId,
    /// The rate of its link.
    pub rate: Rate,
    /// Builds its discipline.
    pub build: Build,
    /// The line behind the link.
    pub line: Settings,
    /// How lengths count.
    pub counting: Counting,
    /// Frames begin with an Ethernet header.
    pub ethernet: bool,
    /// What is done with fragments.
    pub fragments: fragments::Settings,
    /// The longest frame that comes in, in bytes.
    pub longest_in: usize,
    /// The longest frame that the other side takes, in bytes.
    pub longest_out: usize,
    /// How many frames it can hold.
    pub rooms: u32,
    /// Its random numbers.
    pub streams: Streams,
    /// Tells flows apart by the TRR paper's hash modulo this prime, instead of a keyed hash.
    pub xor_mod: Option<NonZeroU32>,
    /// Reservations, where they are kept.
    pub gate: Option<Gate>,
    /// Hears everything.
    pub probe: Option<Box<dyn Probe<Frame> + Send>>,
    /// Sees frames.
    pub tap: Option<Box<dyn Tap>>,
    /// Its clock.
    pub clock: Clock,
}

/// A direction without devices and thread.
pub struct Core {
    port: Port<Frame>,
    build: Build,
    /// The time that the port was told last.
    at: Time,
    /// When to ask the port next; never, when nothing waits.
    ask: Time,
    /// Since when the queue says that it is empty although it is not.
    denied: Option<Time>,
    fragments: fragments::Work,
    /// The fragments of a frame go together, where frames are cut or were.
    groups: Option<Rc<RefCell<Groups>>>,
    pool: Pool,
    looker: Looker,
    gate: Option<Gate>,
    line: Line,
    listener: Listener,
    tap: Option<Box<dyn Tap>>,
    clock: Clock,
    longest_out: usize,
    /// The interface that frames go to is no more.
    out_gone: bool,
    number: u64,
    /// Books of ports before the clock began anew.
    earlier: Books,
    /// Running time before the clock began anew.
    earlier_time: Span,
    gauges: Vec<(&'static str, f64)>,
}

/// The port's probe: counts, keeps what was dropped until its room is given back, and passes on.
struct Listener {
    tally: Tally,
    dropped: Vec<(Frame, DropReason)>,
    probe: Option<Box<dyn Probe<Frame> + Send>>,
}

impl Probe<Frame> for Listener {
    #[inline]
    fn arrived(&mut self, at: PortId, meta: &Meta, now: Time) {
        if let Some(probe) = &mut self.probe {
            probe.arrived(at, meta, now);
        }
    }

    #[inline]
    fn sent(&mut self, at: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.tally.left(now.since(meta.arrived), meta.bytes);
        if let Some(probe) = &mut self.probe {
            probe.sent(at, meta, frame, now);
        }
    }

    fn dropped(&mut self, at: PortId, pkt: Packet<Frame>, why: DropReason, now: Time) {
        self.dropped.push((pkt.payload, why));
        if why != DropReason::Wire {
            self.tally.dropped(why, pkt.meta.bytes);
        }
        if let Some(probe) = &mut self.probe {
            probe.dropped(at, pkt, why, now);
        }
    }

    fn marked(&mut self, at: PortId, meta: &Meta, now: Time) {
        if let Some(probe) = &mut self.probe {
            probe.marked(at, meta, now);
        }
    }

    fn sample(&mut self, at: PortId, held: Backlog, gauges: &[(&'static str, f64)], now: Time) {
        if let Some(probe) = &mut self.probe {
            probe.sample(at, held, gauges, now);
        }
    }
}

impl Core {
    /// Everything but devices.
    pub fn new(mut parts: Parts) -> Core {
        let fragments = fragments::Work::new(
            parts.fragments,
            parts.ethernet,
            parts.longest_out,
            // Microseconds: who starts anew takes other numbers.
            (parts.clock.to_wall_ns(Time::ZERO) / 1000) as u32,
            &parts.streams,
        );
        let groups = fragments.cuts().then(|| Groups::new(parts.rooms));
        let qdisc = built(&mut parts.build, parts.rate, groups.as_ref());
        Core {
            port: Port::new(parts.id, qdisc, parts.rate),
            build: parts.build,
            fragments,
            groups,
            at: Time::ZERO,
            ask: Time::NEVER,
            denied: None,
            // Room for a VLAN tag that is put back.
            pool: Pool::new(parts.rooms, parts.longest_in.max(parts.longest_out) + 4),
            looker: Looker::new(parts.ethernet, parts.counting, &parts.streams)
                .telling_apart_by(parts.xor_mod),
            gate: parts.gate,
            line: Line::new(parts.line, &parts.streams, parts.rooms as usize),
            listener: Listener {
                tally: Tally::default(),
                dropped: Vec::with_capacity(1024),
                probe: parts.probe,
            },
            tap: parts.tap,
            clock: parts.clock,
            longest_out: parts.longest_out,
            out_gone: false,
            number: 0,
            earlier: Books::default(),
            earlier_time: Span::ZERO,
            gauges: Vec::with_capacity(64),
        }
    }

    /// A frame came; it is now `now`. Where fragments are joined, it is the frame that one of them makes whole.
    pub fn arrive(&mut self, arrival: &Arrival<'_>, now: Time) {
        let Some(mut joiner) = self.fragments.take_joiner() else { return self.arrive_whole(arrival, now) };
        match joiner.take(arrival, now) {
            Taken::Other => self.arrive_whole(arrival, now),
            Taken::Kept => {}
            Taken::Whole(bytes) => {
                let length = bytes.len() as u32;
                // Whoever cut the frame has completed its checksum before (`offer` does, for one).
                let (wall_ns, checksum_missing) = (arrival.wall_ns, false);
                self.arrive_whole(&Arrival { bytes, vlan: None, wall_ns, length, checksum_missing }, now);
            }
        }
        self.fragments.give_joiner(joiner);
    }

    /// A whole frame came: a control packet, or one for the link.
    fn arrive_whole(&mut self, arrival: &Arrival<'_>, now: Time) {
        if !self.gate.as_mut().is_some_and(|gate| gate.takes(arrival)) {
            self.offer(arrival, now, None);
        }
    }

    /// A frame is for the link: brings it up to the time of its arrival first. `class` overrides what its headers say.
    fn offer(&mut self, arrival: &Arrival<'_>, now: Time, class: Option<u16>) {
        let stamp =
            if arrival.wall_ns == 0 { now } else { self.clock.of_stamp(arrival.wall_ns, now, CATCH_UP) };
        let floor = Time::ZERO + now.since(Time::ZERO).saturating_sub(CATCH_UP);
        let then = stamp.max(floor).min(now).max(self.at);
        self.advance(then);
        self.at = then;
        let length = arrival.whole();
        // Longer than what came over: the kernel put several packets together, or cut one off.
        if arrival.is_too_long(self.longest_out) {
            self.listener.tally.losses.too_long += 1;
            return;
        }
        let Some(room) = self.pool.take() else {
            self.listener.tally.losses.no_room += 1;
            return;
        };
        let place = &mut self.pool.room_mut(room)[..length];
        arrival.write(place);
        let mut seen = self.looker.look(place, then);
        if let (Some(gate), Some(tuple)) = (&self.gate, &seen.tuple)
            && !gate.is_idle()
        {
            let key = self.looker.keyed(tuple, seen.meta.flow);
            let wall_ns = || if arrival.wall_ns == 0 { wall_ns() } else { arrival.wall_ns };
            seen.meta.reserved = gate.reserved(key, tuple, wall_ns);
        }
        seen.meta.class = class.unwrap_or(seen.meta.class);
        let ip_at = seen.tuple.map(|_| usize::from(seen.ip_at));
        if arrival.complete_checksum(place, |_| ip_at) {
            self.listener.tally.checksums += 1;
        }
        let number = self.number;
        self.number += 1;
        if let Some(cut) = self.fragments.plan(place) {
            return self.enter_cut(room, length, &cut, &seen, number, then);
        }
        let frame = Frame { room, length: length as u32, number, ip_at: seen.ip_at, group: 0 };
        self.enter(Packet { meta: seen.meta, payload: frame }, seen.tuple, then);
    }

    /// The frame in this room enters in pieces.
    fn enter_cut(&mut self, whole: u32, length: usize, cut: &Cut, seen: &Seen, number: u64, then: Time) {
        if (self.pool.left() as usize) < cut.count() {
            self.pool.give(whole);
            self.listener.tally.losses.no_room += 1;
            return;
        }
        let groups = Rc::clone(self.groups.get_or_insert_with(|| Groups::new(self.pool.rooms())));
        let group = groups.borrow_mut().open();
        let mut offered = 0;
        while offered < cut.count() && groups.borrow_mut().enter(group) {
            let index = offered;
            offered += 1;
            let room = self.pool.take().expect("there are as many, and what leaves gives rooms back");
            let (from, to) = self.pool.two(whole, room);
            let bytes = cut.write(&from[..length], index, to);
            let mut meta = seen.meta;
            meta.bytes = self.looker.counted((bytes - cut.header_at()) as u32);
            meta.offset = meta.offset.saturating_add(cut.place(index).start as u32);
            let ip_at = cut.header_at() as u16;
            let frame = Frame { room, length: bytes as u32, number, ip_at, group };
            self.enter(Packet { meta, payload: frame }, seen.tuple, then);
        }
        groups.borrow_mut().close(group);
        self.pool.give(whole);
        self.fragments.was_cut(offered, cut.count());
    }

    /// A packet enters the discipline, and the link is brought up to now.
    fn enter(&mut self, pkt: Packet<Frame>, tuple: Option<FiveTuple>, then: Time) {
        self.listener.tally.arrived(pkt.meta.flow, tuple, pkt.meta.bytes);
        self.port.offer(pkt, then, &mut self.listener);
        self.recycle(then);
        // The arrival may change what the discipline answers.
        self.ask = self.port.free_at().max(then);
        self.advance(then);
    }

    /// Brings the link up to `until`: every packet that it would have taken by then is taken, at its time.
    pub fn advance(&mut self, until: Time) {
        while self.ask <= until {
            let then = self.ask.max(self.at);
            self.at = then;
            let next = self.port.pull(then, &mut self.listener);
            self.recycle(then);
            self.ask = match next {
                Next::Packet(pkt) => {
                    self.denied = None;
                    self.depart(pkt, then);
                    self.port.free_at()
                }
                Next::At(at) => {
                    assert!(
                        at > then,
                        "the discipline asks to be asked again at {at}, but it is {then} already"
                    );
                    at
                }
                Next::Empty => {
                    self.denied = match self.port.books().held().packets {
                        0 => None,
                        _ => self.denied.or(Some(then)),
                    };
                    Time::NEVER
                }
            };
        }
    }

    /// It is now so late: gives up the link's time that is too long ago, and looks after the queue.
    ///
    /// # Panics
    /// When the queue holds packets and says that it is empty, for [`STUCK`].
    pub fn catch_up(&mut self, now: Time) {
        let floor = Time::ZERO + now.since(Time::ZERO).saturating_sub(CATCH_UP);
        if self.ask < floor {
            let tally = &mut self.listener.tally;
            tally.stalls += 1;
            tally.stalled += floor.since(self.ask);
            tally.longest_stall = tally.longest_stall.max(floor.since(self.ask));
            self.ask = floor;
        }
        if let Some(since) = self.denied {
            let held = self.port.books().held().packets;
            assert!(
                now.since(Time::ZERO) < since.since(Time::ZERO) + STUCK,
                "the queue is stuck: it holds {held} packets and has let none go for {STUCK}"
            );
            // Perhaps time helps.
            self.ask = self.ask.min(now);
        }
    }

    /// A packet leaves the discipline for the link.
    fn depart(&mut self, pkt: Packet<Frame>, begin: Time) {
        let Frame { room, length, ip_at, group, .. } = pkt.payload;
        let mut marked = false;
        if pkt.meta.ecn == Ecn::Marked {
            let packet = &mut self.pool.room_mut(room)[usize::from(ip_at)..length as usize];
            if group > 0 {
                wire::fragment::mark(packet);
            }
            marked = group > 0 || wire::ecn::mark(packet) == wire::ecn::Marked::Now;
        }
        if let Some(tap) = &mut self.tap {
            let bytes = &self.pool.room(room)[..length as usize];
            tap.frame(bytes, Fate::Sent { marked }, self.clock.to_wall_ns(begin));
        }
        if !self.line.enter(room, length, begin, self.port.free_at()) {
            self.listener.tally.losses.line += 1;
            self.port.lose(pkt, DropReason::Wire, begin, &mut self.listener);
            self.recycle(begin);
        }
    }

    /// Gives back the rooms of what was dropped.
    #[inline]
    fn recycle(&mut self, now: Time) {
        if self.listener.dropped.is_empty() {
            return;
        }
        for (frame, why) in self.listener.dropped.drain(..) {
            if let Some(tap) = &mut self.tap {
                let bytes = &self.pool.room(frame.room)[..frame.length as usize];
                tap.frame(bytes, Fate::Dropped(why), self.clock.to_wall_ns(now));
            }
            self.pool.give(frame.room);
        }
    }

    /// Sends what is due; false when the interface takes no more for the moment.
    pub fn flush(&mut self, mut now: Time, sender: &mut dyn Sender) -> bool {
        loop {
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            let mut count = 0;
            for held in self.line.due(now, BATCH) {
                batch[count] = &self.pool.room(held.room)[..held.length as usize];
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
            self.listener.tally.sends += 1;
            now = now.max(self.clock.now());
            for _ in 0..sent {
                let Some(held) = self.line.sent() else { break };
                self.listener.tally.went_out(now.since(held.due.min(now)));
                self.pool.give(held.room);
            }
            if refused {
                self.listener.tally.losses.unsent += 1;
                if let Some(held) = self.line.sent() {
                    self.pool.give(held.room);
                }
            } else if sent < count {
                return false;
            }
        }
    }

    /// Changes something.
    pub fn obey(&mut self, order: Order) {
        let rate = match order {
            Order::Line(line) => {
                self.line.set(line);
                None
            }
            Order::Cut(size) => {
                self.fragments.cut_to(size);
                let first = self.groups.is_none() && self.fragments.cuts();
                self.groups = self.groups.take().or(first.then(|| Groups::new(self.pool.rooms())));
                // The discipline that runs does not know that fragments go together.
                first.then(|| self.port.rate())
            }
            Order::Join(join) => {
                self.fragments.join(join);
                None
            }
            Order::Rate(rate) => Some(rate),
            Order::Reserve(change) => {
                let key = self.looker.keyed_hash(change.tuple());
                if let Some(gate) = &mut self.gate {
                    gate.change(key, change);
                }
                return;
            }
            Order::Frame(bytes) => {
                let (length, now) = (bytes.len() as u32, self.clock.now());
                let bytes = &bytes[..];
                let frame = Arrival { bytes, vlan: None, wall_ns: 0, length, checksum_missing: false };
                // What keeps the network going, as RFC 4594 has it.
                return self.offer(&frame, now, Some(0));
            }
            Order::Qdisc(build) => {
                self.build = build;
                Some(self.port.rate())
            }
        };
        if let Some(rate) = rate {
            self.port.set_rate(rate);
            self.port.replace(built(&mut self.build, rate, self.groups.as_ref()));
        }
        self.listener.tally.changes += 1;
    }

    /// Time begins anew when it is old and nothing is held that carries times.
    pub fn rebase(&mut self, now: Time) {
        if !self.clock.is_old(now) || self.port.books().held() != Backlog::ZERO || self.ask != Time::NEVER {
            return;
        }
        let (id, rate, books) = (self.port.id(), self.port.rate(), *self.port.books());
        self.earlier = sum(&self.earlier, &books);
        self.earlier_time += now.since(Time::ZERO);
        self.port = Port::new(id, built(&mut self.build, rate, self.groups.as_ref()), rate);
        self.clock = self.clock.restart();
        self.line.rebase(now);
        self.fragments.rebase(now);
        self.listener.tally.rebase();
        self.at = Time::ZERO;
    }

    /// When something is to be done next without an arrival.
    pub fn next(&self) -> Option<Time> {
        let ask = (self.ask != Time::NEVER).then_some(self.ask);
        match (ask, self.line.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// Whether the transmitter is sending.
    pub fn busy(&self, now: Time) -> bool {
        self.ask != Time::NEVER && self.port.free_at() > now
    }

    /// Frames that are here: queued, or on the line.
    pub fn holds(&self) -> u64 {
        self.port.books().held().packets + self.line.len() as u64
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
    /// Whether it joins fragments.
    pub fn joins(&self) -> bool {
        self.fragments.joins()
    }
    /// What it counts.
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.listener.tally
    }

    /// Tells its probe how it stands.
    pub fn sample(&mut self, now: Time) {
        if self.listener.probe.is_some() {
            // A frame that the kernel stamped before now may be read later, and a frame of our own may have come after now was
            // read. Times that the probe hears never go back.
            self.at = self.at.max(now);
            self.port.sample(self.at, &mut self.gauges, &mut self.listener);
        }
    }

    /// The picture of now.
    pub fn tell(&mut self, now: Time, status: &mut Status) {
        self.listener.tally.roll(now);
        self.listener.tally.tell(status);
        status.uptime = self.earlier_time + now.since(Time::ZERO);
        status.rate = self.port.rate();
        status.books = sum(&self.earlier, self.port.books());
        status.held = self.port.books().held();
        status.on_line = self.line.len() as u64;
        status.fragments = self.fragments.tell(now);
        status.rooms = [self.pool.left(), self.pool.least(), self.pool.rooms()];
        status.leaving = self.port.leaving();
        self.port.sample(now, &mut self.gauges, &mut ());
        status.gauges.clone_from(&self.gauges);
    }

    /// The end: drops what is held, and gives its probe back.
    pub fn finish(mut self, status: &mut Status) -> Option<Box<dyn Probe<Frame> + Send>> {
        let now = self.clock.now().max(self.at);
        self.port.reset(now, &mut self.listener);
        self.recycle(now);
        self.listener.tally.roll(now + Span::s(1));
        self.tell(now, status);
        self.listener.probe
    }
}

/// A discipline for this rate; where frames are cut, one whose fragments go together.
fn built(build: &mut Build, rate: Rate, groups: Option<&Rc<RefCell<Groups>>>) -> Box<dyn Qdisc<Frame>> {
    let qdisc = build(rate);
    match groups {
        Some(groups) => Box::new(Together::new(qdisc, Rc::clone(groups))),
        None => qdisc,
    }
}

fn sum(a: &Books, b: &Books) -> Books {
    Books {
        arrived: a.arrived.plus(b.arrived),
        sent: a.sent.plus(b.sent),
        dropped: a.dropped.plus(b.dropped),
        marked: a.marked + b.marked,
    }
}

/// The loop of a direction. Returns when it was asked to stop, and when it was declared to have failed: then
/// another thread forwards already, and each frame would be sent twice.
///
/// # Errors
/// What the system says when the interface cannot be read at all any more.
pub fn run(
    core: &mut Core,
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut shown = Time::ZERO;
    let mut draining = None;
    let mut picture = shared.picture();
    while !shared.has_failed() {
        let mut now = core.clock().now();
        if shared.has_orders() {
            for order in shared.take_orders() {
                core.obey(order);
            }
        }
        core.catch_up(now);
        let mut came = 0;
        if draining.is_none() {
            came = receiver.receive(4 * BATCH, &mut |arrival| core.arrive(&arrival, now))?;
            core.tally().receives += u64::from(came > 0);
        }
        core.advance(now);
        let out_full = !core.flush(now, sender) && core.next().is_some_and(|next| next <= now);
        match shared.stop() {
            Stop::No => {}
            Stop::Drain if core.holds() > 0 && draining.is_none_or(|end| now < end) => {
                draining.get_or_insert(now + shared.patience());
            }
            Stop::Drain | Stop::Now => return Ok(()),
        }
        if now.since(Time::ZERO) >= shown.since(Time::ZERO) + SHOW || now < shown {
            shown = now;
            core.tally().losses.ring += receiver.missed();
            core.clock.compare();
            core.sample(now);
            if receiver.is_gone() {
                shared.mark_removed(End::From);
            }
            if core.out_gone {
                shared.mark_removed(End::To);
            }
            // Painted outside of the lock: a discipline that hangs while it is asked would keep it.
            core.tell(now, &mut picture);
            shared.show(|shown| std::mem::swap(shown, &mut picture), core.joins());
            core.rebase(now);
            now = core.clock().now();
            shown = shown.min(now);
        }
        if came == 4 * BATCH {
            continue;
        }
        wait(core, receiver, sender, out_full, now, shared);
    }
    Ok(())
}

/// Sleeps until something is to be done.
fn wait(
    core: &mut Core,
    receiver: &mut dyn Receiver,
    sender: &dyn Sender,
    out_full: bool,
    now: Time,
    shared: &Arc<Shared>,
) {
    let next = core.next();
    if core.busy(now) && !out_full {
        // Arrivals can wait in the ring: they are stamped, and nothing can leave before the link is free.
        let until = next.unwrap_or(now + AT_MOST).max(now + TOGETHER).min(now + AT_MOST);
        let ns = core.clock().to_monotonic_ns(until);
        let until = TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        // An interrupted sleep is only a shorter one.
        let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until);
        return;
    }
    // SAFETY: both descriptors stay open as long as the devices, which outlive this call.
    let (come, go) = unsafe { (BorrowedFd::borrow_raw(receiver.fd()), BorrowedFd::borrow_raw(sender.fd())) };
    let mut fds = [PollFd::new(come, PollFlags::POLLIN), PollFd::new(go, PollFlags::POLLOUT)];
    let watched = if out_full { &mut fds[..] } else { &mut fds[..1] };
    let until = match next {
        Some(_) if out_full => now + AT_MOST,
        Some(next) => next.max(now).min(now + IDLE),
        None => now + IDLE,
    };
    let span = until.since(core.clock().now().min(until)).as_ps() / 1000;
    let timeout = TimeSpec::new((span / 1_000_000_000) as i64, (span % 1_000_000_000) as i64);
    let _ = ppoll(watched, Some(timeout), None);
    let failed = fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if failed {
        if receiver.recover() {
            core.tally().downs += 1;
        }
        // An interface that is gone must not make the thread spin.
        let pause = TimeSpec::new(0, 10_000_000);
        let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &pause);
    }
    shared.beat();
}

#[cfg(test)]
mod tests;
