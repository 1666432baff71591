//! One queue for each input. The first packet blocks all behind it, even those whose outputs are free
//! (head-of-line blocking). Virtual output queues were invented to remove that.
//!
//! M. Karol, M. Hluchyj, S. Morgan, Input Versus Output Queueing on a Space-Division Packet Switch, IEEE
//! Transactions on Communications 35(12), 1987.

use super::{ArbiterHandle, Connections, Rules};
use crate::arbiter::{Demand, Matching};
use crate::notes::Note;
use crate::packet::{Class, Packet};
use crate::port_set::PortSet;
use crate::queues::Fifos;
use crate::shared::{FifoWeights, Shared};
use crate::statistics::Longest;

pub(super) struct Fifo<const W: usize> {
    fifos: Fifos<W>,
    connections: Connections<W>,
    arbiter: ArbiterHandle<W>,
    matching: Matching<W>,
    /// `true` if a match carries a cell, `false` if a packet.
    cells: bool,
}

impl<const W: usize> Fifo<W> {
    pub fn new(ports: usize, arbiter: ArbiterHandle<W>, cells: bool) -> Fifo<W> {
        Fifo {
            fifos: Fifos::new(ports),
            connections: Connections::new(),
            arbiter,
            matching: Matching::new(),
            cells,
        }
    }
}

impl<const W: usize> Rules<W> for Fifo<W> {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, shared: &mut Shared<W>) {
        self.arbiter.on_arrival(input, usize::from(packet.to));
        let cells = self.fifos.push(input, packet);
        shared.statistics.queue_has(cells);
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        let now = shared.clock.fabric;
        let requests = &self.fifos.requests;
        let wanted = requests.outputs;
        let (inputs, outputs) =
            (requests.inputs & !self.connections.inputs, wanted & !self.connections.outputs);
        self.matching.clear();
        if !inputs.is_empty() && !outputs.is_empty() {
            let weights = FifoWeights { fifos: &self.fifos };
            let demand = Demand {
                requests,
                inputs,
                outputs,
                weights: &weights,
                tick: shared.clock.tick,
                slot_ticks: shared.clock.fabric_ticks,
            };
            self.arbiter.decide(&demand, &mut self.matching, &mut shared.notes);
        }
        for &(input, output) in self.matching.pairs() {
            let input = usize::from(input);
            if !self.cells {
                let packet = self.fifos.pop(input);
                self.connections.connect(input, packet, now);
                continue;
            }
            let packet = self.fifos.pop_cell(input);
            shared.notes.note(Note::Cross(input as u16, output, packet.err().unwrap_or(0)));
            if let Ok(packet) = packet {
                shared.complete(input, packet);
            }
        }
        let crossing = if self.cells { self.matching.pairs().len() as u64 } else { self.connections.count() };
        let taken = self.connections.outputs | self.matching.outputs;
        shared.account(0, crossing, 0, 0, (wanted & !taken).count() as u64);
        self.connections.note(PortSet::EMPTY, now, &mut shared.notes);
        self.connections.end(now, |input, packet| shared.complete(input, packet));
    }

    fn longest(&self) -> Longest {
        Longest { cells: self.fifos.longest(), short: 0 }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16])) {
        self.arbiter.pointers(&mut |name, at| visit("", name, at));
    }
}
