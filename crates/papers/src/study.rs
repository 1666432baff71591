//! Which runs a study needs, one of them, and the results of all.

use std::collections::{BTreeMap, BTreeSet};

use giveway_disciplines::Spec;
use giveway_measure::Estimate;
use giveway_qdisc::{Rate, Span};
use giveway_scenario::{Bound, Draft, Scenario, Trial};

use crate::about::{Experiment, Figure, Panel, Section};
use crate::claim::{Against, Claim, How, Place, Test, Value};
use crate::cost;
use crate::curve::{Curve, Data};
use crate::measure::{self, Measure, Run};
use crate::observe::{layout, observe};
use crate::paper::{Paper, PaperError};

/// How much of a paper is done again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// One figure only.
    pub figure: Option<String>,
    /// A first look: shorter runs, three seeds, and none of the variants.
    pub quick: bool,
    /// How many seeds; otherwise as many as the paper's file says.
    pub seeds: Option<u32>,
}

/// Seeds of a quick study.
const QUICK_SEEDS: u32 = 3;

/// A paper, and which part of it is done again.
#[derive(Debug)]
pub struct Study {
    pub(crate) paper: Paper,
    pub(crate) scope: Scope,
    scenes: Vec<Scene>,
}

/// An experiment under a variant, with everybody who is compared in it.
#[derive(Debug)]
struct Scene {
    experiment: String,
    variant: String,
    /// Whom claims and figures name, in the order of the scenario's disciplines.
    disciplines: Vec<String>,
    setting: Setting,
    /// What measures compare with.
    ideal: Option<Rate>,
    measures: Vec<Measure>,
    curves: Vec<Curve>,
}

/// Where an experiment takes place.
#[derive(Debug)]
enum Setting {
    /// In a simulation.
    Scenario(Box<Scenario>),
    /// On this machine: what a packet costs these disciplines, so many times each.
    Cost { case: cost::Case, specs: Vec<Spec>, seeds: u32 },
}

impl Setting {
    fn duration(&self) -> Span {
        match self {
            Setting::Scenario(scenario) => scenario.duration,
            Setting::Cost { .. } => Span::s(1),
        }
    }

    fn trials(&self) -> Vec<Trial> {
        match self {
            Setting::Scenario(scenario) => scenario.trials(),
            Setting::Cost { specs, seeds, .. } => {
                let trial = |discipline: usize, seed: u64| Trial {
                    discipline,
                    name: specs[discipline].to_string(),
                    seed,
                };
                let seeds = 1..=u64::from(*seeds);
                (0..specs.len()).flat_map(|at| seeds.clone().map(move |seed| trial(at, seed))).collect()
            }
        }
    }
}

/// What claims and figures need of an experiment.
#[derive(Debug, Default)]
struct Needs {
    measures: Vec<Measure>,
    curves: Vec<Curve>,
    disciplines: BTreeSet<String>,
}

impl Needs {
    fn value(&mut self, value: &Value) {
        self.disciplines.insert(value.discipline.clone());
        once(&mut self.measures, &value.measure);
    }

    fn panel(&mut self, panel: &Panel) {
        self.disciplines.extend(panel.disciplines.iter().cloned());
        self.disciplines.extend(panel.curve.relative_to().cloned());
        let measures = panel.curve.measures();
        if measures.is_empty() {
            once(&mut self.curves, &panel.curve);
        }
        measures.into_iter().for_each(|measure| once(&mut self.measures, measure));
    }
}

/// Adds what is not there yet.
fn once<T: Clone + PartialEq>(all: &mut Vec<T>, one: &T) {
    if !all.contains(one) {
        all.push(one.clone());
    }
}

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Job {
    scene: usize,
    trial: Trial,
}

/// What one run came to.
#[derive(Clone, Debug)]
pub struct Observed {
    numbers: Vec<Option<f64>>,
    data: Vec<Data>,
}

