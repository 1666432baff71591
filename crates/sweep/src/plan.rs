//! The plan of a sweep: its points, and the trials at each of them.
//!
//! A trial has the key that it has in any command, so a trial that another folder has need not run again.

use giveway_qdisc::Quantity;
use giveway_qdisc::units::nearest;
use giveway_record::dataset;
use giveway_scenario::{Compared, Draft, Scenario, ScenarioError};
use giveway_trials::{Digests, Identity, Key};

use crate::axis::Axis;
use crate::design::{Design, Kind};
use crate::error::SweepError;
use crate::precision::Precision;

/// The flag in messages about a value of an axis.
const FLAG: &str = "--over";

/// Maximum number of trials in a sweep. A sweep of this size runs for weeks.
pub const MAX_TRIALS: u64 = 100_000_000;

/// The request for a sweep.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scenario, with the changes of flags.
    pub scenario: Scenario,
    /// The keys that vary.
    pub axes: Vec<Axis>,
    /// The points.
    pub design: Design,
    /// The precision at which a point has enough seeds. `None` runs all seeds of the scenario at every point.
    pub until: Option<Precision>,
}

/// A discipline that no specification describes, such as one that is written in Python. The caller runs its
/// trials ([`work_with`](crate::work_with)).
#[derive(Clone, Debug)]
pub struct Outside {
    /// The name in results.
    pub name: String,
    /// Its parameters with their defaults, which axes such as `qdisc.threshold` may vary.
    pub parameters: Vec<(String, Quantity)>,
    /// The text of its source, which its results depend on.
    pub source: String,
}

/// A trial of a discipline that no specification describes.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideTrial {
    /// The number of the discipline among the disciplines from outside.
    pub outside: usize,
    /// The name in results, with the varied parameters.
    pub name: String,
    /// The varied parameters and their values.
    pub parameters: Vec<(String, String)>,
}

/// A checked request.
#[derive(Debug)]
pub struct Plan {
    request: Request,
    /// The compared disciplines: first of the scenario, then from outside.
    disciplines: Vec<Compared>,
    outside: Vec<Outside>,
    /// For each discipline, the axes that concern it.
    concerned: Vec<Vec<bool>>,
    columns: Vec<dataset::Axis>,
    points: u64,
    version: String,
    /// The digests of files that the scenario names: reading them for each point would take long.
    files: Digests,
}

/// The scenario at a point, and the keys of its trials.
pub struct Point {
    /// The number of the point.
    pub number: u64,
    /// The scenario.
    pub scenario: Scenario,
    identity: Identity,
}

impl Point {
    /// The key of a trial.
    pub fn key(&self, qdisc: &str, seed: u64) -> Key {
        self.identity.key(qdisc, seed)
    }

    /// The key of a trial of a discipline from outside.
    pub fn outside_key(&self, outside: &Outside, qdisc: &str, seed: u64) -> Key {
        self.identity.with(outside.source.as_bytes()).key(qdisc, seed)
    }
}

impl Plan {
    /// Checks a request: its axes, its size, and the scenario at each value of each axis.
    ///
    /// # Errors
    /// The first mistake.
    pub fn new(request: Request) -> Result<Plan, SweepError> {
        Plan::with_outside(request, Vec::new(), false)
    }

    /// Like [`new`](Plan::new), with disciplines that no specification describes, after the
    /// disciplines of the scenario or, if `only`, in their place.
    ///
    /// # Errors
    /// The first mistake.
    pub fn with_outside(mut request: Request, outside: Vec<Outside>, only: bool) -> Result<Plan, SweepError> {
        let usage = |message: String| Err(SweepError::Usage(message));
        if request.scenario.live().is_some() {
            return usage(
                "a sweep simulates, and this scenario is for a test bed: add --set backend=network"
                    .to_owned(),
            );
        }
        if request.axes.is_empty() {
            return usage("nothing varies: add for example --over link.0.rate=1mbit,10mbit".to_owned());
        }
        for (place, axis) in request.axes.iter().enumerate() {
            if request.axes[..place].iter().any(|other| other.key == axis.key) {
                return usage(format!("--over {}: this key is given twice", axis.key));
            }
            if ["seeds", "disciplines"].contains(&axis.key.as_str()) {
                let instead = if axis.key == "seeds" { "--seeds 10" } else { "disciplines in the scenario" };
                return usage(format!(
                    "--over {}: every point runs all seeds and disciplines; write {instead}",
                    axis.key
                ));
            }
        }
        request.design.fits(&request.axes)?;
        let mut disciplines = if only { Vec::new() } else { request.scenario.compared() };
        let built_in = disciplines.len();
        disciplines.extend(outside.iter().map(|Outside { name, parameters, .. }| Compared {
            name: name.clone(),
            written: name.clone(),
            parameters: parameters.clone(),
        }));
        let concerned = disciplines.iter().map(|discipline| concerns(discipline, &request.axes)).collect();
        for axis in &mut request.axes {
            check_parameter(axis, &disciplines)?;
            if axis.unit() == Some("1") && counts_packets(axis, &disciplines[..built_in]) {
                *axis = axis.with_unit("p")?;
            }
        }
        let columns = columns(&request.axes);
        let points = size(&request, disciplines.len())?;
        let version = giveway_sources::SIMULATION.to_owned();
        let files = Digests::default();
        let plan = Plan { request, disciplines, outside, concerned, columns, points, version, files };
        plan.check_values()?;
        Ok(plan)
    }

