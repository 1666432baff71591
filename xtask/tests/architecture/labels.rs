//! A metric has its label in one place, the table of definitions.
//!
//! The test looks for two adjacent literals, of which one is the name of a metric with `_` and the other one
//! looks like its label: it has a space, or is a statistic as headings have it. It does not see a label of a
//! metric with a plain name, such as `jain`, or one that is far from the name.

use std::path::PathBuf;

use super::{root, rust_files};

const DEFINITIONS: &str = "crates/measure/src/metrics/definitions.rs";
const HEADINGS: [&str; 7] = ["mean", "median", "p50", "p90", "p95", "p99", "max"];

#[test]
fn no_other_table_has_labels_of_metrics() {
    let definitions = std::fs::read_to_string(root().join(DEFINITIONS)).unwrap();
    let names = names(&definitions);
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|path| !path.ends_with(DEFINITIONS)) {
        for (one, other) in labels(&std::fs::read_to_string(&path).unwrap(), &names) {
            wrong.push(format!("{}: \"{one}\", \"{other}\"", path.display()));
        }
    }
    assert!(wrong.is_empty(), "labels are in {DEFINITIONS}:\n{}", wrong.join("\n"));
}

#[test]
fn a_table_of_labels_is_found() {
    let names = names("names: &[\"fct_p50_s\", \"fct_*_p50_s\"], names: &[\"jain\", \"goodput_bps\"]");
    assert_eq!(names, ["fct_p50_s", "fct_*_p50_s", "goodput_bps"]);
    let found = |code: &str| labels(code, &names).len();
    assert_eq!(found("(\"fct_p50_s\", \"median completion time\"), (\"goodput_bps\", 1)"), 1);
    assert_eq!(found("Question { metric: \"src.web.fct_le30kB_p50_s\", noun: \"median time\" }"), 1);
    assert_eq!(found("column(\"p50\", \"fct_p50_s\", TIME)"), 1);
    assert_eq!(found("\"goodput_bps\" => \"goodput of all\","), 1);
    assert_eq!(found("[\"fct_p50_s\", \"goodput_bps\", \"jain\"]"), 0);
    assert_eq!(found("// \"fct_p50_s\", \"median completion time\""), 0);
    assert_eq!(found("mean(\"fct_p50_s\").expect(\"it was measured\")"), 0);
}

/// The names of metrics with `_` in the table of definitions.
fn names(definitions: &str) -> Vec<&str> {
    let lists = definitions.split("names: &[").skip(1).filter_map(|rest| rest.split_once(']'));
    let names = lists.flat_map(|(list, _)| literals(list)).map(|(name, _)| name);
    names.filter(|name| name.contains('_')).collect()
}

/// The files that might have a table of labels.
fn sources() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let python = std::fs::read_dir(root().join("python/giveway")).unwrap().map(|entry| entry.unwrap().path());
    let python = python.filter(|path| path.extension().is_some_and(|extension| extension == "py"));
    folders.flat_map(|folder| rust_files(&folder.join("src"))).chain(python).collect()
}

/// The names of metrics in a file with a label next to them.
fn labels(code: &str, names: &[&str]) -> Vec<(String, String)> {
    let is_metric = |text: &str| {
        let name = text.rsplit('.').next().unwrap_or(text);
        names.iter().any(|pattern| match pattern.split_once('*') {
            None => *pattern == name,
            Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after)),
        })
    };
    let is_label = |text: &str| text.contains(' ') || HEADINGS.contains(&text);
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with(['/', '#'])).collect();
    // The character would begin a literal.
    let code = code.join("\n").replace("'\"'", "' '");
    let mut found = Vec::new();
    for pair in literals(&code).windows(2) {
        let [(one, between), (other, _)] = [pair[0], pair[1]];
        let are_beside = between.chars().all(|c| c.is_alphanumeric() || " \n_,:=>".contains(c));
        if are_beside && (is_metric(one) && is_label(other) || is_label(one) && is_metric(other)) {
            found.push((one.to_owned(), other.to_owned()));
        }
    }
    found
}

/// The literals of a text, each with the text up to the next one.
fn literals(code: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = code;
    while let Some((_, after)) = rest.split_once('"') {
        let mut end = 0;
        let bytes = after.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            // An escaped quote belongs to the literal.
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let Some(literal) = after.get(..end) else { break };
        rest = after.get(end + 1..).unwrap_or_default();
        pieces.push((literal, rest.split('"').next().unwrap_or_default()));
    }
    pieces
}
