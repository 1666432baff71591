//! Preemptive packet mode: an input has one queue for its short packets and virtual output queues for long
//! ones. A short packet interrupts the packets that cross at its two ports, for the one slot that it needs
//! (P-SPF, sections 2 and 3).
//!
//! The paper requires that an interrupted port stays matched and that its packet continues afterwards. Three
//! options cover what it leaves open:
//! - `phases parallel` or `sequential`: ports that send a short packet may, or may not, be matched for a long
//!   one in the same slot. In section 3 both halves run at the same time; in section 5 the other algorithms
//!   match short packets "first".
//! - `nohold`: an interrupted packet loses its connection, and the rest of it requests its output again. The
//!   output may take another packet at once, and needs a reassembly buffer for each input. Not in the paper.
//! - `lazy D`: a short packet waits up to D slots for the end of a packet at its input before it interrupts.
//!   Not in the paper.

use super::{ArbiterHandle, Connections, Rules};
use crate::arbiter::{Demand, Matching};
use crate::notes::Note;
use crate::options::{Options, Phases};
use crate::packet::{Class, Packet};
use crate::port_set::PortSet;
use crate::queues::{Fifos, Voqs};
use crate::shared::{FifoWeights, Shared, VoqWeights};
use crate::statistics::Longest;

pub(super) struct Preemptive<const W: usize> {
    short: Fifos<W>,
    long: Voqs<W>,
    connections: Connections<W>,
    short_arbiter: ArbiterHandle<W>,
    long_arbiter: ArbiterHandle<W>,
    short_matching: Matching<W>,
    long_matching: Matching<W>,
    parallel: bool,
    hold: bool,
    /// Slots of the fabric that a short packet waits before it interrupts.
    lazy: u64,
}

impl<const W: usize> Preemptive<W> {
    pub fn new(
        ports: usize,
        short: ArbiterHandle<W>,
        long: ArbiterHandle<W>,
        phases: Phases,
        options: &Options,
    ) -> Preemptive<W> {
        Preemptive {
            short: Fifos::new(ports),
            long: Voqs::new(ports),
            connections: Connections::new(),
            short_arbiter: short,
            long_arbiter: long,
            short_matching: Matching::new(),
            long_matching: Matching::new(),
            parallel: phases == Phases::Parallel,
            hold: options.hold,
            lazy: u64::from(options.lazy),
        }
    }

    /// Inputs whose short packets request an output: all at free inputs, and those that have waited long
    /// enough.
    #[inline]
    fn eager(&self, shared: &Shared<W>) -> PortSet<W> {
        let inputs = self.short.requests.inputs;
        if self.lazy == 0 {
            return inputs;
        }
        let mut eager = inputs & !self.connections.inputs;
        for input in inputs & self.connections.inputs {
            let since = self.short.head(input).expect("an input with a request has a packet");
            if shared.clock.tick - since >= self.lazy * shared.clock.fabric_ticks {
                eager.insert(input);
            }
        }
        eager
    }

    /// Matches short packets.
    #[inline]
    fn match_short(&mut self, shared: &mut Shared<W>) {
        self.short_matching.clear();
        let inputs = self.eager(shared);
        if inputs.is_empty() {
            return;
        }
        let weights = FifoWeights { fifos: &self.short };
        let demand = Demand {
            requests: &self.short.requests,
            inputs,
            outputs: self.short.requests.outputs,
            weights: &weights,
            tick: shared.clock.tick,
            slot_ticks: shared.clock.fabric_ticks,
        };
        shared.notes.note(Note::Half(Class::Short));
        self.short_arbiter.decide(&demand, &mut self.short_matching, &mut shared.notes);
    }

