//! Converts the journal of a discipline in the kernel to an operation trace.
//!
//! A discipline that was built with a journal writes an entry, with the time, for each packet that arrives,
//! is dropped or leaves, and for each dequeue of an empty queue (`kernel/giveway.h`). [`to_trace`] converts
//! the entries to calls of a [`giveway_qdisc::Qdisc`]. There is one trace format with one checker, so the
//! calls are made on a [`Puppet`], which returns the results of the kernel, and [`giveway_replay::Tracer`]
//! records them. The puppet stores the packets: a packet that leaves twice, or is dropped after it has left,
//! is an error of the journal.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

use giveway_disciplines::Spec;
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, LinkContext, Meta, Next, NextHops, Outbox, Packet, Qdisc, Rate, Time,
};
use giveway_replay::{Options, Recording, Stamped, WhenFull, Written};

use giveway_kernel_plan::route::Route;

/// Bytes of an entry.
const ENTRY: usize = 40;

/// Error of a journal that cannot be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The length of the journal does not agree with its number of entries.
    #[error("has {bytes} bytes, but its head and {entries} entries have {ENTRY} bytes each")]
    Cut {
        /// Length of the journal, in bytes.
        bytes: usize,
        /// Number of entries in its head.
        entries: u64,
    },
    /// An entry cannot follow those before it.
    #[error("entry {at}: {what}")]
    Entry {
        /// Number of the entry, from 1.
        at: usize,
        /// Description of the error.
        what: String,
    },
    /// The trace cannot be written.
    #[error("the trace cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// An entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time in nanoseconds since the qdisc was attached.
    pub now: u64,
    /// Flow of the packet.
    pub flow: u64,
    /// Value of the packet's mark: the reserved rate of its flow in bit/s, or its route.
    pub reserved: u64,
    /// Number of the packet, in the order of arrival, from 0.
    pub number: u32,
    /// Length of the packet, in bytes.
    pub bytes: u32,
    /// Kind of the entry.
    pub event: Event,
}

/// Kind of an entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet arrived.
    Enqueued,
    /// The packet was dropped because of the last arrival.
    Dropped(DropReason),
    /// The packet left.
    Sent,
    /// The link requested a packet, but the queue was empty.
    Empty,
    /// A timer of a qdisc of Linux ran.
    Updated,
    /// A qdisc of Linux drew a random number, which is in `flow`. `bytes` is its length in bits, and `number`
    /// is 1 in a dequeue.
    Drawn,
    /// Three facts about the packet that arrived last: in `flow`, `reserved` and `bytes`.
    Noted,
}

/// Parses a journal: entries of 40 bytes with little-endian integers. The first one is the head, which has
/// the number of the entries after it.
///
/// # Errors
/// If the journal is truncated, or an entry has an unknown kind.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, JournalError> {
    let word =
        |at: usize| bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let entries = word(0).unwrap_or(0);
    if bytes.len() < ENTRY || (bytes.len() - ENTRY) as u64 != entries.saturating_mul(ENTRY as u64) {
        return Err(JournalError::Cut { bytes: bytes.len(), entries });
    }
    let one = |at: usize| {
        let from = at * ENTRY;
        let event = match (half(from + 32), half(from + 36)) {
            (1, _) => Event::Enqueued,
            (2, reason) => match DropReason::ALL.get(reason as usize) {
                Some(reason) => Event::Dropped(*reason),
                None => {
                    return Err(JournalError::Entry {
                        at,
                        what: format!("unknown reason for a drop: {reason}"),
                    });
                }
            },
            (3, _) => Event::Sent,
            (4, _) => Event::Empty,
            (5, _) => Event::Updated,
            (6, _) => Event::Drawn,
            (7, _) => Event::Noted,
            (kind, _) => return Err(JournalError::Entry { at, what: format!("unknown kind {kind}") }),
        };
        let word = |offset: usize| word(from + offset).expect("the length was checked");
        let (number, bytes) = (half(from + 24), half(from + 28));
        Ok(Entry { now: word(0), flow: word(8), reserved: word(16), number, bytes, event })
    };
    (1..=entries as usize).map(one).collect()
}

