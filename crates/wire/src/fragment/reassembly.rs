//! Reassembly of fragments.
//!
//! # Principles
//! - Memory is allocated once and bounded ([`Settings::memory`]): an entry for each incomplete packet. When all entries are in
//!   use, the oldest packet is discarded for the newest: its missing fragments are most likely lost.
//! - A packet waits for its fragments for a bounded time, counted from the first one.
//! - Fragments arrive in any order. Number, addresses and tags together identify their packet.
//! - A fragment that contradicts earlier ones (another count or length, another size, other bytes at the same place) discards
//!   its packet, because it is unknown which of them are right (RFC 5722 for IPv6). An identical fragment is only a duplicate.
//! - Every fragment is accounted for: it becomes part of a frame, is lost for a reason, or waits ([`Counts`]).
//!
//! # Cost
//! - A fragment: one keyed hash, one copy of its piece. No allocation.

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Span, Time};

use super::{HEAD, HEADER, MARK, MOST, header_at, ip_type};
use crate::ecn;

/// Configuration of reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The EtherType of fragments.
    pub ether_type: u16,
    /// Length of the longest frame, link header included, in bytes; longer ones are discarded.
    pub longest: usize,
    /// Memory for incomplete packets, in bytes; always enough for one.
    pub memory: usize,
    /// Time limit for an incomplete packet.
    pub timeout: Span,
}

impl Settings {
    /// Default memory: eight mebibytes, about 5,000 packets of 1,500 bytes; as many flows may be served in turn with a fragment
    /// of each in flight.
    pub const MEMORY: usize = 8 << 20;
    /// Default time limit, five seconds: a hundred flows in turn, with 800 bytes each, at 130 kbit/s.
    pub const TIMEOUT: Span = Span::s(5);

    /// Settings for frames of at most `longest` bytes, with defaults for the rest.
    pub fn new(ether_type: u16, longest: usize) -> Settings {
        Settings { ether_type, longest, memory: Settings::MEMORY, timeout: Settings::TIMEOUT }
    }
}

/// Reason why a fragment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Lost {
    /// Its header is invalid, or does not match its length.
    Malformed,
    /// The frame would be too long.
    TooLong,
    /// It had been received already.
    Duplicate,
    /// It, or another one of its packet, contradicted earlier fragments.
    Contradictory,
    /// The rest of its packet did not arrive in time.
    Expired,
    /// Its packet was the oldest when another one needed the memory.
    CrowdedOut,
}

impl Lost {
    /// Every reason, in order.
    pub const ALL: [Lost; 6] = [
        Lost::Malformed,
        Lost::TooLong,
        Lost::Duplicate,
        Lost::Contradictory,
        Lost::Expired,
        Lost::CrowdedOut,
    ];

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Lost::Malformed => "malformed",
            Lost::TooLong => "too_long",
            Lost::Duplicate => "duplicate",
            Lost::Contradictory => "contradictory",
            Lost::Expired => "expired",
            Lost::CrowdedOut => "crowded_out",
        }
    }
}

/// Counters of fragments. `fragments` is the sum of `joined`, all of `lost` and those that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fragments that arrived.
    pub fragments: u64,
    /// Fragments that became part of frames.
    pub joined: u64,
    /// Frames that were joined.
    pub packets: u64,
    /// Incomplete packets that were discarded.
    pub given_up: u64,
    /// Lost fragments, by reason.
    pub lost: [u64; Lost::ALL.len()],
}

impl Counts {
    /// The counters of lost fragments, with their reasons.
    pub fn lost(&self) -> impl Iterator<Item = (Lost, u64)> {
        Lost::ALL.into_iter().zip(self.lost)
    }
}

/// The result of [`Reassembly::take`].
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// The frame is not a fragment.
    Other,
    /// The frame is a fragment that waits for others or was lost, see [`Counts`].
    Kept,
    /// The fragment completed this frame, which is valid until the next call.
    Whole(&'a [u8]),
}

/// Joins fragments to frames.
pub struct Reassembly {
    settings: Settings,
    hasher: SipHasher,
    /// Rooms of one size, one for each place.
    memory: Box<[u8]>,
    room: usize,
    places: Box<[Place]>,
    /// The first place of each bucket of a table by hash.
    heads: Box<[u32]>,
    free: Option<u32>,
    oldest: Option<u32>,
    newest: Option<u32>,
    waiting: u64,
    counts: Counts,
}

