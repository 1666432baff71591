//! Cutting and joining: joined frames equal the frames that were cut, for any order and loss of fragments.

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Streams, Time};
use giveway_wire::fragment::{Cutter, ETHER_TYPE, Plan, Reassembly, Settings, Size, Taken};
use proptest::prelude::*;

/// The longest frame here: 9,000 bytes of IP behind a link header and two VLAN tags.
const LONGEST: usize = 9000 + 14 + 2 * 4;

/// An Ethernet frame with `tags` VLAN tags and an IP packet of `length` bytes, which depend on `seed`.
fn frame(length: usize, tags: usize, six: bool, seed: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    for tag in 0..tags {
        frame.extend([0x81, 0, 0x20, tag as u8]);
    }
    frame.extend(if six { [0x86, 0xdd, 0x60] } else { [8, 0, 0x45] });
    // Not ECN-capable: nothing here is marked.
    frame.push(0);
    let mut rng = Streams::new(seed).rng();
    frame.extend((2..length).map(|_| rng.word() as u8));
    frame
}

/// A frame with the padding of a link, to at least 60 bytes.
fn padded(fragment: &[u8]) -> Vec<u8> {
    let mut fragment = fragment.to_vec();
    fragment.resize(fragment.len().max(60), 0);
    fragment
}

fn cut(cutter: &mut Cutter, frame: &[u8]) -> Option<Vec<Vec<u8>>> {
    let Plan::Cut(cut) = cutter.plan(frame) else { return None };
    let mut buffer = vec![0xee; LONGEST];
    let write = |index| {
        let length = cut.write(frame, index, &mut buffer);
        padded(&buffer[..length])
    };
    Some((0..cut.count()).map(write).collect())
}

