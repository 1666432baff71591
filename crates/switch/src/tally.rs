//! What is measured while a switch runs.
//!
//! Packets count when their last cell has crossed the fabric within the measurement interval. *Waiting* is the time from arrival
//! to then, less what the crossing takes without any wait; slots in which a packet was interrupted are waiting. *Delay* is
//! to the end of the crossing, *through* to the end of the output link. All in slots of a link.

use hdrhistogram::Histogram;

use crate::packet::{Class, Kind};

/// Times below this, in ticks, are counted one by one, in a table that fits into the nearest cache.
const LINEAR: usize = 1024;

/// Times of packets of a kind, in ticks: how often each occurred.
///
/// One count says all about a short time, and adding one is all that a packet costs; sums are made when anybody asks for
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// By ticks, since the last `settle`, which comes with every batch.
    recent: Box<[u32; LINEAR]>,
    settled: Vec<u64>,
    /// The longer ones: exact below 2,048 ticks, then to three digits.
    rest: Histogram<u64>,
    /// Of all that `recent` does not tell.
    told: Totals,
}

/// How many there were, their sum and the largest, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    count: u64,
    sum: u64,
    max: u64,
}

impl Counts {
    fn new(slot_ticks: u64) -> Counts {
        Counts {
            recent: Box::new([0; LINEAR]),
            settled: vec![0; LINEAR],
            // A trillion slots.
            rest: Histogram::new_with_bounds(1, slot_ticks << 40, 3).expect("the bounds are right"),
            told: Totals::default(),
        }
    }

    #[inline]
    fn record(&mut self, ticks: u64) {
        match self.recent.get_mut(ticks as usize) {
            Some(count) => *count += 1,
            None => self.record_long(ticks),
        }
    }

    fn record_long(&mut self, ticks: u64) {
        let told = &mut self.told;
        *told = Totals { count: told.count + 1, sum: told.sum + ticks, max: told.max.max(ticks) };
        self.rest.saturating_record(ticks);
    }

    /// All that was recorded.
    fn totals(&self) -> Totals {
        let mut all = self.told;
        for (ticks, count) in (0..).zip(self.recent.iter()).filter(|(_, count)| **count > 0) {
            all.count += u64::from(*count);
            all.sum += u64::from(*count) * ticks;
            all.max = all.max.max(ticks);
        }
        all
    }

    fn settle(&mut self) {
        self.told = self.totals();
        for (settled, recent) in self.settled.iter_mut().zip(self.recent.iter_mut()) {
            *settled += u64::from(std::mem::take(recent));
        }
    }

    fn clear(&mut self) {
        self.recent.fill(0);
        self.settled.fill(0);
        self.rest.reset();
        self.told = Totals::default();
    }

    /// Each time with its count, ascending. A long one stands for all of its range, as the end of that.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let near = self.settled.iter().zip(self.recent.iter());
        let linear = (0..).zip(near.map(|(old, new)| old + u64::from(*new)));
        let rest = self.rest.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        linear.chain(rest).filter(|(_, count)| *count > 0)
    }
}

/// Packets of one kind.
#[derive(Clone, Debug)]
struct OfKind {
    /// Cells.
    cells: u64,
    /// What crossing takes without any wait, in ticks.
    crossing: u64,
    waits: Counts,
    /// Of those whose last cell has left on the link.
    throughs: Counts,
}

impl OfKind {
    fn new(cells: u32, slot_ticks: u64, crossing: u64) -> OfKind {
        OfKind {
            cells: u64::from(cells),
            crossing,
            waits: Counts::new(slot_ticks),
            throughs: Counts::new(slot_ticks),
        }
    }
}

/// Where the slots of the outputs went, in slots of the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// A cell of a short packet crossed to it.
    pub short: u64,
    /// A cell of any other packet.
    pub long: u64,
    /// It is connected with an input that sends a short packet to another output.
    pub blocked: u64,
    /// Connected in this very slot, with one of both ports taken by a short packet (parallel phases).
    pub held: u64,
    /// Somebody had something for it, and it was not matched.
    pub unmatched: u64,
}

impl Slots {
    /// Cells that crossed.
    pub fn crossed(&self) -> u64 {
        self.short + self.long
    }
}

/// All that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    kinds: Vec<Kind>,
    of: Vec<OfKind>,
    slot_ticks: u64,
    pub slots: Slots,
    /// Cells that arrived.
    pub arrived: u64,
    /// Cells that crossed, by output.
    pub crossed_to: Vec<u64>,
    /// The most cells in one queue of an input.
    pub most_queue: u64,
    /// The most packets in one queue for short packets, after arrivals and before service.
    pub most_short: u64,
    /// The most cells at one input, in all its queues.
    pub most_input: u64,
    /// Cells that are at an input, by input: not forgotten.
    at_input: Vec<u64>,
}

impl Tally {
    /// With how long a packet of so many cells crosses when nothing is in its way, in ticks.
    pub fn new(kinds: Vec<Kind>, ports: usize, slot_ticks: u64, crossing: impl Fn(u32) -> u64) -> Tally {
        let of = kinds.iter().map(|kind| OfKind::new(kind.cells, slot_ticks, crossing(kind.cells))).collect();
        Tally {
            kinds,
            of,
            slot_ticks,
            slots: Slots::default(),
            arrived: 0,
            crossed_to: vec![0; ports],
            most_queue: 0,
            most_short: 0,
            most_input: 0,
            at_input: vec![0; ports],
        }
    }

    /// Forgets everything but what is held now: the measurement interval begins.
    pub fn forget(&mut self) {
        for of in &mut self.of {
            of.waits.clear();
            of.throughs.clear();
        }
        self.slots = Slots::default();
        self.arrived = 0;
        self.crossed_to.fill(0);
        (self.most_queue, self.most_short, self.most_input) = (0, 0, 0);
    }

