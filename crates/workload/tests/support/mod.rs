//! Captures written by hand, with a line for each packet, and the extracted workload as text.
//!
//! Hosts are numbers: client 20 is 192.168.1.20, server 10 is 203.0.113.10. Sequence numbers are those that
//! Wireshark shows: a SYN has 0, data start with 1. Times are in milliseconds.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Cursor;

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Reader, Transport, Writer};
use giveway_qdisc::{Dscp, Ecn};
use giveway_workload::{CaptureStatistics, Connection, Extraction, Local, Side, Train, Trigger, Workload};

pub use self::From::{Client as C, Server as S};

/// The sender of a packet.
#[derive(Clone, Copy, PartialEq)]
pub enum From {
    Client,
    Server,
}

/// Time in ms, sender, flags as tcpdump writes them (S, F, R, and a dot for an acknowledgement), sequence
/// number, data bytes, acknowledgement number.
pub type Row = (u64, From, &'static str, u32, u32, u32);

/// The packets of several connections, one connection after the other.
pub struct Trace {
    packets: Vec<(u64, Vec<u8>, u32)>,
    client: (u8, u16),
    server: (u8, u16),
    /// Initial sequence numbers.
    pub numbers: (u32, u32),
}

/// The result of the extraction.
pub struct Found {
    pub workload: Workload,
    pub seen: CaptureStatistics,
}

impl Trace {
    pub fn new() -> Trace {
        Trace { packets: Vec::new(), client: (20, 40_000), server: (10, 80), numbers: (1_000, 5_000_000) }
    }

    /// The rows of a single connection.
    pub fn of(rows: &[Row]) -> Found {
        Trace::new().tcp(rows).found()
    }

    /// Later rows are between this client and this server, each with its port.
    pub fn between(mut self, client: (u8, u16), server: (u8, u16)) -> Trace {
        (self.client, self.server) = (client, server);
        self
    }

    /// Later rows have these initial sequence numbers.
    pub fn numbered(mut self, client: u32, server: u32) -> Trace {
        self.numbers = (client, server);
        self
    }

    pub fn tcp(mut self, rows: &[Row]) -> Trace {
        for &(ms, from, text, seq, len, ack) in rows {
            let (mine, theirs) = match from {
                C => self.numbers,
                S => (self.numbers.1, self.numbers.0),
            };
            let flags = text.chars().map(flag).sum::<u8>();
            let ack = if flags & 16 > 0 { theirs.wrapping_add(ack) } else { 0 };
            let seq = mine.wrapping_add(seq);
            let transport = Transport::Tcp { seq, ack, flags, window: 1000, options: &[], data: len };
            self.push(ms * 1_000_000, from, transport, 40 + len);
        }
        self
    }

    /// A datagram with `data` bytes of data, at a time in microseconds.
    pub fn udp(mut self, us: u64, from: From, data: u32) -> Trace {
        self.push(us * 1_000, from, Transport::Udp, 28 + data);
        self
    }

    /// A QUIC datagram with `data` bytes, whose first byte has a long header or not, at a time in
    /// milliseconds.
    pub fn quic(self, ms: u64, from: From, long: bool, data: u32) -> Trace {
        self.quic_with(ms, from, if long { 0xc3 } else { 0x43 }, data)
    }

    /// A datagram over UDP with this first byte.
    pub fn quic_with(mut self, ms: u64, from: From, first: u8, data: u32) -> Trace {
        self.push(ms * 1_000_000, from, Transport::Udp, 28 + data);
        self.packets.last_mut().expect("a packet was added above").1.push(first);
        self
    }

    /// A packet of another protocol without ports, such as ICMP.
    pub fn other(mut self, ms: u64, from: From, protocol: u8, bytes: u32) -> Trace {
        self.push(ms * 1_000_000, from, Transport::Udp, bytes);
        self.packets.last_mut().expect("a packet was added above").1[9] = protocol;
        self
    }

    /// The last packet becomes a fragment: not the first, with this offset in bytes.
    pub fn fragment_at(mut self, offset: u16) -> Trace {
        self.packets.last_mut().expect("the trace has a packet").1[6..8]
            .copy_from_slice(&(offset / 8).to_be_bytes());
        self
    }

    /// The last packet was captured completely, and its IP header has this total length, which may be wrong.
    pub fn with_total_length(mut self, length: u16) -> Trace {
        let (_, data, bytes) = self.packets.last_mut().expect("the trace has a packet");
        data[2..4].copy_from_slice(&length.to_be_bytes());
        data.resize(*bytes as usize, 0);
        self
    }

    fn push(&mut self, time: u64, from: From, transport: Transport<'_>, bytes: u32) {
        let client = ([192, 168, 1, self.client.0], self.client.1);
        let server = ([203, 0, 113, self.server.0], self.server.1);
        let (from, to) = if from == C { (client, server) } else { (server, client) };
        let mut data = Vec::new();
        Headers {
            from: from.0,
            to: to.0,
            from_port: from.1,
            to_port: to.1,
            bytes,
            id: 0,
            dscp: Dscp::default(),
            ecn: Ecn::NotCapable,
            transport,
        }
        .write(&mut data);
        self.packets.push((time, data, bytes));
    }

    /// The workload of the packets in the order in which they were added.
    pub fn found_unsorted(self) -> Found {
        let mut writer = Writer::new(Vec::new(), "by hand").unwrap();
        let raw = InterfaceDescription { link: LinkType::RAW, ..InterfaceDescription::default() };
        let interface = writer.interface(&raw).unwrap();
        for (time, data, bytes) in &self.packets {
            // A realistic clock does not begin at 0.
            let time = 1_700_000_000_000_000_000 + time;
            writer.packet(&EnhancedPacket { interface, time, bytes: *bytes, data, comment: None }).unwrap();
        }
        let mut extraction = Extraction::default();
        for packet in Reader::new(Cursor::new(writer.finish().unwrap())).unwrap() {
            extraction.packet(&packet.unwrap());
        }
        let local: Local = "192.168.0.0/16".parse().unwrap();
        let (workload, seen) = extraction.finish(&local);
        let mut file = Vec::new();
        workload.write(&mut file).unwrap();
        assert_eq!(Workload::read(&file[..]).unwrap(), workload, "every workload can be read back");
        Found { workload, seen }
    }

    /// The workload of the packets in the order of their times.
    pub fn found(mut self) -> Found {
        self.packets.sort_by_key(|(time, ..)| *time);
        self.found_unsorted()
    }
}

impl Found {
    /// The only connection.
    pub fn connection(&self) -> &Connection {
        assert_eq!(self.workload.connections.len(), 1, "{:#?}", self.workload);
        &self.workload.connections[0]
    }

    /// The ADUs of the only connection.
    pub fn adus(&self) -> Vec<String> {
        adus(self.connection())
    }

    /// Round-trip time of the only connection, in milliseconds.
    pub fn rtt(&self) -> Option<u64> {
        self.connection().rtt.map(|ns| ns / 1_000_000)
    }

    /// Number of ADUs and duration in ms of each epoch.
    pub fn epochs(&self) -> Vec<(u32, u64)> {
        let epochs = self.connection().epochs.iter();
        epochs.map(|epoch| (epoch.adus, epoch.took / 1_000_000)).collect()
    }

    pub fn train(&self, group: &str) -> &Train {
        let trains = &self.workload.trains;
        trains.iter().find(|train| train.group == group).unwrap_or_else(|| panic!("{trains:?}"))
    }
}

/// Each ADU with its trigger (bytes of the other side, or the acknowledgement of its own) and its think time.
pub fn adus(connection: &Connection) -> Vec<String> {
    let lines = connection.adus.iter().map(|adu| {
        let side = if adu.side == Side::Client { "client" } else { "server" };
        let trigger = match adu.trigger {
            Trigger::Peer(0) => "once connected".to_owned(),
            Trigger::Peer(bytes) => format!("after {bytes} B"),
            Trigger::Own => "after its own".to_owned(),
        };
        let ms = |ns: u64| ns / 1_000_000;
        let between = adu.between.map(|(least, most)| format!(", or {} to {} ms", ms(least), ms(most)));
        format!("{side} {} B {trigger}, {} ms{}", adu.bytes, ms(adu.think_time), between.unwrap_or_default())
    });
    lines.collect()
}

fn flag(letter: char) -> u8 {
    match letter {
        'F' => 1,
        'S' => 2,
        'R' => 4,
        '.' => 16,
        _ => panic!("{letter} is not a flag"),
    }
}
