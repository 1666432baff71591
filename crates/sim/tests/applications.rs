//! The source `applications`: triggers, think times, access delays, and reports.
//!
//! Node 0 is local and node 1 is far. The link between them has 1 Gbit/s and no delay, so that all delay is
//! the access delay of the connection and a packet takes microseconds. A round trip is 100 ms unless stated.

use std::fmt::Write as _;

use crate::support::Lab;
use giveway_qdisc::{Ending, FlowKind, FlowReport, Invalid, Meta, Probe, Rate, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Plan, SOURCES, Segment, Sim, SourceContext, TcpConfig};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// All flow reports, and the times of datagrams.
#[derive(Default, PartialEq, Debug)]
struct Log {
    flows: Vec<FlowReport>,
    datagrams: Vec<(Time, u16, u32)>,
}

impl Probe<Segment> for Log {
    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn on_emission(&mut self, node: u16, meta: &Meta, segment: &Segment, at: Time) {
        if segment.has(Segment::DATAGRAM) {
            self.datagrams.push((at, node, meta.bytes));
        }
    }
}

impl Log {
    fn of(&self, kind: FlowKind) -> Vec<&FlowReport> {
        self.flows.iter().filter(|flow| flow.kind == kind).collect()
    }
}

/// A workload file with these lines.
fn file(lines: &[Value]) -> NamedTempFile {
    let mut text = "{\"giveway_workload\":1,\"span\":1000000000}\n".to_owned();
    for line in lines {
        writeln!(text, "{line}").unwrap();
    }
    let file = NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

/// A connection from the local side with a round trip of 100 ms.
fn connection(writes: &Value, exchanges: &Value) -> Value {
    let rtt = 100_000_000;
    json!({ "tcp": { "start": 0, "way": "up", "rtt": rtt, "group": "web", "writes": writes, "exchanges": exchanges } })
}

fn context(lab: &Lab) -> SourceContext {
    lab.context(&[(0, 1)], &TcpConfig::rfc())
}

fn lab(seed: u64, rate: Rate) -> Lab {
    let mut lab = Lab::new(2, seed);
    for (from, to) in [(0, 1), (1, 0)] {
        lab.link(from, to, rate, Span::ZERO, "fifo limit 1000p");
    }
    lab
}

fn spec(parameters: Value) -> giveway_sim::TrafficSpec {
    let source =
        SOURCES.iter().find(|source| source.entry.name == "applications").expect("the source is registered");
    (source.entry.from_json)(parameters).unwrap()
}

fn run_at(rate: Rate, seed: u64, lines: &[Value], more: &Value, until: Time) -> (Log, Vec<String>) {
    let file = file(lines);
    let mut parameters = json!({ "file": file.path() });
    parameters.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let lab = lab(seed, rate);
    let source = spec(parameters).build(&context(&lab)).unwrap();
    let tcp = TcpConfig::rfc();
    let source = SourcePlan { tcp, ..SourcePlan::new("applications", source) };
    let mut sim = Sim::new(Plan {
        network: lab.network,
        sources: vec![source],
        until,
        measured: Time::ZERO..until,
        sample: None,
        sample_senders: false,
        streams: lab.streams.within("run"),
        lookahead: 0,
        timing: giveway_sim::Timing::default(),
    });
    let mut log = Log::default();
    sim.step_to(until, &mut log);
    let remarks = sim.remarks().map(|(_, remark)| remark).collect();
    sim.finish(&mut log);
    (log, remarks)
}

fn run(lines: &[Value]) -> Log {
    run_at(Rate::gbit(1), 1, lines, &json!({}), Time::s(20)).0
}

/// Start and end of every transfer in milliseconds, rounded, because packets take microseconds here.
fn times(log: &Log) -> Vec<(u64, u64)> {
    let ms = |time: Time| (time.as_s() * 1e3).round() as u64;
    log.of(FlowKind::Transfer).iter().map(|flow| (ms(flow.start), ms(flow.end))).collect()
}

/// The request leaves with the last acknowledgement of the handshake. Connecting takes 100 ms, the request 50
/// ms, the think time of the server 30 ms, and its response of fewer than ten segments 50 ms.
#[test]
fn a_request_takes_its_round_trips_and_the_think_time() {
    let log = run(&[connection(
        &json!([
            { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
            { "side": "server", "bytes": 9_000, "cue": { "peer": 500 }, "pause": 30_000_000 },
        ]),
        &json!([{ "writes": 2, "took": 230_000_000 }]),
    )]);
    assert_eq!(times(&log), [(0, 230)]);
    let [report] = log.of(FlowKind::Transfer)[..] else { panic!("one transfer") };
    assert_eq!((report.from, report.to), (1, 0), "a response that is longer than its request is a download");
    assert_eq!((report.bytes, report.delivered, report.goodput_bytes), (9_000, 9_000, 9_000));
    assert_eq!((report.packets, report.ending), (7, Ending::Completed));
}

/// A QUIC connection takes the same times: its handshake has one round trip, too.
#[test]
fn a_quic_connection_goes_through_quic() {
    let over_tcp = connection(
        &json!([
            { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
            { "side": "server", "bytes": 9_000, "cue": { "peer": 500 }, "pause": 30_000_000 },
        ]),
        &json!([{ "writes": 2, "took": 230_000_000 }]),
    );
    let log = run(&[json!({ "quic": over_tcp["tcp"] })]);
    assert_eq!(times(&log), [(0, 230)]);
    let [report] = log.of(FlowKind::Transfer)[..] else { panic!("one transfer") };
    assert_eq!((report.bytes, report.delivered, report.goodput_bytes), (9_000, 9_000, 9_000));
    assert_eq!((report.packets, report.ending), (7, Ending::Completed));
    assert!(log.datagrams.is_empty());
}

/// The client thinks for a second after the first response. That time does not belong to any epoch.
#[test]
fn the_next_request_waits_for_the_response_and_the_think_time() {
    let log = run(&[connection(
        &json!([
            { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
            { "side": "server", "bytes": 1_000, "cue": { "peer": 500 } },
            { "side": "client", "bytes": 300, "cue": { "peer": 1_000 }, "pause": 1_000_000_000 },
            { "side": "server", "bytes": 2_000, "cue": { "peer": 800 } },
        ]),
        &json!([{ "writes": 2, "took": 0 }, { "writes": 2, "took": 0 }]),
    )]);
    assert_eq!(times(&log), [(0, 200), (1_200, 1_300)]);
}

/// The server sends first. For it the connection is established after 150 ms, and its data arrive at 200 ms.
#[test]
fn a_server_may_send_first() {
    let log = run(&[connection(
        &json!([{ "side": "server", "bytes": 100, "cue": { "peer": 0 } }]),
        &json!([{ "writes": 1, "took": 0 }]),
    )]);
    assert_eq!(times(&log), [(0, 200)]);
}

/// The first part arrives at 150 ms and is acknowledged at 200 ms. 700 ms later the writer continues.
#[test]
fn a_pause_within_one_sides_data_counts_from_its_acknowledgement() {
    let log = run(&[connection(
        &json!([
            { "side": "client", "bytes": 5_000, "cue": { "peer": 0 } },
            { "side": "client", "bytes": 6_000, "cue": "own", "pause": 700_000_000 },
        ]),
        &json!([{ "writes": 2, "took": 0 }]),
    )]);
    assert_eq!(times(&log), [(0, 950)]);
    let [report] = log.of(FlowKind::Transfer)[..] else { panic!("one transfer") };
    assert_eq!((report.from, report.to, report.bytes), (0, 1, 11_000), "an upload");
}

/// A client on the far side has the same access delay as a server there.
#[test]
fn the_far_host_may_be_the_client() {
    let mut line = connection(
        &json!([
            { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
            { "side": "server", "bytes": 9_000, "cue": { "peer": 500 } },
        ]),
        &json!([{ "writes": 2, "took": 0 }]),
    );
    line["tcp"]["way"] = json!("down");
    let log = run(&[line]);
    assert_eq!(times(&log), [(0, 200)]);
    assert_eq!(log.of(FlowKind::Transfer)[0].from, 0, "the local server answers");
}

/// Each connection has its own round-trip time: 20 ms, 100 ms, and the median of the others if none was
/// measured.
#[test]
fn connections_keep_their_round_trips() {
    let line = |rtt: Value| {
        let writes = json!([{ "side": "client", "bytes": 500, "cue": { "peer": 0 } }]);
        let mut line = connection(&writes, &json!([{ "writes": 1, "took": 0 }]));
        line["tcp"]["rtt"] = rtt;
        line
    };
    let lines = [line(json!(20_000_000)), line(json!(100_000_000)), line(Value::Null)];
    let mut ends: Vec<u64> = times(&run(&lines)).into_iter().map(|(_, end)| end).collect();
    ends.sort_unstable();
    assert_eq!(ends, [30, 150, 150]);
    let (log, _) = run_at(Rate::gbit(1), 1, &lines, &json!({ "rtt": "40ms" }), Time::s(5));
    assert_eq!(times(&log), [(0, 60); 3], "the parameter rtt overrides them");
}

/// Two connections of one page, which is complete with the slower one.
#[test]
fn a_page_is_reported_beside_its_parts() {
    let part = |start: u64, pause: u64| {
        let mut line = connection(
            &json!([
                { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
                { "side": "server", "bytes": 4_000, "cue": { "peer": 500 }, "pause": pause },
            ]),
            &json!([{ "writes": 2, "took": 0, "page": 7 }]),
        );
        line["tcp"]["start"] = json!(start);
        line
    };
    let log = run(&[part(1_000_000_000, 0), part(1_050_000_000, 300_000_000)]);
    let [page] = log.of(FlowKind::Group)[..] else { panic!("one page") };
    assert_eq!((page.bytes, page.delivered, page.ending), (8_000, 8_000, Ending::Completed));
    assert_eq!(((page.start.as_s() * 1e3).round(), (page.end.as_s() * 1e3).round()), (1_000.0, 1_550.0));
    assert_eq!(log.of(FlowKind::Transfer).len(), 2);
}

/// A document takes 200 ms for its two round trips. 10 ms after it the page opens a connection, and on
/// another one, which was open already, it requests an object after 20 ms. Their captured times do not
/// matter.
#[test]
fn a_page_goes_on_when_its_document_has_arrived() {
    let writes = |after: Value| {
        let mut request = json!({ "side": "client", "bytes": 500, "cue": { "peer": 0 } });
        if !after.is_null() {
            request["after"] = after;
        }
        json!([request, { "side": "server", "bytes": 4_000, "cue": { "peer": 500 } }])
    };
    let once = json!([{ "writes": 2, "took": 0, "page": 0 }]);
    let document = connection(&writes(Value::Null), &once);
    let mut new = connection(&writes(Value::Null), &once);
    new["tcp"]["start"] = json!(900_000_000);
    new["tcp"]["after"] = json!({ "connection": 0, "bytes": 4_000, "pause": 10_000_000 });
    let open = connection(&writes(json!({ "connection": 0, "bytes": 4_000, "pause": 20_000_000 })), &once);
    let log = run(&[document.clone(), new.clone(), open]);
    // The time of an object on the open connection counts from its own start, as it is the first one there.
    assert_eq!(times(&log), [(0, 200), (0, 320), (210, 410)]);
    let [page] = log.of(FlowKind::Group)[..] else { panic!("one page") };
    assert_eq!((page.end.as_s() * 1e3).round(), 410.0);

    // The document of another group is not played: the captured start counts.
    let mut other = document;
    other["tcp"]["group"] = json!("mail");
    let (log, _) = run_at(Rate::gbit(1), 1, &[other, new], &json!({ "group": "web" }), Time::s(5));
    assert_eq!(times(&log), [(900, 1_100)]);
}

/// With 0 bytes a connection starts with the other one, however late that is.
#[test]
fn spare_connections_start_together() {
    let mut lines = [0, 1].map(|_| connection(&json!([]), &json!([])));
    lines[0]["tcp"]["start"] = json!(500_000_000);
    lines[1]["tcp"]["after"] = json!({ "connection": 0, "bytes": 0, "pause": 40_000_000 });
    let (_, remarks) = run_at(Rate::gbit(1), 1, &lines, &json!({}), Time::ms(539));
    assert_eq!(remarks, ["1 connections had not begun at the end of the run"]);
    let (_, remarks) = run_at(Rate::gbit(1), 1, &lines, &json!({}), Time::ms(541));
    assert_eq!(remarks, [""; 0]);
}

#[test]
fn unknown_think_times_are_played_as_wished() {
    let took = |think: &str| {
        let response = json!({
            "side": "server", "bytes": 4_000, "cue": { "peer": 500 }, "pause": 20_000_000,
            "between": [10_000_000, 60_000_000]
        });
        let line = connection(
            &json!([{ "side": "client", "bytes": 500, "cue": { "peer": 0 } }, response]),
            &json!([{ "writes": 2, "took": 0 }]),
        );
        times(&run_at(Rate::gbit(1), 1, &[line], &json!({ "think": think }), Time::s(5)).0)
    };
    assert_eq!(["least", "likely", "most"].map(took), [[(0, 210)], [(0, 220)], [(0, 260)]]);
}

/// 100 kB at 100 kbit/s do not arrive within two seconds. Epochs that did not start count as unfinished, too.
#[test]
fn epochs_that_are_incomplete_at_the_end_are_unfinished() {
    let writes = json!([
        { "side": "client", "bytes": 500, "cue": { "peer": 0 } },
        { "side": "server", "bytes": 100_000, "cue": { "peer": 500 } },
        { "side": "client", "bytes": 500, "cue": { "peer": 100_000 } },
        { "side": "server", "bytes": 700, "cue": { "peer": 1_000 } },
    ]);
    let exchanges = json!([{ "writes": 2, "took": 0, "page": 0 }, { "writes": 2, "took": 0, "page": 0 }]);
    let mut late = connection(&writes, &exchanges);
    late["tcp"]["start"] = json!(5_000_000_000_u64);
    let rate = "100kbit".parse().unwrap();
    let (log, remarks) = run_at(rate, 1, &[connection(&writes, &exchanges), late], &json!({}), Time::s(2));
    let transfers = log.of(FlowKind::Transfer);
    assert_eq!(transfers.len(), 2);
    assert!(transfers.iter().all(|flow| flow.ending == Ending::Unfinished && flow.start == Time::ZERO));
    assert!((15_000..25_000).contains(&transfers[0].delivered), "{}", transfers[0].delivered);
    assert_eq!((transfers[1].bytes, transfers[1].delivered), (700, 0));
    assert_eq!(log.of(FlowKind::Group)[0].ending, Ending::Unfinished);
    assert_eq!(remarks, ["1 connections had not begun at the end of the run"]);
}

#[test]
fn datagrams_leave_at_their_captured_times() {
    let train = |way: &str, group: &str| {
        let packets = json!([[0, 200], [20_000_000, 201], [30_000_000, 202]]);
        json!({ "train": { "start": 1_000_000_000, "way": way, "group": group, "packets": packets } })
    };
    let lines = [train("up", "voice-like"), train("down", "dns")];
    let log = run(&lines);
    let at = |ms| Time::ms(ms);
    let expected = [
        (at(1_000), 0, 200),
        (at(1_000), 1, 200),
        (at(1_020), 0, 201),
        (at(1_020), 1, 201),
        (at(1_050), 0, 202),
        (at(1_050), 1, 202),
    ];
    assert_eq!(log.datagrams, expected);
    let (log, _) = run_at(Rate::gbit(1), 1, &lines, &json!({ "group": "dns" }), Time::s(5));
    assert_eq!(
        log.datagrams.iter().map(|(_, node, _)| *node).collect::<Vec<_>>(),
        [1, 1, 1],
        "only one group"
    );
}

/// Connections start at random times within the spread. The same seed gives the same run.
#[test]
fn seeds_shift_the_beginnings() {
    let lines: Vec<Value> = (0..20)
        .map(|_| {
            connection(
                &json!([{ "side": "client", "bytes": 5, "cue": { "peer": 0 } }]),
                &json!([{ "writes": 1, "took": 0 }]),
            )
        })
        .collect();
    let starts = |seed| {
        let (log, _) = run_at(Rate::gbit(1), seed, &lines, &json!({ "spread": "50ms" }), Time::s(2));
        log.of(FlowKind::Transfer).iter().map(|flow| flow.start).collect::<Vec<_>>()
    };
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1), starts(2));
    assert!(starts(1).iter().all(|start| *start < Time::ms(50)));
    assert!(starts(1).iter().max() > Some(&Time::ms(25)));
}

/// Each seed draws ten stretches of 100 ms with replacement, in which connections start at 10, 110, 210 ms
/// and so on. Two groups of one file have the same draw.
#[test]
fn stretches_are_drawn_anew_for_each_seed() {
    let connection = |number: u64, group: &str| {
        json!({ "tcp": { "start": number * 100_000_000 + 10_000_000, "way": "up", "rtt": 1_000_000, "group": group,
                "writes": [{ "side": "client", "bytes": 1000 + number, "cue": { "peer": 0 } }],
                "exchanges": [{ "writes": 1, "took": 0 }] } })
    };
    let lines: Vec<Value> =
        (0..10).flat_map(|number| [connection(number, "web"), connection(number, "mail")]).collect();
    let drawn = |seed, group: &str| {
        let more = json!({ "resample": "100ms", "group": group });
        let (log, _) = run_at(Rate::gbit(1), seed, &lines, &more, Time::s(2));
        let flows = log.of(FlowKind::Transfer);
        // The stretches begin every 100 ms, in the order of the draw.
        let starts: Vec<u64> = flows.iter().map(|flow| flow.start.as_ps() / 1_000_000_000).collect();
        assert_eq!(starts, (0..10).map(|place| place * 100 + 10).collect::<Vec<u64>>());
        flows.iter().map(|flow| flow.bytes - 1000).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1, "web"), drawn(1, "web"));
    assert_eq!(drawn(1, "web"), drawn(1, "mail"), "what happened at the same time stays together");
    assert_ne!(drawn(1, "web"), drawn(2, "web"));
    let mut once = drawn(1, "web");
    once.sort_unstable();
    once.dedup();
    assert!(once.len() < 10, "with replacement, some stretches are repeated: {once:?}");
}

#[test]
fn invalid_workloads_are_refused() {
    let refused = |parameters: Value, change: fn(&mut SourceContext)| -> Invalid {
        let lab = lab(1, Rate::gbit(1));
        let mut context = context(&lab);
        change(&mut context);
        spec(parameters).build(&context).err().expect("the parameters are refused")
    };
    let missing = refused(json!({ "file": "not-there.jsonl" }), |_| ());
    assert_eq!(missing.parameter, "file");
    assert!(missing.message.contains("not-there.jsonl cannot be opened"), "{missing}");
    let foreign = NamedTempFile::new().unwrap();
    std::fs::write(&foreign, "time,from,to,bytes\n").unwrap();
    let message = refused(json!({ "file": foreign.path() }), |_| ()).message;
    assert!(message.contains("is not a workload: its first line should be"), "{message}");
    let short = file(&[json!({ "tcp": { "start": 0 } })]);
    let message = refused(json!({ "file": short.path() }), |_| ()).message;
    assert!(message.contains("line 2: missing field"), "{message}");
    let good = file(&[connection(&json!([]), &json!([]))]);
    let message = refused(json!({ "file": good.path(), "group": "ssh" }), |_| ()).message;
    assert!(message.contains("\"ssh\" has no traffic in"), "{message}");
    let message = refused(json!({ "file": good.path(), "resample": "1s" }), |_| ()).message;
    assert!(message.contains("write for example 100ms"), "{message}");
    let pairs = refused(json!({ "file": good.path() }), |context| context.pairs = vec![(0, 1), (1, 0)]);
    assert!(pairs.message.contains("name one node on the local side and one on the far side"), "{pairs}");
}
