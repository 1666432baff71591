//! Labels in packets, byte by byte.

use giveway_qdisc::{Label, Rate};
use giveway_wire::WireError;
use giveway_wire::label::{insert, read, remove, rewrite};

/// Bytes as they are written in a dump.
fn bytes(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two digits each")).collect()
}

#[track_caller]
fn same(packet: &[u8], dump: &str) {
    let dumped = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    assert_eq!(dumped(packet), dumped(&bytes(dump)));
}

fn megabit() -> Label {
    // 1,000,000 bit/s is 0x4f42, and 999,936 when it is read again.
    Label::of(Rate::mbit(1))
}

/// UDP from 10.0.0.1 to 10.0.1.1, two bytes of data.
const IPV4: &str = "
    45 00 00 1e 00 07 40 00 40 11 25 c7 0a 00 00 01 0a 00 01 01
    04 00 13 8c 00 0a 00 00 68 69";
/// [`IPV4`] with a label of 1 Mbit/s: two lengths and the checksum differ, and there are four more bytes.
const IPV4_LABELLED: &str = "
    46 00 00 22 00 07 40 00 40 11 37 7c 0a 00 00 01 0a 00 01 01 9e 04 4f 42
    04 00 13 8c 00 0a 00 00 68 69";

#[test]
fn a_label_in_an_ipv4_packet() {
    let mut packet = bytes(IPV4);
    assert_eq!(read(&packet), Ok(Label::NONE));
    insert(&mut packet, megabit()).unwrap();
    same(&packet, IPV4_LABELLED);
    assert_eq!(read(&packet).unwrap().rate(), Rate::bit(999_936));

    // A core router lowers it: value and checksum.
    rewrite(&mut packet, Label::of(Rate::bit(64_000))).unwrap();
    same(&packet, &IPV4_LABELLED.replace("4f 42", "2f a0").replace("37 7c", "57 1e"));
    rewrite(&mut packet, Label::SHORT).unwrap();
    same(&packet, &IPV4_LABELLED.replace("4f 42", "00 00").replace("37 7c", "86 be"));
    assert_eq!(read(&packet), Ok(Label::SHORT));

    assert_eq!(remove(&mut packet), Ok(Label::SHORT));
    same(&packet, IPV4);
    assert_eq!(remove(&mut packet), Ok(Label::NONE));
}

/// Router alert, RFC 2113: the label is inserted first, and removed at any position, aligned or not.
#[test]
fn a_label_among_other_options() {
    let alerted = "46 00 00 18 00 00 00 00 40 02 fb c8 0a 00 00 01 e0 00 00 16 94 04 00 00";
    let mut packet = bytes(alerted);
    insert(&mut packet, Label::of(Rate::bit(1))).unwrap();
    same(&packet, "47 00 00 1c 00 00 00 00 40 02 5c bf 0a 00 00 01 e0 00 00 16 9e 04 00 01 94 04 00 00");
    assert_eq!(remove(&mut packet), Ok(Label::of(Rate::bit(1))));
    same(&packet, alerted);

    // No operation, label, router alert, no operation, end of options twice: written by another program.
    let elsewhere =
        "48 00 00 20 00 00 00 00 40 02 00 00 0a 00 00 01 e0 00 00 16 01 9e 04 00 05 94 04 00 00 01 00 00";
    let mut packet = with_checksum(elsewhere);
    assert_eq!(read(&packet), Ok(Label::of(Rate::bit(5))));
    rewrite(&mut packet, Label::of(Rate::bit(0x234))).unwrap();
    assert_eq!(packet, with_checksum(&elsewhere.replace("9e 04 00 05", "9e 04 02 34")));
    assert_eq!(remove(&mut packet), Ok(Label::of(Rate::bit(0x234))));
    let left = "47 00 00 1c 00 00 00 00 40 02 00 00 0a 00 00 01 e0 00 00 16 01 94 04 00 00 01 00 00";
    assert_eq!(packet, with_checksum(left));

    // Bytes behind the end of the options are not options.
    let ended = "46 00 00 18 00 00 00 00 40 02 00 00 0a 00 00 01 e0 00 00 16 00 9e 04 00";
    assert_eq!(read(&bytes(ended)), Ok(Label::NONE));
}

