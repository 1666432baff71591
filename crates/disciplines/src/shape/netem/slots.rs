//! The slots of `netem`: packets leave in bursts.

use giveway_qdisc::{Bytes, Invalid, Rng, Span, Time};

/// Slots that open one after the other.
#[derive(Debug)]
pub(super) struct Slotted {
    shortest: Span,
    longest: Span,
    /// Largest number of packets in a slot.
    packets: u64,
    /// Number of bytes after which a slot releases no more.
    bytes: u64,
    /// Time at which the slot opened, and what it may still release.
    opened: Time,
    left: (u64, u64),
    /// The earliest time at which the next one opens.
    next: Time,
    rng: Rng,
}

impl Slotted {
    /// Slots with these times between them, of so many packets and bytes; `None` without times.
    pub fn new(slot: &[Span], packets: u32, bytes: Bytes, rng: Rng) -> Result<Option<Slotted>, Invalid> {
        let (shortest, longest) = match *slot {
            [] => return Ok(None),
            [one] => (one, one),
            [shortest, longest] => (shortest, longest),
            _ => {
                return Err(Invalid::new(
                    "slot",
                    "it has a shortest and a longest time: write \"slot [5ms 10ms]\"",
                ));
            }
        };
        if shortest.is_zero() || longest < shortest {
            let message = format!(
                "{shortest} and {longest} are not a shortest time above 0 and a longest one: write for example \
                 \"slot [5ms 10ms]\""
            );
            return Err(Invalid::new("slot", message));
        }
        let (packets, bytes) = (any(packets.into()), any(bytes.0));
        let none = (0, 0);
        let (opened, next) = (Time::ZERO, Time::ZERO);
        Ok(Some(Slotted { shortest, longest, packets, bytes, opened, left: none, next, rng }))
    }

    /// Time at which a packet that is due at `due` may leave: now or before, if a slot releases it now.
    #[inline]
    pub fn release(&mut self, due: Time, now: Time) -> Time {
        if due <= self.opened && self.left.0 > 0 && self.left.1 > 0 {
            return self.opened;
        }
        // A slot opens for a packet that is due, not before.
        let at = self.next.max(due);
        if at <= now {
            self.opened = at;
            self.left = (self.packets, self.bytes);
            let spread = (self.longest - self.shortest).as_ps();
            let more = if spread == 0 { 0 } else { self.rng.below(spread + 1) };
            self.next = at + self.shortest + Span::from_ps(more);
        }
        at
    }

    /// Counts a packet that the slot released.
    #[inline]
    pub fn on_departure(&mut self, bytes: u32) {
        self.left.0 -= 1;
        self.left.1 = self.left.1.saturating_sub(bytes.into());
    }

    pub fn reset(&mut self) {
        (self.opened, self.left, self.next) = (Time::ZERO, (0, 0), Time::ZERO);
    }
}

/// A bound, of which 0 is none.
fn any(most: u64) -> u64 {
    if most == 0 { u64::MAX } else { most }
}
