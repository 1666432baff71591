//! A trial that runs step by step, and is read and changed between the steps.

use std::collections::BTreeMap;

use giveway_disciplines::Spec;
use giveway_links::Police;
use giveway_qdisc::{Invalid, LinkContext, Meta, PortId, Probe, Qdisc, Rate, Share, Span, Streams, Time};
use giveway_sim::{LinkChangeError, Plan, Segment, Sim, Watched};

use super::model::Network;
use super::run::{Build, Finished, discipline, equipped, named};
use super::topology::downstream;
use crate::trial::Trial;

/// A trial in progress. It keeps a port at every link ([`Sim::interactive`]), and gives the results of
/// [`Network::run`] if nothing is changed. It does not need its scenario any more.
///
/// A change happens at [`Stepped::now`], after all events at that time.
pub struct Stepped {
    sim: Sim,
    watched: Watched,
    places: Vec<Place>,
    numbers: BTreeMap<String, PortId>,
    /// The names of the traffic, by number of the source.
    traffic: Vec<String>,
    until: Time,
}

/// A port, for disciplines that are built later.
struct Place {
    name: String,
    context: LinkContext,
    police: Option<Police>,
    thin_acks: Option<u32>,
    /// The number of disciplines that were built for the port while the trial ran.
    built: u32,
}

/// The reason for which a change of a trial is refused. No change is made then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The parameter that is not valid at that link.
    Invalid(Invalid),
    /// The link cannot be changed in this way.
    Refused(LinkChangeError),
}

impl std::fmt::Display for ChangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChangeError::Invalid(invalid) => invalid.fmt(f),
            ChangeError::Refused(refused) => refused.fmt(f),
        }
    }
}
impl std::error::Error for ChangeError {}

impl From<LinkChangeError> for ChangeError {
    fn from(refused: LinkChangeError) -> ChangeError {
        ChangeError::Refused(refused)
    }
}

impl From<Invalid> for ChangeError {
    fn from(invalid: Invalid) -> ChangeError {
        ChangeError::Invalid(invalid)
    }
}

impl Network {
    /// A trial to run step by step. `build` builds its disciplines, as in [`Network::plan_built`].
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn stepped(&self, trial: &Trial, build: Build<'_>) -> Stepped {
        self.stepped_plan(trial, self.plan_built(trial, build))
    }

    /// Like [`stepped`](Network::stepped), with a plan of the trial that the caller has changed.
    pub fn stepped_plan(&self, trial: &Trial, plan: Plan) -> Stepped {
        let sim = Sim::new(plan).interactive();
        let streams = Streams::new(trial.seed);
        let links = downstream(&self.ports);
        let places = self.ports.iter().map(|port| Place {
            name: port.name.clone(),
            context: port.context(&streams, &links),
            police: port.police,
            thin_acks: port.thin_acks,
            built: 0,
        });
        Stepped {
            sim,
            watched: Watched::default(),
            places: places.collect(),
            numbers: self.ports.iter().map(|port| port.name.clone()).zip((0..).map(PortId)).collect(),
            traffic: self.traffic.iter().map(|stream| stream.name.clone()).collect(),
            until: Time::ZERO + self.times.duration,
        }
    }
}

impl Stepped {
    /// Handles all events up to and including `until`, or up to the end of the trial if that comes first. Use
    /// one probe for the whole trial.
    pub fn step_to<R: Probe<Segment>>(&mut self, until: Time, probe: &mut R) {
        if self.watched.is_empty() {
            self.sim.step_to(until, probe);
        } else {
            self.sim.step_to(until, &mut (probe, &mut self.watched));
        }
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// The end of the trial.
    pub fn until(&self) -> Time {
        self.until
    }

    /// The simulation: the ports of its links ([`Sim::port`]), and the number of its events.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The number of a port, by its name such as "home->isp".
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.numbers.get(name).copied()
    }

