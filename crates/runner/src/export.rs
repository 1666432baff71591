//! `--export`: the packets of a simulation's queues as a capture for other tools.
//!
//! A queueing point is an interface. A packet appears when it departs, which is when its first bit is sent on
//! the link. A dropped packet appears at the time of the drop, with the reason in a comment. Packets that
//! were marked, or lost on the wire, carry a comment as well. In Wireshark
//! `not frame.comment contains "dropped"` shows the departures.
//!
//! Simulated packets have no bytes. The capture has their headers only, which are filled in as follows:
//!
//! - Node n gets the address 10.x.y.1, with its number in two bytes. A client takes ports from 1024 upwards,
//!   separately for each other node, in the order in which its connections appear in the file. When the ports
//!   are used up, 10.x.y.2 follows, like another machine behind the node. Servers listen on port 80, or with
//!   QUIC on UDP port 443, and streams of datagrams go to port 5004.
//! - A host on an access link gets the address 100.64.x.y, with the number of its access delay in two bytes:
//!   hosts with different delays have different addresses. When its ports are used up, 100.65.x.y follows.
//! - A TCP stream starts with sequence number 0 and wraps after 4 GiB. The window has its largest value,
//!   because a simulated segment does not carry one. PSH is never set, because the writes of an application
//!   are not known.
//! - A packet with a label (`giveway_qdisc::Label`) carries it as the option of `giveway_wire::label`, with
//!   the value at its departure. The packet is then 4 bytes longer than in the simulation, in its IP header
//!   and in the capture. A simulated label has no length: if the packet kept its length, its data would
//!   become shorter, and the sequence numbers of TCP would have gaps. Wireshark shows `Unknown (0x9e)` among
//!   the IP options, and `ip[20:2] == 9e:04` finds labelled packets. If there is no room for the option
//!   within 65,535 bytes, the label is left out.
//! - The checksums of TCP and UDP are 0, and the checksum of IP is correct. The identification counts the
//!   datagrams of a stream.

mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Transport, Writer};
use giveway_qdisc::{DropReason, Ecn, Interest, Meta, PortId, Probe, Time};
use giveway_scenario::{Network, Queue, Trial};
use giveway_sim::Segment;
use giveway_wire::label;

pub use files::{Exports, Target, places};

/// A probe that writes the packets of a run's queueing points as a capture.
pub struct Exporter<W: Write> {
    writer: Writer<W>,
    /// The interface of each port, by its number; `None` if the port is not exported.
    interfaces: Vec<Option<u32>>,
    conversations: Conversations,
    /// Marked packets that have neither departed nor been dropped, with the number of those that look the
    /// same.
    marked: BTreeMap<(PortId, Mark), u32>,
    /// The last departure. It is written with the next event, which shows if the packet was lost on the wire.
    departed: Option<Departed>,
    /// The headers of the current packet; a buffer that is reused.
    headers: Vec<u8>,
    /// The number of packets written.
    packets: u64,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// The identity of a packet at its port: flow, offset in the flow, arrival, length.
type Mark = (u64, u64, Time, u32);

/// A packet that left its queue.
struct Departed {
    at: PortId,
    meta: Meta,
    segment: Segment,
    now: Time,
    marked: bool,
}

impl<W: Write> Exporter<W> {
    /// An exporter with an interface for every port of the network that is measured or compared.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(out: W, network: &Network, trial: &Trial) -> io::Result<Exporter<W>> {
        let mut writer = Writer::new(out, concat!("giveway ", env!("CARGO_PKG_VERSION")))?;
        let mut interfaces = Vec::new();
        for (number, port) in network.ports.iter().enumerate() {
            let measured = network.measured.contains(&PortId(number as u32));
            if port.queue != Queue::Compare && !measured {
                interfaces.push(None);
                continue;
            }
            let spec = port.spec(network.discipline(trial));
            interfaces.push(Some(writer.interface(&InterfaceDescription {
                name: &port.name,
                description: &spec.to_string(),
                link: LinkType::RAW,
                speed: port.rate.as_bit(),
                snap: (Headers::LONGEST + label::OPTION) as u32,
            })?));
        }
        Ok(Exporter {
            writer,
            interfaces,
            conversations: Conversations::default(),
            marked: BTreeMap::new(),
            departed: None,
            headers: Vec::new(),
            packets: 0,
            error: None,
        })
    }

