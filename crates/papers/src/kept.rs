//! Finished runs in a form that can be written, so that an interrupted study resumes where it stopped.
//!
//! Numbers are written as their bits, because a decimal text may be read as a neighbouring number, and a
//! resumed study must have exactly the results of an uninterrupted one.

use std::collections::BTreeMap;

use giveway_measure::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::curve::Data;
use crate::study::{Observed, Study};

/// A finished run as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptRun {
    numbers: Vec<Option<u64>>,
    data: Vec<Curve>,
}

/// The data of a curve as they are written.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Curve {
    Points(Vec<(u64, u64)>),
    Lines(Vec<Vec<(u64, u64)>>),
    Counts(BTreeMap<u64, u64>),
    Numbers(Vec<u64>, u32),
    Bins(BTreeMap<u64, (u64, u64)>),
    Nothing,
}

impl Study {
    /// Everything that the results of this study depend on: the paper, the scope and every run.
    pub fn identity(&self) -> String {
        let runs: String = self.jobs().iter().map(|job| self.name(job) + "\n").collect();
        format!("study {}", Fingerprint::of(&format!("{self:?}{runs}")))
    }
}

impl KeptRun {
    /// A run in the form in which it is written.
    pub fn of(run: &Observed) -> KeptRun {
        let numbers = run.numbers.iter().map(|number| number.map(f64::to_bits)).collect();
        KeptRun { numbers, data: run.data.iter().map(written).collect() }
    }
}

impl From<KeptRun> for Observed {
    fn from(KeptRun { numbers, data }: KeptRun) -> Observed {
        let numbers = numbers.into_iter().map(|bits| bits.map(f64::from_bits)).collect();
        Observed { numbers, data: data.into_iter().map(read).collect() }
    }
}

fn bits(points: &[(f64, f64)]) -> Vec<(u64, u64)> {
    points.iter().map(|(x, y)| (x.to_bits(), y.to_bits())).collect()
}

fn floats(points: Vec<(u64, u64)>) -> Vec<(f64, f64)> {
    points.into_iter().map(|(x, y)| (f64::from_bits(x), f64::from_bits(y))).collect()
}

fn written(data: &Data) -> Curve {
    match data {
        Data::Points(points) => Curve::Points(bits(points)),
        Data::Lines(lines) => Curve::Lines(lines.iter().map(|line| bits(line)).collect()),
        Data::Counts(counts) => Curve::Counts(counts.clone()),
        Data::Numbers(numbers, seeds) => Curve::Numbers(numbers.clone(), *seeds),
        Data::Bins(bins) => {
            Curve::Bins(bins.iter().map(|(bin, (sum, count))| (*bin, (sum.to_bits(), *count))).collect())
        }
        Data::Nothing => Curve::Nothing,
    }
}

fn read(curve: Curve) -> Data {
    match curve {
        Curve::Points(points) => Data::Points(floats(points)),
        Curve::Lines(lines) => Data::Lines(lines.into_iter().map(floats).collect()),
        Curve::Counts(counts) => Data::Counts(counts),
        Curve::Numbers(numbers, seeds) => Data::Numbers(numbers, seeds),
        Curve::Bins(bins) => {
            let read = |(bin, (sum, count))| (bin, (f64::from_bits(sum), count));
            Data::Bins(bins.into_iter().map(read).collect())
        }
        Curve::Nothing => Data::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of data is the same afterwards, bit by bit.
    #[test]
    fn data_survive_a_file() {
        let odd = 0.1 + 0.2;
        for data in [
            Data::Points(vec![(odd, -0.0), (f64::MIN_POSITIVE, f64::INFINITY)]),
            Data::Lines(vec![vec![(1.0, odd)], vec![]]),
            Data::Counts([(7, 9)].into()),
            Data::Numbers(vec![u64::MAX, 1], 3),
            Data::Bins([(4, (odd, 2))].into()),
            Data::Nothing,
        ] {
            let text = serde_json::to_string(&written(&data)).unwrap();
            assert_eq!(read(serde_json::from_str(&text).unwrap()), data, "{text}");
        }
    }
}
