//! `giveway live --reserve` and `giveway reserve` as a user has them, on interfaces that the tests make: what is reserved is kept while best
//! effort floods the link at ten times its rate.
//!
//! A few seconds here. For ten minutes, on a machine that does nothing else:
//!
//! ```sh
//! GIVEWAY_FLOOD_SECONDS=600 cargo test --release -p giveway-cli --test reserve -- --nocapture flood
//! ```

#[path = "../../live/tests/bed/mod.rs"]
mod bed;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bed::{Bed, Host, nap};
use live::clock::monotonic_ns;
use qdisc::hash::SipHasher;
use qdisc::{Rate, Site, Streams};
use reserve::{Message, Reason};
use serde_json::Value;
use theory::latency_rate::{Flow, Scheduler, Server, delay};

const GIVEWAY: &str = env!("CARGO_BIN_EXE_giveway");

/// What a command says: code, output, errors.
fn said(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(GIVEWAY).args(arguments).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn wrong_wishes_are_refused_with_what_would_be_right() {
    let refused = |arguments: &[&str]| {
        let (code, _, errors) = said(&[&["live", "--in", "a", "--out", "b"], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    let errors = refused(&["--rate", "10mbit", "--reserve"]);
    assert!(
        errors.contains("fq_codel does nothing with a reservation: write --qdisc with one of "),
        "{errors}"
    );
    assert!(errors.contains("trr_sound"), "{errors}");
    let reserving = |more: &[&str]| refused(&[&["--qdisc", "trr_sound", "--reserve"], more].concat());
    assert!(reserving(&[]).contains("write --rate, as in --rate 10mbit"));
    let limited = |more: &[&str]| reserving(&[&["--rate", "10mbit"], more].concat());
    assert!(limited(&["--reserve-share", "0%"]).contains("write for example 95%"));
    assert!(limited(&["--reserve-lifetime", "10ms"]).contains("at least 1s"));
    assert!(limited(&["--reserve-types", "0x0800"]).contains("what the network itself runs on"));
    assert!(limited(&["--reserve-key-file", "no.such"]).contains("--reserve-key-file no.such: "));
    assert!(refused(&["--flow-hash", "xor:1000"]).contains("write xor:1009"));
    assert!(refused(&["--reserve-share", "95%"]).contains("--reserve"), "it means nothing alone");
    let tun =
        ["live", "--in", "tun:a", "--out", "tun:b", "--rate", "10mbit", "--qdisc", "trr_sound", "--reserve"];
    let (code, _, errors) = said(&tun);
    assert!(code == Some(2) && errors.contains("two Ethernet interfaces"), "{errors}");

    let flow = ["reserve", "--via", "no0such", "--from", "10.0.0.1:1", "--to", "10.0.0.2:2"];
    let (code, _, errors) = said(&[&flow[..], &["--rate", "1mbit"]].concat());
    let told = errors.contains("there is no interface no0such") || errors.contains("CAP_NET_RAW");
    assert!(code == Some(2) && told, "{errors}");
    let (code, _, errors) = said(&flow);
    assert!(code == Some(2) && errors.contains("--rate <RATE>"), "{errors}");
    let (code, _, errors) =
        said(&[&flow[..], &["--rate", "1mbit", "--start", "@17", "--for", "1s"]].concat());
    assert!(code == Some(2) && errors.contains("it would be over already"), "{errors}");
}

struct Live {
    child: Child,
    socket: String,
}

impl Live {
    /// Starts it, and returns once frames pass.
    fn start(bed: &Bed, dir: &Path, arguments: &[&str]) -> Live {
        let (ready, socket) = (dir.join("ready"), dir.join("s").display().to_string());
        let mut child = Command::new(GIVEWAY)
            .args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--quiet", "--json"])
            .args(["--control", &socket, "--ready"])
            .arg(&ready)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        for _ in 0..500 {
            if ready.exists() || child.try_wait().expect("it is ours").is_some() {
                break;
            }
            nap(Duration::from_millis(10));
        }
        assert!(ready.exists(), "it began within five seconds");
        Live { child, socket }
    }

    /// How a direction keeps its reservations.
    fn shown(&self) -> Value {
        let (_, text, errors) = said(&["control", &self.socket, "show"]);
        let shown: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        shown["directions"][0]["reservations"].clone()
    }

    /// The flows that have a reservation.
    fn listed(&self) -> Vec<String> {
        let (_, text, errors) = said(&["control", &self.socket, "reservations"]);
        let list: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        let flows = list.as_array().expect("it is a list").iter();
        flows.map(|each| each["flow"].as_str().expect("flows are text").to_owned()).collect()
    }

    /// Its end: what it says of the direction forward.
    fn end(mut self) -> Value {
        signal(&self.child, "-TERM");
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it is text");
        self.child.stderr.take().expect("it is piped").read_to_string(&mut errors).expect("it is text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{errors}");
        let told: Value = serde_json::from_str(&out).expect("it is JSON");
        told["directions"][0].clone()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// A `giveway reserve` that keeps what it was granted.
struct Keeping {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Keeping {
    fn begin(arguments: &[&str]) -> Keeping {
        let mut child = Command::new(GIVEWAY)
            .arg("reserve")
            .args(arguments)
            .args(["--repeat", "300ms"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut keeping = Keeping { child, out };
        let line = keeping.line();
        assert!(line.starts_with("granted by "), "{line}");
        keeping
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it is text");
        line
    }

    /// Ctrl-C: code, and what it said last.
    fn end(mut self) -> (Option<i32>, String) {
        signal(&self.child, "-INT");
        let line = self.line();
        (self.child.wait().expect("it ends").code(), line)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keys(dir: &Path) -> [String; 2] {
    [("key", "000102030405060708090a0b0c0d0e0f"), ("other", "100102030405060708090a0b0c0d0e0f")].map(
        |(name, text)| {
            use std::os::unix::fs::PermissionsExt;
            let file = dir.join(name);
            std::fs::write(&file, text).expect("the folder is ours");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
                .expect("the file is ours");
            file.display().to_string()
        },
    )
}

/// Granted, refused with the reason, forged, ended, changed, revoked, and passed on to who is further away.
#[test]
fn requests_are_answered() {
    let Some(bed) = Bed::build("q") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [key, other] = keys(dir.path());
    let reserve = ["--rate", "10mbit", "--qdisc", "trr_sound", "--reserve", "--reserve-key-file", &key];
    let live = Live::start(&bed, dir.path(), &reserve);
    let via = bed.name("a0");
    let flow = |port: &'static str| {
        ["reserve", "--via", &via, "--to", "10.0.0.2:6000", "--from", port].map(str::to_owned)
    };
    let ask = |port: &'static str, more: &[&str]| {
        let flow = flow(port);
        let mut words: Vec<&str> = flow.iter().map(String::as_str).collect();
        words.extend(more);
        said(&words)
    };
    let mut behind = Host::at(&bed, "b1");

    let (code, out, errors) = ask("10.0.0.1:5004", &["--rate", "9mbit", "--once", "--key-file", &key]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("udp 10.0.0.1:5004 > 10.0.0.2:6000 at 9mbit, until the router forgets it"), "{out}");
    assert_eq!(live.listed(), ["udp 10.0.0.1:5004 > 10.0.0.2:6000"]);
    let passed = behind.receive(1, Duration::from_secs(2));
    assert_eq!(passed.len(), 1, "the next router hears of it, too");
    assert_eq!(passed[0][12..18], [0x88, 0xb5, b'G', b'W', 1, 1]);

    let (code, out, errors) = ask("10.0.0.1:5006", &["--rate", "501kbit", "--once", "--key-file", &key]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(errors.contains("the link has not so much left in that time: ask for less"), "{errors}");
    assert_eq!(behind.receive(1, Duration::from_millis(200)).len(), 0, "what is refused does not go on");

    for wrong in [&["--key-file", &*other][..], &[]] {
        let (code, _, errors) =
            ask("10.0.0.1:5004", &[&["--end", "--tries", "1", "--timeout", "300ms"], wrong].concat());
        assert!(code == Some(1) && errors.contains("nobody answered"), "{errors}");
    }
    let shown = live.shown();
    assert_eq!(
        (&shown["messages"]["forged"], &shown["reserved_bps"]),
        (&2.into(), &9_000_000.into()),
        "{shown}"
    );

    // Half of the link: what was granted does not fit any more.
    assert_eq!(said(&["control", &live.socket, "set", "rate", "5mbit"]).1, "rate is 5mbit\n");
    let shown = live.shown();
    assert_eq!(
        (&shown["messages"]["revoked"], &shown["reservable_bps"]),
        (&1.into(), &4_750_000.into()),
        "{shown}"
    );
    assert!(live.listed().is_empty());

    let (code, ..) = ask("10.0.0.1:5004", &["--rate", "2mbit", "--once", "--key-file", &key]);
    assert_eq!(code, Some(0));
    let (code, out, errors) = ask("10.0.0.1:5004", &["--end", "--key-file", &key]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.starts_with("ended by ") && live.listed().is_empty(), "{out}");

    // A sender that is told to stop ends it; one that dies is forgotten.
    let flow = flow("10.0.0.1:5008");
    let flow: Vec<&str> =
        flow[1..].iter().map(String::as_str).chain(["--rate", "1mbit", "--key-file", &key]).collect();
    let keeping = Keeping::begin(&flow);
    assert_eq!(live.listed().len(), 1);
    let (code, line) = keeping.end();
    assert!(code == Some(0) && line.starts_with("ended by "), "{line}");

    // One further on has no room: what was granted here is given back.
    behind.receive(100, Duration::from_millis(200));
    let mut keeping = Keeping::begin(&flow);
    let passed = behind.receive(1, Duration::from_secs(2)).remove(0);
    let key = SipHasher::new(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let asked = Message::decode(&passed[14..], Some(&key)).expect("it is what was asked for");
    let mut answer = [&passed[6..12], &[2, 0, 0, 0, 0, 9, 0x88, 0xb5][..]].concat();
    answer.extend(asked.answer(Some(Reason::TableFull)).encode(Some(&key)));
    behind.send(&[answer]);
    assert_eq!(keeping.child.wait().expect("it ends").code(), Some(1));
    let given_back = || live.listed().is_empty();
    assert!(
        (0..100).any(|_| given_back() || {
            nap(Duration::from_millis(20));
            false
        }),
        "{:?}",
        live.listed()
    );

    let told = live.end();
    let messages = &told["reservations"]["messages"];
    assert_eq!((&messages["ended"], &messages["refused"]), (&3.into(), &1.into()), "{told}");
    assert_eq!(told["lost"]["ring"], 0);
}

/// A flow of datagrams that says which and the how many-th each is.
#[derive(Clone, Copy)]
struct Stream {
    /// Of the source; what the flow is known by.
    port: u16,
    /// IP length.
    bytes: u16,
    /// What it reserves; zero for best effort.
    rate: Rate,
}

/// What a link with `--overhead 14` counts of a packet.
const OVERHEAD: u16 = 14;
const FLOOD_PORTS: std::ops::Range<u16> = 7000..7016;

impl Stream {
    fn write(&self, number: u32, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0]);
        frame.extend(self.bytes.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(self.port.to_be_bytes());
        frame.extend(6000u16.to_be_bytes());
        frame.extend((self.bytes - 20).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(number.to_be_bytes());
        frame.resize(14 + usize::from(self.bytes), 0);
    }

    /// Port and number of a frame that is one of ours.
    fn read(frame: &[u8]) -> Option<(u16, u32)> {
        let ours =
            frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(36..38) == Some(&6000u16.to_be_bytes());
        let port = frame.get(34..36)?.first_chunk()?;
        let number = frame.get(42..46)?.first_chunk()?;
        ours.then_some((u16::from_be_bytes(*port), u32::from_be_bytes(*number)))
    }

    fn counted(&self) -> u64 {
        u64::from(self.bytes + OVERHEAD)
    }
}

/// Sends a stream at its rate, never faster, until told to stop.
fn keep_to_the_rate(mut host: Host, stream: Stream, stop: &Arc<AtomicBool>) -> thread::JoinHandle<u32> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let gap_ns = stream.rate.time_for(stream.counted()).as_ps().div_ceil(1000);
        let mut frame = vec![Vec::new()];
        let (mut number, mut next) = (0, monotonic_ns());
        while !stop.load(Ordering::Relaxed) {
            let now = monotonic_ns();
            if now < next {
                nap(Duration::from_nanos(next - now));
                continue;
            }
            stream.write(number, &mut frame[0]);
            host.send(&frame);
            number += 1;
            // Late is late: two at once would be a burst.
            next = now + gap_ns;
        }
        number
    })
}

/// Sends best effort of several flows at ten times the rate of the link.
fn flood(mut host: Host, bytes: u16, rate: Rate, stop: &Arc<AtomicBool>) -> thread::JoinHandle<u32> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut frames: Vec<Vec<u8>> = FLOOD_PORTS.map(|_| Vec::new()).collect();
        let gap_ns = rate.time_for(u64::from(bytes + OVERHEAD) * frames.len() as u64).as_ps() / 1000;
        let (mut number, mut next) = (0, monotonic_ns());
        while !stop.load(Ordering::Relaxed) {
            for (port, frame) in FLOOD_PORTS.zip(&mut frames) {
                Stream { port, bytes, rate }.write(number, frame);
            }
            host.send(&frames);
            number += 1;
            next += gap_ns;
            let now = monotonic_ns();
            match next.checked_sub(now) {
                Some(left) if left > 20_000 => nap(Duration::from_nanos(left)),
                _ => next = next.max(now.saturating_sub(20_000_000)),
            }
        }
        number
    })
}

/// Watches a stream come to the router and leave it, by the kernel's stamps.
struct Watched {
    stream: Stream,
    /// When which packet came, in nanoseconds of Unix time.
    came: Vec<u64>,
    left: Vec<u64>,
}

/// Where frames pass, before and behind the router.
struct Taps {
    before: Host,
    behind: Host,
    /// What came behind it, until it is known when it came before.
    waiting: Vec<(u16, u32, u64)>,
}

impl Taps {
    fn open(bed: &Bed) -> Taps {
        Taps { before: Host::at(bed, "a1"), behind: Host::at(bed, "b1"), waiting: Vec::new() }
    }

    /// Notes what has passed. Returns how many packets of the flood left.
    fn look(&mut self, watched: &mut [Watched]) -> u64 {
        let mut flood = 0;
        let waiting = &mut self.waiting;
        // What is behind the router now was before it already.
        let _ = self.behind.ends.receiver.receive(1 << 16, &mut |arrival| {
            waiting.extend(Stream::read(arrival.bytes).map(|(port, number)| (port, number, arrival.wall_ns)));
        });
        let note = |times: &mut Vec<u64>, number: u32, ns: u64| {
            let at = number as usize;
            if times.len() <= at {
                times.resize(at + 1, 0);
            }
            times[at] = ns;
        };
        let _ = self.before.ends.receiver.receive(1 << 16, &mut |arrival| {
            let Some((port, number)) = Stream::read(arrival.bytes) else { return };
            if let Some(of) = watched.iter_mut().find(|of| of.stream.port == port) {
                note(&mut of.came, number, arrival.wall_ns);
            }
        });
        for (port, number, ns) in self.waiting.drain(..) {
            match watched.iter_mut().find(|of| of.stream.port == port) {
                Some(of) => note(&mut of.left, number, ns),
                None => flood += 1,
            }
        }
        flood
    }
}

impl Watched {
    fn of(stream: Stream) -> Watched {
        Watched { stream, came: Vec::new(), left: Vec::new() }
    }

    /// Packets, those that did not leave, the delays of those that did in seconds, sorted, and by how much the worst exceeds what it may have:
    /// packet k leaves by F_k + Θ - L/ρ, F_k = max(a_k, F_(k-1)) + L/ρ. Frames leave the router when the link begins to send them,
    /// which is L/r before the bound's end.
    fn judge(&self, theta: f64, link: Rate) -> (usize, usize, Vec<f64>, f64) {
        let at_rate = self.stream.rate.time_for(self.stream.counted()).as_s();
        let on_link = link.time_for(self.stream.counted()).as_s();
        let (mut finish, mut lost, mut worst) = (0.0f64, 0, f64::NEG_INFINITY);
        let mut delays = Vec::new();
        let origin = self.came.first().copied().unwrap_or(0);
        for (number, came) in self.came.iter().enumerate() {
            let a = came.saturating_sub(origin) as f64 / 1e9;
            finish = finish.max(a) + at_rate;
            match self.left.get(number).copied().unwrap_or(0) {
                0 => lost += 1,
                left => {
                    let left = left.saturating_sub(origin) as f64 / 1e9;
                    delays.push(left - a);
                    worst = worst.max(left - (finish + theta - at_rate - on_link));
                }
            }
        }
        delays.sort_by(f64::total_cmp);
        (self.came.len(), lost, delays, worst)
    }
}

/// Three flows that keep to what they have reserved, and best effort at ten times the rate of the link. None of the three loses a packet, and
/// each packet is within the bound of the latency-rate server plus the lateness that the host has measured. Then one of them dies, and what
/// comes of its flow is best effort.
#[test]
fn what_is_reserved_is_kept_in_a_flood() {
    let Some(bed) = Bed::build("f") else { return };
    let seconds =
        std::env::var("GIVEWAY_FLOOD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3u64);
    let dir = tempfile::tempdir().unwrap();
    let link = Rate::mbit(10);
    let streams = [(5004, 1000, Rate::mbit(2)), (5006, 500, Rate::mbit(1)), (5008, 200, Rate::kbit(100))]
        .map(|(port, bytes, rate)| Stream { port, bytes, rate });
    let flooding = 1200;
    let live = Live::start(
        &bed,
        dir.path(),
        &["--rate", "10mbit", "--qdisc", "trr_sound", "--reserve", "--reserve-lifetime", "2s"],
    );
    let via = bed.name("a0");
    let mut kept: Vec<Keeping> = streams
        .iter()
        .map(|stream| {
            let (from, rate) = (format!("10.0.0.1:{}", stream.port), stream.rate.to_string());
            Keeping::begin(&["--via", &via, "--to", "10.0.0.2:6000", "--from", &from, "--rate", &rate])
        })
        .collect();
    assert_eq!(live.listed().len(), 3);

    let mut taps = Taps::open(&bed);
    let mut watched: Vec<Watched> = streams.iter().map(|stream| Watched::of(*stream)).collect();
    let (stop, stop_flood) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    // All of them before anything is sent: opening a ring of this size holds the machine up.
    let mut hosts: Vec<Host> = (0..5).map(|_| Host::at(&bed, "a0")).collect();
    let mut host = || hosts.pop().expect("there are enough");
    let flooded = flood(host(), flooding, Rate::bit(10 * link.as_bit()), &stop_flood);
    let sending: Vec<_> = streams.iter().map(|stream| keep_to_the_rate(host(), *stream, &stop)).collect();
    let mut passed = 0;
    let mut watch = |taps: &mut Taps, watched: &mut Vec<Watched>, span: Duration| {
        let end = monotonic_ns() + span.as_nanos() as u64;
        while monotonic_ns() < end {
            passed += taps.look(watched);
            nap(Duration::from_millis(2));
        }
    };
    watch(&mut taps, &mut watched, Duration::from_secs(seconds));
    stop.store(true, Ordering::Relaxed);
    let sent: Vec<u32> = sending.into_iter().map(|sending| sending.join().expect("it sends")).collect();
    watch(&mut taps, &mut watched, Duration::from_millis(500));

    // Dead without a word. The flood goes on, and the flow is one of seventeen that share what is left.
    kept[0].child.kill().expect("it is ours");
    watch(&mut taps, &mut watched, Duration::from_millis(2500));
    assert_eq!(live.listed(), ["udp 10.0.0.1:5006 > 10.0.0.2:6000", "udp 10.0.0.1:5008 > 10.0.0.2:6000"]);
    let mut orphan = vec![Watched::of(streams[0])];
    let stop = Arc::new(AtomicBool::new(false));
    let sending = keep_to_the_rate(host(), streams[0], &stop);
    watch(&mut taps, &mut orphan, Duration::from_millis(1500));
    stop.store(true, Ordering::Relaxed);
    sending.join().expect("it sends");
    stop_flood.store(true, Ordering::Relaxed);
    let flooded = u64::from(flooded.join().expect("it sends")) * FLOOD_PORTS.len() as u64;
    watch(&mut taps, &mut orphan, Duration::from_millis(1500));
    for (name, host) in [("before", &mut taps.before), ("behind", &mut taps.behind)] {
        assert_eq!(
            host.ends.receiver.missed(),
            0,
            "the test itself has seen all that passed {name} the router"
        );
    }
    drop(kept);
    let told = live.end();

    // What the discipline counts of a slot: the time of the largest packet that its site may have.
    let slot = link.time_for(Site::new(link, Streams::new(0)).mtu.0).as_s();
    let flows = streams
        .iter()
        .map(|stream| Flow { rate: stream.rate.as_bit() as f64, packet: stream.counted() as f64 });
    let server = Server {
        link: link.as_bit() as f64,
        flows: flows.collect(),
        best_effort: f64::from(flooding + OVERHEAD),
    };
    let seconds_of = |value: &Value| value.as_f64().expect("it is a number");
    // How late frames left, and the link's time that was lost because the thread was away for more than the link makes up for. A packet can
    // meet several stalls; that it met all of them is the only thing that is certain to be enough.
    let lateness = seconds_of(&told["lateness_s"]["max"]) + seconds_of(&told["stalled_s"]);
    println!(
        "| flow | packets | lost | p99.9 delay, ms | longest, ms | bound, ms | beyond its own bound, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut broken = Vec::new();
    for (at, of) in watched.iter().enumerate() {
        let theta = server.latency(Scheduler::TimestampRoundRobin(slot), at).expect("they fit");
        let (packets, lost, delays, worst) = of.judge(theta, link);
        let bound = delay(of.stream.counted() as f64, server.flows[at].rate, &[theta]);
        let p999 = delays[(delays.len() as f64 * 0.999) as usize];
        let longest = delays[delays.len() - 1];
        println!(
            "| {} of {} bytes | {packets} | {lost} | {:.3} | {:.3} | {:.3} | {:+.3} |",
            of.stream.rate,
            of.stream.bytes,
            p999 * 1e3,
            longest * 1e3,
            bound * 1e3,
            worst * 1e3
        );
        if (packets, lost) != (sent[at] as usize, 0) || worst > lateness || longest > bound + lateness {
            broken.push(of.stream.port);
        }
    }
    println!("| best effort, 16 flows | {flooded} | {} | | | none | |", flooded.saturating_sub(passed));
    println!(
        "lateness of the host: 99.9 % {:.3} ms, longest {:.3} ms; {} stalls, the longest {:.3} ms, all {:.3} ms; ring drops {}; {seconds} s",
        seconds_of(&told["lateness_s"]["p999"]) * 1e3,
        seconds_of(&told["lateness_s"]["max"]) * 1e3,
        told["stalls"],
        seconds_of(&told["longest_stall_s"]) * 1e3,
        seconds_of(&told["stalled_s"]) * 1e3,
        told["lost"]["ring"],
    );
    assert!(
        broken.is_empty(),
        "a packet was lost, or later than the bound and the lateness of the host: {broken:?}"
    );
    assert!(flooded > 5 * passed, "{passed} of {flooded} passed: that was no flood");
    assert_eq!(told["reservations"]["messages"]["expired"], 1, "{told}");

    let theta = server.latency(Scheduler::TimestampRoundRobin(slot), 0).expect("they fit");
    let (packets, lost, _, worst) = orphan[0].judge(theta, link);
    println!(
        "without its reservation: {packets} packets, {lost} lost, the worst {:.0} ms beyond the bound",
        worst * 1e3
    );
    assert!(lost > 0 || worst > 0.05, "{packets} packets went as if they were reserved for");
}
