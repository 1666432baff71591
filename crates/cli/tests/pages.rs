//! README and the pages of the book show what the program prints.
//!
//! A block of commands (`sh`) that is followed by a block of output (`text`) is run, if it has only commands
//! that simulate for a short time. A page may leave out lines and columns: each line of its output must have
//! its words, in their order, in one line that the program prints. Bars and rules are not compared, since
//! their length depends on the terminal.

use std::process::Command;

use super::chapters::{blocks, root, text};

/// Commands that may be run: they need no privileges, and seconds at most.
const QUICK: [&str; 2] = ["giveway run ", "giveway replay-check "];
/// The pages that are checked.
const PAGES: [&str; 8] = [
    "README.md",
    "docs/book/numbers.md",
    "docs/book/switch.md",
    "docs/book/users/kernel-engineer.md",
    "docs/book/users/operator.md",
    "docs/book/users/researcher.md",
    "docs/book/users/switch-architect.md",
    "docs/book/users/teacher.md",
];

/// Pairs of commands and their output that can be run.
fn examples(page: &str) -> Vec<(String, String)> {
    let blocks = blocks(page);
    let pairs = blocks.windows(2).filter(|pair| (pair[0].0.as_str(), pair[1].0.as_str()) == ("sh", "text"));
    let quick = |commands: &str| {
        let lines: Vec<&str> = commands.lines().map(str::trim).collect();
        !lines.is_empty() && lines.iter().all(|line| QUICK.iter().any(|start| line.starts_with(start)))
    };
    pairs.filter(|pair| quick(&pair[0].1)).map(|pair| (pair[0].1.clone(), pair[1].1.clone())).collect()
}

/// The output of commands in a folder with the scenarios.
fn output(commands: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("scenarios"), folder.path().join("scenarios")).unwrap();
    let program = assert_cmd::cargo::cargo_bin!("giveway");
    let path = format!("{}:/usr/bin:/bin", program.parent().expect("it is in a folder").display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", commands]).current_dir(folder.path());
    shell.env("PATH", path).env("COLUMNS", "300").env("NO_COLOR", "1");
    let output = shell.output().expect("sh starts");
    assert!(output.status.success(), "{commands}{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it writes text")
}

/// True if the line contains the words in the same order.
fn is_within(words: &str, line: &str) -> bool {
    let is_bar = |word: &str| word.chars().all(|c| c == '─' || ('▁'..='█').contains(&c));
    let mut of_line = line.split_whitespace();
    let mut wanted = words.split_whitespace().filter(|word| *word != "..." && !is_bar(word));
    wanted.all(|word| of_line.any(|other| other == word))
}

#[test]
fn the_output_on_a_page_is_what_the_program_prints() {
    let mut checked = 0;
    for name in PAGES {
        let page = text(name);
        for (commands, shown) in examples(&page) {
            let printed = output(&commands);
            for line in shown.lines() {
                let is_printed = printed.lines().any(|other| is_within(line, other));
                assert!(is_printed, "{name} shows\n{line}\nand these commands\n{commands}print\n{printed}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} blocks of output were found");
}

#[test]
fn a_number_that_is_not_printed_is_found() {
    assert!(is_within("fifo ... 1 3", "fifo 1 2 3") && !is_within("fifo 3 1", "fifo 1 2 3"));
    let page =
        "```sh\ngiveway run a\n```\n\n```text\nb\n```\n\n```sh\nsudo giveway live\n```\n\n```text\nc\n```\n";
    assert_eq!(examples(page), [("giveway run a\n".to_owned(), "b\n".to_owned())]);
}
