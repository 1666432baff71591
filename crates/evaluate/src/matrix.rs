//! Verdicts as a matrix: a row for each question or discipline, with a word and the numbers of metrics in
//! each cell.

use giveway_document::{Sign, Tone, VerdictCell};

use crate::card::{Card, Counts};
use crate::question::Question;
use crate::verdict::Verdict;

/// The caption of a matrix.
pub(crate) const LEGEND: &str =
    "Numbers of metrics: + better, - worse, = no difference that matters, ? undecided.";

/// The tone of a verdict.
pub(crate) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Same => Tone::Same,
        Verdict::Unknown => Tone::Open,
    }
}

/// The sign of a verdict.
pub(crate) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "+",
        Verdict::Worse => "-",
        Verdict::Same => "=",
        Verdict::Unknown => "?",
    }
}

/// A cell with the verdict on a question and the numbers of its metrics. `about` is the sentence that the
/// mouse shows.
pub(crate) fn cell(counts: &Counts, about: String) -> VerdictCell {
    let numbers = [
        (counts.better, Verdict::Better),
        (counts.worse, Verdict::Worse),
        (counts.same, Verdict::Same),
        (counts.unknown, Verdict::Unknown),
    ];
    let some = numbers.into_iter().filter(|(count, _)| *count > 0);
    let signs =
        some.map(|(count, verdict)| Sign { text: format!("{}{count}", sign(verdict)), tone: tone(verdict) });
    VerdictCell { word: counts.word(), tone: counts.tone(), about, signs: signs.collect() }
}

/// The columns of the baselines of a card.
pub(crate) fn against(card: &Card) -> Vec<String> {
    card.names[1..].iter().map(|name| format!("against {name}")).collect()
}

/// The rows of a card: a question, and a cell for each baseline.
pub(crate) fn rows(
    card: &Card,
    cell: impl Fn(usize, Question) -> VerdictCell,
) -> Vec<(String, Vec<Option<VerdictCell>>)> {
    let row = |question: Question| {
        let cells = (0..card.request.against.len()).map(|baseline| Some(cell(baseline, question)));
        (question.label().to_owned(), cells.collect())
    };
    card.questions().into_iter().map(row).collect()
}
