//! The trace file: its contents are read back, truncation and damage are reported, and backends never block.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Condvar, Mutex};

use crate::support::{Memory, PATIENT, context, driven, recording, trace_of};
use giveway_disciplines::Spec;
use giveway_qdisc::{
    Backlog, Cx, DropReason, Dscp, Ecn, FlowKey, Header, Label, Meta, Next, NextHops, Outbox, Packet, Qdisc,
    Rate, Time,
};
use giveway_replay::{
    Answer, Call, Close, Item, Mark, Operation, Options, Reader, Recording, Stamped, TraceError, Verdict,
    WhenFull, check,
};
use proptest::prelude::*;

fn fifo(limit: u32) -> Spec {
    format!("fifo limit {limit}p").parse().unwrap()
}

#[test]
fn the_first_difference_is_reported() {
    let context = context(Rate::mbit(10), 1);
    let (recording, file) = recording(PATIENT);
    let two = fifo(2).build::<Stamped<u64>>(&context).unwrap();
    let mut traced = recording.tracer().wrap("up", "fifo limit 3p", &context, two);
    let mut out = Outbox::default();
    for at in 1..=5 {
        traced.enqueue(Packet::new(FlowKey(1), 100, 0), &mut Cx::new(Time::ms(at), &mut out));
    }
    drop(traced);
    recording.finish().unwrap();
    assert_eq!(out.dropped.len(), 3, "drops of the inner discipline are forwarded");
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    let [section] = &outcome.sections[..] else { panic!("the trace has one section") };
    let Verdict::Different(difference) = &section.verdict else { panic!("{:?}", section.verdict) };
    assert_eq!(
        difference.to_string(),
        "operation 3 at 3ms, enqueue of packet 2: the trace has packet 2 dropped (overlimit), this run no \
         further drop"
    );
    assert!(!outcome.equal() && outcome.complete());
    assert_eq!(section.totals.operations, 5, "later operations are counted");
}

#[test]
fn an_unknown_discipline_is_reported() {
    let context = context(Rate::mbit(10), 1);
    for (spec, message) in [
        ("fivo", "unknown discipline \"fivo\"; did you mean \"fifo\"?"),
        ("fifo limit 0p", "limit: 0 packets are too few: write at least \"1p\""),
    ] {
        let (recording, file) = recording(PATIENT);
        let inner = fifo(2).build::<Stamped<u64>>(&context).unwrap();
        drop(recording.tracer().wrap("up", spec, &context, inner));
        recording.finish().unwrap();
        let outcome = check(Cursor::new(file.bytes())).unwrap();
        assert_eq!(outcome.sections[0].verdict, Verdict::Unbuildable(message.to_owned()));
        assert!(!outcome.equal());
    }
}

/// A backend replaces its discipline: the packets of the old one are enqueued in the new one.
#[test]
fn sections_may_overlap() {
    let context = context(Rate::mbit(10), 1);
    let (recording, file) = recording(PATIENT);
    let tracer = recording.tracer();
    let mut out = Outbox::default();
    let mut old = tracer.build("up", &fifo(50), &context).unwrap();
    for number in 0..40u64 {
        old.enqueue(Packet::new(FlowKey(number % 3), 1000, number), &mut Cx::new(Time::ms(1), &mut out));
    }
    let new: Spec = "drr limit 30p quantum 2000".parse().unwrap();
    let mut new = tracer.build("up", &new, &context).unwrap();
    while let Next::Packet(pkt) = old.dequeue(&mut Cx::new(Time::ms(2), &mut out)) {
        new.enqueue(pkt, &mut Cx::new(Time::ms(2), &mut out));
    }
    drop(old);
    while let Next::Packet(_) = new.dequeue(&mut Cx::new(Time::ms(3), &mut out)) {}
    drop(new);
    recording.finish().unwrap();
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert!(outcome.equal() && outcome.complete());
    let totals: Vec<_> =
        outcome.sections.iter().map(|s| (s.totals.arrived, s.totals.sent, s.totals.dropped)).collect();
    assert_eq!(totals, [(40, 40, 0), (40, 30, 10)]);
}

