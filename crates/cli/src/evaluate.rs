//! `giveway evaluate`: the card of a discipline.

mod bed;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::value_parser;
use giveway_evaluate::{
    Backend, Card, Cell, EvaluateError, Request, axes, cells, chosen, emulated, evaluate_with, json,
    overview, overview_json, overview_page, page, scenario_of, text,
};
use giveway_files::Dir;
use giveway_record::write_whole;
use giveway_runner::{Outcome, RunnerError};
use giveway_trials::{DataSet, Reuse, Reusing, processors};

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::show::{self, Most};
use crate::{scenario_args, stop};

/// Evaluates a discipline: runs it and baselines in the tests of RFC 7928 and others, and prints a card.
///
/// Each metric of each cell gives a verdict with its uncertainty: better, worse, no difference that matters,
/// or undecided. Small differences in many metrics are found by their sum over the metrics of a question.
/// Differences are paired by seed and corrected together over the whole card. A discipline whose runs have
/// two states is named, and not averaged. All verdicts are repeated with the timing of real
/// machines; one that is the opposite there is marked.
///
/// Each discipline is also compared at its own best: the best of N settings of its parameters, tried in the
/// short form of the cells with other seeds. Then each parameter of the discipline changes by 20 %, and the
/// card counts the verdicts that change.
///
/// DIR/card.html is the card as a page, DIR/card.json has every number, and DIR/cells/ contains the scenario
/// of each cell, which `giveway run` reproduces to the bit. DIR/trials/ has the metrics of each run as
/// Parquet files, which grow while the card runs: after Ctrl-C or a kill, the same command resumes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Disciplines, with parameters as in `tc`: "efd limit 300p". Each has a card
    #[arg(value_name = "DISCIPLINE", required_unless_present_any = ["list_cells", "deployed"])]
    disciplines: Vec<String>,
    /// A card for each discipline of Linux that needs no setting: fair queues, active queue management, and
    /// the default of an interface
    #[arg(long)]
    deployed: bool,
    /// Disciplines to compare with
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "fifo,fq_codel,cake")]
    against: Vec<String>,
    /// Run with N seeds, at least two
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = scenario_args::seeds)]
    seeds: u32,
    /// Use seeds from this one on, for a repetition with other seeds
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = scenario_args::first_seed)]
    first_seed: u64,
    /// Cells: names, groups (rfc7928, rrul, short-flows, l4s, varying, hostile, lockout), or beginnings with
    /// a star (rfc7928/burst-*) [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cells: Vec<String>,
    /// List all cells without running them
    #[arg(long)]
    list_cells: bool,
    /// Run the short form of the cells: seconds instead of a minute, with wider intervals
    #[arg(long, alias = "quick")]
    short: bool,
    /// Do not repeat the card with the timing of real machines
    #[arg(long)]
    no_timing: bool,
    /// Settings that are tried to find the own best of each discipline; 0 for none
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = value_parser!(u32).range(0..=10_000))]
    tune: u32,
    /// Do not change the parameters of the discipline by 20 %
    #[arg(long)]
    no_sensitivity: bool,
    /// Run on a test bed: real hosts on this machine, with the TCP of Linux. Needs root. Disciplines may also
    /// come from the kernel ("kernel:fq_codel") and Giveway's BPF qdiscs ("bpf:efd"). Only the cells that a
    /// test bed can emulate run, at defaults, each for its length in real time
    #[arg(long, conflicts_with_all = ["jobs", "deployed"])]
    testbed: bool,
    /// Folder with compiled objects for bpf: disciplines, as `giveway kernel build` writes them
    /// (giveway_efd.o) [default: compile them]
    #[arg(long, value_name = "DIR", requires = "testbed")]
    objects: Option<PathBuf>,
    /// Folder of the card, or of several: DIR/NAME [default: cards/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Take finished trials from this folder of a run, a sweep or a card; may be repeated. A trial is found
    /// if everything that its result depends on is the same
    #[arg(long, value_name = "DIR")]
    reuse: Vec<PathBuf>,
    /// Runs at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print the card as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway evaluate efd                                            # against fifo, fq_codel and cake
  giveway evaluate \"codel target 2ms\" --against codel,pie --seeds 20
  giveway evaluate efd --cells rfc7928,hostile --no-timing
  giveway evaluate efd --first-seed 11 --out cards/again          # does it hold with other seeds?
  giveway evaluate red --against codel --tune 0                   # defaults only, and the sensitivity of red
  giveway evaluate codel pie red --cells rfc7928                  # three cards, and a table of them
  giveway evaluate pie --reuse cards/codel                        # the baselines have run for another card
  giveway evaluate bpf:efd --against kernel:fq_codel,kernel:cake --testbed --short --seeds 3 --cells rfc7928
  giveway evaluate --deployed --tune 0 --no-sensitivity           # all disciplines of Linux
  giveway evaluate --list-cells

