//! The largest load at which the queues of a switch do not grow.

use giveway_switch::stability::{Stability, bisect};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::{Search, Stop, aligned};

/// How often a run that cannot tell is done again with double the slots.
const DOUBLINGS: u32 = 4;

/// What was found.
pub struct Found {
    between: (f64, f64),
    schedulers: Vec<Capacity>,
}

/// That of one scheduler.
struct Capacity {
    name: String,
    /// The largest load that is stable, if any is.
    stable: Option<f64>,
    /// The smallest that is not, if any is not.
    unstable: Option<f64>,
    /// All that was asked, in that order.
    asked: Vec<Question>,
}

/// Is it stable at this load?
struct Question {
    load: f64,
    /// How many seeds say so.
    stable: usize,
    growing: usize,
    undecided: usize,
    /// Slots of the longest of the runs, warm-up included.
    slots: u64,
}

impl Question {
    /// Most seeds say so.
    fn is_stable(&self) -> bool {
        self.stable > self.growing + self.undecided
    }
    /// The seeds that are undecided could not change it.
    fn is_settled(&self) -> bool {
        self.is_stable() || self.growing >= self.stable + self.undecided
    }
}

/// Does it, for all schedulers side by side.
pub fn search(search: &Search<'_>) -> Result<Found, Stop> {
    let count = search.crossbar.arbiters.len();
    let schedulers = (0..count).into_par_iter().map(|scheduler| capacity(search, scheduler));
    Ok(Found { between: search.between, schedulers: schedulers.collect::<Result<_, _>>()? })
}

fn capacity(search: &Search<'_>, scheduler: usize) -> Result<Capacity, Stop> {
    let mut asked = Vec::new();
    let mut stable_at = |load: f64| -> Result<bool, Stop> {
        let question = ask(search, scheduler, load)?;
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
    let name = search.crossbar.arbiters[scheduler].to_string();
    Ok(Capacity { name, stable, unstable, asked })
}

/// Asks every seed, and those again that cannot tell, until the answer is settled.
fn ask(search: &Search<'_>, scheduler: usize, load: f64) -> Result<Question, Stop> {
    let mut question = Question { load, stable: 0, growing: 0, undecided: 0, slots: 0 };
    let mut open = search.seeds.clone();
    for doubling in 0..=DOUBLINGS {
        let times = 1 << doubling;
        let verdict = |seed: &u64| -> Result<Stability, Stop> {
            let ran = search.run(scheduler, load, *seed, times)?;
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
    /// For people.
    pub fn table(&self) -> String {
        let load = |load: Option<f64>, otherwise: &str| {
            load.map_or(otherwise.to_owned(), |load| format!("{load:.4}"))
        };
        let (low, high) = self.between;
        let mut rows = vec![["scheduler", "stable at", "not at"].map(str::to_owned).to_vec()];
        let mut remarks = String::new();
        for capacity in &self.schedulers {
            let (below, above) = (format!("below {low}"), format!("above {high}"));
            rows.push(vec![
                capacity.name.clone(),
                load(capacity.stable, &below),
                load(capacity.unstable, &above),
            ]);
            for Question { load, undecided, slots, stable, growing } in
                capacity.asked.iter().filter(|question| !question.is_settled())
            {
                remarks.push_str(&format!(
                    "{} at {load:.4}: {undecided} of {} seeds undecided after {slots} slots, so not counted as stable\n",
                    capacity.name,
                    stable + growing + undecided,
                ));
            }
        }
        let gap = if remarks.is_empty() { "" } else { "\n" };
        format!("{}{gap}{remarks}", aligned(&rows))
    }

    /// For programs. `stable` is null where nothing is, `not_stable` where everything is.
    pub fn json(&self) -> Value {
        let question = |question: &Question| {
            let Question { load, stable, growing, undecided, slots } = question;
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
        let results: Vec<Value> = self.schedulers.iter().map(result).collect();
        json!({ "search": "capacity", "between": self.between, "results": results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_seeds_decide() {
        let question = |stable, growing, undecided| {
            let question = Question { load: 0.9, stable, growing, undecided, slots: 1 };
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
