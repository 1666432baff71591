//! The effect of each varied key on a metric: means by its values, and Sobol indices.
//!
//! The first-order index of a key is the share of the variance that its value alone explains; the total index
//! adds what it explains together with other keys (Sobol, "Sensitivity estimates for nonlinear mathematical
//! models", 1993; Homma and Saltelli, Reliability Engineering and System Safety 52(1), 1996). A point shows
//! the mean over its seeds.
//!
//! | design | first order | total | interval |
//! | --- | --- | --- | --- |
//! | grid | exact over the grid | exact over the grid | resampled seeds |
//! | saltelli | estimator (b) | estimator (f) | resampled draws |
//! | other draws | means of up to 16 classes of points | none | resampled points |
//!
//! The estimators come from table 2 in Saltelli and others, Computer Physics Communications 181(2), 2010.
//!
//! A mean over few seeds varies without any key. In a grid the variance of that mean is estimated from the
//! seeds and subtracted. An index is estimated anew from resampled data, [`RESAMPLES`] times. Its 95 %
//! interval goes from the 2.5th to the 97.5th percentile of these estimates.

use giveway_measure::t_quantile;

use crate::data::{At, Contender, Data, mean};
use crate::order::mixed;

/// The number of resamples of an interval.
pub const RESAMPLES: u64 = 200;

/// Maximum number of classes of a drawn key.
const MAX_CLASSES: usize = 16;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Index {
    /// The estimate.
    pub value: f64,
    /// The ends of the interval; `None` with one seed of a grid.
    pub interval: Option<(f64, f64)>,
}

/// The effect of a key on the metric of a discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The place of the key among the axes.
    pub axis: usize,
    /// The first-order index.
    pub first: Index,
    /// The total index; `None` if the design has none.
    pub total: Option<Index>,
}

/// The mean of a metric at a value of a key, over the values of all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// The place of the value among the levels.
    pub level: usize,
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval over the seeds; `None` below two seeds.
    pub half: Option<f64>,
}

/// A first-order and a total index.
type Pair = (f64, Option<f64>);

/// The indices of all axes from a draw of units.
type Estimator<'a> = dyn Fn(&Draw) -> Vec<Pair> + 'a;

/// The effects of all keys that concern a discipline, the strongest first. Empty if the metric does not vary.
pub fn effects(data: &Data, contender: &Contender) -> Vec<Effect> {
    let axes: Vec<usize> = (0..data.axes.len()).filter(|axis| contender.concerned[*axis]).collect();
    let points: Vec<&At> = contender.points.iter().filter(|at| at.mean().is_some()).collect();
    let grid = Grid::of(&points, &axes);
    let estimate: &Estimator<'_> = match data.manifest.design.as_str() {
        "grid" => &|draw| grid.indices(draw),
        design if design.starts_with("saltelli") => {
            &|draw| axes.iter().map(|axis| saltelli(&points, *axis, data.axes.len(), draw)).collect()
        }
        _ => &|draw| axes.iter().map(|axis| (classes(&points, *axis, draw), None)).collect(),
    };
    let best = estimate(&Draw::Itself);
    if best.iter().any(|(first, _)| !first.is_finite()) {
        return Vec::new();
    }
    let units = match data.manifest.design.as_str() {
        "grid" => data.seeds.len(),
        design if design.starts_with("saltelli") => points.len() / (data.axes.len() + 2),
        _ => points.len(),
    };
    let resampled: Vec<Vec<Pair>> = match units {
        0 | 1 => Vec::new(),
        units => (0..RESAMPLES).map(|round| estimate(&Draw::Resampled { round, units })).collect(),
    };
    let mut effects: Vec<Effect> = axes
        .iter()
        .enumerate()
        .map(|(place, axis)| {
            let of = |part: fn(&Pair) -> Option<f64>| {
                let value = part(&best[place])?;
                let samples = resampled.iter().filter_map(|round| part(&round[place]));
                Some(Index { value, interval: percentiles(samples.filter(|value| value.is_finite())) })
            };
            let first = of(|(first, _)| Some(*first)).expect("every design has first-order indices");
            Effect { axis: *axis, first, total: of(|(_, total)| *total) }
        })
        .collect();
    let strength = |effect: &Effect| effect.total.map_or(effect.first.value, |total| total.value);
    effects.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
    effects
}

/// Resampled units: seeds, draws or points.
enum Draw {
    /// Each unit once.
    Itself,
    /// As many as there are, drawn with repetition.
    Resampled { round: u64, units: usize },
}

