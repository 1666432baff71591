//! Tests of decisions about control packets, and of their effect on the packets of a direction.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{FlowKey, LinkContext, Meta, PortId, Probe, Rate, Span, Streams, Time};
use giveway_reserve::{EtherTypes, Kind, Limits, Message, MessageError, Reason, Tuple};
use giveway_watch::OpenShare;
use proptest::prelude::*;

use super::change::Change;
use super::frame::{FRAME, HEADER};
use super::*;
use crate::clock::Clock;
use crate::command::Command;
use crate::device::Arrival;
use crate::direction::{Core, Parts};
use crate::emulation::LinkEmulation;
use crate::headers::{Counting, Frame};

const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ROUTERS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0xa], [2, 0, 0, 0, 0, 0xb]];

fn tuple(port: u16) -> Tuple {
    Tuple { from: [10, 0, 0, 1], to: [10, 0, 0, 2], from_port: port, to_port: port + 1000, protocol: 17 }
}
fn start(port: u16, rate: Rate) -> Message {
    let finish = u64::MAX;
    Message { kind: Kind::Start, tuple: tuple(port), rate, start: 0, finish, sender: SENDER, number: 1 }
}
fn end(port: u16) -> Message {
    Message { kind: Kind::End, rate: Rate::default(), start: 0, finish: 0, ..start(port, Rate::default()) }
}
/// Settings with which one owner may reserve the whole capacity, with or without a key.
fn generous() -> Settings {
    Settings { owner_share: 1_000_000, open_share: 1_000_000, ..Settings::default() }
}
/// Settings with which only messages with this key are accepted.
fn keyed(key: SipHasher) -> Settings {
    Settings { key: Some(key), open_share: 0, ..generous() }
}

/// A broadcast frame.
fn frame(from: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(from);
    frame.extend(kind.to_be_bytes());
    frame.extend(body);
    frame
}
fn arrival(bytes: &[u8]) -> Arrival<'_> {
    Arrival { bytes, vlan: None, wall_ns: 0, length: bytes.len() as u32, checksum_missing: false }
}

/// Both links have 10 Mbit/s.
fn admission(settings: Settings) -> AdmissionControl {
    AdmissionControl::new(settings, [Some(Rate::mbit(10)); 2], ROUTERS, 0)
}
fn decide(admission: &mut AdmissionControl, from: [u8; 6], message: &Message, now: u64) -> Decision {
    let key = admission.settings().key;
    // A sender takes the number from its clock, so each message has another one.
    let message = Message { number: now, sender: from, ..*message };
    let bytes = frame(from, 0x88b5, &message.encode(key.as_ref()));
    admission.sweep(now);
    admission.decide(&ControlFrame::of(0, &arrival(&bytes)).expect("the frame has a control packet"), now)
}
/// Ethernet header and kind of the answer of a decision.
fn reply_to(decision: &Decision, key: Option<&SipHasher>) -> (Vec<u8>, Kind) {
    let answer = decision.answer.as_ref().expect("there is an answer");
    (
        answer[..HEADER].to_vec(),
        Message::decode(&answer[HEADER..], key).expect("the answer can be decoded").kind,
    )
}

#[test]
fn a_granted_start_is_answered_forwarded_and_reserves() {
    let mut admission = admission(generous());
    let message = start(5004, Rate::mbit(9));
    let decision = decide(&mut admission, SENDER, &message, 1000);
    let header = [&SENDER[..], &ROUTERS[0], &[0x88, 0xb5]].concat();
    assert_eq!(reply_to(&decision, None), (header.clone(), Kind::Granted));
    let sent = Message { number: 1000, ..message };
    assert_eq!(decision.forward, Some(frame(SENDER, 0x88b5, &sent.encode(None))), "the received frame");
    let lifetime = Limits::LIFETIME;
    let change = Change { tuple: tuple(5004).into(), rate: Rate::mbit(9), start: 0, until: 1000 + lifetime };
    assert_eq!(decision.change, Some(change));

    // 9.5 of 10 Mbit/s may be reserved.
    let refused = decide(&mut admission, SENDER, &start(5006, Rate::kbit(501)), 1000);
    assert_eq!(reply_to(&refused, None), (header, Kind::Refused(Reason::NoRoom)));
    assert_eq!((refused.forward, refused.change), (None, None));

    let ended = decide(&mut admission, SENDER, &end(5004), 2000);
    assert_eq!(ended.change, Some(Change::removed(tuple(5004).into())));
    assert!(ended.forward.is_some() && reply_to(&ended, None).1 == Kind::Granted);
    // A downstream router may know a reservation that this router does not.
    let unknown = decide(&mut admission, SENDER, &end(5004), 2000);
    assert_eq!((unknown.answer, unknown.forward.is_some(), unknown.change), (None, true, None));
}

