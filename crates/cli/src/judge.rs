//! `giveway evaluate judge`: the judgement of a discipline that a program has searched for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::value_parser;
use giveway_evaluate::EvaluateError;
use giveway_files::input;
use giveway_judge::{
    Candidate, Judgement, Observed, Rejected, Request, Sample, Stores, json, judge_with, named, public,
    sample, sample_baseline, text,
};
use giveway_qdisc::Bytes;
use giveway_record::dataset::Measured;
use giveway_record::{FolderError, Lock, write_whole};
use giveway_runner::Outcome;
use giveway_trials::{Frontend, Lines, Reuse, Reusing, processors};
use giveway_wasm::Limits;

use crate::error::CliError;
use crate::evaluate::{check_name, file_name, list_cells, wrong};
use crate::frontend::{Terminal, clock};
use crate::progress::words;
use crate::{show, stop};

/// Judges a discipline that a program has searched for, such as a language model or an evolution.
///
/// The candidate is compared with a baseline in public cells of `giveway evaluate`, which it may be written
/// for, and in held-out ones, which a secret draws: cells that are not public, and public ones with other
/// rates, delays, lengths and seeds. A gain is in units of the smallest difference that matters.
///
/// It is rejected, with the reason, if it uses too much fuel or memory, breaks the contract of a discipline,
/// keeps packets, delays acknowledgements, blocks traffic, or owes its gain to the hour, to the number of
/// packets, to the numbers of flows and hosts, to the seed, or to the public cells. Exit code 1 says that it
/// is rejected.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A WebAssembly module (FILE.wasm), or a discipline with parameters as in `tc`: "codel target 2ms"
    #[arg(value_name = "CANDIDATE", required_unless_present = "list_cells")]
    candidate: Option<String>,
    /// Discipline to compare with
    #[arg(long, value_name = "DISCIPLINE", default_value = "fq_codel")]
    against: String,
    /// File with the secret that draws the held-out cells. Candidates that are compared need the same one,
    /// and their author must not know it [default: a secret that is drawn now and forgotten]
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
    /// Run the public cells with seeds 1 to N, and the held-out cells with N drawn seeds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Instructions that a call of a module may use on average; one call may use 200 times as many
    #[arg(long, value_name = "N", default_value_t = Limits::default().fuel, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    fuel: u64,
    /// Memory of a module for each link
    #[arg(long, value_name = "SIZE", default_value = "16mb")]
    memory: Bytes,
    /// Folder of the judgement (judgement.json). It has the finished runs until the judgement is made: after
    /// Ctrl-C or a kill, the same command resumes. The author of the candidate must not be able to write it
    /// [default: judged/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Take runs of the baseline from this folder of a run, a sweep or a card; may be repeated. A run is
    /// found if everything that its result depends on is the same
    #[arg(long, value_name = "DIR")]
    reuse: Vec<PathBuf>,
    /// List the public cells without running them
    #[arg(long)]
    list_cells: bool,
    /// Runs at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print the judgement as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway evaluate judge mine.wasm --secret secret.txt --json   # one candidate of a search
  giveway evaluate judge \"efd limit 200p\" --against cake
  giveway evaluate judge --list-cells                           # the public cells

docs/book/judge.md has the interface of a module, and an example of one.

Exit codes: 0 accepted, 1 rejected or failed, 2 wrong usage, 130 interrupted.";

/// Runs `giveway evaluate judge`.
pub fn judge(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    if args.list_cells {
        return list_cells(&public(), out);
    }
    let name = args.candidate.as_deref().unwrap_or_default();
    let candidate = candidate(args, name)?;
    let request = Request {
        baseline: args.against.clone(),
        secret: secret(args)?,
        seeds: args.seeds,
        jobs: args.jobs.map_or_else(processors, usize::from),
        ..Request::default()
    };
    let frontend = Terminal { quiet: args.quiet };
    let other = Reuse::of(&args.reuse, &frontend)?;
    // Nothing is written before the flags are checked.
    let dir = args.out.clone().unwrap_or_else(|| Path::new("judged").join(file_name(name)));
    let _lock = Lock::take(&dir)?;
    let judgement = match candidate {
        Ok(candidate) => {
            stop::listen();
            judged(candidate.as_ref(), &request, args, &dir, (&other, &frontend))?
        }
        Err(rejected) => Judgement::refused(name, &args.against, rejected),
    };
    write_whole(&dir.join("judgement.json"), format!("{:#}\n", json(&judgement)).as_bytes())?;
    if args.json {
        writeln!(out, "{}", json(&judgement))?;
    } else {
        write!(out, "{}", text(&judgement))?;
    }
    Ok(if judgement.rejected.is_some() { Outcome::Failed } else { Outcome::Done })
}

