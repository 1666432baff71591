//! The probe that records a run.

mod probe;

use std::collections::BTreeMap;

use giveway_qdisc::{FlowReport, PortCounters, PortId, Span, Time};

use crate::arrivals::Arrivals;
use crate::classes::Classes;
use crate::counts::{Losses, index};
use crate::crossing::Crossing;
use crate::delays;
use crate::emissions::Emissions;
use crate::fingerprint::Fingerprint;
use crate::flow_tables::FlowTables;
use crate::layout::Layout;
use crate::meter::Meter;
use crate::metrics::{Observed, hurst, metrics};
use crate::rows::{
    BurstRow, DelayRow, EpisodeRow, LinkRow, Packets, ProgressRow, QueueRow, Record, ShareRow, SojournRow,
};
use crate::summary::Summary;

/// Records one run. Pass it to the backend as its probe, then call [`finish`](Recorder::finish).
///
/// `P` is the payload of the packets of the backend. The recorder does not read it: functions return the
/// traffic source of a packet ([`with_sources`](Recorder::with_sources)) and its one-way delay
/// ([`with_delays`](Recorder::with_delays)).
pub struct Recorder<P = ()> {
    layout: Layout,
    /// Returns the traffic source of a packet.
    source_of: fn(&P) -> u16,
    /// Returns the one-way delay of a packet that reached its receiver now.
    delay_of: fn(&P, Time) -> Option<Span>,
    /// The meter of each port, by its number; `None` for a port that is not measured.
    meters: Vec<Option<Box<Meter>>>,
    /// The rare events of each port, by its number.
    losses: Vec<Losses>,
    flows: Vec<FlowReport>,
    queue: Vec<QueueRow>,
    progress: Vec<ProgressRow>,
    /// Classes of the disciplines at the measured ports.
    classes: Classes,
    /// The flow table of each port, by its number.
    flow_tables: Vec<FlowTables>,
    /// The packets that sources emit; `None` if burstiness is not measured.
    emissions: Option<Emissions>,
    /// The packets that reached their receivers; `None` if series are not kept.
    arrivals: Option<Arrivals>,
}

impl<P> Recorder<P> {
    /// A recorder with this plan. All packets belong to source 0.
    pub fn new(layout: Layout) -> Recorder<P> {
        let ports = layout.ports().last().map_or(0, |port| index(*port) + 1);
        let mut meters: Vec<Option<Box<Meter>>> = std::iter::repeat_with(|| None).take(ports).collect();
        for port in &layout.measured {
            meters[index(*port)] = Some(Box::new(Meter::new(&layout, *port)));
        }
        let emissions = layout.bursts.then(|| Emissions::new(&layout));
        let arrivals = layout.keep_series.then(|| Arrivals::new(&layout));
        Recorder {
            layout,
            emissions,
            arrivals,
            source_of: |_| 0,
            delay_of: |_, _| None,
            meters,
            losses: vec![Losses::default(); ports],
            flows: Vec::new(),
            queue: Vec::new(),
            progress: Vec::new(),
            classes: Classes::default(),
            flow_tables: vec![FlowTables::default(); ports],
        }
    }

    /// Sets the function that returns the traffic source of a packet: its place in the scenario.
    pub fn with_sources(self, source_of: fn(&P) -> u16) -> Recorder<P> {
        Recorder { source_of, ..self }
    }

    /// Sets the function that returns the one-way delay of a packet that reaches its receiver at a time, or
    /// `None` if it does not count. Without it there are no one-way delays.
    pub fn with_delays(self, delay_of: fn(&P, Time) -> Option<Span>) -> Recorder<P> {
        Recorder { delay_of, ..self }
    }

    /// Adds the counters of a port at the end of the run. The recorder does not count the packets of ports
    /// that are not measured; the table of links has these totals instead.
    pub fn port_counters(&mut self, at: PortId, counters: &PortCounters) {
        if let Some(losses) = self.losses.get_mut(index(at)) {
            losses.reported = Some(*counters);
        }
    }

    /// Starts the measurement interval at `at`, for a plan that did not know the time in advance.
    pub fn begin(&mut self, at: Time) {
        self.layout.from = at;
        let layout = &self.layout;
        self.meters.iter_mut().flatten().for_each(|meter| meter.begins(layout));
        self.arrivals = layout.keep_series.then(|| Arrivals::new(layout));
    }

