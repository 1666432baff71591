//! A run folder whose files say anything is reported, taken up and merged, or refused with the name of a file.
//!
//! A folder that is right is made once. An input changes some of its files; afterwards they are put back. The folder
//! lies in memory where that can be had: this target is about files, and there is no other way to them.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use giveway_measure::Trial;
use giveway_record::report::Report;
use giveway_record::{Manifest, RunFolder};
use giveway_scenario::Scenario;

use crate::scratch;

/// Everything that a folder can hold: samples of senders, episodes and bursts, too.
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

/// How many files an input may change.
const CHANGES: usize = 4;

thread_local! {
    static BASE: OnceCell<Base> = const { OnceCell::new() };
}

/// The first byte says whether the folder is taken up again, too, which takes longer. The rest is a list of changes: a byte that says which file and how, then a length in two bytes and that many bytes of
/// the whole new file; or, with the highest bit of the first byte, a place in two bytes, and a length in one byte and that
/// many bytes that are written over there.
pub fn run(input: &[u8]) {
    let Some((how, changes)) = input.split_first() else { return };
    BASE.with(|base| base.get_or_init(Base::make).check(how % 8 == 1, changes));
}

/// The files of a folder, as an input that changes all small ones to what they are: a seed.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BASE.with(|base| {
        let base = base.get_or_init(Base::make);
        let whole = |(at, (_, content)): (usize, &(PathBuf, Vec<u8>))| {
            let length = u16::try_from(content.len()).ok()?.to_le_bytes();
            let taken_up = u8::from(at % 2 == 0);
            Some([&[taken_up, at as u8][..], &length, content].concat())
        };
        base.files.iter().enumerate().filter_map(whole).collect()
    })
}

struct Base {
    path: PathBuf,
    scenario: Scenario,
    /// Every file that is read again, with what it holds.
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Base {
    fn make() -> Base {
        let scenario =
            Scenario::parse(SCENARIO, "").unwrap_or_else(|wrong| panic!("{:?}", wrong.diagnostics));
        let path = scratch::folder().join("run");
        let mut base = Base { path, scenario, files: Vec::new() };
        let folder = base.create();
        let mut runs = Vec::new();
        for trial in base.scenario.trials() {
            let (record, _) =
                giveway_papers::observe(&base.scenario, &trial, true, &|_| true).expect("nobody stops it");
            let trial = Trial { qdisc: trial.name, seed: trial.seed };
            folder.write(&trial, &record).expect("the folder can be written");
            runs.push((trial, record.summary));
        }
        folder.finish(&runs).expect("the folder can be written");
        base.files = files(&base.path);
        base
    }

    fn create(&self) -> RunFolder {
        let manifest = Manifest {
            scenario: "fuzz".to_owned(),
            version: "0".to_owned(),
            disciplines: giveway_papers::disciplines(&self.scenario),
            seeds: self.scenario.seeds.clone(),
            machine: "a machine".to_owned(),
            created_by: "giveway run fuzz.toml".to_owned(),
            layout: giveway_papers::layout(&self.scenario, true),
            ..Manifest::default()
        };
        RunFolder::create(&self.path, SCENARIO, manifest).expect("the folder can be written")
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
            Err(error) => assert!(error.to_string().contains("run"), "it does not say where: {error}"),
        }
        if resume {
            self.resume();
        }
        for which in changed {
            let (path, content) = &self.files[which];
            fs::write(path, content).expect("the folder can be written");
        }
    }

    /// What an interrupted comparison does when it begins again, but for running what is missing.
    fn resume(&self) {
        let folder = self.create();
        let cells =
            self.scenario.trials().into_iter().map(|trial| Trial { qdisc: trial.name, seed: trial.seed });
        let runs: Vec<_> =
            cells.filter_map(|trial| Some((trial.clone(), folder.finished(&trial)?))).collect();
        if let Err(error) = folder.finish(&runs) {
            assert!(!error.to_string().is_empty());
        }
        // Both write files that a change may have been about.
        for (path, content) in self.files.iter().filter(|(path, _)| path.parent() == Some(&self.path)) {
            fs::write(path, content).expect("the folder can be written");
        }
    }

    /// Which file has which content from now on.
    fn change(&self, rest: &mut &[u8]) -> Option<(usize, Vec<u8>)> {
        let ([kind, a, b], behind) = rest.split_first_chunk::<3>()?;
        let which = usize::from(kind & 127) % self.files.len();
        let number = usize::from(u16::from_le_bytes([*a, *b]));
        let (path, whole) = &self.files[which];
        if path.extension().is_some_and(|end| end == "parquet") {
            // Parquet tables are only cut off. The crates that read them (arrow-buffer 60.1, bit_chunk_iterator.rs) panic on
            // some changed bytes, so this must stay until `record` reads tables where a panic does no harm.
            *rest = behind;
            return Some((which, whole[..number.min(whole.len())].to_vec()));
        }
        if kind & 128 == 0 {
            let (content, behind) = behind.split_at(number.min(behind.len()));
            *rest = behind;
            return Some((which, content.to_vec()));
        }
        let (length, behind) = behind.split_first()?;
        let (patch, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        *rest = behind;
        let mut content = self.files[which].1.clone();
        let at = number.min(content.len());
        let until = (at + patch.len()).min(content.len());
        content.splice(at..until, patch.iter().copied());
        Some((which, content))
    }
}

/// Every file below a folder that is read again, in order.
fn files(folder: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it was just made") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).expect("it was just written");
            found.push((path, content));
        }
    }
    found.sort();
    found
}
