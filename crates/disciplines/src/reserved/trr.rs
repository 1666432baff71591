//! Timestamp round robin as its authors have it, packet by packet: a stamp at arrival, and an output array in which the stamp, modulo a
//! prime, is the place.
//!
//! # Principles
//! - T = T of the flow's last packet + L/ρ. A flow that has nothing queued starts from the shift clock, T = SC + L/ρ. The clock moves when
//!   such a flow comes: SC = max(SC, min over the flows that wait of T - L/ρ of their oldest packet).
//! - The packet goes to slot ⌊T⌋ mod P, behind what is there. A pointer goes round the array; whatever a slot holds leaves, what comes
//!   into it meanwhile too, before the pointer moves on.
//! - So there is nothing to sort, and no look at more than the next slot in use. With a large P the order is that of the stamps; with a
//!   small one every flow leaves as many packets per revolution, like a round robin. The paper says so; it does not say what is large.
//! - Packets without a reservation share by bytes what the reserved flows leave.
//!
//! # What is wrong with it
//! Kept as it is, because the paper is measured with it. `trr_sound` is what to use.
//! - A stamp that is P or more ahead of the pointer wraps round into an earlier slot: packets leave in the wrong order, even those
//!   of one flow. How many lie so far ahead of the shift clock is counted (gauge `wrapped_packets`).
//! - A stamp that is behind the pointer waits for a whole revolution. The shift clock knows nothing of real time, so that a flow which
//!   comes while slow flows wait gets such a stamp: with P = 101 as with any other.
//! - A flow that empties for a moment starts anew, whatever it has had.
//! - So the latency that the paper prints, Φ/ρ + Φ/r, does not hold.
//!
//! # Deviations
//! - The stamp's unit is not in the paper; here it is a parameter, and stamps are cut to it only for the place.
//! - Packets are as long as they come; the paper cuts them to one size by the interface's MTU.
//! - The next slot in use is found by find-first-set. `scan true` looks at one slot after the other as the paper does, with the same outcome.
//!
//! # Cost
//! - One table look-up per packet in, O(log n) for n flows that wait to keep the minimum of their starts, which the paper leaves out of its
//!   count; a few steps per packet out, with `scan true` up to P.
//! - 130 bytes per flow with a reservation, 45 per packet and 8 per slot, beside the table.
//!
//! # References
//! - Y.-T. Chen, J.-R. Chen, "The Design and Implementation of Timestamp Round-Robin Scheduling in the Linux Kernel" (in Chinese), National
//!   Taiwan University of Science and Technology, about 2000: sections 2.1 to 2.3, equations (3-1) and (3-2).

use giveway_qdisc::blocks::{Chains, FlowHeap, Ticks};
use giveway_qdisc::{Invalid, Limit, LinkContext, Properties, Rate, Span, Time};

use crate::Discipline;
use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule, array};

reserved_config! {
    /// Parameters of `trr`.
    pub struct Config {
        /// The slots of the output array: P, a prime number in the paper, which does not say which.
        pub slots: u32 = 1009,
        /// What a stamp counts: the time of one slot.
        pub unit: Span = Span::ms(1),
        /// Whether every slot is looked at in turn, as in the paper.
        #[schemars(extend("x-hidden" = true))]
        pub scan: bool = false,
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "timestamp round robin as published: stamps modulo a prime, which wrap round; trr_sound is the one to use";
    type Qdisc<P: 'static> = Guaranteed<P, Trr>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Trr>, Invalid> {
        let Config { slots, unit, scan, .. } = *self;
        let (slots, unit) = array(slots, "unit", unit)?;
        Guaranteed::new(&self.common(), Trr::new(slots, unit, scan), context)
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties { keeps_flow_order: false, ..Properties::plain(self.limit) }
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let window = self.unit * u64::from(self.slots);
        let ps = u128::from(context.mtu.0) * 8_000_000_000_000 / u128::from(window.as_ps().max(1));
        let slowest = Rate::bit(u64::try_from(ps).unwrap_or(u64::MAX));
        vec![format!(
            "stamps {window} or more ahead wrap round, as those of one packet of {} at {slowest} or less do, and of several at more: \
             trr_sound has no such limit",
            context.mtu
        )]
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), slots: 7, ..Config::default() },
            Config { limit: Limit::Bytes(6000), flows: 2, slots: 101, unit: Span::us(100), scan: true },
        ]
    }
}