fn shuffled<T>(mut all: Vec<T>, seed: u64) -> Vec<T> {
    let mut rng = Streams::new(seed).rng();
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last as u64 + 1) as usize);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The fragments of several frames arrive in any order, each `copies` times. Each frame is joined, with
    /// all its bytes, and every fragment has at most Φ bytes behind its type.
    #[test]
    fn in_any_order(
        lengths in prop::collection::vec(20..=9000usize, 1..6),
        size in 68..2000u64,
        tags in 0..=2usize,
        six: bool,
        copies in 1..3usize,
        seed: u64,
    ) {
        let mut cutter = Cutter::new(Size::new(size).unwrap(), ETHER_TYPE, seed as u32);
        let mut reassembly = Reassembly::new(Settings::new(ETHER_TYPE, LONGEST), SipHasher::new(seed, 1));
        let (mut sent, mut fragments) = (Vec::new(), Vec::new());
        for (n, length) in lengths.into_iter().enumerate() {
            let frame = frame(length, tags, six, seed ^ n as u64);
            if let Some(cut) = cut(&mut cutter, &frame) {
                prop_assert!(cut.iter().all(|fragment| fragment.len() <= 14 + 4 * tags + size as usize));
                let (last, others) = cut.split_last().expect("a packet is cut into at least two fragments");
                prop_assert!(others.iter().all(|fragment| fragment.len() == 14 + 4 * tags + size as usize));
                prop_assert!(last.len() <= others[0].len());
                for _ in 0..copies {
                    fragments.extend(cut.clone());
                }
                sent.push(frame);
            } else {
                prop_assert!(length <= size as usize || length > 127 * (size as usize - 8));
            }
        }
        let all = fragments.len() as u64;
        let mut joined = Vec::new();
        for fragment in shuffled(fragments, seed) {
            if let Taken::Whole(frame) = reassembly.take(&fragment, Time::ZERO) {
                joined.push(frame.to_vec());
            }
        }
        let once = sent.len();
        for frame in &sent {
            prop_assert!(joined.contains(frame), "{} bytes", frame.len());
        }
        // A second copy may be joined, too, after the first is complete.
        prop_assert!((once..=copies * once).contains(&joined.len()));
        prop_assert!(joined.iter().all(|frame| sent.contains(frame)));
        let counts = reassembly.counts();
        prop_assert_eq!(counts.fragments, all);
        prop_assert_eq!(counts.joined + counts.lost.iter().sum::<u64>() + reassembly.waiting(), all);
    }

    /// If one fragment is missing, the frame is never joined, and other frames are not affected.
    #[test]
    fn one_is_missing(length in 1000..1500usize, size in 68..900u64, missing: prop::sample::Index, seed: u64) {
        let mut cutter = Cutter::new(Size::new(size).unwrap(), ETHER_TYPE, u32::MAX);
        let [broken, other] = [frame(length, 0, false, seed), frame(length, 0, false, !seed)];
        let mut fragments = cut(&mut cutter, &broken).unwrap();
        fragments.remove(missing.index(fragments.len()));
        let left = fragments.len() as u64;
        fragments.extend(cut(&mut cutter, &other).unwrap());
        let settings = Settings::new(ETHER_TYPE, LONGEST);
        let mut reassembly = Reassembly::new(settings, SipHasher::new(seed, 1));
        let mut joined = Vec::new();
        for fragment in shuffled(fragments, seed) {
            if let Taken::Whole(frame) = reassembly.take(&fragment, Time::ZERO) {
                joined.push(frame.to_vec());
            }
        }
        prop_assert_eq!(joined, vec![other]);
        prop_assert_eq!(reassembly.waiting(), left);
        reassembly.expire(Time::ZERO + settings.timeout);
        prop_assert_eq!((reassembly.waiting(), reassembly.counts().given_up), (0, 1));
    }

    /// Any bytes of fragments are changed: nothing panics, and all fragments are accounted for.
    #[test]
    fn any_byte_may_be_wrong(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), seed: u64) {
        let mut cutter = Cutter::new(Size::new(500).unwrap(), ETHER_TYPE, 0);
        let mut reassembly = Reassembly::new(Settings::new(ETHER_TYPE, 1514), SipHasher::new(1, 1));
        for n in 0..4 {
            for mut fragment in cut(&mut cutter, &frame(1500, 1, false, seed ^ n)).unwrap() {
                for (at, byte) in &changes {
                    // Most changes are near the header.
                    let at = at.index(2 * fragment.len());
                    let at = if at < fragment.len() { at } else { 12 + at % 16 };
                    fragment[at] ^= byte.rotate_left(n as u32);
                }
                let _ = reassembly.take(&fragment, Time::ms(n));
                let counts = reassembly.counts();
                let lost: u64 = counts.lost.iter().sum();
                prop_assert_eq!(counts.fragments, counts.joined + lost + reassembly.waiting());
            }
        }
    }

    #[test]
    fn any_bytes_are_a_frame_that_can_be_planned_for(frame in prop::collection::vec(any::<u8>(), 0..300), size in 68..200u64) {
        let mut cutter = Cutter::new(Size::new(size).unwrap(), ETHER_TYPE, 0);
        if let Some(fragments) = cut(&mut cutter, &frame) {
            prop_assert!(fragments.len() >= 2);
        }
    }
}

/// The assertions of the fuzz target on valid records and on arbitrary bytes.
#[test]
fn hostile_bytes() {
    let mut rng = Streams::new(17).within("fragments").rng();
    let mut whole = 0;
    for round in 0..20_000u64 {
        let mut input = vec![rng.word() as u8];
        for _ in 0..rng.below(24) {
            let word = rng.word().to_be_bytes();
            let [kind, id, _, _, _, _, _, byte] = word;
            if round % 2 == 0 {
                // Two or three pieces of 40 bytes, mostly.
                let count = 2 + (byte & 1);
                let index = ((kind >> 1) % count) | (id & 0x80);
                let length = 40 * (count - 1) + 20;
                let here = if (index & 0x7f) + 1 == count { 20 } else { 40 };
                input.extend([kind & 0x2f, id, index, count, 0, length, here, 0x45]);
            } else {
                input.extend(word);
            }
        }
        whole += crate::support::fragments(&input);
    }
    // The complete path is tested only if some frames are joined.
    assert!(whole > 1000, "{whole} frames were joined");
    assert_eq!(crate::support::fragments(&[]), 0);
}

/// The seed of the fuzz target: a packet in order, one with its last fragment first, a duplicate, a
/// contradiction, and bytes.
#[test]
fn the_seed_has_two_complete_packets() {
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/fragment/whole-and-not");
    assert_eq!(crate::support::fragments(&std::fs::read(seed).unwrap()), 2);
}