/// What all runs came to.
#[derive(Debug)]
pub struct Results {
    /// By experiment, variant and discipline.
    cells: BTreeMap<(String, String, String), Several>,
    /// Numbers that need no run.
    alone: Vec<(Measure, f64)>,
    /// How many runs there are, and how many there should be.
    pub finished: usize,
    /// See `finished`.
    pub planned: usize,
}

/// The runs of one discipline under one variant of one experiment.
#[derive(Debug, Default)]
struct Several {
    /// By measure; each by seed, in order.
    numbers: Vec<(Measure, Vec<Option<f64>>)>,
    data: Vec<(Curve, Data)>,
}

impl Study {
    /// Plans a study.
    ///
    /// # Errors
    /// When there is no such figure, or a scenario is wrong.
    pub fn new(paper: Paper, scope: Scope) -> Result<Study, PaperError> {
        if let Some(figure) = &scope.figure
            && paper.about.figure(figure).is_none()
        {
            let known: Vec<&str> = paper.figures().collect();
            return Err(PaperError(format!("there is no figure {figure}; there are: {}", known.join(", "))));
        }
        let mut study = Study { paper, scope, scenes: Vec::new() };
        let mut scenes = Vec::new();
        let experiments = study.paper.about.experiment.iter();
        // What is timed takes no time.
        let quick = |experiment: &&Experiment| experiment.quick.is_some() || experiment.cost.is_some();
        for experiment in experiments.filter(|experiment| !study.scope.quick || quick(experiment)) {
            for variant in experiment.variants.iter().filter(|variant| study.covers(variant)) {
                scenes.extend(study.scene(experiment, variant)?);
            }
        }
        study.scenes = scenes;
        Ok(study)
    }

    /// How its paper is called.
    pub fn id(&self) -> &str {
        &self.paper.id
    }
    /// The paper's title.
    pub fn title(&self) -> &str {
        self.paper.title()
    }
    /// Who wrote the paper, and where it stands.
    pub fn reference(&self) -> String {
        self.paper.reference()
    }

    /// What a figure of the paper shows.
    pub fn figure_heading(&self, figure: &str) -> Option<String> {
        self.paper.about.figure(figure).map(|figure| figure.heading())
    }

    /// Whether a variant is part of it.
    fn covers(&self, variant: &str) -> bool {
        !self.scope.quick || variant == self.paper.about.main()
    }

