//! The data of a figure, for programs that draw it themselves: what the page draws, and the bands of claims.

use giveway_document::{Axis, Mark, Panel as Drawn, Series};
use serde::Serialize;

use crate::about::{Panel, Section};
use crate::claim::{Against, Claim, Experiments, How, Test, Value};
use crate::curve::Curve;
use crate::drawing;
use crate::measure::Measure;
use crate::study::{Results, Study};
use crate::verdict::{Judged, JudgedTest, flowing, judge};

/// A figure or table of a paper, as our results have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureData {
    /// The name of the paper.
    pub paper: String,
    /// The number of the figure in the paper.
    pub id: String,
    /// Its heading, with the number.
    pub heading: String,
    /// The content of the figure, and the statement of the paper about it.
    pub caption: String,
    /// The panels: those under the judged variant first. None for a table whose numbers are all in claims.
    pub panels: Vec<PanelData>,
    /// The claims of the paper about the figure, with the paper's words and our verdicts.
    pub claims: Vec<Judged>,
}

/// A pair of axes with its series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PanelData {
    /// The title; may be empty.
    pub title: String,
    /// The title of the section that draws it.
    pub section: String,
    /// The identifier of the variant that it is drawn under. Bars of several variants have their names at the
    /// axis.
    pub variant: String,
    /// The kind of the curve, as `paper.toml` has it: "bars", "over", "trade", "flow_rates", "progress",
    /// "flow_table", "flow_table_histogram", "incomplete", "response", "fragments", "queue" or "gauge".
    pub curve: &'static str,
    /// The mark of the series: "line", "steps" (a value holds until the next point), "points" or "bars".
    pub mark: &'static str,
    /// The horizontal axis.
    pub x: AxisData,
    /// The vertical axis.
    pub y: AxisData,
    /// The series.
    pub series: Vec<SeriesData>,
    /// The numbers of claims that are points of this panel.
    pub stated: Vec<StatedData>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AxisData {
    /// The title, with the unit.
    pub title: String,
    /// The unit, if the title has one in brackets at its end.
    pub unit: Option<String>,
    /// True for a logarithmic axis.
    pub logarithmic: bool,
    /// The labels at 0, 1, 2 and so on; empty for an axis with numbers.
    pub categories: Vec<String>,
}

/// A series of points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesData {
    /// The name in claims and figures: of a discipline, a formula or a line.
    pub name: String,
    /// The spec of the discipline; `None` for a line that is not measured.
    pub discipline: Option<String>,
    /// The kind: "measured", "formula" or "reference", such as the fair share.
    pub kind: &'static str,
    /// The horizontal positions.
    pub x: Vec<f64>,
    /// The values.
    pub y: Vec<f64>,
    /// Half of the width of the 95 % interval of each value, over the seeds; `None` where all seeds agree, or
    /// there is one.
    pub half_width: Vec<Option<f64>>,
}

/// A number that a claim states about a point of a panel, in the units of the axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatedData {
    /// The identifier of the claim, whose words are in [`FigureData::claims`].
    pub claim: String,
    /// The paper's number or word.
    pub paper: String,
    /// The name of the series.
    pub series: String,
    /// The horizontal position.
    pub x: f64,
    /// The lower end of the band.
    pub at_least: Option<f64>,
    /// The upper end of the band.
    pub at_most: Option<f64>,
    /// Our value.
    pub ours: Option<f64>,
    /// Half of the width of its 95 % interval.
    pub half_width: Option<f64>,
    /// True if the value and enough seeds are in the band; `None` without a value.
    pub holds: Option<bool>,
}

impl Study {
    /// The numbers of the figures and tables of the paper that the study draws.
    pub fn figure_ids(&self) -> Vec<&str> {
        let all = self.paper.about.figure.iter().map(|figure| &*figure.id);
        all.filter(|id| self.scope.figure.as_ref().is_none_or(|only| only == id)).collect()
    }

    /// The data of a figure; `None` if the paper has no such figure, or the study does not draw it.
    pub fn figure_data(&self, results: &Results, id: &str) -> Option<FigureData> {
        if !self.figure_ids().contains(&id) {
            return None;
        }
        let figure = self.paper.about.figure(id)?;
        let judged = judge(self, results);
        let claims: Vec<(&Claim, &Judged)> =
            self.claims().zip(&judged).filter(|(claim, _)| claim.figure.as_deref() == Some(id)).collect();
        let main = self.paper.about.main();
        let mut sections: Vec<&Section> =
            self.sections().filter(|section| section.figures.iter().any(|drawn| drawn == id)).collect();
        sections.sort_by_key(|section| section.variant != main);
        let mut panels = Vec::new();
        for section in sections {
            for panel in &figure.panel {
                let stated = self.stated(panel, &section.variant, &claims);
                let drawn = drawing::panels(panel, section, self, results);
                panels.extend(drawn.into_iter().map(|drawn| self.panel(panel, section, drawn, &stated)));
            }
        }
        Some(FigureData {
            paper: self.paper.id.clone(),
            id: id.to_owned(),
            heading: figure.heading(),
            caption: flowing(&figure.caption),
            panels,
            claims: claims.into_iter().map(|(_, judged)| judged.clone()).collect(),
        })
    }

