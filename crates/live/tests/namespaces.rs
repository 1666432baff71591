//! The program's way of frames on real interfaces, in namespaces that the tests make and remove themselves.
//!
//! Root on Linux with `ip` (iproute2); elsewhere each test says why it is skipped. `GIVEWAY_MUST=1` makes that a failure,
//! for machines on which they must run.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use live::bridge::{Bridge, Ended};
use live::clock::Clock;
use live::direction::{Order, Parts};
use live::{Way, line, look, packet};
use qdisc::{PortId, Rate, Share, Site, Span, Streams};

/// Two pairs of virtual interfaces; the bridge stands between `a1` and `b0`, senders and receivers at `a0` and `b1`.
struct Bed {
    tag: String,
}

impl Bed {
    /// Builds it, or says why not.
    fn build(name: &str) -> Option<Bed> {
        if let Err(why) = possible() {
            assert!(std::env::var_os("GIVEWAY_MUST").is_none(), "these tests must run here, but {why}");
            eprintln!("skipped: {why}");
            return None;
        }
        // Names of interfaces have 15 bytes.
        let tag = format!("gt{:x}{name}", std::process::id() & 0xffff);
        let bed = Bed { tag };
        for (a, b) in [("a0", "a1"), ("b0", "b1")] {
            ip(&["link", "add", &bed.name(a), "type", "veth", "peer", "name", &bed.name(b)]);
        }
        for end in ["a0", "a1", "b0", "b1"] {
            let name = bed.name(end);
            let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            std::fs::write(quiet, "1").expect("the interface was just made");
            ip(&["link", "set", &name, "up"]);
        }
        Some(bed)
    }

    fn name(&self, end: &str) -> String {
        format!("{}{end}", self.tag)
    }

    fn bridge(&self, spec: &str, rate: Rate, line: line::Settings) -> Bridge {
        let open = |end: &str| packet::open(&self.name(end), None).expect("it is there, and we are root");
        let spec: disciplines::Spec = spec.parse().expect("it is one");
        let ways = Way::both(open("a1"), open("b0"), |name| {
            let (spec, streams) = (spec.clone(), Streams::new(1).within(name));
            let place = streams.clone();
            Parts {
                id: PortId(0),
                rate,
                build: Box::new(move |rate| spec.build(&Site::new(rate, place.clone())).unwrap()),
                line,
                counting: look::Counting { overhead: 14, mpu: 0 },
                ethernet: true,
                longest_in: 1518,
                longest_out: 1518,
                rooms: 16_384,
                streams,
                probe: None,
                tap: None,
                clock: Clock::start(),
            }
        });
        Bridge::start(ways, true).expect("threads can be started")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for end in ["a0", "b0"] {
            let _ = Command::new("ip").args(["link", "del", &self.name(end)]).stderr(Stdio::null()).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().expect("it is installed");
    assert!(done.success(), "ip {}", arguments.join(" "));
}

/// Whether these tests can run, asked once.
fn possible() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(ask).clone()
}

fn ask() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("this needs root: sudo -E cargo test -p giveway-live".to_owned());
    }
    let there = Command::new("ip").arg("-V").stdout(Stdio::null()).status();
    if there.is_err() {
        return Err("there is no `ip`: apt-get install iproute2".to_owned());
    }
    let probe = format!("gtp{:x}", std::process::id() & 0xffff);
    let made =
        Command::new("ip").args(["link", "add", &probe, "type", "veth"]).stderr(Stdio::null()).status();
    let made = made.is_ok_and(|status| status.success());
    let _ = Command::new("ip").args(["link", "del", &probe]).stderr(Stdio::null()).status();
    if made { Ok(()) } else { Err("virtual interfaces cannot be made here".to_owned()) }
}

/// A raw socket at an end: our own receiver and sender, which are what is tested, and nothing else is at hand.
struct Host {
    ends: live::Ends,
}

impl Host {
    fn at(bed: &Bed, end: &str) -> Host {
        Host { ends: packet::open(&bed.name(end), Some(16_384)).expect("it is there, and we are root") }
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        let mut all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        while !all.is_empty() {
            let sent = self.ends.sender.send(&all[..all.len().min(64)]).expect("it is up");
            all.drain(..sent);
        }
    }

    /// What comes within this time, or until there are so many.
    fn receive(&mut self, enough: usize, within: Duration) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        let mut left = within.as_millis() as u64 / 2;
        while got.len() < enough && left > 0 {
            let came = self.ends.receiver.receive(1024, &mut |arrival| {
                let mut whole = arrival.bytes.to_vec();
                if let Some(tag) = arrival.vlan {
                    whole.splice(12..12, tag);
                }
                got.push(whole);
            });
            if came.expect("it can be read") == 0 {
                nap(Duration::from_millis(2));
                left -= 1;
            }
        }
        got
    }
}

