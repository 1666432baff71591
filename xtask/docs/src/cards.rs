//! The page with the cards of the disciplines of Linux, from `docs/cards.csv`.

#[path = "../../src/cards/table.rs"]
mod table;

use std::path::Path;

use crate::recorded::{self, Column};
use giveway_evaluate::Question;
use table::QuestionVerdicts;

const TEXT: &str = "\
# Cards of the disciplines of Linux

`cargo xtask cards` makes [the card](../evaluate.md) of every discipline of Linux that needs no setting, each with its defaults here, and writes \
`docs/cards.csv`, from which this page is made. The cards themselves, with every metric of every cell, are then in `target/cards/index.html`. \
`giveway evaluate --deployed --tune 0 --no-sensitivity` makes the same.

Each entry has the verdict on a question against a baseline, and the numbers of metrics in which the discipline is better (+), worse (-), without a \
difference that matters (=), and undecided (?). An entry with both better and worse metrics is *both*. An exclamation mark says that a verdict is the \
opposite with the timing of real machines.
";

/// The conclusions, which were drawn from the table as it is. Read them again when it is measured again.
const FINDINGS: &str = "
## Findings

1. **The default of an interface is a FIFO.** `pfifo_fast` is neither better nor worse than `fifo` in any metric.
2. **Everything else keeps delays lower.** Of 63 delays, 56 to 61 are better than with `fifo`, and 46 with `drr` and `qfq`. The median delay falls to a \
12th to a 30th.
3. **Queues for flows matter more than the rule for drops.** Without them (`red`, `ared`, `gred`, `choke`, `codel`, `pie`, `sfb`, `dualpi2`) 44 to 52 delays \
are worse than with `fq_codel`, and 11 to 15 of 24 completion times. With another rule for drops in each queue, `fq_pie`, 12 delays are worse, and no \
completion time.
4. **Of the disciplines without queues for flows, `codel` has the lowest delays.** They are 1.5 times those of `fq_codel` in the median, and 1.8 to 2.3 times with \
the others.
5. **Early drops cost a little of the link.** Disciplines with early drops use it less than `fifo` in 9 to 16 of 48 metrics, by less than 1 % in the median. \
`sfb` uses it less in 29, by 13 %. Its defaults do not suit these links.
6. **Fair queues without early drops use the link and delay more.** `drr`, `sfq` and `fq` use the link more than `fq_codel` in 13 or 14 metrics, and 28 to 37 of \
their delays are worse. More than half of these are delays of calls, streams and pings.
7. **Early drops alone do not make a queue safe.** `pie`, `ared`, `codel` and `dualpi2` are worse than `fifo` in more metrics of safety than they are \
better; with `pie` 6 of 10 are losses of calls and streams. Disciplines with a queue for each flow are better in 9 to 13 of 33, and worse in 3 to 5.
8. **`cake` trades completion times for delays.** Against `fq_codel` 15 delays are better and 4 worse, but 7 completion times are worse and 1 is better, and it \
uses the link less in 5 metrics.
9. **A queue for each flow costs instructions.** `codel` and `pie` need at most a tenth more than `fifo`, `fq_codel` 1.6 times as many, `cake` twice as many, \
`sfb` 2.8 times. `qfq` decides as `drr` does if all weights are equal, with 3.2 times the instructions of `fifo`.
10. **The timing of real machines changes few verdicts to the opposite:** 36 of 9,408.
";

pub fn page(root: &Path) -> Result<String, String> {
    let rows: Vec<QuestionVerdicts> = recorded::read(root)?;
    let mut page = TEXT.to_owned();
    page.push_str(FINDINGS);
    // A baseline has no card against itself, so the order is that of its first use.
    let mut baselines: Vec<&str> = Vec::new();
    for row in &rows {
        if !baselines.contains(&&*row.baseline) {
            baselines.push(&row.baseline);
        }
    }
    for baseline in baselines {
        let rows: Vec<&QuestionVerdicts> = rows.iter().filter(|row| row.baseline == baseline).collect();
        page.push_str(&format!("\n## Against `{baseline}`\n\n{}", against(&rows)));
    }
    Ok(page)
}

/// The name of a question in the table, as in JSON.
fn key(question: Question) -> String {
    serde_json::to_value(question).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The table of a baseline: a row for each discipline, a column for each question.
fn against(rows: &[&QuestionVerdicts]) -> String {
    let verdict = |discipline: &str, question: &str| {
        let row = rows.iter().find(|row| row.discipline == discipline && row.question == question);
        row.map_or_else(String::new, |row| entry(row))
    };
    let cells = Question::ALL.map(key).map(|question| move |discipline: &str| verdict(discipline, &question));
    let mut columns: Vec<Column<'_, &str>> =
        vec![("discipline", "---", &|discipline| format!("`{discipline}`"))];
    columns.extend(
        Question::ALL.iter().zip(&cells).map(|(question, cell)| (question.label(), "---", cell as _)),
    );
    let mut disciplines: Vec<&str> = rows.iter().map(|row| &*row.discipline).collect();
    disciplines.dedup();
    recorded::table(&columns, disciplines)
}

/// A verdict with its numbers.
fn entry(row: &QuestionVerdicts) -> String {
    let numbers = [(row.better, "+"), (row.worse, "-"), (row.same, "="), (row.undecided, "?")];
    let some = numbers.into_iter().filter(|(count, _)| *count > 0);
    let numbers: Vec<String> = some.map(|(count, sign)| format!("{sign}{count}")).collect();
    let mark = if row.opposite > 0 { "!" } else { "" };
    format!("{}{mark} {}", row.verdict, numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_discipline_and_a_column_for_each_question() {
        let row = |discipline: &str, question: &str, better| QuestionVerdicts {
            discipline: discipline.to_owned(),
            question: question.to_owned(),
            verdict: "better".to_owned(),
            better,
            same: 2,
            ..QuestionVerdicts::default()
        };
        let rows = [
            row("pie", "delay", 3),
            QuestionVerdicts { opposite: 1, ..row("pie", "cost", 4) },
            row("sfq", "delay", 5),
        ];
        let out = against(&rows.iter().collect::<Vec<_>>());
        assert!(out.contains("| discipline | keeps delays low | completes transfers soon |"), "{out}");
        assert!(out.contains("\n| `pie` | better +3 =2 |  |  |  |  | better! +4 =2 |\n"), "{out}");
        assert!(out.ends_with("| `sfq` | better +5 =2 |  |  |  |  |  |\n"), "{out}");
    }
}
