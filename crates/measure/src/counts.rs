//! Counts of packets at a port, and the classes of packets that they count.

use giveway_qdisc::{Backlog, DropReason, Meta, PortCounters, PortId};

/// Packets above this many bytes carry data; acknowledgements and handshakes are below.
const BARE_BYTES: u32 = 64;

/// Counts per drop reason, by its number.
pub(crate) type Drops = [u64; DropReason::ALL.len()];

/// Whether a packet carries data.
#[inline]
pub(crate) fn carries_data(meta: &Meta) -> bool {
    meta.bytes > BARE_BYTES
}

/// Whether a drop for this reason is one of the queue. The host loses packets on the wire after they were sent, and
/// packets without a route before they arrive.
pub(crate) fn was_queued(why: DropReason) -> bool {
    !matches!(why, DropReason::Wire | DropReason::Unreachable)
}

/// What is counted at every recorded port, measured or not: only what is rare.
#[derive(Clone, Default)]
pub(crate) struct Losses {
    /// Drops of the queue, in the whole run.
    pub dropped: Backlog,
    /// Every drop by its reason, in the whole run.
    pub by_reason: Drops,
    /// Marks, in the whole run.
    pub marked: u64,
    /// What the host's own books say in the end, if it told.
    pub told: Option<PortCounters>,
}

/// The place of a port in a list by port number.
#[inline]
pub(crate) fn index(port: PortId) -> usize {
    port.0 as usize
}
