//! Live frames of any bytes, at any time, through a direction of a bridge without its devices: nothing is lost that is
//! not counted, nothing stays behind, and each packet is charged as long as it is.
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

/// What may stand between the two interfaces. The first are cheap; all that change packets or keep state about flows
/// that are not flows of frames are here.
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

/// Frames in the pool.
const ROOMS: u32 = 48;
/// The longest frame, in bytes.
const LONGEST: usize = 1518;
/// The most events of an input.
const EVENTS: usize = 200;

/// Three bytes are settings, the rest is events.
pub fn run(input: &[u8]) {
    let Some(([spec, flags, way], events)) = input.split_first_chunk::<3>() else { return };
    let counting =
        Counting { overhead: if flags & 1 == 0 { 0 } else { 14 }, mpu: if flags & 2 == 0 { 0 } else { 64 } };
    let ethernet = way & 3 != 3;
    let share = if way & 4 == 0 { 0.0 } else { 0.25 };
    let emulation = LinkEmulation {
        delay: if way & 8 == 0 { Span::ZERO } else { Span::ms(2) },
        jitter: if way & 16 == 0 { Span::ZERO } else { Span::ms(1) },
        loss: Share::new(share).expect("it is a share"),
    };
    let sizes = [Size::new(68).expect("it is the least"), Size::PUBLISHED[0], Size::PUBLISHED[1]];
    let cut = (flags & 4 != 0).then(|| sizes[usize::from(flags >> 3 & 3) % 3]);
    let link = if ethernet { LinkType::ETHERNET } else { LinkType::RAW };
    let watch = Watch { counting, link, left: Arc::default(), last: Arc::default() };
    let core = Core::new(Parts {
        id: PortId(0),
        rate: Rate::mbit(8),
        build: build(*spec),
        emulation,
        counting,
        ethernet,
        fragments: fragments::Settings { cut, join: flags & 32 != 0, ether_type: ETHER_TYPE },
        longest_in: LONGEST,
        longest_out: LONGEST,
        buffers: ROOMS,
        streams: Streams::new(1),
        xor_mod: (flags & 64 != 0).then(|| 31.try_into().expect("it is not zero")),
        reserved_flows: None,
        probe: Some(Box::new(watch.clone())),
        tap: Some(Box::new(watch)),
        clock: Clock::start(),
    });
    let mut bridge =
        Bridge { core, now: Time::ms(1), out: Out { takes: 64, ..Out::default() }, came: 0, own: 0 };
    Events(events).take(EVENTS).for_each(|event| bridge.event(&event));
    bridge.close();
}

fn build(choice: u8) -> Build {
    let spec: Spec = SPECS[usize::from(choice) % SPECS.len()].parse().expect("it is in the registry");
    Box::new(move |rate| {
        spec.build(&LinkContext::new(rate, Streams::new(1))).expect("it is right for any rate")
    })
}

/// A direction and what happened to it.
struct Bridge {
    core: Core,
    now: Time,
    out: Out,
    /// Frames that came.
    came: u64,
    /// Frames of our own.
    own: u64,
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
            Event::Order { what, value } => self.order(what, value),
            Event::Out(value) => {
                self.out.takes = usize::from(value & 63);
                self.out.refuses = value & 128 != 0;
            }
        }
    }

    fn frame(&mut self, bytes: &[u8], flags: u8, late_us: u16) {
        self.came += 1;
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

    fn order(&mut self, what: u8, value: u8) {
        let share = Share::new(f64::from(value & 7) / 8.0).expect("it is a share");
        let order = match what % 6 {
            0 => Command::Rate(Rate::kbit(8 << (value & 15))),
            1 => Command::Qdisc(build(value)),
            2 => Command::Emulation(LinkEmulation {
                delay: Span::ms(u64::from(value >> 4)),
                jitter: Span::ms(u64::from(value >> 6)),
                loss: share,
            }),
            3 => Command::Cut((value & 1 == 0).then(|| Size::PUBLISHED[usize::from(value >> 1 & 1)])),
            4 => Command::Join(value & 1 == 0),
            _ => {
                self.own += 1;
                Command::Frame(vec![value; usize::from(value) * 8])
            }
        };
        self.core.apply(order);
    }

    /// Everything leaves, and the numbers add up.
    fn close(mut self) {
        self.out = Out { takes: 64, refuses: false, ..self.out };
        let mut left = 100_000;
        while let Some(next) = self.core.next() {
            // A frame of our own enters at the time of the real clock, which may be ahead.
            self.now = self.now.max(next);
            self.core.advance(self.now);
            self.core.flush(self.now, &mut self.out);
            left -= 1;
            assert!(left > 0, "it cannot be drained: it holds {}", self.core.backlog());
        }
        assert_eq!(self.core.backlog(), 0, "the queue is empty and holds packets");
        let mut status = Status::default();
        self.core.snapshot(self.now, &mut status);
        let (books, losses) = (status.counters, status.losses);
        assert_eq!(status.backlog, Backlog::ZERO);
        assert_eq!(status.in_flight, 0);
        assert_eq!(status.buffers[0], status.buffers[2], "every room is given back");
        assert_eq!(books.arrived, books.sent.plus(books.dropped), "what came in left or was dropped");
        assert_eq!(
            books.sent.packets,
            self.out.sent + losses.unsent + losses.emulated,
            "what left went out or was lost"
        );
        assert_eq!(status.dropped.total(), books.dropped, "every drop has a reason");

        let fragments = status.fragments;
        let lost: u64 = fragments.joined.lost.iter().sum();
        assert_eq!(fragments.joined.fragments, fragments.joined.joined + lost + fragments.waiting);
        // A frame that is cut enters as its pieces; a fragment that is joined does not enter by itself.
        let whole = self.came + self.own + fragments.joined.packets - fragments.joined.fragments;
        let entered = books.arrived.packets + fragments.spared + fragments.cut - fragments.pieces;
        assert_eq!(whole, entered + losses.too_long + losses.no_buffer, "every frame is accounted for");
        let mut status = Status::default();
        let _ = self.core.finish(&mut status);
    }
}

