//! Congestion marks: writes "congestion experienced" into IP packets.
//!
//! RFC 3168 section 5: the two low bits of the former type of service (IPv4) or of the traffic class (IPv6)
//! become 11. Only an ECN-capable packet (01 or 10) may be marked; all others stay unchanged.
//!
//! # References
//! - RFC 3168 sections 5 and 22 (the field), RFC 1624 (the incremental checksum).

/// The result of [`mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The packet is marked now.
    Now,
    /// The packet was marked before.
    Before,
    /// The packet is not ECN-capable, or not IP. It is unchanged.
    Not,
}

/// Marks an IP packet. The IPv4 header checksum is updated by the difference, so a wrong checksum stays
/// wrong.
pub fn mark(packet: &mut [u8]) -> Marked {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => mark_ipv4(packet),
        Some(6) if packet.len() >= 40 => {
            let result = result(packet[1] >> 4);
            if result == Marked::Now {
                packet[1] |= 0b0011_0000;
            }
            result
        }
        _ => Marked::Not,
    }
}

/// Marks an IPv4 packet. The ECN field is in the low byte of the first 16-bit word of the header, which its
/// checksum covers.
fn mark_ipv4(packet: &mut [u8]) -> Marked {
    let result = result(packet[1]);
    if result == Marked::Now {
        let word = |packet: &[u8]| u16::from_be_bytes([packet[0], packet[1]]);
        let old = word(packet);
        packet[1] |= 0b11;
        let new = word(packet);
        let checksum = u16::from_be_bytes([packet[10], packet[11]]);
        packet[10..12].copy_from_slice(&update(checksum, old, new).to_be_bytes());
    }
    result
}

fn result(field: u8) -> Marked {
    match field & 0b11 {
        0b00 => Marked::Not,
        0b11 => Marked::Before,
        _ => Marked::Now,
    }
}

/// The checksum after a word changed: HC' = ~(~HC + ~m + m') (RFC 1624, equation 3).
pub(crate) fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_is_right(header: &[u8]) -> bool {
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded & 0xffff) + (folded >> 16) == 0xffff
    }

    /// A header of RFC 791 with the given type of service, and the checksum that it needs.
    fn ipv4(tos: u8, identification: u16) -> [u8; 20] {
        let mut header = [0x45, tos, 0, 84, 0, 0, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        header
    }

    #[test]
    fn every_type_of_service_keeps_a_correct_checksum() {
        for tos in 0..=255 {
            for identification in (0..=u16::MAX).step_by(97) {
                let mut header = ipv4(tos, identification);
                assert!(checksum_is_right(&header));
                let expected = match tos & 3 {
                    0 => Marked::Not,
                    3 => Marked::Before,
                    _ => Marked::Now,
                };
                let before = header;
                assert_eq!(mark(&mut header), expected, "{tos:08b}");
                assert!(checksum_is_right(&header), "{tos:08b} {identification}");
                let field = if expected == Marked::Now { tos | 3 } else { tos };
                assert_eq!(header[1], field, "the DSCP stays");
                assert_eq!((&header[2..10], &header[12..]), (&before[2..10], &before[12..]));
            }
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut header = ipv4(2, 77);
        header[11] ^= 0x40;
        mark(&mut header);
        assert!(!checksum_is_right(&header));
    }

    #[test]
    fn ipv6_keeps_its_flow_label_and_the_code_point() {
        let mut header = [0u8; 40];
        header[..4].copy_from_slice(&[0x6b, 0x9a, 0xbc, 0xde]);
        assert_eq!(mark(&mut header), Marked::Now, "class 0xb9: expedited forwarding with ECT(1)");
        assert_eq!(header[..4], [0x6b, 0xba, 0xbc, 0xde]);
        assert_eq!(mark(&mut header), Marked::Before);
        header[1] &= 0x0f;
        assert_eq!(mark(&mut header), Marked::Not);
    }

    #[test]
    fn incomplete_and_other_headers_stay_unchanged() {
        for damaged in [&[][..], &[0x45], &[0x46; 19], &[0x6f; 39], &[0x10; 60], &[0xff; 60]] {
            let mut bytes = damaged.to_vec();
            assert_eq!(mark(&mut bytes), Marked::Not);
            assert_eq!(bytes, damaged);
        }
    }
}
