//! The transmitter of a link whose rate varies.

use std::collections::VecDeque;

use giveway_qdisc::{Port, Rate, Span, Time};

use crate::profile::{Course, Profile};

/// One byte in bit/s times picoseconds.
const BYTE: u128 = 8 * 1_000_000_000_000;
/// The length up to which a packet fits 64 bits in this unit.
const SMALL: u32 = 1 << 21;
/// The time over which the rate of opportunities is measured.
const WINDOW: Span = Span::ms(100);

/// Computes when transmissions start and end on a link whose rate follows a [`Profile`]. One packet is
/// transmitted at a time.
#[derive(Debug)]
pub struct Transmitter {
    course: Course,
    /// Beginning and end of the current piece. It may lie in the future.
    from: Time,
    until: Time,
    /// Rate of the piece, in bit/s.
    rate: u64,
    /// Bytes that are left of those at its beginning.
    burst: u64,
    /// End of the last transmission, and what passed in its last picosecond beyond the packet.
    free_at: Time,
    excess: u64,
    changes: Changes,
    /// Time of the first change that has not been reported, or the end of the piece.
    next_change: Time,
}

/// The changes of the rate that have not been reported to the discipline.
#[derive(Debug)]
struct Changes {
    pending: VecDeque<(Time, Rate)>,
    last: Rate,
    window: Option<Window>,
}

/// The bytes offered in a window, for a link without a rate.
#[derive(Debug)]
struct Window {
    until: Time,
    bytes: u64,
}

impl Transmitter {
    /// An idle transmitter at time zero, of a link whose discipline was built for `rate`.
    pub fn new(profile: &Profile, rate: Rate) -> Transmitter {
        Transmitter::starting(profile, rate, Time::ZERO)
    }

    /// Like [`new`](Transmitter::new), of a link whose profile starts at `start`. Nothing passes before.
    pub fn starting(profile: &Profile, rate: Rate, start: Time) -> Transmitter {
        let window = profile.bursts().then_some(Window { until: start + WINDOW, bytes: 0 });
        let mut transmitter = Transmitter {
            course: profile.course(),
            from: start,
            until: start,
            rate: 0,
            burst: 0,
            free_at: Time::ZERO,
            excess: 0,
            changes: Changes { pending: VecDeque::new(), last: rate, window },
            next_change: start,
        };
        transmitter.advance();
        transmitter
    }

    /// The time at which the next transmission may start: `now`, or later if nothing passes now. `now` never
    /// goes back, and is not before the end of the last transmission.
    #[inline]
    pub fn ready(&mut self, now: Time) -> Time {
        while self.until <= now {
            if self.until == Time::NEVER {
                return Time::NEVER;
            }
            self.advance();
        }
        if self.rate > 0 && self.from <= now {
            return now;
        }
        self.search(now)
    }

    /// Transmits a packet of `bytes` bytes from `now` on, at which the transmitter is
    /// [`ready`](Transmitter::ready). Returns the end of the transmission; [`Time::NEVER`] if the rate is
    /// zero for ever before that.
    #[inline]
    pub fn transmit(&mut self, bytes: u32, now: Time) -> Time {
        // A transmission ends at a whole picosecond. What passes in the rest of it counts for the next packet
        // only if that follows at once.
        let excess = if self.free_at == now { self.excess } else { 0 };
        if self.rate > 0 && bytes < SMALL {
            let need = (u64::from(bytes) * BYTE as u64).saturating_sub(excess);
            let time = need.div_ceil(self.rate);
            // The usual case: the packet ends within this piece of the profile.
            if time <= self.until.as_ps() - now.as_ps() {
                self.free_at = now + Span::from_ps(time);
                self.excess = time.wrapping_mul(self.rate).wrapping_sub(need);
                return self.free_at;
            }
        }
        self.transmit_on(u128::from(bytes) * BYTE - u128::from(excess).min(u128::from(bytes) * BYTE), now)
    }

    /// True if there may be a [`change`](Transmitter::change) by `now`.
    #[inline]
    pub fn may_change(&self, now: Time) -> bool {
        self.next_change <= now
    }

    /// The next change of the rate by `now` that has not been reported, with its time. Changes come in order.
    pub fn change(&mut self, now: Time) -> Option<(Time, Rate)> {
        while self.until <= now && self.until != Time::NEVER {
            self.advance();
        }
        let reported = self.changes.next(now);
        self.look_ahead();
        reported
    }

