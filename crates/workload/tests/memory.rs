//! Memory of a workload of datagrams: a few bytes for each while the capture is read, while the workload is
//! written, and while it is read.

use std::io::{BufReader, BufWriter, Seek as _};

use giveway_capture::{Ip, LinkType, Packet};
use giveway_qdisc::{Dscp, Ecn, FiveTuple};
use giveway_workload::{Extraction, Workload};

/// The largest additional memory of an action, in bytes per packet.
fn each<T>(packets: u64, action: impl FnOnce() -> T) -> (f64, T) {
    let (most, result) = giveway_counting::most(action);
    (most as f64 / packets as f64, result)
}

#[test]
fn a_datagram_takes_a_few_bytes() {
    const PACKETS: u64 = 1_000_000;
    let host = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 0, last];
    let far = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 203, 0, 113, 1];
    let packet = |number: u64| {
        // Two streams, one of which has nearly all packets.
        let client = if number.is_multiple_of(100) { 2 } else { 1 };
        let tuple = FiveTuple { from: host(client), to: far, from_port: 4000, to_port: 443, protocol: 17 };
        let ip = Ip {
            tuple,
            dscp: Dscp::default(),
            ecn: Ecn::NotCapable,
            short: false,
            data: Some(1200),
            tcp: None,
            first: None,
        };
        let time = number * 1_000_000 + number % 700;
        Packet {
            time,
            bytes: 1228,
            link: LinkType(1),
            interface: 0,
            mac: None,
            ip: Some(ip),
            tunnels: Default::default(),
        }
    };
    let (reading, extraction) = each(PACKETS, || {
        let mut extraction = Extraction::default();
        (0..PACKETS).for_each(|number| extraction.packet(&packet(number)));
        extraction
    });
    let (finishing, (workload, _)) = each(PACKETS, || extraction.finish(&"192.168.0.0/16".parse().unwrap()));
    let mut file = tempfile().unwrap();
    let (writing, ()) = each(PACKETS, || workload.write(BufWriter::new(&mut file)).unwrap());
    file.rewind().unwrap();
    let (again, read) = each(PACKETS, || Workload::read(BufReader::new(&file)).unwrap());
    println!(
        "bytes for each datagram: reading {reading:.1}, finishing {finishing:.1}, writing {writing:.1}, again {again:.1}"
    );
    assert_eq!(read, workload);
    // 1 MiB for lines that are read at once, and the growth of that buffer.
    assert!(reading < 8.0 && finishing < 1.0 && writing < 1.0 && again < 11.0);
}

/// A file without name, so that it is deleted when it is closed.
fn tempfile() -> std::io::Result<std::fs::File> {
    let path = std::env::temp_dir().join(format!("giveway-workload-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}
