//! A run folder with any content in its files is reported, resumed and merged, or rejected with the name of a
//! file.
//!
//! A valid folder is created once. An input changes some of its files; afterwards they are restored. The
//! folder is in memory if the system has such a file system, since the code under test opens files by name.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use giveway_measure::Trial;
use giveway_record::report::Report;
use giveway_record::{FolderError, Manifest, RunFolder};
use giveway_scenario::Scenario;

use crate::scratch;

/// A scenario whose run folder has all kinds of tables, also samples of senders, episodes and bursts.
const SCENARIO: &str = r#"
duration = "60 ms"
disciplines = ["fifo limit 20p"]
record = { port = "home->isp", sample = "10 ms", senders = true, episodes = true, bursts = true }
[[link]]
from = "home"
to = "isp"
rate = "4 Mbit/s"
delay = "2 ms"
qdisc = "compare"
[[traffic]]
kind = "transfers"
from = "home"
to = "isp"
size = { fixed = "3 kB" }
load = "2 Mbit/s"
[[traffic]]
kind = "audio"
from = "home"
to = "isp"
"#;

/// Largest number of files that an input changes.
const CHANGES: usize = 4;

thread_local! {
    static BASE: OnceCell<Base> = const { OnceCell::new() };
}

/// Input: one byte, then changes. If the byte is 1 modulo 8, the run is also resumed, which takes longer.
///
/// A change begins with a byte that selects the file. If its highest bit is clear, a length in two bytes and
/// the new content follow. If it is set, an offset in two bytes, a length in one byte, and bytes that replace
/// those at the offset follow. A Parquet table is only truncated, to the length in two bytes.
pub fn run(input: &[u8]) {
    let Some((options, changes)) = input.split_first() else { return };
    BASE.with(|base| base.get_or_init(Base::create).check(options % 8 == 1, changes));
}

/// Seeds: for each file of up to 64 KiB an input that replaces it by its own content.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BASE.with(|base| {
        let base = base.get_or_init(Base::create);
        let whole = |(at, (_, content)): (usize, &(PathBuf, Vec<u8>))| {
            let length = u16::try_from(content.len()).ok()?.to_le_bytes();
            let resumed = u8::from(at % 2 == 0);
            Some([&[resumed, at as u8][..], &length, content].concat())
        };
        base.files.iter().enumerate().filter_map(whole).collect()
    })
}

struct Base {
    path: PathBuf,
    scenario: Scenario,
    /// All files of the folder, with their contents.
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Base {
    fn create() -> Base {
        let scenario =
            Scenario::parse(SCENARIO, "").unwrap_or_else(|error| panic!("{:?}", error.diagnostics));
        let path = scratch::folder().join("run");
        let mut base = Base { path, scenario, files: Vec::new() };
        let folder = base.create_folder().expect("the folder can be written");
        let mut runs = Vec::new();
        for trial in base.scenario.trials() {
            let (record, _) = giveway_observe::observe(&base.scenario, &trial, true, &|_| true)
                .expect("the run is not stopped");
            let trial = Trial { qdisc: trial.name, seed: trial.seed };
            folder.write(&trial, &record).expect("the folder can be written");
            runs.push((trial, record.summary));
        }
        folder.finish(&runs).expect("the folder can be written");
        base.files = files(&base.path);
        base
    }

    fn create_folder(&self) -> Result<RunFolder, FolderError> {
        let manifest = Manifest {
            scenario: "fuzz".to_owned(),
            version: "0".to_owned(),
            disciplines: giveway_observe::disciplines(&self.scenario),
            seeds: self.scenario.seeds.clone(),
            machine: "a machine".to_owned(),
            created_by: "giveway run fuzz.toml".to_owned(),
            layout: giveway_observe::layout(&self.scenario, true),
            ..Manifest::default()
        };
        RunFolder::create(&self.path, SCENARIO, manifest)
    }

    fn check(&self, resume: bool, input: &[u8]) {
        let mut changed = Vec::new();
        let mut rest = input;
        while changed.len() < CHANGES
            && let Some((which, content)) = self.change(&mut rest)
        {
            fs::write(&self.files[which].0, content).expect("the folder can be written");
            changed.push(which);
        }
        match Report::read(&[&self.path]).and_then(|report| report.html()) {
            Ok(page) => assert!(page.contains("</html>")),
            Err(error) => assert!(error.to_string().contains("run"), "the error has no path: {error}"),
        }
        if resume {
            self.resume();
        }
        for which in changed {
            let (path, content) = &self.files[which];
            fs::write(path, content).expect("the folder can be written");
        }
    }

    /// Resumes an interrupted run like `giveway run`, but without running the missing trials.
    fn resume(&self) {
        // Without its manifest and its scenario a folder could belong to another program.
        let folder = match self.create_folder() {
            Ok(folder) => folder,
            Err(FolderError::Foreign { .. }) => return,
            Err(error) => panic!("the folder can be written: {error}"),
        };
        let trials =
            self.scenario.trials().into_iter().map(|trial| Trial { qdisc: trial.name, seed: trial.seed });
        let runs: Vec<_> =
            trials.filter_map(|trial| Some((trial.clone(), folder.finished(&trial)?))).collect();
        if let Err(error) = folder.finish(&runs) {
            assert!(!error.to_string().is_empty());
        }
        // Both calls write files that a change may have replaced.
        for (path, content) in self.files.iter().filter(|(path, _)| path.parent() == Some(&self.path)) {
            fs::write(path, content).expect("the folder can be written");
        }
    }

    /// Parses a change: the number of a file, and its new content.
    fn change(&self, rest: &mut &[u8]) -> Option<(usize, Vec<u8>)> {
        let ([kind, a, b], after) = rest.split_first_chunk::<3>()?;
        let which = usize::from(kind & 127) % self.files.len();
        let number = usize::from(u16::from_le_bytes([*a, *b]));
        let (path, whole) = &self.files[which];
        if path.extension().is_some_and(|end| end == "parquet") {
            // Only truncated: the crates that read Parquet (arrow-buffer 60.1, bit_chunk_iterator.rs) panic
            // on some changed bytes. Change this when `record` can recover from such a panic.
            *rest = after;
            return Some((which, whole[..number.min(whole.len())].to_vec()));
        }
        if kind & 128 == 0 {
            let (content, after) = after.split_at(number.min(after.len()));
            *rest = after;
            return Some((which, content.to_vec()));
        }
        let (length, after) = after.split_first()?;
        let (patch, after) = after.split_at(usize::from(*length).min(after.len()));
        *rest = after;
        let mut content = self.files[which].1.clone();
        let at = number.min(content.len());
        let until = (at + patch.len()).min(content.len());
        content.splice(at..until, patch.iter().copied());
        Some((which, content))
    }
}

/// All files in a folder and its subfolders with their contents, sorted.
fn files(folder: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder was just created") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).expect("the file was just written");
            found.push((path, content));
        }
    }
    found.sort();
    found
}
