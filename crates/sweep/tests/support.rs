//! A small scenario, and a front end that stops.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use giveway_record::Digest;
use giveway_scenario::Scenario;
use giveway_sweep::{Design, Done, Plan, Request, Shard, SweepError, SweepFolder, run};
use giveway_trials::{Bar, Frontend, Reuse, Unit};

/// Two disciplines with a parameter of one of them, on a link of 10 Mbit/s.
pub const SCENARIO: &str = r#"
title = "Two transfers"
duration = "300 ms"
seeds = 3
disciplines = ["fifo limit 50p", "efd limit 50p"]

[[link]]
from = "home"
to = "isp"
rate = "10mbit"
delay = "5ms"
qdisc = "compare"

[[traffic]]
kind = "transfers"
name = "up"
from = "home"
to = "isp"
load = "5mbit"
size = { fixed = "20kb" }
"#;

pub fn request(axes: &[&str], design: &str) -> Request {
    Request {
        scenario: Scenario::parse(SCENARIO, "").expect("the scenario is valid"),
        axes: axes.iter().map(|axis| axis.parse().expect("the axis is valid")).collect(),
        design: design.parse::<Design>().expect("the design is valid"),
        until: None,
    }
}

pub fn plan(axes: &[&str], design: &str) -> Plan {
    Plan::new(request(axes, design)).expect("the plan is valid")
}

/// A front end that keeps messages, and stops after a number of thousandths of runs.
pub struct Watched {
    pub messages: Mutex<Vec<String>>,
    steps: Arc<AtomicU64>,
    most: u64,
}

impl Watched {
    pub fn new() -> Watched {
        Watched::stopping_after(u64::MAX / 1000)
    }

    pub fn stopping_after(trials: u64) -> Watched {
        Watched { messages: Mutex::default(), steps: Arc::default(), most: trials * 1000 }
    }

    pub fn texts(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }
}

impl Frontend for Watched {
    fn message(&self, text: &str) {
        self.messages.lock().unwrap().push(text.to_owned());
    }

    fn stopped(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.most
    }

    fn bar(&self, _: &str, _: u64, _: Unit) -> Box<dyn Bar> {
        Box::new(Counted(Arc::clone(&self.steps)))
    }
}

/// A bar that counts steps.
struct Counted(Arc<AtomicU64>);

impl Bar for Counted {
    fn advance(&self, steps: u64) {
        self.0.fetch_add(steps, Ordering::Relaxed);
    }
}

/// Runs a plan in a folder, as the command does.
pub fn sweep(plan: &Plan, dir: &Path, jobs: usize, frontend: &Watched) -> Result<Done, SweepError> {
    let mut folder = SweepFolder::open(dir, plan, Shard::WHOLE, "giveway sweep", frontend)?;
    run(plan, &mut folder, Shard::WHOLE, jobs, &Reuse::default(), frontend)
}

/// The digest of every file of the data set.
pub fn bytes(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir.join("trials")).unwrap().flatten();
    entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), Digest::of_file(&entry.path()).unwrap().sha256)
        })
        .collect()
}
