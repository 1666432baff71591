//! What a recorder is told about a scenario.

use qdisc::PortId;
use record::Layout;
use scenario::Scenario;

/// The plan of a recording of this scenario. `keep_series`: whether what changes over time is kept, too.
pub fn layout(scenario: &Scenario, keep_series: bool) -> Layout {
    let measured = scenario.measured();
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
        sample: scenario.sample,
        senders: scenario.senders,
        episodes: scenario.episodes,
        bursts: scenario.bursts,
    }
}
