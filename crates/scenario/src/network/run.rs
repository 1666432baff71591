//! Runs of a scenario on a network. A run depends on its discipline and its seed only.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use giveway_disciplines::Spec;
use giveway_links::{Police, Policed};
use giveway_qdisc::{
    Bytes, Divisible, Invalid, LinkContext, PortId, Probe, Qdisc, Rate, Span, Streams, Time,
};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Gain, LinkPlan, Partition, Plan, Segment, Sim, ThinAcks, Totals, parallel};

use super::model::Network;
use super::paths::Paths;
use super::topology::{Port, downstream};
use crate::schedule::Times;
use crate::trial::Trial;

/// Minimum number of times that a run reports its progress: enough for a progress bar, and few enough to take
/// no measurable time.
const STEPS: u64 = 500;

/// Maximum number of events in a step: a few milliseconds of a processor, so that a run stops soon.
const STEP_EVENTS: u64 = 50_000;

/// The result of a run. Its measurements are in the probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The numbers of events and packets.
    pub totals: Totals,
    /// The remarks of sources. Each is a sentence that starts with the name of the traffic.
    pub remarks: Vec<String>,
    /// The groups of [equal sources](Network::equal_sources), by name.
    pub equals: Vec<Vec<String>>,
}

/// A function that builds the discipline of a port.
pub type Build<'a> = &'a dyn Fn(&Port, &Spec, &LinkContext) -> Result<Box<dyn Qdisc<Segment>>, Invalid>;

/// Builds a discipline for a simulated link.
///
/// Prefer this function to [`Spec::build`], which each calling crate compiles again, with all disciplines.
///
/// # Errors
/// The parameter that is not valid at that link.
pub fn discipline(spec: &Spec, context: &LinkContext) -> Result<Box<dyn Qdisc<Segment>>, Invalid> {
    spec.build(context)
}

/// A discipline behind the policer of its port, if the port has one, and with the filter of acknowledgements.
pub(super) fn equipped(
    mut qdisc: Box<dyn Qdisc<Segment>>,
    thin_acks: Option<u32>,
    police: Option<Police>,
) -> Box<dyn Qdisc<Segment>> {
    if let Some(most) = thin_acks {
        qdisc = Box::new(ThinAcks::new(most, qdisc));
    }
    if let Some(police) = police {
        qdisc = Box::new(Policed::new(police, qdisc));
    }
    qdisc
}

/// A function from pairs of nodes, sender first, to the measured ports that flows between them cross, on any
/// of several equally short paths. Routes are computed without outages.
pub type PortsOnRoute = Arc<dyn Fn(&[(u16, u16)]) -> Vec<Vec<PortId>> + Send + Sync>;

/// The setup of a recorder for a run.
#[derive(Clone)]
pub struct Measured {
    /// The measured ports; the first is the bottleneck of the tables.
    pub ports: Vec<PortId>,
    /// The measured ports that flows cross.
    pub crossed: PortsOnRoute,
    /// The names of all ports, by number.
    pub port_names: Vec<String>,
    /// The rates of all ports, by number. The rate of a link that varies is the mean of what it offers in the
    /// measurement interval.
    pub rates: Vec<Rate>,
    /// The ports whose rate varies.
    pub varying: Vec<PortId>,
    /// The names of the nodes, by number.
    pub nodes: Vec<String>,
    /// The names of the traffic, by number of the source.
    pub sources: Vec<String>,
    /// The start of the measurement interval.
    pub from: Time,
    /// The end of the measurement interval.
    pub until: Time,
    /// The upper ends of the size classes of transfers; `None` for the default.
    pub size_classes: Option<Vec<Bytes>>,
    /// The largest length of a small packet; `None` for the default.
    pub small_packet: Option<Bytes>,
}

/// The rate that a link offers on average within an interval, at least 1 bit/s.
fn offered(port: &Port, interval: &Range<Time>) -> Rate {
    let Some(profile) = &port.impairments.rate else { return port.rate };
    let bits = profile.integral(interval.start, interval.end);
    mean(bits, interval.end.since(interval.start)).max(Rate::bit(1))
}

/// The rate that passes this number of bits in a time.
fn mean(bits: u128, length: Span) -> Rate {
    let per_second = bits * 1_000_000_000_000 / u128::from(length.as_ps().max(1));
    Rate::bit(u64::try_from(per_second).unwrap_or(u64::MAX))
}

impl Network {
    /// The compared discipline of a trial.
    pub fn discipline(&self, trial: &Trial) -> &Spec {
        &self.disciplines[trial.discipline]
    }

