//! Warnings about parameters that several disciplines have.

use std::fmt::Display;

use giveway_qdisc::{Bytes, LinkContext, Span};

/// A target that is less than the time of two packets, since a queue of two packets gets no signal. `effect`
/// says what that means.
pub(crate) fn low_target(target: Span, effect: &str, context: &LinkContext) -> Option<String> {
    let two = context.rate.time_for(2 * context.mtu.0);
    (target < two).then(|| {
        format!(
            "target: {target} is less than two packets of {} bytes take at {} ({}), and {effect}",
            context.mtu.0,
            context.rate,
            two.rough()
        )
    })
}

/// A buffer, `limit` with this many bytes, that is full before the delay reaches the target. `effect` says
/// what that means.
pub(crate) fn low_limit(
    limit: impl Display,
    bytes: u64,
    target: Span,
    effect: &str,
    context: &LinkContext,
) -> Option<String> {
    let drains = context.rate.time_for(bytes);
    (drains < target).then(|| {
        format!(
            "limit: {limit} drain in {} at {}, below the target of {target}: {effect}",
            drains.rough(),
            context.rate
        )
    })
}

/// A quantum that is less than the largest packet of the link.
pub(crate) fn low_quantum(quantum: Bytes, context: &LinkContext) -> Option<String> {
    (quantum.0 < context.mtu.0).then(|| {
        format!(
            "quantum: {quantum} is less than a packet of {} bytes: large packets need several turns, which favours small \
             packets and costs time",
            context.mtu.0
        )
    })
}

/// A controller without a gain of the distance from the target.
pub(crate) fn no_alpha(is_zero: bool) -> Option<String> {
    is_zero.then(|| "alpha: with 0 the delay does not return to target".to_owned())
}
