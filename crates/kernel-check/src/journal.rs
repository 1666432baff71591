//! Converts the journal of a discipline in the kernel to a trace of operations.
//!
//! Built with a journal, a discipline in the kernel writes an entry for each packet that came, was dropped or
//! left, and for each time that it was asked and had none, with its own time (`kernel/giveway.h`).
//! [`to_trace`] makes the calls of a [`giveway_qdisc::Qdisc`] of that. There is one format of traces and one
//! checker; so the kernel's calls are made again, on a puppet that answers what the kernel answered, and
//! [`giveway_replay::Tracer`] writes them down. The puppet holds the packets: a packet that left twice, or
//! was dropped when it had left already, is found before any discipline is asked.

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
    /// It is shorter than it says, or not a whole number of entries.
    #[error("has {bytes} bytes, where {entries} entries of {ENTRY} bytes follow the first")]
    Cut {
        /// Bytes that there are.
        bytes: usize,
        /// Entries that it says it has.
        entries: u64,
    },
    /// An entry cannot follow those before it.
    #[error("entry {at}: {what}")]
    Wrong {
        /// Number of the entry, from 1.
        at: usize,
        /// A sentence.
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
    /// The packet's flow.
    pub flow: u64,
    /// Value of the packet's mark: the reserved rate of its flow, bit/s, or its route.
    pub reserved: u64,
    /// The packet, in the order of arrival, from 0.
    pub number: u32,
    /// Its length.
    pub bytes: u32,
    /// The event.
    pub what: What,
}

/// Event of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A packet arrived.
    Enqueued,
    /// The packet was dropped because of the last arrival.
    Dropped(DropReason),
    /// The packet left.
    Sent,
    /// The link requested a packet, and the queue was empty.
    NothingHeld,
    /// A timer of the kernel's own qdisc ran.
    Updated,
}

/// Reads a journal as the kernel has it: entries of 40 bytes, integers as the machine has them (little-endian
/// everywhere that this runs); the first says how many follow.
///
/// # Errors
/// If it is cut off, or an entry is of no known kind.
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
        let what = match (half(from + 32), half(from + 36)) {
            (1, _) => What::Enqueued,
            (2, reason) => match DropReason::ALL.get(reason as usize) {
                Some(reason) => What::Dropped(*reason),
                None => return Err(JournalError::Wrong { at, what: format!("no drop has reason {reason}") }),
            },
            (3, _) => What::Sent,
            (4, _) => What::NothingHeld,
            (5, _) => What::Updated,
            (kind, _) => return Err(JournalError::Wrong { at, what: format!("no entry is of kind {kind}") }),
        };
        let word = |offset: usize| word(from + offset).expect("the length was checked");
        let (number, bytes) = (half(from + 24), half(from + 28));
        Ok(Entry { now: word(0), flow: word(8), reserved: word(16), number, bytes, what })
    };
    (1..=entries as usize).map(one).collect()
}

