//! Tests of encoding and decoding.

use super::*;

fn start() -> Message {
    Message {
        kind: Kind::Start,
        tuple: Tuple {
            from: [192, 0, 2, 1],
            to: [198, 51, 100, 7],
            from_port: 5004,
            to_port: 6000,
            protocol: 17,
        },
        rate: Rate::mbit(1),
        start: 1_000_000_000,
        finish: 61_000_000_000,
        sender: [2, 0, 0, 0, 0, 1],
        number: 0x1122_3344_5566_7788,
    }
}

#[test]
fn byte_by_byte() {
    let expected: [u8; LENGTH] = [
        0x47, 0x57, 2, 1, 0, 72, 0xdc, 0xf5, 192, 0, 2, 1, 198, 51, 100, 7, 0x13, 0x8c, 0x17, 0x70, 17, 0, 0,
        0, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 0x0e, 0x33, 0xe2, 0x22,
        0, 2, 0, 0, 0, 0, 1, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let got = start().encode(None);
    // By hand: all words with the checksum add up to ones only.
    let (words, _) = got.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    assert_eq!(got, expected);
}

/// Each mistake gives its own error, in messages with a correct checksum.
#[test]
fn each_mistake_has_its_error() {
    let error_at = |at: usize, byte: u8| {
        let mut bytes = start().encode(None);
        bytes[at] = byte;
        bytes[CHECKSUM].fill(0);
        let sum = checksum(&bytes);
        bytes[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        Message::decode(&bytes, None).unwrap_err()
    };
    assert_eq!(error_at(0, 0x45), MessageError::Magic([0x45, 0x57]));
    assert_eq!(error_at(2, 1), MessageError::Version(1));
    assert_eq!(error_at(3, 5), MessageError::Kind(5));
    assert_eq!(error_at(3, 4), MessageError::Reason(0, 4));
    assert_eq!(error_at(21, 1), MessageError::Reason(1, 1));
    assert_eq!(error_at(5, 48), MessageError::Length(48));
    assert_eq!(error_at(23, 1), MessageError::Reserved);
    assert_eq!(error_at(55, 1), MessageError::Reserved);
    assert_eq!(error_at(3, 2), MessageError::Times, "a start made into an end");
    assert_eq!(Message::decode(&start().encode(None)[..71], None), Err(MessageError::Short(71)));
}

/// A start of version 1, byte by byte as that version wrote it.
#[test]
fn version_1_is_an_error_but_can_be_answered() {
    let old: [u8; LENGTH_1] = [
        0x47, 0x57, 1, 1, 0, 56, 0xf1, 0x5b, 192, 0, 2, 1, 198, 51, 100, 7, 0x13, 0x8c, 0x17, 0x70, 17, 0, 0,
        0, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 0x0e, 0x33, 0xe2, 0x22,
        0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(Message::decode(&old, None), Err(MessageError::Version(1)));
    let sender = [2, 0, 0, 0, 0, 1];
    let read = Message::decode_version_1(&old, sender, None);
    assert_eq!(read, Some(Message { number: 0, ..start() }));
    let key = SipHasher::new(1, 2);
    assert_eq!(
        Message::decode_version_1(&old, sender, Some(&key)),
        None,
        "without the key there is no answer"
    );
    let mut tagged = old;
    tagged[CHECKSUM].fill(0);
    let tag = key.hash(&tagged[..TAG_1.start]);
    tagged[TAG_1].copy_from_slice(&tag.to_be_bytes());
    let sum = checksum(&tagged);
    tagged[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    assert!(Message::decode_version_1(&tagged, sender, Some(&key)).is_some());
    for at in 0..LENGTH_1 {
        let mut damaged = old;
        damaged[at] ^= 4;
        assert_eq!(Message::decode_version_1(&damaged, sender, None), None, "byte {at}");
    }
    let long = start().encode(None);
    assert_eq!(Message::decode_version_1(&long, sender, None), None, "that is version 2");
}

#[test]
fn the_owner_is_a_machine_and_the_one_that_sends() {
    let message = start();
    assert_eq!(message.check_owner([2, 0, 0, 0, 0, 1]), Ok(()));
    for from in [[2, 0, 0, 0, 0, 2], [0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        assert_eq!(message.check_owner(from), Err(MessageError::Owner), "{from:02x?}");
        let named = Message { sender: from, ..message };
        assert_eq!(named.check_owner(from).is_ok(), from == [2, 0, 0, 0, 0, 2], "{from:02x?}");
    }
}

#[test]
fn messages_without_the_key_are_errors() {
    let (key, other) = (SipHasher::new(1, 2), SipHasher::new(1, 3));
    let bytes = start().encode(Some(&key));
    assert_eq!(Message::decode(&bytes, Some(&key)), Ok(start()));
    assert_eq!(Message::decode(&bytes, Some(&other)), Err(MessageError::Forged));
    assert_eq!(Message::decode(&start().encode(None), Some(&key)), Err(MessageError::Forged));
    assert_eq!(Message::decode(&bytes, None), Ok(start()), "a router without a key ignores tags");
}
