//! Fragments by hand: the joined frames, and the counter of each fragment.

use super::super::{Cutter, ETHER_TYPE, Plan, Size};
use super::*;

/// An Ethernet frame with an ECN-capable IPv4 packet of `length` bytes, which count up from `from`.
fn frame(length: usize, from: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 2];
    frame.extend((2..length).map(|n| (n as u8).wrapping_add(from)));
    frame
}

/// The fragments of a frame in pieces of 60 bytes, with packet number `id`.
fn cut(frame: &[u8], id: u32) -> Vec<Vec<u8>> {
    let Plan::Cut(cut) = Cutter::new(Size::new(68).unwrap(), ETHER_TYPE, id).plan(frame) else {
        panic!("it is long enough")
    };
    let mut buffer = [0; 100];
    let write = |index| {
        let length = cut.write(frame, index, &mut buffer);
        buffer[..length].to_vec()
    };
    (0..cut.count()).map(write).collect()
}

/// A reassembly with memory for `entries` packets of 1,514 bytes and a timeout of one second.
fn reassembly(entries: usize) -> Reassembly {
    let settings = Settings { memory: 0, timeout: Span::s(1), ..Settings::new(ETHER_TYPE, 1514) };
    let each = Reassembly::new(settings, SipHasher::new(1, 2)).buffer_size + size_of::<Entry>() + 8;
    let reassembly = Reassembly::new(Settings { memory: entries * each, ..settings }, SipHasher::new(1, 2));
    assert_eq!(reassembly.entries(), entries);
    reassembly
}

/// Takes fragments. Returns the frame that the last of them completes.
fn whole(reassembly: &mut Reassembly, fragments: &[&Vec<u8>]) -> Option<Vec<u8>> {
    let mut last = None;
    for fragment in fragments {
        assert_eq!(last, None, "no frame is complete before the last fragment");
        last = match reassembly.take(fragment, Time::s(1)) {
            Taken::Whole(frame) => Some(frame.to_vec()),
            Taken::Kept => None,
            Taken::Other => panic!("it is a fragment"),
        };
    }
    balanced(reassembly);
    last
}

fn balanced(reassembly: &Reassembly) {
    let counts = reassembly.counts();
    let lost: u64 = counts.lost.iter().sum();
    assert_eq!(counts.fragments, counts.joined + lost + reassembly.waiting(), "{counts:?}");
}

fn lost(reassembly: &Reassembly, why: Lost) -> u64 {
    reassembly.counts().lost[why as usize]
}

#[test]
fn three_fragments_in_every_order() {
    let frame = frame(150, 0);
    let [a, b, c] = &cut(&frame, 7)[..] else { panic!("60, 60 and 30 bytes") };
    let mut reassembly = reassembly(2);
    for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
        assert_eq!(whole(&mut reassembly, &order).as_ref(), Some(&frame));
    }
    assert_eq!((reassembly.counts().packets, reassembly.waiting()), (6, 0));
}

/// The last fragment has 14 + 8 + 5 bytes; on a wire it has 60.
#[test]
fn padding_is_removed() {
    let frame = frame(125, 0);
    let mut fragments = cut(&frame, 7);
    fragments[2].resize(60, 0);
    let [a, b, c] = &fragments[..] else { panic!("60, 60 and 5 bytes") };
    let mut reassembly = reassembly(1);
    for order in [[a, b, c], [c, a, b], [a, c, b]] {
        assert_eq!(whole(&mut reassembly, &order).as_ref(), Some(&frame));
    }
}

#[test]
fn a_duplicate_is_left_out_and_a_contradiction_ends_the_packet() {
    let frame = frame(150, 0);
    let [a, b, c] = &cut(&frame, 7)[..] else { panic!("three") };
    let mut reassembly = reassembly(4);
    assert_eq!(whole(&mut reassembly, &[c, c, a, a, c, b]).as_ref(), Some(&frame));
    assert_eq!(lost(&reassembly, Lost::Duplicate), 3);

    let changed = |of: &Vec<u8>, at: usize, byte: u8| {
        let mut other = of.clone();
        other[at] = byte;
        other
    };
    // Other bytes, another count, another length, a shorter piece.
    for other in [changed(a, 30, 99), changed(a, 19, 4), changed(b, 21, 151), b[..81].to_vec()] {
        let before = lost(&reassembly, Lost::Contradictory);
        let malformed = lost(&reassembly, Lost::Malformed);
        assert_eq!(whole(&mut reassembly, &[a, c, &other]), None);
        let now = lost(&reassembly, Lost::Contradictory);
        if lost(&reassembly, Lost::Malformed) == malformed {
            assert_eq!((now - before, reassembly.waiting()), (3, 0));
        } else {
            // This fragment is malformed, so a and c still wait for b.
            assert_eq!(whole(&mut reassembly, &[b]).as_ref(), Some(&frame));
        }
    }
    // The same number between other stations is another packet.
    let from_elsewhere = changed(b, 11, 1);
    assert_eq!(whole(&mut reassembly, &[a, &from_elsewhere, b, c]).as_ref(), Some(&frame));
}

