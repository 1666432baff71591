//! Time in the live backend: picoseconds since the direction started, or since its clock was restarted.
//!
//! [`giveway_qdisc::Time`] has a range of 213 days. Queued packets carry times, so a direction restarts its
//! clock only while nothing is queued, once it is older than [`Clock::OLD`].
//!
//! The kernel's time stamps are from the wall clock, which can be set; everything else here is monotonic. A
//! clock therefore stores the difference of the two clocks, and must detect a change. With an old difference,
//! time stamps after a step backwards would be too early, and sojourn times too long. [`Clock::compare`] is
//! called ten times a second, and by [`Clock::of_stamp`] as soon as a time stamp is not plausible. For a
//! plausible time stamp no clock is read.

use giveway_qdisc::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Reads a clock of the system, in nanoseconds.
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// The monotonic clock, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The wall clock, in nanoseconds since 1970. The kernel's receive time stamps are from it.
pub fn wall_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// A function that reads a clock of the system, in nanoseconds.
pub type Source = fn(ClockId) -> u64;

/// The clock of a direction.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Monotonic clock at time zero.
    origin_ns: u64,
    /// Difference to add to the wall clock to get the monotonic clock. Wraps.
    from_wall_ns: u64,
    /// Time of the last comparison that an implausible time stamp caused.
    doubted: Time,
    /// Time at which a step of the wall clock was last detected.
    stepped: Option<Time>,
    /// Span that is added to the time; only for tests.
    pretended: Span,
}

impl Clock {
    /// Age from which a clock is restarted as soon as nothing is queued: 100 days.
    pub const OLD: Span = Span::s(100 * 24 * 3600);

    /// Smallest change of the difference that counts as a step. A comparison is not exact, and the times of
    /// packets need no higher precision.
    const STEP_NS: u64 = 20_000;
    /// Time after a step in which time stamps from before it may occur. A ring is emptied much sooner.
    const AFTERMATH: Span = Span::s(1);

    /// Creates a clock that starts now.
    pub fn start() -> Clock {
        Clock::of(read)
    }

    /// Creates a clock that starts now, with another source than the system's clocks, for tests.
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

    /// Creates a clock that starts now, with the same source.
    pub fn restart(&self) -> Clock {
        Clock::of(self.source)
    }

    /// Creates a clock that appears to have run for `by`, for tests.
    pub fn aged(by: Span) -> Clock {
        Clock { pretended: by, ..Clock::start() }
    }

    /// Compares the two clocks of the system. Returns true if the wall clock was set since the last
    /// comparison.
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

    /// The difference to add to the wall clock to get the monotonic clock, and its largest error.
    fn difference_ns(&self) -> (u64, u64) {
        let sample = || {
            let before = (self.source)(ClockId::CLOCK_MONOTONIC);
            let wall = (self.source)(ClockId::CLOCK_REALTIME);
            let took = (self.source)(ClockId::CLOCK_MONOTONIC).saturating_sub(before);
            ((before + took / 2).wrapping_sub(wall), took.div_ceil(2))
        };
        // The thread may be preempted between two readings, but hardly three times in a row.
        let samples = [sample(), sample(), sample()];
        samples.into_iter().min_by_key(|(_, error)| *error).expect("there are three samples")
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.of_monotonic((self.source)(ClockId::CLOCK_MONOTONIC))
    }

    /// Converts a wall clock time. A time before time zero becomes zero.
    pub fn of_wall(&self, ns: u64) -> Time {
        self.of_monotonic(ns.wrapping_add(self.from_wall_ns))
    }

