//! Capture: the packets of a pcap or pcapng file, at the times at which they were captured.
//!
//! # Principles
//! - Open loop: packets leave at their captured times, whether they are dropped or not. A replay shows the
//!   effect of a discipline on real traffic, but not the reaction of the senders.
//! - Lengths are those on the wire, however much of each packet was captured; times count from the first
//!   packet.
//! - Each 5-tuple in each direction is a flow, as a router distinguishes them; all of them go from the pair's
//!   first node to its second. Short packets are recognised by the test of P-SPF.
//! - The file is read during the run. Where it is damaged, the replay ends and reports it.
//!
//! # Deviations
//! - Packets that are not IP (ARP, spanning tree) stay on their own network: they are left out, and counted.
//! - Packets that were captured before the network card of the sender segmented them to the MTU are sent as
//!   one.
//! - A packet whose time lies before its predecessor's leaves at the same time as that one.
//!
//! # Cost
//! - One event per packet; one entry of a table per flow.
//!
//! # References
//! - draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
//! - P-SPF, section 2.2: the definition of short packets.

use std::path::{Path, PathBuf};

use giveway_capture::{CaptureError, Ip, Packet, Reader};
use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Ecn, FlowKey, Header, Invalid, Packets, Span, Time};
use giveway_workload::{Direction, Local};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, SourceContext, Traffic};
use crate::net::{Datagram, Net, StreamId};

/// Parameters of `capture`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A pcap or pcapng file, compressed with gzip, zstd or lz4, or not.
    pub file: PathBuf,
    /// Speed of the replay relative to the capture.
    #[serde(default = "default_speed")]
    pub speed: f64,
    /// Number of packets after which the replay ends; without it the replay ends with the file.
    #[serde(default)]
    pub limit: Option<Packets>,
    /// Treatment of the ECN field.
    #[serde(default)]
    pub ecn: EcnField,
    /// Only packets of this direction, "up" or "down"; needs `local`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub way: Option<Direction>,
    /// The local side: prefixes or MAC addresses with commas between them, or gateway=MAC.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub local: Option<Local>,
}

/// Treatment of the ECN field of captured packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EcnField {
    /// Packets are not ECN-capable: a discipline signals congestion by drops, which a replay shows.
    #[default]
    Clear,
    /// As it was captured.
    Keep,
}

fn default_speed() -> f64 {
    1.0
}

/// A capture that cannot be replayed. The caller adds the path.
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("holds no IP packet ({others} others)")]
    NoPacket { others: u64 },
}

/// Hash key of flow keys: fixed, so that a flow has the same key in every run.
const HASHER: SipHasher = SipHasher::new(0x6769_7665_7761_7921, 0x6361_7074_7572_6521);

impl Traffic for Config {
    const SUMMARY: &'static str =
        "the packets of a pcap or pcapng file, at their times and with their lengths";
    const ANSWERED: bool = false;

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        if !(self.speed > 0.0 && self.speed.is_finite()) {
            return Err(Invalid::new(
                "speed",
                format!("{}; write a positive number, for example 1.0", self.speed),
            ));
        }
        if self.way.is_some() != self.local.is_some() {
            let missing = if self.way.is_some() { "local" } else { "way" };
            return Err(Invalid::new(
                missing,
                "way and local belong together: the direction, and the side that it starts from",
            ));
        }
        let path = context.folder.join(&self.file);
        let replays = context.pairs.iter().map(|pair| self.replay(&path, *pair, context.start));
        let replays = replays.collect::<Result<_, ReplayError>>();
        let replays = replays.map_err(|error| Invalid::new("file", format!("{} {error}", path.display())))?;
        Ok(Box::new(Capture { replays, stop: context.stop }))
    }
}

