//! Writes generated files of the book and for editors: the JSON Schema of scenarios; a reference page for
//! each discipline, congestion control, source of traffic, arbiter of a switch and kind of traffic of a
//! switch; the command line; the metrics; the files of a run; the instructions per packet; the growth of
//! time and memory; and a step of the rate of a link. `--check` writes nothing, and fails if a file differs.
//!
//! A page is the header of the source file, so that there is one text about a discipline, next to its code.

mod cards;
mod crates;
mod growth;
mod pages;
mod parameters;
mod plot;
mod recorded;
mod senders;
mod speed;
mod step;
mod varying;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Folders with generated files only: a file without an entry is removed.
const OWNED: &[&str] = &[
    "docs/schema",
    "docs/book/reference/disciplines",
    "docs/book/reference/congestion",
    "docs/book/reference/traffic",
    "docs/book/reference/arbiters",
    "docs/book/reference/switch-traffic",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let check = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("unknown argument \"{}\": write --check, or no argument", words.join(" "));
            return ExitCode::FAILURE;
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate is two folders below the root");
    match docs(root, check) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(stale) => {
            eprintln!("{stale} generated files are out of date; run cargo xtask docs");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the files that differ, or counts them if `check` is true.
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
            let folder = path.parent().expect("a file is in a folder");
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

/// Files in the owned folders that are no longer generated.
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
