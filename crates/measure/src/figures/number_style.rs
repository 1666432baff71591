//! Numbers of a table as text: units and digits.

use crate::metrics::{Statistic, Unit, is_behind, named};
use crate::table::Estimate;

/// The kind of the numbers of a column.
#[derive(Clone, Copy, PartialEq)]
pub enum NumberStyle {
    /// A share, shown in percent.
    Percent,
    /// An index from 0 to 1, shown with three decimals.
    Index,
    /// A number of things.
    Count(&'static str),
    /// The number of values behind a quantile, without an interval.
    Number,
    /// A quantity with a ladder of units: the size of each unit, and its name.
    Ladder(&'static [(f64, &'static str)]),
}

/// Times, from nanoseconds to seconds.
pub const TIME: NumberStyle = NumberStyle::Ladder(&[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]);

/// Rates, from bit/s to Gbit/s.
pub const RATE: NumberStyle =
    NumberStyle::Ladder(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]);

/// Sizes, from bytes to gigabytes.
const SIZE: NumberStyle = NumberStyle::Ladder(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]);

impl NumberStyle {
    /// The kind of the values of the metric with this name.
    pub fn of(metric: &str) -> NumberStyle {
        let Some(named) = named(metric) else { return NumberStyle::Count("") };
        match named.definition.unit {
            Unit::Share => NumberStyle::Percent,
            Unit::Index => NumberStyle::Index,
            Unit::BitPerSecond => RATE,
            Unit::Seconds => TIME,
            Unit::Bytes => SIZE,
            Unit::Packets | Unit::Flows if is_behind(named.definition) => NumberStyle::Number,
            _ if named.statistic == Some(Statistic::Count) => NumberStyle::Count(""),
            Unit::Number => NumberStyle::Count(""),
            Unit::Packets => NumberStyle::Count("pkts"),
            unit @ (Unit::Flows | Unit::Slots | Unit::Cells) => NumberStyle::Count(unit.symbol()),
        }
    }

    /// The size and the name of the unit for these numbers. The smallest number determines it, unless that
    /// makes the largest unreadable.
    pub fn unit(self, means: impl Iterator<Item = f64>) -> (f64, &'static str) {
        let ladder = match self {
            NumberStyle::Percent => return (0.01, "%"),
            NumberStyle::Index => return (1.0, ""),
            NumberStyle::Count(unit) => return (1.0, unit),
            NumberStyle::Number => return (1.0, ""),
            NumberStyle::Ladder(ladder) => ladder,
        };
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for mean in means.filter(|mean| *mean > 0.0) {
            least = least.min(mean);
            most = most.max(mean);
        }
        let fits = |(one, _): &&(f64, &str)| *one <= least;
        let smallest = ladder.iter().rfind(fits).map_or(ladder[0].0, |(one, _)| *one);
        let readable = |(one, _): &&(f64, &str)| *one >= smallest && most / one < 1e5;
        let nothing_to_show = least.is_infinite();
        let found = if nothing_to_show { None } else { ladder.iter().find(readable) };
        *found.unwrap_or(if nothing_to_show { &ladder[ladder.len() / 2] } else { &ladder[ladder.len() - 1] })
    }

    /// The largest possible value.
    fn most(self) -> Option<f64> {
        matches!(self, NumberStyle::Percent | NumberStyle::Index).then_some(1.0)
    }

    /// The text of a cell: mean and half the width of the interval, with the same decimals. An interval that
    /// leaves the possible range is written by its ends, which are cut off there.
    pub fn cell(self, estimate: Option<&Estimate>, scale: f64, ascii: bool) -> String {
        let Some((estimate, mean)) = estimate.and_then(|e| e.mean.map(|mean| (e, mean / scale))) else {
            return "-".to_owned();
        };
        let decimals = self.decimals(mean);
        match estimate.ci95.filter(|_| self != NumberStyle::Number) {
            None => format!("{mean:.decimals$}"),
            Some(half) => {
                let half = half / scale;
                let (least, most) = (mean - half, mean + half);
                // Student's interval knows no bounds, but no share is below 0 or above 1.
                let most_possible = self.most().map_or(f64::INFINITY, |most| most / scale);
                if least < 0.0 || most > most_possible {
                    let (low, high) = (least.max(0.0), most.min(most_possible));
                    let dash = if ascii { "-" } else { "–" };
                    return format!("{mean:.decimals$} ({low:.decimals$}{dash}{high:.decimals$})");
                }
                let sign = if ascii { "+-" } else { "±" };
                format!("{mean:.decimals$}{sign}{half:.decimals$}")
            }
        }
    }

    /// A number with a unit that suits it.
    pub fn text(self, value: f64, ascii: bool) -> String {
        let (one, unit) = self.unit(std::iter::once(value));
        let unit = if ascii { unit.replace('µ', "u") } else { unit.to_owned() };
        let value = value / one;
        format!("{value:.0$} {unit}", self.decimals(value))
    }

    /// Decimals for three significant digits. Whole counts have none.
    fn decimals(self, value: f64) -> usize {
        match self {
            NumberStyle::Index => 3,
            NumberStyle::Percent => 1,
            NumberStyle::Number => 0,
            NumberStyle::Count(_) if value.fract() == 0.0 || value >= 1000.0 => 0,
            _ if value == 0.0 || value >= 100.0 => 0,
            _ if value >= 10.0 => 1,
            _ if value >= 1.0 => 2,
            _ => 3,
        }
    }
}
