//! A paper: reads and checks its files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::about::About;
use crate::claim::{Claim, Claims, Test};
use crate::error::{ContentError, PaperError};
use crate::fact::{Measured, MeasuredFile};
use crate::family;
use crate::measure::{Measure, MeasuredElsewhere};
use crate::shipped::{SHIPPED, Shipped};

/// A paper with its claims, read and checked.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The name of a shipped paper, or of the folder.
    pub id: String,
    pub(crate) about: About,
    pub(crate) claims: Vec<Claim>,
    /// The texts of the scenarios that experiments name, by file name.
    pub(crate) scenarios: BTreeMap<String, String>,
    /// The numbers that were measured outside the study, from `measured.toml`; empty without that file.
    pub(crate) measured: Vec<Measured>,
}

impl Paper {
    /// The shipped paper with this name, or the paper in this folder.
    ///
    /// # Errors
    /// When there is no such paper, or its files are not valid.
    pub fn find(name: &str) -> Result<Paper, PaperError> {
        if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.id == name) {
            return Paper::shipped(shipped);
        }
        let folder = Path::new(name);
        if folder.join("paper.toml").is_file() {
            return Paper::in_folder(folder);
        }
        let known: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.id).collect();
        Err(PaperError::Unknown { name: name.to_owned(), known: known.join(", ") })
    }

    /// Reads a shipped paper.
    ///
    /// # Errors
    /// When its files are not valid.
    pub fn shipped(shipped: &Shipped) -> Result<Paper, PaperError> {
        let file = |name: &str| {
            let found = shipped.files.iter().find(|(known, _)| *known == name);
            let missing = || PaperError::NotShipped { paper: shipped.id.to_owned(), file: name.to_owned() };
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(missing)
        };
        Paper::read(shipped.id, &file)
    }

    /// Reads the paper in a folder.
    ///
    /// # Errors
    /// When a file cannot be read or is not valid.
    pub fn in_folder(folder: &Path) -> Result<Paper, PaperError> {
        let file = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|source| PaperError::Read { path, source })
        };
        let id = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Paper::read(&id, &file)
    }

    fn read(id: &str, file: &dyn Fn(&str) -> Result<String, PaperError>) -> Result<Paper, PaperError> {
        let content = |name: &str| {
            let file = format!("{id}/{name}");
            move |mistake| PaperError::Content { file, source: Box::new(mistake) }
        };
        let mut about: About = parse(id, "paper.toml", &file("paper.toml")?)?;
        about.expand().map_err(content("paper.toml"))?;
        let claims: Claims = parse(id, "claims.toml", &file("claims.toml")?)?;
        about.check().map_err(content("paper.toml"))?;
        let claims = claims.expand(&about).map_err(content("claims.toml"))?;
        let mut scenarios = BTreeMap::new();
        for experiment in about.experiment.iter().filter(|experiment| experiment.cost.is_none()) {
            scenarios.insert(experiment.scenario.clone(), file(&experiment.scenario)?);
        }
        // Few papers have this file.
        let measured = match file("measured.toml") {
            Ok(text) => parse::<MeasuredFile>(id, "measured.toml", &text)?.measured,
            Err(_) => Vec::new(),
        };
        for value in
            claims.iter().flat_map(|claim| claim.tests.iter().chain(&claim.shown)).flat_map(Test::values)
        {
            if let Measure::MeasuredElsewhere(MeasuredElsewhere { what }) = &value.measure
                && !measured.iter().any(|measured| measured.what == *what)
            {
                return Err(content("claims.toml")(ContentError::NotMeasured(what.clone())));
            }
        }
        Ok(Paper { id: id.to_owned(), about, claims, scenarios, measured })
    }

    /// The title of the paper.
    pub fn title(&self) -> &str {
        &self.about.title
    }
    /// The authors, and the place and year of publication.
    pub fn reference(&self) -> String {
        format!("{}, {}", self.about.authors, self.about.published)
    }
    /// The number of claims.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }
    /// The numbers of the figures, in the order of the file.
    pub fn figures(&self) -> impl Iterator<Item = &str> {
        self.about.figure.iter().map(|figure| figure.id.as_str())
    }
}

/// Parses a file of the paper `id`.
fn parse<T: DeserializeOwned>(id: &str, name: &str, text: &str) -> Result<T, PaperError> {
    let syntax = |error| PaperError::Syntax { file: format!("{id}/{name}"), source: Box::new(error) };
    toml::from_str(text).map_err(syntax)
}

impl About {
    /// Replaces families by their points, in experiments and in figures.
    fn expand(&mut self) -> Result<(), ContentError> {
        self.experiment = family::expand(std::mem::take(&mut self.experiment))?;
        let mut figures = std::mem::take(&mut self.figure);
        for figure in &mut figures {
            for panel in &mut figure.panel {
                panel.experiments =
                    self.each(&panel.experiments).map_err(|mistake| mistake.in_figure(&figure.id))?;
            }
        }
        self.figure = figures;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;
    use crate::study::{Scope, Study};

    #[test]
    fn every_shipped_paper_is_valid() {
        for shipped in SHIPPED {
            let paper = Paper::shipped(shipped).unwrap();
            assert!(paper.claims() > 0 && paper.figures().count() > 0);
            let found = Paper::find(shipped.id).unwrap();
            assert_eq!((found.id.as_str(), found.claims()), (shipped.id, paper.claims()));
            // Its scenarios are valid under every variant, and have the traffic that it measures.
            let study = Study::new(paper, Scope::default()).unwrap();
            assert!(!study.jobs().is_empty());
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let files = SHIPPED[0].files;
        let with = |from: &str, to: &str| {
            let file = |name: &str| {
                let missing = PaperError::NotShipped { paper: "efd".to_owned(), file: name.to_owned() };
                let (_, text) = files.iter().find(|(known, _)| *known == name).ok_or(missing)?;
                Ok(text.replacen(from, to, 1))
            };
            chain(&Paper::read("efd", &file).unwrap_err())
        };
        assert!(
            with("drr = ", "dwrr = ").contains("names the discipline \"drr\""),
            "{}",
            with("drr = ", "dwrr = ")
        );
        let both = with("experiments = [\"load-8\"]", "experiments = [\"load-8\", \"load-15\"]");
        assert!(both.contains("figure 1b, panel \"EFD, 8 Mbit/s\": a panel needs one experiment"), "{both}");
        assert!(with("experiments = [\"load-8\"]", "experiments = []").contains("needs one experiment"));
        assert!(with("of = \"efd\"", "of = \"edf\"").contains("no discipline \"edf\""));
        assert!(with("doi = ", "dio = ").contains("unknown field `dio`"));
        assert!(Paper::find("edf").unwrap_err().to_string().contains("there are: efd"));
    }
}
