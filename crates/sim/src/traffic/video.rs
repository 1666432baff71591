//! Video: the picture of a call, sent as real-time applications send it.
//!
//! # Principles
//! - Frames at a fixed rate, each sent as one burst of packets: that burst, not the mean rate, matters to a
//!   small buffer or a slow link.
//! - At regular intervals comes a key frame, several times as large as the others; `rate` is the mean over
//!   both.
//! - Sizes vary from frame to frame around their mean, lognormally.
//!
//! # Deviations
//! - The rate does not adapt, and lost packets are not retransmitted. With a sender that reacts, a run would
//!   show its control law, not the discipline.
//! - Frame sizes are independent; scenes are not modelled.
//!
//! # Cost
//! - One event per frame and flow.
//!
//! # References
//! - RFC 8593, models of video traffic for the evaluation of congestion control; RFC 8868, that evaluation.

use giveway_qdisc::{Bytes, Invalid, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_count, check_packet, check_rate, spread};
use crate::net::{Net, StreamId};

/// Parameters of `video`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Mean rate of each flow, including IP headers.
    pub rate: Rate,
    /// Frames per second.
    pub fps: f64,
    /// Number of frames from one key frame to the next.
    pub key_every: u32,
    /// Ratio of the mean size of a key frame to the mean size of the others.
    pub key_ratio: f64,
    /// Standard deviation of frame sizes as a share of their mean.
    pub variation: f64,
    /// Largest IP packet.
    pub packet: Bytes,
    /// Number of flows of each pair of nodes.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rate: Rate::kbit(1500),
            fps: 30.0,
            key_every: 90,
            key_ratio: 5.0,
            variation: 0.2,
            packet: Bytes(1200),
            flows: 1,
        }
    }
}

/// Smallest IP packet of a frame, bytes.
const SMALLEST: u32 = 64;
/// Largest mean size of a key frame, bytes. Frames are sent at once, so this bounds the memory.
const LARGEST: f64 = 16_777_216.0;

impl Traffic for Config {
    const SUMMARY: &'static str = "video calls over UDP: frames as bursts of packets, with key frames";
    const ANSWERED: bool = false;

    fn lasting(&self) -> Option<u32> {
        Some(self.flows)
    }
    fn largest(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        check_rate("rate", self.rate, "1500kbit")?;
        check_count("flows", self.flows, MAX_FLOWS, context)?;
        if !(self.fps > 0.0 && self.fps <= 1000.0) {
            return Err(Invalid::new("fps", format!("{} frames per second; write 1 to 1000", self.fps)));
        }
        if self.key_every == 0 {
            return Err(Invalid::new(
                "key_every",
                "a key frame every 0 frames; write 1 if every frame is one",
            ));
        }
        if !(1.0..=1000.0).contains(&self.key_ratio) {
            return Err(Invalid::new(
                "key_ratio",
                format!("{}; write a number from 1 to 1000", self.key_ratio),
            ));
        }
        if !(0.0..=2.0).contains(&self.variation) {
            return Err(Invalid::new("variation", format!("{}; write a number from 0 to 2", self.variation)));
        }
        let most = check_packet("packet", self.packet)?;
        if most < SMALLEST {
            return Err(Invalid::new(
                "packet",
                format!("{} is too small: write at least \"{SMALLEST}b\"", self.packet),
            ));
        }
        let every = f64::from(self.key_every);
        let frame = self.rate.bytes_per_s() / self.fps * every / (every - 1.0 + self.key_ratio);
        if frame < f64::from(SMALLEST) {
            let message =
                format!("leaves {frame:.0} bytes for a frame: write a higher rate, or fewer frames");
            return Err(Invalid::new("rate", message));
        }
        if frame * self.key_ratio > LARGEST {
            let message = format!(
                "leaves {:.0} bytes for a key frame, more than 16 MiB: write a lower rate, or more frames per second",
                frame * self.key_ratio
            );
            return Err(Invalid::new("rate", message));
        }
        let interval = Span::from_s_f64(1.0 / self.fps);
        // The mean of a lognormal variable with this sigma and mu = 0 is exp(sigma^2 / 2).
        let sigma = libm::sqrt(libm::log1p(self.variation * self.variation));
        let flows = (0..self.flows).flat_map(|_| &context.pairs).enumerate().map(|(number, (from, to))| {
            let mut rng = context.streams.within(&number.to_string()).rng();
            let next = spread(context.start, interval, &mut rng);
            Flow { next, from: *from, to: *to, stream: None, frames: 0, rng }
        });
        Ok(Box::new(Video {
            flows: flows.collect(),
            interval,
            frame: frame * libm::exp(-sigma * sigma / 2.0),
            sigma,
            key_every: self.key_every,
            key_ratio: self.key_ratio,
            most,
            stop: context.stop,
        }))
    }
}

struct Video {
    flows: Vec<Flow>,
    interval: Span,
    /// Median size of a frame that is not a key frame, bytes.
    frame: f64,
    /// Standard deviation of the logarithm of sizes.
    sigma: f64,
    key_every: u32,
    key_ratio: f64,
    most: u32,
    stop: Time,
}

struct Flow {
    next: Time,
    from: u16,
    to: u16,
    stream: Option<StreamId>,
    frames: u32,
    rng: Rng,
}

impl Source for Video {
    fn wake(&mut self, net: &mut Net<'_>) {
        let mut earliest = Time::NEVER;
        for flow in &mut self.flows {
            if flow.next <= net.now() {
                let stream = *flow.stream.get_or_insert_with(|| net.stream(flow.from, flow.to));
                let key = flow.frames == 0;
                flow.frames = (flow.frames + 1) % self.key_every;
                let size = self.frame
                    * if key { self.key_ratio } else { 1.0 }
                    * libm::exp(self.sigma * flow.rng.normal());
                burst(((size.min(16.0 * LARGEST) + 0.5) as u32).max(SMALLEST), self.most, |bytes| {
                    net.datagram(stream, bytes)
                });
                flow.next += self.interval;
            }
            if flow.next >= self.stop {
                flow.next = Time::NEVER;
            }
            earliest = earliest.min(flow.next);
        }
        if earliest < Time::NEVER {
            net.wake_at(earliest);
        }
    }
}

/// Cuts a frame into packets of nearly equal length, as RTP payload formats advise.
fn burst(bytes: u32, most: u32, mut send: impl FnMut(u32)) {
    let packets = bytes.div_ceil(most);
    for number in 0..packets {
        send(bytes / packets + u32::from(number < bytes % packets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_evenly() {
        let cut = |bytes| {
            let mut sent = Vec::new();
            burst(bytes, 1200, |packet| sent.push(packet));
            sent
        };
        assert_eq!(cut(1200), [1200]);
        assert_eq!(cut(1201), [601, 600]);
        assert_eq!(cut(6250), [1042, 1042, 1042, 1042, 1041, 1041]);
    }
}
