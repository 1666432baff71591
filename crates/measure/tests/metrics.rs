//! Tests of metrics with runs whose results are calculated by hand, for those metrics that `recorder.rs` does
//! not test. The last test checks that every metric has a test.

use crate::support::{BOTTLENECK, close, layout, missing, transfer, with_flows};
use giveway_measure::{Layout, METRICS, Recorder, Subject, Unit, named};
use giveway_qdisc::{
    DropReason, Ending, FlowKey, FlowKind, FlowReport, Meta, NextHops, PortId, Probe, Span, Time,
};

/// Sends a packet at its arrival. `next_hop` is the node behind the neighbour; `None` if it ends at the
/// neighbour.
fn pass(recorder: &mut Recorder, bytes: u32, next_hop: Option<u16>, now: Time) {
    let meta =
        Meta { bytes, arrived: now, flow: FlowKey(7), next_hops: NextHops::new(next_hop), ..Meta::default() };
    Probe::<()>::on_arrival(recorder, BOTTLENECK, &meta, now);
    Probe::<()>::on_transmission(recorder, BOTTLENECK, &meta, &(), now);
}

/// 1,250 bytes take 10 ms. Three packets have 4 ms, 10 ms and 3 ms within the interval: 17 ms of a second.
/// One ends before the interval, and one starts after it.
#[test]
fn the_link_is_busy_for_the_time_within_the_interval() {
    let mut recorder = Recorder::new(layout());
    for ms in [500, 994, 1_500, 1_997, 2_100] {
        pass(&mut recorder, 1_250, None, Time::ms(ms));
    }
    close(&recorder.finish(), "utilization", 0.017);
    // The interval ends while the last packet is on the link.
    let mut recorder = Recorder::new(layout());
    pass(&mut recorder, 1_250, None, Time::ms(1_995));
    close(&recorder.finish(), "utilization", 0.005);
    // 250,000 bytes take 2 s, longer than the whole interval.
    let mut recorder = Recorder::new(layout());
    pass(&mut recorder, 250_000, None, Time::ms(500));
    close(&recorder.finish(), "utilization", 1.0);
    close(&Recorder::<()>::new(layout()).finish(), "utilization", 0.0);
}

/// The flows that cross the bottleneck deliver 1,000 and 500 data bytes within the interval of 1 s. The third
/// flow takes another route, over the other measured port. A group does not count, because its transfers do.
#[test]
fn goodput_is_that_of_flows_over_the_measured_ports() {
    let crossed = giveway_measure::PortsOnRoute::new(std::sync::Arc::new(|pairs: &[(u16, u16)]| {
        pairs.iter().map(|pair| vec![if *pair == (0, 1) { BOTTLENECK } else { PortId(2) }]).collect()
    }));
    let measured = vec![BOTTLENECK, PortId(2)];
    let mut recorder = Recorder::new(Layout { crossed: Some(crossed), measured, ..layout() });
    let began_before = FlowReport { start: Time::ZERO, delivered: 9_000, goodput_bytes: 500, ..transfer(2) };
    let elsewhere = FlowReport { from: 1, to: 0, goodput_bytes: 70_000, ..transfer(3) };
    let group = FlowReport { kind: FlowKind::Group, goodput_bytes: 1_500, ..transfer(4) };
    for flow in [transfer(1), began_before, elsewhere, group] {
        Probe::<()>::on_flow(&mut recorder, &flow);
    }
    let record = recorder.finish();
    close(&record, "goodput_bps", 12_000.0);
    close(&record, "at.port-1.goodput_bps", 12_000.0);
    close(&record, "at.port-2.goodput_bps", 560_000.0);
    // All flows of a group of sources count, whatever their route.
    close(&record, "src.web.goodput_bps", 572_000.0);
}

