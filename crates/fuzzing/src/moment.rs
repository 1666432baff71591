//! Runs a scenario for a short time: all its parts start, and a fuzzer can run thousands of scenarios per
//! second.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use giveway_qdisc::{DropReason, Meta, PortId, Probe, Time};
use giveway_scenario::{Backend, Draft, Network, Scenario};
use giveway_sim::Segment;

/// Number of packet events after which a run is stopped.
const PACKETS: u32 = 2_000;
/// Largest number of nodes of a network that is run: larger ones take most of the time and find no
/// new errors.
const NODES: usize = 40;
/// Largest number of pairs of hosts with traffic in a network that is run.
const PAIRS: usize = 100;
/// Bits that all links of a network together can send in the duration of a run.
const BITS: u128 = 20_000_000;
/// Largest number of slots of a run of a switch.
const SLOTS: u64 = 200;
/// Largest number of ports of a switch that is run.
const SWITCH: usize = 32;

/// Runs the first trial of `scenario`, which `draft` describes. Larger scenarios are not run.
///
/// # Panics
/// If the run panics: a scenario that was accepted must run.
pub fn run(draft: &Draft, scenario: &Scenario) {
    match &scenario.backend {
        Backend::Network(network) => run_network(draft, scenario, network),
        Backend::Live(live) => run_network(draft, scenario, &live.network),
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

fn run_network(draft: &Draft, scenario: &Scenario, network: &Network) {
    let pairs: usize = network.traffic.iter().map(|stream| stream.pairs.len()).sum();
    let rates: u128 = network.ports.iter().map(|port| u128::from(port.rate.as_bit())).sum();
    if network.nodes.len() > NODES || pairs > PAIRS || rates == 0 {
        return;
    }
    // At least a microsecond, at most the duration of the scenario.
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
        && !payload.is::<Stopped>()
    {
        resume_unwind(payload);
    }
}

/// The scenario of a draft with another duration; `None` if it is invalid with it.
fn shortened(draft: &Draft, duration: &str) -> Option<Scenario> {
    let changes = [format!("duration={duration}"), "warmup=0s".to_owned(), "seeds=1".to_owned()];
    let draft = changes.iter().fold(draft.clone(), |draft, change| draft.set(change));
    draft.finish().ok()
}

/// Payload of the unwinding that stops a run after [`PACKETS`] events. A run cannot be stopped between two
/// packets of the same time otherwise.
struct Stopped;

struct Count {
    left: u32,
}

impl Count {
    fn one(&mut self) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            // Not a panic: libFuzzer aborts in the panic hook, before the payload can be caught.
            None => resume_unwind(Box::new(Stopped)),
        }
    }
}

impl Probe<Segment> for Count {
    fn on_arrival(&mut self, _: PortId, _: &Meta, _: Time) {
        self.one();
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, _: &Segment, _: DropReason, _: Time) {
        self.one();
    }
    fn on_emission(&mut self, _: u16, _: &Meta, _: &Segment, _: Time) {
        self.one();
    }
}
