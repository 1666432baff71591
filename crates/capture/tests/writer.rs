//! Written captures, read by the reader of this crate and by tshark.

use std::io::{self, ErrorKind, Write};

use crate::support::{read_whole, tshark};
use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Packet, Transport, Writer};
use giveway_qdisc::{Dscp, Ecn};

const UPLINK: InterfaceDescription<'_> = InterfaceDescription {
    name: "home->isp",
    description: "fq_codel limit 10240p",
    link: LinkType::RAW,
    speed: 10_000_000,
    snap: Headers::LONGEST as u32,
};
const DOWNLINK: InterfaceDescription<'_> = InterfaceDescription {
    name: "isp->home",
    description: "",
    link: LinkType::RAW,
    speed: 40_000_000_000,
    snap: 0,
};

/// An acknowledgement with two SACK blocks: 20 + 20 + 20 bytes of headers and no data.
const SACK: Headers<'_> = Headers {
    from: [10, 0, 1, 1],
    to: [10, 0, 0, 1],
    from_port: 80,
    to_port: 1024,
    bytes: 60,
    id: 0,
    dscp: Dscp::of_service(0),
    ecn: Ecn::NotCapable,
    transport: Transport::Tcp {
        seq: 1,
        ack: 1449,
        flags: 0b0101_0000, // ECE, ACK
        window: 65_535,
        options: &[1, 1, 5, 18, 0, 0, 11, 81, 0, 0, 17, 1, 0, 0, 28, 97, 0, 0, 34, 17],
        data: 0,
    },
};
const DATA: Headers<'_> = Headers {
    from: [10, 0, 0, 1],
    to: [10, 0, 1, 1],
    from_port: 1024,
    to_port: 80,
    bytes: 1500,
    id: 0,
    dscp: Dscp::of_service(0),
    ecn: Ecn::Ect0,
    transport: Transport::Tcp {
        seq: u32::MAX,
        ack: 1,
        flags: 0b1001_0000, // CWR, ACK
        window: 65_535,
        options: &[],
        data: 1448,
    },
};
const DATAGRAM: Headers<'_> = Headers {
    from: [10, 255, 255, 200],
    to: [10, 0, 1, 1],
    from_port: 65_535,
    to_port: 5004,
    bytes: 200,
    id: 0x1234,
    dscp: Dscp::of_service(46 << 2),
    ecn: Ecn::Marked,
    transport: Transport::Udp,
};

/// A time in nanoseconds that neither a float nor a 32-bit number can represent.
const LATE: u64 = 1_732_200_000_123_456_789;

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "giveway test").unwrap();
    let up = writer.interface(&UPLINK).unwrap();
    let mut down = None;
    let packets = [
        (false, 0, DATA, None),
        (false, 1, DATAGRAM, Some("marked")),
        (true, 1_200_000, SACK, None),
        (false, LATE, DATA, Some("dropped: overlimit")),
    ];
    for (is_down, time, headers, comment) in packets {
        let mut data = Vec::new();
        headers.write(&mut data);
        // The second interface is added between packets, when it is needed.
        let interface =
            if is_down { *down.get_or_insert_with(|| writer.interface(&DOWNLINK).unwrap()) } else { up };
        writer
            .packet(&EnhancedPacket { interface, time, bytes: headers.bytes, data: &data, comment })
            .unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn our_reader_reads_written_packets() {
    let packets = read_whole(&written());
    let seen: Vec<_> =
        packets.iter().map(|packet| (packet.interface, packet.time, packet.bytes, packet.link.0)).collect();
    assert_eq!(seen, [(0, 0, 1500, 101), (0, 1, 200, 101), (1, 1_200_000, 60, 101), (0, LATE, 1500, 101)]);
    let fields_of = |packet: &Packet| {
        let ip = packet.ip.unwrap();
        let tcp = ip.tcp.map(|tcp| (tcp.seq, tcp.ack, tcp.flags));
        (ip.tuple.from_port, ip.tuple.to_port, ip.data, (ip.dscp, ip.ecn), ip.short, tcp)
    };
    assert_eq!(
        fields_of(&packets[0]),
        (1024, 80, Some(1448), (Dscp::default(), Ecn::Ect0), false, Some((u32::MAX, 1, 0b1001_0000)))
    );
    assert_eq!(
        fields_of(&packets[1]),
        (65_535, 5004, Some(172), ("EF".parse().unwrap(), Ecn::Marked), false, None)
    );
    assert_eq!(
        fields_of(&packets[2]),
        (80, 1024, Some(0), (Dscp::default(), Ecn::NotCapable), true, Some((1, 1449, 0b0101_0000)))
    );
    assert_eq!(packets[1].ip.unwrap().tuple.from[12..], [10, 255, 255, 200]);
    assert!(packets.iter().all(|packet| packet.mac.is_none()), "raw IP has no Ethernet addresses");
}

#[test]
fn tshark_reads_written_packets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("written.pcapng");
    std::fs::write(&file, written()).unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.comment",
        "frame.len",
        "frame.cap_len",
        "ip.src",
        "ip.checksum.status", // 1: good
        "ip.dsfield.ecn",
        "ip.id",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.flags",
        "tcp.hdr_len",
        "tcp.len",
        "tcp.options.sack_re",
        "udp.dstport",
        "udp.length",
    ];
    let settings = ["ip.check_checksum:TRUE", "tcp.relative_sequence_numbers:FALSE"];
    let Some(lines) = tshark::fields(&file, &fields, &settings) else { return };
    let lines: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
    assert_eq!(
        lines,
        [
            "0.000000000 home->isp  1500 52 10.0.0.1 1 2 0x0000 4294967295 1 0x0090 32 1448   ",
            "0.000000001 home->isp marked 200 28 10.255.255.200 1 3 0x1234       5004 180",
            "0.001200000 isp->home  60 60 10.0.1.1 1 0 0x0000 1 1449 0x0050 40 0 4353,8721  ",
            "1732200000.123456789 home->isp dropped: overlimit 1500 52 10.0.0.1 1 2 0x0000 4294967295 1 0x0090 32 \
             1448   ",
        ]
    );
}

