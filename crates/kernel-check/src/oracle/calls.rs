//! The calls of a qdisc of Linux with their results, and the same calls of a Rust discipline.

use std::fmt;

use giveway_qdisc::{Cx, Ecn, Meta, Outbox, Packet, Qdisc, Time};

use crate::journal::{Entry, Event, JournalError};

/// A call of a qdisc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Time in nanoseconds.
    pub now: u64,
    /// The packet that arrived; `None` for a dequeue.
    pub arrival: Option<Arrival>,
    /// The packets that the call dropped, in this order.
    pub dropped: Vec<u64>,
    /// The packet that a dequeue returned.
    pub sent: Option<u64>,
    /// A word of the qdisc's state after this call, as `kernel/test/oracle.bpf.c` defines it.
    pub state: u64,
    /// The random numbers that the call drew, if the journal has them.
    pub drawn: Vec<u64>,
    /// True if the packet that a dequeue returned was marked; `None` if marks are not compared.
    pub marked: Option<bool>,
    /// Further facts about the packet that arrived, if the journal has them.
    pub facts: Vec<u64>,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number in the order of arrival, from 0.
    pub number: u64,
    /// Length, in bytes.
    pub bytes: u32,
    /// Mark, which identifies the flow.
    pub mark: u64,
}

/// The calls of a journal. With `omit_refused`, arrivals that were dropped at once are left out: the classes
/// of `drr` have their own queue disciplines, and a packet that these refuse does not reach `drr`.
///
/// # Errors
/// If a packet leaves that is not queued, or a packet was dropped outside of a call.
pub fn calls(journal: &[Entry], omit_refused: bool) -> Result<Vec<Call>, JournalError> {
    let mut calls: Vec<Call> = Vec::new();
    let mut queued = std::collections::BTreeSet::new();
    // The packets that the current dequeue has dropped so far.
    let mut dropped = Vec::new();
    let mut drawn = Vec::new();
    for (at, entry) in journal.iter().enumerate() {
        let number = u64::from(entry.number);
        let error = |what: String| JournalError::Entry { at: at + 1, what };
        if matches!(entry.event, Event::Dropped(_) | Event::Sent) && !queued.remove(&number) {
            return Err(error(format!("packet {number} leaves or is dropped, but is not queued")));
        }
        match entry.event {
            Event::Enqueued => {
                queued.insert(number);
                let arrival = Some(Arrival { number, bytes: entry.bytes, mark: entry.flow });
                calls.push(Call { now: entry.now, arrival, state: entry.reserved, ..Call::default() });
            }
            Event::Dropped(giveway_qdisc::DropReason::Congested) => dropped.push(number),
            // In a list, which has the last drop first.
            Event::Dropped(giveway_qdisc::DropReason::Early) => dropped.insert(0, number),
            Event::Dropped(giveway_qdisc::DropReason::Overlimit | giveway_qdisc::DropReason::Pushout) => {
                match calls.last_mut().filter(|call| call.arrival.is_some()) {
                    // Linux lists the last drop first.
                    Some(call) => call.dropped.insert(0, number),
                    None => return Err(error(format!("packet {number} is dropped without an arrival"))),
                }
            }
            Event::Dropped(reason) => {
                let reason = reason.name();
                return Err(error(format!("packet {number} is dropped outside of a call ({reason})")));
            }
            Event::Sent | Event::Empty => {
                let sent = (entry.event == Event::Sent).then_some(number);
                let (dropped, drawn) = (std::mem::take(&mut dropped), std::mem::take(&mut drawn));
                let state = entry.reserved;
                calls.push(Call { now: entry.now, dropped, sent, state, drawn, ..Call::default() });
            }
            Event::Updated => {}
            Event::Noted => match calls.last_mut().filter(|call| call.arrival.is_some()) {
                Some(call) => call.facts.extend([entry.flow, entry.reserved, u64::from(entry.bytes)]),
                None => return Err(error("the facts of a packet have no arrival".to_owned())),
            },
            // The number is 1 in a dequeue.
            Event::Drawn if number == 1 => drawn.push(entry.flow),
            Event::Drawn => match calls.last_mut().filter(|call| call.arrival.is_some()) {
                Some(call) => call.drawn.push(entry.flow),
                None => return Err(error("a random number is drawn outside of a call".to_owned())),
            },
        }
    }
    if omit_refused {
        calls.retain(|call| call.arrival.is_none_or(|arrival| call.dropped != [arrival.number]));
    }
    Ok(calls)
}

