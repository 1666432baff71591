//! Measurements on real interfaces. They take minutes and need an idle machine, so they are run explicitly:
//!
//! ```sh
//! cargo test --release -p giveway-live --test all -- measure:: --ignored --nocapture --test-threads 1
//! ```
//!
//! They print their results, and fail only if frames are lost, damaged or out of order: times are printed,
//! not asserted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, NONE, frame, nap, no_loss};
use giveway_live::clock::{monotonic_ns, wall_ns};
use giveway_live::headers::{Counting, HeaderParser};
use giveway_qdisc::{Rate, Span, Streams, Time};
use giveway_watch::Quantiles;

/// The number in an environment variable, or a default.
fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Writes a frame whose length and content are determined by its number.
fn numbered(bytes: &mut Vec<u8>, flow: u8, number: u64) {
    let length = 60 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % 1455;
    bytes.clear();
    bytes.extend([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, flow, 0x88, 0xb5]);
    bytes.extend(number.to_be_bytes());
    let mut word = number ^ 0x5851_f42d_4c95_7f2d;
    while bytes.len() < length {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend(word.to_le_bytes());
    }
    bytes.truncate(length);
}

/// `GIVEWAY_FRAMES` frames (10,000,000 by default), half of them in each direction, of 60 to 1,514 bytes and
/// 8 flows. Each arrives once, unchanged, in the order of its flow.
#[test]
#[ignore = "takes minutes"]
fn integrity() {
    let Some(bed) = Bed::build("i") else { return };
    let frames = number_from("GIVEWAY_FRAMES", 10_000_000) / 2;
    let begin = monotonic_ns();
    let bridge = bed.bridge("drr limit 8000p", Rate::gbit(2), NONE());
    let threads = [("a0", "b1"), ("b1", "a0")].map(|(from, to)| {
        let (mut sender, mut receiver) = (Host::at(&bed, from), Host::at(&bed, to));
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        let sending = thread::spawn(move || {
            let mut sent = 0;
            let mut batch: Vec<Vec<u8>> = (0..64).map(|_| Vec::with_capacity(1514)).collect();
            while sent < frames {
                // Fewer frames in flight than the limit of the queue, so no frame may be lost.
                while sent - counted.load(Ordering::Relaxed) > 3000 {
                    thread::yield_now();
                }
                let count = (frames - sent).min(64) as usize;
                for (place, frame) in batch[..count].iter_mut().enumerate() {
                    let number = sent + place as u64;
                    numbered(frame, (number % 8) as u8, number);
                }
                sender.send(&batch[..count]);
                sent += count as u64;
            }
        });
        let receiving = thread::spawn(move || {
            let mut next: [u64; 8] = std::array::from_fn(|flow| flow as u64);
            let mut expected = Vec::with_capacity(1514);
            let (mut got, mut quiet) = (0, 0);
            while got < frames && quiet < 5000 {
                let taken = receiver.ends.receiver.receive(256, &mut |arrival| {
                    let flow = usize::from(arrival.bytes[11]);
                    numbered(&mut expected, flow as u8, next[flow]);
                    assert!(arrival.bytes == expected, "flow {flow}: expected frame {}", next[flow]);
                    next[flow] += 8;
                });
                let taken = taken.expect("the interface can be read");
                got += taken as u64;
                received.store(got, Ordering::Relaxed);
                quiet = if taken == 0 { quiet + 1 } else { 0 };
                if taken == 0 {
                    nap(Duration::from_millis(1));
                }
            }
            (got, receiver.ends.receiver.missed())
        });
        (sending, receiving)
    });
    for (sending, receiving) in threads {
        sending.join().expect("the sender does not panic");
        assert_eq!(receiving.join().expect("all frames arrived unchanged"), (frames, 0));
    }
    let took = (monotonic_ns() - begin) as f64 / 1e9;
    no_loss(&bridge.stop(Span::s(1)));
    println!(
        "integrity: {} frames in {took:.1} s, all unchanged, once and in order; load {}",
        2 * frames,
        load()
    );
}

