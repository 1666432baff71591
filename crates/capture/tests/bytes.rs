//! The assertions of the fuzz target, tested without a fuzzer on its seeds and on mutations of them. The
//! seeds, which come from many tools, are also compared with tshark.
//!
//! `fuzz/seeds/capture.py` makes the seeds.

use std::path::PathBuf;

use giveway_capture::{CaptureError, Packet};
use giveway_qdisc::Streams;

/// Every seed with its name.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/capture");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of seeds exists")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().expect("a file").to_string_lossy().into_owned();
    let seeds: Vec<_> = files.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect();
    assert!(seeds.len() > 20, "{}", seeds.len());
    seeds
}

fn seed(name: &str) -> Vec<Packet> {
    let corpus = corpus();
    let (_, file) = corpus.iter().find(|(seed, _)| seed == name).expect("the seed exists");
    let (packets, error) = crate::byte_input::capture(file);
    assert!(error.is_none(), "{name} {}", error.unwrap());
    packets
}

#[test]
fn seeds_are_small_and_read_to_their_end() {
    for (name, file) in corpus() {
        assert!(file.len() < 4096, "{name} has {} bytes", file.len());
        let (packets, error) = crate::byte_input::capture(&file);
        assert!(packets.len() > 1, "{name}");
        assert_eq!(error.is_some(), name.starts_with("damaged"), "{name}: {error:?}");
    }
}

/// A truncated capture yields the packets that are complete, and nothing else.
#[test]
fn every_truncation_of_every_seed() {
    for (name, file) in corpus() {
        let (whole, _) = crate::byte_input::capture(&file);
        let mut before = 0;
        for length in 0..file.len() {
            let (packets, _) = crate::byte_input::capture(&file[..length]);
            assert!(packets.len() >= before, "{name}: more bytes give no fewer packets");
            assert_eq!(packets[..], whole[..packets.len()], "{name}, {length} bytes of it");
            before = packets.len();
        }
    }
}

/// Bytes are changed, removed, doubled, and exchanged with bytes of other seeds.
#[test]
fn mutations_of_seeds() {
    let corpus = corpus();
    let mut rng = Streams::new(13).within("captures").rng();
    let mut damaged = 0;
    for round in 0..2_000 {
        let mut file = corpus[round % corpus.len()].1.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(file.len() as u64) as usize;
            let length = (rng.below(40) as usize).min(file.len() - at);
            match rng.below(6) {
                0 => file[at] ^= 1 << rng.below(8),
                1 => file[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
                // A length, a count or an interface that is far too large or a little too small.
                2 => {
                    let word = [u32::MAX, 0x7fff_ffff, 0x0100_0000, 0, 12, 11][rng.below(6) as usize];
                    let word_at = at / 4 * 4;
                    if let Some(field) = file.get_mut(word_at..word_at + 4) {
                        field.copy_from_slice(&word.to_le_bytes());
                    }
                }
                3 => drop(file.drain(at..at + length)),
                4 => {
                    let again = file[at..at + length].to_vec();
                    file.splice(at..at, again);
                }
                _ => {
                    let other = &corpus[rng.below(corpus.len() as u64) as usize].1;
                    let from = rng.below(other.len() as u64) as usize;
                    let till = (from + length).min(other.len());
                    file.splice(at..at + length, other[from..till].iter().copied());
                }
            }
            if file.is_empty() {
                break;
            }
        }
        damaged += u32::from(crate::byte_input::capture(&file).1.is_some());
    }
    assert!(damaged > 500, "{damaged} mutations are damage");
}

/// Byte order, resolution of time and compression do not change the packets.
#[test]
fn the_same_packets_in_every_format() {
    let simulated = seed("simulated.pcapng");
    assert_eq!(seed("editcap.pcapng"), simulated);
    // Formats with fewer interfaces, and with fewer digits.
    let flat: Vec<_> = simulated.iter().map(|packet| Packet { interface: 0, ..*packet }).collect();
    assert_eq!(seed("nano.pcap"), flat);
    let coarse: Vec<_> =
        flat.iter().map(|packet| Packet { time: packet.time / 1000 * 1000, ..*packet }).collect();
    assert_eq!(seed("micro.pcap"), coarse);
    assert_eq!(seed("modified.pcap"), coarse);
    assert_eq!(seed("micro.pcap.gz"), coarse);
    let tcp: Vec<_> = coarse.iter().filter(|packet| packet.ip.unwrap().tcp.is_some()).copied().collect();
    assert_eq!(seed("tcpdump.pcap"), tcp);
    let ethernet = seed("ethernet.pcap");
    assert_eq!(seed("big-endian-micro.pcap"), ethernet);
    let times: Vec<u64> =
        (0..ethernet.len() as u64).map(|number| 1_600_000_000_000_000_000 + number * 1_234_567).collect();
    let nano = seed("big-endian-nano.pcap");
    assert_eq!(nano.iter().map(|packet| packet.time).collect::<Vec<_>>(), times);
    assert_eq!(seed("blocks.pcapng"), seed("big-endian-blocks.pcapng"));
    assert_eq!(seed("sections.pcapng"), seed("sections.pcapng.gz"));

    // The header of the link does not change the packets, either.
    let ip = |packets: &[Packet]| packets.iter().map(|packet| (packet.ip, packet.bytes)).collect::<Vec<_>>();
    for link in ["vlan", "qinq", "pppoe", "null", "loop", "raw", "cooked", "cooked-2"] {
        assert_eq!(ip(&seed(&format!("{link}.pcap"))), ip(&ethernet), "{link}");
    }
    // Lengths include the bytes that were cut off. 38 bytes are enough for the ports, but not for the length
    // of the TCP header.
    let lengths = |packets: &[Packet]| packets.iter().map(|packet| packet.bytes).collect::<Vec<_>>();
    assert_eq!(lengths(&seed("snap-38.pcap")), lengths(&simulated));
    assert_eq!(lengths(&seed("snap-60.pcapng")), lengths(&ethernet));
}

