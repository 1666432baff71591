//! Helpers of several tests: a file in memory, and a driver of disciplines.

#![allow(dead_code)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use giveway_disciplines::Spec;
use giveway_qdisc::contract::{Event, drive, ops_from_bytes};
use giveway_qdisc::{Downstream, LinkContext, Rate, Rng, Streams};
use giveway_replay::{Options, Recording, Traced, WhenFull};

/// A file in memory that the test can read while the trace writes it.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Options with which no trace is cut: the test waits for the writer.
pub const PATIENT: Options = Options { slots: 1 << 12, when_full: WhenFull::Wait };

/// A trace in memory.
pub fn recording(options: Options) -> (Recording, Memory) {
    let file = Memory::default();
    (Recording::start(file.clone(), "a test", options).unwrap(), file)
}

/// A link with some known downstream links.
pub fn context(rate: Rate, seed: u64) -> LinkContext {
    let links = [
        ((0, 1), Rate::mbit(30)),
        ((0, 2), Rate::mbit(10)),
        ((1, 1), Rate::kbit(70)),
        ((1, 2), Rate::gbit(1)),
    ];
    let streams = Streams::new(seed).within("link").within("home->isp").within("qdisc");
    LinkContext { downstream: Downstream::new(0, links), ..LinkContext::new(rate, streams) }
}

/// Drives a discipline through `operations` operations of the contract suite, with more arrivals than
/// departures, and drains it.
pub fn driven(
    traced: &mut Traced<u64>,
    spec: &Spec,
    context: &LinkContext,
    operations: u64,
    seed: u64,
) -> Vec<Event> {
    let mut rng = Streams::new(seed).within("operations").rng();
    let events = drive(traced, spec.properties(context), &operations_of(&mut rng, operations));
    events.unwrap_or_else(|violation| panic!("{spec}: {}", violation.0))
}

fn operations_of(rng: &mut Rng, count: u64) -> Vec<giveway_qdisc::contract::Op> {
    let bytes: Vec<u8> = (0..count * 4).map(|_| rng.word() as u8).collect();
    ops_from_bytes(&bytes)
}

/// The trace of a discipline that is built as `built`, while the trace names `named`.
pub fn trace_of(built: (&Spec, &LinkContext), named: (&Spec, &LinkContext), operations: u64) -> Vec<u8> {
    let (recording, file) = recording(PATIENT);
    let inner = built.0.build(built.1).expect("the parameters are valid");
    let mut traced = recording.tracer().wrap("home->isp", &named.0.to_string(), named.1, inner);
    driven(&mut traced, built.0, built.1, operations, 1);
    drop(traced);
    recording.finish().unwrap();
    file.bytes()
}
