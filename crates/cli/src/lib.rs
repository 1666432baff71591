//! The program `giveway`: one file for each command, and the modules that they share.
//!
//! Results go to the standard output and everything else goes to the standard error, so that the output of
//! `--json` can be piped. This crate has flags and printing; the crates below it do the work.
//!
//! The crate is a library so that `cargo xtask docs` can write the book's page of the command line
//! ([`reference()`]) from the definitions of the flags.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod book;
mod bound;
mod check;
mod compare;
mod completions;
mod demo;
mod doctor;
mod error;
mod evaluate;
mod explain;
mod frontend;
mod help;
mod init;
mod judge;
mod list;
mod man;
mod markdown;
mod open;
mod outputs;
mod parameters;
mod progress;
mod query;
mod reference;
mod registries;
mod replay_check;
mod report;
mod reproduce;
mod run;
mod scenario_args;
mod schema;
mod search;
mod show;
mod stop;
mod sweep;
mod testbed;
mod tips;
mod trace;
mod write_recording;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use giveway_program::commands::{NAMES, NetCommand};
use giveway_program::output::Output;
use giveway_program::{doors, headings, other, provenance, rates, terminal};
use giveway_qdisc::Bytes;
use giveway_runner::{Outcome, RunnerError};
use giveway_scenario::Scenario;
use giveway_text::harmless;

use crate::error::CliError;

/// Packet scheduling, from paper to wire: simulates, measures and runs queue disciplines.
#[derive(Parser)]
#[command(name = "giveway", version = giveway_sources::VERSION, max_term_width = help::WIDEST, after_help = AFTER, arg_required_else_help = true)]
struct Giveway {
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
Examples:
  giveway demo                                     # what it does, in a minute
  giveway init home.toml                           # a scenario to begin with
  giveway run scenarios/quickstart.toml            # simulate a scenario with several disciplines
  giveway compare CAPTURE --rate 10mbit            # find the discipline that helps your own link
  giveway live --in eth0 --out eth1 --rate 20mbit  # shape a real link
  giveway reproduce efd --quick                    # check the claims of a paper
  giveway list                                     # all disciplines and sources of traffic
  giveway explain fq_codel                         # one of them
  giveway run --help                               # flags, defaults and examples of a command

Exit codes: 0 success, 1 a run failed, 2 wrong usage or an invalid scenario, 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Doctor(doctor::Args),
    Book(book::Args),
    Init(init::Args),
    Run(run::Args),
    Sweep(sweep::Args),
    Merge(sweep::MergeArgs),
    Query(query::Args),
    Evaluate(evaluate::Args),
    Judge(judge::Args),
    Search(search::Args),
    Testbed(testbed::Args),
    Compare(Box<compare::Args>),
    Reproduce(reproduce::Args),
    #[command(flatten)]
    Net(NetCommand),
    Report(report::Args),
    ReplayCheck(replay_check::Args),
    Bound(bound::Args),
    Check(check::Args),
    List(list::Args),
    Explain(explain::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    WriteRecording(write_recording::Args),
}

/// The definition of the whole command line.
fn program() -> clap::Command {
    doors::arranged(Giveway::command())
}

/// The exit code of an outcome.
fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Failed => 1,
        Outcome::Wrong => 2,
        Outcome::Interrupted => 130,
    }
}

/// The reference page of all commands, in Markdown.
pub fn reference() -> String {
    reference::page(program())
}

/// Runs the command in the arguments of this process. Returns its exit code.
pub fn main() -> ExitCode {
    run_command(&provenance::arguments()).into()
}

/// Runs the command in `arguments`, which do not start with the name of the program, as the only command of
/// this process. `program` is the file that starts `giveway` in a child process. Returns the exit code. For a
/// process whose own arguments belong to an interpreter.
pub fn main_of(arguments: Vec<OsString>, program: PathBuf) -> u8 {
    provenance::begin(arguments.clone(), program);
    run_command(&arguments)
}

