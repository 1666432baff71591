//! Rows of what a port sent, and of delays over time, for each source.

use giveway_qdisc::PortId;

use crate::layout::Layout;
use crate::rows::{DelayRow, ShareRow};
use crate::series::{Series, Sums};

/// A row for each stretch of each source that sent anything, in the order of time.
pub(crate) fn shares(port: PortId, sent: &Series) -> Vec<ShareRow> {
    let mut rows = Vec::new();
    for (stretch, (time, span)) in sent.stretches().enumerate() {
        for source in sent.sources() {
            rows.push(ShareRow { time, span, port, source, bytes: sent.of(source, stretch).bytes });
        }
    }
    rows
}

/// A row for each stretch of each group of sources with packets at the port or behind it, in the order of
/// time.
pub(crate) fn rows(layout: &Layout, port: PortId, sent: &Series, arrived: &Series) -> Vec<DelayRow> {
    // Sources with the same name are a group, in the place of the first of them.
    let mut groups: Vec<(String, Vec<u16>)> = Vec::new();
    let mut sources: Vec<u16> = sent.sources().chain(arrived.sources()).collect();
    sources.sort_unstable();
    sources.dedup();
    for source in sources {
        let name = layout.source_name(source).into_owned();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(source),
            None => groups.push((name, vec![source])),
        }
    }
    let mut rows = Vec::new();
    for (stretch, (time, span)) in sent.stretches().enumerate() {
        for (name, group) in &groups {
            let sum = |series: &Series| {
                let mut sums = Sums::default();
                group.iter().for_each(|source| sums.add(&series.of(*source, stretch)));
                sums.delayed()
            };
            rows.push(DelayRow {
                time,
                span,
                port: layout.port_name(port).into_owned(),
                source: name.clone(),
                sojourn: sum(sent),
                one_way: sum(arrived),
                rate: layout.offer(port, stretch),
            });
        }
    }
    rows
}
