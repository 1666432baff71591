//! The points of a sweep: all combinations, or a number of draws.
//!
//! `grid` takes every combination of values. `random:N`, `lhs:N` (Latin hypercube: McKay, Beckman and
//! Conover, Technometrics 21(2), 1979) and `sobol:N` (an Owen-scrambled Sobol sequence) draw N points.
//! `saltelli:N` has the N(d + 2) points from which first-order and total Sobol indices of d keys are
//! estimated (Saltelli, Computer Physics Communications 145, 2002). A number after a second colon is the seed
//! of the draw.

use std::fmt;
use std::str::FromStr;

use crate::axis::Axis;
use crate::order::{drawn, permuted};
use crate::value::Value;

/// The points of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// The kind of points.
    pub kind: Kind,
    /// The number of draws; 0 for a grid.
    pub draws: u64,
    /// The seed of the draws.
    pub seed: u32,
}

/// A kind of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every combination.
    Grid,
    /// Independent draws.
    Random,
    /// A Latin hypercube.
    Latin,
    /// A Sobol sequence.
    Sobol,
    /// The points of Saltelli's estimator of Sobol indices.
    Saltelli,
}

const KINDS: [(&str, Kind); 5] = [
    ("grid", Kind::Grid),
    ("random", Kind::Random),
    ("lhs", Kind::Latin),
    ("sobol", Kind::Sobol),
    ("saltelli", Kind::Saltelli),
];

/// The longest Sobol sequence of the library.
const LONGEST: u64 = 1 << 16;

/// Maximum number of keys of a Sobol sequence: the library has 256 dimensions, and Saltelli's points need two
/// for a key.
const MAX_KEYS: usize = 128;

/// A wrong design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--design {text}: {wrong}; write grid, random:200, lhs:200, sobol:256 or saltelli:64")]
pub struct DesignError {
    text: String,
    wrong: String,
}

impl Design {
    /// Every combination.
    pub const GRID: Design = Design { kind: Kind::Grid, draws: 0, seed: 1 };

    /// The number of points, unless it does not fit 64 bits.
    pub fn points(&self, axes: &[Axis]) -> Option<u64> {
        match self.kind {
            Kind::Grid => axes.iter().try_fold(1u64, |points, axis| points.checked_mul(axis.levels()?)),
            Kind::Saltelli => self.draws.checked_mul(axes.len() as u64 + 2),
            _ => Some(self.draws),
        }
    }

    /// The value of each axis at a point.
    pub fn point(&self, number: u64, axes: &[Axis]) -> Vec<Value> {
        if self.kind == Kind::Grid {
            return self
                .levels(number, axes)
                .iter()
                .zip(axes)
                .map(|(level, axis)| axis.level(*level))
                .collect();
        }
        axes.iter().enumerate().map(|(place, axis)| axis.at(self.share(number, place, axes.len()))).collect()
    }

    /// The numbers of the values at a point of a grid. The last axis changes fastest.
    pub fn levels(&self, number: u64, axes: &[Axis]) -> Vec<u64> {
        let mut rest = number;
        let mut levels = vec![0; axes.len()];
        for (level, axis) in levels.iter_mut().zip(axes).rev() {
            let count = axis.levels().expect("a grid has no continuous axis");
            *level = rest % count;
            rest /= count;
        }
        levels
    }

    /// The place on an axis of a drawn point, 0 to 1.
    fn share(&self, number: u64, axis: usize, axes: usize) -> f64 {
        let seed = u64::from(self.seed);
        let place = axis as u64;
        match self.kind {
            Kind::Grid => unreachable!("a grid is not drawn"),
            Kind::Random => drawn(&[seed, place, number]),
            Kind::Latin => {
                let stratum = permuted(number, self.draws, seed ^ (place << 32));
                (stratum as f64 + drawn(&[seed, place, number])) / self.draws as f64
            }
            Kind::Sobol => f64::from(sobol_burley::sample(number as u32, axis as u32, self.seed)),
            Kind::Saltelli => {
                // The points of one draw: A, B, and for each axis A with the value of B on this axis.
                let (draw, part) = (number / (axes as u64 + 2), number % (axes as u64 + 2));
                let of_second = part == 1 || part == place + 2;
                let dimension = if of_second { axis + axes } else { axis };
                f64::from(sobol_burley::sample(draw as u32, dimension as u32, self.seed))
            }
        }
    }

