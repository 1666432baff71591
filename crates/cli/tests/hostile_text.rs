//! Text from files, arguments and other programs, with everything in it that a terminal would obey.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::programs::has_net;

/// Resets the terminal, rings its bell, clears the screen with a sequence of one byte (C1), reverses the
/// text, and returns to the start of the line.
const HOSTILE: &str = "\u{1b}c\u{7}\u{9b}2J\u{202e}\u{2066}\r";

/// A scenario whose texts are hostile, in the notation of TOML.
fn scenario() -> String {
    let hostile = HOSTILE.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<String>();
    format!(
        r#"
title = "title {hostile}"
description = "description {hostile}"
duration = "300 ms"
disciplines = ["fifo limit 50p", "efd limit 50p"]
[[link]]
from = "home"
to = "isp"
rate = "5mbit"
delay = "10ms"
qdisc = "compare"
[[traffic]]
kind = "transfers"
name = "up {hostile}"
from = "home"
to = "isp"
load = "2mbit"
size = {{ fixed = "20kb" }}
"#
    )
}

/// Runs the program, and returns what it wrote, which a terminal must not obey.
fn shown(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output = command.args(args).current_dir(dir).env("COLUMNS", "300").output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(obeyed), "{args:?}: {text:?}");
    text
}

/// Runs the program, which shows a hostile text as harmless.
fn shows(dir: &Path, args: &[&str]) -> String {
    let text = shown(dir, args);
    assert!(text.contains("\\u"), "{args:?} shows no text from outside: {text}");
    text
}

#[test]
fn a_terminal_obeys_nothing_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("home.toml"), scenario()).unwrap();
    shows(dir, &["run", "home.toml", "--seeds", "2", "--out", "run"]);
    shows(dir, &["run", "home.toml", "--plot"]);
    let text = shows(dir, &["run", "home.toml", "--json"]);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    let json = values.next().expect("it begins with an object").expect("it is JSON");
    assert!(json.to_string().contains("\u{202e}"), "the text in JSON keeps its meaning: {json}");
    shown(dir, &["sweep", "home.toml", "--over", "link.0.rate=5mbit,6mbit", "--out", "sweep"]);

    // Mistakes in the text, with the lines around them.
    let raw = format!("title = \"raw {HOSTILE}\"\nduration = \"1 s\"\n");
    fs::write(dir.join("raw.toml"), raw).unwrap();
    shows(dir, &["check", "raw.toml"]);
    let wrong = scenario().replace("5mbit", &format!("5 {}", "\\u001b[2J\\u009b2J\\u202e"));
    fs::write(dir.join("wrong.toml"), wrong.replace("to = \"isp\"", "to = \"isp\\u001bc\"")).unwrap();
    shows(dir, &["check", "wrong.toml"]);
    shows(dir, &["check", "--json", "wrong.toml"]);
    let key = scenario().replace("load =", "\"lo\\u001bad\\u202e\" =");
    fs::write(dir.join("key.toml"), key).unwrap();
    shows(dir, &["run", "key.toml"]);
    let unknown = scenario().replace("fifo limit", "fi\\u001b[2Jfo\\u009b limit");
    fs::write(dir.join("unknown.toml"), unknown).unwrap();
    shows(dir, &["check", "unknown.toml"]);

    // Names of files, and arguments.
    let name = format!("{HOSTILE}.toml");
    fs::write(dir.join(&name), scenario()).unwrap();
    shows(dir, &["check", &name]);
    // clap leaves out sequences that begin with ESC, and passes C1.
    const WORD: &str = "\u{1b}[2J\u{9b}";
    let long = ["--", "duration="].map(|before| format!("{before}{WORD}"));
    for args in [
        &["check", WORD][..],
        &[WORD],
        &["run", "home.toml", &long[0]],
        &["run", "home.toml", "--seeds", WORD],
        &["run", "home.toml", "--set", &long[1]],
        &["explain", WORD],
        &["list", WORD],
        &["evaluate", WORD, "--short"],
        &["reproduce", WORD],
        &["replay-check", WORD],
        &["report", WORD],
        &["sweep", "home.toml", "--over", WORD],
        &["merge", WORD],
        &["judge", WORD],
        &["compare", WORD, "--rate", "5mbit"],
        &["control", WORD, "show"],
    ] {
        if args[0] == "control" && !has_net() {
            continue;
        }
        shows(dir, args);
    }

    // The manifests of a run and of a sweep, which are not what was written.
    for (folder, field) in
        [("run", "created_by"), ("run", "title"), ("sweep", "created_by"), ("sweep", "title")]
    {
        let place = dir.join(folder).join("manifest.json");
        let text = fs::read_to_string(&place).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest[field] = HOSTILE.into();
        for format in ["format", "giveway_sweep"] {
            if manifest.get(format).is_some() {
                manifest[format] = 1.into();
            }
        }
        fs::write(&place, manifest.to_string()).unwrap();
        shown(dir, &["report", folder]);
        match folder {
            "run" => shown(dir, &["run", "home.toml", "--out", "run"]),
            _ => shown(dir, &["sweep", "home.toml", "--over", "link.0.rate=5mbit,6mbit", "--out", "sweep"]),
        };
        if field == "created_by" {
            shows(dir, &["report", folder]);
        }
        fs::write(&place, text).unwrap();
    }
}

#[test]
fn a_terminal_obeys_nothing_in_an_answer() {
    if !has_net() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers = [format!("ok {{\"state\": \"{HOSTILE}\"}}\n"), format!("error {HOSTILE}\n")];
    let count = answers.len();
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    for _ in 0..count {
        shows(folder.path(), &["control", socket.to_str().unwrap(), "show"]);
    }
    server.join().unwrap();
}
