//! A table of flows that keeps a flow after its packets have left. Sweeps remove idle flows, and the size is
//! bounded for any traffic.
//!
//! LAS, LARS, X-Protect and similar disciplines store the number of bytes that a flow has sent. They cannot
//! detect the end of a flow, so sweeps remove flows that have been idle for long (every 5 s, after 30 s: EFD
//! paper, section 5.1). Between two sweeps, a stream of new flows could fill any memory, so the number of
//! flows has a bound:
//!
//! - If a new flow arrives and the table is full, the flows that have been idle longest are removed, until
//!   three quarters of the bound are left. A flow that sends again before that many new flows have arrived
//!   stays; an attacker's flows of one packet are removed first. A quarter is removed at once, because the
//!   search visits all flows: so it costs a few entries per new flow, and nothing per packet.
//! - A flow for which `busy` returns true (it has queued packets whose order depends on the entry) is never
//!   removed. If too many flows are busy, the table exceeds its bound: its size is at most the bound, or the
//!   number of busy flows and a quarter more.

use super::FlowMap;
use crate::packet::FlowKey;
use crate::qdisc::{FlowTable, Invalid};
use crate::units::{Span, Time};

/// Rules for the removal of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Interval between two sweeps of the table; zero for no sweeps.
    pub sweep: Span,
    /// Idle time after which a sweep removes a flow.
    pub idle: Span,
    /// Largest number of flows, at least 1.
    pub flows: usize,
}

impl Default for Memory {
    /// The values of the EFD paper, section 5.1; the bound on the number of flows is our choice.
    fn default() -> Memory {
        Memory { sweep: Span::s(5), idle: Span::s(30), flows: 65_536 }
    }
}

impl Memory {
    /// Rules from the parameters `sweep`, `idle` and `flows` of a discipline.
    ///
    /// # Errors
    /// If `flows` is zero or too large for a table.
    pub fn checked(sweep: Span, idle: Span, flows: u32) -> Result<Memory, Invalid> {
        const MAX: u32 = 1 << 22;
        if !(1..=MAX).contains(&flows) {
            let message = format!("{flows} is not between 1 and {MAX}: write for example 65536");
            return Err(Invalid::new("flows", message));
        }
        Ok(Memory { sweep, idle, flows: flows as usize })
    }
}

/// Flows with the time of their last packet.
#[derive(Debug)]
pub struct RecentFlows<V> {
    flows: FlowMap<Recent<V>>,
    memory: Memory,
    busy: fn(&V) -> bool,
    /// Time of the next sweep, which is set at the first call.
    visit: Option<Time>,
    /// Number of flows at which a new flow causes a removal: the bound, or more if so many flows are busy
    /// that a search would find too few idle ones.
    full: usize,
    /// Buffer for the search of idle flows.
    times: Vec<Time>,
}

#[derive(Debug)]
struct Recent<V> {
    seen: Time,
    value: V,
}

impl<V> RecentFlows<V> {
    /// An empty table. A flow for which `busy` returns true is never removed.
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

    /// Makes the sweeps that are due by `now`. Call it first in each method of a discipline.
    #[inline]
    pub fn sweep(&mut self, now: Time) {
        if self.memory.sweep.is_zero() {
            return;
        }
        let visit = *self.visit.get_or_insert(now + self.memory.sweep);
        if now >= visit {
            self.sweep_last(visit, now);
        }
    }

    /// Makes the last sweep that is due; no packet arrived between it and the earlier ones.
    #[cold]
    fn sweep_last(&mut self, due: Time, now: Time) {
        let every = self.memory.sweep;
        let missed = now.since(due).as_ps() / every.as_ps();
        let last = due + every * missed;
        self.visit = Some(last + every);
        let RecentFlows { flows, memory, busy, .. } = self;
        flows.retain(|_, flow| busy(&flow.value) || flow.seen + memory.idle > last);
        self.full = self.memory.flows.max(1);
    }

    /// Records a packet of a flow. Returns the value of the flow, which `new` creates if the flow is new.
    #[inline]
    pub fn record(&mut self, flow: FlowKey, now: Time, new: impl FnOnce() -> V) -> &mut V {
        self.seen_since(flow, now, new).1
    }

    /// Records a packet of a flow. Returns its value, and the time of its previous packet if the flow was in
    /// the table.
    #[inline]
    pub fn seen_since(
        &mut self,
        flow: FlowKey,
        now: Time,
        new: impl FnOnce() -> V,
    ) -> (Option<Time>, &mut V) {
        if self.flows.len() >= self.full && self.flows.get(flow).is_none() {
            self.make_room();
        }
        let mut known = true;
        let recent = self.flows.entry(flow, || {
            known = false;
            Recent { seen: now, value: new() }
        });
        let before = known.then_some(recent.seen);
        recent.seen = now;
        (before, &mut recent.value)
    }