    /// Reads the scenario once for each value of each axis. Values that are wrong only together fail when
    /// they run.
    fn check_values(&self) -> Result<(), SweepError> {
        let first: Vec<_> = self.request.axes.iter().map(|axis| axis.at(0.0)).collect();
        for (place, axis) in self.request.axes.iter().enumerate() {
            for value in axis.samples() {
                let mut values: Vec<String> = first.iter().map(|value| value.text.clone()).collect();
                values[place] = value.text;
                self.with(&values).map_err(Box::new)?;
            }
        }
        Ok(())
    }

    /// The number of points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The compared disciplines, as the scenario has them.
    pub fn disciplines(&self) -> impl Iterator<Item = &str> {
        self.disciplines.iter().map(|discipline| discipline.written.as_str())
    }

    /// The number of compared disciplines.
    pub fn contenders(&self) -> usize {
        self.disciplines.len()
    }

    /// The seeds, of which a precision may need only the first.
    pub fn seeds(&self) -> &[u64] {
        &self.request.scenario.seeds
    }

    /// The disciplines that no specification describes. They are the last of all.
    pub fn outside(&self) -> &[Outside] {
        &self.outside
    }

    /// The number of disciplines of the scenario.
    pub fn built_in(&self) -> usize {
        self.disciplines.len() - self.outside.len()
    }

