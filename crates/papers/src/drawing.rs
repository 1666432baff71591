//! Figures from curves.

use std::collections::BTreeMap;

use giveway_document::{Axis, Figure as Drawn, Mark, Panel as Drawing, Point, Series};
use giveway_measure::Estimate;

use crate::about::{Experiment, Figure, Panel, Section};
use crate::curve::{Curve, Data, Held};
use crate::measure::{Measure, Unit, bits_per_s, gauge_words};
use crate::study::{Results, Study};
use crate::verdict::flowing;

/// Maximum number of points of a scatter that are drawn. More would cover each other.
const MAX_POINTS: usize = 1_500;

/// A figure of a section, with all of its runs.
pub(crate) fn figure(
    number: usize,
    figure: &Figure,
    section: &Section,
    study: &Study,
    results: &Results,
) -> Drawn {
    let panels: Vec<Drawing> =
        figure.panel.iter().flat_map(|panel| panels(panel, section, study, results)).collect();
    Drawn {
        id: format!("figure-{number}"),
        title: figure.heading(),
        caption: flowing(&figure.caption),
        columns: if panels.len() > 1 { 2 } else { 1 },
        panels,
    }
}

/// The results that a panel of a figure is drawn from.
struct Source<'a> {
    panel: &'a Panel,
    variant: &'a str,
    disciplines: Vec<&'a String>,
    study: &'a Study,
    results: &'a Results,
}

/// The axes and series of a panel: one pair of axes, or one for each discipline.
pub(crate) fn panels(panel: &Panel, section: &Section, study: &Study, results: &Results) -> Vec<Drawing> {
    let first = study.paper.about.experiment(&panel.experiments[0]).expect("it was checked");
    let beyond = first.beyond.iter().filter(|_| section.beyond);
    let disciplines = panel.disciplines.iter().chain(beyond).collect();
    let source = Source { panel, variant: &section.variant, disciplines, study, results };
    match &panel.curve {
        Curve::Bars { measure, axis, along, log_y, .. } => {
            vec![source.bars(measure, numbers(axis, *log_y), along.as_deref())]
        }
        Curve::Over { measure, axis, along, log_x, log_y, .. } => {
            let known = || study.paper.about.axis_along(&panel.experiments);
            let x = numbers(&along.clone().unwrap_or_else(known), *log_x);
            vec![source.over(measure, x, numbers(axis, *log_y))]
        }
        Curve::Trade { x, y, log_x, log_y } => vec![source.trade((x, *log_x), (y, *log_y))],
        Curve::FlowRates { axis, .. } => vec![source.flow_rates(axis.as_deref())],
        Curve::Progress { .. } => source.progress(),
        curve => vec![source.lines(curve)],
    }
}