    /// The claims that it is about.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        let of_figure = |claim: &&Claim| self.scope.figure.is_none() || claim.figure == self.scope.figure;
        self.paper.claims.iter().filter(of_figure)
    }

    /// The figures of a section that it draws.
    pub(crate) fn figures(&self, section: &Section) -> Vec<&Figure> {
        let wanted = |id: &&String| self.scope.figure.as_ref().is_none_or(|figure| figure == *id);
        section.figures.iter().filter(wanted).filter_map(|id| self.paper.about.figure(id)).collect()
    }

    /// The sections that it writes.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &Section> {
        let any = |section: &&Section| self.covers(&section.variant) && !self.figures(section).is_empty();
        self.paper.about.section.iter().filter(any)
    }

    /// How many seeds everything has that is not run with few.
    pub fn seeds(&self) -> u32 {
        let usual = if self.scope.quick { QUICK_SEEDS } else { self.paper.about.seeds };
        self.scope.seeds.unwrap_or(usual)
    }

    /// What claims and figures need of an experiment under a variant.
    fn needs(&self, experiment: &Experiment, variant: &str) -> Needs {
        let mut needs = Needs::default();
        let main = self.paper.about.main();
        for claim in self.claims() {
            // Tests are judged under every variant; what shows a reason, under its own.
            let shown = claim.shown.iter().filter(|test| {
                test.values().any(|value| value.variant.as_deref().unwrap_or(main) == variant)
            });
            let values = claim.tests.iter().chain(shown).flat_map(Test::values);
            let here = |value: &&Value| value.place.experiments().contains(&experiment.id);
            values.filter(here).for_each(|value| needs.value(value));
        }
        for section in self.sections() {
            let panels = self.figures(section).into_iter().flat_map(|figure| &figure.panel);
            let drawn = |panel: &&Panel| match panel.variants.as_slice() {
                [] => section.variant == variant,
                own => own.iter().any(|own| own == variant),
            };
            for panel in panels.filter(drawn).filter(|panel| panel.experiments.contains(&experiment.id)) {
                needs.panel(panel);
                if section.beyond {
                    needs.disciplines.extend(experiment.beyond.iter().cloned());
                }
            }
        }
        needs
    }

    /// An experiment under a variant, as far as it is needed; `None` when nothing of it is.
    fn scene(&self, experiment: &Experiment, variant: &str) -> Result<Option<Scene>, PaperError> {
        let Needs { measures, curves, disciplines: needed } = self.needs(experiment, variant);
        let all = experiment.disciplines.iter().chain(&experiment.beyond);
        let disciplines: Vec<String> = all.filter(|name| needed.contains(*name)).cloned().collect();
        if disciplines.is_empty() {
            return Ok(None);
        }
        if let Some(written) = &experiment.cost {
            let seeds = experiment.seeds(variant, self.seeds());
            let setting = self.timed(written, experiment, variant, &disciplines, seeds)?;
            let (experiment, variant) = (experiment.id.clone(), variant.to_owned());
            return Ok(Some(Scene {
                experiment,
                variant,
                disciplines,
                setting,
                ideal: None,
                measures,
                curves,
            }));
        }
        let scenario = self.scenario(experiment, variant, &disciplines, &measures, &curves)?;
        let known = layout(&scenario, false).source_names;
        let named = measures.iter().map(Measure::source).chain(curves.iter().map(Curve::source)).flatten();
        for source in named {
            if !known.iter().any(|traffic| measure::names(source, traffic)) {
                let why = format!("there is no traffic \"{source}\"; there are: {}", known.join(", "));
                return Err(self.wrong(experiment, variant, &why));
            }
        }
        let (ideal, experiment, variant) = (experiment.ideal, experiment.id.clone(), variant.to_owned());
        let setting = Setting::Scenario(Box::new(scenario));
        Ok(Some(Scene { experiment, variant, disciplines, setting, ideal, measures, curves }))
    }

    /// An experiment that times.
    fn timed(
        &self,
        written: &cost::Written,
        experiment: &Experiment,
        variant: &str,
        disciplines: &[String],
        seeds: u32,
    ) -> Result<Setting, PaperError> {
        let wrong = |why: &str| self.wrong(experiment, variant, why);
        let case = written.read().map_err(|why| wrong(&why))?;
        let spec = |name: &String| {
            let spec: Spec = self
                .paper
                .about
                .spec(name, experiment)
                .parse()
                .map_err(|error| wrong(&format!("{error}")))?;
            case.check(&spec).map_err(|why| wrong(&why))?;
            Ok(spec)
        };
        Ok(Setting::Cost { case, specs: disciplines.iter().map(spec).collect::<Result<_, _>>()?, seeds })
    }

    /// What is wrong with the scenario of an experiment.
    fn wrong(&self, experiment: &Experiment, variant: &str, why: &str) -> PaperError {
        let paper = &self.paper.id;
        let file = if experiment.cost.is_some() { "paper.toml" } else { &experiment.scenario };
        PaperError(format!("{paper}/{file}, experiment \"{}\", variant \"{variant}\": {why}", experiment.id))
    }

    fn scenario(
        &self,
        experiment: &Experiment,
        variant: &str,
        disciplines: &[String],
        measures: &[Measure],
        curves: &[Curve],
    ) -> Result<Scenario, PaperError> {
        let about = &self.paper.about;
        let specs: Vec<String> =
            disciplines.iter().map(|name| format!("\"{}\"", about.spec(name, experiment))).collect();
        let mut sets = experiment.set.clone();
        sets.extend(about.variant(variant).expect("it was checked").set.iter().cloned());
        sets.push(format!("disciplines=[{}]", specs.join(", ")));
        // What nobody asks for is not named: a scenario on a switch has no such keys.
        let episodes = measures.iter().any(|measure| measure.needs().episodes)
            || curves.iter().any(Curve::needs_episodes);
        let wanted = [
            ("senders", curves.iter().any(Curve::needs_senders)),
            ("episodes", episodes),
            ("bursts", measures.iter().any(|measure| measure.needs().bursts)),
        ];
        sets.extend(wanted.iter().filter(|(_, wanted)| *wanted).map(|(key, _)| format!("record.{key}=true")));
        if let Some(quick) = experiment.quick.as_ref().filter(|_| self.scope.quick) {
            // A warm-up of its own is for its own duration.
            sets.retain(|set| !set.starts_with("warmup="));
            sets.push(format!("duration={quick}"));
        }
        let draft = Draft::parse(&self.paper.scenarios[&experiment.scenario], "");
        let draft = sets.iter().fold(draft, |draft, set| draft.set(set));
        let scenario = draft.finish().map_err(|wrong| {
            let said: Vec<String> = wrong.diagnostics.iter().map(|each| each.message.clone()).collect();
            self.wrong(experiment, variant, &said.join("; "))
        })?;
        Ok(scenario.with_seeds(experiment.seeds(variant, self.seeds())))
    }

    /// Every run, in the order of the results. The long ones come first, so that several at a time end together.
    pub fn jobs(&self) -> Vec<Job> {
        let mut scenes: Vec<usize> = (0..self.scenes.len()).collect();
        scenes.sort_by_key(|scene| std::cmp::Reverse(self.scenes[*scene].setting.duration()));
        let cells = |scene: usize| {
            self.scenes[scene].setting.trials().into_iter().map(move |trial| Job { scene, trial })
        };
        scenes.into_iter().flat_map(cells).collect()
    }

    /// How long the simulated time of a run is: what a progress bar weighs it with.
    pub fn weight(&self, job: &Job) -> Span {
        self.scenes[job.scene].setting.duration()
    }

    /// Whether a run times what it does: nothing else should run beside it.
    pub fn is_timed(&self, job: &Job) -> bool {
        matches!(self.scenes[job.scene].setting, Setting::Cost { .. })
    }

    /// What a run is called.
    pub fn name(&self, job: &Job) -> String {
        let Scene { experiment, variant, disciplines, .. } = &self.scenes[job.scene];
        format!("{} in {experiment} ({variant}), seed {}", disciplines[job.trial.discipline], job.trial.seed)
    }

    /// Does one run. Now and then `go_on` is told how much of it is done, 0 to 1; when it answers false there is no result.
    pub fn run(&self, job: &Job, go_on: &dyn Fn(f64) -> bool) -> Option<Observed> {
        let scene = &self.scenes[job.scene];
        let scenario = match &scene.setting {
            Setting::Scenario(scenario) => scenario,
            Setting::Cost { case, specs, .. } => {
                if !go_on(0.0) {
                    return None;
                }
                let ns = case.pair_ns(&specs[job.trial.discipline]);
                let numbers = scene.measures.iter().map(|measure| measure.of_cost(ns?, case.bytes)).collect();
                return Some(Observed { numbers, data: vec![Data::Nothing; scene.curves.len()] });
            }
        };
        let bound = |source: &str| {
            let links = scenario.network()?.bounds(None);
            let streams = links.iter().flat_map(|link| &link.streams);
            let stream = streams.into_iter().find(|stream| stream.name == source)?;
            match stream.bounds.get(job.trial.discipline) {
                Some(Bound::Delay(seconds)) => Some(*seconds),
                _ => None,
            }
        };
        let series = scene.curves.iter().any(Curve::needs_series)
            || scene.measures.iter().any(|measure| measure.needs().series);
        let (record, _) = observe(scenario, &job.trial, series, go_on)?;
        let first = Some(&job.trial.seed) == scenario.seeds.first();
        let run = Run { record: &record, ideal: scene.ideal, bound: &bound };
        Some(Observed {
            numbers: scene.measures.iter().map(|measure| measure.of(&run)).collect(),
            data: scene.curves.iter().map(|curve| curve.of(&record, first)).collect(),
        })
    }

    /// The numbers that need no run.
    fn alone(&self) -> Vec<(Measure, f64)> {
        let tests = self.claims().flat_map(|claim| claim.tests.iter().chain(&claim.shown));
        let values = tests.flat_map(Test::values).filter(|value| value.place == Place::Nowhere);
        let number = |measure: &Measure| measure.of_paper(&self.paper.measured);
        values.filter_map(|value| Some((value.measure.clone(), number(&value.measure)?))).collect()
    }

    /// Puts the results of `jobs` together, in their order; `None` where a run was stopped.
    pub fn finish(&self, jobs: &[Job], observed: Vec<Option<Observed>>) -> Results {
        let mut results =
            Results { cells: BTreeMap::new(), alone: self.alone(), finished: 0, planned: jobs.len() };
        for (job, observed) in jobs.iter().zip(observed) {
            let Some(observed) = observed else { continue };
            results.finished += 1;
            let scene = &self.scenes[job.scene];
            let discipline = scene.disciplines[job.trial.discipline].clone();
            let key = (scene.experiment.clone(), scene.variant.clone(), discipline);
            let several = results.cells.entry(key).or_default();
            if several.numbers.is_empty() && several.data.is_empty() {
                several.numbers =
                    scene.measures.iter().map(|measure| (measure.clone(), Vec::new())).collect();
                several.data = scene.curves.iter().cloned().zip(observed.data).collect();
            } else {
                for ((_, all), more) in several.data.iter_mut().zip(observed.data) {
                    *all = std::mem::replace(all, Data::Nothing).with(more);
                }
            }
            let seed = (job.trial.seed - 1) as usize;
            for ((_, numbers), number) in several.numbers.iter_mut().zip(observed.numbers) {
                numbers.resize(numbers.len().max(seed + 1), None);
                numbers[seed] = number;
            }
        }
        results
    }
}

