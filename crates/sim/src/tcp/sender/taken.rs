//! Enters an acknowledgement into the scoreboard.

use giveway_qdisc::Time;

use crate::segment::Segment;
use crate::tcp::scoreboard::{Acked, Deliveries, Scoreboard};

/// The changes of an acknowledgement in the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckEffect {
    /// Send time of the newest segment whose round trip it measured.
    pub measured: Option<Time>,
    /// Sequence numbers that it reports by SACK for the first time.
    pub selective: u64,
}

/// Enters an acknowledgement into the scoreboard.
#[inline]
pub(super) fn take(
    board: &mut Scoreboard,
    segment: &Segment,
    sack: bool,
    deliveries: &mut impl Deliveries,
) -> AckEffect {
    let acked = if segment.ack > board.una() { board.ack(segment.ack, deliveries) } else { Acked::default() };
    let mut taken = AckEffect { measured: acked.measured, selective: 0 };
    if sack {
        for (from, to) in segment.blocks() {
            let new = board.sack(from, to, deliveries);
            taken.selective += new.len;
            taken.measured = taken.measured.max(new.measured);
        }
    }
    taken
}
