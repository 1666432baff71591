//! A card as a page: the matrix at a glance, what is uncertain, and every verdict.

use giveway_document::{Cell as Field, Document, Part, Sheet, Sign, Tone, VerdictCell, Verdicts};

use crate::card::{Card, Line};
use crate::matrix::{self, LEGEND, sign, tone};
use crate::question::Question;
use crate::show::{
    GAIN, abouts, certainty, more_seeds, of_ratio, of_states, sentence, size, sums, times_limit,
};
use crate::varied;
use giveway_measure::{amount, of_metric};

/// The page of a card.
pub fn page(card: &Card) -> Document {
    let request = &card.request;
    let mut parts = vec![Part::Verdicts(matrix(card)), Part::List(abouts(card))];
    if !card.pooled.is_empty() {
        parts.push(Part::Table(sums_sheet(card)));
    }
    parts.push(Part::Text(certainty(card)));
    parts.extend(more_seeds(card).map(Part::Text));
    let mut doubts: Vec<String> = card.unstable.iter().map(|found| of_states(card, found)).collect();
    doubts.extend(
        card.lines
            .iter()
            .filter(|line| line.flips())
            .map(|line| format!("The opposite with the timing of real machines: {}", sentence(card, line))),
    );
    if !doubts.is_empty() {
        parts.push(Part::Heading("What no mean says".to_owned()));
        parts.push(Part::List(doubts));
    }
    parts.extend(varied::parts(card));
    for (baseline, name) in card.names[1..].iter().enumerate() {
        parts.push(Part::Heading(format!("Against {name}")));
        parts.push(Part::Verdicts(by_cell(card, baseline)));
        parts.push(Part::Table(table(card, baseline)));
    }
    parts.push(Part::Heading("Cells".to_owned()));
    parts.push(Part::Table(cells(card)));
    Document {
        title: format!("Card of {}", card.names[0]),
        subtitle: format!(
            "{} against {}; {} cells, {} seeds, {}; Giveway {}",
            request.candidate,
            request.against.join(", "),
            request.cells.len(),
            request.seeds,
            size(card),
            giveway_sources::SIMULATION
        ),
        parts,
    }
}

/// The mean gains over the metrics of a question.
fn sums_sheet(card: &Card) -> Sheet {
    let mut rows = sums(card).into_iter();
    Sheet {
        caption: format!(
            "In sum over the metrics of a question: {GAIN}, with its 95 % interval. It finds small differences in many metrics, \
             and does not say in which."
        ),
        head: rows.next().unwrap_or_default(),
        rows: rows.map(|row| row.into_iter().map(Field::plain).collect()).collect(),
    }
}

/// The verdicts by question and baseline.
fn matrix(card: &Card) -> Verdicts {
    let rows = matrix::rows(card, |baseline, question| {
        let counts = card.counts(question, baseline);
        let ratio = card
            .ratio(question, baseline)
            .map(|ratio| format!(" The median of the values is {} times as good.", amount(ratio, "1")));
        let about = format!(
            "{} better than {} in {} metrics, worse in {}; no difference that matters in {}; {} undecided.{}",
            card.names[0],
            card.names[baseline + 1],
            counts.better,
            counts.worse,
            counts.same,
            counts.unknown,
            ratio.unwrap_or_default()
        );
        matrix::cell(&counts, about)
    });
    Verdicts {
        id: "card".to_owned(),
        title: format!("{} at a glance", card.names[0]),
        caption: format!(
            "{LEGEND} Blue is better, orange worse, grey no difference, and a dashed border undecided: more seeds may decide it. A ! \
             marks verdicts that are the opposite with the timing of real machines."
        ),
        columns: matrix::against(card),
        rows,
    }
}

