//! Streams of packets through `giveway live`: the program between interfaces of a test, senders, and
//! observers of the packets that enter and leave it.

#![allow(dead_code, reason = "each test uses a part of this module")]

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
pub use crate::running::{NET, giveway, is_ready};

/// The number in an environment variable, or `otherwise`.
pub fn env_number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A running `giveway live` with a control socket. It is killed when this is dropped.
pub struct Live {
    child: Child,
    /// Path of the control socket.
    pub socket: String,
}

impl Live {
    /// Starts the program, and returns once frames pass.
    pub fn start(bed: &Bed, dir: &Path, arguments: &[&str]) -> Live {
        let (ready, socket) = (dir.join("ready"), dir.join("s").display().to_string());
        let mut child = Command::new(NET)
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

    /// The state of the reservations of the forward direction.
    pub fn shown(&self) -> Value {
        let (_, text, errors) = giveway(&["control", &self.socket, "show"]);
        let shown: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        shown["directions"][0]["reservations"].clone()
    }

    /// The flows with a reservation.
    pub fn listed(&self) -> Vec<String> {
        let (_, text, errors) = giveway(&["control", &self.socket, "reservations"]);
        let list: Value =
            serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text} {errors}"));
        let flows = list.as_array().expect("it is a list").iter();
        flows.map(|each| each["flow"].as_str().expect("flows are text").to_owned()).collect()
    }

    /// Ends the program. Returns the final statistics of the forward direction.
    pub fn end(mut self) -> Value {
        signal(&self.child, "-TERM");
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it is text");
        self.child.stderr.take().expect("it is piped").read_to_string(&mut errors).expect("it is text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{errors}");
        let statistics: Value = serde_json::from_str(&out).expect("it is JSON");
        statistics["directions"][0].clone()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A number in JSON.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// An upper bound of the delay that the machine adds to a packet, in seconds: the largest lateness of a
/// frame, and the transmission time that was lost because the thread was not running. A packet can meet
/// several stalls, so the bound includes all of them.
pub fn lateness(statistics: &Value) -> f64 {
    number(&statistics["lateness_s"]["max"]) + number(&statistics["stalled_s"])
}

/// Sends a signal to a process, for example "-TERM".
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// A flow of datagrams, each of which contains its number.
#[derive(Clone, Copy)]
pub struct Stream {
    /// Source port, which identifies the flow.
    pub port: u16,
    /// IP length of a packet, in bytes.
    pub bytes: u16,
    /// Reserved rate; zero for best effort.
    pub rate: Rate,
}

/// Bytes that a link with `--overhead 14` counts for a packet in addition to its IP length.
pub const OVERHEAD: u16 = 14;

impl Stream {
    /// Replaces `frame` by the datagram with this number.
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

    /// Port and number of a frame of these tests; `None` for other frames.
    pub fn read(frame: &[u8]) -> Option<(u16, u32)> {
        let ours =
            frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(36..38) == Some(&6000u16.to_be_bytes());
        let port = frame.get(34..36)?.first_chunk()?;
        let number = frame.get(42..46)?.first_chunk()?;
        ours.then_some((u16::from_be_bytes(*port), u32::from_be_bytes(*number)))
    }

    /// Length of a packet as the link counts it, in bytes.
    pub fn counted(&self) -> u64 {
        u64::from(self.bytes + OVERHEAD)
    }
}

/// Sends a stream at its rate, never faster, until `stop` is set. Returns the number of packets.
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
            // Lost time is not made up for, since two packets at once would be a burst.
            next = now + gap_ns;
        }
        number
    })
}

/// Sends one packet of each stream in turn, `at_once` packets at once, until `stop` is set. All streams
/// together have this rate. Returns the number of packets.
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

/// The times at which the packets of a stream enter and leave the router, by the kernel's timestamps.
pub struct Watched {
    /// The stream.
    pub stream: Stream,
    /// Arrival of each packet by its number, as Unix time in nanoseconds; zero if it has not arrived.
    arrivals: Vec<u64>,
    /// Departure of each packet by its number, likewise.
    departures: Vec<u64>,
}

/// Observers of the frames before and behind the router.
pub struct Taps {
    before: Host,
    behind: Host,
    /// Port, number and time of packets behind the router whose arrivals are not recorded yet.
    departed: Vec<(u16, u32, u64)>,
}

impl Taps {
    /// Opens both observers.
    pub fn open(bed: &Bed) -> Taps {
        Taps { before: Host::at(bed, "a1"), behind: Host::at(bed, "b1"), departed: Vec::new() }
    }