#[expect(clippy::disallowed_methods, reason = "real interfaces have their own time")]
fn nap(span: Duration) {
    thread::sleep(span);
}

/// A frame for the wire between two stations that do not exist.
fn frame(kind: u16, number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(2_654_435_761).max(1);
    while bytes.len() < length {
        // Xorshift, so that bytes that change are seen.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.push(state as u8);
    }
    bytes
}

fn no_loss(ended: &[Ended]) {
    for ended in ended {
        let losses = ended.status.losses;
        assert_eq!((losses.ring, losses.no_room, losses.unsent, losses.too_long), (0, 0, 0, 0), "{losses:?}");
        assert_eq!(ended.status.plain, None);
    }
}

const NONE: fn() -> line::Settings = line::Settings::none;

/// 20,000 frames of mixed lengths each way at once: each arrives once, in order, with the same bytes.
#[test]
fn frames_cross_whole_once_and_in_order() {
    let Some(bed) = Bed::build("w") else { return };
    let bridge = bed.bridge("fifo limit 8000p", Rate::gbit(10), NONE());
    let ends = [("a0", "b1"), ("b1", "a0")];
    let threads: Vec<_> = ends
        .map(|(from, to)| {
            let (mut sender, mut receiver) = (Host::at(&bed, from), Host::at(&bed, to));
            thread::spawn(move || {
                let mut got = Vec::new();
                for round in 0..200 {
                    let sent: Vec<Vec<u8>> = (0..100)
                        .map(|n| {
                            frame(0x88b5, round * 100 + n, 60 + (n as usize * 977 + round as usize) % 1454)
                        })
                        .collect();
                    sender.send(&sent);
                    let came = receiver.receive(100, Duration::from_secs(5));
                    assert!(came == sent, "round {round}: {} of 100 frames, or others", came.len());
                    got.push(came.len());
                }
                got.iter().sum::<usize>()
            })
        })
        .into();
    for thread in threads {
        assert_eq!(thread.join().expect("what was sent came"), 20_000);
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// What is damaged, tagged or no IP at all crosses like anything else.
#[test]
fn odd_frames_cross_unharmed() {
    let Some(bed) = Bed::build("o") else { return };
    let bridge = bed.bridge("fq_codel", Rate::gbit(1), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let ip = |header: &[u8]| {
        let mut bytes = frame(0x0800, 1, 14);
        bytes.extend(header);
        bytes.resize(80, 7);
        bytes
    };
    let mut tagged = frame(0x8100, 1, 100);
    tagged[14..18].copy_from_slice(&[0x20, 5, 0x08, 0x06]);
    let mut twice = frame(0x88a8, 1, 100);
    twice[14..22].copy_from_slice(&[0, 9, 0x81, 0, 0, 5, 0x08, 0]);
    // A tag may come on top of the MTU.
    let mut longest = frame(0x8100, 1, 1518);
    longest[14..18].copy_from_slice(&[0, 7, 0x88, 0xb5]);
    let odd = [
        frame(0x0806, 1, 60),
        frame(0x0806, 1, 14),
        tagged,
        twice,
        frame(0x0026, 1, 60),
        ip(&[0x45, 0, 0xff, 0xff, 0, 0, 0x20, 0, 64, 17]),
        ip(&[0x41, 0, 0, 20]),
        ip(&[0x4f, 0, 0, 3]),
        ip(&[0x45, 3, 0, 28, 0, 0, 0x1f, 0xff, 64, 6]),
        frame(0x86dd, 1, 30),
        frame(0xffff, 1, 1514),
        longest,
    ];
    for (number, frame) in odd.iter().enumerate() {
        a.send(std::slice::from_ref(frame));
        let came = b.receive(1, Duration::from_secs(2));
        assert_eq!(came, std::slice::from_ref(frame), "frame {number}");
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// 2 Mbit/s for about a second and a half: every frame is due a fixed time after the one before, and the whole takes as
/// long as it must. Two per cent is ten times what is promised, for a machine that does something else.
#[test]
fn the_rate_is_the_one_that_was_asked_for() {
    let Some(bed) = Bed::build("r") else { return };
    let bridge = bed.bridge("fifo limit 2000p", Rate::mbit(2), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..376).map(|n| frame(0x88b5, n, 1000)).collect();
    a.send(&frames);
    let begin = live::clock::monotonic_ns();
    let came = b.receive(376, Duration::from_secs(10));
    let took = (live::clock::monotonic_ns() - begin) as f64 / 1e9;
    assert_eq!(came.len(), 376);
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    if ended[0].status.stalls == 0 {
        let expected = 375.0 * 1000.0 * 8.0 / 2e6;
        assert!((took / expected - 1.0).abs() < 0.02, "{took} s instead of {expected} s");
    }
}

/// Rate, discipline and line change ten times while frames cross; none is lost, none overtakes.
#[test]
fn changes_lose_and_reorder_nothing() {
    let Some(bed) = Bed::build("c") else { return };
    let bridge = bed.bridge("fifo limit 8000p", Rate::mbit(50), NONE());
    let handle = bridge.handles()[0].clone();
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let mut sent = Vec::new();
    for round in 0..10 {
        let frames: Vec<Vec<u8>> = (0..100).map(|n| frame(0x88b5, round * 100 + n, 500)).collect();
        a.send(&frames);
        sent.extend(frames);
        let spec: disciplines::Spec =
            if round % 2 == 0 { "drr limit 9000p" } else { "fifo limit 9000p" }.parse().unwrap();
        handle.order(Order::Qdisc(Box::new(move |rate| {
            spec.build(&Site::new(rate, Streams::new(u64::from(round)))).unwrap()
        })));
        handle.rate(Rate::mbit(10 + 10 * u64::from(round)));
        let delay = if round % 3 == 0 { Span::ms(3) } else { Span::ZERO };
        handle.line(line::Settings { delay, jitter: Span::ZERO, loss: Share::new(0.0).unwrap() });
        nap(Duration::from_millis(20));
    }
    let came = b.receive(sent.len(), Duration::from_secs(10));
    assert!(came == sent, "{} of {} frames, or another order", came.len(), sent.len());
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    assert_eq!(ended[0].status.changes, 30);
}

/// The interface goes down and comes back: frames cross again.
#[test]
fn an_interface_may_go_down_and_come_back() {
    let Some(bed) = Bed::build("d") else { return };
    let bridge = bed.bridge("fifo", Rate::mbit(100), NONE());
    for end in ["a1", "b0"] {
        ip(&["link", "set", &bed.name(end), "down"]);
        nap(Duration::from_millis(100));
        ip(&["link", "set", &bed.name(end), "up"]);
        nap(Duration::from_millis(100));
        let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
        let frames = [frame(0x88b5, 1, 100)];
        a.send(&frames);
        assert_eq!(b.receive(1, Duration::from_secs(2)), frames, "after {end} was down");
        b.send(&frames);
        assert_eq!(a.receive(1, Duration::from_secs(2)), frames, "back, after {end} was down");
    }
    assert!(bridge.is_whole());
    let ended = bridge.stop(Span::s(1));
    assert!(ended.iter().map(|ended| ended.status.downs).sum::<u64>() >= 2);
}

/// A direction that fails forwards plainly, tags and all, and says so once. The other one goes on shaping.
#[test]
fn a_failure_ends_in_plain_forwarding() {
    let Some(bed) = Bed::build("f") else { return };
    let mut bridge = bed.bridge("fifo", Rate::kbit(8), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    // The thread panics: its discipline cannot be built.
    bridge.handles()[0].order(Order::Qdisc(Box::new(|_| panic!("there is no such discipline"))));
    nap(Duration::from_millis(300));
    let said = bridge.watch();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("forward") && said[0].contains("there is no such discipline"), "{said:?}");
    assert!(bridge.watch().is_empty() && !bridge.is_whole());
    let mut tagged = frame(0x8100, 1, 1000);
    tagged[14..18].copy_from_slice(&[0x20, 5, 0x88, 0xb5]);
    let frames = [frame(0x88b5, 1, 1000), tagged, frame(0x88b5, 2, 1000)];
    a.send(&frames);
    assert_eq!(b.receive(3, Duration::from_secs(2)), frames, "at 8 kbit/s they would take three seconds");
    let ended = bridge.stop(Span::ms(10));
    assert_eq!(ended[0].status.plain_frames, 3);
    assert_eq!(ended[1].status.plain, None);
}

/// A discipline that never returns: after five seconds without a sign of life the spare thread forwards.
#[test]
fn a_thread_that_hangs_is_replaced() {
    let Some(bed) = Bed::build("h") else { return };
    let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
    bridge.handles()[0].order(Order::Qdisc(Box::new(|_| {
        nap(Duration::from_secs(3600));
        unreachable!("the test is over by then")
    })));
    let mut said = Vec::new();
    for _ in 0..80 {
        nap(Duration::from_millis(100));
        said.extend(bridge.watch());
    }
    assert!(said.len() == 1 && said[0].contains("no sign of life"), "{said:?}");
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100)];
    a.send(&frames);
    assert_eq!(b.receive(1, Duration::from_secs(2)), frames);
    bridge.stop(Span::ms(10));
}
