//! Tests of the recorder with a few events each. The expected values are calculated by hand.

use std::collections::VecDeque;

use crate::support::{BOTTLENECK, close, layout, missing, transfer, with_flows};
use giveway_measure::{DelayRow, DelaySummary, EpisodeRow, Layout, ProgressRow, Record, Recorder};
use giveway_qdisc::{
    Backlog, Causes, ClassState, Cx, Divisible, DropReason, Ending, FlowKey, FlowKind, FlowReport, FlowTable,
    Meta, Next, NextHops, Packet, Port, PortCounters, PortId, Probe, Qdisc, Rate, SenderSample, Span,
    Streams, Time,
};

fn packet(bytes: u32, arrived: Time) -> Meta {
    Meta { bytes, arrived, flow: FlowKey(7), ..Meta::default() }
}

fn arrive(recorder: &mut Recorder, bytes: u32, at: Time) {
    Probe::<()>::on_arrival(recorder, BOTTLENECK, &packet(bytes, at), at);
}

fn send(recorder: &mut Recorder, bytes: u32, arrived: Time, at: Time) {
    Probe::<()>::on_transmission(recorder, BOTTLENECK, &packet(bytes, arrived), &(), at);
}

fn drop_one(recorder: &mut Recorder, bytes: u32, why: DropReason, at: Time) {
    recorder.on_drop(BOTTLENECK, &packet(bytes, at), &(), why, at);
}

/// Two packets of 1,000 bytes are queued before the measurement interval. The queue has two until 1.25 s, one
/// until 1.5 s, none until 1.75 s, and one of 200 bytes until 2 s and later. Packets: (2 + 1 + 0 + 1)/4 = 1.
/// Bytes: (2000 + 1000 + 0 + 200)/4 = 800.
#[test]
fn the_mean_queue_is_the_exact_time_average() {
    let mut recorder = Recorder::new(layout());
    for at in [500, 900] {
        arrive(&mut recorder, 1_000, Time::ms(at));
    }
    send(&mut recorder, 1_000, Time::ms(500), Time::ms(1_250));
    send(&mut recorder, 1_000, Time::ms(900), Time::ms(1_500));
    arrive(&mut recorder, 200, Time::ms(1_750));
    // Events after the measurement interval do not count.
    arrive(&mut recorder, 1_000, Time::ms(2_500));
    send(&mut recorder, 200, Time::ms(1_750), Time::ms(3_000));
    let record = recorder.finish();
    close(&record, "backlog_mean_packets", 1.0);
    close(&record, "backlog_mean_bytes", 800.0);
    close(&record, "backlog_max_packets", 2.0);
    // Two packets of 1,000 bytes in one second of 125,000 bytes.
    close(&record, "utilization", 0.016);
    // Their sojourn times are 750 ms and 600 ms. Three packets of the whole run carry data.
    close(&record, "sojourn_mean_s", 0.675);
    close(&record, "bottleneck_packets", 3.0);
    missing(&record, "small_sojourn_p50_s");
}

/// A packet that is dropped or sent at the time of its arrival does not count as queued.
#[test]
fn a_backlog_without_duration_does_not_count() {
    let mut recorder = Recorder::new(layout());
    let now = Time::ms(1_500);
    for _ in 0..3 {
        arrive(&mut recorder, 1_000, now);
    }
    send(&mut recorder, 1_000, now, now);
    drop_one(&mut recorder, 1_000, DropReason::Overlimit, now);
    let record = recorder.finish();
    close(&record, "backlog_max_packets", 1.0);
    close(&record, "backlog_mean_packets", 0.5);
    close(&record, "drops", 1.0);
}

/// Sojourn times of 1, 2, ..., 100 µs, of which small packets have 1 to 10 µs: ranks 50, 95 and 99 of 100,
/// and 5, 10 and 10 of 10. Above 2,047 ns the buckets of the histogram are wider, so that a quantile may be
/// 0.1 % larger.
#[test]
fn sojourn_times_by_rank() {
    let mut recorder = Recorder::new(layout());
    for us in 1..=100 {
        let bytes = if us <= 10 { 256 } else { 257 };
        let arrived = Time::ms(1_000 + us);
        arrive(&mut recorder, bytes, arrived);
        send(&mut recorder, bytes, arrived, arrived + Span::us(us));
    }
    let record = recorder.finish();
    let metric = |name| record.summary.metrics.value(name).expect(name);
    let quantiles = [("sojourn_p50_s", 50), ("sojourn_p95_s", 95), ("sojourn_p99_s", 99)];
    let small = [("small_sojourn_p50_s", 5), ("small_sojourn_p95_s", 10), ("small_sojourn_p99_s", 10)];
    for (name, us) in quantiles.into_iter().chain(small) {
        let (found, expected) = (metric(name), f64::from(us) * 1e-6);
        assert!(found >= expected * (1.0 - 1e-12) && found <= expected * 1.001, "{name}: {found}");
    }
    close(&record, "sojourn_packets", 100.0);
    close(&record, "small_sojourn_packets", 10.0);
    close(&record, "sojourn_mean_s", 50.5e-6);
    close(&record, "small_sojourn_mean_s", 5.5e-6);
    close(&record, "sojourn_saturated", 0.0);
}

