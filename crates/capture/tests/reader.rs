//! Captures written byte by byte, and the packets that are read from them.

use std::io::Write;

use crate::support::{Order, block, enhanced, interface, pcap, read, read_whole, section};
use etherparse::PacketBuilder;
use giveway_capture::{CaptureError, LinkType, Macs, Packet, Reader};
use giveway_qdisc::Ecn;

/// An Ethernet frame with a UDP datagram of `bytes` data bytes.
fn udp(bytes: usize) -> Vec<u8> {
    let builder =
        PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(4000, 53);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![0; bytes]).unwrap();
    frame
}

/// An IP packet with a UDP datagram of `bytes` data bytes, without an Ethernet header.
fn bare_udp(bytes: usize) -> Vec<u8> {
    udp(bytes)[14..].to_vec()
}

fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

fn ports(packet: &Packet) -> (u16, u16) {
    let tuple = packet.ip.expect("the packet is IP").tuple;
    (tuple.from_port, tuple.to_port)
}

#[test]
fn pcap_in_both_byte_orders_and_both_resolutions() {
    let frame = udp(100);
    let wire = frame.len() as u32;
    let packets =
        [(1_500_000_000_000_001_000, wire, frame.clone()), (1_500_000_000_250_000_000, wire, frame)];
    for order in [Order::Little, Order::Big] {
        for nanos in [false, true] {
            let read = read_whole(&pcap(order, nanos, 1, &packets));
            assert_eq!(read.len(), 2);
            assert_eq!(read[0].time, 1_500_000_000_000_001_000, "{order:?}, nanoseconds: {nanos}");
            assert_eq!(read[1].time, 1_500_000_000_250_000_000);
            assert_eq!(read[0].bytes, 128, "20 of IP, 8 of UDP, 100 of data");
            let ip = read[0].ip.unwrap();
            assert_eq!(ip.tuple.from, mapped([10, 0, 0, 1]));
            assert_eq!(ip.tuple.to, mapped([10, 0, 0, 2]));
            assert_eq!((ip.tuple.from_port, ip.tuple.to_port, ip.tuple.protocol), (4000, 53, 17));
            assert_eq!(ip.data, Some(100));
            assert_eq!(read[0].mac, Some(Macs { from: [2; 6], to: [4; 6] }));
            assert_eq!(read[0].interface, 0);
        }
    }
}

#[test]
fn pcapng_with_interfaces_of_different_kinds_and_clocks() {
    for order in [Order::Little, Order::Big] {
        let mut file = section(order);
        file.extend(interface(order, 1, 9, 0)); // nanoseconds
        file.extend(interface(order, 101, 0x80 | 10, 7)); // 1/1024 s, 7 s late, raw IP
        file.extend(interface(order, 147, 6, 0)); // a link type for private use
        file.extend(block(order, 5, &[0; 12])); // statistics
        file.extend(enhanced(order, 0, 5_000_000_003, 142, &udp(100)));
        file.extend(enhanced(order, 1, 512, 28, &bare_udp(0)));
        file.extend(enhanced(order, 2, 1_000_000, 9, &[1; 9]));
        // A new section has no interfaces.
        file.extend(section(Order::Little));
        file.extend(interface(Order::Little, 1, 6, 0));
        let mut simple = Order::Little.u32(60).to_vec();
        simple.extend(&udp(5));
        file.extend(block(Order::Little, 3, &simple));
        let packets = read_whole(&file);
        let seen: Vec<_> = packets
            .iter()
            .map(|packet| (packet.interface, packet.time, packet.bytes, packet.link.0))
            .collect();
        assert_eq!(
            seen,
            [
                (0, 5_000_000_003, 128, 1),
                (1, 7_500_000_000, 28, 101),
                (2, 1_000_000_000, 9, 147),
                (3, 0, 33, 1)
            ],
            "{order:?}"
        );
        assert!(packets[2].ip.is_none(), "the link type is not known");
    }
}

