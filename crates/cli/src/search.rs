//! `giveway plan capacity`: finds the load at which a switch becomes unstable, or at which two arbiters are
//! equal.

use std::io::Write;
use std::path::PathBuf;

use clap::{ArgGroup, value_parser};
use giveway_record::chain;
use giveway_runner::search::{Found, Question, Search, SearchError};
use giveway_runner::{Outcome, scenario_name};
use giveway_trials::processors;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::scenario_args::{self, ScenarioArgs};
use crate::{show, stop};

/// Finds the capacity of a switch, or the load at which two arbiters are equal, by bisection.
///
/// --capacity finds, for each arbiter, the largest load at which its queues do not grow. Each load is run
/// with each seed of the scenario, and counts as stable if most of these runs are stable. Undecided runs are
/// repeated with twice the slots, up to four times. Runs that are still undecided count as unstable, and are
/// listed.
///
/// --crossover A B finds the load at which two arbiters are equal in a metric: means over the seeds, with the
/// same arrivals. Choose an interval whose upper end both arbiters sustain, or nearly: at higher loads, times
/// depend on the length of the run.
///
/// Ports, traffic, slots and seeds come from the scenario. Its load is ignored.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("question").args(["capacity", "crossover"])))]
pub struct Args {
    /// Scenario file with a switch, whose traffic has a load (onoff or bernoulli)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Find the largest stable load of each arbiter of the scenario; this is what the command does without
    /// --crossover
    #[arg(long)]
    capacity: bool,
    /// Find the load at which the curves of two arbiters cross; they need not be in the scenario
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    crossover: Option<Vec<String>>,
    /// Metric of a crossover, a name in the output of `giveway run --json`
    #[arg(long, value_name = "NAME", default_value = "wait_mean_slots")]
    metric: String,
    /// Interval of loads to search; 1 is the rate of a port
    #[arg(long, value_name = "LOW:HIGH", default_value = "0.5:1.0", value_parser = between)]
    between: (f64, f64),
    /// Width of the final interval
    #[arg(long, value_name = "LOAD", default_value_t = 0.002, value_parser = width)]
    width: f64,
    /// Run with seeds 1 to N [default: the seeds of the scenario]
    #[arg(long, value_name = "N", value_parser = scenario_args::seeds)]
    seeds: Option<u32>,
    /// Trials at a time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Print no progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// Run a quick check, with the settings in [short] of the scenario [default: at most 50,000 slots and one
    /// seed]
    #[arg(long, alias = "quick")]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway plan capacity scenarios/switch/short-first.toml --between 0.8:1.0
  giveway plan capacity scenarios/switch/short-first.toml --crossover p_spf islip --metric wait_mean_slots
  giveway plan capacity scenarios/switch/classics.toml --json | jq '.results[].stable'

Exit codes: 0 success, 1 a run failed, 2 wrong usage or an invalid scenario, 130 interrupted.";

fn between(text: &str) -> Result<(f64, f64), String> {
    let ends = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match ends {
        Some((low, high)) if 0.0 < low && low < high && high < f64::INFINITY => Ok((low, high)),
        _ => Err("write two loads above 0, the smaller first, such as 0.8:1.0".to_owned()),
    }
}

fn width(text: &str) -> Result<f64, String> {
    /// Smallest width. The random variation of every run is larger than a narrower interval.
    const MIN: f64 = 1e-6;
    let width = text.parse().ok().filter(|width| (MIN..1.0).contains(width));
    width.ok_or_else(|| "write a number from 0.000001 to 1, such as 0.002".to_owned())
}

/// Runs `giveway plan capacity`.
pub fn search(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let scenario = args.scenario.read_as(&args.file, args.short, args.seeds)?;
    if !args.quiet {
        args.scenario.warn(&scenario);
    }
    let name = scenario_name(&args.file);
    let frontend = Terminal { quiet: args.quiet };
    let pair = args.crossover.as_ref().and_then(|pair| <&[String; 2]>::try_from(pair.as_slice()).ok());
    let jobs = args.jobs.map_or_else(processors, usize::from);
    let question = pair.map_or(Question::Capacity, |pair| Question::Crossover { pair, metric: &args.metric });
    let search = Search::new(&name, &scenario, question, args.between, args.width, (jobs, &frontend))?;
    stop::listen();
    let found = search.find();
    drop(search);
    match found {
        Ok(Found { table, mut json }) => {
            if args.json {
                json["scenario"] = name.into();
                json["seeds"] = scenario.seeds.into();
                writeln!(out, "{json}")?;
            } else {
                write!(out, "{table}")?;
            }
            Ok(Outcome::Done)
        }
        Err(SearchError::Interrupted) => Ok(Outcome::Interrupted),
        Err(error) => {
            show::message(&chain(&error));
            Ok(Outcome::Failed)
        }
    }
}
