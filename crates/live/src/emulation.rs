//! Link emulation: delay, loss and other impairments after the link, so that one process emulates a whole
//! path.
//!
//! The wire comes from the network simulator ([`Line`]), so that results can be compared. A frame enters when
//! its last bit has left the transmitter. Frames do not overtake each other unless they are reordered or
//! `unordered` is set. A damaged frame is discarded, as the far end of a real link discards it.

use std::collections::VecDeque;

use giveway_links::{Fate, Impairments, Line};
use giveway_qdisc::{Rate, Share, Span, Streams, Time};

/// The delay, jitter, loss and other impairments of an emulated link.
#[derive(Clone, Debug, Default)]
pub struct LinkEmulation {
    /// Constant delay.
    pub delay: Span,
    /// Largest additional delay. The additional delay of a frame is uniformly distributed from zero to this.
    pub jitter: Span,
    /// Probability that a frame is lost.
    pub loss: Share,
    /// The rate and the delay over time, a model of loss, and further impairments. Its delay and its loss
    /// take the place of the constant ones.
    pub impairments: Impairments,
}

impl LinkEmulation {
    /// A constant rate, no delay and no impairment: a frame leaves when its transmission starts.
    pub fn none() -> LinkEmulation {
        LinkEmulation::default()
    }

    /// True if the rate is constant, and the link has neither a delay nor an impairment.
    pub fn is_none(&self) -> bool {
        self.delay.is_zero() && !self.impairments.any(self.loss, self.jitter)
    }

    /// True if there is a delay or an impairment, whether or not the rate varies.
    fn has_wire(&self) -> bool {
        let constant_rate = Impairments { rate: None, ..self.impairments.clone() };
        !self.delay.is_zero() || constant_rate.any(self.loss, self.jitter)
    }

    /// Delay, loss and jitter, in the order of [`Line`].
    fn wire(&self) -> (Span, Share, Span) {
        (self.delay, self.loss, self.jitter)
    }
}

/// A frame between the transmitter and the outgoing interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time at which the frame is due at the outgoing interface.
    pub due: Time,
    /// Buffer of the pool that contains the frame.
    pub buffer: u32,
    /// Length of the frame, in bytes.
    pub length: u32,
}

/// The transmission of a frame by the link.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Length of the packet on the link, in bytes.
    pub bytes: u32,
    /// Time at which the frame leaves if there is no emulation: for its first bit, or for its last bit if the
    /// rate varies.
    pub begin: Time,
    /// Time of the last bit.
    pub end: Time,
    /// Rate of the link.
    pub rate: Rate,
}

/// Applies a [`LinkEmulation`] to frames.
pub struct LinkEmulator {
    /// `None` without a delay and without impairments.
    line: Option<Line>,
    streams: Streams,
    /// The frames in flight, in the order of their times.
    in_flight: VecDeque<InFlight>,
}

impl LinkEmulator {
    /// Creates an emulator without frames. What varies starts at `start`. It does not allocate while at most
    /// `frames` frames are in flight.
    pub fn new(config: &LinkEmulation, streams: &Streams, frames: usize, start: Time) -> LinkEmulator {
        let streams = streams.within("line");
        let line = Line::starting(config.wire(), &config.impairments, &streams, start);
        let line = config.has_wire().then_some(line);
        LinkEmulator { line, streams, in_flight: VecDeque::with_capacity(frames) }
    }

    /// Changes the configuration. Frames in flight keep their times. What varies starts at `now`.
    pub fn set(&mut self, config: &LinkEmulation, now: Time) {
        let streams = &self.streams;
        match &mut self.line {
            _ if !config.has_wire() => self.line = None,
            Some(line) => line.change(config.wire(), &config.impairments, streams, now),
            none => *none = Some(Line::starting(config.wire(), &config.impairments, streams, now)),
        }
    }

    /// The fate of the next frame. The caller then adds it with [`LinkEmulator::push`], and its copy if it
    /// arrives twice.
    #[inline]
    pub fn fate(&mut self, Transmission { bytes, begin, end, rate }: Transmission) -> Fate {
        match &mut self.line {
            Some(line) => line.carry(bytes, end, rate),
            // At a constant rate the frame is sent with its first bit, since its transmission also begins
            // then on the real link.
            None => Fate::Arrives(self.in_flight.back().map_or(begin, |last| begin.max(last.due))),
        }
    }

    /// Adds a frame, behind those that are due no later.
    #[inline]
    pub fn push(&mut self, frame: InFlight) {
        let overtaken = self.in_flight.iter().rev().take_while(|other| other.due > frame.due).count();
        self.in_flight.insert(self.in_flight.len() - overtaken, frame);
    }

