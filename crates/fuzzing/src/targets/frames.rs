//! Any frames at any time, through one direction of a bridge without devices: each loss is counted, no frame
//! remains at the end, and each packet is counted with its length.
//!
//! The first bytes are settings; the rest is a list of events ([`Events`]).

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use giveway_capture::LinkType;
use giveway_disciplines::Spec;
use giveway_live::device::SendError;
use giveway_live::direction::{Core, Parts};
use giveway_live::headers::Counting;
use giveway_live::{
    Arrival, Build, Command, Frame, LinkEmulation, Outcome, Sender, Status, Tap, clock::Clock, fragments,
};
use giveway_qdisc::{
    Backlog, DropReason, FlowTable, LinkContext, Meta, PortId, Probe, Rate, Share, Span, Streams, Time,
};
use giveway_wire::fragment::{ETHER_TYPE, Size};

/// Disciplines of the bridge. The first are fast. All that change packets, or whose flows differ from the
/// frames' flows, are included.
const SPECS: [&str; 12] = [
    "fifo limit 20p",
    "fifo limit 9000b",
    "fq_codel limit 30p",
    "codel limit 20p ecn",
    "drr limit 30p",
    "efd limit 30p",
    "prio",
    "red limit 30p ecn",
    "trr limit 30p",
    "sfq limit 30p",
    "csfq limit 30p",
    "tbf rate 1mbit burst 5kb limit 30p",
];

/// Number of buffers of the pool.
const BUFFERS: u32 = 48;
/// The longest frame, in bytes.
const LONGEST: usize = 1518;
/// Largest number of events of an input.
const EVENTS: usize = 200;

/// Input: three bytes of settings, then events.
pub fn run(input: &[u8]) {
    let Some(([spec, flags, link_flags], events)) = input.split_first_chunk::<3>() else { return };
    let counting =
        Counting { overhead: if flags & 1 == 0 { 0 } else { 14 }, mpu: if flags & 2 == 0 { 0 } else { 64 } };
    let ethernet = link_flags & 3 != 3;
    let share = if link_flags & 4 == 0 { 0.0 } else { 0.25 };
    let emulation = LinkEmulation {
        delay: if link_flags & 8 == 0 { Span::ZERO } else { Span::ms(2) },
        jitter: if link_flags & 16 == 0 { Span::ZERO } else { Span::ms(1) },
        loss: Share::new(share).expect("the number is between 0 and 1"),
        ..LinkEmulation::none()
    };
    let sizes = [Size::new(68).expect("68 is the minimum"), Size::PUBLISHED[0], Size::PUBLISHED[1]];
    let cut = (flags & 4 != 0).then(|| sizes[usize::from(flags >> 3 & 3) % 3]);
    let link = if ethernet { LinkType::ETHERNET } else { LinkType::RAW };
    let watch = Watch { counting, link, left: Arc::default(), last: Arc::default() };
    let core = Core::new(Parts {
        id: PortId(0),
        rate: Rate::mbit(8),
        build: build(*spec),
        emulation,
        start: Time::ZERO,
        counting,
        ethernet,
        fragments: fragments::Settings { cut, join: flags & 32 != 0, ether_type: ETHER_TYPE },
        longest_in: LONGEST,
        longest_out: LONGEST,
        buffers: BUFFERS,
        streams: Streams::new(1),
        xor_mod: (flags & 64 != 0).then(|| 31.try_into().expect("31 is not zero")),
        reserved_flows: None,
        probe: Some(Box::new(watch.clone())),
        tap: Some(Box::new(watch)),
        clock: Clock::start(),
    });
    let mut bridge = Bridge {
        core,
        now: Time::ms(1),
        out: Out { accepts: 64, ..Out::default() },
        received: 0,
        injected: 0,
    };
    Events(events).take(EVENTS).for_each(|event| bridge.event(&event));
    bridge.close();
}

fn build(choice: u8) -> Build {
    let spec: Spec =
        SPECS[usize::from(choice) % SPECS.len()].parse().expect("the discipline is in the registry");
    Box::new(move |rate| {
        spec.build(&LinkContext::new(rate, Streams::new(1))).expect("the parameters are valid at any rate")
    })
}

