//! Connections that last until the last cell of a packet.

use crate::notes::{Note, Notes};
use crate::packet::Packet;
use crate::per_port::PerPort;
use crate::port_set::PortSet;
use crate::wheel::Wheel;

/// The connections between inputs and outputs, with their ends. A connection costs no work in the slots
/// between its first and its last.
#[derive(Debug)]
pub(crate) struct Connections<const W: usize> {
    /// Connected inputs.
    pub inputs: PortSet<W>,
    /// Connected outputs.
    pub outputs: PortSet<W>,
    /// By input: the packet that crosses.
    of_input: PerPort<Packet, W>,
    /// By output: the input that is connected, or was connected last.
    of_output: PerPort<u16, W>,
    /// By input: the slot of the fabric in which its last cell crosses.
    ends: Wheel<W>,
    /// Number of connections.
    count: u64,
}

impl<const W: usize> Connections<W> {
    /// No connections.
    pub fn new() -> Connections<W> {
        Connections {
            inputs: PortSet::EMPTY,
            outputs: PortSet::EMPTY,
            of_input: PerPort::new(Packet::default()),
            of_output: PerPort::new(0),
            ends: Wheel::new(),
            count: 0,
        }
    }

    /// Connects an input with the output of `packet`, whose first cell crosses in slot `now`.
    #[inline]
    pub fn connect(&mut self, input: usize, packet: Packet, now: u64) {
        let output = usize::from(packet.to);
        self.inputs.insert(input);
        self.outputs.insert(output);
        self.of_input[input] = packet;
        self.of_output[output] = input as u16;
        self.ends.set(input, now + u64::from(packet.cells) - 1, now);
        self.count += 1;
    }

    /// Number of connections.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The output of a connected input.
    #[inline]
    pub fn output_of(&self, input: usize) -> usize {
        usize::from(self.of_input[input].to)
    }

    /// The input of a connected output; for another output, the input that was connected last.
    #[inline]
    pub fn input_of(&self, output: usize) -> usize {
        usize::from(self.of_output[output])
    }

    /// Delays the packet of an input, of which no cell crosses in slot `now`, by a slot.
    #[inline]
    pub fn postpone(&mut self, input: usize, now: u64) {
        self.ends.postpone(input, now);
    }

    /// Records the cells that cross in slot `now`, and interruptions at `interrupted` inputs.
    #[inline]
    pub fn note(&self, interrupted: PortSet<W>, now: u64, notes: &mut Notes) {
        if !notes.wanted() {
            return;
        }
        for input in self.inputs {
            let (from, to) = (input as u16, self.of_input[input].to);
            notes.note(match interrupted.has(input) {
                true => Note::Interrupt(from, to),
                false => Note::Cross(from, to, (self.ends.when(input) - now) as u32),
            });
        }
    }

    /// Ends a connection of which no cell crosses in slot `now`, and returns the rest of its packet.
    pub fn break_off(&mut self, input: usize, now: u64) -> Packet {
        self.ends.clear(input, now);
        let left = self.ends.when(input) - now + 1;
        let packet = self.of_input[input];
        self.release(input, usize::from(packet.to));
        Packet { cells: left as u32, ..packet }
    }

    /// Ends the connections whose last cell crosses in slot `now`, and passes input and packet of each to
    /// `complete`.
    #[inline]
    pub fn end(&mut self, now: u64, mut complete: impl FnMut(usize, Packet)) {
        for input in self.ends.take(now) {
            let packet = self.of_input[input];
            self.release(input, usize::from(packet.to));
            complete(input, packet);
        }
    }

    #[inline]
    fn release(&mut self, input: usize, output: usize) {
        self.inputs.remove(input);
        self.outputs.remove(output);
        self.count -= 1;
    }
}