#[test]
fn answers_of_other_routers_are_forwarded() {
    let mut admission = admission(generous());
    let answer = start(5004, Rate::mbit(1)).answer(Some(Reason::TableFull));
    let decision = decide(&mut admission, SENDER, &answer, 1);
    assert_eq!((decision.answer, decision.forward.is_some(), decision.change), (None, true, None));
    assert_eq!(admission.status(1)[0].as_ref().map(|status| status.counts.stray_answers), Some(1));
}

#[test]
fn messages_with_another_key_or_owner_change_nothing() {
    let key = SipHasher::new(1, 2);
    let mut admission = admission(keyed(key));
    let granted = decide(&mut admission, SENDER, &start(5004, Rate::mbit(1)), 1);
    assert_eq!(reply_to(&granted, Some(&key)).1, Kind::Granted);
    for other in [None, Some(&SipHasher::new(1, 3))] {
        let bytes = frame(SENDER, 0x88b5, &end(5004).encode(other));
        let decision = admission.decide(&ControlFrame::of(0, &arrival(&bytes)).unwrap(), 2);
        assert_eq!(decision, Decision::default(), "a forged message gets no answer");
    }
    let thief = decide(&mut admission, [2, 0, 0, 0, 0, 9], &end(5004), 2);
    assert_eq!((reply_to(&thief, Some(&key)).1, thief.forward), (Kind::Refused(Reason::NotYours), None));
    let status = admission.status(3)[0].clone().unwrap();
    assert_eq!((status.malformed[5], MessageError::NAMES[5], status.counts.refused), (2, "forged", 1));
    assert_eq!((status.reserved, status.list.len()), (Rate::mbit(1), 1));
}

/// A start, its end, and a copy of the start. With a key, the copy is refused on either side, with another
/// source address, after the reservation was removed, and after a restart of the router.
#[test]
fn replayed_messages_are_refused() {
    let key = SipHasher::new(1, 2);
    let second = 1_000_000_000;
    let now = 1_000 * second;
    let mut router = AdmissionControl::new(keyed(key), [Some(Rate::mbit(10)); 2], ROUTERS, now - second);
    let message_frame = |direction, from, message: Message, number| {
        let message = Message { number, ..message };
        ControlFrame::of(direction, &arrival(&frame(from, 0x88b5, &message.encode(Some(&key))))).unwrap()
    };
    let recorded = message_frame(0, SENDER, start(5004, Rate::mbit(1)), now);
    assert!(router.decide(&recorded, now).change.is_some());
    let ended = router.decide(&message_frame(0, SENDER, end(5004), now + 1), now + 1);
    assert_eq!(reply_to(&ended, Some(&key)).1, Kind::Granted);

    let refused = |router: &mut AdmissionControl, message_frame: &ControlFrame, now| {
        let decision = router.decide(message_frame, now);
        assert_eq!((decision.forward.clone(), decision.change), (None, None));
        match reply_to(&decision, Some(&key)).1 {
            Kind::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&mut router, &recorded, now + 2), Reason::Replayed);
    let other_side = message_frame(1, SENDER, start(5004, Rate::mbit(1)), now);
    assert_eq!(refused(&mut router, &other_side, now + 2), Reason::Replayed);
    assert_eq!(refused(&mut router, &recorded, now + 61 * second), Reason::Clock);
    // With another source address the message does not name the source of the frame.
    let bytes = frame([2, 0, 0, 0, 0, 9], 0x88b5, &recorded.bytes[HEADER..]);
    let thief = router.decide(&ControlFrame::of(0, &arrival(&bytes)).unwrap(), now + 2);
    assert_eq!(thief, Decision::default());
    // A router that was restarted knows no owner, and refuses messages that are older than its start.
    let mut again = AdmissionControl::new(keyed(key), [Some(Rate::mbit(10)); 2], ROUTERS, now + 5);
    assert_eq!(refused(&mut again, &recorded, now + 6), Reason::Replayed);
    assert!(
        again
            .decide(&message_frame(0, SENDER, start(5004, Rate::mbit(1)), now + 7), now + 8)
            .change
            .is_some()
    );
    let status = router.status(now)[0].clone().unwrap();
    assert_eq!((status.malformed[10], MessageError::NAMES[10], status.list.len()), (1, "owner", 0));
}

