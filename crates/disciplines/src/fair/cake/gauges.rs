//! Gauges: the counters of `tc -s qdisc`, for each tin.

use giveway_qdisc::Time;

use super::classes::MAX;
use super::shaper::Shaper;
use super::tin::Tin;

/// The values of a tin, in the order of [`NAMES`].
fn values(tin: &Tin, rate: f64) -> [f64; 21] {
    let (part, whole) = tin.class.share;
    let s = |ps: u64| Time::from_ps(ps).as_s();
    let (tuning, counters) = (&tin.tuning, &tin.counters);
    [
        rate * part as f64 / whole as f64,
        tuning.law.target.as_s(),
        tuning.law.interval.as_s(),
        s(counters.peak),
        s(counters.average),
        s(counters.sparse),
        tin.backlog.packets as f64,
        tin.backlog.bytes as f64,
        counters.packets as f64,
        counters.bytes as f64,
        counters.indirect as f64,
        counters.misses as f64,
        counters.collisions as f64,
        counters.drops as f64,
        counters.marks as f64,
        counters.acks as f64,
        f64::from(tin.sparse_flows + tin.decaying_flows),
        f64::from(tin.bulk_flows),
        f64::from(tin.unresponsive_flows),
        f64::from(counters.longest),
        f64::from(tuning.quantum),
    ]
}

macro_rules! names {
    ($($tin:literal),*) => {
        [$([
            concat!("tin", $tin, "_threshold_bps"),
            concat!("tin", $tin, "_target_s"),
            concat!("tin", $tin, "_interval_s"),
            concat!("tin", $tin, "_peak_delay_s"),
            concat!("tin", $tin, "_average_delay_s"),
            concat!("tin", $tin, "_sparse_delay_s"),
            concat!("tin", $tin, "_queued_packets"),
            concat!("tin", $tin, "_queued_bytes"),
            concat!("tin", $tin, "_arrived_packets"),
            concat!("tin", $tin, "_arrived_bytes"),
            concat!("tin", $tin, "_indirect_hits"),
            concat!("tin", $tin, "_misses"),
            concat!("tin", $tin, "_collisions"),
            concat!("tin", $tin, "_dropped_packets"),
            concat!("tin", $tin, "_marked_packets"),
            concat!("tin", $tin, "_dropped_acks"),
            concat!("tin", $tin, "_sparse_flows"),
            concat!("tin", $tin, "_bulk_flows"),
            concat!("tin", $tin, "_unresponsive_flows"),
            concat!("tin", $tin, "_longest_bytes"),
            concat!("tin", $tin, "_quantum_bytes"),
        ]),*]
    };
}

/// The names of the gauges of each tin.
const NAMES: [[&str; 21]; MAX] = names!(0, 1, 2, 3, 4, 5, 6, 7);

/// Visits the rate of the shaper, and the counters of each tin in the order in which tc lists them: bulk
/// before best effort.
pub fn visit(shaper: &Shaper, tins: &[Tin], visit: &mut dyn FnMut(&'static str, f64)) {
    let rate = shaper.rate.map_or(0.0, |rate| rate.as_bit() as f64);
    visit("bandwidth_bps", rate);
    for (shown, names) in NAMES.iter().enumerate().take(tins.len()) {
        let tin = tins.iter().find(|tin| tin.class.shown == shown).expect("each number is shown once");
        for (name, value) in names.iter().zip(values(tin, rate)) {
            visit(name, value);
        }
    }
}
