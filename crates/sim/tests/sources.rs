//! Traffic sources: their packets and sending times, and their remarks.

use std::path::Path;

use crate::support::Lab;
use giveway_qdisc::{Bytes, Ecn, Ending, FlowKind, FlowReport, Invalid, Meta, Probe, Rate, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Plan, SOURCES, Segment, Sim, Source, SourceContext, TcpConfig, TrafficSpec};
use serde_json::{Value, json};

/// Client 0, routers 1 and 2 with 10 Mbit/s between them, server 3; round trip 42 ms.
const CLIENT: u16 = 0;
const SERVER: u16 = 3;

fn home(seed: u64, qdisc: &str) -> Lab {
    let mut lab = Lab::new(4, seed);
    lab.wire(0, 1, Rate::mbit(100), Span::us(500));
    lab.wire(2, 3, Rate::mbit(100), Span::us(500));
    for (from, to) in [(1, 2), (2, 1)] {
        lab.link(from, to, Rate::mbit(10), Span::ms(20), qdisc);
    }
    lab
}

fn spec(name: &str, parameters: Value) -> TrafficSpec {
    let source = SOURCES.iter().find(|source| source.entry.name == name).expect("the source is registered");
    (source.entry.from_json)(parameters).unwrap()
}

fn add(lab: &mut Lab, spec: &TrafficSpec, tcp: &TcpConfig, change: impl FnOnce(&mut SourceContext)) {
    let mut context = lab.context(&[(CLIENT, SERVER)], tcp);
    change(&mut context);
    let source = spec.build(&context).unwrap();
    push(lab, source, tcp);
}

fn push(lab: &mut Lab, source: Box<dyn Source>, tcp: &TcpConfig) {
    let tcp = tcp.clone();
    lab.sources.push(SourcePlan { tcp, ..SourcePlan::new("source", source) });
}

