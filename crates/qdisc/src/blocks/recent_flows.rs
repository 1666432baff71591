//! A table of flows that outlives their packets: swept for what has been silent, and bounded whatever comes.
//!
//! LAS, LARS, X-Protect and their like remember what a flow has sent. Nothing tells them that a flow has ended, so they
//! visit the table now and then and forget what has been silent for long (every 5 s, after 30 s: EFD paper, section 5.1).
//! Between two visits, a stream of ever new flows would fill any memory; so there is a most, and a policy for it:
//!
//! - When a new flow comes and the table is full, the quarter of its flows that has been silent longest is forgotten. A
//!   flow that keeps sending stays, an attacker's flows of one packet go first. A quarter at a time, because looking
//!   for the silent ones means looking at all: so it costs a few entries per new flow, and nothing per packet.
//! - A flow that `busy` says yes to (it has packets queued whose order depends on the entry) is never forgotten. When all
//!   are busy the table exceeds its most; it is never larger than that or the number of busy flows, whichever is more.

use super::FlowMap;
use crate::packet::FlowKey;
use crate::qdisc::FlowTable;
use crate::units::{Span, Time};

/// When flows are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// How often the table is visited. Zero: never.
    pub sweep: Span,
    /// How long a flow must have been silent at a visit to be forgotten.
    pub idle: Span,
    /// How many flows are remembered, at least 1.
    pub flows: usize,
}

impl Default for Memory {
    /// As in section 5.1 of the EFD paper; the most is ours.
    fn default() -> Memory {
        Memory { sweep: Span::s(5), idle: Span::s(30), flows: 65_536 }
    }
}

/// Flows and when they were last seen.
#[derive(Debug)]
pub struct RecentFlows<V> {
    flows: FlowMap<Recent<V>>,
    memory: Memory,
    busy: fn(&V) -> bool,
    /// When the next visit is due; not before the first call.
    visit: Option<Time>,
    /// The table is too large from here on.
    full: usize,
    /// Room for looking for the silent ones.
    times: Vec<Time>,
}

#[derive(Debug)]
struct Recent<V> {
    seen: Time,
    value: V,
}

impl<V> RecentFlows<V> {
    /// An empty table. What is `busy` is never forgotten.
    pub fn new(memory: Memory, busy: fn(&V) -> bool) -> RecentFlows<V> {
        RecentFlows {
            flows: FlowMap::with_capacity(memory.flows.min(1 << 10)),
            memory,
            busy,
            visit: None,
            full: memory.flows.max(1),
            times: Vec::new(),
        }
    }

    /// Bytes per slot of the table.
    pub const fn bytes_per_slot() -> usize {
        FlowMap::<Recent<V>>::bytes_per_slot()
    }

    /// Makes up for the visits that were due until `now`. Call it first in every verb.
    #[inline]
    pub fn sweep(&mut self, now: Time) {
        if self.memory.sweep.is_zero() {
            return;
        }
        let visit = *self.visit.get_or_insert(now + self.memory.sweep);
        if now >= visit {
            self.visited(visit, now);
        }
    }

    /// The last visit that was due decides: nothing happened between it and the others.
    #[cold]
    fn visited(&mut self, due: Time, now: Time) {
        let every = self.memory.sweep;
        let missed = now.since(due).as_ps() / every.as_ps();
        let last = due + every * missed;
        self.visit = Some(last + every);
        let RecentFlows { flows, memory, busy, .. } = self;
        flows.retain(|_, flow| busy(&flow.value) || flow.seen + memory.idle > last);
        self.full = self.memory.flows.max(1);
    }

    /// A packet of this flow came: its value, made by `new` when the flow is not known.
    #[inline]
    pub fn seen(&mut self, flow: FlowKey, now: Time, new: impl FnOnce() -> V) -> &mut V {
        if self.flows.len() >= self.full && self.flows.get(flow).is_none() {
            self.make_room();
        }
        let recent = self.flows.entry(flow, || Recent { seen: now, value: new() });
        recent.seen = now;
        &mut recent.value
    }

    /// A packet of this flow came: its value, if the flow is known.
    #[inline]
    pub fn seen_if_known(&mut self, flow: FlowKey, now: Time) -> Option<&mut V> {
        let recent = self.flows.get_mut(flow)?;
        recent.seen = now;
        Some(&mut recent.value)
    }

