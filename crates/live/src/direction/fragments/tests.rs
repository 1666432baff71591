//! A direction that cuts, and one that joins.

use wire::fragment::{ETHER_TYPE, Lost, Size};

use super::*;
use crate::fragments::Settings as Fragmenting;

const EIGHT_HUNDRED: Fragmenting =
    Fragmenting { cut: Some(Size::PUBLISHED[1]), join: false, ether_type: ETHER_TYPE };
const JOIN: Fragmenting = Fragmenting { cut: None, join: true, ether_type: ETHER_TYPE };

fn core_with(build: Build, rate: Rate, fragments: Fragmenting) -> Core {
    Core::new(Parts { fragments, rooms: 4096, ..parts(build, rate, Settings::none()) })
}

/// An Ethernet frame of `length` bytes with a UDP datagram of expedited forwarding whose sender takes marks.
fn datagram(length: usize, number: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0xba];
    bytes.extend(((length - 14) as u16).to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x8c, 0x17, 0x70]);
    bytes.extend(((length - 34) as u16).to_be_bytes());
    bytes.extend((bytes.len()..length).map(|n| (n as u16 ^ number) as u8));
    bytes
}

/// All that comes out of a core which is told these frames, at once.
fn through(core: &mut Core, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Out::default();
    let at = core.at.max(Time::ms(1));
    frames.iter().for_each(|frame| come(core, frame, at, at));
    core.advance(at + Span::s(1));
    core.flush(at + Span::s(1), &mut out);
    std::mem::take(&mut *out.0.borrow_mut()).sent
}

fn told(core: &mut Core) -> Status {
    let mut status = Status::default();
    core.tell(core.at, &mut status);
    status
}

/// What the discipline is told of each packet.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<Meta>>>);

// Tests have one thread.
#[expect(unsafe_code, reason = "parts want Send, and this never leaves its thread")]
// SAFETY: no test moves it to another thread.
unsafe impl Send for Seen {}

impl Probe<Frame> for Seen {
    fn arrived(&mut self, _at: PortId, meta: &Meta, _now: Time) {
        self.0.borrow_mut().push(*meta);
    }
}

#[test]
fn fragments_are_packets_to_the_discipline() {
    let seen = Seen::default();
    let counting = Counting { overhead: 14, mpu: 0 };
    let parts = parts(build("fifo"), Rate::gbit(1), Settings::none());
    let mut core =
        Core::new(Parts { fragments: EIGHT_HUNDRED, counting, probe: Some(Box::new(seen.clone())), ..parts });
    let sent = through(&mut core, &[datagram(1514, 1), datagram(814, 2), datagram(100, 3)]);
    let lengths: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(lengths, [814, 730, 814, 100]);
    assert!(sent[..2].iter().all(|frame| frame[..14] == [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb6]));
    let metas = seen.0.borrow();
    let of = |index: usize| (metas[index].bytes, metas[index].offset);
    assert_eq!(
        (of(0), of(1), of(2)),
        ((814, 0), (730, 792), (814, 1500)),
        "lengths as IP has them, and 14 each"
    );
    for meta in metas.iter() {
        assert_eq!((meta.flow, meta.class, meta.ecn), (metas[3].flow, 0, Ecn::Ect0), "voice, as its frame");
    }
    let status = told(&mut core);
    assert_eq!((status.fragments.cut, status.fragments.pieces, status.fragments.whole), (1, 2, 0));
    assert_eq!((status.books.sent.packets, status.rooms[0]), (4, 64));
    assert_eq!(core.groups.as_ref().expect("it cuts").borrow().len(), 0);
}

/// Frames of every length go through one that cuts and one that joins, and are the same bytes.
#[test]
fn what_is_cut_is_joined_again() {
    for size in Size::PUBLISHED {
        let cut = Fragmenting { cut: Some(size), ..EIGHT_HUNDRED };
        let mut near = core_with(build("drr"), Rate::gbit(100), cut);
        let mut far = core_with(build("drr"), Rate::gbit(100), JOIN);
        for length in 60..=1514u16 {
            let frame = [datagram(usize::from(length), length)];
            let mut between = through(&mut near, &frame);
            assert!(between.iter().all(|frame| frame.len() <= 14 + usize::from(size.bytes())));
            // On a wire none has less than 60 bytes.
            between.iter_mut().for_each(|frame| frame.resize(frame.len().max(60), 0));
            assert_eq!(through(&mut far, &between), frame, "{length} bytes by {}", size.bytes());
        }
        let (near, far) = (told(&mut near).fragments, told(&mut far).fragments);
        assert_eq!(near.cut, u64::from(1514 - 14 - size.bytes()));
        assert_eq!((far.joined.packets, far.joined.fragments), (near.cut, near.pieces));
        assert_eq!((far.joined.lost, far.waiting), ([0; Lost::ALL.len()], 0));
    }
}