/// All packets that left a host, and all flows that were reported.
#[derive(Default, PartialEq, Debug)]
struct Log {
    sent: Vec<Sent>,
    flows: Vec<FlowReport>,
    drops: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Sent {
    at: Time,
    node: u16,
    datagram: bool,
    meta: Meta,
}

impl Probe<Segment> for Log {
    fn on_emission(&mut self, node: u16, meta: &Meta, segment: &Segment, at: Time) {
        self.sent.push(Sent { at, node, datagram: segment.has(Segment::DATAGRAM), meta: *meta });
    }
    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn on_drop(
        &mut self,
        _: giveway_qdisc::PortId,
        _: &Meta,
        _: &Segment,
        _: giveway_qdisc::DropReason,
        _: Time,
    ) {
        self.drops += 1;
    }
}

impl Log {
    fn transfers(&self, ending: Ending) -> impl Iterator<Item = &FlowReport> {
        self.flows.iter().filter(move |flow| flow.kind == FlowKind::Transfer && flow.ending == ending)
    }
    fn bytes_sent(&self) -> f64 {
        self.sent.iter().map(|sent| f64::from(sent.meta.bytes)).sum()
    }
}

/// Runs and also returns the remarks.
fn run(lab: Lab, until: Time) -> (Log, Vec<String>) {
    let mut log = Log::default();
    let mut sim = Sim::new(Plan {
        network: lab.network,
        sources: lab.sources,
        until,
        measured: Time::s(1)..until,
        sample: None,
        sample_senders: false,
        streams: lab.streams.within("run"),
        lookahead: 0,
        timing: giveway_sim::Timing::default(),
    });
    sim.step_to(until, &mut log);
    let remarks = sim.remarks().map(|(_, remark)| remark).collect();
    sim.finish(&mut log);
    (log, remarks)
}

fn run_one(name: &str, parameters: Value, until: Time) -> (Log, Vec<String>) {
    let mut lab = home(1, "fifo limit 100p");
    add(&mut lab, &spec(name, parameters), &TcpConfig::rfc(), |_| ());
    run(lab, until)
}

fn refusal(name: &str, parameters: Value) -> Invalid {
    let lab = home(1, "fifo limit 100p");
    let context = lab.context(&[(CLIENT, SERVER)], &TcpConfig::rfc());
    spec(name, parameters).build(&context).err().expect("the parameters are refused")
}

/// Configurations that overload the link, so that disciplines differ in what they drop.
fn every_source(folder: &Path) -> Vec<TrafficSpec> {
    let list = folder.join("flows.csv");
    let rows = (0..200).map(|row| format!("{},0,3,{}\n", f64::from(row) * 0.02, 20_000 + row * 100));
    std::fs::write(&list, rows.collect::<String>()).unwrap();
    let datagrams = folder.join("datagrams.csv");
    let rows = (0..4000).map(|row| format!("{},1000,{}\n", f64::from(row) * 0.0005, row % 10));
    std::fs::write(&datagrams, rows.collect::<String>()).unwrap();
    let trace = folder.join("trace.pcap");
    std::fs::write(&trace, pcap(&udp_packets(4000, 500_000))).unwrap();
    let workload = folder.join("workload.jsonl");
    let line = |start: u64| {
        json!({ "tcp": {
            "start": start, "way": "up", "rtt": 20_000_000, "group": "web",
            "writes": [
                { "side": "client", "bytes": 400_000, "cue": { "peer": 0 } },
                { "side": "server", "bytes": 1_000, "cue": { "peer": 400_000 } },
            ],
            "exchanges": [{ "writes": 2, "took": 0 }],
        } })
    };
    let head = json!({ "giveway_workload": 1, "span": 1_000_000_000 });
    let lines = (0..20).map(|number| format!("\n{}", line(number * 50_000_000)));
    std::fs::write(&workload, head.to_string() + &lines.collect::<String>()).unwrap();
    vec![
        spec("bulk", json!({ "flows": 3 })),
        spec("cbr", json!({ "rate": "4mbit", "flows": 3 })),
        spec("cbr", json!({ "rate": "3mbit", "flows": 3, "step": "1mbit", "stagger": "30ms" })),
        spec("poisson", json!({ "rate": "4mbit", "flows": 3 })),
        spec(
            "transfers",
            json!({ "load": "12mbit", "size": { "zipf": { "exponent": 1.2, "max": "300p" } } }),
        ),
        spec(
            "transfers",
            json!({
                "per_second": 20.0, "size": { "lognormal": { "mean": "90000b", "sigma": 1.0 } },
                "concurrent": 4, "cap_policy": "refuse",
            }),
        ),
        spec("quic", json!({ "flows": 3 })),
        spec("quic", json!({ "load": "12mbit", "sizes": { "zipf": { "exponent": 1.2, "max": "300p" } } })),
        spec("web", json!({ "users": 20, "think": "300ms" })),
        spec("web", json!({ "users": 20, "think": "300ms", "transport": "quic" })),
        spec("web", json!({ "users": 20, "think": "300ms", "transport": "quic", "connections": "kept" })),
        spec("web", json!({ "users": 20, "think": "300ms", "connections": "kept" })),
        spec(
            "onoff",
            json!({ "rate": "2mbit", "sources": 12, "off": "300ms", "on": "300ms", "packet": "1000b" }),
        ),
        spec("flow_list", json!({ "file": list })),
        spec("datagram_list", json!({ "file": datagrams })),
        spec("audio", json!({ "rate": "800kbit", "vad": true, "flows": 30 })),
        spec("video", json!({ "rate": "4mbit", "flows": 3 })),
        spec("capture", json!({ "file": trace })),
        spec("applications", json!({ "file": workload, "spread": "200ms" })),
    ]
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_seed_gives_others() {
    let folder = tempfile::tempdir().unwrap();
    for spec in every_source(folder.path()) {
        let once = |seed| {
            let mut lab = home(seed, "fifo limit 30p");
            add(&mut lab, &spec, &TcpConfig::rfc(), |_| ());
            run(lab, Time::s(4)).0
        };
        let (first, second) = (once(1), once(1));
        assert!(!first.flows.is_empty(), "{spec:?} reports its flows");
        assert!(first.drops > 0, "{spec:?} overloads the link");
        assert_eq!(first, second, "{spec:?}");
        // Sources that read files do not depend on the seed.
        if !["flow_list", "datagram_list", "capture"].contains(&spec.name()) {
            assert_ne!(first.flows, once(2).flows, "{spec:?}");
        }
    }
}

/// Common random numbers: open-loop sources offer the same packets to every discipline.
#[test]
fn arrivals_do_not_depend_on_the_discipline() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for spec in every_source(folder.path()) {
        let lasts = spec.name() == "quic" && spec.lasting().is_some();
        if lasts || ["bulk", "web", "applications"].contains(&spec.name()) {
            continue; // bulk has no arrivals, and the others wait for responses
        }
        let offered = |qdisc: &str| {
            let mut lab = home(1, qdisc);
            add(&mut lab, &spec, &TcpConfig::rfc(), |_| ());
            let (log, _) = run(lab, Time::s(4));
            let datagrams: Vec<_> = log.sent.iter().copied().filter(|sent| sent.datagram).collect();
            let mut transfers: Vec<_> = log
                .flows
                .iter()
                .filter(|flow| flow.kind == FlowKind::Transfer)
                .map(|flow| (flow.start, flow.from, flow.to, flow.bytes))
                .collect();
            transfers.sort_unstable();
            assert!(datagrams.len() + transfers.len() > 40);
            (datagrams, transfers, log.drops)
        };
        let (small, large) = (offered("fifo limit 5p"), offered("fifo limit 200p"));
        assert_ne!(small.2, large.2, "{spec:?}: the disciplines drop different numbers of packets");
        assert_eq!(small.0, large.0, "{spec:?}");
        assert_eq!(small.1, large.1, "{spec:?}");
        compared += 1;
    }
    assert_eq!(compared, 12);
}

/// The n-th page of a user is the same for every discipline. Only the time of its click depends on the
/// network.
#[test]
fn pages_do_not_depend_on_the_discipline() {
    let pages = |qdisc: &str| {
        let mut lab = home(1, qdisc);
        add(&mut lab, &spec("web", json!({ "think": "100ms" })), &TcpConfig::rfc(), |_| ());
        run(lab, Time::s(20)).0.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>()
    };
    let (small, large) = (pages("fifo limit 5p"), pages("fifo limit 200p"));
    let both = small.len().min(large.len());
    assert!(both > 20);
    assert_eq!(small[..both], large[..both]);
}

// -- transfers ---------------------------------------------------------------------------------------

#[test]
fn quic_keys_that_do_not_fit_are_refused() {
    let wrong = |parameters| refusal("quic", parameters).to_string();
    insta::assert_snapshot!(wrong(json!({ "per_second": 2.0 })), @"size: transfers that arrive at random need one: write for example size = \"1mb\"");
    insta::assert_snapshot!(wrong(json!({ "per_second": 2.0, "size": "1mb", "flows": 3 })), @"flows: transfers arrive at random: leave it out, or per_second and load");
    insta::assert_snapshot!(wrong(json!({ "load": "2mbit", "size": "1mb", "sizes": { "fixed": "1mb" } })), @"size: size and sizes both set the size: leave one out");
    insta::assert_snapshot!(wrong(json!({ "count": 3, "size": "1mb" })), @"count: it belongs to transfers that arrive at random: write per_second or load besides");
    let per_object = json!({ "transport": "quic", "connections": "per_object" });
    insta::assert_snapshot!(refusal("web", per_object).to_string(), @"connections: a QUIC connection serves all objects of a page: write \"persistent\" or \"kept\"");
}

#[test]
fn transfers_offer_the_configured_load() {
    let size = json!({ "fixed": "20000b" });
    let (log, remarks) = run_one("transfers", json!({ "load": "5mbit", "size": size }), Time::s(200));
    // 31.25 arrivals per second: 6250 in all, with a standard deviation of 79.
    assert!((log.flows.len() as f64 - 6250.0).abs() < 250.0, "{}", log.flows.len());
    assert_eq!(remarks, Vec::<String>::new());
    let gaps: Vec<f64> = {
        let mut starts: Vec<Time> = log.flows.iter().map(|flow| flow.start).collect();
        starts.sort_unstable();
        starts.windows(2).map(|pair| pair[1].since(pair[0]).as_s()).collect()
    };
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "exponential gaps vary as much as their mean");
    assert_eq!(
        log.transfers(Ending::Completed).count() + log.transfers(Ending::Unfinished).count(),
        log.flows.len()
    );
}

#[test]
fn transfers_above_the_limit_are_refused_or_wait() {
    let parameters = |policy: &str| json!({ "per_second": 100.0, "size": { "fixed": "50000b" }, "concurrent": 5, "cap_policy": policy, "count": 600 });
    let (log, remarks) = run_one("transfers", parameters("refuse"), Time::s(10));
    let refused: Vec<_> = log.transfers(Ending::Aborted).collect();
    assert!(refused.len() > 200, "{}", refused.len());
    assert!(refused.iter().all(|flow| flow.delivered == 0 && flow.start == flow.end && flow.bytes == 50_000));
    assert_eq!(log.flows.len(), 600);
    assert_eq!(
        remarks,
        [format!("of 600 transfers that arrived, {} were refused and 0 had to wait", refused.len())]
    );

    let (waited, remarks) = run_one("transfers", parameters("wait"), Time::s(10));
    assert_eq!(waited.flows.len(), 600);
    assert_eq!(waited.transfers(Ending::Aborted).count(), 0);
    // All arrive within about 6 s and are served one after the other. The wait is part of their completion
    // time, and those that never began are reported, too.
    let last = waited.transfers(Ending::Completed).last().unwrap();
    assert!(last.end.since(last.start) > Span::s(2), "{last:?}");
    let never_begun = waited.transfers(Ending::Unfinished).filter(|flow| flow.packets == 0).count();
    assert!(never_begun > 50, "{never_begun}");
    assert!(remarks[0].starts_with("of 600 transfers that arrived, 0 were refused and "), "{remarks:?}");
    // At most five run at a time: a packet of 52 bytes from the client is a SYN.
    let syns = waited.sent.iter().filter(|sent| sent.node == CLIENT && sent.meta.bytes == 52).count();
    assert!(syns <= waited.transfers(Ending::Completed).count() + 5);
}

