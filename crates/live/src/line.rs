//! A line behind the link: delay, jitter and loss, so that one process emulates a whole path.
//!
//! Semantics are those of a link of the network simulation, so that the two compare: a frame is on the line when its last
//! bit has left the transmitter; it is lost with a probability of its own, each frame independently; its delay is the
//! constant one and a uniform share of the jitter; frames do not overtake each other.

use std::collections::VecDeque;

use qdisc::{Rng, Share, Span, Streams, Time};

/// What the line does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Constant delay.
    pub delay: Span,
    /// At most this is added, uniformly.
    pub jitter: Span,
    /// Which share of frames is lost.
    pub loss: Share,
}

impl Settings {
    /// A line that does nothing: frames leave when the transmitter begins with them.
    pub fn none() -> Settings {
        Settings { delay: Span::ZERO, jitter: Span::ZERO, loss: Share::new(0.0).expect("nothing is a share") }
    }

    /// Whether it does anything.
    pub fn is_none(&self) -> bool {
        *self == Settings::none()
    }
}

/// A frame on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// When it comes out.
    pub due: Time,
    /// Its room in the pool.
    pub room: u32,
    /// Its length there.
    pub length: u32,
}

/// Frames on their way, in order.
pub struct Line {
    settings: Settings,
    rng: Rng,
    flight: VecDeque<Held>,
}

impl Line {
    /// An empty line. `frames` may be on it without an allocation.
    pub fn new(settings: Settings, streams: &Streams, frames: usize) -> Line {
        Line { settings, rng: streams.within("line").rng(), flight: VecDeque::with_capacity(frames) }
    }

    /// What it does from now on. Frames on the way come out as they would have, and before the others.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }
    /// What it does.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// A frame whose transmission takes from `begin` to `end`. False: it is lost, and the room is the caller's.
    #[inline]
    pub fn enter(&mut self, room: u32, length: u32, begin: Time, end: Time) -> bool {
        let Settings { delay, jitter, loss } = self.settings;
        let mut due = if self.settings.is_none() { begin } else { end + delay };
        if loss.get() > 0.0 && self.rng.uniform() < loss.get() {
            return false;
        }
        if !jitter.is_zero() {
            due += Span::from_ps(self.rng.below(jitter.as_ps() + 1));
        }
        let due = self.flight.back().map_or(due, |last| due.max(last.due));
        self.flight.push_back(Held { due, room, length });
        true
    }

    /// When the next frame comes out.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.flight.front().map(|held| held.due)
    }

    /// The frames that come out until `now`, at most `most`, in order. They stay until [`Line::sent`].
    pub fn due(&self, now: Time, most: usize) -> impl Iterator<Item = &Held> {
        self.flight.iter().take(most).take_while(move |held| held.due <= now)
    }

    /// The first frame is gone.
    #[inline]
    pub fn sent(&mut self) -> Option<Held> {
        self.flight.pop_front()
    }

    /// How many frames are on it.
    pub fn len(&self) -> usize {
        self.flight.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.flight.is_empty()
    }

    /// Time begins anew: what was `then` is zero.
    pub fn rebase(&mut self, then: Time) {
        for held in &mut self.flight {
            held.due = Time::ZERO + held.due.since(Time::ZERO).saturating_sub(then.since(Time::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(delay: Span, jitter: Span, loss: f64) -> Line {
        let settings = Settings { delay, jitter, loss: Share::new(loss).unwrap() };
        Line::new(settings, &Streams::new(1), 16)
    }

    #[test]
    fn without_anything_a_frame_leaves_when_its_transmission_begins() {
        let mut line = line(Span::ZERO, Span::ZERO, 0.0);
        assert!(line.enter(7, 100, Time::ms(3), Time::ms(4)));
        assert_eq!(line.next(), Some(Time::ms(3)));
    }

    #[test]
    fn the_delay_counts_from_the_last_bit_and_a_change_overtakes_nobody() {
        let mut line = line(Span::ms(20), Span::ZERO, 0.0);
        assert!(line.enter(1, 100, Time::ms(3), Time::ms(4)));
        line.set(Settings::none());
        assert!(line.enter(2, 100, Time::ms(5), Time::ms(6)));
        let due: Vec<_> = line.due(Time::ms(24), 8).map(|held| (held.room, held.due)).collect();
        assert_eq!(due, [(1, Time::ms(24)), (2, Time::ms(24))]);
        assert_eq!(line.due(Time::ms(23), 8).count(), 0);
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_in_order() {
        let mut line = line(Span::ms(5), Span::ms(2), 0.0);
        let (mut last, mut spread) = (Time::ZERO, Span::ZERO);
        for number in 0..1000u32 {
            let end = Time::ms(10 * u64::from(number));
            assert!(line.enter(number, 100, end, end));
            let held = line.sent().unwrap();
            let late = held.due.since(end);
            assert!(Span::ms(5) <= late && late <= Span::ms(7), "{late}");
            assert!(held.due >= last);
            (last, spread) = (held.due, spread.max(late));
        }
        assert!(spread > Span::us(6900), "all of the range is used: {spread}");
    }

    /// 10,000 frames at 2 %: 200 lost, standard deviation 14; five of them is what chance never does.
    #[test]
    fn the_share_that_is_lost_is_the_one_that_was_asked_for() {
        let mut line = line(Span::ZERO, Span::ZERO, 0.02);
        let lost = (0..10_000).filter(|n| !line.enter(*n, 100, Time::ZERO, Time::ZERO)).count();
        assert!((130..=270).contains(&lost), "{lost}");
    }

    #[test]
    fn time_can_begin_anew() {
        let mut line = line(Span::ms(20), Span::ZERO, 0.0);
        assert!(line.enter(1, 100, Time::s(9), Time::s(10)));
        line.rebase(Time::s(10));
        assert_eq!(line.next(), Some(Time::ms(20)));
    }
}