impl Results {
    /// A number of each seed; empty where it was not measured.
    fn numbers(&self, value: &Value, variant: &str) -> Vec<Option<f64>> {
        if value.place == Place::Nowhere {
            let found = self.alone.iter().find(|(measure, _)| *measure == value.measure);
            return found.map(|(_, number)| Some(*number)).into_iter().collect();
        }
        let variant = value.variant.as_deref().unwrap_or(variant);
        let of = |experiment: &String| {
            let key = (experiment.clone(), variant.to_owned(), value.discipline.clone());
            let several = self.cells.get(&key)?;
            let (_, numbers) = several.numbers.iter().find(|(measure, _)| *measure == value.measure)?;
            Some(numbers.as_slice())
        };
        let all: Vec<&[Option<f64>]> =
            value.place.experiments().iter().map(|experiment| of(experiment).unwrap_or(&[])).collect();
        let seeds = all.iter().map(|numbers| numbers.len()).min().unwrap_or(0);
        let fold = |seed: usize| {
            let of_seed: Option<Vec<f64>> = all.iter().map(|numbers| numbers[seed]).collect();
            of_seed.map(|numbers| value.place.fold(&numbers))
        };
        (0..seeds).map(fold).collect()
    }

    /// The number that a test is about, under a variant.
    pub(crate) fn estimate(&self, test: &Test, variant: &str) -> Estimate {
        self.compared(&test.value, test.against.as_ref(), variant)
    }

