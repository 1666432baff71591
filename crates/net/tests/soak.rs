//! A soak test of `giveway live`: one process is exposed to everything that an outsider can do to it, for a
//! given time.
//!
//! Each round has five phases of four seconds:
//!
//! - *Calm*: two streams below the rate, one in each direction. Every packet arrives once and in order.
//! - *False lengths*: sixteen flows of frames whose IP headers claim 1, 20 or 65,535 bytes, at three times
//!   the rate. The link carries at most its rate, and a stream below its fair share loses at most 1 % of its
//!   packets.
//! - *Changes*: rate, discipline, delay and loss change ten times per second. At the same time there are
//!   frames with false lengths, each in a new flow, malformed commands, and slow clients. Every valid change
//!   is accepted, every other one is refused, and the metrics are served within two seconds.
//! - *Flaps*: the interfaces go down and up. The bridge must work in the next phase.
//! - *Full disk*: the disk of the recording is full. Traffic continues as in the calm phase.
//!
//! With `GIVEWAY_SOAK_CLOCK=1` the wall clock of the machine is also set forward and back by 30 s in the calm
//! phase. At the end every frame that arrived must be accounted for, and memory and descriptors must not have
//! grown since the first rounds.
//!
//! By default there is one round. For an hour, on an idle machine:
//!
//! ```sh
//! GIVEWAY_SOAK_SECONDS=3600 GIVEWAY_SOAK_CLOCK=1 \
//!     cargo test --release -p giveway-net --test all -- soak:: --ignored --nocapture
//! ```

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use giveway_live::clock::monotonic_ns;
use giveway_qdisc::Rate;
use serde_json::Value;

use crate::bed::{Bed, Host, ip, nap};
use crate::running::main_program;
use crate::streams::{NET, Stream, env_number, giveway, is_ready, number, signal};

/// Length of a phase.
const PHASE: Duration = Duration::from_secs(4);
/// Rate of the link in the phases that do not change it.
const RATE: Rate = Rate::mbit(20);
/// The discipline, except in the phase that changes it. Its target is far above the waits that a late wake-up
/// of the bridge causes, so that CoDel drops nothing in the calm phases: on a busy machine, a stall of 100 ms
/// would be a reason to.
const QDISC: &str = "fq_codel limit 2000p target 1s interval 10s";
/// A stream below its fair share.
const HONEST: Stream = Stream { port: 7000, bytes: 500, rate: Rate::mbit(1) };

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_all_attacks_together_are_survived() {
    let Some(bed) = Bed::build("o").filter(|_| main_program().is_some()) else { return };
    let dir = tempfile::tempdir().expect("there is room for a folder");
    let disk = Disk::small(&dir.path().join("small"));
    let mut bridge = Bridge::start(&bed, dir.path(), &disk);
    let mut resources = Vec::new();
    let rounds = env_number("GIVEWAY_SOAK_SECONDS", 1).div_ceil(5 * PHASE.as_secs()).max(1);
    let mut totals = Totals::default();
    for round in 0..rounds {
        bridge.reset();
        totals.calm += calm(&bed, &bridge, "calm");
        totals.false_lengths += false_lengths(&bed, &bridge);
        let (changed, frames) = changes(&bed, &bridge, round);
        totals.changes += changed;
        totals.false_lengths += frames;
        totals.flaps += flaps(&bed);
        bridge.reset();
        let filled = disk.fill();
        totals.calm += calm(&bed, &bridge, "full disk");
        disk.free(filled);
        resources.push(bridge.resources());
        let (kb, descriptors) = resources[resources.len() - 1];
        println!("round {} of {rounds}: {kb} kB resident, {descriptors} descriptors; {totals:?}", round + 1);
    }
    let statistics = bridge.end();
    accounted_for(&statistics);
    recorded_to_the_end(&disk, &statistics);
    // The first rounds use memory for the first time: pools, tables, series of the recording.
    if let [_, _, _, third, .., last] = &resources[..] {
        assert!(last.0 < third.0 + third.0 / 10, "resident memory grew from {} to {} kB", third.0, last.0);
        assert_eq!(last.1, third.1, "descriptors");
    }
}