    /// The names of all ports, by number.
    pub fn port_names(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|place| &*place.name)
    }

    /// The context of a new discipline of a port, at the present rate of the link, or the rate in the
    /// scenario if it varies. Each call names other random streams, by the number of the call.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn context(&mut self, port: PortId) -> Result<LinkContext, LinkChangeError> {
        let place = self.places.get_mut(port.0 as usize).ok_or(LinkChangeError::NoLink)?;
        place.built += 1;
        let streams = place.context.streams.within(&format!("change {}", place.built));
        Ok(LinkContext { streams, ..place.context.clone() })
    }

    /// Replaces the discipline of a port by one that is built from a spec. One of the same kind takes over
    /// the queue and the state of the old one, and has other parameters from now on.
    ///
    /// # Errors
    /// The parameter that is not valid at that link, or the reason for which the link cannot be changed.
    pub fn replace<R: Probe<Segment>>(
        &mut self,
        port: PortId,
        spec: &Spec,
        probe: &mut R,
    ) -> Result<(), ChangeError> {
        let context = self.context(port)?;
        let qdisc = discipline(spec, &context)?;
        self.sim.look_ahead(spec.lookahead());
        Ok(self.replace_by(port, qdisc, probe)?)
    }

    /// Like [`replace`](Stepped::replace), by a discipline that the caller has built, with a
    /// [context](Stepped::context) of the port.
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn replace_by<R: Probe<Segment>>(
        &mut self,
        port: PortId,
        qdisc: Box<dyn Qdisc<Segment>>,
        probe: &mut R,
    ) -> Result<(), LinkChangeError> {
        let place = self.places.get(port.0 as usize).ok_or(LinkChangeError::NoLink)?;
        let new = equipped(qdisc, place.thin_acks, place.police);
        if self.watched.is_empty() {
            self.sim.replace(port.0, new, probe)
        } else {
            self.sim.replace(port.0, new, &mut (probe, &mut self.watched))
        }
    }

    /// Changes the rate of a link from its next transmission on ([`Sim::change_rate`]). Disciplines at other
    /// links that know the rates downstream keep the rates of the scenario.
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn change_rate<R: Probe<Segment>>(
        &mut self,
        port: PortId,
        rate: Rate,
        probe: &mut R,
    ) -> Result<(), LinkChangeError> {
        if self.watched.is_empty() {
            self.sim.change_rate(port.0, rate, probe)?;
        } else {
            self.sim.change_rate(port.0, rate, &mut (probe, &mut self.watched))?;
        }
        self.places[port.0 as usize].context.rate = rate;
        Ok(())
    }

    /// Changes the delay of a link for later transmissions ([`Sim::change_delay`]).
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn change_delay(&mut self, port: PortId, delay: Span) -> Result<(), LinkChangeError> {
        self.sim.change_delay(port.0, delay)
    }

    /// Changes the probability that a link loses a packet, for later transmissions ([`Sim::change_loss`]).
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn change_loss(&mut self, port: PortId, loss: Share) -> Result<(), LinkChangeError> {
        self.sim.change_loss(port.0, loss)
    }

    /// Watches the queue of a port from now on.
    pub fn watch(&mut self, port: PortId) {
        self.watched.watch(port);
    }

    /// Watches the queue of a port no longer.
    pub fn forget(&mut self, port: PortId) {
        self.watched.forget(port);
    }

    /// The packets in the queue of a watched port in order of arrival, each with its number
    /// ([`Watched::packets`]); `None` if the port is not watched.
    pub fn queue(&self, port: PortId) -> Option<impl Iterator<Item = (u64, &Meta)>> {
        self.watched.packets(port)
    }

    /// The remarks of sources on the trial so far. Each is a sentence that starts with the name of
    /// the traffic.
    pub fn remarks(&self) -> Vec<String> {
        named(&self.traffic, self.sim.remarks())
    }

    /// Ends the trial at the present time: reports all flows to the probe. The results are the same as from
    /// [`Network::run`] after a step to [`until`](Stepped::until).
    pub fn finish<R: Probe<Segment>>(self, probe: &mut R) -> Finished {
        let remarks = self.remarks();
        Finished { totals: self.sim.finish(probe), remarks, equals: Vec::new() }
    }
}
