//! A soak test of `giveway live`: one process, for as long as is asked for, under everything that an outsider can do to it.
//!
//! Each round has five phases of four seconds:
//!
//! - *Calm*: two streams below the rate, one each way. Every packet arrives once and in order.
//! - *Liars*: sixteen flows of frames whose IP headers claim 1, 20 or 65,535 bytes, at three times the rate. The link carries
//!   at most its rate, and a stream below its fair share loses at most one packet in a hundred.
//! - *Changes*: rate, discipline, delay and loss change ten times a second; meanwhile come such frames in a new flow each,
//!   malformed commands, and slow clients. Every well-formed change is accepted, every other is refused, and the metrics
//!   answer within two seconds.
//! - *Flaps*: the interfaces go down and come up. The next phase finds a bridge that works.
//! - *Full disk*: the folder that it records into is full. Traffic goes on as in the calm phase.
//!
//! With `GIVEWAY_SOAK_CLOCK=1` the wall clock of the machine is set forward and back by 30 s in the calm phase, too. At the
//! end every frame that arrived must be accounted for, and memory and descriptors must be where they were after the first
//! rounds.
//!
//! One round here. An hour, on a machine that does nothing else:
//!
//! ```sh
//! GIVEWAY_SOAK_SECONDS=3600 GIVEWAY_SOAK_CLOCK=1 cargo test --release -p giveway-cli --test all -- soak:: --nocapture
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
use crate::streams::{GIVEWAY, Stream, asked, is_ready, number, said, signal};

/// How long each phase takes.
const PHASE: Duration = Duration::from_secs(4);
/// The rate of the link in the phases that do not change it.
const RATE: Rate = Rate::mbit(20);
/// A stream that asks for less than its fair share, in each phase.
const HONEST: Stream = Stream { port: 7000, bytes: 500, rate: Rate::mbit(1) };

#[test]
fn it_survives_everything_at_once() {
    let Some(bed) = Bed::build("o") else { return };
    let dir = tempfile::tempdir().expect("there is a place for files");
    let disk = Disk::small(&dir.path().join("small"));
    let mut bridge = Bridge::start(&bed, dir.path(), &disk);
    let mut seen = Vec::new();
    let rounds = asked("GIVEWAY_SOAK_SECONDS", 1).div_ceil(5 * PHASE.as_secs()).max(1);
    let mut totals = Totals::default();
    for round in 0..rounds {
        bridge.reset();
        totals.calm += calm(&bed, &bridge, "calm");
        totals.liars += liars(&bed, &bridge);
        let (changed, lies) = changes(&bed, &bridge, round);
        totals.changes += changed;
        totals.liars += lies;
        totals.flaps += flaps(&bed);
        bridge.reset();
        let filled = disk.fill();
        totals.calm += calm(&bed, &bridge, "full disk");
        disk.free(filled);
        seen.push(bridge.resources());
        let (kb, descriptors) = seen[seen.len() - 1];
        println!("round {} of {rounds}: {kb} kB resident, {descriptors} descriptors; {totals:?}", round + 1);
    }
    let told = bridge.end();
    accounted_for(&told);
    recorded_to_the_end(&disk, &told);
    // The first rounds touch memory for the first time: pools, tables, series of what is recorded.
    if let [_, _, _, third, .., last] = &seen[..] {
        assert!(last.0 < third.0 + third.0 / 10, "resident memory grew from {} to {} kB", third.0, last.0);
        assert_eq!(last.1, third.1, "descriptors");
    }
}

/// A recording that ended on the way says nothing about what came afterwards.
fn recorded_to_the_end(disk: &Disk, told: &Value) {
    for (side, direction) in ["forward", "reverse"].iter().zip(told["directions"].as_array().expect("both")) {
        let path = format!("{}/record/{side}/manifest.json", disk.path);
        let text = std::fs::read_to_string(&path).expect("there is a recording");
        let manifest: Value = serde_json::from_str(&text).expect("it is JSON");
        let (until, uptime) = (number(&manifest["measured"]["until_s"]), number(&direction["uptime_s"]));
        assert!(until > uptime - 1.0, "{side}: recorded for {until} s of {uptime}");
    }
}