/// Writes the trace of a journal: `spec` at `context` is what it should be, `name` says where it stood. The
/// trace is for [`giveway_replay::check()`].
///
/// # Errors
/// If an entry cannot follow those before it: such a discipline loses or duplicates packets. When the trace
/// cannot be written.
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
    let puppet = Puppet { script: Rc::clone(&script), held: BTreeMap::new(), came: 0 };
    let mut traced = recording.tracer().wrap(name, &spec.to_string(), context, Box::new(puppet));
    let mut outbox = Outbox::default();
    let mut at = 0;
    while let Some(entry) = journal.get(at) {
        let cx = &mut Cx::new(Time::from_ps(entry.now.saturating_mul(1000)), &mut outbox);
        let place = at + 1;
        let wrong = |what: String| JournalError::Wrong { at: place, what };
        let number = u64::from(entry.number);
        let drops = journal[at + 1..].iter().map_while(|drop| match drop.what {
            What::Dropped(why) => Some((u64::from(drop.number), why)),
            _ => None,
        });
        match entry.what {
            What::Enqueued => {
                script.borrow_mut().dropped.extend(drops);
                at += script.borrow().dropped.len();
                // What a mark says is a way to one that looks ahead, and a rate to others.
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
                if script.borrow().came != number + 1 {
                    return Err(wrong(format!("packet {number} is out of turn")));
                }
            }
            What::Sent => {
                script.borrow_mut().sent = Some(number);
                let _ = traced.dequeue(cx);
            }
            What::NothingHeld => {
                let _ = traced.dequeue(cx);
                if traced.backlog() != Backlog::ZERO {
                    return Err(wrong(format!(
                        "nothing is held, it says, and {} are",
                        traced.backlog().packets
                    )));
                }
            }
            What::Dropped(_) => return Err(wrong(format!("packet {number} is dropped, and none came"))),
            What::Updated => return Err(wrong("a timer ran, and our disciplines have none".to_owned())),
        }
        if let Some(missing) = script.borrow().missing {
            return Err(wrong(format!("packet {missing} goes a second time")));
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
    /// Packets that came.
    came: u64,
    /// A packet that should go and is not there.
    missing: Option<u64>,
}

/// A discipline that does what the script says.
struct Puppet {
    script: Rc<RefCell<Script>>,
    held: BTreeMap<u64, Packet<Stamped<()>>>,
    came: u64,
}

impl Qdisc<Stamped<()>> for Puppet {
    fn enqueue(&mut self, pkt: Packet<Stamped<()>>, cx: &mut Cx<'_, Stamped<()>>) {
        let script = &mut *self.script.borrow_mut();
        self.held.insert(self.came, pkt);
        self.came += 1;
        script.came = self.came;
        for (number, why) in script.dropped.drain(..) {
            match self.held.remove(&number) {
                Some(victim) => cx.drop(victim, why),
                None => script.missing = Some(number),
            }
        }
    }

    fn dequeue(&mut self, _: &mut Cx<'_, Stamped<()>>) -> Next<Stamped<()>> {
        let script = &mut *self.script.borrow_mut();
        let Some(number) = script.sent.take() else { return Next::Empty };
        match self.held.remove(&number) {
            Some(pkt) => Next::Packet(pkt),
            None => {
                script.missing = Some(number);
                Next::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.held.values().map(|pkt| u64::from(pkt.bytes())).sum();
        Backlog { packets: self.held.len() as u64, bytes }
    }

    fn reset(&mut self, cx: &mut Cx<'_, Stamped<()>>) {
        for (_, pkt) in std::mem::take(&mut self.held) {
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

    fn entry(now: u64, number: u32, what: What) -> Entry {
        Entry { now, flow: u64::from(number % 2), reserved: 0, number, bytes: 1000, what }
    }

    /// A journal as the kernel writes it.
    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = (entries.len() as u64).to_le_bytes().to_vec();
        bytes.resize(ENTRY, 0);
        for Entry { now, flow, reserved, number, bytes: length, what } in entries {
            let (kind, reason) = match what {
                What::Enqueued => (1u32, 0),
                What::Dropped(reason) => (2, *reason as u32),
                What::Sent => (3, 0),
                What::NothingHeld => (4, 0),
                What::Updated => (5, 0),
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
            giveway_replay::Verdict::Unbuildable(why) => Err(why.clone()),
        }
    }

    /// Packets 0 (flow 0) and 1 (flow 1) wait, 2 (flow 0) finds no room.
    fn story() -> Vec<Entry> {
        vec![
            entry(0, 0, What::Enqueued),
            entry(1, 1, What::Enqueued),
            entry(2, 2, What::Enqueued),
            entry(2, 2, What::Dropped(DropReason::Overlimit)),
            entry(3, 0, What::Sent),
            entry(4, 1, What::Sent),
            entry(5, 0, What::NothingHeld),
        ]
    }

    #[test]
    fn what_the_kernel_did_is_done_again() {
        assert_eq!(judged("fifo limit 2p", &story()), Ok(()));
        let difference = judged("fifo limit 3p", &story()).unwrap_err();
        assert!(
            difference.contains("the trace has packet 2 dropped (overlimit), this run no further drop"),
            "{difference}"
        );
    }

    #[test]
    fn another_order_reason_or_victim_is_found() {
        let mut wrong = story();
        (wrong[4].number, wrong[5].number) = (1, 0);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("packet 1"));
        let mut wrong = story();
        wrong[3].what = What::Dropped(DropReason::Pushout);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("pushout"));
        let mut wrong = story();
        (wrong[3].number, wrong[5].number) = (1, 2);
        assert!(judged("fifo limit 2p", &wrong).unwrap_err().contains("packet 1 dropped"));
    }

    #[test]
    fn packets_that_go_twice_or_vanish_are_found() {
        let mut twice = story();
        twice[5].number = 0;
        assert_eq!(judged("fifo limit 2p", &twice), Err("entry 6: packet 0 goes a second time".to_owned()));
        let mut vanished = story();
        vanished.remove(5);
        assert!(
            judged("fifo limit 2p", &vanished).unwrap_err().contains("nothing is held, it says, and 1 are")
        );
        let mut out_of_turn = story();
        out_of_turn[1].number = 5;
        assert!(judged("fifo limit 2p", &out_of_turn).unwrap_err().contains("packet 5 is out of turn"));
    }

    #[test]
    fn a_journal_that_is_cut_is_none() {
        let whole = written(&story());
        for length in [0, 7, 39, 40, whole.len() - 1] {
            assert!(matches!(read(&whole[..length]), Err(JournalError::Cut { .. })), "{length}");
        }
        let mut strange = whole;
        strange[ENTRY + 32] = 9;
        assert!(read(&strange).unwrap_err().to_string().contains("kind 9"));
    }
}
