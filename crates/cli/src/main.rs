//! The program `giveway`: one file per command, and what they share.
//!
//! Results go to the standard output, everything else to the standard error, so that `--json` can be piped. What this
//! program knows about scenarios and records is only how to bring them together and how to show them.

mod bound;
mod check;
mod compare;
mod completions;
mod explain;
mod frontend;
mod kernel;
mod list;
mod live;
mod markdown;
mod outputs;
mod parameters;
mod provenance;
mod registries;
mod replay_check;
mod report;
mod reproduce;
mod reserve;
mod run;
mod schema;
mod search;
mod show;
mod stop;
mod terminal;
mod testbed;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use giveway_runner::Outcome;

/// Packet scheduling, from paper to wire: compares queue disciplines.
#[derive(Parser)]
#[command(name = "giveway", version = giveway_sources::VERSION, max_term_width = 100, after_help = AFTER, arg_required_else_help = true)]
struct Giveway {
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or a wrong scenario, 130 interrupted.

Start with:
  giveway run scenarios/quickstart.toml
  giveway run scenarios/switch/short-first.toml
  giveway compare CAPTURE --rate 10mbit
  giveway reproduce efd --quick
  giveway live --in eth0 --out eth1 --rate 20mbit
  giveway reserve --help
  giveway report RUNFOLDER
  giveway list
  giveway explain fifo";

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Search(search::Args),
    Testbed(testbed::Args),
    Compare(compare::Args),
    Reproduce(reproduce::Args),
    // It has the most flags by far.
    Live(Box<live::Args>),
    Control(live::ControlArgs),
    Kernel(kernel::Args),
    Reserve(Box<reserve::Args>),
    Report(report::Args),
    ReplayCheck(replay_check::Args),
    Bound(bound::Args),
    Check(check::Args),
    List(list::Args),
    Explain(explain::Args),
    Schema(schema::Args),
    Completions(completions::Args),
}

/// The exit code of the program.
fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Failed => 1,
        Outcome::Wrong => 2,
        Outcome::Interrupted => 130,
    }
}

fn main() -> ExitCode {
    let command = Giveway::parse().command;
    let mut out = io::stdout().lock();
    let result = match command {
        Command::Run(args) => run::run(&args, &mut out),
        Command::Search(args) => search::search(&args, &mut out),
        Command::Testbed(args) => testbed::testbed(&args, &mut out),
        Command::Compare(args) => compare::compare(&args, &mut out),
        Command::Reproduce(args) => reproduce::reproduce(&args, &mut out),
        Command::Live(args) => live::live(&args, &mut out),
        Command::Control(args) => live::control(&args, &mut out),
        Command::Kernel(args) => kernel::kernel(&args, &mut out),
        Command::Reserve(args) => reserve::reserve(&args, &mut out),
        Command::Report(args) => report::report(&args, &mut out),
        Command::ReplayCheck(args) => replay_check::replay_check(&args, &mut out),
        Command::Bound(args) => bound::bound(&args, &mut out),
        Command::Check(args) => check::check(&args, &mut out),
        Command::List(args) => list::list(&args, &mut out),
        Command::Explain(args) => explain::explain(&args, &mut out),
        Command::Schema(args) => schema::schema(&args, &mut out),
        Command::Completions(args) => completions::completions(&args, &mut out),
    };
    match result.and_then(|outcome| out.flush().map(|()| outcome)) {
        Ok(outcome) => code(outcome).into(),
        // Whoever read the output has seen enough, as in `giveway list | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            show::sentence(&format!("cannot write the output: {error}"));
            code(Outcome::Failed).into()
        }
    }
}