/// The verdicts of each cell, by question.
fn by_cell(card: &Card, baseline: usize) -> Verdicts {
    let questions: Vec<Question> =
        card.questions().into_iter().filter(|question| *question != Question::Cost).collect();
    let cell = |at: usize, question: &Question| {
        let own = |line: &&Line| (line.baseline, line.cell, line.question) == (baseline, Some(at), *question);
        let lines: Vec<&Line> = card.lines.iter().filter(own).collect();
        let verdicts = || lines.iter().map(|line| line.compared.verdict);
        let first = verdicts().next()?;
        let alike = verdicts().all(|verdict| verdict == first);
        let signs = verdicts().map(|verdict| Sign { text: sign(verdict).to_owned(), tone: tone(verdict) });
        Some(VerdictCell {
            word: String::new(),
            tone: if alike { tone(first) } else { Tone::Plain },
            about: lines.iter().map(|line| sentence(card, line)).collect::<Vec<_>>().join("; "),
            signs: signs.collect(),
        })
    };
    let row = |(at, of): (usize, &crate::cells::Cell)| {
        (of.name.clone(), questions.iter().map(|question| cell(at, question)).collect())
    };
    Verdicts {
        id: format!("cells-{baseline}"),
        title: format!("{} against {}, cell by cell", card.names[0], card.names[baseline + 1]),
        caption: "A sign for each metric of the cell.".to_owned(),
        columns: questions.iter().map(|question| question.label().to_owned()).collect(),
        rows: card.request.cells.iter().enumerate().map(row).collect(),
    }
}

/// Every verdict against a baseline, the largest differences first.
fn table(card: &Card, baseline: usize) -> Sheet {
    let mut lines: Vec<&Line> = card.lines.iter().filter(|line| line.baseline == baseline).collect();
    lines.sort_by(|a, b| times_limit(b).total_cmp(&times_limit(a)));
    let row = |line: &&Line| {
        let compared = &line.compared;
        let value = |of: fn(&giveway_measure::Difference) -> Option<f64>| {
            let number =
                compared.difference.as_ref().and_then(of).map(|value| of_metric(&line.metric, value));
            Field::plain(number.unwrap_or_else(|| "-".to_owned()))
        };
        let late = match line.measured {
            Some(verdict) if verdict != compared.verdict => verdict.label().to_owned(),
            Some(_) => "the same".to_owned(),
            None => "-".to_owned(),
        };
        vec![
            Field::plain(line.cell.map_or("cost", |cell| card.request.cells[cell].name.as_str())),
            Field::plain(line.metric.clone()),
            value(|found| Some(found.after)),
            value(|found| Some(found.before)),
            match compared.difference.as_ref().and_then(|found| found.ratio) {
                Some(ratio) => Field::plain(of_ratio(ratio)),
                None => value(|found| found.ci95),
            },
            Field::plain(match compared.difference {
                Some(_) => of_metric(&line.metric, compared.limit),
                None => "-".to_owned(),
            }),
            Field::plain(compared.effect.map_or_else(|| "-".to_owned(), |effect| amount(effect, "1"))),
            Field { text: compared.verdict.label().to_owned(), tone: tone(compared.verdict) },
            Field::plain(compared.needed.map_or_else(|| "-".to_owned(), |needed| needed.to_string())),
            Field::plain(late),
        ]
    };
    Sheet {
        caption: "The largest differences first, in units of what matters. The effect is in standard deviations of the paired \
                  differences. The seeds are those that would show the observed difference of an undecided metric, if it would \
                  matter (power 80 %)."
            .to_owned(),
        head: ["cell", "metric", "value", "baseline", "± or ratio", "matters", "effect", "verdict", "seeds", "real timing"]
            .map(str::to_owned)
            .to_vec(),
        rows: lines.iter().map(row).collect(),
    }
}

/// One row for each cell: its title, shape and source.
fn cells(card: &Card) -> Sheet {
    let row = |cell: &crate::cells::Cell| {
        let place = [cell.source.as_str(), cell.section.as_str()].into_iter().filter(|part| !part.is_empty());
        vec![
            Field::plain(cell.name.clone()),
            Field::plain(cell.title.clone()),
            Field::plain(cell.shape.clone()),
            Field::plain(place.collect::<Vec<_>>().join(", ")),
        ]
    };
    Sheet {
        caption: String::new(),
        head: ["cell", "about", "rate; round-trip times; traffic", "from"].map(str::to_owned).to_vec(),
        rows: card.request.cells.iter().map(row).collect(),
    }
}