    /// Records the times of packets that have passed. Returns the number of packets of other streams that
    /// left.
    pub fn record(&mut self, watched: &mut [Watched]) -> u64 {
        let mut others = 0;
        let departed = &mut self.departed;
        // The frames behind the router are read first: they have been before the router already.
        let _ = self.behind.ends.receiver.receive(1 << 16, &mut |arrival| {
            departed
                .extend(Stream::read(arrival.bytes).map(|(port, number)| (port, number, arrival.wall_ns)));
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
                note(&mut of.arrivals, number, arrival.wall_ns);
            }
        });
        for (port, number, ns) in self.departed.drain(..) {
            match watched.iter_mut().find(|of| of.stream.port == port) {
                Some(of) => note(&mut of.departures, number, ns),
                None => others += 1,
            }
        }
        others
    }

    /// Calls [`record`](Taps::record) for this time.
    pub fn watch(&mut self, watched: &mut [Watched], span: Duration) -> u64 {
        let end = monotonic_ns() + span.as_nanos() as u64;
        let mut others = 0;
        while monotonic_ns() < end {
            others += self.record(watched);
            nap(Duration::from_millis(2));
        }
        others
    }

    /// Number of frames that the observers missed.
    pub fn missed(&mut self) -> u64 {
        self.before.ends.receiver.missed() + self.behind.ends.receiver.missed()
    }
}

/// Statistics of the packets of a stream that arrived in a time interval.
pub struct Judged {
    /// Number of packets that arrived.
    pub packets: usize,
    /// Number of these that did not leave.
    pub lost: usize,
    /// Delays of the others until the link starts to send them, in seconds, sorted.
    pub delays: Vec<f64>,
    /// Largest delay beyond the deadline of a packet, in seconds; negative if all packets met their
    /// deadlines.
    pub worst: f64,
}

impl Judged {
    /// The delay that this share of the packets does not exceed; `None` if no packet left.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.delays.len().checked_sub(1)?;
        Some(self.delays[((self.delays.len() as f64 * share) as usize).min(last)])
    }

    /// The mean delay; `None` if no packet left.
    pub fn mean(&self) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delays.iter().sum::<f64>() / self.delays.len() as f64)
    }
}

/// The interval of all times.
pub const EVER: Range<u64> = 0..u64::MAX;

impl Watched {
    /// An observation of a stream without packets.
    pub fn of(stream: Stream) -> Watched {
        Watched { stream, arrivals: Vec::new(), departures: Vec::new() }
    }

    /// Departure of a packet; `None` if it has not left.
    fn left(&self, number: usize) -> Option<u64> {
        self.departures.get(number).copied().filter(|left| *left > 0)
    }

    /// Number of packets that left in a time interval.
    pub fn left_within(&self, window: &Range<u64>) -> u64 {
        self.departures.iter().filter(|left| window.contains(left)).count() as u64
    }

    /// True if packets that arrived in the interval have not left.
    pub fn waits(&self, window: &Range<u64>) -> bool {
        let mut arrived = self.arrivals.iter().enumerate().filter(|(_, at)| window.contains(at));
        arrived.any(|(number, _)| self.left(number).is_none())
    }

    /// True if a packet that arrived after the interval has left.
    pub fn is_past(&self, window: &Range<u64>) -> bool {
        let mut later = self.arrivals.iter().enumerate().filter(|(_, at)| **at >= window.end);
        later.any(|(number, _)| self.left(number).is_some())
    }

    /// Statistics of the packets that arrived in the interval. If the latency of the router is Θ (`theta`, in
    /// seconds), packet k leaves by F_k + Θ - L/ρ, with F_k = max(a_k, F_(k-1)) + L/ρ. This deadline is for
    /// its last bit, and the router sends the frame L/r earlier, when the link starts to transmit it.
    pub fn judge(&self, theta: f64, link: Rate, window: &Range<u64>) -> Judged {
        let at_rate = self.stream.rate.time_for(self.stream.counted()).as_s();
        let on_link = link.time_for(self.stream.counted()).as_s();
        let mut finish = 0.0f64;
        let mut judged = Judged { packets: 0, lost: 0, delays: Vec::new(), worst: f64::NEG_INFINITY };
        let origin = self.arrivals.first().copied().unwrap_or(0);
        for (number, arrival) in self.arrivals.iter().enumerate() {
            let a = arrival.saturating_sub(origin) as f64 / 1e9;
            finish = finish.max(a) + at_rate;
            if !window.contains(arrival) {
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
