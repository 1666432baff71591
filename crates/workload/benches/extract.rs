//! Speed of the extraction of a workload from a capture: reading and extraction together, from memory.
//!
//! The capture has 64 MB: full-size packets of 200 simultaneous connections, with an acknowledgement for
//! every second packet. The target is 200 MB/s of the file.

use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use giveway_capture::{Headers, Reader, Transport};
use giveway_qdisc::{Dscp, Ecn};
use giveway_workload::Extraction;

/// Approximate size of the file, in bytes.
const SIZE: usize = 64 << 20;
const CONNECTIONS: u32 = 200;
const DATA: u32 = 1_460;

/// A pcap file of raw IP, and its number of packets.
fn pcap() -> (Vec<u8>, u64) {
    let mut file = Vec::with_capacity(SIZE + 4_000);
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(u32::to_le_bytes(word));
    }
    let mut sent = [0_u32; CONNECTIONS as usize];
    let mut packets = 0_u64;
    let mut packet = |file: &mut Vec<u8>, number: u32, up: bool, seq: u32, ack: u32, flags: u8, data: u32| {
        let client = ([192, 168, 1, 20], 20_000 + number as u16);
        let server = ([203, 0, 113, number as u8], 443);
        let (from, to) = if up { (client, server) } else { (server, client) };
        let bytes = 40 + data;
        let ns = packets * 12_000;
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, bytes, bytes] {
            file.extend(word.to_le_bytes());
        }
        let start = file.len();
        Headers {
            from: from.0,
            to: to.0,
            from_port: from.1,
            to_port: to.1,
            bytes,
            id: 0,
            dscp: Dscp::default(),
            ecn: Ecn::NotCapable,
            transport: Transport::Tcp { seq, ack, flags, window: 1_000, options: &[], data },
        }
        .write(file);
        file.resize(start + bytes as usize, 0xa5);
        packets += 1;
    };
    for number in 0..CONNECTIONS {
        packet(&mut file, number, true, 0, 0, 0x02, 0);
        packet(&mut file, number, false, 0, 1, 0x12, 0);
        packet(&mut file, number, true, 1, 1, 0x10, 300);
    }
    for round in 0.. {
        if file.len() >= SIZE {
            break;
        }
        let number = round % CONNECTIONS;
        let sent = &mut sent[number as usize];
        for _ in 0..2 {
            packet(&mut file, number, false, 1 + *sent, 301, 0x10, DATA);
            *sent += DATA;
        }
        packet(&mut file, number, true, 301, 1 + *sent, 0x10, 0);
    }
    (file, packets)
}

fn extract(file: &[u8]) -> usize {
    let mut extraction = Extraction::default();
    for packet in Reader::new(Cursor::new(file.to_vec())).expect("the file is a capture") {
        extraction.packet(&packet.expect("the file is complete"));
    }
    let (local, _) = extraction.guess().expect("the traffic has a local side");
    let (workload, _) = extraction.finish(&local);
    workload.connections.len()
}

fn extraction(c: &mut Criterion) {
    let (file, packets) = pcap();
    assert_eq!(extract(&file), CONNECTIONS as usize);
    let mut group = c.benchmark_group("extract");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("bytes", |b| b.iter(|| extract(black_box(&file))));
    group.throughput(Throughput::Elements(packets));
    group.bench_function("packets", |b| b.iter(|| extract(black_box(&file))));
    group.finish();
}

criterion_group!(benches, extraction);
criterion_main!(benches);
