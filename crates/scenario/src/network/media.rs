//! Reads the media of a scenario, which several links share, and the links that use them.

use std::collections::BTreeMap;

use giveway_links::{Airtime, BurstLimit, MediumSpec};
use giveway_sim::MediumPlan;

use super::keys::{AirtimeKey, MediumKeys};
use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, head};
use crate::hints::choices;
use crate::tree::{Node, Table, Value};

/// The media of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Media {
    /// The media, by number.
    pub plans: Vec<MediumPlan>,
    numbers: BTreeMap<String, u16>,
}

/// Maximum number of media in a scenario.
const MAX: usize = 10_000;

impl Media {
    /// Reads all `[[medium]]`.
    pub fn read(reading: &mut Reading, root: &Table) -> Media {
        let mut media = Media::default();
        if !root.has("medium") {
            return media;
        }
        let tables = reading.sections(root, "medium", "a list of media is not empty", "name = \"wlan\"");
        for node in tables.unwrap_or_default().iter().take(MAX) {
            media.add(reading, node);
        }
        media
    }

    fn add(&mut self, reading: &mut Reading, node: &Node) -> Option<()> {
        let table = reading.table(node, "a medium", "[[medium]] with name = \"wlan\"")?;
        reading.unknown_keys(table, "a medium", fields::keys::<MediumKeys>());
        let keys: MediumKeys = reading.fields(table, "a medium").unwrap_or_default();
        let spec = spec(&keys);
        check(reading, table, &spec);
        let Some(name) = keys.name else {
            reading.missing(table, "a medium", "name");
            return None;
        };
        if self.numbers.contains_key(&name) {
            let wrong = Diagnostic::error(table.place("name"), format!("there are two media \"{name}\""));
            reading.report(wrong.help("write a [[medium]] once, and medium = \"…\" in each of its links"));
            return None;
        }
        self.numbers.insert(name.clone(), self.plans.len() as u16);
        self.plans.push(MediumPlan { name, spec });
        Some(())
    }

    /// The number of the medium that a direction of a link names. An unknown name is reported.
    pub fn of_link(&self, reading: &mut Reading, table: &Table, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let names: Vec<&String> = self.numbers.keys().collect();
        let wrong = Diagnostic::error(table.place("medium"), format!("there is no medium \"{name}\""));
        let help = match names.is_empty() {
            true => format!("write [[medium]] with name = \"{name}\""),
            false => choices(name, &names),
        };
        reading.report(wrong.help(help));
        None
    }

    /// Reports the media that no link uses. `used` contains the media of all links.
    pub fn check_used(&self, reading: &mut Reading, root: &Table, used: impl Iterator<Item = u16>) {
        let mut unused: Vec<bool> = vec![true; self.plans.len()];
        used.for_each(|number| unused[usize::from(number)] = false);
        let Some(Node { value: Value::List(nodes), .. }) = root.get("medium") else { return };
        for ((plan, node), _) in self.plans.iter().zip(nodes).zip(unused).filter(|(_, unused)| *unused) {
            let message = format!("no link uses the medium \"{}\"", plan.name);
            let place = node.table().map_or_else(|| node.span.clone(), |table| head(&reading.origin, table));
            let help = format!("write medium = \"{}\" in the links that share it", plan.name);
            reading.report(Diagnostic::error(place, message).help(help));
        }
    }
}

/// The parameters of a medium, with defaults for keys that are not written.
fn spec(keys: &MediumKeys) -> MediumSpec {
    let usual = MediumSpec::default();
    MediumSpec {
        access: keys.access.unwrap_or(usual.access),
        backoff: keys.backoff.unwrap_or(usual.backoff),
        overhead: keys.overhead.unwrap_or(usual.overhead),
        limit: BurstLimit {
            bytes: keys.burst_bytes.map_or(usual.limit.bytes, |bytes| bytes.0),
            time: keys.burst_time.unwrap_or(usual.limit.time),
            packets: keys.burst_packets.unwrap_or(usual.limit.packets),
        },
        airtime: match keys.airtime {
            Some(AirtimeKey::Fair) => Airtime::Fair,
            Some(AirtimeKey::Turns) | None => Airtime::Turns,
        },
    }
}

/// Reports parameters with which nothing could be sent.
fn check(reading: &mut Reading, table: &Table, spec: &MediumSpec) {
    if spec.limit.packets == 0 {
        let message = "burst_packets: a burst has at least one packet";
        let wrong = Diagnostic::error(table.place("burst_packets"), message);
        reading.report(wrong.help("write 1 for a medium that sends one packet at a time"));
    }
    if spec.access.is_zero() && spec.backoff.is_zero() && spec.overhead.is_zero() {
        let message = "a medium without access time, backoff and overhead costs nothing to share";
        let wrong = Diagnostic::error(head(&reading.origin, table), message);
        reading.report(wrong.help("write at least access = \"1us\""));
    }
}