/// Checks that the recording did not end early.
fn recorded_to_the_end(disk: &Disk, statistics: &Value) {
    for (side, direction) in
        ["forward", "reverse"].iter().zip(statistics["directions"].as_array().expect("both"))
    {
        let path = format!("{}/record/{side}/manifest.json", disk.path);
        let text = std::fs::read_to_string(&path).expect("there is a recording");
        let manifest: Value = serde_json::from_str(&text).expect("it is JSON");
        let (until, uptime) = (number(&manifest["measured"]["until_s"]), number(&direction["uptime_s"]));
        assert!(until > uptime - 1.0, "{side}: recorded for {until} s of {uptime}");
    }
}

/// Totals of all rounds: frames, changes, and flaps.
#[derive(Debug, Default)]
struct Totals {
    calm: u64,
    false_lengths: u64,
    changes: u64,
    flaps: u64,
}

/// A file system of 16 MiB, so that it can be filled.
struct Disk {
    path: String,
}

impl Disk {
    fn small(path: &Path) -> Disk {
        std::fs::create_dir(path).expect("the folder is ours");
        let path = path.display().to_string();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m,mode=1777", "small", &path]).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a tmpfs can be mounted");
        Disk { path }
    }

    fn fill(&self) -> String {
        let name = format!("{}/filler", self.path);
        let mut file = std::fs::File::create(&name).expect("there is room for a name");
        while file.write_all(&[0; 4096]).is_ok() {}
        name
    }

    fn free(&self, name: String) {
        std::fs::remove_file(name).expect("`fill` has created it");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// A running `giveway live`. It is killed when this is dropped.
struct Bridge {
    child: Child,
    socket: String,
    metrics: u16,
}

impl Bridge {
    fn start(bed: &Bed, dir: &Path, disk: &Disk) -> Bridge {
        let (ready, socket) = (dir.join("ready"), dir.join("s").display().to_string());
        let metrics = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|one| one.local_addr())
            .expect("a port is free")
            .port();
        let mut child = Command::new(NET)
            .args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--quiet", "--json"])
            .args(["--rate", "20mbit", "--rate-reverse", "20mbit", "--qdisc", QDISC])
            .args(["--control", &socket, "--metrics", &format!("127.0.0.1:{metrics}")])
            .args([
                "--record",
                &format!("{}/record", disk.path),
                "--pcap",
                &format!("{}/frames.pcapng", disk.path),
            ])
            .args(["--pcap-limit", "2mb", "--ready"])
            .arg(&ready)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program runs");
        let began = is_ready(&mut child, &ready, Duration::from_secs(10));
        assert!(began, "it began within ten seconds");
        Bridge { child, socket, metrics }
    }

    /// Sends a line to the control socket, and returns the answer. For a line that is too long, the program
    /// may close the connection; then the error is returned.
    fn ask(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout is possible");
        let mut answer = String::new();
        let answered = writeln!(stream, "{line}").and_then(|()| stream.read_to_string(&mut answer));
        match answered {
            Ok(_) => answer,
            Err(error) => format!("{error} after {answer:?}"),
        }
    }

    /// Restores the settings of the calm phases, and waits until the queues are empty.
    fn reset(&self) {
        for line in [
            "set rate 20mbit",
            "set rate-reverse 20mbit",
            &format!("set qdisc {QDISC}"),
            &format!("set qdisc-reverse {QDISC}"),
            "set delay 0ms",
            "set loss 0%",
        ] {
            let answer = self.ask(line);
            assert!(answer.starts_with("ok "), "{line}: {answer}");
        }
        // A replaced discipline still sends its backlog, so packets under earlier settings leave first.
        for _ in 0..300 {
            nap(Duration::from_millis(100));
            let statistics = self.shown();
            let directions = statistics["directions"].as_array().expect("both are there");
            if directions.iter().all(|direction| number(&direction["backlog"]["packets"]) == 0.0) {
                return;
            }
        }
        panic!("packets are still queued after half a minute without traffic: {}", self.shown());
    }

    /// The state of the bridge.
    fn shown(&self) -> Value {
        let (_, text, errors) = giveway(&["control", &self.socket, "show"]);
        serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"))
    }

    /// Requests the metrics. Returns their text and the time until they were complete.
    fn scrape(&self) -> (String, Duration) {
        let begin = monotonic_ns();
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout is possible");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers in text");
        (text, Duration::from_nanos(monotonic_ns() - begin))
    }

    /// Resident memory in kB, and the number of open descriptors.
    fn resources(&self) -> (u64, usize) {
        let process = format!("/proc/{}", self.child.id());
        let text = std::fs::read_to_string(format!("{process}/status")).expect("the process exists");
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux reports it");
        let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("it is a number");
        (kb, std::fs::read_dir(format!("{process}/fd")).expect("the process exists").count())
    }

    /// Ends the program. Returns its final statistics.
    fn end(&mut self) -> Value {
        signal(&self.child, "-TERM");
        let mut out = String::new();
        self.child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it is text");
        let code = self.child.wait().expect("it ends").code();
        assert_eq!(code, Some(0), "{out}");
        serde_json::from_str(&out).expect("it is JSON")
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a stream at its rate from one end, until `stop` is set. Returns the number of packets.
fn honest(bed: &Bed, end: &str, stream: Stream, stop: &Arc<AtomicBool>) -> JoinHandle<u32> {
    crate::streams::keep_to_the_rate(Host::at(bed, end), stream, stop)
}

/// Sends two streams below the rate, one in each direction. Every packet arrives once and in order. Returns
/// the number of packets.
fn calm(bed: &Bed, bridge: &Bridge, name: &str) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let stream = Stream { port: 7001, bytes: 900, rate: Rate::mbit(8) };
    let far =
        [("b1", "a0"), ("a0", "b1")].map(|(to, from)| (Host::at(bed, to), honest(bed, from, stream, &stop)));
    let steps = env_number("GIVEWAY_SOAK_CLOCK", 0) == 1 && name == "calm";
    if steps {
        // The clock is set back below, so it is right afterwards.
        step_clock(30);
    }
    nap(PHASE / 2);
    if steps {
        step_clock(-30);
    }
    nap(PHASE / 2);
    stop.store(true, Ordering::Relaxed);
    nap(Duration::from_millis(700));
    let mut total = 0;
    for (mut host, sender) in far {
        let sent = sender.join().expect("it sends");
        let numbers = arrived(&mut host, stream.port);
        let missed = host.ends.receiver.missed();
        let expected: Vec<u32> = (0..sent).collect();
        if numbers != expected {
            let state = bridge.shown();
            panic!("{name}: {} of {sent} packets arrived (the test missed {missed}): {state}", numbers.len());
        }
        total += u64::from(sent);
    }
    total
}

