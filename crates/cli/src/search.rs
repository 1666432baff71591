//! `giveway search`: the load at which something changes on a switch, by bisection. Every question is asked by runs.

mod capacity;
mod crossover;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use clap::{ArgGroup, value_parser};
use qdisc::units::nearest;
use scenario::{Cell, Crossbar, Host, Scenario};
use switch::traffic::TrafficSpec;
use switch::{Outcome as Ran, Sim, Spec};

use crate::progress::Progress;
use crate::{Outcome, check, run, show, stop};

/// Finds the load at which something changes on a switch, by halving an interval.
///
/// --capacity: for each scheduler, the largest load at which its queues do not grow. A question is a run with each seed
/// of the scenario, and most of them must be stable. Where runs cannot tell, those that cannot are done again with double
/// the slots, up to four times; what is undecided then counts as not stable, and is told.
///
/// --crossover A B: the load at which two schedulers are equal in a metric: means over the seeds, on the same arrivals.
/// Choose an interval whose upper end both carry, or nearly: beyond that, times depend on the length of the run.
///
/// The scenario says the rest: ports, traffic, slots, seeds. Its load does not matter.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("question").args(["capacity", "crossover"]).required(true)))]
pub struct Args {
    /// A scenario on a switch whose traffic has a load
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The largest stable load of each scheduler of the scenario
    #[arg(long)]
    capacity: bool,
    /// The load at which the curves of two schedulers cross; they need not be in the scenario
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    crossover: Option<Vec<String>>,
    /// What is compared at a crossover, a name from `giveway run --json`
    #[arg(long, value_name = "NAME", default_value = "wait_mean_slots")]
    metric: String,
    /// Loads between which it is searched
    #[arg(long, value_name = "LOW:HIGH", default_value = "0.5:1.0", value_parser = between)]
    between: (f64, f64),
    /// How closely it is found
    #[arg(long, value_name = "LOAD", default_value_t = 0.002, value_parser = width)]
    width: f64,
    /// Run with seeds 1 to N
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(Scenario::MOST_SEEDS)))]
    seeds: Option<u32>,
    /// How many runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Change something, as in switch.ports=32; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// No progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// A quick look: as [short] in the scenario says, otherwise at most 50,000 slots and one seed
    #[arg(long)]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway search scenarios/switch/short-first.toml --capacity --between 0.8:1.0
  giveway search scenarios/switch/short-first.toml --crossover p_spf islip --metric wait_mean_slots
  giveway search scenarios/switch/classics.toml --capacity --json | jq '.results[].stable'

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or a wrong scenario, 130 interrupted.";

fn between(text: &str) -> Result<(f64, f64), String> {
    let ends = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match ends {
        Some((low, high)) if 0.0 < low && low < high && high < f64::INFINITY => Ok((low, high)),
        _ => Err("write two loads above 0, the smaller first, such as 0.8:1.0".to_owned()),
    }
}

fn width(text: &str) -> Result<f64, String> {
    /// Below this the noise of any run is larger.
    const LEAST: f64 = 1e-6;
    let right = text.parse().ok().filter(|width| (LEAST..1.0).contains(width));
    right.ok_or_else(|| "write a part of a load, such as 0.002".to_owned())
}

/// Why there is no result.
enum Stop {
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// What a run could not do.
    Failed(String),
}

/// What is searched, and where.
struct Search {
    /// The switch, with the schedulers that are asked about.
    crossbar: Crossbar,
    seeds: Vec<u64>,
    /// The first interval.
    between: (f64, f64),
    /// That of the last.
    width: f64,
    progress: Progress,
}

