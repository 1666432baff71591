//! Streams of packets through `giveway live`: the program between interfaces that tests make, who sends, and who watches what comes to it and
//! what leaves it.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use giveway_live::clock::monotonic_ns;
use giveway_qdisc::Rate;
use serde_json::Value;

use crate::bed::{Bed, Host, nap};
pub use crate::running::{GIVEWAY, is_ready, said};

/// The value of a variable of the environment, or another.
pub fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The program as a bridge.
pub struct Live {
    child: Child,
    pub socket: String,
}

impl Live {
    /// Starts it, and returns once frames pass.
    pub fn start(bed: &Bed, dir: &Path, arguments: &[&str]) -> Live {
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
        let began = is_ready(&mut child, &ready, Duration::from_secs(5));
        assert!(began, "it began within five seconds");
        Live { child, socket }
    }

    /// How a direction keeps its reservations.
    pub fn shown(&self) -> Value {
        let (_, text, errors) = said(&["control", &self.socket, "show"]);
        let shown: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        shown["directions"][0]["reservations"].clone()
    }

    /// The flows that have a reservation.
    pub fn listed(&self) -> Vec<String> {
        let (_, text, errors) = said(&["control", &self.socket, "reservations"]);
        let list: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        let flows = list.as_array().expect("it is a list").iter();
        flows.map(|each| each["flow"].as_str().expect("flows are text").to_owned()).collect()
    }

    /// Its end: what it says of the direction forward.
    pub fn end(mut self) -> Value {
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

/// A figure of what it says.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// How late frames left, and the link's time that was lost because the thread was away for more than the link makes up for; seconds. A packet
/// can meet several stalls; that it met all of them is the only thing that is certain to be enough.
pub fn lateness(told: &Value) -> f64 {
    number(&told["lateness_s"]["max"]) + number(&told["stalled_s"])
}

pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// A flow of datagrams that says which and the how many-th each is.
#[derive(Clone, Copy)]
pub struct Stream {
    /// Of the source; what the flow is known by.
    pub port: u16,
    /// IP length.
    pub bytes: u16,
    /// What it reserves; zero for best effort.
    pub rate: Rate,
}

/// What a link with `--overhead 14` counts of a packet.
pub const OVERHEAD: u16 = 14;

impl Stream {
    pub fn write(&self, number: u32, frame: &mut Vec<u8>) {
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
    pub fn read(frame: &[u8]) -> Option<(u16, u32)> {
        let ours =
            frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(36..38) == Some(&6000u16.to_be_bytes());
        let port = frame.get(34..36)?.first_chunk()?;
        let number = frame.get(42..46)?.first_chunk()?;
        ours.then_some((u16::from_be_bytes(*port), u32::from_be_bytes(*number)))
    }

    /// What the link counts of a packet, in bytes.
    pub fn counted(&self) -> u64 {
        u64::from(self.bytes + OVERHEAD)
    }
}

/// Sends a stream at its rate, never faster, until told to stop.
pub fn keep_to_the_rate(mut host: Host, stream: Stream, stop: &Arc<AtomicBool>) -> thread::JoinHandle<u32> {
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

/// Sends streams, a packet of each in turn and so many at once, together at this rate, until told to stop. Returns how many packets they were.
pub fn flood(
    mut host: Host,
    ports: Range<u16>,
    at_once: usize,
    bytes: u16,
    rate: Rate,
    stop: &Arc<AtomicBool>,
) -> thread::JoinHandle<u64> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let ports: Vec<u16> = ports.collect();
        let mut frames: Vec<Vec<u8>> = (0..at_once).map(|_| Vec::new()).collect();
        let (mut sent, mut next) = (0, monotonic_ns());
        let turns = (0..).flat_map(|number| ports.chunks(at_once).map(move |some| (number, some)));
        for (number, some) in turns {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for (port, frame) in some.iter().zip(&mut frames) {
                Stream { port: *port, bytes, rate }.write(number, frame);
            }
            host.send(&frames[..some.len()]);
            sent += some.len() as u64;
            next += rate.time_for(u64::from(bytes + OVERHEAD) * some.len() as u64).as_ps() / 1000;
            let now = monotonic_ns();
            match next.checked_sub(now) {
                Some(left) if left > 20_000 => nap(Duration::from_nanos(left)),
                _ => next = next.max(now.saturating_sub(20_000_000)),
            }
        }
        sent
    })
}

/// Watches a stream come to the router and leave it, by the kernel's stamps.
pub struct Watched {
    pub stream: Stream,
    /// When which packet came, in nanoseconds of Unix time; zero for one that has not.
    came: Vec<u64>,
    left: Vec<u64>,
}

/// Where frames pass, before and behind the router.
pub struct Taps {
    before: Host,
    behind: Host,
    /// What came behind it, until it is known when it came before.
    waiting: Vec<(u16, u32, u64)>,
}

impl Taps {
    pub fn open(bed: &Bed) -> Taps {
        Taps { before: Host::at(bed, "a1"), behind: Host::at(bed, "b1"), waiting: Vec::new() }
    }

