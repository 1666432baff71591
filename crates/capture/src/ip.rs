//! IP headers and the ports below them.
//!
//! Written by hand because captures truncate frames: a frame with 54 captured bytes still has its addresses
//! and ports, although its TCP header is not complete. The tests compare it with a full parser.

use giveway_qdisc::{Dscp, Ecn, FiveTuple};

/// Header fields of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Addresses, ports and protocol.
    pub tuple: FiveTuple,
    /// Its DSCP.
    pub dscp: Dscp,
    /// Its ECN field.
    pub ecn: Ecn,
    /// True for a short packet ([`giveway_qdisc::Header`]): at most 64 bytes, and UDP or TCP without data.
    pub short: bool,
    /// Number of TCP or UDP data bytes; `None` for other protocols, for all but the first fragment, and if
    /// too little was captured.
    pub data: Option<u32>,
    /// Fields of its TCP header, if they were captured.
    pub tcp: Option<Tcp>,
    /// The first data byte of a UDP datagram, if it was captured.
    pub first: Option<u8>,
}

/// Fields of a TCP header: RFC 9293, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit down.
    pub flags: u8,
    /// True if all options were captured and are timestamps or padding, and the flag AE (RFC 9768) is off.
    pub plain: bool,
}

impl Tcp {
    /// True for a segment with the flag ACK alone, and no options but timestamps. With no data it is an
    /// acknowledgement that reports nothing but its number.
    pub fn is_plain_ack(&self) -> bool {
        self.flags == 0x10 && self.plain
    }
}

/// Reads the packet that starts with `data`, of which `wire_bytes` bytes were on the wire. Also returns its
/// IP length, which is never more than `wire_bytes`: a sender can write any length into the header.
pub(crate) fn read(data: &[u8], wire_bytes: u32) -> Option<(Ip, u32)> {
    let network = network(data, wire_bytes)?;
    Some((network.transport(data), network.bytes))
}

/// Reads the IP header with which `data` starts.
pub(crate) fn network(data: &[u8], wire_bytes: u32) -> Option<Network> {
    match data.first()? >> 4 {
        4 => ipv4(data, wire_bytes),
        6 => ipv6(data, wire_bytes),
        _ => None,
    }
}

/// Fields of the network layer.
pub(crate) struct Network {
    from: [u8; 16],
    to: [u8; 16],
    /// IP length.
    pub(crate) bytes: u32,
    dscp: Dscp,
    ecn: Ecn,
    pub(crate) protocol: u8,
    /// Offset of the transport header; `None` in later fragments, and if an extension header is truncated.
    pub(crate) above: Option<usize>,
    later_fragment: bool,
}

/// RFC 791 section 3.1.
fn ipv4(data: &[u8], wire_bytes: u32) -> Option<Network> {
    let fixed = data.first_chunk::<20>()?;
    let header = usize::from(fixed[0] & 15) * 4;
    if header < 20 {
        return None;
    }
    let total = u32::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let later_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff > 0;
    Some(Network {
        from: mapped(fixed[12..16].first_chunk()?),
        to: mapped(fixed[16..20].first_chunk()?),
        // A total length of 0 is left to the network card of the sender to fill in: then the length of the
        // frame counts. If the total is smaller, the rest of the frame is padding.
        bytes: if total as usize >= header { total.min(wire_bytes) } else { wire_bytes },
        dscp: Dscp::of_service(fixed[1]),
        ecn: ecn(fixed[1]),
        protocol: fixed[9],
        above: (!later_fragment).then_some(header),
        later_fragment,
    })
}

