//! Combined input and output queueing: each cell has the time at which output queueing would send it as its
//! deadline. Cells wait at the inputs, and again at the outputs, because the fabric is faster than the links.
//!
//! The header of [`cioq`](crate::arbiters::cioq) explains the algorithm. A slot of the fabric is one of its
//! phases.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Rules;
use crate::notes::Note;
use crate::packet::{Class, Packet};
use crate::shared::Shared;
use crate::statistics::Longest;

/// A cell at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// The slot in which output queueing would send it. It is different for each cell of an output.
    deadline: u64,
    /// Index of its packet in [`Cioq::packets`].
    packet: u32,
    /// Its output.
    to: u16,
}

/// A packet whose cells have not all left.
#[derive(Clone, Copy, Debug)]
struct Parts {
    packet: Packet,
    /// Cells that have not crossed.
    to_cross: u32,
    /// Cells that have not left.
    to_leave: u32,
}

/// The last packet of an input, whose cells may not all have arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Arriving {
    /// Index of the packet in [`Cioq::packets`].
    packet: u32,
    /// Its output.
    to: u16,
    /// Cells that have not arrived.
    cells: u64,
    /// The slot of the link in which its last cell arrives.
    last: u64,
}

pub(super) struct Cioq {
    /// By input: its cells, the most urgent first.
    inputs: Vec<Vec<Cell>>,
    /// By input: the packet that is arriving.
    arriving: Vec<Arriving>,
    /// By output: deadline and packet of each cell that has crossed, the smallest deadline first.
    outputs: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    /// By output: the first slot in which the link would be free with output queueing.
    free: Vec<u64>,
    /// By output: cells at all inputs for it.
    requested: Vec<u64>,
    /// Packets in the switch, and unused entries.
    packets: Vec<Parts>,
    /// Indices of unused entries in `packets`.
    unused: Vec<u32>,
    /// The matching of the present slot.
    stable: Stable,
    /// The tick at which the links send next.
    sending: u64,
}

impl Cioq {
    pub fn new(ports: usize) -> Cioq {
        Cioq {
            inputs: vec![Vec::new(); ports],
            arriving: vec![Arriving::default(); ports],
            outputs: vec![BinaryHeap::new(); ports],
            free: vec![0; ports],
            requested: vec![0; ports],
            packets: Vec::new(),
            unused: Vec::new(),
            stable: Stable::new(ports),
            sending: 0,
        }
    }

    /// Inserts the cells of an input that have arrived by slot `slot` into its list.
    fn insert<const W: usize>(&mut self, input: usize, slot: u64, shared: &mut Shared<W>) {
        let Arriving { packet, to, cells, last } = self.arriving[input];
        let later = last.saturating_sub(slot).min(cells);
        let output = usize::from(to);
        for _ in later..cells {
            let deadline = self.free[output].max(slot);
            self.free[output] = deadline + 1;
            // The cushion of the cell: cells that have crossed and will leave before it. These are all cells
            // at the output, because deadlines of an output only grow.
            let list = &mut self.inputs[input];
            let index = self.outputs[output].len().min(list.len());
            list.insert(index, Cell { deadline, packet, to });
            self.requested[output] += 1;
            shared.statistics.queue_has(list.len() as u64);
        }
        self.arriving[input].cells = later;
    }

    /// Sends the most urgent cell of each output on its link.
    fn send<const W: usize>(&mut self, shared: &mut Shared<W>) {
        for queue in &mut self.outputs {
            shared.links.record_backlog(queue.len() as u64);
            let Some(Reverse((_, index))) = queue.pop() else { continue };
            let parts = &mut self.packets[index as usize];
            parts.to_leave -= 1;
            if parts.to_leave == 0 {
                let Packet { arrived, kind, .. } = parts.packet;
                shared.statistics.on_departure(kind, arrived, self.sending + shared.clock.slot_ticks);
                self.unused.push(index);
            }
        }
    }
}