    /// Notes what has passed. Returns how many packets left that are of no stream that is watched.
    pub fn look(&mut self, watched: &mut [Watched]) -> u64 {
        let mut others = 0;
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
                None => others += 1,
            }
        }
        others
    }

    /// The same for a while.
    pub fn watch(&mut self, watched: &mut [Watched], span: Duration) -> u64 {
        let end = monotonic_ns() + span.as_nanos() as u64;
        let mut others = 0;
        while monotonic_ns() < end {
            others += self.look(watched);
            nap(Duration::from_millis(2));
        }
        others
    }

    /// How many frames passed unseen.
    pub fn missed(&mut self) -> u64 {
        self.before.ends.receiver.missed() + self.behind.ends.receiver.missed()
    }
}

/// What became of the packets of a stream that came within a time.
pub struct Judged {
    pub packets: usize,
    /// Those that did not leave.
    pub lost: usize,
    /// Of those that did, in seconds, sorted; until the link begins to send them.
    pub delays: Vec<f64>,
    /// By how much the worst exceeds what it may have.
    pub worst: f64,
}

impl Judged {
    /// The delay that such a share of them do not exceed; `None` when none left.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.delays.len().checked_sub(1)?;
        Some(self.delays[((self.delays.len() as f64 * share) as usize).min(last)])
    }

    pub fn mean(&self) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delays.iter().sum::<f64>() / self.delays.len() as f64)
    }
}

/// Of all times.
pub const EVER: Range<u64> = 0..u64::MAX;

impl Watched {
    pub fn of(stream: Stream) -> Watched {
        Watched { stream, came: Vec::new(), left: Vec::new() }
    }

    /// When a packet left, if it did.
    fn left(&self, number: usize) -> Option<u64> {
        self.left.get(number).copied().filter(|left| *left > 0)
    }

    /// How many packets left within a time.
    pub fn left_within(&self, window: &Range<u64>) -> u64 {
        self.left.iter().filter(|left| window.contains(left)).count() as u64
    }

    /// Whether packets that came within a time have not left.
    pub fn waits(&self, window: &Range<u64>) -> bool {
        let mut came = self.came.iter().enumerate().filter(|(_, came)| window.contains(came));
        came.any(|(number, _)| self.left(number).is_none())
    }

    /// Whether a packet that came after that time has left.
    pub fn is_past(&self, window: &Range<u64>) -> bool {
        let mut later = self.came.iter().enumerate().filter(|(_, came)| **came >= window.end);
        later.any(|(number, _)| self.left(number).is_some())
    }

    /// The packets that came within a time, when the latency of the router is `theta` seconds: packet k leaves by F_k + Θ - L/ρ,
    /// F_k = max(a_k, F_(k-1)) + L/ρ. Frames leave the router when the link begins to send them, which is L/r before the bound's end.
    pub fn judge(&self, theta: f64, link: Rate, window: &Range<u64>) -> Judged {
        let at_rate = self.stream.rate.time_for(self.stream.counted()).as_s();
        let on_link = link.time_for(self.stream.counted()).as_s();
        let mut finish = 0.0f64;
        let mut judged = Judged { packets: 0, lost: 0, delays: Vec::new(), worst: f64::NEG_INFINITY };
        let origin = self.came.first().copied().unwrap_or(0);
        for (number, came) in self.came.iter().enumerate() {
            let a = came.saturating_sub(origin) as f64 / 1e9;
            finish = finish.max(a) + at_rate;
            if !window.contains(came) {
                continue;
            }
            judged.packets += 1;
            let Some(left) = self.left(number) else {
                judged.lost += 1;
                continue;
            };
            let left = left.saturating_sub(origin) as f64 / 1e9;
            judged.delays.push(left - a);
            judged.worst = judged.worst.max(left - (finish + theta - at_rate - on_link));
        }
        judged.delays.sort_by(f64::total_cmp);
        judged
    }
}
