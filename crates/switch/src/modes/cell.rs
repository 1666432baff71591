//! Cell mode: every port is matched again in every slot, and a match carries one cell. Outputs reassemble
//! packets, with one buffer for each input, since cells of different inputs interleave.

use super::{ArbiterHandle, Rules};
use crate::arbiter::{Demand, Matching};
use crate::notes::Note;
use crate::packet::{Class, Packet};
use crate::queues::Voqs;
use crate::shared::{Shared, VoqWeights};
use crate::statistics::Longest;

pub(super) struct Cell<const W: usize> {
    voqs: Voqs<W>,
    arbiter: ArbiterHandle<W>,
    matching: Matching<W>,
}

impl<const W: usize> Cell<W> {
    pub fn new(ports: usize, arbiter: ArbiterHandle<W>) -> Cell<W> {
        Cell { voqs: Voqs::new(ports), arbiter, matching: Matching::new() }
    }
}

impl<const W: usize> Rules<W> for Cell<W> {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, shared: &mut Shared<W>) {
        self.arbiter.on_arrival(input, usize::from(packet.to));
        let cells = self.voqs.push(input, usize::from(packet.to), packet);
        shared.statistics.queue_has(cells);
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        let wanted = self.voqs.requests.outputs;
        self.matching.clear();
        if !wanted.is_empty() {
            let weights =
                VoqWeights { voqs: &self.voqs, arriving: Some(&shared.arriving), slot: shared.clock.slot };
            let demand = Demand {
                requests: &self.voqs.requests,
                inputs: self.voqs.requests.inputs,
                outputs: wanted,
                weights: &weights,
                tick: shared.clock.tick,
                slot_ticks: shared.clock.fabric_ticks,
            };
            self.arbiter.decide(&demand, &mut self.matching, &mut shared.notes);
            for &(input, output) in self.matching.pairs() {
                let packet = self.voqs.pop_cell(usize::from(input), usize::from(output));
                shared.notes.note(Note::Cross(input, output, packet.err().unwrap_or(0)));
                if let Ok(packet) = packet {
                    shared.complete(usize::from(input), packet);
                }
            }
        }
        let unmatched = (wanted & !self.matching.outputs).count() as u64;
        shared.account(0, self.matching.pairs().len() as u64, 0, 0, unmatched);
    }

    fn longest(&self) -> Longest {
        Longest { cells: self.voqs.longest(), short: 0 }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16])) {
        self.arbiter.pointers(&mut |name, at| visit("", name, at));
    }
}
