//! Queues at the inputs: one for each output (virtual output queues), or one for all (FIFO).
//!
//! Both keep the requests as rows of bits, by input and by output, so that an arbiter reads all requests of
//! an input or for an output as one word. Queues hold packets, not cells: a queue changes when a packet
//! arrives and when it starts to cross.

use crate::packet::Packet;
use crate::per_port::PerPort;
use crate::port_set::PortSet;
use crate::slab::{Chain, Slab};

/// The requests of inputs for outputs.
#[derive(Clone, Debug)]
pub struct Requests<const W: usize> {
    /// By input: the outputs that it requests.
    pub of_input: PerPort<PortSet<W>, W>,
    /// By output: the inputs that request it.
    pub of_output: PerPort<PortSet<W>, W>,
    /// Inputs that request any output.
    pub inputs: PortSet<W>,
    /// Outputs that any input requests.
    pub outputs: PortSet<W>,
}

impl<const W: usize> Requests<W> {
    /// No requests.
    pub fn none() -> Requests<W> {
        Requests {
            of_input: PerPort::new(PortSet::EMPTY),
            of_output: PerPort::new(PortSet::EMPTY),
            inputs: PortSet::EMPTY,
            outputs: PortSet::EMPTY,
        }
    }

    /// Adds a request.
    #[inline]
    pub fn insert(&mut self, input: usize, output: usize) {
        self.of_input[input].insert(output);
        self.of_output[output].insert(input);
        self.inputs.insert(input);
        self.outputs.insert(output);
    }

    /// Adds a request if `requested`, without a branch.
    #[inline]
    pub fn insert_if(&mut self, input: usize, output: usize, requested: bool) {
        self.of_input[input].insert_if(output, requested);
        self.of_output[output].insert_if(input, requested);
        self.inputs.insert_if(input, requested);
        self.outputs.insert_if(output, requested);
    }

    /// Removes a request if `gone`, without a branch.
    #[inline]
    pub fn remove_if(&mut self, input: usize, output: usize, gone: bool) {
        let (of_input, of_output) = (&mut self.of_input[input], &mut self.of_output[output]);
        of_input.remove_if(output, gone);
        of_output.remove_if(input, gone);
        self.inputs.remove_if(input, of_input.is_empty());
        self.outputs.remove_if(output, of_output.is_empty());
    }
}

/// One queue of packets.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// The packets.
    chain: Chain,
    /// Cells, including cells of a packet that is still arriving.
    cells: u64,
}

impl Queue {
    fn new(slab: &mut Slab<Packet>) -> Queue {
        Queue { chain: slab.chain(), cells: 0 }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    #[inline]
    fn push_back(&mut self, slab: &mut Slab<Packet>, packet: Packet) {
        slab.push_back(&mut self.chain, packet);
        self.cells += u64::from(packet.cells);
    }

    fn push_front(&mut self, slab: &mut Slab<Packet>, packet: Packet) {
        slab.push_front(&mut self.chain, packet);
        self.cells += u64::from(packet.cells);
    }

    #[inline]
    fn pop(&mut self, slab: &mut Slab<Packet>) -> Packet {
        let packet = slab.pop(&mut self.chain);
        self.cells -= u64::from(packet.cells);
        packet
    }

    /// Removes one cell of the first packet: `Ok` with the packet after its last cell, otherwise `Err` with
    /// the cells left.
    #[inline]
    fn pop_cell(&mut self, slab: &mut Slab<Packet>) -> Result<Packet, u32> {
        let packet = slab.front_mut(&self.chain);
        if packet.cells > 1 {
            packet.cells -= 1;
            self.cells -= 1;
            return Err(packet.cells);
        }
        Ok(self.pop(slab))
    }
}

/// A queue for each pair of input and output.
#[derive(Debug)]
pub(crate) struct Voqs<const W: usize> {
    ports: usize,
    slab: Slab<Packet>,
    /// By input and output.
    queues: Vec<Queue>,
    /// The requests: one for each queue that is not empty.
    pub requests: Requests<W>,
}

impl<const W: usize> Voqs<W> {
    pub fn new(ports: usize) -> Voqs<W> {
        let mut slab = Slab::new();
        let queues = (0..ports * ports).map(|_| Queue::new(&mut slab)).collect();
        Voqs { ports, slab, queues, requests: Requests::none() }
    }

    /// Number of cells in the longest queue.
    pub fn longest(&self) -> u64 {
        self.queues.iter().map(|queue| queue.cells).max().unwrap_or(0)
    }

