//! The folder of a sweep with any content in its files is reported, merged, reused and resumed, or rejected
//! with the name of a file.
//!
//! A valid folder is created once, in memory if possible. An input changes some of its files; afterwards they
//! are restored. The digests of the manifest can be made to match the changes, so that other readers than the
//! check of digests see them.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use giveway_record::{Digest, dataset, frames, seal};
use giveway_scenario::Scenario;
use giveway_sweep::{
    Data, Design, Plan, Request, Shard, SweepError, SweepFolder, answers, merge, page, parts_of,
    run as run_sweep,
};
use giveway_trials::{Reuse, Silent};
use serde_json::{Value, json};

use crate::changes::Written;
use crate::scratch;

const SCENARIO: &str = r#"
duration = "60 ms"
disciplines = ["fifo limit 20p"]
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
"#;

/// Keys that vary: a number and a text.
const AXES: [&str; 2] = ["link.0.rate=4mbit,8mbit", "traffic.0.kind=transfers"];

thread_local! {
    static BASE: OnceCell<Base> = const { OnceCell::new() };
}

/// Input: one byte, then changes ([`Written::change`]). With bit 0 of the byte the sweep is also resumed, and
/// with bit 1 the digests match.
pub fn run(input: &[u8]) {
    let Some((options, changes)) = input.split_first() else { return };
    BASE.with(|base| base.get_or_init(Base::create).check(options & 1 != 0, options & 2 != 0, changes));
}

/// Seeds: for each file an input that leaves its content as it is.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BASE.with(|base| base.get_or_init(Base::create).written.seeds())
}

struct Base {
    plan: Plan,
    written: Written,
}

impl Base {
    fn create() -> Base {
        let scenario =
            Scenario::parse(SCENARIO, "").unwrap_or_else(|error| panic!("{:?}", error.diagnostics));
        let axes = AXES.map(|axis| axis.parse().expect("the axis is valid")).to_vec();
        let plan = Plan::new(Request { scenario, axes, design: Design::GRID, until: None });
        let plan = plan.expect("the request is valid");
        let path = scratch::folder().join("sweep");
        let mut folder = open(&path, &plan).expect("the folder can be written");
        let done = run_sweep(&plan, &mut folder, Shard::WHOLE, 1, &Reuse::default(), &Silent);
        let done = done.expect("the folder can be written");
        assert!(done.complete && done.failed == 0);
        drop(folder);
        Base { plan, written: Written::of(&path) }
    }

    fn check(&self, resume: bool, forge: bool, changes: &[u8]) {
        self.written.change(changes);
        let dir = self.written.folder();
        if forge {
            forged(dir);
        }
        let merged = scratch::folder().join("merged");
        for read in [report(dir), reuse(dir), merge(&merged, &[dir.to_owned()]).map(drop)] {
            if let Err(error) = read {
                assert!(error.to_string().contains("sweep"), "the error has no path: {error}");
            }
        }
        if resume && let Ok(mut folder) = open(dir, &self.plan) {
            // A part with a forged digest may have anything in it.
            let went_on = folder.known(&Silent).and_then(|_| folder.complete());
            if let Err(error) = went_on {
                assert!(!error.to_string().is_empty());
            }
        }
        let _ = fs::remove_dir_all(&merged);
        self.written.restore();
    }
}

fn open(path: &Path, plan: &Plan) -> Result<SweepFolder, SweepError> {
    SweepFolder::open(path, plan, Shard::WHOLE, "giveway sweep fuzz.toml", &Silent)
}

/// Reads a sweep as `giveway report` does.
fn report(dir: &Path) -> Result<(), SweepError> {
    let data = Data::read(dir, "fct_mean_s")?;
    assert!(!answers(&data).is_empty());
    assert!(page(&[data]).html().contains("</html>"));
    Ok(())
}

/// Reads a sweep as `--reuse` and the Python package do.
fn reuse(dir: &Path) -> Result<(), SweepError> {
    let parts = parts_of(dir)?;
    let other = Reuse::of(&[dir.to_owned()], &Silent)?;
    for part in &parts {
        for trial in dataset::known(part)? {
            other.take(trial.key)?;
        }
        let axes = dataset::axes(part)?;
        dataset::read(part, &axes)?;
    }
    if let Err(error) = frames::of_parts("trials", dir, &parts) {
        assert!(error.to_string().contains("trials"));
    }
    Ok(())
}

/// Makes the digests of the manifest match, if it still has a list of files.
fn forged(dir: &Path) {
    let place = dir.join("manifest.json");
    let text = fs::read(&place).unwrap_or_default();
    let Ok(Value::Object(mut manifest)) = serde_json::from_slice(&text) else { return };
    if let Some(files) = manifest.get_mut("files").and_then(Value::as_object_mut) {
        for (name, digest) in files {
            // Only files of the folder itself are used.
            if let (false, Ok(found)) = (name.contains(".."), Digest::of_file(&dir.join(name))) {
                *digest = json!(found);
            }
        }
    }
    manifest.remove("sha256");
    if !manifest.is_empty() {
        fs::write(&place, seal(&manifest).0).expect("the folder can be written");
    }
}
