//! Virtual time that follows real time, for schedulers that shift it forward.

use giveway_qdisc::Time;
use giveway_qdisc::blocks::Ticks;

/// Virtual time, as of the last call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    virtual_time: Ticks,
    as_of: Time,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { virtual_time: Ticks::ZERO, as_of: Time::ZERO }
    }
}

impl Clock {
    /// Advances virtual time by the real time that has passed.
    #[inline]
    pub(crate) fn pass(&mut self, now: Time) {
        self.virtual_time = self.at(now);
        self.as_of = now;
    }

    /// Shifts virtual time forward to `start`, which is later.
    #[inline]
    pub(crate) fn shift_to(&mut self, start: Ticks) {
        self.virtual_time = start;
    }

    /// Returns virtual time to zero.
    pub(crate) fn restart(&mut self) {
        self.virtual_time = Ticks::ZERO;
    }

    /// Virtual time of the last [`pass`](Clock::pass) or shift.
    #[inline]
    pub(crate) fn virtual_time(&self) -> Ticks {
        self.virtual_time
    }

    /// Virtual time at a later real time without a shift.
    #[inline]
    pub(crate) fn at(&self, now: Time) -> Ticks {
        self.virtual_time + Ticks::of(now.since(self.as_of))
    }

    /// Lead of virtual time over real time.
    pub(crate) fn shift(&self) -> Ticks {
        self.virtual_time.saturating_sub(Ticks::at(self.as_of))
    }
}
