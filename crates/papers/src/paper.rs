//! A paper: what is run, what is drawn, and what it leaves open.

use std::collections::BTreeMap;
use std::path::Path;

use giveway_qdisc::Rate;
use serde::Deserialize;

use crate::claim::{Claim, Claims, Test};
use crate::cost;
use crate::curve::Curve;
use crate::fact::{Measured, MeasuredFile};
use crate::family::{self, AT};
use crate::formula::Formula;
use crate::measure::{Measure, MeasuredElsewhere};
use crate::{SHIPPED, Shipped};

/// A paper with its claims, read and checked.
#[derive(Clone, Debug)]
pub struct Paper {
    /// How it is called.
    pub id: String,
    pub(crate) about: About,
    pub(crate) claims: Vec<Claim>,
    /// The scenarios that experiments name.
    pub(crate) scenarios: BTreeMap<String, String>,
    /// What was measured where a study cannot go: `measured.toml`, where there is one.
    pub(crate) measured: Vec<Measured>,
}

/// Why a paper cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperError(pub String);

impl std::fmt::Display for PaperError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for PaperError {}

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub title: String,
    pub authors: String,
    pub published: String,
    #[serde(default)]
    pub doi: Option<String>,
    /// What it is about, in our words.
    pub about: String,
    /// What the verdicts come to: paragraphs, parted by empty lines.
    #[serde(default)]
    pub conclusion: String,
    /// How many seeds, of everything that is not said to be run with few.
    pub seeds: u32,
    /// What it leaves open.
    #[serde(default)]
    pub decision: Vec<Decision>,
    /// Disciplines by the name that claims and figures use; `{limit}` and `{at}` stand for the experiment's.
    pub disciplines: BTreeMap<String, String>,
    /// Other decisions that could have been taken. The first is the one that verdicts are about.
    pub variant: Vec<Variant>,
    pub experiment: Vec<Experiment>,
    #[serde(default)]
    pub figure: Vec<Figure>,
    #[serde(default)]
    pub section: Vec<Section>,
}

/// Something that the paper leaves open, and what we chose before seeing results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    pub what: String,
    pub chosen: String,
    pub why: String,
}

/// Another decision that could have been taken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub id: String,
    pub name: String,
    /// Its name where there is little room.
    pub short: String,
    /// What it changes in a scenario, as `giveway run --set` would.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A scenario with changes, and who is compared in it; as it is written, perhaps a family of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    pub id: String,
    /// What it is called at an axis.
    pub name: String,
    /// What it is called in a sentence, where that is not enough.
    #[serde(default)]
    pub place: Option<String>,
    /// Empty where it times what a packet costs.
    #[serde(default)]
    pub scenario: String,
    #[serde(default)]
    pub cost: Option<cost::Written>,
    #[serde(default)]
    pub set: Vec<String>,
    /// The buffer, for every discipline that asks for it.
    #[serde(default)]
    pub limit: String,
    pub disciplines: Vec<String>,
    /// Whom the paper does not compare, and a reader of today would.
    #[serde(default)]
    pub beyond: Vec<String>,
    pub variants: Vec<String>,
    /// Variants that are run with three seeds only, because the runs are long.
    #[serde(default)]
    pub few: Vec<String>,
    /// How long it lasts in a quick study, with the warm-up that its scenario has; without it, it is left out of one.
    #[serde(default)]
    pub quick: Option<String>,
    /// The fair share of each of the flows that measures compare with it.
    #[serde(default)]
    pub ideal: Option<Rate>,
    /// Its points, where it is a family; none once the paper is read.
    #[serde(default)]
    pub point: Vec<family::Point>,
    /// Of which family it is a point.
    #[serde(skip)]
    pub of: Option<family::Place>,
}

/// A figure of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Its number in the paper.
    pub id: String,
    pub title: String,
    /// What it shows, and what the paper says about it.
    pub caption: String,
    /// Whether it stands in the book, as a picture beside the page: `cargo xtask papers` draws it.
    #[serde(default)]
    pub book: bool,
    /// None where there is nothing to draw: a table of which claims have every number.
    #[serde(default)]
    pub panel: Vec<Panel>,
}

impl Figure {
    /// What stands above it: a table is no figure.
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
    /// One, or those that stand side by side at the axis. A family is all its points.
    pub experiments: Vec<String>,
    /// Variants that stand side by side at the axis of bars, in place of experiments and whatever the section's.
    #[serde(default)]
    pub variants: Vec<String>,
    pub disciplines: Vec<String>,
    pub curve: Curve,
    /// Closed forms beside an `over` curve.
    #[serde(default)]
    pub formulas: Vec<Formula>,
}

/// A part of the report: the same figures under another assumption.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub title: String,
    pub text: String,
    pub variant: String,
    pub figures: Vec<String>,
    /// Whether those are drawn, too, whom the paper does not compare.
    #[serde(default)]
    pub beyond: bool,
}

/// Seeds of what is run with few.
const FEW: u32 = 3;