#[test]
fn invalid_parameters_of_transfers_are_refused() {
    let size = json!({ "fixed": "20000b" });
    let message = |value| refusal("transfers", value).to_string();
    assert_eq!(
        message(json!({ "size": size })),
        "load: the rate of arrivals is missing: write load = \"8mbit\" or per_second = 5.0"
    );
    assert_eq!(
        message(json!({ "size": size, "load": "1mbit", "per_second": 1.0 })),
        "load: load and per_second both set the rate of arrivals: leave one out"
    );
    assert_eq!(
        message(json!({ "size": size, "per_second": -2.0 })),
        "per_second: -2 arrivals per second; write a positive number, for example 5.0"
    );
    assert_eq!(
        message(json!({ "size": size, "per_second": 1.0, "concurrent": 0 })),
        "concurrent: with 0 transfers at once none ever begins: leave it out for no bound"
    );
}

// -- web ---------------------------------------------------------------------------------------------

/// One object of 1000 bytes over an idle path: SYN, SYN-ACK, request, response.
#[test]
fn a_page_takes_the_computed_time() {
    let parameters = json!({
        "think": "1s", "objects": { "fixed": 1 }, "object": { "fixed": "1000b" }, "connections": "per_object",
    });
    let (log, _) = run_one("web", parameters, Time::s(60));
    assert!(log.flows.len() > 30);
    // Propagation takes 21 ms in each direction; 52, 52, 390 and 1040 bytes are sent at 100, 10 and 100
    // Mbit/s.
    let bytes = 52 + 52 + 390 + 1040;
    let exact = Span::ms(84) + Rate::mbit(100).time_for(bytes) * 2 + Rate::mbit(10).time_for(bytes);
    for page in log.transfers(Ending::Completed) {
        assert_eq!((page.from, page.to, page.bytes, page.delivered), (SERVER, CLIENT, 1000, 1000));
        assert_eq!((page.packets, page.retransmitted), (1, 0));
        let took = page.end.since(page.start);
        assert!(took >= exact && took < exact + Span::us(1), "{took}, exactly {exact}");
    }
}

/// A server that responds late delays each page by its own time, and changes nothing else.
#[test]
fn a_late_server_delays_pages_by_its_time() {
    let times = |respond: &str, qdisc: &str| {
        let parameters = json!({
            "think": "1s", "objects": { "fixed": 1 }, "object": { "fixed": "1000b" }, "respond": respond,
        });
        let mut lab = home(1, qdisc);
        add(&mut lab, &spec("web", parameters), &TcpConfig::rfc(), |_| ());
        let pages = run(lab, Time::s(600)).0;
        pages.transfers(Ending::Completed).map(|page| page.end.since(page.start).as_s()).collect::<Vec<_>>()
    };
    let (at_once, late) = (times("0s", "fifo"), times("200ms", "fifo"));
    let most = at_once.iter().copied().fold(0.0, f64::max);
    assert!(late.len() > 400 && late.iter().all(|time| *time > most - 1e-6));
    let mean =
        late.iter().sum::<f64>() / late.len() as f64 - at_once.iter().sum::<f64>() / at_once.len() as f64;
    // The mean of 400 exponential times has a standard deviation of a twentieth.
    assert!((0.17..0.23).contains(&mean), "{mean}");
    assert_eq!(late[..400], times("200ms", "drr")[..400], "the discipline does not change the times");
}

#[test]
fn pages_of_seven_objects_over_each_kind_of_connection() {
    let pages = |more: &[(&str, Value)]| {
        let mut parameters = json!({
            "think": "500ms", "objects": { "fixed": 7 }, "object": { "fixed": "8000b" }, "parallel": 7,
        });
        for (key, value) in more {
            parameters[*key] = value.clone();
        }
        let (log, _) = run_one("web", parameters, Time::s(30));
        let done: Vec<_> = log.transfers(Ending::Completed).cloned().collect();
        assert!(done.len() > 20, "{}", done.len());
        let mean = done.iter().map(|flow| flow.end.since(flow.start).as_s()).sum::<f64>() / done.len() as f64;
        // The handshakes are the packets of 52 bytes; both ends send one.
        let handshakes = log.sent.iter().filter(|sent| sent.meta.bytes == 52).count() as f64 / 2.0;
        (done, mean, handshakes / log.flows.len() as f64)
    };
    let (each, time_each, connections_each) = pages(&[("connections", json!("per_object"))]);
    assert!(each.iter().all(|page| page.bytes == 56_000 && page.delivered == 56_000 && page.packets == 42));
    assert!((connections_each - 7.0).abs() < 0.5, "{connections_each}");
    // 84 ms of round trips and 58.3 kB at 10 Mbit/s.
    assert!((0.13..0.14).contains(&time_each), "{time_each}");

    let (_, time_many, connections_many) = pages(&[("parallel", json!(2))]);
    assert!((connections_many - 2.0).abs() < 0.2, "{connections_many}");
    assert!(time_many > time_each + 0.1, "objects in turn take more round trips: {time_many}");

    let (with_main, time_main, _) = pages(&[("main", json!({ "fixed": "10000b" }))]);
    assert!(with_main.iter().all(|page| page.bytes == 66_000));
    assert!(time_main > time_each + 0.04, "the document comes first: {time_main}");

    let (objects, time_object, _) = pages(&[("report", json!("objects"))]);
    assert!(objects.iter().all(|object| object.bytes == 8_000 && object.packets == 6));
    assert!(time_object < time_each);

    let (uploads, ..) = pages(&[("upload", json!(true))]);
    assert!(uploads.iter().all(|page| (page.from, page.to) == (CLIENT, SERVER) && page.delivered == 56_000));
}