/// One direction of a bridge, and counters to compare with its own.
struct Bridge {
    core: Core,
    now: Time,
    out: Out,
    /// Number of frames from the interface.
    received: u64,
    /// Number of frames that were injected with [`Command::Frame`].
    injected: u64,
}

impl Bridge {
    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Frame { bytes, flags, late_us } => self.frame(bytes, flags, late_us),
            Event::Wait(span) => {
                self.now += span;
                self.core.catch_up(self.now);
                self.core.advance(self.now);
                self.core.flush(self.now, &mut self.out);
                self.core.sample(self.now);
            }
            Event::Command { kind, value } => self.command(kind, value),
            Event::Out(value) => {
                self.out.accepts = usize::from(value & 63);
                self.out.fails = value & 128 != 0;
            }
        }
    }

    fn frame(&mut self, bytes: &[u8], flags: u8, late_us: u16) {
        self.received += 1;
        let late = Span::us(u64::from(late_us));
        let then = Time::ZERO + self.now.since(Time::ZERO).saturating_sub(late);
        let wall_ns = match flags & 3 {
            0 => 0,
            3 if flags & 4 != 0 => u64::MAX,
            _ => self.core.clock().to_wall_ns(then),
        };
        let arrival = Arrival {
            bytes,
            vlan: (flags & 8 != 0).then_some([0x81, 0, flags, 7]),
            wall_ns,
            length: bytes.len() as u32 + u32::from(flags & 16 != 0),
            checksum_missing: flags & 32 != 0,
        };
        self.core.arrive(&arrival, self.now);
    }

    fn command(&mut self, kind: u8, value: u8) {
        let share = Share::new(f64::from(value & 7) / 8.0).expect("the number is between 0 and 1");
        let command = match kind % 6 {
            0 => Command::Rate(Rate::kbit(8 << (value & 15))),
            1 => Command::Qdisc(build(value)),
            2 => Command::Emulation(Box::new(LinkEmulation {
                delay: Span::ms(u64::from(value >> 4)),
                jitter: Span::ms(u64::from(value >> 6)),
                loss: share,
                ..LinkEmulation::none()
            })),
            3 => Command::Cut((value & 1 == 0).then(|| Size::PUBLISHED[usize::from(value >> 1 & 1)])),
            4 => Command::Join(value & 1 == 0),
            _ => {
                self.injected += 1;
                Command::Frame(vec![value; usize::from(value) * 8])
            }
        };
        self.core.apply(command);
    }

    /// Sends all frames, and checks that the counters are consistent.
    fn close(mut self) {
        self.out = Out { accepts: 64, fails: false, ..self.out };
        let mut left = 100_000;
        while let Some(next) = self.core.next() {
            // An injected frame enters at the time of the real clock, which may be later.
            self.now = self.now.max(next);
            self.core.advance(self.now);
            self.core.flush(self.now, &mut self.out);
            left -= 1;
            assert!(left > 0, "the direction still has {} frames", self.core.backlog());
        }
        assert_eq!(self.core.backlog(), 0, "the queue has a backlog but nothing to send");
        let mut status = Status::default();
        self.core.snapshot(self.now, &mut status);
        let (counters, losses) = (status.counters, status.losses);
        assert_eq!(status.backlog, Backlog::ZERO);
        assert_eq!(status.in_flight, 0);
        assert_eq!(status.buffers[0], status.buffers[2], "every buffer is free again");
        assert_eq!(counters.arrived, counters.sent.plus(counters.dropped), "each packet was sent or dropped");
        assert_eq!(
            counters.sent.packets,
            self.out.sent + losses.unsent + losses.emulated,
            "each sent frame left the interface or was lost"
        );
        assert_eq!(status.dropped.total(), counters.dropped, "every drop has a reason");

        let fragments = status.fragments;
        let lost: u64 = fragments.joined.lost.iter().sum();
        assert_eq!(fragments.joined.fragments, fragments.joined.joined + lost + fragments.waiting);
        // A frame that is cut enters the queue as several pieces; a fragment that is joined does not enter.
        let whole = self.received + self.injected + fragments.joined.packets - fragments.joined.fragments;
        let entered = counters.arrived.packets + fragments.spared + fragments.cut - fragments.pieces;
        assert_eq!(whole, entered + losses.too_long + losses.no_buffer, "every frame is accounted for");
        let mut status = Status::default();
        let _ = self.core.finish(&mut status);
    }
}

