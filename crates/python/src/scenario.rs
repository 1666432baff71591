//! Scenarios.

use std::path::{Path, PathBuf, absolute};

use giveway_qdisc::Bytes;
use giveway_scenario::{Backend, Draft, Scenario as Read};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::errors;

/// A scenario that can run.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Scenario {
    pub read: Read,
    pub name: String,
    /// The scenario before it was checked, for further changes.
    draft: Draft,
    /// The folder that names of files are relative to.
    folder: PathBuf,
}

/// Checks a draft of files in a folder with these changes, each as `KEY=VALUE`.
fn finished(
    py: Python<'_>,
    (draft, folder): (Draft, &Path),
    changes: &[String],
    name: String,
) -> PyResult<Scenario> {
    let draft = changes.iter().fold(draft, |draft, change| draft.set(change));
    let read = draft.clone().finish().map_err(|error| errors::scenario(py, &error))?;
    Ok(Scenario { read, name, draft, folder: folder.to_owned() })
}

impl Scenario {
    /// A scenario that was read elsewhere, from a file in a folder.
    pub fn of(read: Read, name: String, folder: &Path) -> Scenario {
        Scenario { draft: read.draft().clone(), read, name, folder: folder.to_owned() }
    }

    /// The folder that names of files are relative to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn with(&self, read: Read) -> Scenario {
        let Scenario { name, draft, folder, .. } = self;
        Scenario { read, name: name.clone(), draft: draft.clone(), folder: folder.clone() }
    }
}

#[pymethods]
impl Scenario {
    /// Reads a file, and makes changes, each as `KEY=VALUE`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, changes: Vec<String>) -> PyResult<Scenario> {
        let draft = Draft::load(&path).map_err(|error| match error.source.kind() {
            std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(error.to_string()),
            _ => PyOSError::new_err(error.to_string()),
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        finished(py, (draft, folder), &changes, giveway_runner::scenario_name(&path))
    }

    /// Reads a text, and makes changes. Names of files in it are relative to `folder`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: &str,
        folder: PathBuf,
        name: String,
        changes: Vec<String>,
    ) -> PyResult<Scenario> {
        finished(py, (Draft::parse(text, &folder), &folder), &changes, name)
    }

    /// The scenario with changes, each as `KEY=VALUE`. It takes the seeds of the text.
    fn changed(&self, py: Python<'_>, changes: Vec<String>) -> PyResult<Scenario> {
        finished(py, (self.draft.clone(), &self.folder), &changes, self.name.clone())
    }

    /// The arguments of [`Scenario::parse`] that make the scenario again in another process, without seeds
    /// and short settings that were set later.
    fn packed(&self) -> PyResult<(String, PathBuf, String)> {
        Ok((self.draft.text(), absolute(self.folder.join("."))?, self.name.clone()))
    }

    /// The scenario with seeds 1 to `count`.
    fn with_seeds(&self, count: u32) -> PyResult<Scenario> {
        if count == 0 || count > Read::MAX_SEEDS {
            let message = format!("seeds: {count} is not between 1 and {}", Read::MAX_SEEDS);
            return Err(PyValueError::new_err(message));
        }
        Ok(self.with(self.read.clone().with_seeds(count)))
    }

    /// The scenario with these seeds.
    fn with_seed_list(&self, seeds: Vec<u64>) -> PyResult<Scenario> {
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if seeds.is_empty() || sorted.len() != seeds.len() {
            return Err(PyValueError::new_err("seeds: give at least one number, and each once"));
        }
        let mut read = self.read.clone();
        read.seeds = seeds;
        Ok(self.with(read))
    }

    /// Delay bounds of flows with a reservation, as JSON.
    fn bounds(&self, py: Python<'_>, burst: Option<&str>) -> PyResult<String> {
        let burst = burst.map(|burst| {
            burst.parse::<Bytes>().map_err(|error| PyValueError::new_err(format!("burst: {error}")))
        });
        giveway_cli::bounds(&self.read, burst.transpose()?).map_err(|message| errors::failed(py, &message))
    }

    /// The scenario of a quick check.
    fn short(&self, py: Python<'_>) -> PyResult<Scenario> {
        let read = self.read.short().map_err(|error| errors::scenario(py, &error))?;
        Ok(self.with(read))
    }

    /// The files that the scenario names: the name, and the path.
    fn named_files(&self) -> Vec<(String, PathBuf)> {
        self.read.named_files()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
    #[getter]
    fn title(&self) -> &str {
        &self.read.title
    }
    #[getter]
    fn description(&self) -> &str {
        &self.read.description
    }
    #[getter]
    fn backend(&self) -> &'static str {
        self.read.backend.name()
    }
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.read.seeds.clone()
    }
    #[getter]
    fn duration(&self) -> f64 {
        self.read.duration.as_s()
    }
    #[getter]
    fn warmup(&self) -> f64 {
        self.read.warmup.as_s()
    }
    #[getter]
    fn text(&self) -> String {
        self.read.text()
    }

    /// The compared disciplines as results name them.
    #[getter]
    fn disciplines(&self) -> Vec<String> {
        self.read.compared().into_iter().map(|compared| compared.name).collect()
    }

    /// The links of a network, one for each direction: name, rate in bit/s, true if it is measured, true if
    /// it has the compared discipline.
    #[getter]
    fn links(&self) -> Vec<(String, u64, bool, bool)> {
        let network = match &self.read.backend {
            Backend::Network(network) => network,
            Backend::Live(live) => &live.network,
            Backend::Switch(_) => return Vec::new(),
        };
        let one = |(number, port): (usize, &giveway_scenario::Port)| {
            let measured = network.measured.iter().any(|id| id.0 as usize == number);
            (port.name.clone(), port.rate.as_bit(), measured, port.queue == giveway_scenario::Queue::Compare)
        };
        network.ports.iter().enumerate().map(one).collect()
    }

    /// Warnings as text, each with its line.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let one = |diagnostic: &giveway_scenario::Diagnostic| {
            let error = giveway_scenario::ScenarioError {
                origin: self.read.origin().clone(),
                diagnostics: vec![diagnostic.clone()],
            };
            error.to_string()
        };
        self.read.warnings.iter().map(one).collect()
    }
}

/// The TOML of a table in JSON.
#[pyfunction]
pub fn to_toml(json: &str) -> PyResult<String> {
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    toml::to_string_pretty(&value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The TOML of one value in JSON, for a change of a key.
#[pyfunction]
pub fn to_toml_value(json: &str) -> PyResult<String> {
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let value = toml::Value::try_from(&value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(value.to_string())
}