    /// Tells a port of the changes of the rate by `now`. Call this before each other call of the port.
    #[inline]
    pub fn inform<P: 'static>(&mut self, port: &mut Port<P>, now: Time) {
        if self.may_change(now) {
            while let Some((at, rate)) = self.change(now) {
                port.change_rate(rate, at);
            }
        }
    }

    /// Restarts the clock: the time `then` becomes zero. The profile goes on. Changes by `then` that have not
    /// been reported are not reported any more.
    pub fn rebase(&mut self, then: Time) {
        while self.change(then).is_some() {}
        let moved = |at: Time| match at {
            Time::NEVER => Time::NEVER,
            at => Time::ZERO + at.since(then),
        };
        self.from = moved(self.from);
        self.until = moved(self.until);
        self.free_at = moved(self.free_at);
        self.next_change = moved(self.next_change);
        self.changes.pending.iter_mut().for_each(|(at, _)| *at = moved(*at));
        if let Some(window) = &mut self.changes.window {
            window.until = moved(window.until);
        }
    }

    /// A time before which no further change is reported. [`Time::NEVER`] if there is none any more.
    pub fn next_change(&self) -> Time {
        self.next_change
    }

    fn look_ahead(&mut self) {
        self.next_change = self.changes.pending.front().map_or(self.until, |(at, _)| *at);
    }

    /// Finds the next piece in which something passes.
    #[cold]
    fn search(&mut self, now: Time) -> Time {
        loop {
            if self.rate > 0 || (self.burst > 0 && now <= self.from) {
                return self.from.max(now);
            }
            if self.until == Time::NEVER {
                return Time::NEVER;
            }
            self.advance();
        }
    }

    /// Transmits the rest of a packet, through several pieces.
    #[cold]
    fn transmit_on(&mut self, need: u128, now: Time) -> Time {
        let (mut need, mut at) = (need, now);
        self.excess = 0;
        loop {
            if self.rate > 0 {
                let (rate, rest) = (u128::from(self.rate), u128::from(self.until.since(at).as_ps()));
                let time = need.div_ceil(rate);
                if time <= rest {
                    self.free_at = at + Span::from_ps(time as u64);
                    self.excess = (time * rate - need) as u64;
                    return self.free_at;
                }
                // Bits in flight do not wait for the new rate: the rest of the packet continues with it.
                need -= rest * rate;
            // A piece without a rate has opportunities at its start only, as in a trace of mahimahi.
            } else if at == self.from {
                let bytes = need.div_ceil(BYTE);
                if bytes <= u128::from(self.burst) {
                    self.burst -= bytes as u64;
                    self.free_at = at;
                    return at;
                }
                need -= u128::from(self.burst) * BYTE;
                self.burst = 0;
            }
            if self.until == Time::NEVER {
                self.free_at = Time::NEVER;
                return Time::NEVER;
            }
            self.advance();
            at = self.from;
        }
    }

    /// Goes to the next piece.
    fn advance(&mut self) {
        let piece = self.course.next();
        self.from = self.until;
        self.until = self.from + piece.length;
        self.rate = piece.value;
        self.burst = piece.burst;
        let reported = match &mut self.changes.window {
            None => Some(piece.value),
            Some(window) => window.add(piece.burst, self.from),
        };
        if let Some(rate) = reported {
            self.changes.push(self.from, rate);
        }
        self.look_ahead();
    }
}

impl Window {
    /// Adds bytes that are offered at `at`. Returns the rate of a window that has passed before.
    fn add(&mut self, bytes: u64, at: Time) -> Option<u64> {
        let passed = (self.until <= at).then(|| {
            let bits = u128::from(self.bytes) * 8 * 1_000_000_000_000;
            self.bytes = 0;
            // Windows lie on a fixed grid, so that the rate does not depend on when packets come.
            self.until = Time::ZERO + WINDOW * (at.as_ps() / WINDOW.as_ps() + 1);
            (bits / u128::from(WINDOW.as_ps())) as u64
        });
        self.bytes += bytes;
        passed
    }
}

