//! A run of a scenario, observed: what a recorder is told, and what it has to say in the end.

use qdisc::PortId;
use record::{Layout, Record, Recorder};
use scenario::{Cell, Finished, Host, Network, Scenario};
use sim::Segment;

/// Does one run with a recorder: what was recorded, and what the sources of traffic have to say. Now and then `go_on` is told
/// how much of it is done, 0 to 1; when it answers false there is no result. `keep_series`: whether what changes over time
/// is kept, too.
///
/// # Panics
/// When the cell is of another scenario, or a file that the scenario names has changed since the scenario was read.
pub fn observe(
    scenario: &Scenario,
    cell: &Cell,
    keep_series: bool,
    go_on: &dyn Fn(f64) -> bool,
) -> Option<(Record, Vec<String>)> {
    match &scenario.host {
        Host::Network(network) => {
            observe_network(network, keep_series, |recorder| network.run(cell, recorder, go_on))
        }
    }
}

/// The same on a network, for who has more probes than the recorder: `run` does the run and tells the recorder, too.
pub fn observe_network(
    network: &Network,
    keep_series: bool,
    run: impl FnOnce(&mut Recorder<Segment>) -> Option<Finished>,
) -> Option<(Record, Vec<String>)> {
    let recorder = Recorder::new(of_network(network, keep_series));
    let mut recorder = recorder.with_sources(|segment: &Segment| segment.source);
    let finished = run(&mut recorder)?;
    let mut record = recorder.finish();
    record.summary.events = finished.totals.events;
    Some((record, finished.remarks))
}

/// The plan of a recording of this scenario. `keep_series`: whether what changes over time is kept, too.
pub fn layout(scenario: &Scenario, keep_series: bool) -> Layout {
    match &scenario.host {
        Host::Network(network) => of_network(network, keep_series),
    }
}

fn of_network(network: &Network, keep_series: bool) -> Layout {
    let measured = network.measured();
    let numbered = |number: usize| PortId(number as u32);
    let default = Layout::default();
    Layout {
        measured: measured.ports,
        ways: measured.ways,
        port_names: measured
            .port_names
            .into_iter()
            .enumerate()
            .map(|(at, name)| (numbered(at), name))
            .collect(),
        node_names: measured.nodes,
        source_names: measured.sources,
        from: measured.from,
        until: measured.until,
        rates: measured.rates.into_iter().enumerate().map(|(at, rate)| (numbered(at), rate)).collect(),
        small_packet_bytes: measured.small_packet.map_or(default.small_packet_bytes, |bytes| bytes.0 as u32),
        size_classes: measured
            .size_classes
            .map_or(default.size_classes, |classes| classes.iter().map(|bytes| bytes.0).collect()),
        keep_series,
        sample: network.sample,
        senders: network.senders,
        episodes: network.episodes,
        bursts: network.bursts,
    }
}