/// Sends frames at a rate from another thread, until the flag is set. The thread returns the number of
/// frames.
fn flood(mut host: Host, length: usize, rate: Rate) -> (Arc<AtomicBool>, thread::JoinHandle<u64>) {
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let frames: Vec<Vec<u8>> = (0..16).map(|n| frame(0x88b5, n, length)).collect();
        let gap_ns = rate.time_for((length * frames.len()) as u64).as_ps() / 1000;
        let mut sent = 0;
        let mut next = monotonic_ns();
        while !until.load(Ordering::Relaxed) {
            host.send(&frames);
            sent += frames.len() as u64;
            next += gap_ns;
            let now = monotonic_ns();
            match next.checked_sub(now) {
                Some(left) if left > 20_000 => nap(Duration::from_nanos(left)),
                _ => next = next.max(now.saturating_sub(5_000_000)),
            }
        }
        sent
    });
    (stop, thread)
}

/// Receives frames for a while. Returns the bytes and the number of the frames after the first one, and the
/// time from the first to the last, by the time stamps of the kernel, in nanoseconds.
fn listen(host: &mut Host, span: Duration) -> (u64, u64, u64) {
    let end = monotonic_ns() + span.as_nanos() as u64;
    let (mut first, mut last, mut bytes, mut frames) = (0, 0, 0u64, 0u64);
    while monotonic_ns() < end {
        let taken = host.ends.receiver.receive(1024, &mut |arrival| {
            if first == 0 {
                first = arrival.wall_ns;
            } else {
                bytes += arrival.bytes.len() as u64;
                frames += 1;
            }
            last = arrival.wall_ns;
        });
        if taken.expect("the interface can be read") == 0 {
            nap(Duration::from_micros(500));
        }
    }
    (bytes, frames, last - first)
}

fn text(quantiles: &Quantiles) -> String {
    let [p50, p90, p99, p999, most] = quantiles.shares().map(|(_, span)| span.as_s() * 1e3);
    format!("p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, p99.9 {p999:.3}, max {most:.3} ms")
}

/// The deviation of the rate, and the lateness of frames, from 1 Mbit/s to 1 Gbit/s.
#[test]
#[ignore = "takes minutes"]
fn rates_and_lateness() {
    println!("load {}", load());
    for mbit in [1, 10, 100, 1000] {
        let Some(bed) = Bed::build("r") else { return };
        let rate = Rate::mbit(mbit);
        let bridge = bed.bridge("fifo limit 200p", rate, NONE());
        let mut receiver = Host::at(&bed, "b1");
        let (stop, sending) = flood(Host::at(&bed, "a0"), 1514, Rate::mbit(mbit + mbit.div_ceil(5)));
        listen(&mut receiver, Duration::from_secs(1));
        let (bytes, _, ns) = listen(&mut receiver, Duration::from_secs(number_from("GIVEWAY_SECONDS", 10)));
        stop.store(true, Ordering::Relaxed);
        sending.join().expect("the sender does not panic");
        let ended = bridge.stop(Span::ms(1));
        let reached = bytes as f64 * 8e9 / ns as f64;
        let status = &ended[0].status;
        println!(
            "{mbit} Mbit/s: {:+.4} %; lateness {}; {} stalls, {} in total; ring drops {}; {:.1} frames per call; missed by the receiver {}",
            (reached / rate.as_bit() as f64 - 1.0) * 100.0,
            text(&status.lateness[0]),
            status.stalls,
            status.stalled,
            status.losses.ring,
            status.counters.sent.packets as f64 / status.sends.max(1) as f64,
            receiver.ends.receiver.missed(),
        );
    }
}

/// The delay of an idle bridge: single frames, from the call that sends them to the time stamp of the kernel
/// behind the bridge, with and without the bridge.
#[test]
#[ignore = "takes minutes"]
fn idle_latency() {
    let Some(bed) = Bed::build("l") else { return };
    let measure = |to: &str| {
        let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, to));
        let mut times = Vec::new();
        for number in 0..2000 {
            let sent = wall_ns();
            a.send(&[frame(0x88b5, number, 64)]);
            let mut stamp = 0;
            while stamp == 0 {
                b.ends
                    .receiver
                    .receive(1, &mut |arrival| stamp = arrival.wall_ns)
                    .expect("the interface can be read");
            }
            times.push(stamp.saturating_sub(sent));
            nap(Duration::from_millis(1));
        }
        times.sort_unstable();
        [0.5, 0.9, 0.99].map(|share| times[(times.len() as f64 * share) as usize] as f64 / 1e3)
    };
    let without = measure("a1");
    let bridge = bed.bridge("fq_codel", Rate::mbit(100), NONE());
    let with = measure("b1");
    bridge.stop(Span::ms(1));
    println!(
        "idle: {without:.1?} us without, {with:.1?} us with the bridge (p50, p90, p99); load {}",
        load()
    );
}

