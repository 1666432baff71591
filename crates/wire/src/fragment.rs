//! Fragmentation with a constant size: an Ethernet frame that is too long for a link crosses it in fragments,
//! which are joined behind the link.
//!
//! A transmission cannot be interrupted, so every delay bound contains the transmission time of the longest
//! packet. The TRR paper (Chen and Chen, about 2000, section 3.3) cuts all packets to one size Φ, by an
//! interface MTU of 500 or 800 bytes, so that the hosts send smaller packets. Here two programs cut and join
//! frames, one at each end of the link, invisibly to hosts.
//!
//! # Format
//! A fragment has the addresses and VLAN tags of its frame, a separate EtherType, a header of eight bytes
//! in network byte order, and a piece of the payload of the frame:
//!
//! | byte | bytes | content |
//! |---|---|---|
//! | 0 | 4 | packet number, which the sender increments |
//! | 4 | 1 | index of the fragment, from 0; its highest bit is the congestion mark |
//! | 5 | 1 | count of fragments, 2 to 127 |
//! | 6 | 2 | length of the whole payload, in bytes |
//!
//! All pieces have the same length except the last, which has the rest. The EtherType of the frame is not in
//! the header: only IP is cut, and the first four bits of piece 0 are the IP version.
//!
//! # Principles
//! - Φ is an MTU ([`Size`]): a fragment has at most Φ bytes behind its EtherType, the eight of the header
//!   among them. A frame of at most Φ is left as it is.
//! - The length is in the header because Ethernet pads short frames: without it the padding of the last piece
//!   could not be recognised.
//! - A congestion mark is set in the header of the fragment and copied to the joined packet (RFC 3168,
//!   section 5.3), because only one fragment contains the IP header.
//! - Cutting and joining do not allocate per packet ([`Cut::write`], [`Reassembly`]), and do not panic on any
//!   bytes.
//!
//! # Left open by the paper, and chosen here
//! - The format. The paper gives only the size Φ. The eight bytes of the header and its three fields come
//!   from the specification of this program; the widths of the fields, the length, the mark and the EtherType
//!   are choices made here. The default EtherType is the second one for local experiments (IEEE 802), 0x88b6.
//! - Frames that are not IP are not cut: they are rare and short. Neither are frames that need more than 127
//!   fragments.
//!
//! # Cost
//! - Eight bytes and a link header for each fragment, and a copy of each byte on either side.
//! - The loss of one fragment is the loss of its packet.
//!
//! # References
//! - Chen and Chen, section 3.3; RFC 791 section 3.2 (fragments of IPv4, and the minimum MTU); RFC 5722 (why
//!   fragments that contradict each other end a packet); RFC 3168 section 5.3.

mod counts;
mod piece;
mod reassembly;

use crate::error::WireError;
pub use counts::{Counts, Lost};
pub use reassembly::{Reassembly, Settings, Taken};

/// Length of the header of a fragment, in bytes.
pub const HEADER: usize = 8;
/// Default EtherType of fragments: the second one for local experiments.
pub const ETHER_TYPE: u16 = 0x88b6;
/// Largest number of fragments of a packet: the highest bit of the index is the mark.
pub const MAX: usize = 127;

/// Length of the addresses of an Ethernet header.
const ADDRESSES: usize = 12;
/// Largest number of VLAN tags.
const TAGS: usize = 2;
/// Largest length of addresses and tags.
const HEAD: usize = ADDRESSES + 4 * TAGS;
/// Congestion mark, in the byte of the index.
const MARK: u8 = 0x80;

/// Largest length of fragments behind their EtherType, header included: Φ, as an MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u16);

impl Size {
    /// Smallest MTU of IPv4 (RFC 791). Ethernet pads no fragment of this size, so only the last one is ever
    /// padded.
    pub const MIN: u16 = 68;
    /// Longest payload of Ethernet (jumbo frames).
    pub const MAX: u16 = 9000;
    /// The sizes of the paper: its example and its conclusion.
    pub const PUBLISHED: [Size; 2] = [Size(500), Size(800)];

    /// Creates a size of `bytes` bytes.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn new(bytes: u64) -> Result<Size, WireError> {
        match u16::try_from(bytes) {
            Ok(size) if (Size::MIN..=Size::MAX).contains(&size) => Ok(Size(size)),
            _ => Err(WireError::Size { bytes, least: Size::MIN, most: Size::MAX }),
        }
    }

    /// The size in bytes.
    pub fn bytes(self) -> u16 {
        self.0
    }

    /// Bytes of the packet in each fragment.
    pub fn piece(self) -> usize {
        usize::from(self.0) - HEADER
    }

    /// Length of the longest packet that can be cut, in bytes behind its EtherType.
    pub fn longest(self) -> usize {
        (self.piece() * MAX).min(usize::from(u16::MAX))
    }
}

