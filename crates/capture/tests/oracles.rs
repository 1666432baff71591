//! Comparison with other parsers, and files that no tool would write.

use std::io::Cursor;

use crate::support::{Order, enhanced, interface, pcap, read, read_whole, section};
use etherparse::{
    EtherType, LaxNetSlice, LaxSlicedPacket, PacketBuilder, SingleVlanHeader, TransportSlice, VlanHeader,
    VlanId,
};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapNGReader};
use proptest::prelude::*;

/// Frames of every kind that the builder supports.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let shape = (any::<bool>(), any::<bool>(), 0..3u8, 0..1600usize);
    (shape, any::<(u16, u16, u32, u32)>(), any::<u8>()).prop_map(
        |((six, vlan, transport, data), (from, to, seq, ack), tos)| {
            let mut frame = Vec::new();
            let payload = vec![7; data];
            let start = PacketBuilder::ethernet2([2; 6], [4; 6]);
            let (from_4, to_4, from_6, to_6) = ([10, 1, 2, 3], [10, 4, 5, 6], [1; 16], [2; 16]);
            let built = match (vlan, six) {
                (false, false) => start.ipv4(from_4, to_4, 9),
                (false, true) => start.ipv6(from_6, to_6, 9),
                (true, false) => start.vlan(tag()).ipv4(from_4, to_4, 9),
                (true, true) => start.vlan(tag()).ipv6(from_6, to_6, 9),
            };
            match transport {
                0 => built.udp(from, to).write(&mut frame, &payload).unwrap(),
                1 => {
                    let tcp = built.tcp(from, to, seq, 100).ack(ack);
                    let options = [etherparse::TcpOptionElement::Timestamp(seq, ack)];
                    tcp.options(&options).unwrap().write(&mut frame, &payload).unwrap();
                }
                _ => built.icmpv4_echo_request(from, to).write(&mut frame, &payload).unwrap(),
            }
            let network = if vlan { 18 } else { 14 };
            if six {
                frame[network + 1] = (frame[network + 1] & 0x0f) | (tos << 4);
            } else {
                frame[network + 1] = tos;
            }
            frame
        },
    )
}

fn tag() -> VlanHeader {
    VlanHeader::Single(SingleVlanHeader {
        vlan_id: VlanId::try_new(9).unwrap(),
        ether_type: EtherType(0), // the builder fills it in
        ..SingleVlanHeader::default()
    })
}

