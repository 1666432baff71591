//! The packets in the queues of some ports, from the reports of arrivals, transmissions and drops.
//!
//! Only a probe that watches a port pays for it: disciplines and ports do nothing. In a simulation that is
//! not [interactive](crate::Sim::interactive) the reports of a plain queue come late, and so its contents do.

use std::collections::{BTreeMap, VecDeque};

use giveway_qdisc::{DropReason, FlowKey, Interest, Meta, PortId, Probe, Time};

/// A probe that knows which packets are in the queues of the ports that it watches.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    queues: BTreeMap<PortId, Contents>,
}

/// The packets in a queue.
#[derive(Clone, Debug, Default)]
struct Contents {
    /// The packets by their numbers, which count arrivals.
    packets: BTreeMap<u64, Meta>,
    /// The number of the next packet.
    next: u64,
    /// The numbers of equal packets, in order of arrival.
    numbers: BTreeMap<Key, VecDeque<u64>>,
}

/// The part of the metadata by which a packet is found again. No discipline changes it. If packets have the
/// same key, the first of them counts as the one that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    flow: FlowKey,
    arrived: Time,
    offset: u32,
    bytes: u32,
}

impl Key {
    fn of(meta: &Meta) -> Key {
        Key { flow: meta.flow, arrived: meta.arrived, offset: meta.offset, bytes: meta.bytes }
    }
}

impl Watched {
    /// Watches a port from now on. Packets that are in its queue already stay unknown.
    pub fn watch(&mut self, port: PortId) {
        self.queues.entry(port).or_default();
    }

    /// Watches a port no longer.
    pub fn forget(&mut self, port: PortId) {
        self.queues.remove(&port);
    }

    /// True if it watches no port.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The packets in the queue of a port in order of arrival, each with its number; `None` if the port is
    /// not watched. A number belongs to one packet: it counts the arrivals since the port is watched,
    /// including dropped packets.
    pub fn packets(&self, port: PortId) -> Option<impl Iterator<Item = (u64, &Meta)>> {
        let contents = self.queues.get(&port)?;
        Some(contents.packets.iter().map(|(number, meta)| (*number, meta)))
    }

    fn arrives(&mut self, at: PortId, meta: &Meta) {
        let Some(contents) = self.queues.get_mut(&at) else { return };
        contents.packets.insert(contents.next, *meta);
        contents.numbers.entry(Key::of(meta)).or_default().push_back(contents.next);
        contents.next += 1;
    }

    fn leaves(&mut self, at: PortId, meta: &Meta) {
        let Some(contents) = self.queues.get_mut(&at) else { return };
        // A packet that was queued before the port was watched has no number.
        let Some(equal) = contents.numbers.get_mut(&Key::of(meta)) else { return };
        let number = equal.pop_front().expect("a key without packets is removed");
        if equal.is_empty() {
            contents.numbers.remove(&Key::of(meta));
        }
        contents.packets.remove(&number);
    }
}

impl<P> Probe<P> for Watched {
    fn interest(&self, at: PortId) -> Interest {
        if self.queues.contains_key(&at) { Interest::Port } else { Interest::Nothing }
    }
    fn on_arrival(&mut self, at: PortId, meta: &Meta, _: Time) {
        self.arrives(at, meta);
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &P, _: Time) {
        self.leaves(at, meta);
    }
    fn on_drop(&mut self, at: PortId, meta: &Meta, _: &P, why: DropReason, _: Time) {
        // What the wire loses has left the queue.
        if why != DropReason::Wire {
            self.leaves(at, meta);
        }
    }
    fn on_mark(&mut self, at: PortId, meta: &Meta, _: Time) {
        let Some(contents) = self.queues.get_mut(&at) else { return };
        let numbers = contents.numbers.get(&Key::of(meta));
        let first = numbers.and_then(|equal| equal.front());
        if let Some(packet) = first.and_then(|number| contents.packets.get_mut(number)) {
            packet.ecn = meta.ecn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortId = PortId(3);

    fn packet(flow: u64, offset: u32, ms: u64) -> Meta {
        Meta { flow: FlowKey(flow), offset, bytes: 1000, arrived: Time::ms(ms), ..Meta::default() }
    }

    fn numbers(watched: &Watched) -> Vec<(u64, u64)> {
        watched.packets(PORT).unwrap().map(|(number, meta)| (number, meta.flow.0)).collect()
    }

    #[test]
    fn packets_keep_their_numbers_until_they_leave() {
        let mut watched = Watched::default();
        let probe: &mut dyn Probe<()> = &mut watched;
        probe.on_arrival(PORT, &packet(9, 0, 0), Time::ms(0));
        assert!(watched.packets(PORT).is_none() && watched.is_empty());
        watched.watch(PORT);
        let probe: &mut dyn Probe<()> = &mut watched;
        for flow in [1, 2, 1] {
            probe.on_arrival(PORT, &packet(flow, 0, 1), Time::ms(1));
        }
        probe.on_arrival(PortId(4), &packet(7, 0, 1), Time::ms(1));
        assert_eq!(numbers(&watched), [(0, 1), (1, 2), (2, 1)]);
        let probe: &mut dyn Probe<()> = &mut watched;
        // One that was queued before, the second one, and the first of the two that are equal.
        probe.on_transmission(PORT, &packet(9, 0, 0), &(), Time::ms(2));
        probe.on_transmission(PORT, &packet(2, 0, 1), &(), Time::ms(2));
        probe.on_drop(PORT, &packet(1, 0, 1), &(), DropReason::Wire, Time::ms(2));
        probe.on_drop(PORT, &packet(1, 0, 1), &(), DropReason::Congested, Time::ms(2));
        assert_eq!(numbers(&watched), [(2, 1)], "what the wire loses had left before");
        let probe: &mut dyn Probe<()> = &mut watched;
        probe.on_arrival(PORT, &packet(5, 0, 3), Time::ms(3));
        assert_eq!(numbers(&watched), [(2, 1), (3, 5)], "numbers are not used again");
        watched.forget(PORT);
        assert!(watched.packets(PORT).is_none());
    }

    #[test]
    fn a_label_and_a_mark_do_not_hide_a_packet() {
        let mut watched = Watched::default();
        watched.watch(PORT);
        let probe: &mut dyn Probe<()> = &mut watched;
        let arriving = packet(1, 5, 1);
        probe.on_arrival(PORT, &arriving, Time::ms(1));
        let marked = Meta { ecn: giveway_qdisc::Ecn::Marked, ..arriving };
        probe.on_mark(PORT, &marked, Time::ms(1));
        assert_eq!(watched.packets(PORT).unwrap().next(), Some((0, &marked)));
        let probe: &mut dyn Probe<()> = &mut watched;
        probe.on_transmission(PORT, &marked, &(), Time::ms(2));
        assert_eq!(numbers(&watched), []);
    }
}
