//! The packets of a capture: a pcap or pcapng file, cut into cells.
//!
//! # Principles
//! - A packet has as many cells of `cell` bytes as its IP length fills, the last one padded. Its class is that of the P-SPF
//!   paper's section 2.2: short are those of at most 64 bytes that are UDP or TCP without data.
//! - Its first cell comes in the slot in which it was captured, counted from the first packet; a slot is what a link of
//!   `rate` needs for a cell. The cells of an input come one after the other: a packet that was captured while the link of
//!   its input still brings another one waits upstream until that has ended.
//! - A capture knows no ports, so they are chosen by hash: the input by the flow or by the source's address, the output by the
//!   destination's address or by the flow. Inputs and outputs have keys of their own, so that one choice says nothing about
//!   the other: an address is at other ports as a source than as a destination, and a flow that comes in at 3 leaves at 3 no
//!   more often than at any other. The keys follow from the seed: runs with other seeds are of the same packets at other
//!   ports.
//! - `speed` and `load` change the distances of packets, never their sizes or their order. The load is the mean over all
//!   inputs, from the first packet to the end of the last one. Hashes spread flows, not cells, so some input has more than
//!   that; one that would have more than 1 lets packets wait upstream, and less is offered than was asked for. An output of
//!   which more than 1 is asked is overloaded: what waits for it grows.
//!
//! # Deviations
//! - What is not IP is left out. Of packets that were captured before a network card cut them up, all is one packet.
//! - A packet whose time lies before that of the packet before it comes as if at the same time.
//! - A short packet that does not fit into a cell, which takes cells below 64 bytes, is long.
//!
//! # Cost
//! - The file is read once, when the run is set up: 16 bytes per packet are kept, and up to twice that while reading.
//!   `limit` bounds them.
//! - Each size in cells is a kind that is measured by itself, some 0.5 MB each.
//!
//! # References
//! - W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance, IWQoS 2005.
//! - draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capture::{CaptureError, Packet, Reader};
use qdisc::hash::SipHasher;
use qdisc::{Bytes, Invalid, Packets, Rate, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, Offered, Place, Silence, Source, Traffic};
use crate::packet::{Class, Kind, MOST_CELLS};
use crate::rates::{Pattern, Rates};

/// The packets of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A pcap or pcapng file, compressed with gzip or not.
    pub file: PathBuf,
    /// Rate of a link, in bits of cells.
    #[serde(default = "default_rate")]
    pub rate: Rate,
    /// Size of a cell.
    #[serde(default = "default_cell")]
    pub cell: Bytes,
    /// What chooses the input of a packet.
    #[serde(default)]
    pub inputs: Inputs,
    /// What chooses its output.
    #[serde(default)]
    pub outputs: Outputs,
    /// How many times as fast as it was captured; without it and `load` as it was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Cells per slot and input, on average, that the capture is compressed or stretched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Begins again at the end.
    #[serde(default)]
    pub repeat: bool,
    /// Ends after so many IP packets; without it with the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Packets>,
}

/// What chooses the input of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// A hash of addresses, ports and protocol: the most even.
    #[default]
    Flow,
    /// A hash of the source's address: what a host sends comes in at one input.
    Source,
    /// The number of the interface at which it was captured; in pcap files it is always 0.
    Interface,
}

/// What chooses the output of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// A hash of the destination's address: all that a host gets leaves at one output, as in a router.
    #[default]
    Destination,
    /// A hash of addresses, ports and protocol: for captures of few hosts, which would ask too much of few outputs.
    Flow,
}

fn default_rate() -> Rate {
    Rate::gbit(10)
}

fn default_cell() -> Bytes {
    Bytes(64)
}

/// The most slots that a capture may last: two days of cells of 64 bytes at 10 Gbit/s. Times in ticks stay far from the
/// largest number then.
const MOST_SLOTS: u64 = 1 << 42;

impl Traffic for Config {
    const SUMMARY: &'static str = "the packets of a pcap or pcapng file, at their times and cut into cells";

