//! The file format of workloads.

use giveway_workload::{Adu, After, Connection, Direction, Epoch, Side, Train, Trigger, Workload};
use proptest::prelude::*;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Up), Just(Direction::Down)]
}

/// Any time that a workload may have.
fn time() -> impl Strategy<Value = u64> {
    0..=Workload::LONGEST
}

fn adu() -> impl Strategy<Value = Adu> {
    let side = prop_oneof![Just(Side::Client), Just(Side::Server)];
    let trigger = prop_oneof![Just(Trigger::Own), any::<u64>().prop_map(Trigger::Peer)];
    let bytes = 1..Workload::MAX_BYTES / 16;
    let between = prop::option::of((time(), time()).prop_map(|(a, b)| (a.min(b), a.max(b))));
    // The first connection waits for none.
    let parts = (side, bytes, trigger, time(), between);
    parts.prop_map(|(side, bytes, trigger, think_time, between)| Adu {
        between,
        ..Adu::new(side, bytes, trigger, think_time)
    })
}

fn epoch() -> impl Strategy<Value = (Vec<Adu>, Epoch)> {
    (prop::collection::vec(adu(), 1..4), time(), any::<Option<u32>>(), any::<bool>()).prop_map(
        |(adus, took, page, whole)| {
            let epoch = Epoch { adus: adus.len() as u32, took, page, whole };
            (adus, epoch)
        },
    )
}

fn connection() -> impl Strategy<Value = Connection> {
    let parts = prop::collection::vec(epoch(), 0..4);
    let fields = (time(), direction(), prop::option::of(time()), ".*", any::<bool>(), any::<bool>());
    (fields, parts).prop_map(|((start, direction, rtt, group, begun, ended), parts)| {
        let (adus, epochs): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let after = None;
        Connection {
            quic: false,
            start,
            after,
            direction,
            rtt,
            group,
            begun,
            ended,
            adus: adus.concat(),
            epochs,
        }
    })
}

fn train() -> impl Strategy<Value = Train> {
    let packets = prop::collection::vec((0..=Workload::LONGEST / 5, any::<u16>()), 1..5);
    (time(), direction(), ".*", packets).prop_map(|(start, direction, group, packets)| Train {
        start,
        direction,
        group,
        packets: packets.into_iter().collect(),
    })
}

proptest! {
    #[test]
    fn a_written_workload_is_read_back(
        span in time(),
        connections in prop::collection::vec(connection(), 0..4),
        trains in prop::collection::vec(train(), 0..4),
    ) {
        let workload = Workload { span, connections, trains };
        let mut file = Vec::new();
        workload.write(&mut file).unwrap();
        prop_assert_eq!(Workload::read(&file[..]).unwrap(), workload);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", lines in prop::collection::vec("[{}\\[\\]:,\"a-z0-9]{0,40}", 0..5)) {
        let _ = Workload::read(text.as_bytes());
        let head = "{\"giveway_workload\":1,\"span\":5}\n";
        let _ = Workload::read(format!("{head}{}", lines.join("\n")).as_bytes());
    }
}

