//! The page of a study: verdicts, decisions and figures, also under other variants.

use giveway_document::{Cell, Document, Part, Sheet, Tone};

use crate::drawing;
use crate::fact::Measured;
use crate::forest;
use crate::measure::Unit;
use crate::study::{Results, Study};
use crate::verdict::{Judged, Verdict, counted, flowing, rounded};

/// The page of a study.
pub fn document(study: &Study, results: &Results, judged: &[Judged]) -> Document {
    let about = &study.paper.about;
    let mut parts = vec![Part::Text(summary(study, results, judged))];
    parts.extend(interrupted(results).map(Part::Text));
    parts.push(Part::Table(verdicts(judged)));
    parts.extend(forest::of(judged).map(Part::Forest));
    parts.push(Part::Heading("The paper".to_owned()));
    parts.push(Part::Text(flowing(&about.about)));
    if !about.conclusion.is_empty() && !study.scope.quick && study.scope.figure.is_none() {
        parts.push(Part::Heading("Conclusion".to_owned()));
        parts.push(Part::Text(about.conclusion.clone()));
    }
    let reasons = reasons(judged);
    if !reasons.is_empty() {
        parts.push(Part::Heading(REASONS.to_owned()));
        parts.push(Part::List(reasons));
    }
    if !judged.iter().all(|claim| claim.otherwise.is_empty()) {
        parts.push(Part::Heading("The verdicts under other assumptions".to_owned()));
        parts.push(Part::Table(otherwise(study, judged)));
    }
    let mut number = 0;
    for section in study.sections() {
        parts.push(Part::Heading(section.title.clone()));
        parts.push(Part::Text(flowing(&section.text)));
        for figure in study.figures(section) {
            number += 1;
            parts.push(Part::Figure(drawing::figure(number, figure, section, study, results)));
        }
    }
    if let Some(sheet) = measured(study) {
        parts.push(Part::Heading(MEASURED.to_owned()));
        parts.push(Part::Table(sheet));
    }
    parts.push(Part::Heading("Open questions of the paper, and our decisions".to_owned()));
    parts.push(Part::Table(decisions(study)));
    let tests: Vec<String> = judged
        .iter()
        .flat_map(|claim| claim.tests.iter().map(|test| format!("{}: {}", claim.id, test.said)))
        .collect();
    if !results.missing.is_empty() {
        let summary = "Runs that did not finish".to_owned();
        parts.push(Part::Details { summary, text: results.missing.join("\n") });
    }
    parts.push(Part::Details { summary: "Every test, with its numbers".to_owned(), text: tests.join("\n") });
    for (name, text) in &study.paper.scenarios {
        parts.push(Part::Details { summary: format!("The scenario {name}"), text: text.clone() });
    }
    Document {
        title: about.title.clone(),
        subtitle: match &about.doi {
            Some(doi) => format!("{}, {}, doi {doi}", about.authors, about.published),
            None => format!("{}, {}", about.authors, about.published),
        },
        parts,
    }
}

/// The heading of the reasons.
pub(crate) const REASONS: &str = "Differences and their reasons, and notes";

/// The claims with a reason or a note, each with its text.
pub(crate) fn reasons(judged: &[Judged]) -> Vec<String> {
    let explained = judged.iter().filter(|claim| !claim.why.is_empty());
    explained.map(|claim| format!("{}. {}", claim.statement.trim_end_matches('.'), claim.why)).collect()
}

fn summary(study: &Study, results: &Results, judged: &[Judged]) -> String {
    let mut text = counted(judged);
    text.push_str(
        " A claim reproduces if each of its tests holds for the mean over the seeds, and for at least 8 of 10 seeds.",
    );
    text.push_str(&format!(" {} runs, up to {} seeds each.", results.finished, study.seeds()));
    if study.scope.quick {
        text.push_str(
            " This is a quick study, with shorter runs and few seeds: its verdicts are only hints.",
        );
    }
    text
}