    /// A batch has ended.
    pub fn settle(&mut self) {
        for of in &mut self.of {
            of.waits.settle();
            of.throughs.settle();
        }
    }

    /// A packet arrived, with so many cells.
    #[inline]
    pub fn arrived(&mut self, input: usize, cells: u32) {
        self.arrived += u64::from(cells);
        self.at_input[input] += u64::from(cells);
        self.most_input = self.most_input.max(self.at_input[input]);
    }

    /// A packet is not at its input any more.
    #[inline]
    pub fn gone(&mut self, input: usize, kind: u16) {
        self.at_input[input] -= u64::from(self.kinds[usize::from(kind)].cells);
    }

    /// The last cell of a packet has crossed, at the end of a slot that ends at `tick`.
    #[inline]
    pub fn complete(&mut self, output: usize, kind: u16, arrived: u64, tick: u64) {
        let of = &mut self.of[usize::from(kind)];
        of.waits.record(tick - arrived - of.crossing);
        self.crossed_to[output] += of.cells;
    }

    /// The last cell of a packet has left on the link of its output, at `tick`.
    #[inline]
    pub fn left(&mut self, kind: u16, arrived: u64, tick: u64) {
        self.of[usize::from(kind)].throughs.record(tick - arrived);
    }

    /// Cells in the switch.
    pub fn backlog(&self) -> u64 {
        self.at_input.iter().sum()
    }

    /// Sums so far, for a batch.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums { arrived: self.arrived, crossed: self.slots.crossed(), ..Sums::default() };
        for (kind, of) in self.kinds.iter().zip(&self.of) {
            let class = &mut sums.of[kind.class as usize];
            let (waits, throughs) = (of.waits.totals(), of.throughs.totals());
            class.count += waits.count;
            class.wait += waits.sum;
            class.delay += waits.sum + waits.count * of.crossing;
            class.through_count += throughs.count;
            class.through += throughs.sum;
        }
        sums
    }

    /// What the packets come to that `which` chooses.
    pub fn packets(&self, which: impl Fn(&Kind) -> bool) -> Packets {
        let chosen = (self.kinds.iter().zip(&self.of)).filter(|(kind, _)| which(kind)).map(|(_, of)| of);
        let slot_ticks = self.slot_ticks;
        Packets {
            count: chosen.clone().map(|of| of.waits.totals().count).sum(),
            wait: Times::new(chosen.clone().map(|of| (&of.waits, 0)), slot_ticks),
            delay: Times::new(chosen.clone().map(|of| (&of.waits, of.crossing)), slot_ticks),
            through: Times::new(chosen.map(|of| (&of.throughs, 0)), slot_ticks),
        }
    }

    /// The kinds of packets that there are.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }
}

/// Sums over packets, ticks where they are times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub arrived: u64,
    pub crossed: u64,
    /// By class.
    pub of: [ClassSums; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassSums {
    pub count: u64,
    pub wait: u64,
    pub delay: u64,
    pub through_count: u64,
    pub through: u64,
}

/// The mean of times in ticks, in slots. Divided by the count first: the mean of equal times is that time, and none is above
/// the largest.
pub(crate) fn mean_slots(ticks: u64, count: u64, slot_ticks: u64) -> Option<f64> {
    (count > 0).then(|| ticks as f64 / count as f64 / slot_ticks as f64)
}

/// What some of the packets come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Packets {
    /// How many.
    pub count: u64,
    /// Waiting at the input.
    pub wait: Times,
    /// To the end of the crossing.
    pub delay: Times,
    /// To the end of the output link.
    pub through: Times,
}

/// Times, in slots of a link. `None`: there was no packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Exact.
    pub mean: Option<f64>,
    /// Exact.
    pub max: Option<f64>,
    /// Each time that occurred, with its count, ascending. Exact below 2,048 ticks, which are slots without speedup; a
    /// longer one stands for all of a range that is at most a thousandth wide, as its end.
    pub counts: Vec<(f64, u64)>,
}

impl Times {
    /// Of all that was recorded in these, each with so many ticks on top.
    fn new<'a>(parts: impl Iterator<Item = (&'a Counts, u64)>, slot_ticks: u64) -> Times {
        let mut all = Totals::default();
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for (part, on_top) in parts {
            let totals = part.totals();
            if totals.count > 0 {
                all.count += totals.count;
                all.sum += totals.sum + totals.count * on_top;
                all.max = all.max.max(totals.max + on_top);
                counts.extend(part.counts().map(|(ticks, count)| (ticks + on_top, count)));
            }
        }
        counts.sort_unstable();
        counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        let slots = |ticks: u64| ticks as f64 / slot_ticks as f64;
        Times {
            mean: mean_slots(all.sum, all.count, slot_ticks),
            max: (all.count > 0).then(|| slots(all.max)),
            counts: counts.into_iter().map(|(ticks, count)| (slots(ticks), count)).collect(),
        }
    }

    /// The smallest time of [`counts`](Times::counts) that at least a share `q` of the packets does not exceed, or the longest
    /// time, where that is less: the end of its range may be more.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let rank = ((total as f64 * q).ceil() as u64).max(1);
        let mut so_far = 0;
        let reached = |(_, count): &&(f64, u64)| {
            so_far += count;
            so_far >= rank
        };
        let (time, _) = self.counts.iter().find(reached)?;
        Some(time.min(self.max?))
    }
}

impl Packets {
    /// Whether it is about this class.
    pub(crate) fn of_class(class: Class) -> impl Fn(&Kind) -> bool {
        move |kind| kind.class == class
    }
}
