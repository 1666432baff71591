//! The label option: how the rate of a flow travels from an edge router to the core, inside IPv4 and IPv6 packets.
//!
//! CSFQ and FPIP keep no state per flow in the core of a network. An edge router estimates the rate of each flow and
//! writes it on the flow's packets; core routers decide by this label and lower it when they drop. The papers leave open
//! where in a packet the label is. Here it is an IP option:
//!
//! | | option type | bytes of the option | a packet grows by |
//! |---|---|---|---|
//! | IPv4 | 158 (0x9e): copied on fragmentation, class 0, number 30 | `9e 04 vv vv` | 4 |
//! | IPv6 | 0x3e in the hop-by-hop options header: skip if unknown, may change on the way | `3e 02 vv vv`, and padding | 8 |
//!
//! Both types are set aside for experiments (RFC 4727), so no other use of them can be told from ours: an option of
//! another length is not taken for a label. `vv vv` is the value, 16 bits, most significant first.
//!
//! # The value
//! 0 is a short flow ([`Label::SHORT`]): an edge has looked and gives it no rate. Everything else is a rate, a small
//! floating-point number with gradual underflow: the 5 high bits are an exponent e, the 11 low bits a mantissa m.
//!
//! | e | rate in bit/s |
//! |---|---|
//! | 0 | m |
//! | 1 to 31 | (2048 + m) 2^(e-1) |
//!
//! Rates up to 4,095 bit/s are exact. Above, a rate is rounded to the nearest value, halves upwards, which is at most one
//! part in 4,097 away (0.0244 %; reached by 4,097 bit/s). The largest value, 0xffff, is 4,095 2^30 bit/s or 4.397 Tbit/s;
//! higher rates are held at it. Values are ordered as the rates are, and a value that was read is written as the same value
//! again: labels do not drift from router to router. A packet without the option has no label ([`Label::NONE`]), and no
//! rate is ever written as 0.
//!
//! # Where the option stands
//! - IPv4: first of the options, behind the 20 bytes that every header has. Header length, total length and header checksum
//!   follow. A header has room for 40 bytes of options.
//! - IPv6: first in the hop-by-hop options header. Where there is none, one of 8 bytes is put in front of what follows the
//!   fixed header: the option and two bytes of padding. Where there is one, 8 bytes are put at its beginning: the option
//!   and four bytes of padding, so that the options behind them keep their alignment.
//! - A label is read wherever among the options it stands.
//!
//! # Who does what
//! - **Edge, inwards**: [`read`]. Labels from outside the domain must not be trusted: whoever writes small rates on its own
//!   packets would be served first. An edge [`rewrite`]s what is there and [`insert`]s where nothing is.
//! - **Core**: [`read`]; [`rewrite`] where a label is lowered: two bytes and the checksum change, in place (RFC 1624).
//! - **Edge, outwards**: [`remove`]. The packet is what it was before [`insert`], byte by byte. One exception: an IPv4 header
//!   checksum of 0xffff comes back as 0x0000, which says the same; nobody who computes a checksum writes 0xffff
//!   (RFC 1624 section 3).
//!
//! A wrong IPv4 header checksum stays wrong: checksums are updated, not computed anew, so that damage is still found.
//!
//! Only the headers that come before and hold the option are looked at. A packet may be cut off behind them, as in a
//! capture, or followed by the padding of an Ethernet frame; whoever forwards packets checks their lengths.
//!
//! # For one domain only
//! - **Routers may drop it.** Many routers and firewalls drop IPv4 packets with options or send them the slow way; RFC 7126
//!   tells operators what to think of each option. RFC 9673 does the same for hop-by-hop options. So the label is for a
//!   domain under one administration, whose routers know it, and is taken off at its edge.
//! - **A router that inserts.** RFC 8200 section 4 lets only the source of an IPv6 packet add a hop-by-hop options header. A
//!   domain that wants to keep to the letter puts the packet into another one (RFC 2473) whose header has the option, as
//!   RFC 9486 does for measurements; these functions then work on the outer packet. The Authentication Header (RFC 4302)
//!   covers the lengths that change, so it can be checked only once the label is removed.
//! - **The MTU.** Within the domain packets are 4 or 8 bytes longer. Either its links take so much more, or its edge tells
//!   senders an MTU that is so much less (RFC 1191, RFC 8201); otherwise full packets are fragmented or dropped.
//! - **Fragments.** With the copied flag (the highest bit of type 158) whoever fragments an IPv4 packet copies the option
//!   into every fragment (RFC 791), so that a fragment is labelled like its packet. Fragments that come to the edge are
//!   packets like others and get a label each. In IPv6 only sources fragment; the hop-by-hop options header stands in front
//!   of the fragment header, so each fragment has its own.
//! - **Errors.** An ICMP error that a router of the domain sends quotes the packet as it is there, with the label.
//!
//! # Deviations
//! - The headers are read by hand, although the crate `capture` reads some and libraries read more: to write in place one
//!   needs to know where an option stands, and both tell only what it says. The tests hold this against a library and
//!   against tshark.
//!
//! # References
//! - Stoica, Shenker and Zhang, "Core-stateless fair queueing", SIGCOMM 1998, section 2: labels, and edges and core.
//! - RFC 791 section 3.1 (IPv4 options), RFC 8200 section 4 (IPv6 options), RFC 4727 (types for experiments), RFC 1624 (the
//!   incremental checksum).