    /// The trial of a discipline from outside at a point.
    pub fn outside_trial(&self, point: u64, outside: usize) -> OutsideTrial {
        let compared = &self.disciplines[self.built_in() + outside];
        let values = self.request.design.point(point, &self.request.axes);
        let (mut name, mut parameters) = (compared.written.clone(), Vec::new());
        for (axis, value) in self.request.axes.iter().zip(values) {
            if let Some(parameter) = axis.parameter().filter(|parameter| has(compared, parameter)) {
                let value = value.text.trim_matches('"');
                name = with_parameter(&name, parameter, value);
                parameters.push((parameter.to_owned(), value.to_owned()));
            }
        }
        OutsideTrial { outside, name, parameters }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The columns of the varied keys.
    pub fn columns(&self) -> &[dataset::Axis] {
        &self.columns
    }

    /// The version of the simulation.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The number of trials of a point for each seed.
    pub fn trials_at(&self, point: u64) -> usize {
        (0..self.disciplines.len()).filter(|discipline| self.runs(point, *discipline)).count()
    }

    /// The maximum number of trials: a precision may need fewer.
    pub fn trials(&self) -> u64 {
        let seeds = self.seeds().len() as u64;
        match self.request.design.kind {
            Kind::Grid => {
                let of = |discipline: usize| -> u64 {
                    let concerned = self.concerned[discipline].iter().zip(&self.request.axes);
                    concerned
                        .filter(|(concerned, _)| **concerned)
                        .filter_map(|(_, axis)| axis.levels())
                        .product()
                };
                seeds * (0..self.disciplines.len()).map(of).sum::<u64>()
            }
            _ => seeds * self.points * self.disciplines.len() as u64,
        }
    }

    /// True if a discipline runs at a point. In a grid, a discipline without the varied parameter would be
    /// repeated for each value; it runs for the first of them.
    pub fn runs(&self, point: u64, discipline: usize) -> bool {
        let Request { design, axes, .. } = &self.request;
        if design.kind != Kind::Grid || self.concerned[discipline].iter().all(|concerned| *concerned) {
            return true;
        }
        let levels = design.levels(point, axes);
        self.concerned[discipline].iter().zip(levels).all(|(concerned, level)| *concerned || level == 0)
    }

    /// The value of each axis at a point for a discipline; `None` for an axis that does not concern it.
    pub fn values(&self, point: u64, discipline: usize) -> Vec<Option<Quantity>> {
        let values = self.request.design.point(point, &self.request.axes).into_iter();
        let each = values.zip(&self.columns).zip(&self.concerned[discipline]);
        each.map(|((value, column), concerned)| match (concerned, column.unit, value.quantity) {
            (false, ..) => None,
            (true, Some(_), number @ Quantity::Number(..)) => Some(number),
            (true, ..) => Some(Quantity::Text(value.text.trim_matches('"').to_owned())),
        })
        .collect()
    }

    /// The scenario at a point.
    ///
    /// # Errors
    /// If the values of this point are invalid together.
    pub fn point(&self, number: u64) -> Result<Point, ScenarioError> {
        let values = self.request.design.point(number, &self.request.axes);
        let texts: Vec<String> = values.into_iter().map(|value| value.text).collect();
        let scenario = self.with(&texts)?;
        let identity = Identity::of(&scenario, &self.files);
        Ok(Point { number, scenario, identity })
    }

    /// The scenario with these values of the axes.
    fn with(&self, values: &[String]) -> Result<Scenario, ScenarioError> {
        let mut draft: Draft = self.request.scenario.draft().clone();
        let mut written: Vec<String> = self.disciplines().take(self.built_in()).map(str::to_owned).collect();
        let mut changed = false;
        for (axis, value) in self.request.axes.iter().zip(values) {
            match axis.parameter() {
                None => draft = draft.assign(FLAG, &format!("{}={value}", axis.key)),
                Some(name) => {
                    for (spec, discipline) in written.iter_mut().zip(&self.disciplines) {
                        if has(discipline, name) {
                            *spec = with_parameter(spec, name, value.trim_matches('"'));
                            changed = true;
                        }
                    }
                }
            }
        }
        if changed {
            let list: Vec<String> = written.iter().map(|spec| format!("{spec:?}")).collect();
            draft = draft.assign(FLAG, &format!("disciplines=[{}]", list.join(", ")));
        }
        // The command line may give other seeds than the text.
        let mut scenario = draft.finish()?;
        scenario.seeds = self.seeds().to_vec();
        Ok(scenario)
    }
}

/// The axes that concern a discipline: keys of the scenario, and its own parameters.
fn concerns(discipline: &Compared, axes: &[Axis]) -> Vec<bool> {
    axes.iter().map(|axis| axis.parameter().is_none_or(|name| has(discipline, name))).collect()
}

fn has(discipline: &Compared, parameter: &str) -> bool {
    discipline.parameters.iter().any(|(name, _)| name == parameter)
}

/// Checks that a parameter is one of any discipline.
fn check_parameter(axis: &Axis, disciplines: &[Compared]) -> Result<(), SweepError> {
    let Some(name) = axis.parameter() else { return Ok(()) };
    if disciplines.iter().any(|discipline| has(discipline, name)) {
        return Ok(());
    }
    let mut known: Vec<&str> =
        disciplines.iter().flat_map(|one| &one.parameters).map(|(name, _)| name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean qdisc.{near}?"));
    Err(SweepError::Usage(format!(
        "--over {}: no compared discipline has the parameter {name}; they have {}{}",
        axis.key,
        if known.is_empty() { "none".to_owned() } else { known.join(", ") },
        near.unwrap_or_default()
    )))
}

/// True if an axis varies a parameter that counts packets. A number without a unit can only mean these.
fn counts_packets(axis: &Axis, disciplines: &[Compared]) -> bool {
    let parameters = disciplines.iter().flat_map(|discipline| &discipline.parameters);
    let mut units = parameters.filter(|(name, _)| Some(name.as_str()) == axis.parameter()).peekable();
    units.peek().is_some() && units.all(|(_, value)| matches!(value, Quantity::Number(_, "packets")))
}

/// A specification with another value of a parameter.
fn with_parameter(spec: &str, name: &str, value: &str) -> String {
    let mut words: Vec<&str> = spec.split_whitespace().collect();
    match words.iter().position(|word| *word == name) {
        Some(place) if place + 1 < words.len() => words[place + 1] = value,
        _ => words.extend([name, value]),
    }
    words.join(" ")
}

/// The number of points. Refuses more trials than a sweep may have.
fn size(request: &Request, disciplines: usize) -> Result<u64, SweepError> {
    let per_point = disciplines as u64 * request.scenario.seeds.len() as u64;
    let points = request.design.points(&request.axes);
    match points.and_then(|points| Some((points, points.checked_mul(per_point)?))) {
        Some((points, trials)) if trials <= MAX_TRIALS => Ok(points),
        _ => {
            let sizes: Vec<String> =
                request.axes.iter().filter_map(|axis| Some(axis.levels()?.to_string())).collect();
            // A product of large numbers is close enough as a floating-point number.
            let all =
                request.axes.iter().filter_map(Axis::levels).map(|levels| levels as f64).product::<f64>();
            let count = match request.design.kind {
                Kind::Grid => format!("{} = {} points", sizes.join(" x "), grouped(all)),
                _ => format!("{} points", grouped(points.map_or(f64::INFINITY, |points| points as f64))),
            };
            let each = match request.design.kind {
                Kind::Grid => all,
                _ => points.map_or(f64::INFINITY, |points| points as f64),
            };
            Err(SweepError::Usage(format!(
                "{count} with {disciplines} disciplines and {} seeds are {} trials, and at most {} are possible; draw \
                 points instead, as in --design lhs:1000",
                request.scenario.seeds.len(),
                grouped(each * per_point as f64),
                grouped(MAX_TRIALS as f64),
            )))
        }
    }
}

/// A whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The column of each axis: its key with underscores, and its unit.
fn columns(axes: &[Axis]) -> Vec<dataset::Axis> {
    let column = |axis: &Axis| {
        let unit = axis.unit();
        let ending = match unit {
            Some("bit/s") => "_bps",
            Some("s") => "_s",
            Some("B") => "_bytes",
            Some("packets") => "_packets",
            _ => "",
        };
        let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = axis.key.chars().map(clean).collect();
        dataset::Axis { key: axis.key.clone(), column: format!("{name}{ending}"), unit }
    };
    axes.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_replaces_the_one_that_is_written() {
        assert_eq!(with_parameter("efd limit 300p", "threshold", "5p"), "efd limit 300p threshold 5p");
        assert_eq!(
            with_parameter("efd threshold 9p limit 300p", "threshold", "5p"),
            "efd threshold 5p limit 300p"
        );
    }

    fn plan(source: &str) -> Plan {
        let text = r#"
duration = "5s"
disciplines = ["fifo limit 100p"]
seeds = [1, 2]
link = [{ from = "a", to = "b", rate = "10mbit", delay = "5ms", qdisc = "compare" }]
traffic = [{ name = "upload", kind = "bulk", from = "a", to = "b" }]
"#;
        let scenario = Draft::parse(text, "").finish().unwrap();
        let axes = ["link.0.rate=5mbit,10mbit", "qdisc.limit=5p,9p", "qdisc.depth=1,2,3"];
        let axes = axes.map(|axis| axis.parse().unwrap()).to_vec();
        let request = Request { scenario, axes, design: "grid".parse().unwrap(), until: None };
        let depth = ("depth".to_owned(), Quantity::Number(1.0, "1"));
        let outside = Outside { name: "mine".to_owned(), parameters: vec![depth], source: source.to_owned() };
        Plan::with_outside(request, vec![outside], false).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_discipline_from_outside_has_its_own_parameters_and_names() {
        let both = plan("one");
        assert_eq!(both.disciplines().collect::<Vec<_>>(), ["fifo limit 100p", "mine"]);
        // Two rates with two limits, and two rates with three depths, each with two seeds.
        assert_eq!((both.built_in(), both.trials()), (1, 2 * (2 * 2 + 2 * 3)));
        let last = both.outside_trial(both.points() - 1, 0);
        assert_eq!((last.name.as_str(), last.outside), ("mine depth 3", 0));
        assert_eq!(last.parameters, [("depth".to_owned(), "3".to_owned())]);
        // The scenario has only disciplines that it can describe.
        assert_eq!(both.point(both.points() - 1).unwrap().scenario.compared()[0].written, "fifo limit 9p");
    }

    #[test]
    fn the_source_of_a_discipline_from_outside_is_in_its_key() {
        let key = |source: &str| {
            let plan = plan(source);
            let at = plan.point(0).unwrap();
            (at.outside_key(&plan.outside()[0], "mine", 1), at.key("mine", 1))
        };
        assert_eq!(key("one"), key("one"));
        assert_ne!(key("one").0, key("two").0);
        assert_ne!(key("one").0, key("one").1);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([1.0, 999.0, 1000.0, 1e9].map(grouped), ["1", "999", "1,000", "1,000,000,000"]);
    }
}
