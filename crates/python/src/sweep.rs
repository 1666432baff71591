//! Sweeps: on threads of this process, or on the workers of a cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use giveway_measure::{Better, Difference, Estimate, Record, named, nearest};
use giveway_qdisc::Quantity;
use giveway_record::chain;
use giveway_record::dataset::Part;
use giveway_record::frames;
use giveway_scenario::Trial;
use giveway_sweep::{
    Axis, Data, Design, Done, Manifest, Outside, OutsideTrial, Plan, Precision, Remote, Request, Rescued,
    Shard, SweepError, SweepFolder, Task, failed_parts_of, page, parts_of, run, usual_metric, work,
    work_with,
};
use giveway_trials::Reuse;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::frame::Frame;
use crate::own::{self, Own};
use crate::running::{Watched, threads};
use crate::scenario::Scenario;

/// A scenario with the keys that vary.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Sweep {
    plan: Arc<Plan>,
    /// The folder of the scenario.
    folder: PathBuf,
    /// The disciplines in Python, as the package describes them.
    own: Vec<Py<PyAny>>,
}

/// The description of a discipline in Python, for the plan.
#[derive(FromPyObject)]
struct Described {
    name: String,
    numbers: Vec<(String, Parameter)>,
    source: String,
}

/// The default of a parameter of a discipline in Python.
#[derive(FromPyObject)]
enum Parameter {
    #[pyo3(transparent)]
    Text(String),
    #[pyo3(transparent)]
    Number(f64),
}

impl Described {
    fn outside(self) -> Outside {
        let Described { name, numbers, source } = self;
        let quantity = |default| match default {
            Parameter::Text(text) => Quantity::Text(text),
            Parameter::Number(number) => Quantity::Number(number, "1"),
        };
        let parameters = numbers.into_iter().map(|(name, default)| (name, quantity(default))).collect();
        Outside { name, parameters, source }
    }
}

/// The numbers of a point, a seed, and disciplines.
type Asked = (u64, usize, Vec<usize>);

/// The exception of an error of a sweep.
fn raised(py: Python<'_>, error: SweepError) -> PyErr {
    match &error {
        SweepError::Scenario(error) => errors::scenario(py, error),
        SweepError::Axis(_) | SweepError::Design(_) | SweepError::Precision(_) => {
            PyValueError::new_err(error.to_string())
        }
        SweepError::Unwritten { rescued: Rescued { trials, folder }, .. } => {
            let after = match folder {
                Some(folder) => format!(
                    "the last finished trials ({trials}) are in {at}: when the folder can be written again, make the \
                     same call with reuse=[\"{at}\"]",
                    at = folder.display()
                ),
                None => format!(
                    "the last finished trials ({trials}) could not be kept among the temporary files either, and run \
                     again: when the folder can be written again, make the same call"
                ),
            };
            errors::failed(py, &format!("{}; {after}", chain(&error)))
        }
        _ => errors::failed(py, &chain(&error)),
    }
}

fn facts(done: &Done) -> String {
    let Done { ran, had, reused, failed, complete } = *done;
    json!({ "ran": ran, "had": had, "reused": reused, "failed": failed, "complete": complete }).to_string()
}

#[pymethods]
impl Sweep {
    /// Checks the keys that vary, each as `KEY=VALUES`, and the scenario at each of their values. `own` has
    /// disciplines in Python, and is true if they replace the disciplines of the scenario.
    #[new]
    #[pyo3(signature = (scenario, axes, design, until, own = (Vec::new(), false)))]
    fn new(
        py: Python<'_>,
        scenario: &Bound<'_, Scenario>,
        axes: Vec<String>,
        design: &str,
        until: Option<&str>,
        own: (Vec<Py<PyAny>>, bool),
    ) -> PyResult<Sweep> {
        let (own, only) = own;
        let described = own.iter().map(|own| own.extract::<Described>(py).map(Described::outside));
        let outside = described.collect::<PyResult<Vec<_>>>()?;
        let folder = scenario.get().folder().to_owned();
        let scenario = scenario.get().read.clone();
        let plan = move || -> Result<Plan, SweepError> {
            let axes: Vec<Axis> = axes.iter().map(|axis| axis.parse()).collect::<Result<_, _>>()?;
            let design: Design = design.parse()?;
            let until: Option<Precision> = until.map(str::parse).transpose()?;
            Plan::with_outside(Request { scenario, axes, design, until }, outside, only)
        };
        let plan = py.detach(plan).map_err(|error| raised(py, error))?;
        Ok(Sweep { plan: Arc::new(plan), folder, own })
    }

