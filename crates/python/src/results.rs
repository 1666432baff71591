//! Results of runs, in memory or in a run folder.

use std::path::PathBuf;

use giveway_measure::{Record, Style, Summary, Table, Trial, findings};
use giveway_record::frames::{self, FrameError};
use giveway_record::report::{Report, ReportError};
use giveway_record::{Manifest, Opened};
use giveway_runner::RunnerError;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::frame::Frame;

/// Results of the runs of a scenario.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Results {
    kept: Kept,
    table: Table,
    planned: usize,
}

/// The place of the results.
enum Kept {
    Memory(Box<Memory>),
    Folder(Box<Opened>),
}

/// Results in memory, and everything that a run folder of them needs.
pub struct Memory {
    pub runs: Vec<(Trial, Record)>,
    pub manifest: Manifest,
    /// Everything that the results depend on.
    pub asked: String,
    /// The text of the scenario.
    pub scenario: String,
    /// The number of trials of the scenario.
    pub planned: usize,
}

impl Memory {
    fn summaries(&self) -> Vec<(Trial, Summary)> {
        self.runs.iter().map(|(trial, record)| (trial.clone(), record.summary.clone())).collect()
    }

    fn save(&self, dir: &std::path::Path, force: bool) -> Result<(), RunnerError> {
        giveway_runner::save(dir, &self.asked, self.manifest.clone(), &self.runs, (None, force)).map(drop)
    }
}

impl Results {
    pub fn new(memory: Memory) -> Results {
        let table = Table::new(&memory.summaries());
        Results { planned: memory.planned, kept: Kept::Memory(Box::new(memory)), table }
    }

    pub fn of_folder(opened: Opened) -> Results {
        let (_, planned) = opened.runs();
        Results { table: opened.table().clone(), planned, kept: Kept::Folder(Box::new(opened)) }
    }

    fn page(&self) -> Result<String, RunnerError> {
        match &self.kept {
            Kept::Memory(memory) => {
                let unwritten =
                    |source| RunnerError::Io { action: "cannot write a temporary folder".to_owned(), source };
                let temporary = tempfile::tempdir().map_err(unwritten)?;
                // The name of the folder is in the report.
                let dir = temporary.path().join(&memory.manifest.scenario);
                memory.save(&dir, false)?;
                Ok(Report::read(&[&dir])?.html()?)
            }
            Kept::Folder(opened) => Ok(Report::read(&[opened.path()])?.html()?),
        }
    }
}

