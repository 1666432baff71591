//! The largest load at which the queues of a switch do not grow.

use giveway_switch::stability::{Stability, bisect};
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
    loads: Vec<LoadTrial>,
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
    // The seeds of an arbiter have the threads that arbiters leave.
    let at_a_time = search.jobs.min(count).max(1);
    let jobs = search.jobs / at_a_time;
    let arbiters = search.all(count, at_a_time, |arbiter, _| capacity(search, arbiter, jobs))?;
    Ok(Found { between: search.between, arbiters })
}

fn capacity(search: &Search<'_>, arbiter: usize, jobs: usize) -> Result<Capacity, SearchError> {
    let mut loads = Vec::new();
    let mut stable_at = |load: f64| -> Result<bool, SearchError> {
        let trial = try_load(search, arbiter, load, jobs)?;
        let stable = trial.is_stable();
        loads.push(trial);
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
    Ok(Capacity { name, stable, unstable, loads })
}

/// Runs every seed, and repeats undecided seeds with more slots, until the answer is settled.
fn try_load(search: &Search<'_>, arbiter: usize, load: f64, jobs: usize) -> Result<LoadTrial, SearchError> {
    let mut trial = LoadTrial { load, stable: 0, growing: 0, undecided: 0, slots: 0 };
    let mut open = search.seeds.clone();
    for doubling in 0..=DOUBLINGS {
        let times = 1 << doubling;
        let verdicts = search.all(open.len(), jobs, |place, turn| {
            let ran = search.run(turn, arbiter, load, open[place], times)?;
            Ok(ran.trend().map_or(Stability::Undecided, |trend| trend.verdict))
        })?;
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        trial.stable += count(Stability::Stable);
        trial.growing += count(Stability::Growing);
        trial.undecided = count(Stability::Undecided);
        trial.slots = search.crossbar.slots * times;
        if trial.is_settled() {
            break;
        }
        let undecided = open.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Stability::Undecided);
        open = undecided.map(|(seed, _)| *seed).collect();
    }
    search.tried();
    Ok(trial)
}

impl Found {
    /// The result as text.
    pub fn table(&self) -> String {
        let load = |load: Option<f64>, otherwise: &str| {
            load.map_or(otherwise.to_owned(), |load| format!("{load:.4}"))
        };
        let (low, high) = self.between;
        let mut rows = vec![["arbiter", "stable at", "not at"].map(str::to_owned).to_vec()];
        let mut remarks = String::new();
        for capacity in &self.arbiters {
            let (below, above) = (format!("below {low}"), format!("above {high}"));
            rows.push(vec![
                capacity.name.clone(),
                load(capacity.stable, &below),
                load(capacity.unstable, &above),
            ]);
            for LoadTrial { load, undecided, slots, stable, growing } in
                capacity.loads.iter().filter(|trial| !trial.is_settled())
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
        let trial = |trial: &LoadTrial| {
            let LoadTrial { load, stable, growing, undecided, slots } = trial;
            json!({ "load": load, "stable": stable, "growing": growing, "undecided": undecided, "slots": slots })
        };
        let result = |capacity: &Capacity| {
            json!({
                "arbiter": capacity.name,
                "stable": capacity.stable,
                "not_stable": capacity.unstable,
                "loads": capacity.loads.iter().map(trial).collect::<Vec<_>>(),
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
        let trial = |stable, growing, undecided| {
            let trial = LoadTrial { load: 0.9, stable, growing, undecided, slots: 1 };
            (trial.is_stable(), trial.is_settled())
        };
        assert_eq!(trial(2, 1, 0), (true, true));
        assert_eq!(trial(2, 0, 1), (true, true), "the third could not change it");
        assert_eq!(trial(0, 2, 1), (false, true));
        assert_eq!(trial(1, 1, 1), (false, false));
        assert_eq!(trial(1, 1, 0), (false, true), "half of them are not most");
        assert_eq!(trial(0, 0, 1), (false, false));
    }
}
