//! Combined input and output queueing: cells wait at the inputs, each with the time at which output queueing would send it,
//! and again at the outputs, because the fabric is faster than the links.
//!
//! The header of [`cioq`](crate::arbiters::cioq) explains the rule. A slot of the fabric is one of its phases.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Fabric;
use crate::notes::Note;
use crate::packet::{Class, Packet};
use crate::shared::Shared;

/// A cell at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// The slot in which output queueing would have sent it on: no two cells of an output have the same.
    deadline: u64,
    /// Its packet, by its place in [`Cioq::packets`].
    packet: u32,
    to: u16,
}

/// A packet of which some cells have not left yet.
#[derive(Clone, Copy, Debug)]
struct Parts {
    packet: Packet,
    /// Cells that have not crossed.
    to_cross: u32,
    /// Cells that have not left.
    to_leave: u32,
}

/// A packet of which some cells have not come yet.
#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    packet: u32,
    to: u16,
    cells: u64,
    /// The slot of its last cell.
    last: u64,
}

pub(super) struct Cioq {
    /// By input: its cells, the most urgent first.
    inputs: Vec<Vec<Cell>>,
    /// By input: what is still to come of its last packet.
    coming: Vec<Coming>,
    /// By output: cells that have crossed, the smallest deadline first.
    outputs: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    /// By output: the first slot in which output queueing would have its link free.
    free: Vec<u64>,
    /// By output: cells for it at all inputs.
    asked: Vec<u64>,
    packets: Vec<Parts>,
    /// Places of `packets` that are free.
    places: Vec<u32>,
    stable: Stable,
    /// The tick at which the links send next.
    sending: u64,
}

impl Cioq {
    pub fn new(ports: usize) -> Cioq {
        Cioq {
            inputs: vec![Vec::new(); ports],
            coming: vec![Coming::default(); ports],
            outputs: vec![BinaryHeap::new(); ports],
            free: vec![0; ports],
            asked: vec![0; ports],
            packets: Vec::new(),
            places: Vec::new(),
            stable: Stable::new(ports),
            sending: 0,
        }
    }

    /// Puts the cells of an input into its list that have come until now, `slot` being the present one.
    fn insert<const W: usize>(&mut self, input: usize, slot: u64, shared: &mut Shared<W>) {
        let Coming { packet, to, cells, last } = self.coming[input];
        let later = last.saturating_sub(slot).min(cells);
        let output = usize::from(to);
        for _ in later..cells {
            let deadline = self.free[output].max(slot);
            self.free[output] = deadline + 1;
            // Its cushion: the cells that will leave before it and have crossed. Deadlines grow, so that is all of them.
            let list = &mut self.inputs[input];
            let place = self.outputs[output].len().min(list.len());
            list.insert(place, Cell { deadline, packet, to });
            self.asked[output] += 1;
            shared.tally.most_queue = shared.tally.most_queue.max(list.len() as u64);
        }
        self.coming[input].cells = later;
    }

    /// The links send the most urgent cells that are at the outputs.
    fn send<const W: usize>(&mut self, shared: &mut Shared<W>) {
        for waiting in &mut self.outputs {
            shared.links.held(waiting.len() as u64);
            let Some(Reverse((_, place))) = waiting.pop() else { continue };
            let parts = &mut self.packets[place as usize];
            parts.to_leave -= 1;
            if parts.to_leave == 0 {
                let Packet { arrived, kind, .. } = parts.packet;
                shared.tally.left(kind, arrived, self.sending + shared.clock.slot_ticks);
                self.places.push(place);
            }
        }
    }
}

