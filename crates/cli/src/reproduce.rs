//! `giveway reproduce`: does a paper again, and says for each of its claims whether we see the same.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::value_parser;
use giveway_papers::{Judged, Paper, Results, SHIPPED, Scope, Study, Verdict};
use giveway_runner::{Outcome, cpu, study};

use crate::frontend::Terminal;
use crate::markdown::wrap;
use crate::outputs::{Kind, may_write};
use crate::{outputs, show, stop, terminal};

/// Does a paper again: runs what it ran, and holds each of its claims against what comes out.
///
/// Prints each claim with the paper's number, ours with its 95 % interval, and a verdict: reproduces, differs (with the reason),
/// or not testable. Writes a report with every figure, drawn as in the paper, and with the same under other assumptions.
/// Without a paper it lists those that there are. A folder with a paper.toml and a claims.toml is a paper, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which paper, or a folder with one; without it, the papers are listed
    #[arg(value_name = "PAPER")]
    paper: Option<String>,
    /// Only this figure, with the claims about it
    #[arg(long, value_name = "N")]
    figure: Option<String>,
    /// A first look in seconds: shorter runs, three seeds, no other assumptions
    #[arg(long)]
    quick: bool,
    /// How many seeds [default: as many as the paper's file says]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Where the report and the verdicts go [default: runs/PAPER, with --quick runs/PAPER-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace what is in the folder although it is not of this paper. Names each file that it replaces
    #[arg(long)]
    force: bool,
    /// How many runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Print a page in Markdown instead of text
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// No progress and no remarks
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway reproduce
  giveway reproduce efd --quick
  giveway reproduce efd --figure 7
  giveway reproduce efd --json | jq '.claims[] | select(.verdict == \"differs\") | .statement'

Exit codes: 0 all is well, whatever the verdicts, 1 a run failed, 2 wrong usage, 130 interrupted.";

/// Does it.
pub fn reproduce(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let Some(name) = &args.paper else { return list(args, out) };
    let scope = Scope { figure: args.figure.clone(), quick: args.quick, seeds: args.seeds };
    let study = match Paper::find(name).and_then(|paper| Study::new(paper, scope)) {
        Ok(study) => study,
        Err(error) => {
            show::sentence(&error.to_string());
            return Ok(Outcome::Wrong);
        }
    };
    let id = &study.id();
    let dir = args.out.clone().unwrap_or_else(|| {
        Path::new("runs").join(if args.quick { format!("{id}-quick") } else { (*id).to_owned() })
    });
    // A folder that cannot be written, or is not ours to write, is told now, not after the runs.
    let taken = may_take(&dir, id, args.force).map_err(|sentence| (sentence, Outcome::Wrong));
    let locked = taken.and_then(|()| {
        giveway_record::Lock::take(&dir).map_err(|error| (error.to_string(), outputs::outcome(&error)))
    });
    let _lock = match locked {
        Ok(lock) => lock,
        Err((sentence, outcome)) => {
            show::sentence(&sentence);
            return Ok(outcome);
        }
    };
    let before = cpu::user_s();
    stop::listen();
    let frontend = Terminal { quiet: args.quiet };
    let (results, mut outcome) = match study::run(&study, args.jobs.unwrap_or(0), &frontend) {
        Ok(ran) => ran,
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Failed);
        }
    };
    let judged = giveway_papers::judge(&study, &results);
    if args.json {
        writeln!(out, "{}", giveway_papers::json(&study, &results, &judged))?;
    } else if args.markdown {
        write!(out, "{}", giveway_papers::markdown(&study, &judged))?;
    } else {
        print(&study, &results, &judged, args.quick, out)?;
    }
    if let Err(sentence) = keep(&dir, &study, &results, &judged) {
        show::sentence(&sentence);
        outcome = outcome.max(Outcome::Failed);
    } else if !args.quiet {
        show::sentence(&format!("the report is {}", dir.join(giveway_record::REPORT).display()));
        show::sentence(&format!(
            "{} runs, {:.1} s of processor time",
            results.finished,
            cpu::user_s() - before
        ));
    }
    Ok(outcome)
}

/// The verdicts, beside the report. They also say of which paper the folder is.
const CLAIMS: &str = "claims.json";

/// Checks that `dir` is empty, or holds an earlier reproduction of the paper `id`, or that `force` is given.
fn may_take(dir: &Path, id: &str, force: bool) -> Result<(), String> {
    let written = [(giveway_record::REPORT, Kind::Page), (CLAIMS, Kind::Claims)];
    let claims = std::fs::read(dir.join(CLAIMS)).unwrap_or_default();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap_or_default();
    let other = claims["paper"].as_str().filter(|paper| *paper != id);
    if let (Some(other), false) = (other, force) {
        return Err(format!(
            "{} holds the paper {other}. Nothing was changed. Name another folder with --out, or add --force to replace it",
            dir.display()
        ));
    }
    // A folder whose claims are not there has nothing of ours but what a run leaves that was killed.
    const LEFT: [&str; 2] = [giveway_record::LOCK, ".claims.json.tmp"];
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let strange = entries.map(|entry| entry.file_name()).find(|name| LEFT.iter().all(|left| name != left));
    if let (Some(name), true, false) = (strange, claims.is_null(), force) {
        return Err(format!(
            "{} is not empty and holds no paper: there is {}, for one. Nothing was changed. Name another folder with --out, \
             or add --force to replace {} and {CLAIMS} there",
            dir.display(),
            name.to_string_lossy(),
            giveway_record::REPORT
        ));
    }
    written.iter().try_for_each(|(name, kind)| may_write(&dir.join(name), *kind, force))
}

/// The papers that there are.
fn list(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
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
        writeln!(out, "{:<8} {}", terminal::bold(&paper.id), paper.title())?;
        writeln!(out, "         {}", paper.reference())?;
        let figures: Vec<&str> = paper.figures().collect();
        writeln!(out, "         {} claims; figures {}", paper.claims(), figures.join(", "))?;
    }
    writeln!(out, "\ngiveway reproduce PAPER does one again; --quick gives a first look in seconds.")?;
    Ok(Outcome::Done)
}

/// Writes the report and the verdicts, each whole or not at all.
fn keep(dir: &Path, study: &Study, results: &Results, judged: &[Judged]) -> Result<(), String> {
    let page = giveway_papers::document(study, results, judged).html();
    let verdicts = format!("{:#}\n", giveway_papers::json(study, results, judged));
    // The claims first: they say whose the folder is.
    for (name, text) in [(CLAIMS, verdicts), (giveway_record::REPORT, page)] {
        giveway_record::report::write(&dir.join(name), &text).map_err(|error| error.to_string())?;
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
    if results.finished < results.planned {
        writeln!(
            out,
            "{} of {} runs finished: verdicts are about those.",
            results.finished, results.planned
        )?;
    }
    if quick {
        writeln!(
            out,
            "A first look: shorter runs and {} seeds. Without --quick it is the paper's.",
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
        Verdict::NotTestable => terminal::faint(word),
    }
}
