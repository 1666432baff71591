//! Virtual interfaces for tests, and hosts on both sides of a bridge. The interfaces are removed at the end.
//!
//! The tests need root on Linux and `ip` (iproute2). Otherwise each test prints the reason and is skipped, or
//! fails if `CI` is set.

#![allow(dead_code, reason = "no test uses all items")]

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use giveway_live::Build;
use giveway_live::bridge::{Bridge, Ended};
use giveway_live::clock::Clock;
use giveway_live::direction::Parts;
use giveway_live::{DirectionSetup, LinkEmulation, headers, packet};
use giveway_qdisc::{LinkContext, PortId, Rate, Streams, Time};

/// Two pairs of virtual interfaces. The bridge is between `a1` and `b0`; senders and receivers are at `a0`
/// and `b1`.
pub struct Bed {
    tag: String,
}

impl Bed {
    /// Creates the interfaces. Returns `None` if the test cannot run, and prints the reason.
    pub fn build(name: &str) -> Option<Bed> {
        if let Err(reason) = possible() {
            assert!(std::env::var_os("CI").is_none(), "these tests must run if CI is set, but {reason}");
            eprintln!("skipped: {reason}");
            return None;
        }
        // Tests of one program may choose the same name. Names of interfaces have at most 15 bytes.
        static BEDS: AtomicU32 = AtomicU32::new(0);
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let tag = format!("gt{:x}{number}{name}", std::process::id() & 0xffff);
        let bed = Bed { tag };
        bed.pair("a0", "a1");
        bed.pair("b0", "b1");
        Some(bed)
    }

    /// Creates a pair of joined interfaces, and brings them up.
    pub fn pair(&self, a: &str, b: &str) {
        ip(&["link", "add", &self.name(a), "type", "veth", "peer", "name", &self.name(b)]);
        for end in [a, b] {
            let name = self.name(end);
            let disable = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            std::fs::write(disable, "1").expect("the interface was just created");
            ip(&["link", "set", &name, "up"]);
        }
    }

    pub fn name(&self, end: &str) -> String {
        format!("{}{end}", self.tag)
    }

    pub fn bridge(&self, spec: &str, rate: Rate, emulation: LinkEmulation) -> Bridge {
        let spec: giveway_disciplines::Spec = spec.parse().expect("the spec is valid");
        self.bridge_of(rate, emulation, |name| {
            let (spec, streams) = (spec.clone(), Streams::new(1).within(name));
            Box::new(move |rate| {
                spec.build(&LinkContext::new(rate, streams.clone())).expect("the discipline can be built")
            })
        })
    }

