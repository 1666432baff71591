//! Words of messages, and the mode of a comparison.

use std::path::Path;

use giveway_workload::Direction;

/// The behaviour of the simulated senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Applications transfer the captured data over TCP, which reacts to the link.
    Flows,
    /// Packets arrive when they were captured, and no sender reacts.
    Replay,
}

/// The name of a direction in messages.
pub fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upstream",
        Direction::Down => "downstream",
    }
}

/// A path as messages show it.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}
