//! The table of reservations of a link: soft state.
//!
//! # Principles
//! - A start is granted if the link has enough unreserved capacity for the whole time from its start to its finish. A share of
//!   the link cannot be reserved.
//! - A start for a flow that has a reservation changes it if the new one fits; otherwise the old one stays.
//! - A reservation is removed at its finish, by an end, or when it was not refreshed for a lifetime. A sender refreshes its
//!   reservation by repeating the start, so a sender that dies holds its reservation for at most a lifetime.
//! - An end for a flow without a reservation is ignored and counted.
//! - Only its owner may change or end a reservation. The caller identifies the owner, for example by the source address.
//! - The size of the table and the smallest rate are limited, so that nobody can fill the table with tiny reservations.
//! - One owner may have only a share of the link and of the table.
//! - Owners without a key cannot be distinguished, since any machine can forge any address. All of them together may have
//!   only a share of the link and of the table; the rest is for owners with a key and for best effort. An owner with a key
//!   takes over the reservation of an owner without a key for the same flow.
//! - When the link becomes slower, reservations that no longer fit are revoked, the newest first. Their sender is refused with
//!   the reason when it repeats the start.
//!
//! # Left open by the paper
//! All but the first half sentence: the paper has no admission control and no answers, and does not treat the loss of
//! control packets.
//!
//! # Cost
//! - A look-up O(log n); a message O(n log n) for n reservations. Messages are rare and n is bounded.

use std::collections::BTreeMap;

use giveway_qdisc::Rate;

use crate::message::{Kind, Message, Reason, Tuple};

/// What may be reserved on a link, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate that may be reserved in total.
    pub capacity: Rate,
    /// Largest number of reservations.
    pub most: usize,
    /// Time after which a reservation expires unless it is refreshed, in nanoseconds.
    pub lifetime: u64,
    /// Smallest rate of a reservation.
    pub least: Rate,
    /// Largest number of reservations of one owner.
    pub owner_flows: usize,
    /// Share of the capacity that one owner may have, in millionths.
    pub owner_share: u64,
    /// Share of the capacity and of the table that all owners without a key may have together, in millionths.
    pub open_share: u64,
}

impl Limits {
    /// Default share of a link that may be reserved, per mille.
    pub const SHARE: u64 = 950;
    /// Default for the largest number of reservations.
    pub const MOST: usize = 4096;
    /// Default lifetime, in nanoseconds: half a minute.
    pub const LIFETIME: u64 = 30_000_000_000;
    /// Default for the smallest rate: that of the slowest telephone calls.
    pub const LEAST: Rate = Rate::kbit(8);
    /// Default for the largest number of reservations of one owner.
    pub const OWNER_FLOWS: usize = 256;
    /// Default share of the capacity for one owner, in millionths.
    pub const OWNER_SHARE: u64 = 500_000;
    /// Default share of all owners without a key if there is no key, in millionths.
    pub const OPEN_SHARE: u64 = 500_000;

    /// The default limits of a link.
    pub fn of(link: Rate) -> Limits {
        Limits {
            capacity: part(link, Limits::SHARE * 1000),
            most: Limits::MOST,
            lifetime: Limits::LIFETIME,
            least: Limits::LEAST,
            owner_flows: Limits::OWNER_FLOWS,
            owner_share: Limits::OWNER_SHARE,
            open_share: Limits::OPEN_SHARE,
        }
    }

    /// Rate that one owner may have.
    pub fn per_owner(&self) -> Rate {
        part(self.capacity, self.owner_share)
    }

    /// Rate that all owners without a key may have together.
    pub fn open(&self) -> Rate {
        part(self.capacity, self.open_share)
    }

    /// Number of reservations that all owners without a key may have together.
    fn open_most(&self) -> usize {
        (self.most as u128 * u128::from(self.open_share) / 1_000_000) as usize
    }
}

/// A share of a rate, in millionths.
fn part(of: Rate, millionths: u64) -> Rate {
    Rate::bit((u128::from(of.as_bit()) * u128::from(millionths.min(1_000_000)) / 1_000_000) as u64)
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Identifier that the caller assigns.
    pub id: u64,
    /// True if the sender has no key, so that `id` may be forged.
    pub open: bool,
}

