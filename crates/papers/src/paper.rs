//! A paper: what is run, what is drawn, and what it leaves open.

use std::collections::BTreeMap;
use std::path::Path;

use crate::about::About;
use crate::claim::{Claim, Claims, Test};
use crate::fact::{Measured, MeasuredFile};
use crate::family;
use crate::measure::{Measure, MeasuredElsewhere};
use crate::shipped::{SHIPPED, Shipped};

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Scope, Study};

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
