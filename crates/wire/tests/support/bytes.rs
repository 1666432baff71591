//! What a fuzzer's bytes mean: shared by the fuzz target and by tests that run without a fuzzer.

use giveway_qdisc::{Label, Rate};
use giveway_wire::WireError;
use giveway_wire::label;

/// Any bytes are a packet that has a label, has none, or is refused; and what one function says holds for the
/// others. Returns what was read.
///
/// # Panics
/// When this does not hold.
pub fn label(packet: &[u8]) -> Result<Label, WireError> {
    let found = label::read(packet);
    let nothing = |change: &dyn Fn(&mut Vec<u8>) -> Result<(), WireError>| {
        let mut same = packet.to_vec();
        let error = change(&mut same).expect_err("it cannot be done");
        assert_eq!(same, packet, "what is refused is left alone");
        error
    };
    let [first, second] = [Label::of(Rate::mbit(3)), Label::SHORT];
    nothing(&|packet| label::insert(packet, Label::NONE));
    nothing(&|packet| label::rewrite(packet, Label::NONE));
    match found {
        Err(error) => {
            assert_eq!(nothing(&|packet| label::insert(packet, first)), error);
            assert_eq!(nothing(&|packet| label::rewrite(packet, first)), error);
            assert_eq!(nothing(&|packet| label::remove(packet).map(drop)), error);
            assert!(!error.to_string().is_empty());
        }
        Ok(Label::NONE) => {
            assert_eq!(nothing(&|packet| label::rewrite(packet, first)), WireError::Unlabelled);
            let mut same = packet.to_vec();
            assert_eq!((label::remove(&mut same), &same[..]), (Ok(Label::NONE), packet));
            let mut grown = packet.to_vec();
            match label::insert(&mut grown, first) {
                Ok(()) => back(packet, &grown, first, second),
                Err(WireError::NoRoom { .. }) => assert_eq!(grown, packet),
                Err(error) => panic!("{error}"),
            }
        }
        Ok(there) => {
            let refused = nothing(&|packet| label::insert(packet, first));
            assert!(matches!(refused, WireError::Labelled { .. }), "{refused}");
            let mut changed = packet.to_vec();
            for other in [first, second, there] {
                label::rewrite(&mut changed, other).unwrap();
                assert_eq!(label::read(&changed), Ok(there_and_back(other)));
            }
            assert_eq!(plain(&changed), plain(packet), "the same label again is the same packet");
            let mut without = packet.to_vec();
            assert_eq!(label::remove(&mut without), Ok(there));
            assert_eq!(label::read(&without), Ok(Label::NONE));
            assert_eq!(checks(&without), checks(packet));
            assert!(packet.len() - without.len() <= 8);
        }
    }
    found
}

/// `grown` is `packet` with the label `first`; over which another is written; and which is taken out again.
fn back(packet: &[u8], grown: &[u8], first: Label, second: Label) {
    assert_eq!(grown.len() - packet.len(), if packet[0] >> 4 == 4 { 4 } else { 8 });
    assert_eq!(label::read(grown), Ok(there_and_back(first)));
    assert_eq!(checks(grown), checks(packet), "a right checksum stays right, and a wrong one wrong");

    let mut changed = grown.to_vec();
    label::rewrite(&mut changed, second).unwrap();
    assert_eq!(label::read(&changed), Ok(second));
    assert_eq!(checks(&changed), checks(packet));
    let different = changed.iter().zip(grown).filter(|(new, old)| new != old).count();
    assert!((1..=4).contains(&different), "the value and the checksum: {different} bytes");

    assert_eq!(label::remove(&mut changed), Ok(second));
    assert_eq!(changed, plain(packet), "what was inserted is gone without a trace");
}

fn there_and_back(label: Label) -> Label {
    label::decode(label::encode(label).unwrap())
}

/// Whether the checksum of an IPv4 header is right; none of IPv6.
fn checks(packet: &[u8]) -> Option<bool> {
    if packet[0] >> 4 != 4 {
        return None;
    }
    let header = &packet[..usize::from(packet[0] & 15) * 4];
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) * 256 + u32::from(word[1])).sum();
    Some(sum.is_multiple_of(0xffff))
}

/// The packet with the checksum that everybody writes, of the two that say the same.
fn plain(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 && packet[10..12] == [0xff, 0xff] {
        packet[10..12].fill(0);
    }
    packet
}