    /// Records a packet of a flow. Returns the value of the flow, if the flow is in the table.
    #[inline]
    pub fn seen_if_known(&mut self, flow: FlowKey, now: Time) -> Option<&mut V> {
        let recent = self.flows.get_mut(flow)?;
        recent.seen = now;
        Some(&mut recent.value)
    }

    /// The value of a flow, mutably, without recording a packet.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowKey) -> Option<&mut V> {
        self.flows.get_mut(flow).map(|recent| &mut recent.value)
    }

    /// The value of a flow.
    pub fn get(&self, flow: FlowKey) -> Option<&V> {
        self.flows.get(flow).map(|recent| &recent.value)
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }
    /// True if there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// All flows.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &V)> {
        self.flows.iter().map(|(flow, recent)| (flow, &recent.value))
    }

    /// Size of the table.
    pub fn table(&self) -> FlowTable {
        let scratch = (self.times.capacity() * size_of::<Time>()) as u64;
        let table = self.flows.table();
        FlowTable { bytes: table.bytes + scratch, ..table }
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.visit = None;
        self.full = self.memory.flows.max(1);
    }

    /// Removes the flows that have been idle longest, until three quarters of the bound are left.
    #[cold]
    fn make_room(&mut self) {
        let RecentFlows { flows, busy, times, memory, .. } = self;
        let most = memory.flows.max(1);
        times.clear();
        times.extend(flows.iter().filter(|(_, flow)| !busy(&flow.value)).map(|(_, flow)| flow.seen));
        let surplus = (flows.len() + most.div_ceil(4)).saturating_sub(most).min(times.len());
        if surplus > 0 {
            let (earlier, latest, _) = times.select_nth_unstable(surplus - 1);
            let latest = *latest;
            // Of the flows with exactly this last time, only this many are removed.
            let mut ties = surplus - earlier.iter().filter(|seen| **seen < latest).count();
            flows.retain(|_, flow| {
                let tied = flow.seen == latest && ties > 0;
                let goes = !busy(&flow.value) && (flow.seen < latest || tied);
                ties -= usize::from(goes && tied);
                !goes
            });
        }
        self.full = most.max(flows.len() + flows.len().div_ceil(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn table(flows: usize) -> RecentFlows<u32> {
        RecentFlows::new(Memory { flows, ..Memory::default() }, |queued| *queued > 0)
    }

    fn known(table: &RecentFlows<u32>) -> Vec<u64> {
        let mut keys: Vec<u64> = table.iter().map(|(key, _)| key.0).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_sweep_removes_flows_that_were_idle_for_thirty_seconds() {
        let mut flows = table(100);
        for (second, flow) in [(0, 1), (4, 2), (6, 3)] {
            flows.sweep(Time::s(second));
            flows.record(FlowKey(flow), Time::s(second), || 0);
        }
        // Sweeps are at 5, 10, ..., 30, 35: flow 1 is removed at 30, flow 2 at 35, flow 3 at 40.
        for (second, left) in
            [(29, vec![1, 2, 3]), (30, vec![2, 3]), (34, vec![2, 3]), (39, vec![3]), (1000, vec![])]
        {
            flows.sweep(Time::s(second));
            assert_eq!(known(&flows), left, "after {second} s");
        }
        assert_eq!((flows.table().flows, flows.table().most), (0, 3));
    }

    #[test]
    fn busy_flows_are_never_removed() {
        let mut flows = table(4);
        flows.sweep(Time::ZERO);
        for flow in 0..40 {
            *flows.record(FlowKey(flow), Time::ms(flow), || 0) += u32::from(flow < 3);
        }
        flows.sweep(Time::s(1000));
        assert_eq!(known(&flows), [0, 1, 2]);
    }

    #[test]
    fn the_longest_idle_flows_are_removed_first() {
        let mut flows = table(8);
        for flow in 0..8 {
            flows.record(FlowKey(flow), Time::ms(flow), || 0);
        }
        flows.record(FlowKey(0), Time::ms(8), || 0);
        flows.record(FlowKey(100), Time::ms(9), || 0);
        assert_eq!(known(&flows), [0, 3, 4, 5, 6, 7, 100], "1 and 2 were idle longest");
        // With all flows at one time, a quarter is removed, too.
        let mut flows = table(8);
        (0..9).for_each(|flow| {
            flows.record(FlowKey(flow), Time::ms(1), || 0);
        });
        assert_eq!(known(&flows).len(), 7);
    }

    /// Flows above the bound are removed once they are not busy any more.
    #[test]
    fn the_table_returns_to_its_bound() {
        let mut flows = table(8);
        for flow in 0..100 {
            *flows.record(FlowKey(flow), Time::ms(flow), || 0) = 1;
        }
        assert_eq!(flows.table().flows, 100);
        (0..100).for_each(|flow| *flows.get_mut(FlowKey(flow)).unwrap() = 0);
        (100..200).for_each(|flow| {
            flows.record(FlowKey(flow), Time::ms(flow), || 0);
        });
        assert!(flows.table().flows <= 8, "{} flows", flows.table().flows);
    }

    /// A flow that sends a packet for every 5,000 new flows stays in a table of 8,000 while half a million
    /// flows arrive.
    #[test]
    fn an_active_flow_stays_in_the_table() {
        let mut flows = table(8000);
        for flow in 0..500_000_u64 {
            let now = Time::us(flow);
            flows.record(FlowKey(flow), now, || 0);
            if flow % 5000 == 0 {
                let mut is_new = false;
                flows.record(FlowKey(u64::MAX), now, || {
                    is_new = true;
                    0
                });
                assert_eq!(is_new, flow == 0, "after {flow} flows");
            }
        }
    }

    proptest! {
        /// For any arrivals, departures and pauses, many of them at one time: busy flows and the flow of the
        /// last packet are in the table, a removed flow returns only with a packet, and the table keeps its
        /// bound. A flow that is removed between sweeps was idle at least as long as every idle flow that
        /// stays.
        #[test]
        fn only_idle_flows_are_removed(
            ops in prop::collection::vec((0..3u8, 0..60u64, 0..3u64), 1..400),
            most in 1..20usize,
        ) {
            let memory = Memory { sweep: Span::ms(20), idle: Span::ms(40), flows: most };
            let mut flows: RecentFlows<u32> = RecentFlows::new(memory, |queued| *queued > 0);
            let mut model: BTreeMap<u64, (Time, u32)> = BTreeMap::new();
            let (mut now, mut most_busy) = (Time::ms(1), 0);
            for (op, flow, later) in ops {
                now += Span::ms(later * later * later);
                flows.sweep(now);
                let swept: Vec<u64> = model.keys().copied().filter(|flow| flows.get(FlowKey(*flow)).is_none()).collect();
                for gone in swept {
                    let (seen, queued) = model.remove(&gone).unwrap();
                    prop_assert!(queued == 0 && seen + memory.idle <= now);
                }
                if op < 2 {
                    let known = *model.get(&flow).map_or(&0, |(_, queued)| queued);
                    prop_assert_eq!(*flows.record(FlowKey(flow), now, || 0), known);
                    *flows.get_mut(FlowKey(flow)).unwrap() += u32::from(op);
                    model.insert(flow, (now, known + u32::from(op)));
                } else if let Some((_, queued)) = model.get_mut(&flow) {
                    *queued = queued.saturating_sub(1);
                    *flows.get_mut(FlowKey(flow)).unwrap() = *queued;
                }
                let (left, gone): (Vec<_>, Vec<_>) =
                    model.iter().partition(|(flow, _)| flows.get(FlowKey(**flow)).is_some());
                let earliest = left.iter().filter(|(_, (_, queued))| *queued == 0).map(|(_, (seen, _))| *seen).min();
                for (_, (seen, queued)) in &gone {
                    prop_assert!(*queued == 0 && earliest.is_none_or(|earliest| *seen <= earliest));
                }
                model.retain(|flow, _| flows.get(FlowKey(*flow)).is_some());
                prop_assert_eq!(known(&flows), model.keys().copied().collect::<Vec<_>>());
                most_busy = most_busy.max(model.values().filter(|(_, queued)| *queued > 0).count());
                prop_assert!(model.len() <= most.max(most_busy + most_busy.div_ceil(4)), "{} flows", model.len());
            }
        }
    }

    /// For any number of flows the size is at most the bound, or the number of busy flows.
    #[test]
    fn a_stream_of_new_flows_is_bounded() {
        let mut flows = table(1000);
        for flow in 0..100_000_u64 {
            flows.sweep(Time::us(flow));
            flows.record(FlowKey(flow), Time::us(flow), || 0);
            assert!(flows.table().flows <= 1000);
        }
        let mut busy = table(10);
        for flow in 0..1000 {
            busy.record(FlowKey(flow), Time::us(flow), || 1);
        }
        assert_eq!(busy.table().flows, 1000, "busy flows are not removed");
        let entries = flows.table().bytes;
        assert!(entries < 1000 * 4 * u64::from(flows.table().entry_bytes), "{entries} bytes");
    }
}
