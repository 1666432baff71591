//! Tests of exports: they agree with the record of the same run.

use std::collections::BTreeMap;

use giveway_capture::{Packet, Reader};
use giveway_measure::{Layout, Record, Recorder};
use giveway_qdisc::{Backlog, DropReason, Ecn, Label, Rate, Time};
use giveway_scenario::Scenario;

use super::*;

const SCENARIO: &str = r#"
duration = "3 s"
phase = "exact"
disciplines = ["fifo limit 20p"]
tcp = { preset = "rfc" }

[[link]]
from = "home"
to = "isp"
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "compare"

[[link]]
from = "isp"
to = "server"
rate = "1 Gbit/s"
delay = "10 ms"

[[traffic]]
kind = "bulk"
from = "home"
to = "server"
flows = 2

[[traffic]]
kind = "audio"
from = "server"
to = "home"
"#;

fn scenario(change: impl Fn(String) -> String) -> Scenario {
    Scenario::parse(&change(SCENARIO.to_owned()), ".").expect("the scenario is valid")
}

/// A run as a capture, as packets with their comments, and as a record.
struct Exported {
    file: Vec<u8>,
    packets: Vec<(Packet, String)>,
    record: Record,
}

fn export(scenario: &Scenario, trial: &Trial) -> Exported {
    let network = scenario.network().expect("the scenario has a network");
    let every = (0..network.ports.len() as u32).map(PortId).collect();
    let until = Time::ZERO + scenario.duration;
    let mut recorder = Recorder::new(Layout { measured: every, until, ..Layout::default() });
    let exporter = Exporter::new(Vec::new(), network, trial).unwrap();
    let mut both = (&mut recorder, exporter);
    network.run(trial, &mut both, &|_| true).expect("the run is not stopped");
    let (file, written) = both.1.finish().unwrap();
    let packets = Reader::new(io::Cursor::new(file.clone()))
        .unwrap()
        .map(|packet| packet.expect("the capture is complete"));
    let packets: Vec<_> = packets.zip(comments(&file)).collect();
    assert_eq!(packets.len() as u64, written);
    Exported { file, packets, record: recorder.finish() }
}

/// The comment of every packet. Packets of an export have no other options.
fn comments(file: &[u8]) -> Vec<String> {
    let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap());
    let mut found = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let end = at + word(at + 4) as usize;
        if word(at) == 6 {
            let options = at + 28 + (word(at + 20) as usize).next_multiple_of(4);
            let length = if options + 4 < end { word(options) >> 16 } else { 0 } as usize;
            let text = file[options + 4..].get(..length).unwrap_or_default();
            found.push(String::from_utf8(text.to_vec()).unwrap());
        }
        at = end;
    }
    found
}

impl Exported {
    /// The packets and bytes that departed at an interface.
    fn departed(&self, interface: u32) -> Backlog {
        let mut sum = Backlog::default();
        for (packet, _) in self
            .packets
            .iter()
            .filter(|(packet, comment)| packet.interface == interface && !comment.starts_with("dropped"))
        {
            sum.add(packet.bytes);
        }
        sum
    }

    fn commented(&self, interface: u32, text: &str) -> u64 {
        let found =
            |(packet, comment): &&(Packet, String)| packet.interface == interface && comment.contains(text);
        self.packets.iter().filter(found).count() as u64
    }
}

/// Checks that the packets of the compared port are those that the recorder counted.
fn agree(exported: &Exported, what: &str) {
    let link = &exported.record.links[0];
    assert_eq!(Some(exported.departed(0)), link.sent, "{what}");
    for (why, count) in DropReason::ALL.iter().zip(link.drops) {
        let comment = match why {
            DropReason::Wire => "lost on the wire".to_owned(),
            _ => format!("dropped: {}", why.name()),
        };
        assert_eq!(exported.commented(0, &comment), count, "{what}: {comment}");
    }
    assert_eq!(exported.commented(0, "marked"), link.marked, "{what}");
    let times: Vec<u64> = exported.packets.iter().map(|(packet, _)| packet.time).collect();
    assert!(times.is_sorted(), "{what}: packets are ordered by time");
}

#[test]
fn the_export_of_the_quickstart_agrees_with_its_record() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/quickstart.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let scenario = Scenario::parse(&text, ".").unwrap().short().unwrap();
    let mut drops = 0;
    for trial in scenario.trials() {
        let exported = export(&scenario, &trial);
        agree(&exported, &trial.name);
        assert!(exported.packets.len() > 1000, "{}", trial.name);
        drops += exported.commented(0, "dropped");
    }
    assert!(drops > 5, "only {drops} drops to compare");
}

