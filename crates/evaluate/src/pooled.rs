//! The sum of small differences: the mean gain over all metrics of a question.
//!
//! What is fixed: of hundreds of differences that are corrected together, only large ones count. A parameter
//! that changes by a fifth moves many metrics a little, and none of them by so much. What we chose:
//!
//! - For each seed, the gain of a question is the mean over its metrics of the difference in units of what
//!   matters, each at most [`MAX_GAIN`](crate::MAX_GAIN), so that no cell dominates. Metrics in which one of
//!   the two disciplines has two states are left out.
//! - The gains of the seeds are tested by Student's paired t-test, since runs with different seeds are
//!   independent, whatever the cells of a seed have in common. If both disciplines are the same, the gain of
//!   a seed is as often positive as negative by the same amount, which suits the test.
//! - The gains of all questions and baselines are corrected together by Holm, at half of the level of the
//!   card; the other half is for the metrics one by one.
//! - A gain counts from [`MARGIN`] on, as in the search for an own best.
//!
//! A gain says that the metrics of a question are better on the whole, and not which of them. Gains and
//! losses of the same size cancel: the metrics one by one show these.

use giveway_measure::{Difference, Estimate};

use crate::best::MARGIN;
use crate::cells::Cell;
use crate::field::Field;
use crate::question::Question;
use crate::verdict::{Verdict, corrected};

/// The mean gain of a discipline over a baseline in the metrics of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The question.
    pub question: Question,
    /// The place of the baseline.
    pub baseline: usize,
    /// The number of metrics.
    pub metrics: u32,
    /// The difference from no gain to the mean gain, in units of what matters; `None` if no seed has a metric
    /// of both.
    pub gain: Option<Difference>,
    /// The verdict.
    pub verdict: Verdict,
    /// The number of seeds that would find the observed gain, if it is undecided and would count; `None`
    /// otherwise.
    pub needed: Option<u32>,
}

/// The gains of a discipline over baselines, by baseline and question.
pub(crate) fn pooled(field: &Field, cells: &[Cell], candidate: usize, baselines: &[usize]) -> Vec<Pooled> {
    let mut all = Vec::new();
    for (baseline, place) in baselines.iter().enumerate() {
        for question in Question::ALL {
            let (metrics, gain) = gain(field, cells, (candidate, *place), question);
            if metrics > 0 {
                let verdict = Verdict::Unknown;
                all.push(Pooled { question, baseline, metrics, gain, verdict, needed: None });
            }
        }
    }
    let (significant, next) = corrected(all.iter().map(|one| one.gain.as_ref()));
    for (one, significant) in all.iter_mut().zip(significant) {
        let Some(found) = one.gain else { continue };
        let within = found.ci95.is_some_and(|half| found.after.abs() + half < MARGIN);
        one.verdict = match (significant && found.after.abs() >= MARGIN, within) {
            (true, _) if found.after > 0.0 => Verdict::Better,
            (true, _) => Verdict::Worse,
            (_, true) => Verdict::Same,
            _ => Verdict::Unknown,
        };
        let open = one.verdict == Verdict::Unknown && found.after.abs() >= MARGIN;
        one.needed = found.seeds_needed(next).filter(|_| open);
    }
    all
}