/// The numbers of a stream's packets that have arrived at an end, in the order of arrival.
fn arrived(host: &mut Host, port: u16) -> Vec<u32> {
    let mut numbers = Vec::new();
    loop {
        let read = host.ends.receiver.receive(1 << 16, &mut |arrival| {
            numbers
                .extend(Stream::read(arrival.bytes).filter(|(of, _)| *of == port).map(|(_, number)| number));
        });
        if read.expect("it can be read") == 0 {
            return numbers;
        }
    }
}

/// Sends frames with false lengths at three times the rate of the link, until `stop` is set. `flow` computes
/// the flow of a frame from its number. Returns the number of sent frames.
fn flood_false_lengths(
    bed: &Bed,
    stop: &Arc<AtomicBool>,
    flow: impl Fn(u64) -> u64 + Send + 'static,
) -> JoinHandle<u64> {
    let (mut host, stop) = (Host::at(bed, "a0"), Arc::clone(stop));
    thread::spawn(move || {
        let (mut sent, mut number) = (0, 0);
        let (begin, mut bytes) = (monotonic_ns(), 0u64);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..16 {
                let frame = false_length(number, flow(number));
                number += 1;
                bytes += frame.len() as u64;
                // An interface that is down refuses frames.
                sent += host.ends.sender.send(&[&frame]).map_or(0, |sent| sent as u64);
            }
            let due = begin + Rate::mbit(60).time_for(bytes).as_ps() / 1000;
            nap(Duration::from_nanos(due.saturating_sub(monotonic_ns())));
        }
        sent
    })
}