/// A file as a user writes it by hand, without the fields that have defaults.
#[test]
fn a_file_by_hand() {
    let text = r#"{"giveway_workload":1,"span":1000000000}
{"tcp":{"start":0,"way":"up","rtt":30000000,"group":"web","writes":[
"#
    .replace("[\n", "[")
        + r#"{"side":"client","bytes":300,"cue":{"peer":0}},{"side":"server","bytes":5000,"cue":{"peer":300},"pause":10}],"exchanges":[{"writes":2,"took":90000000}]}}

{"train":{"start":5,"way":"down","group":"dns","packets":[[0,120]]}}
"#;
    let workload = Workload::read(text.as_bytes()).unwrap();
    let connection = &workload.connections[0];
    assert!(connection.begun && connection.ended && connection.epochs[0].whole);
    assert_eq!(connection.epochs[0].page, None);
    assert_eq!((connection.bytes_on(Direction::Down), connection.bytes_on(Direction::Up)), (5000, 300));
    assert_eq!(workload.trains[0].packets.iter().collect::<Vec<_>>(), [(0, 120)]);
}

#[test]
fn a_connection_may_wait_for_another() {
    let line = |after: &str| {
        format!(r#"{{"tcp":{{"start":0,{after}"way":"up","group":"web","writes":[],"exchanges":[]}}}}"#)
    };
    let read = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|after| line(after)).collect();
        Workload::read(format!("{{\"giveway_workload\":1,\"span\":9}}\n{}\n", lines.join("\n")).as_bytes())
    };
    let after = |connection: usize| format!(r#""after":{{"connection":{connection},"bytes":7,"pause":5}},"#);
    let workload = read(&["", &after(0)]).unwrap();
    assert_eq!(workload.connections[1].after, Some(After { connection: 0, bytes: 7, pause: 5 }));
    for other in [1, 2] {
        let error = read(&["", &after(other)]).unwrap_err().to_string();
        assert!(error.starts_with("connection 1, counted from 0, waits for one"), "{error}");
    }
}

#[test]
fn invalid_files_are_refused_with_the_line() {
    let error = |text: &str| Workload::read(text.as_bytes()).expect_err(text).to_string();
    let foreign = r#"is not a workload: its first line should be {"giveway_workload":1,"span":...}"#;
    for text in
        ["", "\n", "{}", "not JSON", r#"{"giveway_workload":1}"#, r#"{"giveway_workload":-1,"span":0}"#]
    {
        assert_eq!(error(text), foreign);
    }
    assert_eq!(
        error(r#"{"giveway_workload":2,"span":0}"#),
        "is a workload of version 2; this program reads version 1"
    );
    let line = |text: &str| error(&format!("{{\"giveway_workload\":1,\"span\":0}}\n\n{text}\n"));
    let tcp = |writes: &str, exchanges: &str| {
        line(&format!(
            r#"{{"tcp":{{"start":0,"way":"up","group":"web","writes":[{writes}],"exchanges":[{exchanges}]}}}}"#
        ))
    };
    let write = r#"{"side":"client","bytes":1,"cue":"own"}"#;
    let nothing = r#"{"side":"client","bytes":0,"cue":"own"}"#;
    assert_eq!(tcp(write, ""), "line 3: the exchanges do not add up to the writes");
    assert_eq!(tcp("", r#"{"writes":0,"took":0}"#), "line 3: an exchange without writes");
    assert_eq!(tcp(nothing, r#"{"writes":1,"took":0}"#), "line 3: a write of 0 bytes");
    assert_eq!(
        line(r#"{"train":{"start":0,"way":"up","group":"dns","packets":[]}}"#),
        "line 3: a train without packets"
    );
    let long = "9223372036854775808";
    let too_long = "ns are too long: write at most 17280000000000000, which is 200 days";
    let rtt =
        format!(r#"{{"tcp":{{"start":0,"way":"up","rtt":{long},"group":"w","writes":[],"exchanges":[]}}}}"#);
    assert_eq!(line(&rtt), format!("line 3: rtt: {long} {too_long}"));
    let train =
        format!(r#"{{"train":{{"start":0,"way":"up","group":"w","packets":[[{long},1],[{long},1]]}}}}"#);
    assert_eq!(line(&train), format!("line 3: packets: all gaps together: 18446744073709551615 {too_long}"));
    assert_eq!(
        error(&format!("{{\"giveway_workload\":1,\"span\":{long}}}\n")),
        format!("line 1: span: {long} {too_long}")
    );
    let all = r#"{"side":"client","bytes":18446744073709551615,"cue":"own"}"#;
    assert!(
        tcp(&format!("{all},{all}"), r#"{"writes":2,"took":0}"#).contains("bytes: one side writes more than")
    );
    for (text, what) in [
        (r#"{"udp":{}}"#, "unknown variant `udp`"),
        (r#"{"train":{"start":0,"way":"sideways","group":"x","packets":[]}}"#, "unknown variant `sideways`"),
        (r#"{"train":{"start":0,"way":"up","colour":"red"}}"#, "unknown field `colour`"),
        ("[", "expected value, at character 1"),
        ("{\"tcp\":{", "EOF while parsing an object, at character 8"),
    ] {
        let error = line(text);
        assert!(error.starts_with("line 3: ") && error.contains(what), "{error}");
    }
}

/// A train in a long line, which is read in parts, equals one in a short line. An error after it is reported
/// with its line.
#[test]
fn long_lines_are_read_in_parts() {
    let packets: giveway_workload::Datagrams =
        (0..200_000u32).map(|n| (u64::from(n) * 7, n as u16)).collect();
    let train = Train { start: 5, direction: Direction::Up, group: "quic".to_owned(), packets };
    let workload = Workload { span: 9, connections: Vec::new(), trains: vec![train.clone(), train] };
    let mut file = Vec::new();
    workload.write(&mut file).unwrap();
    assert!(file.iter().position(|byte| *byte == b'\n').unwrap() < 100);
    assert!(file.len() > 4 << 20, "{}", file.len());
    assert_eq!(Workload::read(&file[..]).unwrap(), workload);
    // A reader that returns few bytes at a time.
    let slow = std::io::BufReader::with_capacity(7, &file[..]);
    assert_eq!(Workload::read(slow).unwrap(), workload);
    file.extend(b"nonsense\n");
    assert!(Workload::read(&file[..]).unwrap_err().to_string().starts_with("line 4: expected "));
    let cut = &file[..file.len() / 4];
    assert!(Workload::read(cut).unwrap_err().to_string().starts_with("line 2: EOF while parsing"));
}

/// A packet of an ordinary stream takes 5 or 6 bytes, for any number of packets.
#[test]
fn packets_take_few_bytes() {
    for count in [100_000u64, 1_000_000] {
        let packets: giveway_workload::Datagrams =
            (0..count).map(|n| (900_000 + n % 200_000, 1228)).collect();
        let each = packets.memory() as f64 / count as f64;
        assert!(each < 6.5, "{each}");
        assert_eq!(packets.len() as u64, count);
    }
}

proptest! {
    #[test]
    fn packets_are_those_that_were_added(packets in prop::collection::vec(any::<(u64, u16)>(), 0..9000)) {
        let kept: giveway_workload::Datagrams = packets.iter().copied().collect();
        prop_assert_eq!(kept.iter().collect::<Vec<_>>(), packets);
    }
}
