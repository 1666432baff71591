//! Timestamp round robin as published, packet by packet: a packet gets a stamp on arrival, and the stamp
//! modulo a prime is its slot in an output array.
//!
//! # Principles
//! - T = T of the flow's last packet + L/ρ. A flow without queued packets starts from the shift clock,
//!   T = SC + L/ρ. The clock advances when such a flow arrives: SC = max(SC, min over the queued flows of T -
//!   L/ρ of their oldest packet).
//! - The packet joins the end of slot ⌊T⌋ mod P. A pointer moves round the array. It stays at a slot until
//!   that is empty, which includes packets that arrive in the meantime.
//! - So there is no sorting, and only the next slot in use is examined. With a large P packets leave in the
//!   order of the stamps. With a small P every flow sends as many packets per revolution, like round robin.
//!   The paper states that without a definition of large.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Errors of the algorithm
//! The errors are kept, because the paper measures this algorithm. Use `trr_sound` for reservations.
//! - A stamp that is P or more ahead of the pointer wraps round into an earlier slot. Packets then leave in
//!   the wrong order, even within one flow. The gauge `wrapped_packets` counts the stamps so far ahead of the
//!   shift clock.
//! - A stamp behind the pointer waits for a whole revolution. The shift clock does not include real time, so
//!   a flow that arrives while slow flows wait gets such a stamp, with P = 101 as with any other P.
//! - A flow that empties for a moment starts again at the shift clock, whatever service it has had.
//! - So the latency that the paper prints, Φ/ρ + Φ/r, does not hold.
//!
//! # Deviations
//! - The paper does not give the unit of a stamp. Here it is a parameter, and only the slot uses the stamp in
//!   whole units.
//! - Packets keep their lengths. The paper cuts them to one size by the MTU of the interface.
//! - Find-first-set finds the next slot in use. With `scan true` every slot is examined in turn as in the
//!   paper, with the same result.
//!
//! # Cost
//! - One table look-up for each arriving packet, and O(log n) for n queued flows to maintain the minimum of
//!   their starts, which the paper's cost omits. A few steps for each departure, with `scan true` up to P.
//! - 130 bytes per flow with a reservation, 45 per packet and 8 per slot, in addition to the table.
//!
//! # References
//! - Y.-T. Chen, J.-R. Chen, "The Design and Implementation of Timestamp Round-Robin Scheduling in the Linux
//!   Kernel" (in Chinese), National Taiwan University of Science and Technology, about 2000: sections 2.1 to
//!   2.3, equations (3-1) and (3-2).

use giveway_qdisc::blocks::{Chains, FlowHeap, Ticks};
use giveway_qdisc::{Invalid, Limit, LinkContext, Properties, Rate, Span, Time};

use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule, array};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `trr`.
    pub struct Config {
        /// Number of slots of the output array: P, a prime number that the paper does not specify.
        pub slots: u32 = 1009,
        /// Unit of a stamp: the time of one slot.
        pub unit: Span = Span::ms(1),
        /// Examine every slot in turn, as in the paper.
        #[schemars(extend("x-hidden" = true))]
        pub scan: bool = false,
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "timestamp round robin as published: stamps modulo a prime, which wrap round; use trr_sound instead";
    const NEEDS: Needs = Needs::Reservations;
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
    /// Flows with packets, by the start of their oldest packet.
    starts: FlowHeap<Ticks>,
    /// SC.
    shift_clock: Ticks,
    /// Number of stamps that were P or more ahead of the shift clock.
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

    /// Finds the next slot in use, from the pointer on.
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
    fn on_arrival(&mut self, item: Item, first: bool, _: Time) {
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
    fn on_departure(&mut self, flow: u32, packet: u32, head: Option<Item>, _: Time) {
        self.array.remove(packet);
        match head {
            Some(head) => self.starts.set(flow, self.packets.at(head.packet).start),
            None => {
                self.starts.remove(flow);
            }
        }
    }

    /// The next packet of the flow starts where this one would have.
    fn on_revoke(&mut self, item: Item, emptied: bool) {
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

    /// Stamps of A 3 6 9 12, B 6 12, C 4 8, D 4. With enough slots packets leave in the order of the stamps.
    #[test]
    fn a_large_array_sorts() {
        assert_eq!(trace_w("trr slots 101"), "A1 D1 C1 A2 B1 C2 A3 A4 B2");
        assert_eq!(trace_w("trr slots 101 scan true"), "A1 D1 C1 A2 B1 C2 A3 A4 B2");
    }

    /// 12 is 1 modulo 11: the last packets of both flows leave first.
    #[test]
    fn stamps_wrap_round() {
        assert_eq!(trace_w("trr slots 11"), "A4 B2 A1 D1 C1 A2 B1 C2 A3");
        assert_eq!(trace_w("trr slots 7"), "A3 A1 D1 C1 A4 B2 A2 B1 C2");
        assert_eq!(trace_w("trr slots 7 scan true"), "A3 A1 D1 C1 A4 B2 A2 B1 C2");
    }

    /// With P = 101 B1's stamp of 150 is 49 modulo 101, so B1 leaves after A16 with 48. With as many slots
    /// `trr_sound` sends it last, in the order of the stamps.
    #[test]
    fn stamps_wrap_round_at_101() {
        assert_eq!(before_the_wrapped("trr slots 101"), 16);
        assert_eq!(before_the_wrapped("trr slots 1009"), 20);
        assert_eq!(before_the_wrapped("trr_sound width 1ms slots 101"), 20);
    }

    /// C1's stamp is 5 and the pointer is at 12: C1 leaves last instead of fifth, after B1 with 50 and D1
    /// with
    /// 60. `trr_sound` sends C1 in the order of the stamps.
    #[test]
    fn a_late_stamp_waits_for_a_revolution() {
        assert_eq!(trace_x("trr slots 101"), "A1 A2 A3 A4 B1 D1 C1");
        assert_eq!(trace_x("trr slots 10007"), "A1 A2 A3 A4 B1 D1 C1");
        assert_eq!(trace_x("trr_sound width 1ms"), "A1 A2 A3 A4 C1 B1 D1");
    }

    /// The paper's remark on P: small, it is a round robin; large, a sort. Four long queues with rates 100,
    /// 50, 75 and 75.
    #[test]
    fn a_small_array_shares_equally() {
        assert_eq!(first_departures("trr slots 101 limit 1600p", 120), [30, 30, 30, 30]);
        assert_eq!(first_departures("trr slots 10007 limit 1600p", 120), [40, 20, 30, 30]);
        assert_eq!(first_departures("trr_sound width 1ms limit 1600p", 120), [40, 20, 30, 30]);
    }

    /// The paper's array as a list of its packets in the order of arrival.
    #[derive(Default)]
    struct Array {
        slots: u64,
        pointer: u64,
        shift_clock: Ticks,
        last: [Ticks; 5],
        /// Slot, flow, start and number of each packet.
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
