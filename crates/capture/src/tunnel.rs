//! Encapsulations: packets inside of packets are found and named.
//!
//! The innermost packet that is not encrypted gives the addresses, ports and TCP fields. The length remains
//! the outer packet's, because the link carries all of its headers. In a mirrored packet (ERSPAN) the outer
//! headers belong to the mirror and not to the link, so the length of the inner packet counts.

use crate::ip::{self, Ip};
use crate::link::{self, LinkType, Macs};

/// A kind of encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    /// RFC 3032: labels in front of the IP header.
    Mpls,
    /// RFC 2784 and RFC 2890.
    Gre,
    /// Mirrored frames in GRE: draft-foschiano-erspan.
    Erspan,
    /// RFC 7348: frames in UDP.
    Vxlan,
    /// The user plane of GTP, 3GPP TS 29.281.
    GtpU,
    /// IP in IP, of either version: RFC 2003, RFC 2473, RFC 4213.
    IpInIp,
    /// WireGuard, which is encrypted.
    WireGuard,
    /// ESP, also in UDP (RFC 4303, RFC 3948), which is encrypted.
    Ipsec,
    /// OpenVPN, which is encrypted.
    OpenVpn,
}

impl Tunnel {
    /// Every kind.
    pub const ALL: [Tunnel; 9] = [
        Tunnel::Mpls,
        Tunnel::Gre,
        Tunnel::Erspan,
        Tunnel::Vxlan,
        Tunnel::GtpU,
        Tunnel::IpInIp,
        Tunnel::WireGuard,
        Tunnel::Ipsec,
        Tunnel::OpenVpn,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tunnel::Mpls => "MPLS",
            Tunnel::Gre => "GRE",
            Tunnel::Erspan => "ERSPAN",
            Tunnel::Vxlan => "VXLAN",
            Tunnel::GtpU => "GTP-U",
            Tunnel::IpInIp => "IP in IP",
            Tunnel::WireGuard => "WireGuard",
            Tunnel::Ipsec => "IPsec",
            Tunnel::OpenVpn => "OpenVPN",
        }
    }

    /// True if the packets inside cannot be read.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Tunnel::WireGuard | Tunnel::Ipsec | Tunnel::OpenVpn)
    }
}

/// The encapsulations of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnels(u16);

impl Tunnels {
    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if this kind is one of them.
    pub fn contains(self, tunnel: Tunnel) -> bool {
        self.0 & (1 << tunnel as u16) > 0
    }

    fn add(&mut self, tunnel: Tunnel) {
        self.0 |= 1 << tunnel as u16;
    }
}

/// A frame whose encapsulations were removed.
pub(crate) struct Unpacked {
    /// Length of the packet that the link carried, bytes.
    pub bytes: u32,
    pub mac: Option<Macs>,
    pub ip: Option<Ip>,
    pub tunnels: Tunnels,
}

/// Largest number of encapsulations in each other; a longer chain is damage.
const DEEPEST: usize = 4;

const MPLS: [u16; 2] = [0x8847, 0x8848];
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN_2: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// Reads the headers of a frame and of the packets in it.
pub(crate) fn unpack(link: LinkType, frame: &[u8], wire_bytes: u32) -> Unpacked {
    let mut tunnels = Tunnels::default();
    let (mut above, behind_link) = link::strip(link, frame, wire_bytes);
    let mut inner_length = behind_link;
    if above.is_none()
        && let Some((labels, data)) = mpls(link, frame)
    {
        tunnels.add(Tunnel::Mpls);
        inner_length = behind_link.saturating_sub(labels);
        above = Some(data);
    }
    let mut found = Unpacked { bytes: behind_link, mac: link::macs(link, frame), ip: None, tunnels };
    let Some(mut data) = above else { return found };
    let Some(mut network) = ip::network(data, inner_length) else {
        found.tunnels = Tunnels::default();
        return found;
    };
    found.bytes = network.bytes;
    for _ in 0..DEEPEST {
        let Some(inside) = inside(data, &network) else { break };
        found.tunnels.add(inside.tunnel);
        let Some(packet) = inside.packet else { break };
        let Some(next) = ip::network(packet.data, packet.wire_bytes) else {
            // Not IP, for example ARP on a bridged network: the outer packet is all that is known.
            break;
        };
        (data, network) = (packet.data, next);
        found.mac = packet.mac.or(found.mac);
        if inside.tunnel == Tunnel::Erspan {
            found.bytes = network.bytes;
        }
    }
    found.ip = Some(network.transport(data));
    found
}

/// An encapsulation, and the packet in it if that is not encrypted.
struct Inside<'a> {
    tunnel: Tunnel,
    packet: Option<Packet<'a>>,
}

/// A packet within another one.
struct Packet<'a> {
    /// From its IP header on.
    data: &'a [u8],
    /// Its length at most, bytes.
    wire_bytes: u32,
    mac: Option<Macs>,
}

fn inside<'a>(data: &'a [u8], network: &ip::Network) -> Option<Inside<'a>> {
    let at = network.above?;
    let above = data.get(at..)?;
    let space = network.bytes.checked_sub(at as u32)?;
    match network.protocol {
        4 | 41 => Some(Inside { tunnel: Tunnel::IpInIp, packet: bare(above, space, 0) }),
        47 => gre(above, space),
        // ESP. An authentication header (51) has readable contents and is an extension header.
        50 => Some(Inside { tunnel: Tunnel::Ipsec, packet: None }),
        17 => in_udp(above, space),
        _ => None,
    }
}

/// The IP packet behind `skip` bytes.
fn bare(data: &[u8], space: u32, skip: usize) -> Option<Packet<'_>> {
    Some(Packet { data: data.get(skip..)?, wire_bytes: space.checked_sub(skip as u32)?, mac: None })
}

