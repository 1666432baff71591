//! Reservations on a bridge: control packets are taken out of the stream of frames, decided about beside it, and what was granted is
//! written on the packets of its flow ([`qdisc::Meta::reserved`]).
//!
//! # Principles
//! - A control packet that comes in on one side reserves on the direction that it travels in: on the port on the far side. What counts there is that
//!   port's rate.
//! - The thread that forwards does two things only: it hands control packets over ([`Gate`], into an inbox of [`INBOX`]; what does not fit is
//!   counted and gone, and its sender repeats it), and it looks flows up. Without reservations a look-up is one comparison; with some it is one
//!   probe of a hash table, and nothing is allocated.
//! - Another thread decides ([`Keeper`], which is pure code). What it sends, answers and packets that go on, it gives to the ports of both
//!   directions, where it waits its turn: no frame goes past a queue.
//! - A start that is granted goes on, so that the next router on the way decides, too; one that is refused does not, and its sender is told why.
//!   An end goes on unless it is somebody else's. Answers of routers further on pass.
//! - Who made a reservation is its link address: the source of the frame, which the message names, too. Group addresses and zero are no machine's,
//!   and their messages are dropped. Without a key anyone on the link can write another's address.
//! - With a key each message is taken once ([`reserve::guard`]). What was heard is remembered for both directions together: a copy is a
//!   copy on whichever side it comes in.
//! - Frames of the same EtherType that do not begin as a control packet are not ours, and pass like any other.
//!
//! # Time
//! Starts and finishes are in Unix time, nanoseconds since 1970: what the clocks of both sides show. They are compared with the kernel's stamp
//! of a frame.
//!
//! # Left open by the paper
//! Chen and Chen discard packets that are neither reserved nor best effort. Every packet is one of both here, so there is nothing to discard.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use qdisc::blocks::FlowMap;
use qdisc::hash::SipHasher;
use qdisc::{FiveTuple, FlowKey, Rate, Span};
use reserve::message::LENGTH;
use reserve::{
    Counts, EtherTypes, Guard, Kind, Limits, Malformed, Message, Owner, Reason, Reservation, Table,
};

use crate::bridge::Handle;
use crate::clock::wall_ns;
use crate::device::Arrival;
use crate::direction::Order;
use crate::privilege::{self, Role};

/// How many control packets may wait to be decided about.
pub const INBOX: usize = 64;
/// How often it is looked who has gone.
const SWEEP: Duration = Duration::from_millis(250);
/// How long an answer about the tables may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ethernet header.
const HEADER: usize = 14;
/// A control packet with its Ethernet header.
const WHOLE: usize = HEADER + LENGTH;

/// How reservations are kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The EtherTypes of control packets.
    pub types: EtherTypes,
    /// Only who has this key is heard.
    pub key: Option<SipHasher>,
    /// What of a link may be reserved, in millionths.
    pub share: u64,
    /// How many reservations a link may have.
    pub most: usize,
    /// How long a reservation lives without being heard of.
    pub lifetime: Span,
    /// The least rate of a reservation.
    pub least: Rate,
    /// How many reservations one owner may have.
    pub owner_flows: usize,
    /// What share of the reservable rate one owner may have, in millionths.
    pub owner_share: u64,
    /// What share of the reservable rate and of the table owners without a key may have together, in millionths. With a key and 0
    /// here, only who has the key is heard.
    pub open_share: u64,
    /// By how much the clocks of senders with a key may differ from the router's.
    pub skew: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            types: EtherTypes::LOCAL,
            key: None,
            share: Limits::SHARE * 1000,
            most: Limits::MOST,
            lifetime: Span::ns(Limits::LIFETIME),
            least: Limits::LEAST,
            owner_flows: Limits::OWNER_FLOWS,
            owner_share: Limits::OWNER_SHARE,
            open_share: Limits::OPEN_SHARE,
            skew: Span::ns(Guard::SKEW),
        }
    }
}

impl Settings {
    /// What of a link may be reserved.
    pub fn capacity(&self, link: Rate) -> Rate {
        Rate::bit((u128::from(link.as_bit()) * u128::from(self.share) / 1_000_000) as u64)
    }

    /// What may be reserved on a link, and by whom.
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

/// What changes for a flow: a rate from a time until another, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    tuple: FiveTuple,
    rate: Rate,
    start: u64,
    until: u64,
}

