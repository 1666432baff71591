//! Admission control: decides about control packets. It does no input or output, and reads no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Rate, Span};
use giveway_reserve::{
    Counts, EtherTypes, Guard, Kind, Limits, Message, MessageError, Owner, Reason, Reservation, Table,
};
use giveway_watch::OpenShare;

use crate::reservations::change::Change;
use crate::reservations::frame::{ControlFrame, HEADER};

/// Configuration of reservations.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// EtherTypes of control packets.
    pub types: EtherTypes,
    /// Key of authenticated messages.
    pub key: Option<SipHasher>,
    /// Share of a link that may be reserved, in millionths.
    pub share: u64,
    /// Largest number of reservations of a link.
    pub most: usize,
    /// Time after which a reservation expires unless it is refreshed.
    pub lifetime: Span,
    /// Smallest rate of a reservation.
    pub least: Rate,
    /// Largest number of reservations of one owner.
    pub owner_flows: usize,
    /// Share of the reservable rate that one owner may have, in millionths.
    pub owner_share: u64,
    /// Share of the reservable rate and of the table that all owners without a key may have together, in
    /// millionths. With a key and 0 here, messages without a key are ignored.
    pub open_share: u64,
    /// Largest difference between the clock of a sender with a key and the clock of the router.
    pub skew: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            types: EtherTypes::LOCAL,
            key: None,
            share: Limits::SHARE * 1000,
            most: Limits::MAX,
            lifetime: Span::ns(Limits::LIFETIME),
            least: Limits::MIN,
            owner_flows: Limits::OWNER_FLOWS,
            owner_share: Limits::OWNER_SHARE,
            open_share: Limits::OPEN_SHARE,
            skew: Span::ns(Guard::SKEW),
        }
    }
}

impl Settings {
    /// The rate that may be reserved on a link of rate `link`.
    pub fn capacity(&self, link: Rate) -> Rate {
        Rate::bit((u128::from(link.as_bit()) * u128::from(self.share) / 1_000_000) as u64)
    }

    /// The limits of the table of a link of rate `link`.
    pub fn limits(&self, link: Rate) -> Limits {
        Limits {
            capacity: self.capacity(link),
            most: self.most,
            lifetime: self.lifetime.as_ps() / 1000,
            least: self.least,
            owner_flows: self.owner_flows,
            owner_share: self.owner_share,
            open_share: self.open_share,
        }
    }
}

/// A link address as the table stores owners.
fn owner_id(address: [u8; 6]) -> u64 {
    address.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// The decision about a control packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Frame to send back to the sender.
    pub answer: Option<Vec<u8>>,
    /// Frame to forward.
    pub forward: Option<Vec<u8>>,
    /// Change for the flow, in the direction of the packet.
    pub change: Option<Change>,
}

/// Admission control for both directions.
pub struct AdmissionControl {
    settings: Settings,
    /// Numbers of the messages with a key, of both directions.
    guard: Guard,
    /// Indexed by direction.
    links: [Option<LinkTable>; 2],
}

/// The reservations of one link.
struct LinkTable {
    table: Table,
    /// Link address of the interface at which the frames of this direction come in; the source of answers.
    address: [u8; 6],
    malformed: [u64; MessageError::NAMES.len()],
    overflow: Arc<AtomicU64>,
}

/// State of the reservations of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkReservations {
    /// Rate that may be reserved.
    pub capacity: Rate,
    /// Rate that is reserved now.
    pub reserved: Rate,
    /// The share of clients without a key.
    pub open: OpenShare,
    /// Counters of messages and reservations.
    pub counts: Counts,
    /// Malformed messages, by [`MessageError::NAMES`].
    pub malformed: [u64; MessageError::NAMES.len()],
    /// Messages that were lost because the queue of the service was full.
    pub overflow: u64,
    /// All reservations.
    pub list: Vec<Reservation>,
}

impl AdmissionControl {
    /// Creates a table for each direction whose link has a rate in `links`. `addresses` belong to the
    /// interfaces at which the frames of each direction come in. Messages with a key that were written before
    /// `now` are refused.
    pub fn new(
        settings: Settings,
        links: [Option<Rate>; 2],
        addresses: [[u8; 6]; 2],
        now: u64,
    ) -> AdmissionControl {
        let table = |link: Rate, address| LinkTable {
            table: Table::new(settings.limits(link)),
            address,
            malformed: Default::default(),
            overflow: Arc::default(),
        };
        let links = [0, 1].map(|direction| links[direction].map(|link| table(link, addresses[direction])));
        let guard = Guard::new(now, settings.skew.as_ps() / 1000, Guard::MAX);
        AdmissionControl { settings, guard, links }
    }

    /// The settings.
    #[cfg(test)]
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counter of messages that were lost because the queue of the service was full; `None` without a table.
    pub(super) fn overflow(&self, direction: usize) -> Option<Arc<AtomicU64>> {
        self.links[direction].as_ref().map(|link| Arc::clone(&link.overflow))
    }