/// The output array, the pointer and the shift clock.
#[derive(Debug)]
pub struct Trr {
    unit: Ticks,
    scan: bool,
    /// Packets by slot.
    array: Chains,
    pointer: u32,
    packets: Numbered<Stamped>,
    /// The stamp of the last packet of each flow.
    last: Numbered<Ticks>,
    /// The flows that have packets, by where their oldest one starts.
    starts: FlowHeap<Ticks>,
    /// SC.
    shift_clock: Ticks,
    /// How many stamps were P or more ahead of it.
    wrapped: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stamped {
    start: Ticks,
    flow: u32,
}

impl Trr {
    fn new(slots: usize, unit: Ticks, scan: bool) -> Trr {
        Trr {
            unit,
            scan,
            array: Chains::new(slots),
            pointer: 0,
            packets: Numbered::default(),
            last: Numbered::default(),
            starts: FlowHeap::with_capacity(64),
            shift_clock: Ticks::ZERO,
            wrapped: 0,
        }
    }

    /// The next slot in use, from the pointer on.
    #[inline]
    fn found(&self) -> Option<u32> {
        if !self.scan {
            return self.array.next_from(self.pointer);
        }
        let round = (self.pointer..self.array.slots()).chain(0..self.pointer);
        round.into_iter().find(|slot| self.array.front(*slot).is_some())
    }
}

impl Schedule for Trr {
    const FLOW_BYTES: usize = size_of::<Ticks>() + FlowHeap::<Ticks>::bytes_per_flow();

    #[inline]
    fn arrived(&mut self, item: Item, first: bool, _: Time) {
        let start = if first {
            let least = self.starts.first().map_or(Ticks::ZERO, |(start, _)| start);
            self.shift_clock = self.shift_clock.max(least);
            self.starts.set(item.flow, self.shift_clock);
            self.shift_clock
        } else {
            *self.last.at(item.flow)
        };
        let stamp = start + item.cost;
        *self.last.at(item.flow) = stamp;
        *self.packets.at(item.packet) = Stamped { start, flow: item.flow };
        let slots = u64::from(self.array.slots());
        let slot = stamp.slot(self.unit);
        self.wrapped += u64::from(slot.saturating_sub(self.shift_clock.slot(self.unit)) >= slots);
        self.array.push((slot % slots) as u32, item.packet);
    }

    #[inline]
    fn next(&mut self, _: Time) -> Option<Pick> {
        self.pointer = self.found()?;
        let packet = self.array.front(self.pointer)?;
        Some(Pick { flow: self.packets.at(packet).flow, packet: Some(packet) })
    }

    #[inline]
    fn left(&mut self, flow: u32, packet: u32, head: Option<Item>, _: Time) {
        self.array.remove(packet);
        match head {
            Some(head) => self.starts.set(flow, self.packets.at(head.packet).start),
            None => {
                self.starts.remove(flow);
            }
        }
    }

    /// The next packet of the flow starts where this one would have.
    fn revoked(&mut self, item: Item, emptied: bool) {
        self.array.remove(item.packet);
        *self.last.at(item.flow) = self.packets.at(item.packet).start;
        if emptied {
            self.starts.remove(item.flow);
        }
    }

    /// Its next packet starts from the shift clock in any case.
    fn passed(&self, _: u32, _: Time) -> bool {
        true
    }

    fn forget(&mut self, _: u32) {}

    fn clear(&mut self) {
        self.array.clear();
        self.packets.clear();
        self.last.clear();
        self.starts.clear();
        (self.pointer, self.shift_clock) = (0, Ticks::ZERO);
    }