/// A packet of which fragments are missing.
#[derive(Clone, Debug)]
struct Place {
    /// Addresses and tags.
    head: [u8; HEAD],
    head_length: u8,
    count: u8,
    /// A fragment brought the mark of congestion.
    marked: bool,
    id: u32,
    /// Bytes behind the EtherType of the frame.
    length: u16,
    /// How long the pieces are; 0 until one came that is not the last.
    piece: u16,
    /// How much of the last one came before that, and lies at the end of the room.
    early: u16,
    /// Which fragments are there.
    have: u128,
    born: Time,
    bucket: u32,
    /// The next place of the bucket, or the next free one.
    next: Option<u32>,
    older: Option<u32>,
    newer: Option<u32>,
}

/// What a fragment says.
struct Fragment<'a> {
    head: &'a [u8],
    id: u32,
    marked: bool,
    index: u8,
    count: u8,
    length: u16,
    bytes: &'a [u8],
}

/// What Ethernet carries at least behind an EtherType.
const PADDED: usize = 46;

impl<'a> Fragment<'a> {
    /// `None` when it cannot be one. `at` is where its header begins.
    fn read(frame: &'a [u8], at: usize) -> Option<Fragment<'a>> {
        let (header, bytes) = frame[at..].split_first_chunk::<HEADER>()?;
        let [a, b, c, d, index, count, e, f] = *header;
        let fragment = Fragment {
            head: &frame[..at - 2],
            id: u32::from_be_bytes([a, b, c, d]),
            marked: index & MARK != 0,
            index: index & !MARK,
            count,
            length: u16::from_be_bytes([e, f]),
            bytes,
        };
        fragment.makes_sense().then_some(fragment)
    }

    fn is_last(&self) -> bool {
        self.index + 1 == self.count
    }

    fn makes_sense(&self) -> bool {
        let (count, length, here) = (usize::from(self.count), usize::from(self.length), self.bytes.len());
        if !(2..=MOST).contains(&count) || self.index >= self.count || length < count || here == 0 {
            return false;
        }
        if self.index == 0 && ip_type(self.bytes[0]).is_none() {
            return false;
        }
        if self.is_last() {
            // It is no longer than the others, unless it was padded.
            here <= (length / count).max(PADDED - HEADER)
        } else {
            here * (count - 1) < length && length <= here * count
        }
    }

    /// How long the last piece is when the others have `piece` bytes; `None` when it cannot be so with the `here` bytes that came.
    fn rest(length: u16, count: u8, piece: usize, here: usize) -> Option<usize> {
        let rest = usize::from(length).checked_sub(piece * (usize::from(count) - 1))?;
        let fits = rest == here || (rest < here && here <= PADDED - HEADER);
        (1..=piece).contains(&rest).then_some(rest).filter(|_| fits)
    }
}

impl Reassembly {
    /// Creates it with all its memory. An attacker without the keys of `hasher` cannot fill one bucket of the table on purpose.
    pub fn new(settings: Settings, hasher: SipHasher) -> Reassembly {
        let room = settings.longest.next_multiple_of(64);
        let each = room + size_of::<Place>() + 2 * size_of::<u32>();
        let places = (settings.memory / each).clamp(1, u32::MAX as usize / 2);
        let empty = |number: usize| Place {
            head: [0; HEAD],
            head_length: 0,
            count: 0,
            marked: false,
            id: 0,
            length: 0,
            piece: 0,
            early: 0,
            have: 0,
            born: Time::ZERO,
            bucket: 0,
            next: (number + 1 < places).then_some(number as u32 + 1),
            older: None,
            newer: None,
        };
        Reassembly {
            settings,
            hasher,
            memory: vec![0; room * places].into_boxed_slice(),
            room,
            places: (0..places).map(empty).collect(),
            heads: vec![NOBODY; places.next_power_of_two()].into_boxed_slice(),
            free: Some(0),
            oldest: None,
            newest: None,
            waiting: 0,
            counts: Counts::default(),
        }
    }