    /// Decides about a control packet that came in at Unix time `now`. Call [`AdmissionControl::sweep`] for
    /// this time first.
    pub fn decide(&mut self, frame: &ControlFrame, now: u64) -> Decision {
        let types = self.settings.types;
        let Some(link) = &mut self.links[frame.direction] else { return Decision::default() };
        let body = frame.body();
        // If messages with and without a key are accepted, those without a key have no tag.
        let open =
            self.settings.key.is_none() || (self.settings.open_share > 0 && Message::is_untagged(body));
        let key = self.settings.key.filter(|_| !open);
        let from = frame.from();
        let reply = |answer: Message| frame.frame(from, link.address, &answer.encode(key.as_ref()));
        let message = Message::decode(body, key.as_ref()).and_then(|message| {
            let has_right_type = match message.kind {
                Kind::Start => frame.ether_type() == types.start,
                Kind::End => frame.ether_type() == types.end,
                Kind::Granted | Kind::Refused(_) => return Ok(message),
            };
            if !has_right_type {
                return Err(MessageError::Kind(frame.bytes[HEADER + 3]));
            }
            message.check_owner(from).map(|()| message)
        });
        let message = match message {
            Ok(message) => message,
            Err(malformed) => {
                link.malformed[malformed.index()] += 1;
                let old = Message::decode_version_1(body, from, self.settings.key.as_ref());
                // Group addresses and zero get no answer.
                let old = old.filter(|old| old.check_owner(from).is_ok());
                let refused = old.map(|old| link.table.refuse(&old, Reason::OldVersion));
                return Decision { answer: refused.map(reply), ..Decision::default() };
            }
        };
        let owner = Owner { id: owner_id(from), open };
        let is_request = matches!(message.kind, Kind::Start | Kind::End);
        // Without a key anyone can write any number, so the check for copies would prove nothing.
        let copied =
            if open || !is_request { Ok(()) } else { self.guard.admit(owner.id, message.number, now) };
        let answer = match copied {
            Ok(()) => link.table.take(&message, owner, now),
            Err(reason) => Some(link.table.refuse(&message, reason)),
        };
        let granted = !answer.is_some_and(|answer| matches!(answer.kind, Kind::Refused(_)));
        let decided = granted && answer.is_some();
        let change = decided.then(|| {
            let reservation = link.table.get(&message.tuple);
            reservation.map_or_else(|| Change::removed(message.tuple.into()), Change::from)
        });
        Decision { answer: answer.map(reply), forward: granted.then(|| frame.whole()), change }
    }

    /// Removes the reservations that have expired at `now`. Returns the changes, with their directions.
    pub fn sweep(&mut self, now: u64) -> Vec<(usize, Change)> {
        let mut changes = Vec::new();
        for (direction, link) in self.links.iter_mut().enumerate() {
            let expired = link.as_mut().map(|link| link.table.expire(now)).unwrap_or_default();
            changes.extend(expired.into_iter().map(|tuple| (direction, Change::removed(tuple.into()))));
        }
        changes
    }

    /// Sets the rate of the link of a direction. Returns the removal of each reservation that no longer fits.
    pub fn resize(&mut self, direction: usize, link: Rate, now: u64) -> Vec<(usize, Change)> {
        let capacity = self.settings.capacity(link);
        let Some(link) = &mut self.links[direction] else { return Vec::new() };
        let revoked = link.table.resize(capacity, now).into_iter();
        revoked.map(|tuple| (direction, Change::removed(tuple.into()))).collect()
    }

    /// The reservations of both directions.
    pub fn status(&self, now: u64) -> [Option<LinkReservations>; 2] {
        [0, 1].map(|direction| {
            let link = self.links[direction].as_ref()?;
            Some(LinkReservations {
                capacity: link.table.capacity(),
                reserved: link.table.sum(now),
                open: open_share(&link.table, now),
                counts: link.table.counts(),
                malformed: link.malformed,
                overflow: link.overflow.load(Ordering::Relaxed),
                list: link.table.iter().collect(),
            })
        })
    }
}

/// The share of the reservations that clients without a key have.
fn open_share(table: &Table, now: u64) -> OpenShare {
    let open: Vec<Reservation> = table.iter().filter(|each| each.owner.open).collect();
    let now = open.iter().filter(|each| each.start <= now && now < each.until);
    let mut owners: Vec<u64> = open.iter().map(|each| each.owner.id).collect();
    owners.sort_unstable();
    owners.dedup();
    OpenShare {
        capacity: table.open_capacity(),
        reserved: Rate::bit(now.map(|each| each.rate.as_bit()).sum()),
        flows: open.len() as u64,
        owners: owners.len() as u64,
    }
}
