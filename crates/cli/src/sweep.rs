//! `giveway sweep` and `giveway sweep merge`: a scenario with many values of its keys, as one data set.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::value_parser;
use giveway_files::{Dir, Kind};
use giveway_record::chain;
use giveway_runner::{Outcome, RunnerError, scenario_name};
use giveway_scenario::Sweep;
use giveway_sweep::{
    Axis, Data, Design, Done, PART, Plan, PointTable, Precision, Request, Rescued, Shard, SweepError,
    SweepFolder, answers, check_metric, merge as merge_shards, page, run, usual_metric,
};
use giveway_trials::{Reuse, processors};
use serde_json::json;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::scenario_args::{self, ScenarioArgs};
use crate::{provenance, show, stop, terminal};

/// Runs a scenario with many values of its keys: every discipline at every point, with every seed.
///
/// The results are one data set of Parquet files, a row for each trial: the values of the varied keys, the
/// discipline, the seed, and all metrics. It can be read while the sweep runs. `giveway report DIR` draws it,
/// and DuckDB, polars and pandas read `DIR/trials/*.parquet`.
///
/// Each trial is identified by a hash of everything that its result depends on. So a killed sweep resumes, a
/// sweep with more values or seeds runs only what is new, and --reuse takes trials from other folders.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file; its table [sweep] may have the flags --over, --design and --until
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Vary a key: a list of values (link.0.rate=1mbit,10mbit), whole numbers (traffic.up.flows=1..8), or N
    /// values with equal steps or ratios (lin(LOW,HIGH,N), log(LOW,HIGH,N)). qdisc.NAME is a parameter of
    /// every compared discipline that has it. May be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// Points: grid takes every combination; random:N, lhs:N (Latin hypercube) and sobol:N draw N points, for
    /// which lin(LOW,HIGH) and log(LOW,HIGH) need no number; saltelli:N takes the N(keys + 2) points of Sobol
    /// indices [default: grid]
    #[arg(long, value_name = "DESIGN")]
    design: Option<String>,
    /// Run with seeds 1 to N [default: the seeds of the scenario; 100 with --until]
    #[arg(long, value_name = "N", value_parser = scenario_args::seeds)]
    seeds: Option<u32>,
    /// Use seeds from this one on in place of 1, for a repetition with other seeds in another folder
    #[arg(long, value_name = "SEED", value_parser = scenario_args::first_seed)]
    first_seed: Option<u64>,
    /// End the seeds of a point once the 95 % confidence interval of a metric is narrow enough for every
    /// discipline, as in "fct_p99 within 5 %". At most --seeds are run
    #[arg(long, value_name = "PRECISION")]
    until: Option<String>,
    /// Metric of the sentences at the end, a name in the output of `giveway run --json` [default: the first
    /// of page_load_p50_s, fct_p95_s, fct_mean_s, sojourn_p99_s, wait_mean_slots that the runs have]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Folder of the data set [default: sweeps/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Take finished trials from this folder of a run, a sweep or a card; may be repeated. A trial is found
    /// if everything that its result depends on is the same
    #[arg(long, value_name = "DIR")]
    reuse: Vec<PathBuf>,
    /// Run only the I-th of N parts, for batch systems; `giveway sweep merge` unites them. Each part gets
    /// its own folder, shard-I-of-N in the folder of --out
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Trials at a time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    json: bool,
    /// Print the points and the number of trials without running them
    #[arg(long)]
    dry_run: bool,
    /// Print no progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// Run with the settings in [short] of the scenario [default: at most 5 s and one seed]
    #[arg(long, alias = "quick")]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway sweep scenarios/quickstart.toml --over link.0.rate=1mbit,2mbit,5mbit,10mbit --seeds 5
  giveway sweep scenarios/quickstart.toml --over 'qdisc.threshold=log(5p,200p,6)' --over traffic.upload.flows=1..4
  giveway sweep scenarios/quickstart.toml --over 'link.0.rate=log(1mbit,50mbit)' --design lhs:200 --out sweeps/rates
  giveway sweep scenarios/quickstart.toml --over link.0.rate=1mbit,10mbit --until 'fct_p95 within 5 %'
  giveway sweep scenarios/quickstart.toml --over link.0.rate=1mbit,10mbit --shard 1/8     # one of eight parts

Exit codes: 0 success, 1 a trial failed, 2 wrong usage or an invalid scenario, 130 interrupted.";

/// Parses `I/N`.
fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((index @ 1.., of @ 1..=100_000)) if index <= of => Ok(Shard { index: index - 1, of }),
        _ => Err("write the number of the part and the number of parts, such as 1/8".to_owned()),
    }
}