/// The start belongs to the measurement interval, and the end does not.
#[test]
fn the_measurement_interval_is_half_open() {
    let mut recorder = Recorder::new(layout());
    for ms in [999, 1_000, 1_999, 2_000] {
        let at = Time::ms(ms);
        arrive(&mut recorder, 1_250, at);
        send(&mut recorder, 1_250, at, at);
        arrive(&mut recorder, 100, at);
        drop_one(&mut recorder, 100, DropReason::Early, at);
        Probe::<()>::on_mark(&mut recorder, BOTTLENECK, &packet(100, at), at);
    }
    let record = recorder.finish();
    close(&record, "utilization", 0.02);
    close(&record, "drops", 2.0);
    close(&record, "drops_early", 2.0);
    close(&record, "marks", 2.0);
    close(&record, "bottleneck_packets", 4.0);
    assert_eq!(record.summary.metrics.entry("drops_overlimit"), None, "only reasons that occur are named");
    // The table of links has the whole run.
    assert_eq!((record.links[1].dropped, record.links[1].marked), (Backlog { packets: 4, bytes: 400 }, 4));
}

/// The backend loses a packet on the wire after it was sent. The drops and the backlog of the queue do not
/// change.
#[test]
fn losses_on_the_wire_are_not_the_queues() {
    let mut recorder = Recorder::new(layout());
    let now = Time::ms(1_000);
    arrive(&mut recorder, 1_000, now);
    arrive(&mut recorder, 1_000, now);
    send(&mut recorder, 1_000, now, now);
    drop_one(&mut recorder, 1_000, DropReason::Wire, now);
    let record = recorder.finish();
    close(&record, "backlog_mean_packets", 1.0);
    close(&record, "drops", 0.0);
    close(&record, "drops_wire", 1.0);
    assert_eq!(record.links[1].dropped, Backlog::ZERO);
    assert_eq!(record.links[1].drops[DropReason::Wire as usize], 1);
}

/// Five transfers count: 1 kB in 100 ms and in 300 ms, 100 kB in 1 s, one that was aborted with 400 of 1,000
/// bytes, and one that is still open with 2,000 of 5,000. Another one started in the warm-up, and one after
/// the end.
#[test]
fn completion_times_and_incomplete_transfers() {
    let ms = Time::ms;
    let transfers = [
        transfer(1),
        FlowReport { end: ms(1_300), ..transfer(2) },
        FlowReport {
            end: ms(2_000),
            bytes: 100_000,
            delivered: 100_000,
            goodput_bytes: 100_000,
            ..transfer(3)
        },
        FlowReport { ending: Ending::Aborted, delivered: 400, goodput_bytes: 400, ..transfer(4) },
        FlowReport {
            ending: Ending::Unfinished,
            bytes: 5_000,
            delivered: 2_000,
            goodput_bytes: 2_000,
            ..transfer(5)
        },
        FlowReport { start: ms(999), goodput_bytes: 0, ..transfer(6) },
        FlowReport { start: ms(2_000), end: ms(9_000), goodput_bytes: 0, ..transfer(7) },
    ];
    let record = with_flows(transfers);
    close(&record, "flows_completed", 3.0);
    close(&record, "flows_incomplete", 1.0);
    close(&record, "flows_aborted", 1.0);
    close(&record, "bytes_incomplete", 600.0 + 3_000.0);
    close(&record, "fct_mean_s", 1.4 / 3.0);
    close(&record, "fct_p50_s", 0.3);
    close(&record, "fct_p99_s", 1.0);
    close(&record, "fct_le30kB_mean_s", 0.2);
    close(&record, "fct_le30kB_p50_s", 0.1);
    close(&record, "fct_le30kB_p95_s", 0.3);
    close(&record, "fct_le300kB_p50_s", 1.0);
    missing(&record, "fct_le3MB_p50_s");
    missing(&record, "fct_gt3MB_mean_s");
    // With the age at 2 s of those that did not complete: 0.1, 0.3, 1 and twice 1 s.
    close(&record, "fct_aged_mean_s", 3.4 / 5.0);
    close(&record, "fct_aged_le30kB_mean_s", 2.4 / 4.0);
    close(&record, "fct_aged_le300kB_mean_s", 1.0);
    missing(&record, "fct_aged_gt3MB_mean_s");
    // 1,000 + 1,000 + 100,000 + 400 + 2,000 bytes in one second.
    close(&record, "goodput_bps", 835_200.0);
    // All of them have the same source.
    close(&record, "src.web.fct_mean_s", 1.4 / 3.0);
    close(&record, "src.web.fct_aged_mean_s", 3.4 / 5.0);
    close(&record, "src.web.flows_completed", 3.0);
    close(&record, "src.web.flows_incomplete", 1.0);
    close(&record, "src.web.flows_aborted", 1.0);
    close(&record, "src.web.completed_share", 0.6);
    missing(&record, "src.calls.fct_mean_s");
    missing(&record, "src.calls.fct_aged_mean_s");
    missing(&record, "src.calls.flows_completed");
    missing(&record, "src.calls.completed_share");
}

