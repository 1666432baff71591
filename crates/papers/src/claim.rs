//! Claims: what a paper says, and the tests that decide whether we see the same.
//!
//! A test is about one experiment, or about several at once:
//!
//! ```toml
//! [[claim.test]]                      # with 3 to 6 flows FPIP gives TCP more than CSFQ does, on average
//! across = ["tcp-udp-3", "tcp-udp-4", "tcp-udp-5", "tcp-udp-6"]   # experiments, or a family: all its points
//! fold = "mean"                       # or "max", "min", "slope"
//! measure = { kind = "normalized", source = "tcp" }
//! of = "fpip"
//! over = { of = "csfq" }
//! at_least = 1.0
//! ```
//!
//! Each seed is folded by itself, then compared: here the mean of FPIP over the mean of CSFQ. A seed that lacks one of the
//! experiments has no number.

use serde::Deserialize;

use crate::about::{About, Experiment};
use crate::fact;
use crate::measure::{Fact, Measure};

/// `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    claim: Vec<Written>,
}

/// A claim as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    #[serde(default)]
    figure: Option<String>,
    source: String,
    statement: String,
    paper: String,
    /// Why we see something else, where we do.
    #[serde(default)]
    why: Option<String>,
    /// What there is to say when it reproduces.
    #[serde(default)]
    note: Option<String>,
    /// Why it cannot be tested.
    #[serde(default)]
    not_testable: Option<String>,
    /// A test that names no experiment or no discipline is one for each of these.
    #[serde(default)]
    each: Each,
    #[serde(default)]
    test: Vec<WrittenTest>,
    /// Measurements that show why, or what the note says.
    #[serde(default)]
    shown: Vec<WrittenTest>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Each {
    experiment: Vec<String>,
    of: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTest {
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    /// One, or a family: then it is a test for each of its points.
    #[serde(default)]
    experiment: Option<String>,
    /// Several in one number, and how that comes of theirs.
    #[serde(default)]
    across: Option<Vec<String>>,
    #[serde(default)]
    fold: Option<WrittenFold>,
    #[serde(default)]
    of: Option<String>,
    measure: Measure,
    #[serde(default)]
    over: Option<WrittenValue>,
    #[serde(default)]
    minus: Option<WrittenValue>,
    #[serde(default)]
    at_least: Option<f64>,
    #[serde(default)]
    at_most: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenFold {
    Mean,
    Max,
    Min,
    Slope,
}

/// What it is compared with: as the test's own, but for what is said.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenValue {
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    experiment: Option<String>,
    #[serde(default)]
    across: Option<Vec<String>>,
    #[serde(default)]
    fold: Option<WrittenFold>,
    #[serde(default)]
    of: Option<String>,
    #[serde(default)]
    measure: Option<Measure>,
}

/// What a paper says.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub id: String,
    pub figure: Option<String>,
    /// Where the paper says it.
    pub source: String,
    /// In our words.
    pub statement: String,
    /// The paper's number or word.
    pub paper: String,
    pub why: Option<String>,
    pub note: Option<String>,
    pub not_testable: Option<String>,
    /// All of them must hold.
    pub tests: Vec<Test>,
    /// What shows why it differs, or what the note says.
    pub shown: Vec<Test>,
}

/// A number with a band.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// What it shows, where it stands for a reason.
    pub says: Option<String>,
    /// The variant that it is about; otherwise the one that is judged.
    pub variant: Option<String>,
    pub value: Value,
    /// What it is compared with, and how.
    pub against: Option<Against>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// One number of each run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub place: Place,
    pub discipline: String,
    pub measure: Measure,
    pub variant: Option<String>,
}

/// Where a number is measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    One(String),
    Across(Vec<String>, Fold),
    /// It needs no run.
    Nowhere,
}

/// How the numbers of several experiments become one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fold {
    Mean,
    Max,
    Min,
    /// By least squares, along the axis of their family, where they stand at these places.
    Slope(Vec<f64>),
}

#[derive(Clone, Debug)]
pub(crate) struct Against {
    pub how: How,
    pub value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Divided by it.
    Over,
    /// Less it.
    Minus,
}

impl Claims {
    /// Claims with all their tests, each complete.
    pub fn expand(self, about: &About) -> Result<Vec<Claim>, String> {
        let mut claims: Vec<Claim> = Vec::new();
        for written in self.claim {
            let id = written.id.clone();
            if claims.iter().any(|claim| claim.id == id) {
                return Err(format!("there are two claims \"{id}\""));
            }
            if let Some(figure) = &written.figure
                && about.figure(figure).is_none()
            {
                return Err(format!("claim \"{id}\" is about figure {figure}, which there is not"));
            }
            claims.push(written.expand(about).map_err(|why| format!("claim \"{id}\": {why}"))?);
        }
        Ok(claims)
    }
}

