//! The table of metrics, with the groups, units and digits that the terminal has.

use serde::Serialize;

use super::charts::Disciplines;
use super::read::Folder;
use crate::figures::{Group, groups};
use crate::table::Row;

/// The table as the template takes it.
#[derive(Serialize)]
pub(super) struct View {
    /// Whether rows are told apart by their folder, too.
    several: bool,
    groups: Vec<GroupView>,
    columns: Vec<ColumnView>,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct GroupView {
    title: &'static str,
    columns: usize,
}

#[derive(Serialize)]
struct ColumnView {
    title: String,
    unit: String,
    /// Whether it is the first of its group.
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

/// One table over all folders: a row for each folder and discipline.
pub(super) fn view(folders: &[Folder], disciplines: &Disciplines) -> View {
    let rows: Vec<(&Folder, &Row)> =
        folders.iter().flat_map(|folder| folder.table.rows.iter().map(move |row| (folder, row))).collect();
    let only: Vec<&Row> = rows.iter().map(|(_, row)| *row).collect();
    let groups: Vec<Group> = groups(&only, false);
    let firsts: Vec<bool> =
        groups.iter().flat_map(|group| (0..group.columns.len()).map(|at| at == 0)).collect();
    let columns: Vec<_> = groups.iter().flat_map(|group| &group.columns).collect();
    View {
        several: folders.len() > 1,
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
            .map(|group| GroupView { title: group.title, columns: group.columns.len() })
            .collect(),
    }
}

/// The interval is written apart, so that it can be smaller.
fn cell(text: &str, first: bool) -> CellView {
    let (mean, half) =
        text.split_once('±').map_or((text, String::new()), |(mean, half)| (mean, format!("± {half}")));
    CellView { mean: mean.to_owned(), half, first }
}
