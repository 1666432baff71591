//! `giveway completions`: prints completion scripts for shells, and answers their questions.
//!
//! A script calls the program with the words before the cursor, and the program prints the candidates. So the
//! script knows the disciplines, papers and interfaces of this moment, and needs no update.

mod values;

use std::ffi::OsString;
use std::io::Write;

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::Outcome;
use crate::error::CliError;

/// Prints a script that completes the command line in a shell: commands, flags, disciplines, papers, keys of
/// scenarios, and network interfaces.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  giveway completions bash > ~/.local/share/bash-completion/completions/giveway
  giveway completions zsh > ~/.zfunc/_giveway    # a folder of fpath, before compinit
  giveway completions fish > ~/.config/fish/completions/giveway.fish";

/// The variable with which a script asks for candidates. Its value is the shell.
const ASKED: &str = "GIVEWAY_COMPLETE";

/// Runs `giveway completions`.
pub fn completions(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&args.shell.to_string()) else {
        return Err(CliError::Usage(format!("{} has no completions", args.shell)));
    };
    shell.write_registration(ASKED, "giveway", "giveway", "giveway", out)?;
    Ok(Outcome::Done)
}

/// If a script asks for candidates, prints them. Returns true if it asked. `program` gives the definition of
/// the whole command line, and `arguments` contains the arguments without the name of the program.
pub fn answer(program: fn() -> Command, arguments: &[OsString]) -> bool {
    let words = std::iter::once(OsString::from("giveway")).chain(arguments.iter().cloned());
    let here = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(move || completing(program())).var(ASKED);
    complete.try_complete(words, here.as_deref()).unwrap_or_else(|error| error.exit())
}

/// Adds the candidates of values to all arguments, by the names of their values.
fn completing(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| with_values(&name, arg));
    command.mut_subcommands(completing)
}

/// Adds the candidates of an argument.
fn with_values(command: &str, arg: Arg) -> Arg {
    type Values = fn() -> Vec<CompletionCandidate>;
    let listed = |arg: Arg, values: Values| arg.add(ArgValueCandidates::new(values));
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (command, arg.get_id().as_str(), names.as_slice()) {
        (_, _, ["IF" | "INTERFACE"]) => listed(arg, values::interfaces),
        ("compare", _, ["SPEC"]) => listed(arg, values::compared),
        (_, _, ["SPEC"]) => listed(arg, values::disciplines),
        ("load" | "build", "discipline", _) => listed(arg, values::for_the_kernel),
        ("reproduce", _, ["PAPER"]) => listed(arg, values::papers),
        ("explain", "name", _) => listed(arg, values::explained),
        ("search" | "capacity", _, ["A", "B"]) => listed(arg, values::arbiters),
        (_, _, ["KEY=VALUE"]) => arg.add(ArgValueCompleter::new(values::keys)),
        _ => arg,
    }
}