    /// The setup of a recorder, which is the same for every trial.
    pub fn measured(&self) -> Measured {
        let interval = self.interval();
        Measured {
            ports: self.measured.clone(),
            crossed: self.crossed(),
            port_names: self.ports.iter().map(|port| port.name.clone()).collect(),
            rates: self.ports.iter().map(|port| offered(port, &interval)).collect(),
            varying: (0..)
                .map(PortId)
                .zip(&self.ports)
                .filter(|(_, port)| port.impairments.rate.is_some())
                .map(|(id, _)| id)
                .collect(),
            nodes: self.nodes.clone(),
            sources: self.traffic.iter().map(|stream| stream.name.clone()).collect(),
            from: interval.start,
            until: interval.end,
            size_classes: self.size_classes.clone(),
            small_packet: self.small_packet,
        }
    }

    /// The mean rate that a port offers in each of these stretches of time, given as start and length, each
    /// of which begins at the end of the previous one; `None` if its rate does not vary.
    pub fn offer(&self, port: PortId, stretches: &[(Time, Span)]) -> Option<Vec<Rate>> {
        let profile = self.ports.get(port.0 as usize)?.impairments.rate.as_ref()?;
        let first = stretches.first()?.0;
        let ends = stretches.iter().map(|(start, length)| *start + *length);
        let bits = profile.integrals(first, ends);
        Some(bits.zip(stretches).map(|(bits, (_, length))| mean(bits, *length)).collect())
    }

    /// The measurement interval: from the end of the warm-up to the beginning of the cooldown.
    fn interval(&self) -> Range<Time> {
        let Times { duration, warmup, cooldown } = self.times;
        Time::ZERO + warmup..Time::ZERO + (duration - cooldown)
    }

