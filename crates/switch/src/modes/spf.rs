//! SPF, short packets first: two classes of packets, each with virtual output queues, without interruption.
//! Free ports are matched for short packets first, and the remaining ones for long packets.
//!
//! W. Li, B. Liu, SPF: to Improve the Performance of Packet-Mode Scheduling, Computer Communications, 2005
//! (the P-SPF paper's [17]; implemented from the description in that paper).

use super::{ArbiterHandle, Connections, Rules};
use crate::arbiter::{Demand, Matching};
use crate::notes::Note;
use crate::packet::{Class, Packet};
use crate::port_set::PortSet;
use crate::queues::Voqs;
use crate::shared::{Shared, VoqWeights};
use crate::statistics::Longest;

pub(super) struct Spf<const W: usize> {
    short: Voqs<W>,
    long: Voqs<W>,
    connections: Connections<W>,
    short_arbiter: ArbiterHandle<W>,
    long_arbiter: ArbiterHandle<W>,
    short_matching: Matching<W>,
    long_matching: Matching<W>,
}

impl<const W: usize> Spf<W> {
    pub fn new(ports: usize, short: ArbiterHandle<W>, long: ArbiterHandle<W>) -> Spf<W> {
        Spf {
            short: Voqs::new(ports),
            long: Voqs::new(ports),
            connections: Connections::new(),
            short_arbiter: short,
            long_arbiter: long,
            short_matching: Matching::new(),
            long_matching: Matching::new(),
        }
    }
}

impl<const W: usize> Rules<W> for Spf<W> {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, class: Class, shared: &mut Shared<W>) {
        match class {
            Class::Short => {
                self.short_arbiter.on_arrival(input, usize::from(packet.to));
                let cells = self.short.push(input, usize::from(packet.to), packet);
                shared.statistics.short_queue_has(cells);
            }
            Class::Long => {
                self.long_arbiter.on_arrival(input, usize::from(packet.to));
                let cells = self.long.push(input, usize::from(packet.to), packet);
                shared.statistics.queue_has(cells);
            }
        }
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        let now = shared.clock.fabric;
        let wanted = self.short.requests.outputs | self.long.requests.outputs;
        let (tick, slot_ticks) = (shared.clock.tick, shared.clock.fabric_ticks);

        let (busy_in, busy_out) = (self.connections.inputs, self.connections.outputs);
        self.short_matching.clear();
        let (inputs, outputs) =
            (self.short.requests.inputs & !busy_in, self.short.requests.outputs & !busy_out);
        if !inputs.is_empty() && !outputs.is_empty() {
            let weights = VoqWeights { voqs: &self.short, arriving: None, slot: shared.clock.slot };
            let requests = &self.short.requests;
            let demand = Demand { requests, inputs, outputs, weights: &weights, tick, slot_ticks };
            shared.notes.note(Note::Half(Class::Short));
            self.short_arbiter.decide(&demand, &mut self.short_matching, &mut shared.notes);
        }

        let (busy_in, busy_out) =
            (busy_in | self.short_matching.inputs, busy_out | self.short_matching.outputs);
        self.long_matching.clear();
        let (inputs, outputs) =
            (self.long.requests.inputs & !busy_in, self.long.requests.outputs & !busy_out);
        if !inputs.is_empty() && !outputs.is_empty() {
            let weights =
                VoqWeights { voqs: &self.long, arriving: Some(&shared.arriving), slot: shared.clock.slot };
            let requests = &self.long.requests;
            let demand = Demand { requests, inputs, outputs, weights: &weights, tick, slot_ticks };
            shared.notes.note(Note::Half(Class::Long));
            self.long_arbiter.decide(&demand, &mut self.long_matching, &mut shared.notes);
        }

        for &(input, output) in self.short_matching.pairs() {
            shared.notes.note(Note::Cross(input, output, 0));
            let packet = self.short.pop(usize::from(input), usize::from(output));
            shared.complete(usize::from(input), packet);
        }
        for &(input, output) in self.long_matching.pairs() {
            let packet = self.long.pop(usize::from(input), usize::from(output));
            self.connections.connect(usize::from(input), packet, now);
        }
        let short = self.short_matching.pairs().len() as u64;
        let taken = self.connections.outputs | self.short_matching.outputs;
        shared.account(short, self.connections.count(), 0, 0, (wanted & !taken).count() as u64);
        self.connections.note(PortSet::EMPTY, now, &mut shared.notes);
        self.connections.end(now, |input, packet| shared.complete(input, packet));
    }

    fn longest(&self) -> Longest {
        Longest { cells: self.long.longest(), short: self.short.longest() }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16])) {
        self.short_arbiter.pointers(&mut |name, at| visit("short", name, at));
        self.long_arbiter.pointers(&mut |name, at| visit("long", name, at));
    }
}