impl Source<'_> {
    /// A number of each discipline, side by side for each experiment or variant.
    fn bars(&self, measure: &Measure, y: Axis, along: Option<&str>) -> Drawing {
        let about = &self.study.paper.about;
        let variants = self.panel.variants.iter().map(|id| {
            let short = about.variant(id).expect("it was checked").short.clone();
            (short, &self.panel.experiments[0], id.as_str())
        });
        let experiments =
            self.experiments().map(|experiment| (experiment.name.clone(), &experiment.id, self.variant));
        let groups: Vec<(String, &String, &str)> =
            if self.panel.variants.is_empty() { experiments.collect() } else { variants.collect() };
        let series = self.disciplines.iter().map(|name| {
            let points = groups.iter().enumerate().filter_map(|(at, (_, experiment, variant))| {
                self.point(at as f64, &self.number(experiment, variant, name, measure), measure)
            });
            self.series(name, points.collect())
        });
        // The axis has the names of the groups, and needs a title only if the file has one.
        let title = along.unwrap_or_default().to_owned();
        Drawing {
            title: self.panel.title.clone(),
            series: series.filter(|series| !series.points.is_empty()).collect(),
            x: Axis {
                title,
                categories: groups.into_iter().map(|(name, ..)| name).collect(),
                ..Axis::default()
            },
            y,
            mark: Mark::Bars,
        }
    }

    /// A number of each discipline at the points of a family.
    fn over(&self, measure: &Measure, x: Axis, y: Axis) -> Drawing {
        let series = self.disciplines.iter().map(|name| {
            let points = self.experiments().filter_map(|experiment| {
                let estimate = self.number(&experiment.id, self.variant, name, measure);
                self.point(experiment.along()?, &estimate, measure)
            });
            let mut points: Vec<Point> = points.collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            self.series(name, points)
        });
        let along: Vec<f64> = self.experiments().filter_map(Experiment::along).collect();
        let formulas = self.panel.formulas.iter().map(|formula| Series {
            name: formula.name().to_owned(),
            discipline: String::new(),
            points: points(along.iter().filter_map(|x| Some((*x, formula.at(*x)?)))),
        });
        self.drawing(x, y, Mark::Line, series.chain(formulas).collect())
    }

    /// Two numbers of each discipline, one on each axis, with a point for each experiment.
    fn trade(&self, (x, log_x): (&Measure, bool), (y, log_y): (&Measure, bool)) -> Drawing {
        let series = self.disciplines.iter().map(|name| {
            let points = self.experiments().filter_map(|experiment| {
                let of = |measure| self.number(&experiment.id, self.variant, name, measure);
                self.point(of(x).mean? / x.unit().scale(), &of(y), y)
            });
            self.series(name, points.collect())
        });
        let axis = |measure: &Measure, log| numbers(&measure.unit().titled(&measure.label()), log);
        self.drawing(axis(x, log_x), axis(y, log_y), Mark::Points, series.collect())
    }

    /// The throughput of each flow, next to the fair share.
    fn flow_rates(&self, title: Option<&str>) -> Drawing {
        let drawn = |name: &&String| Some(self.series(name, drawn(self.data(name)?)));
        let mut series: Vec<Series> = self.disciplines.iter().filter_map(drawn).collect();
        let flows = series.iter().flat_map(|series| &series.points).map(|point| point.x).reduce(f64::max);
        let ideal = self.experiments().next().and_then(|experiment| experiment.ideal);
        if let (Some(flows), Some(ideal)) = (flows, ideal) {
            let share = bits_per_s(ideal) / Unit::Rate.scale();
            series.push(Series {
                name: "fair share".to_owned(),
                discipline: String::new(),
                points: points([(1.0, share), (flows, share)]),
            });
        }
        let title = title.map_or_else(|| Unit::Rate.titled("throughput"), str::to_owned);
        self.drawing(axis("flow"), axis(&title), Mark::Line, series)
    }

    fn drawing(&self, x: Axis, y: Axis, mark: Mark, mut series: Vec<Series>) -> Drawing {
        series.retain(|series| !series.points.is_empty());
        Drawing { title: self.panel.title.clone(), x, y, mark, series }
    }

    /// A number of a discipline. In a panel with `relative_to` it is the ratio to the number of that
    /// discipline, which is drawn as a change in percent.
    fn number(&self, experiment: &str, variant: &str, discipline: &str, measure: &Measure) -> Estimate {
        let base = self.panel.curve.relative_to().map(String::as_str);
        self.results.number(experiment, variant, discipline, base, measure)
    }

    /// A mean with its 95 % interval. The interval ends at zero if the number cannot be negative.
    fn point(&self, x: f64, estimate: &Estimate, measure: &Measure) -> Option<Point> {
        if self.panel.curve.relative_to().is_some() {
            let (y, ci) = ((estimate.mean? - 1.0) * 100.0, estimate.ci95.unwrap_or(0.0) * 100.0);
            return Some(Point { x, y, low: y - ci, high: y + ci });
        }
        let scale = measure.unit().scale();
        let (y, ci) = (estimate.mean? / scale, estimate.ci95.unwrap_or(0.0) / scale);
        let low = if measure.is_signed() { y - ci } else { (y - ci).max(0.0) };
        Some(Point { x, y, low, high: y + ci })
    }

    /// The experiments of the panel.
    fn experiments(&self) -> impl Iterator<Item = &Experiment> {
        let about = &self.study.paper.about;
        self.panel.experiments.iter().map(|id| about.experiment(id).expect("it was checked"))
    }

    /// A panel for each discipline, with a line for each transfer.
    fn progress(&self) -> Vec<Drawing> {
        let one = |name: &&String| {
            let lines = match self.data(name)? {
                Data::Lines(lines) => lines,
                _ => return None,
            };
            let series =
                lines.iter().zip(["largest", "second", "third", "fourth", "fifth"]).map(|(line, rank)| {
                    Series {
                        name: rank.to_owned(),
                        discipline: String::new(),
                        points: points(line.iter().copied()),
                    }
                });
            Some(Drawing {
                title: (*name).clone(),
                x: axis("time since the transfer began (s)"),
                y: axis("acknowledged (MB)"),
                mark: Mark::Line,
                series: series.collect(),
            })
        };
        self.disciplines.iter().filter_map(one).collect()
    }

    /// One panel with a line, a step line or points for each discipline.
    fn lines(&self, curve: &Curve) -> Drawing {
        let (x, y, mark) = match curve {
            Curve::FlowTable => (axis("time (s)"), axis("flows"), Mark::Line),
            Curve::FlowTableHistogram => (axis("flows"), axis("share of the time"), Mark::Steps),
            Curve::Incomplete { .. } => {
                (logarithmic("size (segments)"), axis("transfers of up to this size, per run"), Mark::Steps)
            }
            Curve::Response { .. } => {
                (logarithmic("size (segments)"), logarithmic("mean completion time (s)"), Mark::Line)
            }
            Curve::Fragments => (logarithmic("packets"), axis("fragments"), Mark::Points),
            Curve::Queue { unit: Held::Bytes, .. } => (axis("time (s)"), axis("queue (kB)"), Mark::Line),
            Curve::Queue { unit: Held::Packets, .. } => {
                (axis("time (s)"), axis("queue (packets)"), Mark::Line)
            }
            Curve::Gauge { name, axis: title } => {
                let known = || Unit::of_gauge(name).titled(&gauge_words(name));
                (axis("time (s)"), axis(&title.clone().unwrap_or_else(known)), Mark::Line)
            }
            Curve::Progress { .. }
            | Curve::Bars { .. }
            | Curve::Over { .. }
            | Curve::FlowRates { .. }
            | Curve::Trade { .. } => unreachable!("`panels` draws these curves"),
        };
        let series =
            self.disciplines.iter().filter_map(|name| Some(self.series(name, drawn(self.data(name)?))));
        self.drawing(x, y, mark, series.collect())
    }

    fn data(&self, discipline: &str) -> Option<&Data> {
        self.results.data(&self.panel.experiments[0], self.variant, discipline, &self.panel.curve)
    }

    /// A series in the colour of its discipline.
    fn series(&self, name: &str, points: Vec<Point>) -> Series {
        // The spec of the paper, without the buffer of the experiment: a discipline has the same colour in
        // all experiments.
        let discipline = self.study.paper.about.disciplines[name].clone();
        Series { name: name.to_owned(), discipline, points }
    }
}

