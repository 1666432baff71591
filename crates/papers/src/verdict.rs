//! Tests against results: a verdict for each claim.

use giveway_measure::Estimate;
use serde::Serialize;

use crate::claim::{Claim, Experiments, Fold, How, Test};
use crate::measure::Unit;
use crate::study::{Ran, Results, Study};

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Every test holds for the mean, and for at least 8 of 10 seeds.
    #[serde(rename = "reproduces")]
    Reproduces,
    /// A test does not hold.
    #[serde(rename = "differs")]
    Differs,
    /// The claim cannot be tested here.
    #[serde(rename = "not testable")]
    NotTestable,
    /// Runs that it needs are not part of the study, or did not finish.
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// The word for it in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Reproduces => "reproduces",
            Verdict::Differs => "differs",
            Verdict::NotTestable => "not testable",
            Verdict::NotRun => "not run",
        }
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The identifier of the claim.
    pub id: String,
    /// The figure that the claim is about.
    pub figure: Option<String>,
    /// The place in the paper.
    pub source: String,
    /// The claim in our words.
    pub statement: String,
    /// The paper's number or word.
    pub paper: String,
    /// Our numbers: of all tests if there are few, otherwise of the decisive test.
    pub ours: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason of a difference, or a note; often empty.
    pub why: String,
    /// Every test.
    pub tests: Vec<JudgedTest>,
    /// The verdicts under the other variants, by their names.
    pub otherwise: Vec<(String, Verdict)>,
}

impl Judged {
    /// The test that decides: the closest to the end of its band, or the farthest outside.
    pub(crate) fn decisive(&self) -> Option<&JudgedTest> {
        self.tests.iter().min_by(|a, b| slack(a).total_cmp(&slack(b)))
    }
}

/// A test with its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedTest {
    /// The measure, in words.
    pub what: String,
    /// The mean over the seeds.
    pub mean: Option<f64>,
    /// Half the width of its 95 % interval.
    pub ci95: Option<f64>,
    /// The lower end of the band.
    pub at_least: Option<f64>,
    /// The upper end of the band.
    pub at_most: Option<f64>,
    /// The number of seeds in the band.
    pub seeds_held: usize,
    /// The number of measured seeds.
    pub seeds: usize,
    /// True if the test holds; `None` without a measurement.
    pub holds: Option<bool>,
    /// The measure and its result in words.
    pub said: String,
    /// The result without the measure.
    #[serde(skip)]
    short: String,
}

/// The share of seeds for which a test must hold.
const SEEDS_NEEDED: f64 = 0.8;
/// Maximum number of tests of a claim that are all shown in its row of the table.
const FEW_TESTS: usize = 3;

/// A verdict for every claim of a study.
pub fn judge(study: &Study, results: &Results) -> Vec<Judged> {
    study.claims().map(|claim| one(claim, study, results)).collect()
}

/// The number of claims with each verdict: "40 reproduce, 7 differ, 1 could not be tested, of 48 claims."
/// Claims whose runs are missing are counted apart, since nothing is known about them.
pub fn counted(judged: &[Judged]) -> String {
    let count = |verdict| judged.iter().filter(|claim| claim.verdict == verdict).count();
    let not_run = match count(Verdict::NotRun) {
        0 => String::new(),
        1 => ", 1 was not run".to_owned(),
        several => format!(", {several} were not run"),
    };
    format!(
        "{} reproduce, {} differ, {} could not be tested{not_run}, of {} claims.",
        count(Verdict::Reproduces),
        count(Verdict::Differs),
        count(Verdict::NotTestable),
        judged.len()
    )
}

