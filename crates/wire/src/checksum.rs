//! Checksums that a sender has left to its network card, finished in software.
//!
//! A host whose card computes checksums writes only the sum of the pseudo header into TCP and UDP; on a virtual interface
//! nobody completes it, and whoever takes such packets off a raw socket and sends them on must.
//!
//! # References
//! - RFC 9293 section 3.1 and RFC 768 (checksums and the IPv4 pseudo header), RFC 8200 section 8.1 (IPv6), RFC 1071.

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Options for routers and for the receiver, RFC 8200 sections 4.3 and 4.6. They do not change what the
/// checksum covers; a routing header does (section 8.1), and behind a fragment header there is only a part.
const OPTIONS: [u8; 2] = [0, 60];

/// Writes the checksum of the TCP segment or UDP datagram in the IP packet that begins with `packet`. Bytes behind the IP
/// length (padding) do not count. False, and nothing changed: it is neither, it is a fragment, or not all of it is there.
pub fn complete(packet: &mut [u8]) -> bool {
    let Some(place) = find(packet) else { return false };
    let Place { at, end, field, protocol, pseudo } = place;
    packet[field..field + 2].fill(0);
    let length = (end - at) as u64;
    let sum = pseudo + u64::from(protocol) + length + words(&packet[at..end]);
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    let checksum = match !(folded as u16) {
        // Zero says that there is none (RFC 768).
        0 if protocol == UDP => 0xffff,
        other => other,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Where a transport header is.
struct Place {
    /// Where it begins.
    at: usize,
    /// Where its data end.
    end: usize,
    /// Where its checksum stands.
    field: usize,
    protocol: u8,
    /// The sum of the addresses.
    pseudo: u64,
}

fn find(packet: &[u8]) -> Option<Place> {
    let (at, end, protocol, addresses) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let at = usize::from(header[0] & 15) * 4;
            let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
            // More fragments, or not the first one.
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
    // The sender leaves a checksum unfinished, and says how long the packet is: it is believed within the
    // bytes that there are.
    (end <= packet.len() && field + 2 <= end).then(|| Place {
        at,
        end,
        field,
        protocol,
        pseudo: words(addresses),
    })
}

/// The sum of the 16-bit words; an odd byte at the end is the high half of one.
fn words(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + odd
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket};

    use super::*;

    /// What a library writes, with the checksum taken out, comes back the same.
    fn holds(builder: impl Fn(&[u8]) -> Vec<u8>, field: usize) {
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
    fn what_is_completed_is_what_a_library_computes() {
        let v4 = || PacketBuilder::ipv4([10, 0, 0, 1], [192, 168, 7, 9], 64);
        let v6 = || PacketBuilder::ipv6([0xfd; 16], [0x20; 16], 64);
        holds(|data| written(|out| v4().udp(5004, 53).write(out, data).unwrap()), 26);
        holds(|data| written(|out| v4().tcp(80, 40000, 7, 100).write(out, data).unwrap()), 36);
        holds(|data| written(|out| v6().udp(5004, 53).write(out, data).unwrap()), 46);
        holds(|data| written(|out| v6().tcp(80, 40000, 7, 100).write(out, data).unwrap()), 56);
    }

    /// Options stand between the header and the datagram: its checksum is that of the datagram without them.
    #[test]
    fn options_of_ipv6_are_passed_over() {
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
            assert!(!complete(&mut packet), "options beyond the end");
        }
        let mut routed = plain.clone();
        routed[6] = 43;
        routed.splice(40..40, [17, 0, 4, 0, 0, 0, 0, 0]);
        assert!(!complete(&mut routed), "the last address of a route is another one");
    }

    #[test]
    fn fragments_other_protocols_and_damage_are_left_alone() {
        let whole = written(|out| {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2).write(out, &[1; 30]).unwrap();
        });
        let left_alone = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = whole.clone();
            change(&mut packet);
            let before = packet.clone();
            !complete(&mut packet) && packet == before
        };
        assert!(left_alone(&|packet| packet[6] = 0x20), "more fragments");
        assert!(left_alone(&|packet| packet[7] = 9), "a later fragment");
        assert!(left_alone(&|packet| packet[9] = 1), "ICMP");
        assert!(left_alone(&|packet| packet[0] = 0x42), "a header of 8 bytes");
        for length in 0..whole.len() {
            assert!(left_alone(&|packet| packet.truncate(length)), "cut off after {length} bytes");
        }
    }
}
