//! Comparison with other parsers: a library and tshark read packets that were labelled here.

use etherparse::{
    IpNumber, Ipv4Options, Ipv4Slice, Ipv6Header, Ipv6Slice, NetHeaders, PacketBuilder, PacketHeaders,
};
use giveway_capture::{EnhancedPacket, InterfaceDescription, Writer};
use giveway_qdisc::{Label, Rate};
use giveway_wire::label::{decode, encode, insert, read, remove, rewrite};
use proptest::prelude::*;

/// Packets that a library writes: both versions, with options or without, UDP, TCP or ICMP with data.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let options = proptest::collection::vec(any::<u8>(), 0..34);
    let data = proptest::collection::vec(any::<u8>(), 0..100);
    (any::<bool>(), 0..3_u8, options, data, any::<(u16, u16, u32, u8)>()).prop_map(
        |(six, transport, options, data, (from, to, seq, hops))| {
            let start = if six {
                PacketBuilder::ipv6([1; 16], [2; 16], hops)
            } else {
                PacketBuilder::ipv4([10, 1, 2, 3], [10, 4, 5, 6], hops)
            };
            let mut packet = Vec::new();
            match transport {
                0 => start.udp(from, to).write(&mut packet, &data).unwrap(),
                1 => start.tcp(from, to, seq, 100).write(&mut packet, &data).unwrap(),
                _ if six => start.icmpv6_echo_request(from, to).write(&mut packet, &data).unwrap(),
                _ => start.icmpv4_echo_request(from, to).write(&mut packet, &data).unwrap(),
            }
            if six { with_hop_by_hop(packet, &options) } else { with_options(&packet, &options) }
        },
    )
}

/// The packet with a no-operation and one option (148, router alert) with this content.
fn with_options(packet: &[u8], content: &[u8]) -> Vec<u8> {
    let (mut header, rest) = etherparse::Ipv4Header::from_slice(packet).unwrap();
    let mut options = Vec::new();
    if !content.is_empty() {
        options = [&[1, 148, content.len() as u8 + 2][..], content].concat();
        options.truncate(40);
        options[2] = options.len() as u8 - 1;
        options.resize(options.len().next_multiple_of(4), 0);
    }
    header.options = Ipv4Options::try_from(&options[..]).unwrap();
    header.set_payload_len(rest.len()).unwrap();
    header.header_checksum = header.calc_header_checksum();
    [&header.to_bytes()[..], rest].concat()
}

/// The packet with a hop-by-hop options header: one option (0x1e, for experiments) and some padding.
fn with_hop_by_hop(mut packet: Vec<u8>, content: &[u8]) -> Vec<u8> {
    if content.is_empty() {
        return packet;
    }
    let mut header = [&[packet[6], 0, 0x1e, content.len() as u8][..], content].concat();
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    packet[6] = 0;
    packet.splice(40..40, header);
    let payload = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload.to_be_bytes());
    packet
}

fn label() -> impl Strategy<Value = Label> {
    any::<u16>().prop_map(decode)
}

