//! The common part of all disciplines that guarantee rates: reservations, the queues of the flows, best
//! effort, and the buffer. A [`Schedule`] only chooses the next flow.
//!
//! - A packet requests a rate for its flow in [`Meta::reserved`](giveway_qdisc::Meta::reserved). The request
//!   is admitted while the sum of all admitted rates fits the link and the table has room. Otherwise the flow
//!   is best effort, and its packets are counted (gauge `refused_packets`). It is admitted later, once there
//!   is room. Its queued best-effort packets then move to the reservation, so that they stay in order.
//! - A flow may change its rate as far as that fits. A packet without a reservation, and all packets after
//!   it, are best effort. Packets that were queued with the reservation still leave at the reserved rate, and
//!   so before the others. The flow is forgotten once none of these is queued and virtual time has passed its
//!   last tag, so that a new request cannot cancel a debt. A silent flow keeps its reservation until another
//!   flow needs the room. Then the flow that has been silent longest loses it, under the same condition.
//! - When the rate of the link changes, new requests are admitted by the new rate. Flows that were admitted
//!   keep their rates: if the link is slower than their sum, they share it in proportion to them, and their
//!   guarantee does not hold in that time.
//! - Best effort gets the capacity that reserved flows leave. It is served when no reserved flow has a
//!   packet, fairly by bytes ([`drr`](crate::drr)). It delays a reserved packet by the rest of the packet on
//!   the wire, at most one packet.
//! - All share the buffer. When it is full, the longest queue of best effort loses packets; without best
//!   effort the longest reserved queue does. So neither a flood of best effort nor a flow above its
//!   reservation takes the buffer space of the others.

use giveway_qdisc::blocks::{FlowIndex, LongestQueue, Memory, Rank, Ticks};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Meta, Next, Packet,
    Place, Qdisc, Rate, Slots, Span, Time, check_limit,
};

use crate::Discipline;
use crate::drr::{self, Drr};

/// Chooses the next flow among those with reservations. Flows and packets are small numbers, which are
/// used again when the flow is forgotten or the packet gone.
pub trait Schedule {
    /// State per flow, in bytes.
    const FLOW_BYTES: usize;

    /// Adds an arriving packet. `first` is true if its flow had no packet queued.
    fn on_arrival(&mut self, item: Item, first: bool, now: Time);

    /// Selects the packet that leaves now. There is one whenever a packet is queued.
    fn next(&mut self, now: Time) -> Option<Pick>;

    /// Removes that packet of this flow after its departure; `head` is now its oldest.
    fn on_departure(&mut self, flow: u32, packet: u32, head: Option<Item>, now: Time);

    /// Removes the newest packet of a flow after its drop. `emptied` is true if it was the only one.
    fn on_revoke(&mut self, item: Item, emptied: bool);

    /// True if the history of this flow, which has no packet queued, has no effect any more.
    fn passed(&self, flow: u32, now: Time) -> bool;

    /// Forgets a flow without queued packets.
    fn forget(&mut self, flow: u32);

    /// Returns to the initial state, without queued packets.
    fn clear(&mut self);

    /// The link has another rate from `now` on.
    fn rate_changed(&mut self, _rate: Rate, _now: Time) {}

    /// Memory of the schedule, in bytes.
    fn bytes(&self) -> u64;

    /// Reports internal state for plots.
    fn gauges(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// A packet in the queue of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its flow's number.
    pub flow: u32,
    /// Its own number.
    pub packet: u32,
    /// Its time at the rate of its flow: L/ρ.
    pub cost: Ticks,
    /// Its flow's rate.
    pub rate: Rate,
}

/// The choice of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The flow.
    pub flow: u32,
    /// Its packet, if that need not be the oldest.
    pub packet: Option<u32>,
}

impl Pick {
    /// The oldest packet of a flow.
    #[inline]
    pub fn oldest(flow: u32) -> Pick {
        Pick { flow, packet: None }
    }
}

