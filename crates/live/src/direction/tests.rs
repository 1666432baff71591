//! A direction without devices: frames by name, times by hand.

use std::cell::RefCell;
use std::rc::Rc;

use qdisc::Share;

use super::*;
use crate::clock::fake;
use crate::device::Refused;

#[path = "fragments/tests.rs"]
mod fragments;
#[path = "lengths/tests.rs"]
mod lengths;

/// What a sender was given, as text, and how much of it it takes.
#[derive(Default)]
struct Wire {
    sent: Vec<Vec<u8>>,
    takes: Option<usize>,
    refuses: bool,
}

#[derive(Clone, Default)]
struct Out(Rc<RefCell<Wire>>);

// Tests have one thread.
#[expect(unsafe_code, reason = "the trait wants Send, and this never leaves its thread")]
// SAFETY: no test moves it to another thread.
unsafe impl Send for Out {}

impl Sender for Out {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Refused> {
        let mut wire = self.0.borrow_mut();
        if wire.refuses {
            return Err(Refused { sent: 0, error: io::Error::from_raw_os_error(libc::ENETDOWN) });
        }
        let takes = wire.takes.unwrap_or(usize::MAX).min(frames.len());
        wire.sent.extend(frames[..takes].iter().map(|frame| frame.to_vec()));
        Ok(takes)
    }
    fn fd(&self) -> std::os::fd::RawFd {
        -1
    }
}

impl Out {
    /// The last bytes of what was sent: the names of the frames.
    fn names(&self) -> String {
        self.0.borrow().sent.iter().map(|frame| char::from(*frame.last().unwrap())).collect()
    }
}

fn build(spec: &'static str) -> Build {
    let spec: disciplines::Spec = spec.parse().unwrap();
    Box::new(move |rate| spec.build(&qdisc::Site::new(rate, Streams::new(1))).unwrap())
}

fn core(build: Build, rate: Rate, line: Settings) -> Core {
    Core::new(parts(build, rate, line))
}

fn parts(build: Build, rate: Rate, line: Settings) -> Parts {
    Parts {
        id: PortId(0),
        rate,
        build,
        line,
        counting: Counting { overhead: 0, mpu: 0 },
        ethernet: true,
        fragments: crate::fragments::Settings::none(),
        longest_in: 1518,
        longest_out: 1518,
        rooms: 64,
        streams: Streams::new(1),
        xor_mod: None,
        gate: None,
        probe: None,
        tap: None,
        clock: Clock::start(),
    }
}

/// A frame of 1,014 bytes of an ether type that nobody reads: 1,000 count. Its last byte is its name, its flow the other
/// letter.
fn frame(flow: u8, name: char) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, flow, 0x88, 0xb5];
    bytes.resize(1013, 0);
    bytes.push(name as u8);
    bytes
}

fn come(core: &mut Core, bytes: &[u8], at: Time, now: Time) {
    let wall_ns = core.clock().to_wall_ns(at);
    let length = bytes.len() as u32;
    core.arrive(&Arrival { bytes, vlan: None, wall_ns, length, checksum_missing: false }, now);
}

const RATE: Rate = Rate::mbit(8); // 1,000 bytes take a millisecond

/// The thread was away for 10 ms while five frames came, a millisecond apart. The link would have sent them meanwhile, one
/// after the other, and nobody waited.
#[test]
fn a_late_thread_gives_the_schedule_of_a_link_that_is_not_late() {
    let (mut core, mut out) = (core(build("fifo"), RATE, Settings::none()), Out::default());
    let now = Time::ms(110);
    core.catch_up(now);
    for (n, name) in "ABCDE".chars().enumerate() {
        come(&mut core, &frame(1, name), Time::ms(101 + n as u64), now);
    }
    core.advance(now);
    assert!(core.flush(now, &mut out));
    assert_eq!(out.names(), "ABCDE");
    core.tally().roll(Time::s(2));
    let mut status = Status::default();
    core.tell(Time::s(2), &mut status);
    assert_eq!(status.sojourn[0].max, Span::ZERO, "none waited: each came when the link was free");
    assert_eq!((status.books.sent.packets, status.stalls), (5, 0));
}