/// Two endless transfers have shares of 3 : 1, so the index is (3 + 1)²/(2·(9 + 1)) = 0.8. The endless
/// transfer that started late, the streams and the transfer of a given size do not count.
///
/// With fewer than two endless transfers, streams count. Two streams send 2,000 and 18,000 bytes, of which
/// 10,000 arrive, so their fair shares are 2,000 and 8,000. If half of each arrives, 1,000 and 9,000, the
/// ratios to the fair shares are 0.5 and 1.125, and the index is 1.625²/(2·(0.25 + 1.265625)) = 169/194. If
/// both send more than an equal share, the index is computed from the delivered bytes: 3,000 and 1,000 of
/// 10,000 each give 0.8. If everything arrives, the index is 1.
#[test]
fn fairness_is_among_comparable_flows() {
    let endless = |id, goodput_bytes| FlowReport {
        kind: FlowKind::Endless,
        start: Time::ZERO,
        end: Time::s(2),
        goodput_bytes,
        ending: Ending::Unfinished,
        ..transfer(id)
    };
    let short = FlowReport { start: Time::ms(1_500), ..endless(3, 500) };
    let stream = |id, sent, arrived| FlowReport {
        kind: FlowKind::Datagrams,
        bytes: sent,
        delay_mean: Span::ms(1),
        ..endless(id, arrived)
    };
    let mixed =
        |streams: [FlowReport; 2]| with_flows([endless(1, 3_000), transfer(4)].into_iter().chain(streams));
    let record = with_flows([
        endless(1, 3_000),
        endless(2, 1_000),
        short.clone(),
        transfer(4),
        stream(5, 2_000, 1_000),
        stream(6, 18_000, 9_000),
    ]);
    close(&record, "jain", 0.8);
    close(&mixed([stream(5, 2_000, 1_000), stream(6, 18_000, 9_000)]), "jain", 169.0 / 194.0);
    close(&mixed([stream(5, 2_000, 2_000), stream(6, 18_000, 8_000)]), "jain", 1.0);
    close(&mixed([stream(5, 10_000, 3_000), stream(6, 10_000, 1_000)]), "jain", 0.8);
    close(&mixed([stream(5, 500, 500), stream(6, 20_000, 20_000)]), "jain", 1.0);
    missing(&mixed([stream(5, 500, 0), stream(6, 20_000, 0)]), "jain");
    // A single flow has no index.
    missing(&with_flows([endless(1, 3_000), short, transfer(4)]), "jain");
}

/// Of the calls, 2 of 100 and 10 of 300 packets are lost: 3 %. The larger 99th percentile counts.
#[test]
fn each_group_of_sources_has_its_metrics() {
    let call = |id, packets, lost, delay_p99| FlowReport {
        source: 1,
        kind: FlowKind::Datagrams,
        start: Time::ZERO,
        end: Time::s(2),
        packets,
        lost: Some(lost),
        delay_mean: Span::ms(1),
        delay_p50: delay_p99 / 4,
        delay_p95: delay_p99 / 2,
        delay_p99,
        ending: Ending::Unfinished,
        ..transfer(id)
    };
    let record = with_flows([transfer(1), call(2, 100, 2, Span::ms(5)), call(3, 300, 10, Span::ms(8))]);
    close(&record, "src.calls.loss", 0.03);
    close(&record, "src.calls.delay_p50_s", 0.002);
    close(&record, "src.calls.delay_p95_s", 0.004);
    close(&record, "src.calls.delay_p99_s", 0.008);
    close(&record, "src.calls.goodput_bps", 16_000.0);
    close(&record, "src.web.goodput_bps", 8_000.0);
    close(&record, "src.web.fct_p50_s", 0.1);
    missing(&record, "src.calls.fct_p50_s");
    missing(&record, "src.calls.retransmitted");
    missing(&record, "src.web.loss");
    missing(&record, "src.web.delay_p99_s");
}

/// Three transfers deliver 1,000 bytes in 0.1 s, 1,000 bytes in the 0.2 s of one that started in the warm-up,
/// and 500 bytes in the 0.5 s until the end of the interval: 10,000, 5,000 and 1,000 bytes/s, so the index is
/// 16²/(3·126) = 128/189. A refused transfer, one that ended before the interval, and a group do not count.
///
/// Two streams send 6,000 bytes each, of which 3,000 and 1,000 arrive: the index is 16/20, although the
/// second stream lasts for a shorter time.
#[test]
fn fairness_within_a_source() {
    let refused = FlowReport { end: Time::ms(1_000), goodput_bytes: 0, ..transfer(4) };
    let before = FlowReport { start: Time::ms(500), end: Time::ms(900), goodput_bytes: 0, ..transfer(5) };
    let stream = |id, start, end, goodput_bytes| FlowReport {
        source: 1,
        kind: FlowKind::Datagrams,
        start,
        end,
        goodput_bytes,
        bytes: 6_000,
        ..transfer(id)
    };
    let record = with_flows([
        transfer(1),
        FlowReport { start: Time::ms(300), end: Time::ms(1_200), ..transfer(2) },
        FlowReport {
            start: Time::ms(1_500),
            end: Time::ms(2_000),
            goodput_bytes: 500,
            ending: Ending::Unfinished,
            ..transfer(3)
        },
        refused,
        before,
        FlowReport { kind: FlowKind::Group, ..transfer(6) },
        stream(7, Time::ZERO, Time::ms(2_000), 3_000),
        stream(8, Time::ms(1_500), Time::ms(1_600), 1_000),
    ]);
    close(&record, "src.web.jain", 128.0 / 189.0);
    close(&record, "src.calls.jain", 0.8);
    // A single flow has no index.
    missing(&with_flows([transfer(1)]), "src.web.jain");
    missing(&with_flows([transfer(1)]), "src.calls.jain");
}