/// Messages from group addresses and from zero get no answer.
#[test]
fn group_addresses_and_zero_cannot_reserve() {
    let mut admission = admission(generous());
    for from in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]] {
        assert_eq!(
            decide(&mut admission, from, &start(5004, Rate::mbit(1)), 5),
            Decision::default(),
            "{from:02x?}"
        );
    }
    let status = admission.status(6)[0].clone().unwrap();
    assert_eq!((status.malformed[10], status.list.len()), (4, 0));
}

/// Without a key a host can forge any number of owners. All owners without a key together get half of the
/// reservable rate and of the table. With a key and a share for messages without one, both kinds are
/// accepted.
#[test]
fn owners_without_a_key_share_a_limit() {
    let forger = |number: u16| {
        let [high, low] = number.to_be_bytes();
        [2, 9, 9, 9, high, low]
    };
    let mut open = admission(Settings::default());
    for number in 0..2000 {
        decide(&mut open, forger(number), &start(number, Rate::kbit(8)), 5);
    }
    let status = open.status(6)[0].clone().unwrap();
    assert_eq!(
        (status.capacity, status.reserved, status.list.len()),
        (Rate::kbit(9500), Rate::kbit(593 * 8), 593)
    );
    // An operator sees that the share is used up, by many addresses with little each.
    let share =
        OpenShare { capacity: Rate::kbit(4750), reserved: Rate::kbit(593 * 8), flows: 593, owners: 593 };
    assert_eq!(status.open, share);

    let key = SipHasher::new(1, 2);
    let mut both = admission(Settings { key: Some(key), open_share: 100_000, ..generous() });
    let untagged = |number: u16, rate| {
        let message = Message { sender: forger(number), ..start(number, rate) };
        ControlFrame::of(0, &arrival(&frame(forger(number), 0x88b5, &message.encode(None)))).unwrap()
    };
    let decision = both.decide(&untagged(1, Rate::kbit(950)), 5);
    assert_eq!(reply_to(&decision, None).1, Kind::Granted);
    let decision = both.decide(&untagged(2, Rate::kbit(8)), 5);
    assert_eq!(reply_to(&decision, None).1, Kind::Refused(Reason::OpenFull));
    let decision = decide(&mut both, SENDER, &start(5004, Rate::kbit(8550)), 5);
    assert_eq!(reply_to(&decision, Some(&key)).1, Kind::Granted);
    // A message with a wrong tag is forged; it does not count as one without a tag.
    let forged = Message { sender: forger(3), ..start(3, Rate::kbit(8)) }.encode(Some(&SipHasher::new(1, 3)));
    let bytes = frame(forger(3), 0x88b5, &forged);
    assert_eq!(both.decide(&ControlFrame::of(0, &arrival(&bytes)).unwrap(), 6), Decision::default());
}

