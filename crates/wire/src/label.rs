//! The label option: an IP option that carries the rate of a flow from an edge router to core routers, in
//! IPv4 and IPv6.
//!
//! CSFQ and FPIP keep no state per flow in the core of a network. An edge router estimates the rate of each
//! flow and writes it on the flow's packets; core routers decide by this label and lower it when they drop.
//! The papers leave open the position of the label in a packet. Here it is an IP option:
//!
//! | | option type | bytes of the option | a packet grows by |
//! |---|---|---|---|
//! | IPv4 | 158 (0x9e): copied on fragmentation, class 0, number 30 | `9e 04 vv vv` | 4 |
//! | IPv6 | 0x3e, a hop-by-hop option: skip if unknown, may change en route | `3e 02 vv vv`, padding | 8 |
//!
//! Both types are reserved for experiments (RFC 4727), so other experiments may use them, too. An option of
//! another length is not a label. `vv vv` is the value, 16 bits, most significant first.
//!
//! # The value
//! 0 is a short flow ([`Label::SHORT`]), to which an edge assigns no rate. All other values are rates, as a
//! small floating-point number with gradual underflow: the 5 high bits are an exponent e, the 11 low bits a
//! mantissa m.
//!
//! | e | rate in bit/s |
//! |---|---|
//! | 0 | m |
//! | 1 to 31 | (2048 + m) 2^(e-1) |
//!
//! Rates up to 4,095 bit/s are exact. Above, a rate is rounded to the nearest value, halves upwards, which is
//! at most one part in 4,097 away (0.0244 %; reached by 4,097 bit/s). The largest value, 0xffff, is 4,095
//! 2^30 bit/s or 4.397 Tbit/s; higher rates become this value. Values are in the order of the rates. Encoding
//! a decoded value gives the same value, so labels do not drift from router to router. A packet without the
//! option has no label ([`Label::NONE`]), and no rate is ever written as 0.
//!
//! # Position of the option
//! - IPv4: the first option, behind the 20 bytes that every header has. Header length, total length and
//!   header checksum follow. A header has at most 40 bytes of options.
//! - IPv6: first in the hop-by-hop options header. If there is no such header, one of 8 bytes is inserted
//!   behind the fixed header: the option and two bytes of padding. Otherwise 8 bytes are inserted at its
//!   beginning: the option and four bytes of padding, so that later options keep their alignment.
//! - A label is read at any position among the options.
//!
//! # Roles
//! - **Ingress edge**: [`read`]. Labels from outside the domain cannot be trusted: a sender that writes small
//!   rates on its own packets would be served first. An edge [`rewrite`]s an existing label and [`insert`]s a
//!   missing one.
//! - **Core**: [`read`], and [`rewrite`] to lower a label: two bytes and the checksum change in place (RFC
//!   1624).
//! - **Egress edge**: [`remove`]. The packet is the same as before [`insert`], byte by byte, with one
//!   exception: an IPv4 header checksum of 0xffff becomes 0x0000, which is equivalent; no computed checksum
//!   is 0xffff (RFC 1624 section 3).
//!
//! A wrong IPv4 header checksum stays wrong, because checksums are updated and not recomputed. So damage is
//! still detected.
//!
//! Only the headers up to the option are read. A packet may be truncated behind them, as in a capture, or
//! followed by the padding of an Ethernet frame. A router checks the lengths of packets itself.
//!
//! # For one domain only
//! - **Routers may drop it.** Many routers and firewalls drop IPv4 packets with options, or process them in
//!   software; RFC 7126 advises operators on each option. RFC 9673 does the same for hop-by-hop options. So
//!   the label is for a domain under one administration, whose routers support it, and is removed at its
//!   edge.
//! - **A router that inserts.** RFC 8200 section 4 lets only the source of an IPv6 packet add a hop-by-hop
//!   options header. A domain that follows this rule encapsulates the packet in another one (RFC 2473) whose
//!   header has the option, as RFC 9486 does for measurements; these functions then work on the outer packet.
//!   The Authentication Header (RFC 4302) covers the lengths that change, so it can be checked only once the
//!   label is removed.
//! - **The MTU.** Within the domain packets are 4 or 8 bytes longer. Either its links have a larger MTU, or
//!   its edge announces a smaller MTU to senders (RFC 1191, RFC 8201); otherwise full packets are fragmented
//!   or dropped.
//! - **Fragments.** With the copied flag (the highest bit of type 158) a router that fragments an IPv4 packet
//!   copies the option into every fragment (RFC 791), so that a fragment has the label of its packet.
//!   Fragments that arrive at the edge get a label each, like all packets. In IPv6 only sources fragment; the
//!   hop-by-hop options header stands in front of the fragment header, so each fragment has its own.
//! - **Errors.** An ICMP error that a router of the domain sends quotes the packet as it is there, with the
//!   label.
//!
//! # Deviations
//! - Headers are parsed here, although the crate `capture` and libraries parse them, too: a rewrite in place
//!   needs the position of an option, and those return only its contents. The tests compare with a library
//!   and with tshark.
//!
//! # References
//! - Stoica, Shenker and Zhang, "Core-stateless fair queueing", SIGCOMM 1998, section 2: labels, and edges
//!   and core.
//! - RFC 791 section 3.1 (IPv4 options), RFC 8200 section 4 (IPv6 options), RFC 4727 (types for experiments),
//!   RFC 1624 (the incremental checksum).

