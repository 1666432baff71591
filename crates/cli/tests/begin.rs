//! The first minute: `giveway demo`, `giveway doctor` and `giveway book`.

use std::path::Path;
use std::process::Command;

/// Runs the program in a folder, without a screen. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).current_dir(folder).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let output = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("no signal ends it"), text(output.stdout), text(output.stderr))
}

#[test]
fn the_demo_prints_a_table_what_it_shows_and_where_the_report_is() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = ran(folder.path(), &["demo", "--quiet"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in [
        "Which discipline is best",
        "fq_codel",
        "lowest median flow completion time",
        "The report is giveway-demo/report.html",
        "giveway compare CAPTURE",
    ] {
        assert!(out.contains(part), "{part} is missing in {out}");
    }
    assert!(folder.path().join("giveway-demo/report.html").is_file());
    // The results that it has are not computed again, and its scenario can be run.
    let (code, again, _) = ran(folder.path(), &["demo", "--quiet"]);
    assert_eq!((code, again), (0, out));
    assert_eq!(ran(folder.path(), &["check", "giveway-demo/scenario.toml"]).0, 0);
}

#[test]
fn the_demo_does_not_write_into_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    let (code, out, err) = ran(folder.path(), &["demo", "--quiet", "--out", "."]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("it contains mine") && err.contains("--force"), "{err}");
    assert_eq!(ran(folder.path(), &["demo", "--quiet", "--out", ".", "--force"]).0, 0);
    assert!(folder.path().join("mine").is_file());
}

#[test]
fn the_doctor_says_what_works_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = ran(folder.path(), &["doctor", "--json"]);
    assert_eq!(code, 0);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let parts = found["parts"].as_array().unwrap();
    assert_eq!(parts[0]["works"], true);
    for part in parts {
        let is_missing = !part["missing"].as_array().unwrap().is_empty();
        assert_eq!(part["works"], !is_missing, "{part}");
    }
    let (_, text, _) = ran(folder.path(), &["doctor"]);
    assert_eq!(text.matches("works  ").count() + text.matches("missing  ").count(), parts.len(), "{text}");
}

#[test]
fn a_book_that_is_not_installed_says_how_to_make_it() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = ran(folder.path(), &["book", "--print"]);
    match code {
        0 => assert!(Path::new(out.trim()).is_file(), "{out}"),
        _ => assert!(code == 2 && err.contains("cargo xtask book"), "{err}"),
    }
    let book = folder.path().join("target/book");
    std::fs::create_dir_all(&book).unwrap();
    std::fs::write(book.join("index.html"), "").unwrap();
    assert_eq!(ran(folder.path(), &["book", "--print"]).0, 0);
}
