//! Any bytes are parsed as control packets of reservations, or rejected. The table keeps its limits.

use giveway_qdisc::Rate;
use giveway_qdisc::hash::SipHasher;
use giveway_reserve::{Kind, Message, Tuple};

#[path = "../../../reserve/tests/support/bytes.rs"]
mod bytes;

/// Input: one byte that selects a key, then control packets.
pub fn run(input: &[u8]) {
    let _ = bytes::messages(input);
}

/// Seeds: a start and an end, without and with a key. A fuzzer cannot guess their checksums.
pub fn seeds() -> Vec<Vec<u8>> {
    let both = |key: Option<SipHasher>| {
        let written = requests().map(|request| request.encode(key.as_ref()));
        [&[u8::from(key.is_some())][..], written.as_flattened()].concat()
    };
    vec![both(None), both(Some(SipHasher::new(1, 2)))]
}

/// Requests that start and end a reservation.
pub(crate) fn requests() -> [Message; 2] {
    let tuple = Tuple { from: [10, 0, 0, 1], to: [10, 0, 1, 1], from_port: 4000, to_port: 443, protocol: 17 };
    let start = Message {
        kind: Kind::Start,
        tuple,
        rate: Rate::mbit(1),
        start: 1_000_000_000,
        finish: 9_000_000_000,
        sender: [2, 0, 0, 0, 0, 1],
        number: 1,
    };
    [start, Message { kind: Kind::End, start: 0, finish: 0, number: 2, ..start }]
}