impl Changes {
    fn push(&mut self, at: Time, rate: u64) {
        // A rate of zero is not reported: nothing leaves, and disciplines divide by the rate.
        if rate > 0 && Rate::bit(rate) != self.last {
            self.last = Rate::bit(rate);
            self.pending.push_back((at, self.last));
        }
    }

    fn next(&mut self, now: Time) -> Option<(Time, Rate)> {
        let (at, _) = self.pending.front()?;
        if *at > now { None } else { self.pending.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Model;
    use crate::profile::Shape;
    use crate::quantity::Quantity;
    use proptest::prelude::*;

    /// The ends of transmissions of a link with a full queue of packets of `bytes` bytes, until a time.
    fn saturated(profile: &Profile, bytes: &mut dyn FnMut() -> u32, until: Time) -> Vec<(Time, u32)> {
        let mut transmitter = start(profile);
        let (mut now, mut ends) = (Time::ZERO, Vec::new());
        loop {
            let begin = transmitter.ready(now);
            if begin > until {
                return ends;
            }
            assert_eq!(transmitter.ready(begin), begin, "it stays ready");
            let length = bytes();
            now = transmitter.transmit(length, begin);
            assert!(now >= begin);
            if now > until {
                return ends;
            }
            ends.push((now, length));
        }
    }

    fn start(profile: &Profile) -> Transmitter {
        Transmitter::new(profile, Rate::bit(profile.mean()))
    }

    fn steps(points: &[(u64, u64)], repeats: bool) -> Profile {
        let points: Vec<_> = points.iter().map(|(ms, kbit)| (Span::ms(*ms), 1000 * kbit)).collect();
        Profile::points(Quantity::Rate, Shape::Steps, &points, repeats).unwrap()
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        use std::io::Write;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    /// 1,250 bytes are 10,000 bits: 10 ms at 1 Mbit/s, 1 ms at 10 Mbit/s.
    #[test]
    fn the_rest_of_a_packet_goes_at_the_new_rate() {
        let mut transmitter = start(&steps(&[(0, 1000), (15, 10_000), (30, 0), (40, 2000)], false));
        assert_eq!(transmitter.transmit(1250, Time::ZERO), Time::ms(10));
        // Half of it in 5 ms, the other half in half a millisecond.
        assert_eq!(transmitter.transmit(1250, Time::ms(10)), Time::us(15_500));
        // 95 % of 10,000 bits in 0.95 ms, then 10 ms of silence, then 500 bits at 2 Mbit/s.
        assert_eq!(transmitter.transmit(1250, Time::us(29_050)), Time::us(40_250));
        assert_eq!(transmitter.ready(Time::ms(50)), Time::ms(50));
    }

    #[test]
    fn no_transmission_begins_while_the_rate_is_zero() {
        let mut transmitter = start(&steps(&[(0, 1000), (10, 0), (20, 1000), (30, 0)], false));
        assert_eq!(transmitter.ready(Time::ms(12)), Time::ms(20));
        assert_eq!(transmitter.ready(Time::ms(13)), Time::ms(20), "an arrival asks again");
        assert_eq!(
            transmitter.transmit(2500, Time::ms(20)),
            Time::NEVER,
            "half of it passes, and nothing more"
        );
        assert_eq!(transmitter.ready(Time::ms(40)), Time::NEVER);
    }

    /// Two opportunities at 5 ms, one at 7 ms and one at 10 ms, again and again. A packet of 1,000 bytes
    /// leaves 2,000 bytes to the others. The third needs 500 bytes of the opportunity at 7 ms.
    #[test]
    fn an_opportunity_is_shared_and_what_is_left_of_it_is_lost() {
        let file = file("5\n5\n7\n10\n");
        let mut transmitter = start(&Profile::mahimahi(file.path(), true).unwrap());
        assert_eq!(transmitter.ready(Time::ms(1)), Time::ms(5));
        assert_eq!(transmitter.transmit(1000, Time::ms(5)), Time::ms(5));
        assert_eq!(transmitter.ready(Time::ms(5)), Time::ms(5));
        assert_eq!(transmitter.transmit(1500, Time::ms(5)), Time::ms(5));
        assert_eq!(transmitter.transmit(1000, Time::ms(5)), Time::ms(7));
        // 1,000 bytes are left at 7 ms, and are lost because nothing takes them.
        assert_eq!(transmitter.ready(Time::us(7001)), Time::ms(10));
        assert_eq!(transmitter.transmit(1500, Time::ms(10)), Time::ms(10));
        assert_eq!(transmitter.ready(Time::ms(10)), Time::ms(15), "the next round begins at 10 ms");
    }

    #[test]
    fn opportunities_at_both_ends_of_a_loop_are_one() {
        let file = file("0\n4\n");
        let mut transmitter = start(&Profile::mahimahi(file.path(), true).unwrap());
        assert_eq!(transmitter.transmit(1500, Time::ZERO), Time::ZERO);
        assert_eq!(transmitter.ready(Time::ZERO), Time::ms(4));
        assert_eq!(transmitter.transmit(1500, Time::ms(4)), Time::ms(4));
        assert_eq!(
            transmitter.transmit(1500, Time::ms(4)),
            Time::ms(4),
            "the last of one and the first of the next"
        );
        assert_eq!(transmitter.ready(Time::ms(4)), Time::ms(8));
    }

    #[test]
    fn a_trace_of_mahimahi_that_is_played_once_ends_in_silence() {
        let file = file("3\n6\n");
        let mut transmitter = start(&Profile::mahimahi(file.path(), false).unwrap());
        assert_eq!(transmitter.ready(Time::ms(4)), Time::ms(6));
        assert_eq!(transmitter.transmit(1501, Time::ms(6)), Time::NEVER);
    }

    /// The clock is restarted at 25 ms, and once more at 5 ms of the new clock.
    #[test]
    fn a_profile_begins_at_any_time_and_goes_on_after_a_restart_of_the_clock() {
        let profile = steps(&[(0, 1000), (15, 10_000), (30, 0), (40, 2000)], false);
        let mut transmitter = Transmitter::starting(&profile, Rate::mbit(1), Time::ms(5));
        assert_eq!(transmitter.ready(Time::ms(1)), Time::ms(5), "nothing passes before");
        assert_eq!(transmitter.transmit(1250, Time::ms(5)), Time::ms(15));
        transmitter.rebase(Time::ms(25));
        assert_eq!(transmitter.ready(Time::ms(1)), Time::ms(1), "10 Mbit/s until 10 ms");
        assert_eq!(transmitter.transmit(1250, Time::ms(1)), Time::ms(2));
        transmitter.rebase(Time::ms(5));
        assert_eq!(
            transmitter.transmit(7500, Time::ZERO),
            Time::ms(20),
            "5 ms, a pause, and 5 ms at 2 Mbit/s"
        );
        assert_eq!(transmitter.change(Time::ms(20)), Some((Time::ms(15), Rate::mbit(2))));
    }

    #[test]
    fn changes_are_reported_in_order_and_not_before_their_time() {
        let mut transmitter = start(&steps(&[(0, 1000), (10, 2000), (20, 0), (30, 3000)], false));
        // It was built for the mean of the first 30 ms, 1 Mbit/s: nothing to tell at the beginning.
        assert_eq!(transmitter.change(Time::ZERO), None);
        // A packet of 10 ms + 10 ms at the double rate + 1 ms after the silence.
        assert_eq!(transmitter.transmit(4125, Time::ZERO), Time::ms(31));
        assert_eq!(transmitter.change(Time::ms(5)), None);
        assert_eq!(transmitter.next_change(), Time::ms(10));
        assert_eq!(transmitter.change(Time::ms(15)), Some((Time::ms(10), Rate::mbit(2))));
        assert_eq!(transmitter.change(Time::ms(25)), None, "a rate of zero is not reported");
        assert_eq!(transmitter.change(Time::ms(35)), Some((Time::ms(30), Rate::mbit(3))));
        assert_eq!(transmitter.change(Time::s(35)), None);
    }

    #[test]
    fn opportunities_are_reported_as_the_rate_of_the_last_tenth_of_a_second() {
        // One per millisecond is 12 Mbit/s, which is also the mean.
        let text: String = (1..=300).map(|ms| format!("{ms}\n")).collect();
        let file = file(&(text + "400\n"));
        let mut transmitter = start(&Profile::mahimahi(file.path(), true).unwrap());
        let reported = transmitter.change(Time::ms(350));
        // 99 opportunities: those at 1 to 99 ms.
        assert_eq!(reported, Some((Time::ms(100), Rate::kbit(11_880))));
        assert_eq!(transmitter.change(Time::ms(350)), Some((Time::ms(200), Rate::mbit(12))));
    }

    /// The sum of the bytes that left by a time is the integral of the rate, but for the packet that is being
    /// sent; for all formats, once and in a loop, whatever the lengths of the packets.
    fn is_exact(profile: &Profile, lengths: &[u32], until: Time) {
        let mut next = lengths.iter().cycle();
        let ends = saturated(profile, &mut || *next.next().unwrap(), until);
        let mut sum = 0u128;
        for (end, bytes) in &ends {
            sum += u128::from(*bytes) * 8;
            let offered = profile.integral(Time::ZERO, *end + Span::from_ps(1));
            assert!(sum <= offered, "{sum} bits have left by {end}, and {offered} were offered");
        }
        let offered = profile.integral(Time::ZERO, until + Span::from_ps(1));
        let longest = u128::from(*lengths.iter().max().unwrap());
        assert!(offered - sum <= 8 * longest + 1, "{sum} bits of {offered} left by {until}");
    }

    proptest! {
        #[test]
        fn what_passes_is_the_integral_of_steps(
            points in prop::collection::vec((1000u64..40_000, 0u64..200_000_000), 1..20),
            lengths in prop::collection::vec(40u32..9000, 1..5),
            repeats: bool,
            ramp: bool,
        ) {
            let mut at = Span::ZERO;
            let mut all = vec![(Span::ZERO, 1_000_000)];
            for (us, value) in points {
                at += Span::us(us);
                all.push((at, value));
            }
            let shape = if ramp { Shape::Ramp } else { Shape::Steps };
            let profile = Profile::points(Quantity::Rate, shape, &all, repeats).unwrap();
            is_exact(&profile, &lengths, Time::ms(400));
        }

        #[test]
        fn what_passes_is_the_sum_of_opportunities(
            waits in prop::collection::vec(0u64..5, 1..60),
            lengths in prop::collection::vec(40u32..9000, 1..5),
            repeats: bool,
        ) {
            let mut at = 1;
            let mut text = String::new();
            for wait in waits {
                at += wait;
                text += &format!("{at}\n");
            }
            let file = file(&text);
            is_exact(&Profile::mahimahi(file.path(), repeats).unwrap(), &lengths, Time::ms(400));
        }
    }

    #[test]
    fn what_passes_is_the_integral_of_a_csv_file_and_of_each_model() {
        let file = file("time,rate\n0,20mbit\n0.05,1000000\n100ms,0\n0.15,7mbit\n");
        for repeats in [false, true] {
            let profile = Profile::csv(Quantity::Rate, file.path(), repeats).unwrap();
            is_exact(&profile, &[1500, 40, 576], Time::s(1));
        }
        let (mean, high, low) = (Rate::mbit(20), Rate::mbit(50), Rate::mbit(3));
        let models = [
            Model::Lte { mean, spread: 20.0, hold: Span::ms(20) },
            Model::Wifi { high, hold: Span::ms(20) },
            Model::Satellite {
                quantity: Quantity::Rate,
                low: low.as_bit(),
                high: high.as_bit(),
                every: Span::ms(300),
            },
            Model::Cable { mean, every: Span::ms(2) },
            Model::Diurnal { high, low, period: Span::s(1) },
        ];
        for model in models {
            for seed in 1..4 {
                is_exact(&Profile::model(model.clone(), seed).unwrap(), &[1500, 40, 576], Time::s(2));
            }
        }
    }

    /// At 3 bit/s above 1 Gbit/s no packet takes a whole number of picoseconds. Without the excess, a million
    /// packets would be late by half a microsecond.
    #[test]
    fn rounding_does_not_add_up() {
        let points = [(Span::ZERO, 1_000_000_003)];
        let profile = Profile::points(Quantity::Rate, Shape::Steps, &points, false).unwrap();
        let mut transmitter = start(&profile);
        let mut now = Time::ZERO;
        for _ in 0..1_000_000 {
            now = transmitter.transmit(1500, now);
        }
        let exact = (12_000_000_000u128 * 1_000_000_000_000).div_ceil(1_000_000_003);
        assert_eq!(u128::from(now.as_ps()), exact);
    }
}