#[test]
fn marks_and_losses_on_the_wire_are_commented() {
    for spec in ["fq_codel", "red limit 60000b min 5000b max 15000b ecn", "fifo"] {
        let scenario = scenario(|text| {
            let text =
                text.replace("fifo limit 20p", spec).replace("flows = 2", "flows = 2\ntcp = { ecn = true }");
            text.replace("delay = \"10 ms\"\nqdisc", "delay = \"10 ms\"\nloss = \"1 %\"\nqdisc")
        });
        let exported = export(&scenario, &scenario.trials()[0]);
        agree(&exported, spec);
        assert!(exported.commented(0, "lost on the wire") > 5, "{spec}");
        assert_eq!(exported.commented(0, "marked") > 5, spec != "fifo", "{spec}");
        let carries =
            |ecn| exported.packets.iter().filter(|(packet, _)| packet.ip.unwrap().ecn == ecn).count();
        assert_eq!(carries(Ecn::Marked) as u64, exported.commented(0, "marked"), "only this port marks");
        assert!(carries(Ecn::Ect0) > 100);
    }
}

/// The headers of two bulk transfers, from their SYN on, and of a stream in the other direction.
#[test]
fn headers_have_the_addresses_ports_and_numbers_of_their_connection() {
    // Both directions are measured, so that both are exported.
    let scenario = scenario(|text| text + "\n[record]\nport = [\"home->isp\", \"isp->home\"]\n");
    let exported = export(&scenario, &scenario.trials()[0]);
    // The first three packets of each direction of each conversation.
    let mut first: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (packet, _) in &exported.packets {
        let ip = packet.ip.expect("all packets are IP");
        let seen = first.entry((packet.interface, ip.tuple)).or_default();
        if seen.len() < 3 {
            seen.push((packet.bytes, ip.data.expect("the headers are complete"), ip.tcp));
        }
    }
    let end = |address: [u8; 16], port: u16| {
        let [a, b, c, d] = *address.last_chunk().expect("an IPv4 address has four bytes");
        format!("{a}.{b}.{c}.{d}:{port}")
    };
    let mut text = String::new();
    for ((interface, tuple), packets) in first {
        let (from, to) = (end(tuple.from, tuple.from_port), end(tuple.to, tuple.to_port));
        text += &format!("interface {interface}, {from} > {to}\n");
        for (bytes, data, tcp) in packets {
            let tcp = tcp.map(|tcp| format!(", seq {} ack {} flags {:#04x}", tcp.seq, tcp.ack, tcp.flags));
            text += &format!("  {bytes} bytes, {data} of data{}\n", tcp.unwrap_or_default());
        }
    }
    insta::assert_snapshot!(text, @r"
    interface 0, 10.0.0.1:1024 > 10.0.2.1:80
      52 bytes, 0 of data, seq 0 ack 0 flags 0x02
      1500 bytes, 1460 of data, seq 1 ack 1 flags 0x10
      1500 bytes, 1460 of data, seq 1461 ack 1 flags 0x10
    interface 0, 10.0.0.1:1025 > 10.0.2.1:80
      52 bytes, 0 of data, seq 0 ack 0 flags 0x02
      1500 bytes, 1460 of data, seq 1 ack 1 flags 0x10
      1500 bytes, 1460 of data, seq 1461 ack 1 flags 0x10
    interface 1, 10.0.2.1:80 > 10.0.0.1:1024
      52 bytes, 0 of data, seq 0 ack 1 flags 0x12
      40 bytes, 0 of data, seq 1 ack 2921 flags 0x10
      40 bytes, 0 of data, seq 1 ack 5841 flags 0x10
    interface 1, 10.0.2.1:80 > 10.0.0.1:1025
      52 bytes, 0 of data, seq 0 ack 1 flags 0x12
      40 bytes, 0 of data, seq 1 ack 2921 flags 0x10
      40 bytes, 0 of data, seq 1 ack 5841 flags 0x10
    interface 1, 10.0.2.1:1024 > 10.0.0.1:5004
      160 bytes, 132 of data
      160 bytes, 132 of data
      160 bytes, 132 of data
    ");
}

/// The captured bytes of every packet.
fn kept(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap()) as usize;
    let mut found = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if word(at) == 6 {
            found.push(&file[at + 28..at + 28 + word(at + 20)]);
        }
        at += word(at + 4);
    }
    found
}

