//! Counters of the classes of disciplines, at the start of the measurement interval and at the end of a run.

use std::collections::BTreeMap;

use giveway_qdisc::{ClassState, PortId};

/// The classes at the measured ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    ports: BTreeMap<PortId, Reported>,
}

/// The reports of one port, in the order in which the discipline visits its classes.
#[derive(Clone, Debug, Default)]
struct Reported {
    /// Counters at the start of the measurement interval.
    before: Vec<ClassState>,
    /// Counters at the end.
    after: Vec<ClassState>,
}

impl Classes {
    /// A report: before the measurement interval, or at its end.
    pub fn report(&mut self, at: PortId, state: &ClassState, before: bool) {
        let reported = self.ports.entry(at).or_default();
        let list = if before { &mut reported.before } else { &mut reported.after };
        list.push(state.clone());
    }

    /// Takes over the reports of a part of the network.
    pub fn join(&mut self, part: Classes, has: &dyn Fn(PortId) -> bool) {
        self.ports.extend(part.ports.into_iter().filter(|(port, _)| has(*port)));
    }

    /// The classes of a port: the counters of the measurement interval, and the state at its end.
    pub fn of(&self, at: PortId) -> Vec<ClassState> {
        let Some(Reported { before, after }) = self.ports.get(&at) else { return Vec::new() };
        let known: BTreeMap<&str, &ClassState> =
            before.iter().map(|state| (state.path.as_str(), state)).collect();
        let interval = |state: &ClassState| match known.get(state.path.as_str()) {
            Some(earlier) => state.since(earlier),
            None => state.clone(),
        };
        after.iter().map(interval).collect()
    }
}
