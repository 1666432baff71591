//! `giveway completions`: completions of the command line, for shells.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::CliError;
use crate::{Giveway, Outcome};

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

/// Runs `giveway completions`.
pub fn completions(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Giveway::command(), "giveway", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Done)
}
