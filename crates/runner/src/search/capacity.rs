//! The largest load at which the queues of a switch do not grow.

use giveway_switch::stability::{Stability, bisect};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::runs::{Search, SearchError};
use super::table::aligned;

/// The number of times that an undecided run is repeated, each time with twice the slots.
const DOUBLINGS: u32 = 4;

/// The result of the search.
pub struct Found {
    between: (f64, f64),
    arbiters: Vec<Capacity>,
}

/// The capacity of one arbiter.
struct Capacity {
    name: String,
    /// The largest stable load; `None` if none is stable.
    stable: Option<f64>,
    /// The smallest load that is not stable; `None` if all are stable.
    unstable: Option<f64>,
    /// The loads that were tried, in this order.
    asked: Vec<LoadTrial>,
}

/// The runs of one arbiter at one load.
struct LoadTrial {
    load: f64,
    /// The number of seeds with stable queues.
    stable: usize,
    /// The number of seeds with growing queues.
    growing: usize,
    /// The number of seeds whose runs do not decide.
    undecided: usize,
    /// The slots of the longest run, including its warm-up.
    slots: u64,
}

impl LoadTrial {
    /// True if most seeds are stable.
    fn is_stable(&self) -> bool {
        self.stable > self.growing + self.undecided
    }
    /// True if the undecided seeds cannot change the answer.
    fn is_settled(&self) -> bool {
        self.is_stable() || self.growing >= self.stable + self.undecided
    }
}

/// Finds the capacity of all arbiters in parallel.
///
/// # Errors
/// When the user stopped it, or a run failed.
pub fn search(search: &Search<'_>) -> Result<Found, SearchError> {
    let count = search.crossbar.arbiters.len();
    let arbiters = (0..count).into_par_iter().map(|arbiter| capacity(search, arbiter));
    Ok(Found { between: search.between, arbiters: arbiters.collect::<Result<_, _>>()? })
}

fn capacity(search: &Search<'_>, arbiter: usize) -> Result<Capacity, SearchError> {
    let mut asked = Vec::new();
    let mut stable_at = |load: f64| -> Result<bool, SearchError> {
        let question = ask(search, arbiter, load)?;
        let stable = question.is_stable();
        asked.push(question);
        Ok(stable)
    };
    let (low, high) = search.between;
    let (stable, unstable) = if !stable_at(low)? {
        (None, Some(low))
    } else if stable_at(high)? {
        (Some(high), None)
    } else {
        let (stable, unstable) = bisect(search.between, search.width, stable_at)?;
        (Some(stable), Some(unstable))
    };
    let name = search.crossbar.arbiters[arbiter].to_string();
    Ok(Capacity { name, stable, unstable, asked })
}

/// Runs every seed, and repeats undecided seeds with more slots, until the answer is settled.
fn ask(search: &Search<'_>, arbiter: usize, load: f64) -> Result<LoadTrial, SearchError> {
    let mut question = LoadTrial { load, stable: 0, growing: 0, undecided: 0, slots: 0 };
    let mut open = search.seeds.clone();
    for doubling in 0..=DOUBLINGS {
        let times = 1 << doubling;
        let verdict = |seed: &u64| -> Result<Stability, SearchError> {
            let ran = search.run(arbiter, load, *seed, times)?;
            Ok(ran.trend().map_or(Stability::Undecided, |trend| trend.verdict))
        };
        let verdicts = open.par_iter().map(verdict).collect::<Result<Vec<_>, _>>()?;
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        question.stable += count(Stability::Stable);
        question.growing += count(Stability::Growing);
        question.undecided = count(Stability::Undecided);
        question.slots = search.crossbar.slots * times;
        if question.is_settled() {
            break;
        }
        let undecided = open.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Stability::Undecided);
        open = undecided.map(|(seed, _)| *seed).collect();
    }
    search.progress.part().done(1.0);
    Ok(question)
}

impl Found {
    /// The result as text.
    pub fn table(&self) -> String {
        let load = |load: Option<f64>, otherwise: &str| {
            load.map_or(otherwise.to_owned(), |load| format!("{load:.4}"))
        };
        let (low, high) = self.between;
        let mut rows = vec![["scheduler", "stable at", "not at"].map(str::to_owned).to_vec()];
        let mut remarks = String::new();
        for capacity in &self.arbiters {
            let (below, above) = (format!("below {low}"), format!("above {high}"));
            rows.push(vec![
                capacity.name.clone(),
                load(capacity.stable, &below),
                load(capacity.unstable, &above),
            ]);
            for LoadTrial { load, undecided, slots, stable, growing } in
                capacity.asked.iter().filter(|question| !question.is_settled())
            {
                remarks.push_str(&format!(
                    "{} at {load:.4}: {undecided} of {} seeds undecided after {slots} slots, so the load does not count as stable\n",
                    capacity.name,
                    stable + growing + undecided,
                ));
            }
        }
        let gap = if remarks.is_empty() { "" } else { "\n" };
        format!("{}{gap}{remarks}", aligned(&rows))
    }

    /// The result as JSON. `stable` is null if no load is stable, `not_stable` if all loads are.
    pub fn json(&self) -> Value {
        let question = |question: &LoadTrial| {
            let LoadTrial { load, stable, growing, undecided, slots } = question;
            json!({ "load": load, "stable": stable, "growing": growing, "undecided": undecided, "slots": slots })
        };
        let result = |capacity: &Capacity| {
            json!({
                "scheduler": capacity.name,
                "stable": capacity.stable,
                "not_stable": capacity.unstable,
                "asked": capacity.asked.iter().map(question).collect::<Vec<_>>(),
            })
        };
        let results: Vec<Value> = self.arbiters.iter().map(result).collect();
        json!({ "search": "capacity", "between": self.between, "results": results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_seeds_decide() {
        let question = |stable, growing, undecided| {
            let question = LoadTrial { load: 0.9, stable, growing, undecided, slots: 1 };
            (question.is_stable(), question.is_settled())
        };
        assert_eq!(question(2, 1, 0), (true, true));
        assert_eq!(question(2, 0, 1), (true, true), "the third could not change it");
        assert_eq!(question(0, 2, 1), (false, true));
        assert_eq!(question(1, 1, 1), (false, false));
        assert_eq!(question(1, 1, 0), (false, true), "half of them are not most");
        assert_eq!(question(0, 0, 1), (false, false));
    }
}
