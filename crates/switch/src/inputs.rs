//! Arrivals at the inputs, slot by slot of the fabric.
//!
//! A link delivers one cell in each of its slots. The fabric takes one cell in each of its own slots, which
//! are shorter where it is faster. [`Begin`] gives the time, in ticks, at which a packet may start to cross.
//! The packet is passed to the fabric in the first slot of the fabric that starts then or later, independent
//! of the slots of the link.

use crate::clock::Clock;
use crate::notes::Note;
use crate::packet::{Class, Packet, PacketKind};
use crate::per_port::PerPort;
use crate::port_set::PortSet;
use crate::shared::{Arriving, Shared};
use crate::traffic::{Arrival, Source, TrafficSources};

/// The time at which a packet may start to cross, and the time from which its delay counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// As soon as the fabric cannot overtake the link: at the earliest such time, the last cell starts to
    /// cross in the tick in which it arrives. The delay counts from the first cell.
    Paced,
    /// With the first cell, for fabrics that take cells one by one. The delay counts from that cell.
    FirstCell,
    /// With the last cell. The delay counts from that cell.
    LastCell,
    /// With the last cell. The delay counts from the first cell.
    Complete,
}

/// Packets that are drawn from a source at a time.
const AHEAD: usize = 8;

/// Slots of the fabric in the calendar of due packets.
const SLOTS: u64 = 256;

/// A packet that has been drawn and not passed to the fabric.
#[derive(Clone, Copy, Default)]
struct Next {
    /// The packet.
    packet: Packet,
    /// The slot of the fabric in which it may start to cross.
    due: u64,
    /// The slot of the link in which its last cell arrives.
    last: u64,
}

/// The packets that were drawn from a source.
#[derive(Clone, Copy, Default)]
struct DrawnPackets {
    /// The packets, in order of arrival.
    packets: [Next; AHEAD],
    /// Number of them.
    count: usize,
    /// Number of them that have been passed to the fabric.
    passed: usize,
    /// Number of them that are in the calendar.
    entered: usize,
}

/// The inputs with their sources and the next packets of each.
pub(crate) struct Inputs<const W: usize> {
    sources: Vec<Box<dyn Source>>,
    drawn: PerPort<DrawnPackets, W>,
    /// The calendar. By slot of the fabric, modulo [`SLOTS`]: the inputs at which a packet is due.
    due: Box<[PortSet<W>; SLOTS as usize]>,
    /// Inputs with a drawn packet that is due after the end of the calendar.
    later: PortSet<W>,
    /// Buffer for drawing.
    fresh: Vec<Arrival>,
    /// Kinds of packets, by number.
    kinds: Vec<PacketKind>,
    /// True if the cells of a packet arrive one after the other: [`TrafficSources::serial`].
    serial: bool,
    /// Ticks from the first cell of a packet to its start, and to its arrival, for each slot of the link
    /// until its last cell.
    pace: (u64, u64),
    /// Length of a slot of a link, in ticks.
    slot_ticks: u64,
    /// Length of a slot of the fabric, in ticks.
    fabric_ticks: u64,
}

impl<const W: usize> Inputs<W> {
    pub fn new(offered: TrafficSources, begin: Begin, clock: &Clock) -> Inputs<W> {
        let TrafficSources { kinds, sources, serial, .. } = offered;
        let ports = sources.len();
        let Clock { slot_ticks, fabric_ticks, .. } = *clock;
        let mut inputs = Inputs {
            sources,
            drawn: PerPort::new(DrawnPackets::default()),
            due: Box::new([PortSet::EMPTY; SLOTS as usize]),
            later: PortSet::EMPTY,
            fresh: Vec::with_capacity(AHEAD),
            kinds,
            serial,
            pace: match begin {
                Begin::Paced => (slot_ticks - fabric_ticks, 0),
                Begin::FirstCell => (0, 0),
                Begin::LastCell => (slot_ticks, slot_ticks),
                Begin::Complete => (slot_ticks, 0),
            },
            slot_ticks,
            fabric_ticks,
        };
        (0..ports).for_each(|input| inputs.draw(input, 0));
        inputs
    }

    /// Draws the next packets of an input. `now` is the first slot of the fabric in which one can be due.
    #[inline(never)]
    fn draw(&mut self, input: usize, now: u64) {
        self.fresh.clear();
        self.sources[input].fill(&mut self.fresh);
        let (slot_ticks, fabric_ticks, serial) = (self.slot_ticks, self.fabric_ticks, u64::from(self.serial));
        let (to_begin, to_arrival) = self.pace;
        let kinds = &self.kinds[..];
        let drawn = &mut self.drawn[input];
        (drawn.count, drawn.passed, drawn.entered) = (self.fresh.len(), 0, 0);
        for (next, Arrival { first, to, kind }) in drawn.packets.iter_mut().zip(self.fresh.iter().copied()) {
            let cells = kinds[usize::from(kind)].cells;
            let more = serial * (u64::from(cells) - 1);
            let (earliest, arrived) =
                (first * slot_ticks + more * to_begin, first * slot_ticks + more * to_arrival);
            // The first slot of the fabric that does not begin earlier. Without speedup, the usual case, no
            // division is needed.
            let due = if fabric_ticks == 1 { earliest } else { earliest.div_ceil(fabric_ticks) };
            *next = Next { packet: Packet { arrived, cells, kind, to }, due, last: first + more };
        }
        self.enter(input, now);
    }

    /// Enters the drawn packets of an input into the calendar, up to its end. No two packets of an input are
    /// due in one slot of the fabric, because their earliest times are at least a slot of the link apart.
    fn enter(&mut self, input: usize, now: u64) {
        let drawn = &mut self.drawn[input];
        for next in &drawn.packets[drawn.entered..drawn.count] {
            if next.due - now >= SLOTS {
                break;
            }
            self.due[(next.due % SLOTS) as usize].insert(input);
            drawn.entered += 1;
        }
        self.later.remove(input);
        self.later.insert_if(input, drawn.entered < drawn.count);
    }

    /// Removes and returns the inputs at which a packet is due in `slot`. Must be called for every slot of
    /// the fabric in turn.
    #[inline]
    pub fn due(&mut self, slot: u64) -> PortSet<W> {
        if slot.is_multiple_of(SLOTS / 2) {
            for input in self.later {
                self.enter(input, slot);
            }
        }
        std::mem::replace(&mut self.due[(slot % SLOTS) as usize], PortSet::EMPTY)
    }

    /// Removes and returns the packet that is due at an input, and its class.
    #[inline(always)]
    pub fn pass(&mut self, input: usize, shared: &mut Shared<W>) -> (Packet, Class) {
        let drawn = &mut self.drawn[input];
        let Next { packet, last, .. } = drawn.packets[drawn.passed % AHEAD];
        drawn.passed += 1;
        if drawn.passed == drawn.count {
            // `due` has already emptied the calendar for this slot, so the next slot is the first possible
            // one.
            self.draw(input, shared.clock.fabric + 1);
        }
        let class = self.kinds[usize::from(packet.kind)].class;
        shared.arriving[input] = Arriving { to: packet.to, last };
        shared.statistics.on_arrival(input, packet.cells);
        shared.notes.note(Note::Arrive(input as u16, packet.to, packet.cells, class));
        (packet, class)
    }
}