/// The first page takes the handshake, a request and a response. All others take only a request and a
/// response, because the connection is open.
#[test]
fn a_page_on_a_kept_connection_has_no_handshake() {
    let parameters = json!({
        "think": "1s", "objects": { "fixed": 1 }, "object": { "fixed": "1000b" }, "connections": "kept",
    });
    let (log, _) = run_one("web", parameters, Time::s(60));
    // Propagation takes 21 ms in each direction; bytes are sent at 100, 10 and 100 Mbit/s.
    let exact = |crossings, bytes| {
        Span::ms(21) * crossings + Rate::mbit(100).time_for(bytes) * 2 + Rate::mbit(10).time_for(bytes)
    };
    let pages: Vec<_> = log.transfers(Ending::Completed).collect();
    assert!(pages.len() > 30);
    for (number, page) in pages.iter().enumerate() {
        let took = page.end.since(page.start);
        let exact = if number == 0 { exact(4, 52 + 52 + 390 + 1040) } else { exact(2, 390 + 1040) };
        assert!(took >= exact && took < exact + Span::us(1), "page {number}: {took}, exactly {exact}");
        assert_eq!((page.bytes, page.delivered, page.packets), (1000, 1000, 1));
    }
    let handshake: Vec<u16> =
        log.sent.iter().filter(|sent| sent.meta.bytes == 52).map(|sent| sent.node).collect();
    assert_eq!(handshake, [CLIENT, SERVER], "one connection for all pages");
    assert!(log.flows.len() - pages.len() <= 1, "at most one page is incomplete at the end");
}

/// Pages of 1 to 5 objects over at most 3 connections. Each user opens at most 3 in all, each when it is
/// first needed.
#[test]
fn a_user_keeps_as_many_connections_as_its_pages_use_at_once() {
    let connections = |objects: Value| {
        let parameters = json!({
            "think": "200ms", "objects": objects, "object": { "fixed": "1000b" }, "connections": "kept",
            "parallel": 3, "users": 4,
        });
        let (log, _) = run_one("web", parameters, Time::s(30));
        assert!(log.transfers(Ending::Completed).count() > 200);
        assert!(log.transfers(Ending::Completed).all(|page| page.delivered == page.bytes));
        log.sent.iter().filter(|sent| sent.meta.bytes == 52 && sent.node == CLIENT).count()
    };
    assert_eq!(connections(json!({ "fixed": 2 })), 4 * 2);
    assert_eq!(connections(json!({ "fixed": 5 })), 4 * 3);
    assert_eq!(connections(json!({ "pareto": { "shape": 1.1, "min": 1, "max": 5 } })), 4 * 3);
}

#[test]
fn incomplete_pages_are_reported_with_the_bytes_that_arrived() {
    let mut lab = home(1, "fifo limit 100p");
    // Two windows of 64,000 bytes exceed the capacity of the path, but not that of path and buffer. So the
    // link is always busy, and nothing is lost.
    let tcp = TcpConfig { receive_window: Bytes(64_000), ..TcpConfig::rfc() };
    let parameters = json!({ "think": "1ms", "objects": { "fixed": 2 }, "object": { "fixed": "50000000b" } });
    add(&mut lab, &spec("web", parameters), &tcp, |_| ());
    let (log, _) = run(lab, Time::s(5));
    let [page] = &log.flows[..] else { panic!("{:?}", log.flows) };
    assert_eq!((page.ending, page.bytes, page.end), (Ending::Unfinished, 100_000_000, Time::s(5)));
    assert_eq!((log.drops, page.retransmitted), (0, 0));
    // 10 Mbit/s with 1460 of 1500 bytes: 4.87 MB in the measurement interval of 4 s, and some in the first.
    let full = 4.0 * 10e6 / 8.0 * 1460.0 / 1500.0;
    assert!((page.goodput_bytes as f64 / full - 1.0).abs() < 0.002, "{page:?}");
    assert!(page.delivered > page.goodput_bytes + 500_000, "{page:?}");
    assert!(page.packets >= page.delivered.div_ceil(1460));
}

#[test]
fn a_page_whose_connections_abort_is_aborted_and_the_user_continues() {
    let mut lab = Lab::new(2, 1);
    lab.lossy_link(0, 1, Rate::mbit(10), Span::ms(10), "fifo limit 100p", 0.4);
    lab.lossy_link(1, 0, Rate::mbit(10), Span::ms(10), "fifo limit 100p", 0.4);
    let tcp = TcpConfig { give_up: 2, give_up_handshake: 2, rto_min: Span::ms(200), ..TcpConfig::rfc() };
    let web =
        spec("web", json!({ "think": "100ms", "objects": { "fixed": 4 }, "object": { "fixed": "9000b" } }));
    let source = web.build(&lab.context(&[(0, 1)], &tcp)).unwrap();
    push(&mut lab, source, &tcp);
    let (log, _) = run(lab, Time::s(600));
    let (done, broken) = (log.transfers(Ending::Completed).count(), log.transfers(Ending::Aborted).count());
    assert!(broken > 20, "{done} {broken}");
    assert!(log.transfers(Ending::Aborted).all(|page| page.delivered < page.bytes));
    assert!(log.transfers(Ending::Completed).all(|page| page.delivered == page.bytes));
}

/// One connection at a time: the first one, and another for every aborted page except possibly the last. A
/// connection can also abort between pages, if the acknowledgement of the last byte is lost repeatedly.
#[test]
fn a_kept_connection_that_was_aborted_is_replaced_by_the_next_page() {
    let mut lab = Lab::new(2, 1);
    lab.lossy_link(0, 1, Rate::mbit(10), Span::ms(10), "fifo limit 100p", 0.15);
    lab.lossy_link(1, 0, Rate::mbit(10), Span::ms(10), "fifo limit 100p", 0.15);
    let tcp = TcpConfig { give_up: 2, give_up_handshake: 3, rto_min: Span::ms(200), ..TcpConfig::rfc() };
    let parameters = json!({
        "think": "100ms", "objects": { "fixed": 2 }, "object": { "fixed": "9000b" }, "parallel": 1,
        "connections": "kept",
    });
    let source = spec("web", parameters).build(&lab.context(&[(0, 1)], &tcp)).unwrap();
    push(&mut lab, source, &tcp);
    let (log, _) = run(lab, Time::s(600));
    let mut connections: Vec<_> =
        log.sent.iter().filter(|sent| sent.node == 0).map(|sent| sent.meta.flow).collect();
    connections.sort_unstable();
    connections.dedup();
    let (done, broken) = (log.transfers(Ending::Completed).count(), log.transfers(Ending::Aborted).count());
    assert!(broken > 100 && done > broken, "{done} {broken}");
    assert!((broken..broken + 10).contains(&connections.len()), "{} for {broken}", connections.len());
    assert!(log.transfers(Ending::Completed).all(|page| page.delivered == page.bytes));
    let endings: Vec<Ending> = log.flows.iter().map(|page| page.ending).collect();
    let after = endings.windows(2).filter(|two| *two == [Ending::Aborted, Ending::Completed]).count();
    assert!(after > 50, "users continue after {after} aborted pages");
}

