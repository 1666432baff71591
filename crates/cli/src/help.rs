//! The layout of `giveway --help`: commands by task.

use clap::Command;
pub use giveway_program::help::{WIDEST, parsed};
use giveway_program::help::{after, with_examples, wrap};

use crate::terminal;

/// The commands by task, in the order of `giveway --help`. A unit test checks that it has them all.
const TASKS: [(&str, &[&str]); 7] = [
    ("Begin", &["demo", "doctor", "book"]),
    ("Compare disciplines on a capture of your own link", &["compare"]),
    ("Simulate", &["init", "check", "run", "sweep", "evaluate", "plan", "report"]),
    ("Real frames", &["live", "testbed"]),
    ("The kernel of Linux", &["kernel"]),
    ("Papers", &["reproduce"]),
    ("Tools", &["list", "explain", "replay-check", "schema", "completions", "man", "help"]),
];

/// The command line with this layout, for a terminal of the current width.
pub fn arranged(program: Command) -> Command {
    let width = terminal::width().min(WIDEST);
    let tasks = tasks(&program, width);
    let after = after(&program, width);
    let program = program.mut_subcommands(|command| with_examples(command, width));
    let bold = |text: &str| terminal::bold_as_it_is(text);
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{tasks}{}\n{{options}}{after}",
        bold("Options:")
    ))
}

/// The commands by task, each with a summary.
fn tasks(program: &Command, width: usize) -> String {
    let widest = program.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let next = " ".repeat(widest + 4);
    let mut out = String::new();
    for (title, names) in TASKS {
        out.push_str(&format!("{}\n", terminal::bold_as_it_is(&format!("{title}:"))));
        for name in names {
            let command = program.find_subcommand(name);
            let about = match command.and_then(Command::get_about) {
                Some(about) => about.to_string(),
                // clap adds this command later.
                None => "Prints this text, or the help of a command".to_owned(),
            };
            let name = format!("  {name:widest$}");
            // `wrap` removes spaces within the first line's text only, so the name is its beginning.
            out.push_str(&wrap(&about, width, &format!("{name}  "), &next));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program;

    #[test]
    fn each_command_has_one_task() {
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.retain(|name| *name != "help");
        listed.sort_unstable();
        let program = program();
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut known: Vec<&str> = commands.map(Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_short_help_has_ten_flags() {
        fn flags(command: &Command) -> usize {
            let shown = |arg: &&clap::Arg| {
                !arg.is_positional() && !arg.is_hide_set() && !arg.is_hide_short_help_set()
            };
            command.get_arguments().filter(shown).count()
        }
        fn check(command: &Command) {
            assert!(flags(command) <= 10, "{} shows {} flags", command.get_name(), flags(command));
            command.get_subcommands().filter(|command| !command.is_hide_set()).for_each(check);
        }
        let program = arranged(program());
        check(&program);
        // A list whose names are wrong would show fewer.
        for name in ["run", "sweep", "evaluate", "compare", "testbed", "live"] {
            assert_eq!(flags(program.find_subcommand(name).unwrap()), 10, "{name}");
        }
        for (above, name) in [("evaluate", "judge"), ("plan", "capacity"), ("live", "reserve")] {
            let command = program.find_subcommand(above).and_then(|above| above.find_subcommand(name));
            assert_eq!(flags(command.unwrap()), 10, "{name}");
        }
    }

    /// Renders the help of a command and its subcommands, and checks that each line of examples is in it.
    fn examples_are_whole(command: &mut Command, width: usize) -> usize {
        let help = command.clone().term_width(width).render_long_help().to_string();
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
        for line in &examples {
            assert!(help.lines().any(|shown| shown == *line), "{line} is broken in\n{help}");
        }
        let mut count = examples.len();
        for command in command.get_subcommands_mut() {
            count += examples_are_whole(command, width);
        }
        count
    }

    #[test]
    fn examples_are_not_wrapped() {
        for width in [80, 100] {
            let mut program = arranged(program());
            program.build();
            assert!(examples_are_whole(&mut program, width) > 50, "most commands have examples");
        }
    }
}