    /// Writes the last departure, and returns the output with the number of packets.
    ///
    /// # Errors
    /// The first error of the whole run.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.settle(false);
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.writer.finish()?, self.packets)),
        }
    }

    /// Writes the last departure. `lost` is true if the packet was lost on the wire.
    fn settle(&mut self, lost: bool) {
        let Some(Departed { at, meta, segment, now, marked }) = self.departed.take() else { return };
        let comment = match (marked, lost) {
            (false, false) => None,
            (true, false) => Some("marked"),
            (false, true) => Some("lost on the wire"),
            (true, true) => Some("marked, lost on the wire"),
        };
        self.write(at, &meta, &segment, now, comment);
    }

    fn write(&mut self, at: PortId, meta: &Meta, segment: &Segment, now: Time, comment: Option<&str>) {
        let (Some(interface), None) = (self.interface(at), &self.error) else { return };
        self.headers.clear();
        let (from, to) = self.conversations.ends(meta, segment);
        headers(meta, segment, from, to, &mut self.headers);
        let labelled = meta.label.is_set() && label::insert(&mut self.headers, meta.label).is_ok();
        let packet = EnhancedPacket {
            interface,
            time: now.as_ps() / 1000,
            bytes: meta.bytes + if labelled { label::OPTION as u32 } else { 0 },
            data: &self.headers,
            comment,
        };
        match self.writer.packet(&packet) {
            Ok(()) => self.packets += 1,
            Err(error) => self.error = Some(error),
        }
    }

    fn interface(&self, at: PortId) -> Option<u32> {
        *self.interfaces.get(at.0 as usize)?
    }

    /// Returns true if this packet was marked at this port, and removes it from the marked packets.
    fn was_marked(&mut self, at: PortId, meta: &Meta) -> bool {
        if meta.ecn != Ecn::Marked {
            return false;
        }
        let key = (at, mark(meta));
        let Some(count) = self.marked.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.marked.remove(&key);
        }
        true
    }
}

fn mark(meta: &Meta) -> Mark {
    (meta.flow.0, u64::from(meta.offset), meta.arrived, meta.bytes)
}

/// A simulation reports a departure before the loss of the packet on the wire, and a mark before the
/// departure.
impl<W: Write> Probe<Segment> for Exporter<W> {
    fn interest(&self, at: PortId) -> Interest {
        // The frames of a file are in the order of time.
        if self.interface(at).is_some() { Interest::Everything } else { Interest::Nothing }
    }

    fn on_transmission(&mut self, at: PortId, meta: &Meta, segment: &Segment, now: Time) {
        self.settle(false);
        if self.interface(at).is_some() {
            let marked = self.was_marked(at, meta);
            self.departed = Some(Departed { at, meta: *meta, segment: *segment, now, marked });
        }
    }

    fn on_drop(&mut self, at: PortId, meta: &Meta, segment: &Segment, why: DropReason, now: Time) {
        let departed = self.departed.as_ref().is_some_and(|departed| departed.at == at);
        let lost = why == DropReason::Wire && departed;
        self.settle(lost);
        if self.interface(at).is_some() && !lost {
            self.was_marked(at, meta);
            let comment = format!("dropped: {}", why.name());
            self.write(at, meta, segment, now, Some(&comment));
        }
    }

    fn on_mark(&mut self, at: PortId, meta: &Meta, _: Time) {
        if self.interface(at).is_some() {
            *self.marked.entry((at, mark(meta))).or_default() += 1;
        }
    }
}

// -- addresses --------------------------------------------------------------------------------------

/// The address and the port of one end of a conversation.
type End = ([u8; 4], u16);

/// The addresses and ports of all conversations.
#[derive(Default)]
struct Conversations {
    /// The number of each conversation between its pair of hosts. Streams and connections are
    /// numbered separately.
    numbers: BTreeMap<(bool, u32, u32), u32>,
    /// The number of conversations of each pair of hosts: the node of the client, the node of the server, and
    /// the host on an access link of one of them.
    pairs: BTreeMap<(u16, u16, u16), u32>,
}

impl Conversations {
    const FIRST_PORT: u32 = 1024;
    const PORTS: u32 = 65_536 - Conversations::FIRST_PORT;
    /// The last byte of a client's address: 1 to 254.
    const CLIENTS: u32 = 254;
    const WEB: u16 = 80;
    const MEDIA: u16 = 5004;
    const QUIC: u16 = 443;