fn one(claim: &Claim, study: &Study, results: &Results) -> Judged {
    let about = &study.paper.about;
    let tests: Vec<JudgedTest> =
        claim.tests.iter().map(|test| tested(test, results, about.main(), study)).collect();
    let ran = results.ran(claim, about.main());
    // A total of shorter runs says nothing about the total of the paper.
    let ran = if ran == Ran::All && counts_shorter_runs(claim, study) { Ran::Shorter } else { ran };
    let verdict = if ran == Ran::All { verdict(&tests) } else { Verdict::NotRun };
    let otherwise = about.variant.iter().skip(1).filter(|variant| {
        let values = claim.tests.iter().flat_map(Test::values);
        let mut experiments = values.flat_map(|value| value.experiments.ids());
        let needs_a_run = claim.tests.iter().any(|test| test.value.experiments != Experiments::None);
        needs_a_run && experiments.all(|experiment| results.has(experiment, &variant.id))
    });
    let otherwise = otherwise.map(|variant| {
        let tests: Vec<JudgedTest> =
            claim.tests.iter().map(|test| tested(test, results, &variant.id, study)).collect();
        (variant.name.clone(), self::verdict(&tests))
    });
    Judged {
        id: claim.id.clone(),
        figure: claim.figure.clone(),
        source: claim.source.clone(),
        statement: claim.statement.clone(),
        paper: claim.paper.clone(),
        // Numbers of a claim whose experiments are left out are those of other experiments.
        ours: if matches!(ran, Ran::Never | Ran::Shorter) { "-".to_owned() } else { ours(&tests) },
        verdict,
        why: match ran {
            Ran::All => why(claim, verdict, results, study),
            Ran::Part(missing, all) => format!("{missing} of its {all} runs did not finish."),
            Ran::Shorter => {
                "It is about a total, and the runs of a first look are shorter. Without --quick it is \
                             tested."
                    .to_owned()
            }
            Ran::Never => "A first look leaves out its experiment. Without --quick it is tested.".to_owned(),
        },
        otherwise: otherwise.collect(),
        tests,
    }
}

/// True if a test of the claim is about a total, and its experiment is shorter in this study.
fn counts_shorter_runs(claim: &Claim, study: &Study) -> bool {
    let is_shorter = |id: &str| {
        let experiment = study.paper.about.experiment(id);
        study.scope.quick && experiment.is_some_and(|experiment| experiment.quick.is_some())
    };
    claim.tests.iter().any(|test| {
        let mut experiments = test.values().flat_map(|value| value.experiments.ids());
        test.grows() && experiments.any(|id| is_shorter(id.as_ref()))
    })
}

/// The verdict on a claim, from all its tests.
fn verdict(tests: &[JudgedTest]) -> Verdict {
    if tests.iter().any(|test| test.holds == Some(false)) {
        Verdict::Differs
    } else if tests.is_empty() || tests.iter().any(|test| test.holds.is_none()) {
        Verdict::NotTestable
    } else {
        Verdict::Reproduces
    }
}

fn tested(test: &Test, results: &Results, variant: &str, study: &Study) -> JudgedTest {
    let estimate = results.estimate(test, variant);
    let values: Vec<f64> = estimate.per_seed.iter().flatten().copied().collect();
    let held = values.iter().filter(|value| test.holds(**value)).count();
    let holds =
        estimate.mean.map(|mean| test.holds(mean) && held as f64 >= SEEDS_NEEDED * values.len() as f64);
    let what = what(test, study);
    let short = match estimate.mean {
        None => "not measured".to_owned(),
        Some(_) if values.len() > 1 => {
            format!("{} ({}; {held} of {} seeds)", number(&estimate, test), band(test), values.len())
        }
        Some(_) => format!("{} ({})", number(&estimate, test), band(test)),
    };
    JudgedTest {
        said: format!("{what}: {short}"),
        short,
        what,
        mean: estimate.mean,
        ci95: estimate.ci95,
        at_least: test.at_least,
        at_most: test.at_most,
        seeds_held: held,
        seeds: values.len(),
        holds,
    }
}