// -- datagrams ---------------------------------------------------------------------------------------

/// Three flows for each of two pairs. Rates ascend over the first flow of each pair, then over the second
/// flow of each. The numbers of flows follow that order, independently of which flow starts first.
#[test]
fn cbr_flows_can_be_an_arithmetic_series() {
    let series = |more: &[(&str, Value)]| {
        let mut parameters = json!({ "rate": "100kbit", "step": "50kbit", "flows": 3, "packet": "500b" });
        for (key, value) in more {
            parameters[*key] = value.clone();
        }
        let mut lab = home(1, "fifo limit 100p");
        add(&mut lab, &spec("cbr", parameters), &TcpConfig::rfc(), |context| {
            context.pairs = vec![(CLIENT, SERVER), (CLIENT, 2)];
            context.stop = Time::s(101);
        });
        let (log, _) = run(lab, Time::s(102));
        let mut flows = log.flows;
        flows.sort_by_key(|flow| flow.id);
        flows
    };
    let starts = |flows: &[FlowReport]| {
        flows.iter().map(|flow| flow.start.as_ps() / 1_000_000_000).collect::<Vec<u64>>()
    };

    let flows = series(&[]);
    let ip_bytes = |flow: &FlowReport| (flow.bytes + 28 * flow.packets) as f64;
    let rates: Vec<f64> =
        flows.iter().map(|flow| (ip_bytes(flow) * 8.0 / 100.0 / 5_000.0).round() * 5_000.0).collect();
    assert_eq!(rates, [100e3, 150e3, 200e3, 250e3, 300e3, 350e3]);
    assert_eq!(flows.iter().map(|flow| flow.to).collect::<Vec<_>>(), [3, 2, 3, 2, 3, 2]);
    // Each flow begins at a random time in its first interval: 40 ms at 100 kbit/s.
    let intervals = [40, 27, 20, 16, 14, 12];
    assert!(starts(&flows).iter().zip(intervals).all(|(start, most)| *start < most), "{flows:?}");

    let later = series(&[("stagger", json!("50ms"))]);
    assert_eq!(starts(&later), [0, 50, 100, 150, 200, 250]);
    let fastest_first = series(&[("stagger", json!("50ms")), ("fastest_first", json!(true))]);
    assert_eq!(starts(&fastest_first), [250, 200, 150, 100, 50, 0]);
    for flows in [&later, &fastest_first] {
        assert!(flows.windows(2).all(|two| two[0].id + 1 == two[1].id));
        assert!(flows.windows(2).all(|two| two[0].bytes < two[1].bytes), "the same rates in the same order");
        assert!(flows.iter().all(|flow| flow.lost == Some(0)));
    }
}

/// With a batch a flow hands over five packets at once, with the times at which it sends them one by one
/// otherwise. `fq` on the link of the host restores these times; any other discipline ignores them.
#[test]
fn a_batch_has_the_times_of_single_packets() {
    let sent = |batch: u32| {
        let (log, _) = run_one("cbr", json!({ "rate": "1mbit", "flows": 2, "batch": batch }), Time::s(2));
        log.sent
    };
    let (single, batches) = (sent(1), sent(5));
    let of_each = |sent: &[Sent], time: fn(&Sent) -> Time| {
        let mut of_each: std::collections::BTreeMap<u64, Vec<Time>> = Default::default();
        sent.iter().for_each(|one| of_each.entry(one.meta.flow.0).or_default().push(time(one)));
        of_each
    };
    let departures = of_each(&batches, |one| one.meta.label.departure().expect("each packet has one"));
    for times in departures.values() {
        assert!(times.is_sorted() && times.len() > 200);
    }
    assert!(single.iter().all(|one| one.meta.label.departure().is_none()));
    // All packets of a batch are handed over at the departure time of its first.
    for (flow, times) in of_each(&batches, |one| one.at) {
        for (handed, departs) in times.chunks(5).zip(departures[&flow].chunks(5)) {
            assert!(handed.iter().all(|at| *at == departs[0]));
        }
    }

    let leaves = |qdisc: &str| {
        let mut lab = home(1, qdisc);
        add(&mut lab, &spec("cbr", json!({ "rate": "1mbit", "batch": 5 })), &TcpConfig::rfc(), |_| ());
        let mut departed = Departed::default();
        let mut sim = Sim::new(Plan {
            network: lab.network,
            sources: lab.sources,
            until: Time::s(2),
            measured: Time::ZERO..Time::s(2),
            sample: None,
            sample_senders: false,
            streams: lab.streams.within("run"),
            lookahead: 0,
            timing: giveway_sim::Timing::default(),
        });
        sim.step_to(Time::s(2), &mut departed);
        departed.early
    };
    // Four of five packets leave before their time, back to back.
    assert!(leaves("fifo limit 100p") > 150 && leaves("fq_codel") > 150);
    assert_eq!(leaves("fq"), 0);
    let refused = refusal("cbr", json!({ "rate": "1mbit", "batch": 0 }));
    assert_eq!(refused.to_string(), "batch: 0 is not between 1 and 10000: write for example 10");
}

/// Counts packets that the link between the routers sends before their departure times.
#[derive(Default)]
struct Departed {
    early: u64,
}

impl Probe<Segment> for Departed {
    fn on_transmission(&mut self, at: giveway_qdisc::PortId, meta: &Meta, _: &Segment, now: Time) {
        // The two wires have the ports before it.
        let between = at == giveway_qdisc::PortId(4);
        self.early += u64::from(between && meta.label.departure().is_some_and(|departs| now < departs));
    }
}

/// The start in the report is the time at which the first datagram left.
#[test]
fn a_staggered_flow_begins_at_its_reported_start() {
    let (log, _) = run_one(
        "cbr",
        json!({ "rate": "100kbit", "flows": 4, "stagger": "1500ms", "packet": "500b" }),
        Time::s(6),
    );
    let mut begun: Vec<_> = Vec::new();
    for sent in &log.sent {
        if begun.iter().all(|(flow, _)| *flow != sent.meta.flow) {
            begun.push((sent.meta.flow, sent.at));
        }
    }
    let begun: Vec<Time> = begun.into_iter().map(|(_, at)| at).collect();
    assert_eq!(begun, [Time::ZERO, Time::ms(1_500), Time::ms(3_000), Time::ms(4_500)]);
    assert_eq!(log.flows.iter().map(|flow| flow.start).collect::<Vec<_>>(), begun);
}

