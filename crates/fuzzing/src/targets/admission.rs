//! Any frames with control packets of reservations at any time, through the two tables of a bridge: no
//! direction reserves more than its capacity, no owner has more than its share, and every answer can be
//! decoded.
//!
//! A fuzzer cannot guess an authentication tag, so half of the events are requests that this target builds.

use std::collections::BTreeMap;

use giveway_live::Arrival;
use giveway_live::reservations::{AdmissionControl, ControlFrame, Decision, Settings};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Rate, Span};
use giveway_reserve::{Kind, Message, Tuple};

use super::reserve::requests;

/// Largest number of events of an input.
const EVENTS: usize = 200;
/// Start of a run, in nanoseconds of Unix time.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// Largest number of reservations of a direction.
const MAX: usize = 12;
/// Largest number of reservations of one owner.
const OWN: usize = 3;

/// Input: one byte of settings (a key, a share for requests without the key, the rate of the reverse
/// direction), then events: one byte for the kind, then its parameters.
pub fn run(input: &[u8]) {
    let Some((flags, mut rest)) = input.split_first() else { return };
    let key = (flags & 1 != 0).then(|| SipHasher::new(1, 2));
    let settings = Settings {
        key,
        most: MAX,
        owner_flows: OWN,
        lifetime: Span::s(60),
        open_share: if flags & 2 == 0 { 0 } else { 500_000 },
        ..Settings::default()
    };
    let links = [Some(Rate::mbit(10)), (flags & 4 == 0).then(|| Rate::kbit(500))];
    let mut bridge = Bridge {
        admission: AdmissionControl::new(
            settings,
            links,
            [[2, 0, 0, 0, 0, 0xa0], [2, 0, 0, 0, 0, 0xb0]],
            BEGIN,
        ),
        key,
        now: BEGIN,
    };
    for _ in 0..EVENTS {
        let Some((event, after)) = rest.split_first() else { return };
        rest = bridge.event(*event, after);
    }
}

/// Seeds: requests in frames without a tag.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let frames = requests().map(|request| {
        let body = request.encode(None);
        [&[2, 0, 0, 0, 0, 0xff][..], &request.sender, &[0x88, 0xb5], &body].concat()
    });
    let event = |frame: &Vec<u8>| [&[0, frame.len() as u8][..], frame].concat();
    vec![[vec![2], frames.iter().flat_map(event).collect()].concat()]
}

/// The reservation tables of a bridge.
struct Bridge {
    admission: AdmissionControl,
    key: Option<SipHasher>,
    /// Nanoseconds of Unix time.
    now: u64,
}

impl Bridge {
    /// Applies an event, and returns the input after it.
    fn event<'a>(&mut self, event: u8, rest: &'a [u8]) -> &'a [u8] {
        let direction = usize::from(event >> 7);
        match event & 3 {
            0 => {
                let (length, rest) = rest.split_first().unwrap_or((&0, rest));
                let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
                self.frame(direction, frame);
                rest
            }
            1 | 2 => {
                let Some((fields, rest)) = rest.split_first_chunk::<8>() else { return &[] };
                self.request(direction, event, fields);
                rest
            }
            _ => {
                let Some(([a, b], rest)) = rest.split_first_chunk::<2>() else { return &[] };
                let number = u64::from(u16::from_le_bytes([*a, *b]));
                if event & 4 == 0 {
                    self.now += number * SECOND / 16;
                } else {
                    self.admission.resize(direction, Rate::kbit(number), self.now);
                }
                self.admission.sweep(self.now);
                self.check();
                rest
            }
        }
    }

    /// Sends a request of one of four hosts for one of 16 flows.
    fn request(&mut self, direction: usize, event: u8, fields: &[u8; 8]) {
        let [host, flow, rate_low, rate_high, start, length, number, kind] = *fields;
        let sender = [2, 0, 0, 0, 0, host % 4];
        let start = self.now - self.now % SECOND + u64::from(start) * SECOND / 4;
        let ends = kind & 1 != 0;
        let message = Message {
            kind: if ends { Kind::End } else { Kind::Start },
            tuple: Tuple {
                from: [10, 0, 0, host % 4],
                to: [10, 0, 1, 1],
                from_port: u16::from(flow % 16),
                to_port: 443,
                protocol: 17,
            },
            rate: Rate::kbit(u64::from(u16::from_le_bytes([rate_low, rate_high]))),
            start: if ends { 0 } else { start },
            finish: if ends { 0 } else { start + u64::from(length) * SECOND },
            sender,
            number: self.now.saturating_add_signed(i64::from(number as i8) * (SECOND / 4) as i64),
        };
        let key = self.key.filter(|_| event & 8 == 0);
        let mut frame = [&[2, 0, 0, 0, 0, 0xff][..], &sender, &[0x88, 0xb5]].concat();
        frame.extend(message.encode(key.as_ref()));
        self.frame(direction, &frame);
    }

    fn frame(&mut self, direction: usize, bytes: &[u8]) {
        let arrival = Arrival {
            bytes,
            vlan: None,
            wall_ns: self.now,
            length: bytes.len() as u32,
            checksum_missing: false,
        };
        let Some(request) = ControlFrame::of(direction, &arrival) else { return };
        self.now += 1;
        self.admission.sweep(self.now);
        let Decision { answer, forward, .. } = self.admission.decide(&request, self.now);
        if let Some(answer) = answer {
            let body = &answer[14..];
            let read = Message::decode(body, None).or_else(|_| Message::decode(body, self.key.as_ref()));
            let read = read.expect("an answer can be decoded");
            assert!(matches!(read.kind, Kind::Granted | Kind::Refused(_)), "{read:?}");
            assert_eq!(answer[..6], bytes[6..12], "the answer goes to the sender of the request");
        }
        assert!(forward.is_none_or(|frame| bytes.starts_with(&frame)), "a forwarded frame is not changed");
        self.check();
    }

    fn check(&self) {
        for shown in self.admission.status(self.now).into_iter().flatten() {
            assert!(shown.reserved <= shown.capacity, "{shown:?}");
            assert!(shown.list.len() <= MAX, "{shown:?}");
            // An address can be forged, so requests without the key do not count against an owner with the
            // key.
            let mut own: BTreeMap<(u64, bool), usize> = BTreeMap::new();
            shown.list.iter().for_each(|one| *own.entry((one.owner.id, one.owner.open)).or_default() += 1);
            assert!(own.values().all(|count| *count <= OWN), "{shown:?}");
        }
    }
}
