//! A node of a tree: its queue, its branches and the turns among them.

use crate::backlog::Backlog;
use crate::blocks::{Turn, Turns};
use crate::store::List;
use crate::units::Rate;

/// A queue, and the branches towards the next hops after it.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Packets whose listed route ends here.
    pub(super) queue: List,
    /// Backlog of the own queue.
    pub(super) own: Backlog,
    /// Place 0 is the own queue, place `i` the branch `children[i - 1]`.
    pub(super) children: Vec<u32>,
    /// Places with a backlog, once there are branches.
    pub(super) turns: Turns,
    pub(super) turn: Turn,
    /// The place whose turn it is, if turns are measured in bytes.
    pub(super) visit: Option<u32>,
    /// The place that the listing inspects next.
    pub(super) look: u32,
    pub(super) parent: u32,
    /// Place at the parent.
    pub(super) place: u32,
    /// Share of the own queue.
    pub(super) own_share: Share,
    /// Share of the node at its parent.
    pub(super) share: Share,
    pub(super) hop: u16,
    /// Rate of the link to this node, if known.
    pub(super) rate: Option<Rate>,
    /// Rate of the slowest link to a branch, if any is known.
    pub(super) slowest: Option<Rate>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Weight in units of [`ONE`].
    pub(super) weight: u64,
    /// Bytes that it may send before its next turn.
    pub(super) deficit: u64,
}

/// A weight of 1. Weights are rounded to a sixteenth.
pub(super) const ONE: u64 = 16;

impl Default for Share {
    fn default() -> Share {
        Share { weight: ONE, deficit: 0 }
    }
}

impl Node {
    /// True if the node or anything below it has a backlog.
    #[inline]
    pub(super) fn is_backlogged(&self) -> bool {
        self.own.packets > 0 || self.turns.any()
    }

    /// Number of places: the own queue and the branches.
    #[inline]
    pub(super) fn places(&self) -> u32 {
        self.children.len() as u32 + 1
    }

    #[inline]
    pub(super) fn end_visit(&mut self, place: u32) {
        if self.visit == Some(place) {
            self.visit = None;
        }
    }
}
