//! SECURITY.md: each promise has a test, and each test that it names exists.

use std::fs;
use std::path::{Path, PathBuf};

/// The row of a table that promises nothing.
const NO_PROMISE: &str = "no promise";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in crates/").to_owned()
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// True for the name of a function that says something: three words.
fn is_function(name: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.split('_').count() >= 3 && name.split('_').all(word)
}

/// The file of a name such as `cli/tests/security.rs`, which is under `crates/`; Python's are as they are.
fn file_of(name: &str) -> Option<PathBuf> {
    let ending = Path::new(name).extension()?.to_str()?;
    match (name.contains('/'), ending) {
        (true, "rs") if name.starts_with("xtask/") => Some(root().join(name)),
        (true, "rs") => Some(root().join("crates").join(name.trim_start_matches("crates/"))),
        (true, "py") => Some(root().join(name)),
        _ => None,
    }
}

/// Checks the names in a text. Returns the number of tests: functions in files, and fuzz targets.
fn tests_in(text: &str, targets: &[String]) -> Result<usize, String> {
    let mut found = 0;
    let mut file: Option<(&str, String)> = None;
    for name in quoted(text) {
        if let Some(path) = file_of(name) {
            let content = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
            file = Some((name, content));
        } else if is_function(name) {
            let (of, content) = file.as_ref().ok_or_else(|| format!("{name} has no file in front of it"))?;
            if !content.contains(&format!("fn {name}(")) && !content.contains(&format!("def {name}(")) {
                return Err(format!("{of} has no function {name}"));
            }
            found += 1;
        }
    }
    for (_, listed) in text.match_indices("fuzz target").map(|(at, _)| text.split_at(at)) {
        let listed = listed.split(';').next().unwrap_or_default();
        let is_target = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for name in quoted(listed).filter(is_target).filter(|name| !is_function(name)) {
            if !targets.iter().any(|target| target == name) {
                return Err(format!("there is no fuzz target {name}"));
            }
            found += 1;
        }
    }
    Ok(found)
}

#[test]
fn every_promise_has_a_test_that_exists() {
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let table = fs::read_to_string(root().join("crates/fuzzing/src/targets.rs")).unwrap();
    let listed = table.split("targets! {").last().unwrap().lines();
    let targets: Vec<String> =
        listed.filter_map(|line| Some(line.trim().split_once(", ")?.0.to_owned())).collect();
    assert!(targets.len() > 20, "{targets:?}");
    let (mut promises, mut wrong) = (0, Vec::new());
    // A row is a line, and any other text is a paragraph.
    let texts = page.split("\n\n").flat_map(|block| match block.starts_with('|') {
        true => block.lines().map(str::to_owned).collect(),
        false => vec![block.replace('\n', " ")],
    });
    for line in texts {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let is_row = line.starts_with("| ") && cells.last() != Some(&"test");
        let checked = match tests_in(if is_row { cells[cells.len() - 1] } else { &line }, &targets) {
            Ok(0) if is_row && cells.last() != Some(&NO_PROMISE) => {
                Err("a promise without a test".to_owned())
            }
            other => other,
        };
        promises += usize::from(is_row);
        if let Err(why) = checked {
            wrong.push(format!("{why}: {line}"));
        }
    }
    assert!(promises > 30, "the page has {promises} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_missing_test_is_found() {
    let targets = ["http".to_owned()];
    let tests = |text| tests_in(text, &targets);
    assert_eq!(tests("`cli/tests/security.rs` `a_missing_test_is_found`; fuzz target `http`"), Ok(2));
    assert_eq!(tests("the key of `--seed`"), Ok(0));
    for wrong in [
        "`cli/tests/security.rs` `a_test_that_was_renamed`",
        "`cli/tests/nothing.rs`",
        "`a_test_without_a_file`",
        "fuzz targets `http`, `https`",
    ] {
        assert!(tests(wrong).is_err(), "{wrong}");
    }
}
