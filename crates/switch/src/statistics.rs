//! Statistics that are kept while a switch runs.
//!
//! A packet counts when its last cell has crossed the fabric within the measurement interval. *Waiting* is
//! the time from its arrival to then, less what the crossing takes without any wait; slots in which the
//! packet was interrupted are waiting. *Delay* ends with the crossing, *through* with the transmission on the
//! output link. All are in slots of a link.

use crate::histogram::TimeHistogram;
use crate::packet::PacketKind;
use crate::times::{Packets, Times};

/// Statistics of one kind of packets.
#[derive(Clone, Debug)]
struct OfKind {
    /// Cells of a packet.
    cells: u64,
    /// Time that the crossing takes without any wait, in ticks.
    crossing: u64,
    /// Waiting times.
    waiting_times: TimeHistogram,
    /// Times to the end of the output link, of packets whose last cell has left on it.
    throughs: TimeHistogram,
}

impl OfKind {
    fn new(cells: u32, slot_ticks: u64, crossing: u64) -> OfKind {
        OfKind {
            cells: u64::from(cells),
            crossing,
            waiting_times: TimeHistogram::new(slot_ticks),
            throughs: TimeHistogram::new(slot_ticks),
        }
    }
}

/// Use of the slots of the outputs, in slots of the fabric summed over the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// A cell of a short packet crossed.
    pub short: u64,
    /// A cell of any other packet crossed.
    pub long: u64,
    /// Idle: the output is connected with an input that sends a short packet to another output.
    pub blocked: u64,
    /// Idle: the output was matched in this slot, and a short packet takes one of both ports (parallel
    /// phases).
    pub held: u64,
    /// Idle: some input had a packet for the output, and the output was not matched.
    pub unmatched: u64,
}

impl Slots {
    /// Cells that crossed, of all packets.
    pub fn crossed(&self) -> u64 {
        self.short + self.long
    }
}

/// All statistics of a run.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    kinds: Vec<PacketKind>,
    of: Vec<OfKind>,
    slot_ticks: u64,
    /// Use of the slots of the outputs.
    pub slots: Slots,
    /// Cells that arrived.
    pub arrived: u64,
    /// Cells that crossed, by output.
    pub crossed_to: Vec<u64>,
    /// The longest queue of an input so far.
    pub longest: Longest,
    /// Largest number of cells at one input, in all its queues.
    pub most_input: u64,
    /// Cells at each input now, which a reset does not change.
    at_input: Vec<u64>,
}

impl Statistics {
    /// Empty statistics for these kinds of packets. `crossing` gives the ticks that a packet of a number of
    /// cells takes to cross without any wait.
    pub fn new(
        kinds: Vec<PacketKind>,
        ports: usize,
        slot_ticks: u64,
        crossing: impl Fn(u32) -> u64,
    ) -> Statistics {
        let of = kinds.iter().map(|kind| OfKind::new(kind.cells, slot_ticks, crossing(kind.cells))).collect();
        Statistics {
            kinds,
            of,
            slot_ticks,
            slots: Slots::default(),
            arrived: 0,
            crossed_to: vec![0; ports],
            longest: Longest::default(),
            most_input: 0,
            at_input: vec![0; ports],
        }
    }

    /// Starts the measurement interval: clears everything but the backlog. `longest` has the present lengths
    /// of the longest queues.
    pub fn reset(&mut self, longest: Longest) {
        for of in &mut self.of {
            of.waiting_times.clear();
            of.throughs.clear();
        }
        self.slots = Slots::default();
        self.arrived = 0;
        self.crossed_to.fill(0);
        self.longest = longest;
        self.most_input = self.at_input.iter().copied().max().unwrap_or(0);
    }

    /// Prepares the histograms for the next batch.
    pub fn settle(&mut self) {
        for of in &mut self.of {
            of.waiting_times.settle();
            of.throughs.settle();
        }
    }

