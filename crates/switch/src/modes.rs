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

use crate::arbiter::{ArbiterConfig, ArbiterContext};
use crate::options::{Mode, Options, Queueing};
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
