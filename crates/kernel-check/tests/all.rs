//! Tests of the two programs of the kernel test, without a kernel. A comparison without a journal must fail.

use std::process::{Command, Output};

const PROGRAMS: [&str; 2] = [env!("CARGO_BIN_EXE_kernel-judge"), env!("CARGO_BIN_EXE_kernel-oracle")];

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

#[test]
fn no_journal_is_a_failure() {
    for program in PROGRAMS {
        assert_eq!(run(program, &[]).status.code(), Some(1), "{program}");
    }
}

#[test]
fn an_incomplete_group_of_arguments_is_an_error() {
    for program in PROGRAMS {
        let output = run(program, &["journal", "10mbit", "efd"]);
        assert_eq!(output.status.code(), Some(2), "{program}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "four arguments for each journal: FILE RATE DISCIPLINE PACKETS\n"
        );
    }
}

#[test]
fn a_missing_journal_is_a_difference() {
    for program in PROGRAMS {
        let output = run(program, &["/nonexistent/efd-equal-2", "10mbit", "efd", "5000"]);
        assert_eq!(output.status.code(), Some(1), "{program}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("DIFFERENT ") && text.contains("No such file"), "{program}: {text}");
    }
}
