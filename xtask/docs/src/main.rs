//! What the book and editors need, written from the registries: the JSON Schema of scenarios and one reference page for
//! each discipline, congestion control, source of traffic, scheduler and kind of traffic of a switch; and the pages of metrics
//! and of the files of a run, from the tables of the record. `--check` writes nothing and fails where a file differs.
//!
//! A page is the header of the source file, so that there is one text about a discipline, next to its code.

mod pages;
mod parameters;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Folders in which everything is generated: a file that no entry asks for is removed.
const OWNED: &[&str] = &[
    "docs/schema",
    "docs/book/reference/disciplines",
    "docs/book/reference/congestion",
    "docs/book/reference/traffic",
    "docs/book/reference/schedulers",
    "docs/book/reference/switch-traffic",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let check = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("\"{}\" is not known: write nothing, or --check", words.join(" "));
            return ExitCode::FAILURE;
        }
    };
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies two folders deep");
    match docs(root, check) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(stale) => {
            eprintln!("{stale} generated files are out of date: run cargo xtask docs");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes what differs, or counts it.
fn docs(root: &Path, check: bool) -> Result<usize, String> {
    let wanted = pages::all(root)?;
    let mut stale = 0;
    for (name, text) in &wanted {
        let path = root.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        stale += 1;
        println!("{} {name}", if check { "differs" } else { "writes " });
        if !check {
            let folder = path.parent().expect("a file lies in a folder");
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(explain(&path))?;
        }
    }
    for path in leftovers(root, &wanted) {
        stale += 1;
        println!("{} {}", if check { "is gone" } else { "removes" }, path.display());
        if !check {
            std::fs::remove_file(&path).map_err(explain(&path))?;
        }
    }
    println!("{} generated files", wanted.len());
    Ok(if check { stale } else { 0 })
}

/// Files in the owned folders that nothing generates any more.
fn leftovers(root: &Path, wanted: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    for folder in OWNED {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> =
            names.filter(|name| !wanted.contains_key(&format!("{folder}/{name}"))).collect();
        names.sort();
        gone.extend(names.into_iter().map(|name| root.join(folder).join(name)));
    }
    gone
}

fn explain(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}
