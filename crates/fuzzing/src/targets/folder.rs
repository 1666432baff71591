//! A run folder with any content in its files is reported, resumed and merged, or rejected with the name of a
//! file.
//!
//! A valid folder is created once. An input changes some of its files; afterwards they are restored. The
//! folder is in memory if the system has such a file system, since the code under test opens files by name.

use std::cell::OnceCell;
use std::path::Path;

use giveway_measure::Trial;
use giveway_record::report::Report;
use giveway_record::{FolderError, Manifest, RunFolder};
use giveway_scenario::Scenario;

use crate::changes::Written;
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

thread_local! {
    static BASE: OnceCell<Base> = const { OnceCell::new() };
}

/// Input: one byte, then changes ([`Written::change`]). If the byte is 1 modulo 8, the run is also resumed,
/// which takes longer.
pub fn run(input: &[u8]) {
    let Some((options, changes)) = input.split_first() else { return };
    BASE.with(|base| base.get_or_init(Base::create).check(options % 8 == 1, changes));
}

/// Seeds: for each file an input that leaves its content as it is.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BASE.with(|base| base.get_or_init(Base::create).written.seeds())
}

struct Base {
    scenario: Scenario,
    written: Written,
}

impl Base {
    fn create() -> Base {
        let scenario =
            Scenario::parse(SCENARIO, "").unwrap_or_else(|error| panic!("{:?}", error.diagnostics));
        let path = scratch::folder().join("run");
        let folder = create_folder(&path, &scenario).expect("the folder can be written");
        let mut runs = Vec::new();
        for trial in scenario.trials() {
            let (record, _) =
                giveway_observe::observe(&scenario, &trial, true, &|_| true).expect("the run is not stopped");
            let trial = Trial { qdisc: trial.name, seed: trial.seed };
            folder.write(&trial, &record).expect("the folder can be written");
            runs.push((trial, record.summary));
        }
        folder.finish(&runs).expect("the folder can be written");
        Base { scenario, written: Written::of(&path) }
    }

    fn check(&self, resume: bool, changes: &[u8]) {
        self.written.change(changes);
        match Report::read(&[self.written.folder()]).and_then(|report| report.html()) {
            Ok(page) => assert!(page.contains("</html>")),
            Err(error) => assert!(error.to_string().contains("run"), "the error has no path: {error}"),
        }
        if resume {
            self.resume();
        }
        self.written.restore();
    }

    /// Resumes an interrupted run like `giveway run`, but without running the missing trials.
    fn resume(&self) {
        // Without its manifest and its scenario a folder could belong to another program.
        let folder = match create_folder(self.written.folder(), &self.scenario) {
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
    }
}

fn create_folder(path: &Path, scenario: &Scenario) -> Result<RunFolder, FolderError> {
    let manifest = Manifest {
        scenario: "fuzz".to_owned(),
        version: "0".to_owned(),
        disciplines: giveway_observe::disciplines(scenario),
        seeds: scenario.seeds.clone(),
        machine: "a machine".to_owned(),
        created_by: "giveway run fuzz.toml".to_owned(),
        layout: giveway_observe::layout(scenario, true),
        ..Manifest::default()
    };
    RunFolder::create(path, SCENARIO, manifest)
}