/// A sender that accepts a limited number of frames per call.
#[derive(Default)]
struct Out {
    /// Largest number of frames that a call accepts.
    accepts: usize,
    /// True if a call fails after these frames, instead of reporting their number.
    fails: bool,
    /// Number of frames sent.
    sent: u64,
}

impl Sender for Out {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let sent = self.accepts.min(frames.len());
        self.sent += sent as u64;
        match self.fails && sent < frames.len() {
            true => Err(SendError { sent, error: std::io::ErrorKind::NetworkDown.into() }),
            false => Ok(sent),
        }
    }
    fn fd(&self) -> RawFd {
        -1
    }
}

/// Checks the length with which each packet is counted: the probe gets the counted length, and the tap gets
/// the frame directly afterwards.
#[derive(Clone)]
struct Watch {
    counting: Counting,
    link: LinkType,
    left: Arc<Mutex<Option<(Meta, Frame)>>>,
    last: Arc<Mutex<Time>>,
}

impl Watch {
    /// Checks that time does not go backwards, since recorders depend on it.
    fn check_time(&self, now: Time) {
        let mut last = self.last.lock().expect("no thread panics while it holds the lock");
        assert!(*last <= now, "{now} after {last}");
        *last = now;
    }
}

impl Probe<Frame> for Watch {
    fn on_arrival(&mut self, _: PortId, _: &Meta, now: Time) {
        self.check_time(now);
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, _: &Frame, _: DropReason, now: Time) {
        self.check_time(now);
    }
    fn on_sample(&mut self, _: PortId, _: Backlog, _: &FlowTable, _: &[(&'static str, f64)], now: Time) {
        self.check_time(now);
    }
    fn on_transmission(&mut self, _: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.check_time(now);
        let before =
            self.left.lock().expect("no thread panics while it holds the lock").replace((*meta, *frame));
        assert!(before.is_none(), "the tap did not get {before:?}");
    }
}

impl Tap for Watch {
    fn frame(&mut self, bytes: &[u8], outcome: Outcome, _: u64) {
        let Outcome::Sent { .. } = outcome else { return };
        let left = self.left.lock().expect("no thread panics while it holds the lock").take();
        let (meta, frame) = left.expect("the probe is called before the tap");
        assert_eq!(frame.length as usize, bytes.len());
        // The header parser does not recognise fragments of the bridge; only the direction knows them.
        let after_link = match frame.group {
            0 => giveway_capture::parse_headers(self.link, bytes, frame.length).behind_link,
            _ => frame.length - u32::from(frame.ip_at),
        };
        let charge = after_link.saturating_add(self.counting.overhead).max(self.counting.mpu);
        assert_eq!(meta.bytes, charge, "a frame with {after_link} bytes after its link header: {frame:?}");
    }
}

/// An event of the input.
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    /// A frame arrives, with flags of its metadata, and its time in the receive ring in microseconds.
    Frame { bytes: &'a [u8], flags: u8, late_us: u16 },
    /// Time passes, and the thread runs its loop once.
    Wait(Span),
    /// The operator changes a setting.
    Command { kind: u8, value: u8 },
    /// Sets the number of frames that the sender accepts, and whether it then fails.
    Out(u8),
}

/// Parses events: one byte for the kind, three for its parameters, and the bytes of a frame.
struct Events<'a>(&'a [u8]);

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let ([kind, a, b, c], rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(match kind & 7 {
            0..=3 => {
                // Also longer than the longest frame.
                let length = usize::from(u16::from_le_bytes([*b, *c])) % (LONGEST + 64);
                let (bytes, rest) = rest.split_at(length.min(rest.len()));
                self.0 = rest;
                Event::Frame { bytes, flags: *a, late_us: u16::from(kind >> 3) * 997 }
            }
            4 | 5 => Event::Wait(Span::us(u64::from(u16::from_le_bytes([*a, *b])) << (c & 7))),
            6 => Event::Command { kind: *a, value: *b },
            _ => Event::Out(*a),
        })
    }
}