    /// Matches long packets at ports that are neither connected nor taken, and connects them.
    #[inline]
    fn match_long(&mut self, taken_in: PortSet<W>, taken_out: PortSet<W>, shared: &mut Shared<W>) {
        let inputs = self.long.requests.inputs & !(self.connections.inputs | taken_in);
        let outputs = self.long.requests.outputs & !(self.connections.outputs | taken_out);
        if inputs.is_empty() || outputs.is_empty() {
            return;
        }
        self.long_matching.clear();
        let weights =
            VoqWeights { voqs: &self.long, arriving: Some(&shared.arriving), slot: shared.clock.slot };
        let demand = Demand {
            requests: &self.long.requests,
            inputs,
            outputs,
            weights: &weights,
            tick: shared.clock.tick,
            slot_ticks: shared.clock.fabric_ticks,
        };
        shared.notes.note(Note::Half(Class::Long));
        self.long_arbiter.decide(&demand, &mut self.long_matching, &mut shared.notes);
        for &(input, output) in self.long_matching.pairs() {
            let packet = self.long.pop(usize::from(input), usize::from(output));
            self.connections.connect(usize::from(input), packet, shared.clock.fabric);
        }
    }

    /// Inputs whose connection a short packet interrupts at its input or at its output.
    #[inline]
    fn interrupted(&self) -> PortSet<W> {
        let mut interrupted = self.connections.inputs & self.short_matching.inputs;
        for &(_, output) in self.short_matching.pairs() {
            let output = usize::from(output);
            // Without a branch: `input_of` is defined for free outputs, too, as the input that was connected
            // last.
            interrupted.insert_if(self.connections.input_of(output), self.connections.outputs.has(output));
        }
        interrupted
    }

    /// Ends these connections and puts the rests of their packets back into the queues.
    fn break_off(&mut self, interrupted: PortSet<W>, now: u64) {
        for input in interrupted {
            let rest = self.connections.break_off(input, now);
            self.long.put_back(input, usize::from(rest.to), rest);
        }
    }
}

impl<const W: usize> Rules<W> for Preemptive<W> {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, class: Class, shared: &mut Shared<W>) {
        match class {
            Class::Short => {
                self.short_arbiter.on_arrival(input, usize::from(packet.to));
                let cells = self.short.push(input, packet);
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
        let connected = self.connections.outputs;
        self.match_short(shared);
        let (taken_in, taken_out) = if self.parallel {
            // Neither half depends on the other.
            (PortSet::EMPTY, PortSet::EMPTY)
        } else {
            if !self.hold {
                // Interrupted outputs may take another packet in this slot.
                self.break_off(self.interrupted(), now);
            }
            (self.short_matching.inputs, self.short_matching.outputs)
        };
        self.match_long(taken_in, taken_out, shared);
        let taken = self.connections.outputs | self.short_matching.outputs;
        let mut interrupted = self.connections.inputs & self.short_matching.inputs;
        for &(input, output) in self.short_matching.pairs() {
            shared.notes.note(Note::Cross(input, output, 0));
            let packet = self.short.pop(usize::from(input));
            shared.complete(usize::from(input), packet);
            // Without a branch: `input_of` is defined for free outputs, too, as the input that was connected
            // last.
            let output = usize::from(output);
            interrupted.insert_if(self.connections.input_of(output), self.connections.outputs.has(output));
        }
        let (mut stalled, mut blocked, mut held) = (0, 0, 0);
        for input in interrupted {
            let output = self.connections.output_of(input);
            let idle = !self.short_matching.outputs.has(output);
            let before = connected.has(output);
            stalled += 1;
            blocked += u64::from(idle & before);
            held += u64::from(idle & !before);
            if self.hold {
                self.connections.postpone(input, now);
            }
        }
        // Only now: `postpone` has moved the ends of interrupted packets, from which the note computes the
        // cells left.
        self.connections.note(interrupted, now, &mut shared.notes);
        let short = self.short_matching.pairs().len() as u64;
        let unmatched = (wanted & !taken).count() as u64;
        shared.account(short, self.connections.count() - stalled, blocked, held, unmatched);
        if !self.hold {
            self.break_off(interrupted, now);
        }
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