/// Transfers of 10 kB in 0.1, 0.2 and 0.3 s: ranks 2, 3 and 3 of 3.
#[test]
fn completion_times_of_a_class_of_sizes() {
    let flows = (1..=3).map(|n| FlowReport { bytes: 10_000, end: Time::ms(1_000 + 100 * n), ..transfer(n) });
    let record = with_flows(flows);
    close(&record, "fct_p95_s", 0.3);
    close(&record, "fct_le30kB_p50_s", 0.2);
    close(&record, "fct_le30kB_p99_s", 0.3);
    close(&record, "flows_le30kB_completed", 3.0);
    close(&record, "flows_gt3MB_completed", 0.0);
}

/// Two pages took 0.2 s and 0.6 s, one is not complete, and one started before the interval. The median of
/// two is the first one, and the higher quantiles are the second one.
#[test]
fn pages_are_groups() {
    let page = |id, start, end, ending| FlowReport {
        kind: FlowKind::Group,
        start: Time::ms(start),
        end: Time::ms(end),
        ending,
        ..transfer(id)
    };
    let record = with_flows([
        page(1, 1_000, 1_200, Ending::Completed),
        page(2, 1_900, 2_500, Ending::Completed),
        page(3, 1_500, 3_000, Ending::Unfinished),
        page(4, 900, 1_100, Ending::Completed),
    ]);
    close(&record, "pages_completed", 2.0);
    close(&record, "pages_incomplete", 1.0);
    close(&record, "page_load_mean_s", 0.4);
    close(&record, "page_load_p50_s", 0.2);
    close(&record, "page_load_p95_s", 0.6);
    close(&record, "page_load_p99_s", 0.6);
    let none = with_flows([transfer(1)]);
    missing(&none, "pages_completed");
    missing(&none, "pages_incomplete");
    missing(&none, "page_load_p50_s");
}

/// 100 kB and 200 kB in 0.5 s each are rates of 1 : 2, so the index is 9/(2·5). A transfer with a byte less
/// and one that started before the interval do not count.
#[test]
fn fairness_among_large_transfers() {
    let large = |id, bytes| FlowReport { bytes, delivered: bytes, end: Time::ms(1_500), ..transfer(id) };
    let early = FlowReport { start: Time::ms(900), ..large(4, 900_000) };
    let record = with_flows([large(1, 100_000), large(2, 200_000), large(3, 99_999), early.clone()]);
    close(&record, "jain_large", 0.9);
    missing(&with_flows([large(1, 100_000), early]), "jain_large");
}

fn stream(id: u64, start: Time, packets: u64, lost: u64, delay_ms: u64) -> FlowReport {
    FlowReport {
        source: 1,
        kind: FlowKind::Datagrams,
        start,
        end: Time::s(2),
        bytes: 172 * packets,
        packets,
        lost: Some(lost),
        delay_mean: Span::ms(delay_ms),
        delay_p99: Span::ms(2 * delay_ms),
        ..transfer(id)
    }
}

/// Mean delays of 10, 20 and 60 ms: ranks 2 and 3 of 3. A stream without delivered packets has no delay.
#[test]
fn delays_from_stream_to_stream() {
    let streams = [10, 20, 60].into_iter().zip(1..).map(|(ms, id)| stream(id, Time::ZERO, 5, 0, ms));
    let lost = stream(4, Time::ZERO, 5, 5, 0);
    let record = with_flows(streams.chain([lost]));
    close(&record, "flow_delay_p50_s", 0.02);
    close(&record, "flow_delay_p95_s", 0.06);
    let alone = with_flows([stream(1, Time::ZERO, 5, 0, 10)]);
    missing(&alone, "flow_delay_p50_s");
    missing(&alone, "flow_delay_p95_s");
}