    /// Appends a packet and returns the number of cells of its queue.
    #[inline]
    pub fn push(&mut self, input: usize, output: usize, packet: Packet) -> u64 {
        let queue = &mut self.queues[input * self.ports + output];
        self.requests.insert(input, output);
        queue.push_back(&mut self.slab, packet);
        queue.cells
    }

    /// Returns the rest of a packet, of which a part has crossed, to the head of its queue.
    pub fn put_back(&mut self, input: usize, output: usize, packet: Packet) {
        self.queues[input * self.ports + output].push_front(&mut self.slab, packet);
        self.requests.insert(input, output);
    }

    /// Removes the first packet of a queue.
    ///
    /// # Panics
    /// If the queue is empty; it is not where the pair was requested.
    #[inline]
    pub fn pop(&mut self, input: usize, output: usize) -> Packet {
        let queue = &mut self.queues[input * self.ports + output];
        let packet = queue.pop(&mut self.slab);
        self.requests.remove_if(input, output, queue.is_empty());
        packet
    }

    /// Removes one cell of the first packet: `Ok` with the packet after its last cell, otherwise `Err` with
    /// the cells left.
    ///
    /// # Panics
    /// If the queue is empty; it is not where the pair was requested.
    #[inline]
    pub fn pop_cell(&mut self, input: usize, output: usize) -> Result<Packet, u32> {
        let queue = &mut self.queues[input * self.ports + output];
        let packet = queue.pop_cell(&mut self.slab);
        self.requests.remove_if(input, output, queue.is_empty());
        packet
    }

    /// Number of cells of a queue, including cells of a packet that is still arriving.
    #[inline]
    pub fn cells(&self, input: usize, output: usize) -> u64 {
        self.queues[input * self.ports + output].cells
    }

    /// Arrival time of the first packet of a queue, in ticks.
    #[inline]
    pub fn head(&self, input: usize, output: usize) -> Option<u64> {
        self.slab.front(&self.queues[input * self.ports + output].chain).map(|packet| packet.arrived)
    }
}

/// One queue for each input.
#[derive(Debug)]
pub(crate) struct Fifos<const W: usize> {
    slab: Slab<Packet>,
    /// By input.
    queues: PerPort<Queue, W>,
    /// The requests of the first packets.
    pub requests: Requests<W>,
}

impl<const W: usize> Fifos<W> {
    pub fn new(ports: usize) -> Fifos<W> {
        let mut slab = Slab::new();
        let mut queues = PerPort::new(Queue::new(&mut slab));
        (1..ports).for_each(|input| queues[input] = Queue::new(&mut slab));
        Fifos { slab, queues, requests: Requests::none() }
    }

    /// Number of cells in the longest queue.
    pub fn longest(&self) -> u64 {
        self.queues.first(64 * W).iter().map(|queue| queue.cells).max().unwrap_or(0)
    }

    /// Appends a packet and returns the number of cells of its queue.
    #[inline]
    pub fn push(&mut self, input: usize, packet: Packet) -> u64 {
        let queue = &mut self.queues[input];
        self.requests.insert_if(input, usize::from(packet.to), queue.is_empty());
        queue.push_back(&mut self.slab, packet);
        queue.cells
    }

    /// Removes the first packet of a queue.
    ///
    /// # Panics
    /// If the queue is empty; it is not where the pair was requested.
    #[inline]
    pub fn pop(&mut self, input: usize) -> Packet {
        let queue = &mut self.queues[input];
        let packet = queue.pop(&mut self.slab);
        self.advance(input, packet.to);
        packet
    }

    /// Removes one cell of the first packet: `Ok` with the packet after its last cell, otherwise `Err` with
    /// the cells left.
    ///
    /// # Panics
    /// If the queue is empty; it is not where the pair was requested.
    #[inline]
    pub fn pop_cell(&mut self, input: usize) -> Result<Packet, u32> {
        let packet = self.queues[input].pop_cell(&mut self.slab)?;
        self.advance(input, packet.to);
        Ok(packet)
    }

    /// Updates the requests after the first packet of an input, which requested `from`, has been removed.
    #[inline]
    fn advance(&mut self, input: usize, from: u16) {
        self.requests.remove_if(input, usize::from(from), true);
        if let Some(next) = self.slab.front(&self.queues[input].chain) {
            self.requests.insert(input, usize::from(next.to));
        }
    }

    /// Number of cells of a queue, including cells of a packet that is still arriving.
    #[inline]
    pub fn cells(&self, input: usize) -> u64 {
        self.queues[input].cells
    }

    /// Arrival time of the first packet of a queue, in ticks.
    #[inline]
    pub fn head(&self, input: usize) -> Option<u64> {
        self.slab.front(&self.queues[input].chain).map(|packet| packet.arrived)
    }
}