proptest! {
    /// Removing a label restores the packet, even if the label was rewritten in between.
    #[test]
    fn removing_a_label_restores_the_packet(packet in packet(), first in label(), second in label()) {
        let mut labelled = packet.clone();
        insert(&mut labelled, first).unwrap();
        prop_assert_eq!(read(&labelled), Ok(first));
        rewrite(&mut labelled, second).unwrap();
        prop_assert_eq!(read(&labelled), Ok(second));
        prop_assert_eq!(remove(&mut labelled), Ok(second));
        prop_assert_eq!(labelled, packet);
    }

    /// A library finds the same addresses and content, correct lengths, a correct checksum, and the option at
    /// its position.
    #[test]
    fn a_labelled_packet_is_valid(packet in packet(), label in label()) {
        let value = encode(label).unwrap().to_be_bytes();
        let mut labelled = packet.clone();
        insert(&mut labelled, label).unwrap();
        if packet[0] >> 4 == 4 {
            let (before, after) = (Ipv4Slice::from_slice(&packet).unwrap(), Ipv4Slice::from_slice(&labelled).unwrap());
            let (old, new) = (before.header().to_header(), after.header().to_header());
            prop_assert_eq!(new.header_checksum, new.calc_header_checksum());
            prop_assert_eq!(usize::from(new.total_len), labelled.len());
            let options = [&[158, 4][..], &value, &old.options[..]].concat();
            prop_assert_eq!(&new.options[..], &options[..]);
            prop_assert_eq!((new.source, new.destination, new.time_to_live), (old.source, old.destination, old.time_to_live));
            prop_assert_eq!(after.payload().payload, before.payload().payload);
        } else {
            let (before, after) = (Ipv6Slice::from_slice(&packet).unwrap(), Ipv6Slice::from_slice(&labelled).unwrap());
            prop_assert_eq!(40 + usize::from(after.header().payload_length()), labelled.len());
            prop_assert_eq!(after.header().next_header(), IpNumber(0));
            prop_assert_eq!(&labelled[42..46], &[&[0x3e, 2][..], &value].concat()[..]);
            let fixed = |slice: &Ipv6Slice<'_>| Ipv6Header { next_header: IpNumber(0), payload_length: 0, ..slice.header().to_header() };
            prop_assert_eq!(fixed(&after), fixed(&before));
            prop_assert_eq!(after.payload(), before.payload());
        }
        let (before, after) = (PacketHeaders::from_ip_slice(&packet).unwrap(), PacketHeaders::from_ip_slice(&labelled).unwrap());
        prop_assert_eq!(after.transport, before.transport);
        prop_assert!(matches!(after.net, Some(NetHeaders::Ipv4(..) | NetHeaders::Ipv6(..))));
    }

    /// The assertions of the fuzz target, tested without a fuzzer on damaged packets.
    #[test]
    fn damaged_packets(packet in packet(), label in label(), changes in proptest::collection::vec((0..80_usize, any::<u8>()), 0..4), end in any::<usize>()) {
        let mut packet = packet;
        if encode(label) > Some(0x8000) {
            insert(&mut packet, label).unwrap();
        }
        for (at, byte) in changes {
            if let Some(old) = packet.get_mut(at) {
                *old = byte;
            }
        }
        let _ = crate::byte_input::label(&packet);
        packet.truncate(end % (packet.len() + 1));
        let _ = crate::byte_input::label(&packet);
    }

    #[test]
    fn any_bytes(start in prop_oneof![Just(0x45_u8), Just(0x46), Just(0x4f), Just(0x60), any::<u8>()], rest in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = crate::byte_input::label(&[&[start][..], &rest].concat());
    }
}

/// tshark shows the option with its type and value, reports no error in the packet, and reads the fields
/// behind it.
#[test]
fn tshark_sees_the_label() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labels.pcapng");
    let mut writer = Writer::new(std::fs::File::create(&file).unwrap(), "labels").unwrap();
    let interface = writer.interface(&InterfaceDescription::default()).unwrap();
    let label = Label::of(Rate::mbit(1));
    for six in [false, true] {
        for content in [&[][..], &[1, 2]] {
            let mut packet = Vec::new();
            let start = if six {
                PacketBuilder::ipv6([1; 16], [2; 16], 9)
            } else {
                PacketBuilder::ipv4([1; 4], [2; 4], 9)
            };
            start.udp(1234, 5678).write(&mut packet, &[7; 8]).unwrap();
            let mut packet =
                if six { with_hop_by_hop(packet, content) } else { with_options(&packet, content) };
            insert(&mut packet, label).unwrap();
            let bytes = packet.len() as u32;
            writer
                .packet(&EnhancedPacket { interface, time: 0, bytes, data: &packet, comment: None })
                .unwrap();
        }
    }
    drop(writer.finish().unwrap());
    let fields = [
        "ip.hdr_len",
        "ip.opt.type",
        "ipv6.opt.type",
        "ipv6.opt.experimental",
        "ip.checksum.status",
        "udp.checksum.status",
        "udp.dstport",
        "_ws.malformed",
    ];
    let settings = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    let Some(lines) = crate::tshark::fields(&file, &fields, &settings) else { return };
    let expected = [
        // tshark lists only those IPv4 options that it knows.
        ["24", "", "", "", "1", "1", "5678", ""],
        ["32", "1,148,0", "", "", "1", "1", "5678", ""],
        ["", "", "0x3e,0x01", "4f42", "", "1", "5678", ""],
        ["", "", "0x3e,0x01,0x1e,0x00,0x00", "4f42,0102", "", "1", "5678", ""],
    ];
    assert_eq!(lines, expected);
}
