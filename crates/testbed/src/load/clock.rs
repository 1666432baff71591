//! The clock of a run, and the grace period after its end.

use giveway_qdisc::{Span, Time};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

/// Time for datagrams that are in flight at the end of the run.
pub const GRACE: Span = Span::ms(500);

/// Clock whose zero is the start of the run.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    /// Nanoseconds of the monotonic clock.
    start: i64,
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn start() -> Clock {
        Clock { start: Clock::read() }
    }

    /// Waits until a time of the monotonic clock, in nanoseconds, at which the clock starts. Returns also the
    /// time by which it is too late.
    pub(super) fn start_at(ns: u64) -> (Clock, Span) {
        let start = ns as i64;
        let until = TimeSpec::nanoseconds(start);
        // A signal may end the sleep.
        while Clock::read() < start {
            let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until);
        }
        (Clock { start }, Span::ns((Clock::read() - start) as u64))
    }

    /// A time of the monotonic clock that is `span` from now, in nanoseconds.
    pub(crate) fn in_a_while(span: Span) -> u64 {
        Clock::read() as u64 + span.as_ps() / 1000
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