/// Sends sixteen flows of frames with false lengths, and a stream below its fair share, a seventeenth of the
/// link. Returns the number of frames with false lengths.
fn false_lengths(bed: &Bed, bridge: &Bridge) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let flood = flood_false_lengths(bed, &stop, |number| number / 2 % 8);
    nap(Duration::from_millis(300));
    // Time starts before the socket is open, so that every received frame is within the time.
    let begin = monotonic_ns();
    let mut far = Host::at(bed, "b1");
    let stop_victim = Arc::new(AtomicBool::new(false));
    let victim = honest(bed, "a0", HONEST, &stop_victim);
    let mut bytes = 0u64;
    let mut numbers = Vec::new();
    while monotonic_ns() < begin + PHASE.as_nanos() as u64 {
        let read = far.ends.receiver.receive(1 << 16, &mut |arrival| {
            bytes += u64::from(arrival.length);
            numbers
                .extend(Stream::read(arrival.bytes).filter(|(port, _)| *port == HONEST.port).map(|(_, n)| n));
        });
        read.expect("it can be read");
        nap(Duration::from_millis(2));
    }
    let seconds = (monotonic_ns() - begin) as f64 / 1e9;
    stop_victim.store(true, Ordering::Relaxed);
    let sent_by_victim = victim.join().expect("it sends");
    stop.store(true, Ordering::Relaxed);
    let sent = flood.join().expect("it sends");
    nap(Duration::from_millis(700));
    numbers.extend(arrived(&mut far, HONEST.port));
    let missed = far.ends.receiver.missed();
    let mbit = bytes as f64 * 8.0 / seconds / 1e6;
    // The link may make up for up to 20 ms of lost time.
    let most = RATE.as_bit() as f64 / 1e6 * (1.0 + 0.02 / seconds);
    assert!(mbit <= most, "{mbit} Mbit/s through a link of 20 Mbit/s");
    assert!(mbit > 10.0, "{mbit} Mbit/s through a link of 20 Mbit/s that is offered 60: {}", bridge.shown());
    let lost = u64::from(sent_by_victim) - numbers.len() as u64;
    assert!(
        lost <= u64::from(sent_by_victim) / 100 + missed,
        "the victim lost {lost} of {sent_by_victim}: {}",
        bridge.shown()
    );
    sent
}