impl Paper {
    /// The paper of this name, or in this folder.
    ///
    /// # Errors
    /// That there is none, or what is wrong with it.
    pub fn find(name: &str) -> Result<Paper, PaperError> {
        if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.id == name) {
            return Paper::shipped(shipped);
        }
        let folder = Path::new(name);
        if folder.join("paper.toml").is_file() {
            return Paper::in_folder(folder);
        }
        let known: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.id).collect();
        Err(PaperError(format!(
            "there is no paper \"{name}\", and no folder of that name with a paper.toml; there are: {}",
            known.join(", ")
        )))
    }

    /// One that is shipped.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn shipped(shipped: &Shipped) -> Result<Paper, PaperError> {
        let file = |name: &str| {
            let found = shipped.files.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("there is no file {name}"))
        };
        Paper::read(shipped.id, &file)
    }

    /// One in a folder.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn in_folder(folder: &Path) -> Result<Paper, PaperError> {
        let file = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        };
        let id = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Paper::read(&id, &file)
    }

    fn read(id: &str, file: &dyn Fn(&str) -> Result<String, String>) -> Result<Paper, PaperError> {
        let wrong = |name: &str, why: String| PaperError(format!("{id}/{name}: {why}"));
        let about = file("paper.toml").map_err(PaperError)?;
        let mut about: About =
            toml::from_str(&about).map_err(|error| wrong("paper.toml", error.to_string()))?;
        about.expand().map_err(|why| wrong("paper.toml", why))?;
        let claims = file("claims.toml").map_err(PaperError)?;
        let claims: Claims =
            toml::from_str(&claims).map_err(|error| wrong("claims.toml", error.to_string()))?;
        about.check().map_err(|why| wrong("paper.toml", why))?;
        let claims = claims.expand(&about).map_err(|why| wrong("claims.toml", why))?;
        let mut scenarios = BTreeMap::new();
        for experiment in about.experiment.iter().filter(|experiment| experiment.cost.is_none()) {
            let text = file(&experiment.scenario).map_err(PaperError)?;
            scenarios.insert(experiment.scenario.clone(), text);
        }
        // Few papers have any.
        let measured = match file("measured.toml") {
            Ok(text) => {
                let read = toml::from_str::<MeasuredFile>(&text);
                read.map_err(|error| wrong("measured.toml", error.to_string()))?.measured
            }
            Err(_) => Vec::new(),
        };
        for value in
            claims.iter().flat_map(|claim| claim.tests.iter().chain(&claim.shown)).flat_map(Test::values)
        {
            if let Measure::MeasuredElsewhere(MeasuredElsewhere { what }) = &value.measure
                && !measured.iter().any(|measured| measured.what == *what)
            {
                return Err(wrong("claims.toml", format!("measured.toml has no \"{what}\"")));
            }
        }
        Ok(Paper { id: id.to_owned(), about, claims, scenarios, measured })
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.about.title
    }
    /// Who wrote it, and where it stands.
    pub fn reference(&self) -> String {
        format!("{}, {}", self.about.authors, self.about.published)
    }
    /// How many claims it has.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }
    /// The numbers of its figures.
    pub fn figures(&self) -> impl Iterator<Item = &str> {
        self.about.figure.iter().map(|figure| figure.id.as_str())
    }
}

impl About {
    /// Families become their points, in experiments and in figures.
    fn expand(&mut self) -> Result<(), String> {
        self.experiment = family::expand(std::mem::take(&mut self.experiment))?;
        let mut figures = std::mem::take(&mut self.figure);
        for figure in &mut figures {
            for panel in &mut figure.panel {
                panel.experiments =
                    self.each(&panel.experiments).map_err(|why| format!("figure {}: {why}", figure.id))?;
            }
        }
        self.figure = figures;
        Ok(())
    }

    /// Every name that is used is there.
    fn check(&self) -> Result<(), String> {
        if self.variant.is_empty() {
            return Err("it has no [[variant]]: one is needed, which verdicts are about".to_owned());
        }
        for experiment in &self.experiment {
            let whom = format!("experiment \"{}\"", experiment.id);
            if experiment.scenario.is_empty() == experiment.cost.is_none() {
                return Err(format!(
                    "{whom} needs a scenario, or a cost such as {{ flows = \"100\", bytes = \"1000\" }}"
                ));
            }
            for name in experiment.disciplines.iter().chain(&experiment.beyond) {
                if !self.disciplines.contains_key(name) {
                    return Err(format!(
                        "{whom} names the discipline \"{name}\", which [disciplines] does not have"
                    ));
                }
                if experiment.of.is_none() && self.disciplines[name].contains(AT) {
                    return Err(format!(
                        "{whom} has no points, and the discipline \"{name}\" wants their number ({AT})"
                    ));
                }
            }
            for id in experiment.variants.iter().chain(&experiment.few) {
                self.variant(id)
                    .ok_or_else(|| format!("{whom} names the variant \"{id}\", which there is not"))?;
            }
            if experiment.variants.first().map(String::as_str)
                != self.variant.first().map(|first| first.id.as_str())
            {
                return Err(format!("{whom} must begin with the first variant: verdicts are about that"));
            }
        }
        for figure in &self.figure {
            for panel in &figure.panel {
                self.check_panel(panel)
                    .map_err(|why| format!("figure {}, panel \"{}\": {why}", figure.id, panel.title))?;
            }
        }
        for section in &self.section {
            self.variant(&section.variant).ok_or_else(|| {
                format!("section \"{}\" names the variant \"{}\"", section.title, section.variant)
            })?;
            for id in &section.figures {
                self.figure(id).ok_or_else(|| format!("section \"{}\" names figure {id}", section.title))?;
            }
        }
        Ok(())
    }