    /// A recorder for what follows, with this plan and a measurement interval that starts at `at`. It has
    /// counted the queued packets alone, as arrivals.
    pub fn continued(&self, layout: Layout, at: Time) -> Recorder<P> {
        let (source_of, delay_of) = (self.source_of, self.delay_of);
        let mut next = Recorder { source_of, delay_of, ..Recorder::new(layout) };
        next.begin(at);
        for (before, meter) in self.meters.iter().zip(&mut next.meters) {
            if let (Some(before), Some(meter)) = (before, meter) {
                meter.continues(before, at);
            }
        }
        next
    }

    /// Ends the measurement interval at `at` if the run ended earlier than planned.
    pub fn ended(mut self, at: Time) -> Recorder<P> {
        let until = self.layout.until.min(at).max(self.layout.from);
        self.layout.until = until;
        self.meters.iter_mut().flatten().for_each(|meter| meter.ends(until));
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.ends(until);
        }
        self
    }

    /// Returns a copy of the recorder so far, with the samples of queues since the previous copy, while
    /// recording continues. The samples ([`Record::queue`]) of all copies together are the samples of the
    /// run, so a copy does not grow with time.
    pub fn part(&mut self) -> Recorder<P> {
        let queue = std::mem::take(&mut self.queue);
        let copy = Recorder {
            layout: self.layout.clone(),
            source_of: self.source_of,
            delay_of: self.delay_of,
            meters: self.meters.clone(),
            losses: self.losses.clone(),
            flows: self.flows.clone(),
            queue,
            progress: self.progress.clone(),
            classes: self.classes.clone(),
            flow_tables: self.flow_tables.clone(),
            emissions: self.emissions.clone(),
            arrivals: self.arrivals.clone(),
        };
        self.queue.reserve(copy.queue.len());
        copy
    }

    /// Takes the samples of queues, for a caller that concatenates the samples of all
    /// [parts](Recorder::part).
    pub fn take_samples(&mut self) -> Vec<QueueRow> {
        std::mem::take(&mut self.queue)
    }

    /// Ends the recording and computes the metrics.
    pub fn finish(mut self) -> Record {
        self.meters.iter_mut().flatten().for_each(|meter| meter.close());
        // Flows are sorted by the names of sources, so that sums of rates do not depend on their order in the
        // scenario.
        let ranks = name_ranks(&self.layout.source_names);
        let rank = |source: u16| ranks.get(usize::from(source)).copied().unwrap_or(usize::MAX);
        self.flows.sort_by_key(|flow| (rank(flow.source), flow.id, flow.kind, flow.start));
        // Senders are sampled in the order of their connections' indices, which tell a reader nothing.
        self.progress.sort_by_key(|row| (row.time, row.source, row.id));
        let crossed = Crossing::new(&self.layout, &self.flows);
        let over_bottleneck = |flow: &FlowReport| match self.layout.bottleneck() {
            Some(bottleneck) => crossed.is_over(bottleneck, flow),
            None => crossed.any(flow),
        };
        let mut all = metrics(&self.observed(&self.layout.measured, |_| true, over_bottleneck));
        if let Some(emissions) = &self.emissions {
            hurst(&self.layout, emissions, &mut all);
        }
        if self.layout.measured.len() > 1 {
            for port in &self.layout.measured {
                let name = self.layout.port_name(*port);
                let over_it = |flow: &FlowReport| crossed.is_over(*port, flow);
                for (metric, value) in metrics(&self.observed(&[*port], over_it, over_it)).iter() {
                    // Of 81 groups of a contest, at most two are at a port: they have metrics of their own.
                    if self.layout.contest.is_some() && metric.starts_with("src.") {
                        continue;
                    }
                    all.push(format!("at.{name}.{metric}"), value);
                }
            }
        }
        let summary = Summary { fingerprint: self.fingerprint(), events: 0, metrics: all };
        Record {
            summary,
            links: self.links(),
            sojourn_times: self.sojourn_times(),
            shares: self.shares(),
            delays: self.delays(),
            episodes: self.episodes(),
            bursts: self.bursts(),
            flows: self.flows,
            queue: self.queue,
            progress: self.progress,
            layout: self.layout,
        }
    }

    /// The fingerprint of all events at the measured ports and of all flows, as described in
    /// [`crate::fingerprint`].
    fn fingerprint(&self) -> Fingerprint {
        let ports = self
            .measured()
            .map(|(port, meter)| (self.layout.port_name(port).into_owned(), meter.fingerprint));
        let mut groups: BTreeMap<String, Vec<&FlowReport>> = BTreeMap::new();
        for flow in &self.flows {
            groups.entry(self.layout.source_name(flow.source).into_owned()).or_default().push(flow);
        }
        // In each group they are in the order of their numbers: `finish` has sorted them.
        let flows = groups.into_iter().map(|(name, flows)| {
            let mut chain = Fingerprint::EMPTY;
            flows.into_iter().for_each(|flow| chain.flow(flow));
            (name, chain)
        });
        let named = |chains: BTreeMap<String, Fingerprint>| {
            Fingerprint::combined(chains.into_iter().map(|(name, chain)| Fingerprint::named(&name, chain)))
        };
        Fingerprint::combined([named(ports.collect()), named(flows.collect())])
    }

    /// The recorded data of these ports and of the flows that `whose` selects. Goodput counts the flows that
    /// `crosses` selects.
    fn observed(
        &self,
        ports: &[PortId],
        whose: impl Fn(&FlowReport) -> bool,
        crosses: impl Fn(&FlowReport) -> bool,
    ) -> Observed<'_> {
        let bottleneck = ports.first().and_then(|port| Some((*port, self.meter(*port)?)));
        let flow_table = ports.first().and_then(|port| self.flow_tables.get(index(*port)));
        Observed {
            layout: &self.layout,
            bottleneck,
            measured: ports.iter().filter_map(|port| self.meter(*port)).collect(),
            crossing: self.flows.iter().filter(|flow| crosses(flow)).collect(),
            flows: self.flows.iter().filter(|flow| whose(flow)).collect(),
            flow_table: flow_table.copied().unwrap_or_default(),
            classes: ports.first().map(|port| self.classes.of(*port)).unwrap_or_default(),
        }
    }

    /// The counters of the recorded links so far.
    pub fn links(&self) -> Vec<LinkRow> {
        self.layout.ports().into_iter().map(|port| self.link(port)).collect()
    }

    fn meter(&self, at: PortId) -> Option<&Meter> {
        self.meters.get(index(at))?.as_deref()
    }

    /// The measured ports and their meters.
    fn measured(&self) -> impl Iterator<Item = (PortId, &Meter)> {
        self.layout.measured.iter().filter_map(|port| Some((*port, self.meter(*port)?)))
    }

    /// The distributions of sojourn times at the measured ports.
    fn sojourn_times(&self) -> Vec<SojournRow> {
        if !self.layout.keep_series {
            return Vec::new();
        }
        let both = self.measured().flat_map(|(port, meter)| {
            [(port, Packets::Small, &meter.small_sojourn_times), (port, Packets::All, &meter.sojourn_times)]
        });
        let rows = both.flat_map(|(port, what, times)| {
            times.curve().into_iter().map(move |(share, sojourn_s)| SojournRow {
                port,
                what,
                share,
                sojourn_s,
            })
        });
        rows.collect()
    }

    /// The bytes that the measured ports sent for each source over time.
    fn shares(&self) -> Vec<ShareRow> {
        let kept = self.measured().filter_map(|(port, meter)| Some((port, meter.series.as_ref()?)));
        kept.flat_map(|(port, series)| delays::shares(port, series)).collect()
    }

    /// The delays at the measured ports over time, for each source.
    fn delays(&self) -> Vec<DelayRow> {
        let Some(arrivals) = &self.arrivals else { return Vec::new() };
        let sent = self.measured().filter_map(|(port, meter)| Some((port, meter.series.as_ref()?)));
        let both = sent.zip(arrivals.series());
        both.flat_map(|((port, sent), arrived)| delays::rows(&self.layout, port, sent, arrived)).collect()
    }

    /// The episodes of flows at the measured ports.
    fn episodes(&self) -> Vec<EpisodeRow> {
        let counted = self.measured().filter_map(|(port, meter)| Some((port, meter.episodes.as_ref()?)));
        counted.flat_map(|(port, episodes)| episodes.rows(port)).collect()
    }

    /// The burstiness of departures from the measured ports.
    fn bursts(&self) -> Vec<BurstRow> {
        let kept = self.measured().filter_map(|(port, meter)| Some((port, meter.bursts.as_ref()?)));
        kept.flat_map(|(port, bursts)| bursts.rows(port)).collect()
    }

    fn link(&self, port: PortId) -> LinkRow {
        let losses = &self.losses[index(port)];
        let meter = self.meter(port);
        let counters = meter.map(|meter| meter.counters).or(losses.reported);
        LinkRow {
            port,
            rate: self.layout.rate(port),
            arrived: counters.map(|counters| counters.arrived),
            sent: counters.map(|counters| counters.sent),
            dropped: losses.dropped,
            marked: losses.marked,
            utilization: meter.and_then(Meter::utilization),
            drops: losses.by_reason,
            drops_measured: meter.map(|meter| meter.drops),
        }
    }
}