/// Two streams look like calls. One has 50 packets of 172 bytes in the whole second, of which one is lost.
/// The other started an hour before, and sends 60 packets within the second. Their mean delays are 10 ms and
/// 30 ms, the largest 99th percentile is 60 ms, and 1 of 110 packets is lost.
///
/// Three streams do not: one with 9 packets a second, one with packets of 1,000 bytes, and one of less than a
/// second.
#[test]
fn streams_that_look_like_calls() {
    let hour = Time::s(3_600);
    let mut recorder = Recorder::new(Layout { from: hour, until: hour + Span::s(1), ..layout() });
    let end = hour + Span::s(1);
    let call = |id, start, packets, lost, ms| FlowReport { end, ..stream(id, start, packets, lost, ms) };
    let slow = call(3, hour, 9, 0, 500);
    let large = FlowReport { bytes: 60_000, ..call(4, hour, 60, 0, 500) };
    let short = call(5, hour + Span::ms(1), 60, 0, 500);
    for flow in [call(1, hour, 50, 1, 10), call(2, Time::ZERO, 60, 0, 30), slow, large, short] {
        Probe::<()>::on_flow(&mut recorder, &flow);
    }
    let record = recorder.finish();
    close(&record, "voice_delay_mean_s", 0.02);
    close(&record, "voice_delay_p99_s", 0.06);
    close(&record, "voice_loss", 1.0 / 110.0);
    close(&record, "voice_packets", 49.0);
    let none = with_flows([transfer(1)]);
    missing(&none, "voice_delay_mean_s");
    missing(&none, "voice_delay_p99_s");
    missing(&none, "voice_packets");
    missing(&none, "voice_loss");
}

/// A packet arrives every 10 ms, and all have the same next hop, so departures equal arrivals. 10 % of the
/// windows of 1 ms have one packet, the others none: variance 0.09 over mean 0.1. All windows of 10 ms have 1
/// packet and all windows of 100 ms have 10, so their variance is 0. Only one window of 1 s fits.
#[test]
fn burstiness_of_arrivals_and_departures() {
    let mut recorder = Recorder::new(Layout { bursts: true, ..layout() });
    for n in 0..100 {
        pass(&mut recorder, 100, Some(5), Time::ms(1_000 + 10 * n));
    }
    let record = recorder.finish();
    let value = |name: &str| record.summary.metrics.value(name);
    for at in ["arrivals", "downstream"] {
        let one = value(&format!("{at}_idc_1ms")).unwrap();
        assert!((one - 0.9).abs() < 1e-3, "{at}: {one}");
        close(&record, &format!("{at}_idc_10ms"), 0.0);
        close(&record, &format!("{at}_idc_100ms"), 0.0);
        missing(&record, &format!("{at}_idc_1s"));
    }
    assert_eq!(value("downstream_idc_1ms"), value("arrivals_idc_1ms"));
    assert_eq!(value("downstream_peakedness"), value("arrivals_peakedness"));
    assert!(
        value("downstream_peakedness").is_some_and(|number| number < 1.0),
        "the stream is steadier than Poisson"
    );
    let names = ["downstream_idc_1ms", "downstream_idc_10ms", "downstream_idc_100ms", "downstream_idc_1s"];
    assert!(names.iter().all(|name| record.summary.metrics.entry(name).is_some()));
}

/// Two of the three drops within the interval belong to the calls. A drop before it and a loss on the wire do
/// not count.
#[test]
fn drops_of_a_group() {
    let mut recorder = Recorder::new(layout()).with_sources(|source: &u16| *source);
    let mut drop_of = |source: u16, why, ms| {
        let meta = Meta { bytes: 100, arrived: Time::ms(ms), ..Meta::default() };
        recorder.on_arrival(BOTTLENECK, &meta, Time::ms(ms));
        if why == DropReason::Wire {
            recorder.on_transmission(BOTTLENECK, &meta, &source, Time::ms(ms));
        }
        recorder.on_drop(BOTTLENECK, &meta, &source, why, Time::ms(ms));
    };
    drop_of(1, DropReason::Overlimit, 999);
    drop_of(1, DropReason::Overlimit, 1_000);
    drop_of(0, DropReason::Early, 1_100);
    drop_of(1, DropReason::Early, 1_200);
    drop_of(1, DropReason::Wire, 1_300);
    let record = recorder.finish();
    close(&record, "src.calls.drops", 2.0);
    close(&record, "src.web.drops", 1.0);
    close(&record, "drops", 3.0);
    close(&record, "drops_early", 2.0);
    close(&record, "drops_wire", 1.0);
}

