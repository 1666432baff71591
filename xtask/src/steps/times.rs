//! The times of steps: of each run in `target/xtask/gate.csv`, and of labelled runs in `docs/gate.csv`, where
//! a reviewer sees what grew.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::repository::{Done, Repository};

/// The times of labelled runs, relative to the repository.
const LABELLED: &str = "docs/gate.csv";

/// A row of both files.
#[derive(Debug, Deserialize, Serialize)]
struct Row {
    /// The label, or the time of the run in seconds since 1970.
    run: String,
    step: String,
    wall_s: f64,
    /// Processor time of the processes that the step started and that ended in it.
    processor_s: Option<f64>,
}

/// The processor time of each step in an earlier run, in seconds.
#[derive(Debug, Default)]
pub struct Times(BTreeMap<String, f64>);

impl Times {
    /// The last time of each step on this machine, otherwise of the last labelled run.
    pub fn before(repository: &Repository) -> Times {
        let mut rows = rows(&repository.root.join(LABELLED));
        if let Ok(own) = own(repository) {
            rows.extend(self::rows(&own));
        }
        Times(rows.into_iter().filter_map(|row| Some((row.step, row.processor_s?))).collect())
    }

    /// The time of a step.
    pub fn of(&self, step: &str) -> Option<f64> {
        self.0.get(step).copied()
    }
}

/// Keeps the times of a run: the name of each step, the time that passed, and its processor time.
///
/// # Errors
/// If a file cannot be written, or the label is not one.
pub fn keep<'a>(
    repository: &Repository,
    label: Option<&str>,
    steps: impl Iterator<Item = (&'a str, Duration, Option<Duration>)>,
) -> Done {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    // A tenth of a second is more than the times of two equal runs have in common.
    let rounded = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
    let row = |run: &str, (step, wall, processor): &(&str, Duration, Option<Duration>)| Row {
        run: run.to_owned(),
        step: (*step).to_owned(),
        wall_s: rounded(*wall),
        processor_s: processor.map(rounded),
    };
    let steps: Vec<_> = steps.collect();
    append(&own(repository)?, steps.iter().map(|step| row(&now.to_string(), step)))?;
    match label {
        Some(label) => append(&repository.root.join(LABELLED), steps.iter().map(|step| row(label, step))),
        None => Ok(()),
    }
}

fn own(repository: &Repository) -> Result<PathBuf, String> {
    Ok(repository.target()?.join("xtask/gate.csv"))
}

/// The rows of a file; none without it.
fn rows(path: &Path) -> Vec<Row> {
    let Ok(mut reader) = csv::Reader::from_path(path) else { return Vec::new() };
    reader.deserialize().filter_map(Result::ok).collect()
}

fn append(path: &Path, rows: impl Iterator<Item = Row>) -> Done {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| failed(&error))?;
    let empty = file.metadata().is_ok_and(|about| about.len() == 0);
    let mut writer = csv::WriterBuilder::new().has_headers(empty).from_writer(file);
    for row in rows {
        writer.serialize(row).map_err(|error| failed(&error))?;
    }
    writer.flush().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_of_a_step_counts() {
        let folder = std::env::temp_dir().join(format!("giveway-times-{}", std::process::id()));
        let file = folder.join("gate.csv");
        let row = |step: &str, processor_s| Row {
            run: "one".to_owned(),
            step: step.to_owned(),
            wall_s: 2.0,
            processor_s,
        };
        append(&file, [row("clippy", Some(1.0)), row("scenarios, one thread", None)].into_iter()).unwrap();
        append(&file, [row("clippy", Some(1.5))].into_iter()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "run,step,wall_s,processor_s\none,clippy,2.0,1.0\none,\"scenarios, one thread\",2.0,\none,clippy,2.0,1.5\n"
        );
        assert_eq!(rows(&file).len(), 3);
        fs::remove_dir_all(&folder).unwrap();
    }
}
