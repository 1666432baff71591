//! The assertions of the fuzz target, tested without a fuzzer on its seeds and on mutations of them.

use std::path::PathBuf;

use giveway_capture::{Ip, LinkType, Packet, Tcp};
use giveway_qdisc::{Dscp, Ecn, FiveTuple, Streams};

fn seeds() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/capture");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of seeds exists")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn seeds_give_workloads() {
    let mut connections = 0;
    for seed in seeds() {
        connections += crate::byte_input::extract(&crate::captured::capture(&seed).0).connections.len();
    }
    assert!(connections > 5, "{connections}");
}

#[test]
fn mutated_seeds_give_workloads() {
    let seeds = seeds();
    let mut rng = Streams::new(14).within("workloads").rng();
    for round in 0..2_000 {
        let mut file = seeds[round % seeds.len()].clone();
        for _ in 0..=rng.below(6) {
            let at = rng.below(file.len() as u64) as usize;
            file[at] = [file[at] ^ (1 << rng.below(8)), 0, 0xff, 0x10, 0x02][rng.below(5) as usize];
        }
        crate::byte_input::extract(&crate::captured::capture(&file).0);
    }
}

/// Packets that no network would carry, between few hosts and ports, so that connections have several.
#[test]
fn any_packets_give_a_workload() {
    let mut rng = Streams::new(15).within("packets").rng();
    let mut writes = 0;
    for _ in 0..5_000 {
        let mut time = 0;
        let mut packets = Vec::new();
        for _ in 0..rng.below(60) {
            time = match rng.below(10) {
                0 => rng.below(u64::MAX),
                1 => time.saturating_sub(rng.below(3_000_000_000)),
                _ => time.saturating_add(rng.below(1_000_000_000)),
            };
            let mut number = |near: u32| match rng.below(8) {
                0 => rng.below(1 << 32) as u32,
                1 => near.wrapping_sub(rng.below(3_000) as u32),
                _ => near.wrapping_add(rng.below(3_000) as u32),
            };
            let (seq, ack) = (number(0xffff_f000), number(5));
            let flags = [0x10, 0x10, 0x10, 0x02, 0x12, 0x11, 0x04, 0x14, 0x00, 0xff][rng.below(10) as usize];
            let mut end = || {
                let mut address = [0; 16];
                address[10..].copy_from_slice(&[
                    0xff,
                    0xff,
                    192,
                    168 + rng.below(2) as u8,
                    1,
                    rng.below(2) as u8,
                ]);
                (address, [80, 40_000][rng.below(2) as usize])
            };
            let ((from, from_port), (to, to_port)) = (end(), end());
            let data = rng.below(2_000) as u32;
            let is_tcp = rng.below(10) > 0;
            let tuple = FiveTuple { from, to, from_port, to_port, protocol: if is_tcp { 6 } else { 17 } };
            let tcp = is_tcp.then_some(Tcp { seq, ack, flags, plain: false });
            let ip = Ip {
                tuple,
                dscp: Dscp::default(),
                ecn: Ecn::NotCapable,
                short: false,
                data: Some(data),
                tcp,
                first: None,
            };
            let packet = Packet {
                time,
                bytes: 40 + data,
                link: LinkType::RAW,
                interface: 0,
                mac: None,
                ip: Some(ip),
                tunnels: Default::default(),
            };
            packets.push(packet);
        }
        writes += crate::byte_input::extract(&packets)
            .connections
            .iter()
            .map(|each| each.adus.len())
            .sum::<usize>();
    }
    assert!(writes > 10_000, "{writes}");
}
