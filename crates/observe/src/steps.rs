//! A run with a recorder that advances step by step, and is read and changed between its steps.

use giveway_disciplines::Spec;
use giveway_measure::{Record, Recorder};
use giveway_qdisc::{DropReason, Interest, Meta, PortId, Probe, Qdisc, Rate, Span, Time};
use giveway_scenario::{Build, ChangeError, Network, Stepped, Trial};
use giveway_sim::{LinkChangeError, Plan, Segment};

use crate::{recorded, recorder};

/// The packets that a port sent, and their sojourn times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sojourns {
    /// Packets that were sent.
    pub packets: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// The sum of the sojourn times.
    pub sum: Span,
    /// The longest sojourn time.
    pub most: Span,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// A trial in progress, with its recorder.
pub struct Steps {
    stepped: Stepped,
    probes: (Recorder<Segment>, Recent),
}

/// The packets of each port since it was last read, by the number of the port.
struct Recent(Vec<Sojourns>);

impl Recent {
    #[inline]
    fn at(&mut self, at: PortId) -> Option<&mut Sojourns> {
        self.0.get_mut(at.0 as usize)
    }
}

impl Probe<Segment> for Recent {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Port
    }

    #[inline]
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        if let Some(port) = self.at(at) {
            let sojourn = now.since(meta.arrived);
            port.packets += 1;
            port.bytes += u64::from(meta.bytes);
            port.sum += sojourn;
            port.most = port.most.max(sojourn);
        }
    }

    #[inline]
    fn on_drop(&mut self, at: PortId, _: &Meta, _: &Segment, _: DropReason, _: Time) {
        if let Some(port) = self.at(at) {
            port.dropped += 1;
        }
    }
}

impl Steps {
    /// Prepares a trial ([`Network::stepped`]). If `keep_series` is true, its record includes samples over
    /// time.
    ///
    /// # Panics
    /// As [`Network::plan`].
    pub fn new(network: &Network, trial: &Trial, build: Build<'_>, keep_series: bool) -> Steps {
        Steps::of_plan(network, trial, network.plan_built(trial, build), keep_series)
    }

    /// Like [`new`](Steps::new), with a plan of the trial that the caller has changed.
    pub fn of_plan(network: &Network, trial: &Trial, plan: Plan, keep_series: bool) -> Steps {
        let stepped = network.stepped_plan(trial, plan);
        let recent = Recent(vec![Sojourns::default(); stepped.port_names().count()]);
        Steps { stepped, probes: (recorder(network, keep_series), recent) }
    }

    /// The trial: its time, ports and queues.
    pub fn trial(&self) -> &Stepped {
        &self.stepped
    }

    /// The trial, to watch queues, and to change the delay or the losses of links. All else would miss the
    /// recorder, and is a method of [`Steps`].
    pub fn trial_mut(&mut self) -> &mut Stepped {
        &mut self.stepped
    }

    /// Handles all events up to and including `until`, or up to the end of the trial if that comes first.
    pub fn step_to(&mut self, until: Time) {
        self.stepped.step_to(until, &mut self.probes);
    }

    /// The packets of a port since the last call; none at a port that does not exist.
    pub fn since(&mut self, port: PortId) -> Sojourns {
        self.probes.1.at(port).map(std::mem::take).unwrap_or_default()
    }

    /// Replaces the discipline of a port by one that is built from a spec ([`Stepped::replace`]).
    ///
    /// # Errors
    /// The parameter that is not valid at that link, or the reason for which the link cannot be changed.
    pub fn replace(&mut self, port: PortId, spec: &Spec) -> Result<(), ChangeError> {
        self.stepped.replace(port, spec, &mut self.probes)
    }

    /// Replaces the discipline of a port by one that the caller has built ([`Stepped::replace_by`]).
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn replace_by(
        &mut self,
        port: PortId,
        qdisc: Box<dyn Qdisc<Segment>>,
    ) -> Result<(), LinkChangeError> {
        self.stepped.replace_by(port, qdisc, &mut self.probes)
    }

    /// Changes the rate of a link ([`Stepped::change_rate`]).
    ///
    /// # Errors
    /// The reason for which the link cannot be changed.
    pub fn change_rate(&mut self, port: PortId, rate: Rate) -> Result<(), LinkChangeError> {
        self.stepped.change_rate(port, rate, &mut self.probes)
    }

    /// Ends the trial at the present time. Returns its record, and the remarks of its sources.
    pub fn finish(self) -> (Record, Vec<String>) {
        let Steps { stepped, probes: (mut recorder, _) } = self;
        let now = stepped.now();
        let early = now < stepped.until();
        let finished = stepped.finish(&mut recorder);
        let recorder = if early { recorder.ended(now) } else { recorder };
        recorded(recorder, finished)
    }
}