/// What was done, for the closing lines.
#[derive(Debug, Default)]
struct Totals {
    calm: u64,
    liars: u64,
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
        std::fs::remove_file(name).expect("it was made a moment ago");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

/// `giveway live`, as a child.
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
        let mut child = Command::new(GIVEWAY)
            .args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--quiet", "--json"])
            .args(["--rate", "20mbit", "--rate-reverse", "20mbit", "--qdisc", "fq_codel limit 2000p"])
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

    /// One line to the control socket, one answer. A client whose line is too long is hung up on, which is an answer, too.
    fn ask(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout is possible");
        let mut answer = String::new();
        let asked = writeln!(stream, "{line}").and_then(|()| stream.read_to_string(&mut answer));
        match asked {
            Ok(_) => answer,
            Err(error) => format!("{error} after {answer:?}"),
        }
    }

    /// What the calm phases and the floods rely on.
    fn reset(&self) {
        for line in [
            "set rate 20mbit",
            "set rate-reverse 20mbit",
            "set qdisc fq_codel limit 2000p",
            "set qdisc-reverse fq_codel limit 2000p",
            "set delay 0ms",
            "set loss 0%",
        ] {
            let answer = self.ask(line);
            assert!(answer.starts_with("ok "), "{line}: {answer}");
        }
        // What was queued under other settings leaves first: a discipline that is replaced sends what it holds.
        for _ in 0..300 {
            nap(Duration::from_millis(100));
            let told = self.shown();
            let directions = told["directions"].as_array().expect("both are there");
            if directions.iter().all(|direction| number(&direction["held"]["packets"]) == 0.0) {
                return;
            }
        }
        panic!("packets still wait after half a minute without traffic: {}", self.shown());
    }

    fn shown(&self) -> Value {
        let (_, text, errors) = said(&["control", &self.socket, "show"]);
        serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"))
    }

    /// The text of the metrics, and how long they took.
    fn scrape(&self) -> (String, Duration) {
        let begin = monotonic_ns();
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout is possible");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers in text");
        (text, Duration::from_nanos(monotonic_ns() - begin))
    }

    /// Resident memory in kB, and open descriptors.
    fn resources(&self) -> (u64, usize) {
        let place = format!("/proc/{}", self.child.id());
        let text = std::fs::read_to_string(format!("{place}/status")).expect("it lives");
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says so");
        let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("it is a number");
        (kb, std::fs::read_dir(format!("{place}/fd")).expect("it lives").count())
    }

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

/// A stream at its own rate from one end, for one phase; returns how many packets it sent.
fn honest(bed: &Bed, end: &str, stream: Stream, stop: &Arc<AtomicBool>) -> JoinHandle<u32> {
    crate::streams::keep_to_the_rate(Host::at(bed, end), stream, stop)
}

/// Two streams below the rate, one each way: every packet arrives, once, in order. Returns how many.
fn calm(bed: &Bed, bridge: &Bridge, name: &str) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let stream = Stream { port: 7001, bytes: 900, rate: Rate::mbit(8) };
    let far =
        [("b1", "a0"), ("a0", "b1")].map(|(to, from)| (Host::at(bed, to), honest(bed, from, stream, &stop)));
    let stepped = asked("GIVEWAY_SOAK_CLOCK", 0) == 1 && name == "calm";
    if stepped {
        // Forward and back again: what the machine's clock says afterwards is right.
        step_clock(30);
    }
    nap(PHASE / 2);
    if stepped {
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

/// The numbers of a stream's packets that have arrived at an end, in the order of their arrival.
fn arrived(host: &mut Host, port: u16) -> Vec<u32> {
    let mut numbers = Vec::new();
    loop {
        let came = host.ends.receiver.receive(1 << 16, &mut |arrival| {
            numbers
                .extend(Stream::read(arrival.bytes).filter(|(of, _)| *of == port).map(|(_, number)| number));
        });
        if came.expect("it can be read") == 0 {
            return numbers;
        }
    }
}

/// Sends frames whose IP headers lie about their length at three times the rate of the link, until it is told to stop. `flow` makes a
/// flow of the number of a frame. Returns how many frames were sent.
fn flood_of_lies(
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
                let frame = lie(number, flow(number));
                number += 1;
                bytes += frame.len() as u64;
                // An interface that is down refuses; so it does.
                sent += host.ends.sender.send(&[&frame]).map_or(0, |sent| sent as u64);
            }
            let due = begin + Rate::mbit(60).time_for(bytes).as_ps() / 1000;
            nap(Duration::from_nanos(due.saturating_sub(monotonic_ns())));
        }
        sent
    })
}

