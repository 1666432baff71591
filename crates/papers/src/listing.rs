//! Verdicts as text: in a sentence, as JSON, and as a page of the book.

use giveway_document::{Cell, Sheet, Tone};
use serde_json::{Value, json};

use crate::report;
use crate::study::{Results, Study};
use crate::verdict::{Judged, counted, flowing};

/// The verdicts as JSON: `paper`, `title`, `seeds`, `quick`, `runs` and `claims`. Each claim has `id`,
/// `source`, `statement`, `paper`, `ours`, `verdict`, `why`, `figure`, `tests` and `otherwise`.
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

/// The verdicts as a page of the book, in Markdown: the tables of the report, and the text around them.
pub fn markdown(study: &Study, judged: &[Judged]) -> String {
    let about = &study.paper.about;
    let mut parts = vec![
        format!("# {}", about.title),
        match &about.doi {
            Some(doi) => {
                format!("{}, {}. [doi:{doi}](https://doi.org/{doi})", about.authors, about.published)
            }
            None => format!("{}, {}.", about.authors, about.published),
        },
        flowing(&about.about),
        format!(
            "`giveway reproduce {}` makes this page and a report with every figure. {} seeds; a claim reproduces if its tests \
             hold for the mean and for at least 8 of 10 seeds. {}",
            study.paper.id,
            study.seeds(),
            counted(judged)
        ),
    ];
    if !about.conclusion.is_empty() {
        parts.push("## Conclusion".to_owned());
        parts.extend(about.conclusion.trim().split("\n\n").map(flowing));
    }
    parts.push("## Verdicts".to_owned());
    parts.push(table(&report::verdicts(judged)));
    let more = report::reasons(judged);
    if !more.is_empty() {
        parts.push(format!("## {}", report::REASONS));
        parts.push(more.iter().map(|reason| format!("- {reason}")).collect::<Vec<_>>().join("\n"));
    }
    for figure in about.figure.iter().filter(|figure| figure.book) {
        parts.push(format!("## {}", figure.title));
        parts.push(format!("![{}]({})", figure.title, picture(&study.paper.id, &figure.id)));
        parts.push(flowing(&figure.caption));
    }
    if about.variant.len() > 1 {
        parts.push("## The verdicts under other assumptions".to_owned());
        parts.push(table(&report::otherwise(study, judged)));
    }
    if let Some(sheet) = report::measured(study) {
        parts.push(format!("## {}", report::MEASURED));
        parts.push(table(&sheet));
    }
    parts.push("## Open questions of the paper, and our decisions".to_owned());
    parts.push(table(&report::decisions(study)));
    parts.join("\n\n") + "\n"
}

/// The name of the file of a figure, next to the page, without spaces: links cannot contain any.
fn picture(paper: &str, figure: &str) -> String {
    format!("{paper}-{}.svg", figure.replace(' ', "-"))
}

/// A table of the report, with its caption.
fn table(sheet: &Sheet) -> String {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let plain = |cell: &Cell| {
        let text = cell.text.replace('|', "\\|");
        if cell.tone == Tone::Bad { format!("**{text}**") } else { text }
    };
    let mut lines = vec![sheet.caption.clone(), String::new(), row(sheet.head.clone())];
    lines.push(row(sheet.head.iter().map(|_| "---".to_owned()).collect()));
    lines.extend(sheet.rows.iter().map(|cells| row(cells.iter().map(plain).collect())));
    lines.join("\n")
}
