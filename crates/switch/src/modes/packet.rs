//! Packet mode: a match carries a whole packet, and both ports are busy until its last cell has crossed. Only
//! ports at the end of a packet are matched again. Outputs need no reassembly.
//!
//! M. Ajmone Marsan, A. Bianco, P. Giaccone, E. Leonardi, F. Neri, Packet-Mode Scheduling in Input-Queued
//! Cell-Based Switches, IEEE/ACM Transactions on Networking 10(5), 2002.

use super::{ArbiterHandle, Connections, Rules};
use crate::arbiter::{Demand, Matching};
use crate::packet::{Class, Packet};
use crate::port_set::PortSet;
use crate::queues::Voqs;
use crate::shared::{Shared, VoqWeights};
use crate::statistics::Longest;

pub(super) struct PacketMode<const W: usize> {
    voqs: Voqs<W>,
    connections: Connections<W>,
    arbiter: ArbiterHandle<W>,
    matching: Matching<W>,
}

impl<const W: usize> PacketMode<W> {
    pub fn new(ports: usize, arbiter: ArbiterHandle<W>) -> PacketMode<W> {
        PacketMode {
            voqs: Voqs::new(ports),
            connections: Connections::new(),
            arbiter,
            matching: Matching::new(),
        }
    }
}

impl<const W: usize> Rules<W> for PacketMode<W> {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, shared: &mut Shared<W>) {
        self.arbiter.on_arrival(input, usize::from(packet.to));
        let cells = self.voqs.push(input, usize::from(packet.to), packet);
        shared.statistics.queue_has(cells);
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        let now = shared.clock.fabric;
        let wanted = self.voqs.requests.outputs;
        let (inputs, outputs) =
            (self.voqs.requests.inputs & !self.connections.inputs, wanted & !self.connections.outputs);
        if !inputs.is_empty() && !outputs.is_empty() {
            self.matching.clear();
            let weights =
                VoqWeights { voqs: &self.voqs, arriving: Some(&shared.arriving), slot: shared.clock.slot };
            let demand = Demand {
                requests: &self.voqs.requests,
                inputs,
                outputs,
                weights: &weights,
                tick: shared.clock.tick,
                slot_ticks: shared.clock.fabric_ticks,
            };
            self.arbiter.decide(&demand, &mut self.matching, &mut shared.notes);
            for &(input, output) in self.matching.pairs() {
                let (input, output) = (usize::from(input), usize::from(output));
                let packet = self.voqs.pop(input, output);
                self.connections.connect(input, packet, now);
            }
        }
        let sent = self.connections.count();
        let unmatched = (wanted & !self.connections.outputs).count() as u64;
        shared.account(0, sent, 0, 0, unmatched);
        self.connections.note(PortSet::EMPTY, now, &mut shared.notes);
        self.connections.end(now, |input, packet| shared.complete(input, packet));
    }

    fn longest(&self) -> Longest {
        Longest { cells: self.voqs.longest(), short: 0 }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16])) {
        self.arbiter.pointers(&mut |name, at| visit("", name, at));
    }
}