#[test]
fn a_start_of_version_1_is_refused_with_the_reason() {
    let mut admission = admission(generous());
    // A message of version 1, as in the tests of `giveway_reserve::message`.
    let old = [
        0x47, 0x57, 1, 1, 0, 56, 0xf1, 0x5b, 192, 0, 2, 1, 198, 51, 100, 7, 0x13, 0x8c, 0x17, 0x70, 17, 0, 0,
        0, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 0x0e, 0x33, 0xe2, 0x22,
        0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let bytes = frame(SENDER, 0x88b5, &old);
    let decision = admission.decide(&ControlFrame::of(0, &arrival(&bytes)).unwrap(), 5);
    assert_eq!(reply_to(&decision, None).1, Kind::Refused(Reason::OldVersion));
    assert_eq!((decision.forward, decision.change), (None, None));
    let status = admission.status(6)[0].clone().unwrap();
    assert_eq!((status.malformed[2], MessageError::NAMES[2], status.counts.refused), (1, "version", 1));
}

/// Each malformed message is counted under the name of its error, and changes nothing.
#[test]
fn malformed_messages_are_counted() {
    let mut admission = admission(Settings { types: EtherTypes::PUBLISHED, ..generous() });
    let whole = start(5004, Rate::mbit(1)).encode(None);
    let mut damaged = whole;
    damaged[30] ^= 1;
    for (kind, body) in [(0x0801, &whole[..40]), (0x0801, &damaged[..]), (0x0802, &whole[..])] {
        let bytes = frame(SENDER, kind, body);
        assert_eq!(admission.decide(&ControlFrame::of(1, &arrival(&bytes)).unwrap(), 2), Decision::default());
    }
    let status = admission.status(2);
    let counted = status[1].as_ref().unwrap().malformed;
    let named: Vec<_> = MessageError::NAMES.iter().zip(counted).filter(|(_, count)| *count > 0).collect();
    assert_eq!(named, [(&"short", 1), (&"checksum", 1), (&"kind", 1)]);
    assert_eq!(status[0].as_ref().unwrap().malformed, [0; 11], "the other direction has separate counters");
}

#[test]
fn expired_and_revoked_reservations_are_returned() {
    let mut admission = admission(generous());
    decide(&mut admission, SENDER, &start(5004, Rate::mbit(4)), 1);
    decide(&mut admission, SENDER, &start(5006, Rate::mbit(5)), 1);
    let gone = |port| (0, Change::removed(tuple(port).into()));
    assert_eq!(admission.resize(0, Rate::mbit(5), 2), [gone(5006)]);
    assert_eq!(admission.resize(1, Rate::mbit(1), 2), []);
    assert_eq!(admission.status(2)[0].as_ref().unwrap().capacity, Rate::kbit(4750));
    assert_eq!(admission.sweep(Limits::LIFETIME), []);
    assert_eq!(admission.sweep(1 + Limits::LIFETIME), [gone(5004)]);
}

/// The VLAN tag that the kernel has stripped is inserted into answers and forwarded frames.
#[test]
fn answers_have_the_vlan_tag_of_the_request() {
    let mut admission = admission(generous());
    let bytes = frame(SENDER, 0x88b5, &start(5004, Rate::mbit(1)).encode(None));
    let tagged = Arrival { vlan: Some([0x81, 0, 0, 7]), ..arrival(&bytes) };
    let decision = admission.decide(&ControlFrame::of(0, &tagged).unwrap(), 2);
    for frame in [decision.answer.unwrap(), decision.forward.unwrap()] {
        assert_eq!(frame[12..20], [0x81, 0, 0, 7, 0x88, 0xb5, b'G', b'W']);
        assert_eq!(frame.len(), FRAME + 4);
    }
}

/// If the queue of the service is full, a control packet is counted as lost and not forwarded.
#[test]
fn only_control_packets_are_intercepted() {
    let (service, [flows, none], client) = create(generous(), [Some(Rate::mbit(10)), None], ROUTERS);
    let mut flows = flows.unwrap();
    assert!(none.is_none());
    let control = frame(SENDER, 0x88b5, &start(5004, Rate::mbit(1)).encode(None));
    for other in
        [&frame(SENDER, 0x0800, &control[14..])[..], &frame(SENDER, 0x88b5, b"GX"), &control[..13], b""]
    {
        assert!(!flows.intercept(&arrival(other)));
    }
    for _ in 0..QUEUE + 5 {
        assert!(flows.intercept(&arrival(&control)));
    }
    assert_eq!(service.requests.try_iter().count(), QUEUE);
    assert_eq!(service.admission.status(1)[0].as_ref().unwrap().overflow, 5);
    drop((service, client));
    assert!(!flows.intercept(&arrival(&control)), "without a service the frame is forwarded");
}

/// A probe that records the metadata of arrivals.
#[derive(Clone, Default)]
struct Metas(Rc<RefCell<Vec<Meta>>>);
#[expect(unsafe_code, reason = "the probe of a direction must be `Send`")]
// SAFETY: each test uses its probe, and the clones of the `Rc`, in one thread only.
unsafe impl Send for Metas {}
impl Probe<Frame> for Metas {
    fn on_arrival(&mut self, _: PortId, meta: &Meta, _: Time) {
        self.0.borrow_mut().push(*meta);
    }
}

/// A direction with reservations.
fn core(qdisc: &str, xor_mod: Option<u32>) -> (Core, Metas, ReservationService) {
    let spec: giveway_disciplines::Spec = qdisc.parse().unwrap();
    let (service, [flows, _], _) = create(generous(), [Some(Rate::mbit(8)), None], ROUTERS);
    let metas = Metas::default();
    let core = Core::new(Parts {
        id: PortId(0),
        rate: Rate::mbit(8),
        build: Box::new(move |rate| spec.build(&LinkContext::new(rate, Streams::new(1))).unwrap()),
        emulation: LinkEmulation::none(),
        start: giveway_qdisc::Time::ZERO,
        counting: Counting { overhead: 0, mpu: 0 },
        ethernet: true,
        longest_in: 1518,
        longest_out: 1518,
        buffers: 64,
        streams: Streams::new(1),
        xor_mod: xor_mod.and_then(NonZeroU32::new),
        reserved_flows: flows,
        probe: Some(Box::new(metas.clone())),
        tap: None,
        fragments: crate::fragments::Settings::none(),
        clock: Clock::start(),
    });
    (core, metas, service)
}

/// A datagram of 1,000 bytes.
fn datagram(from_port: u16, to_port: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    bytes.extend(1000u16.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(from_port.to_be_bytes());
    bytes.extend(to_port.to_be_bytes());
    bytes.extend(980u16.to_be_bytes());
    bytes.resize(1014, 0);
    bytes
}

/// 5004 to 6004 and 6004 to 5004 have the same exclusive or, so the hash of the TRR paper does not
/// distinguish them. The reservation is found by the whole tuple.
#[test]
fn packets_carry_the_reserved_rate_of_their_own_flow() {
    for prime in [None, Some(1021)] {
        let (mut core, metas, _service) = core("trr_sound", prime);
        let change = Change { tuple: tuple(5004).into(), rate: Rate::mbit(2), start: 100, until: 200 };
        core.apply(Command::Reserve(change));
        let arrive = |core: &mut Core, bytes: &[u8], wall_ns| {
            core.arrive(&Arrival { wall_ns, ..arrival(bytes) }, core.clock().now());
        };
        let (own, other) = (datagram(5004, 6004), datagram(6004, 5004));
        for (bytes, wall_ns) in [(&own, 99), (&own, 100), (&other, 100), (&own, 199), (&own, 200)] {
            arrive(&mut core, bytes, wall_ns);
        }
        core.apply(Command::Reserve(Change::removed(tuple(5004).into())));
        arrive(&mut core, &own, 150);
        let metas = metas.0.borrow();
        let reserved: Vec<u64> = metas.iter().map(|meta| meta.reserved.as_bit() / 1_000_000).collect();
        assert_eq!(reserved, [0, 2, 0, 2, 0, 0]);
        assert_eq!(
            metas[1].flow == metas[2].flow,
            prime.is_some(),
            "both are one flow to disciplines only with the hash of the paper"
        );
    }
}

/// With the hash of the TRR paper, a datagram waits behind a flood in the reverse direction of its flow. With
/// a keyed hash both flows have separate queues.
#[test]
fn flows_with_the_same_hash_share_a_queue() {
    let result = |prime| {
        let (mut core, metas, _service) = core("drr", prime);
        let now = core.clock().now();
        // Arrivals at the same time: the first datagram goes to the link, then five of the flood, then one of
        // the flow in the reverse direction.
        for bytes in [vec![datagram(6004, 5004); 6], vec![datagram(5004, 6004)]].concat() {
            core.arrive(&arrival(&bytes), now);
        }
        let flows: Vec<FlowKey> = metas.0.borrow().iter().map(|meta| meta.flow).collect();
        let mut wire = Vec::new();
        core.advance(now + Span::ms(20));
        core.flush(now + Span::ms(20), &mut Ports(&mut wire));
        (flows[0] == flows[6], wire.iter().position(|port| *port == 5004).expect("the datagram is sent"))
    };
    let (keyed, xor) = (result(None), result(Some(1021)));
    assert_eq!(xor, (true, 6), "after the whole flood");
    assert!(!keyed.0 && keyed.1 <= 3, "{keyed:?}: not after the flood");
}

/// A sender that records the source ports of datagrams.
struct Ports<'a>(&'a mut Vec<u16>);
impl crate::device::Sender for Ports<'_> {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, crate::device::SendError> {
        self.0.extend(frames.iter().map(|frame| u16::from_be_bytes([frame[34], frame[35]])));
        Ok(frames.len())
    }
    fn fd(&self) -> std::os::fd::RawFd {
        -1
    }
}