/// What is no IP, or is tagged, crosses, too; the first whole, the second in tagged pieces.
#[test]
fn other_frames() {
    let mut near = core_with(build("fifo"), Rate::gbit(100), EIGHT_HUNDRED);
    let mut far = core_with(build("fifo"), Rate::gbit(100), JOIN);
    let no_ip = [frame(1, 'A')];
    assert_eq!(through(&mut near, &no_ip), no_ip);
    assert_eq!(told(&mut near).fragments.whole, 1);
    let mut tagged = datagram(1514, 7);
    tagged.splice(12..12, [0x81, 0, 0x20, 7]);
    let between = through(&mut near, std::slice::from_ref(&tagged));
    assert_eq!(between.len(), 2);
    assert!(between.iter().all(|frame| frame[12..18] == [0x81, 0, 0x20, 7, 0x88, 0xb6]));
    // The kernel takes the tag out and tells it beside.
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

/// 64 rooms: the first frame's fragments and 30 more frames' lie in them, one is free for a frame to come in, and none for its fragments.
#[test]
fn a_pool_that_is_used_up_drops_whole_frames() {
    let mut core = Core::new(Parts {
        fragments: EIGHT_HUNDRED,
        ..parts(build("fifo limit 1000p"), RATE, Settings::none())
    });
    for number in 0..100 {
        come(&mut core, &datagram(1514, number), Time::ms(1), Time::ms(1));
    }
    let status = told(&mut core);
    assert_eq!((status.fragments.cut, status.fragments.pieces), (31, 62));
    assert_eq!((status.losses.no_room, status.rooms[0]), (69, 2));
}

/// Marks every second packet.
struct Marker(Vec<Packet<Frame>>, u32);
impl Qdisc<Frame> for Marker {
    fn enqueue(&mut self, mut pkt: Packet<Frame>, cx: &mut qdisc::Cx<'_, Frame>) {
        self.1 += 1;
        if self.1.is_multiple_of(2) {
            assert!(cx.mark(&mut pkt));
        }
        self.0.insert(0, pkt);
    }
    fn dequeue(&mut self, _cx: &mut qdisc::Cx<'_, Frame>) -> Next<Frame> {
        self.0.pop().map_or(Next::Empty, Next::Packet)
    }
    fn backlog(&self) -> Backlog {
        self.0
            .iter()
            .fold(Backlog::ZERO, |sum, pkt| sum.plus(Backlog { packets: 1, bytes: pkt.bytes().into() }))
    }
    fn reset(&mut self, _cx: &mut qdisc::Cx<'_, Frame>) {}
}

#[test]
fn a_mark_on_the_second_fragment_arrives_with_the_frame() {
    let mut near = core_with(Box::new(|_| Box::new(Marker(Vec::new(), 0))), Rate::gbit(1), EIGHT_HUNDRED);
    let mut far = core_with(build("fifo"), Rate::gbit(1), JOIN);
    let sent = datagram(1514, 1);
    let between = through(&mut near, std::slice::from_ref(&sent));
    assert_eq!([between[0][18], between[1][18]], [0, 0x81], "index, and the mark on the second");
    let came = through(&mut far, &between);
    let mut marked = sent;
    assert_eq!(wire::ecn::mark(&mut marked[14..]), wire::ecn::Marked::Now);
    assert_eq!(came, [marked]);
    assert_eq!(told(&mut near).books.marked, 1);
}

/// It begins and ends while frames pass; what was counted stays, and what waits for what will not be joined is given up.
#[test]
fn it_is_changed_while_it_runs() {
    let mut near = core_with(build("fifo"), Rate::gbit(1), Fragmenting::none());
    let mut far = core_with(build("fifo"), Rate::gbit(1), Fragmenting::none());
    let frame = [datagram(1514, 1)];
    assert_eq!(through(&mut near, &frame), frame);
    near.obey(Order::Cut(Some(Size::PUBLISHED[0])));
    let between = through(&mut near, &frame);
    assert_eq!((between.len(), told(&mut near).fragments.size), (4, Some(Size::PUBLISHED[0])));
    assert_eq!(through(&mut far, &between), between, "fragments are frames to who does not join");
    far.obey(Order::Join(true));
    assert_eq!(through(&mut far, &between), frame);
    assert!(through(&mut far, &between[..3]).is_empty());
    assert_eq!(told(&mut far).fragments.waiting, 3);
    far.obey(Order::Join(false));
    let joined = told(&mut far).fragments.joined;
    assert_eq!((joined.packets, joined.lost[Lost::Expired as usize], joined.given_up), (1, 3, 1));
    near.obey(Order::Cut(None));
    assert_eq!(through(&mut near, &frame), frame);
}

/// Nothing is cut where there is no EtherType, whatever it is told.
#[test]
fn without_ethernet_nothing_is_cut() {
    let parts = Parts { ethernet: false, ..parts(build("fifo"), Rate::gbit(1), Settings::none()) };
    let mut core = Core::new(Parts { fragments: EIGHT_HUNDRED, ..parts });
    let packet = [datagram(1514, 1)[14..].to_vec()];
    assert_eq!(through(&mut core, &packet), packet);
    core.obey(Order::Cut(Some(Size::PUBLISHED[0])));
    core.obey(Order::Join(true));
    assert_eq!(through(&mut core, &packet), packet);
    assert!(!told(&mut core).fragments.joins);
}

/// Three times what the link carries, for a second, in packets of 1,428 bytes of ten flows, into a hundred packets of room. Returns the share of
/// what the link sends that can be joined. `together`: what is left of a frame that has lost a fragment is dropped.
fn of_use(spec: &'static str, together: bool) -> f64 {
    let five_hundred = Fragmenting { cut: Some(Size::PUBLISHED[0]), ..EIGHT_HUNDRED };
    let mut near = core_with(build(spec), RATE, if together { five_hundred } else { Fragmenting::none() });
    // Behind the back of the discipline, which was built without knowing.
    near.fragments.cut_to(five_hundred.cut);
    let mut far = core_with(build("fifo limit 10000p"), Rate::gbit(100), JOIN);
    let (mut out, mut rng, mut at) = (Out::default(), Streams::new(7).rng(), Time::ms(1));
    let (ends, mut number) = (Time::s(1), 0u16);
    while at < ends {
        let mut frame = datagram(1442, number);
        // Ports tell flows apart; nobody takes marks.
        frame[35] = (number % 10) as u8;
        frame[15] = 0xb8;
        come(&mut near, &frame, at, at);
        near.flush(at, &mut out);
        // 1,428 bytes take 1,428 us, and one comes each 476 us on average.
        at += Span::us(rng.below(952));
        number += 1;
    }
    let sent = std::mem::take(&mut out.0.borrow_mut().sent);
    let bytes: usize = sent.iter().map(|frame| frame.len() - 14).sum();
    assert!(bytes > 950_000, "{spec}: {bytes} bytes of a million: the link is busy");
    let came: Vec<_> = sent.chunks(20).flat_map(|some| through(&mut far, some)).collect();
    let joined: usize = came.iter().map(|frame| frame.len() - 14).sum();
    // Everything leaves, and nothing is remembered of it.
    near.advance(ends + Span::s(1));
    assert_eq!(near.port.books().held(), Backlog::ZERO);
    if together {
        // At its tail; at the head none is left to be offered.
        assert_eq!(told(&mut near).fragments.spared > 0, !spec.starts_with("fq_codel"));
        assert_eq!(near.groups.as_ref().expect("it cuts").borrow().len(), 0);
    }
    joined as f64 / bytes as f64
}

/// 24 bytes of headers for each 1,428, and what is on its way at the end: the rest is of use. Without it nearly nothing is. Whoever drops at
/// the head has often sent a part already: that remains.
#[test]
fn what_an_overloaded_link_sends_can_be_joined() {
    for (spec, with, without) in [
        ("fifo limit 100p", 0.97..0.984, 0.0..0.1),
        ("drr limit 100p", 0.97..0.984, 0.2..0.5),
        ("fq_codel limit 100p", 0.6..0.8, 0.2..0.5),
    ] {
        let shares = [of_use(spec, true), of_use(spec, false)];
        println!("{spec}: {shares:.3?}");
        assert!(with.contains(&shares[0]) && without.contains(&shares[1]), "{spec}: {shares:.3?}");
    }
}
