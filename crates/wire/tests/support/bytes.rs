//! The interpretation of fuzzed bytes, shared by the fuzz target and by tests without a fuzzer.

use giveway_qdisc::{Label, Rate};
use giveway_wire::WireError;
use giveway_wire::label;

/// Checks that any bytes are a packet with a label, without one, or one that is refused, and that all
/// functions agree on it. Returns the result of reading.
///
/// # Panics
/// If this does not hold.
pub fn label(packet: &[u8]) -> Result<Label, WireError> {
    let found = label::read(packet);
    let refusal = |change: &dyn Fn(&mut Vec<u8>) -> Result<(), WireError>| {
        let mut same = packet.to_vec();
        let error = change(&mut same).expect_err("the packet does not allow it");
        assert_eq!(same, packet, "a refused packet is unchanged");
        error
    };
    let [first, second] = [Label::of(Rate::mbit(3)), Label::SHORT];
    refusal(&|packet| label::insert(packet, Label::NONE));
    refusal(&|packet| label::rewrite(packet, Label::NONE));
    match found {
        Err(error) => {
            assert_eq!(refusal(&|packet| label::insert(packet, first)), error);
            assert_eq!(refusal(&|packet| label::rewrite(packet, first)), error);
            assert_eq!(refusal(&|packet| label::remove(packet).map(drop)), error);
            assert!(!error.to_string().is_empty());
        }
        Ok(Label::NONE) => {
            assert_eq!(refusal(&|packet| label::rewrite(packet, first)), WireError::Unlabelled);
            let mut same = packet.to_vec();
            assert_eq!((label::remove(&mut same), &same[..]), (Ok(Label::NONE), packet));
            let mut grown = packet.to_vec();
            match label::insert(&mut grown, first) {
                Ok(()) => check_insertion(packet, &grown, first, second),
                Err(WireError::NoRoom { .. }) => assert_eq!(grown, packet),
                Err(error) => panic!("{error}"),
            }
        }
        Ok(present) => {
            let refused = refusal(&|packet| label::insert(packet, first));
            assert!(matches!(refused, WireError::Labelled { .. }), "{refused}");
            let mut changed = packet.to_vec();
            for other in [first, second, present] {
                label::rewrite(&mut changed, other).unwrap();
                assert_eq!(label::read(&changed), Ok(encoded_and_decoded(other)));
            }
            assert_eq!(plain(&changed), plain(packet), "the packet with its old label is unchanged");
            let mut without = packet.to_vec();
            assert_eq!(label::remove(&mut without), Ok(present));
            assert_eq!(label::read(&without), Ok(Label::NONE));
            assert_eq!(checks(&without), checks(packet));
            assert!(packet.len() - without.len() <= 8);
        }
    }
    found
}

/// Checks that `grown` is `packet` with the label `first`, which can be rewritten and removed.
fn check_insertion(packet: &[u8], grown: &[u8], first: Label, second: Label) {
    assert_eq!(grown.len() - packet.len(), if packet[0] >> 4 == 4 { 4 } else { 8 });
    assert_eq!(label::read(grown), Ok(encoded_and_decoded(first)));
    assert_eq!(
        checks(grown),
        checks(packet),
        "a correct checksum stays correct, and a wrong one stays wrong"
    );

    let mut changed = grown.to_vec();
    label::rewrite(&mut changed, second).unwrap();
    assert_eq!(label::read(&changed), Ok(second));
    assert_eq!(checks(&changed), checks(packet));
    let different = changed.iter().zip(grown).filter(|(new, old)| new != old).count();
    assert!((1..=4).contains(&different), "{different} bytes differ in value and checksum");

    assert_eq!(label::remove(&mut changed), Ok(second));
    assert_eq!(changed, plain(packet), "removing restores the packet");
}

fn encoded_and_decoded(label: Label) -> Label {
    label::decode(label::encode(label).unwrap())
}

/// True if the checksum of an IPv4 header is correct; `None` for IPv6.
fn checks(packet: &[u8]) -> Option<bool> {
    if packet[0] >> 4 != 4 {
        return None;
    }
    let header = &packet[..usize::from(packet[0] & 15) * 4];
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) * 256 + u32::from(word[1])).sum();
    Some(sum.is_multiple_of(0xffff))
}

/// The packet with the usual form of its checksum: of the two equivalent ones, 0 instead of 0xffff.
fn plain(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 && packet[10..12] == [0xff, 0xff] {
        packet[10..12].fill(0);
    }
    packet
}