/// A damaged file yields the packets before the damage, then an error with its position.
#[test]
fn damage_in_the_middle() {
    let corpus = corpus();
    for (name, whole) in [("damaged.pcap", "ethernet.pcap"), ("damaged.pcapng", "simulated.pcapng")] {
        let file = |name: &str| &corpus.iter().find(|(seed, _)| seed == name).expect("the seed exists").1;
        let (packets, error) = crate::byte_input::capture(file(name));
        let Some(CaptureError::Damaged { offset, packets: count, .. }) = error else { panic!("{name}") };
        let first_change = file(name).iter().zip(file(whole)).position(|(a, b)| a != b).unwrap() as u64;
        let undamaged = seed(whole);
        assert_eq!(packets[..], undamaged[..packets.len()], "{name}");
        assert_eq!((count, offset), (packets.len() as u64, first_change), "{name}");
        assert!((5..undamaged.len()).contains(&packets.len()), "{name}: {count}");
    }
}

/// tshark finds the same packets in every seed: times, lengths, addresses, ports, marks and numbers.
#[test]
fn tshark_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let fields = [
        "frame.protocols",
        "frame.time_epoch",
        "ip.len",
        "ipv6.plen",
        "ip.dsfield.ecn",
        "ipv6.tclass.ecn",
        "tcp.srcport",
        "udp.srcport",
        "tcp.dstport",
        "udp.dstport",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "udp.length",
        "eth.src",
        "eth.dst",
    ];
    let settings = ["tcp.relative_sequence_numbers:FALSE", "ip.defragment:FALSE", "ipv6.defragment:FALSE"];
    let mut compared = 0;
    for (name, file) in corpus().into_iter().filter(|(name, _)| !name.starts_with("damaged")) {
        let path = folder.path().join(&name);
        std::fs::write(&path, &file).unwrap();
        let Some(lines) = crate::support::tshark::fields(&path, &fields, &settings) else { return };
        let (packets, _) = crate::byte_input::capture(&file);
        // A block of an unknown kind is a record to tshark, without a time and an interface.
        let theirs: Vec<[String; 2]> = lines.iter().filter(|line| line[0] != "data").map(theirs).collect();
        let mut ours: Vec<[String; 2]> = packets.iter().map(ours).collect();
        // tshark does not report the data of a first fragment, which is only a part of the segment.
        for (our, their) in ours.iter_mut().zip(&theirs).filter(|(_, their)| their[1].is_empty()) {
            our[1].clone_from(&their[1]);
        }
        assert_eq!(ours, theirs, "{name}");
        compared += ours.len();
    }
    assert!(compared > 300, "{compared}");
}

/// The compared fields of a packet: time, IP length, ECN, ports, the numbers of TCP and Ethernet addresses;
/// and the number of data bytes.
fn ours(packet: &Packet) -> [String; 2] {
    let time = format!("{}.{:09}", packet.time / 1_000_000_000, packet.time % 1_000_000_000);
    let ip = packet.ip.expect("all of the seeds are IP");
    let ecn = match ip.ecn {
        giveway_qdisc::Ecn::NotCapable => 0,
        giveway_qdisc::Ecn::Ect1 => 1,
        giveway_qdisc::Ecn::Ect0 => 2,
        giveway_qdisc::Ecn::Marked => 3,
    };
    let ports = match (ip.tuple.from_port, ip.tuple.to_port) {
        (0, 0) => String::new(),
        (from, to) => format!("{from} > {to}"),
    };
    let tcp = ip.tcp.map_or(String::new(), |tcp| format!("{} {}", tcp.seq, tcp.ack));
    let mac = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02x}")).join(":");
    let macs = packet.mac.map_or(String::new(), |macs| format!("{} > {}", mac(macs.from), mac(macs.to)));
    let data = ip.data.map_or(String::new(), |data| data.to_string());
    [format!("{time} {} bytes, ecn {ecn}, {ports}, {tcp}, {macs}", packet.bytes), data]
}

fn theirs(fields: &Vec<String>) -> [String; 2] {
    let [
        _,
        time,
        four,
        six,
        ecn_four,
        ecn_six,
        tcp_from,
        udp_from,
        tcp_to,
        udp_to,
        seq,
        ack,
        tcp_data,
        udp_length,
        mac_from,
        mac_to,
    ] = &fields[..]
    else {
        panic!("{fields:?}")
    };
    // A simple packet block has no time; ours is 0 then.
    let time = if time.is_empty() { "0.000000000" } else { time };
    let bytes = match (four.parse::<u32>(), six.parse::<u32>()) {
        (Ok(bytes), _) => bytes,
        (_, Ok(bytes)) => bytes + 40,
        _ => panic!("{fields:?}"),
    };
    let (from, to) = (format!("{tcp_from}{udp_from}"), format!("{tcp_to}{udp_to}"));
    let ports = if from.is_empty() { String::new() } else { format!("{from} > {to}") };
    let tcp = if seq.is_empty() { String::new() } else { format!("{seq} {ack}") };
    let macs = if mac_from.is_empty() { String::new() } else { format!("{mac_from} > {mac_to}") };
    let data = match udp_length.parse::<u32>() {
        Ok(length) => (length - 8).to_string(),
        Err(_) => tcp_data.clone(),
    };
    [format!("{time} {bytes} bytes, ecn {ecn_four}{ecn_six}, {ports}, {tcp}, {macs}"), data]
}
