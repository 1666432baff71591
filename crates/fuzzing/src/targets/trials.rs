//! The trials that a command has kept, with any content in their files, are taken or run again: the data set
//! of a card, and the lines of a judgement.
//!
//! Both are created once. An input changes some of their files; afterwards they are restored. The digests can
//! be made to match the changes, so that other readers than the check of digests see them.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use giveway_qdisc::Quantity;
use giveway_record::dataset::{Axis, Measured, Row};
use giveway_record::{Digest, seal, seal_line};
use giveway_trials::{DataSet, Lines, Reuse, Silent, Store};
use serde_json::Value;

use crate::changes::Written;
use crate::scratch;

const VERSION: &str = "a version";
const LINES: &str = "candidate.jsonl";
const LIST: &str = "trials.json";

thread_local! {
    static BASE: OnceCell<Written> = const { OnceCell::new() };
}

/// Input: one byte, then changes ([`Written::change`]). With bit 0 of the byte the digests match.
pub fn run(input: &[u8]) {
    let Some((options, changes)) = input.split_first() else { return };
    BASE.with(|base| check(base.get_or_init(create), options & 1 != 0, changes));
}

/// Seeds: for each file an input that leaves its content as it is.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BASE.with(|base| base.get_or_init(create).seeds())
}

fn axes() -> Vec<Axis> {
    vec![Axis { key: "cell".to_owned(), column: "cell".to_owned(), unit: None }]
}

fn trial(key: u128) -> Row<()> {
    let axes = vec![Some(Quantity::Text("rrul/rrul".to_owned()))];
    Row { key, qdisc: "fifo".to_owned(), seed: key as u64, axes, ..Row::default() }
}

fn create() -> Written {
    let path = scratch::folder().join("trials");
    let data = DataSet::open(&path, &axes(), VERSION, &Silent).expect("the folder can be written");
    let lines: Lines<Measured> =
        Lines::open(&path.join(LINES), "a judgement", 0o600, &Silent).expect("the folder can be written");
    for key in 1..4 {
        let measured = Measured {
            fingerprint: format!("{key:032x}"),
            events: 3,
            names: vec!["fct_mean_s".to_owned(), "src.web.lead".to_owned()].into(),
            values: vec![Some(0.1), None],
        };
        data.keep(trial(key).with(measured.clone())).expect("the folder can be written");
        lines.keep(trial(key).with(measured)).expect("the file can be written");
    }
    data.complete().expect("the folder can be written");
    drop(data);
    Written::of(&path)
}

fn check(base: &Written, forge: bool, changes: &[u8]) {
    base.change(changes);
    let dir = base.folder();
    if forge {
        forged(dir);
    }
    match Reuse::of(&[dir.to_owned()], &Silent) {
        // A part with a forged digest may have anything in it.
        Ok(other) => drop((1..4).map(|key| other.take(key)).collect::<Vec<_>>()),
        Err(error) => assert!(error.to_string().contains("trials"), "the error has no path: {error}"),
    }
    match DataSet::open(dir, &axes(), VERSION, &Silent) {
        Ok(data) => {
            let found = (1..4).filter(|key| data.find(&trial(*key)).is_some()).count();
            assert!(found <= data.count());
            data.complete().expect("the folder can be written");
        }
        Err(error) => assert!(error.to_string().contains("trials"), "the error has no path: {error}"),
    }
    let lines: Lines<Measured> =
        Lines::open(&dir.join(LINES), "a judgement", 0o600, &Silent).expect("the file can be written");
    assert!((1..4).filter(|key| lines.find(&trial(*key)).is_some()).count() <= lines.found());
    base.restore();
}

/// Makes the digests of the list and of the lines match.
fn forged(dir: &Path) {
    let text = fs::read(dir.join(LIST)).unwrap_or_default();
    if let Ok(Value::Object(mut list)) = serde_json::from_slice(&text) {
        if let Some(files) = list.get_mut("files").and_then(Value::as_object_mut) {
            for (name, digest) in files {
                // Only files of the folder itself are used.
                if let (false, Ok(found)) = (name.contains(".."), Digest::of_file(&dir.join(name))) {
                    *digest = serde_json::json!(found);
                }
            }
        }
        list.remove("sha256");
        if !list.is_empty() {
            fs::write(dir.join(LIST), seal(&list).0).expect("the folder can be written");
        }
    }
    let text = fs::read(dir.join(LINES)).unwrap_or_default();
    let sealed = text.split(|byte| *byte == b'\n').map(|line| match serde_json::from_slice(line) {
        Ok(Value::Object(mut object)) => {
            object.remove("sha256");
            let line = Value::Object(object).to_string();
            if line == "{}" { line.into_bytes() } else { seal_line(&line).into_bytes() }
        }
        _ => line.to_vec(),
    });
    let lines: Vec<Vec<u8>> = sealed.collect();
    fs::write(dir.join(LINES), lines.join(&b'\n')).expect("the folder can be written");
}
