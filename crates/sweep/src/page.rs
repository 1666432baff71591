//! The report of a sweep: answers, the effect of each key, response curves, heat maps and interactions.

use giveway_document::{
    Axis, Cell, Document, Figure, HeatCell, HeatMap, HeatPanel, Mark, Panel, Part, Point, Series, Shade,
    Sheet,
};
use giveway_measure::{Better, MetricName, better, named, short_names};
use giveway_qdisc::Quantity;

use crate::answers::answers;
use crate::data::{At, Contender, Data};
use crate::effects::{Effect, Index, effects, over_seeds, responses};
use crate::labels;
use crate::points::PointTable;
use crate::ranks::winners;

/// Maximum number of pairs of keys with heat maps and interaction plots: the pairs of the strongest keys.
const MAX_PAIRS: usize = 3;

/// Maximum number of levels of a key in a heat map or an interaction plot. More would not be readable.
const MAX_LEVELS: usize = 24;

/// Maximum number of lines of an interaction plot.
const MAX_LINES: usize = 6;

/// The report of the metrics, each of which was read from the same data set. The first shows all figures.
pub fn page(metrics: &[Data]) -> Document {
    let Some(data) = metrics.first() else { return Document::default() };
    let manifest = &data.manifest;
    let mut parts = Vec::new();
    for data in metrics {
        parts.extend(of_metric(data));
    }
    parts.push(Part::Heading("Provenance".to_owned()));
    parts.push(Part::Table(Sheet {
        caption: String::new(),
        head: vec!["what".to_owned(), "value".to_owned()],
        rows: provenance(data),
    }));
    Document {
        title: if manifest.title.is_empty() { "Sweep".to_owned() } else { manifest.title.clone() },
        subtitle: format!("sweep over {}", manifest.axes.join(", ")),
        parts,
    }
}

fn provenance(data: &Data) -> Vec<Vec<Cell>> {
    let manifest = &data.manifest;
    let row = |what: &str, value: String| vec![Cell::plain(what), Cell::plain(value)];
    let points: usize =
        data.disciplines.iter().map(|contender| contender.points.len()).max().unwrap_or_default();
    let complete = if manifest.complete { "complete" } else { "not complete: trials are missing" };
    vec![
        row("command", manifest.created_by.clone()),
        row("version", manifest.version.clone()),
        row("design", format!("{}, {points} points", manifest.design)),
        row("disciplines", manifest.disciplines.join(", ")),
        row("seeds", format!("{} ({complete})", data.seeds.len())),
    ]
}

/// The part of the page about one metric.
fn of_metric(data: &Data) -> Vec<Part> {
    let names: Vec<&str> = data.disciplines.iter().map(|contender| contender.name.as_str()).collect();
    let names = short_names(&names);
    let found: Vec<Vec<Effect>> = data.disciplines.iter().map(|contender| effects(data, contender)).collect();
    let mut parts = vec![Part::Heading(data.metric.clone())];
    parts.extend(PointTable::of(data).map(|table| Part::Table(table.sheet())));
    parts.push(Part::List(answers(data)));
    if let Some(MetricName { definition, .. }) = named(&data.metric) {
        parts.push(Part::Text(definition.description.to_owned()));
    }
    parts.push(importance(data, &names, &found));
    parts.push(Part::Figure(curves(data, &names)));
    for (first, second) in pairs(data, &found) {
        parts.extend(best_map(data, &names, (first, second)).map(Part::Heat));
        parts.push(Part::Heat(value_maps(data, &names, (first, second))));
        parts.push(Part::Figure(interaction(data, &names, (first, second))));
    }
    parts
}

/// An index with its interval.
fn cell(index: Index) -> Cell {
    Cell::plain(labels::percent_within(index.value, index.interval))
}