    /// A number of a discipline, or how much of that of another it is, for a figure.
    pub(crate) fn number(
        &self,
        experiment: &str,
        variant: &str,
        discipline: &str,
        over: Option<&str>,
        measure: &Measure,
    ) -> Estimate {
        let of = |discipline: &str| Value {
            place: Place::One(experiment.to_owned()),
            discipline: discipline.to_owned(),
            measure: measure.clone(),
            variant: None,
        };
        let against = over.map(|base| Against { how: How::Over, value: of(base) });
        self.compared(&of(discipline), against.as_ref(), variant)
    }

    /// A number, set off against another: seed by seed, so that what all seeds share cancels out.
    fn compared(&self, value: &Value, against: Option<&Against>, variant: &str) -> Estimate {
        let left = self.numbers(value, variant);
        let per_seed = match against {
            None => left,
            Some(Against { how, value }) => {
                let right = self.numbers(value, variant);
                let both = left.into_iter().zip(right);
                let together = |(left, right): (Option<f64>, Option<f64>)| match how {
                    How::Over => Some(left? / right?).filter(|ratio| ratio.is_finite()),
                    How::Minus => Some(left? - right?),
                };
                both.map(together).collect()
            }
        };
        Estimate::over(per_seed)
    }

    /// What there is to draw of a discipline.
    pub(crate) fn data(
        &self,
        experiment: &str,
        variant: &str,
        discipline: &str,
        curve: &Curve,
    ) -> Option<&Data> {
        let key = (experiment.to_owned(), variant.to_owned(), discipline.to_owned());
        let several = self.cells.get(&key)?;
        several.data.iter().find(|(known, _)| known == curve).map(|(_, data)| data)
    }