impl Change {
    fn gone(tuple: FiveTuple) -> Change {
        Change { tuple, rate: Rate::default(), start: 0, until: 0 }
    }
}

impl From<Reservation> for Change {
    fn from(of: Reservation) -> Change {
        Change { tuple: of.tuple.into(), rate: of.rate, start: of.start, until: of.until }
    }
}

/// The part of it in the thread of a direction.
pub struct Gate {
    types: EtherTypes,
    /// Which direction it is of.
    way: usize,
    inbox: SyncSender<Told>,
    overflow: Arc<AtomicU64>,
    held: FlowMap<Change>,
}

impl Gate {
    /// Whether it is a control packet; if so it was taken, or counted as lost.
    #[inline]
    pub(crate) fn takes(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some([high, low]) = arrival.bytes.get(12..HEADER).and_then(|kind| kind.first_chunk()) else {
            return false;
        };
        let kind = u16::from_be_bytes([*high, *low]);
        (kind == self.types.start || kind == self.types.end) && self.hand_over(arrival)
    }

    #[cold]
    fn hand_over(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some(letter) = Letter::of(self.way, arrival) else { return false };
        match self.inbox.try_send(Told::Letter(letter)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.overflow.fetch_add(1, Ordering::Relaxed);
                true
            }
            // Nobody decides any more: it passes.
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Writes down what was decided. `key` is the keyed hash of the flow.
    pub(crate) fn change(&mut self, key: FlowKey, change: Change) {
        if change.until == 0 {
            self.held.retire(key, |held| held.tuple == change.tuple);
        } else {
            self.held.upsert(key, |held| *held = change, || change);
        }
    }

    /// Whether nobody has a reservation.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// What a flow has reserved at a Unix time that is only asked for where there is a reservation.
    #[inline]
    pub(crate) fn reserved(&self, key: FlowKey, tuple: &FiveTuple, now: impl FnOnce() -> u64) -> Rate {
        let Some(held) = self.held.get(key).filter(|held| held.tuple == *tuple) else {
            return Rate::default();
        };
        let now = now();
        if held.start <= now && now < held.until { held.rate } else { Rate::default() }
    }
}

impl Change {
    /// The flow.
    pub(crate) fn tuple(&self) -> &FiveTuple {
        &self.tuple
    }
}

/// A frame with a control packet, as far as it matters.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    way: usize,
    bytes: [u8; WHOLE],
    length: usize,
    vlan: Option<[u8; 4]>,
}

impl Letter {
    /// That of a frame that came in on a way; `None` when it does not begin as one.
    pub fn of(way: usize, arrival: &Arrival<'_>) -> Option<Letter> {
        let length = arrival.bytes.len().min(WHOLE);
        let begins = arrival.bytes.get(HEADER..HEADER + 2) == Some(b"GW");
        begins.then(|| {
            let mut bytes = [0; WHOLE];
            bytes[..length].copy_from_slice(&arrival.bytes[..length]);
            Letter { way, bytes, length, vlan: arrival.vlan }
        })
    }

    fn from(&self) -> [u8; 6] {
        std::array::from_fn(|at| self.bytes[6 + at])
    }
    fn kind(&self) -> u16 {
        u16::from_be_bytes([self.bytes[12], self.bytes[13]])
    }

    /// A frame with these addresses and bytes, in the same VLAN and of the same type.
    fn frame(&self, to: [u8; 6], from: [u8; 6], body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(WHOLE + 4);
        frame.extend(to);
        frame.extend(from);
        frame.extend(self.vlan.iter().flatten());
        frame.extend(&self.bytes[12..HEADER]);
        frame.extend(body);
        frame
    }

    /// The frame as it came.
    fn whole(&self) -> Vec<u8> {
        let to = std::array::from_fn(|at| self.bytes[at]);
        self.frame(to, self.from(), &self.bytes[HEADER..self.length])
    }
}

/// What somebody owns a reservation by, as the table has it.
fn owner(address: [u8; 6]) -> u64 {
    address.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// What becomes of a control packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Goes back to who sent it.
    pub answer: Option<Vec<u8>>,
    /// Goes on.
    pub onward: Option<Vec<u8>>,
    /// What changes for the flow in the direction that it travels in.
    pub change: Option<Change>,
}

/// The tables of both directions.
pub struct Keeper {
    settings: Settings,
    /// What was heard from owners with a key, in both directions.
    guard: Guard,
    ways: [Option<Desk>; 2],
}

