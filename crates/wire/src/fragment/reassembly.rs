//! Reassembly of fragments.
//!
//! # Principles
//! - Memory is allocated once and bounded ([`Settings::memory`]): an entry for each incomplete packet. When
//!   all entries are in use, the oldest packet is discarded for the newest: its missing fragments are most
//!   likely lost.
//! - A packet waits for its fragments for a bounded time, counted from the first one.
//! - Fragments arrive in any order. Number, addresses and tags together identify their packet.
//! - A fragment that contradicts earlier ones (another count or length, another size, other bytes at the same
//!   position) discards its packet, because it is unknown which of them are right (RFC 5722 for IPv6). An
//!   identical fragment is only a duplicate.
//! - Every fragment is accounted for: it becomes part of a frame, is lost for a reason, or belongs to an
//!   incomplete packet ([`Counts`]).
//!
//! # Cost
//! - A fragment: one keyed hash, one copy of its piece. No allocation.

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Span, Time};

use super::counts::{Counts, Lost};
use super::piece::Fragment;
use super::{HEAD, header_at, ip_type};
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
    /// Default memory: eight mebibytes, about 5,000 packets of 1,500 bytes; as many flows may be served in
    /// turn with a fragment of each in flight.
    pub const MEMORY: usize = 8 << 20;
    /// Default time limit, five seconds: a hundred flows in turn, with 800 bytes each, at 130 kbit/s.
    pub const TIMEOUT: Span = Span::s(5);

    /// Settings for frames of at most `longest` bytes, with defaults for the rest.
    pub fn new(ether_type: u16, longest: usize) -> Settings {
        Settings { ether_type, longest, memory: Settings::MEMORY, timeout: Settings::TIMEOUT }
    }
}

/// The result of [`Reassembly::take`].
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// The frame is not a fragment.
    Other,
    /// The frame is a fragment that waits for others or was lost ([`Counts`]).
    Kept,
    /// The fragment completed this frame, which is valid until the next call.
    Whole(&'a [u8]),
}

/// Joins fragments to frames.
pub struct Reassembly {
    settings: Settings,
    hasher: SipHasher,
    /// A buffer of `buffer_size` bytes for each entry.
    memory: Box<[u8]>,
    /// Size of a buffer, in bytes.
    buffer_size: usize,
    entries: Box<[Entry]>,
    /// The first entry of each bucket of a table by hash.
    heads: Box<[u32]>,
    free: Option<u32>,
    oldest: Option<u32>,
    newest: Option<u32>,
    waiting: u64,
    counts: Counts,
}

/// An incomplete packet.
#[derive(Clone, Debug)]
struct Entry {
    /// Addresses and tags.
    head: [u8; HEAD],
    head_length: u8,
    count: u8,
    /// True if a fragment had a congestion mark.
    marked: bool,
    id: u32,
    /// Bytes behind the EtherType of the frame.
    length: u16,
    /// Length of all pieces but the last; 0 until one of them has arrived.
    piece: u16,
    /// Length of a last piece that arrived before `piece` was known. It is at the end of the buffer.
    early: u16,
    /// A bit for each fragment that has arrived.
    received: u128,
    born: Time,
    bucket: u32,
    /// The next entry of the bucket, or the next free one.
    next: Option<u32>,
    older: Option<u32>,
    newer: Option<u32>,
}

impl Reassembly {
    /// Creates it with all its memory. An attacker without the keys of `hasher` cannot fill one bucket of the
    /// table on purpose.
    pub fn new(settings: Settings, hasher: SipHasher) -> Reassembly {
        let buffer_size = settings.longest.next_multiple_of(64);
        let each = buffer_size + size_of::<Entry>() + 2 * size_of::<u32>();
        let entries = (settings.memory / each).clamp(1, u32::MAX as usize / 2);
        let empty = |number: usize| Entry {
            head: [0; HEAD],
            head_length: 0,
            count: 0,
            marked: false,
            id: 0,
            length: 0,
            piece: 0,
            early: 0,
            received: 0,
            born: Time::ZERO,
            bucket: 0,
            next: (number + 1 < entries).then_some(number as u32 + 1),
            older: None,
            newer: None,
        };
        Reassembly {
            settings,
            hasher,
            memory: vec![0; buffer_size * entries].into_boxed_slice(),
            buffer_size,
            entries: (0..entries).map(empty).collect(),
            heads: vec![NO_ENTRY; entries.next_power_of_two()].into_boxed_slice(),
            free: Some(0),
            oldest: None,
            newest: None,
            waiting: 0,
            counts: Counts::default(),
        }
    }

