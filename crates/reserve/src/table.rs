//! The table of reservations of a link: soft state.
//!
//! # Principles
//! - A start is granted if the link has enough unreserved capacity for the whole time from its start to its
//!   finish. A share of the link cannot be reserved.
//! - A start for a flow with a reservation changes it if the new one fits; otherwise the old one stays.
//! - A reservation is removed at its finish, by an end, or when it was not refreshed for a lifetime. A sender
//!   refreshes its reservation by repeating the start, so the reservation of a sender that dies lasts for at
//!   most a lifetime.
//! - An end for a flow without a reservation is ignored and counted.
//! - Only its owner may change or end a reservation. The caller identifies the owner, for example by the
//!   source address.
//! - The size of the table and the smallest rate are limited, so that tiny reservations cannot fill the
//!   table.
//! - One owner may have only a share of the link and of the table.
//! - Owners without a key cannot be distinguished, since any machine can forge any address. All of them
//!   together may have only a share of the link and of the table; the rest is for owners with a key and for
//!   best effort. An owner with a key takes over the reservation of an owner without a key for the same flow.
//! - When the link becomes slower, reservations that no longer fit are revoked, the newest first. Their
//!   sender is refused with the reason when it repeats the start.
//!
//! # Left open by the paper
//! All but the first half sentence: the paper has no admission control and no answers, and does not treat the
//! loss of control packets.
//!
//! # Cost
//! - A look-up O(log n); a message O(n log n) for n reservations. Messages are rare and n is bounded.

mod limits;

use std::collections::BTreeMap;

use giveway_qdisc::Rate;

use crate::message::{Kind, Message, Reason, Tuple};
pub use limits::Limits;

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
    refreshed: u64,
}

impl Entry {
    /// Expiry time unless it is refreshed.
    fn until(&self, lifetime: u64) -> u64 {
        self.finish.min(self.refreshed.saturating_add(lifetime))
    }

    /// True if `owner` may change it: the owner itself, or an owner with a key if the current owner has none.
    fn accepts(&self, owner: Owner) -> bool {
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

    /// Rate that all owners without a key may reserve together.
    pub fn open_capacity(&self) -> Rate {
        self.limits.open()
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

    /// All reservations, including future ones, in the order of their flows.
    pub fn iter(&self) -> impl Iterator<Item = Reservation> + '_ {
        self.entries.iter().map(|(tuple, entry)| self.shown(tuple, entry))
    }

    fn shown(&self, tuple: &Tuple, entry: &Entry) -> Reservation {
        let Entry { rate, start, finish, owner, .. } = *entry;
        let until = entry.until(self.limits.lifetime);
        Reservation { tuple: *tuple, rate: Rate::bit(rate), start, finish, until, owner }
    }

    /// Number of reservations, including future ones.
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
                Some(entry) if !entry.accepts(owner) => Some(Reason::NotYours),
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

    /// Sets the rate that may be reserved. Reservations that no longer fit are revoked, the newest first, and
    /// returned.
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

    /// True if a rate fits into `most` during the whole span, in addition to the reservations of the owners
    /// that `counts` selects.
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
        if known.is_some_and(|entry| !entry.accepts(owner)) {
            return Err(Reason::NotYours);
        }
        let number = known.map_or(self.made, |entry| entry.number);
        // A reservation that is taken over from another owner is new to this owner.
        let (is_new, is_new_to_owner) = (known.is_none(), known.is_none_or(|entry| entry.owner != owner));
        if is_new && self.entries.len() >= self.limits.most {
            return Err(Reason::TableFull);
        }
        let number_of = |counts: &dyn Fn(Owner) -> bool| {
            self.entries.values().filter(|entry| counts(entry.owner)).count()
        };
        if is_new_to_owner && number_of(&|other| other == owner) >= self.limits.owner_flows {
            return Err(Reason::Quota);
        }
        if is_new && owner.open && number_of(&|other| other.open) >= self.limits.open_most() {
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
        let entry = Entry { number, rate, start, finish, owner, refreshed: now };
        self.entries.insert(tuple, entry);
        Ok(())
    }

    /// Largest rate that the selected owners have reserved at any time of a span, if all of them refresh
    /// their reservations.
    fn peak(&self, but: &Tuple, (start, finish): (u64, u64), counts: impl Fn(Owner) -> bool) -> u64 {
        let others = self.entries.iter().filter(|(tuple, _)| *tuple != but).map(|(_, entry)| entry);
        // Starts and finishes within the span. At equal times, finishes (false) sort before starts (true), so
        // that a reservation may begin when another one ends.
        let mut changes: Vec<(u64, bool, u64)> = others
            .filter(|entry| counts(entry.owner) && entry.start < finish && start < entry.finish)
            .flat_map(|entry| [(entry.start.max(start), true, entry.rate), (entry.finish, false, entry.rate)])
            .collect();
        changes.sort_unstable();
        let (mut sum, mut peak) = (0u64, 0);
        for (_, starts, rate) in changes {
            sum = if starts { sum + rate } else { sum - rate };
            peak = peak.max(sum);
        }
        peak
    }
}

#[cfg(test)]
mod tests;