    /// The number of points.
    #[getter]
    fn points(&self) -> u64 {
        self.plan.points()
    }

    /// The maximum number of trials.
    #[getter]
    fn trials(&self) -> u64 {
        self.plan.trials()
    }

    /// The version of the simulation.
    #[getter]
    fn version(&self) -> &str {
        self.plan.version()
    }

    /// The scenario at a point.
    fn at(&self, py: Python<'_>, point: u64) -> PyResult<Scenario> {
        if point >= self.plan.points() {
            return Err(PyValueError::new_err(format!("there is no point {point}")));
        }
        let found = self.plan.point(point).map_err(|error| errors::scenario(py, &error))?;
        Ok(Scenario::of(found.scenario, self.plan.request().scenario.title.clone(), &self.folder))
    }

    /// Runs what is missing in the folder `out` on threads of this process. Returns what was done as JSON,
    /// messages, and the exception of an interruption.
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        jobs: u16,
        reuse: Vec<PathBuf>,
        progress: Option<Py<PyAny>>,
        command: String,
    ) -> PyResult<(String, Vec<String>, Option<Py<PyAny>>)> {
        let watched = Watched::default();
        let (plan, theirs) = (Arc::clone(&self.plan), watched.clone());
        let waited = watched.wait(py, progress.as_ref(), move || -> Result<Done, SweepError> {
            let others = Reuse::of(&reuse, &theirs)?;
            let mut folder = SweepFolder::open(&out, &plan, Shard::WHOLE, &command, &theirs)?;
            let jobs = threads(jobs);
            run(&plan, &mut folder, Shard::WHOLE, jobs, &others, &theirs)
        });
        let (done, stopped) = waited.ended(py);
        let done = done.map_err(|error| raised(py, error))?;
        Ok((facts(&done), watched.messages(), stopped.map(|error| error.into_value(py).into_any())))
    }

    /// Starts a sweep whose trials run elsewhere.
    fn begin(&self, py: Python<'_>, out: PathBuf, reuse: Vec<PathBuf>, command: &str) -> PyResult<Sweeping> {
        let watched = Watched::default();
        let begun = py.detach(|| -> Result<Remote, SweepError> {
            let others = Reuse::of(&reuse, &watched)?;
            let folder = SweepFolder::open(&out, &self.plan, Shard::WHOLE, command, &watched)?;
            Remote::begin(Arc::clone(&self.plan), folder, &others, &watched)
        });
        let remote = begun.map_err(|error| raised(py, error))?;
        Ok(Sweeping { remote: Mutex::new(Some(remote)), messages: watched.messages() })
    }

    /// Runs tasks on this thread. Returns their rows as text.
    fn work(&self, py: Python<'_>, tasks: Vec<Asked>) -> PyResult<String> {
        let tasks: Vec<Task> =
            tasks.into_iter().map(|(point, seed, disciplines)| Task { point, seed, disciplines }).collect();
        if self.own.is_empty() {
            return Ok(py.detach(|| work(&self.plan, &tasks)));
        }
        let mut raised = None;
        let text = work_with(&self.plan, &tasks, &mut |scenario, outside, seed| match self
            .run_own(py, scenario, outside, seed)
        {
            Ok(record) => Some(Ok(record)),
            Err(error) => {
                raised = Some(error);
                None
            }
        });
        raised.map_or(Ok(text), Err)
    }
}

