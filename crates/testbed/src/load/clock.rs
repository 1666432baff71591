//! The clock of a run, and the grace period after its end.

use giveway_qdisc::{Span, Time};
use nix::sys::time::{TimeSpec, TimeValLike};

/// Time for datagrams that are in flight at the end of the run.
pub const GRACE: Span = Span::ms(500);

/// Clock whose zero is the start of the run.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    /// Nanoseconds of the monotonic clock.
    start: i64,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock { start: Clock::read() }
    }

    fn read() -> i64 {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
        now.expect("Linux has this clock").num_nanoseconds()
    }

    pub(super) fn now(self) -> Time {
        Time::ZERO + Span::ns((Clock::read() - self.start) as u64)
    }

    /// A time on the monotonic clock, rounded up, so that a sleep never ends too early.
    pub(super) fn at(self, time: Time) -> TimeSpec {
        TimeSpec::nanoseconds(self.start + time.since(Time::ZERO).as_ps().div_ceil(1000) as i64)
    }
}
