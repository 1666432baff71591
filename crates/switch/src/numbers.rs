//! The results of a run as named numbers, for tables, reports and claims.

use crate::outcome::{Means, Outcome};
use crate::packet::Class;
use crate::stability::Stability;
use crate::statistics::Slots;
use crate::times::{Packets, Times};

/// Quantiles of the named numbers.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// Student's t for a two-sided 95 % interval, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Outcome {
    /// Named numbers, in a fixed order. `None` stands for a number that cannot be measured. Times are in
    /// slots of a link.
    ///
    /// | name | meaning |
    /// |---|---|
    /// | `offered`, `throughput` | cells that arrived and that crossed, per slot and port |
    /// | `wait_mean_slots`, `wait_p50_slots`, `_p95_`, `_p99_`, `_max_` | waiting time |
    /// | `wait_ci_slots` | half of the 95 % interval of the mean waiting time, from the means of 20 batches |
    /// | `delay_...` | from arrival to the end of the crossing |
    /// | `through_...` | from arrival to the end of the output link |
    /// | `short_wait_...`, `long_wait_...` and so on | times of one class |
    /// | `short_packets`, `long_packets` | number of packets of one class |
    /// | `cells_N_wait_mean_slots` | mean waiting time of packets of N cells, if there are at most 16 kinds |
    /// | `output_short`, `output_long` | share of slots with a cell of a short packet, or of another packet |
    /// | `output_blocked` | share of slots in which a short packet blocked the output |
    /// | `output_held` | share of slots in which a short packet delayed a new match of the output |
    /// | `output_unmatched` | share of slots in which the output idled with a packet at an input for it |
    /// | `output_idle` | share of slots in which no input had a packet for the output |
    /// | `queue_max_cells`, `input_max_cells` | largest backlog of one queue of an input, and of one input |
    /// | `short_max_packets` | largest number of packets in one queue for short packets |
    /// | `output_max_cells`, `output_short_max_packets` | largest backlog at one output |
    /// | `backlog_cells` | cells in the switch at the end |
    /// | `backlog_slope` | growth of the backlog, in cells per slot and port |
    /// | `stable` | 1 if the backlog does not grow, 0 if it grows, null if the run is too short to decide |
    ///
    /// - The waiting time is the time from arrival to the end of the crossing, less the duration of an
    ///   undisturbed crossing.
    /// - A quantile is the smallest time that at least this share of the packets does not exceed. It is exact
    ///   up to 2,047 ticks (slots, without speedup), above that to a thousandth, and never above the maximum.
    /// - `output_...` are shares of the slots of all outputs. With output queueing many cells cross to an
    ///   output in one slot: `output_short` and `output_long` are then cells per slot of an output, up to 1.
    /// - A *blocked* output idles because its input sends a short packet to another output. A *held* output
    ///   idles because a short packet took one of both ports of a new match.
    /// - `short_max_packets` is measured after the arrivals and before the service of a slot.
    pub fn numbers(&self) -> Vec<(String, Option<f64>)> {
        let mut out = Vec::new();
        let mut push = |name: String, value: Option<f64>| out.push((name, value));
        push("offered".into(), Some(self.offered));
        push("throughput".into(), Some(self.throughput));
        let batches =
            |which: usize| self.batches.iter().map(move |batch| batch.means[which]).collect::<Vec<Means>>();
        packets("", &self.all, &batches(2), &mut push);
        for class in Class::ALL {
            let name = format!("{}_", class.name());
            push(format!("{name}packets"), Some(self.class(class).count as f64));
            packets(&name, self.class(class), &batches(class as usize), &mut push);
        }
        if self.kinds.len() <= 16 {
            for (kind, packets) in &self.kinds {
                let short = if kind.class == Class::Short && kind.cells == 1 { "_short" } else { "" };
                push(format!("cells_{}{short}_wait_mean_slots", kind.cells), packets.wait.mean);
                push(format!("cells_{}{short}_through_mean_slots", kind.cells), packets.through.mean);
            }
        }
        let share = |slots: u64| Some(slots as f64 / self.fabric_slots as f64 / self.ports as f64);
        let slots = &self.outputs;
        push("output_short".into(), share(slots.short));
        // With output queueing all cells of a packet count with its last one, so some arrived before the
        // measurement interval.
        push("output_long".into(), share(slots.long.min(self.left_for_long())));
        push("output_blocked".into(), share(slots.blocked));
        push("output_held".into(), share(slots.held));
        push("output_unmatched".into(), share(slots.unmatched));
        push("output_idle".into(), share(self.idle()));
        let most = &self.most;
        push("queue_max_cells".into(), Some(most.queue_cells as f64));
        push("input_max_cells".into(), Some(most.input_cells as f64));
        push("short_max_packets".into(), Some(most.short_packets as f64));
        push("output_max_cells".into(), Some(most.output_cells as f64));
        push("output_short_max_packets".into(), Some(most.output_short as f64));
        push("backlog_cells".into(), Some(self.backlog as f64));
        let trend = self.trend();
        push("backlog_slope".into(), trend.map(|trend| trend.slope));
        let stable = trend.and_then(|trend| match trend.verdict {
            Stability::Stable => Some(1.0),
            Stability::Growing => Some(0.0),
            Stability::Undecided => None,
        });
        push("stable".into(), stable);
        out
    }

    /// Slots of the outputs in which no input had a packet for them.
    pub fn idle(&self) -> u64 {
        self.left_for_long().saturating_sub(self.outputs.long)
    }

    /// Slots of the outputs in which a cell of a long packet crossed, or no input had a packet.
    fn left_for_long(&self) -> u64 {
        let Slots { short, blocked, held, unmatched, .. } = self.outputs;
        (self.fabric_slots * self.ports as u64).saturating_sub(short + blocked + held + unmatched)
    }
}

/// Adds the numbers of a selection of packets, with a prefix of their names.
fn packets(name: &str, of: &Packets, batches: &[Means], push: &mut impl FnMut(String, Option<f64>)) {
    let mut times = |time: &str, times: &Times, mean: &dyn Fn(&Means) -> Option<f64>| {
        push(format!("{name}{time}_mean_slots"), times.mean);
        push(format!("{name}{time}_ci_slots"), half_interval(batches.iter().filter_map(mean)));
        for (quantile, q) in QUANTILES {
            push(format!("{name}{time}_{quantile}_slots"), times.quantile(q));
        }
        push(format!("{name}{time}_max_slots"), times.max);
    };
    times("wait", &of.wait, &|means| means.wait);
    times("delay", &of.delay, &|means| means.delay);
    times("through", &of.through, &|means| means.through);
}

/// Half width of the 95 % confidence interval of a mean, from the means of batches. `None` with fewer than
/// two.
fn half_interval(means: impl Iterator<Item = f64>) -> Option<f64> {
    let means: Vec<f64> = means.collect();
    let n = means.len();
    let t = STUDENT.get(n.checked_sub(2)?)?;
    let mean = means.iter().sum::<f64>() / n as f64;
    let squares: f64 = means.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some(t * libm::sqrt(squares / (n - 1) as f64 / n as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_come_from_batches() {
        assert_eq!(half_interval([1.0].into_iter()), None);
        let half = half_interval([1.0, 2.0, 3.0, 4.0].into_iter()).unwrap();
        // sd = 1.29099, t(3) = 3.182, over sqrt 4.
        assert!((half - 3.182 * 1.290_994 / 2.0).abs() < 1e-6, "{half}");
    }
}
