//! Control packets: start, end, and the answers granted and refused.
//!
//! All of them have 72 bytes in network byte order, behind an Ethernet header. (The format would fit a UDP datagram, too, but
//! none is read here.) Further bytes, such as the padding of a frame, are ignored.
//!
//! | byte | bytes | what |
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
//! | 56 | 8 | number of the request: nanoseconds since 1970 on the sender's clock, each larger than the one before |
//! | 64 | 8 | tag: SipHash-2-4 of bytes 0 to 63, with zero for the checksum, under a key that both sides know; 0 without a key |
//!
//! The fields from 8 to 19 and from 24 to 47 are those of the paper; their widths are chosen here. An answer repeats the
//! request, which identifies it. A finish of 2^64 - 1 means no end.
//!
//! The other fields are additions. The tag proves that the sender has the key: without it any machine on the link can end any
//! reservation. The tag covers the link address, which must be that of the frame, so a recorded message cannot be sent under
//! another address. The number shows that the message is new ([`crate::guard`]), so it cannot be repeated under the same one.
//!
//! Version 1 had 56 bytes: no link address, no number, and the tag at byte 48. Recorded messages of it could be sent again, so it is refused
//! ([`Reason::OldVersion`]).
//!
//! The paper's EtherTypes, 0x0801 and 0x0802, are registered to others (X.75 and NBS Internet). The default is that for local
//! experiments, 0x88b5 (IEEE 802).

use std::ops::Range;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{FiveTuple, Rate};

/// Length of every message, in bytes.
pub const LENGTH: usize = 72;

const MAGIC: [u8; 2] = *b"GW";
/// The version of the messages that this code reads and writes.
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
    /// The number of the request, larger than those of all requests that the sender sent before.
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

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The link has not so much left at some time between start and finish.
    NoRoom = 1,
    /// The table is full.
    TableFull = 2,
    /// It asks for no rate.
    NoRate = 3,
    /// It finishes before it starts, or in the same instant.
    Backwards = 4,
    /// It has finished already.
    Over = 5,
    /// Somebody else has a reservation for that flow.
    NotYours = 6,
    /// It asks for less than the least rate of the router.
    TooLittle = 7,
    /// The sender has reserved as much of the link, or for as many flows, as one sender may.
    Quota = 8,
    /// Senders without a key have reserved as much as they may, all together.
    OpenFull = 9,
    /// The message, or a later one of the same sender, was received before.
    Replayed = 10,
    /// The clocks of sender and router differ too much to tell whether the message is new.
    Clock = 11,
    /// The message has an older version.
    OldVersion = 12,
}

impl MessageError {
    /// Names of the counters, by [`MessageError::index`].
    pub const NAMES: [&str; 11] = [
        "short", "magic", "version", "length", "checksum", "forged", "kind", "reason", "reserved", "times",
        "owner",
    ];

    /// Index in [`MessageError::NAMES`].
    pub fn index(&self) -> usize {
        match self {
            MessageError::Short(_) => 0,
            MessageError::Magic(_) => 1,
            MessageError::Version(_) => 2,
            MessageError::Length(_) => 3,
            MessageError::Checksum => 4,
            MessageError::Forged => 5,
            MessageError::Kind(_) => 6,
            MessageError::Reason(..) => 7,
            MessageError::Reserved => 8,
            MessageError::Times => 9,
            MessageError::Owner => 10,
        }
    }
}

impl Reason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Reason; 12] = [
        Reason::NoRoom,
        Reason::TableFull,
        Reason::NoRate,
        Reason::Backwards,
        Reason::Over,
        Reason::NotYours,
        Reason::TooLittle,
        Reason::Quota,
        Reason::OpenFull,
        Reason::Replayed,
        Reason::Clock,
        Reason::OldVersion,
    ];
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::NoRoom => "the link has not so much left in that time: ask for less, or for later",
            Reason::TableFull => "the table of reservations is full: ask again when others have ended",
            Reason::NoRate => "no rate is asked for: ask for at least 1 bit/s",
            Reason::Backwards => "it finishes before it starts: ask for a finish after the start",
            Reason::Over => "it has finished already: ask for a finish in the future",
            Reason::NotYours => "somebody else has reserved for that flow: only who did can change it",
            Reason::TooLittle => {
                "the router grants no rate as small as this (--reserve-least): ask for a higher rate"
            }
            Reason::Quota => {
                "this machine has reserved as much as one may (--reserve-owner-share, --reserve-owner-flows): \
                 end another reservation, or ask for less"
            }
            Reason::OpenFull => {
                "machines without a key have reserved as much as they may together (--reserve-open): ask with a key, \
                 or for less"
            }
            Reason::Replayed => {
                "the router has heard this message or a later one before, or has only just begun: ask again"
            }
            Reason::Clock => {
                "the clocks of this machine and the router differ by more than the router allows (--reserve-skew): \
                 set both, as with NTP"
            }
            Reason::OldVersion => {
                "it was asked for by an older version of Giveway: use the same version on both sides"
            }
        })
    }
}