    fn panel(&self, panel: &Panel, section: &Section, drawn: Drawn, stated: &[StatedData]) -> PanelData {
        let progress = matches!(panel.curve, Curve::Progress { .. });
        let spec = |name: &str| self.paper.about.disciplines.get(name).cloned();
        let series = drawn.series.iter().map(|series| match progress {
            // Each discipline has a panel, and the series are its transfers.
            true => SeriesData::of(series, "measured", spec(&drawn.title)),
            false if !series.discipline.is_empty() => {
                SeriesData::of(series, "measured", Some(series.discipline.clone()))
            }
            false if panel.formulas.iter().any(|formula| formula.name() == series.name) => {
                SeriesData::of(series, "formula", None)
            }
            false => SeriesData::of(series, "reference", None),
        });
        PanelData {
            series: series.collect(),
            title: drawn.title.clone(),
            section: section.title.clone(),
            variant: section.variant.clone(),
            curve: panel.curve.name(),
            mark: match drawn.mark {
                Mark::Line => "line",
                Mark::Steps => "steps",
                Mark::Points => "points",
                Mark::Bars => "bars",
            },
            x: AxisData::of(&drawn.x),
            y: AxisData::of(&drawn.y),
            stated: stated.to_vec(),
        }
    }

    /// The tests of claims whose number is a point of a panel.
    fn stated(&self, panel: &Panel, variant: &str, claims: &[(&Claim, &Judged)]) -> Vec<StatedData> {
        let mut stated = Vec::new();
        for (claim, judged) in claims {
            for (test, result) in claim.tests.iter().zip(&judged.tests) {
                if let Some((x, scale)) = self.place(panel, variant, test) {
                    stated.push(StatedData::of(judged, test, result, x, scale));
                }
            }
        }
        stated
    }

    /// The horizontal position of the number of a test in a panel under the variant `drawn`, and the scale of
    /// the panel; `None` if the panel does not draw it.
    fn place<'a>(&self, panel: &'a Panel, drawn: &str, test: &Test) -> Option<(f64, Scale<'a>)> {
        let (measure, along_family) = match &panel.curve {
            Curve::Bars { measure, .. } => (measure, false),
            Curve::Over { measure, .. } => (measure, true),
            _ => return None,
        };
        let Test { value, against, .. } = test;
        let Value { experiments: Experiments::One(experiment), discipline, variant, .. } = value else {
            return None;
        };
        if value.measure != *measure || !panel.disciplines.contains(discipline) {
            return None;
        }
        let base = panel.curve.relative_to();
        match (base, against) {
            (None, None) => {}
            (Some(base), Some(Against { how: How::Over, value: other }))
                if other.discipline == *base
                    && Value { discipline: discipline.clone(), ..other.clone() } == *value => {}
            _ => return None,
        }
        let variant = variant.as_deref().unwrap_or(self.paper.about.main());
        let place = panel.experiments.iter().position(|id| id == experiment)?;
        let x = if !panel.variants.is_empty() {
            (place == 0).then_some(panel.variants.iter().position(|id| id == variant)? as f64)?
        } else if variant != drawn {
            return None;
        } else if along_family {
            self.paper.about.experiment(experiment)?.along()?
        } else {
            place as f64
        };
        Some((x, Scale { measure, relative: base.is_some() }))
    }
}

/// The scale of the vertical axis.
#[derive(Clone, Copy)]
struct Scale<'a> {
    measure: &'a Measure,
    /// True if the axis has the change against a discipline, in percent.
    relative: bool,
}

impl Scale<'_> {
    /// A number as it is drawn.
    fn drawn(self, number: f64) -> f64 {
        if self.relative { (number - 1.0) * 100.0 } else { number / self.measure.unit().scale() }
    }

    /// A difference of numbers as it is drawn.
    fn width(self, width: f64) -> f64 {
        if self.relative { width * 100.0 } else { width / self.measure.unit().scale() }
    }
}

impl StatedData {
    fn of(judged: &Judged, test: &Test, result: &JudgedTest, x: f64, scale: Scale<'_>) -> StatedData {
        StatedData {
            claim: judged.id.clone(),
            paper: judged.paper.clone(),
            series: test.value.discipline.clone(),
            x,
            at_least: test.at_least.map(|least| scale.drawn(least)),
            at_most: test.at_most.map(|most| scale.drawn(most)),
            ours: result.mean.map(|mean| scale.drawn(mean)),
            half_width: result.ci95.map(|width| scale.width(width)),
            holds: result.holds,
        }
    }
}

impl SeriesData {
    fn of(series: &Series, kind: &'static str, discipline: Option<String>) -> SeriesData {
        SeriesData {
            name: series.name.clone(),
            discipline,
            kind,
            x: series.points.iter().map(|point| point.x).collect(),
            y: series.points.iter().map(|point| point.y).collect(),
            // The lower end of an interval may be cut off at zero, the upper one is not.
            half_width: series
                .points
                .iter()
                .map(|point| (point.high > point.y).then_some(point.high - point.y))
                .collect(),
        }
    }
}

impl AxisData {
    fn of(axis: &Axis) -> AxisData {
        let unit = axis.title.strip_suffix(')').and_then(|title| title.rsplit_once('('));
        AxisData {
            title: axis.title.clone(),
            unit: unit.map(|(_, unit)| unit.to_owned()),
            logarithmic: axis.logarithmic,
            categories: axis.categories.clone(),
        }
    }
}
