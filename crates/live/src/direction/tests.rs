//! Tests of a direction without devices: each frame has a one-letter name, and the tests set the times.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use giveway_qdisc::{FlowTable, Meta, Share};

use super::*;
use crate::clock::fake;
use crate::device::SendError;

#[path = "fragment_tests.rs"]
mod fragments;
#[path = "length_tests.rs"]
mod lengths;
#[path = "varying_tests.rs"]
mod varying_links;

/// State of a sender.
#[derive(Default)]
struct Wire {
    /// The frames that were sent.
    sent: Vec<Vec<u8>>,
    /// Largest number of frames that a call accepts; `None` for no limit.
    accepts: Option<usize>,
    /// True if the interface is down.
    down: bool,
}

#[derive(Clone, Default)]
struct Out(Rc<RefCell<Wire>>);

#[expect(unsafe_code, reason = "`Sender` requires `Send`")]
// SAFETY: each test uses its sender, and the clones of the `Rc`, in one thread only.
unsafe impl Send for Out {}

impl Sender for Out {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let mut wire = self.0.borrow_mut();
        if wire.down {
            return Err(SendError { sent: 0, error: io::Error::from_raw_os_error(libc::ENETDOWN) });
        }
        let count = wire.accepts.unwrap_or(usize::MAX).min(frames.len());
        wire.sent.extend(frames[..count].iter().map(|frame| frame.to_vec()));
        Ok(count)
    }
    fn fd(&self) -> std::os::fd::RawFd {
        -1
    }
}

impl Out {
    /// The names of the frames that were sent: their last bytes.
    fn names(&self) -> String {
        self.0.borrow().sent.iter().map(|frame| char::from(*frame.last().unwrap())).collect()
    }
}

fn build(spec: &'static str) -> Build {
    let spec: giveway_disciplines::Spec = spec.parse().unwrap();
    Box::new(move |rate| spec.build(&giveway_qdisc::LinkContext::new(rate, Streams::new(1))).unwrap())
}

fn core(build: Build, rate: Rate, emulation: LinkEmulation) -> Core {
    Core::new(parts(build, rate, emulation))
}

fn parts(build: Build, rate: Rate, emulation: LinkEmulation) -> Parts {
    Parts {
        id: PortId(0),
        rate,
        build,
        emulation,
        start: Time::ZERO,
        counting: Counting { overhead: 0, mpu: 0 },
        ethernet: true,
        fragments: crate::fragments::Settings::none(),
        longest_in: 1518,
        longest_out: 1518,
        buffers: 64,
        streams: Streams::new(1),
        xor_mod: None,
        reserved_flows: None,
        probe: None,
        tap: None,
        clock: Clock::start(),
    }
}

/// A frame of 1,014 bytes, of which 1,000 are counted, with an EtherType that is not parsed. Its last byte is
/// its name, and `flow` is part of its source address.
fn frame(flow: u8, name: char) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, flow, 0x88, 0xb5];
    bytes.resize(1013, 0);
    bytes.push(name as u8);
    bytes
}

/// A frame with the time stamp `at` is read at `now`.
fn arrive(core: &mut Core, bytes: &[u8], at: Time, now: Time) {
    let wall_ns = core.clock().to_wall_ns(at);
    let length = bytes.len() as u32;
    core.arrive(&Arrival { bytes, vlan: None, wall_ns, length, checksum_missing: false }, now);
}

/// Rate at which 1,000 bytes take a millisecond.
const RATE: Rate = Rate::mbit(8);

/// The thread does not run for 10 ms, in which five frames arrive a millisecond apart. A link that is not
/// late sends each of them on arrival.
#[test]
fn a_late_thread_has_the_schedule_of_a_link_that_is_not_late() {
    let (mut core, mut out) = (core(build("fifo"), RATE, LinkEmulation::none()), Out::default());
    let now = Time::ms(110);
    core.catch_up(now);
    for (n, name) in "ABCDE".chars().enumerate() {
        arrive(&mut core, &frame(1, name), Time::ms(101 + n as u64), now);
    }
    core.advance(now);
    assert!(core.flush(now, &mut out));
    assert_eq!(out.names(), "ABCDE");
    core.statistics().roll(Time::s(2));
    let mut status = Status::default();
    core.snapshot(Time::s(2), &mut status);
    assert_eq!(
        status.sojourn[0].max,
        Span::ZERO,
        "no sojourn time: each frame arrived when the link was free"
    );
    assert_eq!((status.counters.sent.packets, status.stalls), (5, 0));
}

