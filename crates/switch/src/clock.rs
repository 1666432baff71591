//! Two clocks in one: slots of the links, in which cells arrive, and slots of the fabric, in which they cross.

use crate::speed::Speedup;

/// Where a switch is in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Ticks of a slot of a link.
    pub slot_ticks: u64,
    /// Ticks of a slot of the fabric.
    pub fabric_ticks: u64,
    /// Begin of the present slot of the fabric, in ticks.
    pub tick: u64,
    /// The present slot of the fabric.
    pub fabric: u64,
    /// The first slot of the links that has not begun yet.
    pub slot: u64,
}

impl Clock {
    pub fn new(speedup: Speedup) -> Clock {
        Clock {
            slot_ticks: speedup.slot_ticks(),
            fabric_ticks: speedup.fabric_ticks(),
            tick: 0,
            fabric: 0,
            slot: 0,
        }
    }

    /// End of the present slot of the fabric, in ticks.
    #[inline]
    pub fn end(&self) -> u64 {
        self.tick + self.fabric_ticks
    }

    /// A slot of the fabric begins, and with it a slot of the links when that has come as well. No more than one has, since
    /// the fabric's slots are not longer.
    #[inline]
    pub fn begin(&mut self) {
        if self.slot * self.slot_ticks <= self.tick {
            self.slot += 1;
        }
    }

    /// On to the next slot of the fabric.
    #[inline]
    pub fn advance(&mut self) {
        self.tick += self.fabric_ticks;
        self.fabric += 1;
    }
}
