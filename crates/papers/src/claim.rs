//! Claims: the statements of a paper, and the tests that decide whether our measurements agree.
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
//! The numbers of each seed are combined first, then compared: here the mean of FPIP is divided by the mean
//! of CSFQ. A seed that lacks one of the experiments has no number.

use serde::Deserialize;

use crate::about::{About, Experiment};
use crate::error::ContentError;
use crate::fact;
use crate::measure::{Fact, Measure};

/// `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    claim: Vec<Written>,
}

/// A claim in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    #[serde(default)]
    figure: Option<String>,
    source: String,
    statement: String,
    paper: String,
    /// The reason of a difference.
    #[serde(default)]
    why: Option<String>,
    /// A note on a claim that reproduces.
    #[serde(default)]
    note: Option<String>,
    /// The reason why the claim cannot be tested.
    #[serde(default)]
    not_testable: Option<String>,
    /// The experiments and disciplines of tests that name none: such a test stands for one with each of
    /// these.
    #[serde(default)]
    each: Each,
    #[serde(default)]
    test: Vec<WrittenTest>,
    /// Measurements that support the reason or the note.
    #[serde(default)]
    shown: Vec<WrittenTest>,
}

/// The experiments and disciplines of tests that name none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Each {
    experiment: Vec<String>,
    of: Vec<String>,
}

/// A test in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTest {
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    /// An experiment, or a family: then the test stands for one at each of its points.
    #[serde(default)]
    experiment: Option<String>,
    /// Several experiments, whose numbers `fold` combines.
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

/// The name of a [`Fold`] in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenFold {
    Mean,
    Max,
    Min,
    Slope,
}

/// The value that a test is compared with. A missing key takes the value of the test.
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

/// A statement of a paper, with its tests.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub id: String,
    pub figure: Option<String>,
    /// The place in the paper.
    pub source: String,
    /// The statement, in our words.
    pub statement: String,
    /// The paper's number or word.
    pub paper: String,
    /// The reason of a difference.
    pub why: Option<String>,
    /// A note on a claim that reproduces.
    pub note: Option<String>,
    /// The reason why the claim cannot be tested.
    pub not_testable: Option<String>,
    /// The tests, all of which must hold.
    pub tests: Vec<Test>,
    /// Measurements that support the reason or the note.
    pub shown: Vec<Test>,
}

/// A number with a band.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// The words in front of the number, for a measurement that supports a reason.
    pub says: Option<String>,
    /// The variant; `None` is the judged one.
    pub variant: Option<String>,
    /// The number that is tested.
    pub value: Value,
    /// The number that it is compared with.
    pub against: Option<Against>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// One number of each seed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// The experiments in which it is measured.
    pub experiments: Experiments,
    /// The name of the discipline; empty for a number that needs no run.
    pub discipline: String,
    /// The kind of the number.
    pub measure: Measure,
    /// The variant; `None` is the judged one.
    pub variant: Option<String>,
}

/// The experiments in which a number is measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Experiments {
    /// One experiment.
    One(String),
    /// Several experiments, whose numbers are combined.
    Across(Vec<String>, Fold),
    /// No experiment: the number needs no run.
    None,
}

/// The combination of the numbers of several experiments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fold {
    /// The arithmetic mean.
    Mean,
    /// The largest number.
    Max,
    /// The smallest number.
    Min,
    /// The slope of a least-squares line over these positions on the axis of their family.
    Slope(Vec<f64>),
}

/// The number that a test is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Against {
    pub how: How,
    pub value: Value,
}

/// The comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Their ratio.
    Over,
    /// Their difference.
    Minus,
}

impl Claims {
    /// Completes the claims: each test has its experiment and its discipline, and exists in the paper.
    ///
    /// # Errors
    /// The first mistake.
    pub fn expand(self, about: &About) -> Result<Vec<Claim>, ContentError> {
        let mut claims: Vec<Claim> = Vec::new();
        for written in self.claim {
            let id = written.id.clone();
            if claims.iter().any(|claim| claim.id == id) {
                return Err(ContentError::TwoClaims(id));
            }
            if let Some(figure) = &written.figure
                && about.figure(figure).is_none()
            {
                return Err(ContentError::FigureOfClaim { claim: id, figure: figure.clone() });
            }
            claims.push(written.expand(about).map_err(|mistake| mistake.in_claim(&id))?);
        }
        Ok(claims)
    }
}

