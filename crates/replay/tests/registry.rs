//! The replay of every discipline equals its trace, and a discipline that is built differently is detected.

use std::io::Cursor;

use crate::support::{PATIENT, context, driven, recording, trace_of};
use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::contract::Event;
use giveway_qdisc::{LinkContext, Rate};
use giveway_replay::{Answer, Call, Item, Reader, Verdict, check};

/// Every variant of every discipline, at two rates, in one trace with a section each.
#[test]
fn the_replay_of_every_discipline_equals_its_trace() {
    let (recording, file) = recording(PATIENT);
    let tracer = recording.tracer();
    let mut expected = Vec::new();
    for (number, entry) in ALL.iter().enumerate() {
        for spec in entry.default().variants() {
            for rate in [Rate::mbit(10), Rate::kbit(700)] {
                let context = context(rate, number as u64);
                let mut traced = tracer.build(entry.name, &spec, &context).expect("variants can be built");
                let events = driven(&mut traced, &spec, &context, 3000, number as u64);
                expected.push((spec.to_string(), rate, events));
            }
        }
    }
    let written = recording.finish().unwrap();
    assert_eq!((written.sections, written.cut), (expected.len() as u64, 0));
    assert_eq!(written.bytes, file.bytes().len() as u64);

    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert!(outcome.complete(), "{:?}", outcome.damage);
    assert_eq!(outcome.sections.len(), expected.len());
    for (section, (spec, rate, events)) in outcome.sections.iter().zip(&expected) {
        assert_eq!((&section.spec, section.rate), (spec, *rate));
        assert_eq!(section.verdict, Verdict::Equal, "{spec} at {rate}");
        let sent = events.iter().filter(|event| matches!(event, Event::Sent(..))).count() as u64;
        assert_eq!(section.totals.sent, sent, "{spec}");
        assert_eq!(section.totals.dropped, events.len() as u64 - sent, "{spec}");
        assert_eq!(section.totals.arrived, events.len() as u64, "{spec}: the backlog was drained");
    }

    // The trace has all events, packet by packet, and enough of each kind to compare.
    let mut reader = Reader::new(Cursor::new(file.bytes())).unwrap();
    let mut read: Vec<Vec<Event>> = Vec::new();
    let (mut marks, mut later, mut empty, mut resets, mut labelled) = (0, 0, 0, 0, 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Operation { section, operation } = item else { continue };
        read.resize(read.len().max(section as usize + 1), Vec::new());
        let events = &mut read[section as usize];
        match operation.call {
            Call::Dequeue(Answer::Packet { number, label, .. }) => {
                // The contract suite numbers from 1.
                events.push(Event::Sent(number + 1, operation.now));
                labelled += u64::from(label.is_set());
            }
            Call::Dequeue(Answer::At(_)) => later += 1,
            Call::Dequeue(Answer::Empty) => empty += 1,
            Call::Reset => resets += 1,
            Call::Enqueue(_) | Call::Rate(_) => {}
        }
        let drops = operation.dropped.iter();
        events.extend(drops.map(|(number, why)| Event::Dropped(number + 1, *why, operation.now)));
        marks += operation.marked.len();
    }
    for (read, (spec, _, events)) in read.iter().zip(&expected) {
        assert!(read == events, "{spec}");
    }
    for (what, count) in [("marks", marks as u64), ("times", later), ("empty", empty), ("labels", labelled)] {
        assert!(count > 1000, "{what}: {count}");
    }
    assert!(resets > 100, "{resets}");
}

/// True if a discipline that is built as `built` differs from a trace that names `traced`.
fn different(built: (&Spec, &LinkContext), traced: (&Spec, &LinkContext), operations: u64) -> bool {
    let outcome = check(Cursor::new(trace_of(built, traced, operations))).unwrap();
    assert!(outcome.complete());
    matches!(outcome.sections[0].verdict, Verdict::Different(_))
}

/// No discipline is equal to a short FIFO queue, and each is equal to itself.
#[test]
fn another_discipline_is_detected() {
    let context = context(Rate::mbit(10), 1);
    let short: Spec = "fifo limit 7p".parse().unwrap();
    for entry in ALL {
        let spec = entry.default();
        assert!(different((&spec, &context), (&short, &context), 3000), "{spec}");
        assert!(!different((&spec, &context), (&spec, &context), 3000), "{spec}");
    }
}

/// One changed parameter is detected if it changes an answer: a flow must cross the changed threshold.
#[test]
fn a_changed_parameter_is_detected() {
    let context = context(Rate::mbit(10), 1);
    let pairs = [
        ("fifo limit 20p", "fifo limit 21p"),
        ("fifo limit 20p", "fifo limit 20p drop head"),
        ("efd limit 20p threshold 3000b", "efd limit 20p threshold 3100b"),
        (
            "fq_codel limit 40p flows 4 quantum 300 target 50us interval 500us",
            "fq_codel limit 40p flows 4 quantum 310 target 50us interval 500us",
        ),
        ("codel target 50us interval 500us", "codel target 55us interval 500us"),
        ("sfq limit 8p depth 3p divisor 4 perturb 20ms", "sfq limit 8p depth 3p divisor 4 perturb 21ms"),
        ("drr limit 20p quantum 300", "drr limit 20p quantum 310"),
        ("tbf rate 1mbit burst 5kb limit 20p", "tbf rate 1001kbit burst 5kb limit 20p"),
    ];
    for (built, traced) in pairs {
        let spec = |text: &str| text.parse::<Spec>().unwrap_or_else(|error| panic!("{text}: {error}"));
        let (built, traced) = (spec(built), spec(traced));
        assert!(different((&built, &context), (&traced, &context), 20_000), "{built} equals {traced}");
        assert!(!different((&built, &context), (&built, &context), 20_000), "{built}");
    }
}

/// A different link context is detected: random numbers and rates.
#[test]
fn another_link_context_is_detected() {
    let here = context(Rate::mbit(10), 1);
    let seed = context(Rate::mbit(10), 2);
    let path = LinkContext { streams: here.streams.within("child"), ..here.clone() };
    // The operations change the rate, and the thresholds of `ared` stay those of the beginning.
    let rate = context(Rate::mbit(5), 1);
    let red = ALL.iter().find(|entry| entry.name == "red").expect("RED is registered");
    // The first variant after the default begins to drop early.
    let red = red.default().variants().swap_remove(1);
    for (spec, other) in [(&red, &seed), (&red, &path), (&"ared".parse().unwrap(), &rate)] {
        assert!(different((spec, &here), (spec, other), 20_000), "{spec}");
        assert!(!different((spec, &here), (spec, &here), 20_000), "{spec}");
    }
}
