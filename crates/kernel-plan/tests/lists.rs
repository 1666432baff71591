//! Every place that repeats the list of the kernel's disciplines has the same list as [`Kind::ALL`].

use std::fs;
use std::path::{Path, PathBuf};

use giveway_kernel_plan::plan::Kind;

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in `crates`");
    crates.parent().expect("`crates` is in the repository").to_owned()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The files of a folder whose names end with `end`, with the part of the names before it.
fn files(folder: &str, end: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_owned();
        Some((name, path))
    });
    named.collect()
}

fn sorted<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_all<S: Into<String>>(place: &str, names: impl IntoIterator<Item = S>) {
    assert_eq!(sorted(names), sorted(Kind::ALL.map(Kind::name)), "{place}");
}

#[test]
fn each_discipline_has_a_c_program_that_is_embedded() {
    let programs = files("kernel", ".bpf.c");
    assert_all("kernel/*.bpf.c", programs.iter().map(|(name, _)| name.as_str()));
    let embedded = read(&root().join("crates/kernel/src/object.rs"));
    for name in files("kernel", ".c").into_iter().chain(files("kernel", ".h")).map(|(_, path)| path) {
        let name = name.file_name().unwrap().to_string_lossy().into_owned();
        assert!(embedded.contains(&format!("(\"{name}\", include_str!(")), "object.rs embeds {name}");
    }
}

#[test]
fn the_kernel_test_runs_each_discipline() {
    let table = read(&root().join("xtask/src/kernel/equality.rs"));
    let rows = table.split_once("pub const DISCIPLINES").expect("the file has the table").1;
    let rows = rows.split_once("\n];").expect("the table ends").0;
    // A row begins with the interface, which is followed by the name.
    let names = rows.split("\"lane").skip(1).map(|row| row.split('"').nth(2).expect("a row has a name"));
    assert_all("equality.rs", names);
}

#[test]
fn the_shell_scripts_loop_over_each_discipline() {
    let mut loops = 0;
    for (name, path) in files("kernel/test", ".sh") {
        let text = read(&path);
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("for kind in ")) {
            let kinds = line.split(';').next().expect("a line has a first part");
            // Other loops are over the kernel's own qdiscs.
            if !kinds.split_whitespace().any(|kind| kind == "fifo") {
                continue;
            }
            // again.sh treats trr separately.
            let rest = if name == "again" { "trr" } else { "" };
            assert_all(&name, kinds.split_whitespace().chain(rest.split_whitespace()));
            loops += 1;
        }
    }
    assert!(loops >= 4, "{loops} loops");
}

#[test]
fn the_help_of_the_program_lists_each_discipline() {
    let source = read(&root().join("crates/program/src/commands/kernel.rs"));
    let line = source.lines().find(|line| line.contains("/// Discipline (")).expect("the help has a list");
    let list = line.split_once('(').unwrap().1.split_once(')').expect("the list ends").0;
    assert_all("program/src/commands/kernel.rs", list.replace(" or ", ", ").split(", "));
    let readme = read(&root().join("README.md"));
    let row = format!(" {} ", Kind::ALL.map(Kind::name).join("  "));
    assert!(readme.contains(&row), "README.md has {row:?} in its picture");
}