/// The measure of a test, in words.
fn what(test: &Test, study: &Study) -> String {
    let about = &study.paper.about;
    let main = &test.value;
    let at = |experiments: &Experiments| {
        let how = match experiments {
            Experiments::One(_) => "at",
            Experiments::Across(_, Fold::Mean) => "mean at",
            Experiments::Across(_, Fold::Max) => "largest at",
            Experiments::Across(_, Fold::Min) => "smallest at",
            Experiments::Across(_, Fold::Slope(_)) => "slope along",
            Experiments::None => return String::new(),
        };
        format!("{how} {}", about.in_words(experiments.ids()))
    };
    if main.experiments == Experiments::None {
        return main.measure.label();
    }
    let mut words = format!("{}, {}", main.measure.label(), main.discipline);
    if let Some(against) = &test.against {
        let other = &against.value;
        let how = if against.how == How::Over { "over" } else { "less" };
        let mut parts = Vec::new();
        if other.measure != main.measure {
            parts.push(other.measure.label());
        }
        if other.discipline != main.discipline {
            parts.push(other.discipline.clone());
        }
        if other.experiments != main.experiments {
            parts.push(at(&other.experiments));
        }
        if other.variant != main.variant {
            let id = other.variant.as_deref().unwrap_or(about.main());
            parts.push(about.variant(id).map_or_else(|| id.to_owned(), |variant| variant.name.clone()));
        }
        words.push_str(&format!(" {how} {}", parts.join(", ")));
    }
    words.push_str(&format!(", {}", at(&main.experiments)));
    if let Some(id) = &test.variant {
        words.push_str(&about.variant(id).map_or_else(String::new, |variant| format!(", {}", variant.name)));
    }
    words
}

/// The unit of a test's number: a ratio has none.
fn unit(test: &Test) -> Unit {
    match &test.against {
        Some(against) if against.how == How::Over => Unit::Plain,
        _ => test.value.measure.unit(),
    }
}

fn number(estimate: &Estimate, test: &Test) -> String {
    let unit = unit(test);
    let mean = estimate.mean.map_or_else(|| "-".to_owned(), |mean| rounded(mean, unit));
    match estimate.ci95 {
        Some(ci) => format!("{mean} ± {}", to_digits(ci, unit, |_| 3)),
        None => mean,
    }
}

fn band(test: &Test) -> String {
    let unit = unit(test);
    match (test.at_least, test.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", rounded(least, unit), rounded(most, unit)),
        (Some(least), None) => format!("at least {}", rounded(least, unit)),
        (None, Some(most)) => format!("at most {}", rounded(most, unit)),
        (None, None) => "no band".to_owned(),
    }
}

/// A number for reading: three digits, four below 1 (where throughputs differ in the third), and its unit.
pub(crate) fn rounded(value: f64, unit: Unit) -> String {
    to_digits(value, unit, |magnitude| if magnitude == -1 { 4 } else { 3 })
}

/// A number with its unit. `wanted` is the number of digits for a power of ten.
fn to_digits(value: f64, unit: Unit, wanted: fn(i32) -> i32) -> String {
    let digits = |value: f64| digits(value, wanted);
    match unit {
        Unit::Plain => digits(value),
        Unit::Seconds if value != 0.0 && value.abs() < 1.0 => format!("{} ms", digits(value * 1e3)),
        Unit::Seconds => format!("{} s", digits(value)),
        Unit::Nanoseconds => format!("{} ns", digits(value)),
        Unit::Share => format!("{} %", digits(value * 100.0)),
        Unit::Bytes => format!("{} MB", digits(value / 1e6)),
        Unit::Memory if value.abs() >= 1e6 => format!("{} MB", digits(value / 1e6)),
        Unit::Memory if value.abs() >= 1e3 => format!("{} kB", digits(value / 1e3)),
        Unit::Memory => format!("{} B", digits(value)),
        Unit::Packets => format!("{} packets", digits(value)),
        Unit::Rate => format!("{} Mbit/s", digits(value / 1e6)),
    }
}

