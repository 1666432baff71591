//! `giveway init`: each scenario that it writes is valid, runs, and is not written over another file.

use std::path::Path;
use std::process::Command;

const KINDS: [&str; 4] = ["home", "isp", "datacenter", "switch"];

/// Runs the program in a folder. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output = command.args(args).current_dir(folder).env("COLUMNS", "100").output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("no signal ends it"), text(output.stdout), text(output.stderr))
}

/// The last line that a user sees is a command, and this command works.
#[test]
fn the_next_command_runs_the_new_scenario() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let file = format!("{kind}.toml");
        let (code, next, _) = ran(folder.path(), &["init", &file, "--kind", kind]);
        assert_eq!((code, next), (0, format!("giveway run {file}\n")));
        let (code, out, err) = ran(folder.path(), &["check", &file]);
        assert_eq!((code, err.as_str()), (0, ""), "{kind} has no mistakes and no warnings");
        assert!(out.starts_with(&format!("{file}: ok: ")), "{out}");
        let (code, out, err) = ran(folder.path(), &["run", &file, "--short"]);
        assert!(code == 0 && out.contains("\nfingerprint "), "{kind}: {out}{err}");
        let text = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(text.contains(&format!("giveway check {file}")), "comments name the file: {text}");
        assert!(text.matches('#').count() > 10 && !text.contains("FILE"), "{text}");
    }
}

/// Comments propose changes with `--set`. Each of them works.
#[test]
fn proposed_changes_work() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let file = format!("{kind}.toml");
        assert_eq!(ran(folder.path(), &["init", &file, "--kind", kind]).0, 0);
        let text = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        let (_, rest) = text.split_once(" --set ").expect("a change is proposed");
        let change = rest.lines().next().unwrap();
        let (code, _, err) = ran(folder.path(), &["check", &file, "--set", change]);
        assert_eq!((code, err.as_str()), (0, ""), "{kind}: {change}");
    }
}

#[test]
fn without_a_name_it_is_a_home_in_scenario_toml() {
    let folder = tempfile::tempdir().unwrap();
    let (code, next, err) = ran(folder.path(), &["init"]);
    assert_eq!((code, next.as_str()), (0, "giveway run scenario.toml\n"));
    assert_eq!(err, "giveway: wrote scenario.toml; its comments say what to change\n");
    let text = std::fs::read_to_string(folder.path().join("scenario.toml")).unwrap();
    assert!(text.contains("title = \"Home:"), "{text}");
}

#[test]
fn an_existing_file_stays_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my own.toml");
    std::fs::write(&file, "duration = \"1 s\"\n").unwrap();
    let (code, out, err) = ran(folder.path(), &["init", "my own.toml"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("my own.toml exists. Nothing was changed.") && err.contains("--force"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "duration = \"1 s\"\n");
    let (code, next, _) = ran(folder.path(), &["init", "my own.toml", "--force"]);
    assert_eq!((code, next.as_str()), (0, "giveway run 'my own.toml'\n"));
    let (code, _, err) = ran(folder.path(), &["init", "no/such/folder.toml"]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot write no/such/folder.toml: No such file"), "{err}");
}