/// A sender that takes what it is told to take.
#[derive(Default)]
struct Out {
    takes: usize,
    refuses: bool,
    sent: u64,
}

impl Sender for Out {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let sent = self.takes.min(frames.len());
        self.sent += sent as u64;
        match self.refuses && sent < frames.len() {
            true => Err(SendError { sent, error: std::io::ErrorKind::NetworkDown.into() }),
            false => Ok(sent),
        }
    }
    fn fd(&self) -> RawFd {
        -1
    }
}

/// Checks what each packet is charged: its probe hears the charge, and its tap sees the frame right afterwards.
#[derive(Clone)]
struct Watch {
    counting: Counting,
    link: LinkType,
    left: Arc<Mutex<Option<(Meta, Frame)>>>,
    last: Arc<Mutex<Time>>,
}

impl Watch {
    /// Whoever records counts on it that time does not go back.
    fn hear(&self, now: Time) {
        let mut last = self.last.lock().expect("nobody panicked");
        assert!(*last <= now, "{now} after {last}");
        *last = now;
    }
}

impl Probe<Frame> for Watch {
    fn arrived(&mut self, _: PortId, _: &Meta, now: Time) {
        self.hear(now);
    }
    fn dropped(&mut self, _: PortId, _: &Meta, _: &Frame, _: DropReason, now: Time) {
        self.hear(now);
    }
    fn sample(&mut self, _: PortId, _: Backlog, _: &FlowTable, _: &[(&'static str, f64)], now: Time) {
        self.hear(now);
    }
    fn sent(&mut self, _: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.hear(now);
        let before = self.left.lock().expect("nobody panicked").replace((*meta, *frame));
        assert!(before.is_none(), "the tap saw nothing of {before:?}");
    }
}

impl Tap for Watch {
    fn frame(&mut self, bytes: &[u8], fate: Outcome, _: u64) {
        let Outcome::Sent { .. } = fate else { return };
        let left = self.left.lock().expect("nobody panicked").take();
        let (meta, frame) = left.expect("the probe was told first");
        assert_eq!(frame.length as usize, bytes.len());
        // Only a direction knows that a frame is one of its fragments.
        let behind = match frame.group {
            0 => giveway_capture::parse_headers(self.link, bytes, frame.length).behind_link,
            _ => frame.length - u32::from(frame.ip_at),
        };
        let charge = behind.saturating_add(self.counting.overhead).max(self.counting.mpu);
        assert_eq!(meta.bytes, charge, "a frame with {behind} bytes behind its link header: {frame:?}");
    }
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    /// A frame comes: what is said about it, and how long it lay in the ring.
    Frame { bytes: &'a [u8], flags: u8, late_us: u16 },
    /// Time passes, and the thread does its round.
    Wait(Span),
    /// The operator changes something.
    Order { what: u8, value: u8 },
    /// How much the sender takes from now on.
    Out(u8),
}

/// Events from bytes: one that says which, three of its own, and the bytes of a frame.
struct Events<'a>(&'a [u8]);

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let ([kind, a, b, c], rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(match kind & 7 {
            0..=3 => {
                // Longer than the longest frame, too.
                let length = usize::from(u16::from_le_bytes([*b, *c])) % (LONGEST + 64);
                let (bytes, rest) = rest.split_at(length.min(rest.len()));
                self.0 = rest;
                Event::Frame { bytes, flags: *a, late_us: u16::from(kind >> 3) * 997 }
            }
            4 | 5 => Event::Wait(Span::us(u64::from(u16::from_le_bytes([*a, *b])) << (c & 7))),
            6 => Event::Order { what: *a, value: *b },
            _ => Event::Out(*a),
        })
    }
}