#[test]
fn link_layers() {
    let bare = bare_udp(10);
    let ethernet = |middle: &[u8]| {
        let mut frame = vec![0; 12];
        frame.extend(middle);
        frame.extend(&bare);
        frame
    };
    let behind = |header: &[u8]| [header, &bare[..]].concat();
    let cases: [(&str, u32, Vec<u8>); 11] = [
        ("Ethernet", 1, ethernet(&[8, 0])),
        ("one VLAN tag", 1, ethernet(&[0x81, 0, 0, 5, 8, 0])),
        ("two VLAN tags", 1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        ("PPPoE", 1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 40, 0, 0x21])),
        ("raw", 101, bare.clone()),
        ("raw, as OpenBSD numbered it", 14, bare.clone()),
        ("IPv4", 228, bare.clone()),
        ("loopback, little-endian machine", 0, behind(&[2, 0, 0, 0])),
        ("loopback, big-endian machine", 0, behind(&[0, 0, 0, 2])),
        ("Linux cooked", 113, behind(&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0])),
        (
            "Linux cooked, version 2",
            276,
            behind(&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        ),
    ];
    for (name, link, frame) in cases {
        let packets = read_whole(&pcap(Order::Little, false, link, &[(0, frame.len() as u32, frame)]));
        assert_eq!(packets[0].link, LinkType(link as u16));
        assert!(packets[0].ip.is_some(), "{name}");
        assert_eq!(packets[0].bytes, 38, "{name}");
        assert_eq!(ports(&packets[0]), (4000, 53), "{name}");
        assert_eq!(packets[0].mac.is_some(), link == 1, "{name}");
    }
    let arp = ethernet(&[8, 6]);
    let packets = read_whole(&pcap(Order::Little, false, 1, &[(0, arp.len() as u32, arp)]));
    assert!(packets[0].ip.is_none(), "ARP is not IP");
}

/// The lengths describe the original packet, not its captured part.
#[test]
fn truncated_frames() {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(4000, 443, 77, 1000)
        .options(&[etherparse::TcpOptionElement::Timestamp(1, 2)])
        .unwrap()
        .write(&mut frame, &[0; 1400])
        .unwrap();
    let wire = frame.len() as u32;
    let kept = |bytes: usize| {
        let file = pcap(Order::Little, false, 1, &[(0, wire, frame[..bytes].to_vec())]);
        read_whole(&file)[0]
    };
    // 20 of IP, 32 of TCP.
    for bytes in [68, 54, 48] {
        let packet = kept(bytes);
        let ip = packet.ip.unwrap();
        assert_eq!((packet.bytes, ports(&packet), ip.data), (1452, (4000, 443), Some(1400)), "{bytes} kept");
        assert_eq!(ip.tcp.unwrap().seq, 77);
    }
    let packet = kept(40);
    assert_eq!((packet.bytes, ports(&packet), packet.ip.unwrap().data), (1452, (4000, 443), None));
    assert_eq!(kept(36).ip.unwrap().tuple.from_port, 0, "the addresses are there without the ports");
    assert!(kept(30).ip.is_none(), "the addresses are cut off");
    assert_eq!(kept(30).bytes, wire - 14);
}