    /// Counts a packet that arrived.
    #[inline]
    pub fn on_arrival(&mut self, input: usize, cells: u32) {
        self.arrived += u64::from(cells);
        self.at_input[input] += u64::from(cells);
        self.most_input = self.most_input.max(self.at_input[input]);
    }

    /// Records the cells of a queue that a packet has joined.
    #[inline]
    pub fn queue_has(&mut self, cells: u64) {
        self.longest.cells = self.longest.cells.max(cells);
    }

    /// Records the packets of a queue for short packets that one has joined.
    #[inline]
    pub fn short_queue_has(&mut self, packets: u64) {
        self.longest.short = self.longest.short.max(packets);
    }

    /// Removes a packet from the backlog of its input.
    #[inline]
    pub fn left_input(&mut self, input: usize, kind: u16) {
        self.at_input[input] -= u64::from(self.kinds[usize::from(kind)].cells);
    }

    /// Counts a packet whose last cell has crossed, in a slot that ends at `tick`.
    #[inline]
    pub fn complete(&mut self, output: usize, kind: u16, arrived: u64, tick: u64) {
        let of = &mut self.of[usize::from(kind)];
        of.waiting_times.record(tick - arrived - of.crossing);
        self.crossed_to[output] += of.cells;
    }

    /// Counts a packet whose last cell has left on the link of its output at `tick`.
    #[inline]
    pub fn on_departure(&mut self, kind: u16, arrived: u64, tick: u64) {
        self.of[usize::from(kind)].throughs.record(tick - arrived);
    }

    /// Cells at all inputs now.
    pub fn backlog(&self) -> u64 {
        self.at_input.iter().sum()
    }

    /// Sums since the last reset. A batch is the difference of two.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums { arrived: self.arrived, crossed: self.slots.crossed(), ..Sums::default() };
        for (kind, of) in self.kinds.iter().zip(&self.of) {
            let class = &mut sums.of[kind.class as usize];
            let (waiting_times, throughs) = (of.waiting_times.totals(), of.throughs.totals());
            class.count += waiting_times.count;
            class.wait += waiting_times.sum;
            class.delay += waiting_times.sum + waiting_times.count * of.crossing;
            class.through_count += throughs.count;
            class.through += throughs.sum;
        }
        sums
    }

    /// Results for the packets whose kind `which` selects.
    pub fn packets(&self, which: impl Fn(&PacketKind) -> bool) -> Packets {
        let chosen = (self.kinds.iter().zip(&self.of)).filter(|(kind, _)| which(kind)).map(|(_, of)| of);
        let slot_ticks = self.slot_ticks;
        Packets {
            count: chosen.clone().map(|of| of.waiting_times.totals().count).sum(),
            wait: Times::new(chosen.clone().map(|of| (&of.waiting_times, 0)), slot_ticks),
            delay: Times::new(chosen.clone().map(|of| (&of.waiting_times, of.crossing)), slot_ticks),
            through: Times::new(chosen.map(|of| (&of.throughs, 0)), slot_ticks),
        }
    }

    /// The kinds of packets, by number.
    pub fn kinds(&self) -> &[PacketKind] {
        &self.kinds
    }
}

/// Largest numbers in one queue of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Longest {
    /// Cells, in a queue that is not for short packets alone.
    pub cells: u64,
    /// Packets in a queue for short packets, after arrivals and before service.
    pub short: u64,
}

/// Sums since the last reset; times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Cells that arrived.
    pub arrived: u64,
    /// Cells that crossed.
    pub crossed: u64,
    /// By class.
    pub of: [ClassSums; 2],
}

/// Sums of one class of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassSums {
    /// Packets whose last cell has crossed.
    pub count: u64,
    /// Their waiting times.
    pub wait: u64,
    /// Their times to the end of the crossing.
    pub delay: u64,
    /// Packets that have left on the output link.
    pub through_count: u64,
    /// Their times to the end of the output link.
    pub through: u64,
}
