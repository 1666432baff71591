//! Admission to a buffer that several flows share.

use giveway_qdisc::{Backlog, DropReason, Limit};

/// Reason to refuse an arriving packet of `bytes` bytes; `None` if it may be enqueued. A packet that exceeds
/// the limit alone is always refused, and one that finds the buffer full if `refuses_arrivals` is true.
#[inline]
pub(crate) fn refusal(
    bytes: u32,
    limit: Limit,
    backlog: Backlog,
    refuses_arrivals: bool,
) -> Option<DropReason> {
    if !limit.admits(Backlog::ZERO, bytes) {
        return Some(DropReason::TooLarge);
    }
    (refuses_arrivals && !limit.admits(backlog, bytes)).then_some(DropReason::Overlimit)
}
