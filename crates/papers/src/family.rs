//! Families of experiments: one experiment at several points along an axis.
//!
//! ```toml
//! [[experiment]]
//! id = "tcp-udp"              # its points are the experiments tcp-udp-2 and tcp-udp-10
//! name = "{at} flows"         # {at} is the number of the point, also in other keys and in disciplines
//! set = ["traffic.udp.flows={at}"]
//! # ... and the other keys of an experiment
//! [[experiment.point]]
//! at = 2
//! ideal = "5 Mbit/s"          # the fair share at this point; the default comes from the experiment
//! [[experiment.point]]
//! at = 10
//! set = ["duration=100 s"]    # after the settings of the experiment
//! limit = "30kb"              # in place of the experiment's
//! ```
//!
//! When a paper is read, the points replace the family: each becomes an ordinary experiment. A figure or
//! claim that names the family means all its points, in their order.

use crate::about::{AT, About, Experiment, FamilyPoint, Point};
use crate::cost;
use crate::error::ContentError;

/// Every experiment, with each family replaced by its points.
pub(crate) fn expand(written: Vec<Experiment>) -> Result<Vec<Experiment>, ContentError> {
    let mut families: Vec<String> = Vec::new();
    let mut all: Vec<Experiment> = Vec::new();
    for experiment in written {
        if experiment.point.is_empty() {
            experiment.check_alone()?;
            all.push(experiment);
            continue;
        }
        families.push(experiment.id.clone());
        for point in &experiment.point {
            all.push(experiment.at(point)?);
        }
    }
    let ids = || all.iter().map(|experiment| &experiment.id).chain(&families);
    match ids().enumerate().find(|(at, id)| ids().take(*at).any(|before| before == *id)) {
        Some((_, id)) => Err(ContentError::TwoExperiments(id.clone())),
        None => Ok(all),
    }
}

impl Experiment {
    /// Checks that an experiment without points does not contain the number of a point.
    fn check_alone(&self) -> Result<(), ContentError> {
        let texts = [&self.id, &self.name, &self.scenario, &self.limit];
        let mut texts = texts.into_iter().chain(&self.place).chain(&self.set);
        match texts.find(|text| text.contains(AT)) {
            Some(text) => {
                let experiment = self.id.clone();
                Err(ContentError::NumberWithoutPoints { experiment, text: text.clone() })
            }
            None => Ok(()),
        }
    }

    /// The experiment at one of the points of this family.
    fn at(&self, point: &Point) -> Result<Experiment, ContentError> {
        if !point.at.is_finite() {
            return Err(ContentError::NotFinite { experiment: self.id.clone(), at: point.at });
        }
        let number = point.at.to_string();
        let here = |text: &String| text.replace(AT, &number);
        let sentence = self.place.as_ref().unwrap_or(&self.name);
        Ok(Experiment {
            id: format!("{}-{number}", self.id),
            name: here(&self.name),
            place: self.place.as_ref().map(here),
            scenario: here(&self.scenario),
            cost: self
                .cost
                .as_ref()
                .map(|cost| cost::Written { flows: here(&cost.flows), bytes: here(&cost.bytes) }),
            set: self.set.iter().chain(&point.set).map(here).collect(),
            limit: here(point.limit.as_ref().unwrap_or(&self.limit)),
            ideal: point.ideal.or(self.ideal),
            point: Vec::new(),
            of: Some(FamilyPoint {
                family: self.id.clone(),
                at: point.at,
                name: self.name.clone(),
                place: sentence.clone(),
            }),
            ..self.clone()
        })
    }
}

impl About {
    /// The experiment with this identifier, or all points of the family with it; `None` if there is neither.
    pub fn experiments(&self, id: &str) -> Option<Vec<&Experiment>> {
        let of_family =
            |experiment: &&Experiment| experiment.of.as_ref().is_some_and(|point| point.family == id);
        let points: Vec<&Experiment> = self.experiment.iter().filter(of_family).collect();
        match self.experiment(id) {
            Some(one) => Some(vec![one]),
            None => Some(points).filter(|points| !points.is_empty()),
        }
    }

    /// The identifiers of experiments, with each family replaced by its points.
    ///
    /// # Errors
    /// The first identifier that does not exist.
    pub fn each(&self, ids: &[String]) -> Result<Vec<String>, ContentError> {
        let mut all = Vec::new();
        for id in ids {
            let found = self.experiments(id).ok_or_else(|| ContentError::UnknownExperiment(id.clone()))?;
            all.extend(found.into_iter().map(|experiment| experiment.id.clone()));
        }
        Ok(all)
    }

    /// The title of the axis of a family: the name of its experiments without the number.
    pub fn axis_along(&self, ids: &[String]) -> String {
        let point = ids.first().and_then(|id| self.experiment(id)?.of.as_ref());
        point.map_or_else(String::new, |point| point.name.replace(AT, " ").trim().to_owned())
    }

    /// Experiments in a sentence: "3 to 6 flows" for consecutive points of a family, otherwise one by one.
    pub fn in_words(&self, ids: &[String]) -> String {
        let one = |id: &String| match self.experiment(id) {
            Some(experiment) => experiment.place.as_ref().unwrap_or(&experiment.name).clone(),
            None => id.clone(),
        };
        let point = |id: &String| self.experiment(id)?.of.clone();
        let points: Option<Vec<FamilyPoint>> = ids.iter().map(point).collect();
        let Some(points) = points.filter(|points| {
            let [first, .., last] = points.as_slice() else { return false };
            points.iter().all(|point| point.family == first.family) && last.place.matches(AT).count() == 1
        }) else {
            return listed(&ids.iter().map(one).collect::<Vec<_>>());
        };
        let numbers: Vec<String> = points.iter().map(|point| point.at.to_string()).collect();
        let family: Vec<&str> = self
            .experiments(&points[0].family)
            .into_iter()
            .flatten()
            .map(|experiment| experiment.id.as_str())
            .collect();
        let follow = numbers.len() > 2
            && family.windows(ids.len()).any(|window| window.iter().zip(ids).all(|(a, b)| a == b));
        let numbers = match numbers.as_slice() {
            [first, .., last] if follow => format!("{first} to {last}"),
            all => listed(all),
        };
        points[0].place.replace(AT, &numbers)
    }
}

/// "1, 2 and 3".
fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}
