//! Media that several links share ([`giveway_links::Medium`]), each with a timer for the next burst.

use giveway_links::{Medium, MediumSpec, Station};
use giveway_qdisc::{Streams, Time};

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::network::MediumPlan;

/// The place of a link on a shared medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Number of the medium.
    pub medium: u16,
    /// The link, as the medium knows it.
    pub station: Station,
    /// The largest length of a packet, in bytes.
    pub mtu: u32,
}

/// The media of a network.
#[derive(Default)]
pub(crate) struct Media(Vec<Shared>);

struct Shared {
    medium: Medium,
    timer: Timer,
    /// The number of the link of each station, by number.
    links: Vec<u32>,
}

impl Media {
    /// Media without links.
    pub fn new(plans: &[MediumPlan], streams: &Streams, queue: &mut EventQueue) -> Media {
        let shared = plans.iter().zip(0..).map(|(plan, number)| {
            let own = streams.within("medium").within(&plan.name);
            Shared {
                medium: Medium::new(plan.spec, &own),
                timer: queue.add(Owner::Medium(number), Rank::of(Class::Packet, &own)),
                links: Vec::new(),
            }
        });
        Media(shared.collect())
    }

    /// Adds a link from one node to another, whose packets have at most `mtu` bytes.
    pub fn add(&mut self, medium: u16, link: u32, (from, to): (u16, u16), mtu: u32) -> Member {
        let shared = &mut self.0[usize::from(medium)];
        shared.links.push(link);
        Member { medium, station: shared.medium.add(from, to), mtu }
    }

    /// A link has packets from `now` on.
    pub fn request(&mut self, member: Member, now: Time, queue: &mut EventQueue) {
        let shared = &mut self.0[usize::from(member.medium)];
        shared.medium.request(member.station, now);
        queue.set(shared.timer, shared.medium.next());
    }

    /// The link that may send a burst now, with its station and the parameters of the medium.
    pub fn grant(&mut self, medium: u16, now: Time) -> Option<(u32, Station, MediumSpec)> {
        let shared = &mut self.0[usize::from(medium)];
        let station = shared.medium.grant(now)?;
        Some((shared.links[station.number()], station, *shared.medium.spec()))
    }

    /// The burst that was granted lasts from one time to another. The link `waits` if it has more packets.
    pub fn end(
        &mut self,
        medium: u16,
        station: Station,
        (from, until): (Time, Time),
        waits: bool,
        queue: &mut EventQueue,
    ) {
        let shared = &mut self.0[usize::from(medium)];
        shared.medium.end(station, from, until, waits);
        queue.set(shared.timer, shared.medium.next());
    }
}
