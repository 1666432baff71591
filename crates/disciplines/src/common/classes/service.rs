//! The service that a class is guaranteed, whatever the other classes send.

use giveway_qdisc::{Bytes, LinkContext, Rate, Span};

/// The guaranteed service of a class: a curve in two pieces, later by a latency. A class that always has a
/// packet from some time on has sent the last bit of as many bytes as the curve says, `latency` later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassService {
    /// The path of the class.
    pub class: String,
    /// The rate of the first piece.
    pub m1: Rate,
    /// The length of the first piece.
    pub d: Span,
    /// The rate of the second piece: the rate in the long run.
    pub m2: Rate,
    /// The time by which the service is later.
    pub latency: Span,
}

impl ClassService {
    /// A rate, later by a latency.
    pub fn line(class: String, rate: Rate, latency: Span) -> ClassService {
        ClassService { class, m1: rate, d: Span::ZERO, m2: rate, latency }
    }

    /// A class that goes before all others: a packet waits for the one that the link transmits.
    pub fn first(class: String, context: &LinkContext) -> ClassService {
        ClassService::line(class, context.rate, on_link(context.mtu, context))
    }
}

/// Transmission time of a packet.
pub fn on_link(bytes: Bytes, context: &LinkContext) -> Span {
    context.rate.time_for(bytes.0)
}

/// The guarantee of a leaf holds for all of its packets together. A packet waits for those before it only, so
/// that it has a bound, if the leaf is a fifo.
///
/// # Errors
/// A sentence, if it is not.
pub fn in_order(class: &str, leaf: Option<&crate::Spec>) -> Result<(), String> {
    match leaf {
        None | Some(crate::Spec::fifo(_) | crate::Spec::pfifo(_) | crate::Spec::bfifo(_)) => Ok(()),
        Some(other) => Err(format!(
            "class \"{class}\" has {} for its packets, and a bound for each of them needs a fifo",
            other.name()
        )),
    }
}