fn digits(value: f64, wanted: fn(i32) -> i32) -> String {
    let magnitude = if value == 0.0 { 0 } else { libm::log10(value.abs()).floor() as i32 };
    let decimals = (wanted(magnitude) - 1 - magnitude).clamp(0, 4) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Our numbers in short.
fn ours(tests: &[JudgedTest]) -> String {
    match tests {
        [] => "-".to_owned(),
        [only] => only.short.clone(),
        few if few.len() <= FEW_TESTS => {
            few.iter().map(|test| test.said.clone()).collect::<Vec<_>>().join("; ")
        }
        many => {
            let held = many.iter().filter(|test| test.holds == Some(true)).count();
            let decides = many.iter().min_by(|a, b| slack(a).total_cmp(&slack(b))).expect("there are many");
            let which = if held == many.len() { "closest" } else { "farthest off" };
            format!("{held} of {} hold; {which}: {}", many.len(), decides.said)
        }
    }
}

/// The distance of a test from the nearer end of its band, in half widths of its interval; negative outside
/// the band.
fn slack(test: &JudgedTest) -> f64 {
    let Some(mean) = test.mean else { return f64::NEG_INFINITY };
    let below = test.at_most.map_or(f64::INFINITY, |most| most - mean);
    let above = test.at_least.map_or(f64::INFINITY, |least| mean - least);
    let slack = below.min(above) / test.ci95.unwrap_or(1.0).max(mean.abs() * 1e-3).max(1e-12);
    // A test that fails by its seeds, not by its mean, is outside as well.
    if test.holds == Some(false) { slack.min(-1e-9) } else { slack }
}

/// The reason, and the measurements that show it.
fn why(claim: &Claim, verdict: Verdict, results: &Results, study: &Study) -> String {
    if let Some(reason) = &claim.not_testable {
        return reason.trim().to_owned();
    }
    if verdict == Verdict::NotTestable {
        return "The event that it is about did not occur in any run.".to_owned();
    }
    let text = if verdict == Verdict::Reproduces { &claim.note } else { &claim.why };
    if verdict == Verdict::Reproduces && text.is_none() {
        return String::new();
    }
    let mut sentences: Vec<String> = text.iter().map(|text| flowing(text)).collect();
    let shown = claim.shown.iter().filter_map(|test| {
        let estimate = results.estimate(test, study.paper.about.main());
        estimate.mean?;
        let says = test.says.as_deref().map_or_else(|| what(test, study), flowing);
        Some(format!("{says}: {}", number(&estimate, test)))
    });
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        sentences.push(format!("Measured: {}.", shown.join("; ")));
    }
    if sentences.is_empty() && study.is_partial() {
        sentences.push(
            "With shorter runs or fewer seeds than in the paper's study, a claim can differ by chance."
                .to_owned(),
        );
    }
    sentences.join(" ")
}

/// A text without the line breaks of its file.
pub(crate) fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_their_unit() {
        assert_eq!(rounded(0.0421, Unit::Plain), "0.0421");
        assert_eq!(rounded(12.345, Unit::Plain), "12.3");
        assert_eq!(rounded(1234.5, Unit::Plain), "1234");
        assert_eq!(rounded(0.0123, Unit::Seconds), "12.3 ms");
        assert_eq!(rounded(0.5, Unit::Share), "50 %");
        assert_eq!(rounded(-0.00001, Unit::Share), "-0.001 %");
        assert_eq!(rounded(7_920_000.0, Unit::Bytes), "7.92 MB");
        assert_eq!(rounded(0.0, Unit::Seconds), "0 s");
        assert_eq!(rounded(33_400.0, Unit::Memory), "33.4 kB");
        assert_eq!(rounded(960.0, Unit::Memory), "960 B");
        assert_eq!(rounded(1_920_000.0, Unit::Memory), "1.92 MB");
    }
}
