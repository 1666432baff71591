//! Replay equality: each discipline repeats from its trace what it did with real packets, packet by packet.
//!
//! By default with two disciplines. With all of them and more than a million packets:
//! `cargo test -p giveway-net --test all -- live_replay:: --ignored --nocapture`.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, NONE, nap};
use giveway_disciplines::Spec;
use giveway_qdisc::{LinkContext, Rate, Span, Streams};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics with it").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A UDP datagram in an Ethernet frame, of one of 40 flows. The senders of every third flow support ECN.
fn datagram(number: u64) -> Vec<u8> {
    let mut word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    let flow = word % 40;
    let data = match word >> 8 & 7 {
        0..=2 => 1400,
        3 => 20,
        _ => 100 + (word >> 16) % 1200,
    } as u16;
    let mut frame =
        vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, if flow.is_multiple_of(3) { 2 } else { 0 }];
    frame.extend((28 + data).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1 + (flow % 5) as u8, 10, 0, 1, 2]);
    frame.extend((5000 + flow as u16).to_be_bytes());
    frame.extend([0, 53]);
    frame.extend((8 + data).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(42 + usize::from(data), 7);
    frame
}

/// Sends `datagrams` datagrams in each direction through a discipline, which a change of the rate replaces by
/// a new one, and checks its trace. The offered load exceeds the rate at times. Returns the number of checked
/// packets.
fn equal(bed: &Bed, spec: &Spec, datagrams: u64) -> u64 {
    let file = Memory::default();
    let options = giveway_replay::Options { slots: 1 << 18, ..giveway_replay::Options::default() };
    let recording =
        giveway_replay::Recording::start(file.clone(), "a test", options).expect("memory takes it");
    let tracer = recording.tracer();
    let bridge = bed.bridge_of(Rate::mbit(200), NONE(), |name| {
        let (spec, tracer, mut built) = (spec.clone(), tracer.clone(), 0);
        Box::new(move |rate| {
            built += 1;
            let context = LinkContext::new(rate, Streams::new(built).within(name));
            Box::new(tracer.build(name, &spec, &context).expect("it can be built"))
        })
    });
    let handles = bridge.handles();
    let senders = ["a0", "b1"].map(|end| {
        let mut host = Host::at(bed, end);
        thread::spawn(move || {
            for round in 0..datagrams / 50 {
                let frames: Vec<Vec<u8>> = (0..50).map(|n| datagram(round * 50 + n)).collect();
                host.send(&frames);
                // 50 datagrams take 1.5 ms on the link. The longer pauses make it idle.
                nap(Duration::from_micros(if round % 100 < 80 { 900 } else { 4000 }));
            }
        })
    });
    nap(Duration::from_millis(300));
    handles.iter().for_each(|handle| handle.set_rate(Rate::mbit(150)));
    for sender in senders {
        sender.join().expect("it sends");
    }
    let ended = bridge.stop(Span::s(5));
    recording.finish().expect("memory takes it");
    let file = std::mem::take(&mut *file.0.lock().expect("no thread panics with it"));
    let outcome = giveway_replay::check(Cursor::new(file)).expect("it is a trace");
    assert!(outcome.equal() && outcome.complete(), "{spec}: {outcome:?}");
    assert_eq!(outcome.sections.len(), 4, "two in each direction");
    let traced: u64 = outcome.sections.iter().map(|section| section.totals.arrived).sum();
    let arrived: u64 = ended.iter().map(|ended| ended.status.counters.arrived.packets).sum();
    assert_eq!(traced, arrived, "the trace has all arrivals");
    assert!(ended.iter().all(|ended| ended.status.plain.is_none()), "{spec}");
    // If the machine halts until the receive ring is full, frames are lost before a discipline gets them.
    let missed: u64 = ended.iter().map(|ended| ended.status.losses.ring).sum();
    assert_eq!(arrived + missed, 2 * datagrams, "{spec}: every frame arrived or is counted as lost");
    // Even a quarter of the frames would test the discipline.
    assert!(arrived > datagrams / 2, "{spec}: {missed} frames were lost");
    arrived
}

#[test]
fn two_disciplines_repeat_their_results() {
    for name in ["efd limit 100p", "fq_codel limit 300p ecn"] {
        let Some(bed) = Bed::build("q") else { return };
        equal(&bed, &name.parse().expect("it is one"), 5_000);
    }
}

#[test]
#[ignore = "takes minutes"]
fn every_discipline_repeats_its_results() {
    let mut all = 0;
    for entry in giveway_disciplines::ALL {
        let Some(bed) = Bed::build("q") else { return };
        let packets = equal(&bed, &entry.default(), 25_000);
        println!("{}: {packets} packets, all equal", entry.name);
        all += packets;
    }
    println!("{} disciplines, {all} packets", giveway_disciplines::ALL.len());
    assert!(all > 1_000_000, "{all} packets");
}