/// The number of metrics of a question, and the mean gain over the seeds.
fn gain(
    field: &Field,
    cells: &[Cell],
    (candidate, baseline): (usize, usize),
    question: Question,
) -> (u32, Option<Difference>) {
    let mut metrics = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        for (number, measure) in cell.measures.iter().enumerate() {
            let unstable = [candidate, baseline].iter().any(|one| field.is_unstable(*one, place, measure));
            if measure.question == question && !unstable {
                metrics.push((place, number, measure));
            }
        }
    }
    let of_seed = |seed: usize| -> Option<f64> {
        let value = |discipline: usize, (cell, number): (usize, usize)| -> Option<f64> {
            field.outcomes[cell][discipline].get(seed)?.values[number]
        };
        let gains = metrics.iter().filter_map(|(cell, number, measure)| {
            let place = (*cell, *number);
            measure.counted_gain(value(baseline, place), value(candidate, place))
        });
        let (sum, count) = gains.fold((0.0, 0u32), |(sum, count), gain| (sum + gain, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let seeds = metrics.first().map_or(0, |(cell, ..)| field.outcomes[*cell][candidate].len());
    let gains: Vec<Option<f64>> = (0..seeds).map(of_seed).collect();
    let none = Estimate::over(vec![Some(0.0); gains.len()]);
    (metrics.len() as u32, Difference::between(&none, &Estimate::over(gains)))
}

#[cfg(test)]
mod tests {
    use giveway_trials::{Memory, Silent};

    use super::*;
    use crate::cells::{JudgedMetric, chosen};
    use crate::field::{Backend, Bench, Entrants};
    use crate::run::{Outcome, Timing};

    /// A number between 0 and 1 that depends on its place only (Steele and others' splitmix64).
    fn drawn(place: u64) -> f64 {
        let mut state = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            state = (state ^ (state >> 30)).wrapping_mul(factor);
        }
        ((state ^ (state >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from a normal distribution, by the sum of twelve uniform ones.
    fn normal(place: u64) -> f64 {
        (0..12).map(|part| drawn(100 * place + part)).sum::<f64>() - 6.0
    }

    /// Twenty cells with three delays each.
    fn cells() -> Vec<Cell> {
        let measure = JudgedMetric {
            question: Question::Delay,
            metric: "sojourn_p95_s".to_owned(),
            high: false,
            matters: "10% or 1ms".parse().unwrap(),
        };
        let cell = chosen(&["rrul/rrul".to_owned()]).unwrap().remove(0);
        vec![Cell { measures: vec![measure; 3], ..cell }; 20]
    }

    /// Two disciplines with ten seeds, about 50 ms each with a deviation of 5 %; the second is longer by a
    /// share.
    fn field(cells: &[Cell], card: u64, share: f64) -> Field {
        let discipline = |cell: usize, number: u64| -> Vec<Outcome> {
            let of_seed = |seed: u64| {
                let value = |measure: usize| {
                    let place = ((card * 20 + cell as u64) * 2 + number) * 10 + seed;
                    let longer = 1.0 + share * number as f64;
                    Some(0.05 * longer * (1.0 + 0.05 * normal(3 * place + measure as u64)))
                };
                let values = (0..cells[cell].measures.len()).map(value).collect();
                Outcome { values, ..Outcome::default() }
            };
            (0..10).map(of_seed).collect()
        };
        let outcomes = (0..cells.len()).map(|cell| vec![discipline(cell, 0), discipline(cell, 1)]);
        Field { outcomes: outcomes.collect(), unstable: Vec::new() }
    }

    fn is_different(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Better | Verdict::Worse)
    }

    /// 3 % of 50 ms are 0.3 of what matters, with a deviation of 0.7 in a metric: ten seeds show nothing in
    /// any metric, and their sum over 60 metrics has a deviation of 0.09.
    #[test]
    fn a_small_difference_in_many_metrics_is_found_in_sum() {
        let cells = cells();
        let field = field(&cells, 1, 0.03);
        let [found] = pooled(&field, &cells, 0, &[1])[..] else { panic!("one question is asked") };
        let gain = found.gain.unwrap();
        assert_eq!((found.verdict, found.metrics, found.needed), (Verdict::Better, 60, None));
        assert!((gain.after - 0.3).abs() < 0.1 && gain.ci95.unwrap() < 0.1, "{gain:?}");
        assert!(field.compared(&cells, 0, &[1]).iter().all(|one| !is_different(one.verdict)));
        let [mirrored] = pooled(&field, &cells, 1, &[0])[..] else { panic!("one question is asked") };
        assert_eq!((mirrored.verdict, mirrored.gain.unwrap().after), (Verdict::Worse, -gain.after));
    }

    /// Of 400 cards of two equal disciplines, at most 20 may call them different.
    #[test]
    fn equal_disciplines_rarely_differ() {
        let cells = cells();
        let differs = |card: u64| {
            let field = field(&cells, card, 0.0);
            let sums = pooled(&field, &cells, 0, &[1]).into_iter().map(|one| one.verdict);
            let each = field.compared(&cells, 0, &[1]).into_iter().map(|one| one.verdict);
            sums.chain(each).any(is_different)
        };
        let different = (0..400).filter(|card| differs(*card)).count();
        assert!(different <= 20, "{different} of 400");
    }

    /// Cards of a discipline with ten seeds against itself with ten other seeds, drawn from many. The number
    /// of seeds is in `GIVEWAY_SEEDS`, and `GIVEWAY_LONG` asks for the long form. This takes many minutes:
    /// `cargo test --release -p giveway-evaluate --lib -- itself --ignored --nocapture`.
    #[test]
    #[ignore = "it takes many minutes"]
    fn a_discipline_rarely_differs_from_itself_with_other_seeds() {
        const CARDS: u64 = 500;
        let seeds = std::env::var("GIVEWAY_SEEDS").map_or(100, |text| text.parse().unwrap());
        let short = std::env::var_os("GIVEWAY_LONG").is_none();
        let cells = chosen(&[]).unwrap();
        let numbers: Vec<u64> = (1..=seeds).collect();
        for spec in ["codel", "fq_codel", "pie", "fifo"] {
            let store = Memory::default();
            let mut bench = Bench {
                cells: &cells,
                jobs: 2,
                backend: Backend::Simulator,
                store: &store,
                frontend: &Silent,
            };
            let specs = [spec.to_owned()];
            let outcomes = bench.outcomes(Entrants::of(&specs), &numbers, Timing::Ideal, short, "").unwrap();
            let (mut sums, mut each, mut any) = (0, 0, 0);
            for card in 0..CARDS {
                let mut order: Vec<usize> = (0..numbers.len()).collect();
                order.sort_by(|a, b| {
                    let key = |seed: usize| drawn(card * 100_000 + seed as u64);
                    key(*a).total_cmp(&key(*b))
                });
                let of_cell = |cell: &Vec<Vec<Outcome>>| -> Vec<Vec<Outcome>> {
                    let ten = |part: &[usize]| part.iter().map(|seed| cell[0][*seed].clone()).collect();
                    order.chunks(10).take(2).map(ten).collect()
                };
                let field = Field { outcomes: outcomes.iter().map(of_cell).collect(), unstable: Vec::new() };
                let sum = pooled(&field, &cells, 0, &[1]).iter().any(|one| is_different(one.verdict));
                let cell = field.compared(&cells, 0, &[1]).iter().any(|one| is_different(one.verdict));
                (sums, each, any) =
                    (sums + u64::from(sum), each + u64::from(cell), any + u64::from(sum || cell));
            }
            println!(
                "{spec}: {seeds} seeds; of {CARDS} cards {sums} differ in sum, {each} in a cell, {any} in either"
            );
            // At 5 %, 500 cards of one another's seeds would have 25; 40 have a probability below 0.3 %.
            assert!(any <= 40, "{spec}: {any} of {CARDS}");
        }
    }
}
