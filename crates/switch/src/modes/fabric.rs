//! The interface of a fabric: the queues of the inputs and the connections, with the rules of one mode.

use crate::inputs::Inputs;
use crate::packet::{Class, Packet};
use crate::shared::Shared;
use crate::statistics::Longest;

/// The queues of the inputs and the connections through the fabric, with the rules of one mode.
pub(crate) trait Rules<const W: usize>: Send {
    /// Adds a packet that may start to cross.
    fn arrive(&mut self, input: usize, packet: Packet, class: Class, shared: &mut Shared<W>)
    where
        Self: Sized;
    /// Runs one slot of the fabric.
    fn slot(&mut self, shared: &mut Shared<W>)
    where
        Self: Sized;
    /// The length of the longest queue of an input now, as in [`Statistics`](crate::statistics::Statistics):
    /// in cells, and for short packets alone in packets, where they have their own queues.
    fn longest(&self) -> Longest;
    /// Passes the pointers of the arbiters to `visit`: the class of packets (empty with one arbiter), the
    /// name, and the positions by port.
    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16]));
}

/// A fabric with the rules of any mode. The loop over the slots is compiled once for each mode, because a
/// call that is not known to the compiler would take a good part of the time of a slot.
pub(crate) trait Fabric<const W: usize>: Rules<W> {
    /// Runs the slots of the fabric that start before `until`, in ticks. Packets that may start to cross in a
    /// slot join the queues first.
    fn run(&mut self, until: u64, inputs: &mut Inputs<W>, shared: &mut Shared<W>);
}

impl<const W: usize, R: Rules<W>> Fabric<W> for R {
    fn run(&mut self, until: u64, inputs: &mut Inputs<W>, shared: &mut Shared<W>) {
        while shared.clock.tick < until {
            shared.clock.begin();
            for input in inputs.due(shared.clock.fabric) {
                let (packet, class) = inputs.pass(input, shared);
                self.arrive(input, packet, class, shared);
            }
            self.slot(shared);
            shared.clock.advance();
        }
    }
}
