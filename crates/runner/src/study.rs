//! The runs of a paper's study.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use giveway_files::Dir;
use giveway_papers::{Job, Observed, Results, Study};
use giveway_record::{open_line, seal_line};
use rayon::prelude::*;

use crate::frontend::{Frontend, Progress, Unit, panic_message};
use crate::{Outcome, RunnerError, pool};

/// Runs every job of a study on `threads` threads (0: one for each processor), until the user stops it. Jobs
/// that measure real time run first, one after the other. Finished runs are kept in the file `kept` until all
/// have finished, so that the next call continues where this one stopped.
///
/// # Errors
/// When the threads cannot be started, or the file cannot be written. A job that fails is reported to the
/// front end, and the others continue.
pub fn run(
    study: &Study,
    threads: u16,
    kept: &Path,
    frontend: &dyn Frontend,
) -> Result<(Results, Outcome), RunnerError> {
    let jobs = study.jobs();
    let kept = Kept::open(study, kept, frontend)?;
    let resumed = jobs.iter().filter(|job| kept.finished.contains_key(&study.name(job))).count();
    if resumed > 0 {
        let all = jobs.len();
        frontend.message(&format!("resuming: {resumed} of {all} runs finished before"));
    }
    let pool = pool(threads)?;
    // The bar counts simulated seconds, because runs differ tenfold in length.
    let seconds: Vec<u64> = jobs.iter().map(|job| (study.weight(job).as_s() as u64).max(1)).collect();
    let progress = Progress::new(frontend, study.id(), seconds.iter().sum::<u64>() as usize, Unit::Seconds);
    let one = |(job, seconds): (&Job, &u64)| {
        if let Some(observed) = kept.finished.get(&study.name(job)) {
            progress.part_of_length(*seconds).done(1.0);
            return Ok(Some(observed.clone()));
        }
        if frontend.stopped() {
            return Ok(None);
        }
        let part = progress.part_of_length(*seconds);
        let go_on = |share: f64| {
            part.done(share);
            !frontend.stopped()
        };
        // The other runs continue if this one panics.
        let running = AssertUnwindSafe(|| study.run(job, &go_on));
        let observed = catch_unwind(running);
        if let Ok(Some(observed)) = &observed {
            kept.add(&study.line(job, observed));
        }
        observed.map_err(|panic| format!("{} failed: {}", study.name(job), panic_message(panic.as_ref())))
    };
    let (timed, others): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|at| study.is_timed(&jobs[*at]));
    let at = |at: &usize| (*at, one((&jobs[*at], &seconds[*at])));
    let mut ran: Vec<_> = timed.iter().map(at).collect();
    ran.extend(pool.install(|| others.par_iter().with_max_len(1).map(at).collect::<Vec<_>>()));
    ran.sort_by_key(|(at, _)| *at);
    drop(progress);
    let mut outcome = if frontend.stopped() { Outcome::Interrupted } else { Outcome::Done };
    let observed = ran.into_iter().map(|(_, ran)| {
        ran.unwrap_or_else(|sentence| {
            frontend.message(&sentence);
            outcome = outcome.max(Outcome::Failed);
            None
        })
    });
    let observed = observed.collect();
    let results = study.finish(&jobs, observed);
    if results.finished == results.planned {
        kept.remove();
    } else {
        frontend.message("the study is incomplete; the same command resumes it");
    }
    Ok((results, outcome))
}

/// The file of the finished runs of a study, which exists until all have finished. Each of its lines is
/// sealed.
struct Kept {
    path: PathBuf,
    /// The runs of an earlier call, by name.
    finished: BTreeMap<String, Observed>,
    file: Mutex<File>,
}

