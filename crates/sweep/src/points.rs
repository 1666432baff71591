//! The points of a sweep as a table: mean and interval of each discipline.

use std::collections::BTreeMap;

use giveway_document::{Cell, Sheet};
use giveway_measure::figures::NumberStyle;
use giveway_measure::{Estimate, aligned, short_names};

use crate::data::{At, Contender, Data};
use crate::labels;

/// Maximum number of points with a row each. Of more, those with the extremes of each discipline have one.
const MAX: usize = 24;

/// The values at points.
pub struct PointTable {
    title: String,
    /// The keys, then the disciplines.
    head: Vec<String>,
    /// The number of keys.
    keys: usize,
    rows: Vec<Vec<String>>,
    whole: bool,
}

impl PointTable {
    /// The table of the metric of the data; `None` without a point.
    pub fn of(data: &Data) -> Option<PointTable> {
        let all = numbered(data);
        let mut numbers: Vec<u64> = all.keys().copied().collect();
        let count = numbers.len();
        let whole = count <= MAX;
        if !whole {
            numbers = data.disciplines.iter().flat_map(extremes).collect();
            numbers.sort_unstable();
            numbers.dedup();
        }
        let kind = NumberStyle::of(&data.metric);
        let means = || data.disciplines.iter().flat_map(|contender| &contender.points).filter_map(At::mean);
        let (scale, unit) = kind.unit(means());
        let row = |number: &u64| {
            let levels = &all[number];
            let keys = data.axes.iter().zip(levels).map(|(axis, level)| {
                level.map_or_else(|| "-".to_owned(), |level| labels::value(&axis.levels[level]))
            });
            let cells = data.disciplines.iter().map(|contender| {
                let estimate = fitting(contender, levels).map(|at| Estimate::over(at.values.clone()));
                kind.cell(estimate.as_ref(), scale, false)
            });
            keys.chain(cells).collect()
        };
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let title = match whole {
            true => format!("{}{unit} at each point, with 95 % intervals over the seeds", data.metric),
            false => format!(
                "{}{unit}, with 95 % intervals: of {count} points those with the lowest and the highest mean of a discipline",
                data.metric
            ),
        };
        let names: Vec<&str> = data.disciplines.iter().map(|contender| contender.name.as_str()).collect();
        let head = data.axes.iter().map(|axis| axis.key.clone()).chain(short_names(&names)).collect();
        let rows: Vec<Vec<String>> = numbers.iter().map(row).collect();
        (!rows.is_empty()).then_some(PointTable { title, head, keys: data.axes.len(), rows, whole })
    }

    /// True if the table has a row for every point.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The table as text, ending in a line break. Disciplines that do not fit the width are below each other.
    pub fn text(&self, width: usize) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let widest =
            |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or_default() + 2;
        let room = width.saturating_sub((0..self.keys).map(widest).sum());
        let values = (self.keys..self.head.len()).map(widest).max().unwrap_or(1);
        let columns: Vec<usize> = (self.keys..self.head.len()).collect();
        let mut text = format!("{}:\n", self.title);
        for block in columns.chunks((room / values).max(1)) {
            let of_block = |row: &Vec<String>| -> Vec<String> {
                (0..self.keys).chain(block.iter().copied()).map(|column| row[column].clone()).collect()
            };
            text.push_str(&aligned(&lines().map(of_block).collect::<Vec<_>>()));
        }
        text
    }

    /// The table as a part of a page.
    pub fn sheet(&self) -> Sheet {
        let row = |row: &Vec<String>| row.iter().map(|text| Cell::plain(text.clone())).collect();
        Sheet {
            caption: format!("{}.", self.title),
            head: self.head.clone(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

/// The levels of all points, by their numbers. A discipline that an axis does not concern has no level there.
fn numbered(data: &Data) -> BTreeMap<u64, Vec<Option<usize>>> {
    let mut all: BTreeMap<u64, Vec<Option<usize>>> = BTreeMap::new();
    for at in data.disciplines.iter().flat_map(|contender| &contender.points) {
        let known = all.entry(at.point).or_insert_with(|| at.levels.clone());
        known.iter_mut().zip(&at.levels).for_each(|(known, level)| *known = known.or(*level));
    }
    all
}

/// The values of a discipline at a point; it has one for all values of a key that does not concern it.
fn fitting<'a>(contender: &'a Contender, levels: &[Option<usize>]) -> Option<&'a At> {
    let fits = |at: &&At| at.levels.iter().zip(levels).all(|(own, level)| own.is_none() || own == level);
    contender.points.iter().find(fits)
}

/// The points with the lowest and the highest mean of a discipline.
fn extremes(contender: &Contender) -> Vec<u64> {
    let means: Vec<(f64, u64)> =
        contender.points.iter().filter_map(|at| Some((at.mean()?, at.point))).collect();
    let ends =
        [means.iter().min_by(|a, b| a.0.total_cmp(&b.0)), means.iter().max_by(|a, b| a.0.total_cmp(&b.0))];
    ends.into_iter().flatten().map(|(_, point)| *point).collect()
}
