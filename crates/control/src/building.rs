//! Functions that build disciplines for a bridge, and the number of buffers that a direction needs.

use giveway_disciplines::Spec;
use giveway_links::Profile;
use giveway_live::{Build, LinkEmulation};
use giveway_qdisc::{Limit, Rate, Span, Streams};
use giveway_replay::Tracer;

use crate::config::DirectionConfig;

/// A function that builds a discipline, each time with other random streams. The discipline is traced if
/// there is a tracer.
pub fn builder(spec: Spec, streams: Streams, tracer: Option<Tracer>, name: &'static str) -> Build {
    let mut built = 0u64;
    Box::new(move |rate| {
        built += 1;
        let context = crate::link::context(rate, streams.within("qdisc").within(&built.to_string()));
        let valid = "the configuration was checked by building it";
        match &tracer {
            Some(tracer) => Box::new(tracer.build(name, &spec, &context).expect(valid)),
            None => spec.build(&context).expect(valid),
        }
    })
}

/// Number of buffers for frames: the limit of the discipline, and the frames that the link emulation delays.
pub fn buffers(config: &DirectionConfig, streams: &Streams) -> u32 {
    /// Assumed length of a frame where a limit is in bytes.
    const SMALL: u64 = 256;
    let context = crate::link::context(config.rate, streams.clone());
    let queued = match config.qdisc.properties(&context).limit {
        Some(Limit::Packets(packets)) => packets,
        Some(Limit::Bytes(bytes)) => bytes / SMALL,
        None => 10_240,
    };
    let in_flight = if config.emulation.is_none() {
        0
    } else {
        let LinkEmulation { delay, jitter, impairments, .. } = &config.emulation;
        let most = |profile: &Option<Profile>, constant: u64| {
            profile.as_ref().map_or(constant, |profile| profile.most().max(constant))
        };
        let rate = Rate::bit(most(&impairments.rate, config.rate.as_bit())).min(Rate::gbit(1));
        let delay = Span::from_ps(most(&impairments.delay, delay.as_ps()));
        rate.bytes_in(delay + *jitter) / SMALL
    };
    // Reserve for frames between ring and queue, and for a later discipline with a larger limit.
    queued.saturating_add(in_flight).saturating_add(4096).clamp(8192, 131_072) as u32
}