impl Kept {
    /// Opens the file, which may have runs of this study already. A file of another study is replaced, and a
    /// run whose line has changed runs again.
    fn open(study: &Study, path: &Path, frontend: &dyn Frontend) -> Result<Kept, RunnerError> {
        let explain = || format!("cannot write {}", path.display());
        let bytes = fs::read(path).unwrap_or_default();
        // A killed process may have left the last line unfinished. Another one begins behind it.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
        let lines = || bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let opened: Vec<String> = lines().filter_map(open_line).collect();
        let damaged = lines().count() - opened.len();
        if damaged > 0 {
            frontend.message(&format!(
                "{} is damaged: {damaged} of its lines do not match their SHA-256, or have none; these runs run again",
                path.display()
            ));
        }
        let finished = study.read_lines(&opened.join("\n"));
        let begin = || -> io::Result<File> {
            let dir = Dir::create(path.parent().unwrap_or(Path::new("")))?;
            let name = path.file_name().unwrap_or_default();
            if finished.is_empty() {
                let mut file = dir.new_file(name, 0o666)?;
                writeln!(file, "{}", seal_line(&study.identity()))?;
                return Ok(file);
            }
            let mut file = dir.write(name, 0o666)?;
            if bytes.last() != Some(&b'\n') {
                // The next line does not begin behind an unfinished one.
                file.set_len(whole as u64 + 1)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = begin().map_err(RunnerError::io(explain()))?;
        Ok(Kept { path: path.to_owned(), finished, file: Mutex::new(file) })
    }

    /// Adds a run. If the disk is full the run is not kept, and a resumed study repeats it.
    fn add(&self, line: &str) {
        let mut file = self.file.lock().expect("no thread panics while it holds the lock");
        let _ = file.write_all(format!("{}\n", seal_line(line)).as_bytes());
    }

    fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use giveway_papers::{Paper, Scope};

    use super::*;
    use crate::Silent;

    /// Any flipped bit, and any end, of the file of finished runs loses a run, and changes none.
    #[test]
    fn a_kept_run_is_the_one_that_finished_or_runs_again() {
        let scope = Scope { quick: true, seeds: Some(1), ..Scope::default() };
        let study = Study::new(Paper::find("efd").unwrap(), scope).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.jsonl");
        let jobs = &study.jobs()[..2];
        let kept = Kept::open(&study, &path, &Silent).unwrap();
        for (job, number) in jobs.iter().zip([0.1_f64, 0.2]) {
            let numbers = [Some(number.to_bits()), None];
            kept.add(
                &serde_json::json!({ "data": [], "numbers": numbers, "run": study.name(job) }).to_string(),
            );
        }
        let whole = fs::read(&path).unwrap();
        // Their texts, since runs cannot be compared.
        let finished = || -> BTreeMap<String, String> {
            let Kept { finished, .. } = Kept::open(&study, &path, &Silent).unwrap();
            finished.into_iter().map(|(name, observed)| (name, format!("{observed:?}"))).collect()
        };
        let all = finished();
        assert_eq!((all.len(), fs::read(&path).unwrap()), (2, whole.clone()));
        let mut fewer = 0;
        let mut reads = |content: Vec<u8>| {
            fs::write(&path, content).unwrap();
            let found = finished();
            assert!(found.iter().all(|(name, observed)| all.get(name) == Some(observed)), "{found:?}");
            fewer += usize::from(found.len() < all.len());
        };
        // A prime step reaches each bit of a byte.
        let bits: Vec<usize> = (0..whole.len() * 8).step_by(7).collect();
        for bit in &bits {
            let mut content = whole.clone();
            content[bit / 8] ^= 1 << (bit % 8);
            reads(content);
        }
        for length in (0..whole.len()).step_by(7) {
            reads(whole[..length].to_vec());
        }
        assert_eq!(fewer, bits.len() + whole.len().div_ceil(7));

        // A resumed study adds its runs behind what is whole.
        let second = whole.iter().take(whole.len() - 1).rposition(|byte| *byte == b'\n').unwrap() + 1;
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let kept = Kept::open(&study, &path, &Silent).unwrap();
        assert_eq!(kept.finished.len(), 1);
        kept.add(&open_line(&whole[second..whole.len() - 1]).unwrap());
        assert_eq!((finished(), fs::read(&path).unwrap()), (all, whole));
    }
}