#[test]
fn frames_leave_when_the_link_is_free_and_not_before() {
    let (mut core, mut out) = (core(build("fifo"), RATE, Settings::none()), Out::default());
    for name in "ABC".chars() {
        come(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.flush(Time::ms(1), &mut out);
    assert_eq!((out.names().as_str(), core.next()), ("A", Some(Time::ms(2))));
    assert!(core.busy(Time::us(1500)));
    core.advance(Time::us(1999));
    core.flush(Time::us(1999), &mut out);
    assert_eq!(out.names(), "A");
    core.advance(Time::ms(2));
    core.flush(Time::ms(2), &mut out);
    assert_eq!((out.names().as_str(), core.holds()), ("AB", 1));
}

/// Remembers when the last thing happened that it was told of.
struct LastTime(Rc<RefCell<Time>>);

#[expect(unsafe_code, reason = "the trait wants Send, and this never leaves its thread")]
// SAFETY: no test moves it to another thread.
unsafe impl Send for LastTime {}

impl LastTime {
    fn hear(&self, now: Time) {
        let before = self.0.replace(now);
        assert!(before <= now, "{now} after {before}");
    }
}

impl Probe<Frame> for LastTime {
    fn arrived(&mut self, _: PortId, _: &Meta, now: Time) {
        self.hear(now);
    }
    fn sent(&mut self, _: PortId, _: &Meta, _: &Frame, now: Time) {
        self.hear(now);
    }
    fn sample(&mut self, _: PortId, _: Backlog, _: &[(&'static str, f64)], now: Time) {
        self.hear(now);
    }
}

/// A frame was stamped before the direction told its probe how it stands, and is read afterwards. A frame of our own comes
/// between the reading of the clock and such a sample.
#[test]
fn times_that_a_probe_hears_never_go_back() {
    let last = Rc::new(RefCell::new(Time::ZERO));
    let probe: Box<dyn Probe<Frame> + Send> = Box::new(LastTime(Rc::clone(&last)));
    let parts = Parts { probe: Some(probe), ..parts(build("fifo"), RATE, Settings::none()) };
    let mut core = Core::new(parts);
    core.sample(Time::ms(10));
    come(&mut core, &frame(1, 'A'), Time::ms(9), Time::ms(11));
    assert_eq!(*last.borrow(), Time::ms(10), "it came and left at once");
    let now = core.clock().now();
    core.obey(Order::Frame(frame(1, 'B')));
    core.sample(now);
    assert!(*last.borrow() > now);
}

/// Two seconds away with a full queue: no more than 20 ms of the link's time are made up for, 20 frames and the one
/// whose turn it is.
#[test]
fn a_thread_that_was_away_for_long_sends_no_burst() {
    let (mut core, mut out) = (core(build("fifo"), RATE, Settings::none()), Out::default());
    for _ in 0..60 {
        come(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    let now = Time::s(2);
    core.catch_up(now);
    core.advance(now);
    core.flush(now, &mut out);
    assert_eq!(out.0.borrow().sent.len(), 1 + 21);
    assert_eq!((core.tally().stalls, core.tally().stalled), (1, Span::ms(2000 - 20 - 2)));
}

#[test]
fn a_change_of_rate_and_discipline_loses_and_reorders_nothing() {
    let (mut core, mut out) = (core(build("fifo"), RATE, Settings::none()), Out::default());
    for name in "ABC".chars() {
        come(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.obey(Order::Qdisc(build("drr")));
    core.obey(Order::Rate(Rate::mbit(80)));
    for name in "DE".chars() {
        come(&mut core, &frame(1, name), Time::us(1100), Time::us(1100));
    }
    core.advance(Time::ms(3));
    core.flush(Time::ms(3), &mut out);
    assert_eq!(out.names(), "ABCDE");
    assert_eq!(core.tally().changes, 2);
}

#[test]
fn what_the_interface_does_not_take_now_is_sent_later_in_order() {
    let (mut core, mut out) = (core(build("fifo"), Rate::gbit(1000), Settings::none()), Out::default());
    for name in "ABC".chars() {
        come(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(2));
    out.0.borrow_mut().takes = Some(1);
    assert!(!core.flush(Time::ms(2), &mut out));
    out.0.borrow_mut().takes = None;
    assert!(core.flush(Time::ms(2), &mut out));
    assert_eq!(out.names(), "ABC");
}

#[test]
fn frames_that_come_out_while_the_interface_is_down_are_counted_and_their_rooms_come_back() {
    let (mut core, mut out) = (core(build("fifo"), Rate::gbit(1000), Settings::none()), Out::default());
    out.0.borrow_mut().refuses = true;
    for _ in 0..50 {
        come(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(2));
    assert!(core.flush(Time::ms(2), &mut out));
    assert_eq!((core.tally().losses.unsent, core.pool.left()), (50, 64));
}

#[test]
fn a_pool_that_is_used_up_drops_and_counts() {
    let mut core = core(build("fifo limit 1000p"), RATE, Settings::none());
    for _ in 0..100 {
        come(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    // The first is on the link, in the hands of the line until it is sent.
    assert_eq!((core.holds(), core.tally().losses.no_room), (64, 36));
}

#[test]
fn a_tag_comes_back_where_it_was_and_long_frames_are_left_out() {
    let (mut core, mut out) = (core(build("fifo"), RATE, Settings::none()), Out::default());
    let bytes = frame(1, 'A');
    let arrival = Arrival {
        bytes: &bytes,
        vlan: Some([0x81, 0, 0x20, 7]),
        wall_ns: 0,
        length: bytes.len() as u32,
        checksum_missing: false,
    };
    core.arrive(&arrival, Time::ms(1));
    core.arrive(&Arrival { length: 60_000, ..arrival }, Time::ms(1));
    let long = vec![7; 1519];
    core.arrive(&Arrival { bytes: &long, vlan: None, length: 1519, ..arrival }, Time::ms(1));
    core.flush(Time::ms(1), &mut out);
    let sent = &out.0.borrow().sent;
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][..18], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x81, 0, 0x20, 7, 0x88, 0xb5]);
    assert_eq!(sent[0][18..], bytes[14..]);
    assert_eq!(core.tally().losses.too_long, 2);
}

#[test]
fn the_line_delays_from_the_last_bit_and_its_losses_are_not_the_disciplines() {
    let line = Settings { delay: Span::ms(5), jitter: Span::ZERO, loss: Share::new(0.0).unwrap() };
    let (mut core, mut out) = (core(build("fifo"), RATE, line), Out::default());
    come(&mut core, &frame(1, 'A'), Time::ms(1), Time::ms(1));
    assert_eq!(core.next(), Some(Time::ms(2)), "the link is busy until then");
    core.advance(Time::ms(2));
    assert_eq!(core.next(), Some(Time::ms(7)));
    core.flush(Time::us(6999), &mut out);
    assert_eq!(out.names(), "");
    core.flush(Time::ms(7), &mut out);
    assert_eq!(out.names(), "A");
    core.obey(Order::Line(Settings { loss: Share::new(1.0).unwrap(), ..line }));
    come(&mut core, &frame(1, 'B'), Time::ms(8), Time::ms(8));
    core.flush(Time::ms(99), &mut out);
    assert_eq!((out.names().as_str(), core.tally().losses.line, core.pool.left()), ("A", 1, 64));
    assert_eq!(core.tally().dropped.total(), Backlog::ZERO);
}

/// Somebody sets the wall clock, which the kernel stamps arrivals with. The link is free whenever a frame
/// comes: none waits, before as after.
#[test]
fn a_wall_clock_that_is_set_makes_no_packet_wait() {
    for by_ms in [-3_600_000, 3_600_000, -300, 300] {
        let clock = fake::clock();
        let parts = parts(build("fifo"), RATE, Settings::none());
        let (mut core, mut out) = (Core::new(Parts { clock, ..parts }), Out::default());
        for n in 0..100 {
            fake::pass(3);
            if n == 50 {
                fake::set(by_ms);
            }
            let (now, bytes) = (core.clock().now(), frame(1, 'A'));
            core.catch_up(now);
            let (wall_ns, length) = (fake::stamp(), bytes.len() as u32);
            core.arrive(
                &Arrival { bytes: &bytes, vlan: None, wall_ns, length, checksum_missing: false },
                now,
            );
            core.flush(now, &mut out);
        }
        core.tally().roll(Time::s(60));
        let mut status = Status::default();
        core.tell(Time::s(60), &mut status);
        assert_eq!(
            (status.sojourn[0].max, out.0.borrow().sent.len()),
            (Span::ZERO, 100),
            "set by {by_ms} ms"
        );
    }
}

/// A queue that holds what it gets and says that it is empty.
struct Liar(Vec<Packet<Frame>>);
impl Qdisc<Frame> for Liar {
    fn enqueue(&mut self, pkt: Packet<Frame>, _cx: &mut qdisc::Cx<'_, Frame>) {
        self.0.push(pkt);
    }
    fn dequeue(&mut self, _cx: &mut qdisc::Cx<'_, Frame>) -> Next<Frame> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _cx: &mut qdisc::Cx<'_, Frame>) {}
}

#[test]
#[should_panic(expected = "the queue is stuck: it holds 1 packets")]
fn a_queue_that_lets_nothing_go_is_a_failure_after_five_seconds() {
    let mut core = core(Box::new(|_| Box::new(Liar(Vec::new()))), RATE, Settings::none());
    come(&mut core, &frame(1, 'A'), Time::ms(1), Time::ms(1));
    for ms in (100..4900).step_by(10) {
        core.catch_up(Time::ms(ms));
        core.advance(Time::ms(ms));
    }
    core.catch_up(Time::ms(5100));
}

/// After a hundred days time begins anew, once the queue is empty; counters go on.
#[test]
fn time_begins_anew_and_nothing_else_does() {
    let mut core = core(build("fifo"), RATE, Settings::none());
    core.clock = Clock::aged(Clock::OLD + Span::s(1));
    let mut out = Out::default();
    let now = core.clock().now();
    come(&mut core, &frame(1, 'A'), now, now);
    core.rebase(now);
    assert!(core.clock().is_old(now), "A is on the link");
    let later = now + Span::ms(2);
    core.advance(later);
    core.flush(later, &mut out);
    core.rebase(later);
    let young = core.clock().now();
    assert!(young < Time::s(60));
    come(&mut core, &frame(1, 'B'), young, young);
    core.flush(young, &mut out);
    let mut status = Status::default();
    core.tell(young, &mut status);
    assert_eq!((out.names().as_str(), status.books.sent.packets), ("AB", 2));
    assert!(status.uptime > Clock::OLD);
}
