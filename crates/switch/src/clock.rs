//! The time of a switch, in slots of the links, in which cells arrive, and slots of the fabric, in which they
//! cross.

use crate::speed::Speedup;

/// The present time of a switch, in ticks and in slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Ticks of a slot of a link.
    pub slot_ticks: u64,
    /// Ticks of a slot of the fabric.
    pub fabric_ticks: u64,
    /// Start of the present slot of the fabric, in ticks.
    pub tick: u64,
    /// The present slot of the fabric.
    pub fabric: u64,
    /// The first slot of the links that has not started yet.
    pub slot: u64,
}

impl Clock {
    /// The start of a run.
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

    /// Starts a slot of the fabric, and with it the slot of the links that is due. At most one is due,
    /// because slots of the fabric are not longer than slots of the links.
    #[inline]
    pub fn begin(&mut self) {
        if self.slot * self.slot_ticks <= self.tick {
            self.slot += 1;
        }
    }

    /// Ends the slot of the fabric.
    #[inline]
    pub fn advance(&mut self) {
        self.tick += self.fabric_ticks;
        self.fabric += 1;
    }
}