impl Written {
    fn expand(self, about: &About) -> Result<Claim, ContentError> {
        if self.test.is_empty() == self.not_testable.is_none() {
            return Err(ContentError::TestsOrReason);
        }
        let all = |tests: &[WrittenTest]| -> Result<Vec<Test>, ContentError> {
            let expanded: Result<Vec<Vec<Test>>, ContentError> =
                tests.iter().map(|test| test.expand(&self.each, about)).collect();
            Ok(expanded?.into_iter().flatten().collect())
        };
        let (tests, shown) = (all(&self.test)?, all(&self.shown)?);
        if tests.iter().any(|test| test.at_least.is_none() && test.at_most.is_none()) {
            return Err(ContentError::NoBand);
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
    fn expand(&self, each: &Each, about: &About) -> Result<Vec<Test>, ContentError> {
        let without_run = self.measure.needs().no_run;
        if without_run && (self.experiment.is_some() || self.across.is_some() || self.of.is_some()) {
            return Err(ContentError::NeedsNoRun(self.measure.label()));
        }
        let selections = match (&self.experiment, &self.across) {
            _ if without_run => vec![Experiments::None],
            (None, None) if each.experiment.is_empty() => return Err(ContentError::NoExperiment),
            (None, None) => single(about.each(&each.experiment)?, self.fold)?,
            (Some(one), None) => single(about.each(std::slice::from_ref(one))?, self.fold)?,
            (None, Some(several)) => vec![across(several, self.fold, about)?],
            (Some(_), Some(_)) => return Err(ContentError::ExperimentAndAcross),
        };
        let none = String::new();
        let disciplines = match &self.of {
            _ if without_run => std::slice::from_ref(&none),
            Some(one) => std::slice::from_ref(one),
            None if each.of.is_empty() => return Err(ContentError::NoDiscipline),
            None => &each.of,
        };
        let mut tests = Vec::new();
        for experiments in selections {
            for discipline in disciplines {
                let value = Value {
                    experiments: experiments.clone(),
                    discipline: discipline.clone(),
                    measure: self.measure.clone(),
                    variant: self.variant.clone(),
                };
                let against = match (&self.over, &self.minus) {
                    (Some(_), Some(_)) => return Err(ContentError::OverAndMinus),
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
    /// Takes missing keys from the value of the test.
    fn complete(&self, test: &Value, about: &About) -> Result<Value, ContentError> {
        let experiments = match (&self.experiment, &self.across) {
            (None, None) if self.fold.is_none() => test.experiments.clone(),
            (None, None) => return Err(ContentError::FoldWithoutAcross),
            (Some(_), Some(_)) => return Err(ContentError::ExperimentAndAcrossOfOther),
            (None, Some(several)) => across(several, self.fold, about)?,
            (Some(one), None) => {
                let mut selections = single(about.each(std::slice::from_ref(one))?, self.fold)?;
                match (selections.pop(), selections.is_empty()) {
                    (Some(one), true) => one,
                    _ => return Err(ContentError::FamilyOfOther(one.clone())),
                }
            }
        };
        Ok(Value {
            experiments,
            discipline: self.of.clone().unwrap_or_else(|| test.discipline.clone()),
            measure: self.measure.clone().unwrap_or_else(|| test.measure.clone()),
            variant: self.variant.clone().or_else(|| test.variant.clone()),
        })
    }
}

/// A selection of one for each experiment.
fn single(experiments: Vec<String>, fold: Option<WrittenFold>) -> Result<Vec<Experiments>, ContentError> {
    match fold {
        None => Ok(experiments.into_iter().map(Experiments::One).collect()),
        Some(_) => Err(ContentError::FoldWithoutAcross),
    }
}

/// One selection of all experiments.
fn across(several: &[String], fold: Option<WrittenFold>, about: &About) -> Result<Experiments, ContentError> {
    let ids = about.each(several)?;
    if ids.is_empty() {
        return Err(ContentError::EmptyAcross);
    }
    let fold = match fold {
        None => return Err(ContentError::AcrossWithoutFold),
        Some(WrittenFold::Mean) => Fold::Mean,
        Some(WrittenFold::Max) => Fold::Max,
        Some(WrittenFold::Min) => Fold::Min,
        Some(WrittenFold::Slope) => {
            let along = |id: &String| {
                let along = about.experiment(id).and_then(Experiment::along);
                along.ok_or_else(|| ContentError::SlopeWithoutFamily(id.clone()))
            };
            let along: Vec<f64> = ids.iter().map(along).collect::<Result<_, _>>()?;
            if along.iter().all(|at| *at == along[0]) {
                return Err(ContentError::SlopeOfOnePoint);
            }
            Fold::Slope(along)
        }
    };
    Ok(Experiments::Across(ids, fold))
}

impl Experiments {
    /// The identifiers of the experiments.
    pub fn ids(&self) -> &[String] {
        match self {
            Experiments::One(id) => std::slice::from_ref(id),
            Experiments::Across(ids, _) => ids,
            Experiments::None => &[],
        }
    }

    /// Combines the numbers of the experiments, in their order.
    pub fn fold(&self, numbers: &[f64]) -> f64 {
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        match self {
            Experiments::One(_) | Experiments::None => numbers[0],
            Experiments::Across(_, Fold::Mean) => mean(numbers),
            Experiments::Across(_, Fold::Max) => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Experiments::Across(_, Fold::Min) => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Experiments::Across(_, Fold::Slope(along)) => {
                let middle = mean(along);
                let both = along.iter().zip(numbers);
                let rise: f64 = both.map(|(at, number)| (at - middle) * number).sum();
                rise / along.iter().map(|at| (at - middle) * (at - middle)).sum::<f64>()
            }
        }
    }
}

impl Value {
    /// Checks that its experiments, its discipline and its variant exist, and that they have what the measure
    /// needs.
    fn check(&self, about: &About) -> Result<(), ContentError> {
        let Value { experiments, discipline, variant, .. } = self;
        if let Measure::Fact(Fact { name, .. }) = &self.measure
            && fact::words(name).is_none()
        {
            return Err(ContentError::UnknownFact(name.clone()));
        }
        for id in experiments.ids() {
            let experiment =
                about.experiment(id).ok_or_else(|| ContentError::UnknownExperiment(id.clone()))?;
            if !experiment.disciplines.contains(discipline) && !experiment.beyond.contains(discipline) {
                let (experiment, discipline) = (id.clone(), discipline.clone());
                return Err(ContentError::UnknownDiscipline { experiment, discipline });
            }
            if let Some(variant) = variant
                && !experiment.variants.contains(variant)
            {
                let (experiment, variant) = (id.clone(), variant.clone());
                return Err(ContentError::UnknownVariant { experiment, variant });
            }
            self.measure.check(experiment)?;
        }
        Ok(())
    }
}

impl Test {
    /// The number that is tested, and the number that it is compared with.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.value).chain(self.against.as_ref().map(|against| &against.value))
    }

    /// True if the number grows with the length of the runs: a total, or the difference of totals. A ratio of
    /// totals does not.
    pub fn grows(&self) -> bool {
        let total = |value: &Value| value.measure.is_total();
        match &self.against {
            Some(against) if against.how == How::Over => total(&self.value) != total(&against.value),
            _ => self.values().any(total),
        }
    }

    /// True if a number is in the band. Both ends belong to it.
    pub fn holds(&self, number: f64) -> bool {
        self.at_least.is_none_or(|least| number >= least) && self.at_most.is_none_or(|most| number <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_several_experiments_are_combined() {
        let fold = |fold: Fold| Experiments::Across(vec![String::new(); 3], fold).fold(&[1.0, 5.0, 3.0]);
        assert_eq!(fold(Fold::Mean), 3.0);
        assert_eq!(fold(Fold::Max), 5.0);
        assert_eq!(fold(Fold::Min), 1.0);
        // Around (2, 3): ((-1)(-2) + 0 + (1)(0)) / 2.
        assert_eq!(fold(Fold::Slope(vec![1.0, 2.0, 3.0])), 1.0);
        let line = Experiments::Across(vec![String::new(); 3], Fold::Slope(vec![1.0, 2.0, 5.0]));
        assert!((line.fold(&[10.0, 13.0, 22.0]) - 3.0).abs() < 1e-12);
    }
}