impl Sweep {
    /// Runs a trial of a discipline in Python.
    fn run_own(
        &self,
        py: Python<'_>,
        scenario: &giveway_scenario::Scenario,
        outside: &OutsideTrial,
        seed: u64,
    ) -> PyResult<Record> {
        let own = self.own[outside.outside].bind(py);
        let own: Own = own.call_method1("at", (&outside.name, outside.parameters.clone()))?.extract()?;
        let trial = Trial { discipline: 0, name: outside.name.clone(), seed };
        own::run_with(py, scenario, &own, &trial, &Watched::default())
    }
}

/// A sweep whose trials run elsewhere.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Sweeping {
    remote: Mutex<Option<Remote>>,
    messages: Vec<String>,
}

impl Sweeping {
    fn with<T>(&self, of: impl FnOnce(&mut Remote) -> T) -> PyResult<T> {
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        match remote.as_mut() {
            Some(remote) => Ok(of(remote)),
            None => Err(PyValueError::new_err("this sweep has ended")),
        }
    }
}

#[pymethods]
impl Sweeping {
    /// Up to `most` tasks.
    fn take(&self, most: usize) -> PyResult<Vec<Asked>> {
        self.with(|remote| {
            let tasks = std::iter::from_fn(|| remote.next_task()).take(most);
            tasks.map(|task| (task.point, task.seed, task.disciplines)).collect()
        })
    }

    /// Takes the rows of tasks.
    fn add(&self, py: Python<'_>, rows: &str) -> PyResult<()> {
        let added = py.detach(|| self.with(|remote| remote.add(rows)))?;
        added.map_err(|error| raised(py, error))
    }

    /// The number of trials that were there at the start.
    #[getter]
    fn had(&self) -> PyResult<u64> {
        self.with(|remote| remote.had())
    }

    /// True if everything is there.
    fn is_done(&self) -> PyResult<bool> {
        self.with(Remote::is_done)
    }

    /// Messages from the start.
    #[getter]
    fn messages(&self) -> Vec<String> {
        self.messages.clone()
    }

    /// Writes what has finished. Returns what was done as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(remote) = remote else { return Err(PyValueError::new_err("this sweep has ended")) };
        let done = py.detach(|| remote.finish()).map_err(|error| raised(py, error))?;
        Ok(facts(&done))
    }
}

/// The metric, by default the usual one, and the sentences about it.
#[pyfunction]
pub fn answers(py: Python<'_>, dir: PathBuf, metric: Option<String>) -> PyResult<(String, Vec<String>)> {
    let found = py.detach(|| -> Result<_, SweepError> {
        let metric = metric.map_or_else(|| usual_metric(&dir), Ok)?;
        let sentences = giveway_sweep::answers(&Data::read(&dir, &metric)?);
        Ok((metric, sentences))
    });
    found.map_err(|error| raised(py, error))
}

/// The report of a sweep as HTML.
#[pyfunction]
pub fn sweep_page(py: Python<'_>, dir: PathBuf, metrics: Vec<String>) -> PyResult<String> {
    let html = py.detach(|| -> Result<String, SweepError> {
        let metrics = if metrics.is_empty() { vec![usual_metric(&dir)?] } else { metrics };
        let data = metrics.iter().map(|metric| Data::read(&dir, metric)).collect::<Result<Vec<_>, _>>()?;
        Ok(page(&data).html())
    });
    html.map_err(|error| raised(py, error))
}

/// The manifest of a sweep as JSON.
#[pyfunction]
pub fn sweep_facts(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    let manifest = Manifest::read(&dir).map_err(|error| raised(py, error))?;
    match manifest {
        Some(manifest) => Ok(json!(manifest).to_string()),
        None => {
            let message = format!("{} is not the folder of a sweep", dir.display());
            Err(pyo3::exceptions::PyFileNotFoundError::new_err(message))
        }
    }
}

