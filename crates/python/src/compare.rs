//! The comparison of disciplines on a capture.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use giveway_compare::{Advice, AdviceOptions, Bootstrap, Mode, Request, Source, Target, pairs};
use giveway_qdisc::Rate;
use giveway_runner::{Outcome, RunnerError, Session, scenario_name};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::running::{Later, Waited, Watched, threads};

/// The request, as the package describes it. Texts use the words of the command line.
#[derive(FromPyObject)]
pub struct Asked {
    captures: Vec<PathBuf>,
    /// Upstream and downstream rate of each link.
    rates: Vec<(String, String)>,
    /// A discipline for both directions, or one for each, upstream first.
    disciplines: Vec<Vec<String>>,
    rtt: Option<String>,
    replay: bool,
    congestion: Option<String>,
    local: Option<String>,
    since: Option<String>,
    until: Option<String>,
    seeds: Option<u32>,
    /// The length of stretches; empty for a tenth of the capture, "off" for none.
    bootstrap: Option<String>,
    whole: bool,
    target: String,
    wan: Option<String>,
    overhead: Option<String>,
    /// The rate of the shaper as a share of the line's.
    shape: f64,
    export: Option<PathBuf>,
    out: PathBuf,
    force: bool,
    jobs: u16,
}

/// Parses the value of an argument.
fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn maybe<T: FromStr<Err: Display>>(name: &str, text: Option<&String>) -> PyResult<Option<T>> {
    text.map(|text| parsed(name, text)).transpose()
}

impl Asked {
    fn request(&self, py: Python<'_>) -> PyResult<Request> {
        let rates = self
            .rates
            .iter()
            .map(|(up, down)| Ok((parsed::<Rate>("rate_up", up)?, parsed::<Rate>("rate_down", down)?)));
        let bootstrap = match self.bootstrap.as_deref() {
            None => Bootstrap::WhereItSuits,
            Some("") => Bootstrap::Tenth,
            Some(text) => parsed("bootstrap", text)?,
        };
        let both: Vec<String> =
            self.disciplines.iter().filter(|one| one.len() == 1).map(|one| one[0].clone()).collect();
        let (up, down): (Vec<String>, Vec<String>) = self
            .disciplines
            .iter()
            .filter(|one| one.len() == 2)
            .map(|one| (one[0].clone(), one[1].clone()))
            .unzip();
        let targets = [
            ("tc", Target::Tc),
            ("openwrt", Target::Openwrt),
            ("giveway", Target::Giveway),
            ("any", Target::Any),
        ];
        let Some((_, target)) = targets.into_iter().find(|(name, _)| *name == self.target) else {
            let message =
                format!("target: unknown target \"{}\"; write tc, openwrt, giveway or any", self.target);
            return Err(PyValueError::new_err(message));
        };
        Ok(Request {
            capture: Source {
                files: self.captures.clone(),
                live: None,
                force: self.force,
                from: maybe("since", self.since.as_ref())?,
                until: maybe("until", self.until.as_ref())?,
            },
            mode: if self.replay { Mode::Replay } else { Mode::Flows },
            pairs: pairs(&both, &up, &down).map_err(|error| errors::runner(py, &error))?,
            rates: rates.collect::<PyResult<_>>()?,
            rtt: maybe("rtt", self.rtt.as_ref())?,
            congestion: maybe("congestion", self.congestion.as_ref())?,
            local: maybe("local", self.local.as_ref())?,
            advice: AdviceOptions {
                target,
                wan: self.wan.clone(),
                shaped: self.shape,
                overhead: maybe("overhead", self.overhead.as_ref())?,
            },
            seeds: self.seeds,
            bootstrap,
            whole: self.whole,
            out: Some(self.out.clone()),
            export: self.export.clone(),
            force: self.force,
        })
    }
}

/// The capture and each link as JSON, and the run folder of each link.
type Links = (String, Vec<PathBuf>);

/// The result of a comparison, messages, and the exception of an interruption. After an interruption, the
/// result follows [`Later`].
type Compared = (Option<Links>, Vec<String>, Option<Py<PyAny>>, Option<Later>);

/// Compares disciplines on a capture.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    asked: Asked,
    progress: Option<Py<PyAny>>,
    provenance: (String, String),
) -> PyResult<Compared> {
    let watched = Watched::default();
    let request = asked.request(py)?;
    let name = scenario_name(asked.captures.first().map_or(Path::new(""), PathBuf::as_path));
    let theirs = watched.clone();
    let waited = watched.wait(py, progress.as_ref(), move || -> Result<_, RunnerError> {
        let source = request.capture.clone();
        let comparison = request.begin(&theirs)?;
        let session = Session::new(threads(asked.jobs), &theirs, provenance.0, provenance.1);
        let (mut links, mut folders) = (Vec::new(), Vec::new());
        let compared = comparison.run(session, &mut |link, _, results, reported| {
            links.push(json!({
                "rate_upstream_bps": link.up.as_bit(),
                "rate_downstream_bps": link.down.as_bit(),
                "hours": link.hours.as_ref().map(|hours| &hours.words),
                "findings": reported.findings,
                "recommendation": reported.advice.as_ref().map(Advice::to_json),
                "table": results.table.to_json(&name, results.cpu_s),
            }));
            folders.extend(results.report.as_ref().and_then(|report| report.parent()).map(Path::to_owned));
            Ok(())
        })?;
        let whole = json!({ "capture": comparison.capture().to_json(&source), "links": links });
        Ok((compared.outcome, (whole.to_string(), folders)))
    });
    let theirs = watched.clone();
    let links = move |py: Python<'_>, done: Result<(Outcome, Links), RunnerError>| -> PyResult<Links> {
        let (outcome, links) = done.map_err(|error| errors::runner(py, &error))?;
        if outcome != Outcome::Done && outcome != Outcome::Interrupted {
            return Err(errors::failed(py, &theirs.messages().join("\n")));
        }
        Ok(links)
    };
    match waited {
        Waited::Done(done) => Ok((Some(links(py, done)?), watched.messages(), None, None)),
        Waited::Stopped(error, stopping) => {
            let later = Later::new(stopping, move |py, done| {
                Ok(links(py, done)?.into_pyobject(py)?.into_any().unbind())
            });
            Ok((None, Vec::new(), Some(error.into_value(py).into_any()), Some(later)))
        }
    }
}
