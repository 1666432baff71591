//! Tests of a direction that cuts frames, and of one that joins them.

use giveway_wire::fragment::{ETHER_TYPE, Lost, Size};

use super::*;
use crate::fragments::Settings as Fragmenting;

const EIGHT_HUNDRED: Fragmenting =
    Fragmenting { cut: Some(Size::PUBLISHED[1]), join: false, ether_type: ETHER_TYPE };
const JOIN: Fragmenting = Fragmenting { cut: None, join: true, ether_type: ETHER_TYPE };

fn core_with(build: Build, rate: Rate, fragments: Fragmenting) -> Core {
    Core::new(Parts { fragments, buffers: 4096, ..parts(build, rate, LinkEmulation::none()) })
}

/// An Ethernet frame of `length` bytes with a UDP datagram of expedited forwarding that is ECN-capable.
fn datagram(length: usize, number: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0xba];
    bytes.extend(((length - 14) as u16).to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x8c, 0x17, 0x70]);
    bytes.extend(((length - 34) as u16).to_be_bytes());
    bytes.extend((bytes.len()..length).map(|n| (n as u16 ^ number) as u8));
    bytes
}

/// Passes frames through a core, all at once, and returns what it sends.
fn through(core: &mut Core, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Out::default();
    let at = core.at.max(Time::ms(1));
    frames.iter().for_each(|frame| arrive(core, frame, at, at));
    core.advance(at + Span::s(1));
    core.flush(at + Span::s(1), &mut out);
    std::mem::take(&mut *out.0.borrow_mut()).sent
}

fn status_of(core: &mut Core) -> Status {
    let mut status = Status::default();
    core.snapshot(core.at, &mut status);
    status
}

/// The metadata that the discipline gets for each packet.
#[derive(Clone, Default)]
struct Metas(Rc<RefCell<Vec<Meta>>>);

#[expect(unsafe_code, reason = "the probe of a direction must be `Send`")]
// SAFETY: each test uses its probe, and the clones of the `Rc`, in one thread only.
unsafe impl Send for Metas {}

impl Probe<Frame> for Metas {
    fn on_arrival(&mut self, _at: PortId, meta: &Meta, _now: Time) {
        self.0.borrow_mut().push(*meta);
    }
}

#[test]
fn fragments_are_packets_to_the_discipline() {
    let metas_seen = Metas::default();
    let counting = Counting { overhead: 14, mpu: 0 };
    let parts = parts(build("fifo"), Rate::gbit(1), LinkEmulation::none());
    let mut core = Core::new(Parts {
        fragments: EIGHT_HUNDRED,
        counting,
        probe: Some(Box::new(metas_seen.clone())),
        ..parts
    });
    let sent = through(&mut core, &[datagram(1514, 1), datagram(814, 2), datagram(100, 3)]);
    let lengths: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(lengths, [814, 730, 814, 100]);
    assert!(sent[..2].iter().all(|frame| frame[..14] == [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb6]));
    let metas = metas_seen.0.borrow();
    let of = |index: usize| (metas[index].bytes, metas[index].offset);
    assert_eq!((of(0), of(1), of(2)), ((814, 0), (730, 792), (814, 1500)), "IP lengths, and 14 bytes each");
    for meta in metas.iter() {
        assert_eq!(
            (meta.flow, meta.class, meta.ecn),
            (metas[3].flow, 0, Ecn::Ect0),
            "the class of its frame: voice"
        );
    }
    let status = status_of(&mut core);
    assert_eq!((status.fragments.cut, status.fragments.pieces, status.fragments.whole), (1, 2, 0));
    assert_eq!((status.counters.sent.packets, status.buffers[0]), (4, 64));
    assert_eq!(core.groups.as_ref().expect("frames are cut").borrow().len(), 0);
}

/// Frames of every length pass a direction that cuts and one that joins, and their bytes do not change.
#[test]
fn cut_frames_are_joined_without_change() {
    for size in Size::PUBLISHED {
        let cut = Fragmenting { cut: Some(size), ..EIGHT_HUNDRED };
        let mut near = core_with(build("drr"), Rate::gbit(100), cut);
        let mut far = core_with(build("drr"), Rate::gbit(100), JOIN);
        for length in 60..=1514u16 {
            let frame = [datagram(usize::from(length), length)];
            let mut between = through(&mut near, &frame);
            assert!(between.iter().all(|frame| frame.len() <= 14 + usize::from(size.bytes())));
            // On a wire no frame is shorter than 60 bytes.
            between.iter_mut().for_each(|frame| frame.resize(frame.len().max(60), 0));
            assert_eq!(through(&mut far, &between), frame, "{length} bytes by {}", size.bytes());
        }
        let (near, far) = (status_of(&mut near).fragments, status_of(&mut far).fragments);
        assert_eq!(near.cut, u64::from(1514 - 14 - size.bytes()));
        assert_eq!((far.joined.packets, far.joined.fragments), (near.cut, near.pieces));
        assert_eq!((far.joined.lost, far.waiting), ([0; Lost::ALL.len()], 0));
    }
}

