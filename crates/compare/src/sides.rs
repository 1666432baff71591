//! The directions in which a discipline is set up.

use std::fmt;

use giveway_workload::Direction;

/// The directions in which a discipline is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Upstream only.
    Up,
    /// Downstream only.
    Down,
    /// Both directions.
    Both,
}

impl Sides {
    /// All, one direction first: among setups that are as good, the smaller one is recommended.
    pub const ALL: [Sides; 3] = [Sides::Up, Sides::Down, Sides::Both];

    /// True if the discipline is set up in this direction.
    pub fn includes(self, direction: Direction) -> bool {
        match self {
            Sides::Up => direction == Direction::Up,
            Sides::Down => direction == Direction::Down,
            Sides::Both => true,
        }
    }

    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Sides::Up => "upstream",
            Sides::Down => "downstream",
            Sides::Both => "both",
        }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sides::Up => "upstream only",
            Sides::Down => "downstream only",
            Sides::Both => "in both directions",
        })
    }
}
