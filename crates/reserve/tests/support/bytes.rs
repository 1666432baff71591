//! Properties of arbitrary bytes, for the property tests and the fuzz target.

use giveway_qdisc::hash::SipHasher;
use giveway_reserve::{Limits, Message, Owner, Table};

/// The first byte selects whether there is a key; the rest are messages. A decoded message encodes to the
/// same bytes, and no sequence of messages makes the table exceed its limits.
pub fn messages(input: &[u8]) -> usize {
    let Some((keyed, rest)) = input.split_first() else { return 0 };
    let key = (keyed % 2 == 1).then(|| SipHasher::new(1, 2));
    let limits = Limits { most: 8, lifetime: 1 << 40, ..Limits::of(giveway_qdisc::Rate::mbit(10)) };
    let mut table = Table::new(Limits { capacity: giveway_qdisc::Rate::mbit(10), ..limits });
    let mut read = 0;
    for (now, bytes) in (0u64..).zip(rest.chunks(giveway_reserve::message::LENGTH)) {
        let Ok(message) = Message::decode(bytes, key.as_ref()) else { continue };
        read += 1;
        if let Some(key) = &key {
            assert_eq!(message.encode(Some(key))[..], bytes[..], "a message has one encoding");
        }
        assert_eq!(Message::decode(&message.encode(key.as_ref()), key.as_ref()), Ok(message));
        let now = now << 32;
        if let Some(answer) = table.take(&message, Owner { id: (now >> 32) % 3, open: key.is_none() }, now) {
            assert_eq!(Message::decode(&answer.encode(key.as_ref()), key.as_ref()), Ok(answer));
        }
        // The rate of the link sometimes changes, to a value from the message.
        if read % 5 == 4 {
            let capacity = giveway_qdisc::Rate::bit(message.rate.as_bit() % 10_000_000);
            for tuple in table.resize(capacity, now) {
                assert_eq!(table.get(&tuple), None, "a revoked reservation is removed");
            }
        }
        assert!(table.sum(now) <= table.capacity());
        assert_eq!(table.iter().count(), table.len());
        assert!(table.len() <= 8);
        assert!(table.reserved(&message.tuple, now) <= giveway_qdisc::Rate::mbit(10));
    }
    read
}