/// Writes the trace of a journal, for [`giveway_replay::check()`]. `spec` with `context` is the discipline to
/// compare with, and `name` is the name of its port in the trace.
///
/// # Errors
/// If an entry cannot follow those before it (the discipline in the kernel loses or duplicates packets), or
/// the trace cannot be written.
pub fn to_trace(
    journal: &[Entry],
    name: &str,
    spec: &Spec,
    context: &LinkContext,
    out: impl Write + Send + 'static,
) -> Result<Written, JournalError> {
    let options = Options { when_full: WhenFull::Wait, ..Options::default() };
    let recording = Recording::start(out, "the kernel", options)?;
    let script = Rc::new(RefCell::new(Script::default()));
    let puppet = Puppet { script: Rc::clone(&script), queued: BTreeMap::new(), arrived: 0 };
    let mut traced = recording.tracer().wrap(name, &spec.to_string(), context, Box::new(puppet));
    let mut outbox = Outbox::default();
    let mut at = 0;
    while let Some(entry) = journal.get(at) {
        let cx = &mut Cx::new(Time::from_ps(entry.now.saturating_mul(1000)), &mut outbox);
        let entry_number = at + 1;
        let error = |what: String| JournalError::Entry { at: entry_number, what };
        let number = u64::from(entry.number);
        let drops = journal[at + 1..].iter().map_while(|drop| match drop.event {
            Event::Dropped(reason) => Some((u64::from(drop.number), reason)),
            _ => None,
        });
        match entry.event {
            Event::Enqueued => {
                script.borrow_mut().dropped.extend(drops);
                at += script.borrow().dropped.len();
                // The value of a mark is a route for bsq, and a reserved rate for other disciplines.
                let (reserved, next_hops) = match spec {
                    Spec::bsq(_) => (0, Route::next_hops(entry.reserved)),
                    _ => (entry.reserved, NextHops::default()),
                };
                let meta = Meta {
                    bytes: entry.bytes,
                    flow: FlowKey(entry.flow),
                    reserved: Rate::bit(reserved),
                    next_hops,
                    arrived: cx.now(),
                    ..Meta::default()
                };
                traced.enqueue(Packet { meta, payload: () }, cx);
                if script.borrow().arrived != number + 1 {
                    return Err(error(format!("packet {number} is not the next arrival")));
                }
            }
            Event::Sent => {
                script.borrow_mut().sent = Some(number);
                let _ = traced.dequeue(cx);
            }
            Event::Empty => {
                let _ = traced.dequeue(cx);
                if traced.backlog() != Backlog::ZERO {
                    return Err(error(format!(
                        "the kernel reports an empty queue, but {} packets are queued",
                        traced.backlog().packets
                    )));
                }
            }
            Event::Dropped(_) => return Err(error(format!("packet {number} is dropped without an arrival"))),
            Event::Updated => {
                return Err(error("a timer ran, but disciplines of Giveway have no timer".to_owned()));
            }
            Event::Drawn | Event::Noted => {
                return Err(error(
                    "a random number was drawn or a fact noted, but only qdiscs of Linux report them"
                        .to_owned(),
                ));
            }
        }
        if let Some(missing) = script.borrow().missing {
            return Err(error(format!("packet {missing} leaves or is dropped a second time")));
        }
        outbox.dropped.clear();
        at += 1;
    }
    drop(traced);
    Ok(recording.finish()?)
}

/// The kernel's result of the next call.
#[derive(Default)]
struct Script {
    dropped: Vec<(u64, DropReason)>,
    sent: Option<u64>,
    /// Number of arrivals.
    arrived: u64,
    /// A packet that leaves or is dropped, but is not queued.
    missing: Option<u64>,
}

/// A discipline that returns the results of a script.
struct Puppet {
    script: Rc<RefCell<Script>>,
    queued: BTreeMap<u64, Packet<Stamped<()>>>,
    arrived: u64,
}

impl Qdisc<Stamped<()>> for Puppet {
    fn enqueue(&mut self, pkt: Packet<Stamped<()>>, cx: &mut Cx<'_, Stamped<()>>) {
        let script = &mut *self.script.borrow_mut();
        self.queued.insert(self.arrived, pkt);
        self.arrived += 1;
        script.arrived = self.arrived;
        for (number, reason) in script.dropped.drain(..) {
            match self.queued.remove(&number) {
                Some(victim) => cx.drop(victim, reason),
                None => script.missing = Some(number),
            }
        }
    }