/// Checks an EtherType for fragments.
///
/// # Errors
/// If it is a length, or the EtherType of IP, ARP or VLAN tags.
pub fn ether_type(number: u16) -> Result<u16, WireError> {
    let taken = match number {
        0..0x0600 => "nothing, because a number below 0x0600 is a length",
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x86dd => "IPv6",
        0x8100 | 0x88a8 | 0x9100 => "VLAN tags",
        free => return Ok(free),
    };
    Err(WireError::EtherType(number, taken))
}

/// Offset of the EtherType of an Ethernet frame, behind the addresses and at most two VLAN tags. `None` if
/// the frame is shorter.
#[inline]
pub fn type_at(frame: &[u8]) -> Option<usize> {
    let mut at = ADDRESSES;
    for _ in 0..TAGS {
        match word(frame, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            _ => return Some(at),
        }
    }
    word(frame, at).map(|_| at)
}

/// Offset of the fragment header; `None` if the frame is not a fragment.
#[inline]
pub fn header_at(frame: &[u8], ether_type: u16) -> Option<usize> {
    let at = type_at(frame)?;
    (word(frame, at) == Some(ether_type)).then_some(at + 2)
}

/// Sets the congestion mark of a fragment; `fragment` starts with its header. The joined packet gets the mark
/// if it is ECN-capable.
#[inline]
pub fn mark(fragment: &mut [u8]) {
    if let Some(index) = fragment.get_mut(4) {
        *index |= MARK;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The EtherType of an IP packet, by its first byte.
fn ip_type(first: u8) -> Option<u16> {
    match first >> 4 {
        4 => Some(0x0800),
        6 => Some(0x86dd),
        _ => None,
    }
}

/// Cuts frames.
#[derive(Clone, Debug)]
pub struct Cutter {
    size: Size,
    ether_type: u16,
    next: u32,
}

/// The decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The frame is not longer than a fragment may be.
    Short,
    /// The frame is longer, but is not cut: it is not IP, or needs more than [`MAX`] fragments.
    Whole,
    /// The frame is cut.
    Cut(Cut),
}

/// The cuts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    id: u32,
    ether_type: u16,
    type_at: u8,
    count: u8,
    piece: u16,
    length: u16,
}

impl Cutter {
    /// Creates a cutter for fragments of this size and EtherType. Packets are numbered from `first`. Use a
    /// different number after each start, so that fragments of two runs are not joined.
    pub fn new(size: Size, ether_type: u16, first: u32) -> Cutter {
        Cutter { size, ether_type, next: first }
    }

    /// Size of fragments.
    pub fn size(&self) -> Size {
        self.size
    }
    /// Sets the size for the following frames.
    pub fn set_size(&mut self, size: Size) {
        self.size = size;
    }

    /// Decides about an Ethernet frame. Each frame that is cut gets the next number.
    #[inline]
    pub fn plan(&mut self, frame: &[u8]) -> Plan {
        let behind = |at: usize| frame.len() - at - 2;
        let Some(at) = type_at(frame) else { return Plan::Short };
        let length = behind(at);
        if length <= usize::from(self.size.0) {
            return Plan::Short;
        }
        if ip_type(frame[at + 2]) != word(frame, at) || length > self.size.longest() {
            return Plan::Whole;
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        Plan::Cut(Cut {
            id,
            ether_type: self.ether_type,
            type_at: at as u8,
            count: length.div_ceil(self.size.piece()) as u8,
            piece: self.size.piece() as u16,
            length: length as u16,
        })
    }
}

impl Cut {
    /// Number of fragments: at least two.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Offset of the header in each fragment: behind addresses, tags and EtherType.
    pub fn header_at(&self) -> usize {
        usize::from(self.type_at) + 2
    }

    /// Length of fragment `index`, link header included, in bytes.
    pub fn bytes(&self, index: usize) -> usize {
        self.header_at() + HEADER + self.range(index).len()
    }

    /// Range of bytes behind the EtherType of the frame that fragment `index` contains.
    pub fn range(&self, index: usize) -> std::ops::Range<usize> {
        let (piece, length) = (usize::from(self.piece), usize::from(self.length));
        index * piece..((index + 1) * piece).min(length)
    }

