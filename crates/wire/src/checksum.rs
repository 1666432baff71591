//! Completes checksums that a sender left to its network card.
//!
//! A host with checksum offload writes only the sum of the pseudo header into TCP and UDP. A virtual
//! interface does not complete it. A program that receives such packets from a raw socket and forwards them
//! must complete it.
//!
//! # References
//! - RFC 9293 section 3.1 and RFC 768 (checksums and the IPv4 pseudo header), RFC 8200 section 8.1 (IPv6),
//!   RFC 1071.

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Hop-by-hop and destination options, RFC 8200 sections 4.3 and 4.6. They do not change the input of the
/// checksum. A routing header does (section 8.1), and a fragment has only a part of the segment.
const OPTIONS: [u8; 2] = [0, 60];

/// Writes the checksum of the TCP segment or UDP datagram in an IP packet. Padding behind the IP length is
/// ignored. Returns false without effect for other protocols, fragments and truncated packets.
pub fn complete(packet: &mut [u8]) -> bool {
    let Some(segment) = find(packet) else { return false };
    let Segment { at, end, field, protocol, pseudo } = segment;
    packet[field..field + 2].fill(0);
    let length = (end - at) as u64;
    let sum = pseudo + u64::from(protocol) + length + words(&packet[at..end]);
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    let checksum = match !(folded as u16) {
        // Zero means "no checksum" (RFC 768).
        0 if protocol == UDP => 0xffff,
        other => other,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Position of a transport header and its data.
struct Segment {
    /// First byte of the header.
    at: usize,
    /// End of the data.
    end: usize,
    /// First byte of the checksum.
    field: usize,
    protocol: u8,
    /// Sum of the addresses of the pseudo header.
    pseudo: u64,
}

fn find(packet: &[u8]) -> Option<Segment> {
    let (at, end, protocol, addresses) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let at = usize::from(header[0] & 15) * 4;
            let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
            // The flag for more fragments is set, or this is a later fragment.
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            if at < 20 || fragment {
                return None;
            }
            (at, end, header[9], &packet[12..20])
        }
        6 => {
            let header = packet.first_chunk::<40>()?;
            let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
            let (mut at, mut protocol) = (40, header[6]);
            while OPTIONS.contains(&protocol) {
                let [next, length] = packet.get(at..)?.first_chunk::<2>()?;
                at += (usize::from(*length) + 1) * 8;
                protocol = *next;
            }
            (at, end, protocol, &packet[8..40])
        }
        _ => return None,
    };
    let field = match protocol {
        TCP => at + 16,
        UDP => at + 6,
        _ => return None,
    };
    // The length in the header counts, if the packet has that many bytes.
    (end <= packet.len() && field + 2 <= end).then(|| Segment {
        at,
        end,
        field,
        protocol,
        pseudo: words(addresses),
    })
}

/// Sum of the 16-bit words. An odd byte at the end is the high half of a word.
fn words(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + odd
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket};

    use super::*;

    /// The checksum of a packet that a library wrote is overwritten, and completed to the same value.
    fn is_completed(builder: impl Fn(&[u8]) -> Vec<u8>, field: usize) {
        for length in [0, 1, 2, 3, 64, 1371, 1372] {
            let data: Vec<u8> = (0..length).map(|n: usize| (n * 31 % 251) as u8).collect();
            let right = builder(&data);
            SlicedPacket::from_ip(&right).expect("the library reads what it wrote");
            let mut packet = right.clone();
            packet[field] = 0x12;
            packet[field + 1] = 0x34;
            packet.extend([0xee; 7]);
            assert!(complete(&mut packet));
            assert_eq!(packet[..right.len()], right, "{length} bytes of data");
        }
    }

    fn written(finish: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        finish(&mut bytes);
        bytes
    }

    #[test]
    fn checksums_are_those_of_a_library() {
        let v4 = || PacketBuilder::ipv4([10, 0, 0, 1], [192, 168, 7, 9], 64);
        let v6 = || PacketBuilder::ipv6([0xfd; 16], [0x20; 16], 64);
        is_completed(|data| written(|out| v4().udp(5004, 53).write(out, data).unwrap()), 26);
        is_completed(|data| written(|out| v4().tcp(80, 40000, 7, 100).write(out, data).unwrap()), 36);
        is_completed(|data| written(|out| v6().udp(5004, 53).write(out, data).unwrap()), 46);
        is_completed(|data| written(|out| v6().tcp(80, 40000, 7, 100).write(out, data).unwrap()), 56);
    }

    /// Options between header and datagram do not change the checksum.
    #[test]
    fn options_of_ipv6_are_skipped() {
        let plain = written(|out| {
            PacketBuilder::ipv6([0xfd; 16], [0x20; 16], 64).udp(5004, 53).write(out, &[9; 33]).unwrap();
        });
        for (first, options) in [
            (0, &[17, 0, 1, 4, 0, 0, 0, 0][..]),
            (60, &[17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (0, &[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]),
        ] {
            let mut packet = plain.clone();
            packet[6] = first;
            packet.splice(40..40, options.iter().copied());
            packet[5] += options.len() as u8;
            let field = 46 + options.len();
            let right = packet.clone();
            packet[field..field + 2].fill(0xab);
            assert!(complete(&mut packet));
            assert_eq!(packet, right, "{options:?}");
            packet[40 + 1] = 200;
            assert!(!complete(&mut packet), "options that exceed the packet");
        }
        let mut routed = plain.clone();
        routed[6] = 43;
        routed.splice(40..40, [17, 0, 4, 0, 0, 0, 0, 0]);
        assert!(!complete(&mut routed), "the pseudo header has the final address of the route");
    }

    #[test]
    fn fragments_other_protocols_and_damaged_packets_stay_unchanged() {
        let whole = written(|out| {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2).write(out, &[1; 30]).unwrap();
        });
        let is_unchanged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = whole.clone();
            change(&mut packet);
            let before = packet.clone();
            !complete(&mut packet) && packet == before
        };
        assert!(is_unchanged(&|packet| packet[6] = 0x20), "more fragments");
        assert!(is_unchanged(&|packet| packet[7] = 9), "a later fragment");
        assert!(is_unchanged(&|packet| packet[9] = 1), "ICMP");
        assert!(is_unchanged(&|packet| packet[0] = 0x42), "a header of 8 bytes");
        for length in 0..whole.len() {
            assert!(is_unchanged(&|packet| packet.truncate(length)), "cut off after {length} bytes");
        }
    }
}
