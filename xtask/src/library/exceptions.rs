//! The predictions that are known to miss their bounds, each with its error and the reason.
//!
//! The list is complete and true: a bound that is missed is in it, and an entry that meets its bound again,
//! or has another error, is a fault of the list.

use serde::Deserialize;

use super::measure::{BOUNDS, QUANTILES};
use super::rows::Prediction;

/// The file of the list.
pub const FILE: &str = "examples/library/exceptions.toml";
/// Largest distance of an error from the one in the list, in percentage points.
const NEAR: f64 = 3.0;

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    #[serde(default)]
    exception: Vec<Exception>,
}

/// A prediction outside its bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// Name of the cell, as in `10mbit-cubic`.
    cell: String,
    /// Name of the discipline.
    qdisc: String,
    /// Name of the measure.
    measure: String,
    /// `median`, `p95` or `p99`.
    quantile: String,
    /// Error of the prediction, in percent.
    error: f64,
    /// The reason, in a sentence.
    reason: String,
}

impl Exceptions {
    /// Reads the list.
    ///
    /// # Errors
    /// The place that is wrong.
    pub fn parse(text: &str) -> Result<Exceptions, String> {
        let list: Exceptions = toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
        match list.exception.iter().find(|exception| exception.reason.trim().is_empty()) {
            Some(empty) => Err(format!("{FILE}: {} has no reason", empty.name())),
            None => Ok(list),
        }
    }

    /// The faults of these rows, which are all rows of their cells.
    pub fn faults(&self, rows: &[Prediction]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut used = vec![false; self.exception.len()];
        for row in rows {
            for ((at, met), bound) in row.met().enumerate().zip(BOUNDS) {
                let quantile = QUANTILES[at].1;
                let (error, cell, measure) = (row.error(at), &row.cell, row.measure);
                let mine = self.exception.iter().position(|listed| listed.is(row, quantile));
                let name = format!("{cell}, {}, {measure}, {quantile}", row.qdisc);
                match (met, mine) {
                    (true, None) => {}
                    (false, None) => faults.push(format!(
                        "{name}: the error is {error:+.1} %, and the bound is {bound:.0} %; mend it, or write it in {FILE} \
                         with its reason"
                    )),
                    (true, Some(listed)) => {
                        used[listed] = true;
                        faults.push(format!(
                            "{name}: the error is {error:+.1} %, which meets the bound of {bound:.0} %; remove it from {FILE}"
                        ));
                    }
                    (false, Some(listed)) => {
                        used[listed] = true;
                        let known = self.exception[listed].error;
                        if (error - known).abs() > NEAR {
                            faults.push(format!("{name}: the error is {error:+.1} %, and {known:+.1} % in {FILE}"));
                        }
                    }
                }
            }
        }
        let cells: Vec<&str> = rows.iter().map(|row| &*row.cell).collect();
        let stale =
            self.exception.iter().zip(used).filter(|(listed, used)| !used && cells.contains(&&*listed.cell));
        faults.extend(
            stale.map(|(listed, _)| format!("{}: {FILE} names nothing that is predicted", listed.name())),
        );
        faults
    }
}

impl Exception {
    fn is(&self, row: &Prediction, quantile: &str) -> bool {
        (&*self.cell, &*self.qdisc, &*self.measure, &*self.quantile)
            == (&*row.cell, row.qdisc, row.measure, quantile)
    }

    fn name(&self) -> String {
        format!("{}, {}, {}, {}", self.cell, self.qdisc, self.measure, self.quantile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with an error of 12 % in the median and of 5 % in the 95th percentile.
    fn row() -> Prediction {
        Prediction {
            cell: "2mbit-cubic".to_owned(),
            qdisc: "fifo",
            measure: "short uploads",
            measured: vec![0.1; 3],
            apart: vec![0.0; 3],
            predicted: vec![0.112, 0.105, 0.1],
        }
    }

    fn faults(quantile: &str, error: f64) -> Vec<String> {
        let text = format!(
            "[[exception]]\ncell = \"2mbit-cubic\"\nqdisc = \"fifo\"\nmeasure = \"short uploads\"\nquantile = \"{quantile}\"\n\
             error = {error:.1}\nreason = \"a test\"\n"
        );
        Exceptions::parse(&text).expect("it is valid").faults(&[row()])
    }

    #[test]
    fn a_missed_bound_must_be_in_the_list() {
        let faults = Exceptions::parse("").expect("it is valid").faults(&[row()]);
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].starts_with("2mbit-cubic, fifo, short uploads, median: the error is +12.0 %"),
            "{faults:?}"
        );
    }

    #[test]
    fn the_list_must_be_true() {
        assert_eq!(faults("median", 12.0), Vec::<String>::new());
        assert!(
            faults("median", 30.0)[0]
                .ends_with("the error is +12.0 %, and +30.0 % in examples/library/exceptions.toml")
        );
        let met = faults("p95", 5.0);
        assert!(
            met[1].contains("p95: the error is +5.0 %, which meets the bound of 20 %; remove it"),
            "{met:?}"
        );
        assert!(faults("p80", 12.0)[1].contains("names nothing that is predicted"));
        let empty = "[[exception]]\ncell = \"a\"\nqdisc = \"b\"\nmeasure = \"c\"\nquantile = \"p95\"\nerror = 1\nreason = \" \"\n";
        assert!(Exceptions::parse(empty).unwrap_err().ends_with("a, b, c, p95 has no reason"));
    }
}