    /// Largest number of incomplete packets: the number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }
    /// Number of fragments that wait for others.
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
            if self.entries[oldest as usize].born + self.settings.timeout > now {
                return;
            }
            self.give_up(oldest, Lost::Expired);
        }
    }

    /// Restarts the clock: the time `then` becomes zero.
    pub fn rebase(&mut self, then: Time) {
        let mut next = self.oldest;
        while let Some(number) = next {
            let entry = &mut self.entries[number as usize];
            entry.born = Time::ZERO + entry.born.since(Time::ZERO).saturating_sub(then.since(Time::ZERO));
            next = entry.newer;
        }
    }

    fn take_fragment(&mut self, frame: &[u8], at: usize, now: Time) -> Taken<'_> {
        self.counts.fragments += 1;
        self.expire(now);
        let Some(fragment) = Fragment::parse(frame, at) else { return self.lose(Lost::Malformed) };
        if at + usize::from(fragment.length) > self.settings.longest {
            return self.lose(Lost::TooLong);
        }
        let bucket = self.bucket(&fragment);
        let number = match self.find(&fragment, bucket) {
            Some(number) => number,
            None => self.allocate(&fragment, bucket, now),
        };
        match self.put(number, &fragment) {
            Ok(()) => {}
            Err(Lost::Duplicate) => return self.lose(Lost::Duplicate),
            Err(why) => {
                self.give_up(number, why);
                return self.lose(why);
            }
        }
        let entry = &self.entries[number as usize];
        if entry.received.count_ones() == u32::from(entry.count) { self.finish(number) } else { Taken::Kept }
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
            let entry = &self.entries[number as usize];
            if entry.id == fragment.id && entry.head() == fragment.head {
                return Some(number);
            }
            next = entry.next;
        }
        None
    }

    /// Allocates an entry for the packet of a fragment: a free one, or the entry of the oldest packet.
    fn allocate(&mut self, fragment: &Fragment<'_>, bucket: u32, now: Time) -> u32 {
        if self.free.is_none()
            && let Some(oldest) = self.oldest
        {
            self.give_up(oldest, Lost::CrowdedOut);
        }
        let number = self.free.expect("the table has an entry, and the oldest one was freed");
        let older = self.newest.replace(number);
        match older {
            Some(older) => self.entries[older as usize].newer = Some(number),
            None => self.oldest = Some(number),
        }
        let entry = &mut self.entries[number as usize];
        self.free = entry.next;
        entry.head[..fragment.head.len()].copy_from_slice(fragment.head);
        entry.head_length = fragment.head.len() as u8;
        entry.id = fragment.id;
        (entry.count, entry.length) = (fragment.count, fragment.length);
        (entry.piece, entry.early, entry.received, entry.marked) = (0, 0, 0, false);
        entry.born = now;
        entry.bucket = bucket;
        entry.next = some(std::mem::replace(&mut self.heads[bucket as usize], number));
        (entry.older, entry.newer) = (older, None);
        number
    }

    /// Copies a piece to its position.
    fn put(&mut self, number: u32, fragment: &Fragment<'_>) -> Result<(), Lost> {
        let entry = &mut self.entries[number as usize];
        let buffer = &mut self.memory[number as usize * self.buffer_size..][..self.buffer_size];
        let (count, length, here) = (entry.count, entry.length, fragment.bytes.len());
        if (fragment.count, fragment.length) != (count, length) {
            return Err(Lost::Contradictory);
        }
        let begin = usize::from(entry.head_length) + 2;
        let bit = 1 << fragment.index;
        let repeated = entry.received & bit != 0;
        if !fragment.is_last() {
            if entry.piece == 0 {
                entry.piece = here as u16;
                // The position of the last piece is known now. Move it there if it arrived before.
                if entry.early > 0 {
                    let early = usize::from(entry.early);
                    let rest = Fragment::rest(length, count, here, early).ok_or(Lost::Contradictory)?;
                    let from = buffer.len() - early;
                    buffer.copy_within(from..from + rest, begin + here * (usize::from(count) - 1));
                    entry.early = 0;
                }
            }
            if here != usize::from(entry.piece) {
                return Err(Lost::Contradictory);
            }
        }
        let (at, bytes) = match (fragment.is_last(), entry.piece) {
            (true, 0) => (buffer.len() - here, fragment.bytes),
            (true, piece) => {
                let piece = usize::from(piece);
                let rest = Fragment::rest(length, count, piece, here).ok_or(Lost::Contradictory)?;
                (begin + piece * (usize::from(count) - 1), &fragment.bytes[..rest])
            }
            (false, piece) => (begin + usize::from(piece) * usize::from(fragment.index), fragment.bytes),
        };
        let stored = &mut buffer[at..at + bytes.len()];
        if repeated {
            let same = stored == bytes && (entry.early == 0 || usize::from(entry.early) == here);
            entry.marked |= same && fragment.marked;
            return Err(if same { Lost::Duplicate } else { Lost::Contradictory });
        }
        stored.copy_from_slice(bytes);
        if fragment.is_last() && entry.piece == 0 {
            entry.early = here as u16;
        }
        entry.received |= bit;
        entry.marked |= fragment.marked;
        self.waiting += 1;
        Ok(())
    }

    /// Writes the header of a complete packet, and returns the frame.
    fn finish(&mut self, number: u32) -> Taken<'_> {
        let entry = &self.entries[number as usize];
        let (at, count, marked) = (usize::from(entry.head_length), entry.count, entry.marked);
        let frame =
            &mut self.memory[number as usize * self.buffer_size..][..at + 2 + usize::from(entry.length)];
        frame[..at].copy_from_slice(entry.head());
        let kind = ip_type(frame[at + 2]).expect("the IP version was checked when fragment 0 arrived");
        frame[at..at + 2].copy_from_slice(&kind.to_be_bytes());
        if marked {
            ecn::mark(&mut frame[at + 2..]);
        }
        let length = frame.len();
        self.waiting -= u64::from(count);
        self.counts.joined += u64::from(count);
        self.counts.packets += 1;
        self.release(number);
        Taken::Whole(&self.memory[number as usize * self.buffer_size..][..length])
    }

    /// Discards an incomplete packet.
    fn give_up(&mut self, number: u32, why: Lost) {
        let arrived = u64::from(self.entries[number as usize].received.count_ones());
        self.waiting -= arrived;
        self.counts.lost[why as usize] += arrived;
        self.counts.given_up += 1;
        self.release(number);
    }

    /// Frees an entry: removes it from its bucket and from the list by age.
    fn release(&mut self, number: u32) {
        let Entry { bucket, next, older, newer, .. } = self.entries[number as usize];
        match older {
            Some(older) => self.entries[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.entries[newer as usize].older = older,
            None => self.newest = older,
        }
        let mut at = self.heads[bucket as usize];
        if at == number {
            self.heads[bucket as usize] = next.unwrap_or(NO_ENTRY);
        } else {
            while self.entries[at as usize].next != Some(number) {
                at = self.entries[at as usize].next.expect("an entry is in its bucket");
            }
            self.entries[at as usize].next = next;
        }
        self.entries[number as usize].next = self.free.replace(number);
    }
}

impl Entry {
    fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_length)]
    }
}

/// Index of no entry.
const NO_ENTRY: u32 = u32::MAX;

fn some(number: u32) -> Option<u32> {
    (number != NO_ENTRY).then_some(number)
}

#[cfg(test)]
mod tests;