    /// Writes fragment `index` of `frame`, the frame that was planned, to the beginning of `to`, and returns
    /// its length.
    ///
    /// # Panics
    /// If `index` is not below [`Cut::count`], if the frame is shorter than the planned one, or `to` than
    /// [`Cut::bytes`].
    #[inline]
    pub fn write(&self, frame: &[u8], index: usize, to: &mut [u8]) -> usize {
        assert!(index < self.count(), "fragment {index} of {}", self.count);
        let (at, header) = (usize::from(self.type_at), self.header_at());
        to[..at].copy_from_slice(&frame[..at]);
        to[at..header].copy_from_slice(&self.ether_type.to_be_bytes());
        to[header..header + 4].copy_from_slice(&self.id.to_be_bytes());
        to[header + 4..header + 6].copy_from_slice(&[index as u8, self.count]);
        to[header + 6..header + HEADER].copy_from_slice(&self.length.to_be_bytes());
        let piece = &frame[header..][self.range(index)];
        to[header + HEADER..][..piece.len()].copy_from_slice(piece);
        header + HEADER + piece.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with IPv4 of `length` bytes in it; the bytes count up.
    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45];
        frame.extend((1..length).map(|n| n as u8));
        frame
    }

    fn cut(size: u64, frame: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut cutter = Cutter::new(Size::new(size).unwrap(), ETHER_TYPE, 0x0102_0304);
        let Plan::Cut(cut) = cutter.plan(frame) else { return None };
        let mut buffer = [0xee; 9100];
        Some(
            (0..cut.count())
                .map(|index| {
                    let length = cut.write(frame, index, &mut buffer);
                    assert_eq!(length, cut.bytes(index));
                    buffer[..length].to_vec()
                })
                .collect(),
        )
    }

    /// A packet of 100 bytes in fragments of 68: 60 bytes and 40.
    #[test]
    fn byte_by_byte() {
        let frame = frame(100);
        let fragments = cut(68, &frame).unwrap();
        assert_eq!(fragments.len(), 2);
        let begins = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb6, 1, 2, 3, 4];
        assert_eq!(fragments[0][..22], [&begins[..], &[0, 2, 0, 100]].concat());
        assert_eq!(fragments[0][22..], frame[14..74]);
        assert_eq!(fragments[1][..22], [&begins[..], &[1, 2, 0, 100]].concat());
        assert_eq!(fragments[1][22..], frame[74..]);
    }

    /// 1,500 bytes at the sizes of the paper. Lengths count from behind the EtherType.
    #[test]
    fn the_sizes_of_the_paper() {
        let lengths = |size| -> Vec<usize> {
            cut(size, &frame(1500)).unwrap().iter().map(|fragment| fragment.len() - 14).collect()
        };
        assert_eq!(lengths(500), [500, 500, 500, 32]);
        assert_eq!(lengths(800), [800, 716]);
    }

    #[test]
    fn short_frames_and_frames_that_are_not_ip_are_not_cut() {
        let plan = |size, frame: &[u8]| Cutter::new(Size::new(size).unwrap(), ETHER_TYPE, 0).plan(frame);
        assert_eq!(plan(800, &frame(800)), Plan::Short);
        assert!(matches!(plan(800, &frame(801)), Plan::Cut(cut) if cut.count() == 2));
        let changed = |at: usize, byte: u8| {
            let mut frame = frame(1500);
            frame[at] = byte;
            plan(800, &frame)
        };
        assert_eq!(changed(13, 6), Plan::Whole, "ARP");
        assert_eq!(changed(14, 0x65), Plan::Whole, "the version does not match the EtherType");
        assert_eq!(plan(800, &[0; 13]), Plan::Short);
        assert!(matches!(plan(68, &frame(127 * 60)), Plan::Cut(cut) if cut.count() == MAX));
        assert_eq!(plan(68, &frame(127 * 60 + 1)), Plan::Whole);
    }

    /// Two tags stay in front of every fragment. A frame with three tags does not count as IP.
    #[test]
    fn tags_stay_in_front() {
        let tag = [0x81, 0, 0x20, 7];
        let tagged = |tags: usize| {
            let mut frame = frame(1500);
            for _ in 0..tags {
                frame.splice(12..12, tag);
            }
            frame
        };
        let fragments = cut(800, &tagged(2)).unwrap();
        for fragment in &fragments {
            assert_eq!(fragment[12..22], [&tag[..], &tag, &[0x88, 0xb6]].concat());
            assert_eq!(header_at(fragment, ETHER_TYPE), Some(22));
        }
        assert_eq!(cut(800, &tagged(3)), None);
    }

    #[test]
    fn invalid_sizes_and_ether_types_are_refused() {
        assert_eq!(Size::new(67), Err(WireError::Size { bytes: 67, least: 68, most: 9000 }));
        assert_eq!(Size::new(9001), Err(WireError::Size { bytes: 9001, least: 68, most: 9000 }));
        assert_eq!(
            Size::new(5).unwrap_err().to_string(),
            "5 bytes: fragments have 68 to 9000 bytes; the TRR paper has 500 and 800"
        );
        assert_eq!(ether_type(0x88b5), Ok(0x88b5));
        assert_eq!(ether_type(0x86dd), Err(WireError::EtherType(0x86dd, "IPv6")));
        assert!(ether_type(1500).unwrap_err().to_string().contains("is a length"));
    }
}