/// The reservations of a link. Times are nanoseconds since the epoch of the messages.
#[derive(Clone, Debug)]
pub struct Table {
    limits: Limits,
    entries: BTreeMap<Tuple, Entry>,
    /// Number of reservations that were made so far.
    made: u64,
    counts: Counts,
}

/// A reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The flow.
    pub tuple: Tuple,
    /// Reserved rate.
    pub rate: Rate,
    /// Start time, in nanoseconds.
    pub start: u64,
    /// Finish time, in nanoseconds, not included.
    pub finish: u64,
    /// Expiry time unless it is refreshed: its finish, or a lifetime after the last refresh.
    pub until: u64,
    /// Owner.
    pub owner: Owner,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Sequence number in the table, from 0. A change keeps it.
    number: u64,
    rate: u64,
    start: u64,
    finish: u64,
    /// Owner.
    owner: Owner,
    /// Time of the last refresh.
    heard: u64,
}

impl Entry {
    /// Expiry time unless it is refreshed.
    fn until(&self, lifetime: u64) -> u64 {
        self.finish.min(self.heard.saturating_add(lifetime))
    }

    /// True if `owner` may change it: the owner itself, or an owner with a key if the current owner has none.
    fn obeys(&self, owner: Owner) -> bool {
        self.owner == owner || (self.owner.open && !owner.open)
    }
}

/// Counters of messages and reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Starts that were granted, changes included.
    pub granted: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// Reservations that were ended by their owner.
    pub ended: u64,
    /// Reservations that finished or lapsed.
    pub expired: u64,
    /// Reservations that were revoked because the link became slower.
    pub revoked: u64,
    /// Ends for flows that had no reservation.
    pub unknown_ends: u64,
    /// Answers that were received, although this table sends no requests.
    pub stray_answers: u64,
}

impl Table {
    /// Creates an empty table.
    pub fn new(limits: Limits) -> Table {
        Table { limits, entries: BTreeMap::new(), made: 0, counts: Counts::default() }
    }

    /// Rate that a flow has reserved now; zero for best effort.
    pub fn reserved(&self, tuple: &Tuple, now: u64) -> Rate {
        let entry = self.entries.get(tuple);
        let holds = entry.filter(|entry| entry.start <= now && now < entry.until(self.limits.lifetime));
        Rate::bit(holds.map_or(0, |entry| entry.rate))
    }

    /// Rate that may be reserved.
    pub fn capacity(&self) -> Rate {
        self.limits.capacity
    }

    /// Rate that is reserved now, in total.
    pub fn sum(&self, now: u64) -> Rate {
        let holding = self.iter().filter(|each| each.start <= now && now < each.until);
        Rate::bit(holding.map(|each| each.rate.as_bit()).sum())
    }

    /// The reservation of a flow, if there is one.
    pub fn get(&self, tuple: &Tuple) -> Option<Reservation> {
        self.entries.get(tuple).map(|entry| self.shown(tuple, entry))
    }

