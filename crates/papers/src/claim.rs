//! Claims: what a paper says, and the tests that decide whether we see the same.

use serde::Deserialize;

use crate::measure::Measure;
use crate::paper::About;

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
    #[serde(default)]
    experiment: Option<String>,
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

/// What it is compared with: as the test's own, but for what is said.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenValue {
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    experiment: Option<String>,
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
    pub experiment: String,
    pub discipline: String,
    pub measure: Measure,
    pub variant: Option<String>,
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
        let several = |one: &Option<String>, each: &[String], key: &str| match one {
            Some(one) => Ok(vec![one.clone()]),
            None if each.is_empty() => Err(format!("a test names no {key}")),
            None => Ok(each.to_vec()),
        };
        let mut tests = Vec::new();
        for experiment in several(&self.experiment, &each.experiment, "experiment")? {
            for discipline in several(&self.of, &each.of, "discipline (of)")? {
                let value = Value {
                    experiment: experiment.clone(),
                    discipline,
                    measure: self.measure.clone(),
                    variant: self.variant.clone(),
                };
                let against = match (&self.over, &self.minus) {
                    (Some(_), Some(_)) => return Err("a test has over or minus, not both".to_owned()),
                    (Some(other), None) => Some(Against { how: How::Over, value: other.complete(&value) }),
                    (None, Some(other)) => Some(Against { how: How::Minus, value: other.complete(&value) }),
                    (None, None) => None,
                };
                let test = Test {
                    says: self.says.clone(),
                    variant: self.variant.clone(),
                    value,
                    against,
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
    fn complete(&self, test: &Value) -> Value {
        Value {
            experiment: self.experiment.clone().unwrap_or_else(|| test.experiment.clone()),
            discipline: self.of.clone().unwrap_or_else(|| test.discipline.clone()),
            measure: self.measure.clone().unwrap_or_else(|| test.measure.clone()),
            variant: self.variant.clone().or_else(|| test.variant.clone()),
        }
    }
}

impl Value {
    fn check(&self, about: &About) -> Result<(), String> {
        let Value { experiment: id, discipline, variant, .. } = self;
        let experiment = about.experiment(id).ok_or_else(|| format!("there is no experiment \"{id}\""))?;
        if !experiment.disciplines.contains(discipline) && !experiment.beyond.contains(discipline) {
            return Err(format!("experiment \"{id}\" has no discipline \"{discipline}\""));
        }
        if let Some(variant) = variant
            && !experiment.variants.contains(variant)
        {
            return Err(format!("experiment \"{id}\" has no variant \"{variant}\""));
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