mod code;
mod ipv4;
mod ipv6;
mod option;

use giveway_qdisc::Label;

use crate::error::WireError;
pub use code::{decode, encode};
pub use option::OPTION;
use option::value;

/// The label of an IP packet; [`Label::NONE`] if it has none.
///
/// # Errors
/// If the packet is not IP, is truncated before its options end, is malformed, or has an option of the
/// label's type with another length.
pub fn read(packet: &[u8]) -> Result<Label, WireError> {
    let value = match version(packet)? {
        Version::Four => ipv4::parse(packet)?.label.map(|at| value(packet, at)),
        Version::Six => ipv6::parse(packet)?.label.map(|at| value(packet, at)),
    };
    Ok(value.map_or(Label::NONE, decode))
}

/// Inserts a label into an IP packet without one. The packet grows by 4 (IPv4) or 8 bytes (IPv6).
///
/// # Errors
/// The errors of [`read`]; also if the packet has a label, if the label does not fit, and for
/// [`Label::NONE`]. The packet is unchanged.
pub fn insert(packet: &mut Vec<u8>, label: Label) -> Result<(), WireError> {
    let value = encode(label).ok_or(WireError::Nothing)?.to_be_bytes();
    match version(packet)? {
        Version::Four => ipv4::insert(packet, value),
        Version::Six => ipv6::insert(packet, value),
    }
}

/// Replaces the label of an IP packet in place.
///
/// # Errors
/// The errors of [`read`]; also if the packet has no label, and for [`Label::NONE`]. The packet is unchanged.
pub fn rewrite(packet: &mut [u8], label: Label) -> Result<(), WireError> {
    let value = encode(label).ok_or(WireError::Nothing)?.to_be_bytes();
    match version(packet)? {
        Version::Four => ipv4::rewrite(packet, value),
        Version::Six => ipv6::rewrite(packet, value),
    }
}

/// Removes the label of an IP packet and returns it; [`Label::NONE`] if there was none.
///
/// This undoes [`insert`]. An IPv6 label among other options is overwritten with padding, so that those keep
/// their alignment.
///
/// # Errors
/// The errors of [`read`]. The packet is unchanged.
pub fn remove(packet: &mut Vec<u8>) -> Result<Label, WireError> {
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

fn version(packet: &[u8]) -> Result<Version, WireError> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => Ok(Version::Four),
        Some(6) => Ok(Version::Six),
        other => Err(WireError::NotIp(other)),
    }
}