    /// A bridge whose disciplines are built by functions that `build` returns for each direction.
    pub fn bridge_of(
        &self,
        rate: Rate,
        emulation: LinkEmulation,
        build: impl Fn(&'static str) -> Build,
    ) -> Bridge {
        let open =
            |end: &str| packet::open(&self.name(end), None).expect("root may open an existing interface");
        self.bridge_between((open("a1"), open("b0")), rate, emulation, build)
    }

    /// A bridge like [`Bed::bridge`] whose link varies from a time of the monotonic clock on, in nanoseconds.
    pub fn varying(&self, spec: &'static str, emulation: LinkEmulation, start_ns: u64) -> Bridge {
        let open =
            |end: &str| packet::open(&self.name(end), None).expect("root may open an existing interface");
        let mean = emulation.impairments.rate.as_ref().map_or(1_000_000, |profile| profile.mean());
        let spec: giveway_disciplines::Spec = spec.parse().expect("the spec is valid");
        let build = |_| -> Build {
            let spec = spec.clone();
            Box::new(move |rate| {
                spec.build(&LinkContext::new(rate, Streams::new(1))).expect("the discipline can be built")
            })
        };
        let (ends, rate) = ((open("a1"), open("b0")), Rate::bit(mean));
        self.bridge_from(ends, rate, emulation, build, Some(start_ns))
    }

    /// A bridge between open interfaces, with disciplines like [`Bed::bridge_of`].
    pub fn bridge_between(
        &self,
        (a, b): (giveway_live::Ends, giveway_live::Ends),
        rate: Rate,
        emulation: LinkEmulation,
        build: impl Fn(&'static str) -> Build,
    ) -> Bridge {
        self.bridge_from((a, b), rate, emulation, build, None)
    }

    fn bridge_from(
        &self,
        (a, b): (giveway_live::Ends, giveway_live::Ends),
        rate: Rate,
        emulation: LinkEmulation,
        build: impl Fn(&'static str) -> Build,
        start_ns: Option<u64>,
    ) -> Bridge {
        let ethernet = a.ethernet;
        let clock = Clock::start();
        let directions = DirectionSetup::both(a, b, |name| Parts {
            id: PortId(0),
            rate,
            build: build(name),
            emulation: emulation.clone(),
            start: start_ns.map_or(Time::ZERO, |ns| clock.of_monotonic(ns)),
            counting: headers::Counting { overhead: 14, mpu: 0 },
            ethernet,
            fragments: giveway_live::fragments::Settings::none(),
            longest_in: 1518,
            longest_out: 1518,
            buffers: 16_384,
            streams: Streams::new(1).within(name),
            xor_mod: None,
            reserved_flows: None,
            probe: None,
            tap: None,
            clock,
        });
        Bridge::start(directions, true).expect("threads can be started")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for end in ["a0", "b0"] {
            let _ = Command::new("ip").args(["link", "del", &self.name(end)]).stderr(Stdio::null()).status();
            // Removing the namespace of a host removes its interfaces.
            let _ = Command::new("ip").args(["netns", "del", &self.name(end)]).stderr(Stdio::null()).status();
        }
    }
}

pub fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().expect("ip is installed");
    assert!(done.success(), "ip {}", arguments.join(" "));
}

/// Succeeds if these tests can run. The checks run once per process.
fn possible() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(check).clone()
}

fn check() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("root is required: sudo -E cargo test -p giveway-live".to_owned());
    }
    let there = Command::new("ip").arg("-V").stdout(Stdio::null()).status();
    if there.is_err() {
        return Err("ip is not installed: apt-get install iproute2".to_owned());
    }
    let probe = format!("gtp{:x}", std::process::id() & 0xffff);
    let created =
        Command::new("ip").args(["link", "add", &probe, "type", "veth"]).stderr(Stdio::null()).status();
    let created = created.is_ok_and(|status| status.success());
    let _ = Command::new("ip").args(["link", "del", &probe]).stderr(Stdio::null()).status();
    if created { Ok(()) } else { Err("virtual interfaces cannot be created".to_owned()) }
}

/// A host at an end of the bed. It uses the packet sockets of this crate.
pub struct Host {
    pub ends: giveway_live::Ends,
}

impl Host {
    pub fn at(bed: &Bed, end: &str) -> Host {
        Host {
            ends: packet::open(&bed.name(end), Some(16_384)).expect("root may open an existing interface"),
        }
    }

    pub fn send(&mut self, frames: &[Vec<u8>]) {
        let mut all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        while !all.is_empty() {
            let sent = self.ends.sender.send(&all[..all.len().min(64)]).expect("the interface is up");
            all.drain(..sent);
        }
    }

    /// Receives frames until there are `enough`, or for the duration `within`.
    pub fn receive(&mut self, enough: usize, within: Duration) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        let mut left = within.as_millis() as u64 / 2;
        while got.len() < enough && left > 0 {
            let taken = self.ends.receiver.receive(1024, &mut |arrival| {
                let mut whole = arrival.bytes.to_vec();
                if let Some(tag) = arrival.vlan {
                    whole.splice(12..12, tag);
                }
                got.push(whole);
            });
            if taken.expect("the interface can be read") == 0 {
                nap(Duration::from_millis(2));
                left -= 1;
            }
        }
        got
    }
}

#[expect(clippy::disallowed_methods, reason = "real interfaces have their own time")]
pub fn nap(span: Duration) {
    thread::sleep(span);
}

/// A frame with addresses that no interface has. Its content depends on `number`.
pub fn frame(kind: u16, number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(2_654_435_761).max(1);
    while bytes.len() < length {
        // Xorshift, so that a changed byte is detected.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.push(state as u8);
    }
    bytes
}

pub fn no_loss(ended: &[Ended]) {
    for ended in ended {
        let losses = ended.status.losses;
        assert_eq!(
            (losses.ring, losses.no_buffer, losses.unsent, losses.too_long),
            (0, 0, 0, 0),
            "{losses:?}"
        );
        assert_eq!(ended.status.plain, None);
    }
}

pub const NONE: fn() -> LinkEmulation = LinkEmulation::none;