#[test]
fn frames_leave_when_the_link_is_free_and_not_before() {
    let (mut core, mut out) = (core(build("fifo"), RATE, LinkEmulation::none()), Out::default());
    for name in "ABC".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.flush(Time::ms(1), &mut out);
    assert_eq!((out.names().as_str(), core.next()), ("A", Some(Time::ms(2))));
    assert!(core.busy(Time::us(1500)));
    core.advance(Time::us(1999));
    core.flush(Time::us(1999), &mut out);
    assert_eq!(out.names(), "A");
    core.advance(Time::ms(2));
    core.flush(Time::ms(2), &mut out);
    assert_eq!((out.names().as_str(), core.backlog()), ("AB", 1));
}

/// Records the time of the last call.
struct LastTime(Rc<RefCell<Time>>);

#[expect(unsafe_code, reason = "the probe of a direction must be `Send`")]
// SAFETY: the test uses its probe, and the clone of the `Rc`, in one thread only.
unsafe impl Send for LastTime {}

impl LastTime {
    fn record(&self, now: Time) {
        let before = self.0.replace(now);
        assert!(before <= now, "{now} after {before}");
    }
}

impl Probe<Frame> for LastTime {
    fn on_arrival(&mut self, _: PortId, _: &Meta, now: Time) {
        self.record(now);
    }
    fn on_transmission(&mut self, _: PortId, _: &Meta, _: &Frame, now: Time) {
        self.record(now);
    }
    fn on_sample(&mut self, _: PortId, _: Backlog, _: &FlowTable, _: &[(&'static str, f64)], now: Time) {
        self.record(now);
    }
}

/// A frame with a time stamp before a sample is read after it. A generated frame enters between the reading
/// of the clock and a sample.
#[test]
fn times_of_a_probe_never_go_backwards() {
    let last = Rc::new(RefCell::new(Time::ZERO));
    let probe: Box<dyn Probe<Frame> + Send> = Box::new(LastTime(Rc::clone(&last)));
    let parts = Parts { probe: Some(probe), ..parts(build("fifo"), RATE, LinkEmulation::none()) };
    let mut core = Core::new(parts);
    core.sample(Time::ms(10));
    arrive(&mut core, &frame(1, 'A'), Time::ms(9), Time::ms(11));
    assert_eq!(*last.borrow(), Time::ms(10), "the frame left on arrival, not before the sample");
    let now = core.clock().now();
    core.apply(Command::Frame(frame(1, 'B')));
    core.sample(now);
    assert!(*last.borrow() > now);
}

/// The thread does not run for two seconds while packets are queued. Afterwards it sends at most the frames
/// of 20 ms of the link, which are 20 frames and the next one.
#[test]
fn a_thread_that_did_not_run_for_long_sends_a_bounded_burst() {
    let (mut core, mut out) = (core(build("fifo"), RATE, LinkEmulation::none()), Out::default());
    for _ in 0..60 {
        arrive(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    let now = Time::s(2);
    core.catch_up(now);
    core.advance(now);
    core.flush(now, &mut out);
    assert_eq!(out.0.borrow().sent.len(), 1 + 21);
    assert_eq!((core.statistics().stalls, core.statistics().stalled), (1, Span::ms(2000 - 20 - 2)));
}

#[test]
fn a_change_of_rate_and_discipline_loses_and_reorders_nothing() {
    let (mut core, mut out) = (core(build("fifo"), RATE, LinkEmulation::none()), Out::default());
    for name in "ABC".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.apply(Command::Qdisc(build("drr")));
    core.apply(Command::Rate(Rate::mbit(80)));
    for name in "DE".chars() {
        arrive(&mut core, &frame(1, name), Time::us(1100), Time::us(1100));
    }
    // The changes have the time of the clock, and a busy machine may stop this thread before them.
    core.advance(Time::s(60));
    core.flush(Time::s(60), &mut out);
    assert_eq!(out.names(), "ABCDE");
    assert_eq!(core.statistics().changes, 2);
}

#[test]
fn frames_that_the_interface_does_not_accept_are_sent_later_in_order() {
    let (mut core, mut out) = (core(build("fifo"), Rate::gbit(1000), LinkEmulation::none()), Out::default());
    for name in "ABC".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(2));
    out.0.borrow_mut().accepts = Some(1);
    assert!(!core.flush(Time::ms(2), &mut out));
    out.0.borrow_mut().accepts = None;
    assert!(core.flush(Time::ms(2), &mut out));
    assert_eq!(out.names(), "ABC");
}

#[test]
fn departures_while_the_interface_is_down_are_counted_as_losses_and_release_their_buffers() {
    let (mut core, mut out) = (core(build("fifo"), Rate::gbit(1000), LinkEmulation::none()), Out::default());
    out.0.borrow_mut().down = true;
    for _ in 0..50 {
        arrive(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(2));
    assert!(core.flush(Time::ms(2), &mut out));
    assert_eq!((core.statistics().losses.unsent, core.pool.free()), (50, 64));
}

#[test]
fn arrivals_without_a_free_buffer_are_counted_as_losses() {
    let mut core = core(build("fifo limit 1000p"), RATE, LinkEmulation::none());
    for _ in 0..100 {
        arrive(&mut core, &frame(1, 'x'), Time::ms(1), Time::ms(1));
    }
    // The first frame is on the link; its buffer is released when it is sent.
    assert_eq!((core.backlog(), core.statistics().losses.no_buffer), (64, 36));
}

#[test]
fn a_vlan_tag_is_inserted_again_and_frames_that_are_too_long_are_lost() {
    let (mut core, mut out) = (core(build("fifo"), RATE, LinkEmulation::none()), Out::default());
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
    assert_eq!(core.statistics().losses.too_long, 2);
}

#[test]
fn the_emulated_delay_begins_at_the_last_bit_and_losses_are_not_drops_of_the_discipline() {
    let emulation = LinkEmulation { delay: Span::ms(5), ..LinkEmulation::none() };
    let (mut core, mut out) = (core(build("fifo"), RATE, emulation.clone()), Out::default());
    arrive(&mut core, &frame(1, 'A'), Time::ms(1), Time::ms(1));
    assert_eq!(core.next(), Some(Time::ms(2)), "the link is busy until then");
    core.advance(Time::ms(2));
    assert_eq!(core.next(), Some(Time::ms(7)));
    core.flush(Time::us(6999), &mut out);
    assert_eq!(out.names(), "");
    core.flush(Time::ms(7), &mut out);
    assert_eq!(out.names(), "A");
    core.apply(Command::Emulation(Box::new(LinkEmulation { loss: Share::new(1.0).unwrap(), ..emulation })));
    arrive(&mut core, &frame(1, 'B'), Time::ms(8), Time::ms(8));
    core.flush(Time::ms(99), &mut out);
    assert_eq!((out.names().as_str(), core.statistics().losses.emulated, core.pool.free()), ("A", 1, 64));
    assert_eq!(core.statistics().dropped.total(), Backlog::ZERO);
}

/// The wall clock, which the kernel uses for time stamps, is set. The link is free at each arrival, so the
/// sojourn time is zero before and after.
#[test]
fn setting_the_wall_clock_adds_no_sojourn_time() {
    for by_ms in [-3_600_000, 3_600_000, -300, 300] {
        let clock = fake::clock();
        let parts = parts(build("fifo"), RATE, LinkEmulation::none());
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
        core.statistics().roll(Time::s(60));
        let mut status = Status::default();
        core.snapshot(Time::s(60), &mut status);
        assert_eq!(
            (status.sojourn[0].max, out.0.borrow().sent.len()),
            (Span::ZERO, 100),
            "set by {by_ms} ms"
        );
    }
}

/// A faulty discipline: it keeps its packets but reports that it is empty.
struct Stuck(Vec<Packet<Frame>>);
impl Qdisc<Frame> for Stuck {
    fn enqueue(&mut self, pkt: Packet<Frame>, _cx: &mut giveway_qdisc::Cx<'_, Frame>) {
        self.0.push(pkt);
    }
    fn dequeue(&mut self, _cx: &mut giveway_qdisc::Cx<'_, Frame>) -> Next<Frame> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _cx: &mut giveway_qdisc::Cx<'_, Frame>) {}
}

#[test]
#[should_panic(expected = "the queue is stuck: its backlog is 1 packets")]
fn a_discipline_that_returns_no_packet_for_five_seconds_fails() {
    let mut core = core(Box::new(|_| Box::new(Stuck(Vec::new()))), RATE, LinkEmulation::none());
    arrive(&mut core, &frame(1, 'A'), Time::ms(1), Time::ms(1));
    for ms in (100..4900).step_by(10) {
        core.catch_up(Time::ms(ms));
        core.advance(Time::ms(ms));
    }
    core.catch_up(Time::ms(5100));
}

/// After a hundred days the clock restarts as soon as the queue is empty.
#[test]
fn the_counters_continue_when_the_clock_restarts() {
    let mut core = core(build("fifo"), RATE, LinkEmulation::none());
    core.clock = Clock::aged(Clock::OLD + Span::s(1));
    let mut out = Out::default();
    let now = core.clock().now();
    arrive(&mut core, &frame(1, 'A'), now, now);
    core.rebase(now);
    assert!(core.clock().is_old(now), "A is on the link");
    let later = now + Span::ms(2);
    core.advance(later);
    core.flush(later, &mut out);
    core.rebase(later);
    let young = core.clock().now();
    assert!(young < Time::s(60));
    arrive(&mut core, &frame(1, 'B'), young, young);
    core.flush(young, &mut out);
    let mut status = Status::default();
    core.snapshot(young, &mut status);
    assert_eq!((out.names().as_str(), status.counters.sent.packets), ("AB", 2));
    assert!(status.uptime > Clock::OLD);
}

/// A frame of IPv4 and UDP, 1,000 bytes long after the link header, from 10.0.0.`host` to port 53.
fn datagram(host: u8, name: char) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, host];
    bytes.extend([8, 0, 0x45, 0, 3, 232, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 1, 1]);
    bytes.extend([0x13, 0x88, 0, 53, 3, 212, 0, 0]);
    bytes.resize(1013, 0);
    bytes.push(name as u8);
    bytes
}

/// Filters see the addresses of frames. A new tree takes over the class of both, and the packets of the other
/// one; the counters go on to the end of the direction, where what waits is dropped.
#[test]
fn a_tree_of_classes_sees_addresses_and_is_changed_in_place() {
    const BOTH: &str = "htb default rest classes [(name one rate 8mbit match [(src_ip 10.0.0.1 dst_port 50-59)]) \
                        (name two rate 8kbit match [(src_ip 10.0.0.2)]) (name rest rate 8kbit)]";
    const FEWER: &str = "htb default rest classes [(name one rate 8mbit match [(src_ip 10.0.0.1 dst_port 50-59)]) \
                         (name rest rate 8mbit)]";
    let mut core = core(build(BOTH), RATE, LinkEmulation::none());
    let mut out = Out::default();
    for (host, name) in [(1, 'A'), (1, 'B'), (2, 'C'), (2, 'D'), (2, 'E'), (2, 'F'), (1, 'G')] {
        arrive(&mut core, &datagram(host, name), Time::ms(10), Time::ms(10));
    }
    core.advance(Time::ms(16));
    core.flush(Time::ms(16), &mut out);
    core.apply(Command::Qdisc(build(FEWER)));
    // The clock stands still in this test, so the new tree is asked at the time of the last call, 15 ms.
    core.advance(Time::us(15_500));
    core.flush(Time::us(15_500), &mut out);
    assert_eq!(out.names(), "ABGCDE", "F waits in the class of all others");
    let mut status = Status::default();
    let _ = core.finish(&mut status);
    let counted: Vec<_> = status
        .classes
        .iter()
        .map(|class| (&*class.path, class.arrived.packets, class.sent.packets, class.dropped.packets))
        .collect();
    assert_eq!(counted, [("one", 3, 3, 0), ("rest", 2, 1, 1)]);
}
