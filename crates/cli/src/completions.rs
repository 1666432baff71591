//! `giveway completions`: prints completion scripts for shells.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;

use crate::Outcome;
use crate::error::CliError;

/// Prints a script that completes the command line in a shell.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  giveway completions bash > ~/.local/share/bash-completion/completions/giveway
  giveway completions zsh > ~/.zfunc/_giveway";

/// Runs `giveway completions`. `program` is the definition of the whole command line.
pub fn completions(args: &Args, mut program: Command, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "giveway", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Done)
}
