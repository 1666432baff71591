//! Functions that build disciplines for a bridge, and how much room a direction needs.

use giveway_disciplines::Spec;
use giveway_live::Build;
use giveway_qdisc::{Limit, LinkContext, Rate, Streams};
use giveway_replay::Tracer;

use crate::config::DirectionConfig;

/// Builds a discipline wherever it is wanted, each time with random numbers of its own; traced where there is
/// a trace.
pub fn builder(spec: Spec, streams: Streams, tracer: Option<Tracer>, name: &'static str) -> Build {
    let mut built = 0u64;
    Box::new(move |rate| {
        built += 1;
        let place = streams.within("qdisc").within(&built.to_string());
        let context = LinkContext::new(rate, place);
        let right = "it was built when it was asked for";
        match &tracer {
            Some(tracer) => Box::new(tracer.build(name, &spec, &context).expect(right)),
            None => spec.build(&context).expect(right),
        }
    })
}

/// How many frames a direction must be able to hold: as its discipline may, and what is on the line.
pub fn buffers(config: &DirectionConfig, streams: &Streams) -> u32 {
    /// Frames of this length are taken for what limits in bytes and lines hold.
    const SMALL: u64 = 256;
    let context = LinkContext::new(config.rate, streams.clone());
    let queued = match config.qdisc.properties(&context).limit {
        Some(Limit::Packets(packets)) => packets,
        Some(Limit::Bytes(bytes)) => bytes / SMALL,
        None => 10_240,
    };
    let in_flight = if config.emulation.is_none() {
        0
    } else {
        let rate = config.rate.min(Rate::gbit(1));
        rate.bytes_in(config.emulation.delay + config.emulation.jitter) / SMALL
    };
    // What is between the ring and the queue, and the next discipline that somebody may ask for.
    queued.saturating_add(in_flight).saturating_add(4096).clamp(8192, 131_072) as u32
}
