//! `giveway` becomes `giveway-net` for the commands of real interfaces and the kernel.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::GIVEWAY;

/// A copy of `giveway` in a folder, without the other program.
fn alone(folder: &Path) -> PathBuf {
    let program = folder.join("giveway");
    fs::copy(GIVEWAY, &program).expect("there is room");
    program
}

#[test]
fn the_other_program_gets_the_process_the_words_and_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let program = alone(folder.path());
    let net = folder.path().join("giveway-net");
    fs::write(&net, "#!/bin/sh\necho $$; for word in \"$@\"; do echo \"$word\"; done; exit 7\n").unwrap();
    fs::set_permissions(&net, PermissionsExt::from_mode(0o755)).unwrap();
    // A link in a folder of programs, as package managers create them.
    let link = folder.path().join("bin");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    for (program, words) in [
        (&program, &["live", "--in", "a b", "--qdisc", "no such"][..]),
        (&link, &["kernel", "load", "--help"]),
        (&program, &["control", "/run/s", "set", "rate", "8mbit"]),
        (&program, &["reserve"]),
    ] {
        let child = Command::new(program).args(words).stdout(Stdio::piped()).spawn().unwrap();
        let number = child.id().to_string();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), [&[&*number], words].concat());
    }
}

#[test]
fn without_the_other_program_one_line_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let program = alone(folder.path());
    let run = |words: &[&str]| {
        let output = Command::new(&program).args(words).env("PATH", "/usr/bin:/bin").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for words in [&["live", "--in", "a", "--out", "b"][..], &["kernel", "list"], &["control", "s", "show"]] {
        let (code, out, errors) = run(words);
        assert_eq!((code, out.as_str(), errors.lines().count()), (Some(2), "", 1), "{words:?}: {errors}");
        let folder = folder.path().canonicalize().unwrap();
        let begin = format!("giveway: the program giveway-net is missing in {}: ", folder.display());
        assert!(errors.starts_with(&begin), "{errors}");
    }
    // The help of all commands is in this program.
    let (code, out, _) = run(&["live", "--help"]);
    assert!(
        code == Some(0) && out.contains("Usage: giveway live") && out.contains("--qdisc-reverse"),
        "{out}"
    );
    assert_eq!(run(&["help", "reserve"]).0, Some(0));
    let (_, out, _) = run(&["doctor"]);
    assert!(out.contains("giveway-net is missing"), "{out}");
}