    /// Converts the time stamp of an arrival. A time stamp that differs from `now` by more than `slack` is
    /// not plausible and causes a comparison of the clocks, at most one for each value of `now`.
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
        // The frame may have been in the ring since before the step, but not for as long as the step is.
        let just_set = self.stepped.is_some_and(|at| now.since(at.min(now)) < Clock::AFTERMATH);
        if odd && just_set { now } else { time }
    }

    /// Converts a time of the monotonic clock, in nanoseconds. A time before time zero becomes zero.
    pub fn of_monotonic(&self, ns: u64) -> Time {
        Time::from_ps(ns.saturating_sub(self.origin_ns).saturating_mul(1000)) + self.pretended
    }

    /// Converts a time to the monotonic clock, in nanoseconds, rounded up.
    pub fn to_monotonic_ns(&self, time: Time) -> u64 {
        self.origin_ns + time.since(Time::ZERO + self.pretended).as_ps().div_ceil(1000)
    }

    /// Converts a time to the wall clock, in nanoseconds since 1970.
    pub fn to_wall_ns(&self, time: Time) -> u64 {
        self.to_monotonic_ns(time).wrapping_sub(self.from_wall_ns)
    }

    /// True if the clock should be restarted.
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
        /// Time of the monotonic clock, in nanoseconds.
        pub(crate) static MONOTONIC: Cell<u64> = const { Cell::new(1_000_000_000_000) };
        /// Difference of the wall clock to the monotonic clock.
        pub(crate) static AHEAD: Cell<u64> = const { Cell::new(1_700_000_000_000_000_000) };
        /// Number of readings.
        pub(crate) static READ: Cell<u32> = const { Cell::new(0) };
        /// Durations of the next readings, in nanoseconds: a thread may be preempted during one.
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

    /// The time stamp of the kernel for a frame that arrives now.
    pub(crate) fn stamp() -> u64 {
        MONOTONIC.get() + AHEAD.get()
    }

    /// Advances both clocks by `ms` milliseconds.
    pub(crate) fn pass(ms: u64) {
        MONOTONIC.set(MONOTONIC.get() + ms * 1_000_000);
    }

    /// Sets the wall clock by this number of milliseconds.
    pub(crate) fn set(by_ms: i64) {
        AHEAD.set(AHEAD.get().wrapping_add_signed(by_ms * 1_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{READ, TAKES, clock, pass, set, stamp};
    use super::*;

    const SLACK: Span = Span::ms(20);

    /// Steps of an hour, of a second, and of a little more than the plausible difference, in both directions.
    #[test]
    fn a_step_of_the_wall_clock_is_detected_with_the_first_time_stamp() {
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
            assert_eq!(clock.to_wall_ns(now), stamp(), "the time stamp in captures");
            // A frame that arrived before the step is read after it.
            let late = clock.of_stamp(before, now, SLACK);
            assert!(now.since(late.min(now)) <= SLACK, "set by {by_ms} ms: {late} at {now}");
        }
    }

    /// The step is too small for an implausible time stamp, so the periodic comparison detects it.
    #[test]
    fn a_small_step_is_detected_by_a_comparison() {
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
    fn plausible_time_stamps_read_no_clock_and_others_cause_one_comparison_for_each_wake_up() {
        let mut clock = clock();
        pass(1000);
        let now = clock.now();
        READ.set(0);
        for late_ms in 0..=20 {
            let time = clock.of_stamp(stamp() - late_ms * 1_000_000, now, SLACK);
            assert_eq!(now.since(time), Span::ms(late_ms));
        }
        assert_eq!(READ.get(), 0);
        // The thread did not run, so the old time stamps are right.
        for late_ms in 21..=40 {
            let time = clock.of_stamp(stamp() - late_ms * 1_000_000, now, SLACK);
            assert_eq!(now.since(time), Span::ms(late_ms));
        }
        assert_eq!(READ.get(), 9);
    }

    /// A thread that is preempted between two readings does not detect a step.
    #[test]
    fn an_interrupted_comparison_is_ignored() {
        let mut clock = clock();
        for takes in [[0, 5, 0, 0, 0, 9, 0, 0, 0], [0, 5, 0, 0, 0, 9, 0, 0, 7], [0, 7, 0, 0, 7, 0, 0, 7, 0]] {
            TAKES.set(takes.map(|ms| ms * 1_000_000));
            assert!(!clock.compare(), "{takes:?}");
        }
    }

    #[test]
    fn converted_times_convert_back() {
        let clock = Clock::start();
        let now = clock.now();
        assert_eq!(clock.of_monotonic(clock.to_monotonic_ns(now)), now);
        assert_eq!(clock.of_wall(clock.to_wall_ns(now)), now);
        assert!(clock.now() >= now);
    }

    #[test]
    fn a_time_stamp_before_the_start_is_zero() {
        assert_eq!(Clock::start().of_monotonic(0), Time::ZERO);
    }

    #[test]
    fn a_clock_is_old_after_a_hundred_days() {
        let young = Clock::start();
        assert!(!young.is_old(young.now()));
        let old = Clock::aged(Clock::OLD + Span::s(1));
        assert!(old.is_old(old.now()));
        assert!(old.of_monotonic(old.to_monotonic_ns(old.now())).since(Time::ZERO) > Clock::OLD);
    }
}
