//! Quick fair queueing: WF²Q+ with stamps that are rounded by groups of flows, so that no sorting is
//! necessary.
//!
//! # Principles
//! - Flows are grouped by L_max/ρ: it is between 2^(i-1) and 2^i for the flows of group i. S is as in `wf2q`,
//!   rounded down to a multiple of 2^i, and F is that plus 2·2^i. So within a group the order of starts is
//!   the order of finishes, and only few different values exist at a time: they are slots of an array, which
//!   find-first-set searches.
//! - A group takes the stamps of its earliest flow. Among the groups that have started, S ≤ V, the one with
//!   the lowest F is served.
//! - Virtual time follows real time, and is never behind the earliest start: V ← max(V + elapsed, min S),
//!   with rounded S.
//! - The latency of a flow is at most L/ρ + 3·2^i + 2·L_max/r, with 2^i < 2·L_max/ρ. That is up to seven
//!   times the latency of `wf2q`, and also independent of the rates of other flows.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Deviations
//! - Groups with flows are examined one by one: one for each power of two between the fastest and the slowest
//!   reservation. The authors keep four sets of groups, so that one find-first-set is enough. The group that
//!   is served is identical.
//! - V follows real time, not the bytes served, as in `wf2q` here.
//! - The largest packet of the link determines the group. A larger packet is served too, but later than the
//!   bound.
//! - A stamp beyond the slots of its group, which only changes of rates can cause, goes to the last slot
//!   (gauge `clamped`).
//!
//! # Cost
//! - One table look-up for each arriving packet, and a few steps per group in use for each departure, for any
//!   number of flows.
//! - 155 bytes per flow with a reservation, in addition to the table; 800 per group.
//!
//! # References
//! - F. Checconi, L. Rizzo, P. Valente, "QFQ: Efficient Packet Scheduling with Tight Guarantees", IEEE/ACM
//!   ToN 21(3), 2013: from memory. Linux has it as `sch_qfq`: tc-qfq(8).

use giveway_qdisc::blocks::Ticks;
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, List, Place, Properties, Rate, Slots, Time};

use crate::common::clock::Clock;
use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `qfq`.
    pub struct Config {
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "quick fair queueing: WF2Q+ with stamps rounded by groups, at a constant cost";
    const NEEDS: Needs = Needs::Reservations;
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Guaranteed<P, Qfq>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Qfq>, Invalid> {
        Guaranteed::new(&self.common(), Qfq::new(context), context)
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties::plain(self.limit).with(Guarantee::ReservedInGroups(context.mtu))
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), ..Config::default() },
            Config { limit: Limit::Bytes(6000), flows: 2 },
        ]
    }
}

/// The groups, and virtual time.
#[derive(Debug)]
pub struct Qfq {
    /// The largest packet of the link.
    largest: u32,
    clock: Clock,
    flows: Numbered<Flow>,
    /// Flows in the slots of all groups.
    chained: Slots<u32>,
    /// Groups by the exponent of two of their time in ticks.
    groups: Vec<Group>,
    /// The groups that have flows, by exponent.
    used: u128,
    clamped: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// F of its oldest packet, not rounded, or of its last departed packet if none is queued.
    start: Ticks,
    finish: Ticks,
    /// Rate for which the group was computed.
    rate: Rate,
    group: u8,
    /// Place of the flow in the queue of its slot.
    slot: u64,
    place: Option<Place>,
}

/// Flows of about the same L/ρ, by rounded start.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Flows that start in slot `n`, at `n % 64`; empty until the group is first used.
    slots: Vec<List>,
    /// Slots that have flows, as a bit set.
    busy: u64,
    /// The first slot with flows; all others are within 64 of it.
    first: u64,
}

/// Number of slots of a group. Usually two or three adjacent slots are in use.
const SLOTS: u64 = 64;

impl Group {
    /// Finds the first slot in use, from the previous one on.
    #[inline]
    fn settle(&mut self) {
        let from = (self.first % SLOTS) as u32;
        self.first += u64::from(self.busy.rotate_right(from).trailing_zeros() % 64);
    }
}

impl Qfq {
    fn new(context: &LinkContext) -> Qfq {
        Qfq {
            largest: u32::try_from(context.mtu.0).unwrap_or(u32::MAX),
            clock: Clock::default(),
            flows: Numbered::default(),
            chained: Slots::with_capacity(64),
            groups: vec![Group::default(); 128],
            used: 0,
            clamped: 0,
        }
    }

