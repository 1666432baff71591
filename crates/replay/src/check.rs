//! Replays a trace and compares.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, DropReason, Next, Outbox, Packet, Qdisc, Rate, Time};

use crate::decode::{Item, Reader, TraceError};
use crate::format::{Answer, Build, Call, Close, Mark, Operation, Totals};

/// The result of replaying a trace.
#[derive(Debug)]
pub struct Outcome {
    /// The program that wrote the trace.
    pub program: String,
    /// The disciplines in it, in the order in which they were built.
    pub sections: Vec<Section>,
    /// True if the file has its end mark.
    pub whole: bool,
    /// The damage that ended the replay, if there is any. The operations before it are checked.
    pub damage: Option<TraceError>,
}

/// One discipline of a trace.
#[derive(Debug)]
pub struct Section {
    /// Name of its port, as in "eth0->eth1".
    pub name: String,
    /// The discipline with its parameters.
    pub spec: String,
    /// Rate of its link when it was built.
    pub rate: Rate,
    /// Number of operations in the trace.
    pub totals: Totals,
    /// Reason why the section ends; `None` if the file ends before.
    pub close: Option<Close>,
    /// Result of the comparison.
    pub verdict: Verdict,
}

/// The result of comparing a section with its replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Departures, drops and marks are equal.
    Equal,
    /// They differ. Operations after the first difference are not compared.
    Different(Difference),
    /// The discipline cannot be built here, for this reason.
    Unbuildable(String),
}

/// The first difference between a trace and its replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the call of the discipline, from 1.
    pub operation: u64,
    /// Time of the call.
    pub time: Time,
    /// Description of the call, as in "enqueue of packet 5".
    pub call: String,
    /// Result in the trace.
    pub expected: String,
    /// Result of the replay.
    pub actual: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { operation, time, call, expected, actual } = self;
        write!(f, "operation {operation} at {time}, {call}: the trace has {expected}, this run {actual}")
    }
}

impl Outcome {
    /// True if the replay of every section is equal to the trace.
    pub fn equal(&self) -> bool {
        self.sections.iter().all(|section| section.verdict == Verdict::Equal)
    }
    /// True if the trace contains every operation of its disciplines until they were dropped.
    pub fn complete(&self) -> bool {
        self.whole
            && self.damage.is_none()
            && self.sections.iter().all(|section| section.close == Some(Close::Whole))
    }
}

/// Builds the disciplines of a trace, makes the same calls, and compares the results. It needs memory for the
/// disciplines and a chunk of the trace, regardless of its length. The input should be buffered.
///
/// # Errors
/// If the input is not a trace. A truncated or damaged trace is checked up to that point.
pub fn check(input: impl Read) -> Result<Outcome, TraceError> {
    let mut reader = Reader::new(input)?;
    let mut outcome =
        Outcome { program: reader.program().to_owned(), sections: Vec::new(), whole: false, damage: None };
    let mut running = BTreeMap::new();
    loop {
        match reader.next() {
            Ok(Some(Item::Begin { section, build })) => {
                let (replay, begun) = Replay::begin(build);
                running.insert(section, (outcome.sections.len(), replay));
                outcome.sections.push(begun);
            }
            Ok(Some(Item::Operation { section, operation })) => {
                let (index, replay) =
                    running.get_mut(&section).expect("the reader checks that the section has begun");
                let checked = &mut outcome.sections[*index];
                checked.totals.count(operation);
                if let (Some(run), Verdict::Equal) = (&mut *replay, &checked.verdict)
                    && let Some(difference) = run.compare(checked.totals.operations, operation)
                {
                    checked.verdict = Verdict::Different(difference);
                    *replay = None;
                }
            }
            Ok(Some(Item::End { section, close, .. })) => {
                let (index, _) =
                    running.remove(&section).expect("the reader checks that the section has begun");
                outcome.sections[index].close = Some(close);
            }
            Ok(None) => break,
            Err(error) => {
                outcome.damage = Some(error);
                break;
            }
        }
    }
    outcome.whole = reader.whole();
    Ok(outcome)
}

/// A discipline that replays a section. The payloads of its packets are their numbers.
struct Replay {
    qdisc: Box<dyn Qdisc<u64>>,
    out: Outbox<u64>,
    next: u64,
    /// Drops of the last call, by packet number.
    dropped: Vec<(u64, DropReason)>,
    /// Marks of the last call.
    marked: Vec<Mark>,
}