#[test]
fn names_are_split_into_port_source_and_metric() {
    let taken = |name: &'static str| {
        let named = named(name)?;
        Some((named.port, named.source, named.metric, named.definition.unit))
    };
    assert_eq!(taken("goodput_bps"), Some((None, None, "goodput_bps", Unit::BitPerSecond)));
    assert_eq!(
        taken("at.home->isp.src.v1.2.loss"),
        Some((Some("home->isp"), Some("v1.2"), "loss", Unit::Share))
    );
    assert_eq!(
        taken("at.rack1.top->b.fct_le30kB_p50_s"),
        Some((Some("rack1.top->b"), None, "fct_le30kB_p50_s", Unit::Seconds))
    );
    assert_eq!(named("fct_aged_mean_s").unwrap().definition.names[0], "fct_aged_mean_s");
    assert_eq!(named("fct_aged_le3MB_mean_s").unwrap().definition.names[0], "fct_aged_mean_s");
    assert_eq!(taken("drops_pushout"), Some((None, None, "drops_pushout", Unit::Packets)));
    assert_eq!(taken("src.web.hurst_rs"), Some((None, Some("web"), "hurst_rs", Unit::Number)));
    for unknown in ["", "goodput", "src.web", "src.goodput_bps.", "at.x", "at.x.nothing", "fct__mean_s"] {
        assert!(named(unknown).is_none(), "{unknown}");
    }
}

/// Every metric of a recorder is in the table, and the name of every metric in the table is in a test.
/// Counters of a discipline in the kernel are tested in another crate.
#[test]
fn every_metric_is_defined_and_tested() {
    let crossed = giveway_measure::PortsOnRoute::new(std::sync::Arc::new(|pairs: &[(u16, u16)]| {
        vec![vec![BOTTLENECK, PortId(2)]; pairs.len()]
    }));
    let measured = vec![BOTTLENECK, PortId(2)];
    let layout = Layout { measured, bursts: true, crossed: Some(crossed), ..layout() };
    let mut recorder = Recorder::new(layout);
    for why in DropReason::ALL {
        let now = Time::ms(1_500);
        let meta = Meta { bytes: 100, arrived: now, ..Meta::default() };
        Probe::<()>::on_arrival(&mut recorder, BOTTLENECK, &meta, now);
        recorder.on_drop(BOTTLENECK, &meta, &(), why, now);
    }
    Probe::<()>::on_flow(&mut recorder, &transfer(1));
    let record = recorder.finish();
    for (name, _) in record.summary.metrics.iter() {
        assert!(named(name).is_some(), "the table of metrics has no row for {name}");
    }

    let tests = [include_str!("metrics.rs"), include_str!("recorder.rs")].concat();
    // "fct_le30kB_p50_s" for "fct_*_p50_s".
    let is_named = |start: &str, pattern: &str| {
        let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
        let beginning = format!("{start}{before}");
        tests.match_indices(&beginning).any(|(at, _)| {
            let rest = &tests[at + beginning.len()..];
            let word = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            if pattern.contains('*') { rest[..word].ends_with(after) } else { rest[..word].is_empty() }
        })
    };
    let untested: Vec<&str> = METRICS
        .iter()
        .filter(|definition| definition.subject != Subject::Switch && definition.names != ["kernel.*"])
        .flat_map(|definition| definition.names.iter().map(move |name| (definition.subject, *name)))
        .filter(|(of, name)| match of {
            Subject::Class => !is_named("value(\"", name),
            Subject::Source => !(is_named("\"src.web.", name) || is_named("\"src.calls.", name)),
            _ => !is_named("\"", name),
        })
        .map(|(_, name)| name)
        .collect();
    assert_eq!(untested, ["arrivals_idc_1ms"; 0], "these metrics have no test");
}