/// The header is filled with no-operations until the data have the right length, up to the longest header.
#[test]
fn tcp_headers_are_filled_up_to_the_data() {
    for (bytes, data, header, counted) in
        [(40, 0, 20, 0), (52, 0, 32, 0), (80, 0, 60, 0), (84, 0, 60, 4), (1500, 1460, 20, 1460)]
    {
        let transport = Transport::Tcp { seq: 0, ack: 0, flags: 2, window: 1, options: &[], data };
        let headers = Headers { bytes, transport, ..SACK };
        let packet = only(&headers);
        assert_eq!(packet.bytes, bytes);
        assert_eq!(packet.ip.unwrap().data, Some(counted), "{bytes} bytes with {data} of data");
        let mut kept = Vec::new();
        headers.write(&mut kept);
        assert_eq!(kept.len(), 20 + header);
    }
}

#[test]
fn packets_with_lengths_that_no_header_can_have() {
    let long = Headers { bytes: 70_000, ..DATAGRAM };
    let packet = only(&long);
    assert_eq!(
        (packet.bytes, packet.ip.unwrap().data),
        (70_000, Some(69_972)),
        "more than its length field can hold"
    );
    let tiny = Headers { bytes: 25, ..DATAGRAM };
    let packet = only(&tiny);
    assert_eq!((packet.bytes, packet.ip.unwrap().data), (25, None), "less than a UDP header");
    let mut kept = Vec::new();
    tiny.write(&mut kept);
    assert_eq!(kept.len(), 25, "never more bytes than the packet has");
}

fn only(headers: &Headers<'_>) -> Packet {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let interface = writer.interface(&UPLINK).unwrap();
    let mut data = Vec::new();
    headers.write(&mut data);
    let packet = EnhancedPacket { interface, time: 0, bytes: headers.bytes, data: &data, comment: None };
    writer.packet(&packet).unwrap();
    read_whole(&writer.finish().unwrap())[0]
}

#[test]
fn invalid_packets_are_refused_and_not_written() {
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let mut refused = |packet: EnhancedPacket<'_>| {
        let error = writer.packet(&packet).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let packet = EnhancedPacket { interface: 0, time: 0, bytes: 3, data: &[0; 3], comment: None };
    assert_eq!(refused(packet), "a packet of interface 0, and 0 are known");
    writer.interface(&UPLINK).unwrap();
    let mut refused = |packet: EnhancedPacket<'_>| writer.packet(&packet).unwrap_err().to_string();
    assert_eq!(refused(EnhancedPacket { bytes: 2, ..packet }), "3 captured bytes of a packet of 2");
    let long = "x".repeat(65_536);
    assert_eq!(refused(EnhancedPacket { comment: Some(&long), ..packet }), "a text of 65536 bytes");
    writer.packet(&EnhancedPacket { comment: Some(&long[1..]), ..packet }).unwrap();
    assert_eq!(read_whole(&writer.finish().unwrap()).len(), 1);
}

/// A disk that is full after `left` bytes.
struct Disk {
    left: usize,
    flushed: bool,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let took = bytes.len().min(self.left);
        if took == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        self.left -= took;
        Ok(took)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.flushed = true;
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    let packet = EnhancedPacket { interface: 0, time: 0, bytes: 1000, data: &[0; 1000], comment: None };
    let mut writer = Writer::new(Disk { left: 1500, flushed: false }, "test").unwrap();
    writer.interface(&UPLINK).unwrap();
    writer.packet(&packet).unwrap();
    assert_eq!(writer.packet(&packet).unwrap_err().kind(), ErrorKind::StorageFull);

    let writer = Writer::new(Disk { left: 1500, flushed: false }, "test").unwrap();
    assert!(writer.finish().unwrap().flushed);
}