/// A header with its checksum as a library computes it.
fn with_checksum(dump: &str) -> Vec<u8> {
    let mut packet = bytes(dump);
    let checksum = etherparse::Ipv4Header::from_slice(&packet).unwrap().0.calc_header_checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// UDP from fd00::1 to fd00::2, two bytes of data.
const IPV6: &str = "
    60 00 00 00 00 0a 11 40 fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
    fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02
    04 00 13 8c 00 0a 85 e0 68 69";
/// [`IPV6`] with a label of 1 Mbit/s: payload length and next header differ, and there are eight more bytes.
const IPV6_LABELLED: &str = "
    60 00 00 00 00 12 00 40 fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
    fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02
    11 00 3e 02 4f 42 01 00
    04 00 13 8c 00 0a 85 e0 68 69";

#[test]
fn a_label_in_an_ipv6_packet() {
    let mut packet = bytes(IPV6);
    assert_eq!(read(&packet), Ok(Label::NONE));
    insert(&mut packet, megabit()).unwrap();
    same(&packet, IPV6_LABELLED);
    rewrite(&mut packet, Label::SHORT).unwrap();
    same(&packet, &IPV6_LABELLED.replace("4f 42", "00 00"));
    assert_eq!(remove(&mut packet), Ok(Label::SHORT));
    same(&packet, IPV6);
}

/// A report of multicast listeners with a router alert (RFC 2711), and forms that other programs may write.
#[test]
fn a_label_in_a_hop_by_hop_options_header() {
    let fixed = |payload: &str| format!("60 00 00 00 00 {payload} 00 01{}", " fe".repeat(32));
    let alerted = fixed("0c") + " 3a 00 05 02 00 00 01 00 8f 00 00 00";
    let mut packet = bytes(&alerted);
    insert(&mut packet, megabit()).unwrap();
    same(&packet, &(fixed("14") + " 3a 01 3e 02 4f 42 01 02 00 00 05 02 00 00 01 00 8f 00 00 00"));
    assert_eq!(remove(&mut packet).unwrap().rate(), Rate::bit(999_936));
    same(&packet, &alerted);

    // A label behind other options, which stay at their positions.
    let behind = fixed("14") + " 3a 01 05 02 00 00 3e 02 00 09 01 04 00 00 00 00 8f 00 00 00";
    let mut packet = bytes(&behind);
    assert_eq!(remove(&mut packet), Ok(Label::of(Rate::bit(9))));
    same(&packet, &behind.replace("3e 02 00 09", "01 02 00 00"));

    // A label alone with other padding: the header is removed.
    let mut packet = bytes(&(fixed("0c") + " 3a 00 00 00 3e 02 00 09 8f 00 00 00"));
    assert_eq!(remove(&mut packet), Ok(Label::of(Rate::bit(9))));
    same(&packet, &(fixed("04").replace("04 00 01", "04 3a 01") + " 8f 00 00 00"));
}

/// Invalid packets are refused and unchanged, and the message states the position and a remedy.
#[test]
fn invalid_packets_are_refused() {
    let patched = |dump: &str, at: usize, new: &[u8]| {
        let mut packet = bytes(dump);
        packet[at..at + new.len()].copy_from_slice(new);
        packet
    };
    let refusal = |packet: &[u8]| {
        let error = read(packet).unwrap_err();
        let mut same = packet.to_vec();
        assert_eq!(insert(&mut same, Label::SHORT), Err(error));
        assert_eq!(remove(&mut same), Err(error));
        assert_eq!(same, packet);
        error.to_string()
    };
    assert_eq!(refusal(&[]), "this is not an IP packet: the version in its first four bits is missing");
    assert_eq!(refusal(&[0x50; 40]), "this is not an IP packet: the version in its first four bits is 5");
    assert_eq!(refusal(&bytes(IPV4)[..19]), "the packet ends after 19 bytes, within its IPv4 header");
    assert_eq!(
        refusal(&bytes(IPV4_LABELLED)[..23]),
        "the packet ends after 23 bytes, within its IPv4 header"
    );
    assert_eq!(
        refusal(&patched(IPV4, 0, &[0x44])),
        "the packet is malformed at byte 0: the header length is below 20 bytes"
    );
    assert_eq!(
        refusal(&patched(IPV4_LABELLED, 2, &[0, 23])),
        "the packet is malformed at byte 2: the packet length is below the header length"
    );
    for length in [0, 1, 5] {
        assert_eq!(
            refusal(&patched(IPV4_LABELLED, 21, &[length])),
            "the packet is malformed at byte 20: an option is longer than the header, or has an invalid length"
        );
    }
    assert_eq!(
        refusal(&patched(IPV4_LABELLED, 21, &[3])),
        "the option 158 at byte 20 is not a label: it is 3 bytes long, not 4"
    );
    let two = bytes("47 00 00 1c 00 00 00 00 40 02 00 00 0a 00 00 01 e0 00 00 16 9e 04 00 01 9e 04 00 01");
    assert_eq!(refusal(&two), "the packet has two labels, at bytes 20 and 24");

    assert_eq!(refusal(&bytes(IPV6)[..39]), "the packet ends after 39 bytes, within its IPv6 header");
    assert_eq!(
        refusal(&bytes(IPV6_LABELLED)[..47]),
        "the packet ends after 47 bytes, within its hop-by-hop options header"
    );
    assert_eq!(
        refusal(&patched(IPV6, 4, &[0, 0])),
        "the packet is malformed at byte 4: a payload length of 0 with a payload: a jumbogram, or a length that was left to \
         a network card"
    );
    assert_eq!(
        refusal(&patched(IPV6_LABELLED, 41, &[2])),
        "the packet is malformed at byte 41: the hop-by-hop options header is longer than the packet"
    );
    assert_eq!(
        refusal(&patched(IPV6_LABELLED, 43, &[5])),
        "the packet is malformed at byte 42: an option is longer than the header"
    );
    assert_eq!(
        refusal(&patched(IPV6_LABELLED, 43, &[4])),
        "the option 62 at byte 42 is not a label: it is 6 bytes long, not 4"
    );

    for (with, without, at) in [(IPV4_LABELLED, IPV4, 20), (IPV6_LABELLED, IPV6, 42)] {
        let (mut with, mut without) = (bytes(with), bytes(without));
        assert_eq!(insert(&mut with, Label::SHORT), Err(WireError::Labelled { at }));
        assert_eq!(rewrite(&mut without, Label::SHORT), Err(WireError::Unlabelled));
        assert_eq!(insert(&mut without, Label::NONE), Err(WireError::Nothing));
        assert_eq!(rewrite(&mut with, Label::NONE), Err(WireError::Nothing));
    }
}

/// The longest packets and headers that a label fits, and the next longer ones.
#[test]
fn labels_that_do_not_fit_are_refused() {
    let refused = |mut packet: Vec<u8>| {
        let before = packet.clone();
        let inserted = insert(&mut packet, Label::SHORT).map_err(|error| error.to_string());
        assert_eq!(inserted.is_err(), packet == before);
        inserted.err()
    };
    let ipv4 = |total: u16| [&[0x45, 0][..], &total.to_be_bytes(), &[0; 16]].concat();
    assert_eq!(refused(ipv4(65_531)), None);
    let full = "a label does not fit: an IPv4 packet has at most 65,535 bytes";
    assert_eq!(refused(ipv4(65_532)).unwrap(), full);
    let options = |words: u8| [&[0x45 + words, 0, 0, 60][..], &[0; 16], &[1; 40]].concat();
    assert_eq!(refused(options(9)), None);
    let full = "a label does not fit: an IPv4 header has at most 40 bytes of options";
    assert_eq!(refused(options(10)).unwrap(), full);

    let ipv6 = |payload: u16| [&[0x60, 0, 0, 0][..], &payload.to_be_bytes(), &[59, 1], &[0; 32]].concat();
    assert_eq!(refused(ipv6(0)), None, "a packet without a payload");
    assert_eq!(refused(ipv6(65_527)), None);
    let full = "a label does not fit: an IPv6 packet has at most 65,535 bytes behind its header";
    assert_eq!(refused(ipv6(65_528)).unwrap(), full);
    let options =
        |units: u8| [&[0x60, 0, 0, 0, 0x10, 0, 0, 1][..], &[0; 32], &[59, units], &[0; 2046]].concat();
    assert_eq!(refused(options(254)), None);
    let full = "a label does not fit: a hop-by-hop options header has at most 2,048 bytes";
    assert_eq!(refused(options(255)).unwrap(), full);
}