/// A header may have a larger length than the frame. Neither the packet nor its data are longer than the
/// frame.
#[test]
fn a_length_above_that_of_the_frame_is_limited() {
    let tcp = |six: bool| {
        let start = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut frame = Vec::new();
        let built = if six { start.ipv6([1; 16], [2; 16], 9) } else { start.ipv4([10; 4], [11; 4], 9) };
        built.tcp(1, 2, 3, 4).write(&mut frame, &[0; 6]).unwrap();
        frame
    };
    for (six, at, ip_header) in [(false, 16, 20), (true, 18, 40)] {
        for length in [ip_header + 27, 2000, 65_535] {
            let mut frame = tcp(six);
            let wire = frame.len() as u32;
            frame[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
            let packet = read_whole(&pcap(Order::Little, false, 1, &[(0, wire, frame.clone())]))[0];
            assert_eq!(
                (packet.bytes, packet.ip.unwrap().data),
                (wire - 14, Some(6)),
                "the header has {length}"
            );
            // In a truncated frame the length of the header counts, up to that on the wire.
            frame.truncate(74);
            let packet = read_whole(&pcap(Order::Little, false, 1, &[(0, 1514, frame)]))[0];
            let of_header = if six { length + 40 } else { length };
            assert_eq!(
                packet.bytes,
                of_header.min(1500),
                "the header has {length}, and the frame is truncated"
            );
        }
    }
    // The padding of a short frame does not belong to the packet: the header has a smaller length.
    let mut padded = udp(0);
    padded.resize(60, 0);
    let packet = read_whole(&pcap(Order::Little, false, 1, &[(0, 60, padded)]))[0];
    assert_eq!((packet.bytes, packet.ip.unwrap().data), (28, Some(0)));
}

/// A network stacks at most two tags. A frame with more of them is not IP.
#[test]
fn a_third_tag_does_not_belong_to_the_link_header() {
    let mut frame = udp(100);
    for _ in 0..3 {
        frame.splice(12..12, [0x81, 0, 0, 5]);
    }
    let packet = read_whole(&pcap(Order::Little, false, 1, &[(0, frame.len() as u32, frame)]))[0];
    assert_eq!((packet.bytes, packet.ip), (128 + 4, None));
}

#[test]
fn short_packets_are_those_of_the_paper() {
    let tcp = |data: usize| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, 3, 4);
        builder.write(&mut packet, &vec![0; data]).unwrap();
        packet
    };
    let mut ping = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).icmpv4_echo_request(1, 1);
    builder.write(&mut ping, &[]).unwrap();
    let short = |packet: Vec<u8>| {
        let file = pcap(Order::Little, false, 101, &[(0, packet.len() as u32, packet)]);
        read_whole(&file)[0].ip.unwrap().short
    };
    assert!(short(tcp(0)), "an acknowledgement");
    assert!(!short(tcp(1)), "41 bytes, but with data");
    assert!(short(bare_udp(36)), "64 bytes of UDP");
    assert!(!short(bare_udp(37)), "65 bytes of UDP");
    assert!(!short(ping), "neither TCP nor UDP");
}

#[test]
fn fragments_and_marks_of_ipv4() {
    let mut second = bare_udp(100);
    second[6..8].copy_from_slice(&[0x20, 0x05]); // more to come, offset 5 * 8
    second[1] = 0b11; // congestion experienced
    let packet = read_whole(&pcap(Order::Big, true, 101, &[(0, 128, second)]))[0];
    let ip = packet.ip.unwrap();
    assert_eq!((ports(&packet), ip.data, ip.ecn), ((0, 0), None, Ecn::Marked));
}

#[test]
fn extension_headers_and_fragments_of_ipv6() {
    // IPv6: hop-by-hop options, then a first fragment, then TCP.
    let mut six = vec![0x60, 0x10, 0, 0]; // ECT(1): the low bits of the traffic class
    six.extend([0, 16 + 20 + 9, 0, 64]);
    six.extend([1; 16]);
    six.extend([2; 16]);
    six.extend([44, 0, 1, 4, 0, 0, 0, 0]);
    six.extend([6, 0, 0, 1, 0, 0, 0, 9]);
    six.extend([0x10, 0, 0x20, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0x50, 0x12, 0, 0, 0, 0, 0, 0]);
    six.extend([0; 9]);
    let length = six.len() as u32;
    let packet = read_whole(&pcap(Order::Big, true, 229, &[(0, length, six.clone())]))[0];
    let ip = packet.ip.unwrap();
    assert_eq!((packet.bytes, ip.ecn, ip.data), (85, Ecn::Ect1, Some(9)));
    assert_eq!((ip.tuple.from, ip.tuple.protocol, ports(&packet)), ([1; 16], 6, (0x1000, 0x2000)));
    assert_eq!(ip.tcp.unwrap().flags, 0x12);

    six[50] = 0x10; // now a later fragment
    let later = read_whole(&pcap(Order::Big, true, 229, &[(0, length, six)]))[0];
    assert_eq!((ports(&later), later.ip.unwrap().tuple.protocol), ((0, 0), 6));
}

/// A sender that leaves segmentation to its network card writes a total length of 0.
#[test]
fn a_length_left_to_the_network_card() {
    let mut packet = bare_udp(100);
    packet[2..4].copy_from_slice(&[0, 0]);
    assert_eq!(read_whole(&pcap(Order::Little, false, 101, &[(0, 128, packet)]))[0].bytes, 128);
}