struct Desk {
    table: Table,
    /// The link address of the interface at which this direction's frames come in: who answers.
    address: [u8; 6],
    malformed: [u64; Malformed::NAMES.len()],
    overflow: Arc<AtomicU64>,
}

/// How the reservations of a direction stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// What may be reserved.
    pub capacity: Rate,
    /// What is, now.
    pub reserved: Rate,
    /// What happened to messages.
    pub counts: Counts,
    /// Messages that were wrong, by [`Malformed::NAMES`].
    pub malformed: [u64; Malformed::NAMES.len()],
    /// Messages that were lost because too many came at once.
    pub overflow: u64,
    /// Every reservation.
    pub list: Vec<Reservation>,
}

impl Keeper {
    /// Tables for the directions whose link has a rate here; `addresses` are those of the interfaces that each direction's frames come in at.
    /// Messages under a key that were written before `now` are not heard.
    pub fn new(settings: Settings, links: [Option<Rate>; 2], addresses: [[u8; 6]; 2], now: u64) -> Keeper {
        let desk = |link: Rate, address| Desk {
            table: Table::new(settings.limits(link)),
            address,
            malformed: Default::default(),
            overflow: Arc::default(),
        };
        let ways = [0, 1].map(|way| links[way].map(|link| desk(link, addresses[way])));
        let guard = Guard::new(now, settings.skew.as_ps() / 1000, Guard::MOST);
        Keeper { settings, guard, ways }
    }

    /// Decides about a control packet that came at this Unix time. [`Keeper::sweep`] was called for this time.
    pub fn decide(&mut self, letter: &Letter, now: u64) -> Verdict {
        let types = self.settings.types;
        let Some(desk) = &mut self.ways[letter.way] else { return Verdict::default() };
        let body = &letter.bytes[HEADER..letter.length];
        // Where others are heard beside those with a key, they are those that write no tag.
        let open =
            self.settings.key.is_none() || (self.settings.open_share > 0 && Message::is_untagged(body));
        let key = self.settings.key.filter(|_| !open);
        let from = letter.from();
        let reply = |answer: Message| letter.frame(from, desk.address, &answer.encode(key.as_ref()));
        let message = Message::decode(body, key.as_ref()).and_then(|message| {
            let right = match message.kind {
                Kind::Start => letter.kind() == types.start,
                Kind::End => letter.kind() == types.end,
                Kind::Granted | Kind::Refused(_) => return Ok(message),
            };
            if !right {
                return Err(Malformed::Kind(letter.bytes[HEADER + 3]));
            }
            message.check_owner(from).map(|()| message)
        });
        let message = match message {
            Ok(message) => message,
            Err(malformed) => {
                desk.malformed[malformed.index()] += 1;
                let old = Message::decode_version_1(body, from, self.settings.key.as_ref());
                // Group addresses and zero get no answer.
                let old = old.filter(|old| old.check_owner(from).is_ok());
                let refused = old.map(|old| desk.table.refuse(&old, Reason::OldVersion));
                return Verdict { answer: refused.map(reply), ..Verdict::default() };
            }
        };
        let owner = Owner { id: owner(from), open };
        let is_request = matches!(message.kind, Kind::Start | Kind::End);
        let copied =
            if open || !is_request { Ok(()) } else { self.guard.admit(owner.id, message.number, now) };
        let answer = match copied {
            Ok(()) => desk.table.take(&message, owner, now),
            Err(reason) => Some(desk.table.refuse(&message, reason)),
        };
        let granted = !answer.is_some_and(|answer| matches!(answer.kind, Kind::Refused(_)));
        let decided = granted && answer.is_some();
        let change = decided.then(|| {
            desk.table.get(&message.tuple).map_or_else(|| Change::gone(message.tuple.into()), Change::from)
        });
        Verdict { answer: answer.map(reply), onward: granted.then(|| letter.whole()), change }
    }

    /// Who has gone by this time, with the direction.
    pub fn sweep(&mut self, now: u64) -> Vec<(usize, Change)> {
        let mut gone = Vec::new();
        for (way, desk) in self.ways.iter_mut().enumerate() {
            let went = desk.as_mut().map(|desk| desk.table.expire(now)).unwrap_or_default();
            gone.extend(went.into_iter().map(|tuple| (way, Change::gone(tuple.into()))));
        }
        gone
    }