/// A generated frame leaves after the backlog, and does not count as a change.
#[test]
fn answers_are_queued_like_other_frames() {
    let (mut core, _, _service) = core("fifo", None);
    let now = core.clock().now();
    for _ in 0..3 {
        core.arrive(&arrival(&datagram(1, 2)), now);
    }
    core.apply(Command::Frame(frame(SENDER, 0x88b5, &[0; 72])));
    let mut wire = Vec::new();
    core.advance(now + Span::ms(20));
    core.flush(now + Span::ms(20), &mut Ports(&mut wire));
    assert_eq!((wire, core.statistics().changes), (vec![1, 1, 1, 0], 0));
}

proptest! {
    /// Any frames, valid ones among them: every answer can be decoded, and forwarded frames are unchanged.
    #[test]
    fn any_frames_get_a_decision(
        frames in proptest::collection::vec((0..2usize, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..106), 0..4u16), 1..40),
        keyed: bool,
    ) {
        let key = keyed.then(|| SipHasher::new(1, 2));
        let open_share = if keyed { 0 } else { 1_000_000 };
        let mut admission = admission(Settings { key, most: 3, open_share, ..generous() });
        for (now, (direction, whole, bytes, port)) in (0u64..).zip(frames) {
            let body = if whole { Message { number: now, ..start(port, Rate::mbit(4)) }.encode(key.as_ref()).to_vec() } else { [b"GW", &bytes[..]].concat() };
            let frame = frame(SENDER, 0x88b5, &body);
            for cut in [frame.len(), frame.len() / 2, bytes.len().min(frame.len())] {
                let Some(message_frame) = ControlFrame::of(direction, &arrival(&frame[..cut])) else { continue };
                admission.sweep(now);
                let decision = admission.decide(&message_frame, now);
                if let Some(answer) = &decision.answer {
                    prop_assert!(Message::decode(&answer[HEADER..], key.as_ref()).is_ok());
                }
                if let Some(forward) = &decision.forward {
                    prop_assert_eq!(&frame[..FRAME], &forward[..]);
                }
            }
            let status = admission.status(now);
            for status in status.iter().flatten() {
                prop_assert!(status.reserved <= status.capacity && status.list.len() <= 3);
            }
        }
    }
}