#[test]
fn frames_that_are_not_ip_pass_whole_and_fragments_keep_the_vlan_tag() {
    let mut near = core_with(build("fifo"), Rate::gbit(100), EIGHT_HUNDRED);
    let mut far = core_with(build("fifo"), Rate::gbit(100), JOIN);
    let not_ip = [frame(1, 'A')];
    assert_eq!(through(&mut near, &not_ip), not_ip);
    assert_eq!(status_of(&mut near).fragments.whole, 1);
    let mut tagged = datagram(1514, 7);
    tagged.splice(12..12, [0x81, 0, 0x20, 7]);
    let between = through(&mut near, std::slice::from_ref(&tagged));
    assert_eq!(between.len(), 2);
    assert!(between.iter().all(|frame| frame[12..18] == [0x81, 0, 0x20, 7, 0x88, 0xb6]));
    // The kernel strips the tag and reports it separately.
    let mut out = Out::default();
    for fragment in &between {
        let bare = [&fragment[..12], &fragment[16..]].concat();
        let (wall_ns, length) = (0, bare.len() as u32);
        let vlan = Some([0x81, 0, 0x20, 7]);
        far.arrive(&Arrival { bytes: &bare, vlan, wall_ns, length, checksum_missing: false }, Time::ms(9));
    }
    far.flush(Time::s(1), &mut out);
    assert_eq!(out.0.borrow().sent, [tagged]);
}

/// Of 64 buffers the fragments of 31 frames use 62. The next frame needs one buffer for itself and two for
/// its fragments, which is one too many.
#[test]
fn frames_without_buffers_for_all_fragments_are_lost_whole() {
    let mut core = Core::new(Parts {
        fragments: EIGHT_HUNDRED,
        ..parts(build("fifo limit 1000p"), RATE, LinkEmulation::none())
    });
    for number in 0..100 {
        arrive(&mut core, &datagram(1514, number), Time::ms(1), Time::ms(1));
    }
    let status = status_of(&mut core);
    assert_eq!((status.fragments.cut, status.fragments.pieces), (31, 62));
    assert_eq!((status.losses.no_buffer, status.buffers[0]), (69, 2));
}

