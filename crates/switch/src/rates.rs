//! Patterns of traffic as matrices of loads from inputs to outputs.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of the load of an input over the outputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// Equal load to every output.
    #[default]
    Uniform,
    /// Two thirds to the output with the number of the input, one third to the next output.
    Diagonal,
    /// About half to the output with the number of the input, and to each next output half of the load of the
    /// one before.
    LogDiagonal,
    /// Half to the output with the number of the input, the other half evenly to all others.
    QuasiDiagonal,
    /// This share of the load of every input to output 0, the rest evenly to all.
    Hotspot(f64),
    /// This share to the output with the number of the input, the rest evenly to all: 0 is uniform, 1 has no
    /// conflicts.
    Unbalanced(f64),
    /// Load from each input (a row) to each output, multiplied by `load`.
    Matrix(Vec<Vec<f64>>),
}

/// Loads from inputs (rows) to outputs, in cells per slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    ports: usize,
    /// Row by row.
    rates: Vec<f64>,
}

/// Tolerance for sums above 1, which rounding may cause.
const ROUNDING: f64 = 1e-9;

impl Rates {
    /// The matrix of a pattern in which every input has `load`; for [`Pattern::Matrix`], the matrix times
    /// `load`.
    ///
    /// # Errors
    /// A load, a share or a matrix out of its range.
    pub fn new(pattern: &Pattern, ports: usize, load: f64) -> Result<Rates, Invalid> {
        let n = ports as f64;
        if !(load.is_finite() && load > 0.0) {
            return Err(Invalid::new("load", format!("{load}: expected a number above 0, such as 0.8")));
        }
        let share = |share: f64| {
            (0.0..=1.0).contains(&share).then_some(share).ok_or_else(|| {
                Invalid::new("pattern", format!("a share of {share}: expected a number from 0 to 1"))
            })
        };
        // `of(k)` is the load to the k-th output after the one with the number of the input.
        let turned = |of: &dyn Fn(usize) -> f64| {
            let cell = |at: usize| of((at % ports + ports - at / ports) % ports);
            (0..ports * ports).map(|at| load * cell(at)).collect::<Vec<f64>>()
        };
        let rates = match pattern {
            Pattern::Uniform => turned(&|_| 1.0 / n),
            Pattern::Diagonal => turned(&|k| match k {
                0 => 2.0 / 3.0,
                1 => 1.0 / 3.0,
                _ => 0.0,
            }),
            Pattern::LogDiagonal => {
                let sum: f64 = (0..ports).map(|k| libm::exp2(-(k as f64))).sum();
                turned(&|k| libm::exp2(-(k as f64)) / sum)
            }
            Pattern::QuasiDiagonal => turned(&|k| if k == 0 { 0.5 } else { 0.5 / (n - 1.0) }),
            Pattern::Hotspot(hot) => {
                let hot = share(*hot)?;
                let cell = |at: usize| (1.0 - hot) / n + if at.is_multiple_of(ports) { hot } else { 0.0 };
                (0..ports * ports).map(|at| load * cell(at)).collect()
            }
            Pattern::Unbalanced(own) => {
                let own = share(*own)?;
                turned(&|k| (1.0 - own) / n + if k == 0 { own } else { 0.0 })
            }
            Pattern::Matrix(rows) => matrix(rows, ports, load)?,
        };
        Ok(Rates { ports, rates })
    }

    /// Load from an input to an output, in cells per slot.
    pub fn of(&self, input: usize, output: usize) -> f64 {
        self.rates[input * self.ports + output]
    }
    /// Loads of an input, by output.
    pub fn row(&self, input: usize) -> &[f64] {
        &self.rates[input * self.ports..][..self.ports]
    }
    /// Sum of the loads of an input.
    pub fn input(&self, input: usize) -> f64 {
        self.row(input).iter().sum()
    }
    /// Sum of the loads for an output.
    pub fn output(&self, output: usize) -> f64 {
        (0..self.ports).map(|input| self.of(input, output)).sum()
    }

