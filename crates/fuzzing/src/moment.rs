//! A scenario runs for a moment: long enough to begin everything, short enough for thousands of them in a second.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use giveway_qdisc::{DropReason, Meta, PortId, Probe, Time};
use giveway_scenario::{Backend, Draft, Network, Scenario};
use giveway_sim::Segment;

/// How many packets a run may move before it is stopped.
const PACKETS: u32 = 2_000;
/// Runs of larger networks would take most of the time of a fuzzer, and find nothing that smaller ones do not.
const NODES: usize = 40;
/// Likewise.
const PAIRS: usize = 100;
/// How much all links of a network together may send in the time of a run, in bits.
const BITS: u128 = 20_000_000;
/// How many slots a switch runs.
const SLOTS: u64 = 200;
/// The largest switch that is run.
const SWITCH: usize = 32;

/// Runs the first trial of `scenario`, which was made of `draft`. A larger one is left alone.
///
/// # Panics
/// When the run does: a scenario that was accepted must run.
pub fn run(draft: &Draft, scenario: &Scenario) {
    match &scenario.backend {
        Backend::Network(network) => over(draft, scenario, network),
        Backend::Live(live) => over(draft, scenario, &live.network),
        Backend::Switch(crossbar) if crossbar.ports <= SWITCH => {
            let Some(short) = shortened(draft, &format!("{} slots", crossbar.slots.min(SLOTS))) else {
                return;
            };
            let Backend::Switch(crossbar) = &short.backend else { return };
            if crossbar.slots <= SLOTS {
                let _ = crossbar.run(&short.trials()[0], &|_| true);
            }
        }
        Backend::Switch(_) => {}
    }
}

fn over(draft: &Draft, scenario: &Scenario, network: &Network) {
    let pairs: usize = network.traffic.iter().map(|stream| stream.pairs.len()).sum();
    let rates: u128 = network.ports.iter().map(|port| u128::from(port.rate.as_bit())).sum();
    if network.nodes.len() > NODES || pairs > PAIRS || rates == 0 {
        return;
    }
    // At least a microsecond, at most what the scenario asks for.
    let microseconds =
        (BITS * 1_000_000 / rates).clamp(1, u128::from(scenario.duration.as_ps() / 1_000_000).max(1));
    let Some(short) = shortened(draft, &format!("{microseconds}us")) else { return };
    let simulated = short.simulated();
    let short = simulated.as_ref().unwrap_or(&short);
    let Some(network) = short.network() else { return };
    let trial = &short.trials()[0];
    let mut count = Count { left: PACKETS };
    let ran = catch_unwind(AssertUnwindSafe(|| network.run(trial, &mut count, &|_| true)));
    if let Err(payload) = ran
        && !payload.is::<Enough>()
    {
        resume_unwind(payload);
    }
}

/// The same scenario for another duration, where it is a scenario then, too.
fn shortened(draft: &Draft, duration: &str) -> Option<Scenario> {
    let changes = [format!("duration={duration}"), "warmup=0s".to_owned(), "seeds=1".to_owned()];
    let draft = changes.iter().fold(draft.clone(), |draft, change| draft.set(change));
    draft.finish().ok()
}

/// Thrown when a run has moved enough packets: nothing else stops one within a step of its time.
struct Enough;

struct Count {
    left: u32,
}

impl Count {
    fn one(&mut self) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            // Not a panic: fuzzers take every panic for a find, before anybody can catch it.
            None => resume_unwind(Box::new(Enough)),
        }
    }
}

impl Probe<Segment> for Count {
    fn arrived(&mut self, _: PortId, _: &Meta, _: Time) {
        self.one();
    }
    fn dropped(&mut self, _: PortId, _: &Meta, _: &Segment, _: DropReason, _: Time) {
        self.one();
    }
    fn emitted(&mut self, _: u16, _: &Meta, _: &Segment, _: Time) {
        self.one();
    }
}
