//! Writes the differentiated services code point into IP packets.
//!
//! RFC 2474 section 3: the upper six bits of the former type of service (IPv4) or of the traffic class
//! (IPv6). The two bits below are the ECN field, which stays.
//!
//! # References
//! - RFC 2474 section 3 (the field), RFC 1624 (the incremental checksum).

use giveway_qdisc::Dscp;

use crate::ecn::update;

/// Sets the DSCP of an IP packet; true if it was another one. A packet that is not IP stays unchanged. The
/// IPv4 header checksum is updated by the difference, so a wrong checksum stays wrong.
pub fn set(packet: &mut [u8], dscp: Dscp) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = |packet: &[u8]| u16::from_be_bytes([packet[0], packet[1]]);
            let old = word(packet);
            packet[1] = packet[1] & 0b11 | dscp.number() << 2;
            let new = word(packet);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            if old != new {
                packet[10..12].copy_from_slice(&update(checksum, old, new).to_be_bytes());
            }
            old != new
        }
        Some(6) if packet.len() >= 40 => {
            let old = [packet[0], packet[1]];
            packet[0] = packet[0] & 0xf0 | dscp.number() >> 2;
            packet[1] = packet[1] & 0x3f | (dscp.number() & 0b11) << 6;
            old != [packet[0], packet[1]]
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_keeps_a_correct_checksum_and_the_ecn_field() {
        let mut header = [0x45, 0xb9, 0, 84, 7, 7, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = |header: &[u8]| {
            let sum: u32 =
                header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            (sum & 0xffff) + (sum >> 16)
        };
        let checksum = !(sum(&header) as u16);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        for number in [0, 8, 46, 63, 46, 46] {
            let before = header[1] >> 2;
            assert_eq!(set(&mut header, Dscp::new(number).unwrap()), before != number);
            assert_eq!((header[1], sum(&header)), (number << 2 | 1, 0xffff), "{number}");
        }
    }

    #[test]
    fn ipv6_keeps_its_flow_label_and_the_ecn_field() {
        let mut header = [0u8; 40];
        header[..4].copy_from_slice(&[0x6b, 0x9a, 0xbc, 0xde]);
        assert!(set(&mut header, Dscp::new(0).unwrap()));
        assert_eq!(header[..4], [0x60, 0x1a, 0xbc, 0xde]);
        assert!(set(&mut header, Dscp::new(46).unwrap()));
        assert_eq!(header[..4], [0x6b, 0x9a, 0xbc, 0xde]);
        assert!(!set(&mut header, Dscp::new(46).unwrap()));
    }

    #[test]
    fn other_packets_stay_unchanged() {
        for damaged in [&[][..], &[0x45], &[0x46; 19], &[0x6f; 39], &[0x10; 60]] {
            let mut bytes = damaged.to_vec();
            assert!(!set(&mut bytes, Dscp::new(46).unwrap()));
            assert_eq!(bytes, damaged);
        }
    }
}