impl<const W: usize> Rules<W> for Cioq {
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, shared: &mut Shared<W>) {
        let parts = Parts { packet, to_cross: packet.cells, to_leave: packet.cells };
        let index = match self.unused.pop() {
            Some(index) => {
                self.packets[index as usize] = parts;
                index
            }
            None => {
                self.packets.push(parts);
                self.packets.len() as u32 - 1
            }
        };
        let last = shared.arriving[input].last;
        debug_assert_eq!(self.arriving[input].cells, 0, "packets of a link arrive one after the other");
        self.arriving[input] =
            Arriving { packet: index, to: packet.to, cells: u64::from(packet.cells), last };
        self.insert(input, shared.clock.slot - 1, shared);
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        for input in 0..self.inputs.len() {
            if self.arriving[input].cells > 0 {
                self.insert(input, shared.clock.slot - 1, shared);
            }
        }
        let wanted = self.requested.iter().filter(|cells| **cells > 0).count() as u64;
        let end = shared.clock.end();
        self.stable.solve(&self.inputs);
        let mut crossed = 0;
        for (output, &(input, at)) in self.stable.kept.iter().enumerate() {
            if input == NO_INPUT {
                continue;
            }
            crossed += 1;
            let cell = self.inputs[usize::from(input)].remove(at as usize);
            self.requested[output] -= 1;
            self.outputs[output].push(Reverse((cell.deadline, cell.packet)));
            let parts = &mut self.packets[cell.packet as usize];
            parts.to_cross -= 1;
            shared.notes.note(Note::Cross(input, output as u16, parts.to_cross));
            if parts.to_cross == 0 {
                let Packet { arrived, kind, .. } = parts.packet;
                shared.statistics.left_input(usize::from(input), kind);
                shared.statistics.complete(output, kind, arrived, end);
            }
        }
        shared.account(0, crossed, 0, 0, wanted - crossed);
        // Cells that cross in the next slot of the fabric are too late for slots of the links that begin
        // before its end.
        while self.sending < end + shared.clock.fabric_ticks {
            if self.sending >= end {
                self.send(shared);
            }
            self.sending += shared.clock.slot_ticks;
        }
    }

    fn longest(&self) -> Longest {
        let cells = self.inputs.iter().map(|list| list.len() as u64).max().unwrap_or(0);
        Longest { cells, short: 0 }
    }

    fn pointers(&self, _: &mut dyn FnMut(&'static str, &'static str, &[u16])) {}
}

/// No input.
const NO_INPUT: u16 = u16::MAX;

/// Stable matchings (Gale and Shapley): each input offers the cells of its list from the first on, and an
/// output keeps the offer with the smallest deadline. For every cell that does not cross, a cell ahead of it
/// in the list of its input crosses, or a cell for its output with a smaller deadline.
struct Stable {
    /// By output: the input whose offer it keeps, and the index of the cell in the list.
    kept: Vec<(u16, u32)>,
    /// By output: the deadline of that cell.
    deadlines: Vec<u64>,
    /// By input: the index of the next cell that it offers.
    next: Vec<u32>,
}

impl Stable {
    fn new(ports: usize) -> Stable {
        Stable { kept: vec![(NO_INPUT, 0); ports], deadlines: vec![u64::MAX; ports], next: vec![0; ports] }
    }

    fn solve(&mut self, inputs: &[Vec<Cell>]) {
        self.kept.fill((NO_INPUT, 0));
        self.deadlines.fill(u64::MAX);
        self.next.fill(0);
        for first in 0..inputs.len() {
            // A rejected input offers its next cell, until an output without an offer keeps one or the input
            // has no more.
            let mut input = first;
            while let Some(cell) = inputs[input].get(self.next[input] as usize) {
                let index = self.next[input];
                self.next[input] += 1;
                let output = usize::from(cell.to);
                if cell.deadline < self.deadlines[output] {
                    self.deadlines[output] = cell.deadline;
                    let (before, _) = std::mem::replace(&mut self.kept[output], (input as u16, index));
                    if before == NO_INPUT {
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
        fn no_cell_that_stays_could_replace_a_pair(inputs in lists()) {
            let mut stable = Stable::new(5);
            stable.solve(&inputs);
            let mut crossing = [None; 5];
            for (output, &(input, index)) in stable.kept.iter().enumerate() {
                if input != NO_INPUT {
                    let cell = inputs[usize::from(input)][index as usize];
                    prop_assert_eq!(usize::from(cell.to), output);
                    prop_assert_eq!(crossing[usize::from(input)].replace(index), None, "an input is in two pairs");
                    prop_assert_eq!(stable.deadlines[output], cell.deadline);
                }
            }
            for (list, crossing) in inputs.iter().zip(crossing) {
                for (index, cell) in (0..).zip(list) {
                    let ahead = crossing.is_some_and(|crossing| crossing <= index);
                    let before = stable.deadlines[usize::from(cell.to)] <= cell.deadline;
                    prop_assert!(ahead || before, "{:?} could cross", cell);
                }
            }
        }
    }
}
