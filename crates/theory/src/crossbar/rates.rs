//! Matrices of rates from inputs to outputs: admissibility, and a schedule for admissible matrices.
//!
//! Ports are numbered from 0. Rates are in cells per slot, so that a row sums to the load of an input and a
//! column to the load of an output.

use std::fmt;

/// Tolerance for sums above 1, because of rounding: three thirds are not always 1 in binary.
const ROUNDING: f64 = 1e-9;

/// Rates from inputs to outputs, in cells per slot: N rows of N numbers, none negative.
#[derive(Clone, Debug, PartialEq)]
pub struct RateMatrix {
    rows: Vec<Vec<f64>>,
}

/// The reason why rows are not a matrix of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixError {
    /// There are no rows.
    Empty,
    /// A row is longer or shorter than there are rows.
    NotSquare {
        /// Number of the row, from 0.
        row: usize,
        /// Number of rates that it has.
        has: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A rate is negative, infinite or not a number.
    Rate {
        /// Input, from 0.
        input: usize,
        /// Output, from 0.
        output: usize,
        /// The rate.
        rate: f64,
    },
}

impl fmt::Display for MatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatrixError::Empty => f.write_str("a matrix of rates without rows: give one row per input"),
            MatrixError::NotSquare { row, has, rows } => {
                write!(f, "row {row} has {has} rates, but there are {rows} rows: give each row {rows} rates")
            }
            MatrixError::Rate { input, output, rate } => {
                write!(
                    f,
                    "the rate from input {input} to output {output} is {rate}: give 0 or more, in cells per slot"
                )
            }
        }
    }
}

impl std::error::Error for MatrixError {}

/// A port, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A row of the matrix.
    Input(usize),
    /// A column of the matrix.
    Output(usize),
}

/// A port that is offered more than one cell per slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// The port.
    pub port: Port,
    /// Its load, in cells per slot.
    pub load: f64,
}

impl Overload {
    /// The part of the load that the port cannot carry, in cells per slot.
    pub fn excess(&self) -> f64 {
        self.load - 1.0
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, number) = match self.port {
            Port::Input(number) => ("input", number),
            Port::Output(number) => ("output", number),
        };
        write!(f, "{side} {number} is offered {} cells per slot, {} too many", self.load, self.excess())
    }
}

/// A matching and its share of the slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Share of the slots, 0 to 1.
    pub share: f64,
    /// By input, the output that it is connected to.
    pub outputs: Vec<usize>,
}

impl RateMatrix {
    /// A matrix by its rows, one per input.
    ///
    /// # Errors
    ///
    /// If there are no rows, the number of rates in a row is not the number of rows, or a rate is negative or
    /// not finite.
    pub fn new(rows: Vec<Vec<f64>>) -> Result<RateMatrix, MatrixError> {
        if rows.is_empty() {
            return Err(MatrixError::Empty);
        }
        for (input, rates) in rows.iter().enumerate() {
            if rates.len() != rows.len() {
                return Err(MatrixError::NotSquare { row: input, has: rates.len(), rows: rows.len() });
            }
            if let Some(output) = rates.iter().position(|rate| !rate.is_finite() || *rate < 0.0) {
                return Err(MatrixError::Rate { input, output, rate: rates[output] });
            }
        }
        Ok(RateMatrix { rows })
    }

    /// Number of inputs, and of outputs.
    pub fn ports(&self) -> usize {
        self.rows.len()
    }