    fn dequeue(&mut self, _: &mut Cx<'_, Stamped<()>>) -> Next<Stamped<()>> {
        let script = &mut *self.script.borrow_mut();
        let Some(number) = script.sent.take() else { return Next::Empty };
        match self.queued.remove(&number) {
            Some(pkt) => Next::Packet(pkt),
            None => {
                script.missing = Some(number);
                Next::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.queued.values().map(|pkt| u64::from(pkt.bytes())).sum();
        Backlog { packets: self.queued.len() as u64, bytes }
    }

    fn reset(&mut self, cx: &mut Cx<'_, Stamped<()>>) {
        for (_, pkt) in std::mem::take(&mut self.queued) {
            cx.drop(pkt, DropReason::Reset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;
    use std::io::Cursor;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn entry(now: u64, number: u32, event: Event) -> Entry {
        Entry { now, flow: u64::from(number % 2), reserved: 0, number, bytes: 1000, event }
    }

    /// A journal as the kernel writes it.
    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = (entries.len() as u64).to_le_bytes().to_vec();
        bytes.resize(ENTRY, 0);
        for Entry { now, flow, reserved, number, bytes: length, event } in entries {
            let (kind, reason) = match event {
                Event::Enqueued => (1u32, 0),
                Event::Dropped(reason) => (2, *reason as u32),
                Event::Sent => (3, 0),
                Event::Empty => (4, 0),
                Event::Updated => (5, 0),
                Event::Drawn => (6, 0),
                Event::Noted => (7, 0),
            };
            [now, flow, reserved].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [*number, *length, kind, reason].iter().for_each(|half| bytes.extend(half.to_le_bytes()));
        }
        bytes
    }

    /// The difference from the discipline, if there is one.
    fn judged(spec: &str, entries: &[Entry]) -> Result<(), String> {
        let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
        let trace = Memory::default();
        let journal = read(&written(entries)).map_err(|error| error.to_string())?;
        assert_eq!(journal, entries);
        to_trace(&journal, "here", &spec.parse().unwrap(), &context, trace.clone())
            .map_err(|error| error.to_string())?;
        let trace = trace.0.lock().unwrap().clone();
        let outcome = giveway_replay::check(Cursor::new(trace)).unwrap();
        assert!(outcome.complete());
        match &outcome.sections[0].verdict {
            giveway_replay::Verdict::Equal => Ok(()),
            giveway_replay::Verdict::Different(difference) => Err(difference.to_string()),
            giveway_replay::Verdict::Unbuildable(error) => Err(error.clone()),
        }
    }

    /// Packets 0 (flow 0) and 1 (flow 1) are queued, and packet 2 (flow 0) exceeds the limit.
    fn example() -> Vec<Entry> {
        vec![
            entry(0, 0, Event::Enqueued),
            entry(1, 1, Event::Enqueued),
            entry(2, 2, Event::Enqueued),
            entry(2, 2, Event::Dropped(DropReason::Overlimit)),
            entry(3, 0, Event::Sent),
            entry(4, 1, Event::Sent),
            entry(5, 0, Event::Empty),
        ]
    }

    #[test]
    fn the_journal_is_compared_with_the_discipline() {
        assert_eq!(judged("fifo limit 2p", &example()), Ok(()));
        let difference = judged("fifo limit 3p", &example()).unwrap_err();
        assert!(
            difference.contains("the trace has packet 2 dropped (overlimit), this run no further drop"),
            "{difference}"
        );
    }

    #[test]
    fn another_order_reason_or_victim_is_detected() {
        let mut wrong = example();
        (wrong[4].number, wrong[5].number) = (1, 0);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("packet 1"));
        let mut wrong = example();
        wrong[3].event = Event::Dropped(DropReason::Pushout);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("pushout"));
        let mut wrong = example();
        (wrong[3].number, wrong[5].number) = (1, 2);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("packet 1 dropped"));
    }

    #[test]
    fn packets_that_leave_twice_or_vanish_are_detected() {
        let mut twice = example();
        twice[5].number = 0;
        assert_eq!(
            judged("fifo limit 2p", &twice),
            Err("entry 6: packet 0 leaves or is dropped a second time".to_owned())
        );
        let mut vanished = example();
        vanished.remove(5);
        assert!(
            judged("fifo limit 2p", &vanished)
                .unwrap_err()
                .contains("an empty queue, but 1 packets are queued")
        );
        let mut skipped = example();
        skipped[1].number = 5;
        assert!(judged("fifo limit 2p", &skipped).unwrap_err().contains("packet 5 is not the next arrival"));
    }

    #[test]
    fn a_truncated_journal_is_rejected() {
        let whole = written(&example());
        for length in [0, 7, 39, 40, whole.len() - 1] {
            assert!(matches!(read(&whole[..length]), Err(JournalError::Cut { .. })), "{length}");
        }
        let mut strange = whole;
        strange[ENTRY + 32] = 9;
        assert!(read(&strange).unwrap_err().to_string().contains("kind 9"));
    }
}
