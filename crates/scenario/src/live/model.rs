//! The test bed of a valid scenario.

use giveway_qdisc::{PortId, Rate, Span};
use giveway_sim::TcpConfig;

use super::contender::{Contender, KernelQueue};
use crate::network::{Network, Queue};

/// A scenario on a test bed.
#[derive(Clone, Debug)]
pub struct Live {
    /// The network that the test bed emulates, as the simulator would run it.
    pub network: Network,
    /// The compared disciplines. Never empty.
    pub compared: Vec<Contender>,
    /// The hosts in front of the bottleneck, by node number.
    pub near: Vec<u16>,
    /// The hosts behind the bottleneck, by node number.
    pub far: Vec<u16>,
    /// The direction from the near side to the far side.
    pub forward: Direction,
    /// The direction from the far side to the near side.
    pub reverse: Direction,
    /// The TCP of all traffic; only `congestion` may differ from entry to entry.
    pub tcp: TcpConfig,
}

/// One direction of the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The port of the network.
    pub port: PortId,
    /// The rate, for IP packets without Ethernet headers; the mean if it varies.
    pub rate: Rate,
    /// The propagation delay of all links of a path together; the mean if it varies.
    pub delay: Span,
    /// True if the rate varies.
    pub varies: bool,
    /// Settings of `giveway live`, names and values, for everything but a constant rate and delay. The names
    /// of files are absolute.
    pub settings: Vec<(&'static str, String)>,
    /// The queue in front of the link.
    pub queue: Queue,
}

impl Direction {
    /// The settings of the wire: all but the rate.
    pub fn wire(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.settings.iter().filter(|(name, _)| *name != "rate")
    }
}

impl Live {
    /// True if anything varies with time, so that it must start when the load does.
    pub fn varies(&self) -> bool {
        [&self.forward, &self.reverse].iter().any(|direction| !direction.settings.is_empty())
    }

    /// The qdisc of Linux for the reverse direction of a contender in the kernel; `None` if Linux has none
    /// that does the same.
    pub fn reverse_in_kernel(&self) -> Option<KernelQueue> {
        match &self.reverse.queue {
            Queue::Fixed(spec) => Some(KernelQueue::plain(&spec.in_linux()?.text(spec))),
            // A test bed compares in one direction only.
            Queue::Compare => None,
        }
    }

    /// The names of the compared disciplines: specs without defaults.
    pub fn names(&self) -> Vec<String> {
        let disciplines = &self.network.disciplines;
        self.compared.iter().map(|contender| contender.name(disciplines)).collect()
    }
}