/// Flows with reservations under a schedule, and best effort.
pub struct Guaranteed<P, S> {
    pub(crate) schedule: S,
    limit: Limit,
    link: Rate,
    /// Largest number of known flows.
    most: usize,
    by_key: FlowIndex,
    flows: Slots<Flow>,
    /// Flows without queued packets, the longest silent first. Other flows are not in this list.
    silent: List,
    /// Keys of all flows in the order of their admission, at the same places. Seldom used.
    order: Slots<()>,
    known: List,
    packets: Slots<Packet<P>>,
    longest: LongestQueue,
    /// Backlog of the reserved flows.
    backlog: Backlog,
    best_effort: Drr<P>,
    /// Sum of the admitted rates.
    admitted: Rate,
    /// Packets that were served as best effort although their flow requested a rate.
    refused: u64,
}

/// A flow with a reservation.
#[derive(Debug)]
struct Flow {
    key: FlowKey,
    queue: List,
    /// Length of the last packet, whose cost is cached: lengths repeat, and a division costs more than a
    /// comparison.
    priced: u32,
    /// Backlog that `longest` has for the flow, in bytes, saturating. It is never below the actual one.
    ranked: u32,
    /// Cost of that length in ticks, if it fits.
    cost: u64,
    rate: Rate,
    /// Its backlog, in bytes.
    bytes: u64,
    /// True if its last packet had no reservation.
    lapsed: bool,
}

// With its links it fills a cache line.
const _: () = assert!(Slots::<Flow>::bytes_per_slot() <= 64);

impl Flow {
    #[inline]
    fn cost(&mut self, bytes: u32) -> Ticks {
        if self.priced == bytes {
            return Ticks::from_raw(u128::from(self.cost));
        }
        let ticks = Ticks::to_send(bytes, self.rate);
        if let Ok(cost) = u64::try_from(ticks.raw()) {
            (self.priced, self.cost) = (bytes, cost);
        }
        ticks
    }

    /// A packet of this flow.
    #[inline]
    fn item(&mut self, place: Place, at: Place, bytes: u32) -> Item {
        Item { flow: place.index(), packet: at.index(), cost: self.cost(bytes), rate: self.rate }
    }
}

#[inline]
fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The parameters of every discipline that guarantees rates.
pub(crate) struct Common {
    /// Capacity of the buffer that all flows share.
    pub limit: Limit,
    /// Largest number of flows with reservations.
    pub flows: u32,
}