/// The thread that starts a trace and the threads of the traced disciplines may differ.
#[test]
fn tracers_may_be_sent_to_other_threads() {
    let (recording, file) = recording(PATIENT);
    let names = ["one", "two", "three"];
    std::thread::scope(|scope| {
        for name in names {
            let tracer = recording.tracer();
            scope.spawn(move || {
                let mut traced = tracer.build(name, &fifo(5000), &context(Rate::mbit(1), 1)).unwrap();
                (0..5000).for_each(|number| enqueue(&mut traced, number));
            });
        }
    });
    let written = recording.finish().unwrap();
    assert_eq!((written.sections, written.operations, written.cut), (3, 15_000, 0));
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert!(outcome.equal() && outcome.complete());
    let mut names: Vec<&str> = outcome.sections.iter().map(|section| &section.name[..]).collect();
    names.sort_unstable();
    assert_eq!(names, ["one", "three", "two"]);
}

/// A small trace with two sections, drops and marks.
fn small() -> Vec<u8> {
    let (recording, file) = recording(PATIENT);
    let tracer = recording.tracer();
    for text in ["fifo limit 3p", "codel limit 20p target 50us interval 500us ecn"] {
        let spec: Spec = text.parse().unwrap();
        let context = context(Rate::mbit(10), 1);
        let mut traced = tracer.build(text, &spec, &context).unwrap();
        driven(&mut traced, &spec, &context, 60, 3);
    }
    recording.finish().unwrap();
    file.bytes()
}

/// A backend that is killed leaves a prefix of the trace: it is checked and reported as truncated.
#[test]
fn every_prefix_is_checked_as_far_as_it_goes() {
    let whole = small();
    let mut before = 0;
    let mut lengths = 0;
    for length in 0..=whole.len() {
        match check(Cursor::new(&whole[..length])) {
            Err(TraceError::NotATrace | TraceError::Damaged { .. }) => assert!(length < 20, "{length}"),
            Err(error) => panic!("{length}: {error}"),
            Ok(outcome) => {
                assert!(outcome.damage.is_none() && outcome.equal(), "{length}: {outcome:?}");
                assert_eq!(outcome.whole, length == whole.len());
                assert_eq!(outcome.complete(), length == whole.len());
                let operations = outcome.sections.iter().map(|section| section.totals.operations).sum();
                assert!(before <= operations, "{length}");
                lengths += u32::from(before < operations);
                before = operations;
            }
        }
    }
    assert_eq!(u64::from(lengths), before, "each complete operation is checked");
    // 13 of 16 of them are calls; the others let time pass.
    assert!(before > 90, "{before}");
}

/// Each changed bit is detected, except in the name of the program.
#[test]
fn damage_is_found() {
    let whole = small();
    let name = 10..10 + 1 + "a test".len();
    for at in (0..whole.len()).filter(|at| !name.contains(at)) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        match check(Cursor::new(damaged)) {
            Err(error) => assert!(at < 10, "{at}: {error}"),
            // A length that is too large exceeds the end of the file.
            Ok(outcome) => assert!(outcome.damage.is_some() || !outcome.whole, "{at}: {outcome:?}"),
        }
    }
    let mut longer = whole.clone();
    longer.push(0);
    let outcome = check(Cursor::new(longer)).unwrap();
    assert_eq!(
        outcome.damage.unwrap().to_string(),
        format!("is damaged at byte {}: there are more bytes after the end of the trace", whole.len() - 13)
    );
}

/// An output that blocks writes until it is opened.
#[derive(Clone, Default)]
struct Gate {
    open: Arc<(Mutex<bool>, Condvar)>,
    file: Memory,
}