/// The files of the table `name` of a sweep: its trials, or those that failed. All of their bytes are
/// checked.
#[pyfunction]
pub fn sweep_files(py: Python<'_>, dir: PathBuf, name: &str) -> PyResult<Vec<OsString>> {
    Ok(checked(py, &dir, name)?.iter().map(|part| part.path().into_os_string()).collect())
}

/// The parts of the table `name` of a sweep.
fn checked(py: Python<'_>, dir: &Path, name: &str) -> PyResult<Vec<Part>> {
    let parts = match name {
        "trials" => py.detach(|| parts_of(dir)),
        "failed" => py.detach(|| failed_parts_of(dir)),
        _ => return Err(PyKeyError::new_err(format!("a sweep has no table {name}"))),
    };
    parts.map_err(|error| raised(py, error))
}

/// The table `name` of a sweep: its trials, or those that failed.
#[pyfunction]
pub fn sweep_frame(py: Python<'_>, dir: PathBuf, name: &str) -> PyResult<Frame> {
    let parts = checked(py, &dir, name)?;
    let read = |dir: &Path| frames::of_parts(name, dir, &parts);
    let frame = py.detach(|| read(&dir)).map_err(|error| errors::failed(py, &chain(&error)))?;
    Ok(Frame::new(frame))
}

/// The number of processors.
#[pyfunction]
pub fn processors() -> usize {
    giveway_trials::processors()
}

/// True if a higher value of the metric is better.
#[pyfunction]
pub fn higher_is_better(metric: &str) -> PyResult<bool> {
    match named(metric).map(|named| named.definition.better) {
        Some(Better::High) => Ok(true),
        Some(Better::Low) => Ok(false),
        Some(Better::Neither) => Err(PyValueError::new_err(format!(
            "neither a high nor a low {metric} is better: choose another metric"
        ))),
        None => {
            let near = nearest(metric).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            Err(PyValueError::new_err(format!("there is no metric {metric}{near}")))
        }
    }
}

fn axis(text: &str) -> PyResult<Axis> {
    text.parse().map_err(|error: giveway_sweep::AxisError| PyValueError::new_err(error.to_string()))
}

/// The values of an axis, written `KEY=VALUES`; None if there is no end of them.
#[pyfunction]
pub fn axis_levels(text: &str) -> PyResult<Option<Vec<String>>> {
    let axis = axis(text)?;
    Ok(axis.levels().map(|levels| (0..levels).map(|number| axis.level(number).text).collect()))
}

/// True if the values of an axis are numbers of one unit.
#[pyfunction]
pub fn axis_is_numeric(text: &str) -> PyResult<bool> {
    Ok(axis(text)?.unit().is_some())
}

/// The value at a share of an axis, 0 to 1.
#[pyfunction]
pub fn axis_value(text: &str, share: f64) -> PyResult<String> {
    if !(0.0..=1.0).contains(&share) {
        return Err(PyValueError::new_err(format!("{share} is not a share")));
    }
    Ok(axis(text)?.at(share).text)
}

/// The mean of values over seeds, and half the width of its 95 % confidence interval.
#[pyfunction]
pub fn estimate(values: Vec<Option<f64>>) -> (Option<f64>, Option<f64>) {
    let Estimate { mean, ci95, .. } = Estimate::over(values);
    (mean, ci95)
}

/// The mean difference of two lists over the same seeds, half the width of its interval, and its p-value;
/// None if no seed has both.
#[pyfunction]
pub fn paired(before: Vec<Option<f64>>, after: Vec<Option<f64>>) -> Option<(f64, Option<f64>, Option<f64>)> {
    let difference = Difference::between(&Estimate::over(before), &Estimate::over(after))?;
    Some((difference.after - difference.before, difference.ci95, difference.p_value()))
}
