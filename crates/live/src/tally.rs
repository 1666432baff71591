//! What a direction counts, and the picture of it that others may see.

use hdrhistogram::Histogram;
use qdisc::{Backlog, Books, DropReason, FiveTuple, FlowKey, FlowTable, Rate, Span, Time};

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
    /// Packets that were dropped, by [`DropReason`] as a number.
    pub dropped: [u64; DropReason::ALL.len()],
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
    /// Unfinished checksums of senders that leave them to their card, finished here.
    pub checksums: u64,
    /// Bytes and packets that were sent within the last whole second.
    pub last_second: Backlog,
    /// The flows that brought most in the last whole second.
    pub top: Vec<TopFlow>,
    /// The discipline's gauges.
    pub gauges: Vec<(&'static str, f64)>,
    /// The discipline's state per flow.
    pub flow_table: FlowTable,
    /// How often rate, discipline or line were changed.
    pub changes: u64,
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

/// Quantiles of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: Span,
    /// 50, 90, 99, 99.9 per cent, and the largest.
    pub at: [Span; 5],
}

/// The quantiles of [`Quantiles::at`].
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

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

/// A distribution of times: since the start, and of the second that runs.
pub struct Times {
    all: Histogram<u64>,
    second: Histogram<u64>,
    sums: [u64; 2],
    last: Quantiles,
}

impl Times {
    fn new() -> Times {
        // One per cent of the value; nanoseconds up to an hour and more, whatever comes above stays there.
        let histogram = || Histogram::new_with_bounds(1, 1 << 42, 2).expect("these bounds are right");
        Times { all: histogram(), second: histogram(), sums: [0; 2], last: Quantiles::default() }
    }

    #[inline]
    fn record(&mut self, span: Span) {
        let ns = span.as_ps() / 1000;
        self.second.saturating_record(ns);
        self.sums[1] += ns;
    }

    /// A second is over.
    fn roll(&mut self) {
        self.last = quantiles(&self.second, self.sums[1]);
        self.all.add(&self.second).expect("they have the same bounds");
        self.sums[0] += self.sums[1];
        self.second.reset();
        self.sums[1] = 0;
    }

    fn told(&self) -> [Quantiles; 2] {
        [quantiles(&self.all, self.sums[0]), self.last]
    }
}

fn quantiles(histogram: &Histogram<u64>, sum_ns: u64) -> Quantiles {
    let at = QUANTILES.map(|share| match histogram.is_empty() {
        true => Span::ZERO,
        false => Span::ns(histogram.value_at_quantile(share)),
    });
    Quantiles { count: histogram.len(), sum: Span::ns(sum_ns), at }
}

/// Power of two; how many candidates for the largest flows there are.
const CANDIDATES: usize = 256;
/// How many are told.
const TOLD: usize = 10;

/// Everything that a direction counts.
pub struct Tally {
    /// Waiting times.
    pub sojourn: Times,
    /// How late frames were sent.
    pub lateness: Times,
    /// Packets that were dropped, by reason.
    pub dropped: [u64; DropReason::ALL.len()],
    /// Outside the discipline.
    pub losses: Losses,
    /// See [`Status::stalls`].
    pub stalls: u64,
    /// See [`Status::stalls`].
    pub stalled: Span,
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
    candidates: Box<[TopFlow; CANDIDATES]>,
    top: Vec<TopFlow>,
    second_ends: Time,
}

impl Default for Tally {
    fn default() -> Tally {
        let nobody = TopFlow { flow: FlowKey(0), tuple: None, brought: Backlog::ZERO };
        Tally {
            sojourn: Times::new(),
            lateness: Times::new(),
            dropped: Default::default(),
            losses: Losses::default(),
            stalls: 0,
            stalled: Span::ZERO,
            checksums: 0,
            changes: 0,
            downs: 0,
            receives: 0,
            sends: 0,
            sent: Backlog::ZERO,
            last_second: Backlog::ZERO,
            candidates: Box::new([nobody; CANDIDATES]),
            top: Vec::with_capacity(CANDIDATES),
            second_ends: Time::s(1),
        }
    }
}