proptest! {
    /// etherparse, which parses complete packets, finds the same header fields.
    #[test]
    fn headers_equal_those_of_etherparse(frame in frame()) {
        let packet = read_whole(&pcap(Order::Little, true, 1, &[(0, frame.len() as u32, frame.clone())]))[0];
        let ip = packet.ip.unwrap();
        let oracle = LaxSlicedPacket::from_ethernet(&frame).unwrap();
        let (bytes, ecn, protocol) = match oracle.net.unwrap() {
            LaxNetSlice::Ipv4(net) => (
                u32::from(net.header().total_len()),
                net.header().ecn().value(),
                net.payload_ip_number().0,
            ),
            LaxNetSlice::Ipv6(net) => (
                u32::from(net.header().payload_length()) + 40,
                net.header().traffic_class() & 3,
                net.payload().ip_number.0,
            ),
            LaxNetSlice::Arp(_) => unreachable!("no ARP was written"),
        };
        prop_assert_eq!(packet.bytes, bytes);
        prop_assert_eq!(ip.tuple.protocol, protocol);
        let codes = [giveway_qdisc::Ecn::NotCapable, giveway_qdisc::Ecn::Ect1, giveway_qdisc::Ecn::Ect0, giveway_qdisc::Ecn::Marked];
        prop_assert_eq!(ip.ecn, codes[usize::from(ecn)]);
        let ports = (ip.tuple.from_port, ip.tuple.to_port);
        match oracle.transport.unwrap() {
            TransportSlice::Udp(udp) => {
                prop_assert_eq!(ports, (udp.source_port(), udp.destination_port()));
                prop_assert_eq!(ip.data, Some(udp.payload().len() as u32));
            }
            TransportSlice::Tcp(tcp) => {
                prop_assert_eq!(ports, (tcp.source_port(), tcp.destination_port()));
                prop_assert_eq!(ip.data, Some(tcp.payload().len() as u32));
                let fields = ip.tcp.unwrap();
                prop_assert_eq!((fields.seq, fields.ack), (tcp.sequence_number(), tcp.acknowledgment_number()));
                prop_assert_eq!(fields.flags & 0x10 > 0, tcp.ack());
            }
            _ => prop_assert_eq!((ports, ip.data), ((0, 0), None)),
        }
    }

    /// pcap-parser finds the same packets in the same little-endian file.
    #[test]
    fn blocks_equal_those_of_pcap_parser(
        packets in prop::collection::vec((0..2u32, any::<u32>(), 0..2000u32, 0..300usize), 0..30),
    ) {
        let order = Order::Little;
        let mut file = [section(order), interface(order, 1, 9, 0), interface(order, 101, 9, 0)].concat();
        for (interface, ticks, more, kept) in &packets {
            file.extend(enhanced(order, *interface, u64::from(*ticks) << 20, *kept as u32 + more, &vec![0x45; *kept]));
        }
        let ours = read_whole(&file);
        let mut theirs = Vec::new();
        let mut reader = PcapNGReader::new(1 << 20, Cursor::new(file)).unwrap();
        loop {
            match reader.next() {
                Ok((used, block)) => {
                    if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block {
                        theirs.push((packet.if_id, (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low)));
                    }
                    reader.consume(used);
                }
                Err(pcap_parser::PcapError::Eof) => break,
                Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(error) => panic!("{error:?}"),
            }
        }
        let ours: Vec<_> = ours.iter().map(|packet| (u32::from(packet.link.0 == 101), packet.time)).collect();
        prop_assert_eq!(ours, theirs);
    }

    /// Arbitrary bytes cause no panic, and reading ends.
    #[test]
    fn random_bytes(magic in 0..8usize, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let starts: [&[u8]; 8] = [
            &[],
            &[0xd4, 0xc3, 0xb2, 0xa1],
            &[0xa1, 0xb2, 0x3c, 0x4d],
            &[0x34, 0xcd, 0xb2, 0xa1],
            &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            &[0x1f, 0x8b],
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
        ];
        read(&[starts[magic], &bytes[..]].concat());
    }

    /// Random headers behind every link header cause no panic, and lengths are possible ones.
    #[test]
    fn random_packets(
        link in prop::sample::select(vec![0u32, 1, 12, 101, 108, 113, 228, 229, 276]),
        first in prop::sample::select(vec![0u8, 0x45, 0x46, 0x4f, 0x60, 0x86]),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut frame = bytes;
        if let Some(byte) = frame.first_mut() {
            *byte = first;
        }
        let wire = frame.len() as u32;
        for packet in read_whole(&pcap(Order::Little, false, link, &[(0, wire, frame)])) {
            prop_assert!(packet.bytes <= wire, "{} of {wire}", packet.bytes);
            prop_assert!(packet.ip.is_none_or(|ip| ip.data.is_none_or(|data| data < packet.bytes)));
        }
    }

    /// In a valid file with changed bytes, or a truncated one, the packets before the first change are read
    /// unchanged.
    #[test]
    fn mutated_captures(
        frames in prop::collection::vec(frame(), 1..12),
        ng in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let order = Order::Little;
        let mut ends = Vec::new();
        let mut file = if ng {
            [section(order), interface(order, 1, 6, 0)].concat()
        } else {
            pcap(order, false, 1, &[])
        };
        for (number, frame) in frames.iter().enumerate() {
            if ng {
                file.extend(enhanced(order, 0, number as u64, frame.len() as u32, frame));
            } else {
                let one = pcap(order, false, 1, &[(number as u64 * 1000, frame.len() as u32, frame.clone())]);
                file.extend(&one[24..]);
            }
            ends.push(file.len());
        }
        let good = read_whole(&file);
        prop_assert_eq!(good.len(), frames.len());
        let mut first_change = file.len();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] ^= value;
            first_change = first_change.min(at);
        }
        if let Some(cut) = cut {
            let length = cut.index(file.len());
            file.truncate(length);
            first_change = first_change.min(length);
        }
        let (packets, _) = read(&file);
        let untouched = ends.iter().filter(|end| **end <= first_change).count();
        prop_assert!(packets.len() >= untouched);
        prop_assert_eq!(&packets[..untouched], &good[..untouched]);
    }
}
