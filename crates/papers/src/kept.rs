//! Finished runs as lines of a file, so that an interrupted study resumes where it stopped.
//!
//! The first line identifies the study: version, paper, scope and every run. Each further line is a run.
//! Numbers are written as their bits, because a decimal text may be read as a neighbouring number, and a
//! resumed study must have exactly the results of an uninterrupted one.

use std::collections::BTreeMap;

use giveway_measure::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::curve::Data;
use crate::study::{Job, Observed, Study};

/// A run as it is written.
#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    numbers: Vec<Option<u64>>,
    data: Vec<Curve>,
}

/// The data of a curve as they are written.
#[derive(Serialize, Deserialize)]
enum Curve {
    Points(Vec<(u64, u64)>),
    Lines(Vec<Vec<(u64, u64)>>),
    Counts(BTreeMap<u64, u64>),
    Numbers(Vec<u64>, u32),
    Bins(BTreeMap<u64, (u64, u64)>),
    Nothing,
}

impl Study {
    /// The first line of a file of this study's runs.
    pub fn identity(&self) -> String {
        let runs: String = self.jobs().iter().map(|job| self.name(job) + "\n").collect();
        let print = Fingerprint::of(&format!("{self:?}{runs}"));
        format!("{{\"giveway\":\"{}\",\"study\":\"{print}\"}}", env!("CARGO_PKG_VERSION"))
    }

    /// A finished run as a line without its end.
    pub fn line(&self, job: &Job, observed: &Observed) -> String {
        let numbers = observed.numbers.iter().map(|number| number.map(f64::to_bits)).collect();
        let data = observed.data.iter().map(written).collect();
        serde_json::to_string(&Line { run: self.name(job), numbers, data }).expect("it has no unusual keys")
    }

    /// The runs in a file that [`identity`](Study::identity) and [`line`](Study::line) made, by name. A
    /// file of another study has none. A line that was cut off is left out.
    pub fn read_lines(&self, text: &str) -> BTreeMap<String, Observed> {
        let mut lines = text.lines();
        if lines.next() != Some(self.identity().as_str()) {
            return BTreeMap::new();
        }
        let line = |line: &str| {
            let Line { run, numbers, data } = serde_json::from_str(line).ok()?;
            let numbers = numbers.into_iter().map(|bits| bits.map(f64::from_bits)).collect();
            Some((run, Observed { numbers, data: data.into_iter().map(read).collect() }))
        };
        lines.filter_map(line).collect()
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
