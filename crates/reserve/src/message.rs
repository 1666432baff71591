//! Control packets: start, end, and the answers granted and refused.
//!
//! All of them have 72 bytes in network byte order, behind an Ethernet header. (The format would fit a UDP
//! datagram, too, but none is read here.) Further bytes, such as the padding of a frame, are ignored.
//!
//! | byte | bytes | content |
//! |---|---|---|
//! | 0 | 2 | `47 57`, "GW" |
//! | 2 | 1 | version: 2 |
//! | 3 | 1 | kind: 1 start, 2 end, 3 granted, 4 refused |
//! | 4 | 2 | length of the message: 72 |
//! | 6 | 2 | Internet checksum (RFC 1071) of all 72 bytes, with zero in its place |
//! | 8 | 4 | source address of the flow |
//! | 12 | 4 | destination address |
//! | 16 | 2 | source port |
//! | 18 | 2 | destination port |
//! | 20 | 1 | IP protocol |
//! | 21 | 1 | reason, in a refusal; otherwise 0 |
//! | 22 | 2 | 0 |
//! | 24 | 8 | rate in bit/s |
//! | 32 | 8 | start, in nanoseconds since an epoch that both sides know: 1970, on real links; 0 in an end |
//! | 40 | 8 | finish, likewise |
//! | 48 | 6 | link address of the sender of the request |
//! | 54 | 2 | 0 |
//! | 56 | 8 | number of the request: nanoseconds since 1970 on the sender's clock, always increasing |
//! | 64 | 8 | tag: SipHash-2-4 of bytes 0 to 63, with a checksum of 0, by the shared key; 0 without a key |
//!
//! The fields from 8 to 19 and from 24 to 47 come from the paper; their widths are chosen here. An answer
//! repeats the request, which identifies it. A finish of 2^64 - 1 means no end.
//!
//! The other fields are additions. The tag proves that the sender has the key: without it any machine on the
//! link can end any reservation. The tag covers the link address, which must match the frame's, so a recorded
//! message cannot be sent under another address. The number shows that the message is new ([`crate::guard`]),
//! so it cannot be repeated under the same one.
//!
//! Version 1 had 56 bytes: no link address, no number, and the tag at byte 48. Recorded messages of version 1
//! could be replayed, so they are refused ([`Reason::OldVersion`]).
//!
//! The paper's EtherTypes, 0x0801 and 0x0802, are registered to others (X.75 and NBS Internet). The default
//! is that for local experiments, 0x88b5 (IEEE 802).

mod error;
mod reason;

use std::ops::Range;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{FiveTuple, Rate};

pub use error::MessageError;
pub use reason::Reason;

/// Length of every message, in bytes.
pub const LENGTH: usize = 72;

const MAGIC: [u8; 2] = *b"GW";
/// Version of the messages that this code encodes and decodes.
pub const VERSION: u8 = 2;
const CHECKSUM: Range<usize> = 6..8;
const TAG: Range<usize> = 64..72;
/// Length of a message of version 1, and the position of its tag.
const LENGTH_1: usize = 56;
const TAG_1: Range<usize> = 48..56;

/// The flow of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// Source address, IPv4.
    pub from: [u8; 4],
    /// Destination address.
    pub to: [u8; 4],
    /// Source port.
    pub from_port: u16,
    /// Destination port.
    pub to_port: u16,
    /// IP protocol number; the paper has none.
    pub protocol: u8,
}

/// A control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// The flow.
    pub tuple: Tuple,
    /// The reserved rate.
    pub rate: Rate,
    /// Start, in nanoseconds; 0 in an end.
    pub start: u64,
    /// Finish, in nanoseconds, not included; 0 in an end.
    pub finish: u64,
    /// The link address of the sender of the request.
    pub sender: [u8; 6],
    /// The number of the request, larger than the numbers of all requests that the sender sent before.
    pub number: u64,
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sender requests a rate.
    Start,
    /// A sender ends its reservation.
    End,
    /// The router grants the request.
    Granted,
    /// The router refuses the request.
    Refused(Reason),
}

