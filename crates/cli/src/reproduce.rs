//! `giveway reproduce`: runs the experiments of a paper and checks each of its claims.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::value_parser;
use giveway_papers::{Judged, Paper, Results, SHIPPED, Scope, Study, Verdict};
use giveway_record::FolderError;
use giveway_runner::{Outcome, cpu, study};
use giveway_trials::processors;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::markdown::wrap;
use crate::outputs::{Kind, may_write};
use crate::{show, stop, terminal};

/// Reproduces a paper: runs its experiments and checks each of its claims.
///
/// Prints each claim with the paper's number, our number with its 95 % confidence interval, and a verdict:
/// reproduces, differs (with the reason), not testable, or not run. An interrupted study continues when the
/// same command runs again. Writes a report with every figure, drawn as in the
/// paper, and again under other assumptions. Without PAPER, lists the papers.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Name of a paper, or a folder with a paper.toml and a claims.toml [default: list the papers]
    #[arg(value_name = "PAPER")]
    paper: Option<String>,
    /// Run only this figure and its claims
    #[arg(long, value_name = "N")]
    figure: Option<String>,
    /// Take a first look in seconds: shorter runs, three seeds, no variants under other assumptions
    #[arg(long, alias = "short")]
    quick: bool,
    /// Run with seeds 1 to N [default: the number in the paper's file]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Folder for the report and the verdicts [default: runs/PAPER, with --quick runs/PAPER-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the files of the folder, even if it does not hold this paper. Each replaced file is named
    #[arg(long)]
    force: bool,
    /// Trials at a time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Print a page in Markdown instead of text
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print no progress and no remarks
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway reproduce
  giveway reproduce efd --quick
  giveway reproduce efd --figure 7
  giveway reproduce efd --json | jq '.claims[] | select(.verdict == \"differs\") | .statement'

Exit codes: 0 success, whatever the verdicts, 1 a run failed, 2 wrong usage, 130 interrupted.";

/// Runs `giveway reproduce`.
pub fn reproduce(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let Some(name) = &args.paper else { return list(args, out) };
    let scope = Scope { figure: args.figure.clone(), quick: args.quick, seeds: args.seeds };
    let study = Paper::find(name).and_then(|paper| Study::new(paper, scope))?;
    let id = &study.id();
    let dir = args.out.clone().unwrap_or_else(|| {
        Path::new("runs").join(if args.quick { format!("{id}-quick") } else { (*id).to_owned() })
    });
    // A folder that cannot be used is reported before the runs, not after.
    may_take(&dir, id, args.force)?;
    let _lock = giveway_record::Lock::take(&dir)?;
    let before = cpu::user_s();
    stop::listen();
    let frontend = Terminal { quiet: args.quiet };
    let (results, mut outcome) =
        study::run(&study, args.jobs.map_or_else(processors, usize::from), &dir.join(RUNS), &frontend)?;
    let judged = giveway_papers::judge(&study, &results);
    if args.json {
        writeln!(out, "{}", giveway_papers::json(&study, &results, &judged))?;
    } else if args.markdown {
        write!(out, "{}", giveway_papers::markdown(&study, &judged))?;
    } else {
        print(&study, &results, &judged, args.quick, out)?;
    }
    if let Err(error) = keep(&dir, &study, &results, &judged) {
        CliError::from(error).show();
        outcome = outcome.max(Outcome::Failed);
    } else if !args.quiet {
        show::message(&format!("the report is {}", dir.join(giveway_record::REPORT).display()));
        show::message(&format!(
            "{} runs, {:.1} s of processor time",
            results.finished,
            cpu::user_s() - before
        ));
    }
    Ok(outcome)
}

/// The file of the verdicts, which also identifies the paper of the folder.
const CLAIMS: &str = "claims.json";

/// The file of the finished runs of an interrupted study.
const RUNS: &str = "runs.jsonl";

/// Checks that `dir` is empty, or holds an earlier reproduction of the paper `id`, or that `force` is given.
fn may_take(dir: &Path, id: &str, force: bool) -> Result<(), CliError> {
    let written = [(giveway_record::REPORT, Kind::Page), (CLAIMS, Kind::Claims)];
    let claims = std::fs::read(dir.join(CLAIMS)).unwrap_or_default();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap_or_default();
    let other = claims["paper"].as_str().filter(|paper| *paper != id);
    if let (Some(other), false) = (other, force) {
        return Err(CliError::Usage(format!(
            "{} holds the paper {other}. Nothing was changed. Name another folder with --out, or add --force to replace it",
            dir.display()
        )));
    }
    // A run that was killed leaves only these files.
    const LEFT: [&str; 3] = [giveway_record::LOCK, ".claims.json.tmp", RUNS];
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let foreign = entries.map(|entry| entry.file_name()).find(|name| LEFT.iter().all(|left| name != left));
    if let (Some(name), true, false) = (foreign, claims.is_null(), force) {
        return Err(CliError::Usage(format!(
            "{} is not empty and holds no paper: it contains {}. Nothing was changed. Name another folder with --out, \
             or add --force to replace {} and {CLAIMS} there",
            dir.display(),
            name.to_string_lossy(),
            giveway_record::REPORT
        )));
    }
    written.iter().try_for_each(|(name, kind)| may_write(&dir.join(name), *kind, force))?;
    Ok(())
}

