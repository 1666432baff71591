//! Runs on a network: one for each discipline and seed, each alone and repeatable.

use std::ops::Range;
use std::sync::Arc;

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, Invalid, LinkContext, PortId, Probe, Qdisc, Rate, Streams, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{LinkPlan, Plan, Segment, Sim, Totals};

use super::topology::{Port, onward};
use super::{Network, Paths};
use crate::scenario::{Times, Trial};

/// What came of a run, beside what its probe heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// What it cost.
    pub totals: Totals,
    /// What its sources have to say: a sentence each, beginning with the name of the traffic.
    pub remarks: Vec<String>,
}

/// Builds the discipline of a port of a run.
pub type Build<'a> = &'a dyn Fn(&Port, &Spec, &LinkContext) -> Result<Box<dyn Qdisc<Segment>>, Invalid>;

/// Builds a discipline for a simulated link.
///
/// Whoever needs one calls this: [`Spec::build`] is compiled once more, with all disciplines, in each crate that calls
/// it for segments.
///
/// # Errors
/// The parameter that makes no sense at that site.
pub fn discipline(spec: &Spec, context: &LinkContext) -> Result<Box<dyn Qdisc<Segment>>, Invalid> {
    spec.build(context)
}

/// Which of the measured ports flows cross: for each pair of nodes, sender first, in their order. Routes are those of a
/// network whose links are all up.
pub type Crossed = Arc<dyn Fn(&[(u16, u16)]) -> Vec<Vec<PortId>> + Send + Sync>;

/// What a recorder needs to know about a run.
#[derive(Clone)]
pub struct Measured {
    /// The measured ports; the first is the bottleneck of the tables.
    pub ports: Vec<PortId>,
    /// Which of them flows cross.
    pub crossed: Crossed,
    /// Names of all ports, by number.
    pub port_names: Vec<String>,
    /// Rates of the links behind all ports, by number.
    pub rates: Vec<Rate>,
    /// Names of the nodes, by number.
    pub nodes: Vec<String>,
    /// Names of the traffic, by number of the source.
    pub sources: Vec<String>,
    /// When the measurement interval begins.
    pub from: Time,
    /// When it ends.
    pub until: Time,
    /// Upper ends of the classes of transfer sizes, where the scenario has its own.
    pub size_classes: Option<Vec<Bytes>>,
    /// Packets up to this length are small, where the scenario says so.
    pub small_packet: Option<Bytes>,
}

impl Network {
    /// The discipline whose turn it is.
    pub fn discipline(&self, trial: &Trial) -> &Spec {
        &self.disciplines[trial.discipline]
    }

    /// What a recorder needs to know; the same for every trial.
    pub fn measured(&self) -> Measured {
        let interval = self.interval();
        Measured {
            ports: self.measured.clone(),
            crossed: self.crossed(),
            port_names: self.ports.iter().map(|port| port.name.clone()).collect(),
            rates: self.ports.iter().map(|port| port.rate).collect(),
            nodes: self.nodes.clone(),
            sources: self.traffic.iter().map(|stream| stream.name.clone()).collect(),
            from: interval.start,
            until: interval.end,
            size_classes: self.size_classes.clone(),
            small_packet: self.small_packet,
        }
    }

    /// The measurement interval: from the end of the warm-up to the beginning of the cool-down.
    fn interval(&self) -> Range<Time> {
        let Times { duration, warmup, cooldown } = self.times;
        Time::ZERO + warmup..Time::ZERO + (duration - cooldown)
    }

    /// Which of the measured ports flows cross. Routes are computed for the destinations that are asked for.
    fn crossed(&self) -> Crossed {
        let nodes = self.nodes.len();
        let links: Vec<(u16, u16, u32)> =
            self.ports.iter().map(|port| (port.from, port.to, port.cost)).collect();
        let measured = self.measured.clone();
        Arc::new(move |pairs| {
            let paths = Paths::over(nodes, &links);
            let crossed = |(from, to): &(u16, u16)| {
                let path = paths.path(*from, *to).unwrap_or_default();
                let is_on_it = |port: &PortId| path.contains(&(port.0 as usize));
                measured.iter().copied().filter(is_on_it).collect()
            };
            pairs.iter().map(crossed).collect()
        })
    }

