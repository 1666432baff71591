//! Results of runs, in memory or in a run folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use giveway_measure::{Record, Style, Summary, Table, Trial, findings};
use giveway_record::frames::{self, FrameError};
use giveway_record::report::{Report, ReportError};
use giveway_record::{Existing, LOCK, Manifest, Opened, REPORT, RunFolder, write_whole};
use giveway_runner::RunnerError;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde_json::json;
use tempfile::TempDir;

use crate::errors;
use crate::frame::Frame;

/// The file of a run folder that is written last.
const MANIFEST: &str = "manifest.json";
/// The folder of the trials in a run folder.
const TRIALS: &str = "trials";

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
    /// Results in memory of another process, or of several: a run folder among temporary files.
    Temporary(Box<Opened>, Box<Temporary>),
}

/// The part of results in memory that a run folder does not have.
struct Temporary {
    /// The text of the scenario.
    scenario: String,
    /// The folder exists as long as its results.
    _place: TempDir,
}

/// The files of a run folder: their paths in it, and their content.
pub type Files<T> = Vec<(PathBuf, T)>;

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

    /// The files of one trial in a run folder with the text `asked`, for [`Memory::gathered`].
    pub fn trial_files(
        asked: &str,
        manifest: Manifest,
        trial: &Trial,
        record: &Record,
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, RunnerError> {
        let place = tempfile::tempdir().map_err(unwritten)?;
        let folder = RunFolder::create(place.path(), asked, manifest)?;
        folder.write(trial, record)?;
        files_below(&place.path().join(TRIALS)).map_err(unwritten)
    }

    /// These results, together with trials that ran in other processes.
    pub fn gathered(&self, trials: &[Files<impl AsRef<[u8]>>]) -> Result<Results, RunnerError> {
        let place = tempfile::tempdir().map_err(unwritten)?;
        // The name of the folder is in the report.
        self.write(&place.path().join(&self.manifest.scenario), trials)?;
        Ok(Results::of_temporary(self.scenario.clone(), place, &self.manifest.scenario)?)
    }

    /// Writes a run folder without a report, with trials that ran in other processes.
    fn write(&self, dir: &Path, trials: &[Files<impl AsRef<[u8]>>]) -> Result<(), RunnerError> {
        let folder = RunFolder::create(dir, &self.asked, self.manifest.clone())?;
        let folder = folder.with_commit(giveway_sources::COMMIT.map(str::to_owned));
        for (trial, record) in &self.runs {
            folder.write(trial, record)?;
        }
        for files in trials {
            write_below(&dir.join(TRIALS), files).map_err(unwritten)?;
        }
        let Manifest { disciplines, seeds, .. } = &self.manifest;
        let all = disciplines
            .iter()
            .flat_map(|one| seeds.iter().map(|seed| Trial { qdisc: one.qdisc.clone(), seed: *seed }));
        let runs = all.filter_map(|trial| folder.finished(&trial).map(|summary| (trial, summary)));
        folder.finish(&runs.collect::<Vec<_>>())?;
        Ok(())
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

    /// The results in the only folder of a temporary one, in the place of results in memory.
    pub fn of_temporary(scenario: String, place: TempDir, name: &str) -> Result<Results, ReportError> {
        let opened = Opened::read(&place.path().join(name))?;
        let (_, planned) = opened.runs();
        let table = opened.table().clone();
        Ok(Results {
            planned,
            kept: Kept::Temporary(Box::new(opened), Box::new(Temporary { scenario, _place: place })),
            table,
        })
    }

    /// The results as a temporary run folder.
    fn in_folder<T>(&self, with: impl FnOnce(&Path) -> Result<T, RunnerError>) -> Result<T, RunnerError> {
        match &self.kept {
            Kept::Memory(memory) => {
                let temporary = tempfile::tempdir().map_err(unwritten)?;
                // The name of the folder is in the report.
                let dir = temporary.path().join(&memory.manifest.scenario);
                memory.write(&dir, &[] as &[Files<Vec<u8>>])?;
                with(&dir)
            }
            Kept::Folder(opened) | Kept::Temporary(opened, _) => with(opened.path()),
        }
    }

    fn page(&self) -> Result<String, RunnerError> {
        self.in_folder(|dir| Ok(Report::read(&[dir])?.html()?))
    }
}

fn unwritten(source: std::io::Error) -> RunnerError {
    RunnerError::Io { action: "cannot write a temporary folder".to_owned(), source }
}

/// The files below `dir`, with their content: all but the lock and the report.
pub fn files_below(dir: &Path) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(dir.join(&inside))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if entry.file_name() != LOCK && entry.file_name() != REPORT {
                files.push((path.clone(), fs::read(dir.join(&path))?));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes files below `dir`, in this order.
pub fn write_below(dir: &Path, files: &[(PathBuf, impl AsRef<[u8]>)]) -> std::io::Result<()> {
    for (path, content) in files {
        if path.components().any(|part| !matches!(part, Component::Normal(_))) {
            let message = format!("{} leads out of the folder", path.display());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
        }
        let place = dir.join(path);
        fs::create_dir_all(place.parent().unwrap_or(dir))?;
        fs::write(place, content)?;
    }
    Ok(())
}

/// Copies a run folder with results of the scenario `asked` to `dir`.
fn copy(opened: &Opened, dir: &Path, force: bool) -> Result<(), RunnerError> {
    let existing = if force { Existing::Replace(&|_| ()) } else { Existing::Keep };
    let manifest = Manifest {
        scenario: opened.scenario_name().to_owned(),
        version: opened.version().to_owned(),
        disciplines: Vec::new(),
        seeds: Vec::new(),
        machine: String::new(),
        created_by: opened.created_by().to_owned(),
        created: None,
        title: opened.title().to_owned(),
        description: String::new(),
        layout: Default::default(),
    };
    // It checks and locks the place. The manifest of the copied folder replaces its own, and comes last.
    let locked = RunFolder::open(dir, opened.scenario(), manifest, existing)?;
    let mut files = files_below(opened.path()).map_err(unwritten)?;
    files.sort_by_key(|(path, _)| path == Path::new(MANIFEST));
    write_below(dir, &files).map_err(unwritten)?;
    // A folder that is locked is not read.
    drop(locked);
    let page = Report::read(&[dir])?.html()?;
    Ok(write_whole(&dir.join(REPORT), page.as_bytes())?)
}

#[pymethods]
impl Results {
    /// The name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.manifest.scenario,
            Kept::Folder(opened) | Kept::Temporary(opened, _) => opened.scenario_name(),
        }
    }

    #[getter]
    fn title(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.manifest.title,
            Kept::Folder(opened) | Kept::Temporary(opened, _) => opened.title(),
        }
    }

    /// The text of the scenario.
    #[getter]
    fn scenario(&self) -> &str {
        match &self.kept {
            Kept::Memory(memory) => &memory.scenario,
            Kept::Folder(opened) => opened.scenario(),
            Kept::Temporary(_, temporary) => &temporary.scenario,
        }
    }

    /// The run folder; None if the results are in memory.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.kept {
            Kept::Memory(_) | Kept::Temporary(..) => None,
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
            Kept::Folder(opened) | Kept::Temporary(opened, _) => opened.ports().to_vec(),
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
            Kept::Folder(opened) | Kept::Temporary(opened, _) => {
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
            Kept::Folder(opened) | Kept::Temporary(opened, _) => {
                opened.recommendation().map(|found| json!(found).to_string())
            }
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
            Kept::Folder(opened) | Kept::Temporary(opened, _) => opened.frame(name),
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

    /// The results for another process: the text of the scenario, and the files of a run folder.
    fn packed<'py>(&self, py: Python<'py>) -> PyResult<(String, Files<Bound<'py, PyBytes>>)> {
        let files = py.detach(|| self.in_folder(|dir| files_below(dir).map_err(unwritten)));
        let files = files.map_err(|error| errors::runner(py, &error))?.into_iter();
        let files = files.map(|(path, content)| (path, PyBytes::new(py, &content))).collect();
        Ok((self.scenario().to_owned(), files))
    }

    /// The results of another process.
    #[staticmethod]
    fn unpacked(
        py: Python<'_>,
        scenario: String,
        name: &str,
        files: Files<PyBackedBytes>,
    ) -> PyResult<Results> {
        let made = || -> Result<Results, RunnerError> {
            let place = tempfile::tempdir().map_err(unwritten)?;
            write_below(&place.path().join(name), &files).map_err(unwritten)?;
            Ok(Results::of_temporary(scenario, place, name)?)
        };
        py.detach(made).map_err(|error| errors::runner(py, &error))
    }

    /// Writes a run folder.
    fn save(&self, py: Python<'_>, dir: PathBuf, force: bool) -> PyResult<()> {
        match &self.kept {
            Kept::Memory(memory) => {
                py.detach(|| memory.save(&dir, force)).map_err(|error| errors::runner(py, &error))
            }
            Kept::Temporary(opened, _) => {
                py.detach(|| copy(opened, &dir, force)).map_err(|error| errors::runner(py, &error))
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
