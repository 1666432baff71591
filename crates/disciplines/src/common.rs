//! Parts that several disciplines share and that are not disciplines themselves.

pub(crate) mod admission;
#[macro_use]
pub(crate) mod classes;
pub(crate) mod clock;
#[macro_use]
pub(crate) mod guaranteed;
pub(crate) mod priority;
pub(crate) mod sent;
pub(crate) mod served;
pub(crate) mod stamped;
pub(crate) mod taking;
pub(crate) mod thresholds;
pub(crate) mod warnings;

use giveway_qdisc::{Bytes, LinkContext};

/// Ethernet's header, which Linux and `giveway live` count, bytes.
const HEADER: u64 = 14;

/// Length of the largest frame of a link.
pub fn frame(context: &LinkContext) -> Bytes {
    Bytes(context.mtu.0.saturating_add(HEADER))
}