impl Replay {
    fn begin(build: Build) -> (Option<Replay>, Section) {
        let Build { name, spec, context } = build;
        let built = match spec.parse::<Spec>() {
            Ok(spec) => spec.build_numbered(&context).map_err(|invalid| invalid.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (replay, verdict) = match built {
            Ok(qdisc) => (Some(Replay::new(qdisc)), Verdict::Equal),
            Err(message) => (None, Verdict::Unbuildable(message)),
        };
        let rate = context.rate;
        (replay, Section { name, spec, rate, totals: Totals::default(), close: None, verdict })
    }

    fn new(qdisc: Box<dyn Qdisc<u64>>) -> Replay {
        Replay { qdisc, out: Outbox::default(), next: 0, dropped: Vec::new(), marked: Vec::new() }
    }

    /// Makes the call, and returns the first difference of its results.
    fn compare(&mut self, number: u64, operation: &Operation) -> Option<Difference> {
        let Operation { now, call, dropped, marked } = operation;
        let difference = |expected: String, actual: String| {
            let call = match call {
                Call::Enqueue(_) => format!("enqueue of packet {}", self.next),
                Call::Dequeue(_) => "dequeue".to_owned(),
                Call::Reset => "reset".to_owned(),
                Call::Rate(rate) => format!("a rate of {rate}"),
            };
            Some(Difference { operation: number, time: *now, call, expected, actual })
        };
        // A panic is a difference, too: the traced backend may have crashed here.
        let actual = match catch_unwind(AssertUnwindSafe(|| {
            Replay::call(&mut *self.qdisc, &mut self.out, self.next, *now, call)
        })) {
            Ok(actual) => actual,
            Err(panic) => {
                return difference("an answer".to_owned(), format!("panics: {}", panic_message(&*panic)));
            }
        };
        self.dropped.clear();
        self.dropped.extend(self.out.dropped.drain(..).map(|(pkt, why)| (pkt.payload, why)));
        self.marked.clear();
        self.marked.extend(self.out.marked.drain(..).map(|meta| Mark::of(&meta)));
        if let (Call::Dequeue(expected), Some(actual)) = (call, actual)
            && *expected != actual
        {
            return difference(answer(expected), answer(&actual));
        }
        if let Some((expected, actual)) = first_difference(dropped, &self.dropped) {
            let text = |drop: Option<&(u64, DropReason)>| match drop {
                Some((number, why)) => format!("packet {number} dropped ({})", why.name()),
                None => "no further drop".to_owned(),
            };
            return difference(text(expected), text(actual));
        }
        if let Some((expected, actual)) = first_difference(marked, &self.marked) {
            let text = |mark: Option<&Mark>| match mark {
                Some(Mark { bytes, flow, arrived, .. }) => {
                    format!("a mark on {bytes} bytes of flow {:016x} that arrived at {arrived}", flow.0)
                }
                None => "no further mark".to_owned(),
            };
            return difference(text(expected), text(actual));
        }
        self.next += u64::from(matches!(call, Call::Enqueue(_)));
        None
    }

    fn call(
        qdisc: &mut dyn Qdisc<u64>,
        out: &mut Outbox<u64>,
        number: u64,
        now: Time,
        call: &Call,
    ) -> Option<Answer> {
        let mut cx = Cx::new(now, out);
        match call {
            Call::Enqueue(meta) => {
                qdisc.enqueue(Packet { meta: *meta, payload: number }, &mut cx);
                None
            }
            Call::Dequeue(_) => Some(match qdisc.dequeue(&mut cx) {
                Next::Packet(pkt) => {
                    Answer::Packet { number: pkt.payload, label: pkt.meta.label, ecn: pkt.meta.ecn }
                }
                Next::At(at) => Answer::At(at),
                Next::Empty => Answer::Empty,
            }),
            Call::Reset => {
                qdisc.reset(&mut cx);
                None
            }
            Call::Rate(rate) => {
                qdisc.rate_changed(*rate, now);
                None
            }
        }
    }
}

/// The first pair of elements that differ; `None` on one side if that list is shorter.
fn first_difference<'a, T: PartialEq>(
    expected: &'a [T],
    actual: &'a [T],
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    let most = expected.len().max(actual.len());
    (0..most).map(|at| (expected.get(at), actual.get(at))).find(|(expected, actual)| expected != actual)
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Packet { number, label, ecn } => {
            let label = match label.departure() {
                Some(at) => format!(", departing at {at}"),
                None if label.is_set() => format!(", label {}", label.rate()),
                None => String::new(),
            };
            format!("packet {number} ({ecn:?}{label})")
        }
        Answer::At(at) => format!("nothing before {at}"),
        Answer::Empty => "empty".to_owned(),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