impl Written {
    fn expand(self, about: &About) -> Result<Claim, String> {
        if self.test.is_empty() == self.not_testable.is_none() {
            return Err("it needs tests, or the reason why it is not_testable".to_owned());
        }
        let all = |tests: &[WrittenTest]| -> Result<Vec<Test>, String> {
            let expanded: Result<Vec<Vec<Test>>, String> =
                tests.iter().map(|test| test.expand(&self.each, about)).collect();
            Ok(expanded?.into_iter().flatten().collect())
        };
        let (tests, shown) = (all(&self.test)?, all(&self.shown)?);
        if tests.iter().any(|test| test.at_least.is_none() && test.at_most.is_none()) {
            return Err("a test needs at_least or at_most".to_owned());
        }
        Ok(Claim {
            id: self.id,
            figure: self.figure,
            source: self.source,
            statement: self.statement,
            paper: self.paper,
            why: self.why,
            note: self.note,
            not_testable: self.not_testable,
            tests,
            shown,
        })
    }
}

impl WrittenTest {
    fn expand(&self, each: &Each, about: &About) -> Result<Vec<Test>, String> {
        let alone = self.measure.needs().no_run;
        if alone && (self.experiment.is_some() || self.across.is_some() || self.of.is_some()) {
            return Err(format!("\"{}\" needs no experiment and no discipline", self.measure.words()));
        }
        let places = match (&self.experiment, &self.across) {
            _ if alone => vec![Place::Nowhere],
            (None, None) if each.experiment.is_empty() => return Err("a test names no experiment".to_owned()),
            (None, None) => single(about.each(&each.experiment)?, self.fold)?,
            (Some(one), None) => single(about.each(std::slice::from_ref(one))?, self.fold)?,
            (None, Some(several)) => vec![across(several, self.fold, about)?],
            (Some(_), Some(_)) => return Err("a test has experiment or across, not both".to_owned()),
        };
        let nobody = String::new();
        let disciplines = match &self.of {
            _ if alone => std::slice::from_ref(&nobody),
            Some(one) => std::slice::from_ref(one),
            None if each.of.is_empty() => return Err("a test names no discipline (of)".to_owned()),
            None => &each.of,
        };
        let mut tests = Vec::new();
        for place in places {
            for discipline in disciplines {
                let value = Value {
                    place: place.clone(),
                    discipline: discipline.clone(),
                    measure: self.measure.clone(),
                    variant: self.variant.clone(),
                };
                let against = match (&self.over, &self.minus) {
                    (Some(_), Some(_)) => return Err("a test has over or minus, not both".to_owned()),
                    (Some(other), None) => Some((How::Over, other)),
                    (None, Some(other)) => Some((How::Minus, other)),
                    (None, None) => None,
                };
                let against = against
                    .map(|(how, other)| other.complete(&value, about).map(|value| Against { how, value }));
                let test = Test {
                    says: self.says.clone(),
                    variant: self.variant.clone(),
                    value,
                    against: against.transpose()?,
                    at_least: self.at_least,
                    at_most: self.at_most,
                };
                for value in test.values() {
                    value.check(about)?;
                }
                tests.push(test);
            }
        }
        Ok(tests)
    }
}

impl WrittenValue {
    fn complete(&self, test: &Value, about: &About) -> Result<Value, String> {
        let place = match (&self.experiment, &self.across) {
            (None, None) if self.fold.is_none() => test.place.clone(),
            (None, None) => return Err("fold needs across, which names the experiments".to_owned()),
            (Some(_), Some(_)) => return Err("over and minus have experiment or across, not both".to_owned()),
            (None, Some(several)) => across(several, self.fold, about)?,
            (Some(one), None) => {
                let mut places = single(about.each(std::slice::from_ref(one))?, self.fold)?;
                match (places.pop(), places.is_empty()) {
                    (Some(place), true) => place,
                    _ => {
                        return Err(format!(
                            "over or minus names the family \"{one}\": name one of its points, or all of them with across"
                        ));
                    }
                }
            }
        };
        Ok(Value {
            place,
            discipline: self.of.clone().unwrap_or_else(|| test.discipline.clone()),
            measure: self.measure.clone().unwrap_or_else(|| test.measure.clone()),
            variant: self.variant.clone().or_else(|| test.variant.clone()),
        })
    }
}