#[test]
fn compressed_files_are_read_like_others() {
    let plain = pcap(Order::Little, false, 1, &vec![(0, 142, udp(100)); 1000]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(read_whole(&gz), read_whole(&plain));
    let (packets, error) = read(&gz[..gz.len() - 20]);
    assert!(packets.len() > 900, "{}", packets.len());
    assert!(matches!(error, Some(CaptureError::Read { packets: n, .. }) if n == packets.len() as u64));
}

#[test]
fn damage_is_reported_with_its_position_after_the_packets_before_it() {
    let message = |file: &[u8], expected: usize| {
        let (packets, error) = read(file);
        assert_eq!(packets.len(), expected);
        error.expect("the file is damaged").to_string()
    };
    let good = pcap(Order::Little, false, 1, &vec![(0, 142, udp(100)); 2]);
    assert_eq!(good.len(), 24 + 2 * 158);
    assert_eq!(
        message(&good[..good.len() - 1], 1),
        "is damaged at byte 182 (after 1 packets): the file ends after 141 of 142 bytes of a record"
    );
    assert_eq!(
        message(&good[..190], 1),
        "is damaged at byte 182 (after 1 packets): the file ends within the header of a packet"
    );
    let mut long = good.clone();
    long[182 + 8..182 + 12].copy_from_slice(&[0, 0, 0, 0x7f]);
    assert_eq!(message(&long, 1), "is damaged at byte 182 (after 1 packets): a record of 2130706432 bytes");
    assert_eq!(
        message(&good[..10], 0),
        "is damaged at byte 0 (after 0 packets): the file ends within its header"
    );
    assert_eq!(message(b"\x01giveway", 0), "is neither pcap nor pcapng: it begins with 01 67 69 76");
    assert_eq!(message(b"", 0), "is neither pcap nor pcapng: it begins with nothing, because it is empty");
    let strange = pcap(Order::Little, false, 147, &[]);
    assert!(
        message(&strange, 0)
            .starts_with("uses link type 147, which is not supported; supported: Ethernet (1)")
    );

    let order = Order::Little;
    let start = [section(order), interface(order, 1, 6, 0)].concat();
    let with = |block: Vec<u8>| [start.clone(), enhanced(order, 0, 0, 142, &udp(100)), block].concat();
    let at = start.len() + 176;
    assert_eq!(
        message(&with(enhanced(order, 3, 0, 142, &udp(100))), 1),
        format!("is damaged at byte {at} (after 1 packets): a packet of interface 3, and 1 are known")
    );
    let mut unequal = enhanced(order, 0, 0, 142, &udp(100));
    unequal[172] += 4;
    assert_eq!(
        message(&with(unequal), 1),
        format!(
            "is damaged at byte {at} (after 1 packets): a block that begins with length 176 and ends with 180"
        )
    );
    let mut odd = enhanced(order, 0, 0, 142, &udp(100));
    odd[4] = 7;
    assert_eq!(
        message(&with(odd), 1),
        format!("is damaged at byte {at} (after 1 packets): a block of 7 bytes")
    );
    let mut full = enhanced(order, 0, 0, 142, &udp(100));
    full[20] = 200;
    assert_eq!(
        message(&with(full), 1),
        format!("is damaged at byte {at} (after 1 packets): a packet of 200 bytes in a block that holds 144")
    );
}

#[test]
fn a_missing_file() {
    let error = Reader::open("nowhere/at-all.pcap").unwrap_err().to_string();
    assert!(error.starts_with("cannot be opened: "), "{error}");
}

/// Interfaces are kept in memory, so a file of only interfaces would take as much memory as it has bytes.
#[test]
fn interfaces_are_bounded() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    let interface = words(&[1, 20, 1, 0, 20]);
    (0..65_536).for_each(|_| file.extend(&interface));
    assert_eq!(giveway_capture::Reader::new(std::io::Cursor::new(file.clone())).unwrap().count(), 0);
    file.extend(&interface);
    let last = giveway_capture::Reader::new(std::io::Cursor::new(file)).unwrap().last().unwrap();
    let error = last.unwrap_err().to_string();
    assert!(error.contains("more than 65536 interfaces in a section"), "{error}");
}