/// The output of the command in `arguments`, which do not start with the name of the program. For commands
/// that answer a question: `bound`, `check`, `list`, `explain`, `schema`, `replay-check`.
///
/// # Errors
/// The message of a command that fails or is wrong, with the output until then.
pub fn answer(arguments: &[OsString]) -> Result<String, String> {
    let mut program = help::arranged(program());
    let words: Vec<_> = std::iter::once(OsString::from("giveway")).chain(arguments.iter().cloned()).collect();
    let parsed: Result<Giveway, clap::Error> = doors::parse(&mut program, &words);
    let wrong = |error: clap::Error| harmless(&error.format(&mut program).render().to_string()).into_owned();
    let command = parsed.map_err(wrong)?.command;
    let mut out = Output::new(Vec::new());
    let (outcome, messages) = show::captured(|| run_in(command, &mut out));
    let text = String::from_utf8_lossy(&out.into_inner()).into_owned();
    match outcome {
        Ok(Outcome::Done) => Ok(text),
        Ok(_) | Err(CliError::Reported(_)) => Err(text + &messages),
        Err(error) => Err(error.text()),
    }
}

/// The delay bounds of a scenario as JSON, as `giveway plan bounds --json` prints them. `burst` is the
/// largest burst of each flow; `None` for one packet.
///
/// # Errors
/// The reason for which the scenario has no bounds.
pub fn bounds(scenario: &Scenario, burst: Option<Bytes>) -> Result<String, String> {
    let links = bound::links(scenario, burst).map_err(|error| error.text())?;
    Ok(bound::to_json(scenario, &links).to_string())
}

/// Runs the command in `arguments`, with the standard output of this process. Returns the exit code.
fn run_command(arguments: &[OsString]) -> u8 {
    show::panics();
    if completions::answer(program, arguments) {
        return exit_code(Outcome::Done);
    }
    let name = arguments.first().and_then(|word| word.to_str());
    if name.is_some_and(|name| NAMES.contains(&name)) {
        // The help of a command is here, too.
        let asks = |word: &OsString| word == "--help" || word == "-h";
        let error = other::become_net(arguments);
        if !arguments.iter().any(asks) {
            show::error(&error);
            return exit_code(Outcome::Wrong);
        }
    }
    let parsed =
        help::parsed(help::arranged, arguments.to_vec(), |error| tips::with_tip(error, name, program));
    let command = match parsed {
        Ok(Giveway { command }) => command,
        Err(code) => return code,
    };
    rates::warn(arguments);
    #[expect(clippy::disallowed_methods, reason = "the only writer of the standard output")]
    let mut out = Output::new(io::stdout().lock());
    let result = run_in(command, &mut out);
    let flushed = result.and_then(|outcome| out.flush().map(|()| outcome).map_err(CliError::from));
    match flushed {
        Ok(outcome) => exit_code(outcome),
        // The reader closed the pipe, as in `giveway list | head`.
        Err(CliError::Output(error) | CliError::Runner(RunnerError::Output(error)))
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            exit_code(Outcome::Done)
        }
        Err(error) => {
            error.show();
            exit_code(error.outcome())
        }
    }
}

/// Runs a command, and writes its results to `out`.
fn run_in(command: Command, out: &mut dyn Write) -> Result<Outcome, CliError> {
    match command {
        Command::Demo(args) => demo::demo(&args, out),
        Command::Doctor(args) => doctor::doctor(&args, out),
        Command::Book(args) => book::book(&args, out),
        Command::Init(args) => init::init(&args, out),
        Command::Run(args) => run::run(&args, out),
        Command::Sweep(args) => sweep::sweep(&args, out),
        Command::Merge(args) => sweep::merge(&args, out),
        Command::Query(args) => query::query(&args),
        Command::Evaluate(args) => evaluate::evaluate(&args, out),
        Command::Judge(args) => judge::judge(&args, out),
        Command::Search(args) => search::search(&args, out),
        Command::Testbed(args) => testbed::testbed(&args, out),
        Command::Compare(args) => compare::compare(&args, out),
        Command::Reproduce(args) => reproduce::reproduce(&args, out),
        Command::Net(_) => Err(CliError::Usage("this command needs a process of its own".to_owned())),
        Command::Report(args) => report::report(&args, out),
        Command::ReplayCheck(args) => replay_check::replay_check(&args, out),
        Command::Bound(args) => bound::bound(&args, out),
        Command::Check(args) => check::check(&args, out),
        Command::List(args) => list::list(&args, out),
        Command::Explain(args) => explain::explain(&args, out),
        Command::Schema(args) => schema::schema(&args, out),
        Command::Completions(args) => completions::completions(&args, out),
        Command::WriteRecording(args) => write_recording::write_recording(&args),
        Command::Man(args) => man::man(&args, program(), out),
    }
}
