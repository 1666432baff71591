//! Reads the timing of machines: how late hosts and links wake up.

use std::path::Path;

use giveway_links::{Lateness, Wake};
use giveway_qdisc::{Bytes, Span};
use giveway_sim::Timing;

use super::keys::{PhaseKey, TimingKeys};
use super::lateness::lateness;
use super::topology::{Queue, Topology};
use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, wrong_type};
use crate::hints::{choices, clipped};
use crate::tree::{Node, Table, Value};

/// The timing of the machines of a scenario.
#[derive(Debug, Default)]
pub(crate) struct MachineTiming {
    /// The timing of hosts.
    pub hosts: Timing,
    /// The lateness of the links that compare disciplines, unless they have their own.
    pub dispatch_jitter: Option<Lateness>,
    /// The bursts of TCP senders, unless `[tcp]` has its own.
    pub gso: Option<Bytes>,
    /// The files that are read, as written.
    pub files: Vec<String>,
}

/// The name of the measured timing that is part of the program, in a scenario.
const MEASURED: &str = "measured";
/// The bursts of TCP senders with a measured timing, as Linux sends them.
const GSO: Bytes = Bytes(65_536);

/// The longest time that a host takes for a packet that it receives.
///
/// In the capture of the example, examples/home-uplink.pcapng, two hosts with Linux answered 2,935 segments
/// with acknowledgements: after 1.3 us at the earliest, after 3 us at the tenth percentile, and after 16 us
/// in the median. So no host is more regular than a microsecond, and a full packet takes 12 at 1 Gbit/s. The
/// distribution within it is not known, and is uniform here.
const HANDLING: Span = Span::us(1);

/// Reads `timing`. Files are relative to `folder`. `phase` decides whether hosts take time for packets.
pub(crate) fn read(reading: &mut Reading, root: &Table, folder: &Path, phase: PhaseKey) -> MachineTiming {
    let mut timing = written(reading, root, folder);
    timing.hosts.handling = if phase == PhaseKey::Sampled { HANDLING } else { Span::ZERO };
    timing
}

/// The timing as the scenario writes it.
fn written(reading: &mut Reading, root: &Table, folder: &Path) -> MachineTiming {
    let mut timing = MachineTiming::default();
    let Some(node) = root.get("timing") else { return timing };
    match &node.value {
        Value::Table(table) => timing.keys(reading, table, folder),
        _ => match node.text() {
            Some(name) => timing.preset(reading, node, name, folder),
            None => {
                let message = "timing: expected \"measured\", a file, or a table";
                reading.report(wrong_type(node, message));
            }
        },
    }
    timing
}

impl MachineTiming {
    /// A measured timing: senders and receivers are late, and offloads are on. Links are not: a shaper of the
    /// kernel has its own timers, which nobody has measured here, and the router of a test bed decides as if
    /// it had been woken in time.
    fn preset(&mut self, reading: &mut Reading, node: &Node, name: &str, folder: &Path) {
        let name = if name == MEASURED { Lateness::NAMES[0] } else { name };
        if name.parse::<Span>().is_ok() {
            let message = "timing: a time alone does not say what is late";
            let wrong = Diagnostic::error(node.span.clone(), message);
            let help =
                format!("write for example timing = {{ senders = \"{name}\", receivers = \"{name}\" }}");
            return reading.report(wrong.help(help));
        }
        if Lateness::named(name, Wake::Timer).is_none() && !name.ends_with(".csv") {
            let message = format!("timing: \"{name}\" is neither a time nor a file nor a known machine");
            let wrong = Diagnostic::error(node.span.clone(), clipped(message));
            return reading.report(wrong.help(choices(name, &[MEASURED, Lateness::NAMES[0]])));
        }
        let mut read = |what| lateness(reading, node, "timing", name, what, folder, &mut self.files);
        let Some(timers) = read(Wake::Timer) else { return };
        let Some(receivers) = read(Wake::Receive) else { return };
        self.hosts =
            Timing { senders: Some(timers), receivers: Some(receivers), gro: true, ..Timing::default() };
        self.gso = Some(GSO);
    }

    /// A timing that is written key by key.
    fn keys(&mut self, reading: &mut Reading, table: &Table, folder: &Path) {
        reading.unknown_keys(table, "timing", fields::keys::<TimingKeys>());
        let keys: TimingKeys = reading.fields(table, "timing").unwrap_or_default();
        let mut read = |key: &str, written: &Option<String>, what| {
            let (node, name) = (table.get(key)?, written.as_deref()?);
            lateness(reading, node, key, name, what, folder, &mut self.files)
        };
        self.hosts = Timing {
            senders: read("senders", &keys.senders, Wake::Timer),
            receivers: read("receivers", &keys.receivers, Wake::Receive),
            coalesce: keys.coalesce.unwrap_or_default(),
            gro: keys.gro.unwrap_or_default(),
            ..Timing::default()
        };
        self.dispatch_jitter = read("links", &keys.links, Wake::Timer);
        if self.hosts.gro && self.hosts.receivers.is_none() && self.hosts.coalesce.is_zero() {
            let message = "gro: hosts that handle each packet at once have nothing to join";
            let wrong = Diagnostic::error(table.place("gro"), message);
            reading.report(wrong.help("write coalesce or receivers, too, such as coalesce = \"50us\""));
        }
    }

    /// Makes the links late that compare disciplines.
    pub fn apply(&self, topology: &mut Topology) {
        let Some(lateness) = &self.dispatch_jitter else { return };
        let compare =
            |port: &&mut super::topology::Port| port.queue == Queue::Compare && port.medium.is_none();
        for port in topology.ports.iter_mut().filter(compare) {
            port.impairments.dispatch_jitter.get_or_insert_with(|| lateness.clone());
        }
    }
}