    /// Checks that the axes fit the design.
    pub fn fits(&self, axes: &[Axis]) -> Result<(), DesignError> {
        let wrong = |wrong: String| Err(DesignError { text: self.to_string(), wrong });
        let continuous = axes.iter().find(|axis| axis.levels().is_none());
        match (self.kind, continuous) {
            (Kind::Grid, Some(axis)) => wrong(format!("{axis} has no number of values, which a grid needs")),
            (Kind::Sobol | Kind::Saltelli, _) if axes.len() > MAX_KEYS => {
                wrong(format!("{} keys: at most {MAX_KEYS} are possible", axes.len()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        match (self.kind, self.seed) {
            (Kind::Grid, _) => f.write_str(name),
            (_, 1) => write!(f, "{name}:{}", self.draws),
            (_, seed) => write!(f, "{name}:{}:{seed}", self.draws),
        }
    }
}

impl FromStr for Design {
    type Err = DesignError;

    fn from_str(text: &str) -> Result<Design, DesignError> {
        let wrong = |wrong: String| DesignError { text: text.to_owned(), wrong };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let Some((_, kind)) = KINDS.into_iter().find(|(known, _)| *known == name) else {
            return Err(wrong(format!("there is no design {name}")));
        };
        let rest: Vec<&str> = parts.collect();
        let (draws, seed) = match (kind, rest.as_slice()) {
            (Kind::Grid, []) => return Ok(Design::GRID),
            (Kind::Grid, _) => return Err(wrong("a grid has all combinations, and no number".to_owned())),
            (_, [draws]) => (*draws, "1"),
            (_, [draws, seed]) => (*draws, *seed),
            (_, _) => return Err(wrong("it needs a number of draws".to_owned())),
        };
        let draws: u64 = draws.parse().map_err(|_| wrong(format!("{draws} is not a number of draws")))?;
        let seed: u32 = seed.parse().map_err(|_| wrong(format!("{seed} is not a seed")))?;
        if draws < 2 {
            return Err(wrong("it needs at least 2 draws".to_owned()));
        }
        if matches!(kind, Kind::Sobol | Kind::Saltelli) && draws > LONGEST {
            return Err(wrong(format!("the sequence has at most {LONGEST} points")));
        }
        Ok(Design { kind, draws, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn texts(design: &str, of: &[Axis]) -> Vec<Vec<String>> {
        let design: Design = design.parse().unwrap();
        let points = 0..design.points(of).unwrap();
        points.map(|n| design.point(n, of).into_iter().map(|value| value.text).collect()).collect()
    }

    #[test]
    fn a_grid_has_every_combination_and_the_last_key_changes_fastest() {
        let axes = axes(&["a=1,2", "b=x,y,z"]);
        let expected = [["1", "x"], ["1", "y"], ["1", "z"], ["2", "x"], ["2", "y"], ["2", "z"]];
        assert_eq!(texts("grid", &axes), expected);
    }

    /// Each of the n strata of each key has one point.
    #[test]
    fn a_latin_hypercube_has_each_stratum_once() {
        let axes = axes(&["a=lin(0,100)", "b=lin(0,100)"]);
        for key in 0..2 {
            let points = texts("lhs:50:3", &axes);
            let mut strata: Vec<u64> =
                points.iter().map(|point| (point[key].parse::<f64>().unwrap() / 2.0) as u64).collect();
            strata.sort_unstable();
            // A value is rounded to four digits, so one at the end of a stratum may leave it.
            strata.dedup();
            assert!(strata.len() >= 49, "{strata:?}");
        }
        assert_ne!(texts("lhs:50:3", &axes), texts("lhs:50:4", &axes));
    }

    /// A quarter of the points of a Sobol sequence lie in each quarter of the square.
    #[test]
    fn a_sobol_sequence_is_even() {
        let axes = axes(&["a=lin(0,1)", "b=lin(0,1)"]);
        let mut quarters = [0; 4];
        for point in texts("sobol:64", &axes) {
            let half = |text: &str| usize::from(text.parse::<f64>().unwrap() >= 0.5);
            quarters[2 * half(&point[0]) + half(&point[1])] += 1;
        }
        assert_eq!(quarters, [16; 4]);
    }

    #[test]
    fn the_points_of_saltelli_exchange_one_key_at_a_time() {
        let axes = axes(&["a=lin(0,1)", "b=lin(0,1)"]);
        let points = texts("saltelli:8", &axes);
        assert_eq!(points.len(), 8 * 4);
        for draw in points.chunks(4) {
            let [a, b, first, second] = draw else { panic!("a draw has four points") };
            assert_eq!((&first[0], &first[1]), (&b[0], &a[1]));
            assert_eq!((&second[0], &second[1]), (&a[0], &b[1]));
        }
    }

    #[test]
    fn wrong_designs_say_what_to_write() {
        for (text, part) in [
            ("mesh", "no design mesh"),
            ("grid:3", "no number"),
            ("lhs", "needs a number of draws"),
            ("lhs:x", "x is not a number"),
            ("lhs:1", "at least 2"),
            ("sobol:100000", "at most 65536"),
            ("lhs:5:x", "x is not a seed"),
            ("lhs:5:1:1", "needs a number of draws"),
        ] {
            let error = text.parse::<Design>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("write grid"), "{text}: {error}");
        }
        let continuous = axes(&["a=lin(0,1)"]);
        assert!(Design::GRID.fits(&continuous).unwrap_err().to_string().contains("has no number of values"));
        assert_eq!("lhs:5:7".parse::<Design>().unwrap().to_string(), "lhs:5:7");
    }
}