/// Datagrams of a flow with a rate, of a short flow, of an unlabelled flow, and one without room for the
/// option.
#[test]
fn labels_travel_as_an_ip_option() {
    let scenario = scenario(|text| text);
    let mut exporter = Exporter::new(Vec::new(), scenario.network().unwrap(), &scenario.trials()[0]).unwrap();
    let megabit = Label::of(Rate::mbit(1));
    let segment = Segment { flags: Segment::DATAGRAM, ..Segment::default() };
    for (bytes, label) in
        [(1000, megabit), (1000, Label::SHORT), (1000, Label::NONE), (65_531, megabit), (65_532, megabit)]
    {
        exporter.on_transmission(
            PortId(0),
            &Meta { bytes, label, to: 1, ..Meta::default() },
            &segment,
            Time::ZERO,
        );
    }
    let dropped = Meta { bytes: 500, label: megabit, to: 1, ..Meta::default() };
    exporter.on_drop(PortId(0), &dropped, &segment, DropReason::Overlimit, Time::ZERO);
    let (file, _) = exporter.finish().unwrap();

    let labels = kept(&file).into_iter().map(|packet| label::read(packet).unwrap());
    let packets = Reader::new(io::Cursor::new(file.clone())).unwrap().map(|packet| packet.unwrap());
    let labelled: Vec<_> = labels.zip(packets).map(|(label, packet)| (label, packet.bytes)).collect();
    let written = label::decode(label::encode(megabit).unwrap());
    assert_eq!(
        labelled,
        [
            (written, 1004),
            (Label::SHORT, 1004),
            (Label::NONE, 1000),
            (written, 65_535),
            (Label::NONE, 65_532),
            (written, 504)
        ]
    );
    let data: Vec<_> = Reader::new(io::Cursor::new(file))
        .unwrap()
        .map(|packet| packet.unwrap().ip.unwrap().data.unwrap())
        .collect();
    assert_eq!(data, [972, 972, 972, 65_503, 65_504, 472], "the option does not shorten the data");
}

#[test]
fn used_up_ports_are_followed_by_another_client() {
    let mut conversations = Conversations::default();
    let mut client = |conn: u32, to: u16| {
        let segment = Segment { conn, ..Segment::default() };
        let meta = Meta { from: 258, to, ..Meta::default() };
        let ((address, port), _) = conversations.ends(&meta, &segment);
        (address, port)
    };
    assert_eq!(client(0, 3), ([10, 1, 2, 1], 1024));
    for conn in 1..64_512 {
        client(conn, 3);
    }
    assert_eq!(client(64_511, 3), ([10, 1, 2, 1], 65_535));
    assert_eq!(client(64_512, 3), ([10, 1, 2, 2], 1024));
    assert_eq!(client(64_513, 4), ([10, 1, 2, 1], 1024), "another server: the ports begin again");
    assert_eq!(client(0, 3), ([10, 1, 2, 1], 1024), "a known conversation keeps its address");
}

/// Each access delay has its own host, so that addresses distinguish round-trip times.
#[test]
fn hosts_on_access_links_have_their_own_addresses() {
    let mut conversations = Conversations::default();
    let mut ends = |conn: u32, from: u16, to: u16, host: u16, flags: u16| {
        let segment = Segment { conn, host, host_node: 3, flags, ..Segment::default() };
        let meta = Meta { from, to, ..Meta::default() };
        let ((from, from_port), (to, to_port)) = conversations.ends(&meta, &segment);
        (from, from_port, to, to_port)
    };
    let home = [10, 0, 2, 1];
    assert_eq!(ends(0, 2, 3, 1, 0), (home, 1024, [100, 64, 0, 1], 80));
    assert_eq!(ends(0, 3, 2, 1, Segment::REPLY), ([100, 64, 0, 1], 80, home, 1024), "the reply");
    assert_eq!(ends(1, 2, 3, 258, 0), (home, 1024, [100, 64, 1, 2], 80), "another access delay");
    assert_eq!(ends(2, 2, 3, 0, 0), (home, 1024, [10, 0, 3, 1], 80), "the node itself");
    assert_eq!(ends(3, 3, 2, 258, 0), ([100, 64, 1, 2], 1024, home, 80), "the far host connects");
    for conn in 4..64_515 {
        ends(conn, 3, 2, 258, 0);
    }
    assert_eq!(ends(64_515, 3, 2, 258, 0), ([100, 65, 1, 2], 1024, home, 80), "its ports are used up");
}

#[test]
fn the_same_run_gives_the_same_file() {
    let scenario = scenario(|text| text);
    let trial = &scenario.trials()[0];
    assert!(export(&scenario, trial).file == export(&scenario, trial).file);
}

#[test]
fn a_stopped_run_keeps_the_earlier_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home.pcapng");
    std::fs::write(&file, "an earlier export").unwrap();
    let scenario = scenario(|text| text);
    let trial = &scenario.trials()[0];
    let exports = Exports::begin(&file, &scenario, true, &giveway_trials::Silent).unwrap();
    let (target, network) = exports.of(trial).expect("it is the first seed");
    let ran = giveway_observe::observe_network(network, false, |recorder| {
        target.run(network, trial, &|_, spec, context| spec.build(context), recorder, &|share| share < 0.5)
    });
    assert!(ran.is_none());
    assert_eq!(exports.ended(), Vec::new(), "a stopped run reports no file");
    drop(exports);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "an earlier export");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is removed");
}
