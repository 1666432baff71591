use std::fs;
use std::path::{Path, PathBuf};

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, Reader, Transport, Writer};
use giveway_qdisc::{Dscp, Ecn, Streams};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::packet::{Class, PacketKind};
use crate::traffic::{SOURCES, TrafficSpec};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const C: [u8; 4] = [10, 0, 9, 9];

const ACK: Carries = Carries::Tcp(0);

#[derive(Clone, Copy)]
enum Carries {
    /// TCP with this number of bytes of data.
    Tcp(u32),
    Udp,
    /// Not IP: an ARP request.
    Arp,
}

/// Time in nanoseconds, sender, receiver, IP length, payload, interface.
type Row = (u64, [u8; 4], [u8; 4], u32, Carries, u32);

/// Packets of every size and class. Each follows 512 ns after the one before: 10 slots of 64 bytes at
/// 10 Gbit/s.
const EVERY: [Row; 6] = [
    (5000, A, C, 40, ACK, 0),
    (5512, A, C, 64, Carries::Udp, 0),
    (6024, A, C, 64, Carries::Tcp(24), 0),
    (6536, A, C, 65, Carries::Udp, 0),
    (7048, A, C, 576, Carries::Tcp(536), 0),
    (7560, A, C, 1500, Carries::Tcp(1460), 0),
];