/// An error in the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Too few bytes.
    #[error("a message has 72 bytes; here are {0}")]
    Short(usize),
    /// It does not begin as one.
    #[error("bytes 0 and 1 are {0:02x?}; a message begins with 47 57")]
    Magic([u8; 2]),
    /// Another version.
    #[error("byte 2: version {0}; only version 2 is known: use the same version of Giveway on both sides")]
    Version(u8),
    /// The length field is wrong.
    #[error("bytes 4 and 5: a length of {0}; every message has 72")]
    Length(u16),
    /// Damaged.
    #[error("bytes 6 and 7: the checksum is wrong")]
    Checksum,
    /// The tag is not that of the key.
    #[error("bytes 64 to 71: the tag is not that of our key, so the message is not from who has it")]
    Forged,
    /// No such kind.
    #[error("byte 3: kind {0}; there are 1 start, 2 end, 3 granted, 4 refused")]
    Kind(u8),
    /// A reason where none belongs, or none where one does.
    #[error("byte 21: reason {0} in a message of kind {1}")]
    Reason(u8, u8),
    /// What should be zero is not.
    #[error("bytes 22, 23, 54 and 55 must be 0")]
    Reserved,
    /// An end with times.
    #[error("bytes 32 to 47: an end has no times, both are 0")]
    Times,
    /// The sender's link address is not that of the frame, or no machine has it. Told by [`Message::check_owner`].
    #[error("bytes 48 to 53: not the link address that the frame comes from, or one of a group, or zero")]
    Owner,
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
            // Its length is that of another version.
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
        debug_assert_eq!(version, VERSION, "others were refused above");
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

    /// Reads a start or an end of version 1, so that its sender can be told why nothing comes of it: `None` when it is not
    /// one, is damaged, or was not written with the key. `sender` is the link address that the frame comes from.
    pub fn decode_version_1(bytes: &[u8], sender: [u8; 6], key: Option<&SipHasher>) -> Option<Message> {
        let mut bare = *bytes.first_chunk::<LENGTH_1>()?;
        let sum = u16::from_be_bytes([bare[6], bare[7]]);
        bare[CHECKSUM].fill(0);
        let tag = bare[TAG_1].try_into().map(u64::from_be_bytes).ok()?;
        let right = bare[..3] == [MAGIC[0], MAGIC[1], 1]
            && matches!(bare[3], 1 | 2)
            && checksum(&bare) == sum
            && key.is_none_or(|key| key.hash(&bare[..TAG_1.start]) == tag);
        // The fields up to the tag are where they are now.
        let mut now = [0; LENGTH];
        now[..TAG_1.start].copy_from_slice(&bare[..TAG_1.start]);
        now[2] = VERSION;
        now[4..6].copy_from_slice(&(LENGTH as u16).to_be_bytes());
        now[48..54].copy_from_slice(&sender);
        let sum = checksum(&now);
        now[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        right.then(|| Message::decode(&now, None).ok())?
    }

    /// True if the bytes of a message have no tag: its sender has no key.
    pub fn is_untagged(bytes: &[u8]) -> bool {
        bytes.get(TAG).is_some_and(|tag| tag.iter().all(|byte| *byte == 0))
    }

    /// Checks that a request comes from the machine that it names; `from` is the link address that its frame comes from.
    ///
    /// # Errors
    /// That it names another, or an address that no machine has: zero, or that of a group.
    pub fn check_owner(&self, from: [u8; 6]) -> Result<(), MessageError> {
        // IEEE 802, section 8.2: the lowest bit of the first byte tells groups.
        let is_machine = from != [0; 6] && from[0] & 1 == 0;
        if is_machine && from == self.sender { Ok(()) } else { Err(MessageError::Owner) }
    }

    /// The answer to this message.
    pub fn answer(&self, refused: Option<Reason>) -> Message {
        Message { kind: refused.map_or(Kind::Granted, Kind::Refused), ..*self }
    }
}

/// The next bytes. There are as many: the message was measured.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, behind) = rest.split_first_chunk::<N>().expect("a message has all its fields");
    *rest = behind;
    *field
}

impl Kind {
    /// Its number, and that of the reason.
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

/// Under which EtherTypes messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherTypes {
    /// A start, and the answer to it.
    pub start: u16,
    /// An end, and the answer to it.
    pub end: u16,
}

impl EtherTypes {
    /// That for local experiments, for both.
    pub const LOCAL: EtherTypes = EtherTypes { start: 0x88b5, end: 0x88b5 };
    /// Those of the paper, which belong to others.
    pub const PUBLISHED: EtherTypes = EtherTypes { start: 0x0801, end: 0x0802 };
}

impl Default for EtherTypes {
    fn default() -> EtherTypes {
        EtherTypes::LOCAL
    }
}

