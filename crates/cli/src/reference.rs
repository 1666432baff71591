//! The reference of the command line, written from the definitions of its flags.

use clap::{Arg, ArgAction, Command};

use crate::headings::HARNESS;

/// The options that every command has. They are described once, at the top of the page.
const GENERAL: [&str; 2] = ["help", "version"];

/// Renders the reference of all commands in Markdown: usage, description, arguments with their defaults, and
/// examples.
pub fn page(program: Command) -> String {
    // Fills in usages and the names of subcommands.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut out = String::from(
        "# Command line\n\nEvery command has `--help`, which prints its section of this page, and `-h`, a shorter form.\n\n\
         | command | what it does |\n| --- | --- |\n",
    );
    let shown = || program.get_subcommands().filter(|command| !command.is_hide_set());
    for command in shown() {
        let name = command.get_name();
        out.push_str(&format!("| [`giveway {name}`](#giveway-{name}) | {} |\n", about(command)));
    }
    out.push_str(&examples(&program));
    for command in shown() {
        out.push_str(&section(command, 2));
    }
    out
}

/// One command and its subcommands. `level` is the depth of its heading.
fn section(command: &Command, level: usize) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let mut out = format!("\n{} {name}\n\n", "#".repeat(level));
    // After `build`, the usage has the full name of the command.
    let usage = command.clone().render_usage().to_string();
    out.push_str(&format!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage:").trim()));
    let long = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    out.push_str(&format!("{}\n", full_stop(&long)));
    let mut headings: Vec<Option<&str>> = Vec::new();
    let arguments: Vec<&Arg> =
        command.get_arguments().filter(|arg| !GENERAL.contains(&arg.get_id().as_str())).collect();
    for arg in &arguments {
        let heading = arg.get_help_heading();
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // Flags for test programs come last.
    headings.sort_by_key(|heading| *heading == Some(HARNESS));
    for heading in headings {
        let (positional, options): (Vec<&Arg>, Vec<&Arg>) = arguments
            .iter()
            .filter(|arg| arg.get_help_heading() == heading)
            .partition(|arg| arg.is_positional());
        for (title, group) in [("Arguments", positional), (heading.unwrap_or("Options"), options)] {
            if !group.is_empty() {
                out.push_str(&format!("\n**{title}**\n\n"));
                out.push_str("| name | meaning | default |\n| --- | --- | --- |\n");
                out.extend(group.into_iter().map(row));
            }
        }
    }
    for command in command.get_subcommands() {
        out.push_str(&section(command, level + 1));
    }
    out.push_str(&examples(command));
    out
}

/// The table row of an argument: its name with its value, its meaning, and its default.
fn row(arg: &Arg) -> String {
    let value = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!("{name}")).collect::<Vec<_>>().join(" ")
    };
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let name = match (long.or(short.clone()), takes) {
        (Some(flag), true) => format!("{flag} {}", value()),
        (Some(flag), false) => flag,
        (None, _) => value(),
    };
    let short = match short.filter(|_| arg.get_long().is_some()) {
        Some(short) => format!(", `{short}`"),
        None => String::new(),
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    // clap has no place for a default that is not a constant, so it is at the end of the help.
    let (mut help, described) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (help, String::new()),
    };
    let choices = arg.get_possible_values();
    let choices: Vec<String> = choices
        .iter()
        .filter(|choice| takes && !choice.is_hide_set())
        .map(|choice| match choice.get_help() {
            Some(help) => format!("`{}` ({help})", choice.get_name()),
            None => format!("`{}`", choice.get_name()),
        })
        .collect();
    if !choices.is_empty() {
        help.push_str(&format!(": {}", choices.join(", ")));
    }
    let defaults = arg.get_default_values();
    let default = match defaults.first() {
        Some(default) if takes => format!("`{}`", default.to_string_lossy()),
        _ if arg.is_required_set() => "required".to_owned(),
        _ => described,
    };
    format!("| `{}`{short} | {} | {} |\n", cell(&name), cell(&help), cell(&default))
}

/// The first paragraph of a command's description.
fn about(command: &Command) -> String {
    cell(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

/// The examples and exit codes of a command: text whose indented lines are commands.
fn examples(command: &Command) -> String {
    let Some(text) = command.get_after_help() else { return String::new() };
    let mut out = String::new();
    let mut code = false;
    for line in text.to_string().lines() {
        let indented = line.strip_prefix("  ");
        if indented.is_some() != code {
            out.push_str(if code { "```\n" } else { "\n```sh\n" });
            code = !code;
        }
        out.push_str(indented.unwrap_or(line));
        out.push('\n');
    }
    if code {
        out.push_str("```\n");
    }
    format!("\n{out}")
}

/// Adds the full stop at the end of the first paragraph, which clap removes.
fn full_stop(text: &str) -> String {
    match text.split_once("\n\n") {
        None => format!("{}.", text.trim_end_matches('.')),
        Some((first, rest)) => format!("{}.\n\n{rest}", first.trim_end_matches('.')),
    }
}

/// Formats a text as a cell of a Markdown table: one line, with escaped bars.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_usage_options_defaults_and_examples() {
        let rate =
            Arg::new("rate").long("rate").value_name("RATE").help("Rate of the link [default: a guess]");
        let jobs = Arg::new("jobs").long("jobs").short('j').value_name("N").default_value("2").help("Runs");
        let ready = Arg::new("ready").long("ready").value_name("FILE").hide(true).help_heading(HARNESS);
        let run = Command::new("run")
            .about("Runs it")
            .args([rate, jobs, ready])
            .after_help("Examples:\n  x run\n\nEnd.");
        let page = page(Command::new("x").subcommand(run));
        let (_, section) = page.split_once("\n## x run\n").expect("the command has a section");
        for line in [
            "Runs it.",
            "| `--rate RATE` | Rate of the link | a guess |",
            "| `--jobs N`, `-j` | Runs | `2` |",
            "**For test programs**",
            "```sh\nx run\n```",
        ] {
            assert!(section.contains(line), "{line} is missing in\n{section}");
        }
    }
}
