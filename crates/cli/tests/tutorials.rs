//! Every command `giveway` of the book and of the README is run, in the order of its chapter.
//!
//! A command is a line of a block `sh` or `console`. Each chapter has its own folder, which contains the
//! scenarios, the examples and the papers of the repository. [`tables`] shortens commands, and names those
//! that cannot be run here. If the comment of a command that is not shortened has a fingerprint, the command
//! must print it.

mod tables;

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::chapters::{blocks, names, root, text};
use tables::{FILES, NOT_RUN, SHORTER};

/// Chapters whose commands are checked elsewhere: `cargo xtask pictures --check` runs the commands of the
/// gallery, and the page of the command line is the text of `--help`.
const LEFT_OUT: [&str; 2] = ["docs/book/gallery.md", "docs/book/reference/command-line.md"];
/// The beginning of the book writes commands for a clone.
const IN_A_CLONE: &str = "cargo run --release -- ";

/// The commands of a page that run `giveway`.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (language, block) in blocks(page) {
        let is_console = language == "console";
        if !is_console && language != "sh" {
            continue;
        }
        for line in block.replace("\\\n", " ").lines().map(str::trim) {
            let line = if is_console { line.strip_prefix("$ ").unwrap_or_default() } else { line };
            let line = line.replace(IN_A_CLONE, "giveway ");
            let is_ours = |word: &str| word == "giveway" || word.ends_with("/giveway");
            if !line.starts_with('#') && line.split_whitespace().any(is_ours) {
                commands.push(line);
            }
        }
    }
    commands
}

/// The handling of a command.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// It is run in this form.
    Run(String),
    /// The entry of [`NOT_RUN`].
    Not(usize),
}

/// The plan for a command, and the entry of [`SHORTER`] that it uses.
fn plan(command: &str) -> (Plan, Option<usize>) {
    if let Some(at) = NOT_RUN.iter().position(|(part, _)| command.contains(part)) {
        return (Plan::Not(at), None);
    }
    let fitting = SHORTER.iter().enumerate().filter(|(_, (start, _))| command.starts_with(start));
    match fitting.max_by_key(|(_, (start, _))| start.len()) {
        Some((at, (start, flags))) => (Plan::Run(shorter(command, flags, start)), Some(at)),
        None => (Plan::Run(command.to_owned()), None),
    }
}

/// A command with these flags. A flag that it has gets the other value. The flags come after `start`, the
/// name of the command.
fn shorter(command: &str, flags: &str, start: &str) -> String {
    let behind = start.split_whitespace().count();
    let mut command = command.to_owned();
    for flag in flags.split("--").map(str::trim).filter(|flag| !flag.is_empty()) {
        let (name, value) = flag.split_once(' ').unwrap_or((flag, ""));
        let name = format!("--{name}");
        let words: Vec<&str> = command.split(' ').collect();
        command = match words.iter().position(|word| *word == name) {
            Some(_) if value.is_empty() => continue,
            Some(at) => [&words[..=at], &[value], &words[at + 2..]].concat().join(" "),
            None => {
                let new = if value.is_empty() { vec![name.as_str()] } else { vec![name.as_str(), value] };
                // Behind the name of the command, since a comment may follow at the end.
                [&words[..behind], &new, &words[behind..]].concat().join(" ")
            }
        };
    }
    command
}

/// Runs the commands of a chapter. Returns what went wrong.
fn follow(name: &str, plans: &[(String, Plan)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for link in ["scenarios", "examples", "papers"] {
        std::os::unix::fs::symlink(root().join(link), folder.path().join(link)).unwrap();
    }
    for (_, file, source) in FILES.iter().filter(|(chapter, ..)| *chapter == name) {
        fs::copy(root().join(source), folder.path().join(file)).unwrap();
    }
    let mut wrong = Vec::new();
    for (shown, plan) in plans {
        let Plan::Run(command) = plan else { continue };
        let (succeeded, printed) = ran(folder.path(), command);
        println!("{name}: {command}");
        let fingerprint = shown.split_once("# fingerprint ").map(|(_, text)| text.trim());
        let is_printed = fingerprint.is_none_or(|text| command != shown || printed.contains(text));
        if !succeeded || !is_printed {
            wrong.push(format!("{name}: {command}\n{printed}"));
        }
    }
    wrong
}

/// Runs a command in a folder. Returns true if it succeeds, and its output.
fn ran(folder: &Path, command: &str) -> (bool, String) {
    let program = assert_cmd::cargo::cargo_bin!("giveway");
    let path = format!("{}:/usr/bin:/bin", program.parent().expect("it is in a folder").display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", command]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1");
    let output = shell.output().expect("sh starts");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text.concat())
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_every_command_of_the_book_works() {
    let (mut shortened, mut not_run, mut files) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut chapters = VecDeque::new();
    for name in names().into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str())) {
        let mut plans = Vec::new();
        for command in commands(&text(&name)) {
            let (plan, used) = plan(&command);
            shortened.extend(used);
            if let Plan::Not(at) = plan {
                not_run.insert(at);
            }
            files
                .extend((0..FILES.len()).filter(|at| FILES[*at].0 == name && command.contains(FILES[*at].1)));
            plans.push((command, plan));
        }
        chapters.push_back((name, plans));
    }
    for (at, (start, _)) in SHORTER.iter().enumerate() {
        assert!(shortened.contains(&at), "no command begins with {start:?}: remove it from SHORTER");
    }
    for (at, (part, _)) in NOT_RUN.iter().enumerate() {
        assert!(not_run.contains(&at), "no command contains {part:?}: remove it from NOT_RUN");
    }
    for (at, (chapter, file, _)) in FILES.iter().enumerate() {
        assert!(files.contains(&at), "no command of {chapter} uses {file}: remove it from FILES");
    }
    let plans = || chapters.iter().flat_map(|(_, plans)| plans);
    let run = plans().filter(|(_, plan)| matches!(plan, Plan::Run(_))).count();
    println!("{run} of {} commands are run", plans().count());
    assert!(run >= 50, "only {run} commands are run");

    let (chapters, wrong) = (Mutex::new(chapters), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = chapters.lock().unwrap().pop_front();
            let Some((name, plans)) = next else { return };
            wrong.lock().unwrap().extend(follow(&name, &plans));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn commands_are_found_and_shortened() {
    let page = "```sh\nping x\ngiveway run a \\\n  --seeds 5   # b\n#!giveway\nsudo target/release/giveway live\n```\n\n\
                ```console\n$ giveway list\ngiveway\n```\n\n```text\ngiveway c\n```\n\n  ```sh\n  cargo run --release -- d\n  ```\n";
    let found = commands(page);
    let expected =
        ["giveway run a    --seeds 5   # b", "sudo target/release/giveway live", "giveway list", "giveway d"];
    assert_eq!(found, expected);
    assert_eq!(
        shorter(&found[0], "--short --seeds 1", "giveway run "),
        "giveway run --short a    --seeds 1   # b"
    );
    assert_eq!(
        shorter("giveway run --short a", "--short --seeds 1", "giveway run "),
        "giveway run --seeds 1 --short a"
    );
    assert_eq!(shorter("giveway list", "", "giveway list"), "giveway list");
}