/// A place for each experiment.
fn single(experiments: Vec<String>, fold: Option<WrittenFold>) -> Result<Vec<Place>, String> {
    match fold {
        None => Ok(experiments.into_iter().map(Place::One).collect()),
        Some(_) => Err("fold needs across, which names the experiments".to_owned()),
    }
}

/// One place for all experiments.
fn across(several: &[String], fold: Option<WrittenFold>, about: &About) -> Result<Place, String> {
    let ids = about.each(several)?;
    if ids.is_empty() {
        return Err("across names no experiment".to_owned());
    }
    let fold = match fold {
        None => return Err("across needs fold: \"mean\", \"max\", \"min\" or \"slope\"".to_owned()),
        Some(WrittenFold::Mean) => Fold::Mean,
        Some(WrittenFold::Max) => Fold::Max,
        Some(WrittenFold::Min) => Fold::Min,
        Some(WrittenFold::Slope) => {
            let along = |id: &String| {
                let along = about.experiment(id).and_then(Experiment::along);
                along.ok_or_else(|| {
                    format!("a slope needs points of a family, and experiment \"{id}\" is none")
                })
            };
            let along: Vec<f64> = ids.iter().map(along).collect::<Result<_, _>>()?;
            if along.iter().all(|at| *at == along[0]) {
                return Err("a slope needs two points or more".to_owned());
            }
            Fold::Slope(along)
        }
    };
    Ok(Place::Across(ids, fold))
}

impl Place {
    /// Where it is measured.
    pub fn experiments(&self) -> &[String] {
        match self {
            Place::One(id) => std::slice::from_ref(id),
            Place::Across(ids, _) => ids,
            Place::Nowhere => &[],
        }
    }

    /// Its number, of those of the experiments.
    pub fn fold(&self, numbers: &[f64]) -> f64 {
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        match self {
            Place::One(_) | Place::Nowhere => numbers[0],
            Place::Across(_, Fold::Mean) => mean(numbers),
            Place::Across(_, Fold::Max) => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Place::Across(_, Fold::Min) => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Place::Across(_, Fold::Slope(along)) => {
                let middle = mean(along);
                let both = along.iter().zip(numbers);
                let rise: f64 = both.map(|(at, number)| (at - middle) * number).sum();
                rise / along.iter().map(|at| (at - middle) * (at - middle)).sum::<f64>()
            }
        }
    }
}

impl Value {
    fn check(&self, about: &About) -> Result<(), String> {
        let Value { place, discipline, variant, .. } = self;
        if let Measure::Fact(Fact { name, .. }) = &self.measure
            && fact::words(name).is_none()
        {
            return Err(format!("there is no fact \"{name}\""));
        }
        for id in place.experiments() {
            let experiment =
                about.experiment(id).ok_or_else(|| format!("there is no experiment \"{id}\""))?;
            if !experiment.disciplines.contains(discipline) && !experiment.beyond.contains(discipline) {
                return Err(format!("experiment \"{id}\" has no discipline \"{discipline}\""));
            }
            if let Some(variant) = variant
                && !experiment.variants.contains(variant)
            {
                return Err(format!("experiment \"{id}\" has no variant \"{variant}\""));
            }
            self.measure.check(experiment)?;
        }
        Ok(())
    }
}

impl Test {
    /// The values that it takes.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.value).chain(self.against.as_ref().map(|against| &against.value))
    }

    /// Whether a number lies in the band.
    pub fn holds(&self, number: f64) -> bool {
        self.at_least.is_none_or(|least| number >= least) && self.at_most.is_none_or(|most| number <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_numbers_become_one() {
        let fold = |fold: Fold| Place::Across(vec![String::new(); 3], fold).fold(&[1.0, 5.0, 3.0]);
        assert_eq!(fold(Fold::Mean), 3.0);
        assert_eq!(fold(Fold::Max), 5.0);
        assert_eq!(fold(Fold::Min), 1.0);
        // Around (2, 3): ((-1)(-2) + 0 + (1)(0)) / 2.
        assert_eq!(fold(Fold::Slope(vec![1.0, 2.0, 3.0])), 1.0);
        let line = Place::Across(vec![String::new(); 3], Fold::Slope(vec![1.0, 2.0, 5.0]));
        assert!((line.fold(&[10.0, 13.0, 22.0]) - 3.0).abs() < 1e-12);
    }
}