/// Runs a candidate. Its finished runs are in the folder until it is judged.
fn judged(
    candidate: &dyn Candidate,
    request: &Request,
    args: &Args,
    dir: &Path,
    (other, frontend): (&Reuse, &Terminal),
) -> Result<Judgement, CliError> {
    let about = format!("{} against {}", candidate.name(), request.baseline);
    let failed = |source| FolderError::Write { path: dir.to_owned(), source };
    let own: Lines<Observed> =
        Lines::open(&dir.join("candidate.jsonl"), &about, RIGHTS, frontend).map_err(failed)?;
    let baseline: Lines<Measured> =
        Lines::open(&dir.join("baseline.jsonl"), &about, RIGHTS, frontend).map_err(failed)?;
    let found = own.found() + baseline.found();
    if found > 0 && !args.quiet {
        show::message(&format!("{} has {found} runs, which are not repeated", dir.display()));
    }
    let stores = Stores { candidate: &own, baseline: &Reusing::new(&baseline, other) };
    // The runs that are left of a judgement that was stopped are not known.
    let estimated = if found == 0 { estimated(candidate, request, stores, frontend) } else { Ok(()) };
    match estimated.and_then(|()| judge_with(candidate, request, stores, frontend)) {
        Err(EvaluateError::Stopped) => {
            let all = match args.secret {
                Some(_) => "",
                None => " with the public cells; the others are drawn anew without --secret",
            };
            show::message(&format!(
                "stopped: {} has the finished runs, and the same command resumes{all}",
                dir.display()
            ));
            Err(CliError::Reported(Outcome::Interrupted))
        }
        other => {
            own.remove();
            baseline.remove();
            other.map_err(wrong)
        }
    }
}

/// Says how long the judgement takes, from a few of its runs, which are not repeated.
fn estimated(
    candidate: &dyn Candidate,
    request: &Request,
    stores: Stores<'_>,
    frontend: &Terminal,
) -> Result<(), EvaluateError> {
    let clock = clock();
    let of_candidate = sample(candidate, request, stores, frontend)?;
    let middle = clock();
    let of_baseline = sample_baseline(request, stores, frontend)?;
    let rest = |sample: Sample, took: Duration| took.mul_f64(sample.all as f64 / sample.runs as f64);
    let all = rest(of_candidate, middle) + rest(of_baseline, clock() - middle);
    frontend.remark(&format!("{} runs, about {}", of_candidate.all + of_baseline.all, words(all)));
    Ok(())
}

/// The candidate, or the reason for which its module is rejected before it runs.
fn candidate(args: &Args, name: &str) -> Result<Result<Box<dyn Candidate + Send>, Rejected>, CliError> {
    if name.ends_with(".py") {
        return Err(CliError::Usage(format!(
            "{name} is written in Python: judge it there, with giveway.judge(...); see docs/book/judge.md"
        )));
    }
    check_name("--against", &args.against)?;
    if !name.ends_with(".wasm") {
        check_name("CANDIDATE", name)?;
    }
    let limits = Limits { fuel: args.fuel, memory: args.memory, ..Limits::default() };
    named(name, limits).map_err(|error| CliError::Usage(format!("{name} cannot be read: {error}")))
}

/// Rights of files that the author of a candidate must not read: runs in held-out cells.
const RIGHTS: u32 = 0o600;

/// The secret of the file; or one that is drawn now, which is not kept: who could read it, or write another
/// one, would know the held-out cells.
fn secret(args: &Args) -> Result<String, CliError> {
    let Some(path) = &args.secret else {
        use std::hash::{BuildHasher, RandomState};
        return Ok(RandomState::new().hash_one(0).to_string());
    };
    let text = input::read_given(path)
        .map_err(|error| CliError::Usage(format!("{} cannot be read: {}", path.display(), error)))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(CliError::Usage(format!(
            "{} is empty: write a text into it that authors of candidates do not know",
            path.display()
        )));
    }
    Ok(text.to_owned())
}