Exit codes: 0 success, 1 a run failed, 2 wrong usage, 130 interrupted.";

/// Runs `giveway evaluate`.
pub fn evaluate(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    if args.list_cells {
        return list_cells(&cells(), out);
    }
    let mut candidates = args.disciplines.clone();
    if args.deployed {
        candidates.extend(deployed());
    }
    let many = candidates.len() > 1;
    let base = args.out.clone().unwrap_or_else(|| PathBuf::from("cards"));
    let requests: Vec<(Request, PathBuf)> = candidates
        .into_iter()
        .map(|candidate| {
            let dir =
                if many || args.out.is_none() { base.join(file_name(&candidate)) } else { base.clone() };
            Ok((request(args, candidate)?, dir))
        })
        .collect::<Result<_, CliError>>()?;
    let frontend = Terminal { quiet: args.quiet };
    let other = Reuse::of(&args.reuse, &frontend)?;
    // The cards of one command share their runs.
    let place = if many { &base } else { &requests[0].1 };
    let version = if args.testbed { giveway_sources::TESTBED } else { giveway_sources::SIMULATION };
    let data = DataSet::open(place, &axes(), version, &frontend)?;
    // A folder that cannot be written ends the command before anything runs.
    for (_, dir) in &requests {
        let failed = |source| giveway_record::FolderError::Write { path: dir.clone(), source };
        Dir::create(&dir.join("cells")).map_err(failed)?;
    }
    if data.count() > 0 && !args.quiet {
        show::message(&format!("{} has {} runs, which are not repeated", place.display(), data.count()));
    }
    let store = &Reusing::new(&data, &other);
    stop::listen();
    let mut cards = Vec::new();
    for (request, dir) in &requests {
        let request = request.clone();
        let evaluated = match args.testbed {
            true => bed::card(args.objects.clone(), args.quiet, request, store),
            false => evaluate_with(request, Backend::Simulator, store, &frontend),
        };
        let card = match evaluated {
            Err(EvaluateError::Stopped) => {
                show::message(&format!(
                    "stopped: {} has {} runs, and the same command resumes",
                    place.display(),
                    data.count()
                ));
                return Ok(Outcome::Interrupted);
            }
            other => other.map_err(wrong)?,
        };
        let dir = dir.as_path();
        write_card(&card, dir)?;
        if !many {
            if args.json {
                writeln!(out, "{}", json(&card))?;
            } else {
                write!(out, "{}", text(&card))?;
                writeln!(out, "Card: {}", dir.join("card.html").display())?;
            }
        }
        cards.push(card);
    }
    data.complete()?;
    if !args.reuse.is_empty() && !args.quiet {
        let taken = store.taken.load(Ordering::Relaxed);
        show::message(&format!("{taken} of {} runs were taken from --reuse", data.count()));
    }
    if many {
        let whole = overview_json(&cards);
        write_whole_in(&base.join("overview.json"), pretty(&whole).as_bytes())?;
        let place = base.join("index.html");
        giveway_record::report::write(&place, &overview_page(&cards).html()).map_err(RunnerError::from)?;
        if args.json {
            writeln!(out, "{whole}")?;
        } else {
            write!(out, "{}", overview(&cards))?;
            writeln!(out, "Cards: {}", place.display())?;
        }
    }
    Ok(Outcome::Done)
}

/// Checks a discipline at the argument in which it is written.
pub fn check_name(argument: &str, text: &str) -> Result<(), CliError> {
    if is_real(text) {
        return Ok(());
    }
    text.parse::<giveway_disciplines::Spec>().map(drop).map_err(|error| {
        let kind = match Path::new(text).metadata() {
            Ok(about) if about.is_dir() => "a folder",
            Ok(_) => "a file",
            Err(_) => return CliError::Usage(format!("{argument} \"{text}\": {error}")),
        };
        CliError::Usage(format!(
            "{argument} \"{text}\": it is {kind}; write a discipline, as in \"fq_codel\""
        ))
    })
}

