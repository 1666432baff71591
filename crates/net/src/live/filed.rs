//! Flags of `giveway live` in its settings file, so that one file describes a bridge. Flags of the command
//! line take precedence.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{ArgAction, Args as _, Command, error::ErrorKind};
use giveway_control::ControlError;
use giveway_control::config::NAMES;
use giveway_control::settings::{self, Setting, SettingsFile};
use giveway_qdisc::units;

use giveway_program::commands::live::Args;

/// Flags that concern one start of the program, and not the bridge.
const OF_A_START: [&str; 3] = ["settings", "take-over", "background"];

/// The arguments of the program, with the flags of the settings file before the flags of the command line.
///
/// # Errors
/// If the file cannot be read, or has an unknown name or an invalid value.
pub fn expand(arguments: &[OsString]) -> Result<Vec<OsString>, ControlError> {
    let mut expanded = arguments.to_vec();
    let path = match arguments {
        [command, rest @ ..] if command == "live" => settings_file(rest).map(Path::new),
        _ => None,
    };
    // A pipe cannot be read twice. A file that is missing is an error here: without its flags, the next one
    // would be about --in.
    let is_pipe = |path: &Path| path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir());
    let Some(path) = path.filter(|path| !is_pipe(path)) else { return Ok(expanded) };
    let (_, filed) = SettingsFile::open(path)?;
    let words = words(&settings::split(&filed).1).and_then(|words| check(&words).map(|()| words));
    let words =
        words.map_err(|message| ControlError::File { path: path.to_owned(), cause: message.into() })?;
    // Behind the command, so that the flags of the command line come later and count.
    expanded.splice(1..1, words.into_iter().map(OsString::from));
    Ok(expanded)
}

/// The settings that were given as flags, by name.
pub fn of_flags(args: &Args) -> Vec<Setting> {
    let values = [
        &args.rate,
        &args.rate_reverse,
        &args.qdisc,
        &args.qdisc_reverse,
        &args.delay,
        &args.delay_reverse,
        &args.jitter,
        &args.jitter_reverse,
        &args.loss,
        &args.loss_reverse,
        &args.reorder,
        &args.reorder_reverse,
        &args.duplicate,
        &args.duplicate_reverse,
        &args.corrupt,
        &args.corrupt_reverse,
        &args.unordered,
        &args.unordered_reverse,
        &args.fragment,
        &args.fragment_reverse,
        &args.reassemble,
        &args.reassemble_reverse,
    ];
    let given =
        NAMES.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    given.collect()
}

/// The value of the last `--settings`.
fn settings_file(arguments: &[OsString]) -> Option<&OsStr> {
    let mut found = None;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word == "--settings" {
            found = rest.next().map(OsString::as_os_str);
        } else if let Some(value) = word.to_str().and_then(|word| word.strip_prefix("--settings=")) {
            found = Some(OsStr::new(value));
        }
    }
    found
}

/// The flags of `giveway live` and their values, as words of a command line.
fn words(flags: &[Setting]) -> Result<Vec<String>, String> {
    let known = Args::augment_args(Command::new("live"));
    let all = || known.get_arguments().filter(|flag| !flag.is_hide_set());
    let mut words = Vec::new();
    for (name, value) in flags {
        let found = all().find(|flag| flag.get_long() == Some(name));
        let Some(flag) = found.filter(|_| !OF_A_START.contains(&name.as_str())) else {
            let names = all().filter_map(clap::Arg::get_long).chain(NAMES);
            let names: Vec<&str> = names.filter(|name| !OF_A_START.contains(name)).collect();
            let near = units::nearest(name, names).map(|near| format!("; did you mean {near}?"));
            let near =
                near.unwrap_or("; giveway live --help lists the flags, which are the names here".to_owned());
            return Err(format!("unknown name \"{name}\"{near}"));
        };
        match (flag.get_action(), value.as_str()) {
            (ArgAction::SetTrue, "yes") => words.push(format!("--{name}")),
            (ArgAction::SetTrue, "no") => {}
            (ArgAction::SetTrue, _) => return Err(format!("{name}: write true or false")),
            _ => words.push(format!("--{name}={value}")),
        }
    }
    Ok(words)
}

/// Checks the values. Flags that are required may be in the command line.
fn check(words: &[String]) -> Result<(), String> {
    let command = Args::augment_args(Command::new("live")).mut_args(|flag| flag.required(false));
    let parsed =
        command.try_get_matches_from(std::iter::once("live").chain(words.iter().map(String::as_str)));
    match parsed {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(first.strip_prefix("error: ").unwrap_or(first).to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str, arguments: &[&str]) -> Result<Vec<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live.toml");
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let words = arguments.iter().map(|word| OsString::from(word.replace("FILE", file)));
        let words = expand(&words.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        Ok(words.into_iter().map(|word| word.into_string().unwrap().replace(file, "FILE")).collect())
    }

    #[test]
    fn flags_of_the_file_come_before_those_of_the_command_line() {
        let text = "in = \"eth0\"\nrate = \"5mbit\"\nring = 8192\nfix-offloads = true\nquiet = false\n";
        assert_eq!(
            expanded(text, &["live", "--settings", "FILE", "--in", "eth2"]).unwrap(),
            ["live", "--fix-offloads", "--in=eth0", "--ring=8192", "--settings", "FILE", "--in", "eth2"],
            "the rate is a setting, which is read from the file again at SIGHUP"
        );
        assert_eq!(expanded(text, &["live", "--settings=FILE"]).unwrap().len(), 5);
        assert_eq!(expanded(text, &["run", "--settings", "FILE"]).unwrap(), ["run", "--settings", "FILE"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = |path: &std::path::Path| {
            let words = ["live", "--settings", path.to_str().unwrap()].map(OsString::from);
            giveway_text::chain(&expand(&words).unwrap_err())
        };
        let missing = error(&dir.path().join("nosuch.toml"));
        assert!(missing.contains("nosuch.toml") && missing.contains("No such file"), "{missing}");
        assert!(error(dir.path()).contains("it is a folder"), "{}", error(dir.path()));
    }

    #[test]
    fn mistakes_are_named_with_the_file() {
        let mistake = |text: &str| {
            let error = expanded(text, &["live", "--settings", "FILE"]).unwrap_err();
            error.split_once("live.toml: ").expect("it names the file").1.to_owned()
        };
        assert_eq!(mistake("ratee = \"5mbit\""), "unknown name \"ratee\"; did you mean rate?");
        assert_eq!(mistake("fix-offload = true"), "unknown name \"fix-offload\"; did you mean fix-offloads?");
        assert!(mistake("settings = \"a\"").starts_with("unknown name \"settings\""));
        assert_eq!(mistake("fix-offloads = \"eth0\""), "fix-offloads: write true or false");
        assert!(mistake("ring = 3").contains("'3'"), "{}", mistake("ring = 3"));
        assert!(mistake("rate = 5").contains("write it in quotation marks"));
    }
}
