//! Cards on a test bed.

use std::path::PathBuf;

use giveway_evaluate::{Backend, BedRuns, Card, Cell, EvaluateError, Request, evaluate_with};
use giveway_observe::layout;
use giveway_program::other;
use giveway_qdisc::Time;
use giveway_record::chain;
use giveway_record::dataset::Measured;
use giveway_scenario::{Scenario, Trial};
use giveway_testbed::{Bed, TestbedError};
use giveway_trials::{Frontend, Store};

use crate::frontend::Terminal;
use crate::show;
use crate::testbed::lateness_of;

/// Attempts for a run, if the machine is too busy.
const ATTEMPTS: u32 = 3;

/// Makes a card on a test bed. `objects` is a folder with compiled BPF qdiscs.
pub fn card(
    objects: Option<PathBuf>,
    quiet: bool,
    request: Request,
    store: &dyn Store<Measured>,
) -> Result<Card, EvaluateError> {
    let frontend = Terminal { quiet };
    giveway_testbed::ready().map_err(|error| EvaluateError::Usage(chain(&error)))?;
    let program = other::find(other::NET).map_err(|error| EvaluateError::Usage(chain(&error)))?;
    let bed = Bed { program, attempts: ATTEMPTS, keep: None, objects, pcap: None, trace: None };
    if !quiet {
        show::message(&format!("this takes about {} of real time", length(&request)));
    }
    let run: &mut BedRuns<'_> = &mut |scenario: &Scenario, trial: &Trial| {
        let live = scenario.live().expect("the cells are for a test bed");
        giveway_testbed::has_tcp(live).map_err(|error| failed(&error, scenario, trial))?;
        if let Some((_, error)) = giveway_testbed::lacks_bpf(live) {
            return Err(EvaluateError::Usage(format!("{}: {}", trial.name, chain(&error))));
        }
        let ran = bed.run(live, trial, &layout(scenario, false), &|_| !frontend.stopped());
        let ran = ran.map_err(|error| failed(&error, scenario, trial))?.ok_or(EvaluateError::Stopped)?;
        if let Some(mark) = lateness_of(&ran, trial) {
            show::message(&mark);
        }
        Ok(ran.record)
    };
    evaluate_with(request, Backend::Bed(run), store, &frontend)
}

/// The error of a run: something is missing on this machine, or the run failed.
fn failed(error: &TestbedError, scenario: &Scenario, trial: &Trial) -> EvaluateError {
    let why = chain(error);
    if error.is_missing() {
        return EvaluateError::Usage(why);
    }
    let Trial { name, seed, .. } = trial.clone();
    EvaluateError::Failed { discipline: name, cell: scenario.title.clone(), seed, why }
}

/// The time that a card takes, in words.
fn length(request: &Request) -> String {
    let disciplines = request.against.len() as f64 + 1.0;
    let seconds: f64 = request.cells.iter().filter_map(|cell| seconds_of(cell, request.short)).sum();
    let minutes = seconds * disciplines * f64::from(request.seeds) / 60.0;
    if minutes < 2.0 { format!("{:.0} s", 60.0 * minutes) } else { format!("{minutes:.0} minutes") }
}

/// The length of a cell, seconds.
fn seconds_of(cell: &Cell, short: bool) -> Option<f64> {
    let scenario = Scenario::parse(&cell.scenario, "").ok()?;
    let scenario = if short { scenario.short().ok()? } else { scenario };
    Some(layout(&scenario, false).until.since(Time::ZERO).as_s())
}
