//! The interface of a fabric: the queues of the inputs and the connections, with the rules of one mode.

use crate::inputs::Inputs;
use crate::packet::{Class, Packet};
use crate::row::Row;
use crate::shared::Shared;
use crate::statistics::Longest;

/// The queues of the inputs and the connections through the fabric, with the rules of one mode.
pub(crate) trait Fabric<const W: usize>: Send {
    /// Adds a packet that may begin to cross.
    fn arrive(&mut self, input: usize, packet: Packet, class: Class, shared: &mut Shared<W>);
    /// Adds the packet that is due at each of these inputs.
    fn arrive_all(&mut self, due: Row<W>, inputs: &mut Inputs<W>, shared: &mut Shared<W>) {
        for input in due {
            let (packet, class) = inputs.pass(input, shared);
            self.arrive(input, packet, class, shared);
        }
    }
    /// Runs one slot of the fabric.
    fn slot(&mut self, shared: &mut Shared<W>);
    /// The length of the longest queue of an input now, as in [`Statistics`](crate::statistics::Statistics):
    /// in cells, and for short packets alone in packets, where they have queues of their own.
    fn longest(&self) -> Longest;
    /// Passes the pointers of the arbiters to `visit`: the class of packets (empty with one arbiter), the
    /// name, and the positions by port.
    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &'static str, &[u16]));
}
