//! What arrives at the inputs, slot by slot of the fabric.
//!
//! The links bring a cell per slot of theirs, and the fabric takes one per slot of its own, which is shorter where it is
//! faster. A packet may begin to cross at a time that its rule gives, in ticks ([`Begin`]): it is passed to the fabric at the
//! first slot of the fabric that begins then or later. Whether a slot of a link begins there does not matter.

use crate::clock::Clock;
use crate::notes::Note;
use crate::packet::{Class, Kind, Packet};
use crate::per_port::PerPort;
use crate::row::Row;
use crate::shared::{Coming, Shared};
use crate::traffic::{Arrival, Offered, Source};

/// When packets may begin to cross, and from when on their delay counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// As soon as the fabric cannot overtake the link: begun at the earliest time, the last cell crosses from the very tick on
    /// in which it is there. The delay counts from the first cell.
    Paced,
    /// With the first cell, where the fabric takes cells one by one; the delay counts from there.
    FirstCell,
    /// With the last cell; the delay counts from there.
    LastCell,
    /// With the last cell; the delay counts from the first.
    Complete,
}

/// How many packets of a source are drawn at a time.
const AHEAD: usize = 8;

/// How many slots of the fabric ahead it is known at which inputs a packet is due.
const SLOTS: u64 = 256;

/// A packet that is still to come.
#[derive(Clone, Copy, Default)]
struct Next {
    packet: Packet,
    /// The slot of the fabric in which it may begin to cross.
    due: u64,
    /// The slot of the link in which its last cell comes.
    last: u64,
}

/// What was drawn from a source.
#[derive(Clone, Copy, Default)]
struct Drawn {
    packets: [Next; AHEAD],
    count: usize,
    /// How many of them have had their turn.
    passed: usize,
    /// How many of them stand in the rows of what is due.
    entered: usize,
}

/// The inputs, and what comes next at each.
pub(crate) struct Inputs<const W: usize> {
    sources: Vec<Box<dyn Source>>,
    drawn: PerPort<Drawn, W>,
    /// By slot of the fabric, around: the inputs at which a packet is due.
    due: Box<[Row<W>; SLOTS as usize]>,
    /// Inputs of which something drawn is due too late to stand there.
    later: Row<W>,
    fresh: Vec<Arrival>,
    kinds: Vec<Kind>,
    serial: bool,
    begin: Begin,
    slot_ticks: u64,
    fabric_ticks: u64,
}

impl<const W: usize> Inputs<W> {
    pub fn new(offered: Offered, begin: Begin, clock: &Clock) -> Inputs<W> {
        let Offered { kinds, sources, serial, .. } = offered;
        let ports = sources.len();
        let mut inputs = Inputs {
            sources,
            drawn: PerPort::new(Drawn::default()),
            due: Box::new([Row::EMPTY; SLOTS as usize]),
            later: Row::EMPTY,
            fresh: Vec::with_capacity(AHEAD),
            kinds,
            serial,
            begin,
            slot_ticks: clock.slot_ticks,
            fabric_ticks: clock.fabric_ticks,
        };
        (0..ports).for_each(|input| inputs.draw(input, 0));
        inputs
    }

    /// Draws the next packets of an input, `now` being the first slot of the fabric in which one can be due.
    #[inline(never)]
    fn draw(&mut self, input: usize, now: u64) {
        self.fresh.clear();
        self.sources[input].fill(&mut self.fresh);
        let (slot_ticks, fabric_ticks) = (self.slot_ticks, self.fabric_ticks);
        let drawn = &mut self.drawn[input];
        (drawn.count, drawn.passed, drawn.entered) = (self.fresh.len(), 0, 0);
        for (next, Arrival { first, to, kind }) in drawn.packets.iter_mut().zip(self.fresh.iter().copied()) {
            let cells = self.kinds[usize::from(kind)].cells;
            let last = if self.serial { first + u64::from(cells) - 1 } else { first };
            let (first_tick, last_tick) = (first * slot_ticks, last * slot_ticks);
            let (earliest, arrived) = match self.begin {
                Begin::Paced => (first_tick + (last - first) * (slot_ticks - fabric_ticks), first_tick),
                Begin::FirstCell => (first_tick, first_tick),
                Begin::LastCell => (last_tick, last_tick),
                Begin::Complete => (last_tick, first_tick),
            };
            // The first slot of the fabric that does not begin before. Without speedup, which is usual, nothing is divided.
            let due = if fabric_ticks == 1 { earliest } else { earliest.div_ceil(fabric_ticks) };
            let packet = Packet { arrived, cells, kind, to };
            *next = Next { packet, due, last };
        }
        self.enter(input, now);
    }

    /// Enters in the rows what is due before these come around again. No two packets of an input are due in one slot of the
    /// fabric, since their earliest times are a slot of the link apart or more.
    fn enter(&mut self, input: usize, now: u64) {
        let drawn = &mut self.drawn[input];
        while drawn.entered < drawn.count {
            let due = drawn.packets[drawn.entered].due;
            if due - now >= SLOTS {
                break;
            }
            self.due[(due % SLOTS) as usize].insert(input);
            drawn.entered += 1;
        }
        self.later.remove(input);
        self.later.insert_if(input, drawn.entered < drawn.count);
    }

    /// The inputs at which a packet is due. To be asked for every slot of the fabric, one after the other.
    #[inline]
    pub fn due(&mut self, slot: u64) -> Row<W> {
        if slot.is_multiple_of(SLOTS / 2) {
            for input in self.later {
                self.enter(input, slot);
            }
        }
        std::mem::replace(&mut self.due[(slot % SLOTS) as usize], Row::EMPTY)
    }

    /// The packet that is due at an input, and its class.
    #[inline(always)]
    pub fn pass(&mut self, input: usize, shared: &mut Shared<W>) -> (Packet, Class) {
        let drawn = &mut self.drawn[input];
        let Next { packet, last, .. } = drawn.packets[drawn.passed % AHEAD];
        drawn.passed += 1;
        if drawn.passed == drawn.count {
            // What was due in this slot has been taken out already: the next one is the first.
            self.draw(input, shared.clock.fabric + 1);
        }
        let class = self.kinds[usize::from(packet.kind)].class;
        shared.coming[input] = Coming { to: packet.to, last };
        shared.tally.arrived(input, packet.cells);
        shared.notes.note(Note::Arrive(input as u16, packet.to, packet.cells, class));
        (packet, class)
    }
}
