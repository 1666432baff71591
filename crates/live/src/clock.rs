//! Time in the live host: picoseconds since the direction started, and since it last began anew.
//!
//! [`qdisc::Time`] holds 213 days. Packets in a queue carry times, so a direction begins to count anew only while nothing
//! is queued, from [`Clock::OLD`] on.

use nix::time::{ClockId, clock_gettime};
use qdisc::{Span, Time};

/// Nanoseconds of a clock of the system.
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Nanoseconds of the clock that never jumps and does not stop for adjustments.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970, by the clock that people set: what the kernel stamps arrivals with.
pub fn wall_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// The clock of a direction.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What the monotonic clock showed at time zero.
    origin_ns: u64,
    /// Add this to a time of the wall clock to get one of the monotonic clock. Wraps.
    from_wall_ns: u64,
    /// What is added to the age when it is asked whether the clock is old: for tests, which do not wait for months.
    pretended: Span,
}

impl Clock {
    /// From here on a clock is to begin anew as soon as nothing is queued: after 100 days.
    pub const OLD: Span = Span::s(100 * 24 * 3600);

    /// Starts now.
    pub fn start() -> Clock {
        let mut clock = Clock { origin_ns: monotonic_ns(), from_wall_ns: 0, pretended: Span::ZERO };
        clock.compare();
        clock
    }

    /// One that has run for so long.
    pub fn aged(by: Span) -> Clock {
        Clock { pretended: by, ..Clock::start() }
    }

    /// Compares the two clocks of the system anew: the wall clock is adjusted now and then.
    pub fn compare(&mut self) {
        self.from_wall_ns = monotonic_ns().wrapping_sub(wall_ns());
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.of_monotonic(monotonic_ns())
    }

    /// The time of a stamp of the wall clock. One before time zero is zero.
    pub fn of_wall(&self, ns: u64) -> Time {
        self.of_monotonic(ns.wrapping_add(self.from_wall_ns))
    }

    fn of_monotonic(&self, ns: u64) -> Time {
        Time::from_ps(ns.saturating_sub(self.origin_ns).saturating_mul(1000)) + self.pretended
    }

    /// What the monotonic clock shows at a time of this clock, in nanoseconds, rounded up.
    pub fn to_monotonic_ns(&self, time: Time) -> u64 {
        self.origin_ns + time.since(Time::ZERO + self.pretended).as_ps().div_ceil(1000)
    }

    /// What the wall clock shows at a time of this clock, in nanoseconds since 1970.
    pub fn to_wall_ns(&self, time: Time) -> u64 {
        self.to_monotonic_ns(time).wrapping_sub(self.from_wall_ns)
    }

    /// Whether it should begin anew.
    pub fn is_old(&self, now: Time) -> bool {
        now.since(Time::ZERO) > Clock::OLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        let clock = Clock::start();
        let now = clock.now();
        assert_eq!(clock.of_monotonic(clock.to_monotonic_ns(now)), now);
        assert_eq!(clock.of_wall(clock.to_wall_ns(now)), now);
        assert!(clock.now() >= now);
    }

    #[test]
    fn a_stamp_from_before_the_start_is_zero() {
        assert_eq!(Clock::start().of_monotonic(0), Time::ZERO);
    }

    #[test]
    fn old_age_comes_after_a_hundred_days() {
        let young = Clock::start();
        assert!(!young.is_old(young.now()));
        let old = Clock::aged(Clock::OLD + Span::s(1));
        assert!(old.is_old(old.now()));
        assert!(old.of_monotonic(old.to_monotonic_ns(old.now())).since(Time::ZERO) > Clock::OLD);
    }
}