/// Maximum number of seeds of a sweep that ends with a precision.
const MAX_SEEDS: u32 = 100;

/// Runs `giveway sweep`.
pub fn sweep(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let plan = Plan::new(request(args)?).map_err(|error| wrong(error, args))?;
    if let Some(metric) = &args.metric {
        check_metric(metric, &plan.request().scenario)?;
    }
    let frontend = Terminal { quiet: args.quiet };
    if !args.quiet {
        args.scenario.warn(&plan.request().scenario);
        show::message(&size(&plan));
    }
    if args.dry_run {
        return points(&plan, out);
    }
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let mut dir = args.out.clone().unwrap_or_else(|| Path::new("sweeps").join(scenario_name(&args.file)));
    if args.shard.is_some() {
        dir = dir.join(format!("{PART}{}-of-{}", shard.index + 1, shard.of));
    }
    let reuse = Reuse::of(&args.reuse, &frontend)?;
    let mut folder = SweepFolder::open(&dir, &plan, shard, &provenance::command(), &frontend)?;
    stop::listen();
    let jobs = args.jobs.map_or_else(processors, usize::from);
    let done = run(&plan, &mut folder, shard, jobs, &reuse, &frontend).map_err(|error| {
        show::message(&format!("{}; {}", chain(&error), how_to_resume(&error)));
        CliError::Reported(Outcome::Failed)
    })?;
    tell(&done, &dir, &plan, args, out)
}

/// A sentence that says where finished trials are, and what to type.
fn how_to_resume(error: &SweepError) -> String {
    let SweepError::Unwritten { rescued: Rescued { trials, folder }, .. } = error else {
        return "finished trials are kept: the same command resumes".to_owned();
    };
    let last = "the last finished trials";
    match folder {
        Some(folder) => format!(
            "{last} ({trials}) are in {at}: when the folder can be written again, give the same command with \
             --reuse {at}",
            at = folder.display()
        ),
        None => format!(
            "{last} ({trials}) could not be kept among the temporary files either, and run again: when the folder can be \
             written again, give the same command"
        ),
    }
}

/// The request of the flags, and of `[sweep]` in the file.
fn request(args: &Args) -> Result<Request, CliError> {
    let mut scenario = args.scenario.read_as(&args.file, args.short, args.seeds)?;
    let Sweep { over, design, until } = scenario.sweep.clone();
    // A flag replaces the axis of the same key.
    let mut axes = parsed::<Axis>(&over)?;
    for axis in parsed::<Axis>(&args.over)? {
        match axes.iter_mut().find(|known| known.key == axis.key && over.contains(&known.to_string())) {
            Some(known) => *known = axis,
            None => axes.push(axis),
        }
    }
    let design = args.design.clone().or(design);
    let design = design.map_or(Ok(Design::GRID), |text| text.parse()).map_err(SweepError::from)?;
    let until = args.until.clone().or(until);
    let until = until.map(|text| text.parse::<Precision>()).transpose().map_err(SweepError::from)?;
    if until.is_some() && args.seeds.is_none() && !args.short {
        scenario = scenario.with_seeds(MAX_SEEDS);
    }
    if let Some(first) = args.first_seed {
        scenario.seeds = (first..).take(scenario.seeds.len()).collect();
    }
    Ok(Request { scenario, axes, design, until })
}

fn parsed<T: FromStr<Err: Into<SweepError>>>(texts: &[String]) -> Result<Vec<T>, CliError> {
    texts.iter().map(|text| text.parse().map_err(|error: T::Err| error.into().into())).collect()
}

/// An error of a plan. Mistakes of the scenario are shown with their lines.
fn wrong(error: SweepError, args: &Args) -> CliError {
    match error {
        SweepError::Scenario(error) => CliError::Scenario(error, args.scenario.most()),
        error => error.into(),
    }
}

/// The size of a sweep in words.
fn size(plan: &Plan) -> String {
    let seeds = plan.seeds().len();
    let most = if plan.request().until.is_some() { "at most " } else { "" };
    format!(
        "{} with {} and {most}{}: {most}{}",
        count(plan.points(), "point"),
        count(plan.contenders() as u64, "discipline"),
        count(seeds as u64, "seed"),
        count(plan.trials(), "trial"),
    )
}

fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// Prints the values of every point.
fn points(plan: &Plan, out: &mut dyn Write) -> Result<Outcome, CliError> {
    const MAX: u64 = 1000;
    let axes = &plan.request().axes;
    let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
    writeln!(out, "point\t{}", keys.join("\t"))?;
    for number in 0..plan.points().min(MAX) {
        let values = plan.request().design.point(number, axes).into_iter().map(|value| value.text);
        writeln!(out, "{number}\t{}", values.collect::<Vec<_>>().join("\t"))?;
    }
    if plan.points() > MAX {
        writeln!(out, "and {} more", plan.points() - MAX)?;
    }
    Ok(Outcome::Done)
}

/// Prints what was done, and where the data set is.
fn tell(done: &Done, dir: &Path, plan: &Plan, args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let Done { ran, had, reused, failed, complete } = *done;
    let outcome = match (complete, failed) {
        (false, _) => Outcome::Interrupted,
        (true, 0) => Outcome::Done,
        (true, _) => Outcome::Failed,
    };
    let metric = match &args.metric {
        Some(metric) => Ok(metric.clone()),
        None => usual_metric(dir),
    };
    // Without a finished trial there is nothing to answer.
    let data = match (complete, metric) {
        (true, Ok(metric)) => Some(Data::read(dir, &metric)?),
        _ => None,
    };
    let found = data.as_ref().map_or_else(Vec::new, answers);
    let place = dir.join(giveway_record::REPORT);
    if let Some(data) = &data {
        let html = page(std::slice::from_ref(data)).html();
        giveway_record::report::write(&place, &html).map_err(RunnerError::from)?;
    }
    if args.json {
        let report = json!({
            "folder": dir, "points": plan.points(), "ran": ran, "had": had, "reused": reused, "failed": failed,
            "complete": complete, "answers": found,
        });
        writeln!(out, "{report}")?;
        return Ok(outcome);
    }
    let mut parts = vec![format!("{} ran", count(ran, "trial"))];
    if had > 0 {
        parts.push(format!("{had} were there"));
    }
    if reused > 0 {
        parts.push(format!("{reused} had run before"));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed ({})", dir.join("failed").display()));
    }
    writeln!(out, "{}: {}", dir.display(), parts.join(", "))?;
    if !complete {
        writeln!(out, "The same command resumes.")?;
    }
    if let Some(table) = data.as_ref().and_then(PointTable::of) {
        write!(out, "\n{}", table.text(terminal::width()))?;
        if !table.is_whole() {
            writeln!(out, "All points: {}", dir.join("trials").join("*.parquet").display())?;
        }
        writeln!(out)?;
    }
    for sentence in &found {
        write!(out, "{}", terminal::point(sentence))?;
    }
    if !found.is_empty() {
        writeln!(out, "Report: {}", place.display())?;
    }
    Ok(outcome)
}

/// Unites the parts of a sweep that ran with --shard.
///
/// The merged folder has the same bytes as one that a single process made. All parts must be there, of the
/// same sweep and from the same build. Parts that were interrupted are merged as far as they are.
#[derive(clap::Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct MergeArgs {
    /// Folder for the whole data set
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Folders of the parts [default: all shard-I-of-N in DIR]
    #[arg(value_name = "PART")]
    parts: Vec<PathBuf>,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  giveway sweep merge sweeps/quickstart                                  # its shard-1-of-8, shard-2-of-8, ...
  giveway sweep merge sweeps/all node1/shard-1-of-2 node2/shard-2-of-2

Exit codes: 0 success, 1 a file cannot be read or written, 2 a part is missing, damaged, or does not fit.";

/// Runs `giveway sweep merge`.
pub fn merge(args: &MergeArgs, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut parts = args.parts.clone();
    if parts.is_empty() {
        // A link is left out: it may lead to the sweep of another person.
        let entries = Dir::open(&args.dir).and_then(|dir| dir.entries()).unwrap_or_default();
        let is_part = |(name, kind): &(OsString, Kind)| {
            *kind == Kind::Folder && name.to_string_lossy().starts_with(PART)
        };
        parts = entries.into_iter().filter(is_part).map(|(name, _)| args.dir.join(name)).collect();
    }
    if parts.is_empty() {
        return Err(CliError::Usage(format!(
            "{} has no folder shard-1-of-N; run the parts with --shard 1/N, or name their folders",
            args.dir.display()
        )));
    }
    let merged = merge_shards(&args.dir, &parts)?;
    writeln!(out, "{}: {} from {} parts", args.dir.display(), count(merged.trials, "trial"), parts.len())?;
    for part in &merged.missing {
        writeln!(out, "{} is not complete: run its command again, and merge again", part.display())?;
    }
    Ok(Outcome::Done)
}