    /// Whether anything was run under a variant.
    pub(crate) fn has(&self, experiment: &str, variant: &str) -> bool {
        self.cells.keys().any(|(one, other, _)| one == experiment && other == variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Fold;
    use crate::measure::UtilizationMin;

    fn results(of: &[(&str, &str, &[Option<f64>])]) -> Results {
        let mut results = Results { cells: BTreeMap::new(), alone: Vec::new(), finished: 0, planned: 0 };
        for (experiment, discipline, numbers) in of {
            let key = (String::from(*experiment), "main".to_owned(), String::from(*discipline));
            let several = Several {
                numbers: vec![(Measure::UtilizationMin(UtilizationMin {}), numbers.to_vec())],
                data: Vec::new(),
            };
            results.cells.insert(key, several);
        }
        results
    }

    fn value(discipline: &str, fold: Fold) -> Value {
        Value {
            place: Place::Across(vec!["few".to_owned(), "many".to_owned()], fold),
            discipline: discipline.to_owned(),
            measure: Measure::UtilizationMin(UtilizationMin {}),
            variant: None,
        }
    }

    fn test(value: Value, against: Option<Against>) -> Test {
        Test { says: None, variant: None, value, against, at_least: None, at_most: None }
    }

    /// Each seed by itself; one that lacks an experiment has no number, and what was never run has none at all.
    #[test]
    fn seeds_are_folded_one_by_one() {
        let results = results(&[
            ("few", "efd", &[Some(1.0), Some(2.0), Some(3.0)]),
            ("many", "efd", &[Some(5.0), None, Some(7.0)]),
            ("few", "drr", &[Some(1.0), Some(1.0)]),
            ("many", "drr", &[Some(0.5), Some(1.0)]),
            ("few", "fifo", &[Some(1.0)]),
        ]);
        let per_seed = |test: Test| results.estimate(&test, "main").per_seed;
        assert_eq!(per_seed(test(value("efd", Fold::Mean), None)), [Some(3.0), None, Some(5.0)]);
        assert_eq!(per_seed(test(value("fifo", Fold::Mean), None)), []);
        // The mean over the mean, not the mean of ratios; seeds that only one of them has are left out.
        let over = Against { how: How::Over, value: value("drr", Fold::Mean) };
        assert_eq!(per_seed(test(value("efd", Fold::Mean), Some(over))), [Some(4.0), None]);
        let slope = Fold::Slope(vec![2.0, 10.0]);
        assert_eq!(per_seed(test(value("efd", slope), None)), [Some(0.5), None, Some(0.5)]);
    }
}
