//! Results of a run about packets: their waiting times and delays.

use crate::histogram::{TimeHistogram, Totals};
use crate::packet::{Class, PacketKind};

/// The mean of times in ticks, in slots. `None` without times.
///
/// The division by the count comes first, so that the mean of equal times is that time and no mean is above
/// the largest.
pub(crate) fn mean_slots(ticks: u64, count: u64, slot_ticks: u64) -> Option<f64> {
    (count > 0).then(|| ticks as f64 / count as f64 / slot_ticks as f64)
}

/// Results for a selection of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Packets {
    /// Number of packets.
    pub count: u64,
    /// Waiting times: to the end of the crossing, less the duration of an undisturbed crossing.
    pub wait: Times,
    /// Times from arrival to the end of the crossing.
    pub delay: Times,
    /// Times from arrival to the end of the output link.
    pub through: Times,
}

/// Times of packets, in slots of a link. `None` without packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Mean, exact.
    pub mean: Option<f64>,
    /// Maximum, exact.
    pub max: Option<f64>,
    /// Each time that occurred with its count, ascending. Exact below 2,048 ticks, which are slots without
    /// speedup; a longer time stands for a range at most a thousandth wide, and is the upper end of it.
    pub counts: Vec<(f64, u64)>,
}

impl Times {
    /// Combines histograms, each with a number of ticks that is added to its times.
    pub(crate) fn new<'a>(parts: impl Iterator<Item = (&'a TimeHistogram, u64)>, slot_ticks: u64) -> Times {
        let mut all = Totals::default();
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for (part, added) in parts {
            let totals = part.totals();
            if totals.count > 0 {
                all.count += totals.count;
                all.sum += totals.sum + totals.count * added;
                all.max = all.max.max(totals.max + added);
                counts.extend(part.counts().map(|(ticks, count)| (ticks + added, count)));
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

    /// The smallest time of [`counts`](Times::counts) that at least a share `q` (0 to 1) of the packets does
    /// not exceed. Never above the maximum, although the upper end of a range may be.
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
    /// A selection of the packets of a class.
    pub(crate) fn of_class(class: Class) -> impl Fn(&PacketKind) -> bool {
        move |kind| kind.class == class
    }
}