/// Two connections for each of two pairs: numbers, pairs and beginnings follow one order, and nothing is
/// random.
#[test]
fn bulk_flows_can_begin_one_after_the_other() {
    let series = |seed, stagger: &str| {
        let mut lab = home(seed, "fifo limit 100p");
        let bulk = spec("bulk", json!({ "flows": 2, "stagger": stagger, "size": "20000b" }));
        add(&mut lab, &bulk, &TcpConfig::rfc(), |context| {
            context.pairs = vec![(CLIENT, SERVER), (CLIENT, 2)];
            context.stop = Time::s(5);
        });
        let mut flows = run(lab, Time::s(8)).0.flows;
        flows.sort_by_key(|flow| flow.id);
        flows.iter().map(|flow| (flow.start, flow.to)).collect::<Vec<_>>()
    };
    let at = |ms: [u64; 4]| ms.map(Time::ms).into_iter().zip([SERVER, 2, SERVER, 2]).collect::<Vec<_>>();
    assert_eq!(series(1, "1500ms"), at([0, 1500, 3000, 4500]));
    assert_eq!(series(2, "1500ms"), at([0, 1500, 3000, 4500]));
    assert_eq!(series(1, "0s"), at([0; 4]));
}

#[test]
fn bulk_flows_begin_within_their_spread() {
    let starts = |parameters| {
        let starts = run_one("bulk", parameters, Time::s(2)).0.flows;
        starts.iter().map(|flow| flow.start).max().unwrap()
    };
    let usual = starts(json!({ "flows": 50 }));
    // All of 50 begin before 80 ms with one seed in 70,000.
    assert!((Time::ms(80)..Time::ms(100)).contains(&usual), "{usual}");
    assert_eq!(starts(json!({ "flows": 50, "spread": "0s" })), Time::ZERO);
}

#[test]
fn an_invalid_series_is_refused() {
    let lab = home(1, "fifo limit 100p");
    let message = |name, parameters| {
        let mut context = lab.context(&[(CLIENT, SERVER)], &TcpConfig::rfc());
        (context.start, context.stop) = (Time::s(1), Time::s(3));
        spec(name, parameters).build(&context).err().expect("the parameters are refused").to_string()
    };
    let late = "stagger: flow 10 of 0 to 19 would begin 2s after the source, which stops before that: write less than 200ms";
    assert_eq!(message("cbr", json!({ "rate": "1mbit", "flows": 20, "stagger": "200ms" })), late);
    assert_eq!(message("bulk", json!({ "flows": 20, "stagger": "200ms" })), late);
    assert_eq!(
        message("bulk", json!({ "stagger": "200ms", "spread": "100ms" })),
        "spread: with a stagger of 200ms each flow begins at a fixed time, and nothing is spread: leave spread \
         or stagger out"
    );
    let needs = "fastest_first: it reverses the order in which flows of different rates begin: it needs a step, such as \
                 step = \"500kbit\", and a stagger, such as stagger = \"50ms\"";
    assert_eq!(message("cbr", json!({ "rate": "1mbit", "step": "1mbit", "fastest_first": true })), needs);
    assert_eq!(message("cbr", json!({ "rate": "1mbit", "stagger": "1ms", "fastest_first": true })), needs);
}

/// Numbers of datagrams in consecutive windows are independent and Poisson: mean and variance are both m.
/// Over n windows the mean has the standard deviation sqrt(m/n), the variance sqrt((m + 2m²)/n), which
/// follows from the fourth central moment m + 3m², and the correlation of neighbours 1/sqrt(n). All must lie
/// within 3.29 of these: 99.9 % of all seeds do.
#[test]
fn poisson_datagrams_are_a_poisson_process() {
    const LIKELY: f64 = 3.29;
    let parameters = json!({ "rate": "400kbit", "packet": "500b", "flows": 2 });
    let (log, _) = run_one("poisson", parameters, Time::s(500));
    assert!(log.sent.iter().all(|sent| sent.meta.bytes == 500));
    assert_eq!(log.flows.len(), 2);
    // 100 a second from each flow.
    let of_flow = |flow: &FlowReport| flow.bytes as f64 / 472.0;
    for flow in &log.flows {
        let (sent, expected) = (of_flow(flow), 100.0 * 499.0);
        assert!(
            (sent - expected).abs() < LIKELY * expected.sqrt(),
            "{sent} of {expected} in the measurement interval"
        );
    }
    for window in [Span::ms(5), Span::ms(100)] {
        let windows = (Span::s(500).as_ps() / window.as_ps()) as usize;
        let mut counts = vec![0.0; windows];
        for sent in &log.sent {
            counts[(sent.at.as_ps() / window.as_ps()) as usize] += 1.0;
        }
        let (n, m) = (windows as f64, 200.0 * window.as_s());
        let mean = counts.iter().sum::<f64>() / n;
        let deviations: Vec<f64> = counts.iter().map(|count| count - mean).collect();
        let variance = deviations.iter().map(|deviation| deviation * deviation).sum::<f64>() / (n - 1.0);
        let together = deviations.windows(2).map(|two| two[0] * two[1]).sum::<f64>() / n / variance;
        assert!((mean - m).abs() < LIKELY * (m / n).sqrt(), "{window}: mean {mean}, not {m}");
        assert!(
            (variance - m).abs() < LIKELY * ((m + 2.0 * m * m) / n).sqrt(),
            "{window}: variance {variance}, not {m}"
        );
        assert!(together.abs() < LIKELY / n.sqrt(), "{window}: neighbours correlate by {together}");
    }
}

/// Additional flows do not change the times of the others, and the stop ends all of them.
#[test]
fn poisson_flows_are_independent_of_each_other() {
    let sent = |flows: u32| {
        let mut lab = home(1, "fifo limit 100p");
        let poisson = spec("poisson", json!({ "rate": "1mbit", "flows": flows }));
        add(&mut lab, &poisson, &TcpConfig::rfc(), |context| {
            (context.start, context.stop) = (Time::s(1), Time::s(3));
        });
        run(lab, Time::s(5)).0.sent.iter().map(|sent| sent.at).collect::<Vec<_>>()
    };
    let (one, three) = (sent(1), sent(3));
    assert!(one.len() > 100 && three.len() > 2 * one.len(), "{} and {}", one.len(), three.len());
    assert!(one.iter().all(|at| three.contains(at)));
    assert!(three.iter().all(|at| (Time::s(1)..Time::s(3)).contains(at)));
}

#[test]
fn audio_is_a_packet_of_160_bytes_every_20_milliseconds() {
    let (log, _) = run_one("audio", json!({}), Time::s(10));
    assert_eq!(log.sent.len(), 500);
    assert!(log.sent.iter().all(|sent| sent.meta.bytes == 160));
    let phase = |sent: &Sent| sent.at.as_ps() % Span::ms(20).as_ps();
    let (least, most) =
        (log.sent.iter().map(phase).min().unwrap(), log.sent.iter().map(phase).max().unwrap());
    assert!((Span::us(900)..=Span::ms(1)).contains(&Span::from_ps(most - least)), "late by up to 1 ms");
}

