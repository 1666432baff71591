//! `giveway man`: there is a page for each command, and programs that show pages do not complain.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const GIVEWAY: &str = env!("CARGO_BIN_EXE_giveway");

/// Writes the pages into a folder.
fn pages() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let written = Command::new(GIVEWAY).arg("man").arg(folder.path()).output().expect("the program starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    folder
}

/// The output of a program with a page, and what it complains about; `None` if it is not installed.
fn shown(program: &str, args: &[&str], page: &Path) -> Option<(String, String)> {
    let output = Command::new(program).args(args).arg(page).env("MANWIDTH", "100").output();
    let Ok(output) = output else {
        eprintln!("{program} is not installed, so this part is not tested");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

#[test]
fn each_command_has_a_page() {
    let folder = pages();
    for name in ["giveway", "giveway-run", "giveway-compare", "giveway-kernel", "giveway-kernel-load"] {
        let text = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).expect(name);
        let upper =
            |section: &str| text.lines().any(|line| line.replace('"', "") == format!(".SH {section}"));
        assert!(upper("NAME") && upper("SYNOPSIS") && upper("DESCRIPTION") && upper("SEE ALSO"), "{text}");
    }
    assert!(!folder.path().join("giveway-help.1").exists());
}

#[test]
fn pages_are_shown_without_warnings() {
    let folder = pages();
    let mut count = 0;
    for page in std::fs::read_dir(folder.path()).unwrap() {
        let page = page.unwrap().path();
        count += 1;
        if let Some((_, complaints)) = shown("groff", &["-man", "-ww", "-z", "-Tutf8"], &page) {
            assert_eq!(complaints, "", "groff: {}", page.display());
        }
        if let Some((complaints, _)) = shown("mandoc", &["-T", "lint", "-W", "warning"], &page) {
            assert_eq!(complaints, "", "mandoc: {}", page.display());
        }
    }
    assert!(count > 20, "{count} pages");
}

/// An example is one line in the page, however long it is, so that it can be copied.
#[test]
fn examples_are_whole_lines() {
    let folder = pages();
    let page = folder.path().join("giveway-compare.1");
    let Some((text, _)) = shown("groff", &["-man", "-Tutf8", "-P-cbou"], &page) else { return };
    let (_, examples) = text.split_once("\nEXAMPLES\n").expect("there are examples");
    let line = "giveway compare evening.pcapng --rate 10mbit --mode replay --link 192.168.0.0/16 --export queues.pcapng";
    assert!(examples.lines().any(|shown| shown.trim() == line), "{examples}");
    assert!(text.contains("\nEXIT STATUS\n"), "{text}");
}

#[test]
fn other_files_stay_unless_forced() {
    let folder = pages();
    // Pages of an earlier version are replaced.
    let again = |flags: &[&str]| {
        let output = Command::new(GIVEWAY).arg("man").arg(folder.path()).args(flags).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(again(&[]).0, Some(0));
    let mine = folder.path().join("giveway-run.1");
    std::fs::write(&mine, "my notes").unwrap();
    let (code, err) = again(&[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("giveway-run.1 exists and is not a manual page of Giveway"), "{err}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "my notes");
    assert_eq!(again(&["--force"]).0, Some(0));
    assert!(std::fs::read_to_string(&mine).unwrap().contains(".TH GIVEWAY-RUN"));
}
