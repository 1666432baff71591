//! Outages: links fail and come back at times that the plan sets.
//!
//! During an outage the transmitter rests, and routes lead around the link. Each packet takes the shortest
//! route that exists when it reaches a node, and the next hops on that route are written on it there.
//!
//! Queued packets are neither lost nor moved. Packets in the queue of the link wait until it is up again. A
//! packet that a discipline has sorted by a next hop that is no longer used stays in its queue. So packets of
//! a flow can overtake each other twice: those that go around a link pass those that wait for it, and after
//! the repair the short route may be faster than the long one. Packets on the wire arrive. If no route
//! exists, packets are dropped as unreachable.

use giveway_qdisc::Time;

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::link::Link;
use crate::network::LinkPlan;

/// The changes of all links that are still to come.
pub(crate) struct Changes {
    /// The next change last.
    pending: Vec<Change>,
    timer: Timer,
}

/// A link fails or comes back. The order is that in which changes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Time,
    link: u32,
    up: bool,
}

impl Changes {
    /// The changes of these links.
    pub fn new(links: &[LinkPlan], queue: &mut EventQueue) -> Changes {
        let mut pending: Vec<Change> = Vec::new();
        for (link, number) in links.iter().zip(0..) {
            for (down, up) in &link.outages {
                pending.push(Change { at: *down, link: number, up: false });
                pending.push(Change { at: *up, link: number, up: true });
            }
        }
        pending.sort_unstable_by(|a, b| b.cmp(a));
        let timer = queue.add(Owner::Outage, Rank::only(Class::Outage));
        let changes = Changes { pending, timer };
        changes.schedule(queue);
        changes
    }

    /// True if a link will fail or come back.
    pub fn any(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Applies the changes that are due, and sets the timer to the next one. The caller computes the routes.
    pub fn apply(&mut self, now: Time, links: &mut [Link], queue: &mut EventQueue) {
        while let Some(change) = self.pending.pop_if(|change| change.at <= now) {
            let link = &mut links[change.link as usize];
            link.set_up(change.up, now);
            link.schedule(queue);
        }
        self.schedule(queue);
    }

    fn schedule(&self, queue: &mut EventQueue) {
        queue.set(self.timer, self.pending.last().map_or(Time::NEVER, |change| change.at));
    }
}