    /// Largest number of incomplete packets.
    pub fn places(&self) -> usize {
        self.places.len()
    }
    /// Number of waiting fragments.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }
    /// The counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Accepts a frame if it is a fragment. Times must not go back between calls.
    #[inline]
    pub fn take(&mut self, frame: &[u8], now: Time) -> Taken<'_> {
        match header_at(frame, self.settings.ether_type) {
            Some(at) => self.take_fragment(frame, at, now),
            None => Taken::Other,
        }
    }

    /// Discards packets that have waited for too long.
    pub fn expire(&mut self, now: Time) {
        while let Some(oldest) = self.oldest {
            if self.places[oldest as usize].born + self.settings.timeout > now {
                return;
            }
            self.give_up(oldest, Lost::Expired);
        }
    }

    /// Restarts the clock: the time `then` becomes zero.
    pub fn rebase(&mut self, then: Time) {
        let mut place = self.oldest;
        while let Some(number) = place {
            let waits = &mut self.places[number as usize];
            waits.born = Time::ZERO + waits.born.since(Time::ZERO).saturating_sub(then.since(Time::ZERO));
            place = waits.newer;
        }
    }

    fn take_fragment(&mut self, frame: &[u8], at: usize, now: Time) -> Taken<'_> {
        self.counts.fragments += 1;
        self.expire(now);
        let Some(fragment) = Fragment::read(frame, at) else { return self.lose(Lost::Malformed) };
        if at + usize::from(fragment.length) > self.settings.longest {
            return self.lose(Lost::TooLong);
        }
        let bucket = self.bucket(&fragment);
        let number = match self.find(&fragment, bucket) {
            Some(number) => number,
            None => self.settle(&fragment, bucket, now),
        };
        match self.put(number, &fragment) {
            Ok(()) => {}
            Err(Lost::Duplicate) => return self.lose(Lost::Duplicate),
            Err(why) => {
                self.give_up(number, why);
                return self.lose(why);
            }
        }
        let place = &self.places[number as usize];
        if place.have.count_ones() == u32::from(place.count) { self.finish(number) } else { Taken::Kept }
    }

    fn lose(&mut self, why: Lost) -> Taken<'_> {
        self.counts.lost[why as usize] += 1;
        Taken::Kept
    }

    fn bucket(&self, fragment: &Fragment<'_>) -> u32 {
        let mut key = [0; HEAD + 4];
        key[..4].copy_from_slice(&fragment.id.to_be_bytes());
        key[4..4 + fragment.head.len()].copy_from_slice(fragment.head);
        self.hasher.hash(&key) as u32 & (self.heads.len() as u32 - 1)
    }

    /// Finds the packet of a fragment.
    fn find(&self, fragment: &Fragment<'_>, bucket: u32) -> Option<u32> {
        let mut next = some(self.heads[bucket as usize]);
        while let Some(number) = next {
            let place = &self.places[number as usize];
            if place.id == fragment.id && place.head() == fragment.head {
                return Some(number);
            }
            next = place.next;
        }
        None
    }

    /// Allocates an entry for the packet of a fragment: a free one, or that of the oldest packet.
    fn settle(&mut self, fragment: &Fragment<'_>, bucket: u32, now: Time) -> u32 {
        if self.free.is_none()
            && let Some(oldest) = self.oldest
        {
            self.give_up(oldest, Lost::CrowdedOut);
        }
        let number = self.free.expect("there is at least one place, and the oldest has just left");
        let older = self.newest.replace(number);
        match older {
            Some(older) => self.places[older as usize].newer = Some(number),
            None => self.oldest = Some(number),
        }
        let place = &mut self.places[number as usize];
        self.free = place.next;
        place.head[..fragment.head.len()].copy_from_slice(fragment.head);
        place.head_length = fragment.head.len() as u8;
        place.id = fragment.id;
        (place.count, place.length) = (fragment.count, fragment.length);
        (place.piece, place.early, place.have, place.marked) = (0, 0, 0, false);
        place.born = now;
        place.bucket = bucket;
        place.next = some(std::mem::replace(&mut self.heads[bucket as usize], number));
        (place.older, place.newer) = (older, None);
        number
    }

    /// Copies a piece to its position.
    fn put(&mut self, number: u32, fragment: &Fragment<'_>) -> Result<(), Lost> {
        let place = &mut self.places[number as usize];
        let room = &mut self.memory[number as usize * self.room..][..self.room];
        let (count, length, here) = (place.count, place.length, fragment.bytes.len());
        if (fragment.count, fragment.length) != (count, length) {
            return Err(Lost::Contradictory);
        }
        let begin = usize::from(place.head_length) + 2;
        let bit = 1 << fragment.index;
        let again = place.have & bit != 0;
        if !fragment.is_last() {
            if place.piece == 0 {
                place.piece = here as u16;
                // Now it is known where the last one belongs, if it came before.
                if place.early > 0 {
                    let early = usize::from(place.early);
                    let rest = Fragment::rest(length, count, here, early).ok_or(Lost::Contradictory)?;
                    let lies = room.len() - early;
                    room.copy_within(lies..lies + rest, begin + here * (usize::from(count) - 1));
                    place.early = 0;
                }
            }
            if here != usize::from(place.piece) {
                return Err(Lost::Contradictory);
            }
        }
        let (at, bytes) = match (fragment.is_last(), place.piece) {
            (true, 0) => (room.len() - here, fragment.bytes),
            (true, piece) => {
                let piece = usize::from(piece);
                let rest = Fragment::rest(length, count, piece, here).ok_or(Lost::Contradictory)?;
                (begin + piece * (usize::from(count) - 1), &fragment.bytes[..rest])
            }
            (false, piece) => (begin + usize::from(piece) * usize::from(fragment.index), fragment.bytes),
        };
        let lies = &mut room[at..at + bytes.len()];
        if again {
            let same = lies == bytes && (place.early == 0 || usize::from(place.early) == here);
            place.marked |= same && fragment.marked;
            return Err(if same { Lost::Duplicate } else { Lost::Contradictory });
        }
        lies.copy_from_slice(bytes);
        if fragment.is_last() && place.piece == 0 {
            place.early = here as u16;
        }
        place.have |= bit;
        place.marked |= fragment.marked;
        self.waiting += 1;
        Ok(())
    }

    /// All of it is there: writes what stands in front, and hands it over.
    fn finish(&mut self, number: u32) -> Taken<'_> {
        let place = &self.places[number as usize];
        let (at, count, marked) = (usize::from(place.head_length), place.count, place.marked);
        let frame = &mut self.memory[number as usize * self.room..][..at + 2 + usize::from(place.length)];
        frame[..at].copy_from_slice(place.head());
        let kind = ip_type(frame[at + 2]).expect("fragment 0 was asked when it came");
        frame[at..at + 2].copy_from_slice(&kind.to_be_bytes());
        if marked {
            ecn::mark(&mut frame[at + 2..]);
        }
        let length = frame.len();
        self.waiting -= u64::from(count);
        self.counts.joined += u64::from(count);
        self.counts.packets += 1;
        self.leave(number);
        Taken::Whole(&self.memory[number as usize * self.room..][..length])
    }

    /// A packet that will never be whole.
    fn give_up(&mut self, number: u32, why: Lost) {
        let there = u64::from(self.places[number as usize].have.count_ones());
        self.waiting -= there;
        self.counts.lost[why as usize] += there;
        self.counts.given_up += 1;
        self.leave(number);
    }

    /// Takes a place out of the table and the queue by age.
    fn leave(&mut self, number: u32) {
        let Place { bucket, next, older, newer, .. } = self.places[number as usize];
        match older {
            Some(older) => self.places[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.places[newer as usize].older = older,
            None => self.newest = older,
        }
        let mut at = self.heads[bucket as usize];
        if at == number {
            self.heads[bucket as usize] = next.unwrap_or(NOBODY);
        } else {
            while self.places[at as usize].next != Some(number) {
                at = self.places[at as usize].next.expect("a place is in the bucket that it was put into");
            }
            self.places[at as usize].next = next;
        }
        self.places[number as usize].next = self.free.replace(number);
    }
}

impl Place {
    fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_length)]
    }
}

/// No place.
const NOBODY: u32 = u32::MAX;

fn some(number: u32) -> Option<u32> {
    (number != NOBODY).then_some(number)
}

#[cfg(test)]
mod tests;
