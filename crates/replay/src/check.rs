//! Runs a trace again and compares.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, DropReason, Next, Outbox, Packet, Qdisc, Rate, Time};

use crate::decode::{Item, Reader, TraceError};
use crate::format::{Answer, Build, Call, Close, Mark, Operation, Totals};

/// What came of running a trace again.
#[derive(Debug)]
pub struct Outcome {
    /// The program that wrote the trace.
    pub program: String,
    /// The disciplines in it, in the order in which they were built.
    pub sections: Vec<Section>,
    /// Whether the file has its end mark.
    pub whole: bool,
    /// Why it could not be read to its end, where it is damaged. What is before is checked.
    pub damage: Option<TraceError>,
}

/// One discipline of a trace.
#[derive(Debug)]
pub struct Section {
    /// Where it stood: "eth0->eth1".
    pub name: String,
    /// The discipline with its parameters.
    pub spelling: String,
    /// The rate of its link, when it was built.
    pub rate: Rate,
    /// What the trace has of it.
    pub totals: Totals,
    /// Why the trace has no more of it; none where the file ends before.
    pub close: Option<Close>,
    /// Whether the same came again.
    pub verdict: Verdict,
}

/// Whether the same came again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same departures, drops and marks.
    Equal,
    /// Not: the first difference. What follows was not compared.
    Different(Difference),
    /// It cannot be built here: a sentence.
    Unbuildable(String),
}

/// Where two runs part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which call of the discipline, from 1.
    pub operation: u64,
    /// Its time.
    pub time: Time,
    /// Which call it was: "enqueue of packet 5".
    pub call: String,
    /// What the trace says came of it.
    pub expected: String,
    /// What came this time.
    pub came: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { operation, time, call, expected, came } = self;
        write!(f, "operation {operation} at {time}, {call}: the trace has {expected}, this run {came}")
    }
}

impl Outcome {
    /// Whether all that is in the trace came again.
    pub fn equal(&self) -> bool {
        self.sections.iter().all(|section| section.verdict == Verdict::Equal)
    }
    /// Whether the trace has all that its disciplines did, to the end of their lives.
    pub fn complete(&self) -> bool {
        self.whole
            && self.damage.is_none()
            && self.sections.iter().all(|section| section.close == Some(Close::Whole))
    }
}

/// Builds the disciplines of a trace again, makes the same calls, and compares what comes of them. It holds the disciplines and
/// a chunk of the trace, however long the trace is. What it reads from should be buffered.
///
/// # Errors
/// When it is no trace at all. One that is cut off or damaged is checked as far as it goes.
pub fn check(input: impl Read) -> Result<Outcome, TraceError> {
    let mut reader = Reader::new(input)?;
    let mut outcome =
        Outcome { program: reader.program().to_owned(), sections: Vec::new(), whole: false, damage: None };
    let mut running = BTreeMap::new();
    loop {
        match reader.next() {
            Ok(Some(Item::Begin { section, build })) => {
                let (again, told) = Again::begin(build);
                running.insert(section, (outcome.sections.len(), again));
                outcome.sections.push(told);
            }
            Ok(Some(Item::Operation { section, operation })) => {
                let (place, again) = running.get_mut(&section).expect("the reader knows which have begun");
                let told = &mut outcome.sections[*place];
                told.totals.count(operation);
                if let (Some(run), Verdict::Equal) = (&mut *again, &told.verdict)
                    && let Some(difference) = run.compare(told.totals.operations, operation)
                {
                    told.verdict = Verdict::Different(difference);
                    *again = None;
                }
            }
            Ok(Some(Item::End { section, close, .. })) => {
                let (place, _) = running.remove(&section).expect("the reader knows which have begun");
                outcome.sections[place].close = Some(close);
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

/// A discipline that runs again. Its packets carry their numbers.
struct Again {
    qdisc: Box<dyn Qdisc<u64>>,
    out: Outbox<u64>,
    next: u64,
    /// What came of the last call, in the words of the trace.
    dropped: Vec<(u64, DropReason)>,
    marked: Vec<Mark>,
}

impl Again {
    fn begin(build: Build) -> (Option<Again>, Section) {
        let Build { name, spelling, context } = build;
        let built = match spelling.parse::<Spec>() {
            Ok(spec) => spec.build_numbered(&context).map_err(|invalid| invalid.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (again, verdict) = match built {
            Ok(qdisc) => (Some(Again::new(qdisc)), Verdict::Equal),
            Err(sentence) => (None, Verdict::Unbuildable(sentence)),
        };
        let rate = context.rate;
        (again, Section { name, spelling, rate, totals: Totals::default(), close: None, verdict })
    }

    fn new(qdisc: Box<dyn Qdisc<u64>>) -> Again {
        Again { qdisc, out: Outbox::default(), next: 0, dropped: Vec::new(), marked: Vec::new() }
    }

    /// Makes the call, and tells where what comes of it is different.
    fn compare(&mut self, number: u64, operation: &Operation) -> Option<Difference> {
        let Operation { now, call, dropped, marked } = operation;
        let difference = |expected: String, came: String| {
            let call = match call {
                Call::Enqueue(_) => format!("enqueue of packet {}", self.next),
                Call::Dequeue(_) => "dequeue".to_owned(),
                Call::Reset => "reset".to_owned(),
            };
            Some(Difference { operation: number, time: *now, call, expected, came })
        };
        // A panic of a discipline is a finding, too: a host may have died of it.
        let came = match catch_unwind(AssertUnwindSafe(|| {
            Again::call(&mut *self.qdisc, &mut self.out, self.next, *now, call)
        })) {
            Ok(came) => came,
            Err(panic) => return difference("an answer".to_owned(), format!("panics: {}", said(&*panic))),
        };
        self.dropped.clear();
        self.dropped.extend(self.out.dropped.drain(..).map(|(pkt, why)| (pkt.payload, why)));
        self.marked.clear();
        self.marked.extend(self.out.marked.drain(..).map(|meta| Mark::of(&meta)));
        if let (Call::Dequeue(expected), Some(came)) = (call, came)
            && *expected != came
        {
            return difference(answer(expected), answer(&came));
        }
        if let Some((expected, came)) = first_difference(dropped, &self.dropped) {
            let told = |drop: Option<&(u64, DropReason)>| match drop {
                Some((number, why)) => format!("packet {number} dropped ({})", why.name()),
                None => "no further drop".to_owned(),
            };
            return difference(told(expected), told(came));
        }
        if let Some((expected, came)) = first_difference(marked, &self.marked) {
            let told = |mark: Option<&Mark>| match mark {
                Some(Mark { bytes, flow, arrived, .. }) => {
                    format!("a mark on {bytes} bytes of flow {:016x} that came at {arrived}", flow.0)
                }
                None => "no further mark".to_owned(),
            };
            return difference(told(expected), told(came));
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
        }
    }
}

/// The first place at which two lists differ, and what each has there.
fn first_difference<'a, T: PartialEq>(
    expected: &'a [T],
    came: &'a [T],
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    let most = expected.len().max(came.len());
    (0..most).map(|at| (expected.get(at), came.get(at))).find(|(expected, came)| expected != came)
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Packet { number, label, ecn } => {
            let label = match label.is_set() {
                true => format!(", label {}", label.rate()),
                false => String::new(),
            };
            format!("packet {number} ({ecn:?}{label})")
        }
        Answer::At(at) => format!("nothing before {at}"),
        Answer::Empty => "nothing held".to_owned(),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
