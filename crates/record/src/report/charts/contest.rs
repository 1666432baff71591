//! The matrix of a contest: the share of each sender next to each other one.

use giveway_document::chart::{Chart, Plot};
use giveway_document::columns::number;
use giveway_measure::{Contest, DisciplineRow};
use serde_json::{Value, json};

use super::frame::{Disciplines, data, over_seeds};
use crate::report::read::Folder;

/// The height of a cell, pixels.
const CELL: usize = 34;

pub(super) fn charts(folder: &Folder, disciplines: &Disciplines, contest: &Contest) -> Vec<Chart> {
    let seeds = over_seeds(folder);
    let shares = Matrix {
        title: "Share of each sender beside each other one".to_owned(),
        caption: format!(
            "The share of the row's sender in what arrives from it and the column's sender, which share their own link, in percent \
             ({seeds}). 50 is an equal share."
        ),
        unit: "%",
        scale: json!({ "domain": [0, 50, 100], "range": ["#b35806", "#f7f7f7", "#2166ac"] }),
    };
    let delays = Matrix {
        title: "Median sojourn time on the link of both".to_owned(),
        caption: format!(
            "The median time that packets wait on the link of a pair, in milliseconds ({seeds}). Less is better; a link that is not full \
             has the least."
        ),
        unit: "ms",
        scale: json!({ "type": "sqrt", "range": ["#ffffff", "#f1a340"] }),
    };
    let share = |row: &DisciplineRow| {
        let percent = |share: &Option<f64>| share.map(|share| 100.0 * share);
        contest.shares(row).iter().map(|line| line.iter().map(percent).collect()).collect()
    };
    let delay = |row: &DisciplineRow| {
        let ms = |port: &String| row.mean(&format!("at.{port}.sojourn_p50_s")).map(|time| 1e3 * time);
        contest.ports.iter().map(|line| line.iter().map(ms).collect()).collect()
    };
    let shares = shares.chart(folder, disciplines, contest, &share);
    shares.into_iter().chain(delays.chart(folder, disciplines, contest, &delay)).collect()
}

/// A kind of matrix, drawn for each discipline.
struct Matrix {
    title: String,
    caption: String,
    /// The unit of its numbers.
    unit: &'static str,
    /// The scale of its colours.
    scale: Value,
}

impl Matrix {
    fn chart(
        self,
        folder: &Folder,
        disciplines: &Disciplines,
        contest: &Contest,
        cells: &dyn Fn(&DisciplineRow) -> Vec<Vec<Option<f64>>>,
    ) -> Option<Chart> {
        let mut columns: Vec<_> =
            ["discipline", "row", "column", "value", "text"].map(|name| (name, vec![])).into();
        for row in &folder.table.rows {
            for (sender, line) in contest.senders.iter().zip(cells(row)) {
                for (other, value) in contest.senders.iter().zip(line) {
                    let Some(value) = value else { continue };
                    let qdisc = disciplines.name(&row.qdisc);
                    let cells =
                        [json!(qdisc), json!(sender), json!(other), number(value), json!(narrow(value))];
                    columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
                }
            }
        }
        if columns[0].1.is_empty() {
            return None;
        }
        let names: Vec<&str> = folder.table.rows.iter().map(|row| disciplines.name(&row.qdisc)).collect();
        let panels = self.panels(contest, &names);
        Some(Chart {
            title: self.title,
            caption: self.caption,
            keys: vec![disciplines.key(&folder.disciplines(), false)],
            columns: 2,
            panels,
            data: data([("matrix", columns)]),
            ..Chart::default()
        })
    }

    /// A square for each discipline, two side by side.
    fn panels(&self, contest: &Contest, disciplines: &[&str]) -> Vec<Plot> {
        let axis = |field: &str, title: &str, orient: &str| {
            json!({ "field": field, "type": "nominal", "sort": null, "title": title,
                    "scale": { "domain": contest.senders },
                    "axis": { "orient": orient, "labelAngle": if field == "column" { -40 } else { 0 },
                              "ticks": false, "domain": false } })
        };
        let panel = |name: &&str| {
            let number = json!({ "field": "value", "type": "quantitative", "format": ".3~r" });
            let text = json!({ "field": "text", "type": "nominal" });
            let colour = json!({ "field": "value", "type": "quantitative", "title": self.unit, "scale": self.scale,
                                 "legend": null });
            let tooltip = json!([{ "field": "row", "title": "sender" }, { "field": "column", "title": "beside" }, number]);
            let spec = json!({
                "data": { "name": "matrix" },
                "height": CELL * contest.senders.len(),
                "transform": [{ "filter": { "field": "discipline", "equal": name } }],
                "encoding": { "x": axis("column", "beside", "top"), "y": axis("row", "", "left") },
                "layer": [
                    { "mark": { "type": "rect" }, "encoding": { "color": colour, "tooltip": tooltip } },
                    { "mark": { "type": "text", "fontSize": 10 },
                      "encoding": { "text": text, "color": { "value": "black" } } },
                ],
            });
            Plot { title: (*name).to_owned(), discipline: (*name).to_owned(), spec, ..Plot::default() }
        };
        disciplines.iter().map(panel).collect()
    }
}

/// A number for a narrow cell: at most four characters below 10,000.
fn narrow(value: f64) -> String {
    let decimals = match value {
        value if value < 0.995 => 2,
        value if value < 9.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::narrow;

    #[test]
    fn numbers_fit_a_narrow_cell() {
        assert_eq!(
            [0.0, 0.005_85, 0.994, 0.996, 5.0, 9.96, 52.9, 135.4].map(narrow),
            ["0.00", "0.01", "0.99", "1.0", "5.0", "10", "53", "135"]
        );
    }
}