/// Of two flows the one with the lower number is the first, and every byte that arrived counts.
#[test]
fn the_lead_of_one_of_two_flows() {
    let flow = |id, goodput_bytes| FlowReport { goodput_bytes, ..transfer(id) };
    close(&with_flows([flow(2, 1_000), flow(1, 3_000)]), "src.web.lead", 0.5);
    close(&with_flows([flow(1, 0), flow(2, 500)]), "src.web.lead", -1.0);
    missing(&with_flows([flow(1, 0), flow(2, 0)]), "src.web.lead");
    missing(&with_flows([flow(1, 500)]), "src.web.lead");
    missing(&with_flows([flow(1, 500), flow(2, 500), flow(3, 500)]), "src.web.lead");
}

/// A transfer and an endless transfer have 1 and 3 retransmissions among 10 and 30 data packets, of which one
/// follows a timeout, one is a probe, and all are needless. Groups and datagrams do not count.
#[test]
fn retransmissions_of_a_source() {
    let flow = |id, kind, packets, retransmitted| {
        let causes =
            Causes { after_timeout: retransmitted / 2, probes: retransmitted / 3, needless: retransmitted };
        FlowReport { kind, packets, retransmitted, causes, ..transfer(id) }
    };
    let record = with_flows([
        flow(1, FlowKind::Transfer, 10, 1),
        flow(2, FlowKind::Endless, 30, 3),
        flow(3, FlowKind::Group, 40, 4),
        flow(4, FlowKind::Datagrams, 50, 0),
    ]);
    close(&record, "src.web.retransmitted", 0.1);
    close(&record, "src.web.retransmitted_after_timeout", 0.025);
    close(&record, "src.web.retransmitted_by_probe", 0.025);
    close(&record, "src.web.retransmitted_needlessly", 0.1);
    missing(&record, "src.calls.retransmitted");
}

/// Flow 1 has two episodes: its first packet departs before the second arrives, and the third arrives while
/// the second is queued. Flow 2 has two episodes: its first packet is dropped at its arrival, and the third
/// arrives while the second is queued. A packet that is lost on the wire is no longer queued.
#[test]
fn episodes_of_flows() {
    let run = |episodes| {
        let mut recorder = Recorder::new(Layout { episodes, ..layout() });
        let meta = |flow, bytes| Meta { bytes, flow: FlowKey(flow), ..Meta::default() };
        let now = Time::ms(10);
        let arrive =
            |recorder: &mut Recorder, meta| Probe::<()>::on_arrival(recorder, BOTTLENECK, &meta, now);
        let depart = |recorder: &mut Recorder, meta| {
            Probe::<()>::on_transmission(recorder, BOTTLENECK, &meta, &(), now)
        };
        let lose = |recorder: &mut Recorder, meta, why| {
            recorder.on_drop(BOTTLENECK, &meta, &(), why, now);
        };
        arrive(&mut recorder, meta(1, 40));
        depart(&mut recorder, meta(1, 40));
        arrive(&mut recorder, meta(1, 1_500));
        arrive(&mut recorder, meta(2, 1_000));
        lose(&mut recorder, meta(2, 1_000), DropReason::Overlimit);
        arrive(&mut recorder, meta(1, 1_500));
        depart(&mut recorder, meta(1, 1_500));
        lose(&mut recorder, meta(1, 1_500), DropReason::Wire);
        arrive(&mut recorder, meta(2, 1_000));
        arrive(&mut recorder, meta(2, 1_000));
        // Events at other ports do not count.
        Probe::<()>::on_arrival(&mut recorder, PortId(0), &meta(1, 1_500), now);
        recorder.finish()
    };
    let row = |flow, packets, bytes, data_packets, episodes| {
        let (port, flow) = (BOTTLENECK, FlowKey(flow));
        EpisodeRow { port, flow, packets, bytes, data_packets, episodes }
    };
    assert_eq!(run(true).episodes, [row(1, 3, 3_040, 2, 2), row(2, 3, 3_000, 3, 2)]);
    assert_eq!(run(false).episodes, []);
}