impl Gate {
    fn open(&self) {
        *self.open.0.lock().unwrap() = true;
        self.open.1.notify_all();
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The caller that starts the trace writes the header.
        if !self.file.bytes().is_empty() {
            let open = self.open.0.lock().unwrap();
            drop(self.open.1.wait_while(open, |open| !*open).unwrap());
        }
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn enqueue(traced: &mut impl Qdisc<u64>, number: u64) {
    let mut out = Outbox::default();
    traced.enqueue(Packet::new(FlowKey(1), 100, number), &mut Cx::new(Time::us(number), &mut out));
}

/// The writer is blocked: the backend continues, and the trace ends with a mark.
#[test]
fn a_full_ring_cuts_the_trace_and_does_not_block_the_backend() {
    const CALLS: u64 = 1000;
    let gate = Gate::default();
    let options = Options { slots: 16, when_full: WhenFull::Cut };
    let recording = Recording::start(gate.clone(), "a test", options).unwrap();
    let tracer = recording.tracer();
    let spec = fifo(2000);
    let mut traced = tracer.build("up", &spec, &context(Rate::mbit(1), 1)).unwrap();
    (0..CALLS).for_each(|number| enqueue(&mut traced, number));
    assert_eq!((traced.backlog().packets, tracer.cut()), (CALLS, 1));
    gate.open();
    drop(traced);
    let written = recording.finish().unwrap();
    let outcome = check(Cursor::new(gate.file.bytes())).unwrap();
    let [section] = &outcome.sections[..] else { panic!("the trace has one section") };
    assert_eq!((section.close, written.cut, tracer.cut()), (Some(Close::Overrun), 1, 1));
    assert!(outcome.whole && outcome.equal() && !outcome.complete());
    // The writer blocks in the build of the section and has read no record. One slot is kept for the close.
    assert_eq!((section.totals.operations, written.operations), (15, 15));
}

/// With `WhenFull::Wait` no operation is lost, even with the smallest ring.
#[test]
fn a_backend_that_waits_loses_no_operations() {
    let (recording, file) = recording(Options { slots: 2, when_full: WhenFull::Wait });
    let mut traced = recording.tracer().build("up", &fifo(20_000), &context(Rate::mbit(1), 1)).unwrap();
    (0..300).for_each(|number| enqueue(&mut traced, number));
    // The drops of this reset never fit the ring, so the trace is cut and the backend does not wait.
    traced.reset(&mut Cx::new(Time::s(1), &mut Outbox::default()));
    drop(traced);
    assert_eq!(recording.finish().unwrap().cut, 1);
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert_eq!(outcome.sections[0].totals.operations, 300);
    assert_eq!((outcome.sections[0].close, outcome.equal()), (Some(Close::Overrun), true));
}

#[test]
fn a_trace_may_end_before_its_disciplines() {
    let (recording, file) = recording(PATIENT);
    let tracer = recording.tracer();
    let context = context(Rate::mbit(1), 1);
    let mut traced = tracer.build("up", &fifo(9), &context).unwrap();
    enqueue(&mut traced, 0);
    assert_eq!(recording.finish().unwrap().cut, 1);
    // Both continue to work and are not traced.
    enqueue(&mut traced, 1);
    let mut late = tracer.build("down", &fifo(9), &context).unwrap();
    enqueue(&mut late, 2);
    assert_eq!((traced.backlog().packets, late.backlog().packets), (2, 1));
    drop((traced, late));
    assert_eq!(tracer.cut(), 2);
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert!(outcome.whole && outcome.equal() && !outcome.complete());
    assert_eq!((outcome.sections.len(), outcome.sections[0].close), (1, Some(Close::Early)));
    assert_eq!(outcome.sections[0].totals.operations, 1);
}

/// An output that is full after the given number of bytes.
struct Full(Memory, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let space = self.1 - self.0.bytes().len();
        match bytes.len().min(space) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            some => self.0.write(&bytes[..some]),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_and_the_backend_continues() {
    let file = Memory::default();
    let options = Options { slots: 64, when_full: WhenFull::Wait };
    let recording = Recording::start(Full(file.clone(), 2000), "a test", options).unwrap();
    let tracer = recording.tracer();
    let mut traced = tracer.build("up", &fifo(100_000), &context(Rate::mbit(1), 1)).unwrap();
    // The backend stops waiting because the writer has ended.
    (0..50_000).for_each(|number| enqueue(&mut traced, number));
    assert_eq!(traced.backlog().packets, 50_000);
    drop(traced);
    assert_eq!(recording.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(tracer.cut(), 1);
    let outcome = check(Cursor::new(file.bytes())).unwrap();
    assert!(!outcome.whole && outcome.damage.is_none() && outcome.equal());
    assert!(outcome.sections[0].totals.operations > 50);
}

#[test]
fn other_files_are_refused() {
    for (bytes, message) in [
        (&b"host = \"network\""[..], "is not an operation trace: it has another magic number"),
        (b"", "is not an operation trace: it has another magic number"),
        (b"\x89GWT\r\n\x1a\n\x02\x00", "is a trace of version 2; only version 1 is supported"),
        (b"\x89GWT\r\n\x1a\n\x01\x00\x07giv", "is damaged at byte 10: the name of the program has no end"),
    ] {
        assert_eq!(check(bytes).unwrap_err().to_string(), message);
    }
}

/// A discipline that returns prepared drops, marks and answers, also those that no real discipline returns.
struct Puppet {
    drops: Vec<(Packet<Stamped<u64>>, DropReason)>,
    marks: Vec<Meta>,
    answers: Vec<Next<Stamped<u64>>>,
    packets: Vec<Packet<Stamped<u64>>>,
}

impl Qdisc<Stamped<u64>> for Puppet {
    fn enqueue(&mut self, pkt: Packet<Stamped<u64>>, _: &mut Cx<'_, Stamped<u64>>) {
        self.packets.push(pkt);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_, Stamped<u64>>) -> Next<Stamped<u64>> {
        let mut out =
            Outbox { dropped: std::mem::take(&mut self.drops), marked: std::mem::take(&mut self.marks) };
        cx.relay(&mut out, |payload| payload);
        self.answers.pop().unwrap_or(Next::Empty)
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _: &mut Cx<'_, Stamped<u64>>) {}
}

fn meta() -> impl Strategy<Value = Meta> {
    let small =
        (any::<u32>(), any::<u16>(), 0..4usize, any::<bool>(), any::<u64>(), any::<u16>(), any::<u16>());
    let large = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u64>());
    (small, large, prop::collection::vec(0..u16::MAX, 0..=NextHops::MAX)).prop_map(
        |(
            (bytes, class, ecn, short, flow, from, to),
            (arrived, label, offset, remaining, reserved),
            hops,
        )| Meta {
            bytes,
            class,
            ecn: [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Marked][ecn],
            header: Header::new(Dscp::of_service(bytes as u8), short),
            flow: FlowKey(flow),
            from,
            to,
            arrived: Time::from_ps(arrived),
            label: match label % 3 {
                0 => Label::NONE,
                1 => Label::SHORT,
                _ => Label::of(Rate::bit(label)),
            },
            offset,
            remaining,
            reserved: Rate::bit(reserved),
            next_hops: NextHops::new(hops),
        },
    )
}

proptest! {
    /// All calls and results, in any order of time, are read back unchanged.
    #[test]
    fn all_operations_are_read_back(
        packets in prop::collection::vec((meta(), any::<u64>()), 1..20),
        marks in prop::collection::vec(meta(), 0..4),
        reasons in prop::collection::vec(0..DropReason::ALL.len(), 0..4),
        at in any::<u64>(),
        left in prop::option::of(meta()),
    ) {
        let context = context(Rate::mbit(10), 7);
        let (recording, file) = recording(PATIENT);
        let mut out = Outbox::default();
        let mut expected = Vec::new();
        // Only a traced discipline numbers packets, so the puppet's packets are enqueued first.
        let numbers = reasons.len() + usize::from(left.is_some());
        let shared = Arc::new(Mutex::new(Puppet {
            drops: Vec::new(), marks: marks.clone(), answers: Vec::new(), packets: Vec::new(),
        }));
        struct Shared(Arc<Mutex<Puppet>>);
        impl Qdisc<Stamped<u64>> for Shared {
            fn enqueue(&mut self, pkt: Packet<Stamped<u64>>, cx: &mut Cx<'_, Stamped<u64>>) {
                self.0.lock().unwrap().enqueue(pkt, cx);
            }
            fn dequeue(&mut self, cx: &mut Cx<'_, Stamped<u64>>) -> Next<Stamped<u64>> {
                self.0.lock().unwrap().dequeue(cx)
            }
            fn backlog(&self) -> Backlog {
                self.0.lock().unwrap().backlog()
            }
            fn reset(&mut self, cx: &mut Cx<'_, Stamped<u64>>) {
                self.0.lock().unwrap().reset(cx)
            }
        }
        let mut traced = recording.tracer().wrap("up", "fifo", &context, Box::new(Shared(Arc::clone(&shared))));
        let mut now = Time::ZERO;
        for number in 0..packets.len().max(numbers) {
            let (meta, time) = packets[number % packets.len()];
            now = Time::from_ps(time);
            let call = Call::Enqueue(meta);
            expected.push(Operation { now, call, dropped: Vec::new(), marked: Vec::new() });
            traced.enqueue(Packet { meta, payload: 9 }, &mut Cx::new(now, &mut out));
        }
        let answer = {
            let mut puppet = shared.lock().unwrap();
            let Puppet { drops, answers, packets, .. } = &mut *puppet;
            // The last packets first, so that differences are negative, too.
            for reason in &reasons {
                drops.push((packets.pop().unwrap(), DropReason::ALL[*reason]));
            }
            match left {
                Some(meta) => {
                    let payload = packets.pop().unwrap().payload;
                    answers.push(Next::Packet(Packet { meta, payload }));
                    let number = packets.len() as u64;
                    Answer::Packet { number, label: meta.label, ecn: meta.ecn }
                }
                None => {
                    answers.push(Next::At(Time::from_ps(at)));
                    Answer::At(Time::from_ps(at))
                }
            }
        };
        let most = packets.len().max(numbers) as u64;
        let dropped = reasons.iter().enumerate().map(|(at, why)| (most - 1 - at as u64, DropReason::ALL[*why]));
        expected.push(Operation {
            now,
            call: Call::Dequeue(answer),
            dropped: dropped.collect(),
            marked: marks.iter().map(Mark::of).collect(),
        });
        let next = traced.dequeue(&mut Cx::new(now, &mut out));
        prop_assert_eq!(next.packet().map(|pkt| (pkt.meta, pkt.payload)), left.map(|meta| (meta, 9)));
        prop_assert_eq!((out.dropped.len(), &out.marked), (reasons.len(), &marks));
        traced.reset(&mut Cx::new(now, &mut out));
        expected.push(Operation { now, call: Call::Reset, dropped: Vec::new(), marked: Vec::new() });
        drop(traced);
        recording.finish().unwrap();

        let bytes = file.bytes();
        let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
        prop_assert_eq!(reader.program(), "a test");
        let mut read = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Begin { section, build } => {
                    prop_assert_eq!((section, &build.name[..], &build.spec[..]), (0, "up", "fifo"));
                    prop_assert_eq!((build.context.rate, build.context.mtu), (context.rate, context.mtu));
                    prop_assert_eq!((&build.context.streams, &build.context.downstream), (&context.streams, &context.downstream));
                }
                Item::Operation { operation, .. } => read.push(operation.clone()),
                Item::End { close, .. } => prop_assert_eq!(close, Close::Whole),
            }
        }
        prop_assert!(reader.whole());
        prop_assert_eq!(read, expected);
    }
}

/// A long trace consists of several chunks, so that reading needs little memory. Relative values continue
/// across their borders.
#[test]
fn long_traces_have_many_chunks() {
    let context = context(Rate::mbit(10), 1);
    let spec: Spec = "fq_codel limit 40p".parse().unwrap();
    let bytes = trace_of((&spec, &context), (&spec, &context), 60_000);
    assert!(bytes.len() > 4 << 16, "{}", bytes.len());
    let outcome = check(Cursor::new(bytes)).unwrap();
    assert!(outcome.equal() && outcome.complete());
    // 13 of 16 are calls; the others let time pass.
    assert!(outcome.sections[0].totals.operations >= 45_000);
}
