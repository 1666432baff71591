//! Queues at the inputs: one for each output (virtual output queues), or one for all (FIFO).
//!
//! Both keep, beside the packets, who asks for whom as rows of bits, both ways round, so that an arbiter sees the requests
//! of an input or for an output as one word. Packets are whole: a queue is touched when a packet comes and when it begins
//! to cross, not for every cell.

use qdisc::{List, Slots};

use crate::packet::Packet;
use crate::row::Row;

/// Who asks for whom.
#[derive(Clone, Debug)]
pub struct Requests<const W: usize> {
    /// By input: the outputs that it asks for.
    pub of_input: Vec<Row<W>>,
    /// By output: the inputs that ask for it.
    pub of_output: Vec<Row<W>>,
    /// Inputs that ask for anything.
    pub inputs: Row<W>,
    /// Outputs that anybody asks for.
    pub outputs: Row<W>,
}

impl<const W: usize> Requests<W> {
    /// Nobody asks.
    pub fn none(ports: usize) -> Requests<W> {
        Requests {
            of_input: vec![Row::EMPTY; ports],
            of_output: vec![Row::EMPTY; ports],
            inputs: Row::EMPTY,
            outputs: Row::EMPTY,
        }
    }

    /// An input asks for an output.
    #[inline]
    pub fn insert(&mut self, input: usize, output: usize) {
        self.of_input[input].insert(output);
        self.of_output[output].insert(input);
        self.inputs.insert(input);
        self.outputs.insert(output);
    }

    /// It does no more.
    #[inline]
    pub fn remove(&mut self, input: usize, output: usize) {
        self.of_input[input].remove(output);
        self.of_output[output].remove(input);
        if self.of_input[input].is_empty() {
            self.inputs.remove(input);
        }
        if self.of_output[output].is_empty() {
            self.outputs.remove(output);
        }
    }
}

/// A queue for each pair of input and output.
#[derive(Debug)]
pub(crate) struct Voqs<const W: usize> {
    ports: usize,
    slots: Slots<Packet>,
    /// By input and output.
    queues: Vec<List>,
    /// Cells in each of them, those of a packet that is still arriving included.
    cells: Vec<u64>,
    pub requests: Requests<W>,
}

impl<const W: usize> Voqs<W> {
    pub fn new(ports: usize) -> Voqs<W> {
        Voqs {
            ports,
            slots: Slots::with_capacity(1024),
            queues: vec![List::default(); ports * ports],
            cells: vec![0; ports * ports],
            requests: Requests::none(ports),
        }
    }

    /// Adds a packet; says how many cells its queue has then.
    #[inline]
    pub fn push(&mut self, input: usize, output: usize, packet: Packet) -> u64 {
        let at = input * self.ports + output;
        self.cells[at] += u64::from(packet.cells);
        let queue = &mut self.queues[at];
        if queue.is_empty() {
            self.requests.insert(input, output);
        }
        self.slots.push_back(queue, packet);
        self.cells[at]
    }

    /// Puts a packet back of which a part has crossed: it is the next again.
    pub fn put_back(&mut self, input: usize, output: usize, packet: Packet) {
        let at = input * self.ports + output;
        self.cells[at] += u64::from(packet.cells);
        self.slots.push_front(&mut self.queues[at], packet);
        self.requests.insert(input, output);
    }

    /// Takes the next packet out.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn pop(&mut self, input: usize, output: usize) -> Packet {
        let at = input * self.ports + output;
        let queue = &mut self.queues[at];
        let packet = self.slots.pop_front(queue).expect("who is matched has asked");
        self.cells[at] -= u64::from(packet.cells);
        if queue.is_empty() {
            self.requests.remove(input, output);
        }
        packet
    }

    /// Takes one cell of the next packet; the packet itself when that was its last one.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn pop_cell(&mut self, input: usize, output: usize) -> Option<Packet> {
        let at = input * self.ports + output;
        let place = self.slots.front_place(&self.queues[at]).expect("who is matched has asked");
        let packet = self.slots.get_mut(place).expect("it is at the front");
        if packet.cells > 1 {
            packet.cells -= 1;
            self.cells[at] -= 1;
            return None;
        }
        Some(self.pop(input, output))
    }

    /// Cells of a queue.
    #[inline]
    pub fn cells(&self, input: usize, output: usize) -> u64 {
        self.cells[input * self.ports + output]
    }

    /// When the next packet of a queue arrived, in ticks.
    #[inline]
    pub fn head(&self, input: usize, output: usize) -> Option<u64> {
        self.slots.front(&self.queues[input * self.ports + output]).map(|packet| packet.arrived)
    }
}

/// One queue for each input.
#[derive(Debug)]
pub(crate) struct Fifos<const W: usize> {
    slots: Slots<(Packet, u16)>,
    /// By input.
    queues: Vec<List>,
    /// Cells in each of them.
    cells: Vec<u64>,
    /// What the heads ask for.
    pub requests: Requests<W>,
}

impl<const W: usize> Fifos<W> {
    pub fn new(ports: usize) -> Fifos<W> {
        Fifos {
            slots: Slots::with_capacity(1024),
            queues: vec![List::default(); ports],
            cells: vec![0; ports],
            requests: Requests::none(ports),
        }
    }

    /// Adds a packet; says how many cells its queue has then.
    #[inline]
    pub fn push(&mut self, input: usize, output: usize, packet: Packet) -> u64 {
        let queue = &mut self.queues[input];
        if queue.is_empty() {
            self.requests.insert(input, output);
        }
        self.slots.push_back(queue, (packet, output as u16));
        self.cells[input] += u64::from(packet.cells);
        self.cells[input]
    }

    /// Takes the next packet out.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn pop(&mut self, input: usize) -> Packet {
        let queue = &mut self.queues[input];
        let (packet, output) = self.slots.pop_front(queue).expect("who is matched has asked");
        self.cells[input] -= u64::from(packet.cells);
        self.requests.remove(input, usize::from(output));
        if let Some((_, next)) = self.slots.front(queue) {
            self.requests.insert(input, usize::from(*next));
        }
        packet
    }

    /// Takes one cell of the next packet; the packet itself when that was its last one.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn pop_cell(&mut self, input: usize) -> Option<Packet> {
        let place = self.slots.front_place(&self.queues[input]).expect("who is matched has asked");
        let (packet, _) = self.slots.get_mut(place).expect("it is at the front");
        if packet.cells > 1 {
            packet.cells -= 1;
            self.cells[input] -= 1;
            return None;
        }
        Some(self.pop(input))
    }

    /// Cells of a queue.
    #[inline]
    pub fn cells(&self, input: usize) -> u64 {
        self.cells[input]
    }

    /// When the next packet of a queue arrived, in ticks.
    #[inline]
    pub fn head(&self, input: usize) -> Option<u64> {
        self.slots.front(&self.queues[input]).map(|(packet, _)| packet.arrived)
    }
}