#[test]
fn audio_with_pauses_has_the_talk_share_of_p59() {
    let (log, _) = run_one("audio", json!({ "vad": true, "flows": 40, "jitter": "0ms" }), Time::s(200));
    // 1.004 s of every 2.591 s. 40 flows with 77 talk spurts each give that share to about 1 %.
    let share = log.sent.len() as f64 / (40.0 * 200.0 * 50.0);
    assert!((share / (1.004 / 2.591) - 1.0).abs() < 0.05, "{share}");
}

#[test]
fn video_has_its_rate_its_bursts_and_its_key_frames() {
    let parameters = json!({ "rate": "2mbit", "key_every": 30, "key_ratio": 6.0, "variation": 0.3 });
    let (log, _) = run_one("video", parameters, Time::s(100));
    assert!((log.bytes_sent() * 8.0 / 100.0 / 2e6 - 1.0).abs() < 0.02, "{}", log.bytes_sent() * 0.08);
    assert!(log.sent.iter().all(|sent| (64..=1200).contains(&sent.meta.bytes)));
    let mut frames: Vec<(Time, u32)> = Vec::new();
    for sent in &log.sent {
        match frames.last_mut() {
            Some((at, bytes)) if *at == sent.at => *bytes += sent.meta.bytes,
            _ => frames.push((sent.at, sent.meta.bytes)),
        }
    }
    assert_eq!(frames.len(), 3000);
    let mean = |key: bool| {
        let of: Vec<f64> = frames
            .iter()
            .enumerate()
            .filter(|(number, _)| (number % 30 == 0) == key)
            .map(|(_, (_, bytes))| f64::from(*bytes))
            .collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    assert!((mean(true) / mean(false) / 6.0 - 1.0).abs() < 0.1, "{} {}", mean(true), mean(false));
}

#[test]
fn onoff_offers_its_nominal_load_when_its_tails_are_light() {
    for (law, more) in
        [("exponential", json!({ "on": "50ms" })), ("pareto", json!({ "shape_on": 3.5, "shape_off": 3.5 }))]
    {
        let mut parameters = json!({
            "rate": "4mbit", "packet": "500b", "sources": 10, "load": "3mbit", "law": law,
        });
        for (key, value) in more.as_object().unwrap() {
            parameters[key] = value.clone();
        }
        let (log, remarks) = run_one("onoff", parameters, Time::s(300));
        let load = log.bytes_sent() * 8.0 / 300.0;
        assert!((load / 3e6 - 1.0).abs() < 0.05, "{law}: {load}");
        assert_eq!(remarks, ["nominal load 3mbit"]);
        assert_eq!(log.flows.len(), 10, "a flow per source");
    }
}

#[test]
fn merged_sources_send_one_packet_after_the_other() {
    let parameters = json!({
        "rate": "5mbit", "packet": "500b", "sources": 32, "load": "3400kbit", "shape_on": 1.7, "shape_off": 1.5,
        "merge": true,
    });
    let (log, _) = run_one("onoff", parameters, Time::s(60));
    let slot = Rate::mbit(5).time_for(500);
    let gaps: Vec<Span> = log.sent.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(gaps.iter().all(|gap| *gap >= slot));
    assert!(
        gaps.iter().filter(|gap| **gap == slot).count() > gaps.len() / 4,
        "the shared link is often busy"
    );
    assert_eq!(log.flows.len(), 1, "the sources of a pair are one flow");
}

/// Variance-time plot: with heavy tails the variance of the load over blocks of m bins falls like m^(2H - 2).
#[test]
fn heavy_tails_are_bursty_on_every_time_scale_and_light_ones_are_not() {
    let hurst = |more: &[(&str, Value)]| {
        let mut parameters = json!({
            "rate": "12500kbit", "packet": "500b", "sources": 32, "load": "3400kbit", "merge": true,
        });
        for (key, value) in more {
            parameters[*key] = value.clone();
        }
        let (log, _) = run_one("onoff", parameters, Time::s(2000));
        let mut bins = vec![0.0; 200_000];
        for sent in &log.sent {
            bins[(sent.at.as_ps() / Span::ms(10).as_ps()) as usize] += f64::from(sent.meta.bytes);
        }
        // Blocks of 10 ms to 20.48 s.
        let points: Vec<(f64, f64)> = (0..12)
            .map(|octave| {
                let block = 1 << octave;
                let means: Vec<f64> =
                    bins.chunks_exact(block).map(|bins| bins.iter().sum::<f64>() / block as f64).collect();
                let mean = means.iter().sum::<f64>() / means.len() as f64;
                let variance =
                    means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / means.len() as f64;
                (libm::log(block as f64), libm::log(variance))
            })
            .collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>()
            / points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>();
        1.0 + slope / 2.0
    };
    // In the limit (3 - 1.2) / 2 = 0.9. Estimates from 32 sources and 2000 s vary from 0.69 to 0.96.
    let heavy = hurst(&[("shape_on", json!(1.4)), ("shape_off", json!(1.2))]);
    assert!((0.69..0.96).contains(&heavy), "{heavy}");
    // 0.5 without memory.
    let light = hurst(&[("law", json!("exponential")), ("on", json!("1ms"))]);
    assert!((0.45..0.55).contains(&light), "{light}");
}

// -- files -------------------------------------------------------------------------------------------

#[test]
fn a_flow_list_gives_the_transfers() {
    let folder = tempfile::tempdir().unwrap();
    let text = "start_s,src,dst,size_bytes\n2.5,3,0,1000\n0.25,0,3,70000\n0.25,3,0,500\n9,0,3,5\n";
    std::fs::write(folder.path().join("flows.csv"), text).unwrap();
    let mut lab = home(1, "fifo limit 100p");
    let list = spec("flow_list", json!({ "file": "flows.csv" }));
    add(&mut lab, &list, &TcpConfig::rfc(), |context| {
        context.folder = folder.path().into();
        context.start = Time::s(1);
        context.stop = Time::s(5);
    });
    let (log, _) = run(lab, Time::s(20));
    let mut seen: Vec<_> =
        log.flows.iter().map(|flow| (flow.start, flow.from, flow.to, flow.bytes)).collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [(Time::ms(1250), 0, 3, 70_000), (Time::ms(1250), 3, 0, 500), (Time::ms(3500), 3, 0, 1000)]
    );

    let missing = refusal("flow_list", json!({ "file": "nowhere.csv" }));
    assert_eq!(missing.parameter, "file");
    assert!(missing.message.contains("nowhere.csv: cannot be read: "), "{missing}");
    std::fs::write(folder.path().join("flows.csv"), "0,0,7,1000\n").unwrap();
    let bad = refusal("flow_list", json!({ "file": folder.path().join("flows.csv") }));
    assert!(bad.message.ends_with("row 1, column dst: found \"7\", expected the name of a node"), "{bad}");
}

