//! Any capture is accepted as traffic of a switch and runs, or is rejected.

use giveway_qdisc::{Bytes, Packets, Rate, Streams};
use giveway_switch::traffic::TrafficSpec;
use giveway_switch::traffic::trace::{Config, Inputs, Outputs};
use giveway_switch::{Plan, Sim};

use crate::scratch;

/// Duration of a run, in slots.
const SLOTS: u64 = 100;
/// Largest length of a capture, in bytes. Longer ones find no new errors.
const LONGEST: usize = 16 << 10;

/// Input: three bytes of settings, then the capture.
pub fn run(input: &[u8]) {
    let Some(([ports, choice, speed], capture)) = input.split_first_chunk::<3>() else { return };
    if capture.len() > LONGEST {
        return;
    }
    scratch::file("switch.pcap", capture);
    let config = Config {
        file: "switch.pcap".into(),
        rate: [Rate::gbit(10), Rate::bit(1), Rate::bit(u64::MAX)][usize::from(choice & 3) % 3],
        cell: Bytes([64, 1, 1500, u64::MAX][usize::from(choice >> 2 & 3)]),
        inputs: [Inputs::Flow, Inputs::Source, Inputs::Interface][usize::from(choice >> 4 & 3) % 3],
        outputs: if choice & 64 == 0 { Outputs::Destination } else { Outputs::Flow },
        speed: (speed & 3 == 1).then(|| [1.0, 1e-300, 1e300, 0.5][usize::from(speed >> 2 & 3)]),
        load: (speed & 3 == 2).then(|| f64::from(speed >> 2) / 64.0),
        repeat: choice & 128 != 0,
        limit: (speed & 3 == 3).then(|| Packets(u64::from(speed >> 2))),
    };
    let plan = Plan {
        ports: 2 + usize::from(ports % 15),
        arbiter: "islip".parse().expect("the arbiter is in the registry"),
        traffic: TrafficSpec::trace(config),
        slots: SLOTS,
        warmup: 0,
        streams: Streams::new(1),
        folder: scratch::folder(),
    };
    match Sim::new(&plan) {
        Ok(mut sim) => {
            sim.step_to(SLOTS);
            let _ = sim.outcome();
        }
        Err(invalid) => assert!(!invalid.to_string().is_empty()),
    }
}
