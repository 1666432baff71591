//! The table `docs/cards.csv`: a row for each deployed discipline, each baseline and each question of a card.

use std::fmt;

/// The file, relative to the repository.
pub const FILE: &str = "docs/cards.csv";
/// Its first line.
pub const HEADER: &str = "discipline,baseline,question,verdict,better,worse,same,undecided,opposite,ratio";

/// The verdicts on a question: numbers of metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub discipline: String,
    pub baseline: String,
    /// The question in one word, such as `delay`.
    pub question: String,
    /// The verdict in words, such as `better`.
    pub verdict: String,
    pub better: u32,
    pub worse: u32,
    /// No difference that matters.
    pub same: u32,
    pub undecided: u32,
    /// The verdicts that are the opposite with the timing of real machines.
    pub opposite: u32,
    /// The median ratio of the values to those of the baseline; above 1 the discipline has the better ones.
    /// `None` if no metric has positive values.
    pub ratio: Option<f64>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { discipline, baseline, question, verdict, better, worse, same, undecided, opposite, ratio } =
            self;
        let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        write!(
            f,
            "{discipline},{baseline},{question},{verdict},{better},{worse},{same},{undecided},{opposite},{ratio}"
        )
    }
}

/// The rows, in the order of the file.
///
/// # Errors
/// The first line that is not a row.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    if text.lines().next() != Some(HEADER) {
        return Err(format!("{FILE}, line 1: {HEADER} is expected"));
    }
    let rows = text.lines().enumerate().skip(1).map(|(number, line)| {
        row(line).ok_or_else(|| format!("{FILE}, line {}: {HEADER} is expected", number + 1))
    });
    rows.collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let [discipline, baseline, question, verdict, better, worse, same, undecided, opposite, ratio] =
        fields[..]
    else {
        return None;
    };
    Some(Row {
        discipline: discipline.to_owned(),
        baseline: baseline.to_owned(),
        question: question.to_owned(),
        verdict: verdict.to_owned(),
        better: better.parse().ok()?,
        worse: worse.parse().ok()?,
        same: same.parse().ok()?,
        undecided: undecided.parse().ok()?,
        opposite: opposite.parse().ok()?,
        ratio: if ratio.is_empty() { None } else { Some(ratio.parse().ok()?) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let written = Row {
            discipline: "fq_codel".to_owned(),
            baseline: "fifo".to_owned(),
            question: "delay".to_owned(),
            verdict: "better".to_owned(),
            better: 40,
            same: 3,
            opposite: 1,
            ratio: Some(12.5),
            ..Row::default()
        };
        let without = Row { ratio: None, ..written.clone() };
        assert_eq!(parse(&format!("{HEADER}\n{written}\n{without}\n")).unwrap(), [written, without]);
        for wrong in ["", "fq_codel,fifo,delay,better,1,2,3,4,5", "fq_codel,fifo,delay,better,1,2,3,4,x,"] {
            assert!(row(wrong).is_none(), "{wrong}");
        }
        assert!(parse("").is_err());
    }
}
