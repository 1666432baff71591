//! The load at which two arbiters are equal in a metric.

use giveway_switch::stability::bisect;
use serde_json::{Value, json};

use super::runs::{Search, SearchError};
use super::table::aligned;

/// The result of the search.
pub struct Found {
    metric: String,
    names: [String; 2],
    /// The last interval; `None` if the order of the arbiters is the same at both ends of the first.
    crossing: Option<(f64, f64)>,
    /// The loads that were tried, in ascending order.
    points: Vec<Point>,
}

/// The runs of both arbiters at one load.
struct Point {
    load: f64,
    /// The means over the seeds.
    means: [f64; 2],
    /// The number of seeds with which the first arbiter has less.
    first_less: usize,
    /// The number of seeds.
    seeds: usize,
}

impl Point {
    fn first_is_less(&self) -> bool {
        self.means[0] < self.means[1]
    }
}

/// Finds the load at which both arbiters are equal in `metric`.
///
/// # Errors
/// When the user stopped it, a run failed, or it did not measure the metric.
pub fn search(search: &Search<'_>, metric: &str) -> Result<Found, SearchError> {
    let mut points = Vec::new();
    let mut first_is_less = |load: f64| -> Result<bool, SearchError> {
        let point = run_both(search, metric, load)?;
        let less = point.first_is_less();
        points.push(point);
        Ok(less)
    };
    let (low, high) = search.between;
    let at_low = first_is_less(low)?;
    let crossing = match first_is_less(high)? == at_low {
        true => None,
        false => {
            Some(bisect(search.between, search.width, |load| first_is_less(load).map(|less| less == at_low))?)
        }
    };
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    let names = [0, 1].map(|arbiter| search.crossbar.arbiters[arbiter].to_string());
    Ok(Found { metric: metric.to_owned(), names, crossing, points })
}

/// Runs both arbiters with every seed.
fn run_both(search: &Search<'_>, metric: &str, load: f64) -> Result<Point, SearchError> {
    let seeds = search.seeds.len();
    // Both arbiters with a seed, one after the other.
    let values = search.all(2 * seeds, search.jobs, |place, turn| {
        let (arbiter, seed) = (place % 2, search.seeds[place / 2]);
        let numbers = search.run(turn, arbiter, load, seed, 1)?.numbers();
        let value = numbers.into_iter().find(|(name, _)| name == metric).and_then(|(_, value)| value);
        value.filter(|value| value.is_finite()).ok_or_else(|| SearchError::NotMeasured {
            arbiter: search.crossbar.arbiters[arbiter].to_string(),
            load,
            seed,
            metric: metric.to_owned(),
        })
    })?;
    let pairs: Vec<[f64; 2]> = values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    let mean = |of: usize| pairs.iter().map(|pair| pair[of]).sum::<f64>() / seeds as f64;
    let first_less = pairs.iter().filter(|[first, second]| first < second).count();
    search.tried();
    Ok(Point { load, means: [mean(0), mean(1)], first_less, seeds })
}

impl Found {
    /// The result as text.
    pub fn table(&self) -> String {
        let [first, second] = &self.names;
        let mut rows =
            vec![vec!["load".to_owned(), first.clone(), second.clone(), format!("less with {first}")]];
        let number = |value: f64| format!("{value:.4}");
        rows.extend(self.points.iter().map(|point| {
            let seeds = format!("{} of {} seeds", point.first_less, point.seeds);
            vec![number(point.load), number(point.means[0]), number(point.means[1]), seeds]
        }));
        let metric = &self.metric;
        let found = match self.crossing {
            Some((low, high)) => {
                format!("{first} and {second} cross between {low:.4} and {high:.4} in {metric}")
            }
            None => {
                let less = self.points.first().is_some_and(Point::first_is_less);
                let (less, more) = if less { (first, second) } else { (second, first) };
                format!("no crossing: {less} has less {metric} than {more} at both ends")
            }
        };
        format!("{found}\n\n{}", aligned(&rows))
    }

    /// The result as JSON. `crossing` is null if there is none.
    pub fn json(&self) -> Value {
        let point = |point: &Point| json!({ "load": point.load, "means": point.means, "first_less": point.first_less });
        json!({
            "search": "crossover",
            "metric": self.metric,
            "arbiters": self.names,
            "crossing": self.crossing,
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
        })
    }
}
