//! The table of metrics, with the groups, units and digits that the terminal has.

use giveway_measure::figures::{Group, groups};
use giveway_measure::{DisciplineRow, Table};
use serde::Serialize;

use super::charts::Disciplines;
use super::read::Folder;

/// The table as the template uses it.
#[derive(Serialize)]
pub(super) struct View {
    /// The port, if there is a table for each port.
    title: String,
    /// True if rows also have the name of their folder.
    several: bool,
    bands: Vec<Band>,
}

/// A part of a table that is as wide as the page at most: some of its groups, for all rows.
#[derive(Serialize)]
struct Band {
    groups: Vec<GroupView>,
    columns: Vec<ColumnView>,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct GroupView {
    title: String,
    columns: usize,
}

#[derive(Serialize)]
struct ColumnView {
    title: String,
    unit: String,
    /// True for the first column of its group.
    first: bool,
}

#[derive(Serialize)]
struct RowView {
    folder: String,
    qdisc: String,
    colour: String,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct CellView {
    mean: String,
    half: String,
    first: bool,
}

/// One table over all folders, as in a contest; or a table for each measured port, if all folders measure the
/// same ports and more than one.
pub(super) fn views(folders: &[Folder], disciplines: &Disciplines) -> Vec<View> {
    let contest = folders.iter().any(|folder| folder.manifest.measured.contest.is_some());
    let first = folders.first().map(|folder| folder.manifest.measured.ports.clone()).unwrap_or_default();
    if contest || first.len() < 2 || folders.iter().any(|folder| folder.manifest.measured.ports != first) {
        let tables: Vec<Table> = folders.iter().map(|folder| folder.table.clone()).collect();
        return view(String::new(), folders, &tables, disciplines).into_iter().collect();
    }
    let of_port = |port: &String| {
        let tables: Vec<Table> = folders.iter().map(|folder| folder.table.at(port)).collect();
        let title = folders.first().map_or(port.as_str(), |folder| folder.manifest.measured.title(port));
        view(title.to_owned(), folders, &tables, disciplines)
    };
    first.iter().filter_map(of_port).collect()
}

/// A row for each folder and discipline; `None` without a measurement.
fn view(title: String, folders: &[Folder], tables: &[Table], disciplines: &Disciplines) -> Option<View> {
    let each = folders.iter().zip(tables);
    let rows: Vec<(&Folder, &DisciplineRow)> =
        each.flat_map(|(folder, table)| table.rows.iter().map(move |row| (folder, row))).collect();
    let only: Vec<&DisciplineRow> = rows.iter().map(|(_, row)| *row).collect();
    let groups: Vec<Group> = groups(&only, false, !title.is_empty());
    if groups.is_empty() {
        return None;
    }
    let several = folders.len() > 1;
    let name = |(folder, row): &(&Folder, &DisciplineRow)| {
        // A long specification is broken.
        let folder = if several { folder.name.chars().count() + GAP } else { 0 };
        row.qdisc.chars().count().min(LONGEST_NAME) + folder
    };
    let names = rows.iter().map(name).max().unwrap_or_default();
    let bands = divided(&groups, names);
    let bands = bands.into_iter().map(|groups| band(groups, &rows, disciplines));
    Some(View { title, several, bands: bands.collect() })
}

/// The width of a page in characters of the table, on a screen and on paper.
const WIDTH: usize = 112;
/// The space between two columns.
const GAP: usize = 2;
/// The characters of a name on one line.
const LONGEST_NAME: usize = 20;

/// The groups, divided so that each part fits the page next to names of this width.
fn divided(groups: &[Group], names: usize) -> Vec<&[Group]> {
    let width = |group: &Group| {
        let cell = |text: &String| text.split('±').map(|part| part.chars().count()).max().unwrap_or_default();
        let column = |column: &giveway_measure::figures::TextColumn| {
            let texts = column.heading.iter().chain(&column.cells).map(cell);
            texts.max().unwrap_or_default() + GAP
        };
        let columns: usize = group.columns.iter().map(column).sum();
        columns.max(group.title.chars().count()) + GAP
    };
    let mut parts = Vec::new();
    let (mut from, mut used) = (0, names);
    for (at, group) in groups.iter().enumerate() {
        if at > from && used + width(group) > WIDTH {
            parts.push(&groups[from..at]);
            (from, used) = (at, names);
        }
        used += width(group);
    }
    parts.push(&groups[from..]);
    parts
}

/// These groups of all rows.
fn band(groups: &[Group], rows: &[(&Folder, &DisciplineRow)], disciplines: &Disciplines) -> Band {
    let firsts: Vec<bool> =
        groups.iter().flat_map(|group| (0..group.columns.len()).map(|at| at == 0)).collect();
    let columns: Vec<_> = groups.iter().flat_map(|group| &group.columns).collect();
    Band {
        rows: rows
            .iter()
            .enumerate()
            .map(|(at, (folder, row))| RowView {
                folder: folder.name.clone(),
                qdisc: row.qdisc.clone(),
                colour: disciplines.find(&row.qdisc).1.colour.clone(),
                cells: columns
                    .iter()
                    .zip(&firsts)
                    .map(|(column, first)| cell(&column.cells[at], *first))
                    .collect(),
            })
            .collect(),
        columns: columns
            .iter()
            .zip(&firsts)
            .map(|(column, first)| {
                let [title, unit] = column.heading.clone();
                ColumnView { title, unit, first: *first }
            })
            .collect(),
        groups: groups
            .iter()
            .map(|group| GroupView { title: group.title.to_string(), columns: group.columns.len() })
            .collect(),
    }
}

/// Splits a text into the mean and its interval, which is shown in a smaller font.
fn cell(text: &str, first: bool) -> CellView {
    let (mean, half) =
        text.split_once('±').map_or((text, String::new()), |(mean, half)| (mean, format!("± {half}")));
    CellView { mean: mean.to_owned(), half, first }
}
