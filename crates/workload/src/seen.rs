//! Counts of a capture.

use giveway_capture::{Ip, Packet, Tunnel};

use crate::model::Direction;

/// Statistics of a capture: its contents, and the parts that are used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaptureStatistics {
    /// Number of packets in the file.
    pub packets: u64,
    /// Their IP bytes, as on the wire.
    pub bytes: u64,
    /// The length of the largest IP packet, bytes.
    pub largest: u32,
    /// Time from the first packet to the last, ns.
    pub span: u64,
    /// Packets that are not IP.
    pub foreign: u64,
    /// TCP packets whose header was cut off or is in another fragment.
    pub headless: u64,
    /// Packets of flows after the two millionth.
    pub crowded: u64,
    /// TCP connections that are used.
    pub connections: u64,
    /// Of these: open before the capture started.
    pub open_before: u64,
    /// Of these: cut off by the end of the capture.
    pub cut_off: u64,
    /// Connections that were refused or not answered; left out.
    pub unanswered: u64,
    /// Connections open before the capture started of which it shows no data, only acknowledgements or their
    /// end; left out.
    pub strays: u64,
    /// Used connections without data.
    pub empty: u64,
    /// Used connections whose round-trip time was never measured.
    pub without_rtt: u64,
    /// QUIC connections whose beginning is in the capture.
    pub quic: u64,
    /// IP bytes of these connections.
    pub quic_bytes: u64,
    /// Flows other than these connections; each direction counts as one.
    pub trains: u64,
    /// Packets between hosts on the same side; left out.
    pub inside: u64,
    /// Packets and their bytes of each encapsulation, in the order of [`Tunnel::ALL`].
    pub tunnels: [(u64, u64); Tunnel::ALL.len()],
    /// IP packets between addresses of one host, which cross no link.
    pub loopback: u64,
    /// IP bytes of TCP.
    pub tcp_bytes: u64,
    /// Of these: of connections with data of which only one direction is in the capture.
    pub one_way_bytes: u64,
    /// Data bytes of used connections that the capture does not hold, although it shows that they were sent.
    pub missed: u64,
    /// Duration of each page in the web traffic, ns; empty if pages cannot be distinguished.
    pub pages: Vec<u64>,
    /// Pages with two readings. They are not in `pages`.
    pub unsure_pages: u64,
    /// Number of all pages.
    pub all_pages: u64,
    /// Single requests to web servers that may belong to a page or not. They are in no page.
    pub lone_requests: u64,
    /// Responses of servers over TCP to all that their client had sent.
    pub responses: u64,
    /// Of these: think times that the capture does not show. They have bounds.
    pub unknown_thinks: u64,
    /// Sums of the least and of the greatest think times of these, ns.
    pub think_bounds: (u64, u64),
    /// Median round-trip time of the connections, ns.
    pub rtt: Option<u64>,
    /// Upstream packets and their IP bytes, of flows that cross the link.
    pub up: (u64, u64),
    /// Downstream packets and their IP bytes, of flows that cross the link.
    pub down: (u64, u64),
    /// The highest rates that last for three seconds, upstream and downstream, bit/s of IP packets.
    pub busiest: [u64; 2],
    /// IP bytes in each hour, upstream and downstream.
    pub hours: [Vec<u64>; 2],
    /// Time of the first packet, ns since 1970. Pauses that were cut shift all later times.
    pub begin: u64,
}

impl CaptureStatistics {
    /// Counts a packet by its encapsulations, and as one of the loopback interface.
    pub(crate) fn kind(&mut self, packet: &Packet, ip: &Ip) {
        if !packet.tunnels.is_empty() {
            for (count, tunnel) in self.tunnels.iter_mut().zip(Tunnel::ALL) {
                if packet.tunnels.contains(tunnel) {
                    count.0 += 1;
                    count.1 += u64::from(packet.bytes);
                }
            }
        }
        self.loopback += u64::from(ip.tuple.from == ip.tuple.to || is_loopback(&ip.tuple.from));
    }

    /// True if most packets are of the loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.loopback * 2 > self.packets - self.foreign
    }

    /// True if TCP matters in this capture, and shows one direction only.
    pub fn is_one_way(&self) -> bool {
        self.tcp_bytes * 10 >= self.bytes && self.one_way() > 0.9
    }

    /// The share of the bytes of TCP that belongs to connections of which one direction is missing, 0 to 1.
    pub fn one_way(&self) -> f64 {
        self.one_way_bytes as f64 / self.tcp_bytes.max(1) as f64
    }

    pub(crate) fn count(&mut self, direction: Direction, (packets, bytes): (u64, u64)) {
        let total = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        total.0 += packets;
        total.1 += bytes;
    }
}

/// 127.0.0.0/8 (RFC 1122 section 3.2.1.3) and ::1 (RFC 4291 section 2.5.3).
fn is_loopback(address: &[u8; 16]) -> bool {
    let is_v4 = address[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    (is_v4 && address[12] == 127) || (address[..15] == [0; 15] && address[15] == 1)
}