/// RFC 8200 sections 3 and 4.
fn ipv6(data: &[u8], wire_bytes: u32) -> Option<Network> {
    let fixed = data.first_chunk::<40>()?;
    let payload = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let mut network = Network {
        from: *fixed[8..24].first_chunk()?,
        to: *fixed[24..40].first_chunk()?,
        // 0 is a jumbogram (RFC 2675), or was left to the network card: then the length of the frame counts.
        bytes: if payload > 0 { (40 + payload).min(wire_bytes) } else { wire_bytes },
        dscp: Dscp::of_service((fixed[0] << 4) | (fixed[1] >> 4)),
        ecn: ecn((fixed[0] << 4) | (fixed[1] >> 4)),
        protocol: fixed[6],
        above: Some(40),
        later_fragment: false,
    };
    while let Some(at) = network.above
        && is_extension(network.protocol)
    {
        let Some(head) = data.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
            network.above = None;
            break;
        };
        let length = match network.protocol {
            FRAGMENT => {
                network.later_fragment = u16::from_be_bytes([head[2], head[3]]) >> 3 > 0;
                8
            }
            AUTHENTICATION => (usize::from(head[1]) + 2) * 4, // RFC 4302 section 2.2
            _ => (usize::from(head[1]) + 1) * 8,
        };
        network.protocol = head[0];
        network.above = (!network.later_fragment).then_some(at + length);
    }
    Some(network)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Hop-by-hop and destination options, routing, fragment, authentication, mobility, HIP, shim6.
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | FRAGMENT | AUTHENTICATION | 60 | 135 | 139 | 140)
}

/// TCP, UDP, DCCP, SCTP, UDP-Lite start with their ports.
fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | 33 | 132 | 136)
}

impl Network {
    /// The fields of the packet and its transport header.
    pub(crate) fn transport(&self, data: &[u8]) -> Ip {
        let header = self.above.and_then(|at| data.get(at..)).unwrap_or_default();
        let space = self.above.and_then(|at| self.bytes.checked_sub(at as u32));
        let ports = if has_ports(self.protocol) { header.first_chunk::<4>() } else { None };
        let port = |at: usize| ports.map_or(0, |ports| u16::from_be_bytes([ports[at], ports[at + 1]]));
        let header_bytes = match self.protocol {
            TCP => header.get(12).map(|offset| u32::from(offset >> 4) * 4),
            UDP => Some(8),
            _ => None,
        };
        let content = header_bytes.zip(space).and_then(|(taken, space)| space.checked_sub(taken));
        // P-SPF, section 2.2: short packets are UDP, or TCP without data.
        let may_be_short = match self.protocol {
            TCP => content == Some(0),
            UDP => true,
            _ => false,
        };
        Ip {
            tuple: FiveTuple {
                from: self.from,
                to: self.to,
                from_port: port(0),
                to_port: port(2),
                protocol: self.protocol,
            },
            dscp: self.dscp,
            ecn: self.ecn,
            short: self.bytes <= 64 && may_be_short,
            data: content,
            tcp: if self.protocol == TCP { tcp(header) } else { None },
            first: header
                .get(8)
                .copied()
                .filter(|_| self.protocol == UDP && content.is_some_and(|data| data > 0)),
        }
    }
}

fn tcp(header: &[u8]) -> Option<Tcp> {
    let fixed = header.first_chunk::<14>()?;
    let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let bytes = usize::from(fixed[12] >> 4) * 4;
    let plain = fixed[12] & 1 == 0 && header.get(20..bytes).is_some_and(has_only_timestamps);
    Some(Tcp { seq: number(4), ack: number(8), flags: fixed[13], plain })
}

/// True if TCP options are timestamps (RFC 7323) and padding.
fn has_only_timestamps(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            // The end of the options, or none are left.
            [] | [0, ..] => return true,
            [1, rest @ ..] => rest,
            [8, 10, rest @ ..] if rest.len() >= 8 => &rest[8..],
            _ => return false,
        };
    }
}

/// RFC 3168 section 5.
fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Marked,
    }
}

/// IPv4 addresses as IPv6 writes them, RFC 4291 section 2.5.5.2.
fn mapped(address: &[u8; 4]) -> [u8; 16] {
    let mut mapped = [0; 16];
    mapped[10..12].copy_from_slice(&[0xff; 2]);
    mapped[12..].copy_from_slice(address);
    mapped
}