/// Prints the names and titles of cells.
pub fn list_cells(cells: &[Cell], out: &mut dyn Write) -> Result<Outcome, CliError> {
    for cell in cells {
        writeln!(out, "{:<32} {}", cell.name, cell.title)?;
    }
    Ok(Outcome::Done)
}

/// The request of the card of a discipline.
fn request(args: &Args, candidate: String) -> Result<Request, CliError> {
    let against = args.against.iter().map(|spec| spec.trim().to_owned());
    let against: Vec<String> = against.filter(|spec| *spec != candidate).collect();
    check_name("DISCIPLINE", &candidate)?;
    against.iter().try_for_each(|spec| check_name("--against", spec))?;
    if let (Some(real), false) =
        (std::iter::once(&candidate).chain(&against).find(|spec| is_real(spec)), args.testbed)
    {
        return Err(CliError::Usage(format!(
            "{real} is a discipline of the kernel, which the simulator does not have: add --testbed (as root)"
        )));
    }
    let mut cells = chosen(&args.cells).map_err(wrong)?;
    if args.testbed {
        let disciplines: Vec<String> = std::iter::once(&candidate).chain(&against).cloned().collect();
        let (can, cannot) = emulated(&cells, &disciplines, args.short);
        if let (true, Some((cell, why))) = (can.is_empty(), cannot.first()) {
            return Err(CliError::Usage(format!("{}: a test bed cannot emulate it: {why}", cell.name)));
        }
        if !cannot.is_empty() && !args.quiet {
            show::message(&format!("a test bed can emulate {} of {} cells", can.len(), cells.len()));
        }
        cells = can;
    }
    Ok(Request {
        against,
        candidate,
        seeds: args.seeds,
        first_seed: args.first_seed,
        cells,
        short: args.short,
        timing: !args.no_timing && !args.testbed,
        tune: if args.testbed { 0 } else { args.tune },
        sensitivity: !args.no_sensitivity && !args.testbed,
        bed: args.testbed,
        jobs: args.jobs.map_or_else(processors, usize::from),
        source: None,
    })
}

/// True for a discipline of the kernel.
fn is_real(spec: &str) -> bool {
    ["kernel:", "bpf:"].iter().any(|prefix| spec.starts_with(prefix))
}

/// The disciplines of Linux that need no setting. Disciplines of the family of shapers and classes need one,
/// except for the default of an interface.
fn deployed() -> Vec<String> {
    let entries = giveway_disciplines::ALL.iter();
    entries
        .filter(|entry| entry.default().in_mainline())
        .filter(|entry| {
            entry.family.is_none_or(|family| family.name != "shape") || entry.name == LINUX_DEFAULT
        })
        .map(|entry| entry.name.to_owned())
        .collect()
}

/// The discipline of an interface of Linux without any setting.
const LINUX_DEFAULT: &str = "pfifo_fast";

/// Writes a card into its folder.
fn write_card(card: &Card, dir: &Path) -> Result<(), CliError> {
    for cell in &card.request.cells {
        let place = dir.join("cells").join(format!("{}.toml", cell.name));
        write_whole_in(&place, scenario_of(card, cell).as_bytes())?;
    }
    write_whole_in(&dir.join("card.json"), pretty(&json(card)).as_bytes())?;
    let place = dir.join("card.html");
    giveway_record::report::write(&place, &page(card).html()).map_err(RunnerError::from)?;
    Ok(())
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).expect("a card can be written as JSON")
}

/// Writes a file, and the folders above it.
fn write_whole_in(place: &Path, content: &[u8]) -> Result<(), CliError> {
    if let Some(folder) = place.parent() {
        let failed = |source| giveway_record::FolderError::Write { path: folder.to_owned(), source };
        Dir::create(folder).map_err(failed)?;
    }
    Ok(write_whole(place, content)?)
}

/// The name of a discipline as the name of a folder.
pub fn file_name(spec: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    spec.chars().map(clean).collect()
}

/// An error of a card. A mistake in a discipline is shown with its place.
pub fn wrong(error: EvaluateError) -> CliError {
    match error {
        EvaluateError::Scenario(error) => CliError::Scenario(error, Most::All),
        EvaluateError::Usage(text) => CliError::Usage(text),
        error => {
            show::message(&error.to_string());
            CliError::Reported(Outcome::Failed)
        }
    }
}
