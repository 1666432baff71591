//! Verdicts as text: for the terminal, as JSON, and as a page of the book.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::study::{Results, Study};
use crate::verdict::{Judged, Verdict, flowing};

/// For the terminal: what `bold` and `faint` do to a word is the caller's; lines are not wrapped.
pub fn terminal(
    study: &Study,
    results: &Results,
    judged: &[Judged],
    mark: &dyn Fn(Verdict) -> String,
) -> String {
    let mut text = String::new();
    let mut last: Option<&Option<String>> = None;
    for claim in judged {
        if last != Some(&claim.figure) {
            let head = claim.figure.as_ref().map_or_else(
                || "The introduction's objectives".to_owned(),
                |id| match study.paper.about.figure(id) {
                    Some(figure) => format!("Figure {id}: {}", figure.title),
                    None => format!("Figure {id}"),
                },
            );
            let _ = writeln!(text, "{}{head}", if text.is_empty() { "" } else { "\n" });
            last = Some(&claim.figure);
        }
        let _ = writeln!(text, "  {} {}", mark(claim.verdict), claim.statement);
        let _ = writeln!(text, "      paper  {} ({})", claim.paper, claim.source);
        let _ = writeln!(text, "      ours   {}", claim.ours);
        if !claim.why.is_empty() {
            let word = if claim.verdict == Verdict::Reproduces { "note" } else { "why " };
            let _ = writeln!(text, "      {word}   {}", claim.why);
        }
    }
    let _ = writeln!(text, "\n{}", counted(judged));
    if results.finished < results.planned {
        let _ = writeln!(
            text,
            "{} of {} runs finished: verdicts are about those.",
            results.finished, results.planned
        );
    }
    if study.scope.quick {
        let _ = writeln!(
            text,
            "A first look: shorter runs and {} seeds. Without --quick it is the paper's.",
            study.seeds()
        );
    }
    text
}

/// "40 reproduce, 7 differ, 1 cannot be tested, of 48 claims".
pub(crate) fn counted(judged: &[Judged]) -> String {
    let count = |verdict| judged.iter().filter(|claim| claim.verdict == verdict).count();
    format!(
        "{} reproduce, {} differ, {} could not be tested, of {} claims.",
        count(Verdict::Reproduces),
        count(Verdict::Differs),
        count(Verdict::NotTestable),
        judged.len()
    )
}

/// As JSON: `paper`, `title`, `seeds`, `quick`, `runs`, and `claims` with `id`, `source`, `statement`, `paper`, `ours`, `verdict`,
/// `why`, `figure`, `tests` and `otherwise` each.
pub fn json(study: &Study, results: &Results, judged: &[Judged]) -> Value {
    json!({
        "paper": study.paper.id,
        "title": study.paper.about.title,
        "quick": study.scope.quick,
        "seeds": study.seeds(),
        "runs": { "finished": results.finished, "planned": results.planned },
        "claims": judged,
    })
}

/// A page of the book.
pub fn markdown(study: &Study, judged: &[Judged]) -> String {
    let about = &study.paper.about;
    let mut text = format!(
        "# {}\n\n{}, {}. [doi:{}](https://doi.org/{})\n\n",
        about.title, about.authors, about.published, about.doi, about.doi
    );
    let _ = writeln!(text, "{}\n", flowing(&about.about));
    let _ = writeln!(
        text,
        "`giveway reproduce {}` makes this page and a report with every figure. {} seeds; a claim reproduces when its tests hold for the mean and for at least 8 of 10 seeds. {}\n",
        study.paper.id,
        study.seeds(),
        counted(judged)
    );
    if !about.conclusion.is_empty() {
        let paragraphs: Vec<String> = about.conclusion.trim().split("\n\n").map(flowing).collect();
        let _ = writeln!(text, "## What it comes to\n\n{}\n", paragraphs.join("\n\n"));
    }
    let _ = writeln!(text, "## Verdicts\n\n| claim | paper | ours | verdict |\n| --- | --- | --- | --- |");
    for claim in judged {
        let verdict = if claim.verdict == Verdict::Reproduces {
            "reproduces".to_owned()
        } else {
            format!("**{}**", claim.verdict.word())
        };
        let _ = writeln!(
            text,
            "| {} ({}) | {} | {} | {verdict} |",
            cell(&claim.statement),
            cell(&claim.source),
            cell(&claim.paper),
            cell(&claim.ours)
        );
    }
    let why: Vec<&Judged> = judged.iter().filter(|claim| !claim.why.is_empty()).collect();
    if !why.is_empty() {
        let _ = writeln!(text, "\n## Where we see something else and why, and where more is to be said\n");
        for claim in why {
            let _ = writeln!(
                text,
                "- **{}** {}",
                claim.statement.trim_end_matches('.').to_owned() + ".",
                claim.why
            );
        }
    }
    let _ = writeln!(text, "\n## Under other assumptions\n\nWhere the verdict would be another one:\n");
    let changes: Vec<String> = judged
        .iter()
        .flat_map(|claim| {
            let changed = claim.otherwise.iter().filter(|(_, verdict)| *verdict != claim.verdict);
            changed.map(move |(variant, verdict)| {
                format!("- {}: {} if {variant}.", claim.statement, verdict.word())
            })
        })
        .collect();
    let _ = writeln!(text, "{}", if changes.is_empty() { "Nowhere.".to_owned() } else { changes.join("\n") });
    let _ = writeln!(
        text,
        "\n## What the paper leaves open, and what we chose\n\nDecided before any result was looked at.\n\n| what | chosen | why |\n| --- | --- | --- |"
    );
    for decision in &about.decision {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            cell(&decision.what),
            cell(&decision.chosen),
            cell(&decision.why)
        );
    }
    text
}

fn cell(text: &str) -> String {
    flowing(text).replace('|', "\\|")
}