    /// All reservations, those of the future included, in the order of their flows.
    pub fn iter(&self) -> impl Iterator<Item = Reservation> + '_ {
        self.entries.iter().map(|(tuple, entry)| self.shown(tuple, entry))
    }

    fn shown(&self, tuple: &Tuple, entry: &Entry) -> Reservation {
        let Entry { rate, start, finish, owner, .. } = *entry;
        let until = entry.until(self.limits.lifetime);
        Reservation { tuple: *tuple, rate: Rate::bit(rate), start, finish, until, owner }
    }

    /// Number of reservations, those of the future included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// True if there is no reservation.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Refuses a message for a reason of the caller, and returns the answer to send.
    pub fn refuse(&mut self, message: &Message, reason: Reason) -> Message {
        self.counts.refused += 1;
        message.answer(Some(reason))
    }

    /// Processes a message of `owner`, and returns the answer to send, if there is one.
    pub fn take(&mut self, message: &Message, owner: Owner, now: u64) -> Option<Message> {
        self.expire(now);
        let refused = match message.kind {
            Kind::Start => self.start(message, owner, now).err(),
            Kind::End => match self.entries.get(&message.tuple) {
                None => {
                    self.counts.unknown_ends += 1;
                    return None;
                }
                Some(entry) if !entry.obeys(owner) => Some(Reason::NotYours),
                Some(_) => {
                    self.entries.remove(&message.tuple);
                    self.counts.ended += 1;
                    return Some(message.answer(None));
                }
            },
            Kind::Granted | Kind::Refused(_) => {
                self.counts.stray_answers += 1;
                return None;
            }
        };
        match refused {
            None => self.counts.granted += 1,
            Some(_) => self.counts.refused += 1,
        }
        Some(message.answer(refused))
    }

    /// Removes reservations that have finished or were not refreshed for a lifetime, and returns their flows.
    pub fn expire(&mut self, now: u64) -> Vec<Tuple> {
        let mut gone = Vec::new();
        self.entries.retain(|tuple, entry| {
            let stays = now < entry.until(self.limits.lifetime);
            if !stays {
                gone.push(*tuple);
            }
            stays
        });
        self.counts.expired += gone.len() as u64;
        gone
    }

    /// Sets the rate that may be reserved. Reservations that no longer fit are revoked, the newest first, and returned.
    ///
    /// O(n log n) for n reservations while all of them fit at once, otherwise n times that.
    pub fn resize(&mut self, capacity: Rate, now: u64) -> Vec<Tuple> {
        self.expire(now);
        self.limits.capacity = capacity;
        let sum = self.entries.values().fold(0u64, |sum, entry| sum.saturating_add(entry.rate));
        let open = self.entries.values().filter(|entry| entry.owner.open);
        let open = open.fold(0u64, |sum, entry| sum.saturating_add(entry.rate));
        if sum <= capacity.as_bit() && open <= self.limits.open().as_bit() {
            return Vec::new();
        }
        let mut oldest_first: Vec<(Tuple, Entry)> = std::mem::take(&mut self.entries).into_iter().collect();
        oldest_first.sort_unstable_by_key(|(_, entry)| entry.number);
        let mut revoked = Vec::new();
        for (tuple, entry) in oldest_first {
            let span = (entry.start.max(now), entry.finish);
            let fits = self.fits(&tuple, entry.rate, span, self.limits.capacity, |_| true)
                && (!entry.owner.open
                    || self.fits(&tuple, entry.rate, span, self.limits.open(), |other| other.open));
            if fits {
                self.entries.insert(tuple, entry);
            } else {
                revoked.push(tuple);
            }
        }
        self.counts.revoked += revoked.len() as u64;
        revoked
    }

    /// True if a rate fits into `most` during the whole span, beside the reservations of the owners that `counts` selects.
    fn fits(
        &self,
        tuple: &Tuple,
        rate: u64,
        span: (u64, u64),
        most: Rate,
        counts: impl Fn(Owner) -> bool,
    ) -> bool {
        let others = self.peak(tuple, span, counts);
        others.checked_add(rate).is_some_and(|sum| sum <= most.as_bit())
    }

    fn start(&mut self, message: &Message, owner: Owner, now: u64) -> Result<(), Reason> {
        let Message { tuple, rate, start, finish, .. } = *message;
        if rate == Rate::default() {
            return Err(Reason::NoRate);
        }
        if rate < self.limits.least {
            return Err(Reason::TooLittle);
        }
        if finish <= start {
            return Err(Reason::Backwards);
        }
        if finish <= now {
            return Err(Reason::Over);
        }
        let known = self.entries.get(&tuple);
        if known.is_some_and(|entry| !entry.obeys(owner)) {
            return Err(Reason::NotYours);
        }
        let number = known.map_or(self.made, |entry| entry.number);
        // A reservation that is taken over from another owner is new to this owner.
        let (is_new, is_new_to_owner) = (known.is_none(), known.is_none_or(|entry| entry.owner != owner));
        if is_new && self.entries.len() >= self.limits.most {
            return Err(Reason::TableFull);
        }
        let held = |counts: &dyn Fn(Owner) -> bool| {
            self.entries.values().filter(|entry| counts(entry.owner)).count()
        };
        if is_new_to_owner && held(&|other| other == owner) >= self.limits.owner_flows {
            return Err(Reason::Quota);
        }
        if is_new && owner.open && held(&|other| other.open) >= self.limits.open_most() {
            return Err(Reason::OpenFull);
        }
        let (rate, span) = (rate.as_bit(), (start.max(now), finish));
        if !self.fits(&tuple, rate, span, self.limits.capacity, |_| true) {
            return Err(Reason::NoRoom);
        }
        if owner.open && !self.fits(&tuple, rate, span, self.limits.open(), |other| other.open) {
            return Err(Reason::OpenFull);
        }
        if !self.fits(&tuple, rate, span, self.limits.per_owner(), |other| other == owner) {
            return Err(Reason::Quota);
        }
        self.made = self.made.max(number + 1);
        let entry = Entry { number, rate, start, finish, owner, heard: now };
        self.entries.insert(tuple, entry);
        Ok(())
    }

    /// Largest rate that the selected owners have reserved at any time of a span, if all of them refresh their reservations.
    fn peak(&self, but: &Tuple, (start, finish): (u64, u64), counts: impl Fn(Owner) -> bool) -> u64 {
        let others = self.entries.iter().filter(|(tuple, _)| *tuple != but).map(|(_, entry)| entry);
        // What comes and goes within the time, in order: at one instant what goes goes first.
        let mut changes: Vec<(u64, bool, u64)> = others
            .filter(|entry| counts(entry.owner) && entry.start < finish && start < entry.finish)
            .flat_map(|entry| [(entry.start.max(start), true, entry.rate), (entry.finish, false, entry.rate)])
            .collect();
        changes.sort_unstable();
        let (mut now, mut most) = (0u64, 0);
        for (_, comes, rate) in changes {
            now = if comes { now + rate } else { now - rate };
            most = most.max(now);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tuple(flow: u8) -> Tuple {
        Tuple { from: [10, 0, 0, flow], to: [10, 0, 1, 1], from_port: 5004, to_port: 6000, protocol: 17 }
    }
    fn start(flow: u8, rate: u64, start: u64, finish: u64) -> Message {
        let (sender, number) = ([2, 0, 0, 0, 0, 1], 1);
        Message {
            kind: Kind::Start,
            tuple: tuple(flow),
            rate: Rate::bit(rate),
            start,
            finish,
            sender,
            number,
        }
    }
    /// A link where only the size counts: one owner may have all of it.
    fn of(capacity: u64, most: usize, lifetime: u64) -> Table {
        Table::new(Limits {
            capacity: Rate::bit(capacity),
            most,
            lifetime,
            least: Rate::bit(1),
            owner_flows: most,
            owner_share: 1_000_000,
            open_share: 1_000_000,
        })
    }
    /// One with a key.
    fn keyed(id: u64) -> Owner {
        Owner { id, open: false }
    }
    /// One without.
    fn open(id: u64) -> Owner {
        Owner { id, open: true }
    }
    fn end(flow: u8) -> Message {
        Message { kind: Kind::End, ..start(flow, 0, 0, 0) }
    }
    fn told(table: &mut Table, message: &Message, owner: u64, now: u64) -> Option<Kind> {
        tell(table, message, keyed(owner), now)
    }
    fn tell(table: &mut Table, message: &Message, owner: Owner, now: u64) -> Option<Kind> {
        let answer = table.take(message, owner, now)?;
        assert_eq!(answer.tuple, message.tuple);
        Some(answer.kind)
    }

    /// From unknown to reserved, active, changed, ended, expired.
    #[test]
    fn the_life_of_a_reservation() {
        let mut table = of(100, 2, 1000);
        let rate = |table: &Table, now| table.reserved(&tuple(1), now).as_bit();
        assert_eq!(told(&mut table, &start(1, 60, 10, 50), 1, 0), Some(Kind::Granted));
        assert_eq!([9, 10, 49, 50].map(|now| rate(&table, now)), [0, 60, 60, 0]);
        // More than there is with the old one, but not in its place.
        assert_eq!(told(&mut table, &start(1, 80, 10, 50), 1, 5), Some(Kind::Granted));
        assert_eq!(told(&mut table, &start(1, 101, 10, 50), 1, 5), Some(Kind::Refused(Reason::NoRoom)));
        assert_eq!(rate(&table, 20), 80, "the old one stays");
        assert_eq!(told(&mut table, &end(1), 1, 20), Some(Kind::Granted));
        assert_eq!(rate(&table, 20), 0);
        assert_eq!(told(&mut table, &end(1), 1, 21), None);
        assert_eq!(told(&mut table, &start(2, 1, 30, 40), 1, 21), Some(Kind::Granted));
        table.expire(40);
        assert!(table.is_empty());
        let counts =
            Counts { granted: 3, refused: 1, ended: 1, expired: 1, unknown_ends: 1, ..Counts::default() };
        assert_eq!(table.counts(), counts);
    }

    #[test]
    fn contradictions_are_refused_with_the_reason() {
        let mut table = of(100, 2, 1000);
        let refused = |table: &mut Table, message: &Message, owner| match told(table, message, owner, 20) {
            Some(Kind::Refused(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&mut table, &start(1, 0, 20, 50), 1), Reason::NoRate);
        assert_eq!(refused(&mut table, &start(1, 10, 50, 50), 1), Reason::Backwards);
        assert_eq!(refused(&mut table, &start(1, 10, 10, 20), 1), Reason::Over);
        assert_eq!(refused(&mut table, &start(1, u64::MAX, 0, u64::MAX), 1), Reason::NoRoom);
        assert_eq!(told(&mut table, &start(1, 10, 20, 50), 1, 20), Some(Kind::Granted));
        assert_eq!(refused(&mut table, &start(1, 20, 20, 50), 2), Reason::NotYours);
        assert_eq!(refused(&mut table, &end(1), 2), Reason::NotYours);
        assert_eq!(table.reserved(&tuple(1), 30).as_bit(), 10, "forgers change nothing");
        assert_eq!(told(&mut table, &start(2, 10, 20, 50), 1, 20), Some(Kind::Granted));
        assert_eq!(refused(&mut table, &start(3, 10, 20, 50), 1), Reason::TableFull);
        let stray = start(4, 10, 20, 50).answer(None);
        assert_eq!((table.take(&stray, keyed(1), 20), table.counts().stray_answers), (None, 1));
    }

    /// A sender that dies holds nothing for longer than a lifetime; one that repeats its start goes on.
    #[test]
    fn who_is_not_heard_of_is_forgotten() {
        let mut table = of(100, 10, 1000);
        told(&mut table, &start(1, 50, 0, 100_000), 1, 0);
        told(&mut table, &start(2, 50, 0, 100_000), 1, 0);
        told(&mut table, &start(2, 50, 0, 100_000), 1, 900);
        assert_eq!([1, 2].map(|flow| table.reserved(&tuple(flow), 1000).as_bit()), [0, 50]);
        assert_eq!(told(&mut table, &start(3, 50, 0, 100_000), 1, 1000), Some(Kind::Granted));
        assert_eq!(table.len(), 2);
    }

    /// 4,096 requests for next to nothing, each from an address of its own: the least rate stops them, and then the share of who has no key.
    #[test]
    fn forgers_do_not_fill_the_table() {
        let mut table = Table::new(Limits::of(Rate::mbit(10)));
        let of = |flow: u16, rate: Rate| Message {
            tuple: Tuple { from_port: flow, ..tuple(1) },
            rate,
            ..start(1, 0, 0, u64::MAX)
        };
        for flow in 0..4096 {
            let answer = tell(&mut table, &of(flow, Rate::bit(1)), open(u64::from(flow)), 0);
            assert_eq!(answer, Some(Kind::Refused(Reason::TooLittle)));
        }
        let mut granted = 0;
        for flow in 0..4096 {
            match tell(&mut table, &of(flow, Rate::kbit(8)), open(u64::from(flow)), 0) {
                Some(Kind::Granted) => granted += 1,
                other => assert_eq!(other, Some(Kind::Refused(Reason::OpenFull))),
            }
        }
        // Half of 9.5 Mbit/s in pieces of 8 kbit/s.
        assert_eq!((granted, table.len()), (593, 593));
        // Who has a key has the other half, and who was there before keeps what it has.
        assert_eq!(tell(&mut table, &of(5000, Rate::mbit(4)), keyed(1), 0), Some(Kind::Granted));
        assert_eq!(
            tell(&mut table, &of(0, Rate::kbit(8)), open(0), 1),
            Some(Kind::Granted),
            "it is repeated"
        );
        // One after the other they do not need room on the link, but room in the table.
        let mut table = Table::new(Limits::of(Rate::mbit(10)));
        let at = |flow: u16| Message {
            start: u64::from(flow) * 10,
            finish: u64::from(flow) * 10 + 10,
            ..of(flow, Rate::mbit(1))
        };
        let granted = (0..4096)
            .filter(|flow| tell(&mut table, &at(*flow), open(u64::from(*flow)), 0) == Some(Kind::Granted));
        assert_eq!(granted.count(), 2048, "half of the table");
    }

    #[test]
    fn one_owner_has_a_share_of_the_link_and_of_the_table() {
        let limits = Limits { owner_flows: 2, least: Rate::bit(1), ..Limits::of(Rate::bit(1000)) };
        let mut table = Table::new(Limits { capacity: Rate::bit(1000), ..limits });
        assert_eq!(told(&mut table, &start(1, 500, 0, 50), 1, 0), Some(Kind::Granted));
        assert_eq!(told(&mut table, &start(2, 1, 40, 60), 1, 0), Some(Kind::Refused(Reason::Quota)));
        assert_eq!(told(&mut table, &start(2, 500, 50, 60), 1, 0), Some(Kind::Granted), "at another time");
        assert_eq!(
            told(&mut table, &start(3, 1, 70, 80), 1, 0),
            Some(Kind::Refused(Reason::Quota)),
            "a third flow"
        );
        assert_eq!(told(&mut table, &start(2, 400, 50, 60), 1, 0), Some(Kind::Granted), "it is changed");
        assert_eq!(told(&mut table, &start(3, 500, 0, 50), 2, 0), Some(Kind::Granted), "another owner");
        assert_eq!(told(&mut table, &start(4, 1, 0, 50), 3, 0), Some(Kind::Refused(Reason::NoRoom)));
    }

    /// Without a key anybody can be anybody. Who has one takes the flow over, and then those without cannot change it.
    #[test]
    fn who_has_a_key_takes_a_flow_over() {
        let mut table = of(100, 10, 1000);
        assert_eq!(tell(&mut table, &start(1, 10, 0, 50), open(1), 0), Some(Kind::Granted));
        assert_eq!(tell(&mut table, &start(1, 10, 0, 50), open(2), 0), Some(Kind::Refused(Reason::NotYours)));
        assert_eq!(tell(&mut table, &start(1, 20, 0, 50), keyed(2), 0), Some(Kind::Granted));
        assert_eq!(tell(&mut table, &start(1, 10, 0, 50), open(2), 0), Some(Kind::Refused(Reason::NotYours)));
        assert_eq!(tell(&mut table, &end(1), open(1), 0), Some(Kind::Refused(Reason::NotYours)));
        assert_eq!(table.reserved(&tuple(1), 1), Rate::bit(20));
    }

    /// A slower link leaves those without a key their share of it.
    #[test]
    fn a_slower_link_holds_the_share_of_who_has_no_key() {
        let mut table = of(100, 10, 1000);
        table.limits.open_share = 500_000;
        assert_eq!(tell(&mut table, &start(1, 30, 0, 50), open(1), 0), Some(Kind::Granted));
        assert_eq!(tell(&mut table, &start(2, 20, 0, 50), open(2), 0), Some(Kind::Granted));
        assert_eq!(tell(&mut table, &start(3, 1, 0, 50), open(3), 0), Some(Kind::Refused(Reason::OpenFull)));
        assert_eq!(table.resize(Rate::bit(80), 1), [tuple(2)], "together at most 40");
    }

    /// Two that do not meet both have the whole link.
    #[test]
    fn one_after_the_other() {
        let mut table = of(950, 10, 1 << 40);
        assert_eq!(told(&mut table, &start(1, 950, 10, 20), 1, 0), Some(Kind::Granted));
        assert_eq!(told(&mut table, &start(2, 950, 20, 30), 1, 0), Some(Kind::Granted));
        assert_eq!(told(&mut table, &start(3, 1, 19, 21), 1, 0), Some(Kind::Refused(Reason::NoRoom)));
        assert_eq!(told(&mut table, &start(3, 950, 30, 40), 1, 0), Some(Kind::Granted));
    }

    /// A slower link: who was granted first stays, whoever was changed since keeps its place, and what is not at the same time need not fit
    /// together.
    #[test]
    fn a_slower_link_revokes_the_newest() {
        let mut table = of(100, 10, 1000);
        for (flow, rate, from, to) in
            [(2, 40, 0, 50), (1, 30, 0, 50), (3, 30, 0, 50), (4, 90, 50, 60), (2, 35, 0, 50)]
        {
            assert_eq!(told(&mut table, &start(flow, rate, from, to), 1, 0), Some(Kind::Granted), "{flow}");
        }
        assert_eq!(table.sum(0), Rate::bit(95));
        assert_eq!(table.resize(Rate::bit(90), 1), [tuple(3)]);
        assert_eq!([1, 2, 3].map(|flow| table.reserved(&tuple(flow), 1).as_bit()), [30, 35, 0]);
        assert_eq!(table.get(&tuple(4)).map(|four| (four.rate, four.until)), Some((Rate::bit(90), 60)));
        assert_eq!(told(&mut table, &start(3, 30, 0, 50), 1, 2), Some(Kind::Refused(Reason::NoRoom)));
        assert_eq!(table.resize(Rate::bit(1000), 2), []);
        assert_eq!(told(&mut table, &start(3, 30, 0, 50), 1, 2), Some(Kind::Granted));
        assert_eq!((table.counts().revoked, table.capacity(), table.len()), (1, Rate::bit(1000), 4));
    }

    proptest! {
        /// Whatever is asked for, at no time more is reserved than there is; and what is refused for want of room would be too much at some time.
        #[test]
        fn no_more_is_reserved_than_there_is(
            asked in prop::collection::vec((0..8u8, 1..60u64, 0..40u64, 1..30u64, 0..4u64, any::<bool>()), 1..60),
        ) {
            let mut table = of(100, 6, 25);
            let mut now = 0;
            for (flow, rate, from, lasts, passes, ends) in asked {
                now += passes;
                let message = if ends { end(flow) } else { start(flow, rate, from, from + lasts) };
                // What all have at each instant, as far as each is heard of again.
                table.expire(now);
                let sum = |table: &Table, at: u64, but: Option<Tuple>| -> u64 {
                    let there = |(tuple, entry): &(&Tuple, &Entry)| {
                        Some(**tuple) != but && entry.start <= at && at < entry.finish
                    };
                    table.entries.iter().filter(there).map(|(_, entry)| entry.rate).sum()
                };
                let too_much = (from.max(now)..from + lasts).any(|at| sum(&table, at, Some(tuple(flow))) + rate > 100);
                let answer = told(&mut table, &message, 1, now);
                if answer == Some(Kind::Refused(Reason::NoRoom)) {
                    prop_assert!(too_much);
                } else if answer == Some(Kind::Granted) && !ends {
                    prop_assert!(!too_much);
                }
                for at in now..now + 80 {
                    prop_assert!(sum(&table, at, None) <= 100);
                }
                prop_assert!(table.len() <= 6);
            }
        }
    }
}
