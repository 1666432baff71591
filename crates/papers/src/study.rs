//! The runs of a study, a single run, and the results of all runs.

use std::collections::{BTreeMap, BTreeSet};

use giveway_disciplines::Spec;
use giveway_measure::Estimate;
use giveway_observe::{Backlogged, layout, observe};
use giveway_qdisc::{Rate, Span};
use giveway_scenario::{Bound, Draft, Scenario, Trial};

use crate::about::{Experiment, Figure, Panel, Section};
use crate::claim::{Against, Claim, Experiments, How, Test, Value};
use crate::cost;
use crate::curve::{Curve, Data};
use crate::error::{ContentError, PaperError};
use crate::measure::{self, Measure, Run};
use crate::paper::Paper;

/// The part of a paper that a study reproduces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The only figure; `None` stands for all of them.
    pub figure: Option<String>,
    /// True for a first look: shorter runs, three seeds, and no variants.
    pub quick: bool,
    /// The number of seeds; `None` takes the number in the paper's file.
    pub seeds: Option<u32>,
}

/// The number of seeds of a quick study.
const QUICK_SEEDS: u32 = 3;

/// A paper, and the runs that reproduce it or a part of it.
#[derive(Debug)]
pub struct Study {
    pub(crate) paper: Paper,
    pub(crate) scope: Scope,
    scenes: Vec<Scene>,
}

/// An experiment under a variant, with the disciplines that are compared and the data that the study needs of
/// it.
#[derive(Debug)]
struct Scene {
    experiment: String,
    variant: String,
    /// The names of the disciplines in claims and figures, in the order of the scenario's disciplines.
    disciplines: Vec<String>,
    setting: Setting,
    /// The fair share of each flow.
    ideal: Option<Rate>,
    measures: Vec<Measure>,
    curves: Vec<Curve>,
}

/// The means by which an experiment is run.
#[derive(Debug)]
enum Setting {
    /// A simulation.
    Scenario(Box<Scenario>),
    /// Timings on this machine: the cost of a packet in each discipline, `seeds` times each.
    Cost { case: Backlogged, specs: Vec<Spec>, seeds: u32 },
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

/// The data that claims and figures need of an experiment.
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

/// Adds a value, unless the list contains it.
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

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(crate) numbers: Vec<Option<f64>>,
    pub(crate) data: Vec<Data>,
}

/// The results of all runs.
#[derive(Debug)]
pub struct Results {
    /// The runs by experiment, variant and discipline.
    runs: BTreeMap<(String, String, String), Several>,
    /// Numbers that need no run.
    without_run: Vec<(Measure, f64)>,
    /// The number of runs that finished.
    pub finished: usize,
    /// The number of runs of the study.
    pub planned: usize,
    /// The number of planned and of finished runs, by experiment, variant and discipline.
    counts: BTreeMap<(String, String, String), (usize, usize)>,
    /// The names of the runs that did not finish.
    pub missing: Vec<String>,
}

/// The state of the runs that a claim needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// All of them finished, or it needs none.
    All,
    /// Some did not finish: their number, and the total.
    Part(usize, usize),
    /// They are shorter than in the paper, and the claim is about a total.
    Shorter,
    /// The study does not contain them.
    Never,
}

/// The runs of one discipline under one variant of one experiment.
#[derive(Debug, Default)]
struct Several {
    /// The numbers of each measure, in the order of the seeds.
    numbers: Vec<(Measure, Vec<Option<f64>>)>,
    data: Vec<(Curve, Data)>,
}

