//! Link emulation: delay, jitter and loss after the link, so that one process emulates a whole path.
//!
//! The semantics are those of a link of the network simulator, so that results can be compared. A frame
//! enters when its last bit has left the transmitter. Each frame is lost independently with the configured
//! probability. The delay of a frame is the constant delay plus a jitter that is uniformly distributed.
//! Frames do not overtake each other.

use std::collections::VecDeque;

use giveway_qdisc::{Rng, Share, Span, Streams, Time};

/// The delay, jitter and loss of an emulated link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEmulation {
    /// Constant delay.
    pub delay: Span,
    /// Largest additional delay. The additional delay of a frame is uniformly distributed from zero to this.
    pub jitter: Span,
    /// Probability that a frame is lost.
    pub loss: Share,
}

impl LinkEmulation {
    /// No delay, no jitter and no loss: a frame leaves when its transmission begins.
    pub fn none() -> LinkEmulation {
        LinkEmulation {
            delay: Span::ZERO,
            jitter: Span::ZERO,
            loss: Share::new(0.0).expect("zero is a share"),
        }
    }

    /// True if there is no delay, no jitter and no loss.
    pub fn is_none(&self) -> bool {
        *self == LinkEmulation::none()
    }
}

/// A frame between the transmitter and the outgoing interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time at which the frame is due at the outgoing interface.
    pub due: Time,
    /// Buffer of the pool that has the frame.
    pub buffer: u32,
    /// Length of the frame, in bytes.
    pub length: u32,
}

/// Applies a [`LinkEmulation`] to frames, in order.
pub struct LinkEmulator {
    config: LinkEmulation,
    rng: Rng,
    in_flight: VecDeque<InFlight>,
}

impl LinkEmulator {
    /// Creates an emulator without frames. It allocates nothing while at most `frames` frames are in flight.
    pub fn new(config: LinkEmulation, streams: &Streams, frames: usize) -> LinkEmulator {
        LinkEmulator { config, rng: streams.within("line").rng(), in_flight: VecDeque::with_capacity(frames) }
    }

    /// Changes the configuration. Frames in flight keep their times, and later frames do not overtake them.
    pub fn set(&mut self, config: LinkEmulation) {
        self.config = config;
    }
    /// The configuration.
    pub fn config(&self) -> LinkEmulation {
        self.config
    }

    /// Accepts a frame whose transmission takes from `begin` to `end`. Returns false if the frame is lost;
    /// the buffer then belongs to the caller.
    #[inline]
    pub fn enter(&mut self, buffer: u32, length: u32, begin: Time, end: Time) -> bool {
        let LinkEmulation { delay, jitter, loss } = self.config;
        // Without emulation the frame is sent at `begin`, since its transmission also begins then on the real
        // link.
        let mut due = if self.config.is_none() { begin } else { end + delay };
        if loss.get() > 0.0 && self.rng.uniform() < loss.get() {
            return false;
        }
        if !jitter.is_zero() {
            due += Span::from_ps(self.rng.below(jitter.as_ps() + 1));
        }
        let due = self.in_flight.back().map_or(due, |last| due.max(last.due));
        self.in_flight.push_back(InFlight { due, buffer, length });
        true
    }

    /// Time at which the next frame is due.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.in_flight.front().map(|frame| frame.due)
    }

    /// The frames that are due at `now`, at most `most`, in order. They stay until [`LinkEmulator::sent`].
    pub fn due(&self, now: Time, most: usize) -> impl Iterator<Item = &InFlight> {
        self.in_flight.iter().take(most).take_while(move |frame| frame.due <= now)
    }

    /// Removes and returns the first frame.
    #[inline]
    pub fn sent(&mut self) -> Option<InFlight> {
        self.in_flight.pop_front()
    }

    /// Number of frames in flight.
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }
    /// True if no frame is in flight.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Restarts the clock: the time `then` becomes zero.
    pub fn rebase(&mut self, then: Time) {
        for frame in &mut self.in_flight {
            frame.due = Time::ZERO + frame.due.since(Time::ZERO).saturating_sub(then.since(Time::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emulator(delay: Span, jitter: Span, loss: f64) -> LinkEmulator {
        let config = LinkEmulation { delay, jitter, loss: Share::new(loss).unwrap() };
        LinkEmulator::new(config, &Streams::new(1), 16)
    }

    #[test]
    fn without_emulation_a_frame_leaves_when_its_transmission_begins() {
        let mut emulator = emulator(Span::ZERO, Span::ZERO, 0.0);
        assert!(emulator.enter(7, 100, Time::ms(3), Time::ms(4)));
        assert_eq!(emulator.next(), Some(Time::ms(3)));
    }

    #[test]
    fn the_delay_counts_from_the_last_bit_and_a_change_reorders_nothing() {
        let mut emulator = emulator(Span::ms(20), Span::ZERO, 0.0);
        assert!(emulator.enter(1, 100, Time::ms(3), Time::ms(4)));
        emulator.set(LinkEmulation::none());
        assert!(emulator.enter(2, 100, Time::ms(5), Time::ms(6)));
        let due: Vec<_> = emulator.due(Time::ms(24), 8).map(|frame| (frame.buffer, frame.due)).collect();
        assert_eq!(due, [(1, Time::ms(24)), (2, Time::ms(24))]);
        assert_eq!(emulator.due(Time::ms(23), 8).count(), 0);
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_in_order() {
        let mut emulator = emulator(Span::ms(5), Span::ms(2), 0.0);
        let (mut last, mut spread) = (Time::ZERO, Span::ZERO);
        for number in 0..1000u32 {
            let end = Time::ms(10 * u64::from(number));
            assert!(emulator.enter(number, 100, end, end));
            let frame = emulator.sent().unwrap();
            let late = frame.due.since(end);
            assert!(Span::ms(5) <= late && late <= Span::ms(7), "{late}");
            assert!(frame.due >= last);
            (last, spread) = (frame.due, spread.max(late));
        }
        assert!(spread > Span::us(6900), "all of the range is used: {spread}");
    }

    /// Of 10,000 frames at 2 %, 200 are lost on average, with a standard deviation of 14. The bounds are five
    /// standard deviations.
    #[test]
    fn frames_are_lost_with_the_configured_probability() {
        let mut emulator = emulator(Span::ZERO, Span::ZERO, 0.02);
        let lost = (0..10_000).filter(|n| !emulator.enter(*n, 100, Time::ZERO, Time::ZERO)).count();
        assert!((130..=270).contains(&lost), "{lost}");
    }

    #[test]
    fn the_clock_can_be_restarted() {
        let mut emulator = emulator(Span::ms(20), Span::ZERO, 0.0);
        assert!(emulator.enter(1, 100, Time::s(9), Time::s(10)));
        emulator.rebase(Time::s(10));
        assert_eq!(emulator.next(), Some(Time::ms(20)));
    }
}