    /// The rate from an input to an output, in cells per slot.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn rate(&self, input: usize, output: usize) -> f64 {
        self.rows[input][output]
    }

    /// The load of a port, in cells per slot.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn load(&self, port: Port) -> f64 {
        match port {
            Port::Input(input) => self.rows[input].iter().sum(),
            Port::Output(output) => self.rows.iter().map(|rates| rates[output]).sum(),
        }
    }

    /// The ports with a load above 1, inputs first. The result is empty if the matrix is admissible. No
    /// switch carries another matrix. A fixed [`schedule`](RateMatrix::schedule) carries an admissible one;
    /// maximum weight matching, which does not use the rates, carries it, too, if all sums are below 1.
    ///
    /// A sum of up to 1 + 10⁻⁹ counts as 1.
    ///
    /// McKeown, Mekkittikul, Anantharam and Walrand, "Achieving 100% Throughput in an Input-Queued Switch",
    /// IEEE Transactions on Communications 47(8), 1999; Dai and Prabhakar, INFOCOM 2000.
    pub fn overloads(&self) -> Vec<Overload> {
        let inputs = (0..self.ports()).map(Port::Input);
        let outputs = (0..self.ports()).map(Port::Output);
        let loads = inputs.chain(outputs).map(|port| Overload { port, load: self.load(port) });
        loads.filter(|overload| overload.excess() > ROUNDING).collect()
    }

    /// A schedule that serves every input and output pair at its rate or more: at most N² − 2N + 2 matchings,
    /// each with its share of the slots, which sum to 1.
    ///
    /// The matrix is filled up until all rows and columns sum to 1 (von Neumann). Then matchings are
    /// subtracted, each as large as its smallest entry permits, until nothing is left (Birkhoff). The bound:
    /// each matching takes the rest to a smaller face of the polytope of doubly stochastic matrices, which
    /// has (N − 1)² dimensions.
    ///
    /// Rates are rounded to 10⁻¹² and then counted in integers, so that rounding cannot leave a rest without
    /// a matching. The service is exact for rates with up to 12 decimals and within 10⁻¹² otherwise, plus the
    /// excess of a row or column over 1 (at most 10⁻⁹). The time is proportional to N⁴ at worst: N = 64 takes
    /// about a hundredth of a second.
    ///
    /// # Errors
    ///
    /// If the matrix is not admissible: the port with the largest load.
    ///
    /// Birkhoff, "Tres observaciones sobre el algebra lineal", 1946; von Neumann, "A certain zero-sum
    /// two-person game equivalent to the optimal assignment problem", 1953; for switches Chang, Chen and
    /// Huang, "On service guarantees for input-buffered crossbar switches", IWQoS 1999.
    pub fn schedule(&self) -> Result<Vec<Configuration>, Overload> {
        let worst = self.overloads().into_iter().max_by(|a, b| a.load.total_cmp(&b.load));
        if let Some(overload) = worst {
            return Err(overload);
        }
        let (mut left, slots) = doubly_stochastic(&self.rows);
        let mut unused = slots;
        let mut matching = Matching::new(self.ports());
        let mut configurations = Vec::new();
        while unused > 0 {
            matching.complete(&left);
            let outputs = matching.outputs();
            let smallest = outputs.iter().zip(&left).map(|(output, units)| units[*output]).min();
            let taken = smallest.expect("there are ports");
            for (input, output) in outputs.iter().enumerate() {
                left[input][*output] -= taken;
                if left[input][*output] == 0 {
                    matching.release(input);
                }
            }
            unused -= taken;
            configurations.push(Configuration { share: taken as f64 / slots as f64, outputs });
        }
        Ok(configurations)
    }
}

/// The rates in units of 10⁻¹², filled up until all rows and columns have the same sum, and that sum.
fn doubly_stochastic(rows: &[Vec<f64>]) -> (Vec<Vec<u64>>, u64) {
    const UNITS: f64 = 1e12;
    let ports = rows.len();
    let mut units: Vec<Vec<u64>> =
        rows.iter().map(|rates| rates.iter().map(|rate| (rate * UNITS).round() as u64).collect()).collect();
    let mut inputs: Vec<u64> = units.iter().map(|units| units.iter().sum()).collect();
    let mut outputs: Vec<u64> =
        (0..ports).map(|output| units.iter().map(|units| units[output]).sum()).collect();
    let largest = inputs.iter().chain(&outputs).copied().max().unwrap_or(0);
    // Rows and columns that miss 1 by rounding alone are not filled up.
    let slots = if largest as f64 >= UNITS * (1.0 - ROUNDING) { largest } else { UNITS as u64 };
    let (mut input, mut output) = (0, 0);
    // Rows lack the same total as columns, so both are complete at the same time.
    while input < ports && output < ports {
        let added = (slots - inputs[input]).min(slots - outputs[output]);
        units[input][output] += added;
        inputs[input] += added;
        outputs[output] += added;
        if inputs[input] == slots {
            input += 1;
        } else {
            output += 1;
        }
    }
    (units, slots)
}

/// A matching that is repaired and not built anew: most of it remains valid when a few entries of the matrix
/// become 0.
struct Matching {
    /// By input: its output.
    output_of: Vec<Option<usize>>,
    /// By output: its input.
    input_of: Vec<Option<usize>>,
}

impl Matching {
    /// No pairs.
    fn new(ports: usize) -> Self {
        Matching { output_of: vec![None; ports], input_of: vec![None; ports] }
    }

    /// Removes the pair of an input.
    fn release(&mut self, input: usize) {
        if let Some(output) = self.output_of[input].take() {
            self.input_of[output] = None;
        }
    }

    /// Matches every input with an output for which it has units. All rows and columns of `units` have the
    /// same sum above 0, so there is such a matching (König, Hall).
    fn complete(&mut self, units: &[Vec<u64>]) {
        for input in 0..units.len() {
            if self.output_of[input].is_none() {
                let found = self.augment(input, units, &mut vec![false; units.len()]);
                debug_assert!(found, "equal sums have a perfect matching");
            }
        }
    }

    /// Matches an input by an augmenting path, which is searched depth first. Returns `true` if there is one.
    fn augment(&mut self, input: usize, units: &[Vec<u64>], tried: &mut [bool]) -> bool {
        for (output, units_there) in units[input].iter().enumerate() {
            if *units_there == 0 || tried[output] {
                continue;
            }
            tried[output] = true;
            let free = match self.input_of[output] {
                None => true,
                Some(other) => self.augment(other, units, tried),
            };
            if free {
                self.output_of[input] = Some(output);
                self.input_of[output] = Some(input);
                return true;
            }
        }
        false
    }

    /// The output of each input of a complete matching.
    fn outputs(&self) -> Vec<usize> {
        self.output_of.iter().map(|output| output.expect("the matching is complete")).collect()
    }
}

#[cfg(test)]
mod tests;
