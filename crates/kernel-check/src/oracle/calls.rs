//! The calls of one of the kernel's own qdiscs, with their results, and a Rust discipline that gets the same
//! calls.

use std::fmt;

use giveway_qdisc::{Cx, FlowKey, Meta, Outbox, Packet, Qdisc, Time};

use crate::journal::{Entry, What};

/// A call of a qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Time in nanoseconds.
    pub now: u64,
    /// The packet that came; none where the link asked for one.
    pub came: Option<Came>,
    /// The packets that it dropped, in that order.
    pub dropped: Vec<u64>,
    /// The packet that left.
    pub sent: Option<u64>,
    /// A word of the qdisc's state behind this call: which, is said by `kernel/test/oracle.bpf.c`.
    pub state: u64,
}

/// A packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// In the order of arrival, from 0.
    pub number: u64,
    /// Its length.
    pub bytes: u32,
    /// Its mark, which is its flow.
    pub mark: u64,
}

/// The calls of a journal. Where the qdisc keeps no order among the classes' own queues, what these refused
/// never came to it: it is left out with `refused_by_others`.
///
/// # Errors
/// If a packet goes that is not there, or was dropped outside of a call: a sentence.
pub fn calls(journal: &[Entry], refused_by_others: bool) -> Result<Vec<Call>, String> {
    let mut calls: Vec<Call> = Vec::new();
    let mut held = std::collections::BTreeSet::new();
    // What the link's question has cost so far.
    let mut dropped = Vec::new();
    for (at, entry) in journal.iter().enumerate() {
        let number = u64::from(entry.number);
        if matches!(entry.what, What::Dropped(_) | What::Sent) && !held.remove(&number) {
            return Err(format!("entry {}: packet {number} goes, and is not there", at + 1));
        }
        match entry.what {
            What::Enqueued => {
                held.insert(number);
                let came = Some(Came { number, bytes: entry.bytes, mark: entry.flow });
                calls.push(Call {
                    now: entry.now,
                    came,
                    dropped: Vec::new(),
                    sent: None,
                    state: entry.reserved,
                });
            }
            What::Dropped(giveway_qdisc::DropReason::Congested) => dropped.push(number),
            What::Dropped(giveway_qdisc::DropReason::Overlimit | giveway_qdisc::DropReason::Pushout) => {
                match calls.last_mut().filter(|call| call.came.is_some()) {
                    // The kernel's list has the last one first.
                    Some(call) => call.dropped.insert(0, number),
                    None => {
                        return Err(format!("entry {}: packet {number} is dropped, and none came", at + 1));
                    }
                }
            }
            What::Dropped(why) => {
                return Err(format!(
                    "entry {}: packet {number} is dropped outside of a call ({})",
                    at + 1,
                    why.name()
                ));
            }
            What::Sent | What::NothingHeld => {
                let sent = (entry.what == What::Sent).then_some(number);
                let dropped = std::mem::take(&mut dropped);
                calls.push(Call { now: entry.now, came: None, dropped, sent, state: entry.reserved });
            }
            What::Updated => {}
        }
    }
    if refused_by_others {
        calls.retain(|call| call.came.is_none_or(|came| call.dropped != [came.number]));
    }
    Ok(calls)
}

/// The first call with different results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Packets that came before.
    pub packets: u64,
    /// Number of the call, from 1.
    pub call: u64,
    /// The call in words.
    pub what: String,
    /// Result in the kernel.
    pub kernel: String,
    /// Result of the Rust discipline.
    pub here: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { packets, call, what, kernel, here } = self;
        write!(f, "after {packets} packets, call {call}, {what}: the kernel {kernel}, here {here}")
    }
}

/// Gives a discipline the same calls, and returns the first different result. `key` returns the flow of a
/// mark.
pub fn compare(
    calls: &[Call],
    qdisc: &mut dyn Qdisc<u64>,
    key: &dyn Fn(u64) -> FlowKey,
) -> Option<Difference> {
    let mut out = Outbox::default();
    let mut packets = 0;
    for (at, call) in (1..).zip(calls) {
        let (sent, dropped) = make(call, qdisc, key, &mut out);
        if sent != call.sent || dropped != call.dropped {
            let now = Time::from_ps(call.now.saturating_mul(1000));
            let what = match call.came {
                Some(came) => format!("packet {} of flow {} comes at {now}", came.number, came.mark),
                None => format!("the link asks at {now}"),
            };
            let (kernel, here) = (in_words(call.sent, &call.dropped), in_words(sent, &dropped));
            return Some(Difference { packets, call: at, what, kernel, here });
        }
        packets += u64::from(call.came.is_some());
    }
    None
}

/// Replaces the results of calls by those of a discipline.
pub fn answers(calls: &[Call], qdisc: &mut dyn Qdisc<u64>, key: &dyn Fn(u64) -> FlowKey) -> Vec<Call> {
    let mut out = Outbox::default();
    let answered = |call: &Call| {
        let (sent, dropped) = make(call, qdisc, key, &mut out);
        Call { sent, dropped, ..call.clone() }
    };
    calls.iter().map(answered).collect()
}

/// Makes a call: what left, and what was dropped.
fn make(
    call: &Call,
    qdisc: &mut dyn Qdisc<u64>,
    key: &dyn Fn(u64) -> FlowKey,
    out: &mut Outbox<u64>,
) -> (Option<u64>, Vec<u64>) {
    let now = Time::from_ps(call.now.saturating_mul(1000));
    let cx = &mut Cx::new(now, out);
    let sent = match call.came {
        Some(Came { number, bytes, mark }) => {
            let meta = Meta { bytes, flow: key(mark), arrived: now, ..Meta::default() };
            qdisc.enqueue(Packet { meta, payload: number }, cx);
            None
        }
        None => qdisc.dequeue(cx).packet().map(|pkt| pkt.payload),
    };
    (sent, out.dropped.drain(..).map(|(victim, _)| victim.payload).collect())
}

fn in_words(sent: Option<u64>, dropped: &[u64]) -> String {
    let sent = sent.map(|number| format!("sends {number}"));
    let dropped = match dropped {
        [] => None,
        [first] => Some(format!("drops {first}")),
        [first, .., last] => Some(format!("drops {} packets, {first} to {last}", dropped.len())),
    };
    let both: Vec<String> = dropped.into_iter().chain(sent).collect();
    if both.is_empty() { "nothing".to_owned() } else { both.join(" and ") }
}