    /// Sets the stamps of a packet that becomes the oldest of its flow and starts at `start`.
    #[inline]
    fn head(&mut self, item: Item, start: Ticks) {
        let largest = self.largest;
        let flow = self.flows.at(item.flow);
        if flow.rate != item.rate {
            // The exponent of the next power of two.
            let time = Ticks::to_send(largest, item.rate).raw();
            flow.group = (128 - (time - 1).leading_zeros()) as u8;
            flow.rate = item.rate;
        }
        (flow.start, flow.finish) = (start, start + item.cost);
        let exponent = u32::from(flow.group);
        let mut slot = u64::try_from(start.raw() >> exponent).unwrap_or(u64::MAX);
        let group = &mut self.groups[flow.group as usize];
        if group.slots.is_empty() {
            group.slots = vec![List::default(); SLOTS as usize];
        }
        if group.busy == 0 {
            group.first = slot;
        } else if slot >= group.first.saturating_add(SLOTS) {
            slot = group.first + SLOTS - 1;
            self.clamped += 1;
        } else if slot < group.first {
            // The last slot in use must stay within the window.
            let last = group.first + 63
                - u64::from(group.busy.rotate_right((group.first % SLOTS) as u32).leading_zeros());
            if last - slot >= SLOTS {
                slot = last + 1 - SLOTS;
                self.clamped += 1;
            }
            group.first = group.first.min(slot);
        }
        let at = (slot % SLOTS) as usize;
        flow.slot = slot;
        flow.place = Some(self.chained.push_back(&mut group.slots[at], item.flow));
        group.busy |= 1 << at;
        self.used |= 1 << exponent;
    }

    /// Removes a flow from its slot.
    #[inline]
    fn leave(&mut self, number: u32) {
        let flow = self.flows.at(number);
        let Some(place) = flow.place.take() else { return };
        let group = &mut self.groups[flow.group as usize];
        let at = (flow.slot % SLOTS) as usize;
        self.chained.remove(&mut group.slots[at], place);
        if !group.slots[at].is_empty() {
            return;
        }
        group.busy &= !(1 << at);
        if group.busy == 0 {
            self.used &= !(1 << flow.group);
        } else {
            group.settle();
        }
    }

    /// The groups that have flows: exponent and start.
    #[inline]
    fn in_use(&self) -> impl Iterator<Item = (u32, Ticks)> {
        let mut left = self.used;
        std::iter::from_fn(move || {
            let exponent = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some((exponent, Ticks::from_raw(u128::from(self.groups[exponent as usize].first) << exponent)))
        })
    }

    /// Advances virtual time to the earliest start, if that is later.
    #[inline]
    fn settle(&mut self) {
        let earliest = self.in_use().map(|(_, start)| start).min();
        self.clock.shift_to(self.clock.virtual_time().max(earliest.unwrap_or_default()));
    }
}

