//! Reads the parameters of QUIC: `[quic]` of a file, and `quic` of an entry of traffic.

use giveway_sim::QuicConfig;
use serde_json::{Map, Value as Json};

use crate::fields::{Reading, keys};
use crate::tree::{Node, Table};

/// The keys that were written, and the configuration that they make.
pub(super) type Written = (Map<String, Json>, QuicConfig);

/// Reads `[quic]`; `None` if it is not valid.
pub(super) fn defaults(reading: &mut Reading, root: &Table) -> Option<Written> {
    match root.get("quic") {
        Some(node) => table(reading, node, "[quic]", &Map::new()),
        None => Some((Map::new(), QuicConfig::default())),
    }
}

/// Reads `quic` of an entry of traffic, whose other keys are those of the file.
pub(super) fn own(reading: &mut Reading, entry: &Table, defaults: Option<&Written>) -> Option<QuicConfig> {
    let Some(node) = entry.get("quic") else { return defaults.map(|(_, config)| config.clone()) };
    let nothing = Map::new();
    let written = defaults.map_or(&nothing, |(written, _)| written);
    table(reading, node, "quic", written).map(|(_, config)| config)
}

/// Reads a table, with `defaults` for the keys that it does not have. A key that neither has takes its value
/// from the congestion control, if it needs one.
fn table(reading: &mut Reading, node: &Node, what: &str, defaults: &Map<String, Json>) -> Option<Written> {
    let table = reading.table(node, what, "[quic] with congestion = \"cubic\"")?;
    let known = keys::<QuicConfig>();
    reading.unknown_keys(table, what, &known);
    let (own, _) = reading.read::<QuicConfig>(table, what, &known, &|json| serde_json::from_value(json));
    let mut written = defaults.clone();
    written.extend(own);
    let config = |keys: Map<String, Json>| -> QuicConfig {
        serde_json::from_value(Json::Object(keys)).expect("each key is valid alone, and all have defaults")
    };
    let chosen = config(written.clone());
    let mut all: Map<String, Json> =
        chosen.implies().map(|(key, on)| (key.to_owned(), Json::from(on))).collect();
    all.extend(written.clone());
    let config = config(all);
    if let Err(invalid) = config.check() {
        reading.invalid(table, what, &invalid);
        return None;
    }
    Some((written, config))
}