/// Number of frames of 64 bytes that the bridge forwards per second of the thread's processor time.
#[test]
#[ignore = "takes minutes"]
fn small_frames() {
    let Some(bed) = Bed::build("s") else { return };
    for spec in ["fifo limit 8000p", "fq_codel", "efd"] {
        let bridge = bed.bridge(spec, Rate::gbit(1000), NONE());
        let (stop, sending) = flood(Host::at(&bed, "a0"), 64, Rate::gbit(100));
        nap(Duration::from_secs(1));
        let (cpu, before) = (thread_cpu_ns("gw-forward"), bridge.handles()[0].status());
        let begin = monotonic_ns();
        nap(Duration::from_secs(number_from("GIVEWAY_SECONDS", 5)));
        let (cpu_after, after) = (thread_cpu_ns("gw-forward"), bridge.handles()[0].status());
        let wall = (monotonic_ns() - begin) as f64 / 1e9;
        stop.store(true, Ordering::Relaxed);
        sending.join().expect("the sender does not panic");
        bridge.stop(Span::ms(1));
        let sent = (after.counters.sent.packets - before.counters.sent.packets) as f64;
        let cpu = (cpu_after - cpu) as f64 / 1e9;
        println!(
            "64 bytes, {spec}: {:.0} frames/s, {:.0} per processor second ({:.0} % of a core); {:.1} frames per call; ring \
             drops {}; load {}",
            sent / wall,
            sent / cpu,
            cpu / wall * 100.0,
            after.counters.sent.packets as f64 / after.sends.max(1) as f64,
            after.losses.ring,
            load(),
        );
    }
}

/// Processor time of the thread of this process with a name, in nanoseconds.
fn thread_cpu_ns(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has this folder");
    for task in tasks.flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim() == name {
            return read("schedstat").split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        }
    }
    0
}

/// `GIVEWAY_FRAMES` frames (100,000,000 by default) with damaged headers: the header parser does not panic.
#[test]
#[ignore = "takes minutes"]
fn damaged_frames() {
    let mut parser = HeaderParser::new(true, Counting::default(), &Streams::new(1));
    let mut rng = Streams::new(7).within("damage").rng();
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for kind in [0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x8864, 0x0806] {
        for first in [0x45u8, 0x4f, 0x60, 0x00] {
            let mut bytes = frame(kind, 1, 128);
            bytes[14] = first;
            // IPv6 extension headers and IPv4 protocols that the parser follows.
            bytes[20] = [0, 6, 17, 43, 44, 51, 60][seeds.len() % 7];
            bytes[23] = [6, 17, 1, 132][seeds.len() % 4];
            seeds.push(bytes);
        }
    }
    let mut kinds: BTreeMap<bool, u64> = BTreeMap::new();
    let mut bytes = Vec::with_capacity(256);
    let frames = number_from("GIVEWAY_FRAMES", 100_000_000);
    for round in 0..frames {
        bytes.clear();
        bytes.extend(&seeds[rng.below(seeds.len() as u64) as usize]);
        for _ in 0..rng.below(6) {
            let word = rng.word();
            let at = (word >> 32) as usize % bytes.len();
            bytes[at] = word as u8;
        }
        bytes.truncate(rng.below(129) as usize);
        let parsed = parser.parse(&bytes, Time::us(round));
        *kinds.entry(parsed.tuple.is_some()).or_default() += 1;
        let at = usize::from(parsed.ip_at);
        giveway_wire::checksum::complete(&mut bytes[at..]);
        giveway_wire::ecn::mark(&mut bytes[at..]);
    }
    assert!(kinds[&true] > frames / 10 && kinds[&false] > frames / 10, "{kinds:?}");
    println!("{frames} damaged frames, {} of them still IP; no panic", kinds[&true]);
}