impl Draw {
    /// The units of this draw.
    fn units(&self, count: usize) -> Vec<usize> {
        match self {
            Draw::Itself => (0..count).collect(),
            Draw::Resampled { round, units } => {
                (0..*units).map(|place| (mixed(&[*round, place as u64]) % *units as u64) as usize).collect()
            }
        }
    }
}

/// The 2.5th and the 97.5th percentile.
fn percentiles(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = values.collect();
    if values.len() < RESAMPLES as usize / 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share + 0.5) as usize];
    Some((at(0.025), at(0.975)))
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64
}

/// The points of a grid, in groups for each axis. The groups are the same for every draw of seeds.
struct Grid<'a> {
    points: &'a [&'a At],
    /// For each axis: the group of each point with its value, and with the values of all other axes.
    axes: Vec<(Groups, Groups)>,
}

/// The group of each point.
struct Groups {
    of: Vec<usize>,
    count: usize,
}

impl Groups {
    /// Points with the same key are a group.
    fn of<K: Ord>(points: &[&At], key: impl Fn(&At) -> K) -> Groups {
        let mut numbers = std::collections::BTreeMap::<K, usize>::new();
        let of = points.iter().map(|at| {
            let next = numbers.len();
            *numbers.entry(key(at)).or_insert(next)
        });
        let of = of.collect();
        Groups { of, count: numbers.len() }
    }

