//! Reads the parameters of QUIC: `[quic]` of a file, and `quic` of an entry of traffic.

use giveway_sim::QuicConfig;
use serde_json::{Map, Value as Json};

use crate::fields::Reading;
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

/// Reads `quic` of an entry of traffic, whose other keys belong to the file.
pub(super) fn own(reading: &mut Reading, entry: &Table, defaults: Option<&Written>) -> Option<QuicConfig> {
    let Some(node) = entry.get("quic") else { return defaults.map(|(_, config)| config.clone()) };
    let nothing = Map::new();
    let written = defaults.map_or(&nothing, |(written, _)| written);
    table(reading, node, "quic", written).map(|(_, config)| config)
}

/// Reads a table, with `defaults` for the keys that it does not have. A key that neither has takes its value
/// from the congestion control, if it needs one.
fn table(reading: &mut Reading, node: &Node, what: &str, defaults: &Map<String, Json>) -> Option<Written> {
    let implied =
        |chosen: &QuicConfig| chosen.implies().map(|(key, on)| (key.to_owned(), Json::from(on))).collect();
    reading.layered(node, (what, "[quic] with congestion = \"cubic\""), defaults, implied, QuicConfig::check)
}