/// A frame whose length differs from that in its IP header: IPv4 for even numbers, otherwise IPv6. Frames of
/// one flow have the same addresses and ports.
fn false_length(number: u64, flow: u64) -> Vec<u8> {
    let length = [60, 1514, 590][number as usize % 3];
    let claim: u16 = [65_535, 20, 1][number as usize % 3];
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    if number.is_multiple_of(2) {
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend(claim.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend((flow as u32).to_be_bytes());
        bytes.extend([10, 9, 0, 2]);
    } else {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(claim.to_be_bytes());
        bytes.extend([17, 64]);
        bytes.extend([0xfd; 8]);
        bytes.extend(flow.to_be_bytes());
        bytes.extend([0xfd; 16]);
    }
    bytes.resize(length, 0);
    bytes
}

/// Changes settings while a stream and frames with false lengths pass, with slow clients and malformed
/// commands. Returns the number of changes, and the number of frames with false lengths.
fn changes(bed: &Bed, bridge: &Bridge, round: u64) -> (u64, u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let sender = honest(bed, "a0", HONEST, &stop);
    let flood = flood_false_lengths(bed, &stop, move |number| number | round << 24);
    // Clients that connect and send almost nothing during the whole phase.
    let slow: Vec<UnixStream> = (0..8).filter_map(|_| UnixStream::connect(&bridge.socket).ok()).collect();
    let mut slower: Vec<TcpStream> =
        (0..8).filter_map(|_| TcpStream::connect(("127.0.0.1", bridge.metrics)).ok()).collect();
    // Queues are short, because replaced disciplines still send their backlog, and all share one pool of
    // buffers.
    let qdiscs = [
        "drr limit 100p",
        "efd limit 100p",
        "fifo limit 100p",
        "fq_codel limit 100p",
        "sfq limit 100p",
        "red limit 100p",
        "codel limit 100p",
        "prio",
    ];
    let begin = monotonic_ns();
    let (mut changed, mut n) = (0, round);
    while monotonic_ns() < begin + PHASE.as_nanos() as u64 {
        n += 1;
        let valid = [
            format!("set qdisc {}", qdiscs[n as usize % qdiscs.len()]),
            format!("set rate {}mbit", 5 + n % 20),
            format!("set delay {}ms", n % 4),
            format!("set loss {}%", n % 2),
        ];
        for line in &valid {
            let answer = bridge.ask(line);
            assert!(answer.starts_with("ok "), "{line}: {answer}");
            changed += 1;
        }
        let mut long = String::from("set qdisc fifo");
        let _ = write!(long, "{:>5000}", "x");
        for line in ["set rate -1mbit", "set", "\u{1}\u{2}", "set qdisc fq_codl", "stop now", &long] {
            let answer = bridge.ask(line);
            assert!(!answer.starts_with("ok "), "{line}: {answer}");
        }
        for client in &mut slower {
            // An error is expected: the program closes the connections of slow clients.
            let _ = client.write_all(b"G");
        }
        let (text, took) = bridge.scrape();
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("# EOF\n"), "{text}");
        assert!(took < Duration::from_secs(2), "metrics took {took:?}");
        nap(Duration::from_millis(100));
    }
    drop((slow, slower));
    stop.store(true, Ordering::Relaxed);
    sender.join().expect("it sends");
    (changed, flood.join().expect("it sends"))
}

/// Takes the interfaces down and up in turn. Returns the number of times.
fn flaps(bed: &Bed) -> u64 {
    let begin = monotonic_ns();
    let mut count = 0;
    while monotonic_ns() < begin + PHASE.as_nanos() as u64 {
        let end = bed.name(["a1", "b0"][count as usize % 2]);
        ip(&["link", "set", &end, "down"]);
        nap(Duration::from_millis(150));
        ip(&["link", "set", &end, "up"]);
        nap(Duration::from_millis(350));
        count += 1;
    }
    // The kernel handles changes of the carrier at most once a second, and until then a device that is up
    // again drops what it should send, without a counter of Giveway.
    nap(Duration::from_millis(1200));
    count
}

/// Checks that every frame that arrived was sent or dropped for a reason, and that all buffers are free.
fn accounted_for(statistics: &Value) {
    for direction in statistics["directions"].as_array().expect("both are there") {
        let packets = |name: &str| number(&direction[name]["packets"]);
        let (arrived, sent, dropped) = (packets("arrived"), packets("sent"), packets("dropped"));
        assert_eq!(arrived, sent + dropped, "{direction}");
        let by_reason: f64 =
            direction["drops"].as_object().expect("they have reasons").values().map(number).sum();
        // Frames that the link emulation loses count as sent.
        assert_eq!(dropped, by_reason, "{direction}");
        assert_eq!(number(&direction["lost"]["ring"]), 0.0, "{direction}");
        assert_eq!(number(&direction["lost"]["no_buffer"]), 0.0, "{direction}");
        let buffers = &direction["buffers"];
        assert_eq!(number(&buffers["free"]), number(&buffers["total"]), "all buffers are free");
        assert!(direction["plain"].is_null(), "{direction}");
        println!(
            "{}: {arrived} packets arrived, {sent} sent, {dropped} dropped; lost outside the discipline: {}; down {} times; {} changes",
            direction["direction"], direction["lost"], direction["interface_downs"], direction["changes"]
        );
    }
}

/// Sets the wall clock of the machine.
fn step_clock(seconds: i64) {
    let set =
        Command::new("date").args(["-s", &format!("{seconds:+} seconds")]).stdout(Stdio::null()).status();
    assert!(set.is_ok_and(|status| status.success()), "the clock can be set");
}