/// Sixteen flows of lies, and a stream that asks for less than a seventeenth of the link. Returns how many lies were sent.
fn liars(bed: &Bed, bridge: &Bridge) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let flood = flood_of_lies(bed, &stop, |number| number / 2 % 8);
    nap(Duration::from_millis(300));
    // Before the socket is open: a frame that comes between the two must not count without its time.
    let begin = monotonic_ns();
    let mut far = Host::at(bed, "b1");
    let quiet = Arc::new(AtomicBool::new(false));
    let victim = honest(bed, "a0", HONEST, &quiet);
    let mut bytes = 0u64;
    let mut numbers = Vec::new();
    while monotonic_ns() < begin + PHASE.as_nanos() as u64 {
        let came = far.ends.receiver.receive(1 << 16, &mut |arrival| {
            bytes += u64::from(arrival.length);
            numbers
                .extend(Stream::read(arrival.bytes).filter(|(port, _)| *port == HONEST.port).map(|(_, n)| n));
        });
        came.expect("it can be read");
        nap(Duration::from_millis(2));
    }
    let seconds = (monotonic_ns() - begin) as f64 / 1e9;
    quiet.store(true, Ordering::Relaxed);
    let sent_by_victim = victim.join().expect("it sends");
    stop.store(true, Ordering::Relaxed);
    let sent = flood.join().expect("it sends");
    nap(Duration::from_millis(700));
    numbers.extend(arrived(&mut far, HONEST.port));
    let missed = far.ends.receiver.missed();
    let mbit = bytes as f64 * 8.0 / seconds / 1e6;
    // The link may make up for 20 ms.
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

/// A frame that is not as long as its IP header says: every second one IPv4, the others IPv6. Frames of one flow have the same
/// addresses and ports.
fn lie(number: u64, flow: u64) -> Vec<u8> {
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

/// Changes while a stream and lies pass, with clients that are slow or talk nonsense. Returns how many changes and lies.
fn changes(bed: &Bed, bridge: &Bridge, round: u64) -> (u64, u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let sender = honest(bed, "a0", HONEST, &stop);
    let flood = flood_of_lies(bed, &stop, move |number| number | round << 24);
    // Clients that connect and say next to nothing, for the whole phase.
    let slow: Vec<UnixStream> = (0..8).filter_map(|_| UnixStream::connect(&bridge.socket).ok()).collect();
    let mut slower: Vec<TcpStream> =
        (0..8).filter_map(|_| TcpStream::connect(("127.0.0.1", bridge.metrics)).ok()).collect();
    // Short queues: each discipline that was replaced still sends what it holds, and all of them share one pool of buffers.
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
        let good = [
            format!("set qdisc {}", qdiscs[n as usize % qdiscs.len()]),
            format!("set rate {}mbit", 5 + n % 20),
            format!("set delay {}ms", n % 4),
            format!("set loss {}%", n % 2),
        ];
        for line in &good {
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
            // A slow client that was hung up on is what should happen.
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

/// Both interfaces go down and come up, several times. Returns how often.
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
    count
}

/// Every frame that arrived was sent, dropped for a reason, or lost on purpose or to an interface that was down.
fn accounted_for(told: &Value) {
    for direction in told["directions"].as_array().expect("both are there") {
        let packets = |name: &str| number(&direction[name]["packets"]);
        let (arrived, sent, dropped) = (packets("arrived"), packets("sent"), packets("dropped"));
        assert_eq!(arrived, sent + dropped, "{direction}");
        let by_reason: f64 =
            direction["drops"].as_object().expect("they have reasons").values().map(number).sum();
        // What the line behind the link loses was sent before.
        assert_eq!(dropped, by_reason, "{direction}");
        assert_eq!(number(&direction["lost"]["ring"]), 0.0, "{direction}");
        assert_eq!(number(&direction["lost"]["no_room"]), 0.0, "{direction}");
        let rooms = &direction["rooms"];
        assert_eq!(number(&rooms["left"]), number(&rooms["all"]), "all buffers are back");
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