mod code;
mod ipv4;
mod ipv6;

use giveway_qdisc::Label;

pub use code::{decode, encode};

/// Why a label cannot be read or written. Places are bytes from the beginning of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Neither IPv4 nor IPv6, or nothing at all.
    #[error("this is no IP packet: the version in its first four bits is {}", .0.map_or_else(|| "missing".to_owned(), |version| version.to_string()))]
    NotIp(
        /// What stands where the version should be.
        Option<u8>,
    ),
    /// Too few bytes.
    #[error("the packet ends after {bytes} bytes, within its {within}")]
    CutOff {
        /// How many bytes there are.
        bytes: usize,
        /// The header that is not all there.
        within: &'static str,
    },
    /// A header contradicts itself.
    #[error("the packet is malformed at byte {at}: {what}")]
    Malformed {
        /// The field or option that is wrong.
        at: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The option has not the length of a label: somebody else's experiment.
    #[error("the option {kind} at byte {at} is no label: it is {length} bytes long, not 4")]
    Foreign {
        /// Its type.
        kind: u8,
        /// Where it stands.
        at: usize,
        /// How long it is, with its type and length.
        length: usize,
    },
    /// Two options that look like a label.
    #[error("the packet has two labels, at bytes {first} and {second}")]
    Twice {
        /// Where the first stands.
        first: usize,
        /// Where the second stands.
        second: usize,
    },
    /// To be inserted, and there is one.
    #[error("the packet has a label already, at byte {at}: rewrite it, or remove it first")]
    Labelled {
        /// Where it stands.
        at: usize,
    },
    /// To be rewritten, and there is none.
    #[error("the packet has no label to rewrite: insert one")]
    Unlabelled,
    /// [`Label::NONE`] cannot be written.
    #[error("no label is written by leaving it out: remove it")]
    Nothing,
    /// A header or the packet would become too long.
    #[error("there is no room for a label: {what}")]
    NoRoom {
        /// What is full.
        what: &'static str,
    },
}

/// The label of an IP packet; [`Label::NONE`] where it has none.
///
/// # Errors
/// When it is no IP packet, is cut off before its options end, is malformed, or has an option that looks like a label and is
/// none.
pub fn read(packet: &[u8]) -> Result<Label, LabelError> {
    let value = match version(packet)? {
        Version::Four => ipv4::look(packet)?.label.map(|at| value(packet, at)),
        Version::Six => ipv6::look(packet)?.label.map(|at| value(packet, at)),
    };
    Ok(value.map_or(Label::NONE, decode))
}

/// Puts a label into an IP packet that has none. It grows by 4 (IPv4) or 8 bytes (IPv6); bytes behind the header move.
///
/// # Errors
/// As [`read`]; when it has a label already, when there is no room, and for [`Label::NONE`]. Then it is unchanged.
pub fn insert(packet: &mut Vec<u8>, label: Label) -> Result<(), LabelError> {
    let value = encode(label).ok_or(LabelError::Nothing)?.to_be_bytes();
    match version(packet)? {
        Version::Four => ipv4::insert(packet, value),
        Version::Six => ipv6::insert(packet, value),
    }
}

/// Writes another label over the one that an IP packet has, in place.
///
/// # Errors
/// As [`read`]; when it has no label, and for [`Label::NONE`]. Then it is unchanged.
pub fn rewrite(packet: &mut [u8], label: Label) -> Result<(), LabelError> {
    let value = encode(label).ok_or(LabelError::Nothing)?.to_be_bytes();
    match version(packet)? {
        Version::Four => ipv4::rewrite(packet, value),
        Version::Six => ipv6::rewrite(packet, value),
    }
}

/// Takes the label out of an IP packet and returns it; [`Label::NONE`] where there was none, and then nothing changes.
///
/// What [`insert`] made becomes what it was. An IPv6 label that stands among other options is overwritten with padding, so
/// that those keep their alignment.
///
/// # Errors
/// As [`read`]. Then it is unchanged.
pub fn remove(packet: &mut Vec<u8>) -> Result<Label, LabelError> {
    let value = match version(packet)? {
        Version::Four => ipv4::remove(packet)?,
        Version::Six => ipv6::remove(packet)?,
    };
    Ok(value.map_or(Label::NONE, decode))
}

enum Version {
    Four,
    Six,
}

fn version(packet: &[u8]) -> Result<Version, LabelError> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => Ok(Version::Four),
        Some(6) => Ok(Version::Six),
        other => Err(LabelError::NotIp(other)),
    }
}

/// Bytes of the option in both versions: type, length, value. An IPv4 packet grows by so many.
pub const OPTION: usize = 4;

/// The value of the label that stands at `at`.
fn value(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at + 2], packet[at + 3]])
}

/// Remembers where the label stands, if it is the only one.
fn only(known: Option<usize>, at: usize) -> Result<Option<usize>, LabelError> {
    match known {
        None => Ok(Some(at)),
        Some(first) => Err(LabelError::Twice { first, second: at }),
    }
}