#[pymethods]
impl Results {
    /// The name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.manifest.scenario,
            Kept::Folder(opened) => opened.scenario_name(),
        }
    }

    #[getter]
    fn title(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.manifest.title,
            Kept::Folder(opened) => opened.title(),
        }
    }

    /// The text of the scenario.
    #[getter]
    fn scenario(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.scenario,
            Kept::Folder(opened) => opened.scenario(),
        }
    }

    /// The run folder; None if the results are in memory.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.kept {
            Kept::Memory(_) => None,
            Kept::Folder(opened) => Some(opened.path().to_owned()),
        }
    }

    #[getter]
    fn disciplines(&self) -> Vec<String> {
        self.table.rows.iter().map(|row| row.qdisc.clone()).collect()
    }

    /// The measured ports.
    #[getter]
    fn ports(&self) -> Vec<String> {
        match &self.kept {
            Kept::Memory(memory) => {
                let layout = &memory.manifest.layout;
                layout.measured.iter().map(|port| layout.port_name(*port).into_owned()).collect()
            }
            Kept::Folder(opened) => opened.ports().to_vec(),
        }
    }

    /// The runs that finished: discipline, seed.
    #[getter]
    fn runs(&self) -> Vec<(String, u64)> {
        self.table
            .rows
            .iter()
            .flat_map(|row| row.seeds.iter().map(|seed| (row.qdisc.clone(), *seed)))
            .collect()
    }

    /// The number of planned runs.
    #[getter]
    fn planned(&self) -> usize {
        self.planned
    }

    #[getter]
    fn fingerprint(&self) -> String {
        self.table.fingerprint.to_string()
    }

    #[getter]
    fn events(&self) -> u64 {
        self.table.events
    }

    #[getter]
    fn findings(&self) -> Vec<String> {
        match &self.kept {
            Kept::Folder(opened) => {
                opened.findings().map_or_else(|| findings(&self.table), <[String]>::to_vec)
            }
            Kept::Memory(_) => findings(&self.table),
        }
    }

    /// The recommendation of a comparison as JSON.
    #[getter]
    fn recommendation(&self) -> Option<String> {
        match &self.kept {
            Kept::Memory(_) => None,
            Kept::Folder(opened) => opened.recommendation().map(|found| json!(found).to_string()),
        }
    }

    /// The table as text.
    fn text(&self, width: usize) -> String {
        let style = Style { width, ascii: false, detailed: false };
        format!("{}{}", self.table.render(style), self.table.render_classes(style))
    }

    /// The table as JSON: groups of columns, each with its title; a column has two lines of heading and the
    /// text of each row.
    fn groups(&self) -> String {
        let rows: Vec<_> = self.table.rows.iter().collect();
        let groups = giveway_measure::figures::groups(&rows, false, false).into_iter().map(|group| {
            let columns = group.columns.into_iter();
            let columns = columns.map(|column| json!({ "heading": column.heading, "cells": column.cells }));
            json!({ "title": group.title, "columns": columns.collect::<Vec<_>>() })
        });
        json!(groups.collect::<Vec<_>>()).to_string()
    }

    /// The means of all metrics as JSON.
    fn json(&self) -> String {
        self.table.to_json(self.name(), 0.0).to_string()
    }

    /// The names of all tables. Some need a key of the scenario.
    #[staticmethod]
    fn tables() -> Vec<&'static str> {
        frames::names().collect()
    }

    /// The table `name`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Frame> {
        let frame = py.detach(|| match &self.kept {
            Kept::Folder(opened) => opened.frame(name),
            Kept::Memory(memory) => match name {
                "summary" => frames::summary(&memory.manifest.disciplines, &memory.summaries()),
                "metrics" => frames::metrics(&memory.summaries()),
                _ => frames::of_runs(name, &memory.manifest.layout, &memory.runs),
            },
        });
        frame.map(Frame::new).map_err(|error| match error {
            FrameError::Unknown { .. } | FrameError::Off { .. } => PyKeyError::new_err(error.to_string()),
            other => errors::failed(py, &giveway_record::chain(&other)),
        })
    }

    /// The report as a page of HTML.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.page()).map_err(|error| errors::runner(py, &error))
    }

    /// Writes a run folder.
    fn save(&self, py: Python<'_>, dir: PathBuf, force: bool) -> PyResult<()> {
        match &self.kept {
            Kept::Memory(memory) => {
                py.detach(|| memory.save(&dir, force)).map_err(|error| errors::runner(py, &error))
            }
            Kept::Folder(opened) => {
                let message =
                    format!("the results are in {} already: copy this folder", opened.path().display());
                Err(errors::failed(py, &message))
            }
        }
    }
}

/// The colour, the short name, and the lengths of dash and gap of each discipline, in reports and figures.
#[pyfunction]
pub fn looks(specs: Vec<String>) -> Vec<(String, String, Vec<u32>)> {
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let looks = giveway_document::looks(&specs).into_iter();
    let names = giveway_measure::short_names(&specs);
    looks.zip(names).map(|(look, name)| (look.colour, name, look.dash)).collect()
}

/// The definition of a metric: its label, its unit and its description.
#[pyfunction]
pub fn definition(metric: &str) -> Option<(String, &'static str, &'static str)> {
    let named = giveway_measure::named(metric)?;
    Some((named.label(), named.definition.unit.symbol(), named.definition.description))
}

/// Opens a run folder.
#[pyfunction]
pub fn open(py: Python<'_>, dir: PathBuf) -> PyResult<Results> {
    let opened = py.detach(|| Opened::read(&dir));
    let error = match opened {
        Ok(opened) => return Ok(Results::of_folder(opened)),
        Err(error) => error,
    };
    let message = giveway_record::chain(&error);
    Err(match error {
        ReportError::Nothing(_) => pyo3::exceptions::PyFileNotFoundError::new_err(message),
        _ => errors::failed(py, &message),
    })
}
