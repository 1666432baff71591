//! The backends of scenarios, and the operations that all of them have.

use giveway_qdisc::Quantity;
use giveway_spec::SpecType;

use crate::crossbar::Crossbar;
use crate::live::Live;
use crate::network::Network;

/// The backend of a scenario, with the part of the file that it reads.
#[derive(Clone, Debug)]
pub enum Backend {
    /// The packet-level simulation of a network.
    Network(Network),
    /// The slot-level simulation of an input-queued switch.
    Switch(Crossbar),
    /// A test bed of real hosts on one machine.
    Live(Box<Live>),
}

impl Backend {
    /// The name of the backend in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Backend::Network(_) => "network",
            Backend::Switch(_) => "switch",
            Backend::Live(_) => "live",
        }
    }

    /// The compared disciplines or arbiters, as specs without defaults. Never empty.
    pub fn compared(&self) -> Vec<String> {
        match self {
            Backend::Network(network) => network.disciplines.iter().map(ToString::to_string).collect(),
            Backend::Switch(crossbar) => crossbar.arbiters.iter().map(ToString::to_string).collect(),
            Backend::Live(live) => live.names(),
        }
    }

    /// The parameters of each compared discipline, by name.
    pub(crate) fn parameters(&self) -> Vec<Vec<(String, Quantity)>> {
        match self {
            Backend::Network(network) => quantities(&network.disciplines),
            Backend::Switch(crossbar) => quantities(&crossbar.arbiters),
            // The parameters of kernel disciplines are not known here.
            Backend::Live(live) => live.names().iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Visits every string that may name a file.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        match self {
            Backend::Network(network) => network.visit_texts(visit),
            Backend::Switch(crossbar) => crossbar.visit_texts(visit),
            Backend::Live(live) => live.network.visit_texts(visit),
        }
    }
}

/// The parameters of each spec, by name.
fn quantities<S: SpecType>(specs: &[S]) -> Vec<Vec<(String, Quantity)>> {
    specs.iter().map(|spec| S::catalogue().quantities(spec)).collect()
}
