//! `--threads`: trials of networks that are divided, and messages about the division.

use std::error::Error;

use giveway_measure::{Fingerprint, Record, Summary};
use giveway_observe::{observe_network, run_divided};
use giveway_scenario::{Network, Scenario, Trial};
use giveway_sim::{Gain, Partition, Whole};
use giveway_trials::{Frontend, processors};

/// The number of threads that can run at once, of those that were asked for. A thread simulates several parts
/// of a network one after the other if there are more parts than threads.
fn useful(threads: usize) -> usize {
    threads.min(processors())
}

/// Runs a trial on a divided network, with a recorder. Returns the record, and the remarks of the sources of
/// traffic; nothing if `keep_running` stops it.
pub(crate) fn run(
    network: &Network,
    trial: &Trial,
    keep_series: bool,
    (partition, threads): (&Partition, usize),
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<(Record, Vec<String>)> {
    observe_network(network, keep_series, |recorder| {
        run_divided(network, trial, (partition, useful(threads)), recorder, keep_running)
    })
}

/// Two divisions of a network gave different results.
#[derive(Debug, thiserror::Error)]
enum Differs {
    #[error("divided into {parts} parts it has the fingerprint {divided}, and {undivided} otherwise")]
    Metrics { parts: usize, divided: Fingerprint, undivided: Fingerprint },
    #[error("divided into {parts} parts it has other rows in the table {series}")]
    Series { parts: usize, series: &'static str },
}

/// Runs a trial in every division that a number of threads may give, useful or not, and compares all metrics
/// and series with the undivided network's. Returns the number of divisions.
///
/// # Errors
/// When any metric, any row of a series or the fingerprint differs.
pub(crate) fn compare(
    network: &Network,
    trial: &Trial,
    expected: &Record,
    keep_series: bool,
) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let mut tried: Vec<Partition> = Vec::new();
    for threads in [2, 3, 8, 64] {
        let partition = network.partition(trial, threads, Gain::Any);
        if partition.parts() == 1 || tried.contains(&partition) {
            continue;
        }
        if let Some((record, _)) = run(network, trial, keep_series, (&partition, threads), &|_| true) {
            let parts = partition.parts();
            let Summary { fingerprint, metrics, .. } = &record.summary;
            let Summary { fingerprint: whole, metrics: of_whole, .. } = &expected.summary;
            if (fingerprint, metrics) != (whole, of_whole) {
                return Err(Box::new(Differs::Metrics { parts, divided: *fingerprint, undivided: *whole }));
            }
            for (series, equal) in [
                ("delays", record.delays == expected.delays),
                ("shares", record.shares == expected.shares),
                ("queue", record.queue == expected.queue),
            ] {
                if !equal {
                    return Err(Box::new(Differs::Series { parts, series }));
                }
            }
        }
        tried.push(partition);
    }
    Ok(tried.len())
}

/// The division of the network for each compared discipline, for as many threads as can run at once, of those
/// asked for. Tells the user about them. Empty if one thread was asked for, or the scenario has no network.
pub(crate) fn divisions(scenario: &Scenario, threads: usize, frontend: &dyn Frontend) -> Vec<Partition> {
    if threads == 1 {
        return Vec::new();
    }
    let Some(network) = scenario.network() else {
        frontend.message("--threads: one thread for each trial, because only networks are divided");
        return Vec::new();
    };
    // The division depends on the disciplines, and hardly on the seed: one pilot serves all seeds.
    let first = scenario.seeds[0];
    let trials: Vec<Trial> = scenario.trials().into_iter().filter(|trial| trial.seed == first).collect();
    let divide = |trial| network.partition(trial, useful(threads), Gain::Faster);
    let divisions: Vec<Partition> = trials.iter().map(divide).collect();
    let said: Vec<String> = divisions.iter().map(|partition| sentence(partition, threads)).collect();
    let equal = said.windows(2).all(|two| two[0] == two[1]);
    for (trial, sentence) in trials.iter().zip(&said).take(if equal { 1 } else { said.len() }) {
        let of = if equal { String::new() } else { format!(" of {}", trial.name) };
        frontend.message(&format!("--threads: each trial{of} {sentence}"));
    }
    divisions
}

/// A division in words, after the trial.
fn sentence(partition: &Partition, threads: usize) -> String {
    let running = useful(threads);
    let processors = match running {
        1 => "1 processor".to_owned(),
        _ => format!("{running} processors"),
    };
    let machine = if running < threads { format!(" (this machine has {processors})") } else { String::new() };
    if let Some(why) = partition.why_whole() {
        return match why {
            Whole::OneThread => format!("has one thread{machine}"),
            _ => format!("has one thread, because {why}"),
        };
    }
    let parts = partition.parts();
    let few = if parts < running { "; the network cannot be divided into more" } else { "" };
    format!(
        "runs on {parts} threads, which exchange packets after each {} of simulated time{few}{machine}",
        partition.window()
    )
}
