//! The wire of a link: delay and impairments.
//!
//! The words are those of `netem` (tc-netem(8)), with these differences:
//! - Delay and jitter: `netem` sorts its queue, so jitter reorders. Here packets keep their order unless
//!   `unordered` is set. The same holds for a delay that falls.
//! - `corrupt`: `netem` changes a bit, and the receiver discards the packet by a checksum. Here the far end of
//!   the link discards it, as the frame check of a real link does.
//! - `reorder`: in `netem` a packet is sent at once, in front of those that wait for the delay. Here it is
//!   late, by the time in which the link sends `distance` packets of its length, and a picosecond. If the link
//!   is busy with equal packets, exactly `distance` packets overtake it, which is its extent by RFC 4737,
//!   section 4.2. The delay is never shorter than that of the wire.
//! - `duplicate`: the copy arrives right behind the packet.

use giveway_qdisc::{Rate, Rng, Share, Span, Streams, Time};

use crate::loss::Loss;
use crate::profile::{Course, Profile};

/// Late packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the packets.
    pub percent: Share,
    /// Number of packets by which each is late.
    pub distance: u32,
}

/// What varies on a link, and what its wire does to packets.
#[derive(Clone, Debug, Default)]
pub struct Impairments {
    /// The rate over time, in place of the constant one.
    pub rate: Option<Profile>,
    /// The delay over time, in place of the constant one.
    pub delay: Option<Profile>,
    /// The model of loss, if it is more than a probability.
    pub loss: Option<Loss>,
    /// Probability that a packet arrives damaged, and is discarded.
    pub corrupt: Share,
    /// Probability that a packet arrives twice.
    pub duplicate: Share,
    /// Packets that arrive late.
    pub reorder: Option<Reorder>,
    /// True if packets overtake each other by their jitter, or when the delay falls.
    pub unordered: bool,
}

impl Impairments {
    /// True if a wire with this loss and jitter is neither constant nor perfect.
    pub fn any(&self, loss: Share, jitter: Span) -> bool {
        let Impairments { rate, delay, loss: model, corrupt, duplicate, reorder, .. } = self;
        let shares = [loss, *corrupt, *duplicate];
        let models = rate.is_some() || delay.is_some() || model.is_some() || reorder.is_some();
        models || !jitter.is_zero() || shares.iter().any(|share| share.get() > 0.0)
    }

    /// The shortest delay of a wire whose constant delay is `delay`.
    pub fn least_delay(&self, delay: Span) -> Span {
        self.delay.as_ref().map_or(delay, |profile| Span::from_ps(profile.least()))
    }
}

/// The fate of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It arrives at this time.
    Arrives(Time),
    /// It arrives at this time, and a copy right behind it.
    ArrivesTwice(Time),
}

/// A wire: one direction of a link behind its transmitter.
#[derive(Debug)]
pub struct Line {
    delay: Delay,
    loss: Loss,
    in_bad: bool,
    jitter: Span,
    unordered: bool,
    /// Arrival of the last packet in order.
    last: Time,
    /// Draws loss and jitter.
    rng: Rng,
    corrupt: Option<(Share, Rng)>,
    duplicate: Option<(Share, Rng)>,
    reorder: Option<(Reorder, Rng)>,
}

/// The delay of a wire.
#[derive(Debug)]
enum Delay {
    Constant(Span),
    Varying { course: Course, until: Time, delay: Span },
}

impl Line {
    /// A wire with a constant delay, a loss and a jitter, and further impairments, which take the place of the
    /// first two. `streams` are those of the wire.
    pub fn new(
        (delay, loss, jitter): (Span, Share, Span),
        impairments: &Impairments,
        streams: &Streams,
    ) -> Line {
        let draws =
            |share: Share, name: &str| (share.get() > 0.0).then(|| (share, streams.within(name).rng()));
        let varying =
            |profile: &Profile| Delay::Varying { course: profile.course(), until: Time::ZERO, delay };
        Line {
            delay: impairments.delay.as_ref().map_or(Delay::Constant(delay), varying),
            loss: impairments.loss.unwrap_or(Loss::Random(loss)),
            in_bad: false,
            jitter,
            unordered: impairments.unordered,
            last: Time::ZERO,
            rng: streams.rng(),
            corrupt: draws(impairments.corrupt, "corrupt"),
            duplicate: draws(impairments.duplicate, "duplicate"),
            reorder: impairments.reorder.map(|reorder| (reorder, streams.within("reorder").rng())),
        }
    }

    /// True if packets arrive in the order of their transmission, each after the same delay.
    pub fn is_constant(&self) -> bool {
        matches!(self.delay, Delay::Constant(_)) && self.jitter.is_zero() && self.reorder.is_none()
    }

    /// The fate of a packet of `bytes` bytes whose transmission ends at `end`. `rate` is that of the link now.
    /// Ends come in order.
    #[inline]
    pub fn carry(&mut self, bytes: u32, end: Time, rate: Rate) -> Fate {
        if self.loss.loses(end, &mut self.in_bad, &mut self.rng) {
            return Fate::Lost;
        }
        if let Some((share, rng)) = &mut self.corrupt
            && rng.uniform() < share.get()
        {
            return Fate::Lost;
        }
        let mut at = end + self.delay.at(end);
        if !self.jitter.is_zero() {
            at += Span::from_ps(self.rng.below(self.jitter.as_ps() + 1));
        }
        if !self.unordered {
            at = at.max(self.last);
            self.last = at;
        }
        if let Some((Reorder { percent, distance }, rng)) = &mut self.reorder
            && rng.uniform() < percent.get()
        {
            at += rate.time_for(u64::from(bytes)) * u64::from(*distance) + Span::from_ps(1);
        }
        if let Some((share, rng)) = &mut self.duplicate
            && rng.uniform() < share.get()
        {
            return Fate::ArrivesTwice(at);
        }
        Fate::Arrives(at)
    }
}

impl Delay {
    #[inline]
    fn at(&mut self, end: Time) -> Span {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Varying { course, until, delay } => {
                while *until <= end && *until != Time::NEVER {
                    let piece = course.next();
                    *until += piece.length;
                    *delay = Span::from_ps(piece.value);
                }
                *delay
            }
        }
    }
}