impl Message {
    /// Encodes the message, with a tag if there is a key.
    pub fn encode(&self, key: Option<&SipHasher>) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        let (kind, reason) = self.kind.numbers();
        put(&MAGIC);
        put(&[VERSION, kind]);
        put(&(LENGTH as u16).to_be_bytes());
        put(&[0, 0]);
        put(&self.tuple.from);
        put(&self.tuple.to);
        put(&self.tuple.from_port.to_be_bytes());
        put(&self.tuple.to_port.to_be_bytes());
        put(&[self.tuple.protocol, reason, 0, 0]);
        put(&self.rate.as_bit().to_be_bytes());
        put(&self.start.to_be_bytes());
        put(&self.finish.to_be_bytes());
        put(&self.sender);
        put(&[0, 0]);
        put(&self.number.to_be_bytes());
        if let Some(key) = key {
            let tag = key.hash(&bytes[..TAG.start]);
            bytes[TAG].copy_from_slice(&tag.to_be_bytes());
        }
        let sum = checksum(&bytes);
        bytes[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Decodes a message. With a key, only messages with its tag are accepted.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn decode(bytes: &[u8], key: Option<&SipHasher>) -> Result<Message, MessageError> {
        if let Some([first, second, version]) = bytes.first_chunk()
            && [*first, *second] == MAGIC
            && *version != VERSION
        {
            // Other versions have other lengths, so this comes before the check of the length.
            return Err(MessageError::Version(*version));
        }
        let Some(bytes) = bytes.first_chunk::<LENGTH>() else { return Err(MessageError::Short(bytes.len())) };
        let mut rest = &bytes[..];
        let magic = take(&mut rest);
        let [version, kind] = take(&mut rest);
        let length = u16::from_be_bytes(take(&mut rest));
        if magic != MAGIC {
            return Err(MessageError::Magic(magic));
        }
        debug_assert_eq!(version, VERSION, "other versions are errors above");
        if usize::from(length) != LENGTH {
            return Err(MessageError::Length(length));
        }
        let sum = u16::from_be_bytes(take(&mut rest));
        let mut bare = *bytes;
        bare[CHECKSUM].fill(0);
        if checksum(&bare) != sum {
            return Err(MessageError::Checksum);
        }
        let (from, to) = (take(&mut rest), take(&mut rest));
        let from_port = u16::from_be_bytes(take(&mut rest));
        let to_port = u16::from_be_bytes(take(&mut rest));
        let [protocol, reason] = take(&mut rest);
        let reserved: [u8; 2] = take(&mut rest);
        let [rate, start, finish] = std::array::from_fn(|_| u64::from_be_bytes(take(&mut rest)));
        let sender = take(&mut rest);
        let reserved = [reserved, take(&mut rest)];
        let [number, tag] = std::array::from_fn(|_| u64::from_be_bytes(take(&mut rest)));
        if key.is_some_and(|key| key.hash(&bare[..TAG.start]) != tag) {
            return Err(MessageError::Forged);
        }
        let kind = Kind::of(kind, reason)?;
        if reserved != [[0; 2]; 2] {
            return Err(MessageError::Reserved);
        }
        if kind == Kind::End && (start, finish) != (0, 0) {
            return Err(MessageError::Times);
        }
        let tuple = Tuple { from, to, from_port, to_port, protocol };
        Ok(Message { kind, tuple, rate: Rate::bit(rate), start, finish, sender, number })
    }

    /// Decodes a start or an end of version 1, so that its sender can be refused with a reason. Returns
    /// `None` for other or damaged messages, and if the tag does not match the key. `sender` is the source
    /// address of the frame.
    pub fn decode_version_1(bytes: &[u8], sender: [u8; 6], key: Option<&SipHasher>) -> Option<Message> {
        let mut bare = *bytes.first_chunk::<LENGTH_1>()?;
        let sum = u16::from_be_bytes([bare[6], bare[7]]);
        bare[CHECKSUM].fill(0);
        let tag = bare[TAG_1].try_into().map(u64::from_be_bytes).ok()?;
        let valid = bare[..3] == [MAGIC[0], MAGIC[1], 1]
            && matches!(bare[3], 1 | 2)
            && checksum(&bare) == sum
            && key.is_none_or(|key| key.hash(&bare[..TAG_1.start]) == tag);
        // Up to the tag, the fields have the same positions as in version 2.
        let mut now = [0; LENGTH];
        now[..TAG_1.start].copy_from_slice(&bare[..TAG_1.start]);
        now[2] = VERSION;
        now[4..6].copy_from_slice(&(LENGTH as u16).to_be_bytes());
        now[48..54].copy_from_slice(&sender);
        let sum = checksum(&now);
        now[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        valid.then(|| Message::decode(&now, None).ok())?
    }

    /// True if the bytes of a message have no tag: its sender has no key.
    pub fn is_untagged(bytes: &[u8]) -> bool {
        bytes.get(TAG).is_some_and(|tag| tag.iter().all(|byte| *byte == 0))
    }

    /// Checks that a request comes from the machine that it names; `from` is the source address of its frame.
    ///
    /// # Errors
    /// If it names another machine, or the address is zero or a group address.
    pub fn check_owner(&self, from: [u8; 6]) -> Result<(), MessageError> {
        // IEEE 802, section 8.2: the lowest bit of the first byte is set in group addresses.
        let is_machine = from != [0; 6] && from[0] & 1 == 0;
        if is_machine && from == self.sender { Ok(()) } else { Err(MessageError::Owner) }
    }

    /// The answer to this message.
    pub fn answer(&self, refused: Option<Reason>) -> Message {
        Message { kind: refused.map_or(Kind::Granted, Kind::Refused), ..*self }
    }
}

/// Takes the next bytes. The length of the message was checked before.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, behind) = rest.split_first_chunk::<N>().expect("a message has all its fields");
    *rest = behind;
    *field
}

impl Kind {
    /// Number of the kind, and number of the reason.
    fn numbers(self) -> (u8, u8) {
        match self {
            Kind::Start => (1, 0),
            Kind::End => (2, 0),
            Kind::Granted => (3, 0),
            Kind::Refused(reason) => (4, reason as u8),
        }
    }

