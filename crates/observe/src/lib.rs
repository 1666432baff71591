//! A run of a scenario with a recorder, at once or step by step, and the cost of a packet on this machine.
//!
//! The simulator is generic over its probe, and this crate provides its instance with a recorder, compiled
//! for speed. A caller with more probes, such as an export, has its own instance.

#![forbid(unsafe_code)]

mod cost;
mod steps;

use giveway_measure::{
    Contest, Discipline, Fingerprint, Layout, LinkRow, Metrics, Packets, PortsOnRoute, QueueRow, Record,
    Recorder, SojournRow, Summary,
};
use giveway_qdisc::{Backlog, PortId, Time};
use giveway_scenario::{Backend, Build, Compared, Crossbar, Finished, Network, Scenario, Trial};
use giveway_sim::{Partition, Plan, Segment};
use giveway_switch::Outcome;
use giveway_switch::packet::Class;

pub use cost::Backlogged;
pub use steps::{Sojourns, Steps};

/// Executes one run with a recorder. Returns the record, and the remarks of the sources of traffic. It calls
/// `keep_running` from time to time with the progress of the run, 0 to 1. If `keep_running` returns false,
/// the run stops without a result. If `keep_series` is true, the record includes samples over time.
///
/// # Panics
/// When the trial belongs to another scenario, or a file that the scenario names has changed since the
/// scenario was read, or the scenario needs a test bed, which is not a simulation.
pub fn observe(
    scenario: &Scenario,
    trial: &Trial,
    keep_series: bool,
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<(Record, Vec<String>)> {
    match &scenario.backend {
        Backend::Network(network) => {
            observe_network(network, keep_series, |recorder| network.run(trial, recorder, keep_running))
        }
        Backend::Switch(crossbar) => {
            let outcome = crossbar.run(trial, keep_running)?;
            Some((recorded_switch(crossbar, keep_series, &outcome), Vec::new()))
        }
        Backend::Live(_) => panic!("a test bed is not a simulation: the crate testbed runs it"),
    }
}

/// Like [`observe`] on a network, for other ways to run it: `run` executes the run, with the recorder as its
/// probe or among its probes.
pub fn observe_network(
    network: &Network,
    keep_series: bool,
    run: impl FnOnce(&mut Recorder<Segment>) -> Option<Finished>,
) -> Option<(Record, Vec<String>)> {
    let mut recorder = recorder(network, keep_series);
    let finished = run(&mut recorder)?;
    Some(recorded(recorder, finished))
}

/// [`Network::run_built`] with a recorder.
///
/// # Panics
/// As [`Network::plan`].
pub fn run_built(
    network: &Network,
    trial: &Trial,
    build: Build<'_>,
    recorder: &mut Recorder<Segment>,
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<Finished> {
    network.run_built(trial, build, recorder, keep_running)
}

/// [`Network::run_plan`] with a recorder.
pub fn run_plan(
    network: &Network,
    plan: Plan,
    recorder: &mut Recorder<Segment>,
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<Finished> {
    network.run_plan(plan, recorder, keep_running)
}

/// [`Network::run_divided`] with a recorder.
///
/// # Panics
/// As [`Network::plan`].
pub fn run_divided(
    network: &Network,
    trial: &Trial,
    division: (&Partition, usize),
    recorder: &mut Recorder<Segment>,
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<Finished> {
    network.run_divided(trial, division, recorder, keep_running)
}

/// The recorder of a run on a network.
pub fn recorder(network: &Network, keep_series: bool) -> Recorder<Segment> {
    let recorder = Recorder::new(of_network(network, keep_series));
    recorder.with_sources(|segment: &Segment| segment.source).with_delays(Segment::delay)
}

/// The record of a run that has finished, and the remarks of its sources. A further remark names equal
/// sources that a phase effect has made unequal.
pub fn recorded(recorder: Recorder<Segment>, finished: Finished) -> (Record, Vec<String>) {
    let mut record = recorder.finish();
    record.summary.events = finished.totals.events;
    let mut remarks = finished.remarks;
    remarks.extend(finished.equals.iter().filter_map(|group| locked_in(&record.summary.metrics, group)));
    (record, remarks)
}

/// The remark on equal sources of which one has received much more than another; `None` if they have not.
fn locked_in(metrics: &Metrics, group: &[String]) -> Option<String> {
    /// The ratio of goodputs from which there is a remark: a lock-out, and more than an unlucky run.
    const RATIO: f64 = 10.0;
    let goodput = |name: &str| metrics.value(&format!("src.{name}.goodput_bps"));
    let mut goodputs: Vec<(f64, &String)> =
        group.iter().filter_map(|name| Some((goodput(name)?, name))).collect();
    goodputs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ((least, poor), (most, rich)) = (goodputs.first()?, goodputs.last()?);
    if *most <= 0.0 || *most < RATIO * least {
        return None;
    }
    let fold = if *least > 0.0 { format!("{:.0}-fold", most / least) } else { "completely".to_owned() };
    let [least, most] = [least, most].map(|bits| bits / 1e6);
    Some(format!(
        "equal sources {rich} and {poor} differ {fold}, {most:.3} and {least:.3} Mbit/s: this is a phase effect unless \
         the discipline prefers one of them. phase = \"sampled\" varies it with the seed, and timing = \"measured\" \
         breaks it."
    ))
}

/// The record of a switch that has run.
pub fn recorded_switch(crossbar: &Crossbar, keep_series: bool, outcome: &Outcome) -> Record {
    of_outcome(outcome, crossbar, of_crossbar(crossbar, keep_series))
}

/// The disciplines or arbiters that a scenario compares, with their names in records.
pub fn disciplines(scenario: &Scenario) -> Vec<Discipline> {
    let each = scenario.compared().into_iter();
    each.map(|Compared { name, written, parameters }| Discipline { qdisc: name, written, parameters })
        .collect()
}

/// The layout of the records of this scenario. If `keep_series` is true, records include samples over time.
pub fn layout(scenario: &Scenario, keep_series: bool) -> Layout {
    match &scenario.backend {
        Backend::Network(network) => of_network(network, keep_series),
        Backend::Switch(crossbar) => of_crossbar(crossbar, keep_series),
        Backend::Live(live) => of_network(&live.network, keep_series),
    }
}

/// The layout for a switch, whose outputs are the ports.
fn of_crossbar(crossbar: &Crossbar, keep_series: bool) -> Layout {
    let outputs = || (0..crossbar.ports).map(|output| PortId(output as u32));
    let at = |slots: u64| Time::ZERO + crossbar.slot.scale(slots, 1);
    Layout {
        measured: outputs().take(1).collect(),
        port_names: outputs().map(|output| (output, format!("output {}", output.0))).collect(),
        source_names: vec![crossbar.name.clone()],
        from: at(crossbar.warmup),
        until: at(crossbar.slots),
        rates: outputs().map(|output| (output, crossbar.rate)).collect(),
        small_packet_bytes: 64,
        slot: Some(crossbar.slot),
        keep_series,
        sample: crossbar.slot.scale((crossbar.slots - crossbar.warmup) / giveway_switch::sim::BATCHES, 1),
        ..Layout::default()
    }
}

/// The record of a switch. Times of all outputs together are recorded at the first output.
fn of_outcome(outcome: &Outcome, crossbar: &Crossbar, layout: Layout) -> Record {
    let mut metrics = Metrics::default();
    outcome.numbers().into_iter().for_each(|(name, value)| metrics.push(name, value));
    // All counters and sums of times, as integers, so that equal runs have equal fingerprints on all
    // machines.
    let fingerprint = Fingerprint::of(&outcome.digest());
    let events = outcome.all.count;
    let slot_s = crossbar.slot.as_s();
    let first = PortId(0);
    let keep = layout.keep_series;
    let delays = |what: Packets, times: &giveway_switch::Times| -> Vec<SojournRow> {
        let shares = (0..=100u32).map(|percent| f64::from(percent) / 100.0).chain([0.995, 0.999, 0.9999]);
        let row = |share: f64| {
            Some(SojournRow { port: first, what, share, sojourn_s: times.quantile(share)? * slot_s })
        };
        shares.filter_map(row).collect()
    };
    let link = |(output, crossed): (usize, &u64)| LinkRow {
        port: PortId(output as u32),
        rate: Some(crossbar.rate),
        arrived: None,
        sent: None,
        dropped: Backlog::default(),
        marked: 0,
        // Cells that crossed faster than the link sends are queued at the output.
        utilization: Some((*crossed as f64 / outcome.slots as f64).min(1.0)),
        drops: Default::default(),
        drops_measured: None,
    };
    let held = |batch: &giveway_switch::outcome::Batch| QueueRow {
        time: Time::ZERO + crossbar.slot.scale(batch.end, 1),
        port: first,
        backlog: None,
        gauge: Some(("backlog_cells", batch.backlog as f64)),
    };
    Record {
        summary: Summary { fingerprint, events, metrics },
        flows: Vec::new(),
        queue: if keep { outcome.batches.iter().map(held).collect() } else { Vec::new() },
        links: outcome.crossed_to.iter().enumerate().map(link).collect(),
        sojourn_times: if keep {
            let [short, long] = [Class::Short, Class::Long].map(|class| &outcome.class(class).wait);
            [
                delays(Packets::Small, short),
                delays(Packets::Large, long),
                delays(Packets::All, &outcome.all.wait),
            ]
            .concat()
        } else {
            Vec::new()
        },
        shares: Vec::new(),
        delays: Vec::new(),
        progress: Vec::new(),
        episodes: Vec::new(),
        bursts: Vec::new(),
        layout,
    }
}

/// The senders that compete in a scenario, if it is a contest.
pub fn contest(scenario: &Scenario) -> Option<Contest> {
    match &scenario.backend {
        Backend::Network(network) => network.contest.as_ref().map(of_contest),
        Backend::Switch(_) | Backend::Live(_) => None,
    }
}

/// The names under which the metrics of a contest are recorded.
fn of_contest(contest: &giveway_scenario::Contest) -> Contest {
    let count = contest.senders.len();
    let square = |name: &dyn Fn(usize, usize) -> String| {
        (0..count).map(|one| (0..count).map(|other| name(one, other)).collect()).collect()
    };
    Contest {
        senders: contest.senders.clone(),
        groups: square(&|one, other| contest.traffic(one, other)),
        ports: square(&|one, other| contest.port(one, other)),
    }
}

/// The layout for a network.
fn of_network(network: &Network, keep_series: bool) -> Layout {
    let measured = network.measured();
    let numbered = |number: usize| PortId(number as u32);
    let default = Layout::default();
    let mut layout = Layout {
        measured: measured.ports,
        crossed: Some(PortsOnRoute::new(measured.crossed)),
        port_names: measured
            .port_names
            .into_iter()
            .enumerate()
            .map(|(at, name)| (numbered(at), name))
            .collect(),
        node_names: measured.nodes,
        source_names: measured.sources,
        contest: network.contest.as_ref().map(of_contest),
        from: measured.from,
        until: measured.until,
        rates: measured.rates.into_iter().enumerate().map(|(at, rate)| (numbered(at), rate)).collect(),
        varying: measured.varying,
        small_packet_bytes: measured.small_packet.map_or(default.small_packet_bytes, |bytes| bytes.0 as u32),
        size_classes: measured
            .size_classes
            .map_or(default.size_classes, |classes| classes.iter().map(|bytes| bytes.0).collect()),
        keep_series,
        sample: network.sample,
        senders: network.senders,
        episodes: network.episodes,
        bursts: network.bursts,
        ..default
    };
    if keep_series {
        let stretches = layout.stretches();
        let offer = |port: &PortId| Some((*port, network.offer(*port, &stretches)?));
        layout.offers = layout.measured.iter().filter_map(offer).collect();
    }
    layout
}
