//! Time in the live host: picoseconds since the direction started, and since it last began anew.
//!
//! [`qdisc::Time`] holds 213 days. Packets in a queue carry times, so a direction begins to count anew only while nothing
//! is queued, from [`Clock::OLD`] on.
//!
//! The kernel stamps arrivals with the wall clock, which people and NTP set; everything else here is
//! monotonic. So a clock knows by how much the two differ, and must learn when that changes: with the old
//! difference, stamps after a step backwards look older than they are, and each packet would seem to have
//! waited. [`Clock::compare`] is called ten times a second, and by [`Clock::of_stamp`] as soon as a stamp is
//! not plausible. For a plausible stamp no clock is read.

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

/// Reads one of the system's clocks, in nanoseconds.
pub type Source = fn(ClockId) -> u64;

/// The clock of a direction.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// What the monotonic clock showed at time zero.
    origin_ns: u64,
    /// Add this to a time of the wall clock to get one of the monotonic clock. Wraps.
    from_wall_ns: u64,
    /// The moment for which the clocks were compared last because of a stamp.
    doubted: Time,
    /// When it was found last that the wall clock had been set.
    stepped: Option<Time>,
    /// What is added to the age when it is asked whether the clock is old: for tests, which do not wait for months.
    pretended: Span,
}

impl Clock {
    /// From here on a clock is to begin anew as soon as nothing is queued: after 100 days.
    pub const OLD: Span = Span::s(100 * 24 * 3600);

    /// By how much the difference of the two clocks must have changed to be taken for a step. Comparing is
    /// not exact, and times of packets need not be better than this.
    const STEP_NS: u64 = 20_000;
    /// For so long after a step there may be stamps from before it: a ring is emptied much sooner.
    const AFTERMATH: Span = Span::s(1);

    /// Starts now.
    pub fn start() -> Clock {
        Clock::of(read)
    }

    /// Starts now, by other clocks than the system's: for tests.
    pub fn of(source: Source) -> Clock {
        let origin_ns = source(ClockId::CLOCK_MONOTONIC);
        let mut clock = Clock {
            source,
            origin_ns,
            from_wall_ns: 0,
            doubted: Time::ZERO,
            stepped: None,
            pretended: Span::ZERO,
        };
        clock.from_wall_ns = clock.difference_ns().0;
        clock
    }

    /// Starts again, by the same clocks.
    pub fn restart(&self) -> Clock {
        Clock::of(self.source)
    }

    /// One that has run for so long.
    pub fn aged(by: Span) -> Clock {
        Clock { pretended: by, ..Clock::start() }
    }

    /// Compares the two clocks of the system anew. True when the wall clock was set meanwhile.
    pub fn compare(&mut self) -> bool {
        let (difference, error) = self.difference_ns();
        let change = difference.wrapping_sub(self.from_wall_ns) as i64;
        let stepped = change.unsigned_abs() > error + Clock::STEP_NS;
        if stepped {
            self.from_wall_ns = difference;
            self.stepped = Some(self.now());
        }
        stepped
    }

    /// What to add to the wall clock to get the monotonic one, and how wrong that may be.
    fn difference_ns(&self) -> (u64, u64) {
        let sample = || {
            let before = (self.source)(ClockId::CLOCK_MONOTONIC);
            let wall = (self.source)(ClockId::CLOCK_REALTIME);
            let took = (self.source)(ClockId::CLOCK_MONOTONIC).saturating_sub(before);
            ((before + took / 2).wrapping_sub(wall), took.div_ceil(2))
        };
        // A thread may lose its processor between two readings; hardly three times in a row.
        let samples = [sample(), sample(), sample()];
        samples.into_iter().min_by_key(|(_, error)| *error).expect("there are three")
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.of_monotonic((self.source)(ClockId::CLOCK_MONOTONIC))
    }

    /// The time of a stamp of the wall clock. One before time zero is zero.
    pub fn of_wall(&self, ns: u64) -> Time {
        self.of_monotonic(ns.wrapping_add(self.from_wall_ns))
    }

    /// The time of the stamp of an arrival; it is now `now`. A stamp that differs from now by more than
    /// `slack` is not plausible, and makes the clocks compared, at most once for each `now`.
    #[inline]
    pub fn of_stamp(&mut self, ns: u64, now: Time, slack: Span) -> Time {
        let time = self.of_wall(ns);
        if time.since(now.min(time)) <= slack && now.since(time.min(now)) <= slack {
            return time;
        }
        self.of_odd_stamp(ns, now, slack)
    }