impl Study {
    /// Plans a study.
    ///
    /// # Errors
    /// When the paper has no such figure, or a scenario is not valid.
    pub fn new(paper: Paper, scope: Scope) -> Result<Study, PaperError> {
        if let Some(figure) = &scope.figure
            && paper.about.figure(figure).is_none()
        {
            let known: Vec<&str> = paper.figures().collect();
            return Err(PaperError::UnknownFigure { figure: figure.clone(), known: known.join(", ") });
        }
        let mut study = Study { paper, scope, scenes: Vec::new() };
        let mut scenes = Vec::new();
        let experiments = study.paper.about.experiment.iter();
        // Timings take a moment only.
        let quick = |experiment: &&Experiment| experiment.quick.is_some() || experiment.cost.is_some();
        for experiment in experiments.filter(|experiment| !study.scope.quick || quick(experiment)) {
            for variant in experiment.variants.iter().filter(|variant| study.covers(variant)) {
                scenes.extend(study.scene(experiment, variant)?);
            }
        }
        study.scenes = scenes;
        Ok(study)
    }

    /// The name of the paper, or of its folder.
    pub fn id(&self) -> &str {
        &self.paper.id
    }
    /// The title of the paper.
    pub fn title(&self) -> &str {
        self.paper.title()
    }
    /// The authors of the paper, and the place and year of publication.
    pub fn reference(&self) -> String {
        self.paper.reference()
    }

    /// The heading of a figure of the paper; `None` if it does not exist.
    pub fn figure_heading(&self, figure: &str) -> Option<String> {
        self.paper.about.figure(figure).map(|figure| figure.heading())
    }

    /// True if a variant is part of this study.
    fn covers(&self, variant: &str) -> bool {
        !self.scope.quick || variant == self.paper.about.main()
    }