/// Does it.
pub fn search(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let Some(scenario) = check::read_as(&args.file, &args.set, args.short, args.seeds) else {
        return Ok(Outcome::Wrong);
    };
    if !args.quiet {
        show::diagnostics(scenario.origin(), &scenario.warnings);
    }
    let wrong = |sentence: &str| {
        show::sentence(sentence);
        Ok(Outcome::Wrong)
    };
    let crossbar = match crossbar(&scenario.host, args) {
        Ok(crossbar) => crossbar,
        Err(sentence) => return wrong(&sentence),
    };
    let pool = match run::pool(args.jobs.unwrap_or(0)) {
        Ok(pool) => pool,
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Failed);
        }
    };
    let name = run::name(&args.file);
    let (low, high) = args.between;
    // Both ends, and one for each time that the interval is halved.
    let questions = 2 + ((high - low) / args.width).log2().ceil().max(0.0) as usize;
    let rows = if args.capacity { crossbar.schedulers.len() } else { 1 };
    let progress = Progress::new(&name, rows * questions, args.quiet);
    let search = Search {
        crossbar,
        seeds: scenario.seeds.clone(),
        between: args.between,
        width: args.width,
        progress,
    };
    let found = pool.install(|| match args.capacity {
        true => capacity::search(&search).map(|found| (found.table(), found.json())),
        false => crossover::search(&search, &args.metric).map(|found| (found.table(), found.json())),
    });
    search.progress.finish();
    match found {
        Ok((table, mut json)) => {
            if args.json {
                json["scenario"] = name.into();
                json["seeds"] = scenario.seeds.into();
                writeln!(out, "{json}")?;
            } else {
                write!(out, "{table}")?;
            }
            Ok(Outcome::Done)
        }
        Err(Stop::Interrupted) => Ok(Outcome::Interrupted),
        Err(Stop::Failed(sentence)) => {
            show::sentence(&sentence);
            Ok(Outcome::Failed)
        }
    }
}

/// The switch with the schedulers that are asked about, once everything that can be wrong was looked for.
fn crossbar(host: &Host, args: &Args) -> Result<Crossbar, String> {
    let Host::Switch(crossbar) = host else {
        return Err("giveway search asks a switch, and this scenario runs on a network".to_owned());
    };
    let mut crossbar = crossbar.clone();
    if let Some(pair) = &args.crossover {
        let scheduler = |text: &String| -> Result<Spec, String> {
            let spec: Spec = text.parse().map_err(|wrong| format!("--crossover: {wrong}"))?;
            spec.check(crossbar.ports).map_err(|invalid| format!("--crossover: {text}: {invalid}"))?;
            Ok(spec)
        };
        crossbar.schedulers = pair.iter().map(scheduler).collect::<Result<_, _>>()?;
    }
    for load in [args.between.0, args.between.1] {
        let plan = at_load(&crossbar, load)?.plan(&cell(&crossbar, 0, 0));
        let sim = Sim::new(&plan).map_err(|invalid| format!("--between: at a load of {load}: {invalid}"))?;
        // A run that has not begun knows what it would measure.
        let names: Vec<String> = sim.outcome().numbers().into_iter().map(|(name, _)| name).collect();
        if args.crossover.is_some() && !names.contains(&args.metric) {
            let near = nearest(&args.metric, names.iter().map(String::as_str));
            let help = near.map_or("giveway run --json shows all".to_owned(), |near| {
                format!("did you mean \"{near}\"?")
            });
            return Err(format!("--metric: a switch does not measure \"{}\"; {help}", args.metric));
        }
    }
    Ok(crossbar)
}

/// The same switch, offered another load.
fn at_load(crossbar: &Crossbar, load: f64) -> Result<Crossbar, String> {
    let mut crossbar = crossbar.clone();
    match &mut crossbar.traffic {
        TrafficSpec::bernoulli(config) => config.load = load,
        TrafficSpec::onoff(config) => config.load = load,
        other => {
            let name = other.name();
            return Err(format!(
                "the traffic \"{name}\" has no load that could be searched; write kind = \"onoff\" or \"bernoulli\""
            ));
        }
    }
    Ok(crossbar)
}

/// A run of one of the schedulers.
fn cell(crossbar: &Crossbar, scheduler: usize, seed: u64) -> Cell {
    Cell { discipline: scheduler, name: crossbar.schedulers[scheduler].to_string(), seed }
}

impl Search {
    /// A run that is so many times as long as the scenario says.
    fn run(&self, scheduler: usize, load: f64, seed: u64, times: u64) -> Result<Ran, Stop> {
        let mut crossbar = at_load(&self.crossbar, load).map_err(Stop::Failed)?;
        crossbar.slots *= times;
        crossbar.warmup *= times;
        let cell = cell(&crossbar, scheduler, seed);
        let running = AssertUnwindSafe(|| crossbar.run(&cell, &|_| !stop::asked()));
        match catch_unwind(running) {
            Ok(ran) => ran.ok_or(Stop::Interrupted),
            Err(panic) => {
                let why = run::said_in(panic.as_ref());
                Err(Stop::Failed(format!("{} at {load} with seed {seed} failed: {why}", cell.name)))
            }
        }
    }
}

/// Rows as aligned lines: the first column to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (text, width))| match at {
            0 => format!("{text:width$}"),
            _ => format!("{text:>width$}"),
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