    /// The source and the destination of a segment.
    fn ends(&mut self, meta: &Meta, segment: &Segment) -> (End, End) {
        let reply = segment.has(Segment::REPLY);
        let datagram = segment.has(Segment::DATAGRAM);
        let (client, server) = if reply { (meta.to, meta.from) } else { (meta.from, meta.to) };
        let pairs = &mut self.pairs;
        let number = *self.numbers.entry((datagram, segment.conn, segment.serial)).or_insert_with(|| {
            let next = pairs.entry((client, server, segment.host)).or_default();
            *next += 1;
            *next - 1
        });
        // After sixteen million conversations of a pair, addresses repeat.
        let machine = (number / Conversations::PORTS % Conversations::CLIENTS) as u8;
        let port = number % Conversations::PORTS + Conversations::FIRST_PORT;
        let address = |node, machine| match segment.host {
            host if host > 0 && segment.host_node == node => far_address(host, machine),
            _ => address(node, machine + 1),
        };
        let client = (address(client, machine), port as u16);
        let port = match (datagram, segment.has(Segment::QUIC)) {
            (true, _) => Conversations::MEDIA,
            (false, true) => Conversations::QUIC,
            (false, false) => Conversations::WEB,
        };
        let server = (address(server, 0), port);
        if reply { (server, client) } else { (client, server) }
    }
}

/// The address of a machine at a node.
fn address(node: u16, machine: u8) -> [u8; 4] {
    let [high, low] = node.to_be_bytes();
    [10, high, low, machine]
}

/// The address of a machine on an access link, from 100.64.0.0/10 (RFC 6598).
fn far_address(host: u16, machine: u8) -> [u8; 4] {
    let [high, low] = host.to_be_bytes();
    [100, 64 + machine % 64, high, low]
}

// -- headers ----------------------------------------------------------------------------------------

/// Writes the IP and transport headers of a segment.
fn headers(meta: &Meta, segment: &Segment, from: End, to: End, out: &mut Vec<u8>) {
    let mut options = Vec::new();
    let transport = if segment.flags & (Segment::DATAGRAM | Segment::QUIC) != 0 {
        Transport::Udp
    } else {
        tcp_options(segment, &mut options);
        Transport::Tcp {
            seq: segment.seq as u32,
            ack: if segment.has(Segment::ACK) { segment.ack as u32 } else { 0 },
            flags: tcp_flags(segment),
            window: u16::MAX,
            options: &options,
            data: u32::from(segment.len),
        }
    };
    let id = if segment.has(Segment::DATAGRAM) { segment.seq as u16 } else { 0 };
    Headers {
        from: from.0,
        to: to.0,
        from_port: from.1,
        to_port: to.1,
        bytes: meta.bytes,
        id,
        dscp: meta.header.dscp(),
        ecn: meta.ecn,
        transport,
    }
    .write(out);
}

fn tcp_flags(segment: &Segment) -> u8 {
    // RFC 9293, section 3.1, from the lowest bit.
    let wire = [
        (Segment::FIN, 0x01),
        (Segment::SYN, 0x02),
        (Segment::RST, 0x04),
        (Segment::ACK, 0x10),
        (Segment::ECE, 0x40),
        (Segment::CWR, 0x80),
    ];
    wire.iter().filter(|(flag, _)| segment.has(*flag)).map(|(_, bit)| bit).sum()
}

/// Writes the TCP options: the window scale in a SYN (RFC 7323, section 2.2), so that tools show large
/// windows, and the blocks of received data (RFC 2018, section 3). The header adds padding.
fn tcp_options(segment: &Segment, options: &mut Vec<u8>) {
    const NO_OPERATION: u8 = 1;
    const WINDOW_SCALE: [u8; 4] = [NO_OPERATION, 3, 3, 14];
    const SACK: u8 = 5;
    if segment.has(Segment::SYN) {
        options.extend(WINDOW_SCALE);
    }
    if segment.sacks > 0 {
        options.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * segment.sacks]);
        for (from, to) in segment.blocks() {
            options.extend((from as u32).to_be_bytes());
            options.extend((to as u32).to_be_bytes());
        }
    }
}