impl Schedule for Qfq {
    const FLOW_BYTES: usize = size_of::<Flow>() + Slots::<u32>::bytes_per_slot();

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, now: Time) {
        self.clock.pass(now);
        if first {
            let start = self.clock.virtual_time().max(self.flows.at(item.flow).finish);
            self.head(item, start);
        }
        self.settle();
    }

    #[inline]
    fn next(&mut self, now: Time) -> Option<Pick> {
        self.clock.pass(now);
        self.settle();
        let started = self.in_use().filter(|(_, start)| *start <= self.clock.virtual_time());
        let finish = |(exponent, start): &(u32, Ticks)| *start + Ticks::from_raw(2 << exponent);
        let (exponent, _) = started.min_by_key(finish)?;
        let group = &self.groups[exponent as usize];
        let flow = self.chained.front(&group.slots[(group.first % SLOTS) as usize])?;
        Some(Pick::oldest(*flow))
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.leave(flow);
        if let Some(head) = head {
            let start = self.flows.at(flow).finish;
            self.head(head, start);
        }
        self.settle();
    }

    fn on_revoke(&mut self, item: Item, emptied: bool) {
        if emptied {
            self.leave(item.flow);
            let flow = self.flows.at(item.flow);
            flow.finish = flow.start;
            self.settle();
        }
    }

    fn passed(&self, flow: u32, now: Time) -> bool {
        let virtual_time = self.clock.at(now);
        self.flows.get(flow).is_none_or(|flow| flow.finish <= virtual_time)
    }

    fn forget(&mut self, flow: u32) {
        *self.flows.at(flow) = Flow::default();
    }

    fn clear(&mut self) {
        for group in &mut self.groups {
            for slot in &mut group.slots {
                while self.chained.pop_front(slot).is_some() {}
            }
            (group.busy, group.first) = (0, 0);
        }
        self.used = 0;
        self.clock.restart();
        self.flows.clear();
    }

    fn bytes(&self) -> u64 {
        let slots = |group: &Group| size_of::<Group>() + group.slots.capacity() * size_of::<List>();
        self.flows.bytes() + self.chained.bytes() + self.groups.iter().map(slots).sum::<usize>() as u64
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_s", self.clock.virtual_time().as_s());
        visit("clamped", self.clamped as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{first_departures, reserve, reserved_trace};
    use crate::testing::trace::MIXED;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Streams};
    use proptest::prelude::*;

    /// With a largest packet of 1,500 bytes, starts are rounded to 69 ms for A and 137 ms for the others, so
    /// all are 0. A's group has the earlier finish, and flows of the other group alternate. B2 becomes the
    /// oldest of its flow at 4, and D1 arrives at 4.5.
    #[test]
    fn flows_are_grouped_by_rate_and_alternate_within_a_group() {
        assert_eq!(
            reserved_trace("qfq", MIXED),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-5] C1[5-7] B2[7-8] D1[8-9] C2[9-10] B3[10-11] |"
        );
    }

    /// In the long run shares are as reserved.
    #[test]
    fn shares_are_as_reserved() {
        let got = first_departures("qfq limit 1600p", 600);
        for (got, expected) in got.into_iter().zip([200, 100, 150, 150u32]) {
            assert!(got.abs_diff(expected) <= 12, "{got}, not about {expected}");
        }
    }

    proptest! {
        /// The definition without slots: among the flows that have started by their rounded starts, the
        /// lowest rounded finish is served; of equal ones the faster group, and within it the flow that was
        /// filed first. The departures are identical.
        #[test]
        fn equals_its_definition(ops in prop::collection::vec((0..9000u64, 0..5u16, 1..15u32), 1..200)) {
            let rates = [100, 6, 60, 5, 50];
            let context = LinkContext::new(Rate::kbit(2400), Streams::new(1));
            let mut qfq = Config::default().build::<u64>(&context).unwrap();
            let mut out = Outbox::default();
            let group = rates.map(|rate| {
                let time = Ticks::to_send(1500, Rate::bit(rate * 8000)).raw();
                (0..128u32).find(|exponent| 1u128 << exponent >= time).unwrap()
            });
            let mut queues = vec![Vec::<(u32, Ticks)>::new(); 5];
            let (mut last, mut start) = ([Ticks::ZERO; 5], [Ticks::ZERO; 5]);
            let mut filed: Vec<(u32, usize)> = Vec::new();
            let (mut virtual_time, mut then, mut now) = (Ticks::ZERO, Time::ZERO, Time::ZERO);
            let rounded = |start: &[Ticks; 5], of: usize| Ticks::from_raw(start[of].raw() >> group[of] << group[of]);
            let least = |filed: &[(u32, usize)], start: &[Ticks; 5]| {
                filed.iter().map(|(_, of)| rounded(start, *of)).min().unwrap_or_default()
            };
            for (serial, (us, flow, hundreds)) in (0u32..).zip(ops) {
                now += giveway_qdisc::Span::us(us);
                virtual_time = (virtual_time + Ticks::of(now.since(then))).max(least(&filed, &start));
                then = now;
                if serial % 3 < 2 {
                    let (bytes, of) = (100 * hundreds, usize::from(flow));
                    let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, u64::from(serial));
                    pkt.meta.class = flow;
                    reserve(&mut pkt.meta, &rates);
                    if queues[of].is_empty() {
                        start[of] = virtual_time.max(last[of]);
                        filed.push((serial, of));
                    }
                    queues[of].push((serial, Ticks::to_send(bytes, pkt.meta.reserved)));
                    qfq.enqueue(pkt, &mut Cx::new(now, &mut out));
                } else {
                    let started = filed.iter().copied().filter(|(_, of)| rounded(&start, *of) <= virtual_time);
                    let rank = |(filed, of): &(u32, usize)| {
                        let rounded = rounded(&start, *of);
                        (rounded + Ticks::from_raw(2 << group[*of]), group[*of], *filed)
                    };
                    let expected = started.min_by_key(rank).map(|(serial_of, of)| {
                        filed.retain(|each| *each != (serial_of, of));
                        let (gone, cost) = queues[of].remove(0);
                        (last[of], start[of]) = (start[of] + cost, start[of] + cost);
                        if !queues[of].is_empty() {
                            filed.push((serial, of));
                        }
                        gone
                    });
                    prop_assert_eq!(qfq.dequeue(&mut Cx::new(now, &mut out)).packet().map(|pkt| pkt.payload), expected.map(u64::from));
                }
                virtual_time = virtual_time.max(least(&filed, &start));
                prop_assert_eq!(qfq.schedule.clock.virtual_time(), virtual_time);
            }
            prop_assert_eq!(qfq.schedule.clamped, 0);
        }
    }
}
