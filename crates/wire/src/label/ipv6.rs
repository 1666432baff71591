//! The label in the hop-by-hop options header of IPv6: RFC 8200 sections 4.2 and 4.3.

use super::option::{OPTION, only, value};
use crate::error::WireError;

/// Type of the option: skip if unknown (00), may change en route (1), 11110.
const LABEL: u8 = 0x3e;
const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
/// Next header: hop-by-hop options.
const HOP_BY_HOP: u8 = 0;
/// Next header: none follows, RFC 8200, section 4.7.
const NO_NEXT_HEADER: u8 = 59;
/// Length of the fixed header.
const FIXED: usize = 40;
const NEXT_HEADER: usize = 6;
/// Position of the first option.
const FIRST: usize = FIXED + 2;
/// Unit of the lengths of extension headers, in bytes.
const UNIT: usize = 8;
/// Padding of four bytes, behind a label that was inserted before other options, or in place of a removed
/// label.
const PADDING: [u8; 4] = [PAD_N, 2, 0, 0];

/// The parsed fields of a packet.
pub(super) struct Header {
    /// Number of bytes behind the fixed header.
    payload: u16,
    /// Length of the hop-by-hop options header, if there is one.
    options: Option<usize>,
    /// Position of the label, if there is one.
    pub label: Option<usize>,
    /// True if there are other options except padding.
    others: bool,
}

/// Parses the headers.
pub(super) fn parse(packet: &[u8]) -> Result<Header, WireError> {
    let cut_off = |within| WireError::CutOff { bytes: packet.len(), within };
    let fixed = packet.first_chunk::<FIXED>().ok_or(cut_off("IPv6 header"))?;
    let payload = u16::from_be_bytes([fixed[4], fixed[5]]);
    if payload == 0 && fixed[NEXT_HEADER] != NO_NEXT_HEADER {
        let reason =
            "a payload length of 0 with a payload: a jumbogram, or a length that was left to a network card";
        return Err(WireError::Malformed { at: 4, reason });
    }
    let mut found = Header { payload, options: None, label: None, others: false };
    if fixed[NEXT_HEADER] != HOP_BY_HOP {
        return Ok(found);
    }
    let within = "hop-by-hop options header";
    let units = packet.get(FIXED + 1).ok_or(cut_off(within))?;
    let length = (usize::from(*units) + 1) * UNIT;
    if length > usize::from(payload) {
        let reason = "the hop-by-hop options header is longer than the packet";
        return Err(WireError::Malformed { at: FIXED + 1, reason });
    }
    let header = packet.get(..FIXED + length).ok_or(cut_off(within))?;
    let mut at = FIRST;
    while at < header.len() {
        let kind = header[at];
        if kind == PAD_1 {
            at += 1;
            continue;
        }
        let end = header.get(at + 1).map(|data| at + 2 + usize::from(*data));
        let Some(end) = end.filter(|end| *end <= header.len()) else {
            return Err(WireError::Malformed { at, reason: "an option is longer than the header" });
        };
        match kind {
            LABEL if end - at != OPTION => return Err(WireError::Foreign { kind, at, length: end - at }),
            LABEL => found.label = only(found.label, at)?,
            PAD_N => {}
            _ => found.others = true,
        }
        at = end;
    }
    Ok(Header { options: Some(length), ..found })
}

pub(super) fn insert(packet: &mut Vec<u8>, [high, low]: [u8; 2]) -> Result<(), WireError> {
    let header = parse(packet)?;
    if let Some(at) = header.label {
        return Err(WireError::Labelled { at });
    }
    let Some(payload) = header.payload.checked_add(UNIT as u16) else {
        return Err(WireError::NoRoom {
            reason: "an IPv6 packet has at most 65,535 bytes behind its header",
        });
    };
    let label = [LABEL, OPTION as u8 - 2, high, low];
    if header.options.is_some() {
        let Some(units) = packet[FIXED + 1].checked_add(1) else {
            return Err(WireError::NoRoom { reason: "a hop-by-hop options header has at most 2,048 bytes" });
        };
        packet[FIXED + 1] = units;
        packet.splice(FIRST..FIRST, label.into_iter().chain(PADDING));
    } else {
        let head = [packet[NEXT_HEADER], 0];
        packet[NEXT_HEADER] = HOP_BY_HOP;
        packet.splice(FIXED..FIXED, head.into_iter().chain(label).chain([PAD_N, 0]));
    }
    set_payload(packet, payload);
    Ok(())
}

pub(super) fn rewrite(packet: &mut [u8], value: [u8; 2]) -> Result<(), WireError> {
    let at = parse(packet)?.label.ok_or(WireError::Unlabelled)?;
    packet[at + 2..at + OPTION].copy_from_slice(&value);
    Ok(())
}

pub(super) fn remove(packet: &mut Vec<u8>) -> Result<Option<u16>, WireError> {
    let header = parse(packet)?;
    let (Some(at), Some(length)) = (header.label, header.options) else { return Ok(None) };
    let value = value(packet, at);
    let behind = at + OPTION;
    // The header stays in two kinds of malformed packets, which would be malformed differently without it: if
    // a second header of its kind follows, or a header in a payload of length 0.
    let next = packet[FIXED];
    let needed = next == HOP_BY_HOP || (usize::from(header.payload) == UNIT && next != NO_NEXT_HEADER);
    if length == UNIT && !header.others && !needed {
        packet[NEXT_HEADER] = packet[FIXED];
        packet.drain(FIXED..FIXED + UNIT);
        set_payload(packet, header.payload - UNIT as u16);
    } else if at == FIRST && length > UNIT && packet[behind..].starts_with(&PADDING) {
        packet[FIXED + 1] -= 1;
        packet.drain(FIRST..FIRST + UNIT);
        set_payload(packet, header.payload - UNIT as u16);
    } else {
        packet[at..behind].copy_from_slice(&PADDING);
    }
    Ok(Some(value))
}

fn set_payload(packet: &mut [u8], bytes: u16) {
    packet[4..6].copy_from_slice(&bytes.to_be_bytes());
}
