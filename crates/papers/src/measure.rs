//! One number of one run: the registry of measures, one file and one line for each.
//!
//! ```toml
//! measure = { kind = "response", source = "web", to = 20 }
//! measure = { kind = "normalized", source = "tcp" }
//! measure = { kind = "gauge", name = "fair_share_bps" }
//! measure = { kind = "metric", name = "backlog_mean_bytes" }
//! ```
//!
//! A source is the traffic with that name in the scenario. With a star at its end, `udp-*`, it is all traffic
//! whose name starts with the text before the star. The throughput of a flow is the data delivered within the
//! measurement interval, divided by the length of the interval: whole IP packets of datagrams, and TCP data
//! without headers. Throughputs are compared among long-lived flows, which are endless transfers and streams
//! of datagrams. Sizes are in full segments of 1,460 bytes. A range of sizes includes both ends.

mod kind;
mod phrases;
mod select;
mod unit;

use serde::Deserialize;

use self::kind::Kind;
use crate::fact::Measured;

pub(crate) use kind::{Needs, Run};
pub(crate) use phrases::gauge_words;
pub(crate) use select::{
    Size, Unfinished, bits_per_s, gauge, held, incomplete, largest_transfers, means, names, segments,
    throughputs, time, transfers,
};
pub(crate) use unit::Unit;

