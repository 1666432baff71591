//! `--export`: what a simulation's queues did, as a capture that other tools read.
//!
//! A queueing point is an interface. A packet is there when it departs: when its first bit goes on the link. One that
//! the queue drops is there at that time, with a comment that says why; so is one that was marked, or lost on the wire.
//! In Wireshark `not frame.comment contains "dropped"` shows what departed.
//!
//! Simulated packets have headers and no bytes: they are cut behind the headers, and those are made up as follows.
//!
//! - Node n is 10.x.y.1, its number in two bytes. Whoever opens connections takes ports from 1024 on for them, for each
//!   other node anew, in the order in which they appear in the file; when the ports are used up 10.x.y.2 follows, as
//!   another machine behind the node would. Servers listen on 80, streams of datagrams go to 5004.
//! - A host that stands beyond its node is 100.64.x.y, the number of its distance in two bytes: hosts at different
//!   distances have different addresses. Where its ports are used up 100.65.x.y follows.
//! - A TCP stream begins with sequence number 0 and wraps after 4 GiB. The window is as large as it can be: a simulated
//!   segment does not carry it. PSH is never set: what an application wrote at once is not known.
//! - A packet that has a label (`giveway_qdisc::Label`) carries it as the option of `giveway_wire::label`, and has the label that it left
//!   with. It is 4 bytes longer than in the simulation then, in its IP header and in the capture: a simulated label takes
//!   no bytes, and had the packet kept its length, its data would have lost them and the numbers of TCP would have gaps.
//!   Wireshark shows `Unknown (0x9e)` among the IP options; `ip[20:2] == 9e:04` finds labelled packets. One that has no
//!   room for a label in its 65,535 bytes is written without.
//! - The checksums of TCP and UDP are 0; that of IP is right. The identification counts the datagrams of a stream.

mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Transport, Writer};
use giveway_qdisc::{DropReason, Ecn, Meta, PortId, Probe, Time};
use giveway_scenario::{Network, Queue, Trial};
use giveway_sim::Segment;
use giveway_wire::label;

pub use files::{Exports, Target, places};

/// Writes what the queueing points of a run did.
pub struct Exporter<W: Write> {
    writer: Writer<W>,
    /// The interface of a port, by number.
    interfaces: Vec<Option<u32>>,
    conversations: Conversations,
    /// Packets that were marked and have neither left nor been dropped. Two that look the same are counted.
    marked: BTreeMap<(PortId, Mark), u32>,
    /// The last departure: only the next event tells whether it was lost on the wire.
    departed: Option<Departed>,
    /// Headers, used again for every packet.
    headers: Vec<u8>,
    packets: u64,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// What tells a packet from the others of its port: flow, offset in the flow, arrival, length.
type Mark = (u64, u64, Time, u32);

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
    /// What the output says.
    pub fn new(out: W, network: &Network, trial: &Trial) -> io::Result<Exporter<W>> {
        let mut writer = Writer::new(out, concat!("giveway ", env!("CARGO_PKG_VERSION")))?;
        let mut interfaces = Vec::new();
        for (number, port) in network.ports.iter().enumerate() {
            let measured = network.measured.contains(&PortId(number as u32));
            if port.queue != Queue::Compare && !measured {
                interfaces.push(None);
                continue;
            }
            let spec = port.queue.spec(network.discipline(trial));
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

    /// Writes what is left, and gives the output back with the number of packets.
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

    /// Writes the last departure.
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

    /// Whether this packet was marked at this port; it is forgotten with that.
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

/// A packet on its way over the link is told before it is lost there; a mark is told before the packet leaves.
impl<W: Write> Probe<Segment> for Exporter<W> {
    fn sent(&mut self, at: PortId, meta: &Meta, segment: &Segment, now: Time) {
        self.settle(false);
        if self.interface(at).is_some() {
            let marked = self.was_marked(at, meta);
            self.departed = Some(Departed { at, meta: *meta, segment: *segment, now, marked });
        }
    }

    fn dropped(&mut self, at: PortId, meta: &Meta, segment: &Segment, why: DropReason, now: Time) {
        let departed = self.departed.as_ref().is_some_and(|departed| departed.at == at);
        let lost = why == DropReason::Wire && departed;
        self.settle(lost);
        if self.interface(at).is_some() && !lost {
            self.was_marked(at, meta);
            let comment = format!("dropped: {}", why.name());
            self.write(at, meta, segment, now, Some(&comment));
        }
    }

    fn marked(&mut self, at: PortId, meta: &Meta, _: Time) {
        if self.interface(at).is_some() {
            *self.marked.entry((at, mark(meta))).or_default() += 1;
        }
    }
}

// -- addresses --------------------------------------------------------------------------------------

/// An address and a port.
type End = ([u8; 4], u16);

/// Who talks to whom, from which address and port.
#[derive(Default)]
struct Conversations {
    /// Which of its pair's conversations a connection is. Streams are numbered apart from connections.
    numbers: BTreeMap<(bool, u32, u32), u32>,
    /// How many conversations a pair of hosts has had, the client first: nodes, and the host beyond one of them.
    pairs: BTreeMap<(u16, u16, u16), u32>,
}

impl Conversations {
    const FIRST_PORT: u32 = 1024;
    const PORTS: u32 = 65_536 - Conversations::FIRST_PORT;
    /// The last byte of a client's address: 1 to 254.
    const CLIENTS: u32 = 254;
    const WEB: u16 = 80;
    const MEDIA: u16 = 5004;

    /// Where a segment comes from, and where it goes.
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
        // After sixteen million conversations of a pair, addresses come again.
        let machine = (number / Conversations::PORTS % Conversations::CLIENTS) as u8;
        let port = number % Conversations::PORTS + Conversations::FIRST_PORT;
        let address = |node, machine| match segment.host {
            host if host > 0 && segment.host_node == node => far_address(host, machine),
            _ => address(node, machine + 1),
        };
        let client = (address(client, machine), port as u16);
        let server = (address(server, 0), if datagram { Conversations::MEDIA } else { Conversations::WEB });
        if reply { (server, client) } else { (client, server) }
    }
}

fn address(node: u16, machine: u8) -> [u8; 4] {
    let [high, low] = node.to_be_bytes();
    [10, high, low, machine]
}

/// Out of 100.64.0.0/10, RFC 6598.
fn far_address(host: u16, machine: u8) -> [u8; 4] {
    let [high, low] = host.to_be_bytes();
    [100, 64 + machine % 64, high, low]
}

// -- headers ----------------------------------------------------------------------------------------

fn headers(meta: &Meta, segment: &Segment, from: End, to: End, out: &mut Vec<u8>) {
    let mut options = Vec::new();
    let transport = if segment.has(Segment::DATAGRAM) {
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
        ecn: meta.ecn,
        transport,
    }
    .write(out);
}

fn tcp_flags(segment: &Segment) -> u8 {
    // RFC 9293 section 3.1, bits from the lowest.
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

/// The window scale in a SYN, RFC 7323 section 2.2, so that windows are read as large; blocks of received data, RFC 2018
/// section 3. Whatever else would be there is filled up by the header.
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