/// The rank of each name in the order of all names; equal names have equal ranks.
fn name_ranks(names: &[String]) -> Vec<usize> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    names.iter().map(|name| sorted.partition_point(|other| *other < name)).collect()
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{Backlog, FlowTable, Meta, Probe, Rate};

    use super::*;

    /// Two packets are queued when a new recorder continues, and leave later. Each recorder has its own
    /// counts, and no packet leaves that has not arrived.
    #[test]
    fn a_recorder_continues_with_the_queue() {
        let port = PortId(0);
        let layout = Layout {
            measured: vec![port],
            rates: vec![(port, Rate::mbit(1))],
            until: Time::s(10),
            ..Layout::default()
        };
        let mut first = Recorder::<()>::new(layout.clone());
        let meta = |second| Meta { bytes: 1000, arrived: Time::s(second), ..Meta::default() };
        (1..=3).for_each(|second| first.on_arrival(port, &meta(second), Time::s(second)));
        first.on_transmission(port, &meta(1), &(), Time::s(3));
        let mut second = first.continued(layout, Time::s(4));
        second.on_arrival(port, &meta(5), Time::s(5));
        (6..=8).for_each(|now| second.on_transmission(port, &meta(now - 4), &(), Time::s(now)));
        let [first, second] = [first.ended(Time::s(4)), second.ended(Time::s(9))].map(Recorder::finish);
        let packets = |record: &Record| {
            let link = &record.links[0];
            [link.arrived, link.sent].map(|all| all.expect("it is measured").packets)
        };
        assert_eq!([packets(&first), packets(&second)], [[3, 1], [3, 3]]);
        // Two packets for a second, three for another, then two and one: 8 packet-seconds in 5 seconds.
        assert_eq!(second.summary.metrics.value("backlog_mean_packets"), Some(8.0 / 5.0));
    }

    #[test]
    fn parts_have_all_counts_and_their_own_samples() {
        let mut recorder = Recorder::<()>::new(Layout {
            measured: vec![PortId(0)],
            rates: vec![(PortId(0), Rate::mbit(1))],
            until: Time::s(10),
            keep_series: true,
            ..Layout::default()
        });
        let held = Backlog { packets: 1, bytes: 1000 };
        let mut rows = Vec::new();
        for second in 1..=2 {
            let now = Time::s(second);
            let meta = Meta { bytes: 1000, arrived: now, ..Meta::default() };
            recorder.on_arrival(PortId(0), &meta, now);
            recorder.on_transmission(PortId(0), &meta, &(), now);
            recorder.on_sample(PortId(0), held, &FlowTable::NONE, &[], now);
            let part = recorder.part().ended(now).finish();
            assert_eq!(part.links[0].sent.unwrap().packets, second);
            rows.extend(part.queue.iter().filter(|row| row.backlog.is_some()).map(|row| row.time));
        }
        assert_eq!(rows, [Time::s(1), Time::s(2)]);
        assert!(recorder.finish().queue.is_empty(), "the samples are in the parts");
    }
}
