//! The answer: the key figures as a table, at the beginning of the page.

use giveway_measure::figures::NumberStyle;
use giveway_measure::{Better, Contest, DisciplineRow, Table, better, is_carried, leaders};
use serde::Serialize;

use super::charts::{Disciplines, FIGURES, noun, per_port};
use super::read::Folder;
use crate::folder::RECORDED_BY;

/// Disciplines stand side by side up to this number, so that a phone can show them. More of them stand below
/// each other.
const SIDE_BY_SIDE: usize = 6;

/// A table of key figures as the template uses it.
#[derive(Serialize)]
pub(super) struct Answer {
    /// The port or the folder, behind a comma; empty if there is one.
    title: String,
    columns: Vec<Head>,
    rows: Vec<Row>,
}

/// The head of a column or of a row.
#[derive(Clone, Serialize)]
struct Head {
    text: String,
    /// Its unit, or the folder of a discipline.
    note: String,
    /// The colour of a discipline; empty for a metric.
    colour: String,
}

#[derive(Serialize)]
struct Row {
    head: Head,
    cells: Vec<Value>,
}

#[derive(Clone, Default, Serialize)]
struct Value {
    mean: String,
    half: String,
    /// True if no other discipline of the folder is measurably better, and some are measurably worse.
    best: bool,
}

/// The tables: one for each measured port with figures of its own, or one for all.
pub(super) fn answers(folders: &[Folder], disciplines: &Disciplines) -> Vec<Answer> {
    let contests: Vec<(&Folder, &Contest)> = folders
        .iter()
        .filter_map(|folder| Some((folder, folder.manifest.measured.contest.as_ref()?)))
        .collect();
    if !contests.is_empty() {
        let title = |folder: &Folder| match folders {
            [_] => String::new(),
            _ => format!(", {}", folder.name),
        };
        let tables = contests.into_iter();
        return tables
            .filter_map(|(folder, contest)| of_contest(title(folder), folder, contest, disciplines))
            .collect();
    }
    let tables = per_port(folders);
    tables.into_iter().filter_map(|(title, tables)| answer(title, folders, &tables, disciplines)).collect()
}

/// The table of a contest: how far the shares are from equal ones, and the share of each sender.
fn of_contest(
    title: String,
    folder: &Folder,
    contest: &Contest,
    disciplines: &Disciplines,
) -> Option<Answer> {
    let rows = &folder.table.rows;
    let distances: Vec<Option<f64>> = rows.iter().map(|row| contest.distance(row)).collect();
    let least = distances.iter().flatten().copied().min_by(f64::total_cmp)?;
    let rounded = |value: f64| (100.0 * value).round();
    let is_least = |distance: &f64| rounded(*distance) == rounded(least);
    let all_alike = distances.iter().flatten().all(is_least);
    let cell = |value: Option<f64>, is_best: bool| match value {
        Some(value) => {
            Value { mean: rounded(value).to_string(), best: is_best && !all_alike, ..Value::default() }
        }
        None => Value { mean: "-".to_owned(), ..Value::default() },
    };
    let head = |text: String, note: &str| Head { text, note: note.to_owned(), colour: String::new() };
    let mut figures = vec![Row {
        head: head("distance from equal shares".to_owned(), "mean of all pairs, points"),
        cells: distances
            .iter()
            .map(|distance| cell(*distance, distance.as_ref().is_some_and(is_least)))
            .collect(),
    }];
    let shares: Vec<Vec<Option<f64>>> = rows.iter().map(|row| contest.mean_shares(row)).collect();
    figures.extend(contest.senders.iter().enumerate().map(|(at, sender)| Row {
        head: head(format!("share of {sender}"), "mean of its pairs, %"),
        cells: shares.iter().map(|shares| cell(shares[at], false)).collect(),
    }));
    let heads = rows.iter().map(|row| of_discipline(row, "", disciplines)).collect();
    Some(arranged(title, heads, figures))
}

