//! A timing wheel: a ring of rows, one for each of the next slots, with the ports whose event is in that
//! slot.

use crate::per_port::PerPort;
use crate::port_set::PortSet;

/// Slots in the ring.
const SPOKES: u64 = 256;

/// Keeps at most one later slot for each port. A slot beyond the end of the ring is entered at its far end,
/// and entered again when the ring has turned that far.
#[derive(Clone, Debug)]
pub(crate) struct Wheel<const W: usize> {
    /// By slot, modulo the length of the ring: the ports.
    spokes: Box<[PortSet<W>; SPOKES as usize]>,
    /// By port: its slot.
    when: PerPort<u64, W>,
    /// Ports that were entered at the far end although their slot is later.
    far: PortSet<W>,
}

impl<const W: usize> Wheel<W> {
    pub fn new() -> Wheel<W> {
        let spokes = Box::new([PortSet::EMPTY; SPOKES as usize]);
        Wheel { spokes, when: PerPort::new(u64::MAX), far: PortSet::EMPTY }
    }

    /// Sets the slot of a port that has none. `when` must not be before `now`.
    #[inline]
    pub fn set(&mut self, port: usize, when: u64, now: u64) {
        debug_assert!(when >= now, "slot {when} was before {now}");
        self.when[port] = when;
        if when - now < SPOKES {
            self.spokes[(when % SPOKES) as usize].insert(port);
        } else {
            self.far.insert(port);
            self.spokes[((now + SPOKES - 1) % SPOKES) as usize].insert(port);
        }
    }

    /// Moves the slot of a port to the next one. `now` must not be after it.
    #[inline]
    pub fn postpone(&mut self, port: usize, now: u64) {
        self.clear(port, now);
        self.set(port, self.when[port] + 1, now);
    }

    /// Removes the slot of a port.
    #[inline]
    pub fn clear(&mut self, port: usize, now: u64) {
        if self.far.has(port) {
            // This is rare, so the row of such a port is not stored, and all rows are searched.
            self.far.remove(port);
            self.spokes.iter_mut().for_each(|spoke| spoke.remove(port));
            return;
        }
        debug_assert!(self.when[port] >= now);
        self.spokes[(self.when[port] % SPOKES) as usize].remove(port);
    }

    /// The slot of a port.
    #[inline]
    pub fn when(&self, port: usize) -> u64 {
        self.when[port]
    }

    /// Removes and returns the ports whose slot is `now`.
    #[inline]
    pub fn take(&mut self, now: u64) -> PortSet<W> {
        let due = std::mem::replace(&mut self.spokes[(now % SPOKES) as usize], PortSet::EMPTY);
        let later = due & self.far;
        if later.is_empty() {
            return due;
        }
        self.far &= !later;
        for port in later {
            self.set(port, self.when[port], now + 1);
        }
        due & !later
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the plain list of slots.
        #[test]
        fn everything_comes_in_its_slot(
            gaps in prop::collection::vec((0u64..900, prop::collection::vec(0u64..900, 0..3)), 8),
        ) {
            let mut wheel = Wheel::<1>::new();
            let mut want = Vec::new();
            let mut moves = Vec::new();
            for (port, (gap, postponed)) in gaps.iter().enumerate() {
                wheel.set(port, *gap, 0);
                want.push(*gap);
                moves.extend(postponed.iter().map(|at| (*at, port)));
            }
            moves.sort_unstable();
            for now in 0..1_000u64 {
                for (_, port) in moves.iter().filter(|(at, _)| *at == now) {
                    if want[*port] >= now {
                        wheel.postpone(*port, now);
                        want[*port] += 1;
                    }
                }
                let due: Vec<usize> = wheel.take(now).iter().collect();
                let wanted: Vec<usize> = (0..8).filter(|port| want[*port] == now).collect();
                prop_assert_eq!(due, wanted);
            }
        }
    }
}