    /// The simulation of a trial, ready to begin. Random streams are named: those of a link by its name, those of traffic by
    /// [`Stream::id`](super::Stream::id). They do not depend on the discipline, so all disciplines meet the same arrivals.
    ///
    /// # Panics
    /// When the trial is of another scenario, or a file that the scenario names has changed since the scenario was read.
    pub fn plan(&self, trial: &Trial) -> Plan {
        self.plan_built(trial, &|_, spec, context| discipline(spec, context))
    }

    /// The same with disciplines that `build` builds: each as it is told, but perhaps watched.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn plan_built(&self, trial: &Trial, build: Build<'_>) -> Plan {
        let compared = self.discipline(trial);
        let streams = Streams::new(trial.seed);
        let mut network = giveway_sim::Network::new(self.nodes.len());
        let onward = onward(&self.ports);
        for port in &self.ports {
            let qdisc = build(port, port.queue.spec(compared), &port.context(&streams, &onward));
            let qdisc = qdisc.expect("it was built when the scenario was read");
            network.link(LinkPlan {
                name: port.name.clone(),
                from: port.from,
                to: port.to,
                rate: port.rate,
                delay: port.delay,
                jitter: port.jitter,
                loss: port.loss,
                cost: port.cost,
                outages: port.outages.clone(),
                qdisc,
            });
        }
        let sources = self.traffic.iter().map(|stream| {
            let place = stream.place(&streams, &self.folder, &self.nodes);
            let source = stream.spec.build(&place);
            SourcePlan {
                name: stream.id.clone(),
                group: stream.name.clone(),
                start: stream.start,
                source: source.unwrap_or_else(|invalid| panic!("{}: {invalid}", stream.name)),
                tcp: stream.tcp.clone(),
                class: stream.class,
                reserved: stream.reserved,
            }
        });
        Plan {
            sources: sources.collect(),
            network,
            until: Time::ZERO + self.times.duration,
            measured: self.interval(),
            sample: Some(self.sample),
            sample_senders: self.senders,
            streams,
            lookahead: self.looks_ahead(compared),
        }
    }

    /// How many hops beyond a link the disciplines look where `compared` has its turn, or whoever measures.
    fn looks_ahead(&self, compared: &Spec) -> usize {
        let specs = self.ports.iter().map(|port| port.queue.spec(compared));
        specs.map(Spec::looks_ahead).max().unwrap_or(0).max(usize::from(self.bursts))
    }

    /// Runs a trial. Now and then `go_on` is told how much of it is done, 0 to 1; when it answers false the run stops
    /// and there is no result.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn run<R: Probe<Segment>>(
        &self,
        trial: &Trial,
        probe: &mut R,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        self.run_built(trial, &|_, spec, context| discipline(spec, context), probe, go_on)
    }

    /// The same with disciplines that `build` builds: each as it is told, but perhaps watched.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn run_built<R: Probe<Segment>>(
        &self,
        trial: &Trial,
        build: Build<'_>,
        probe: &mut R,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        /// Often enough for a progress bar, seldom enough to cost nothing.
        const STEPS: u64 = 500;
        let mut sim = Sim::new(self.plan_built(trial, build));
        for step in 1..=STEPS {
            sim.step_to(Time::ZERO + self.times.duration.scale(step, STEPS), probe);
            if !go_on(step as f64 / STEPS as f64) {
                return None;
            }
        }
        let remarks = sim
            .remarks()
            .map(|(source, remark)| format!("{}: {remark}", self.traffic[usize::from(source)].name));
        let remarks = remarks.collect();
        Some(Finished { totals: sim.finish(probe), remarks })
    }
}
