//! Round-robin pointers and the arbiters that match by them: RRM, FIRM and iSLIP differ only in when a
//! pointer moves.

use super::rounds::{Choice, Rounds};
use crate::arbiter::{Arbiter, Demand, Matching};
use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::port_set::PortSet;

/// One pointer for each port of one side of the switch. It stands at a port of the other side, which has the
/// highest priority; those above it follow, around.
pub(super) struct Pointers<const W: usize> {
    ports: usize,
    positions: PerPort<u16, W>,
}

impl<const W: usize> Pointers<W> {
    /// Pointers of a switch of `ports` ports, all at port 0.
    pub fn new(ports: usize) -> Pointers<W> {
        Pointers { ports, positions: PerPort::new(0) }
    }

    /// The first of `among` from the pointer of `port` on; `None` when there is none.
    #[inline]
    pub fn choose(&self, port: usize, among: PortSet<W>) -> Option<usize> {
        among.from(usize::from(self.positions[port]))
    }

    /// Moves the pointer of `port` to `partner`, which keeps the highest priority.
    #[inline]
    pub fn point_at(&mut self, port: usize, partner: usize) {
        self.positions[port] = partner as u16;
    }

    /// Moves the pointer of `port` to one beyond `partner`, which gets the lowest priority.
    #[inline]
    pub fn move_past(&mut self, port: usize, partner: usize) {
        self.positions[port] = if partner + 1 == self.ports { 0 } else { partner as u16 + 1 };
    }

    /// The positions, by port.
    pub fn positions(&self) -> &[u16] {
        self.positions.first(self.ports)
    }
}

/// Decides when pointers move. Iterations count from 1.
pub(super) trait Rule: Send {
    /// An output has granted an input, which may still prefer another grant.
    fn granted<const W: usize>(&self, iteration: u32, output: usize, input: usize, pointers: &mut Both<W>);
    /// An input has accepted the grant of an output.
    fn accepted<const W: usize>(&self, iteration: u32, input: usize, output: usize, pointers: &mut Both<W>);
}

/// The pointers of both sides.
pub(super) struct Both<const W: usize> {
    /// By output: the input with the highest priority for a grant.
    pub grant: Pointers<W>,
    /// By input: the output with the highest priority for an accept.
    pub accept: Pointers<W>,
}

/// An arbiter that requests, grants and accepts by round-robin pointers.
pub(super) struct RoundRobin<const W: usize, R> {
    rounds: Rounds<W>,
    choice: ByPointers<W, R>,
}

struct ByPointers<const W: usize, R> {
    pointers: Both<W>,
    rule: R,
}

impl<const W: usize, R> RoundRobin<W, R> {
    /// An arbiter of a switch of `ports` ports, with all pointers at port 0.
    pub fn new(iterations: u32, ports: usize, rule: R) -> RoundRobin<W, R> {
        let pointers = Both { grant: Pointers::new(ports), accept: Pointers::new(ports) };
        RoundRobin { rounds: Rounds::new(iterations), choice: ByPointers { pointers, rule } }
    }
}

impl<const W: usize, R: Rule> Choice<W> for ByPointers<W, R> {
    #[inline]
    fn grant(&mut self, iteration: u32, output: usize, requesting: PortSet<W>) -> usize {
        let input = self.pointers.grant.choose(output, requesting).expect("an input requests this output");
        self.rule.granted(iteration, output, input, &mut self.pointers);
        input
    }

    #[inline]
    fn accept(&mut self, iteration: u32, input: usize, grants: PortSet<W>) -> usize {
        let output = self.pointers.accept.choose(input, grants).expect("an output has granted this input");
        self.rule.accepted(iteration, input, output, &mut self.pointers);
        output
    }
}

impl<const W: usize, R: Rule> Arbiter<W> for RoundRobin<W, R> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.rounds.run(&mut self.choice, demand, matching, notes);
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("grant", self.choice.pointers.grant.positions());
        visit("accept", self.choice.pointers.accept.positions());
    }
}