impl<const W: usize> Fabric<W> for Cioq {
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, shared: &mut Shared<W>) {
        let parts = Parts { packet, to_cross: packet.cells, to_leave: packet.cells };
        let place = match self.places.pop() {
            Some(place) => {
                self.packets[place as usize] = parts;
                place
            }
            None => {
                self.packets.push(parts);
                self.packets.len() as u32 - 1
            }
        };
        let last = shared.coming[input].last;
        debug_assert_eq!(self.coming[input].cells, 0, "a link brings one packet after the other");
        self.coming[input] = Coming { packet: place, to: packet.to, cells: u64::from(packet.cells), last };
        self.insert(input, shared.clock.slot - 1, shared);
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        for input in 0..self.inputs.len() {
            if self.coming[input].cells > 0 {
                self.insert(input, shared.clock.slot - 1, shared);
            }
        }
        let wanted = self.asked.iter().filter(|cells| **cells > 0).count() as u64;
        let end = shared.clock.end();
        self.stable.solve(&self.inputs);
        let mut crossed = 0;
        for (output, &(input, at)) in self.stable.held.iter().enumerate() {
            if input == NOBODY {
                continue;
            }
            crossed += 1;
            let cell = self.inputs[usize::from(input)].remove(at as usize);
            self.asked[output] -= 1;
            self.outputs[output].push(Reverse((cell.deadline, cell.packet)));
            let parts = &mut self.packets[cell.packet as usize];
            parts.to_cross -= 1;
            shared.notes.note(Note::Cross(input, output as u16, parts.to_cross));
            if parts.to_cross == 0 {
                let Packet { arrived, kind, .. } = parts.packet;
                shared.tally.gone(usize::from(input), kind);
                shared.tally.complete(output, kind, arrived, end);
            }
        }
        shared.account(0, crossed, 0, 0, wanted - crossed);
        // What crosses in the next slot of the fabric is too late for slots of the links that begin before its end.
        while self.sending < end + shared.clock.fabric_ticks {
            if self.sending >= end {
                self.send(shared);
            }
            self.sending += shared.clock.slot_ticks;
        }
    }

    fn pointers(&self, _: &mut dyn FnMut(&'static str, &'static str, &[u16])) {}
}

/// No input.
const NOBODY: u16 = u16::MAX;

/// Stable matchings (Gale and Shapley): each input offers the cells of its list from the first on, an output holds on to
/// the one with the smallest deadline. Of every cell that does not cross, another one ahead of it in its input's list
/// crosses, or one for its output with a smaller deadline.
struct Stable {
    /// By output: the input that it holds on to, and the cell's place in the list.
    held: Vec<(u16, u32)>,
    /// By output: the deadline of that cell.
    deadlines: Vec<u64>,
    /// By input: the place of the next cell that it offers.
    next: Vec<u32>,
}

impl Stable {
    fn new(ports: usize) -> Stable {
        Stable { held: vec![(NOBODY, 0); ports], deadlines: vec![u64::MAX; ports], next: vec![0; ports] }
    }

    fn solve(&mut self, inputs: &[Vec<Cell>]) {
        self.held.fill((NOBODY, 0));
        self.deadlines.fill(u64::MAX);
        self.next.fill(0);
        for first in 0..inputs.len() {
            // Who is turned away offers its next cell, until one is taken where nobody was held, or it has no more.
            let mut input = first;
            while let Some(cell) = inputs[input].get(self.next[input] as usize) {
                let place = self.next[input];
                self.next[input] += 1;
                let output = usize::from(cell.to);
                if cell.deadline < self.deadlines[output] {
                    self.deadlines[output] = cell.deadline;
                    let (before, _) = std::mem::replace(&mut self.held[output], (input as u16, place));
                    if before == NOBODY {
                        break;
                    }
                    input = usize::from(before);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lists of some inputs, with outputs and deadlines as drawn; deadlines differ within an output.
    fn lists() -> impl Strategy<Value = Vec<Vec<Cell>>> {
        let cells = prop::collection::vec((0usize..5, 0u16..5), 0..40);
        (cells, any::<prop::sample::Index>()).prop_map(|(cells, turn)| {
            let mut inputs = vec![Vec::new(); 5];
            let count = cells.len() as u64;
            for (number, (input, to)) in (0..).zip(cells) {
                // Neither ascending nor descending along the lists.
                let deadline = (number * 7 + turn.index(40) as u64) % 41 + number / 41 * count;
                inputs[input].push(Cell { deadline, packet: 0, to });
            }
            inputs
        })
    }

    proptest! {
        #[test]
        fn nobody_would_rather_have_another(inputs in lists()) {
            let mut stable = Stable::new(5);
            stable.solve(&inputs);
            let mut crossing = [None; 5];
            for (output, &(input, place)) in stable.held.iter().enumerate() {
                if input != NOBODY {
                    let cell = inputs[usize::from(input)][place as usize];
                    prop_assert_eq!(usize::from(cell.to), output);
                    prop_assert_eq!(crossing[usize::from(input)].replace(place), None, "an input is in two pairs");
                    prop_assert_eq!(stable.deadlines[output], cell.deadline);
                }
            }
            for (list, crossing) in inputs.iter().zip(crossing) {
                for (place, cell) in (0..).zip(list) {
                    let ahead = crossing.is_some_and(|crossing| crossing <= place);
                    let before = stable.deadlines[usize::from(cell.to)] <= cell.deadline;
                    prop_assert!(ahead || before, "{:?} could cross", cell);
                }
            }
        }
    }
}