impl Config {
    fn replay(&self, path: &Path, (from, to): (u16, u16), start: Time) -> Result<Replay, ReplayError> {
        let packets = Reader::open(path)?;
        let mut replay = Replay {
            packets,
            from,
            to,
            flows: FlowMap::default(),
            speed: self.speed,
            keep_ecn: self.ecn == EcnField::Keep,
            only: self.way.zip(self.local.clone()),
            left: self.limit.map_or(u64::MAX, |limit| limit.0),
            start,
            first: None,
            next: None,
            last: start,
            foreign: 0,
            error: None,
        };
        replay.advance();
        if replay.next.is_none() {
            if let Some(error) = replay.error {
                return Err(error.into());
            }
            if replay.left > 0 {
                return Err(ReplayError::NoPacket { others: replay.foreign });
            }
        }
        Ok(replay)
    }
}

struct Capture {
    replays: Vec<Replay>,
    stop: Time,
}

/// The replay for one pair of nodes.
struct Replay {
    packets: Reader,
    from: u16,
    to: u16,
    flows: FlowMap<StreamId>,
    speed: f64,
    keep_ecn: bool,
    /// The direction to replay, and the local side.
    only: Option<(Direction, Local)>,
    /// Number of packets left to send.
    left: u64,
    start: Time,
    /// Time of the first packet in the file, nanoseconds.
    first: Option<u64>,
    next: Option<(Time, Packet, Ip)>,
    last: Time,
    /// Packets that are not IP.
    foreign: u64,
    error: Option<CaptureError>,
}

impl Source for Capture {
    fn wake(&mut self, net: &mut Net<'_>) {
        let mut earliest = Time::NEVER;
        for replay in &mut self.replays {
            while let Some((at, packet, ip)) = replay.next
                && at <= net.now()
            {
                replay.send(&packet, &ip, net);
                replay.advance();
            }
            if let Some((at, ..)) = replay.next {
                earliest = earliest.min(at);
            }
        }
        if earliest < self.stop {
            net.wake_at(earliest);
        }
    }

    fn remark(&self) -> Option<String> {
        // Every pair replays the same file, so one remark suffices: that of the replay that has read most.
        let replay = self.replays.iter().max_by_key(|replay| replay.packets.packets())?;
        match (&replay.error, replay.foreign) {
            (Some(error), foreign) => Some(format!("the capture {error}; {foreign} packets were not IP")),
            (None, 1..) => {
                Some(format!("{} packets of the capture were not IP and left out", replay.foreign))
            }
            (None, 0) => None,
        }
    }
}

impl Replay {
    fn send(&mut self, packet: &Packet, ip: &Ip, net: &mut Net<'_>) {
        let captured = ip.tuple.key(&HASHER);
        let stream = *self.flows.entry(captured, || {
            // The same addresses between other nodes are other hosts, as when a capture is replayed at
            // several places.
            let ends = (u64::from(self.from) << 16) | u64::from(self.to);
            let flow = FlowKey(HASHER.hash(&[captured.0.to_be_bytes(), ends.to_be_bytes()].concat()));
            net.stream_of(self.from, self.to, flow)
        });
        let ecn = if self.keep_ecn { ip.ecn } else { Ecn::NotCapable };
        net.datagram_as(
            stream,
            Datagram { bytes: packet.bytes, header: Header::new(ip.dscp, ip.short), ecn, departure: None },
        );
    }

    /// Reads the next IP packet and the time at which it leaves.
    fn advance(&mut self) {
        self.next = None;
        while self.left > 0 {
            let packet = match self.packets.next() {
                None => return,
                Some(Err(error)) => {
                    self.error = Some(error);
                    return;
                }
                Some(Ok(packet)) => packet,
            };
            let first = *self.first.get_or_insert(packet.time);
            let Some(ip) = packet.ip else {
                self.foreign += 1;
                continue;
            };
            if let Some((way, local)) = &self.only
                && local.direction_of(&packet) != Some(*way)
            {
                continue;
            }
            let after_ns = packet.time.saturating_sub(first);
            let after = if self.speed == 1.0 {
                Span::from_ps(after_ns.saturating_mul(1000))
            } else {
                Span::from_s_f64(after_ns as f64 / 1e9 / self.speed)
            };
            self.last = self.last.max(self.start + after);
            self.left -= 1;
            self.next = Some((self.last, packet, ip));
            return;
        }
    }
}