    #[cold]
    fn of_odd_stamp(&mut self, ns: u64, now: Time, slack: Span) -> Time {
        if self.doubted != now {
            self.doubted = now;
            self.compare();
        }
        let time = self.of_wall(ns);
        let odd = time > now + slack || time + slack < now;
        // The frame may have waited in the ring since before the step. It did not wait for as long as the
        // step is.
        let just_set = self.stepped.is_some_and(|at| now.since(at.min(now)) < Clock::AFTERMATH);
        if odd && just_set { now } else { time }
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

/// Clocks that tests set.
#[cfg(test)]
pub(crate) mod fake {
    use std::cell::Cell;

    use super::{Clock, ClockId};

    thread_local! {
        /// What the monotonic clock shows, in nanoseconds.
        pub(crate) static MONOTONIC: Cell<u64> = const { Cell::new(1_000_000_000_000) };
        /// What the wall clock is ahead of it.
        pub(crate) static AHEAD: Cell<u64> = const { Cell::new(1_700_000_000_000_000_000) };
        /// How often one was read.
        pub(crate) static READ: Cell<u32> = const { Cell::new(0) };
        /// How long the next readings take: a thread may lose its processor in between.
        pub(crate) static TAKES: Cell<[u64; 9]> = const { Cell::new([0; 9]) };
    }

    pub(crate) fn clock() -> Clock {
        Clock::of(|id| {
            let mut takes = TAKES.get();
            let took = takes[0];
            takes.rotate_left(1);
            takes[8] = 0;
            TAKES.set(takes);
            READ.set(READ.get() + 1);
            let now = MONOTONIC.get() + took;
            MONOTONIC.set(now);
            if id == ClockId::CLOCK_MONOTONIC { now } else { now + AHEAD.get() }
        })
    }

    /// What the kernel stamps a frame with that comes now.
    pub(crate) fn stamp() -> u64 {
        MONOTONIC.get() + AHEAD.get()
    }

    /// Time passes.
    pub(crate) fn pass(ms: u64) {
        MONOTONIC.set(MONOTONIC.get() + ms * 1_000_000);
    }

    /// Somebody sets the wall clock by so many milliseconds.
    pub(crate) fn set(by_ms: i64) {
        AHEAD.set(AHEAD.get().wrapping_add_signed(by_ms * 1_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{READ, TAKES, clock, pass, set, stamp};
    use super::*;

    const SLACK: Span = Span::ms(20);

    /// By an hour, by a second, by a little more than is plausible; there and back.
    #[test]
    fn a_wall_clock_that_was_set_is_followed_with_the_first_stamp() {
        let mut clock = clock();
        for by_ms in [-3_600_000, 3_600_000, -1000, 1000, -21, 21] {
            pass(50);
            let now = clock.now();
            assert_eq!(clock.of_stamp(stamp(), now, SLACK), now);
            let before = stamp();
            set(by_ms);
            pass(3);
            let now = clock.now();
            assert_eq!(clock.of_stamp(stamp(), now, SLACK), now, "set by {by_ms} ms");
            assert_eq!(clock.to_wall_ns(now), stamp(), "what it writes into captures");
            // A frame that came before that is taken after it.
            let late = clock.of_stamp(before, now, SLACK);
            assert!(now.since(late.min(now)) <= SLACK, "set by {by_ms} ms: {late} at {now}");
        }
    }

    /// Too little to be seen in a stamp: what is done ten times a second finds it.
    #[test]
    fn a_small_step_is_found_by_comparing() {
        let mut clock = clock();
        for by_ms in [-5, 5] {
            assert!(!clock.compare());
            set(by_ms);
            assert!(clock.compare() && !clock.compare());
            let now = clock.now();
            assert_eq!(clock.of_stamp(stamp(), now, SLACK), now);
        }
    }

    #[test]
    fn plausible_stamps_cost_no_reading_and_others_one_comparison_for_each_wake_up() {
        let mut clock = clock();
        pass(1000);
        let now = clock.now();
        READ.set(0);
        for late_ms in 0..=20 {
            let time = clock.of_stamp(stamp() - late_ms * 1_000_000, now, SLACK);
            assert_eq!(now.since(time), Span::ms(late_ms));
        }
        assert_eq!(READ.get(), 0);
        // The thread was away: stamps are as old as they say.
        for late_ms in 21..=40 {
            let time = clock.of_stamp(stamp() - late_ms * 1_000_000, now, SLACK);
            assert_eq!(now.since(time), Span::ms(late_ms));
        }
        assert_eq!(READ.get(), 9);
    }

    /// A thread that loses its processor between two readings takes nothing for a step.
    #[test]
    fn a_comparison_that_was_interrupted_is_not_believed() {
        let mut clock = clock();
        for takes in [[0, 5, 0, 0, 0, 9, 0, 0, 0], [0, 5, 0, 0, 0, 9, 0, 0, 7], [0, 7, 0, 0, 7, 0, 0, 7, 0]] {
            TAKES.set(takes.map(|ms| ms * 1_000_000));
            assert!(!clock.compare(), "{takes:?}");
        }
    }

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