    /// The function that returns the measured ports that flows cross.
    fn crossed(&self) -> PortsOnRoute {
        let nodes = self.nodes.len();
        let links: Vec<(u16, u16, u32)> =
            self.ports.iter().map(|port| (port.from, port.to, port.cost)).collect();
        let measured = self.measured.clone();
        let routing = self.routing;
        // A recorder asks about each pair of nodes when its first packet arrives.
        let known = Mutex::new(None);
        Arc::new(move |pairs| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let paths = known.get_or_insert_with(|| Paths::over(routing, nodes, &links));
            let crossed = |(from, to): &(u16, u16)| {
                let path = paths.all(*from, *to);
                let is_on_it = |port: &PortId| path.contains(&(port.0 as usize));
                measured.iter().copied().filter(is_on_it).collect()
            };
            pairs.iter().map(crossed).collect()
        })
    }

    /// The plan of the simulation of a trial. Random streams have names: streams of a link its name, streams
    /// of traffic [`Stream::id`](super::traffic::Stream::id). They do not depend on the discipline, so all
    /// disciplines get the same arrivals.
    ///
    /// # Panics
    /// If the trial belongs to another scenario, or a file of the scenario has changed since the scenario was
    /// read.
    pub fn plan(&self, trial: &Trial) -> Plan {
        self.plan_built(trial, &|_, spec, context| discipline(spec, context))
    }

    /// Like [`plan`](Network::plan), but builds disciplines with `build`, so that a caller can wrap them (for
    /// tracing).
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn plan_built(&self, trial: &Trial, build: Build<'_>) -> Plan {
        let compared = self.discipline(trial);
        let streams = Streams::new(trial.seed);
        let mut network = giveway_sim::Network::new(self.nodes.len()).with_routing(self.routing);
        let downstream = downstream(&self.ports);
        for medium in &self.media {
            network.medium(medium.clone());
        }
        for port in &self.ports {
            let qdisc = build(port, port.spec(compared), &port.context(&streams, &downstream));
            let qdisc = qdisc.expect("the reader of the scenario built it, too");
            network.link(LinkPlan {
                name: port.name.clone(),
                from: port.from,
                to: port.to,
                rate: port.rate,
                delay: port.delay,
                jitter: port.jitter,
                loss: port.loss,
                impairments: port.impairments.clone(),
                cost: port.cost,
                outages: port.outages.clone(),
                medium: port.medium.map(|medium| (medium, port.mtu.0 as u32)),
                qdisc: equipped(qdisc, port.thin_acks, port.police),
            });
        }
        let sources = self.traffic.iter().map(|stream| {
            let context = stream.context(&streams, &self.folder, &self.nodes);
            let source = stream.spec.build(&context);
            SourcePlan {
                name: stream.id.clone(),
                group: stream.name.clone(),
                start: context.start,
                source: source.unwrap_or_else(|invalid| panic!("{}: {invalid}", stream.name)),
                pairs: Some(stream.pairs.clone()),
                tcp: stream.tcp.clone(),
                quic: stream.quic.clone(),
                class: stream.class,
                dscp: stream.dscp,
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
            lookahead: self.lookahead(compared),
            timing: self.timing.clone(),
        }
    }

    /// The number of downstream hops that a discipline of the run, or a measurement, needs to see.
    fn lookahead(&self, compared: &Spec) -> usize {
        let specs = self.ports.iter().map(|port| port.spec(compared));
        specs.map(Spec::lookahead).max().unwrap_or(0).max(usize::from(self.bursts))
    }

    /// Runs a trial. `keep_running` gets the progress from time to time, 0 to 1; if it returns false, the run
    /// stops without a result.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn run<R: Probe<Segment>>(
        &self,
        trial: &Trial,
        probe: &mut R,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        self.run_built(trial, &|_, spec, context| discipline(spec, context), probe, keep_running)
    }

    /// Like [`run`](Network::run), but builds disciplines with `build`, so that a caller can wrap them (for
    /// tracing).
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn run_built<R: Probe<Segment>>(
        &self,
        trial: &Trial,
        build: Build<'_>,
        probe: &mut R,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        self.run_plan(self.plan_built(trial, build), probe, keep_running)
    }

    /// Like [`run`](Network::run), with a plan of this network that the caller has changed, such as one with
    /// another source of traffic.
    pub fn run_plan<R: Probe<Segment>>(
        &self,
        plan: Plan,
        probe: &mut R,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        let mut sim = Sim::new(plan);
        let (end, most) = (Time::ZERO + self.times.duration, self.times.duration.scale(1, STEPS));
        let mut step = most;
        while sim.now() < end {
            let before = sim.events();
            sim.step_to((sim.now() + step).min(end), probe);
            if !keep_running(sim.now().as_s() / end.as_s()) {
                return None;
            }
            // A long run of a fast link is asked as often as a short one.
            step = match sim.events() - before {
                many if many > STEP_EVENTS => step.scale(1, 2).max(Span::ns(1)),
                few if few < STEP_EVENTS / 4 => step.scale(2, 1).min(most),
                _ => step,
            };
        }
        let remarks = self.named_remarks(sim.remarks());
        Some(self.finished(sim.finish(probe), remarks))
    }

    /// The division of the network for `threads` threads in a trial.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn partition(&self, trial: &Trial, threads: usize, gain: Gain) -> Partition {
        Partition::of(&|| self.plan(trial), threads, gain)
    }

    /// Like [`run`](Network::run), on several threads, with the same results. With one part it runs on the
    /// calling thread.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn run_divided<R: Divisible<Segment> + Send>(
        &self,
        trial: &Trial,
        (partition, threads): (&Partition, usize),
        probe: &mut R,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        if partition.parts() == 1 {
            return self.run(trial, probe, keep_running);
        }
        let mut reported = 0;
        let mut watch = |now: Time| {
            let steps = u128::from(now.as_ps()) * u128::from(STEPS);
            let step = (steps / u128::from(self.times.duration.as_ps())) as u64;
            std::mem::replace(&mut reported, step) == step || keep_running(step as f64 / STEPS as f64)
        };
        let ended = parallel::run(&|| self.plan(trial), partition, threads, probe, &mut watch)?;
        Some(self.finished(ended.totals, self.named_remarks(ended.remarks)))
    }

    fn finished(&self, totals: Totals, remarks: Vec<String>) -> Finished {
        let named = |group: Vec<&str>| group.into_iter().map(str::to_owned).collect();
        Finished { totals, remarks, equals: self.equal_sources().into_iter().map(named).collect() }
    }

    /// The remarks of sources, each after the name of its traffic.
    fn named_remarks(&self, remarks: impl IntoIterator<Item = (u16, String)>) -> Vec<String> {
        let names: Vec<&str> = self.traffic.iter().map(|stream| &*stream.name).collect();
        named(&names, remarks)
    }
}

/// Remarks of sources, each after the name of the traffic of its source.
pub(super) fn named(
    names: &[impl AsRef<str>],
    remarks: impl IntoIterator<Item = (u16, String)>,
) -> Vec<String> {
    let named = |(source, remark)| format!("{}: {remark}", names[usize::from(source)].as_ref());
    remarks.into_iter().map(named).collect()
}
