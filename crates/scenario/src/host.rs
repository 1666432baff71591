//! Where a scenario runs, and what every place to run has.

use giveway_qdisc::Quantity;
use giveway_spec::Spelled;

use crate::crossbar::Crossbar;
use crate::live::Live;
use crate::network::Network;

/// Where a scenario runs, with all that is there.
#[derive(Clone, Debug)]
pub enum Host {
    /// The packet-level simulation of a network.
    Network(Network),
    /// The slot-level simulation of an input-queued switch.
    Switch(Crossbar),
    /// A test bed of real hosts on one machine.
    Live(Box<Live>),
}

impl Host {
    /// How it is written in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            Host::Network(_) => "network",
            Host::Switch(_) => "switch",
            Host::Live(_) => "live",
        }
    }

    /// What is compared, as it is written with defaults left out. Never empty.
    pub fn compared(&self) -> Vec<String> {
        match self {
            Host::Network(network) => network.disciplines.iter().map(ToString::to_string).collect(),
            Host::Switch(crossbar) => crossbar.schedulers.iter().map(ToString::to_string).collect(),
            Host::Live(live) => live.names(),
        }
    }

    /// All parameters of each of them, by name.
    pub(crate) fn parameters(&self) -> Vec<Vec<(String, Quantity)>> {
        match self {
            Host::Network(network) => quantities(&network.disciplines),
            Host::Switch(crossbar) => quantities(&crossbar.schedulers),
            // Some of them are not disciplines of Giveway.
            Host::Live(live) => live.names().iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Every text in it that may be the name of a file.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        match self {
            Host::Network(network) => network.visit_texts(visit),
            Host::Switch(crossbar) => crossbar.visit_texts(visit),
            Host::Live(live) => live.network.visit_texts(visit),
        }
    }
}

fn quantities<S: Spelled>(specs: &[S]) -> Vec<Vec<(String, Quantity)>> {
    specs.iter().map(|spec| S::catalogue().quantities(spec)).collect()
}