/// The first call with different results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of packets that arrived before.
    pub packets: u64,
    /// Number of the call, from 1.
    pub call: u64,
    /// Description of the call.
    pub what: String,
    /// Result in the kernel.
    pub kernel: String,
    /// Result of the Rust discipline.
    pub here: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { packets, call, what, kernel, here } = self;
        write!(
            f,
            "after {packets} packets, call {call}, {what}: the kernel {kernel}, the Rust discipline {here}"
        )
    }
}

/// Metadata of a packet that arrives, except its time of arrival.
pub type Headers<'a> = &'a dyn Fn(&Arrival) -> Meta;

/// Makes the same calls of a discipline, and returns the first different result.
pub fn compare(calls: &[Call], qdisc: &mut dyn Qdisc<u64>, headers: Headers<'_>) -> Option<Difference> {
    let mut out = Outbox::default();
    let mut packets = 0;
    for (at, call) in (1..).zip(calls) {
        let (sent, dropped, marked) = make(call, qdisc, headers, &mut out);
        if sent != call.sent || dropped != call.dropped || call.marked.is_some_and(|here| here != marked) {
            let now = Time::from_ps(call.now.saturating_mul(1000));
            let what = match call.arrival {
                Some(arrival) => {
                    format!("packet {} of flow {} arrives at {now}", arrival.number, arrival.mark)
                }
                None => format!("dequeue at {now}"),
            };
            let kernel = in_words(call.sent, &call.dropped, call.marked == Some(true));
            let here = in_words(sent, &dropped, marked);
            return Some(Difference { packets, call: at, what, kernel, here });
        }
        packets += u64::from(call.arrival.is_some());
    }
    None
}

/// Returns the calls with the results of a discipline.
pub fn results(calls: &[Call], qdisc: &mut dyn Qdisc<u64>, headers: Headers<'_>) -> Vec<Call> {
    let mut out = Outbox::default();
    let with_results = |call: &Call| {
        let (sent, dropped, marked) = make(call, qdisc, headers, &mut out);
        Call { sent, dropped, marked: call.marked.map(|_| marked), ..call.clone() }
    };
    calls.iter().map(with_results).collect()
}

/// Makes a call. Returns the packet that left, the packets that were dropped, and true if the packet that
/// left is marked.
fn make(
    call: &Call,
    qdisc: &mut dyn Qdisc<u64>,
    headers: Headers<'_>,
    out: &mut Outbox<u64>,
) -> (Option<u64>, Vec<u64>, bool) {
    let now = Time::from_ps(call.now.saturating_mul(1000));
    let cx = &mut Cx::new(now, out);
    let sent = match call.arrival {
        Some(arrival) => {
            let meta = Meta { arrived: now, ..headers(&arrival) };
            qdisc.enqueue(Packet { meta, payload: arrival.number }, cx);
            None
        }
        None => qdisc.dequeue(cx).packet(),
    };
    let marked = sent.as_ref().is_some_and(|pkt| pkt.meta.ecn == Ecn::Marked);
    out.marked.clear();
    let dropped = out.dropped.drain(..).map(|(victim, _)| victim.payload).collect();
    (sent.map(|pkt| pkt.payload), dropped, marked)
}

fn in_words(sent: Option<u64>, dropped: &[u64], marked: bool) -> String {
    let sent = sent.map(|number| format!("sends {number}{}", if marked { " with a mark" } else { "" }));
    let dropped = match dropped {
        [] => None,
        [first] => Some(format!("drops {first}")),
        [first, .., last] => Some(format!("drops {} packets, {first} to {last}", dropped.len())),
    };
    let both: Vec<String> = dropped.into_iter().chain(sent).collect();
    if both.is_empty() { "sends and drops nothing".to_owned() } else { both.join(" and ") }
}