    fn of(kind: u8, reason: u8) -> Result<Kind, MessageError> {
        match (kind, reason) {
            (1, 0) => Ok(Kind::Start),
            (2, 0) => Ok(Kind::End),
            (3, 0) => Ok(Kind::Granted),
            (4, reason) => {
                let found = Reason::ALL.into_iter().find(|each| *each as u8 == reason);
                found.map(Kind::Refused).ok_or(MessageError::Reason(reason, 4))
            }
            (1..=3, reason) => Err(MessageError::Reason(reason, kind)),
            (kind, _) => Err(MessageError::Kind(kind)),
        }
    }
}

impl From<Tuple> for FiveTuple {
    fn from(tuple: Tuple) -> FiveTuple {
        let mapped = |[a, b, c, d]: [u8; 4]| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
        let Tuple { from, to, from_port, to_port, protocol } = tuple;
        FiveTuple { from: mapped(from), to: mapped(to), from_port, to_port, protocol }
    }
}

impl std::fmt::Display for Tuple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] = [self.from, self.to].map(std::net::Ipv4Addr::from);
        match self.protocol {
            6 => f.write_str("tcp ")?,
            17 => f.write_str("udp ")?,
            number => write!(f, "proto {number} ")?,
        }
        write!(f, "{from}:{} > {to}:{}", self.from_port, self.to_port)
    }
}

/// EtherTypes of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherTypes {
    /// A start, and the answer to it.
    pub start: u16,
    /// An end, and the answer to it.
    pub end: u16,
}

impl EtherTypes {
    /// The EtherType for local experiments, for both.
    pub const LOCAL: EtherTypes = EtherTypes { start: 0x88b5, end: 0x88b5 };
    /// The EtherTypes of the paper, which are registered to other protocols.
    pub const PUBLISHED: EtherTypes = EtherTypes { start: 0x0801, end: 0x0802 };
}

impl Default for EtherTypes {
    fn default() -> EtherTypes {
        EtherTypes::LOCAL
    }
}

/// The Internet checksum: the ones' complement of the ones' complement sum of 16-bit words (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let (words, _) = bytes.as_chunks::<2>();
    let mut sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests;