/// An incomplete packet is not mixed with a later one of the same number if their lengths differ.
#[test]
fn a_number_that_is_used_again() {
    let (old, new) = (frame(150, 0), frame(149, 50));
    let (old, fragments) = (cut(&old, 7), cut(&new, 7));
    let [a, b, c] = &fragments[..] else { panic!("three") };
    let mut reassembly = reassembly(4);
    assert_eq!(whole(&mut reassembly, &[&old[1], a]), None);
    assert_eq!(lost(&reassembly, Lost::Contradictory), 2);
    assert_eq!(whole(&mut reassembly, &[b, c, a]).as_ref(), Some(&new));
}

#[test]
fn a_packet_that_is_incomplete_for_too_long_is_discarded() {
    let fragments = cut(&frame(150, 0), 7);
    let mut reassembly = reassembly(4);
    assert_eq!(reassembly.take(&fragments[0], Time::ms(500)), Taken::Kept);
    assert_eq!(reassembly.take(&fragments[1], Time::ms(1499)), Taken::Kept);
    reassembly.expire(Time::ms(1500));
    assert_eq!((lost(&reassembly, Lost::Expired), reassembly.counts().given_up), (2, 1));
    // The third one waits now, and the clock restarts meanwhile.
    assert_eq!(reassembly.take(&fragments[2], Time::ms(1600)), Taken::Kept);
    reassembly.rebase(Time::ms(1700));
    reassembly.expire(Time::ms(999));
    assert_eq!(reassembly.waiting(), 1, "it counts as if it had arrived at the restart");
    reassembly.expire(Time::s(1));
    assert_eq!((reassembly.waiting(), reassembly.counts().given_up), (0, 2));
    balanced(&reassembly);
}

#[test]
fn the_oldest_packet_is_discarded_for_the_newest() {
    let [old, new, newest] = [1, 2, 3].map(|id| cut(&frame(150, id as u8), id));
    let mut reassembly = reassembly(2);
    assert_eq!(whole(&mut reassembly, &[&old[0], &old[1], &new[0], &newest[0]]), None);
    assert_eq!(lost(&reassembly, Lost::CrowdedOut), 2);
    assert_eq!(whole(&mut reassembly, &[&new[1], &new[2]]), Some(frame(150, 2)));
    assert_eq!(whole(&mut reassembly, &[&newest[2], &newest[1]]), Some(frame(150, 3)));
}

#[test]
fn malformed_fragments_are_counted() {
    let fragments = cut(&frame(150, 0), 7);
    let mut reassembly = reassembly(2);
    let mut take = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut other = fragments[0].clone();
        change(&mut other);
        assert_eq!(reassembly.take(&other, Time::ZERO), Taken::Kept);
        balanced(&reassembly);
        (lost(&reassembly, Lost::Malformed), lost(&reassembly, Lost::TooLong))
    };
    assert_eq!(take(&|f| f.truncate(21)), (1, 0), "a truncated header");
    assert_eq!(take(&|f| f.truncate(22)), (2, 0), "nothing behind the header");
    assert_eq!(take(&|f| f[18] = 3), (3, 0), "index 3 of 3");
    assert_eq!(take(&|f| f[19] = 1), (4, 0), "a count of 1");
    assert_eq!(take(&|f| f[19] = 128), (5, 0), "a count above 127");
    assert_eq!(take(&|f| f[21] = 120), (6, 0), "a length of 120 for three pieces of 60");
    assert_eq!(take(&|f| f[21] = 181), (7, 0), "a length of 181");
    assert_eq!(take(&|f| f[22] = 0x55), (8, 0), "neither IPv4 nor IPv6");
    assert_eq!(take(&|f| f.resize(14 + 8 + 700, 0)), (9, 0), "longer than the packet");
    let long = |f: &mut Vec<u8>| {
        f[20..22].copy_from_slice(&1501u16.to_be_bytes());
        f.resize(14 + 8 + 600, 0);
    };
    assert_eq!(take(&long), (9, 1), "1,515 bytes with the link header");
    assert_eq!(reassembly.take(&[0; 60], Time::ZERO), Taken::Other);
    assert_eq!(reassembly.waiting(), 0);
}

/// A mark on any fragment marks the packet and changes nothing else.
#[test]
fn a_marked_fragment_marks_the_packet() {
    let frame = frame(150, 0);
    for marked in 0..3 {
        let mut fragments = cut(&frame, 7);
        super::super::mark(&mut fragments[marked][14..]);
        let mut reassembly = reassembly(1);
        let joined =
            whole(&mut reassembly, &fragments.iter().collect::<Vec<_>>()).expect("all fragments arrived");
        let mut expected = frame.clone();
        assert_eq!(ecn::mark(&mut expected[14..]), ecn::Marked::Now);
        assert_eq!(joined, expected, "fragment {marked}");
    }
}
