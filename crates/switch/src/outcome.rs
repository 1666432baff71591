//! Results of a run.

use crate::links::Links;
use crate::packet::{Class, PacketKind};
use crate::statistics::{Slots, Statistics, Sums};
use crate::times::{Packets, mean_slots};

/// Results of a run. Times are in slots of a link, loads in cells per slot and port.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of inputs, and of outputs.
    pub ports: usize,
    /// Measured slots of the links.
    pub slots: u64,
    /// Measured slots of the fabric.
    pub fabric_slots: u64,
    /// Cells that arrived per slot and input.
    pub offered: f64,
    /// Cells that crossed per slot and output.
    pub throughput: f64,
    /// Results for all packets.
    pub all: Packets,
    /// Results for short and for long packets.
    pub classes: [Packets; 2],
    /// Results for each kind of packets.
    pub kinds: Vec<(PacketKind, Packets)>,
    /// Use of the slots of the outputs.
    pub outputs: Slots,
    /// Cells that crossed to each output.
    pub crossed_to: Vec<u64>,
    /// Largest backlogs.
    pub most: Most,
    /// Cells in the switch at the end, packets that are crossing included.
    pub backlog: u64,
    /// Batches of the measurement interval, in order.
    pub batches: Vec<Batch>,
}

/// Largest backlogs during the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Cells in one queue of an input.
    pub queue_cells: u64,
    /// Cells at one input.
    pub input_cells: u64,
    /// Short packets in one queue for short packets, after arrivals and before service.
    pub short_packets: u64,
    /// Cells at one output, the packet in transmission included.
    pub output_cells: u64,
    /// Short packets waiting at one output.
    pub output_short: u64,
}

/// A batch: one of equal parts of the measurement interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Slot at its end.
    pub end: u64,
    /// Cells in the switch at its end.
    pub backlog: u64,
    /// Cells that arrived.
    pub arrived: u64,
    /// Cells that crossed.
    pub crossed: u64,
    /// Means of short packets, of long ones, and of all.
    pub means: [Means; 3],
}

/// Means over the packets of a batch, in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// Number of packets that crossed.
    pub count: u64,
    /// Waiting time.
    pub wait: Option<f64>,
    /// Time to the end of the crossing.
    pub delay: Option<f64>,
    /// Time to the end of the output link.
    pub through: Option<f64>,
}

impl Batch {
    /// The difference between the sums at the end and at the start of a batch.
    pub(crate) fn new(end: u64, before: &Sums, after: &Sums, backlog: u64, slot_ticks: u64) -> Batch {
        let difference = |classes: &[usize]| {
            let sum = |of: &dyn Fn(&Sums, usize) -> u64| -> u64 {
                classes.iter().map(|class| of(after, *class) - of(before, *class)).sum()
            };
            let count = sum(&|sums, class| sums.of[class].count);
            let through = sum(&|sums, class| sums.of[class].through_count);
            let mean = |ticks: u64, count: u64| mean_slots(ticks, count, slot_ticks);
            Means {
                count,
                wait: mean(sum(&|sums, class| sums.of[class].wait), count),
                delay: mean(sum(&|sums, class| sums.of[class].delay), count),
                through: mean(sum(&|sums, class| sums.of[class].through), through),
            }
        };
        Batch {
            end,
            backlog,
            arrived: after.arrived - before.arrived,
            crossed: after.crossed - before.crossed,
            means: [difference(&[0]), difference(&[1]), difference(&[0, 1])],
        }
    }
}

impl Outcome {
    /// The results of statistics, with the measured slots of the links and of the fabric.
    pub(crate) fn new(
        statistics: &Statistics,
        links: &Links,
        (slots, fabric_slots): (u64, u64),
        batches: Vec<Batch>,
    ) -> Outcome {
        let ports = statistics.crossed_to.len();
        let per_port = |cells: u64| cells as f64 / (slots as f64 * ports as f64);
        let mut kinds = statistics.kinds().to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        Outcome {
            ports,
            slots,
            fabric_slots,
            offered: per_port(statistics.arrived),
            throughput: per_port(statistics.slots.crossed()),
            all: statistics.packets(|_| true),
            classes: Class::ALL.map(|class| statistics.packets(Packets::of_class(class))),
            kinds: kinds.iter().map(|kind| (*kind, statistics.packets(|other| other == kind))).collect(),
            outputs: statistics.slots,
            crossed_to: statistics.crossed_to.clone(),
            most: Most {
                queue_cells: statistics.longest.cells,
                input_cells: statistics.most_input,
                short_packets: statistics.longest.short,
                output_cells: links.most_cells(),
                output_short: links.most_short,
            },
            backlog: statistics.backlog(),
            batches,
        }
    }

    /// All counts as a text. Equal runs have equal digests.
    pub fn digest(&self) -> String {
        let packets = |packets: &Packets| {
            let times = [&packets.wait, &packets.delay, &packets.through];
            let counts = times.map(|times| {
                times.counts.iter().map(|(slots, count)| (slots.to_bits(), *count)).collect::<Vec<_>>()
            });
            (packets.count, counts, times.map(|times| times.mean.map(f64::to_bits)))
        };
        let kinds: Vec<_> = self.kinds.iter().map(|(kind, of)| (kind, packets(of))).collect();
        let batches: Vec<_> = self
            .batches
            .iter()
            .map(|batch| (batch.end, batch.backlog, batch.arrived, batch.crossed))
            .collect();
        format!(
            "{:?} {:?} {:?} {:?} {kinds:?} {batches:?} {} {} {}",
            self.outputs, self.crossed_to, self.most, self.ports, self.slots, self.fabric_slots, self.backlog
        )
    }

    /// Results for the packets of a class.
    pub fn class(&self, class: Class) -> &Packets {
        &self.classes[class as usize]
    }
}