macro_rules! measures {
    ($($name:literal => $module:ident::$Measure:ident,)*) => {
        $(mod $module;)*

        /// Every measure, by its kind.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind")]
        pub(crate) enum Measure {
            $(#[serde(rename = $name)] $Measure($module::$Measure),)*
        }

        impl Measure {
            fn kind(&self) -> &dyn Kind {
                match self {
                    $(Measure::$Measure(measure) => measure,)*
                }
            }
        }
    };
}

measures! {
    "metric" => metric::Metric,
    "response" => response::Response,
    "step" => step::Step,
    "completed" => completed::Completed,
    "share_of_incomplete" => share_of_incomplete::ShareOfIncomplete,
    "mean_of_incomplete" => mean_of_incomplete::MeanOfIncomplete,
    "longest_pause" => longest_pause::LongestPause,
    "paused" => paused::Paused,
    "timeouts" => timeouts::Timeouts,
    "packets_per_fragment" => packets_per_fragment::PacketsPerFragment,
    "short_share_of_inserted" => short_share_of_inserted::ShortShareOfInserted,
    "offered_bytes" => offered_bytes::OfferedBytes,
    "goodput" => goodput::Goodput,
    "normalized" => normalized::Normalized,
    "worst_share" => worst_share::WorstShare,
    "jain" => jain::Jain,
    "correlation" => correlation::Correlation,
    "gauge" => gauge::Gauge,
    "utilization_min" => utilization_min::UtilizationMin,
    "delay" => delay::Delay,
    "delivered" => delivered::Delivered,
    "dropped" => dropped::Dropped,
    "unaccounted" => unaccounted::Unaccounted,
    "queue_deviation" => queue_deviation::QueueDeviation,
    "queue_quantile" => queue_quantile::QueueQuantile,
    "largest_delay" => largest_delay::LargestDelay,
    "bound" => bound::Bound,
    "largest_over_bound" => largest_over_bound::LargestOverBound,
    "cost" => cost::Cost,
    "cost_per_byte" => cost_per_byte::CostPerByte,
    "fact" => fact::Fact,
    "measured" => measured_elsewhere::MeasuredElsewhere,
}

pub(crate) use fact::Fact;
pub(crate) use measured_elsewhere::MeasuredElsewhere;
#[cfg(test)]
pub(crate) use utilization_min::UtilizationMin;

impl Measure {
    /// The number of a run; `None` if the run has no data to measure, or the number is not finite.
    pub fn of(&self, run: &Run<'_>) -> Option<f64> {
        self.kind().of(run).filter(|number| number.is_finite())
    }

    /// The number of an experiment with a cost, as [`Kind::of_cost`] has it.
    pub fn of_cost(&self, pair_ns: f64, bytes: u32) -> Option<f64> {
        self.kind().of_cost(pair_ns, bytes)
    }

    /// The number without a run, as [`Kind::of_paper`] has it.
    pub fn of_paper(&self, measured: &[Measured]) -> Option<f64> {
        self.kind().of_paper(measured)
    }

    /// The name of the number in sentences and titles.
    pub fn label(&self) -> String {
        self.kind().label()
    }

    /// The unit of the number.
    pub fn unit(&self) -> Unit {
        self.kind().unit()
    }

    /// The source of traffic that it names.
    pub fn source(&self) -> Option<&str> {
        self.kind().source()
    }

    /// True if the measure can be negative.
    pub fn is_signed(&self) -> bool {
        self.kind().is_signed()
    }

    /// True if the number is a total, which grows with the length of a run.
    pub fn is_total(&self) -> bool {
        self.kind().is_total()
    }

    /// The data that it needs of a run.
    pub fn needs(&self) -> Needs {
        self.kind().needs()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use giveway_measure::{Layout, Record, Recorder};
    use giveway_qdisc::{Backlog, Ending, FlowKind, FlowReport, FlowTable, PortId, Probe, Rate, Span, Time};

    use super::*;

    const BOTTLENECK: PortId = PortId(0);

    /// A flow of the third source, from 1 s to 2 s. The measurement interval is from 1 s to 3 s.
    pub fn flow(id: u64, kind: FlowKind) -> FlowReport {
        FlowReport {
            id,
            source: 2,
            kind,
            from: 0,
            to: 1,
            start: Time::s(1),
            end: Time::s(2),
            bytes: 1_460,
            delivered: 1_460,
            goodput_bytes: 1_460,
            packets: 1,
            retransmitted: 0,
            lost: None,
            causes: Default::default(),
            timeouts: 0,
            delay_mean: Span::ZERO,
            delay_p50: Span::ZERO,
            delay_p95: Span::ZERO,
            delay_p99: Span::ZERO,
            delay_max: Span::ZERO,
            longest_pause: Span::ZERO,
            paused: Span::ZERO,
            ending: Ending::Completed,
        }
    }

    /// A run with these flows, and these samples of its bottleneck: time, backlog in bytes, and the gauge
    /// `share_bps`.
    pub fn record(flows: &[FlowReport], samples: &[(Time, u64, f64)]) -> Record {
        let mut recorder: Recorder = Recorder::new(Layout {
            measured: vec![BOTTLENECK],
            source_names: ["tcp", "udp-1", "udp-2", "web"].map(str::to_owned).to_vec(),
            from: Time::s(1),
            until: Time::s(3),
            keep_series: true,
            ..Layout::default()
        });
        for (now, bytes, share) in samples {
            let held = Backlog { packets: bytes / 500, bytes: *bytes };
            Probe::<()>::on_sample(
                &mut recorder,
                BOTTLENECK,
                held,
                &FlowTable::NONE,
                &[("share_bps", *share)],
                *now,
            );
            // Samples of another port are ignored.
            Probe::<()>::on_sample(
                &mut recorder,
                PortId(1),
                held,
                &FlowTable::NONE,
                &[("share_bps", 1e9)],
                *now,
            );
        }
        flows.iter().for_each(|flow| Probe::<()>::on_flow(&mut recorder, flow));
        recorder.finish()
    }

    /// A flow that sent and delivered this number of kilobytes within the measurement interval of 2 s.
    pub fn lasting_flow(id: u64, source: u16, kind: FlowKind, sent: u64, delivered: u64) -> FlowReport {
        // Data before the interval do not count.
        let goodput_bytes = delivered * 1_000;
        let delivered = goodput_bytes + 5_000;
        FlowReport { source, bytes: sent * 1_000, delivered, goodput_bytes, ..flow(id, kind) }
    }

    /// A TCP flow and three streams, of which the faster deliver less; and two transfers of 1 s and 3 s.
    fn mixed() -> Record {
        let web = |id, end| FlowReport { source: 3, end: Time::s(end), ..flow(id, FlowKind::Transfer) };
        let given_up = FlowReport { ending: Ending::Aborted, ..web(8, 3) };
        record(
            &[
                lasting_flow(1, 2, FlowKind::Datagrams, 500, 100),
                lasting_flow(2, 1, FlowKind::Datagrams, 125, 125),
                lasting_flow(3, 2, FlowKind::Datagrams, 250, 150),
                lasting_flow(4, 0, FlowKind::Endless, 250, 250),
                flow(5, FlowKind::Transfer),
                web(6, 2),
                web(7, 4),
                given_up,
                FlowReport { source: 3, ..flow(9, FlowKind::Group) },
            ],
            &[(Time::ms(500), 9_000, 9e6), (Time::s(1), 1_000, 1e6), (Time::s(2), 4_000, 2e6)],
        )
    }

    fn measured(text: &str) -> Option<f64> {
        of(text, &mixed(), Some("500 kbit/s".parse().unwrap()), &|_| None)
    }

    fn of(
        text: &str,
        record: &Record,
        ideal: Option<Rate>,
        bound: &dyn Fn(&str) -> Option<f64>,
    ) -> Option<f64> {
        read(text).of(&Run { record, ideal, bound })
    }

    fn read(text: &str) -> Measure {
        #[derive(Deserialize)]
        struct Written {
            measure: Measure,
        }
        let Written { measure } = toml::from_str(&format!("measure = {{ {text} }}")).unwrap();
        measure
    }

    #[test]
    fn transfers_are_those_of_a_source() {
        // The transfer of the third source takes 1 s, those of the web 1 s and 3 s.
        assert_eq!(measured("kind = 'response'"), Some((1.0 + 1.0 + 3.0) / 3.0));
        assert_eq!(measured("kind = 'response', source = 'web'"), Some(2.0));
        assert_eq!(measured("kind = 'response', source = 'web', from = 2"), None);
        assert_eq!(measured("kind = 'completed', source = 'web'"), Some(2.0 / 3.0));
        assert_eq!(measured("kind = 'completed', source = 'udp-2'"), Some(1.0));
        assert_eq!(measured("kind = 'completed', source = 'tcp'"), None);
    }

    #[test]
    fn throughput_is_that_of_the_measurement_interval() {
        assert_eq!(measured("kind = 'goodput', source = 'tcp'"), Some(1e6));
        assert_eq!(measured("kind = 'goodput', source = 'udp-*'"), Some(1.5e6 + 1_460.0 * 4.0));
        assert_eq!(measured("kind = 'goodput', source = 'web'"), Some(3.0 * 1_460.0 * 4.0), "no groups");
        assert_eq!(measured("kind = 'normalized', source = 'tcp'"), Some(2.0));
        assert_eq!(measured("kind = 'normalized', source = 'udp-2'"), Some(1.0), "the mean of 0.8 and 1.2");
        assert_eq!(measured("kind = 'normalized', source = 'web'"), None, "transfers are not long-lived");
        let worst = measured("kind = 'worst_share', source = 'udp-*'").unwrap();
        assert!((worst - 0.2).abs() < 1e-12, "{worst}");
        assert_eq!(of("kind = 'normalized', source = 'tcp'", &mixed(), None, &|_| None), None);
    }

    #[test]
    fn delays_are_compared_with_their_bound() {
        let late = |id, ms| FlowReport { delay_max: Span::ms(ms), ..flow(id, FlowKind::Datagrams) };
        let run = record(&[late(1, 3), late(2, 8), flow(3, FlowKind::Datagrams)], &[]);
        let number = |text: &str| of(text, &run, None, &|source| (source == "udp-2").then_some(0.016));
        assert_eq!(number("kind = 'largest_delay', source = 'udp-2'"), Some(0.008));
        assert_eq!(number("kind = 'largest_over_bound', source = 'udp-2'"), Some(0.5));
        assert_eq!(number("kind = 'bound', source = 'udp-2'"), Some(0.016));
        assert_eq!(number("kind = 'bound', source = 'web'"), None);
        assert_eq!(number("kind = 'cost'"), None, "a run has no timings");
        assert_eq!(read("kind = 'cost_per_byte'").of_cost(50.0, 100), Some(0.5));
    }

    #[test]
    fn fairness_is_among_long_lived_flows() {
        let jain = |of: &str| measured(&format!("kind = 'jain'{of}")).unwrap();
        let all: f64 =
            625.0 * 625.0 / (4.0 * (100.0 * 100.0 + 125.0 * 125.0 + 150.0 * 150.0 + 250.0 * 250.0));
        assert!((jain("") - all).abs() < 1e-12);
        assert!((jain(", source = 'udp-2'") - 250.0 * 250.0 / (2.0 * 32_500.0)).abs() < 1e-12);
        assert_eq!(measured("kind = 'jain', source = 'tcp'"), None, "one flow has no index");
    }

    #[test]
    fn the_correlation_is_of_sent_and_delivered_data() {
        // (500, 100), (250, 150), (125, 125): deviations (625, -75), (-125, 75), (-500, 0), over 3.
        let by_hand = (-46_875.0 - 9_375.0) / libm::sqrt((390_625.0 + 15_625.0 + 250_000.0) * 11_250.0);
        let measured_value = measured("kind = 'correlation', source = 'udp-*'").unwrap();
        assert!((measured_value - by_hand).abs() < 1e-9, "{measured_value} and {by_hand}");
        assert_eq!(measured("kind = 'correlation', source = 'tcp'"), None, "only datagrams count");
        assert_eq!(measured("kind = 'correlation', source = 'udp-1'"), None, "one stream does not vary");
    }

    #[test]
    fn timeouts_are_those_of_the_largest_transfers_or_of_all_connections() {
        let flow = |id, kind, timeouts| FlowReport { timeouts, ..flow(id, kind) };
        let run = record(
            &[flow(1, FlowKind::Transfer, 2), flow(2, FlowKind::Transfer, 4), flow(3, FlowKind::Endless, 8)],
            &[],
        );
        let number = |text: &str| of(text, &run, None, &|_| None);
        assert_eq!(number("kind = 'timeouts', largest = 1"), Some(2.0));
        assert_eq!(number("kind = 'timeouts'"), Some(14.0));
        assert_eq!(read("kind = 'timeouts'").label(), "timeouts");
    }

    #[test]
    fn a_gauge_is_the_mean_of_the_measured_samples() {
        assert_eq!(measured("kind = 'gauge', name = 'share_bps'"), Some(1.5e6));
        assert_eq!(measured("kind = 'gauge', name = 'unknown'"), None);
    }

    /// The delay of a source is the mean over its packets, so each flow is weighted by its delivered data.
    #[test]
    fn delays_and_packets_are_those_of_a_source() {
        let flow = |id, source, kind, delivered, ms| FlowReport {
            delay_mean: Span::ms(ms),
            ..lasting_flow(id, source, kind, delivered, delivered)
        };
        let run = record(
            &[
                flow(1, 1, FlowKind::Datagrams, 300, 10),
                flow(2, 2, FlowKind::Datagrams, 100, 30),
                flow(3, 0, FlowKind::Endless, 46, 60),
                // No packet of this stream arrived, so it has no delay.
                flow(4, 2, FlowKind::Datagrams, 0, 0),
            ],
            &[],
        );
        let number = |text: &str| of(text, &run, None, &|_| None);
        assert!((number("kind = 'delay', source = 'udp-*'").unwrap() - 0.015).abs() < 1e-12);
        assert_eq!(number("kind = 'delay', source = 'tcp'"), Some(0.06));
        assert_eq!(number("kind = 'delay', source = 'web'"), None);
        assert_eq!(number("kind = 'delivered', source = 'udp-*', bytes = 500"), Some(800.0));
        assert_eq!(number("kind = 'delivered', source = 'tcp', bytes = 460"), Some(100.0));
    }

    /// Three packets of one stream and one of another are dropped, one of them before the measurement
    /// interval. The streams report four lost packets in it: one is not accounted for.
    #[test]
    fn drops_are_counted_by_source() {
        let layout = Layout {
            measured: vec![BOTTLENECK],
            source_names: ["tcp", "udp-1", "udp-2"].map(str::to_owned).to_vec(),
            from: Time::s(1),
            until: Time::s(3),
            ..Layout::default()
        };
        let mut recorder: Recorder<u16> = Recorder::new(layout).with_sources(|source| *source);
        for (source, now) in [(1, Time::ms(500)), (1, Time::s(1)), (1, Time::s(2)), (2, Time::s(2))] {
            let meta = giveway_qdisc::Meta { bytes: 500, ..giveway_qdisc::Meta::default() };
            recorder.on_arrival(BOTTLENECK, &meta, now);
            recorder.on_drop(BOTTLENECK, &meta, &source, giveway_qdisc::DropReason::Overlimit, now);
        }
        let lost = |id, source, lost| FlowReport {
            source,
            lost: Some(lost),
            packets: 5,
            ..flow(id, FlowKind::Datagrams)
        };
        Probe::on_flow(&mut recorder, &lost(1, 1, 3));
        Probe::on_flow(&mut recorder, &lost(2, 2, 1));
        let run = recorder.finish();
        let number = |text: &str| of(text, &run, None, &|_| None);
        assert_eq!(number("kind = 'dropped'"), Some(3.0));
        assert_eq!(number("kind = 'dropped', source = 'udp-*'"), Some(3.0));
        assert_eq!(number("kind = 'dropped', source = 'udp-1'"), Some(2.0));
        assert_eq!(number("kind = 'dropped', source = 'tcp'"), Some(0.0));
        assert_eq!(number("kind = 'unaccounted', source = 'udp-*'"), Some(1.0));
        assert!(read("kind = 'unaccounted', source = 'udp-*'").is_signed());
    }

    /// Samples every half second, packets 2, 4, 6, 10 within the measurement interval: windows of 1 s have
    /// means 3 and 8.
    #[test]
    fn queues_are_measured_by_sample_and_by_window() {
        let at = |ms, packets: u64| (Time::ms(ms), packets * 500, 0.0);
        let run =
            record(&[], &[at(500, 99), at(1000, 2), at(1500, 4), at(2000, 6), at(2500, 10), at(3000, 99)]);
        let number = |text: &str| of(text, &run, None, &|_| None);
        assert_eq!(number("kind = 'queue_deviation', window = '1 s'"), Some(2.5));
        assert_eq!(number("kind = 'queue_deviation'"), Some(f64::sqrt((12.25 + 2.25 + 0.25 + 20.25) / 4.0)));
        assert_eq!(number("kind = 'queue_quantile', share = 0.5"), Some(4.0));
        assert_eq!(number("kind = 'queue_quantile', share = 1.0, window = '1 s'"), Some(8.0));
        assert!(read("kind = 'queue_deviation'").needs().series);
        let none = record(&[], &[]);
        assert_eq!(of("kind = 'queue_deviation'", &none, None, &|_| None), None);
        assert_eq!(of("kind = 'queue_quantile', share = 0.5", &none, None, &|_| None), None);
    }

    #[test]
    fn burstiness_is_recorded_if_a_metric_needs_it() {
        let needs = |name: &str| read(&format!("kind = 'metric', name = '{name}'")).needs().bursts;
        assert!(needs("at.a->b.run_length_mean") && needs("arrivals_peakedness") && needs("src.udp.hurst"));
        assert!(!needs("utilization") && !needs("drops"));
    }

    #[test]
    fn the_least_used_link_counts() {
        let mut run = mixed();
        let link = run.links[0].clone();
        let used = |utilization| giveway_measure::LinkRow { utilization, ..link.clone() };
        run.links = vec![used(Some(0.9)), used(None), used(Some(0.4))];
        assert_eq!(of("kind = 'utilization_min'", &run, None, &|_| None), Some(0.4));
        run.links.clear();
        assert_eq!(of("kind = 'utilization_min'", &run, None, &|_| None), None);
    }

    #[test]
    fn numbers_have_words_and_units() {
        let described = |text: &str| (read(text).label(), read(text).unit());
        let is = |words: &str, unit| (words.to_owned(), unit);
        assert_eq!(
            described("kind = 'response', source = 'web', to = 7"),
            is("mean completion time of web up to 7 segments", Unit::Seconds)
        );
        assert_eq!(
            described("kind = 'response'"),
            is("mean completion time of all transfers", Unit::Seconds)
        );
        assert_eq!(described("kind = 'jain', source = 'udp-*'"), is("Jain's index of udp", Unit::Plain));
        assert_eq!(
            described("kind = 'normalized', source = 'tcp'"),
            is("normalised bandwidth of tcp", Unit::Plain)
        );
        assert_eq!(described("kind = 'gauge', name = 'fair_share_bps'"), is("fair share, mean", Unit::Rate));
        let of_metric = |name: &str| described(&format!("kind = 'metric', name = '{name}'"));
        assert_eq!(of_metric("backlog_mean_bytes"), is("mean backlog in bytes", Unit::Memory));
        assert_eq!(of_metric("backlog_mean_packets"), is("mean backlog in packets", Unit::Packets));
        assert_eq!(of_metric("flow_table_bytes"), is("maximum memory of the flow table", Unit::Memory));
        assert_eq!(of_metric("src.udp.loss"), is("packet loss of udp", Unit::Share));
        assert_eq!(Unit::Rate.titled("fair share"), "fair share (Mbit/s)");
        assert_eq!(Unit::Share.titled("loss"), "loss");
    }
}
