//! Any bytes are messages or refused; damage is found.

#[path = "support/bytes.rs"]
mod support;

use giveway_qdisc::Rate;
use giveway_qdisc::hash::SipHasher;
use giveway_reserve::message::LENGTH;
use giveway_reserve::{Kind, Message, MessageError, Reason, Tuple};
use proptest::prelude::*;

fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![
        Just(Kind::Start),
        Just(Kind::End),
        Just(Kind::Granted),
        (0..Reason::ALL.len()).prop_map(|which| Kind::Refused(Reason::ALL[which])),
    ];
    let tuple = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<(u16, u16)>(), any::<u8>());
    let rest = (any::<(u64, u64, u64)>(), any::<[u8; 6]>(), any::<u64>());
    (kind, tuple, rest).prop_map(|(kind, tuple, ((rate, start, finish), sender, number))| {
        let (from, to, (from_port, to_port), protocol) = tuple;
        let (start, finish) = if kind == Kind::End { (0, 0) } else { (start, finish) };
        let tuple = Tuple { from, to, from_port, to_port, protocol };
        Message { kind, tuple, rate: Rate::bit(rate), start, finish, sender, number }
    })
}

proptest! {
    #[test]
    fn messages_are_encoded_and_decoded_again(message in message(), keyed: bool, padding in 0..20usize) {
        let key = keyed.then(|| SipHasher::new(5, 6));
        let mut bytes = message.encode(key.as_ref()).to_vec();
        bytes.resize(LENGTH + padding, 0xaa);
        prop_assert_eq!(Message::decode(&bytes, key.as_ref()), Ok(message));
    }

    /// Any single wrong bit is detected.
    #[test]
    fn damage_is_found(message in message(), bit in 0..LENGTH * 8) {
        let mut bytes = message.encode(None);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Message::decode(&bytes, None).is_err());
    }

    /// A changed message with a correct checksum, but without the key, is refused.
    #[test]
    fn forgery_is_found(message in message(), other in message()) {
        prop_assume!(message != other);
        let key = SipHasher::new(5, 6);
        let mut bytes = other.encode(None);
        bytes[64..72].copy_from_slice(&message.encode(Some(&key))[64..72]);
        // Compute the checksum of the forged message.
        let sum = |bytes: &[u8]| {
            let sum: u32 = bytes.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
            let once = (sum & 0xffff) + (sum >> 16);
            (once & 0xffff) + (once >> 16)
        };
        bytes[6..8].fill(0);
        let right = !(sum(&bytes) as u16);
        bytes[6..8].copy_from_slice(&right.to_be_bytes());
        prop_assert!(Message::decode(&bytes, None).is_ok());
        prop_assert_eq!(Message::decode(&bytes, Some(&key)), Err(MessageError::Forged));
    }

    #[test]
    fn any_bytes_are_messages_or_refused(
        messages in prop::collection::vec(message(), 0..20),
        junk in prop::collection::vec(any::<u8>(), 0..300),
        keyed: bool,
    ) {
        let key = keyed.then(|| SipHasher::new(1, 2));
        let mut input = vec![u8::from(keyed)];
        messages.iter().for_each(|message| input.extend(message.encode(key.as_ref())));
        input.extend(junk);
        prop_assert!(support::messages(&input) >= messages.len());
    }
}