/// A folder with a capture named `c.pcapng`.
fn capture(rows: &[Row]) -> TempDir {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let ethernet =
        InterfaceDescription { link: giveway_capture::LinkType(1), ..InterfaceDescription::default() };
    for _ in 0..3 {
        writer.interface(&ethernet).unwrap();
    }
    for (time, from, to, bytes, carries, interface) in rows.iter().copied() {
        let mut data = vec![2; 12];
        let transport = match carries {
            Carries::Tcp(data) => {
                Transport::Tcp { seq: 1, ack: 1, flags: 0x10, window: 100, options: &[], data }
            }
            _ => Transport::Udp,
        };
        match carries {
            Carries::Arp => data.extend([&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat()),
            _ => {
                data.extend([8, 0]);
                let (from_port, to_port) = (1000, 80);
                let ecn = Ecn::NotCapable;
                Headers { from, to, from_port, to_port, bytes, id: 0, dscp: Dscp::default(), ecn, transport }
                    .write(&mut data);
            }
        }
        let bytes = 14 + bytes;
        writer.packet(&EnhancedPacket { interface, time, bytes, data: &data, comment: None }).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.pcapng"), writer.finish().unwrap()).unwrap();
    folder
}

/// Traffic of `c.pcapng`, with further parameters.
fn spec(more: Value) -> TrafficSpec {
    let mut value = json!({ "file": "c.pcapng", "inputs": "source" });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let entry = SOURCES.iter().find(|entry| entry.name == "trace").unwrap();
    (entry.from_json)(value).unwrap()
}

fn context(folder: &Path, ports: usize, seed: u64) -> TrafficContext {
    TrafficContext { ports, streams: Streams::new(seed), folder: folder.to_owned() }
}

fn build(folder: &TempDir, ports: usize, more: Value) -> Result<TrafficSources, Invalid> {
    spec(more).build(&context(folder.path(), ports, 1))
}

/// All packets as (input, slot, output, kind), by input; at most `most` of each input.
fn packets(offered: TrafficSources, most: usize) -> Vec<(usize, u64, u16, PacketKind)> {
    let mut all = Vec::new();
    for (input, mut source) in offered.sources.into_iter().enumerate() {
        let packets = std::iter::from_fn(|| source.next()).take(most);
        all.extend(
            packets.map(|packet| (input, packet.first, packet.to, offered.kinds[usize::from(packet.kind)])),
        );
    }
    all
}

/// First slots, cells and classes of the packets of a capture with one source.
fn of_one_source(rows: &[Row], more: Value) -> Vec<(u64, u32, Class)> {
    let offered = build(&capture(rows), 4, more).unwrap();
    packets(offered, 20).into_iter().map(|(_, slot, _, kind)| (slot, kind.cells, kind.class)).collect()
}

fn refused(rows: &[Row], more: Value) -> String {
    build(&capture(rows), 4, more).err().expect("invalid parameters").to_string()
}

#[test]
fn packets_have_the_cells_and_classes_of_the_paper() {
    use Class::{Long, Short};
    let expected =
        [(0, 1, Short), (10, 1, Short), (20, 1, Long), (30, 2, Long), (40, 9, Long), (50, 24, Long)];
    assert_eq!(of_one_source(&EVERY, json!({})), expected);
    // At a tenth of the rate a slot is ten times as long. A packet has fewer larger cells, in longer slots.
    let slots = |more: Value| -> Vec<(u64, u32)> {
        of_one_source(&EVERY, more).iter().map(|(slot, cells, _)| (*slot, *cells)).collect()
    };
    assert_eq!(slots(json!({ "rate": "1gbit" }))[..3], [(0, 1), (1, 1), (2, 1)]);
    assert_eq!(slots(json!({ "cell": "128b" })), [(0, 1), (5, 1), (10, 1), (15, 1), (20, 5), (25, 12)]);
    // An acknowledgement of two cells is not a short packet.
    assert_eq!(of_one_source(&EVERY[..1], json!({ "cell": "32b" })), [(0, 2, Long)]);
}

#[test]
fn packets_wait_upstream_while_their_link_is_busy() {
    let close = [
        (0, A, C, 1500, Carries::Udp, 0),
        (512, A, C, 40, ACK, 0),
        (520, A, C, 65, Carries::Udp, 0),
        (2000, A, C, 40, ACK, 0),
    ];
    let slots: Vec<u64> = of_one_source(&close, json!({})).iter().map(|packet| packet.0).collect();
    // 2,000 ns are slot 39.06.
    assert_eq!(slots, [0, 24, 25, 39]);
}

#[test]
fn packets_without_ip_are_skipped_and_slots_ascend() {
    let odd = [
        (0, A, C, 28, Carries::Arp, 0),
        (1024, A, C, 40, ACK, 0),
        (2048, A, C, 40, ACK, 0),
        (1024, A, C, 40, ACK, 0),
    ];
    let slots: Vec<u64> = of_one_source(&odd, json!({})).iter().map(|packet| packet.0).collect();
    assert_eq!(slots, [0, 20, 21]);
}

#[test]
fn addresses_and_the_seed_determine_the_ports() {
    let rows: Vec<Row> = (0..200u8)
        .map(|n| (u64::from(n) * 100, [10, 1, 0, n % 20], [10, 2, 0, n % 50], 40, ACK, u32::from(n % 3)))
        .collect();
    let folder = capture(&rows);
    let at = |inputs: &str, seed: u64| {
        let spec = spec(json!({ "inputs": inputs }));
        packets(spec.build(&context(folder.path(), 8, seed)).unwrap(), 1000)
    };
    let used = |mut ports: Vec<usize>| {
        ports.sort_unstable();
        ports.dedup();
        ports.len()
    };
    for (inputs, most) in [("flow", 8), ("source", 8), ("interface", 3)] {
        let packets = at(inputs, 1);
        assert_eq!(packets.len(), 200, "{inputs}");
        assert_eq!(packets, at(inputs, 1), "the same seed, the same ports");
        let by_input = used(packets.iter().map(|packet| packet.0).collect());
        let by_output = used(packets.iter().map(|packet| usize::from(packet.2)).collect());
        assert!((most.min(6)..=most).contains(&by_input), "{inputs}: {by_input} inputs");
        assert!((6..=8).contains(&by_output), "{inputs}: {by_output} outputs");
    }
    assert_ne!(at("source", 1), at("source", 2), "another seed, other ports");
    // 32 flows for one host leave at one port if the address selects it, and at several if the flow does.
    let one_host: Vec<Row> = (0..32u8).map(|n| (0, [10, 1, 0, n], C, 40, ACK, 0)).collect();
    let one_host = capture(&one_host);
    for (outputs, expected) in [("destination", 1..=1), ("flow", 6..=8)] {
        let leaving = packets(build(&one_host, 8, json!({ "outputs": outputs })).unwrap(), 99);
        let ports = used(leaving.iter().map(|packet| usize::from(packet.2)).collect());
        assert!(expected.contains(&ports), "{outputs}: {ports} outputs");
    }
    // All packets of A arrive at one port; packets for B and C leave at two at most.
    let few = [(0, A, B, 40, ACK, 2), (100, A, C, 65, Carries::Udp, 1), (200, A, B, 40, Carries::Udp, 2)];
    let few = capture(&few);
    let from_a = packets(build(&few, 8, json!({})).unwrap(), 9);
    assert!(from_a.iter().all(|packet| packet.0 == from_a[0].0));
    assert_eq!(from_a[0].2, from_a[2].2, "both are for B");
    let by_interface = packets(build(&few, 8, json!({ "inputs": "interface" })).unwrap(), 9);
    assert_eq!(by_interface.iter().map(|packet| packet.0).collect::<Vec<_>>(), [1, 2, 2]);
}

/// Inputs and outputs are selected independently: an address, or a flow that selects both ports, has the same
/// input and output with probability 1/16.
#[test]
fn inputs_and_outputs_are_independent() {
    let rows: Vec<Row> = (0..1024u32)
        .map(|n| {
            let address = [10, 3, (n / 256) as u8, (n % 256) as u8];
            (u64::from(n), address, address, 40, ACK, 0)
        })
        .collect();
    let folder = capture(&rows);
    for more in [json!({}), json!({ "inputs": "flow", "outputs": "flow" })] {
        let met = packets(build(&folder, 16, more).unwrap(), 2000);
        assert_eq!(met.len(), 1024);
        let same = met.iter().filter(|(input, _, output, _)| *input == usize::from(*output)).count();
        // Four standard deviations around 64.
        assert!((33..=95).contains(&same), "{same} of 1,024");
    }
}

#[test]
fn speed_and_load_change_only_the_gaps() {
    let starts =
        |more: Value| -> Vec<u64> { of_one_source(&EVERY, more).iter().map(|packet| packet.0).collect() };
    assert_eq!(starts(json!({ "speed": 2.0 })), [0, 5, 10, 15, 20, 29]);
    assert_eq!(starts(json!({ "speed": 0.1 })), [0, 100, 200, 300, 400, 500]);
    // 38 cells in all, so at 4 inputs and a mean load of 1/8 they take 76 slots: the last 24 begin in
    // slot 52.
    assert_eq!(starts(json!({ "load": 0.125 }))[..], [0, 10, 20, 31, 41, 52]);
    let offered = build(&capture(&EVERY), 4, json!({ "load": 0.125 })).unwrap();
    let rates = offered.rates.expect("the input has half of a cell per slot");
    let all: f64 = (0..4).map(|input| rates.input(input)).sum();
    assert!((all - 0.5).abs() < 1e-12, "{all}");
    // The only input in use would have 1.2 cells per slot.
    assert!(build(&capture(&EVERY), 4, json!({ "load": 0.3 })).unwrap().rates.is_none());
}

#[test]
fn a_repetition_begins_at_the_end_of_the_last_packet() {
    let two = [(0, A, C, 40, ACK, 0), (512, A, C, 128, Carries::Udp, 0)];
    let starts =
        |more: Value| -> Vec<u64> { of_one_source(&two, more).iter().map(|packet| packet.0).collect() };
    assert_eq!(starts(json!({})), [0, 10]);
    assert_eq!(starts(json!({ "repeat": true }))[..6], [0, 10, 12, 22, 24, 34]);
    assert_eq!(starts(json!({ "repeat": true, "limit": "1p" }))[..3], [0, 1, 2]);
    // A link that is too slow falls behind and still delivers all packets.
    let late = [(0, A, C, 1500, Carries::Udp, 0), (512, A, C, 40, ACK, 0)];
    let late = of_one_source(&late, json!({ "repeat": true }));
    assert_eq!(late[..4].iter().map(|packet| packet.0).collect::<Vec<_>>(), [0, 24, 25, 49]);
}

#[test]
fn invalid_parameters_are_refused_with_a_correction() {
    let of = |more: Value| refused(&EVERY, more);
    for load in [0.0, -0.5, 1.01] {
        assert!(of(json!({ "load": load })).contains("above 0 and at most 1, such as 0.8"), "{load}");
    }
    assert!(of(json!({ "load": 1.0 })).contains("the last packet alone takes 24: write a lower one"));
    assert!(of(json!({ "speed": 0.0 })).contains("a number above 0, such as 10.0"));
    assert!(of(json!({ "speed": 2.0, "load": 0.5 })).contains("write one of them"));
    assert!(of(json!({ "rate": "0bit" })).contains("write \"10gbit\""));
    assert!(of(json!({ "cell": "0b" })).contains("write \"64b\""));
    assert!(of(json!({ "limit": "0p" })).contains("leave it out"));
    assert!(of(json!({ "file": "other.pcap" })).contains("cannot be opened"));
    assert!(of(json!({ "speed": 1e-12 })).contains("write a higher speed"));
    let one = refused(&EVERY[..1], json!({ "load": 0.1 }));
    assert!(one.contains("all packets have the same time"), "{one}");
    let third = capture(&[(0, A, C, 40, ACK, 2)]);
    let interface = build(&third, 2, json!({ "inputs": "interface" })).err().unwrap().to_string();
    assert!(interface.contains("captured at interface 2, and the inputs are 0 to 1"), "{interface}");
}

#[test]
fn files_that_are_not_captures_are_refused() {
    let folder = capture(&EVERY);
    let path = folder.path().join("c.pcapng");
    let whole = fs::read(&path).unwrap();
    let error = |content: &[u8], more: Value| {
        fs::write(&path, content).unwrap();
        build(&folder, 4, more).err().map(|error| error.to_string())
    };
    let no_capture = error(b"{ \"a\": 1 }", json!({})).unwrap();
    assert!(no_capture.contains("is a JSON file"), "{no_capture}");
    assert!(no_capture.contains("c.pcapng"), "{no_capture}");
    let cut = &whole[..whole.len() - 5];
    let damaged = error(cut, json!({})).unwrap();
    assert!(damaged.contains("is damaged at byte"), "{damaged}");
    assert!(damaged.ends_with("write limit = \"5p\" to use the packets before it"), "{damaged}");
    assert_eq!(error(cut, json!({ "limit": "5p" })), None);
    let no_ip = refused(&[(0, A, C, 28, Carries::Arp, 0)], json!({}));
    assert!(no_ip.contains("holds no IP packet (1 others)"), "{no_ip}");
}

/// Traffic from the capture of the examples has all of its packets and all of their cells.
#[test]
fn the_example() {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = "home-uplink.pcapng";
    let (mut count, mut cells, mut short) = (0, 0, 0);
    for packet in Reader::open(examples.join(file)).unwrap() {
        let packet = packet.unwrap();
        let Some(ip) = packet.ip else { continue };
        count += 1;
        cells += packet.bytes.div_ceil(64);
        short += u32::from(ip.short);
    }
    let spec = spec(json!({ "file": file, "inputs": "flow", "rate": "100mbit" }));
    let all = packets(spec.build(&context(&examples, 4, 1)).unwrap(), usize::MAX);
    assert_eq!(all.len(), count);
    assert_eq!(all.iter().map(|packet| packet.3.cells).sum::<u32>(), cells);
    let classed_short = all.iter().filter(|packet| packet.3.class == Class::Short).count();
    assert_eq!(classed_short, short as usize);
    assert!(classed_short * 10 > count && classed_short < count, "{classed_short} of {count}");
    for input in 0..4 {
        let of_input: Vec<_> = all.iter().filter(|packet| packet.0 == input).collect();
        let apart = of_input.windows(2).all(|two| two[1].1 >= two[0].1 + u64::from(two[0].3.cells));
        assert!(apart, "cells of an input arrive one after the other");
    }
}
