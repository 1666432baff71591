//! The label among the options of an IPv4 header: RFC 791 section 3.1.

use super::option::{OPTION, only, value};
use crate::error::WireError;

/// Type of the option: copied on fragmentation, class 0, number 30.
const LABEL: u8 = 158;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Length of a header without options, and of the longest one.
const FIXED: usize = 20;
const LONGEST: usize = 60;

/// The parsed fields of a header.
pub(super) struct Header {
    /// Length of the header.
    length: usize,
    /// Length of the packet.
    total: u16,
    /// Position of the label, if there is one.
    pub label: Option<usize>,
}

/// Parses a header.
pub(super) fn parse(packet: &[u8]) -> Result<Header, WireError> {
    let cut_off = WireError::CutOff { bytes: packet.len(), within: "IPv4 header" };
    let fixed = packet.first_chunk::<FIXED>().ok_or(cut_off)?;
    let length = usize::from(fixed[0] & 15) * 4;
    if length < FIXED {
        return Err(WireError::Malformed { at: 0, reason: "the header length is below 20 bytes" });
    }
    let total = u16::from_be_bytes([fixed[2], fixed[3]]);
    if usize::from(total) < length {
        return Err(WireError::Malformed { at: 2, reason: "the packet length is below the header length" });
    }
    let header = packet.get(..length).ok_or(cut_off)?;
    let mut label = None;
    let mut at = FIXED;
    while at < length && header[at] != END_OF_OPTIONS {
        let kind = header[at];
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let option = header.get(at + 1).map_or(0, |length| usize::from(*length));
        if option < 2 || at + option > length {
            return Err(WireError::Malformed {
                at,
                reason: "an option is longer than the header, or has an invalid length",
            });
        }
        if kind == LABEL {
            if option != OPTION {
                return Err(WireError::Foreign { kind, at, length: option });
            }
            label = only(label, at)?;
        }
        at += option;
    }
    Ok(Header { length, total, label })
}

pub(super) fn insert(packet: &mut Vec<u8>, [high, low]: [u8; 2]) -> Result<(), WireError> {
    let header = parse(packet)?;
    if let Some(at) = header.label {
        return Err(WireError::Labelled { at });
    }
    if header.length + OPTION > LONGEST {
        return Err(WireError::NoRoom { reason: "an IPv4 header has at most 40 bytes of options" });
    }
    let Some(total) = header.total.checked_add(OPTION as u16) else {
        return Err(WireError::NoRoom { reason: "an IPv4 packet has at most 65,535 bytes" });
    };
    let before = sum(&packet[..header.length]);
    packet.splice(FIXED..FIXED, [LABEL, OPTION as u8, high, low]);
    set_lengths(packet, header.length + OPTION, total);
    let after = sum(&packet[..header.length + OPTION]);
    update_checksum(packet, before, after);
    Ok(())
}

pub(super) fn rewrite(packet: &mut [u8], value: [u8; 2]) -> Result<(), WireError> {
    let at = parse(packet)?.label.ok_or(WireError::Unlabelled)? + 2;
    // Options need not be aligned: the value may be in two of the words of the checksum.
    let words = at / 2 * 2..(at + 2).next_multiple_of(2);
    if packet[at..at + 2] != value {
        let before = sum(&packet[words.clone()]);
        packet[at..at + 2].copy_from_slice(&value);
        let after = sum(&packet[words]);
        update_checksum(packet, before, after);
    }
    Ok(())
}

pub(super) fn remove(packet: &mut Vec<u8>) -> Result<Option<u16>, WireError> {
    let header = parse(packet)?;
    let Some(at) = header.label else { return Ok(None) };
    let value = value(packet, at);
    let before = sum(&packet[..header.length]);
    packet.drain(at..at + OPTION);
    set_lengths(packet, header.length - OPTION, header.total - OPTION as u16);
    let after = sum(&packet[..header.length - OPTION]);
    update_checksum(packet, before, after);
    Ok(Some(value))
}

fn set_lengths(packet: &mut [u8], header: usize, total: u16) {
    packet[0] = 0x40 | (header / 4) as u8;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
}

/// Updates the header checksum after the sum of some words changed (RFC 1624, equation 3). Words in both sums
/// cancel out, also the old checksum itself.
fn update_checksum(packet: &mut [u8], before: u16, after: u16) {
    let old = u16::from_be_bytes([packet[10], packet[11]]);
    let new = !fold(u32::from(!old) + u32::from(!before) + u32::from(after));
    packet[10..12].copy_from_slice(&new.to_be_bytes());
}

/// One's complement sum of words, RFC 1071.
fn sum(bytes: &[u8]) -> u16 {
    fold(bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum())
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}
