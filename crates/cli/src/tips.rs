//! Tips for flags that a command does not have, because the scenario has the setting, and for mistyped
//! commands. Without them, clap advises to pass the flag as a value, and finds no command for `rnu`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use giveway_qdisc::units::nearest;

/// Commands with a scenario and `--set`.
const COMMANDS: [&str; 3] = ["run", "sweep", "testbed"];

/// Flags, and how to write each setting of a scenario.
const SETTINGS: [(&str, &str); 5] = [
    ("--qdisc", "--set 'disciplines=[\"fq_codel\", \"efd\"]'"),
    ("--rate", "--set link.0.rate=10mbit"),
    ("--delay", "--set link.0.delay=20ms"),
    ("--duration", "--set duration=30s"),
    ("--seed", "--seeds 5, which runs the seeds 1 to 5"),
];

/// Adds a tip to the error of the parser, if there is a better one for the command. `program` gives the
/// definition of the whole command line.
pub fn with_tip(mut error: Error, command: Option<&str>, program: fn() -> Command) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let program = program();
        let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
        let near = command.and_then(|wrong| nearest(wrong, shown.map(Command::get_name)));
        if let Some(near) = near {
            let near = ContextValue::Strings(vec![near.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
        return error;
    }
    if error.kind() != ErrorKind::UnknownArgument || !command.is_some_and(|name| COMMANDS.contains(&name)) {
        return error;
    }
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => SETTINGS.iter().find(|(name, _)| name == flag),
        _ => None,
    };
    if let Some((_, instead)) = tip {
        let tip = format!("the scenario has this setting: write {instead}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{Giveway, program};

    #[test]
    fn a_mistyped_command_gets_a_suggestion() {
        let message = |word: &str| {
            let error = Giveway::command().try_get_matches_from(["giveway", word]).unwrap_err();
            with_tip(error, Some(word), program).to_string()
        };
        assert!(message("rnu").contains("'run'"), "{}", message("rnu"));
        assert!(message("comprae").contains("'compare'"), "{}", message("comprae"));
        assert!(!message("zzz").contains("tip:"), "{}", message("zzz"));
    }

    #[test]
    fn a_setting_of_the_scenario_is_explained() {
        let message = |words: &[&str]| {
            let error = Giveway::command().try_get_matches_from(words).unwrap_err();
            with_tip(error, words.get(1).copied(), program).to_string()
        };
        for (flag, instead) in SETTINGS {
            let text = message(&["giveway", "run", "a.toml", flag, "x"]);
            assert!(text.contains("tip: the scenario has this setting") && text.contains(instead), "{text}");
            assert!(!text.contains("as a value"), "{text}");
        }
        let other = message(&["giveway", "run", "a.toml", "--colour"]);
        assert!(!other.contains("the scenario has this setting"), "{other}");
    }
}