/// Twenty packets arrive within the interval of 1 s, two every 100 ms. Each of ten windows of 100 ms has 2,
/// so their index is
/// 0. Of a hundred windows of 10 ms ten have 2: mean 1/5, variance (100 · 40 - 20²)/(99 · 100) = 4/11, index
///    20/11. By turns the packets end at the neighbour and have node 5 as next hop, but the last three all
///    have node 5: 17 runs of 1 packet, and one of 3.
#[test]
fn bursts_at_a_port() {
    let run = |bursts| {
        let mut recorder = Recorder::new(Layout { bursts, ..layout() });
        for i in 0..20_u64 {
            let now = Time::s(1) + Span::ms(100 * (i / 2));
            let next_hop = (i % 2 == 1 || i == 18).then_some(5);
            let meta =
                Meta { bytes: 500, arrived: now, next_hops: NextHops::new(next_hop), ..Meta::default() };
            Probe::<()>::on_arrival(&mut recorder, BOTTLENECK, &meta, now);
            Probe::<()>::on_transmission(&mut recorder, BOTTLENECK, &meta, &(), now);
        }
        recorder.finish()
    };
    let record = run(true);
    close(&record, "arrivals_idc_100ms", 0.0);
    close(&record, "arrivals_idc_10ms", 20.0 / 11.0);
    missing(&record, "arrivals_idc_1s");
    close(&record, "run_length_mean", 20.0 / 18.0);
    close(&record, "run_length_weighted", (17.0 + 9.0) / 20.0);
    close(&record, "run_length_longest", 3.0);
    // Pairs that are 100 ms apart do not overlap: Y is 2 exp(-t/10 ms), so E Y = 2/10 and E Y² = 2/10.
    let peakedness = record.summary.metrics.value("arrivals_peakedness").unwrap();
    assert!((peakedness - (0.5 + (0.2 - 0.04) / 0.2)).abs() < 1e-3, "{peakedness}");
    let rows: Vec<_> = record
        .bursts
        .iter()
        .map(|row| (row.port, row.next_hop, row.packets, row.runs, row.run_longest))
        .collect();
    assert_eq!(rows, [(BOTTLENECK, None, 9, 9, 1), (BOTTLENECK, Some(5), 11, 9, 3)]);

    let quiet = run(false);
    assert_eq!(quiet.bursts, []);
    assert!(quiet.summary.metrics.iter().all(|(name, _)| !name.contains("idc") && !name.contains("hurst")));
    assert_eq!(
        quiet.summary.fingerprint, record.summary.fingerprint,
        "measuring bursts does not change the run"
    );
}

/// All emitted packets of a source count, whatever their route. One second is too short to estimate the
/// self-similarity. A hundred seconds are enough, and independent packets have H = 1/2.
#[test]
fn the_hurst_parameter_needs_a_long_interval() {
    let run = |until| {
        let layout = Layout {
            until,
            bursts: true,
            source_names: ["web", "web", "calls"].map(String::from).into(),
            ..layout()
        };
        let mut recorder: Recorder<u16> = Recorder::new(layout).with_sources(|source| *source);
        let mut rng = Streams::new(3).rng();
        let mut now = Time::ZERO;
        while now < until {
            now += Span::from_s_f64(rng.exponential(0.001));
            let source = rng.below(2) as u16;
            recorder.on_emission(0, &Meta::default(), &source, now);
        }
        recorder.finish()
    };
    missing(&run(Time::s(2)), "src.web.hurst");
    let record = run(Time::s(101));
    let metric = |name: &str| record.summary.metrics.value(name).unwrap();
    let three = ["src.web.hurst_rs", "src.web.hurst_variance", "src.web.hurst_wavelet"].map(metric);
    // The tolerance is wide: the calibration of the estimators has ten times as many samples.
    assert!(three.iter().all(|hurst| (hurst - 0.5).abs() < 0.15), "{three:?}");
    let mut sorted = three;
    sorted.sort_by(f64::total_cmp);
    assert_eq!(metric("src.web.hurst"), sorted[1]);
    missing(&record, "src.calls.hurst");
}

#[test]
fn samples_of_senders_are_kept_on_request() {
    let run = |senders| {
        let mut recorder = Recorder::new(Layout { senders, ..layout() });
        for ms in [10, 20] {
            let sample = SenderSample {
                source: 0,
                id: 4,
                now: Time::ms(ms),
                window: 3_000,
                threshold: 6_000,
                flight: 1_500,
                acked: 100 * ms,
                rtt: Span::ms(7),
                pacing_rate: Rate::mbit(2),
                delivery_rate: Rate::mbit(1),
            };
            Probe::<()>::on_sender(&mut recorder, &sample);
        }
        recorder.finish().progress
    };
    let row = |ms| ProgressRow {
        time: Time::ms(ms),
        source: 0,
        id: 4,
        acked: 100 * ms,
        window: 3_000,
        flight: 1_500,
        rtt: Span::ms(7),
        pacing_rate: Rate::mbit(2),
        delivery_rate: Rate::mbit(1),
    };
    assert_eq!(run(true), [row(10), row(20)]);
    assert_eq!(run(false), []);
}

