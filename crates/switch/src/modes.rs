//! The modes of a switch, one file each: a match carries a cell, a packet that holds its connection, or a
//! packet that may be interrupted.

mod cell;
mod cioq;
mod connections;
mod fabric;
mod fifo;
mod handle;
mod output;
mod packet;
mod preemptive;
mod spf;

use giveway_qdisc::Invalid;

use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext};
use crate::options::{Mode, Options, Phases, Queueing};
use crate::packet::Class;
pub(crate) use connections::Connections;
pub(crate) use fabric::Fabric;
use fabric::Rules;
use handle::ArbiterHandle;

/// Builds the fabric for an arbiter and its options.
pub(crate) fn fabric<const W: usize, S: ArbiterConfig>(
    config: &S,
    options: &Options,
    context: &ArbiterContext,
) -> Result<Box<dyn Fabric<W>>, Invalid> {
    let kind = (S::QUEUEING, options.mode.unwrap_or(S::MODE), options.phases.unwrap_or(S::PHASES));
    fabric_of_kind(kind, options, context.ports, &|class| match class {
        Class::Long => config.arbiter::<W>(&context.within("long")),
        Class::Short => config.short_arbiter::<W>(&context.within("short")),
    })
}

/// Builds a fabric of a kind, with the arbiters that `arbiter` builds for the classes that it has.
pub(crate) fn fabric_of_kind<const W: usize>(
    (queueing, mode, phases): (Queueing, Mode, Phases),
    options: &Options,
    ports: usize,
    arbiter: &dyn Fn(Class) -> Result<Box<dyn Arbiter<W>>, Invalid>,
) -> Result<Box<dyn Fabric<W>>, Invalid> {
    let long = || arbiter(Class::Long).map(ArbiterHandle::new);
    let short = || arbiter(Class::Short).map(ArbiterHandle::new);
    Ok(match (queueing, mode) {
        (Queueing::Output, _) => Box::new(output::Output::new(ports)),
        (Queueing::Combined, _) => Box::new(cioq::Cioq::new(ports)),
        (Queueing::Fifo, mode) => Box::new(fifo::Fifo::new(ports, long()?, mode == Mode::Cell)),
        (Queueing::Virtual, Mode::Cell) => Box::new(cell::Cell::new(ports, long()?)),
        (Queueing::Virtual, Mode::Packet) => Box::new(packet::PacketMode::new(ports, long()?)),
        (Queueing::Virtual, Mode::Spf) => Box::new(spf::Spf::new(ports, short()?, long()?)),
        (Queueing::Virtual, Mode::Preemptive) => {
            Box::new(preemptive::Preemptive::new(ports, short()?, long()?, phases, options))
        }
    })
}
