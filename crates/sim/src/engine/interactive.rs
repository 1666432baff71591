//! A simulation that its user reads and changes between steps.
//!
//! [`Sim::interactive`] keeps a port at every link; otherwise the departures of a [plain](crate::plain) queue
//! are computed, and there is no port to read or to change. The results of a run are the same.
//!
//! A change happens at [`Sim::now`], after all events at that time. The link then looks at its queue as after
//! an arrival: a packet that may leave starts its transmission at once, and a packet that the new discipline
//! holds back leaves at another time. A transmission that has started keeps its end, and a packet on the wire
//! keeps its arrival.

use giveway_qdisc::{Port, Probe, Qdisc, Rate, Share, Span};

use super::Sim;
use crate::link::Link;
use crate::refused::LinkChangeError;
use crate::segment::Segment;

impl Sim {
    /// This simulation with a port at every link, also where departures could be computed in advance. It
    /// takes longer, and gives the same results. Call it before the first step.
    ///
    /// # Panics
    /// After the first step.
    #[must_use]
    pub fn interactive(mut self) -> Sim {
        assert!(!self.simplified, "a simulation becomes interactive before its first step");
        // Links that are taken for simplified stay as they are.
        self.simplified = true;
        self
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// The port of a link: its counters and its rate, and the gauges, the flow table and the classes of its
    /// discipline. `None` if there is no link of this number, or its departures are computed.
    ///
    /// A port is informed of the changes of a rate that varies before its next packet, so that its rate may
    /// be an old one.
    pub fn port(&self, link: u32) -> Option<&Port<Segment>> {
        self.links.get(link as usize).filter(|link| !link.is_plain()).map(Link::port)
    }

    /// Replaces the discipline of a link now. The new one takes over what it can ([`Qdisc::take_over`]); the
    /// packets that stay in the old one leave first.
    ///
    /// # Errors
    /// If the link cannot be changed; no change is made then.
    pub fn replace<R: Probe<Segment>>(
        &mut self,
        link: u32,
        qdisc: Box<dyn Qdisc<Segment>>,
        probe: &mut R,
    ) -> Result<(), LinkChangeError> {
        let now = self.now;
        self.changeable(link)?.replace(qdisc, now, probe);
        self.look(link, probe);
        Ok(())
    }

    /// Changes the rate of a link from its next transmission on; the present one keeps its end. The
    /// discipline learns the new rate ([`Qdisc::rate_changed`]).
    ///
    /// # Errors
    /// If the rate of the link varies by itself, the new one is zero, or the link cannot be changed.
    pub fn change_rate<R: Probe<Segment>>(
        &mut self,
        link: u32,
        rate: Rate,
        probe: &mut R,
    ) -> Result<(), LinkChangeError> {
        let now = self.now;
        if rate == Rate::bit(0) {
            return Err(LinkChangeError::NoRate);
        }
        self.changeable(link)?.change_rate(rate, now)?;
        self.look(link, probe);
        Ok(())
    }

    /// Changes the delay of the wire of a link. It counts for transmissions that start from now on. They do
    /// not overtake packets that are on the wire, unless the link is `unordered`.
    ///
    /// # Errors
    /// If the delay of the link varies by itself, or the link cannot be changed.
    pub fn change_delay(&mut self, link: u32, delay: Span) -> Result<(), LinkChangeError> {
        let wire = self.wires.get(link as usize).ok_or(LinkChangeError::NoLink)?.clone();
        self.changeable(link)?.change_delay(delay, &wire)
    }

    /// Changes the probability that the wire of a link loses a packet, for transmissions that start from
    /// now on.
    ///
    /// # Errors
    /// If the loss of the link follows a model, or the link cannot be changed.
    pub fn change_loss(&mut self, link: u32, loss: Share) -> Result<(), LinkChangeError> {
        let wire = self.wires.get(link as usize).ok_or(LinkChangeError::NoLink)?.clone();
        self.changeable(link)?.change_loss(loss, &wire)
    }

    /// Writes at least this many next hops on packets that arrive at a port from now on, for disciplines that
    /// are built later ([`Plan::lookahead`](crate::Plan::lookahead)).
    pub fn look_ahead(&mut self, hops: usize) {
        self.lookahead = self.lookahead.max(hops);
    }

    /// The link, if it may be changed.
    fn changeable(&mut self, link: u32) -> Result<&mut Link, LinkChangeError> {
        let link = self.links.get_mut(link as usize).ok_or(LinkChangeError::NoLink)?;
        if link.is_plain() { Err(LinkChangeError::Computed) } else { Ok(link) }
    }

    /// Lets a link look at its queue as after an arrival.
    fn look<R: Probe<Segment>>(&mut self, link: u32, probe: &mut R) {
        if let Some((at, departing)) = self.links[link as usize].look(self.now, probe) {
            self.depart(link, at, departing);
        }
        self.links[link as usize].schedule(&mut self.queue);
    }
}