/// Lists the papers.
fn list(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let papers = SHIPPED.iter().map(|shipped| Paper::shipped(shipped).expect("a shipped paper is tested"));
    let papers: Vec<Paper> = papers.collect();
    if args.json {
        let listed = papers.iter().map(|paper| {
            serde_json::json!({
                "id": paper.id, "title": paper.title(), "reference": paper.reference(), "claims": paper.claims(),
                "figures": paper.figures().collect::<Vec<_>>(),
            })
        });
        writeln!(out, "{}", serde_json::json!({ "papers": listed.collect::<Vec<_>>() }))?;
        return Ok(Outcome::Done);
    }
    for paper in &papers {
        writeln!(out, "{:<9} {}", terminal::bold(&paper.id), paper.title())?;
        writeln!(out, "          {}", paper.reference())?;
        let figures: Vec<&str> = paper.figures().collect();
        writeln!(out, "          {} claims; figures {}", paper.claims(), figures.join(", "))?;
    }
    writeln!(out, "\ngiveway reproduce PAPER reproduces one; --quick takes a first look in seconds.")?;
    Ok(Outcome::Done)
}

/// Writes the report and the verdicts, each whole or not at all.
fn keep(dir: &Path, study: &Study, results: &Results, judged: &[Judged]) -> Result<(), FolderError> {
    let page = giveway_papers::document(study, results, judged).html();
    let verdicts = format!("{:#}\n", giveway_papers::json(study, results, judged));
    // The claims come first, since they identify the paper of the folder.
    for (name, text) in [(CLAIMS, verdicts), (giveway_record::REPORT, page)] {
        giveway_record::report::write(&dir.join(name), &text)?;
    }
    Ok(())
}

/// Every claim with its verdict, figure by figure.
fn print(
    study: &Study,
    results: &Results,
    judged: &[Judged],
    quick: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    const INDENT: &str = "             ";
    let width = terminal::width();
    let paragraph = |first: &str, text: &str| wrap(text, width, &format!("      {first:<7}"), INDENT);
    writeln!(out, "{}\n{}", terminal::bold(study.title()), study.reference())?;
    let mut last = None;
    for claim in judged {
        if last != Some(&claim.figure) {
            let head = match claim.figure.as_deref() {
                Some(id) => study.figure_heading(id).unwrap_or_else(|| id.to_owned()),
                None => "The paper as a whole".to_owned(),
            };
            writeln!(out, "\n{}", terminal::bold(&head))?;
            last = Some(&claim.figure);
        }
        // Wrapped without its colour, which has no width.
        let statement =
            wrap(&claim.statement, width, &format!("  {:<12} ", claim.verdict.word()), "               ");
        write!(out, "{}", statement.replacen(claim.verdict.word(), &mark(claim.verdict), 1))?;
        write!(out, "{}", paragraph("paper", &format!("{} ({})", claim.paper, claim.source)))?;
        write!(out, "{}", paragraph("ours", &claim.ours))?;
        if !claim.why.is_empty() {
            let word = if claim.verdict == Verdict::Reproduces { "note" } else { "why" };
            write!(out, "{}", paragraph(word, &claim.why))?;
        }
    }
    writeln!(out, "\n{}", giveway_papers::counted(judged))?;
    if let Some(sentence) = giveway_papers::interrupted(results) {
        write!(out, "{}", wrap(&sentence, width, "", ""))?;
    }
    if quick {
        writeln!(
            out,
            "A first look: shorter runs and {} seeds. Without --quick, the runs are as in the paper.",
            study.seeds()
        )?;
    }
    Ok(())
}

/// A verdict as a coloured word.
fn mark(verdict: Verdict) -> String {
    let word = verdict.word();
    match verdict {
        Verdict::Reproduces => terminal::good(word),
        Verdict::Differs => terminal::bad(word),
        Verdict::NotTestable | Verdict::NotRun => terminal::faint(word),
    }
}