/// The table of Sobol indices.
fn importance(data: &Data, names: &[String], found: &[Vec<Effect>]) -> Part {
    let mut rows = Vec::new();
    for (name, effects) in names.iter().zip(found) {
        for effect in effects {
            rows.push(vec![
                Cell::plain(name.clone()),
                Cell::plain(data.axes[effect.axis].key.clone()),
                cell(effect.first),
                effect.total.map_or_else(|| Cell::plain("-"), cell),
            ]);
        }
    }
    Part::Table(Sheet {
        caption: format!(
            "Sobol indices of {}: the share of its variance over the points that a key explains alone, and together with other \
             keys. Intervals of 95 %.",
            data.metric
        ),
        head: ["discipline", "key", "alone", "with others"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// The title of a key's axis.
fn titled(data: &Data, axis: usize) -> String {
    let varied = &data.axes[axis];
    match varied.unit {
        Some("bit/s") => format!("{} (Mbit/s)", varied.key),
        Some("s") => format!("{} (ms)", varied.key),
        Some("1") | None => varied.key.clone(),
        Some(unit) => format!("{} ({unit})", varied.key),
    }
}

/// A value of a key in the unit of its axis.
fn place(data: &Data, axis: usize, level: usize) -> f64 {
    match &data.axes[axis].levels[level] {
        Quantity::Number(number, "bit/s") => number / 1e6,
        Quantity::Number(number, "s") => number * 1e3,
        Quantity::Number(number, _) => *number,
        Quantity::Text(_) => level as f64,
    }
}

/// The horizontal axis of a key. Numbers that span a decade or more are on a logarithmic axis.
fn horizontal(data: &Data, axis: usize) -> Axis {
    let varied = &data.axes[axis];
    let title = titled(data, axis);
    if varied.unit.is_none() {
        let categories = varied.levels.iter().map(labels::value).collect();
        return Axis { title, categories, ..Axis::default() };
    }
    let ends = (place(data, axis, 0), place(data, axis, varied.levels.len() - 1));
    Axis { title, logarithmic: ends.0 > 0.0 && ends.1 / ends.0 >= 10.0, ..Axis::default() }
}

fn vertical(data: &Data) -> Axis {
    let unit = labels::unit_of(&data.metric);
    let title = if unit == "1" { data.metric.clone() } else { format!("{} ({unit})", data.metric) };
    let values: Vec<f64> =
        data.disciplines.iter().flat_map(|contender| &contender.points).filter_map(At::mean).collect();
    let (low, high) =
        values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)));
    Axis { title, logarithmic: low > 0.0 && high / low >= 20.0, ..Axis::default() }
}

fn point(x: f64, mean: f64, half: Option<f64>) -> Point {
    half.map_or_else(|| Point::new(x, mean), |half| Point::within(x, mean, half))
}

/// A response curve of each discipline for each key.
fn curves(data: &Data, names: &[String]) -> Figure {
    let panel = |axis: usize| Panel {
        title: String::new(),
        x: horizontal(data, axis),
        y: vertical(data),
        mark: Mark::Line,
        series: data
            .disciplines
            .iter()
            .zip(names)
            .filter(|(contender, _)| contender.concerned[axis])
            .map(|(contender, name)| {
                let points = responses(contender, axis, |_| true).into_iter();
                let points = points
                    .map(|response| point(place(data, axis, response.level), response.mean, response.half));
                Series { name: name.clone(), discipline: contender.name.clone(), points: points.collect() }
            })
            .collect(),
    };
    // A drawn key has a value for each point, whose mean is that of one point.
    let axes = (0..data.axes.len()).filter(|axis| data.axes[*axis].levels.len() > 1);
    Figure {
        id: format!("curves-{}", data.metric),
        title: format!("{} by each key", data.metric),
        caption: "Means over all values of the other keys, with 95 % intervals over the seeds.".to_owned(),
        panels: axes.map(panel).collect(),
        columns: 2,
    }
}

/// The pairs of the strongest keys that can be drawn.
fn pairs(data: &Data, found: &[Vec<Effect>]) -> Vec<(usize, usize)> {
    if !data.is_grid() {
        return Vec::new();
    }
    let fits = |axis: &usize| (2..=MAX_LEVELS).contains(&data.axes[*axis].levels.len());
    let strength = |axis: usize| {
        let of = |effects: &Vec<Effect>| {
            let effect = effects.iter().find(|effect| effect.axis == axis);
            effect.map_or(0.0, |effect| effect.total.unwrap_or(effect.first).value)
        };
        found.iter().map(of).fold(0.0, f64::max)
    };
    let mut axes: Vec<usize> = (0..data.axes.len()).filter(fits).collect();
    axes.sort_by(|a, b| strength(*b).total_cmp(&strength(*a)));
    let mut pairs = Vec::new();
    for (rank, second) in axes.iter().enumerate() {
        pairs.extend(axes[..rank].iter().map(|first| (*first, *second)));
    }
    pairs.truncate(MAX_PAIRS);
    pairs
}

fn named_levels(data: &Data, axis: usize) -> Axis {
    let categories = data.axes[axis].levels.iter().map(labels::value).collect();
    Axis { title: data.axes[axis].key.clone(), categories, ..Axis::default() }
}

/// The points of a discipline at a pair of values, over all values of other keys. A key that does not concern
/// the discipline has every value.
fn at(contender: &Contender, pair: [(usize, usize); 2]) -> Vec<&At> {
    let fits =
        |at: &&At| pair.iter().all(|(axis, level)| at.levels[*axis].is_none_or(|known| known == *level));
    contender.points.iter().filter(fits).collect()
}

/// The best discipline at each pair of values.
fn best_map(data: &Data, names: &[String], (first, second): (usize, usize)) -> Option<HeatMap> {
    if data.disciplines.len() < 2 {
        return None;
    }
    let (columns, rows) = (data.axes[first].levels.len(), data.axes[second].levels.len());
    let mut places = Vec::new();
    let mut groups = Vec::new();
    for y in 0..rows {
        for x in 0..columns {
            let group: Vec<Vec<&At>> =
                data.disciplines.iter().map(|contender| at(contender, [(first, x), (second, y)])).collect();
            places.push((x, y));
            groups.push(group);
        }
    }
    let neither = better(&data.metric) == Better::Neither;
    let (first_of, is_first) =
        if neither { ("discipline with the lowest mean", "lowest") } else { ("best discipline", "best") };
    let winners = winners(data, groups)?.groups;
    let cells = places.into_iter().zip(winners).map(|((x, y), winner)| {
        let name = &names[winner.best];
        let others: Vec<String> = winner.equals.iter().map(|other| names[*other].clone()).collect();
        let sure = others.is_empty();
        HeatCell {
            x,
            y,
            text: if sure { name.clone() } else { format!("{name} ≈") },
            about: match sure {
                true => format!("{name} is measurably the {is_first}"),
                false => format!(
                    "{name} has the {is_first} mean, without a measurable difference to {}{}",
                    labels::listed(&others),
                    winner.more_seeds("; ")
                ),
            },
            shade: Shade::Discipline(data.disciplines[winner.best].name.clone()),
        }
    });
    let panel = HeatPanel {
        title: String::new(),
        x: named_levels(data, first),
        y: named_levels(data, second),
        logarithmic: false,
        disciplines: data.disciplines.iter().map(|contender| contender.name.clone()).collect(),
        cells: cells.collect(),
    };
    Some(HeatMap {
        id: format!("best-{}-{first}-{second}", data.metric),
        title: format!("The {first_of} by {} and {}", data.axes[first].key, data.axes[second].key),
        caption: format!(
            "≈ stands for a {is_first} mean that does not differ measurably from another one (paired by seed, times as ratios, \
             all cells corrected together by Holm)."
        ),
        panels: vec![panel],
        columns: 1,
    })
}

/// The mean of each discipline at each pair of values.
fn value_maps(data: &Data, names: &[String], (first, second): (usize, usize)) -> HeatMap {
    let logarithmic = vertical(data).logarithmic;
    let panel = |(contender, name): (&Contender, &String)| {
        let mut cells = Vec::new();
        for y in 0..data.axes[second].levels.len() {
            for x in 0..data.axes[first].levels.len() {
                let Some((mean, half)) = over_seeds(&at(contender, [(first, x), (second, y)])) else {
                    continue;
                };
                let text = labels::of_metric(&data.metric, mean);
                let within = half.map(|half| format!(" ± {}", labels::of_metric(&data.metric, half)));
                let about = format!("{name}: {text}{}", within.unwrap_or_default());
                cells.push(HeatCell { x, y, text, about, shade: Shade::Value(mean) });
            }
        }
        HeatPanel {
            title: name.clone(),
            x: named_levels(data, first),
            y: named_levels(data, second),
            logarithmic,
            disciplines: Vec::new(),
            cells,
        }
    };
    let concerned = |contender: &&Contender| contender.concerned[first] && contender.concerned[second];
    let each = data.disciplines.iter().zip(names).filter(|(contender, _)| concerned(contender));
    HeatMap {
        id: format!("map-{}-{first}-{second}", data.metric),
        title: format!("{} by {} and {}", data.metric, data.axes[first].key, data.axes[second].key),
        caption:
            "Means over the seeds and over all values of the other keys. Darker is higher within a panel."
                .to_owned(),
        panels: each.map(panel).collect(),
        columns: 2,
    }
}

/// Lines of one key for values of another: where they are not parallel, the keys act together.
fn interaction(data: &Data, names: &[String], (first, second): (usize, usize)) -> Figure {
    let levels = data.axes[second].levels.len();
    // The first, the last and some between.
    let lines = levels.min(MAX_LINES);
    let shown: Vec<usize> =
        (0..lines).map(|line| if lines == 1 { 0 } else { line * (levels - 1) / (lines - 1) }).collect();
    let panel = |(contender, name): (&Contender, &String)| Panel {
        title: name.clone(),
        x: horizontal(data, first),
        y: vertical(data),
        mark: Mark::Line,
        series: shown
            .iter()
            .map(|level| {
                let points = responses(contender, first, |at| at.levels[second] == Some(*level)).into_iter();
                let points = points
                    .map(|response| point(place(data, first, response.level), response.mean, response.half));
                Series {
                    name: format!(
                        "{} {}",
                        data.axes[second].key,
                        labels::value(&data.axes[second].levels[*level])
                    ),
                    discipline: String::new(),
                    points: points.collect(),
                }
            })
            .collect(),
    };
    let concerned = |contender: &&Contender| contender.concerned[first] && contender.concerned[second];
    let each = data.disciplines.iter().zip(names).filter(|(contender, _)| concerned(contender));
    Figure {
        id: format!("together-{}-{first}-{second}", data.metric),
        title: format!("{} and {} together", data.axes[first].key, data.axes[second].key),
        caption:
            "A line for each value of the second key. Parallel lines mean that the keys act independently."
                .to_owned(),
        panels: each.map(panel).collect(),
        columns: 2,
    }
}