/// The IP packet in the Ethernet frame behind `skip` bytes.
fn framed(data: &[u8], space: u32, skip: usize) -> Option<Packet<'_>> {
    let frame = data.get(skip..)?;
    let (above, wire_bytes) = link::strip(LinkType::ETHERNET, frame, space.checked_sub(skip as u32)?);
    Some(Packet { data: above?, wire_bytes, mac: link::macs(LinkType::ETHERNET, frame) })
}

/// RFC 2784 section 2.1, RFC 2890 section 2. Version 1 (RFC 2637) carries PPP.
fn gre(data: &[u8], space: u32) -> Option<Inside<'_>> {
    let head = data.first_chunk::<4>()?;
    let kind = u16::from_be_bytes([head[2], head[3]]);
    let optional = [0x80, 0x20, 0x10].iter().filter(|flag| head[0] & **flag > 0).count();
    let sequenced = head[0] & 0x10 > 0;
    let mut skip = 4 + 4 * optional;
    if head[1] & 7 == 1 {
        // The key is always there, then the numbers that the flags announce, then PPP without its framing.
        skip = 8 + 4 * usize::from(sequenced) + 4 * usize::from(head[1] & 0x80 > 0);
        let ppp = data.get(skip..)?;
        let skip = skip
            + match ppp {
                [0xff, 0x03, 0x00, 0x21 | 0x57, ..] => 4,
                [0x00, 0x21 | 0x57, ..] => 2,
                [0x21 | 0x57, ..] => 1,
                _ => return Some(Inside { tunnel: Tunnel::Gre, packet: None }),
            };
        return Some(Inside { tunnel: Tunnel::Gre, packet: bare(data, space, skip) });
    }
    let erspan =
        |header: usize| Inside { tunnel: Tunnel::Erspan, packet: framed(data, space, skip + header) };
    Some(match kind {
        0x0800 | 0x86dd => Inside { tunnel: Tunnel::Gre, packet: bare(data, space, skip) },
        TRANSPARENT_ETHERNET => Inside { tunnel: Tunnel::Gre, packet: framed(data, space, skip) },
        // Type I has no header of its own, and no sequence number.
        ERSPAN_2 => erspan(if sequenced { 8 } else { 0 }),
        ERSPAN_3 => {
            let optional = data.get(skip + 11).is_some_and(|flags| flags & 1 > 0);
            erspan(if optional { 20 } else { 12 })
        }
        _ => return None,
    })
}

/// Encapsulations in UDP, by port and by the first bytes of their headers.
fn in_udp(data: &[u8], space: u32) -> Option<Inside<'_>> {
    let head = data.first_chunk::<8>()?;
    let (from, to) = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
    let payload = data.get(8..)?;
    let content = space.checked_sub(8)?;
    let encrypted = |tunnel| Some(Inside { tunnel, packet: None });
    match to {
        // RFC 7348 section 5: the flag I, and reserved bits that are zero.
        4789 | 8472 if payload.first()? & !0x80 == 8 => {
            Some(Inside { tunnel: Tunnel::Vxlan, packet: framed(payload, content, 8) })
        }
        // 3GPP TS 29.281 section 5.1: version 1, protocol type GTP, message type 255 (G-PDU).
        2152 if payload.get(1) == Some(&255) && payload[0] >> 4 == 3 => {
            Some(Inside { tunnel: Tunnel::GtpU, packet: gtp(payload, content) })
        }
        _ => match (from, to) {
            // Keep-alives of NAT have one byte, and IKE begins with four zeros.
            (4500, _) | (_, 4500) if content > 8 && payload.first_chunk::<4>()? != &[0; 4] => {
                encrypted(Tunnel::Ipsec)
            }
            (1194, _) | (_, 1194) => encrypted(Tunnel::OpenVpn),
            (51820, _) | (_, 51820) => encrypted(Tunnel::WireGuard),
            _ if is_wireguard(payload, content) => encrypted(Tunnel::WireGuard),
            _ => None,
        },
    }
}

/// WireGuard, section 5.4: a type of 1 to 4 in little-endian order. Data messages are padded to 16 bytes, and
/// the others have fixed lengths.
fn is_wireguard(payload: &[u8], content: u32) -> bool {
    match payload {
        [1, 0, 0, 0, ..] => content == 148,
        [2, 0, 0, 0, ..] => content == 92,
        [3, 0, 0, 0, ..] => content == 64,
        [4, 0, 0, 0, ..] => content >= 32 && content.is_multiple_of(16),
        _ => false,
    }
}

/// The header takes 8 bytes, 4 more if any of its flags is set, and extension headers.
fn gtp(payload: &[u8], content: u32) -> Option<Packet<'_>> {
    let mut skip = 8;
    if payload[0] & 7 > 0 {
        skip = 12;
        let mut next = if payload[0] & 4 > 0 { *payload.get(11)? } else { 0 };
        // The length of an extension counts units of four bytes; the last byte has the type of the next one.
        while next > 0 {
            let length = usize::from(*payload.get(skip)?) * 4;
            if length == 0 {
                return None;
            }
            skip += length;
            next = *payload.get(skip - 1)?;
        }
    }
    bare(payload, content, skip)
}

/// The bytes of the labels, and the IP packet behind them.
fn mpls(link: LinkType, frame: &[u8]) -> Option<(u32, &[u8])> {
    let (start, number) = link::protocol(link, frame)?;
    if !MPLS.contains(&number) {
        return None;
    }
    let mut at = start;
    for _ in 0..8 {
        let label = frame.get(at..)?.first_chunk::<4>()?;
        at += 4;
        if label[2] & 1 > 0 {
            return Some(((at - start) as u32, frame.get(at..)?));
        }
    }
    None
}