    /// A frame whose transmission did not end, because the rate was zero for ever, is due at `now`: the link
    /// has another rate.
    pub fn release(&mut self, now: Time) {
        let held = self.in_flight.iter_mut().rev().take_while(|frame| frame.due == Time::NEVER);
        held.for_each(|frame| frame.due = now);
        self.in_flight.make_contiguous().sort_by_key(|frame| frame.due);
        if let Some(line) = &mut self.line {
            line.resume(now);
        }
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

    /// No frame ends its transmission before `now`.
    pub fn pass(&mut self, now: Time) {
        if let Some(line) = &mut self.line {
            line.pass(now);
        }
    }

    /// Restarts the clock: the time `then` becomes zero.
    pub fn rebase(&mut self, then: Time) {
        for frame in self.in_flight.iter_mut().filter(|frame| frame.due != Time::NEVER) {
            frame.due = Time::ZERO + frame.due.since(Time::ZERO).saturating_sub(then.since(Time::ZERO));
        }
        if let Some(line) = &mut self.line {
            line.rebase(then);
        }
    }
}

#[cfg(test)]
mod tests {
    use giveway_links::Reorder;

    use super::*;

    fn share(share: f64) -> Share {
        Share::new(share).unwrap()
    }

    fn emulator(config: &LinkEmulation) -> LinkEmulator {
        LinkEmulator::new(config, &Streams::new(1), 16, Time::ZERO)
    }

    fn delayed(delay: Span, jitter: Span, loss: f64) -> LinkEmulator {
        emulator(&LinkEmulation { delay, jitter, loss: share(loss), ..LinkEmulation::none() })
    }

    /// A frame of 1,500 bytes and its copy enter. Returns false if it is lost.
    fn enter(emulator: &mut LinkEmulator, buffer: u32, begin: Time, end: Time) -> bool {
        let rate = Rate::mbit(12);
        let (due, copies) = match emulator.fate(Transmission { bytes: 1500, begin, end, rate }) {
            Fate::Lost => return false,
            Fate::Arrives(due) => (due, 1),
            Fate::ArrivesTwice(due) => (due, 2),
        };
        (0..copies).for_each(|_| emulator.push(InFlight { due, buffer, length: 1514 }));
        true
    }

    #[test]
    fn without_emulation_a_frame_leaves_when_its_transmission_begins() {
        let mut emulator = delayed(Span::ZERO, Span::ZERO, 0.0);
        assert!(enter(&mut emulator, 7, Time::ms(3), Time::ms(4)));
        assert_eq!(emulator.next(), Some(Time::ms(3)));
    }

    #[test]
    fn the_delay_counts_from_the_last_bit_and_a_change_reorders_nothing() {
        for shorter in [Span::ZERO, Span::ms(1)] {
            let mut emulator = delayed(Span::ms(20), Span::ZERO, 0.0);
            assert!(enter(&mut emulator, 1, Time::ms(3), Time::ms(4)));
            emulator.set(&LinkEmulation { delay: shorter, ..LinkEmulation::none() }, Time::ms(5));
            assert!(enter(&mut emulator, 2, Time::ms(5), Time::ms(6)));
            let due: Vec<_> = emulator.due(Time::ms(24), 8).map(|frame| (frame.buffer, frame.due)).collect();
            assert_eq!(due, [(1, Time::ms(24)), (2, Time::ms(24))]);
            assert_eq!(emulator.due(Time::ms(23), 8).count(), 0);
        }
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_in_order() {
        let mut emulator = delayed(Span::ms(5), Span::ms(2), 0.0);
        let (mut last, mut spread) = (Time::ZERO, Span::ZERO);
        for number in 0..1000u32 {
            let end = Time::ms(10 * u64::from(number));
            assert!(enter(&mut emulator, number, end, end));
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
        let mut emulator = delayed(Span::ZERO, Span::ZERO, 0.02);
        let lost = (0..10_000).filter(|n| !enter(&mut emulator, *n, Time::ZERO, Time::ZERO)).count();
        assert!((130..=270).contains(&lost), "{lost}");
    }

    /// Every frame is late by two, and arrives twice: frame 1 ends at 1 ms, and is due after frame 3.
    #[test]
    fn a_late_frame_is_overtaken_and_a_copy_follows_its_frame() {
        let late = Some(Reorder { percent: share(1.0), distance: 2 });
        let of = |reorder| Impairments { duplicate: share(1.0), reorder, ..Impairments::default() };
        let config = |reorder| LinkEmulation { impairments: of(reorder), ..LinkEmulation::none() };
        let mut emulator = emulator(&config(late));
        assert!(enter(&mut emulator, 1, Time::ZERO, Time::ms(1)));
        emulator.set(&config(None), Time::ms(1));
        assert!(enter(&mut emulator, 2, Time::ms(1), Time::ms(2)));
        assert!(enter(&mut emulator, 3, Time::ms(2), Time::ms(3)));
        let order: Vec<u32> = emulator.due(Time::ms(9), 8).map(|frame| frame.buffer).collect();
        assert_eq!(order, [2, 2, 3, 3, 1, 1]);
    }

    #[test]
    fn the_clock_can_be_restarted() {
        let mut emulator = delayed(Span::ms(20), Span::ZERO, 0.0);
        assert!(enter(&mut emulator, 1, Time::s(9), Time::s(10)));
        emulator.rebase(Time::s(10));
        assert_eq!(emulator.next(), Some(Time::ms(20)));
        assert!(enter(&mut emulator, 2, Time::ZERO, Time::ms(1)));
        assert_eq!(emulator.due(Time::ms(21), 8).count(), 2);
    }
}