/// The mean is over the samples at 1.0 s and 1.5 s, without those before the interval and at its end. The
/// maximum covers the whole run until the last sample, whatever the times of the samples.
#[test]
fn flow_tables_have_metrics_and_series() {
    let mut recorder = Recorder::new(Layout { keep_series: true, ..layout() });
    let held = Backlog { packets: 3, bytes: 4_500 };
    let table = |flows, most, entry_bytes, bytes| FlowTable { flows, most, entry_bytes, bytes };
    let sizes: [(FlowTable, &[(&'static str, f64)]); 4] = [
        (table(900, 0, 0, 0), &[]),
        (table(12, 990, 0, 64), &[("alpha", 0.5)]),
        (table(4, 991, 32, 0), &[]),
        (table(800, 0, 0, 0), &[]),
    ];
    for (ms, (sizes, gauges)) in [500, 1_000, 1_500, 2_000].into_iter().zip(sizes) {
        Probe::<()>::on_sample(&mut recorder, BOTTLENECK, held, &sizes, gauges, Time::ms(ms));
        Probe::<()>::on_sample(&mut recorder, PortId(0), held, &table(5_000, 0, 0, 0), &[], Time::ms(ms));
    }
    let record = recorder.finish();
    close(&record, "flow_table_mean", 8.0);
    close(&record, "flow_table_max", 991.0);
    close(&record, "flow_table_bytes", 64.0);
    close(&record, "flow_table_entry_bytes", 32.0);
    // Four samples of the measured port, each with the 4 numbers of its flow table, and a gauge.
    assert_eq!(record.queue.len(), 4 + 16 + 1);
    assert_eq!(record.queue[0].backlog, Some(held));
    assert_eq!((record.queue[1].backlog, record.queue[1].gauge), (None, Some(("flow_table", 900.0))));
}

/// A run without events has only the counters of its port.
#[test]
fn metrics_that_were_not_measured_are_missing() {
    let record = Recorder::<()>::new(layout()).finish();
    let named: Vec<&str> =
        record.summary.metrics.iter().filter(|(_, v)| v.is_some()).map(|(name, _)| name).collect();
    let counts = [
        "sojourn_saturated",
        "backlog_mean_packets",
        "backlog_mean_bytes",
        "backlog_max_packets",
        "drops",
        "marks",
    ];
    let (of_sources, of_port): (Vec<&str>, Vec<&str>) =
        named.iter().partition(|name| name.starts_with("src."));
    assert_eq!(
        of_port,
        [&["utilization", "sojourn_packets", "small_sojourn_packets"], &counts[..], &["bottleneck_packets"]]
            .concat()
    );
    assert!(
        !of_sources.is_empty() && of_sources.iter().all(|name| name.ends_with(".drops")),
        "{of_sources:?}"
    );
    let nothing = Recorder::<()>::new(Layout { measured: vec![], ..layout() }).finish();
    assert!(nothing.summary.metrics.iter().all(|(_, value)| value.is_none()));
}

/// At ports that are not measured, only losses are counted, and the counters of the backend are recorded.
#[test]
fn links_that_are_not_measured() {
    let mut recorder = Recorder::new(layout());
    let (other, unknown) = (PortId(0), PortId(99));
    for port in [other, unknown] {
        Probe::<()>::on_arrival(&mut recorder, port, &packet(500, Time::ZERO), Time::ZERO);
        recorder.on_drop(port, &packet(500, Time::ZERO), &(), DropReason::Early, Time::ZERO);
    }
    let empty = recorder_links(&mut recorder, None);
    assert_eq!(empty, [(other, None, 1), (BOTTLENECK, Some(Backlog::ZERO), 0)]);
    let counters = PortCounters { sent: Backlog { packets: 9, bytes: 9_000 }, ..PortCounters::default() };
    let rows = recorder_links(&mut recorder, Some(counters));
    assert_eq!(rows[0], (other, Some(Backlog { packets: 9, bytes: 9_000 }), 1));
}

/// The links of a recorder so far, after it got the counters of port 0.
fn recorder_links(
    recorder: &mut Recorder,
    counters: Option<PortCounters>,
) -> Vec<(PortId, Option<Backlog>, u64)> {
    if let Some(counters) = &counters {
        recorder.port_counters(PortId(0), counters);
        recorder.port_counters(PortId(99), counters);
    }
    let mut links = Vec::new();
    for row in recorder.links() {
        links.push((row.port, row.sent, row.dropped.packets));
    }
    links
}

/// The counters of a class before the measurement interval do not count, and a class without such a report
/// started within it.
#[test]
fn classes_have_the_metrics_of_the_interval() {
    let mut recorder = Recorder::<()>::new(layout());
    let (begin, end) = (layout().from, layout().until);
    let state = |packets: u64| ClassState {
        path: "line/home".to_owned(),
        level: 2,
        rate: Some(Rate::mbit(2)),
        ceil: Some(Rate::mbit(4)),
        arrived: Backlog { packets: packets + packets / 4, bytes: 1250 * packets },
        sent: Backlog { packets, bytes: 1000 * packets },
        dropped: Backlog { packets: packets / 4, bytes: 250 * packets },
        borrowed: 100 * packets,
        waited: Span::ms(3) * packets,
        longest: Span::ms(7),
        ..ClassState::default()
    };
    Probe::<()>::on_class(&mut recorder, BOTTLENECK, &state(40), begin);
    Probe::<()>::on_class(&mut recorder, BOTTLENECK, &state(100), end);
    let metrics = recorder.finish().summary.metrics;
    let value = |name: &str| metrics.value(&format!("class.line/home.{name}"));
    assert_eq!((value("rate_bps"), value("ceil_bps")), (Some(2e6), Some(4e6)));
    assert_eq!(value("throughput_bps"), Some(60_000.0 * 8.0 / end.since(begin).as_s()));
    assert_eq!((value("borrowed"), value("drop_share")), (Some(0.1), Some(0.2)));
    assert_eq!((value("wait_mean_s"), value("wait_max_s")), (Some(0.003), Some(0.007)));
}

/// A discipline with a limit of five packets.
struct Five(VecDeque<Packet<()>>);

impl Qdisc<()> for Five {
    fn enqueue(&mut self, pkt: Packet<()>, cx: &mut Cx<'_, ()>) {
        match self.0.len() {
            0..5 => self.0.push_back(pkt),
            _ => cx.drop(pkt, DropReason::Overlimit),
        }
    }
    fn dequeue(&mut self, _cx: &mut Cx<'_, ()>) -> Next<()> {
        self.0.pop_front().map_or(Next::Empty, Next::Packet)
    }
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.0.len() as u64, bytes: self.0.iter().map(|pkt| u64::from(pkt.bytes())).sum() }
    }
    fn reset(&mut self, cx: &mut Cx<'_, ()>) {
        self.0.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
    }
}

/// Runs a port like a backend, with an overload: two packets of 125 bytes arrive in each millisecond, and one
/// departs.
fn overload(milliseconds: u64) -> (Record, PortCounters) {
    let mut recorder = Recorder::new(layout());
    let mut port = Port::new(BOTTLENECK, Box::new(Five(VecDeque::new())), Rate::mbit(1));
    for ms in 0..milliseconds {
        for _ in 0..2 {
            port.offer(Packet::new(FlowKey(ms % 3), 125, ()), Time::ms(ms), &mut recorder);
        }
        let _sent = port.pull(Time::ms(ms), &mut recorder);
    }
    (recorder.finish(), *port.counters())
}

/// The queue is full from the fifth millisecond on: an arrival finds four or five packets, and a departure
/// leaves four.
#[test]
fn the_recorder_agrees_with_the_counters_of_the_port() {
    let (record, counters) = overload(3_000);
    let link = &record.links[1];
    assert_eq!(
        (link.arrived, link.sent, link.dropped),
        (Some(counters.arrived), Some(counters.sent), counters.dropped)
    );
    close(&record, "utilization", 1.0);
    close(&record, "backlog_mean_packets", 4.0);
    close(&record, "backlog_max_packets", 4.0);
    close(&record, "backlog_mean_bytes", 500.0);
    close(&record, "drops", 1_000.0);
    // Four packets are ahead of each packet, with 1 ms each.
    close(&record, "sojourn_mean_s", 0.004);
}

#[test]
fn different_runs_have_different_fingerprints() {
    let print = |ms| overload(ms).0.summary.fingerprint;
    assert_eq!(print(500), print(500));
    assert_ne!(print(500), print(501));
    // The value is the same for all builds and machines. A change here makes old fingerprints useless.
    insta::assert_snapshot!(print(500), @"4f844af0d541c72f090c6a5a9550574f");
    // The order of the reports does not matter, because each report has its times.
    let flows = |a, b| with_flows([transfer(a), transfer(b)]).summary.fingerprint;
    assert_eq!(flows(1, 2), flows(2, 1));
    assert_ne!(flows(1, 2), flows(1, 3));
    // The name of a source matters, not its position in the list.
    let listed = |names: [&str; 2], indices: [u16; 2]| {
        let names = names.map(str::to_owned).into();
        let mut recorder = Recorder::new(Layout { source_names: names, ..layout() });
        for (source, id) in indices.into_iter().zip(1..) {
            Probe::<()>::on_flow(&mut recorder, &FlowReport { source, ..transfer(id) });
        }
        recorder.finish().summary.fingerprint
    };
    assert_eq!(listed(["web", "calls"], [0, 1]), listed(["calls", "web"], [1, 0]));
    assert_ne!(listed(["web", "calls"], [0, 1]), listed(["calls", "web"], [0, 1]));
}

/// A packet of a recorder that knows one-way delays: its source and its send time. Acknowledgements have
/// none.
type Sent = (u16, Option<Time>);

fn with_delays(layout: Layout) -> Recorder<Sent> {
    let recorder = Recorder::new(layout).with_sources(|(source, _): &Sent| *source);
    recorder.with_delays(|(_, sent), now| sent.map(|sent| now.since(sent)))
}

/// The interval from 1 s to 2 s has stretches of 10 ms. The web sends a packet each 5 ms, which waits
/// 1, 2, 3... ms at the bottleneck and arrives 10 ms later; sources 0 and 2 have the same name.
#[test]
fn delays_over_time_by_hand() {
    let names = vec!["web".into(), "calls".into(), "web".into()];
    let mut recorder =
        with_delays(Layout { keep_series: true, source_names: names, sample: Span::ms(10), ..layout() });
    let mut send = |source: u16, arrived: Time, wait: Span, at: PortId| {
        let meta = Meta { bytes: 100, arrived, ..Meta::default() };
        let payload = (source, Some(arrived));
        recorder.on_arrival(at, &meta, arrived);
        recorder.on_transmission(at, &meta, &payload, arrived + wait);
        recorder.on_delivery(1, &meta, &payload, arrived + wait + Span::ms(10));
    };
    send(0, Time::ms(1_000), Span::ms(1), BOTTLENECK);
    send(2, Time::ms(1_005), Span::ms(2), BOTTLENECK);
    send(1, Time::ms(1_020), Span::ms(3), BOTTLENECK);
    send(0, Time::ms(1_990), Span::ms(4), BOTTLENECK);
    // An acknowledgement has a sojourn time and no one-way delay.
    let meta = Meta { bytes: 40, arrived: Time::ms(1_996), ..Meta::default() };
    recorder.on_arrival(BOTTLENECK, &meta, Time::ms(1_996));
    recorder.on_transmission(BOTTLENECK, &meta, &(0, None), Time::ms(1_996));
    recorder.on_delivery(1, &meta, &(0, None), Time::ms(1_997));
    let record = recorder.finish();
    assert_eq!(record.delays.len(), 100 * 2, "a row for each stretch of each name");
    assert!(record.delays.iter().all(|row| row.port == "port-1" && row.span == Span::ms(10)));
    let delayed = |packets, mean_ms: f64, max_ms: f64| {
        Some(DelaySummary { packets, mean_s: mean_ms / 1e3, max_s: max_ms / 1e3 })
    };
    let row = |source: &str, ms| {
        let mine = |row: &&DelayRow| row.source == source && row.time == Time::ms(ms);
        let row = record.delays.iter().find(mine).unwrap();
        (row.sojourn, row.one_way)
    };
    assert_eq!(row("web", 1_000), (delayed(2, 1.5, 2.0), None));
    assert_eq!(row("web", 1_010), (None, delayed(2, 11.5, 12.0)));
    assert_eq!(row("calls", 1_020), (delayed(1, 3.0, 3.0), None));
    assert_eq!(row("calls", 1_030), (None, delayed(1, 13.0, 13.0)));
    // The last packet of the web arrives after the interval.
    assert_eq!(row("web", 1_990), (delayed(2, 2.0, 4.0), None));
    let packets = |delayed: Option<DelaySummary>| delayed.map_or(0, |delayed| delayed.packets);
    assert_eq!(record.delays.iter().map(|row| packets(row.sojourn)).sum::<u64>(), 5);
    assert_eq!(record.delays.iter().map(|row| packets(row.one_way)).sum::<u64>(), 3);
    let without = with_delays(layout()).finish();
    assert!(without.delays.is_empty(), "series were not asked for");
}

/// The sender, the bottleneck and the receivers of a network are in three parts: all rows equal the rows of
/// one recorder that observes everything.
#[test]
fn delays_of_parts_are_those_of_the_whole() {
    let layout = Layout { keep_series: true, varying: vec![BOTTLENECK], ..layout() };
    let layout = Layout { offers: vec![(BOTTLENECK, vec![Rate::kbit(7); 100])], ..layout };
    let mut whole = with_delays(layout);
    let mut parts = [whole.fresh(), whole.fresh(), whole.fresh()];
    let mut deliveries = Vec::new();
    for number in 0..900_u64 {
        let sent = Time::us(1_000_000 + number * 1_100);
        let (source, wait) = ((number % 2) as u16, Span::us(number * 7 % 5_000));
        let meta = Meta { bytes: 100, arrived: sent, ..Meta::default() };
        let payload = (source, Some(sent));
        // Receivers of both parts get packets of both sources.
        deliveries.push((sent + wait + Span::ms(3), 1 + (number / 2 % 2) as usize, meta, payload));
        let at_port = |recorder: &mut Recorder<Sent>| {
            recorder.on_arrival(BOTTLENECK, &meta, sent);
            recorder.on_transmission(BOTTLENECK, &meta, &payload, sent + Span::us(number % 1_000));
        };
        at_port(&mut whole);
        at_port(&mut parts[0]);
    }
    deliveries.sort_by_key(|(now, ..)| *now);
    for (now, part, meta, payload) in deliveries {
        whole.on_delivery(1, &meta, &payload, now);
        parts[part].on_delivery(1, &meta, &payload, now);
    }
    let mut joined = whole.fresh();
    for (number, part) in parts.into_iter().enumerate() {
        joined.join(part, &|port| number == 0 && port == BOTTLENECK);
    }
    let (joined, whole) = (joined.finish(), whole.finish());
    assert_eq!(joined.delays, whole.delays);
    assert!(whole.delays.iter().all(|row| row.rate == Some(Rate::kbit(7))));
    assert!(whole.delays.iter().filter(|row| row.one_way.is_some()).count() > 50);
}
