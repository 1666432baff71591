//! The table `docs/varying.csv`: a row for each scenario with a link that varies and each discipline.

use std::fmt;

/// The file, relative to the repository.
pub const FILE: &str = "docs/varying.csv";
/// Its first line.
pub const HEADER: &str =
    "scenario,discipline,used_percent,goodput_mbit,delay_mean_ms,delay_p99_ms,loss_percent";

/// Means over the seeds of a scenario with one discipline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub scenario: String,
    pub discipline: String,
    /// Bytes that the link sent, of those that it offered.
    pub used_percent: f64,
    /// Goodput of TCP over the measured link.
    pub goodput_mbit: f64,
    /// One-way delay and loss of the call.
    pub delay_mean_ms: f64,
    pub delay_p99_ms: f64,
    pub loss_percent: f64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            scenario,
            discipline,
            used_percent,
            goodput_mbit,
            delay_mean_ms,
            delay_p99_ms,
            loss_percent,
        } = self;
        write!(
            f,
            "{scenario},{discipline},{used_percent:.1},{goodput_mbit:.2},{delay_mean_ms:.1},{delay_p99_ms:.1},\
             {loss_percent:.2}"
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
    let [scenario, discipline, used, goodput, mean, p99, loss] = fields[..] else { return None };
    Some(Row {
        scenario: scenario.to_owned(),
        discipline: discipline.to_owned(),
        used_percent: used.parse().ok()?,
        goodput_mbit: goodput.parse().ok()?,
        delay_mean_ms: mean.parse().ok()?,
        delay_p99_ms: p99.parse().ok()?,
        loss_percent: loss.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let written = Row {
            scenario: "lte".to_owned(),
            discipline: "fifo limit 1000p".to_owned(),
            used_percent: 99.5,
            goodput_mbit: 12.25,
            delay_mean_ms: 3.0,
            delay_p99_ms: 4.5,
            loss_percent: 0.25,
        };
        assert_eq!(parse(&format!("{HEADER}\n{written}\n")).unwrap(), [written]);
        for wrong in ["", "lte,fifo,1,2,3,4", "lte,fifo,1,2,3,4,x"] {
            assert!(row(wrong).is_none(), "{wrong}");
        }
        assert!(parse("").is_err());
    }
}