/// The state of a study with runs that did not finish, and the way to finish it.
pub fn interrupted(results: &Results) -> Option<String> {
    let missing = results.planned - results.finished;
    (missing > 0).then(|| {
        format!(
            "This study is incomplete: {missing} of {} runs did not finish. Claims that need them have no verdict (\"not run\"). \
             The same command resumes: it keeps the finished runs.",
            results.planned
        )
    })
}

/// The table of claims with their verdicts.
pub(crate) fn verdicts(judged: &[Judged]) -> Sheet {
    let row = |claim: &Judged| {
        vec![
            plain(claim.figure.as_deref().unwrap_or("")),
            plain(&format!("{} ({})", claim.statement, claim.source)),
            plain(&claim.paper),
            plain(&claim.ours),
            verdict(claim.verdict),
        ]
    };
    Sheet {
        caption: "The claims in our words, and our measurements. In brackets: the band, which was fixed before the measurement, and the number of seeds in it.".to_owned(),
        head: ["figure", "claim", "paper", "ours", "verdict"].map(str::to_owned).to_vec(),
        rows: judged.iter().map(row).collect(),
    }
}

/// The table of claims whose verdict changes under another variant.
pub(crate) fn otherwise(study: &Study, judged: &[Judged]) -> Sheet {
    let variants = &study.paper.about.variant;
    let mut head = vec!["claim".to_owned()];
    head.extend(variants.iter().map(|variant| variant.short.clone()));
    let row = |claim: &Judged| {
        let mut row = vec![plain(&claim.statement), verdict(claim.verdict)];
        for variant in &variants[1..] {
            let found = claim.otherwise.iter().find(|(name, _)| *name == variant.name);
            row.push(found.map_or_else(
                || Cell { text: "-".to_owned(), tone: Tone::Faint },
                |(_, other)| verdict(*other),
            ));
        }
        row
    };
    let changes = |claim: &&Judged| claim.otherwise.iter().any(|(_, verdict)| *verdict != claim.verdict);
    let names: Vec<String> =
        variants.iter().map(|variant| format!("{}: {}", variant.short, variant.name)).collect();
    Sheet {
        caption: format!(
            "Claims whose verdict depends on the decisions that the paper leaves open. All other claims have the same verdict under every \
             assumption. The first column of verdicts counts. {}.",
            names.join("; ")
        ),
        head,
        rows: judged.iter().filter(changes).map(row).collect(),
    }
}

/// The table of decisions that the paper leaves open.
pub(crate) fn decisions(study: &Study) -> Sheet {
    let decisions = &study.paper.about.decision;
    let before = || "All decisions were taken before any result was known.".to_owned();
    Sheet {
        caption: study.paper.about.decided.clone().unwrap_or_else(before),
        head: ["question", "decision", "reason"].map(str::to_owned).to_vec(),
        rows: decisions
            .iter()
            .map(|decision| vec![plain(&decision.what), plain(&decision.chosen), plain(&decision.why)])
            .collect(),
    }
}

/// The heading of numbers that were measured outside the study.
pub(crate) const MEASURED: &str = "Measured outside the study";

/// The table of numbers that were measured outside the study; `None` if there are none.
pub(crate) fn measured(study: &Study) -> Option<Sheet> {
    let measured = &study.paper.measured;
    let row = |of: &Measured| {
        let value = rounded(of.value, Unit::Plain);
        vec![plain(&of.what), plain(&value), plain(&of.how), plain(&of.machine), plain(&of.date)]
    };
    (!measured.is_empty()).then(|| Sheet {
        caption:
            "A study has no privileges and measures no memory, so these numbers are stored with the paper."
                .to_owned(),
        head: ["quantity", "value", "command", "machine", "date"].map(str::to_owned).to_vec(),
        rows: measured.iter().map(row).collect(),
    })
}

fn plain(text: &str) -> Cell {
    Cell { text: flowing(text), tone: Tone::Plain }
}

fn verdict(verdict: Verdict) -> Cell {
    let tone = match verdict {
        Verdict::Reproduces => Tone::Good,
        Verdict::Differs => Tone::Bad,
        Verdict::NotTestable | Verdict::NotRun => Tone::Open,
    };
    Cell { text: verdict.word().to_owned(), tone }
}