    /// The link of a direction has another rate: who no longer fits has gone.
    pub fn resize(&mut self, way: usize, link: Rate, now: u64) -> Vec<(usize, Change)> {
        let capacity = self.settings.capacity(link);
        let Some(desk) = &mut self.ways[way] else { return Vec::new() };
        let revoked = desk.table.resize(capacity, now).into_iter();
        revoked.map(|tuple| (way, Change::gone(tuple.into()))).collect()
    }

    /// How both directions stand.
    pub fn show(&self, now: u64) -> [Option<Shown>; 2] {
        [0, 1].map(|way| {
            let desk = self.ways[way].as_ref()?;
            Some(Shown {
                capacity: desk.table.capacity(),
                reserved: desk.table.sum(now),
                counts: desk.table.counts(),
                malformed: desk.malformed,
                overflow: desk.overflow.load(Ordering::Relaxed),
                list: desk.table.iter().collect(),
            })
        })
    }
}

/// What the thread that decides is told.
enum Told {
    Letter(Letter),
    Rate(usize, Rate),
    Show(SyncSender<[Option<Shown>; 2]>),
}

/// A keeper that has not begun.
pub struct Office {
    keeper: Keeper,
    inbox: Receiver<Told>,
}

/// How somebody talks to the thread that decides.
#[derive(Clone)]
pub struct Clerk(SyncSender<Told>);

/// Everything for a bridge with these links: what decides, a gate for each direction that has one, and how to talk to it.
pub fn open(
    settings: Settings,
    links: [Option<Rate>; 2],
    addresses: [[u8; 6]; 2],
) -> (Office, [Option<Gate>; 2], Clerk) {
    let (told, inbox) = sync_channel(INBOX);
    let keeper = Keeper::new(settings, links, addresses, wall_ns());
    let gates = [0, 1].map(|way| {
        let overflow = Arc::clone(&keeper.ways[way].as_ref()?.overflow);
        // Those that have gone are forgotten a little later than others may come.
        let held = FlowMap::with_capacity(2 * settings.most);
        Some(Gate { types: settings.types, way, inbox: told.clone(), overflow, held })
    });
    (Office { keeper, inbox }, gates, Clerk(told))
}

impl Office {
    /// Decides from now on, in a thread of its own without privileges, as long as the process lives. `handles` are those of the bridge, in
    /// the order of its ways.
    ///
    /// # Errors
    /// What the system says when the thread cannot be started.
    pub fn run(self, handles: Vec<Handle>) -> io::Result<()> {
        let Office { mut keeper, inbox } = self;
        thread::Builder::new().name("gw-reserve".to_owned()).spawn(move || {
            let _ = privilege::settle(Role::Forward);
            loop {
                let told = inbox.recv_timeout(SWEEP);
                let now = wall_ns();
                let mut changes = keeper.sweep(now);
                match told {
                    Ok(Told::Letter(letter)) => {
                        let verdict = keeper.decide(&letter, now);
                        changes.extend(verdict.change.map(|change| (letter.way, change)));
                        let ways = [(1 - letter.way, verdict.answer), (letter.way, verdict.onward)];
                        // What was granted holds before the answer can be there.
                        order(&handles, &mut changes);
                        for (way, frame) in ways {
                            if let Some(frame) = frame {
                                // What is lost is repeated by its sender.
                                handles[way].order_if_taken(Order::Frame(frame));
                            }
                        }
                    }
                    Ok(Told::Rate(way, rate)) => changes.extend(keeper.resize(way, rate, now)),
                    Ok(Told::Show(reply)) => {
                        // Who does not wait for it misses it.
                        let _ = reply.try_send(keeper.show(now));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                order(&handles, &mut changes);
            }
        })?;
        Ok(())
    }
}

fn order(handles: &[Handle], changes: &mut Vec<(usize, Change)>) {
    for (way, change) in changes.drain(..) {
        // A direction that takes nothing more has failed: it forwards plainly.
        handles[way].order_if_taken(Order::Reserve(change));
    }
}

impl Clerk {
    /// The link of a direction has another rate from now on.
    pub fn rate(&self, way: usize, rate: Rate) {
        // Without the thread there is nothing to tell.
        let _ = self.0.send(Told::Rate(way, rate));
    }

    /// How both directions stand, `None` for one that keeps no reservations; nothing when nobody answers.
    pub fn show(&self) -> [Option<Shown>; 2] {
        let (reply, answer) = sync_channel(1);
        let asked = self.0.send(Told::Show(reply));
        asked.ok().and_then(|()| answer.recv_timeout(PATIENCE).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
