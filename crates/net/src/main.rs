//! The program `giveway-net`: the commands of Giveway that need privileges, one file for each, and the
//! modules that they share.
//!
//! `giveway live` is `giveway-net live`, and so on: `giveway` becomes this program
//! ([`giveway_program::other`]). Results go to the standard output and everything else goes to the standard
//! error. This crate prints; the crates below it do the work.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod error;
mod kernel;
mod key;
mod live;
mod outcome;
mod outputs;
mod reserve;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use giveway_program::commands::NetCommand;
use giveway_program::output::Output;
use giveway_program::{help, provenance, rates, show, terminal};

use crate::error::NetError;
use crate::outcome::Outcome;

/// Runs disciplines on real interfaces and in the kernel.
#[derive(Parser)]
#[command(name = "giveway", version = giveway_sources::VERSION, max_term_width = help::WIDEST, arg_required_else_help = true)]
struct Net {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Net(NetCommand),
    /// Prints the privilege that a bridge lacks, for `giveway doctor`
    #[command(hide = true)]
    Privileges,
}

fn main() -> ExitCode {
    show::panics();
    run(&provenance::arguments()).into()
}

/// Runs the command in `arguments`, which do not start with the name of the program. Returns the exit code.
fn run(arguments: &[OsString]) -> u8 {
    let expanded = match live::expand(arguments) {
        Ok(expanded) => expanded,
        Err(error) => {
            show::error(&error);
            return Outcome::Wrong.code();
        }
    };
    let arrange = |program| help::with_examples(program, terminal::width().min(help::WIDEST));
    let command = match help::parsed(arrange, expanded, |error| error) {
        Ok(Net { command }) => command,
        Err(code) => return code,
    };
    rates::warn(arguments);
    #[expect(clippy::disallowed_methods, reason = "the only writer of the standard output")]
    let mut out = Output::new(io::stdout().lock());
    let result = run_in(command, &mut out);
    match result.and_then(|outcome| out.flush().map(|()| outcome).map_err(NetError::from)) {
        Ok(outcome) => outcome.code(),
        // The reader closed the pipe, as in `giveway kernel list | head`.
        Err(NetError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Outcome::Done.code(),
        Err(error) => {
            error.show();
            error.outcome().code()
        }
    }
}

/// Runs a command, and writes its results to `out`.
fn run_in(command: Command, out: &mut dyn Write) -> Result<Outcome, NetError> {
    match command {
        Command::Net(NetCommand::Live(args)) => live::live(&args, out),
        Command::Net(NetCommand::Control(args)) => live::control(&args, out),
        Command::Net(NetCommand::Kernel(args)) => kernel::kernel(&args, out),
        Command::Net(NetCommand::Reserve(args)) => reserve::reserve(&args, out),
        Command::Privileges => {
            if let Some(found) = giveway_live::checks::privileges() {
                writeln!(out, "{}: {}", found.what, found.remedy)?;
            }
            Ok(Outcome::Done)
        }
    }
}