    fn bytes(&self) -> u64 {
        self.array.bytes() + self.packets.bytes() + self.last.bytes() + self.starts.bytes()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("shift_clock_s", self.shift_clock.as_s());
        visit("wrapped_packets", self.wrapped as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{
        Model, before_the_wrapped, first_departures, follows, operations, trace_w, trace_x,
    };
    use proptest::prelude::*;

    /// Stamps a 3 6 9 12, b 6 12, c 4 8, d 4. With room for all of them it is the order of the stamps.
    #[test]
    fn a_large_array_sorts() {
        assert_eq!(trace_w("trr slots 101"), "A1 D1 C1 A2 B1 C2 A3 A4 B2");
        assert_eq!(trace_w("trr slots 101 scan true"), "A1 D1 C1 A2 B1 C2 A3 A4 B2");
    }

    /// 12 is 1 modulo 11: the last of both flows leave first.
    #[test]
    fn stamps_wrap_round() {
        assert_eq!(trace_w("trr slots 11"), "A4 B2 A1 D1 C1 A2 B1 C2 A3");
        assert_eq!(trace_w("trr slots 7"), "A3 A1 D1 C1 A4 B2 A2 B1 C2");
        assert_eq!(trace_w("trr slots 7 scan true"), "A3 A1 D1 C1 A4 B2 A2 B1 C2");
    }

    /// So it does with P = 101: B1's stamp is 150, which is 49 modulo 101, and it leaves after A16 with 48. `trr_sound` sends it
    /// where it belongs, last, with as many slots.
    #[test]
    fn stamps_wrap_round_at_101() {
        assert_eq!(before_the_wrapped("trr slots 101"), 16);
        assert_eq!(before_the_wrapped("trr slots 1009"), 20);
        assert_eq!(before_the_wrapped("trr_sound width 1ms slots 101"), 20);
    }

    /// C1's stamp is 5 and the pointer at 12: it leaves last instead of fifth, after B1 with 50 and D1 with 60. `trr_sound` does not
    /// do that.
    #[test]
    fn a_late_stamp_waits_for_a_revolution() {
        assert_eq!(trace_x("trr slots 101"), "A1 A2 A3 A4 B1 D1 C1");
        assert_eq!(trace_x("trr slots 10007"), "A1 A2 A3 A4 B1 D1 C1");
        assert_eq!(trace_x("trr_sound width 1ms"), "A1 A2 A3 A4 C1 B1 D1");
    }

    /// The paper's remark on P: small, it is a round robin; large, a sort. Four long queues with rates 100, 50, 75 and 75.
    #[test]
    fn a_small_array_shares_equally() {
        assert_eq!(first_departures("trr slots 101 limit 1600p", 120), [30, 30, 30, 30]);
        assert_eq!(first_departures("trr slots 10007 limit 1600p", 120), [40, 20, 30, 30]);
        assert_eq!(first_departures("trr_sound width 1ms limit 1600p", 120), [40, 20, 30, 30]);
    }

    /// The paper's array as a list of what is in it, in the order in which it came.
    #[derive(Default)]
    struct Array {
        slots: u64,
        pointer: u64,
        shift_clock: Ticks,
        last: [Ticks; 5],
        /// Slot, flow, where it starts, number.
        queued: Vec<(u64, usize, Ticks, u32)>,
    }

    impl Model for Array {
        fn arrives(&mut self, flow: usize, serial: u32, cost: Ticks, _: Time) {
            let oldest = |flow: usize| self.queued.iter().find(|each| each.1 == flow).map(|each| each.2);
            if oldest(flow).is_none() {
                let least = (0..5).filter_map(oldest).min().unwrap_or_default();
                self.shift_clock = self.shift_clock.max(least);
                self.last[flow] = self.shift_clock;
            }
            let start = self.last[flow];
            self.last[flow] += cost;
            let slot = self.last[flow].slot(Ticks::of(Span::ms(1))) % self.slots;
            self.queued.push((slot, flow, start, serial));
        }
        fn leaves(&mut self, _: Time) -> Option<u32> {
            let ahead = |slot: u64| (slot + self.slots - self.pointer) % self.slots;
            let at = (0..self.queued.len()).min_by_key(|at| (ahead(self.queued[*at].0), *at))?;
            let (slot, .., serial) = self.queued.remove(at);
            self.pointer = slot;
            Some(serial)
        }
    }

    proptest! {
        #[test]
        fn equals_its_definition(ops in operations(), slots in prop_oneof![Just(7u64), Just(101), Just(1009)], scan: bool) {
            let mut array = Array { slots, ..Array::default() };
            follows(&format!("trr slots {slots} scan {scan}"), &mut array, &ops)?;
        }
    }
}