impl Tally {
    /// A packet came.
    ///
    /// Large flows are found with a small table: whoever meets another in its place takes away from it, and takes the
    /// place once nothing is left (Misra and Gries, "Finding repeated elements", 1982, with one counter per place).
    #[inline]
    pub fn arrived(&mut self, flow: FlowKey, tuple: Option<FiveTuple>, bytes: u32) {
        let candidate = &mut self.candidates[flow.0 as usize & (CANDIDATES - 1)];
        if candidate.flow == flow {
            candidate.brought.add(bytes);
        } else if candidate.brought.bytes > u64::from(bytes) {
            candidate.brought.bytes -= u64::from(bytes);
        } else {
            *candidate = TopFlow { flow, tuple, brought: Backlog::ZERO };
            candidate.brought.add(bytes);
        }
    }

    /// A packet left the discipline after this time.
    #[inline]
    pub fn left(&mut self, waited: Span, bytes: u32) {
        self.sojourn.record(waited);
        self.sent.add(bytes);
    }

    /// A frame went out so late.
    #[inline]
    pub fn went_out(&mut self, late: Span) {
        self.lateness.record(late);
    }

    /// Closes seconds that are over.
    pub fn roll(&mut self, now: Time) {
        if now < self.second_ends {
            return;
        }
        self.second_ends = now + Span::s(1);
        self.sojourn.roll();
        self.lateness.roll();
        self.last_second = std::mem::take(&mut self.sent);
        self.top.clear();
        self.top.extend(self.candidates.iter().filter(|candidate| candidate.brought.packets > 0));
        self.top.sort_unstable_by_key(|flow| (u64::MAX - flow.brought.bytes, flow.flow));
        self.top.truncate(TOLD);
        for candidate in self.candidates.iter_mut() {
            candidate.brought = Backlog::ZERO;
        }
    }

    /// Time begins anew.
    pub fn rebase(&mut self) {
        self.second_ends = Time::s(1);
    }

    /// Writes what it knows into a picture.
    pub fn tell(&self, status: &mut Status) {
        status.sojourn = self.sojourn.told();
        status.lateness = self.lateness.told();
        status.dropped = self.dropped;
        status.losses = self.losses;
        status.stalls = self.stalls;
        status.stalled = self.stalled;
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
    fn a_second_is_told_when_it_is_over_and_added_to_the_rest() {
        let mut tally = Tally::default();
        for ms in 1..=100 {
            tally.left(Span::ms(ms), 100);
        }
        let mut status = Status::default();
        tally.roll(Time::ms(999));
        tally.tell(&mut status);
        assert_eq!(status.sojourn[1].count, 0);
        tally.roll(Time::s(1));
        tally.tell(&mut status);
        let [all, last] = status.sojourn;
        assert_eq!((all.count, last.count, last.sum), (100, 100, Span::ms(5050)));
        let within = |span: Span, ms: u64| (ms * 99..=ms * 101).contains(&(span.as_ps() / 10_000_000));
        assert!(within(last.at[0], 50) && within(last.at[2], 99) && within(last.at[4], 100), "{last:?}");
        assert_eq!(status.last_second, Backlog { packets: 100, bytes: 10_000 });
        tally.roll(Time::s(2));
        tally.tell(&mut status);
        assert_eq!((status.sojourn[0].count, status.sojourn[1].count), (100, 0));
    }

    #[test]
    fn the_largest_flows_are_found_among_many_small_ones() {
        let mut tally = Tally::default();
        for round in 0..20_000u64 {
            tally.arrived(FlowKey(5), None, 1000);
            tally.arrived(FlowKey(round * 7919), None, 60);
        }
        tally.roll(Time::s(1));
        let mut status = Status::default();
        tally.tell(&mut status);
        assert_eq!(status.top[0].flow, FlowKey(5));
        assert!(status.top.len() <= TOLD && status.top[0].brought.bytes > 19_000_000);
    }
}