    fn build(&self, place: &Place) -> Result<Offered, Invalid> {
        self.check()?;
        let path = place.folder.join(&self.file);
        let mut trace = Trace::new(place);
        trace.read(self, &path)?;
        let stretch = self.stretch(&trace)?;
        let length = trace.place_in_slots(|ns| self.slot(ns, stretch));
        if length > MOST_SLOTS {
            let message = format!(
                "{} lasts {length} slots, and at most {MOST_SLOTS} are possible: write a higher speed, or limit if one of \
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
        Ok(Offered { kinds: trace.kinds, serial: true, sources, rates })
    }
}

impl Config {
    /// Refuses numbers that make no sense in any capture.
    fn check(&self) -> Result<(), Invalid> {
        let wrong = |parameter: &'static str, message: String| Err(Invalid::new(parameter, message));
        if self.rate.as_bit() == 0 {
            return wrong("rate", "a link has a rate: write \"10gbit\", for example".into());
        }
        if self.cell == Bytes::ZERO {
            return wrong("cell", "a cell has bytes: write \"64b\", for example".into());
        }
        if self.limit == Some(Packets(0)) {
            return wrong("limit", "no packet at all: write \"1000p\", for example, or leave it out".into());
        }
        match (self.speed, self.load) {
            (Some(_), Some(_)) => {
                wrong("speed", "speed and load both say how fast packets come: write one of them".into())
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

    /// What a slot lasts, in nanoseconds of a link of 1 bit/s.
    fn slot_ns_bits(&self) -> u128 {
        8_000_000_000 * u128::from(self.cell.0)
    }

    /// The slot of a time after the first packet, with times made so many times as long.
    fn slot(&self, ns: u64, stretch: f64) -> u64 {
        let captured = u128::from(ns) * u128::from(self.rate.as_bit());
        if stretch == 1.0 {
            return u64::try_from(captured / self.slot_ns_bits()).unwrap_or(u64::MAX);
        }
        (captured as f64 * stretch / self.slot_ns_bits() as f64) as u64
    }

    /// How many times as long as captured all times are to be.
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

/// What was read. Times are nanoseconds after the first packet; later, slots.
struct Trace {
    /// By input.
    inputs: Vec<Vec<Arrival>>,
    kinds: Vec<Kind>,
    number_of: BTreeMap<Kind, u16>,
    /// Time of the last packet, and its cells.
    last: (u64, u32),
    to_input: SipHasher,
    to_output: SipHasher,
}

impl Trace {
    fn new(place: &Place) -> Trace {
        let hasher = |streams: Streams| {
            let mut rng = streams.rng();
            SipHasher::new(rng.word(), rng.word())
        };
        Trace {
            inputs: vec![Vec::new(); place.ports],
            kinds: Vec::new(),
            number_of: BTreeMap::new(),
            last: (0, 0),
            to_input: hasher(place.streams.within("input")),
            to_output: hasher(place.streams.within("output")),
        }
    }

    fn read(&mut self, config: &Config, path: &Path) -> Result<(), Invalid> {
        let wrong = |message: &str| Err(Invalid::new("file", format!("{} {message}", path.display())));
        let (mut first, mut others, mut taken) = (None, 0u64, 0u64);
        let most = config.limit.map_or(u64::MAX, |limit| limit.0);
        let reader = match Reader::open(path) {
            Ok(reader) => reader,
            Err(error @ CaptureError::Open(_)) => {
                return wrong(&format!(
                    "{error}; a relative name is looked for in the folder of the scenario"
                ));
            }
            Err(error) => return wrong(&format!("{error}; write the name of a pcap or pcapng file")),
        };
        for packet in reader {
            if taken == most {
                break;
            }
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) if taken == 0 => return wrong(&error.to_string()),
                Err(error) => {
                    return wrong(&format!("{error}; write limit = \"{taken}p\" to use what is before"));
                }
            };
            if packet.ip.is_none() {
                others += 1;
                continue;
            }
            taken += 1;
            let ns = packet.time.saturating_sub(*first.get_or_insert(packet.time));
            self.take(config, &packet, ns)?;
        }
        match taken {
            0 => wrong(&format!("holds no IP packet ({others} others); a switch needs some")),
            _ => Ok(()),
        }
    }

    /// Takes an IP packet.
    fn take(&mut self, config: &Config, packet: &Packet, ns: u64) -> Result<(), Invalid> {
        let Some(ip) = packet.ip else { return Ok(()) };
        let ports = self.inputs.len();
        // The upper half of the product, so that every port has as many of the hashes, but for one.
        let port = |hash: u64| ((u128::from(hash) * ports as u128) >> 64) as usize;
        let input = match config.inputs {
            Inputs::Flow => port(ip.tuple.key(&self.to_input).0),
            Inputs::Source => port(self.to_input.hash(&ip.tuple.from)),
            Inputs::Interface => packet.interface as usize,
        };
        if input >= ports {
            let message = format!(
                "a packet was captured at interface {input}, and the inputs are 0 to {}: write more ports, or \
                 inputs = \"flow\"",
                ports - 1
            );
            return Err(Invalid::new("inputs", message));
        }
        let cells = u64::from(packet.bytes).div_ceil(config.cell.0).max(1);
        let cells = match u32::try_from(cells) {
            Ok(cells) if cells <= MOST_CELLS => cells,
            _ => {
                let message = format!(
                    "a packet of {} bytes would have {cells} cells, and at most {MOST_CELLS} are possible: write a larger \
                     one",
                    packet.bytes
                );
                return Err(Invalid::new("cell", message));
            }
        };
        let class = if ip.short && cells == 1 { Class::Short } else { Class::Long };
        let kind = Kind { cells, class };
        let kind = *self.number_of.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.kinds.len() as u16 - 1
        });
        self.last = (self.last.0.max(ns), cells);
        let to = port(match config.outputs {
            Outputs::Destination => self.to_output.hash(&ip.tuple.to),
            Outputs::Flow => ip.tuple.key(&self.to_output).0,
        });
        self.inputs[input].push(Arrival { first: self.last.0, to: to as u16, kind });
        Ok(())
    }

    /// All cells.
    fn cells(&self) -> u64 {
        let cells = |packet: &Arrival| u64::from(self.kinds[usize::from(packet.kind)].cells);
        self.inputs.iter().flatten().map(cells).sum()
    }

    /// Turns times into slots; gives the slots that the capture lasts, to the end of its last packet.
    fn place_in_slots(&mut self, slot: impl Fn(u64) -> u64) -> u64 {
        for packet in self.inputs.iter_mut().flatten() {
            packet.first = slot(packet.first);
        }
        slot(self.last.0).saturating_add(u64::from(self.last.1))
    }

    /// What is offered on average; `None` where that is more than a link brings.
    fn rates(&self, length: u64) -> Result<Option<Rates>, Invalid> {
        let ports = self.inputs.len();
        let row = |packets: &Vec<Arrival>| {
            let mut row = vec![0.0; ports];
            for packet in packets {
                row[usize::from(packet.to)] +=
                    f64::from(self.kinds[usize::from(packet.kind)].cells) / length as f64;
            }
            row
        };
        let rates = Rates::new(&Pattern::Matrix(self.inputs.iter().map(row).collect()), ports, 1.0)?;
        Ok(rates.check(true).is_ok().then_some(rates))
    }
}

/// The packets of an input.
struct Replay {
    /// In the slots in which they were captured, without regard to the link.
    packets: Vec<Arrival>,
    /// Cells of each kind.
    cells: Arc<[u64]>,
    /// Begins again after so many slots.
    again: Option<u64>,
    /// Which packet is next.
    at: usize,
    /// The slot in which this round began.
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
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use capture::{EnhancedPacket, Headers, InterfaceDescription, Transport, Writer};
    use qdisc::Ecn;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::sim::{Plan, run};
    use crate::traffic::{SOURCES, TrafficSpec};

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];
    const C: [u8; 4] = [10, 0, 9, 9];

    const ACK: Carries = Carries::Tcp(0);

    #[derive(Clone, Copy)]
    enum Carries {
        /// So many bytes of data.
        Tcp(u32),
        Udp,
        /// No IP: an ARP request.
        Arp,
    }

    /// Time in nanoseconds, sender, receiver, IP length, what is in it, interface.
    type Line = (u64, [u8; 4], [u8; 4], u32, Carries, u32);

    /// Every size and class, each 512 ns after the one before: 10 slots of 64 bytes at 10 Gbit/s.
    const EVERY: [Line; 6] = [
        (5000, A, C, 40, ACK, 0),
        (5512, A, C, 64, Carries::Udp, 0),
        (6024, A, C, 64, Carries::Tcp(24), 0),
        (6536, A, C, 65, Carries::Udp, 0),
        (7048, A, C, 576, Carries::Tcp(536), 0),
        (7560, A, C, 1500, Carries::Tcp(1460), 0),
    ];

    /// A folder with a capture named `c.pcapng`.
    fn capture(lines: &[Line]) -> TempDir {
        let mut writer = Writer::new(Vec::new(), "test").unwrap();
        let ethernet = InterfaceDescription { link: capture::LinkType(1), ..InterfaceDescription::default() };
        for _ in 0..3 {
            writer.interface(&ethernet).unwrap();
        }
        for (time, from, to, bytes, carries, interface) in lines.iter().copied() {
            let mut data = vec![2; 12];
            let transport = match carries {
                Carries::Tcp(data) => {
                    Transport::Tcp { seq: 1, ack: 1, flags: 0x10, window: 100, options: &[], data }
                }
                _ => Transport::Udp,
            };
            match carries {
                Carries::Arp => data.extend([&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat()),
                _ => {
                    data.extend([8, 0]);
                    let (from_port, to_port) = (1000, 80);
                    let ecn = Ecn::NotCapable;
                    Headers { from, to, from_port, to_port, bytes, id: 0, ecn, transport }.write(&mut data);
                }
            }
            let bytes = 14 + bytes;
            writer.packet(&EnhancedPacket { interface, time, bytes, data: &data, comment: None }).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("c.pcapng"), writer.finish().unwrap()).unwrap();
        folder
    }

    /// The traffic, with `c.pcapng` and what else is said.
    fn spec(more: Value) -> TrafficSpec {
        let mut value = json!({ "file": "c.pcapng", "inputs": "source" });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let entry = SOURCES.iter().find(|entry| entry.name == "trace").unwrap();
        (entry.from_json)(value).unwrap()
    }

    fn place(folder: &Path, ports: usize, seed: u64) -> Place {
        Place { ports, streams: Streams::new(seed), folder: folder.to_owned() }
    }

    fn build(folder: &TempDir, ports: usize, more: Value) -> Result<Offered, Invalid> {
        spec(more).build(&place(folder.path(), ports, 1))
    }

    /// All packets as (input, slot, output, kind), by input; at most `most` of each.
    fn packets(offered: Offered, most: usize) -> Vec<(usize, u64, u16, Kind)> {
        let mut all = Vec::new();
        for (input, mut source) in offered.sources.into_iter().enumerate() {
            let packets = std::iter::from_fn(|| source.next()).take(most);
            all.extend(
                packets
                    .map(|packet| (input, packet.first, packet.to, offered.kinds[usize::from(packet.kind)])),
            );
        }
        all
    }

    /// First slots, cells and classes of a capture whose packets have one source.
    fn of_one_source(lines: &[Line], more: Value) -> Vec<(u64, u32, Class)> {
        let offered = build(&capture(lines), 4, more).unwrap();
        packets(offered, 20).into_iter().map(|(_, slot, _, kind)| (slot, kind.cells, kind.class)).collect()
    }

    fn refused(lines: &[Line], more: Value) -> String {
        build(&capture(lines), 4, more).err().expect("it makes no sense").to_string()
    }

    #[test]
    fn packets_have_the_cells_and_classes_of_the_paper() {
        use Class::{Long, Short};
        let expected =
            [(0, 1, Short), (10, 1, Short), (20, 1, Long), (30, 2, Long), (40, 9, Long), (50, 24, Long)];
        assert_eq!(of_one_source(&EVERY, json!({})), expected);
        // At a tenth of the rate slots are ten times as long; larger cells are fewer, and take longer.
        let slots = |more: Value| -> Vec<(u64, u32)> {
            of_one_source(&EVERY, more).iter().map(|(slot, cells, _)| (*slot, *cells)).collect()
        };
        assert_eq!(slots(json!({ "rate": "1gbit" }))[..3], [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(slots(json!({ "cell": "128b" })), [(0, 1), (5, 1), (10, 1), (15, 1), (20, 5), (25, 12)]);
        // An acknowledgement that needs two cells is no short packet.
        assert_eq!(of_one_source(&EVERY[..1], json!({ "cell": "32b" })), [(0, 2, Long)]);
    }

    #[test]
    fn packets_wait_upstream_while_their_link_is_busy() {
        let close = [
            (0, A, C, 1500, Carries::Udp, 0),
            (512, A, C, 40, ACK, 0),
            (520, A, C, 65, Carries::Udp, 0),
            (2000, A, C, 40, ACK, 0),
        ];
        let slots: Vec<u64> = of_one_source(&close, json!({})).iter().map(|packet| packet.0).collect();
        // 2,000 ns are slot 39.06.
        assert_eq!(slots, [0, 24, 25, 39]);
    }

    #[test]
    fn other_packets_are_left_out_and_time_never_goes_back() {
        let odd = [
            (0, A, C, 28, Carries::Arp, 0),
            (1024, A, C, 40, ACK, 0),
            (2048, A, C, 40, ACK, 0),
            (1024, A, C, 40, ACK, 0),
        ];
        let slots: Vec<u64> = of_one_source(&odd, json!({})).iter().map(|packet| packet.0).collect();
        assert_eq!(slots, [0, 20, 21]);
    }

    #[test]
    fn ports_follow_from_addresses_and_from_the_seed() {
        let lines: Vec<Line> = (0..200u8)
            .map(|n| (u64::from(n) * 100, [10, 1, 0, n % 20], [10, 2, 0, n % 50], 40, ACK, u32::from(n % 3)))
            .collect();
        let folder = capture(&lines);
        let at = |inputs: &str, seed: u64| {
            let spec = spec(json!({ "inputs": inputs }));
            packets(spec.build(&place(folder.path(), 8, seed)).unwrap(), 1000)
        };
        let used = |mut ports: Vec<usize>| {
            ports.sort_unstable();
            ports.dedup();
            ports.len()
        };
        for (inputs, most) in [("flow", 8), ("source", 8), ("interface", 3)] {
            let packets = at(inputs, 1);
            assert_eq!(packets.len(), 200, "{inputs}");
            assert_eq!(packets, at(inputs, 1), "the same seed, the same ports");
            let by_input = used(packets.iter().map(|packet| packet.0).collect());
            let by_output = used(packets.iter().map(|packet| usize::from(packet.2)).collect());
            assert!((most.min(6)..=most).contains(&by_input), "{inputs}: {by_input} inputs");
            assert!((6..=8).contains(&by_output), "{inputs}: {by_output} outputs");
        }
        assert_ne!(at("source", 1), at("source", 2), "another seed, other ports");
        // 32 flows for one host: by its address they leave together, by flow they do not.
        let one_host: Vec<Line> = (0..32u8).map(|n| (0, [10, 1, 0, n], C, 40, ACK, 0)).collect();
        let one_host = capture(&one_host);
        for (outputs, expected) in [("destination", 1..=1), ("flow", 6..=8)] {
            let leaving = packets(build(&one_host, 8, json!({ "outputs": outputs })).unwrap(), 99);
            let ports = used(leaving.iter().map(|packet| usize::from(packet.2)).collect());
            assert!(expected.contains(&ports), "{outputs}: {ports} outputs");
        }
        // What A sends, to whomever, comes in at one port; what B and C get goes to two at most.
        let few = [(0, A, B, 40, ACK, 2), (100, A, C, 65, Carries::Udp, 1), (200, A, B, 40, Carries::Udp, 2)];
        let few = capture(&few);
        let from_a = packets(build(&few, 8, json!({})).unwrap(), 9);
        assert!(from_a.iter().all(|packet| packet.0 == from_a[0].0));
        assert_eq!(from_a[0].2, from_a[2].2, "both are for B");
        let by_interface = packets(build(&few, 8, json!({ "inputs": "interface" })).unwrap(), 9);
        assert_eq!(by_interface.iter().map(|packet| packet.0).collect::<Vec<_>>(), [1, 2, 2]);
    }

    /// An address is no more often at one port as a source and a destination than chance has it, 1 in 16; nor is a flow at
    /// one port when it chooses both.
    #[test]
    fn inputs_and_outputs_are_chosen_apart() {
        let lines: Vec<Line> = (0..1024u32)
            .map(|n| {
                let address = [10, 3, (n / 256) as u8, (n % 256) as u8];
                (u64::from(n), address, address, 40, ACK, 0)
            })
            .collect();
        let folder = capture(&lines);
        for more in [json!({}), json!({ "inputs": "flow", "outputs": "flow" })] {
            let met = packets(build(&folder, 16, more).unwrap(), 2000);
            assert_eq!(met.len(), 1024);
            let same = met.iter().filter(|(input, _, output, _)| *input == usize::from(*output)).count();
            // Four standard deviations around 64.
            assert!((33..=95).contains(&same), "{same} of 1,024");
        }
    }

    #[test]
    fn speed_and_load_change_distances_alone() {
        let starts =
            |more: Value| -> Vec<u64> { of_one_source(&EVERY, more).iter().map(|packet| packet.0).collect() };
        assert_eq!(starts(json!({ "speed": 2.0 })), [0, 5, 10, 15, 20, 29]);
        assert_eq!(starts(json!({ "speed": 0.1 })), [0, 100, 200, 300, 400, 500]);
        // 38 cells in all, so at 4 inputs and a mean load of 1/8 they take 76 slots: the last 24 begin in slot 52.
        assert_eq!(starts(json!({ "load": 0.125 }))[..], [0, 10, 20, 31, 41, 52]);
        let offered = build(&capture(&EVERY), 4, json!({ "load": 0.125 })).unwrap();
        let rates = offered.rates.expect("the input has half of a cell per slot");
        let all: f64 = (0..4).map(|input| rates.input(input)).sum();
        assert!((all - 0.5).abs() < 1e-12, "{all}");
        // The one input that is used would have 1.2 cells a slot.
        assert!(build(&capture(&EVERY), 4, json!({ "load": 0.3 })).unwrap().rates.is_none());
    }

    #[test]
    fn it_begins_again_where_the_last_packet_ended() {
        let two = [(0, A, C, 40, ACK, 0), (512, A, C, 128, Carries::Udp, 0)];
        let starts =
            |more: Value| -> Vec<u64> { of_one_source(&two, more).iter().map(|packet| packet.0).collect() };
        assert_eq!(starts(json!({})), [0, 10]);
        assert_eq!(starts(json!({ "repeat": true }))[..6], [0, 10, 12, 22, 24, 34]);
        assert_eq!(starts(json!({ "repeat": true, "limit": "1p" }))[..3], [0, 1, 2]);
        // A link that is too slow for it falls behind, and brings everything none the less.
        let late = [(0, A, C, 1500, Carries::Udp, 0), (512, A, C, 40, ACK, 0)];
        let late = of_one_source(&late, json!({ "repeat": true }));
        assert_eq!(late[..4].iter().map(|packet| packet.0).collect::<Vec<_>>(), [0, 24, 25, 49]);
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        let of = |more: Value| refused(&EVERY, more);
        for load in [0.0, -0.5, 1.01] {
            assert!(of(json!({ "load": load })).contains("above 0 and at most 1, such as 0.8"), "{load}");
        }
        assert!(of(json!({ "load": 1.0 })).contains("the last packet alone takes 24: write a lower one"));
        assert!(of(json!({ "speed": 0.0 })).contains("a number above 0, such as 10.0"));
        assert!(of(json!({ "speed": 2.0, "load": 0.5 })).contains("write one of them"));
        assert!(of(json!({ "rate": "0bit" })).contains("write \"10gbit\""));
        assert!(of(json!({ "cell": "0b" })).contains("write \"64b\""));
        assert!(of(json!({ "limit": "0p" })).contains("leave it out"));
        assert!(of(json!({ "file": "other.pcap" })).contains("cannot be opened"));
        assert!(of(json!({ "speed": 1e-12 })).contains("write a higher speed"));
        let one = refused(&EVERY[..1], json!({ "load": 0.1 }));
        assert!(one.contains("all packets have the same time"), "{one}");
        let third = capture(&[(0, A, C, 40, ACK, 2)]);
        let interface = build(&third, 2, json!({ "inputs": "interface" })).err().unwrap().to_string();
        assert!(interface.contains("captured at interface 2, and the inputs are 0 to 1"), "{interface}");
    }

    #[test]
    fn files_that_are_no_captures_are_refused() {
        let folder = capture(&EVERY);
        let path = folder.path().join("c.pcapng");
        let whole = fs::read(&path).unwrap();
        let said = |content: &[u8], more: Value| {
            fs::write(&path, content).unwrap();
            build(&folder, 4, more).err().map(|error| error.to_string())
        };
        let no_capture = said(b"{ \"a\": 1 }", json!({})).unwrap();
        assert!(no_capture.contains("is neither pcap nor pcapng"), "{no_capture}");
        assert!(no_capture.contains("c.pcapng"), "{no_capture}");
        let cut = &whole[..whole.len() - 5];
        let damaged = said(cut, json!({})).unwrap();
        assert!(damaged.contains("is damaged at byte"), "{damaged}");
        assert!(damaged.ends_with("write limit = \"5p\" to use what is before"), "{damaged}");
        assert_eq!(said(cut, json!({ "limit": "5p" })), None);
        let no_ip = refused(&[(0, A, C, 28, Carries::Arp, 0)], json!({}));
        assert!(no_ip.contains("holds no IP packet (1 others)"), "{no_ip}");
    }

    /// Through a switch: all arrives, all crosses, and each class is counted.
    #[test]
    fn a_switch_carries_it() {
        let folder = capture(&EVERY);
        let plan = Plan {
            ports: 4,
            arbiter: "p_spf".parse().unwrap(),
            traffic: spec(json!({ "repeat": true })),
            // 74 slots a round.
            slots: 74 * 20,
            warmup: 74 * 10,
            streams: Streams::new(1),
            folder: folder.path().to_owned(),
        };
        let outcome = run(&plan).unwrap();
        assert!((outcome.offered - 38.0 / 74.0 / 4.0).abs() < 1e-12, "{}", outcome.offered);
        assert_eq!(outcome.offered, outcome.throughput);
        assert_eq!(outcome.class(Class::Short).count, 20);
        assert_eq!(outcome.class(Class::Long).count, 40);
        assert_eq!(outcome.all.wait.max, Some(0.0), "they come one by one, and nobody is in the way");
    }

    /// The capture of the examples: all of its packets, and all of their cells.
    #[test]
    fn the_example() {
        let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let file = "home-uplink.pcapng";
        let (mut count, mut cells, mut short) = (0, 0, 0);
        for packet in Reader::open(examples.join(file)).unwrap() {
            let packet = packet.unwrap();
            let Some(ip) = packet.ip else { continue };
            count += 1;
            cells += packet.bytes.div_ceil(64);
            short += u32::from(ip.short);
        }
        let spec = spec(json!({ "file": file, "inputs": "flow", "rate": "100mbit" }));
        let all = packets(spec.build(&place(&examples, 4, 1)).unwrap(), usize::MAX);
        assert_eq!(all.len(), count);
        assert_eq!(all.iter().map(|packet| packet.3.cells).sum::<u32>(), cells);
        let classed_short = all.iter().filter(|packet| packet.3.class == Class::Short).count();
        assert_eq!(classed_short, short as usize);
        assert!(classed_short * 10 > count && classed_short < count, "{classed_short} of {count}");
        for input in 0..4 {
            let of_input: Vec<_> = all.iter().filter(|packet| packet.0 == input).collect();
            let apart = of_input.windows(2).all(|two| two[1].1 >= two[0].1 + u64::from(two[0].3.cells));
            assert!(apart, "cells of an input come one after the other");
        }
    }
}
