//! `giveway completions`: for shells.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Giveway, Outcome};

/// Prints completions for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Example: giveway completions bash > ~/.local/share/bash-completion/completions/giveway"
)]
pub struct Args {
    /// Which shell
    shell: Shell,
}

/// Does it.
pub fn completions(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Giveway::command(), "giveway", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Done)
}