/// Marks every second packet.
struct Marker(Vec<Packet<Frame>>, u32);
impl Qdisc<Frame> for Marker {
    fn enqueue(&mut self, mut pkt: Packet<Frame>, cx: &mut giveway_qdisc::Cx<'_, Frame>) {
        self.1 += 1;
        if self.1.is_multiple_of(2) {
            assert!(cx.mark(&mut pkt));
        }
        self.0.insert(0, pkt);
    }
    fn dequeue(&mut self, _cx: &mut giveway_qdisc::Cx<'_, Frame>) -> Next<Frame> {
        self.0.pop().map_or(Next::Empty, Next::Packet)
    }
    fn backlog(&self) -> Backlog {
        self.0
            .iter()
            .fold(Backlog::ZERO, |sum, pkt| sum.plus(Backlog { packets: 1, bytes: pkt.bytes().into() }))
    }
    fn reset(&mut self, _cx: &mut giveway_qdisc::Cx<'_, Frame>) {}
}

#[test]
fn a_mark_on_the_second_fragment_arrives_with_the_frame() {
    let mut near = core_with(Box::new(|_| Box::new(Marker(Vec::new(), 0))), Rate::gbit(1), EIGHT_HUNDRED);
    let mut far = core_with(build("fifo"), Rate::gbit(1), JOIN);
    let sent = datagram(1514, 1);
    let between = through(&mut near, std::slice::from_ref(&sent));
    assert_eq!([between[0][18], between[1][18]], [0, 0x81], "index, and the mark on the second");
    let joined = through(&mut far, &between);
    let mut marked = sent;
    assert_eq!(giveway_wire::ecn::mark(&mut marked[14..]), giveway_wire::ecn::Marked::Now);
    assert_eq!(joined, [marked]);
    assert_eq!(status_of(&mut near).counters.marked, 1);
}

/// Counters continue after a change, and the fragments of incomplete frames are discarded when joining stops.
#[test]
fn cutting_and_joining_can_be_changed_at_run_time() {
    let mut near = core_with(build("fifo"), Rate::gbit(1), Fragmenting::none());
    let mut far = core_with(build("fifo"), Rate::gbit(1), Fragmenting::none());
    let frame = [datagram(1514, 1)];
    assert_eq!(through(&mut near, &frame), frame);
    near.apply(Command::Cut(Some(Size::PUBLISHED[0])));
    let between = through(&mut near, &frame);
    assert_eq!((between.len(), status_of(&mut near).fragments.size), (4, Some(Size::PUBLISHED[0])));
    assert_eq!(
        through(&mut far, &between),
        between,
        "fragments are frames to a direction that does not join"
    );
    far.apply(Command::Join(true));
    assert_eq!(through(&mut far, &between), frame);
    assert!(through(&mut far, &between[..3]).is_empty());
    assert_eq!(status_of(&mut far).fragments.waiting, 3);
    far.apply(Command::Join(false));
    let joined = status_of(&mut far).fragments.joined;
    assert_eq!((joined.packets, joined.lost[Lost::Expired as usize], joined.given_up), (1, 3, 1));
    near.apply(Command::Cut(None));
    assert_eq!(through(&mut near, &frame), frame);
}

/// Packets without Ethernet header have no EtherType for fragments.
#[test]
fn without_ethernet_no_frame_is_cut() {
    let parts = Parts { ethernet: false, ..parts(build("fifo"), Rate::gbit(1), LinkEmulation::none()) };
    let mut core = Core::new(Parts { fragments: EIGHT_HUNDRED, ..parts });
    let packet = [datagram(1514, 1)[14..].to_vec()];
    assert_eq!(through(&mut core, &packet), packet);
    core.apply(Command::Cut(Some(Size::PUBLISHED[0])));
    core.apply(Command::Join(true));
    assert_eq!(through(&mut core, &packet), packet);
    assert!(!status_of(&mut core).fragments.joins);
}

/// Offers three times the link's rate for a second, in packets of 1,428 bytes of ten flows, to a queue of 100
/// packets. Returns the share of the sent bytes that can be joined. `discard` enables partial frame discard.
fn joinable(spec: &'static str, discard: bool) -> f64 {
    let five_hundred = Fragmenting { cut: Some(Size::PUBLISHED[0]), ..EIGHT_HUNDRED };
    let mut near = core_with(build(spec), RATE, if discard { five_hundred } else { Fragmenting::none() });
    // Without partial frame discard the discipline was built for whole frames, and cutting starts afterwards.
    near.fragments.cut_to(five_hundred.cut);
    let mut far = core_with(build("fifo limit 10000p"), Rate::gbit(100), JOIN);
    let (mut out, mut rng, mut at) = (Out::default(), Streams::new(7).rng(), Time::ms(1));
    let (ends, mut number) = (Time::s(1), 0u16);
    while at < ends {
        let mut frame = datagram(1442, number);
        // The port identifies the flow; the packets are not ECN-capable.
        frame[35] = (number % 10) as u8;
        frame[15] = 0xb8;
        arrive(&mut near, &frame, at, at);
        near.flush(at, &mut out);
        // 1,428 bytes take 1,428 us, and a packet arrives every 476 us on average.
        at += Span::us(rng.below(952));
        number += 1;
    }
    let sent = std::mem::take(&mut out.0.borrow_mut().sent);
    let bytes: usize = sent.iter().map(|frame| frame.len() - 14).sum();
    assert!(bytes > 950_000, "{spec}: {bytes} bytes of a million: the link is busy");
    let received: Vec<_> = sent.chunks(20).flat_map(|some| through(&mut far, some)).collect();
    let joined: usize = received.iter().map(|frame| frame.len() - 14).sum();
    // Once everything has left, no group remains.
    near.advance(ends + Span::s(1));
    assert_eq!(near.port.counters().backlog(), Backlog::ZERO);
    if discard {
        // Drops at the tail spare later fragments; drops at the head come when all fragments were offered.
        assert_eq!(status_of(&mut near).fragments.spared > 0, !spec.starts_with("fq_codel"));
        assert_eq!(near.groups.as_ref().expect("frames are cut").borrow().len(), 0);
    }
    joined as f64 / bytes as f64
}

/// With partial frame discard all bytes can be joined, except 24 bytes of headers for each 1,428 bytes and
/// the fragments in flight at the end. Without it, almost none can. A discipline that drops at the head has
/// often sent a part of the frame before.
#[test]
fn the_output_of_an_overloaded_link_can_be_joined() {
    for (spec, with, without) in [
        ("fifo limit 100p", 0.97..0.984, 0.0..0.1),
        ("drr limit 100p", 0.97..0.984, 0.2..0.5),
        ("fq_codel limit 100p", 0.6..0.8, 0.2..0.5),
    ] {
        let shares = [joinable(spec, true), joinable(spec, false)];
        println!("{spec}: {shares:.3?}");
        assert!(with.contains(&shares[0]) && without.contains(&shares[1]), "{spec}: {shares:.3?}");
    }
}