/// Each row is one packet of its flow.
#[test]
fn a_datagram_list_gives_the_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    let text = "time_s,src,dst,size_bytes,flow\n2.5,3,0,1000,reply\n0.25,0,3,700,1\n0.25,0,3,64,2\n1,0,3,65,1\n9,0,3,99,1\n";
    std::fs::write(folder.path().join("datagrams.csv"), text).unwrap();
    let mut lab = home(1, "fifo limit 100p");
    let list = spec("datagram_list", json!({ "file": "datagrams.csv" }));
    add(&mut lab, &list, &TcpConfig::rfc(), |context| {
        context.folder = folder.path().into();
        context.start = Time::s(1);
        context.stop = Time::s(5);
    });
    let (log, _) = run(lab, Time::s(20));
    let seen: Vec<_> = log
        .sent
        .iter()
        .map(|sent| (sent.at, sent.node, sent.meta.bytes, sent.meta.header.is_short()))
        .collect();
    assert_eq!(
        seen,
        [
            (Time::ms(1250), 0, 700, false),
            (Time::ms(1250), 0, 64, true),
            (Time::s(2), 0, 65, false),
            (Time::ms(3500), 3, 1000, false)
        ]
    );
    assert_eq!(log.sent[0].meta.flow, log.sent[2].meta.flow);
    assert_ne!(log.sent[0].meta.flow, log.sent[1].meta.flow);
    let mut flows: Vec<_> =
        log.flows.iter().map(|flow| (flow.start, flow.from, flow.to, flow.bytes, flow.lost)).collect();
    flows.sort_unstable();
    assert_eq!(
        flows,
        [
            (Time::ms(1250), 0, 3, 64 - 28, Some(0)),
            (Time::ms(1250), 0, 3, 765 - 2 * 28, Some(0)),
            (Time::ms(3500), 3, 0, 1000 - 28, Some(0))
        ]
    );
}

/// A pcap file of raw IP packets: (microseconds, packet).
fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (us, packet) in packets {
        let length = packet.len() as u32;
        for word in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// An IPv4 packet without options; `rest` is everything after its header.
fn ipv4(tos: u8, protocol: u8, rest: &[u8]) -> Vec<u8> {
    let length = (20 + rest.len() as u16).to_be_bytes();
    let mut packet =
        vec![0x45, tos, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(rest);
    packet
}

fn udp(port: u16, bytes: usize) -> Vec<u8> {
    let mut rest = vec![0; bytes - 20];
    rest[..2].copy_from_slice(&port.to_be_bytes());
    ipv4(0, 17, &rest)
}

/// `count` packets of 1000 bytes in 10 flows, evenly spread over `within_us` microseconds.
fn udp_packets(count: u64, within_us: u64) -> Vec<(u64, Vec<u8>)> {
    (0..count).map(|number| (7_000_000 + number * within_us / count, udp(number as u16 % 10, 1000))).collect()
}

#[test]
fn a_capture_is_replayed_with_its_times_lengths_and_flows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcap");
    let mut ack = vec![0; 20];
    (ack[12], ack[13]) = (0x50, 0x10);
    let one_byte = [&ack[..], &[1]].concat();
    let packets = [
        (5_000_000, udp(1, 1000)),
        (5_000_000, ipv4(0b10, 6, &ack)),
        (5_200_000, vec![0x00; 46]), // not IP
        (5_250_000, ipv4(0b11, 6, &one_byte)),
        (5_100_000, udp(2, 64)), // the clock was set back
        (6_000_000, udp(1, 300)),
    ];
    std::fs::write(&file, pcap(&packets)).unwrap();
    let replay = |more: &[(&str, Value)]| {
        let mut parameters = json!({ "file": file });
        for (key, value) in more {
            parameters[*key] = value.clone();
        }
        let mut lab = home(1, "fifo limit 100p");
        let start = |context: &mut SourceContext| context.start = Time::s(2);
        add(&mut lab, &spec("capture", parameters), &TcpConfig::rfc(), start);
        run(lab, Time::s(10))
    };
    let (log, remarks) = replay(&[("ecn", json!("keep"))]);
    let seen: Vec<_> = log
        .sent
        .iter()
        .map(|sent| (sent.at, sent.meta.bytes, sent.meta.header.is_short(), sent.meta.ecn))
        .collect();
    assert_eq!(
        seen,
        [
            (Time::s(2), 1000, false, Ecn::NotCapable),
            (Time::s(2), 40, true, Ecn::Ect0),
            (Time::ms(2250), 41, false, Ecn::Marked),
            (Time::ms(2250), 64, true, Ecn::NotCapable),
            (Time::s(3), 300, false, Ecn::NotCapable),
        ]
    );
    assert_eq!(log.sent[0].meta.flow, log.sent[4].meta.flow);
    assert_eq!(log.sent[1].meta.flow, log.sent[2].meta.flow);
    assert_eq!(log.flows.len(), 3);
    assert_eq!(remarks, ["1 packets of the capture were not IP and left out"]);

    let (cleared, _) = replay(&[("speed", json!(2.0)), ("limit", json!("4p"))]);
    assert_eq!(cleared.sent.len(), 4);
    assert_eq!(cleared.sent[3].at, Time::ms(2125));
    assert!(cleared.sent.iter().all(|sent| sent.meta.ecn == Ecn::NotCapable));
}

#[test]
fn an_invalid_capture_is_refused_and_damage_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcap");
    let message = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = refusal("capture", json!({ "file": file }));
        assert_eq!(error.parameter, "file");
        error.message.replace(&*file.to_string_lossy(), "FILE")
    };
    assert_eq!(message(b"\x01ello"), "FILE is neither pcap nor pcapng: it begins with 01 65 6c 6c");
    assert_eq!(message(&pcap(&[(0, vec![0; 50]), (1, vec![0; 50])])), "FILE holds no IP packet (2 others)");
    let whole = pcap(&udp_packets(10, 100));
    assert_eq!(
        message(&whole[..500]),
        "FILE is damaged at byte 24 (after 0 packets): the file ends after 460 of 1000 bytes of a record"
    );
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let (log, remarks) = run_one("capture", json!({ "file": file }), Time::s(1));
    assert_eq!(log.sent.len(), 9);
    assert_eq!(
        remarks,
        [
            "the capture is damaged at byte 9168 (after 9 packets): the file ends after 999 of 1000 bytes of a record; \
          0 packets were not IP"
        ]
    );
    let slow = refusal("capture", json!({ "file": file, "speed": 0.0 }));
    assert_eq!(slow.to_string(), "speed: 0; write a positive number, for example 1.0");
}
