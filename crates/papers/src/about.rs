//! The file `paper.toml`: the experiments and figures of a paper, and the decisions that it leaves open.

use std::collections::BTreeMap;

use giveway_qdisc::Rate;
use serde::Deserialize;

use crate::cost;
use crate::curve::Curve;
use crate::formula::Formula;

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub title: String,
    pub authors: String,
    pub published: String,
    #[serde(default)]
    pub doi: Option<String>,
    /// The subject of the paper, in our words.
    pub about: String,
    /// The conclusion from the verdicts: paragraphs, separated by empty lines.
    #[serde(default)]
    pub conclusion: String,
    /// The number of seeds of all variants that are not listed as `few`.
    pub seeds: u32,
    /// The decisions that the paper leaves open.
    #[serde(default)]
    pub decision: Vec<Decision>,
    /// A sentence about when decisions and bands were fixed, if it was not before any result was known.
    #[serde(default)]
    pub decided: Option<String>,
    /// The spec of each discipline, by its name in claims and figures. `{limit}` and `{at}` stand for the
    /// values of the experiment.
    pub disciplines: BTreeMap<String, String>,
    /// The variants: alternative decisions. Verdicts are about the first.
    pub variant: Vec<Variant>,
    pub experiment: Vec<Experiment>,
    #[serde(default)]
    pub figure: Vec<Figure>,
    #[serde(default)]
    pub section: Vec<Section>,
}

/// A decision that the paper leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    pub what: String,
    pub chosen: String,
    pub why: String,
}

/// An alternative decision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub id: String,
    pub name: String,
    /// A short name, for heads of columns.
    pub short: String,
    /// The changes to a scenario, as assignments of `giveway run --set`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A scenario with changes, and the disciplines compared in it; in the file it may be a family.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    pub id: String,
    /// The name at an axis.
    pub name: String,
    /// The name in a sentence; by default the name at an axis.
    #[serde(default)]
    pub place: Option<String>,
    /// The scenario; empty for an experiment that measures the cost of a packet.
    #[serde(default)]
    pub scenario: String,
    #[serde(default)]
    pub cost: Option<cost::Written>,
    #[serde(default)]
    pub set: Vec<String>,
    /// The buffer, for disciplines with `{limit}` in their spec.
    #[serde(default)]
    pub limit: String,
    pub disciplines: Vec<String>,
    /// Modern disciplines that the paper does not compare.
    #[serde(default)]
    pub beyond: Vec<String>,
    pub variants: Vec<String>,
    /// Variants with only three seeds, because their runs are long.
    #[serde(default)]
    pub few: Vec<String>,
    /// The duration in a quick study, with the warm-up of the scenario. A quick study omits experiments
    /// without it.
    #[serde(default)]
    pub quick: Option<String>,
    /// The fair share of each flow, for measures that compare with it.
    #[serde(default)]
    pub ideal: Option<Rate>,
    /// The points of a family; empty once the paper is read.
    #[serde(default)]
    pub point: Vec<Point>,
    /// The family of which it is a point.
    #[serde(skip)]
    pub of: Option<FamilyPoint>,
}

/// A figure of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Its number in the paper.
    pub id: String,
    pub title: String,
    /// The content of the figure, and the statement of the paper about it.
    pub caption: String,
    /// True if the book shows the figure, as a picture that `cargo xtask papers` draws.
    #[serde(default)]
    pub book: bool,
    /// The panels; none for a table whose numbers are all in claims.
    #[serde(default)]
    pub panel: Vec<Panel>,
}

impl Figure {
    /// The heading of the figure or table.
    pub fn heading(&self) -> String {
        match self.id.strip_prefix("table") {
            Some(rest) => format!("Table{rest}: {}", self.title),
            None => format!("Figure {}: {}", self.id, self.title),
        }
    }
}

/// A part of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Panel {
    pub title: String,
    /// One experiment, or several side by side at the axis. A family stands for all its points.
    pub experiments: Vec<String>,
    /// Variants side by side at the axis of bars, in place of experiments and of the variant of the section.
    #[serde(default)]
    pub variants: Vec<String>,
    pub disciplines: Vec<String>,
    pub curve: Curve,
    /// Closed forms next to an `over` curve.
    #[serde(default)]
    pub formulas: Vec<Formula>,
}

/// A part of the report: figures under one variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub title: String,
    pub text: String,
    pub variant: String,
    pub figures: Vec<String>,
    /// True if the disciplines in `beyond` are drawn as well.
    #[serde(default)]
    pub beyond: bool,
}

/// The text that stands for the number of a point.
pub(crate) const AT: &str = "{at}";

/// A point of a family in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    pub at: f64,
    #[serde(default)]
    pub set: Vec<String>,
    #[serde(default)]
    pub limit: Option<String>,
    #[serde(default)]
    pub ideal: Option<Rate>,
}

/// The family of an experiment, and its position on the axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FamilyPoint {
    /// The identifier of the family.
    pub family: String,
    /// The position on the axis.
    pub at: f64,
    /// The name of the family at an axis, with `{at}` for the number.
    pub name: String,
    /// The name of the family in a sentence, with `{at}` for the number.
    pub place: String,
}

/// The number of seeds of variants listed as `few`.
const FEW: u32 = 3;

impl About {
    pub fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiment.iter().find(|experiment| experiment.id == id)
    }
    pub fn variant(&self, id: &str) -> Option<&Variant> {
        self.variant.iter().find(|variant| variant.id == id)
    }
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figure.iter().find(|figure| figure.id == id)
    }
    /// The variant that verdicts are about.
    pub fn main(&self) -> &str {
        &self.variant[0].id
    }
    /// The spec of a discipline in an experiment.
    pub fn spec(&self, discipline: &str, experiment: &Experiment) -> String {
        let spec = self.disciplines[discipline].replace("{limit}", &experiment.limit);
        match experiment.along() {
            Some(at) => spec.replace(AT, &at.to_string()),
            None => spec,
        }
    }
}

impl Experiment {
    /// The number of seeds of a variant, if others have `seeds`.
    pub fn seeds(&self, variant: &str, seeds: u32) -> u32 {
        if self.few.iter().any(|few| few == variant) { seeds.min(FEW) } else { seeds }
    }

    /// The position on the axis of the family.
    pub fn along(&self) -> Option<f64> {
        self.of.as_ref().map(|point| point.at)
    }
}
