//! The network of a valid scenario.

use std::path::PathBuf;

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, PortId, Span};
use giveway_sim::{MediumPlan, Routing, Timing};

use super::contest::Contest;
use super::paths::Paths;
use super::topology::Port;
use super::traffic::Stream;
use crate::schedule::Times;

/// A network with its traffic, in which disciplines are compared.
#[derive(Clone, Debug)]
pub struct Network {
    /// The compared disciplines. Never empty: a scenario without comparison has the discipline of its first
    /// measured port.
    pub disciplines: Vec<Spec>,
    /// The names of the nodes, by number.
    pub nodes: Vec<String>,
    /// The ports by number: both directions of all links.
    pub ports: Vec<Port>,
    /// The media that links share.
    pub media: Vec<MediumPlan>,
    /// The timing of hosts.
    pub timing: Timing,
    /// The files of the timing, as written.
    pub(super) timing_files: Vec<String>,
    /// The choice among equally short paths.
    pub routing: Routing,
    /// The traffic sources.
    pub traffic: Vec<Stream>,
    /// The senders that compete, if the scenario is a contest.
    pub contest: Option<Contest>,
    /// The measured ports.
    pub measured: Vec<PortId>,
    /// The sampling interval.
    pub sample: Span,
    /// The upper ends of the size classes of transfers; `None` for the default.
    pub size_classes: Option<Vec<Bytes>>,
    /// The largest length of a small packet; `None` for the default.
    pub small_packet: Option<Bytes>,
    /// True if senders are sampled.
    pub senders: bool,
    /// True if the backlogged periods of each flow are counted.
    pub episodes: bool,
    /// True if burstiness is measured.
    pub bursts: bool,
    /// The duration, the warm-up and the cooldown.
    pub(super) times: Times,
    /// The folder that file names of the traffic are relative to.
    pub(super) folder: PathBuf,
}

impl Network {
    /// The propagation delay of the path between two nodes, in one direction. Zero without a path.
    pub(crate) fn delay(&self, paths: &Paths, from: u16, to: u16) -> Span {
        paths.delay(from, to, &self.ports)
    }

    /// The paths between its nodes.
    pub(crate) fn paths(&self) -> Paths {
        Paths::new(self.nodes.len(), &self.ports)
    }

    /// Visits every string in the entries of the traffic, and the names of the traces of links.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        self.timing_files.iter().for_each(|file| visit(file));
        self.ports.iter().flat_map(|port| &port.files).for_each(|file| visit(file));
        self.traffic.iter().for_each(|stream| stream.table.visit_texts(&mut |_, text| visit(text)));
    }
}
