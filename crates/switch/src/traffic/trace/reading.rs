//! Reads a capture and assigns its packets to ports.

use std::collections::BTreeMap;
use std::path::Path;

use giveway_capture::{CaptureError, Packet, Reader};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Bytes, Invalid, Packets, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{Class, MAX_CELLS, PacketKind};
use crate::rates::{Pattern, Rates};
use crate::traffic::{Arrival, TrafficContext};

/// Selection of the input of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// By a hash of addresses, ports and protocol: the most even choice.
    #[default]
    Flow,
    /// By a hash of the source address: all packets of a host arrive at one input.
    Source,
    /// The number of the interface at which the packet was captured; always 0 in pcap files.
    Interface,
}

/// Selection of the output of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// By a hash of the destination address: all packets for a host leave at one output, as in a router.
    #[default]
    Destination,
    /// By a hash of addresses, ports and protocol: for captures of few hosts, which would overload a few
    /// outputs.
    Flow,
}

/// The rules by which packets become cells at ports.
pub(super) struct Selection {
    /// Selection of the input.
    pub inputs: Inputs,
    /// Selection of the output.
    pub outputs: Outputs,
    /// Size of a cell.
    pub cell: Bytes,
}

/// The packets of a capture, by input. Times are nanoseconds after the first packet, and slots after
/// [`convert_to_slots`](Trace::convert_to_slots).
pub(super) struct Trace {
    /// By input: its packets.
    pub inputs: Vec<Vec<Arrival>>,
    /// Kinds of packets, by number.
    pub kinds: Vec<PacketKind>,
    selection: Selection,
    /// Number of each kind.
    number_of: BTreeMap<PacketKind, u16>,
    /// Time of the last packet, and its cells.
    pub last: (u64, u32),
    /// Hash that selects the input.
    to_input: SipHasher,
    /// Hash that selects the output.
    to_output: SipHasher,
}

impl Trace {
    /// No packets.
    pub fn new(selection: Selection, context: &TrafficContext) -> Trace {
        let hasher = |streams: Streams| {
            let mut rng = streams.rng();
            SipHasher::new(rng.word(), rng.word())
        };
        Trace {
            inputs: vec![Vec::new(); context.ports],
            kinds: Vec::new(),
            selection,
            number_of: BTreeMap::new(),
            last: (0, 0),
            to_input: hasher(context.streams.within("input")),
            to_output: hasher(context.streams.within("output")),
        }
    }

    /// Reads the packets of a file, at most `limit` of them.
    ///
    /// # Errors
    /// A file that cannot be read or has no IP packets, or a packet that does not fit the switch.
    pub fn read(&mut self, path: &Path, limit: Option<Packets>) -> Result<(), Invalid> {
        let wrong = |message: &str| Err(Invalid::new("file", format!("{} {message}", path.display())));
        let (mut first, mut others, mut taken) = (None, 0u64, 0u64);
        let most = limit.map_or(u64::MAX, |limit| limit.0);
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
                    return wrong(&format!(
                        "{error}; write limit = \"{taken}p\" to use the packets before it"
                    ));
                }
            };
            if packet.ip.is_none() {
                others += 1;
                continue;
            }
            taken += 1;
            let ns = packet.time.saturating_sub(*first.get_or_insert(packet.time));
            self.add(&packet, ns)?;
        }
        match taken {
            0 => wrong(&format!("holds no IP packet ({others} others); a switch needs some")),
            _ => Ok(()),
        }
    }

    /// Adds a packet, unless it is not IP.
    fn add(&mut self, packet: &Packet, ns: u64) -> Result<(), Invalid> {
        let Some(ip) = packet.ip else { return Ok(()) };
        let ports = self.inputs.len();
        // The upper half of the product gives every port the same number of hashes, up to one.
        let port = |hash: u64| ((u128::from(hash) * ports as u128) >> 64) as usize;
        let input = match self.selection.inputs {
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
        let cells = u64::from(packet.bytes).div_ceil(self.selection.cell.0).max(1);
        let cells = match u32::try_from(cells) {
            Ok(cells) if cells <= MAX_CELLS => cells,
            _ => {
                let message = format!(
                    "a packet of {} bytes would have {cells} cells, and at most {MAX_CELLS} are possible: write a larger \
                     one",
                    packet.bytes
                );
                return Err(Invalid::new("cell", message));
            }
        };
        let class = if ip.short && cells == 1 { Class::Short } else { Class::Long };
        let kind = PacketKind { cells, class };
        let kind = *self.number_of.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.kinds.len() as u16 - 1
        });
        self.last = (self.last.0.max(ns), cells);
        let to = port(match self.selection.outputs {
            Outputs::Destination => self.to_output.hash(&ip.tuple.to),
            Outputs::Flow => ip.tuple.key(&self.to_output).0,
        });
        self.inputs[input].push(Arrival { first: self.last.0, to: to as u16, kind });
        Ok(())
    }

    /// Number of cells of all packets.
    pub fn cells(&self) -> u64 {
        let cells = |packet: &Arrival| u64::from(self.kinds[usize::from(packet.kind)].cells);
        self.inputs.iter().flatten().map(cells).sum()
    }

    /// Converts times to slots. Returns the length of the capture to the end of its last packet, in slots.
    pub fn convert_to_slots(&mut self, slot: impl Fn(u64) -> u64) -> u64 {
        for packet in self.inputs.iter_mut().flatten() {
            packet.first = slot(packet.first);
        }
        slot(self.last.0).saturating_add(u64::from(self.last.1))
    }

    /// Mean loads over `length` slots; `None` where an input has more than 1 cell per slot.
    pub fn rates(&self, length: u64) -> Result<Option<Rates>, Invalid> {
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
