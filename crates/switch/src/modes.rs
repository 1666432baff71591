//! The modes of a switch, one file each: a match carries a cell, a packet that holds its connection, or a
//! packet that may be interrupted.

mod cell;
mod cioq;
mod connections;
mod fifo;
mod output;
mod packet;
mod preemptive;
mod spf;

use crate::arbiter::{Arbiter, ArbiterContext, Demand, Matching};
use crate::inputs::Inputs;
use crate::notes::Notes;
use crate::options::{Mode, Options, Queueing};
use crate::packet::{Class, Packet};
use crate::registry::ArbiterConfig;
use crate::row::Row;
use crate::shared::Shared;

use crate::statistics::Longest;
pub(crate) use connections::Connections;
use giveway_qdisc::Invalid;

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

/// An arbiter in a fabric, which skips reports of arrivals if the arbiter does not need them.
pub(crate) struct ArbiterHandle<const W: usize> {
    arbiter: Box<dyn Arbiter<W>>,
    /// Result of [`Arbiter::listens`], kept because there is a report for each packet and few arbiters need
    /// it.
    listens: bool,
}

impl<const W: usize> ArbiterHandle<W> {
    fn new(arbiter: Box<dyn Arbiter<W>>) -> ArbiterHandle<W> {
        ArbiterHandle { listens: arbiter.listens(), arbiter }
    }

    /// Calls [`Arbiter::arrived`] if the arbiter needs it.
    #[inline]
    fn arrived(&mut self, input: usize, output: usize) {
        if self.listens {
            self.arbiter.arrived(input, output);
        }
    }

    /// Calls [`Arbiter::decide`].
    #[inline]
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.arbiter.decide(demand, matching, notes);
    }

    /// Calls [`Arbiter::pointers`].
    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        self.arbiter.pointers(visit);
    }
}

/// Builds the fabric for an arbiter and its options.
pub(crate) fn fabric<const W: usize, S: ArbiterConfig>(
    config: &S,
    options: &Options,
    context: &ArbiterContext,
) -> Result<Box<dyn Fabric<W>>, Invalid> {
    let long = || config.arbiter::<W>(&context.within("long")).map(ArbiterHandle::new);
    let short = || config.short_arbiter::<W>(&context.within("short")).map(ArbiterHandle::new);
    Ok(match (S::QUEUEING, options.mode.unwrap_or(S::MODE)) {
        (Queueing::Output, _) => Box::new(output::Output::new(context.ports)),
        (Queueing::Combined, _) => Box::new(cioq::Cioq::new(context.ports)),
        (Queueing::Fifo, mode) => Box::new(fifo::Fifo::new(context.ports, long()?, mode == Mode::Cell)),
        (Queueing::Virtual, Mode::Cell) => Box::new(cell::Cell::new(context.ports, long()?)),
        (Queueing::Virtual, Mode::Packet) => Box::new(packet::PacketMode::new(context.ports, long()?)),
        (Queueing::Virtual, Mode::Spf) => Box::new(spf::Spf::new(context.ports, short()?, long()?)),
        (Queueing::Virtual, Mode::Preemptive) => {
            let phases = options.phases.unwrap_or(S::PHASES);
            Box::new(preemptive::Preemptive::new(context.ports, short()?, long()?, phases, options))
        }
    })
}
