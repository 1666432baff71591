//! Counts of packets at a port, and the classes of packets that they count.

use giveway_qdisc::{Backlog, DropReason, Meta, PortCounters, PortId};

/// Packets above this many bytes carry data; acknowledgements and handshakes are below.
const BARE_BYTES: u32 = 64;

/// Counts per drop reason, by its number.
pub(crate) type Drops = [u64; DropReason::ALL.len()];

/// True for a packet with data.
#[inline]
pub(crate) fn carries_data(meta: &Meta) -> bool {
    meta.bytes > BARE_BYTES
}

/// True for reasons for which the queue drops a packet. Packets are lost on the wire after they were sent,
/// and packets without a route before they arrive at a port.
pub(crate) fn was_queued(why: DropReason) -> bool {
    !matches!(why, DropReason::Wire | DropReason::Unreachable)
}

/// Counters of every recorded port, measured or not. They count rare events only.
#[derive(Clone, Default)]
pub(crate) struct Losses {
    /// Drops of the queue, in the whole run.
    pub dropped: Backlog,
    /// Every drop by its reason, in the whole run.
    pub by_reason: Drops,
    /// Marks, in the whole run.
    pub marked: u64,
    /// The counters of the backend at the end of the run, if it reported any.
    pub reported: Option<PortCounters>,
}

/// The index of a port in a list by port number.
#[inline]
pub(crate) fn index(port: PortId) -> usize {
    port.0 as usize
}
