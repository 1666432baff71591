//! Runs scenarios, and reads their fingerprints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::repository::Repository;

/// Runs the short forms of scenarios, as many in parallel as there are cores for `jobs` threads each. Returns
/// their fingerprints by name.
pub(super) fn run_all(
    repository: &Repository,
    command: &[&str],
    jobs: usize,
    names: &[String],
) -> Result<BTreeMap<String, String>, String> {
    let folder = Scratch::new(repository, &format!("short-{jobs}"))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pending = Mutex::new(names.iter());
    let (ran, failed) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    // A lock in the condition of a loop would last until the end of its body.
    let next = || pending.lock().expect("no thread panics while it holds the lock").next();
    let work = || {
        while let Some(name) = next() {
            let begun = Instant::now();
            let number = jobs.to_string();
            let divided: &[&str] = if jobs > 1 { &["--check-threads"] } else { &[] };
            let options = [&["--short", "--jobs", &number], divided].concat();
            // Writing a folder takes several times as long as a short run: the long form of the gate does it.
            let folder = (jobs > 1).then_some(&*folder.path);
            match run(repository, command, &options, folder, name) {
                Ok(result) => {
                    let fingerprint = result["fingerprint"].as_str().unwrap_or("missing").to_owned();
                    println!("{:>7.2} s  {name}", begun.elapsed().as_secs_f64());
                    ran.lock()
                        .expect("no thread panics while it holds the lock")
                        .insert(name.clone(), fingerprint);
                }
                Err(error) => {
                    failed
                        .lock()
                        .expect("no thread panics while it holds the lock")
                        .push(format!("{name}: {error}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..(cores / jobs).max(1) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panics while it holds the lock");
    if !failed.is_empty() {
        return Err(format!("{} of {} scenarios failed\n{}", failed.len(), names.len(), failed.join("\n")));
    }
    let ran = ran.into_inner().expect("no thread panics while it holds the lock");
    if ran.is_empty() { Err("there are no scenarios".to_owned()) } else { Ok(ran) }
}

/// Runs one scenario with the program that the words of `command` start, and returns the JSON object that it
/// prints.
pub(super) fn run(
    repository: &Repository,
    command: &[&str],
    options: &[&str],
    folder: Option<&Path>,
    name: &str,
) -> Result<Value, String> {
    let out = folder.map(|folder| folder.join(name.replace(['/', '.'], "-")).to_string_lossy().into_owned());
    let out: Vec<&str> = out.iter().flat_map(|out| ["--out", out]).collect();
    let words = [command, &["run", "--json", "--quiet"], &out[..], options, &[name]].concat();
    let text = repository.output(words[0], &words[1..])?;
    serde_json::from_str(&text).map_err(|error| format!("the output is not JSON: {error}"))
}

/// A folder for temporary results. Dropping it removes the folder.
pub(super) struct Scratch {
    pub(super) path: PathBuf,
}

impl Scratch {
    pub(super) fn new(repository: &Repository, name: &str) -> Result<Scratch, String> {
        let path = repository.built("xtask", name)?.with_extension("");
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