/// The points of a curve.
fn drawn(data: &Data) -> Vec<Point> {
    match data {
        Data::Points(all) => {
            let step = all.len().div_ceil(MAX_POINTS).max(1);
            points(all.iter().copied().step_by(step))
        }
        Data::Counts(counts) => {
            let all: u64 = counts.values().sum();
            points(shares(counts, all as f64))
        }
        Data::Numbers(numbers, seeds) => {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            let mut up_to: BTreeMap<u64, usize> = BTreeMap::new();
            sorted.iter().enumerate().for_each(|(at, size)| {
                up_to.insert((*size).max(1), at + 1);
            });
            points(up_to.into_iter().map(|(size, count)| (size as f64, count as f64 / f64::from(*seeds))))
        }
        Data::Bins(bins) => {
            let means = bins.iter().map(|(bin, (sum, count))| ((*bin).max(1) as f64, sum / *count as f64));
            points(means)
        }
        Data::Lines(_) | Data::Nothing => Vec::new(),
    }
}

/// A histogram of shares, with at most a hundred bins of equal width.
fn shares(counts: &BTreeMap<u64, u64>, all: f64) -> Vec<(f64, f64)> {
    let (Some(least), Some(most)) = (counts.keys().next(), counts.keys().last()) else { return Vec::new() };
    let width = (most - least).div_ceil(100).max(1);
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for (number, count) in counts {
        *bins.entry((number - least) / width).or_insert(0) += count;
    }
    // A step line needs zeros before, between and after its bins.
    let last = (most - least) / width;
    let position = |bin: u64| (least + bin * width) as f64;
    let mut steps: Vec<(f64, f64)> = Vec::new();
    if *least > 0 {
        steps.push((position(0) - 1.0, 0.0));
    }
    steps.extend((0..=last).map(|bin| (position(bin), bins.get(&bin).copied().unwrap_or(0) as f64 / all)));
    steps.push((position(last + 1), 0.0));
    steps
}

fn points(all: impl IntoIterator<Item = (f64, f64)>) -> Vec<Point> {
    all.into_iter().map(|(x, y)| Point { x, y, low: y, high: y }).collect()
}

fn axis(title: &str) -> Axis {
    Axis { title: title.to_owned(), ..Axis::default() }
}

fn logarithmic(title: &str) -> Axis {
    numbers(title, true)
}

fn numbers(title: &str, logarithmic: bool) -> Axis {
    Axis { logarithmic, ..axis(title) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_begins_and_ends_at_zero() {
        let counts = BTreeMap::from([(3, 1), (5, 3)]);
        assert_eq!(shares(&counts, 4.0), [(2.0, 0.0), (3.0, 0.25), (4.0, 0.0), (5.0, 0.75), (6.0, 0.0)]);
        assert!(shares(&BTreeMap::new(), 0.0).is_empty());
    }

    #[test]
    fn incomplete_transfers_are_counted_per_run() {
        let points: Vec<(f64, f64)> =
            drawn(&Data::Numbers(vec![7, 0, 7, 2], 2)).iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(1.0, 0.5), (2.0, 1.0), (7.0, 2.0)]);
    }
}
