//! Audio: the voice of a call, sent as real-time applications send it.
//!
//! # Principles
//! - A packet every 20 ms, whatever the network does: one Opus frame each. The default of 64 kbit/s includes
//!   the headers: an IP packet of 160 bytes, of which 28 are headers.
//! - Packets are due on the grid of the codec; the operating system sends each a little late, uniformly
//!   within `jitter`.
//! - With voice activity detection (`vad`) the sender is silent while the other side speaks: talk spurts and
//!   pauses with exponential lengths.
//!
//! # Deviations
//! - P.59 models the two directions of a conversation together; here each flow switches on its own, with the
//!   means of that model.
//! - No packets of comfort noise in pauses.
//!
//! # Cost
//! - One event per packet and flow.
//!
//! # References
//! - RFC 7587, sections 3.1.1 and 4.2: rates and frames of Opus over RTP.
//! - ITU-T P.59 table 1: mean talk spurt 1.004 s, mean pause 1.587 s.

use giveway_qdisc::{Bytes, Invalid, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_count, check_packet, check_rate, spread};
use crate::net::{Net, StreamId};

/// Parameters of `audio`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate of each flow during a talk spurt, including IP headers.
    pub rate: Rate,
    /// Time between packets.
    pub interval: Span,
    /// Largest delay of a packet after its time on the grid.
    pub jitter: Span,
    /// True if nothing is sent in pauses: voice activity detection.
    pub vad: bool,
    /// Mean length of a talk spurt, with `vad`.
    pub talk: Span,
    /// Mean length of a pause, with `vad`.
    pub pause: Span,
    /// Number of flows of each pair of nodes.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rate: Rate::kbit(64),
            interval: Span::ms(20),
            jitter: Span::ms(1),
            vad: false,
            talk: Span::ms(1004),
            pause: Span::ms(1587),
            flows: 1,
        }
    }
}

impl Traffic for Config {
    const SUMMARY: &'static str = "voice calls over UDP: a packet every 20 ms, with or without pauses";
    const ANSWERED: bool = false;

    fn lasting(&self) -> Option<u32> {
        Some(self.flows)
    }
    fn largest(&self) -> Option<Bytes> {
        Some(Bytes(self.rate.bytes_in(self.interval)))
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        check_rate("rate", self.rate, "64kbit")?;
        check_count("flows", self.flows, MAX_FLOWS, context)?;
        if self.interval.is_zero() {
            return Err(Invalid::new("interval", "no time between packets: write for example \"20ms\""));
        }
        let bytes = check_packet("rate", Bytes(self.rate.bytes_in(self.interval)))?;
        if self.jitter >= self.interval {
            let message = format!(
                "{} would let packets overtake each other: write less than an interval, {}",
                self.jitter, self.interval
            );
            return Err(Invalid::new("jitter", message));
        }
        let spurts = if self.vad {
            if self.talk.is_zero() {
                return Err(Invalid::new(
                    "talk",
                    "talk spurts of no length send nothing: write for example \"1s\"",
                ));
            }
            Some((self.talk.as_s(), self.pause.as_s()))
        } else {
            None
        };
        let calls = (0..self.flows).flat_map(|_| &context.pairs).enumerate().map(|(number, (from, to))| {
            let mut rng = context.streams.within(&number.to_string()).rng();
            let grid = spread(context.start, self.interval, &mut rng);
            let mut call = Call {
                grid,
                next: grid,
                from: *from,
                to: *to,
                stream: None,
                spurts,
                silent_from: Time::NEVER,
                rng,
            };
            call.begin(self);
            call
        });
        Ok(Box::new(Audio { config: self.clone(), calls: calls.collect(), bytes, stop: context.stop }))
    }
}

struct Audio {
    config: Config,
    calls: Vec<Call>,
    bytes: u32,
    stop: Time,
}

struct Call {
    /// Time of the next packet on the grid of the codec.
    grid: Time,
    /// Time at which that packet leaves.
    next: Time,
    from: u16,
    to: u16,
    stream: Option<StreamId>,
    /// Mean talk spurt and pause in seconds, with voice activity detection.
    spurts: Option<(f64, f64)>,
    /// End of the talk spurt.
    silent_from: Time,
    rng: Rng,
}

impl Source for Audio {
    fn wake(&mut self, net: &mut Net<'_>) {
        let mut earliest = Time::NEVER;
        for call in &mut self.calls {
            if call.next <= net.now() {
                let stream = *call.stream.get_or_insert_with(|| net.stream(call.from, call.to));
                net.datagram(stream, self.bytes);
                call.advance(&self.config);
            }
            if call.next >= self.stop {
                call.next = Time::NEVER;
            }
            earliest = earliest.min(call.next);
        }
        if earliest < Time::NEVER {
            net.wake_at(earliest);
        }
    }
}

impl Call {
    /// Speaks at the start with the probability that it speaks at any moment. What is left of an exponential
    /// time has the same distribution as the whole.
    fn begin(&mut self, config: &Config) {
        if let Some((talk, pause)) = self.spurts {
            let speaks = self.rng.uniform() * (talk + pause) < talk;
            self.silent_from =
                if speaks { self.grid + Span::from_s_f64(self.rng.exponential(talk)) } else { self.grid };
        }
        self.schedule(config);
    }

    fn advance(&mut self, config: &Config) {
        self.grid += config.interval;
        self.schedule(config);
    }

    /// Skips pauses, then draws the delay of the next packet after its time on the grid.
    fn schedule(&mut self, config: &Config) {
        if let Some((talk, pause)) = self.spurts {
            while self.grid >= self.silent_from && self.grid < Time::NEVER {
                let speaks_from = self.silent_from + Span::from_s_f64(self.rng.exponential(pause));
                self.silent_from = speaks_from + Span::from_s_f64(self.rng.exponential(talk));
                let behind = speaks_from.since(self.grid).as_ps();
                self.grid +=
                    Span::from_ps(behind.div_ceil(config.interval.as_ps()) * config.interval.as_ps());
            }
        }
        let late = if config.jitter.is_zero() { 0 } else { self.rng.below(config.jitter.as_ps() + 1) };
        self.next = self.grid + Span::from_ps(late);
    }
}
