//! What is measured while a switch runs.
//!
//! Packets count when their last cell has crossed the fabric within the measured part. *Waiting* is the time from arrival
//! to then, less what the crossing takes without any wait; slots in which a packet was interrupted are waiting. *Delay* is
//! to the end of the crossing, *through* to the end of the output link. All in slots of a link.

use hdrhistogram::Histogram;

use crate::packet::{Class, Kind};

/// Waits below this are counted one by one, in a table that fits into the nearest cache.
const LINEAR: usize = 1024;

/// Counts of waiting times, in whole slots, rounded up.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// Since the last `settle`, which comes with every batch.
    recent: Box<[u32; LINEAR]>,
    settled: Vec<u64>,
    /// The longer ones, to three digits.
    rest: Histogram<u64>,
}

impl Waits {
    fn new() -> Waits {
        let rest = Histogram::new_with_bounds(1, 1 << 40, 3).expect("the bounds are right");
        Waits { recent: Box::new([0; LINEAR]), settled: vec![0; LINEAR], rest }
    }

    #[inline]
    fn record(&mut self, slots: u64) {
        match self.recent.get_mut(slots as usize) {
            Some(count) => *count += 1,
            None => self.rest.saturating_record(slots),
        }
    }

    fn settle(&mut self) {
        for (settled, recent) in self.settled.iter_mut().zip(self.recent.iter_mut()) {
            *settled += u64::from(std::mem::take(recent));
        }
    }

    fn clear(&mut self) {
        self.recent.fill(0);
        self.settled.fill(0);
        self.rest.reset();
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
    count: u64,
    /// Ticks.
    wait_sum: u64,
    /// Ticks.
    wait_max: u64,
    waits: Waits,
    /// Of those whose last cell has left on the link.
    through_count: u64,
    /// Ticks.
    through_sum: u64,
    /// Ticks.
    through_max: u64,
    throughs: Waits,
}

impl OfKind {
    fn new(cells: u32, fabric_ticks: u64) -> OfKind {
        OfKind {
            cells: u64::from(cells),
            crossing: u64::from(cells) * fabric_ticks,
            count: 0,
            wait_sum: 0,
            wait_max: 0,
            waits: Waits::new(),
            through_count: 0,
            through_sum: 0,
            through_max: 0,
            throughs: Waits::new(),
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
        let of = kinds.iter().map(|kind| OfKind::new(kind.cells, fabric_ticks)).collect();
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
            (of.count, of.wait_sum, of.wait_max) = (0, 0, 0);
            (of.through_count, of.through_sum, of.through_max) = (0, 0, 0);
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

    /// The last cell of a packet has crossed, at the end of a slot that ends at `tick`.
    #[inline]
    pub fn complete(&mut self, input: usize, output: usize, kind: u16, arrived: u64, tick: u64) {
        let of = &mut self.of[usize::from(kind)];
        let wait = tick - arrived - of.crossing;
        of.count += 1;
        of.wait_sum += wait;
        of.wait_max = of.wait_max.max(wait);
        of.waits.record(if self.slot_ticks == 1 { wait } else { wait.div_ceil(self.slot_ticks) });
        self.crossed_to[output] += of.cells;
        self.at_input[input] -= of.cells;
    }

    /// The last cell of a packet has left on the link of its output, at `tick`.
    #[inline]
    pub fn left(&mut self, kind: u16, arrived: u64, tick: u64) {
        let through = tick - arrived;
        let of = &mut self.of[usize::from(kind)];
        of.through_count += 1;
        of.through_sum += through;
        of.through_max = of.through_max.max(through);
        of.throughs.record(if self.slot_ticks == 1 { through } else { through.div_ceil(self.slot_ticks) });
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
            class.count += of.count;
            class.wait += of.wait_sum;
            class.delay += of.wait_sum + of.count * of.crossing;
            class.through_count += of.through_count;
            class.through += of.through_sum;
        }
        sums
    }

    /// What the packets come to that `which` chooses.
    pub fn packets(&self, which: impl Fn(&Kind) -> bool) -> Packets {
        let chosen: Vec<(&Kind, &OfKind)> =
            self.kinds.iter().zip(&self.of).filter(|(kind, of)| which(kind) && of.count > 0).collect();
        let ticks = |ticks: u64| ticks as f64 / self.slot_ticks as f64;
        let count: u64 = chosen.iter().map(|(_, of)| of.count).sum();
        let wait: u64 = chosen.iter().map(|(_, of)| of.wait_sum).sum();
        let crossings: f64 = chosen.iter().map(|(_, of)| of.count as f64 * ticks(of.crossing)).sum();
        let through_count: u64 = chosen.iter().map(|(_, of)| of.through_count).sum();
        let through: u64 = chosen.iter().map(|(_, of)| of.through_sum).sum();
        let largest = |of: &dyn Fn(&(&Kind, &OfKind)) -> f64| chosen.iter().map(of).fold(0.0, f64::max);
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        Packets {
            count,
            wait: Times::new(
                mean(ticks(wait), count),
                largest(&|(_, of)| ticks(of.wait_max)),
                chosen.iter().flat_map(|(_, of)| of.waits.counts(0.0)),
            ),
            delay: Times::new(
                mean(ticks(wait) + crossings, count),
                largest(&|(_, of)| ticks(of.wait_max + of.crossing)),
                chosen.iter().flat_map(|(_, of)| of.waits.counts(ticks(of.crossing))),
            ),
            through: Times::new(
                mean(ticks(through), through_count),
                largest(&|(_, of)| ticks(of.through_max)),
                chosen.iter().flat_map(|(_, of)| of.throughs.counts(0.0)),
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
