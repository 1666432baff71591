//! What a direction counts, and the picture of it that others may see.

use qdisc::{Backlog, Books, DropReason, FiveTuple, FlowKey, Rate, Span, Time};
use watch::{Delays, Drops, Quantiles, TopFlows};

use crate::fragments::Fragments;

/// What went wrong or was lost outside the discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames that the kernel could not hand over, because the thread did not take them in time.
    pub ring: u64,
    /// Frames for which no room was left in the pool.
    pub no_room: u64,
    /// Frames longer than the interface on the other side takes.
    pub too_long: u64,
    /// Frames that the interface on the other side refused, or that came out while it was down.
    pub unsent: u64,
    /// Frames that the line lost, as it was asked to.
    pub line: u64,
}

/// The picture of a direction at one moment. Counters begin at the start and are never set back.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// How long it has run.
    pub uptime: Span,
    /// The rate of its link.
    pub rate: Rate,
    /// What went through the discipline.
    pub books: Books,
    /// What it holds.
    pub held: Backlog,
    /// Frames on the line behind the link.
    pub on_line: u64,
    /// What the discipline dropped, by reason.
    pub dropped: Drops,
    /// See [`Losses`].
    pub losses: Losses,
    /// How long packets waited: since the start, and in the last whole second.
    pub sojourn: [Quantiles; 2],
    /// How much later than due frames were sent: since the start, and in the last whole second.
    pub lateness: [Quantiles; 2],
    /// How often the thread was so late that the link's time was lost, and how much of it.
    pub stalls: u64,
    /// See `stalls`.
    pub stalled: Span,
    /// The longest of them.
    pub longest_stall: Span,
    /// Unfinished checksums of senders that leave them to their card, finished here.
    pub checksums: u64,
    /// Bytes and packets that were sent within the last whole second.
    pub last_second: Backlog,
    /// The flows that brought most in the last whole second.
    pub top: Vec<TopFlow>,
    /// The discipline's gauges.
    pub gauges: Vec<(&'static str, f64)>,
    /// How often rate, discipline or line were changed.
    pub changes: u64,
    /// Frames in pieces.
    pub fragments: Fragments,
    /// Replaced disciplines that still hold packets.
    pub leaving: usize,
    /// Rooms of the pool: left now, least ever, all.
    pub rooms: [u32; 3],
    /// How often the interface in front or behind went down.
    pub downs: u64,
    /// Calls for frames and calls that sent some: how large batches are.
    pub receives: u64,
    /// See `receives`.
    pub sends: u64,
    /// Why it no longer shapes but only forwards.
    pub plain: Option<String>,
    /// Frames that were forwarded plainly.
    pub plain_frames: u64,
    /// How the thread runs, for people: scheduling class, memory.
    pub how: String,
}

/// A flow that brought much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopFlow {
    /// Its key.
    pub flow: FlowKey,
    /// Who talks to whom; `None` for what is not IP.
    pub tuple: Option<FiveTuple>,
    /// What it brought.
    pub brought: Backlog,
}

/// How many flows compete for being told, and how many are.
const PLACES: usize = 256;
const TOLD: usize = 10;

/// Everything that a direction counts.
pub struct Tally {
    /// Waiting times.
    pub sojourn: Delays,
    /// How late frames were sent.
    pub lateness: Delays,
    /// What the discipline dropped, by reason.
    pub dropped: Drops,
    /// Outside the discipline.
    pub losses: Losses,
    /// See [`Status::stalls`].
    pub stalls: u64,
    /// See [`Status::stalls`].
    pub stalled: Span,
    /// See [`Status::longest_stall`].
    pub longest_stall: Span,
    /// See [`Status::checksums`].
    pub checksums: u64,
    /// See [`Status::changes`].
    pub changes: u64,
    /// See [`Status::downs`].
    pub downs: u64,
    /// See [`Status::receives`].
    pub receives: u64,
    /// See [`Status::receives`].
    pub sends: u64,
    sent: Backlog,
    last_second: Backlog,
    flows: TopFlows<Option<FiveTuple>>,
    top: Vec<TopFlow>,
    second_ends: Time,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            sojourn: Delays::new(),
            lateness: Delays::new(),
            dropped: Drops::default(),
            losses: Losses::default(),
            stalls: 0,
            stalled: Span::ZERO,
            longest_stall: Span::ZERO,
            checksums: 0,
            changes: 0,
            downs: 0,
            receives: 0,
            sends: 0,
            sent: Backlog::ZERO,
            last_second: Backlog::ZERO,
            flows: TopFlows::new(PLACES),
            top: Vec::new(),
            second_ends: Time::s(1),
        }
    }
}

impl Tally {
    /// A packet came.
    #[inline]
    pub fn arrived(&mut self, flow: FlowKey, tuple: Option<FiveTuple>, bytes: u32) {
        self.flows.add(flow, tuple, bytes);
    }

    /// The discipline dropped a packet.
    #[inline]
    pub fn dropped(&mut self, why: DropReason, bytes: u32) {
        self.dropped.add(why, bytes);
    }

    /// A packet left the discipline after this time.
    #[inline]
    pub fn left(&mut self, waited: Span, bytes: u32) {
        self.sojourn.add(waited);
        self.sent.add(bytes);
    }

    /// A frame went out so late.
    #[inline]
    pub fn went_out(&mut self, late: Span) {
        self.lateness.add(late);
    }

    /// Closes seconds that are over.
    pub fn roll(&mut self, now: Time) {
        if now < self.second_ends {
            return;
        }
        self.second_ends = now + Span::s(1);
        self.sojourn.turn();
        self.lateness.turn();
        self.last_second = std::mem::take(&mut self.sent);
        let told = self.flows.top(TOLD).into_iter();
        self.top = told.map(|(flow, tuple, brought)| TopFlow { flow, tuple, brought }).collect();
        self.flows.clear();
    }

    /// Time begins anew.
    pub fn rebase(&mut self) {
        self.second_ends = Time::s(1);
    }

    /// Writes what it knows into a picture.
    pub fn tell(&self, status: &mut Status) {
        status.sojourn = [self.sojourn.all(), self.sojourn.last()];
        status.lateness = [self.lateness.all(), self.lateness.last()];
        status.dropped = self.dropped;
        status.losses = self.losses;
        status.stalls = self.stalls;
        status.stalled = self.stalled;
        status.longest_stall = self.longest_stall;
        status.checksums = self.checksums;
        status.changes = self.changes;
        status.downs = self.downs;
        status.receives = self.receives;
        status.sends = self.sends;
        status.last_second = self.last_second;
        status.top.clone_from(&self.top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_told_when_it_is_over() {
        let mut tally = Tally::default();
        for ms in 1..=100 {
            tally.left(Span::ms(ms), 100);
            tally.arrived(FlowKey(ms % 20), None, 100);
        }
        let mut status = Status::default();
        tally.roll(Time::ms(999));
        tally.tell(&mut status);
        assert_eq!((status.sojourn[0].count, status.sojourn[1].count, status.top.len()), (100, 0, 0));
        tally.roll(Time::s(1));
        tally.tell(&mut status);
        assert_eq!((status.sojourn[1].count, status.sojourn[1].max), (100, Span::ms(100)));
        assert_eq!(status.last_second, Backlog { packets: 100, bytes: 10_000 });
        assert_eq!((status.top.len(), status.top[0].brought.packets), (TOLD, 5));
        tally.roll(Time::s(2));
        tally.tell(&mut status);
        assert_eq!((status.sojourn[0].count, status.sojourn[1].count), (100, 0));
    }
}