/// Declares the `Config` of a discipline that guarantees rates: `limit` and `flows`, then its own parameters,
/// each with its default.
macro_rules! reserved_config {
    (
        $(#[$about:meta])*
        pub struct Config {
            $($(#[$meaning:meta])* pub $name:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            /// Capacity for all flows together, in packets or in bytes.
            pub limit: giveway_qdisc::Limit,
            /// Largest number of flows with reservations at one time.
            pub flows: u32,
            $($(#[$meaning])* pub $name: $type,)*
        }

        impl Default for Config {
            fn default() -> Config {
                Config { limit: giveway_qdisc::Limit::Packets(1000), flows: 65_536, $($name: $default),* }
            }
        }

        impl Config {
            fn common(&self) -> $crate::common::guaranteed::Common {
                $crate::common::guaranteed::Common { limit: self.limit, flows: self.flows }
            }
        }
    };
}

/// Checks the slots of an output array or a calendar, and the width of a slot.
///
/// # Errors
/// A number of slots that is 0 or too large, or a slot without width.
pub(crate) fn array(slots: u32, parameter: &'static str, width: Span) -> Result<(usize, Ticks), Invalid> {
    if !(1..=1 << 24).contains(&slots) {
        let message = format!("{slots} is not between 1 and {}; write for example 1009", 1 << 24);
        return Err(Invalid::new("slots", message));
    }
    if width.is_zero() {
        return Err(Invalid::new(parameter, "a slot needs a width above zero, for example \"1ms\""));
    }
    Ok((slots as usize, Ticks::of(width)))
}

impl<P: 'static, S: Schedule> Guaranteed<P, S> {
    /// Creates the discipline without flows.
    ///
    /// # Errors
    /// A limit that is too small or too large, or a table without slots.
    pub(crate) fn new(
        common: &Common,
        schedule: S,
        context: &LinkContext,
    ) -> Result<Guaranteed<P, S>, Invalid> {
        check_limit("limit", common.limit, context.mtu)?;
        if common.flows == 0 {
            let message = "must be at least 1, for example 4096";
            return Err(Invalid::new("flows", message));
        }
        let most = Memory::checked(Span::ZERO, Span::ZERO, common.flows)?.flows;
        let capacity = common.limit.initial_capacity();
        let flows = (common.flows as usize).min(1 << 10);
        let best_effort = drr::Config { limit: common.limit, ..drr::Config::default() };
        Ok(Guaranteed {
            schedule,
            limit: common.limit,
            link: context.rate,
            most,
            by_key: FlowIndex::with_capacity(flows),
            flows: Slots::with_capacity(flows),
            silent: List::default(),
            order: Slots::with_capacity(flows),
            known: List::default(),
            packets: Slots::with_capacity(capacity),
            longest: LongestQueue::with_capacity(flows),
            backlog: Backlog::ZERO,
            best_effort: best_effort.build(&context.child("best_effort"))?,
            admitted: Rate::default(),
            refused: 0,
        })
    }
}

impl<P, S: Schedule> Qdisc<P> for Guaranteed<P, S> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let arrival = pkt.meta.flow;
        match self.reservation(&pkt.meta, cx.now()) {
            Some(place) => self.append(place, pkt, cx.now()),
            None => self.best_effort.enqueue(pkt, cx),
        }
        if !self.limit.allows(self.backlog()) {
            self.push_out(arrival, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Some(pick) = self.schedule.next(cx.now()) else { return self.best_effort.dequeue(cx) };
        let place = self.flows.place(pick.flow).expect("the next flow is in the table");
        let queue = &self.flows[place].queue;
        let oldest = || self.packets.front_place(queue);
        let at = pick.packet.map_or_else(oldest, |packet| self.packets.place(packet));
        let at = at.expect("the next flow has a packet");
        let head = self.take(place, at);
        let flow = &mut self.flows[place];
        let head = head.map(|front| flow.item(place, front, self.packets[front].bytes()));
        self.schedule.on_departure(place.index(), at.index(), head, cx.now());
        Next::Packet(self.release(at))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog.plus(self.best_effort.backlog())
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(place) = self.order.front_place(&self.known) {
            let queue = &mut self.flows[place].queue;
            let silent = queue.is_empty();
            while let Some(pkt) = self.packets.pop_front(queue) {
                cx.drop(pkt, DropReason::Reset);
            }
            if !silent {
                self.flows.attach(&mut self.silent, place);
            }
            self.flows.remove(&mut self.silent, place);
            self.order.remove(&mut self.known, place);
        }
        self.by_key.clear();
        self.longest.clear();
        self.schedule.clear();
        self.best_effort.reset(cx);
        (self.backlog, self.admitted) = (Backlog::ZERO, Rate::default());
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.link = rate;
        self.schedule.rate_changed(rate, now);
        self.best_effort.rate_changed(rate, now);
    }

    fn flow_table(&self) -> FlowTable {
        let table = self.by_key.table();
        let own = Slots::<Flow>::bytes_per_slot() + Slots::<()>::bytes_per_slot() + S::FLOW_BYTES;
        let reserved = table.with(own, self.flows.bytes() + self.order.bytes() + self.schedule.bytes());
        reserved.plus(self.best_effort.flow_table())
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("reserved_bit", self.admitted.as_bit() as f64);
        visit("refused_packets", self.refused as f64);
        self.schedule.gauges(visit);
    }
}

impl<P, S: Schedule> Guaranteed<P, S> {
    /// The flow whose reservation serves a packet; `None` for best effort.
    #[inline]
    fn reservation(&mut self, meta: &Meta, now: Time) -> Option<Place> {
        let Some(place) = self.by_key.get(meta.flow, |place| self.flows[place].key) else {
            return if meta.reserved == Rate::default() { None } else { self.admit(meta, now) };
        };
        let flow = &self.flows[place];
        if (flow.rate == meta.reserved && !flow.lapsed) || self.renegotiate(place, meta.reserved, now) {
            return Some(place);
        }
        None
    }

    /// Admits a flow without a reservation, if its rate fits.
    fn admit(&mut self, meta: &Meta, now: Time) -> Option<Place> {
        while !self.fits(Rate::default(), meta.reserved) || self.by_key.len() >= self.most {
            if meta.reserved > self.link || !self.release_silent(now) {
                self.refused += 1;
                return None;
            }
        }
        let (key, rate) = (meta.flow, meta.reserved);
        let flow = Flow {
            key,
            queue: List::default(),
            priced: 0,
            ranked: 0,
            cost: 0,
            rate,
            bytes: 0,
            lapsed: false,
        };
        let place = self.flows.push_back(&mut self.silent, flow);
        let known = self.order.push_back(&mut self.known, ());
        debug_assert_eq!(known, place, "both stores give and take back places together");
        self.by_key.insert(key, place, |place| self.flows[place].key);
        self.admitted = Rate::bit(self.admitted.as_bit() + rate.as_bit());
        self.change_over(place, now);
        Some(place)
    }

    /// Best-effort packets of the flow arrived earlier, so they move first.
    fn change_over(&mut self, place: Place, now: Time) {
        let key = self.flows[place].key;
        while let Some(pkt) = self.best_effort.take(key) {
            self.append(place, pkt, now);
        }
    }

    /// True if a rate fits in place of another.
    #[inline]
    fn fits(&self, old: Rate, new: Rate) -> bool {
        let others = self.admitted.as_bit() - old.as_bit();
        others.checked_add(new.as_bit()).is_some_and(|sum| sum <= self.link.as_bit())
    }

    /// Changes the rate of a flow, if the new one fits. Returns false if its packets are best effort from now
    /// on.
    #[cold]
    fn renegotiate(&mut self, place: Place, rate: Rate, now: Time) -> bool {
        let (old, silent) = (self.flows[place].rate, self.flows[place].queue.is_empty());
        if rate == Rate::default() {
            // Its queued packets leave before all best effort, so the flow keeps its order.
            if silent && self.schedule.passed(place.index(), now) {
                self.forget(place);
            } else {
                self.flows[place].lapsed = true;
            }
            return false;
        }
        if std::mem::take(&mut self.flows[place].lapsed) {
            self.change_over(place, now);
        }
        if self.fits(old, rate) {
            self.admitted = Rate::bit(self.admitted.as_bit() - old.as_bit() + rate.as_bit());
            let flow = &mut self.flows[place];
            (flow.rate, flow.priced, flow.cost) = (rate, 0, 0);
        } else {
            self.refused += 1;
        }
        true
    }

    /// Ends the reservation of the flow that has been silent longest. Returns true if there was one.
    #[cold]
    fn release_silent(&mut self, now: Time) -> bool {
        // If the first has a debt, it moves to the end and the next one is examined.
        for _ in 0..2 {
            let Some(place) = self.flows.front_place(&self.silent) else { return false };
            if self.schedule.passed(place.index(), now) {
                self.forget(place);
                return true;
            }
            self.flows.rotate(&mut self.silent);
        }
        false
    }

    /// Forgets a flow without queued packets.
    fn forget(&mut self, place: Place) {
        self.by_key.remove(self.flows[place].key, |place| self.flows[place].key);
        let flow = self.flows.remove(&mut self.silent, place);
        self.order.remove(&mut self.known, place);
        self.admitted = Rate::bit(self.admitted.as_bit() - flow.rate.as_bit());
        self.schedule.forget(place.index());
    }

    /// Puts a packet at the end of its flow's queue.
    #[inline]
    fn append(&mut self, place: Place, pkt: Packet<P>, now: Time) {
        let flow = &mut self.flows[place];
        let (bytes, first) = (pkt.bytes(), flow.queue.is_empty());
        let at = self.packets.push_back(&mut flow.queue, pkt);
        flow.bytes += u64::from(bytes);
        if flow.bytes > u64::from(flow.ranked) {
            flow.ranked = saturated(flow.bytes);
            self.longest
                .record_growth(place.index(), Rank { length: flow.bytes, ticket: u64::from(place.index()) });
        }
        let item = flow.item(place, at, bytes);
        if first {
            self.flows.detach(&mut self.silent, place);
        }
        self.backlog.add(bytes);
        self.schedule.on_arrival(item, first, now);
    }

    /// Takes a packet out of its flow's queue and returns the oldest that remains. The packet keeps its place
    /// until it is released.
    #[inline]
    fn take(&mut self, place: Place, at: Place) -> Option<Place> {
        let bytes = self.packets[at].bytes();
        let flow = &mut self.flows[place];
        self.packets.detach(&mut flow.queue, at);
        flow.bytes -= u64::from(bytes);
        self.backlog.sub(bytes);
        let oldest = self.packets.front_place(&flow.queue);
        if oldest.is_none() {
            self.flows.attach(&mut self.silent, place);
        }
        oldest
    }

    /// Releases a packet that was taken, as the last step; its metadata is copied from its slot. A packet
    /// that is passed on as a whole would be copied each time, and the processor would stall, since it reads
    /// the packet in other pieces than it wrote it.
    #[inline]
    fn release(&mut self, at: Place) -> Packet<P> {
        let meta = self.packets[at].meta;
        let Packet { payload, .. } = self.packets.release(at);
        Packet { meta, payload }
    }

    /// Drops packets of the longest queue until the backlog is within the limit. `arrival` is the flow of the
    /// packet that just arrived.
    #[cold]
    fn push_out(&mut self, arrival: FlowKey, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.backlog()) {
            let victim = self.best_effort.give_up().unwrap_or_else(|| self.revoke());
            // The newest packet of its flow is the arrival.
            let own = victim.meta.flow == arrival;
            cx.drop(victim, if own { DropReason::Overlimit } else { DropReason::Pushout });
        }
    }

    /// Removes the newest packet of the reserved flow with the most queued bytes.
    fn revoke(&mut self) -> Packet<P> {
        let flows = &mut self.flows;
        let rank = |index| {
            let place = flows.place(index)?;
            let flow = &mut flows[place];
            flow.ranked = saturated(flow.bytes);
            (flow.bytes > 0).then_some(Rank { length: flow.bytes, ticket: u64::from(index) })
        };
        let longest = self.longest.longest(rank).expect("what exceeds the limit is queued");
        let place = self.flows.place(longest).expect("the longest queue is a flow's");
        let flow = &mut self.flows[place];
        let queue = &flow.queue;
        let last = self.packets.nth_place(queue, queue.len() - 1).expect("the longest queue has a packet");
        let item = flow.item(place, last, self.packets[last].bytes());
        let oldest = self.take(place, last);
        self.schedule.on_revoke(item, oldest.is_none());
        self.release(last)
    }

    /// The number of a flow with a reservation.
    #[cfg(test)]
    pub(crate) fn number(&self, flow: FlowKey) -> Option<u32> {
        self.by_key.get(flow, |place| self.flows[place].key).map(Place::index)
    }
}

/// The state of a schedule per flow or per packet, by number.
#[derive(Debug, Default)]
pub(crate) struct Numbered<T>(Vec<T>);

impl<T: Default> Numbered<T> {
    /// The state for a number, created if necessary.
    #[inline]
    pub(crate) fn at(&mut self, number: u32) -> &mut T {
        if number as usize >= self.0.len() {
            self.0.resize_with(number as usize + 1, T::default);
        }
        &mut self.0[number as usize]
    }
    /// The state for a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.0.get(number as usize)
    }
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
    pub(crate) fn bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<T>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::Spec;
    use crate::testing::events::context;
    use crate::testing::reserved::reserved_trace_with;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Time};

    /// The disciplines that are built on this.
    const ALL: [&str; 9] = ["vc", "wfq", "wf2q", "tss", "trr", "trr_round", "trr_sound", "vtrr", "qfq"];

    fn gauge(qdisc: &impl Qdisc<u64>, wanted: &str) -> f64 {
        let mut found = None;
        qdisc.gauges(&mut |name, value| found = found.or((name == wanted).then_some(value)));
        found.expect("there is such a gauge")
    }

    fn packet(flow: u64, rate: Rate) -> Packet<u64> {
        let mut pkt = Packet::new(FlowKey(flow), 1000, 0);
        pkt.meta.reserved = rate;
        pkt
    }

    /// Best effort is served last, and loses packets first when the buffer is full: of equally long queues
    /// the first in the round.
    #[test]
    fn best_effort_loses_packets_first() {
        for name in ALL {
            let got = reserved_trace_with(
                &format!("{name} limit 3p"),
                100,
                &[50],
                "0 X1 100, Y1 100, A1 100, A2 100",
            );
            assert_eq!(got, "A1[0-1] A2[1-2] Y1[2-3] | X1@0", "{name}");
        }
    }

    /// Without best effort the longest reserved queue loses its newest packet, not the flow that arrived
    /// last.
    #[test]
    fn a_flood_above_its_reservation_loses_its_own_packets() {
        for name in ALL {
            let got = reserved_trace_with(
                &format!("{name} limit 3p"),
                100,
                &[50, 50],
                "0 A1 100, A2 100, A3 100, B1 100; 0.5 A4 100, A5 100",
            );
            assert!(got.ends_with("| A3@0 A5@0.5"), "{name}: {got}");
            assert!(got.contains("B1["), "{name}: {got}");
        }
    }

    /// B requests the rate that A has reserved, and is best effort. Once A has been silent for long enough, B
    /// gets the rate, and its queued packets move to the reservation in order.
    #[test]
    fn a_refused_flow_is_best_effort_until_there_is_room() {
        for name in ALL {
            let arrivals = "0 A1 100, X1 100, X2 100, X3 100, B1 100, B2 100; 2.5 B3 100";
            let got = reserved_trace_with(name, 100, &[60, 60], arrivals);
            assert_eq!(got, "A1[0-1] X1[1-2] X2[2-3] B1[3-4] B2[4-5] B3[5-6] X3[6-7] |", "{name}");
        }
    }

    /// The reservation of A ends while A has packets queued and continues to send. The queued packets leave
    /// first; later ones are best effort and alternate with X. A new request restores the reservation, in
    /// order.
    #[test]
    fn a_flow_without_its_reservation_is_best_effort_at_once() {
        for name in ALL {
            let mut out = Outbox::default();
            let (a, x) = (1u64, 2u64);
            let (none, some) = (Rate::default(), Rate::mbit(1));
            let mut number = 0u64;
            let mut come = |qdisc: &mut Box<dyn Qdisc<u64>>, arrivals: &[(u64, Rate)]| {
                for (flow, rate) in arrivals {
                    let mut pkt = Packet::new(FlowKey(*flow), 1000, number);
                    pkt.meta.reserved = *rate;
                    number += 1;
                    qdisc.enqueue(pkt, &mut Cx::new(Time::ms(1), &mut out));
                }
            };
            let leave = |qdisc: &mut Box<dyn Qdisc<u64>>, most: usize| -> Vec<u64> {
                let mut out = Outbox::default();
                let mut cx = Cx::new(Time::ms(2), &mut out);
                std::iter::from_fn(|| qdisc.dequeue(&mut cx).packet())
                    .take(most)
                    .map(|pkt| pkt.payload)
                    .collect()
            };
            let mut qdisc: Box<dyn Qdisc<u64>> =
                name.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
            // 0 and 1 are reserved, 2 and 3 are of X, and 4, 5 and 6 are of A without a reservation.
            come(&mut qdisc, &[(a, some), (a, some), (x, none), (x, none), (a, none), (a, none), (a, none)]);
            assert_eq!(leave(&mut qdisc, 2), [0, 1], "{name}");
            let mut turns = leave(&mut qdisc, 2);
            turns.sort_unstable();
            assert_eq!(turns, [2, 4], "{name}: one of each");
            // 7 has a reservation: it leaves after 5 and 6 of its flow and before 3 of X.
            come(&mut qdisc, &[(a, some)]);
            let mut left = leave(&mut qdisc, 9);
            if !name.parse::<Spec>().unwrap().properties(&context()).keeps_flow_order {
                left[..3].sort_unstable();
            }
            assert_eq!(left, [5, 6, 7, 3], "{name}");
        }
    }

    #[test]
    fn refusals_are_counted() {
        for name in ALL {
            let mut qdisc = name.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ms(1), &mut out);
            qdisc.enqueue(packet(1, Rate::mbit(5)), &mut cx);
            qdisc.enqueue(packet(2, Rate::mbit(4)), &mut cx);
            qdisc.enqueue(packet(2, Rate::mbit(4)), &mut cx);
            qdisc.enqueue(packet(3, Rate::mbit(9)), &mut cx);
            qdisc.enqueue(packet(4, Rate::mbit(3)), &mut cx);
            // The first request exceeds the remaining rate and has no effect; the second one fits.
            qdisc.enqueue(packet(4, Rate::mbit(4)), &mut cx);
            assert_eq!(
                (gauge(&qdisc, "refused_packets"), gauge(&qdisc, "reserved_bit")),
                (4.0, 8e6),
                "{name}"
            );
            qdisc.enqueue(packet(4, Rate::mbit(2)), &mut cx);
            assert_eq!(gauge(&qdisc, "reserved_bit"), 7e6, "{name}");
            qdisc.reset(&mut cx);
            assert_eq!(gauge(&qdisc, "reserved_bit"), 0.0, "{name}");
        }
    }

    /// A hundred thousand flows reserve 1 bit/s each: the table keeps its bound, and a flow with a real
    /// reservation is admitted, since the others are silent.
    #[test]
    fn the_table_is_bounded() {
        for name in ALL {
            let spec = format!("{name} flows 50");
            let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
            let mut out = Outbox::default();
            for flow in 0..100_000u64 {
                // A packet of a flow of 1 bit/s takes 8,000 s.
                let mut cx = Cx::new(Time::s(flow * 100), &mut out);
                qdisc.enqueue(packet(flow, Rate::bit(1)), &mut cx);
                assert!(qdisc.dequeue(&mut cx).packet().is_some());
            }
            let table = qdisc.flow_table();
            assert!(table.most <= 51, "{name}: {table:?}");
            assert!(table.bytes < 500_000, "{name}: {table:?}");
            let mut cx = Cx::new(Time::s(18_000_000), &mut out);
            qdisc.enqueue(packet(1 << 40, Rate::mbit(1)), &mut cx);
            assert!(gauge(&qdisc, "reserved_bit") >= 1e6, "{name}");
        }
    }
}
