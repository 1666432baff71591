//! Link layers: the headers in front of the IP header, and their removal.

/// The kind of a link, as the registry of link types at tcpdump.org numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the byte order of the machine.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IP without anything in front of it; the registry's number.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: [`LinkType::NULL`] in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "any" interface, version 1.
    pub const COOKED: LinkType = LinkType(113);
    /// IPv4 only.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 only.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "any" interface, version 2.
    pub const COOKED_2: LinkType = LinkType(276);
    /// Numbers that some systems wrote for raw IP before the registry settled on 101.
    const RAW_OLD: [LinkType; 2] = [LinkType(12), LinkType(14)];

    /// True if its headers can be read.
    pub fn is_known(self) -> bool {
        matches!(
            self,
            LinkType::NULL
                | LinkType::ETHERNET
                | LinkType::RAW
                | LinkType::LOOP
                | LinkType::COOKED
                | LinkType::IPV4
                | LinkType::IPV6
                | LinkType::COOKED_2
        ) || LinkType::RAW_OLD.contains(&self)
    }
}

/// The addresses of an Ethernet header, IEEE 802.3 section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Macs {
    /// Address of the sender on this link.
    pub from: [u8; 6],
    /// Address of the receiver on this link.
    pub to: [u8; 6],
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE_SESSION: u16 = 0x8864;
/// 802.1Q, 802.1ad, and two numbers that were used before it.
const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

/// The bytes from the IP header on, if the frame is IP, and their number on the wire.
pub(crate) fn strip(link: LinkType, frame: &[u8], wire_bytes: u32) -> (Option<&[u8]>, u32) {
    let header = match link {
        LinkType::ETHERNET => ether_type(frame, 12),
        LinkType::COOKED => ether_type(frame, 14),
        LinkType::COOKED_2 => match ether_type(frame, 0) {
            // The protocol comes first here; 18 more bytes of header follow it.
            Some((2, is_ip)) => Some((20, is_ip)),
            _ => Some((20, false)),
        },
        LinkType::NULL | LinkType::LOOP => Some((4, loopback_is_ip(frame))),
        _ => Some((0, link.is_known())),
    };
    let (length, is_ip) = header.unwrap_or((0, false));
    let above = if is_ip { frame.get(length..) } else { None };
    (above, wire_bytes.saturating_sub(length as u32))
}

/// The offset behind the link header, and the number of the protocol there.
pub(crate) fn protocol(link: LinkType, frame: &[u8]) -> Option<(usize, u16)> {
    match link {
        LinkType::ETHERNET | LinkType::COOKED => {
            let (above, _) = ether_type(frame, if link == LinkType::ETHERNET { 12 } else { 14 })?;
            Some((above, word(frame, above - 2)?))
        }
        LinkType::COOKED_2 => Some((20, word(frame, 0)?)),
        _ => None,
    }
}

/// The addresses of an Ethernet header. (Linux cooked captures include only the sender's address.)
pub(crate) fn macs(link: LinkType, frame: &[u8]) -> Option<Macs> {
    let (to, rest) = frame.split_first_chunk()?;
    (link == LinkType::ETHERNET).then_some(Macs { from: *rest.first_chunk()?, to: *to })
}

/// Largest number of VLAN tags that belong to the link header. Real networks stack two (802.1ad). Without a
/// limit, a sender could fill a frame with tags, and a queue that charges only the bytes behind the link
/// header would not charge them.
const TAGS: usize = 2;

/// Follows the protocol number at `at`. Returns the offset of the network layer, and true if that is IP.
fn ether_type(frame: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut at = at;
    let mut tags = 0;
    loop {
        let number = word(frame, at)?;
        match number {
            IPV4 | IPV6 => return Some((at + 2, true)),
            _ if tags < TAGS && VLAN.contains(&number) => {
                at += 4;
                tags += 1;
            }
            // RFC 2516: six bytes, then the protocol number of PPP.
            PPPOE_SESSION => {
                let protocol = word(frame, at + 8)?;
                return Some((at + 10, matches!(protocol, 0x0021 | 0x0057)));
            }
            _ => return Some((at + 2, false)),
        }
    }
}

/// Address families: 2 is IPv4 everywhere; IPv6 is 10 on Linux, 23 on Windows, 24, 28 or 30 on the BSDs.
fn loopback_is_ip(frame: &[u8]) -> bool {
    let Some(family) = frame.first_chunk::<4>() else { return false };
    let family = u32::from_le_bytes(*family);
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    matches!(family, 2 | 10 | 23 | 24 | 28 | 30)
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}
