//! Speed of reading captures, in bytes of the file: from the page cache through [`Reader::open`].
//!
//! Half of the packets have 40 bytes and half 1,500 bytes, roughly as on an access link. They are captured
//! completely, or cut to 96 bytes. The target is 200 MB/s for complete packets in a file without compression.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flate2::Compression;
use flate2::write::GzEncoder;
use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Reader, Transport, Writer};
use giveway_qdisc::{Dscp, Ecn};

/// Approximate size of a file, in bytes.
const SIZE: usize = 64 << 20;
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

/// A frame with a short or a long packet. Its data vary, so that they cannot be compressed to nothing.
fn frame(number: u32, state: &mut u32, frame: &mut Vec<u8>) -> u32 {
    let bytes = if number.is_multiple_of(2) { 1500 } else { 40 };
    let headers = Headers {
        from: [10, 0, 0, 1],
        to: [10, 0, 1, (number % 50) as u8],
        from_port: 1024 + (number % 50) as u16,
        to_port: 80,
        bytes,
        id: 0,
        dscp: Dscp::default(),
        ecn: Ecn::NotCapable,
        transport: Transport::Tcp {
            seq: number,
            ack: 1,
            flags: 0x10,
            window: 1000,
            options: &[],
            data: bytes - 40,
        },
    };
    frame.clear();
    frame.extend(ETHERNET);
    headers.write(frame);
    while frame.len() < 14 + bytes as usize {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        frame.extend(&state.to_be_bytes()[..3]);
        frame.push(0);
    }
    14 + bytes
}

fn pcap(snap: usize) -> Vec<u8> {
    let mut file = Vec::with_capacity(SIZE + 2000);
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, snap as u32, 1] {
        file.extend(u32::to_le_bytes(word));
    }
    let (mut data, mut state) = (Vec::new(), 1);
    for number in 0.. {
        if file.len() >= SIZE {
            break;
        }
        let wire = frame(number, &mut state, &mut data);
        let kept = &data[..data.len().min(snap)];
        for word in [number / 10_000, number % 10_000 * 100, kept.len() as u32, wire] {
            file.extend(word.to_le_bytes());
        }
        file.extend(kept);
    }
    file
}

fn pcapng(snap: usize) -> Vec<u8> {
    let mut writer =
        Writer::new(Vec::with_capacity(SIZE + 100_000), "benchmark").expect("memory is not full");
    let ethernet = InterfaceDescription { link: LinkType::ETHERNET, ..InterfaceDescription::default() };
    let interface = writer.interface(&ethernet).expect("memory is not full");
    let (mut data, mut state, mut written) = (Vec::new(), 1, 0);
    for number in 0.. {
        if written >= SIZE {
            break;
        }
        let bytes = frame(number, &mut state, &mut data);
        let data = &data[..data.len().min(snap)];
        let time = u64::from(number) * 100_000;
        let packet = EnhancedPacket { interface, time, bytes, data, comment: None };
        writer.packet(&packet).expect("memory is not full");
        written += data.len() + 32;
    }
    writer.finish().expect("memory is not full")
}

fn gzip(file: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(file).expect("memory is not full");
    gz.finish().expect("memory is not full")
}

fn read(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let mut group = c.benchmark_group("read");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    for (kept, snap) in [("whole", 65_535), ("96 bytes", 96)] {
        for (name, file) in [("pcap", pcap(snap)), ("pcapng", pcapng(snap))] {
            // The throughput of a compressed file is counted in uncompressed bytes.
            let length = Throughput::Bytes(file.len() as u64);
            for (packing, file) in [("", file.clone()), (".gz", gzip(&file))] {
                let path: PathBuf = folder.path().join(format!("{kept}.{name}{packing}"));
                let mut out = BufWriter::new(File::create(&path).expect("the disk is not full"));
                out.write_all(&file).and_then(|()| out.flush()).expect("the disk is not full");
                group.throughput(length.clone());
                group.bench_function(BenchmarkId::new(format!("{name}{packing}"), kept), |b| {
                    b.iter(|| {
                        let packets = Reader::open(&path).expect("the file is a capture");
                        packets
                            .map(|packet| u64::from(black_box(packet.expect("the file is complete")).bytes))
                            .sum::<u64>()
                    });
                });
            }
        }
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