    /// Refuses loads above 1 cell per slot, at an input or at an output. With `overload` outputs may have
    /// more.
    ///
    /// # Errors
    /// The port and its load.
    pub fn check(&self, overload: bool) -> Result<(), Invalid> {
        let too_much = |sum: f64| sum > 1.0 + ROUNDING;
        if let Some(input) = (0..self.ports).find(|input| too_much(self.input(*input))) {
            let message = format!(
                "input {input} is offered {:.4} cells a slot, and its link brings at most 1",
                self.input(input)
            );
            return Err(Invalid::new("load", message));
        }
        match (0..self.ports).find(|output| too_much(self.output(*output))) {
            Some(output) if !overload => {
                let message = format!(
                    "the traffic is not admissible: output {output} is offered {:.4} cells a slot, and its link \
                     takes 1; lower the load, or write overload = true if that is meant",
                    self.output(output)
                );
                Err(Invalid::new("pattern", message))
            }
            _ => Ok(()),
        }
    }
}

/// The elements of a [`Pattern::Matrix`] times `load`, row by row.
fn matrix(rows: &[Vec<f64>], ports: usize, load: f64) -> Result<Vec<f64>, Invalid> {
    let wrong = |message: String| Err(Invalid::new("pattern", message));
    if rows.len() != ports {
        return wrong(format!("the matrix has {} rows, and the switch has {ports} ports", rows.len()));
    }
    for (input, row) in rows.iter().enumerate() {
        if row.len() != ports {
            return wrong(format!(
                "row {input} of the matrix has {} numbers, and the switch has {ports} ports",
                row.len()
            ));
        }
        if let Some(output) = row.iter().position(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            return wrong(format!(
                "the load from input {input} to output {output} is {}: loads are not negative",
                row[output]
            ));
        }
    }
    let all: Vec<f64> = rows.iter().flatten().map(|rate| rate * load).collect();
    if all.iter().all(|rate| *rate == 0.0) {
        return wrong("the matrix is all zeros".into());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMISSIBLE: [Pattern; 5] = [
        Pattern::Uniform,
        Pattern::Diagonal,
        Pattern::LogDiagonal,
        Pattern::QuasiDiagonal,
        Pattern::Unbalanced(0.4),
    ];

    #[test]
    fn patterns_load_every_port_equally() {
        for pattern in ADMISSIBLE {
            for ports in [2, 3, 16, 64] {
                let rates = Rates::new(&pattern, ports, 0.9).unwrap();
                for port in 0..ports {
                    assert!((rates.input(port) - 0.9).abs() < 1e-12, "{pattern:?}, input {port} of {ports}");
                    assert!(
                        (rates.output(port) - 0.9).abs() < 1e-12,
                        "{pattern:?}, output {port} of {ports}"
                    );
                }
                rates.check(false).unwrap();
            }
        }
        let log = Rates::new(&Pattern::LogDiagonal, 4, 1.0).unwrap();
        assert_eq!([0, 1, 2, 3].map(|output| (log.of(1, output) * 15.0).round()), [1.0, 8.0, 4.0, 2.0]);
        let quasi = Rates::new(&Pattern::QuasiDiagonal, 5, 1.0).unwrap();
        assert_eq!(quasi.row(2), [0.125, 0.125, 0.5, 0.125, 0.125]);
    }

    #[test]
    fn overload_is_refused_with_its_port() {
        let refused = |pattern: &Pattern, load: f64| {
            Rates::new(pattern, 4, load).and_then(|rates| rates.check(false)).unwrap_err().to_string()
        };
        assert!(refused(&Pattern::Uniform, 1.01).contains("input 0 is offered 1.0100"));
        assert!(refused(&Pattern::Hotspot(0.5), 0.9).contains("output 0 is offered 2.2500"));
        assert!(refused(&Pattern::Hotspot(0.5), 0.9).contains("overload = true"));
        assert!(refused(&Pattern::Uniform, 0.0).contains("above 0"));
        assert!(refused(&Pattern::Unbalanced(1.5), 0.5).contains("from 0 to 1"));
        let rows = |value: f64| Pattern::Matrix(vec![vec![value; 4]; 4]);
        assert!(refused(&rows(-0.1), 1.0).contains("not negative"));
        assert!(refused(&rows(0.3), 1.0).contains("input 0"));
        assert!(refused(&Pattern::Matrix(vec![vec![0.1; 4]; 3]), 1.0).contains("3 rows"));
        assert!(refused(&Pattern::Matrix(vec![vec![0.1; 3]; 4]), 1.0).contains("3 numbers"));
        Rates::new(&Pattern::Hotspot(0.5), 4, 0.9).unwrap().check(true).unwrap();
    }
}