/// The head of a discipline.
fn of_discipline(row: &DisciplineRow, note: &str, disciplines: &Disciplines) -> Head {
    Head {
        text: disciplines.name(&row.qdisc).to_owned(),
        note: note.to_owned(),
        colour: disciplines.find(&row.qdisc).1.colour.clone(),
    }
}

/// The table with a column for each of a few disciplines, or a row for each of many.
fn arranged(title: String, heads: Vec<Head>, figures: Vec<Row>) -> Answer {
    if heads.len() <= SIDE_BY_SIDE {
        return Answer { title, columns: heads, rows: figures };
    }
    let columns = figures.iter().map(|row| row.head.clone()).collect();
    let of = |at: usize| figures.iter().map(|row| row.cells[at].clone()).collect();
    let rows = heads.into_iter().enumerate().map(|(at, head)| Row { head, cells: of(at) }).collect();
    Answer { title, columns, rows }
}

/// A table of these tables of metrics, one for each folder; `None` if no key figure was measured.
fn answer(title: String, folders: &[Folder], tables: &[Table], disciplines: &Disciplines) -> Option<Answer> {
    let rows: Vec<(&Folder, &Table, &DisciplineRow)> = folders
        .iter()
        .zip(tables)
        .flat_map(|(folder, table)| table.rows.iter().map(move |row| (folder, table, row)))
        .collect();
    let carried = |row: &DisciplineRow, metric: &str| row.mean(metric).is_some() && is_carried(row, metric);
    let note = |folder: &Folder| if folders.len() > 1 { folder.name.clone() } else { String::new() };
    let heads = rows.iter().map(|(folder, _, row)| of_discipline(row, &note(folder), disciplines)).collect();
    let mut figures = Vec::new();
    for metric in FIGURES {
        if !rows.iter().any(|(_, _, row)| carried(row, metric)) {
            continue;
        }
        let style = NumberStyle::of(metric);
        let (one, unit) = style.unit(rows.iter().filter_map(|(_, _, row)| row.mean(metric)));
        let mean = |row: &DisciplineRow| style.cell(row.metric(metric), one, false);
        let shown = |row: &DisciplineRow| {
            let text = mean(row);
            text.split(['±', ' ']).next().unwrap_or_default().to_owned()
        };
        // Stretches of a recording have their own traffic: none is the best.
        let compares = |folder: &Folder| folder.manifest.created_by != RECORDED_BY;
        let cell = |(folder, table, row): &(&Folder, &Table, &DisciplineRow)| {
            if !carried(row, metric) {
                return Value { mean: "-".to_owned(), ..Value::default() };
            }
            let text = mean(row);
            let (mean, half) = match (text.split_once('±'), text.split_once(' ')) {
                (Some((mean, half)), _) => (mean.to_owned(), format!("±\u{a0}{half}")),
                (None, Some((mean, range))) => (mean.to_owned(), range.to_owned()),
                (None, None) => (text, String::new()),
            };
            // Values with equal texts count as equal, even if digits that are not shown differ.
            let leading = leaders(table, metric);
            let first = table.rows.iter().find(|other| leading.first() == Some(&other.qdisc.as_str()));
            let is_first = |row: &DisciplineRow| {
                leading.contains(&row.qdisc.as_str()) || first.is_some_and(|first| shown(first) == shown(row))
            };
            let best = compares(folder)
                && better(metric) != Better::Neither
                && is_first(row)
                && !table.rows.iter().all(is_first);
            Value { mean, half, best }
        };
        let (text, statistic) = noun(metric);
        let parts: Vec<&str> =
            [statistic.as_str(), unit].into_iter().filter(|part| !part.is_empty()).collect();
        let head = Head { text, note: parts.join(", "), colour: String::new() };
        figures.push(Row { head, cells: rows.iter().map(cell).collect() });
    }
    if figures.is_empty() {
        return None;
    }
    Some(arranged(title, heads, figures))
}