    /// The claims that this study tests.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        let of_figure = |claim: &&Claim| self.scope.figure.is_none() || claim.figure == self.scope.figure;
        self.paper.claims.iter().filter(of_figure)
    }

    /// The figures of a section that this study draws.
    pub(crate) fn figures(&self, section: &Section) -> Vec<&Figure> {
        let wanted = |id: &&String| self.scope.figure.as_ref().is_none_or(|figure| figure == *id);
        section.figures.iter().filter(wanted).filter_map(|id| self.paper.about.figure(id)).collect()
    }

    /// The sections that this study writes.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &Section> {
        let any = |section: &&Section| self.covers(&section.variant) && !self.figures(section).is_empty();
        self.paper.about.section.iter().filter(any)
    }

    /// True if the study is smaller than the paper's: a first look, or fewer seeds.
    pub fn is_partial(&self) -> bool {
        self.scope.quick || self.seeds() < self.paper.about.seeds
    }

    /// The number of seeds of all variants that are not listed as `few`.
    pub fn seeds(&self) -> u32 {
        let usual = if self.scope.quick { QUICK_SEEDS } else { self.paper.about.seeds };
        self.scope.seeds.unwrap_or(usual)
    }

    /// The data that claims and figures need of an experiment under a variant.
    fn needs(&self, experiment: &Experiment, variant: &str) -> Needs {
        let mut needs = Needs::default();
        let main = self.paper.about.main();
        for claim in self.claims() {
            // Tests are judged under every variant; measurements that support a reason only under their own.
            let shown = claim.shown.iter().filter(|test| {
                test.values().any(|value| value.variant.as_deref().unwrap_or(main) == variant)
            });
            let values = claim.tests.iter().chain(shown).flat_map(Test::values);
            let here = |value: &&Value| value.experiments.ids().contains(&experiment.id);
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

    /// An experiment under a variant, restricted to the disciplines that the study needs; `None` if it needs
    /// none.
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
                let (source_name, known) = (source.to_owned(), known.join(", "));
                let mistake = ContentError::UnknownTraffic { source_name, known };
                return Err(self.invalid(experiment, variant)(mistake));
            }
        }
        let (ideal, experiment, variant) = (experiment.ideal, experiment.id.clone(), variant.to_owned());
        let setting = Setting::Scenario(Box::new(scenario));
        Ok(Some(Scene { experiment, variant, disciplines, setting, ideal, measures, curves }))
    }

    /// The timings of an experiment that measures the cost of a packet.
    fn timed(
        &self,
        written: &cost::Written,
        experiment: &Experiment,
        variant: &str,
        disciplines: &[String],
        seeds: u32,
    ) -> Result<Setting, PaperError> {
        let about = &self.paper.about;
        let setting = || -> Result<Setting, ContentError> {
            let case = written.read()?;
            let spec = |name: &String| -> Result<Spec, ContentError> {
                let spec: Spec = about.spec(name, experiment).parse()?;
                cost::check(case, &spec)?;
                Ok(spec)
            };
            Ok(Setting::Cost { case, specs: disciplines.iter().map(spec).collect::<Result<_, _>>()?, seeds })
        };
        setting().map_err(self.invalid(experiment, variant))
    }

    /// Adds the file, the experiment and the variant to a mistake.
    fn invalid(&self, experiment: &Experiment, variant: &str) -> impl FnOnce(ContentError) -> PaperError {
        let name = if experiment.cost.is_some() { "paper.toml" } else { &experiment.scenario };
        let file = format!("{}/{name}", self.paper.id);
        let (experiment, variant) = (experiment.id.clone(), variant.to_owned());
        move |mistake| PaperError::Experiment { file, experiment, variant, source: Box::new(mistake) }
    }

    /// The scenario of an experiment, with the changes of the experiment, the variant and the scope.
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
        // Only the records that are needed are set: a scenario on a switch does not have these keys.
        let episodes = measures.iter().any(|measure| measure.needs().episodes)
            || curves.iter().any(Curve::needs_episodes);
        let wanted = [
            ("senders", curves.iter().any(Curve::needs_senders)),
            ("episodes", episodes),
            ("bursts", measures.iter().any(|measure| measure.needs().bursts)),
        ];
        sets.extend(wanted.iter().filter(|(_, wanted)| *wanted).map(|(key, _)| format!("record.{key}=true")));
        if let Some(quick) = experiment.quick.as_ref().filter(|_| self.scope.quick) {
            // A warm-up of the experiment suits its full duration only.
            sets.retain(|set| !set.starts_with("warmup="));
            sets.push(format!("duration={quick}"));
        }
        let draft = Draft::parse(&self.paper.scenarios[&experiment.scenario], "");
        let draft = sets.iter().fold(draft, |draft, set| draft.set(set));
        let scenario = draft.finish().map_err(|error| {
            let messages = error.diagnostics.iter().map(|diagnostic| diagnostic.message.clone());
            self.invalid(experiment, variant)(ContentError::Scenario(messages.collect()))
        })?;
        Ok(scenario.with_seeds(experiment.seeds(variant, self.seeds())))
    }

    /// Every run, the longest first, so that parallel runs end at about the same time. [`Study::finish`]
    /// takes the results in this order.
    pub fn jobs(&self) -> Vec<Job> {
        let mut scenes: Vec<usize> = (0..self.scenes.len()).collect();
        scenes.sort_by_key(|scene| std::cmp::Reverse(self.scenes[*scene].setting.duration()));
        let trials = |scene: usize| {
            self.scenes[scene].setting.trials().into_iter().map(move |trial| Job { scene, trial })
        };
        scenes.into_iter().flat_map(trials).collect()
    }

    /// The simulated duration of a run, as its weight in a progress bar.
    pub fn weight(&self, job: &Job) -> Span {
        self.scenes[job.scene].setting.duration()
    }

    /// True if the run measures real time, so that no other work should run at the same time.
    pub fn is_timed(&self, job: &Job) -> bool {
        matches!(self.scenes[job.scene].setting, Setting::Cost { .. })
    }

    /// The name of a run in messages: discipline, experiment, variant and seed.
    pub fn name(&self, job: &Job) -> String {
        let Scene { experiment, variant, disciplines, .. } = &self.scenes[job.scene];
        format!("{} in {experiment} ({variant}), seed {}", disciplines[job.trial.discipline], job.trial.seed)
    }

    /// Executes one run. It calls `keep_running` from time to time with its progress, 0 to 1. If
    /// `keep_running` returns false, the run stops without a result.
    pub fn run(&self, job: &Job, keep_running: &dyn Fn(f64) -> bool) -> Option<Observed> {
        let scene = &self.scenes[job.scene];
        let scenario = match &scene.setting {
            Setting::Scenario(scenario) => scenario,
            Setting::Cost { case, specs, .. } => {
                if !keep_running(0.0) {
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
        let (record, _) = observe(scenario, &job.trial, series, keep_running)?;
        let first = Some(&job.trial.seed) == scenario.seeds.first();
        let run = Run { record: &record, ideal: scene.ideal, bound: &bound };
        Some(Observed {
            numbers: scene.measures.iter().map(|measure| measure.of(&run)).collect(),
            data: scene.curves.iter().map(|curve| curve.of(&record, first)).collect(),
        })
    }

    /// The numbers that need no run.
    fn without_run(&self) -> Vec<(Measure, f64)> {
        let tests = self.claims().flat_map(|claim| claim.tests.iter().chain(&claim.shown));
        let values = tests.flat_map(Test::values).filter(|value| value.experiments == Experiments::None);
        let number = |measure: &Measure| measure.of_paper(&self.paper.measured);
        values.filter_map(|value| Some((value.measure.clone(), number(&value.measure)?))).collect()
    }

    /// Combines the results of `jobs`, in their order; `None` stands for a run that was stopped.
    pub fn finish(&self, jobs: &[Job], observed: Vec<Option<Observed>>) -> Results {
        let mut results = Results {
            runs: BTreeMap::new(),
            without_run: self.without_run(),
            finished: 0,
            planned: jobs.len(),
            counts: BTreeMap::new(),
            missing: Vec::new(),
        };
        for (job, observed) in jobs.iter().zip(observed) {
            let scene = &self.scenes[job.scene];
            let discipline = scene.disciplines[job.trial.discipline].clone();
            let key = (scene.experiment.clone(), scene.variant.clone(), discipline);
            let (planned, finished) = results.counts.entry(key.clone()).or_default();
            *planned += 1;
            let Some(observed) = observed else {
                results.missing.push(self.name(job));
                continue;
            };
            *finished += 1;
            results.finished += 1;
            let several = results.runs.entry(key).or_default();
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
    /// The number of each seed; empty if it was not measured.
    fn numbers(&self, value: &Value, variant: &str) -> Vec<Option<f64>> {
        if value.experiments == Experiments::None {
            let found = self.without_run.iter().find(|(measure, _)| *measure == value.measure);
            return found.map(|(_, number)| Some(*number)).into_iter().collect();
        }
        let variant = value.variant.as_deref().unwrap_or(variant);
        let of = |experiment: &String| {
            let key = (experiment.clone(), variant.to_owned(), value.discipline.clone());
            let several = self.runs.get(&key)?;
            let (_, numbers) = several.numbers.iter().find(|(measure, _)| *measure == value.measure)?;
            Some(numbers.as_slice())
        };
        let all: Vec<&[Option<f64>]> =
            value.experiments.ids().iter().map(|experiment| of(experiment).unwrap_or(&[])).collect();
        let seeds = all.iter().map(|numbers| numbers.len()).min().unwrap_or(0);
        let fold = |seed: usize| {
            let of_seed: Option<Vec<f64>> = all.iter().map(|numbers| numbers[seed]).collect();
            of_seed.map(|numbers| value.experiments.fold(&numbers))
        };
        (0..seeds).map(fold).collect()
    }

    /// The number of a test under a variant.
    pub(crate) fn estimate(&self, test: &Test, variant: &str) -> Estimate {
        self.compared(&test.value, test.against.as_ref(), variant)
    }

    /// The number of a discipline for a figure; with `over`, its ratio to the number of that discipline.
    pub(crate) fn number(
        &self,
        experiment: &str,
        variant: &str,
        discipline: &str,
        over: Option<&str>,
        measure: &Measure,
    ) -> Estimate {
        let of = |discipline: &str| Value {
            experiments: Experiments::One(experiment.to_owned()),
            discipline: discipline.to_owned(),
            measure: measure.clone(),
            variant: None,
        };
        let against = over.map(|base| Against { how: How::Over, value: of(base) });
        self.compared(&of(discipline), against.as_ref(), variant)
    }

    /// A number, compared with another seed by seed, so that the influence of the seed cancels out.
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

    /// The data of a curve for one discipline; `None` if it was not run.
    pub(crate) fn data(
        &self,
        experiment: &str,
        variant: &str,
        discipline: &str,
        curve: &Curve,
    ) -> Option<&Data> {
        let key = (experiment.to_owned(), variant.to_owned(), discipline.to_owned());
        let several = self.runs.get(&key)?;
        several.data.iter().find(|(known, _)| known == curve).map(|(_, data)| data)
    }

    /// The state of the runs that the tests of a claim need. `main` is the variant of tests that name none.
    pub(crate) fn ran(&self, claim: &Claim, main: &str) -> Ran {
        let mut keys = BTreeSet::new();
        for test in &claim.tests {
            for value in test.values() {
                let variant = value.variant.as_deref().unwrap_or(main);
                let key =
                    |experiment: &String| (experiment.clone(), variant.to_owned(), value.discipline.clone());
                keys.extend(value.experiments.ids().iter().map(key));
            }
        }
        let counts: Option<Vec<(usize, usize)>> =
            keys.iter().map(|key| self.counts.get(key).copied()).collect();
        let Some(counts) = counts else { return Ran::Never };
        let (planned, finished) = counts
            .into_iter()
            .fold((0, 0), |(all, done), (planned, finished)| (all + planned, done + finished));
        if finished == planned { Ran::All } else { Ran::Part(planned - finished, planned) }
    }

    /// True if the experiment was run under the variant.
    pub(crate) fn has(&self, experiment: &str, variant: &str) -> bool {
        self.runs.keys().any(|(one, other, _)| one == experiment && other == variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Fold;
    use crate::measure::UtilizationMin;

    fn results(of: &[(&str, &str, &[Option<f64>])]) -> Results {
        let mut results = Results {
            runs: BTreeMap::new(),
            without_run: Vec::new(),
            finished: 0,
            planned: 0,
            counts: BTreeMap::new(),
            missing: Vec::new(),
        };
        for (experiment, discipline, numbers) in of {
            let key = (String::from(*experiment), "main".to_owned(), String::from(*discipline));
            let several = Several {
                numbers: vec![(Measure::UtilizationMin(UtilizationMin {}), numbers.to_vec())],
                data: Vec::new(),
            };
            results.runs.insert(key, several);
        }
        results
    }

    fn value(discipline: &str, fold: Fold) -> Value {
        Value {
            experiments: Experiments::Across(vec!["few".to_owned(), "many".to_owned()], fold),
            discipline: discipline.to_owned(),
            measure: Measure::UtilizationMin(UtilizationMin {}),
            variant: None,
        }
    }

    fn test(value: Value, against: Option<Against>) -> Test {
        Test { says: None, variant: None, value, against, at_least: None, at_most: None }
    }

    /// A seed that lacks an experiment has no number, and a discipline that was never run has none at all.
    #[test]
    fn numbers_are_combined_for_each_seed() {
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
        // The ratio of means, not the mean of ratios. A seed that only one of them has is left out.
        let over = Against { how: How::Over, value: value("drr", Fold::Mean) };
        assert_eq!(per_seed(test(value("efd", Fold::Mean), Some(over))), [Some(4.0), None]);
        let slope = Fold::Slope(vec![2.0, 10.0]);
        assert_eq!(per_seed(test(value("efd", slope), None)), [Some(0.5), None, Some(0.5)]);
    }
}
