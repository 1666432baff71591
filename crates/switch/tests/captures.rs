//! A switch whose traffic is a capture. The tests of the traffic itself are with `traffic/trace.rs`.

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Transport, Writer};
use giveway_qdisc::{Dscp, Ecn, Streams};
use giveway_switch::packet::Class;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Plan, run};
use serde_json::json;

const UDP: Transport = Transport::Udp;

/// A TCP segment with this number of bytes of data.
fn tcp(data: u32) -> Transport<'static> {
    Transport::Tcp { seq: 1, ack: 1, flags: 0x10, window: 100, options: &[], data }
}

/// All packets of a capture arrive at a switch and cross it, and each class is counted.
#[test]
fn a_switch_carries_a_capture() {
    // IP length and payload. Each packet follows 512 ns after the one before: 10 slots of 64 bytes at 10
    // Gbit/s.
    let packets = [(40, tcp(0)), (64, UDP), (64, tcp(24)), (65, UDP), (576, tcp(536)), (1500, tcp(1460))];
    let mut writer = Writer::new(Vec::new(), "test").unwrap();
    let ethernet = InterfaceDescription { link: LinkType(1), ..InterfaceDescription::default() };
    writer.interface(&ethernet).unwrap();
    for (time, (bytes, transport)) in (5000..).step_by(512).zip(packets) {
        let mut data = vec![2; 12];
        data.extend([8, 0]);
        let (from, to) = ([10, 0, 0, 1], [10, 0, 9, 9]);
        let (from_port, to_port) = (1000, 80);
        let ecn = Ecn::NotCapable;
        Headers { from, to, from_port, to_port, bytes, id: 0, dscp: Dscp::default(), ecn, transport }
            .write(&mut data);
        let packet = EnhancedPacket { interface: 0, time, bytes: 14 + bytes, data: &data, comment: None };
        writer.packet(&packet).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.pcapng"), writer.finish().unwrap()).unwrap();

    let trace = SOURCES.iter().find(|entry| entry.name == "trace").unwrap();
    let plan = Plan {
        ports: 4,
        arbiter: "p_spf".parse().unwrap(),
        traffic: (trace.from_json)(json!({ "file": "c.pcapng", "inputs": "source", "repeat": true }))
            .unwrap(),
        // A repetition takes 74 slots.
        slots: 74 * 20,
        warmup: 74 * 10,
        streams: Streams::new(1),
        folder: folder.path().to_owned(),
    };
    let outcome = run(&plan).unwrap();
    assert!((outcome.offered - 38.0 / 74.0 / 4.0).abs() < 1e-12, "{}", outcome.offered);
    assert_eq!(outcome.offered, outcome.throughput);
    assert_eq!(outcome.class(Class::Short).count, 20);
    assert_eq!(outcome.class(Class::Long).count, 40);
    assert_eq!(outcome.all.wait.max, Some(0.0), "the packets never compete for a port");
}
