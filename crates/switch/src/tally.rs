//! What is measured while a switch runs.
//!
//! Packets count when their last cell has crossed the fabric within the measured part. *Waiting* is the time from arrival
//! to then, less what the crossing takes without any wait; slots in which a packet was interrupted are waiting. *Delay* is
//! to the end of the crossing, *through* to the end of the output link. All in slots of a link.

use hdrhistogram::Histogram;

use crate::packet::{Class, Kind};

/// Waits below this are counted one by one, in a table that fits into the nearest cache.
const LINEAR: usize = 1024;

/// Times of packets of a kind: how often each number of whole slots occurred, rounded up, and sums in ticks.
///
/// Where a tick is a slot, one count says all about a short time, and adding one is all that a packet costs; sums are
/// made when anybody asks for them.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Ticks of a slot.
    slot_ticks: u64,
    /// By whole slots, since the last `settle`, which comes with every batch.
    recent: Box<[u32; LINEAR]>,
    settled: Vec<u64>,
    /// The longer ones, to three digits.
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
            slot_ticks,
            recent: Box::new([0; LINEAR]),
            settled: vec![0; LINEAR],
            rest: Histogram::new_with_bounds(1, 1 << 40, 3).expect("the bounds are right"),
            told: Totals::default(),
        }
    }

    #[inline]
    fn record(&mut self, ticks: u64) {
        match self.recent.get_mut(ticks as usize) {
            Some(count) if self.slot_ticks == 1 => *count += 1,
            _ => self.record_apart(ticks),
        }
    }

    /// A long time, or one that is no whole number of slots.
    fn record_apart(&mut self, ticks: u64) {
        let told = &mut self.told;
        *told = Totals { count: told.count + 1, sum: told.sum + ticks, max: told.max.max(ticks) };
        let slots = ticks.div_ceil(self.slot_ticks);
        match self.recent.get_mut(slots as usize) {
            Some(count) => *count += 1,
            None => self.rest.saturating_record(slots),
        }
    }

    /// All that was recorded.
    fn totals(&self) -> Totals {
        let mut all = self.told;
        if self.slot_ticks == 1 {
            for (slots, count) in (0..).zip(self.recent.iter()).filter(|(_, count)| **count > 0) {
                all.count += u64::from(*count);
                all.sum += u64::from(*count) * slots;
                all.max = all.max.max(slots);
            }
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

    /// Each value with its count, ascending; values are moved up by `shift`.
    fn counts(&self, shift: f64) -> impl Iterator<Item = (f64, u64)> + '_ {
        let near = self.settled.iter().zip(self.recent.iter());
        let linear = near.enumerate().map(|(slots, (old, new))| (slots as f64, old + u64::from(*new)));
        let rest =
            self.rest.iter_recorded().map(|step| (step.value_iterated_to() as f64, step.count_at_value()));
        let all = linear.chain(rest).filter(|(_, count)| *count > 0);
        all.map(move |(slots, count)| (slots + shift, count))
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
    fn new(cells: u32, slot_ticks: u64, fabric_ticks: u64) -> OfKind {
        OfKind {
            cells: u64::from(cells),
            crossing: u64::from(cells) * fabric_ticks,
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
    pub fn new(kinds: Vec<Kind>, ports: usize, slot_ticks: u64, fabric_ticks: u64) -> Tally {
        let of = kinds.iter().map(|kind| OfKind::new(kind.cells, slot_ticks, fabric_ticks)).collect();
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

    /// Forgets everything but what is held now: the measured part begins.
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
        let chosen: Vec<(&OfKind, Totals, Totals)> = (self.kinds.iter().zip(&self.of))
            .filter(|(kind, _)| which(kind))
            .map(|(_, of)| (of, of.waits.totals(), of.throughs.totals()))
            .filter(|(_, waits, _)| waits.count > 0)
            .collect();
        let ticks = |ticks: u64| ticks as f64 / self.slot_ticks as f64;
        let count: u64 = chosen.iter().map(|(_, waits, _)| waits.count).sum();
        let wait: u64 = chosen.iter().map(|(_, waits, _)| waits.sum).sum();
        let crossings: f64 =
            chosen.iter().map(|(of, waits, _)| waits.count as f64 * ticks(of.crossing)).sum();
        let through_count: u64 = chosen.iter().map(|(_, _, throughs)| throughs.count).sum();
        let through: u64 = chosen.iter().map(|(_, _, throughs)| throughs.sum).sum();
        let largest =
            |of: &dyn Fn(&(&OfKind, Totals, Totals)) -> u64| ticks(chosen.iter().map(of).max().unwrap_or(0));
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        Packets {
            count,
            wait: Times::new(
                mean(ticks(wait), count),
                largest(&|(_, waits, _)| waits.max),
                chosen.iter().flat_map(|(of, ..)| of.waits.counts(0.0)),
            ),
            delay: Times::new(
                mean(ticks(wait) + crossings, count),
                largest(&|(of, waits, _)| waits.max + of.crossing),
                chosen.iter().flat_map(|(of, ..)| of.waits.counts(ticks(of.crossing))),
            ),
            through: Times::new(
                mean(ticks(through), through_count),
                largest(&|(_, _, throughs)| throughs.max),
                chosen.iter().flat_map(|(of, ..)| of.throughs.counts(0.0)),
            ),
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
    /// Each time that occurred, with its count, ascending: whole slots rounded up, above 1,023 to three digits.
    pub counts: Vec<(f64, u64)>,
}

impl Times {
    fn new(mean: Option<f64>, max: f64, counts: impl Iterator<Item = (f64, u64)>) -> Times {
        let mut all: Vec<(f64, u64)> = counts.collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        Times { mean, max: mean.map(|_| max), counts: all }
    }

    /// The smallest time that at least a share `q` of the packets does not exceed.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let rank = ((total as f64 * q).ceil() as u64).max(1);
        let mut so_far = 0;
        let reached = |(_, count): &&(f64, u64)| {
            so_far += count;
            so_far >= rank
        };
        self.counts.iter().find(reached).map(|(time, _)| *time)
    }
}

impl Packets {
    /// Whether it is about this class.
    pub(crate) fn of_class(class: Class) -> impl Fn(&Kind) -> bool {
        move |kind| kind.class == class
    }
}
