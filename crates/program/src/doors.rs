//! Commands below the command that they belong to, such as `giveway sweep merge`.
//!
//! A list of all commands would be too long to read. Each of these commands also has a name of its own, which
//! no list shows: scripts have used it.

use std::ffi::OsString;

use clap::{Command, CommandFactory, Error, FromArgMatches};

/// A command below another one: the other one, its name there, and the name of its own.
const DOORS: [(&str, &str, &str); 7] = [
    ("sweep", "merge", "merge"),
    ("sweep", "query", "query"),
    ("evaluate", "judge", "judge"),
    ("plan", "bounds", "bound"),
    ("plan", "capacity", "search"),
    ("live", "control", "control"),
    ("live", "reserve", "reserve"),
];

/// Adds each command below the one that it belongs to, and hides the name of its own.
pub fn arranged(mut program: Command) -> Command {
    for (above, name, own) in DOORS {
        let Some(command) = program.find_subcommand(own).cloned() else { continue };
        if program.find_subcommand(above).is_none() {
            program = program.subcommand(plan());
        }
        // A command without flags of its own needs one below it.
        let below = |above: Command| {
            let has_flags = above.get_arguments().next().is_some();
            above
                .subcommand(command.name(name))
                .disable_help_subcommand(true)
                .args_conflicts_with_subcommands(has_flags)
                .subcommand_negates_reqs(has_flags)
        };
        program = program.mut_subcommand(above, below).mut_subcommand(own, |command| command.hide(true));
    }
    program
}

/// The one command that has only commands below it.
fn plan() -> Command {
    Command::new("plan")
        .about("Computes the guarantees of a scenario: delay bounds, and the capacity of a switch")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Parses the words of a command line, which start with the name of the program. `program` is the definition
/// of `P`, [`arranged`].
///
/// # Errors
/// A mistake, or the help that a word asks for.
pub fn parse<P: FromArgMatches + CommandFactory>(
    program: &mut Command,
    words: &[OsString],
) -> Result<P, Error> {
    let matches = program.try_get_matches_from_mut(words)?;
    let below = matches.subcommand().and_then(|(above, inside)| Some((above, inside.subcommand_name()?)));
    let door = DOORS.iter().find(|(above, name, _)| below == Some((*above, *name)));
    match door {
        // `P` has it at the top only.
        Some((_, _, own)) => {
            let top = words.iter().take(1).cloned().chain([OsString::from(own)]);
            let words = top.chain(words.iter().skip(3).cloned());
            P::from_arg_matches(&P::command().try_get_matches_from(words)?)
        }
        None => P::from_arg_matches(&matches),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser, PartialEq)]
    enum Program {
        Sweep { file: String },
        Merge { dir: String },
        Bound { file: String },
    }

    fn parsed(words: &[&str]) -> Result<Program, String> {
        let words: Vec<OsString> = ["giveway"].iter().chain(words).map(OsString::from).collect();
        parse(&mut arranged(Program::command()), &words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_has_its_place_and_a_name_of_its_own() {
        let merge = || Ok(Program::Merge { dir: "a".to_owned() });
        assert_eq!(parsed(&["sweep", "merge", "a"]), merge());
        assert_eq!(parsed(&["merge", "a"]), merge());
        assert_eq!(parsed(&["plan", "bounds", "a"]), Ok(Program::Bound { file: "a".to_owned() }));
        assert_eq!(parsed(&["sweep", "a"]), Ok(Program::Sweep { file: "a".to_owned() }));
        // A mistake and the help name the place.
        let wrong = parsed(&["sweep", "merge"]).unwrap_err();
        assert!(wrong.contains("Usage: giveway sweep merge <DIR>"), "{wrong}");
        let help = parsed(&["--help"]).unwrap_err();
        assert!(!help.contains("merge") && help.contains("plan"), "{help}");
    }
}
