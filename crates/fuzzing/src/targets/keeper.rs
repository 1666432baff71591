//! Any frames with control packets of reservations, right and wrong, at any time, through the two tables of a bridge:
//! no more is reserved than may be, nobody has more than a share, and every answer can be read.
//!
//! A fuzzer cannot guess a tag, so half of the events are requests that are put together here and get one.

use std::collections::BTreeMap;

use giveway_live::Arrival;
use giveway_live::reservations::{AdmissionControl, ControlFrame, Decision, Settings};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Rate, Span};
use giveway_reserve::{Kind, Message, Tuple};

use super::reserve::requests;

/// The most events of an input.
const EVENTS: usize = 200;
/// When it begins, in Unix time.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// The most reservations of a direction.
const MOST: usize = 12;
/// The most of one owner.
const OWN: usize = 3;

/// The first byte is settings: a key, others beside those that have it. Then come events: one byte says which, and others what of it.
pub fn run(input: &[u8]) {
    let Some((flags, mut rest)) = input.split_first() else { return };
    let key = (flags & 1 != 0).then(|| SipHasher::new(1, 2));
    let settings = Settings {
        key,
        most: MOST,
        owner_flows: OWN,
        lifetime: Span::s(60),
        open_share: if flags & 2 == 0 { 0 } else { 500_000 },
        ..Settings::default()
    };
    let links = [Some(Rate::mbit(10)), (flags & 4 == 0).then(|| Rate::kbit(500))];
    let mut office = Office {
        keeper: AdmissionControl::new(settings, links, [[2, 0, 0, 0, 0, 0xa0], [2, 0, 0, 0, 0, 0xb0]], BEGIN),
        key,
        now: BEGIN,
    };
    for _ in 0..EVENTS {
        let Some((event, behind)) = rest.split_first() else { return };
        rest = office.event(*event, behind);
    }
}

/// A request as a frame without a tag.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let frames = requests().map(|request| {
        let body = request.encode(None);
        [&[2, 0, 0, 0, 0, 0xff][..], &request.sender, &[0x88, 0xb5], &body].concat()
    });
    let event = |frame: &Vec<u8>| [&[0, frame.len() as u8][..], frame].concat();
    vec![[vec![2], frames.iter().flat_map(event).collect()].concat()]
}

struct Office {
    keeper: AdmissionControl,
    key: Option<SipHasher>,
    now: u64,
}

impl Office {
    /// Does what an event says, and returns what is behind it.
    fn event<'a>(&mut self, event: u8, rest: &'a [u8]) -> &'a [u8] {
        let way = usize::from(event >> 7);
        match event & 3 {
            0 => {
                let (length, rest) = rest.split_first().unwrap_or((&0, rest));
                let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
                self.frame(way, frame);
                rest
            }
            1 | 2 => {
                let Some((fields, rest)) = rest.split_first_chunk::<8>() else { return &[] };
                self.request(way, event, fields);
                rest
            }
            _ => {
                let Some(([a, b], rest)) = rest.split_first_chunk::<2>() else { return &[] };
                let number = u64::from(u16::from_le_bytes([*a, *b]));
                if event & 4 == 0 {
                    self.now += number * SECOND / 16;
                } else {
                    self.keeper.resize(way, Rate::kbit(number), self.now);
                }
                self.keeper.sweep(self.now);
                self.check();
                rest
            }
        }
    }

    /// A request of one of four machines for one of 16 flows.
    fn request(&mut self, way: usize, event: u8, fields: &[u8; 8]) {
        let [who, flow, rate_low, rate_high, start, length, number, kind] = *fields;
        let sender = [2, 0, 0, 0, 0, who % 4];
        let start = self.now - self.now % SECOND + u64::from(start) * SECOND / 4;
        let ends = kind & 1 != 0;
        let message = Message {
            kind: if ends { Kind::End } else { Kind::Start },
            tuple: Tuple {
                from: [10, 0, 0, who % 4],
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
        self.frame(way, &frame);
    }

    fn frame(&mut self, way: usize, bytes: &[u8]) {
        let arrival = Arrival {
            bytes,
            vlan: None,
            wall_ns: self.now,
            length: bytes.len() as u32,
            checksum_missing: false,
        };
        let Some(letter) = ControlFrame::of(way, &arrival) else { return };
        self.now += 1;
        self.keeper.sweep(self.now);
        let Decision { answer, forward, .. } = self.keeper.decide(&letter, self.now);
        if let Some(answer) = answer {
            let body = &answer[14..];
            let read = Message::decode(body, None).or_else(|_| Message::decode(body, self.key.as_ref()));
            let read = read.expect("an answer can be read");
            assert!(matches!(read.kind, Kind::Granted | Kind::Refused(_)), "{read:?}");
            assert_eq!(answer[..6], bytes[6..12], "it goes to who asked");
        }
        assert!(forward.is_none_or(|frame| bytes.starts_with(&frame)), "what goes on is not changed");
        self.check();
    }

    fn check(&self) {
        for shown in self.keeper.status(self.now).into_iter().flatten() {
            assert!(shown.reserved <= shown.capacity, "{shown:?}");
            assert!(shown.list.len() <= MOST, "{shown:?}");
            // An address can be forged: what comes without a key under it takes nothing from who has the key.
            let mut own: BTreeMap<(u64, bool), usize> = BTreeMap::new();
            shown.list.iter().for_each(|one| *own.entry((one.owner.id, one.owner.open)).or_default() += 1);
            assert!(own.values().all(|count| *count <= OWN), "{shown:?}");
        }
    }
}