/// RFC 1071: the ones' complement of the ones' complement sum of 16-bit words.
fn checksum(bytes: &[u8]) -> u16 {
    let (words, _) = bytes.as_chunks::<2>();
    let mut sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Message {
        Message {
            kind: Kind::Start,
            tuple: Tuple {
                from: [192, 0, 2, 1],
                to: [198, 51, 100, 7],
                from_port: 5004,
                to_port: 6000,
                protocol: 17,
            },
            rate: Rate::mbit(1),
            start: 1_000_000_000,
            finish: 61_000_000_000,
            sender: [2, 0, 0, 0, 0, 1],
            number: 0x1122_3344_5566_7788,
        }
    }

    #[test]
    fn byte_by_byte() {
        let expected: [u8; LENGTH] = [
            0x47, 0x57, 2, 1, 0, 72, 0xdc, 0xf5, 192, 0, 2, 1, 198, 51, 100, 7, 0x13, 0x8c, 0x17, 0x70, 17,
            0, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 0x0e, 0x33,
            0xe2, 0x22, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0,
            0, 0, 0, 0, 0,
        ];
        let got = start().encode(None);
        // By hand: all words with the checksum add up to ones only.
        let (words, _) = got.as_chunks::<2>();
        let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(got, expected);
    }

    /// Each mistake with its place, in messages whose checksum is right otherwise.
    #[test]
    fn mistakes_have_their_place() {
        let told = |at: usize, byte: u8| {
            let mut bytes = start().encode(None);
            bytes[at] = byte;
            bytes[CHECKSUM].fill(0);
            let sum = checksum(&bytes);
            bytes[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
            Message::decode(&bytes, None).unwrap_err()
        };
        assert_eq!(told(0, 0x45), MessageError::Magic([0x45, 0x57]));
        assert_eq!(told(2, 1), MessageError::Version(1));
        assert_eq!(told(3, 5), MessageError::Kind(5));
        assert_eq!(told(3, 4), MessageError::Reason(0, 4));
        assert_eq!(told(21, 1), MessageError::Reason(1, 1));
        assert_eq!(told(5, 48), MessageError::Length(48));
        assert_eq!(told(23, 1), MessageError::Reserved);
        assert_eq!(told(55, 1), MessageError::Reserved);
        assert_eq!(told(3, 2), MessageError::Times, "a start made into an end");
        assert_eq!(Message::decode(&start().encode(None)[..71], None), Err(MessageError::Short(71)));
    }

    /// A start of version 1, byte by byte as that version wrote it.
    #[test]
    fn version_1_is_refused_and_its_sender_can_be_told() {
        let old: [u8; LENGTH_1] = [
            0x47, 0x57, 1, 1, 0, 56, 0xf1, 0x5b, 192, 0, 2, 1, 198, 51, 100, 7, 0x13, 0x8c, 0x17, 0x70, 17,
            0, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 0x0e, 0x33,
            0xe2, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(Message::decode(&old, None), Err(MessageError::Version(1)));
        let sender = [2, 0, 0, 0, 0, 1];
        let read = Message::decode_version_1(&old, sender, None);
        assert_eq!(read, Some(Message { number: 0, ..start() }));
        let key = SipHasher::new(1, 2);
        assert_eq!(
            Message::decode_version_1(&old, sender, Some(&key)),
            None,
            "without the key nobody is told"
        );
        let mut tagged = old;
        tagged[CHECKSUM].fill(0);
        let tag = key.hash(&tagged[..TAG_1.start]);
        tagged[TAG_1].copy_from_slice(&tag.to_be_bytes());
        let sum = checksum(&tagged);
        tagged[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        assert!(Message::decode_version_1(&tagged, sender, Some(&key)).is_some());
        for at in 0..LENGTH_1 {
            let mut damaged = old;
            damaged[at] ^= 4;
            assert_eq!(Message::decode_version_1(&damaged, sender, None), None, "byte {at}");
        }
        let long = start().encode(None);
        assert_eq!(Message::decode_version_1(&long, sender, None), None, "that is version 2");
    }

    #[test]
    fn the_owner_is_a_machine_and_the_one_that_sends() {
        let message = start();
        assert_eq!(message.check_owner([2, 0, 0, 0, 0, 1]), Ok(()));
        for from in [[2, 0, 0, 0, 0, 2], [0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            assert_eq!(message.check_owner(from), Err(MessageError::Owner), "{from:02x?}");
            let named = Message { sender: from, ..message };
            assert_eq!(named.check_owner(from).is_ok(), from == [2, 0, 0, 0, 0, 2], "{from:02x?}");
        }
    }

    #[test]
    fn who_has_no_key_is_found_out() {
        let (key, other) = (SipHasher::new(1, 2), SipHasher::new(1, 3));
        let bytes = start().encode(Some(&key));
        assert_eq!(Message::decode(&bytes, Some(&key)), Ok(start()));
        assert_eq!(Message::decode(&bytes, Some(&other)), Err(MessageError::Forged));
        assert_eq!(Message::decode(&start().encode(None), Some(&key)), Err(MessageError::Forged));
        assert_eq!(Message::decode(&bytes, None), Ok(start()), "who has no key does not look at tags");
    }
}
