//! The link of a direction, as disciplines get it.

use giveway_qdisc::{Hosts, LinkContext, Rate, Streams};

/// The context of a discipline at a link of real frames. Their hosts are hashes of addresses.
pub(crate) fn context(rate: Rate, streams: Streams) -> LinkContext {
    LinkContext { hosts: Hosts::hashed(), ..LinkContext::new(rate, streams) }
}