    /// The value of a flow, to change it without having seen it.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowKey) -> Option<&mut V> {
        self.flows.get_mut(flow).map(|recent| &mut recent.value)
    }

    /// The value of a flow.
    pub fn get(&self, flow: FlowKey) -> Option<&V> {
        self.flows.get(flow).map(|recent| &recent.value)
    }

    /// Every flow.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &V)> {
        self.flows.iter().map(|(flow, recent)| (flow, &recent.value))
    }

    /// What there is to report.
    pub fn table(&self) -> FlowTable {
        let scratch = (self.times.capacity() * size_of::<Time>()) as u64;
        let table = self.flows.table();
        FlowTable { bytes: table.bytes + scratch, ..table }
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.visit = None;
        self.full = self.memory.flows.max(1);
    }

    /// Forgets the quarter that has been silent longest.
    #[cold]
    fn make_room(&mut self) {
        let RecentFlows { flows, busy, times, .. } = self;
        times.clear();
        times.extend(flows.recent().filter(|flow| !busy(&flow.value)).map(|flow| flow.seen));
        let wanted = self.memory.flows.div_ceil(4);
        let quarter = wanted.min(times.len());
        if quarter > 0 {
            let (earlier, oldest, _) = times.select_nth_unstable(quarter - 1);
            let oldest = *oldest;
            // Of flows that were last seen at that very moment, only so many go.
            let mut ties = quarter - earlier.iter().filter(|seen| **seen < oldest).count();
            flows.retain(|_, flow| {
                let goes = !busy(&flow.value) && (flow.seen < oldest || (flow.seen == oldest && ties > 0));
                ties -= usize::from(goes && flow.seen == oldest);
                !goes
            });
        }
        // Where hardly any could go, looking again at once would find no more.
        let again = if quarter < wanted { flows.len() + wanted } else { 0 };
        self.full = self.memory.flows.max(1).max(again);
    }
}

impl<V> FlowMap<Recent<V>> {
    fn recent(&self) -> impl Iterator<Item = &Recent<V>> {
        self.iter().map(|(_, recent)| recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(flows: usize) -> RecentFlows<u32> {
        RecentFlows::new(Memory { flows, ..Memory::default() }, |queued| *queued > 0)
    }

    fn known(table: &RecentFlows<u32>) -> Vec<u64> {
        let mut keys: Vec<u64> = table.iter().map(|(key, _)| key.0).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn forgets_what_is_silent_for_thirty_seconds_at_the_next_visit() {
        let mut flows = table(100);
        for (second, flow) in [(0, 1), (4, 2), (6, 3)] {
            flows.sweep(Time::s(second));
            flows.seen(FlowKey(flow), Time::s(second), || 0);
        }
        // Visits are at 5, 10, ..., 30, 35: flow 1 goes at 30, flow 2 at 35, flow 3 at 40.
        for (second, left) in [(29, vec![1, 2, 3]), (30, vec![2, 3]), (34, vec![2, 3]), (39, vec![3]), (1000, vec![])] {
            flows.sweep(Time::s(second));
            assert_eq!(known(&flows), left, "after {second} s");
        }
        assert_eq!((flows.table().flows, flows.table().most), (0, 3));
    }

    #[test]
    fn never_forgets_what_is_busy() {
        let mut flows = table(4);
        flows.sweep(Time::ZERO);
        for flow in 0..40 {
            *flows.seen(FlowKey(flow), Time::ms(flow), || 0) += u32::from(flow < 3);
        }
        flows.sweep(Time::s(1000));
        assert_eq!(known(&flows), [0, 1, 2]);
    }

    #[test]
    fn the_longest_silent_make_room() {
        let mut flows = table(8);
        for flow in 0..8 {
            flows.seen(FlowKey(flow), Time::ms(flow), || 0);
        }
        flows.seen(FlowKey(0), Time::ms(8), || 0);
        flows.seen(FlowKey(100), Time::ms(9), || 0);
        assert_eq!(known(&flows), [0, 3, 4, 5, 6, 7, 100], "1 and 2 were silent longest");
        // All at one moment: still a quarter, no more.
        let mut flows = table(8);
        (0..9).for_each(|flow| {
            flows.seen(FlowKey(flow), Time::ms(1), || 0);
        });
        assert_eq!(known(&flows).len(), 7);
    }

    /// However many flows come, there are never more than the most, or than are busy.
    #[test]
    fn a_stream_of_new_flows_is_bounded() {
        let mut flows = table(1000);
        for flow in 0..100_000_u64 {
            flows.sweep(Time::us(flow));
            flows.seen(FlowKey(flow), Time::us(flow), || 0);
            assert!(flows.table().flows <= 1000);
        }
        let mut busy = table(10);
        for flow in 0..1000 {
            busy.seen(FlowKey(flow), Time::us(flow), || 1);
        }
        assert_eq!(busy.table().flows, 1000, "what is queued cannot be forgotten");
        let entries = flows.table().bytes;
        assert!(entries < 1000 * 4 * u64::from(flows.table().entry_bytes), "{entries} bytes");
    }
}
