//! The packets of a capture: a pcap or pcapng file, cut into cells.
//!
//! # Principles
//! - A packet has as many cells of `cell` bytes as its IP length fills, the last one padded. Its class
//!   follows the P-SPF paper, section 2.2: packets of at most 64 bytes that are UDP, or TCP without data,
//!   are short.
//! - Its first cell arrives in the slot in which it was captured, counted from the first packet. A slot is
//!   the transmission time of a cell on a link of `rate`. The cells of an input arrive one after the other: a
//!   packet that was captured while the link of its input is busy waits upstream.
//! - A capture has no ports of a switch, so hashes select them: the input by the flow or the source address,
//!   the output by the destination address or the flow. Inputs and outputs have different keys and are
//!   therefore independent: an address has different ports as a source and as a destination, and a flow that
//!   arrives at input 3 leaves at output 3 no more often than at any other. The keys follow from the seed, so
//!   runs with other seeds have the same packets at other ports.
//! - `speed` and `load` change the distances of packets, never their sizes or their order. The load is the
//!   mean over all inputs, from the first packet to the end of the last one. Hashes spread flows, not cells,
//!   so some inputs have more than that. At an input that would have more than 1, packets wait upstream, and
//!   the offered load is below `load`. An output with more than 1 is overloaded, and its backlog grows.
//!
//! # Deviations
//! - Packets that are not IP are left out. A packet that was captured before the network card segmented it is
//!   one packet.
//! - A packet with an earlier time than the packet before it arrives as if at the same time.
//! - A short packet that does not fit into a cell, which requires cells below 64 bytes, is long.
//!
//! # Cost
//! - The file is read once, when the run is set up. It takes 16 bytes per packet, and up to twice that while
//!   reading; `limit` bounds them.
//! - Each size in cells is a kind with its own statistics, about 0.5 MB each.
//!
//! # References
//! - W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance,
//!   IWQoS 2005.
//! - draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

mod reading;

use std::path::PathBuf;
use std::sync::Arc;

use giveway_qdisc::{Bytes, Invalid, Packets, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::reading::{Inputs, Outputs};
use self::reading::{Selection, Trace};
use super::{Arrival, Silence, Source, Traffic, TrafficContext, TrafficSources};

/// The packets of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A pcap or pcapng file, compressed with gzip, zstd or lz4, or not.
    pub file: PathBuf,
    /// Rate of a link, in bits of cells per second.
    #[serde(default = "default_rate")]
    pub rate: Rate,
    /// Size of a cell.
    #[serde(default = "default_cell")]
    pub cell: Bytes,
    /// Selection of the input of a packet.
    #[serde(default)]
    pub inputs: Inputs,
    /// Selection of the output of a packet.
    #[serde(default)]
    pub outputs: Outputs,
    /// Factor by which packets arrive faster than they were captured. Default, without `load`: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Mean load to which the capture is compressed or stretched, in cells per slot and input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Start again at the end.
    #[serde(default)]
    pub repeat: bool,
    /// Number of IP packets. Default: all of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Packets>,
}

fn default_rate() -> Rate {
    Rate::gbit(10)
}

fn default_cell() -> Bytes {
    Bytes(64)
}

/// Largest length of a capture in slots: two days of cells of 64 bytes at 10 Gbit/s. With it, times in ticks
/// cannot overflow.
const MAX_SLOTS: u64 = 1 << 42;

impl Traffic for Config {
    const SUMMARY: &'static str = "the packets of a pcap or pcapng file, at their times and cut into cells";

    fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid> {
        self.check()?;
        let path = context.folder.join(&self.file);
        let selection = Selection { inputs: self.inputs, outputs: self.outputs, cell: self.cell };
        let mut trace = Trace::new(selection, context);
        trace.read(&path, self.limit)?;
        let stretch = self.stretch(&trace)?;
        let length = trace.convert_to_slots(|ns| self.slot(ns, stretch));
        if length > MAX_SLOTS {
            let message = format!(
                "{} lasts {length} slots, and at most {MAX_SLOTS} are possible: write a higher speed, or limit if one of \
                 its times is wrong",
                path.display()
            );
            return Err(Invalid::new("file", message));
        }
        let rates = trace.rates(length)?;
        let cells: Arc<[u64]> = trace.kinds.iter().map(|kind| u64::from(kind.cells)).collect();
        let again = self.repeat.then_some(length);
        let source = |packets: Vec<Arrival>| -> Box<dyn Source> {
            if packets.is_empty() {
                return Box::new(Silence);
            }
            Box::new(Replay { packets, cells: Arc::clone(&cells), again, at: 0, begun: 0, free: 0 })
        };
        let sources = trace.inputs.into_iter().map(source).collect();
        Ok(TrafficSources { kinds: trace.kinds, serial: true, sources, rates })
    }
}