    fn check_panel(&self, panel: &Panel) -> Result<(), String> {
        let one = panel.experiments.len() == 1;
        if panel.experiments.is_empty() || !(one || panel.curve.takes_several()) {
            return Err("it needs one experiment; bars, over and trade may have several".to_owned());
        }
        let bars_of_one = one && matches!(panel.curve, Curve::Bars { .. });
        if !(panel.variants.is_empty() || bars_of_one) {
            return Err("variants stand side by side in bars of one experiment".to_owned());
        }
        for id in &panel.experiments {
            let experiment = self.experiment(id).expect("families and experiments were found");
            if let Some(other) = panel.disciplines.iter().find(|name| !experiment.disciplines.contains(name))
            {
                return Err(format!("experiment \"{id}\" has no discipline \"{other}\""));
            }
            if let Some(base) =
                panel.curve.relative_to().filter(|base| !experiment.disciplines.contains(base))
            {
                return Err(format!("experiment \"{id}\" has no discipline \"{base}\" to be relative to"));
            }
            if let Some(other) = panel.variants.iter().find(|name| !experiment.variants.contains(name)) {
                return Err(format!("experiment \"{id}\" has no variant \"{other}\""));
            }
            if !panel.formulas.is_empty() && !matches!(panel.curve, Curve::Over { .. }) {
                return Err("formulas stand beside curves of the kind over".to_owned());
            }
            if matches!(panel.curve, Curve::Over { .. }) && experiment.of.is_none() {
                return Err(format!(
                    "experiment \"{id}\" is no point of a family, so it has no place on an axis"
                ));
            }
            panel.curve.measures().into_iter().try_for_each(|measure| measure.check(experiment))?;
        }
        Ok(())
    }

    pub fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiment.iter().find(|experiment| experiment.id == id)
    }
    pub fn variant(&self, id: &str) -> Option<&Variant> {
        self.variant.iter().find(|variant| variant.id == id)
    }
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figure.iter().find(|figure| figure.id == id)
    }
    /// The one that verdicts are about.
    pub fn main(&self) -> &str {
        &self.variant[0].id
    }
    /// A discipline as it is spelled in an experiment.
    pub fn spec(&self, discipline: &str, experiment: &Experiment) -> String {
        let spec = self.disciplines[discipline].replace("{limit}", &experiment.limit);
        match experiment.along() {
            Some(at) => spec.replace(AT, &at.to_string()),
            None => spec,
        }
    }
}

impl Experiment {
    /// How many seeds a variant of it is run with, where all are run with `seeds`.
    pub fn seeds(&self, variant: &str, seeds: u32) -> u32 {
        if self.few.iter().any(|few| few == variant) { seeds.min(FEW) } else { seeds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scope, Study};

    #[test]
    fn every_shipped_paper_is_right() {
        for shipped in SHIPPED {
            let paper = Paper::shipped(shipped).unwrap();
            assert!(paper.claims() > 0 && paper.figures().count() > 0);
            let found = Paper::find(shipped.id).unwrap();
            assert_eq!((found.id.as_str(), found.claims()), (shipped.id, paper.claims()));
            // Its scenarios are right under every variant, and have the traffic that it measures.
            let study = Study::new(paper, Scope::default()).unwrap();
            assert!(!study.jobs().is_empty());
        }
    }

    #[test]
    fn mistakes_are_named() {
        let files = SHIPPED[0].files;
        let with = |from: &str, to: &str| {
            let file = |name: &str| {
                let (_, text) = files.iter().find(|(known, _)| *known == name).ok_or("no such file")?;
                Ok(text.replacen(from, to, 1))
            };
            Paper::read("efd", &file).unwrap_err().0
        };
        assert!(
            with("drr = ", "dwrr = ").contains("names the discipline \"drr\""),
            "{}",
            with("drr = ", "dwrr = ")
        );
        let both = with("experiments = [\"load-8\"]", "experiments = [\"load-8\", \"load-15\"]");
        assert!(both.contains("figure 1b, panel \"EFD, 8 Mbit/s\": it needs one experiment"), "{both}");
        assert!(with("experiments = [\"load-8\"]", "experiments = []").contains("it needs one experiment"));
        assert!(with("of = \"efd\"", "of = \"edf\"").contains("no discipline \"edf\""));
        assert!(with("doi = ", "dio = ").contains("unknown field `dio`"));
        assert!(Paper::find("edf").unwrap_err().0.contains("there are: efd"));
    }
}