    /// The means in each group that has any.
    fn split(&self, means: &[Option<f64>]) -> Vec<Vec<f64>> {
        let mut groups = vec![Vec::new(); self.count];
        for (group, mean) in self.of.iter().zip(means) {
            groups[*group].extend(*mean);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

impl<'a> Grid<'a> {
    fn of(points: &'a [&'a At], axes: &[usize]) -> Grid<'a> {
        let groups = |axis: &usize| {
            let with = Groups::of(points, |at| at.levels[*axis]);
            let others = Groups::of(points, |at| -> Vec<Option<usize>> {
                let levels = at.levels.iter().enumerate().filter(|(place, _)| place != axis);
                levels.map(|(_, level)| *level).collect()
            });
            (with, others)
        };
        Grid { points, axes: axes.iter().map(groups).collect() }
    }

    /// First-order and total index of each axis.
    fn indices(&self, draw: &Draw) -> Vec<Pair> {
        let seeds = self.points.first().map_or(0, |at| at.values.len());
        let chosen = draw.units(seeds);
        // The mean of each point, and the variance of that mean.
        let mut noise = 0.0;
        let mut values: Vec<f64> = Vec::with_capacity(seeds);
        let mut of_point = |at: &&At| -> Option<f64> {
            values.clear();
            values.extend(chosen.iter().filter_map(|seed| at.values[*seed]));
            if let [_, _, ..] = values.as_slice() {
                noise += variance(&values) / (values.len() - 1) as f64;
            }
            mean(values.iter().copied())
        };
        let means: Vec<Option<f64>> = self.points.iter().map(&mut of_point).collect();
        let all: Vec<f64> = means.iter().flatten().copied().collect();
        noise /= all.len() as f64;
        let whole = variance(&all) - noise;
        if all.len() < 2 || whole <= 0.0 {
            return vec![(0.0, Some(0.0)); self.axes.len()];
        }
        let of_axis = |(with, others): &(Groups, Groups)| {
            let levels = with.split(&means);
            let per_level = all.len() as f64 / levels.len() as f64;
            let of_levels: Vec<f64> =
                levels.iter().map(|group| group.iter().sum::<f64>() / group.len() as f64).collect();
            let first = (variance(&of_levels) - noise / per_level) / whole;
            let others = others.split(&means);
            let inner = others.iter().map(|group| variance(group)).sum::<f64>() / others.len() as f64;
            let size = all.len() as f64 / others.len() as f64;
            let total = (inner - noise * (size - 1.0) / size) / whole;
            (first.clamp(0.0, 1.0), Some(total.clamp(0.0, 1.0)))
        };
        self.axes.iter().map(of_axis).collect()
    }
}

/// Estimators of Saltelli and others (2010), table 2: (b) for first-order indices, (f), which is Jansen's,
/// for total ones.
fn saltelli(points: &[&At], axis: usize, axes: usize, draw: &Draw) -> Pair {
    let block = axes as u64 + 2;
    let value = |number: u64| -> Option<f64> {
        let place = points.binary_search_by_key(&number, |at| at.point).ok()?;
        points[place].mean()
    };
    let draws = points.last().map_or(0, |at| at.point / block + 1);
    let (mut product, mut square, mut all, mut count) = (0.0, 0.0, Vec::new(), 0u32);
    for unit in draw.units(draws as usize) {
        let first = unit as u64 * block;
        let (Some(a), Some(b), Some(ab)) = (value(first), value(first + 1), value(first + 2 + axis as u64))
        else {
            continue;
        };
        product += b * (ab - a);
        square += (a - ab) * (a - ab);
        all.extend([a, b]);
        count += 1;
    }
    let whole = variance(&all);
    if count < 2 || whole <= 0.0 {
        return (0.0, Some(0.0));
    }
    let count = f64::from(count);
    // The estimate of a small index can be negative.
    ((product / count / whole).clamp(0.0, 1.0), Some((square / (2.0 * count) / whole).clamp(0.0, 1.0)))
}

/// The first-order index from draws: the variance of the means of classes with equal numbers of points. Means
/// of classes vary without any effect by the variance within them; this part is subtracted.
fn classes(points: &[&At], axis: usize, draw: &Draw) -> f64 {
    let chosen: Vec<(usize, f64)> = draw
        .units(points.len())
        .into_iter()
        .filter_map(|place| Some((points[place].levels[axis]?, points[place].mean()?)))
        .collect();
    if chosen.len() < 8 {
        return f64::NAN;
    }
    let whole = variance(&chosen.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    if whole <= 0.0 {
        return 0.0;
    }
    let mut sorted = chosen;
    sorted.sort_by_key(|(level, _)| *level);
    let distinct = sorted.chunk_by(|a, b| a.0 == b.0).count();
    let wanted = (sorted.len() / 4).clamp(2, MAX_CLASSES);
    let classes: Vec<&[(usize, f64)]> = if distinct <= wanted {
        sorted.chunk_by(|a, b| a.0 == b.0).collect()
    } else {
        sorted.chunks(sorted.len().div_ceil(wanted)).collect()
    };
    let count = sorted.len() as f64;
    let grand = sorted.iter().map(|(_, value)| value).sum::<f64>() / count;
    let (mut between, mut within) = (0.0, 0.0);
    for class in &classes {
        let mean = class.iter().map(|(_, value)| value).sum::<f64>() / class.len() as f64;
        between += class.len() as f64 * (mean - grand) * (mean - grand);
        within += class.iter().map(|(_, value)| (value - mean) * (value - mean)).sum::<f64>();
    }
    // As for the correlation ratio (Kelley, PNAS 21(9), 1935).
    let spare = (classes.len() - 1) as f64 * within / (count - classes.len() as f64).max(1.0);
    ((between - spare) / (between + within)).clamp(0.0, 1.0)
}

/// The mean of the metric at each value of a key, over all values of the others. `with` restricts the points.
pub fn responses(contender: &Contender, axis: usize, with: impl Fn(&At) -> bool) -> Vec<Response> {
    let mut levels: Vec<usize> =
        contender.points.iter().filter(|at| with(at)).filter_map(|at| at.levels[axis]).collect();
    levels.sort_unstable();
    levels.dedup();
    let response = |level: usize| {
        let points: Vec<&At> =
            contender.points.iter().filter(|at| with(at) && at.levels[axis] == Some(level)).collect();
        let (mean, half) = over_seeds(&points)?;
        Some(Response { level, mean, half })
    };
    levels.into_iter().filter_map(response).collect()
}

/// The mean over points, and half the width of its 95 % interval over the seeds that all points have. Seeds
/// that only some points have would mix the effect of points with the effect of seeds.
pub fn over_seeds(points: &[&At]) -> Option<(f64, Option<f64>)> {
    let per_seed = per_seed(points);
    let values: Vec<f64> = per_seed.into_iter().flatten().collect();
    match values.as_slice() {
        [] => mean(points.iter().filter_map(|at| at.mean())).map(|mean| (mean, None)),
        [value] => Some((*value, None)),
        values => {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let spread = libm::sqrt(variance(values) / (count - 1.0));
            Some((mean, Some(t_quantile(values.len() as u32 - 1, 0.95) * spread)))
        }
    }
}

/// The mean over points for each seed; `None` for a seed that a point lacks.
pub fn per_seed(points: &[&At]) -> Vec<Option<f64>> {
    let seeds = points.first().map_or(0, |at| at.values.len());
    let of_seed = |seed: usize| -> Option<f64> {
        let values: Vec<f64> = points.iter().map(|at| at.values[seed]).collect::<Option<_>>()?;
        mean(values.into_iter())
    };
    (0..seeds).map(of_seed).collect()
}