impl Config {
    /// Refuses parameters without meaning for any capture.
    fn check(&self) -> Result<(), Invalid> {
        let wrong = |parameter: &'static str, message: String| Err(Invalid::new(parameter, message));
        if self.rate.as_bit() == 0 {
            return wrong("rate", "expected a rate above 0: write \"10gbit\", for example".into());
        }
        if self.cell == Bytes::ZERO {
            return wrong("cell", "expected a size above 0: write \"64b\", for example".into());
        }
        if self.limit == Some(Packets(0)) {
            return wrong("limit", "0 packets: write \"1000p\", for example, or leave it out".into());
        }
        match (self.speed, self.load) {
            (Some(_), Some(_)) => {
                wrong("speed", "speed and load both set the arrival rate: write one of them".into())
            }
            (Some(speed), None) if !(speed.is_finite() && speed > 0.0) => {
                wrong("speed", format!("{speed}: expected a number above 0, such as 10.0"))
            }
            (None, Some(load)) if !(load > 0.0 && load <= 1.0) => {
                wrong("load", format!("{load}: expected a number above 0 and at most 1, such as 0.8"))
            }
            _ => Ok(()),
        }
    }

    /// Length of a slot on a link of 1 bit/s, in nanoseconds.
    fn slot_ns_bits(&self) -> u128 {
        8_000_000_000 * u128::from(self.cell.0)
    }

    /// The slot of a time after the first packet, with times multiplied by `stretch`.
    fn slot(&self, ns: u64, stretch: f64) -> u64 {
        let captured = u128::from(ns) * u128::from(self.rate.as_bit());
        if stretch == 1.0 {
            return u64::try_from(captured / self.slot_ns_bits()).unwrap_or(u64::MAX);
        }
        (captured as f64 * stretch / self.slot_ns_bits() as f64) as u64
    }

    /// The factor by which captured times are multiplied.
    fn stretch(&self, trace: &Trace) -> Result<f64, Invalid> {
        let Some(load) = self.load else { return Ok(1.0 / self.speed.unwrap_or(1.0)) };
        let wanted = trace.cells() as f64 / (load * trace.inputs.len() as f64);
        let last = f64::from(trace.last.1);
        let captured = trace.last.0 as f64 * self.rate.as_bit() as f64 / self.slot_ns_bits() as f64;
        let stretch = (wanted - last) / captured;
        if stretch.is_finite() && stretch > 0.0 {
            return Ok(stretch);
        }
        let message = if captured == 0.0 {
            "all packets have the same time, which cannot be stretched: leave it out".to_owned()
        } else {
            format!(
                "all {} cells would have to come within {wanted:.1} slots, and the last packet alone takes {last}: write a \
                 lower one",
                trace.cells()
            )
        };
        Err(Invalid::new("load", message))
    }
}

/// The source of an input: its packets, once or repeated.
struct Replay {
    /// Packets in the slots in which they were captured, which may overlap on the link.
    packets: Vec<Arrival>,
    /// Cells of each kind.
    cells: Arc<[u64]>,
    /// Length of a round in slots, if the capture is repeated.
    again: Option<u64>,
    /// Index of the next packet.
    at: usize,
    /// The slot in which this round started.
    begun: u64,
    /// The first slot in which the link is free again.
    free: u64,
}

impl Source for Replay {
    fn next(&mut self) -> Option<Arrival> {
        if self.at == self.packets.len() {
            self.begun += self.again?;
            self.at = 0;
        }
        let packet = self.packets[self.at];
        self.at += 1;
        let first = (self.begun + packet.first).max(self.free);
        self.free = first + self.cells[usize::from(packet.kind)];
        Some(Arrival { first, ..packet })
    }
}

#[cfg(test)]
mod tests;
