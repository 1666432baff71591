//! The command line: its parser, and the layout of `--help`, with examples that can be copied.
//!
//! clap wraps the text after the flags at the width of the terminal, and so breaks long commands. So this
//! text is put into the template of each command, which is not wrapped.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Command, CommandFactory, Error, FromArgMatches};
use giveway_text::harmless;

use crate::{doors, show};

/// The widest help, in columns.
pub const WIDEST: usize = 100;

/// The flags that `-h` shows, of the commands that have more than ten. `--help` shows all.
const SHORT: [(&str, [&str; 10]); 9] = [
    ("run", ["out", "seeds", "set", "short", "plot", "export", "jobs", "json", "trace_slots", "verbose"]),
    ("sweep", ["over", "design", "seeds", "until", "out", "reuse", "shard", "jobs", "dry_run", "short"]),
    (
        "evaluate",
        ["against", "cells", "list_cells", "seeds", "short", "tune", "testbed", "out", "jobs", "json"],
    ),
    ("judge", ["against", "secret", "seeds", "fuel", "memory", "out", "reuse", "list_cells", "jobs", "json"]),
    (
        "capacity",
        ["capacity", "crossover", "metric", "between", "width", "seeds", "set", "jobs", "json", "short"],
    ),
    (
        "compare",
        ["rate", "rate_up", "rate_down", "qdisc", "live", "length", "out", "target", "wan", "overhead"],
    ),
    (
        "testbed",
        ["out", "seeds", "set", "short", "against_simulation", "pcap", "trace", "force", "json", "quiet"],
    ),
    (
        "live",
        [
            "inside",
            "outside",
            "wan",
            "rate",
            "rate_reverse",
            "qdisc",
            "qdisc_reverse",
            "delay",
            "settings",
            "record",
        ],
    ),
    ("reserve", ["via", "from", "to", "proto", "rate", "span", "start", "key_file", "once", "end"]),
];

/// The command whose `-h` shows the flags of [`SHORT`].
fn shortened(command: Command) -> Command {
    let Some((_, shown)) = SHORT.iter().find(|(name, _)| *name == command.get_name()) else { return command };
    command.mut_args(|arg| {
        let hidden = !arg.is_positional() && !shown.contains(&arg.get_id().as_str());
        if hidden { arg.hide_short_help(true) } else { arg }
    })
}

/// A command and its subcommands, with the examples in the template.
pub fn with_examples(command: Command, width: usize) -> Command {
    let command = shortened(command);
    let after = after(&command, width);
    // clap's own template for a command with arguments, which each has: --help.
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}{after}");
    command.help_template(template).mut_subcommands(|command| with_examples(command, width))
}

/// The text after the flags. Indented lines are commands and stay as they are; others are wrapped.
pub fn after(command: &Command, width: usize) -> String {
    let Some(text) = command.get_after_help() else { return String::new() };
    let mut out = String::from("\n\n");
    for line in text.to_string().lines() {
        match line.starts_with("  ") {
            true => out.push_str(&format!("{line}\n")),
            false => out.push_str(&wrap(line, width, "", "")),
        }
    }
    out.trim_end().to_owned()
}

/// Breaks a text into lines of at most `width` columns. The first line starts with `first`, the others
/// with `next`.
pub fn wrap(text: &str, width: usize, first: &str, next: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = next.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

/// Parses the words of a command line, which do not start with the name of the program. An error, or the help
/// that a word requests, is shown: `arrange` lays out the help, and `improve` may add to an error.
///
/// # Errors
/// The exit code of the process.
pub fn parsed<P: FromArgMatches + CommandFactory>(
    arrange: impl FnOnce(Command) -> Command,
    words: Vec<OsString>,
    improve: impl FnOnce(Error) -> Error,
) -> Result<P, u8> {
    let mut program = doors::arranged(P::command());
    // A layout of all commands takes longer than the check of a scenario.
    if words.is_empty() || words.iter().any(may_ask_for_help) {
        program = arrange(program);
    }
    // An error of clap repeats them.
    let is_hostile = words.iter().any(|word| matches!(harmless(&word.to_string_lossy()), Cow::Owned(_)));
    let words: Vec<_> = std::iter::once(OsString::from(program.get_name())).chain(words).collect();
    doors::parse(&mut program, &words).map_err(|error| {
        let error = improve(error).format(&mut program);
        match is_hostile {
            true => show::text(&error.render().to_string()),
            // It has colours. A terminal that is gone shows nothing.
            false => drop(error.print()),
        }
        u8::try_from(error.exit_code()).unwrap_or(1)
    })
}

/// True for `help`, `--help`, `-h`, and short flags with an h among them.
fn may_ask_for_help(word: &OsString) -> bool {
    let word = word.to_string_lossy();
    word == "help"
        || word == "--help"
        || (word.starts_with('-') && !word.starts_with("--") && word.contains('h'))
}
