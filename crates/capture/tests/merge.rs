//! Several captures as one.

use std::io::Cursor;

use giveway_capture::{CaptureError, Frames, MergeInput, Merged};

use crate::support::{Order, pcap};

const MS: u64 = 1_000_000;

/// A capture of UDP packets: (time in ms, number of the packet, hop limit).
fn file(packets: &[(u64, u8, u8)]) -> Vec<u8> {
    let udp = |number: u8, hops: u8| {
        let mut packet =
            vec![0x45, 0, 0, 36, 0, number, 0, 0, hops, 17, hops, hops, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 5, 0, 6, 0, 16, 0, 0, number, 0, 0, 0, 0, 0, 0, 0]);
        packet
    };
    let packets: Vec<_> =
        packets.iter().map(|(ms, number, hops)| (ms * MS, 36, udp(*number, *hops))).collect();
    pcap(Order::Little, false, 101, &packets)
}

fn part(file: Vec<u8>) -> MergeInput {
    MergeInput::File(Box::new(move || Frames::new(Box::new(Cursor::new(file.clone())))))
}

/// Time in ms and number of each packet, and the merge at its end.
fn merged(files: Vec<Vec<u8>>) -> (Vec<(u64, u8)>, Merged) {
    let mut merged = Merged::new(files.into_iter().map(part).collect()).unwrap();
    let mut packets = Vec::new();
    while let Some((packet, frame)) = merged.next_packet() {
        assert_eq!(packet.time, frame.time);
        packets.push((packet.time / MS, frame.data[28]));
    }
    (packets, merged)
}

#[test]
fn rotated_files_follow_each_other_in_any_order() {
    let files = vec![file(&[(20, 3, 64), (30, 4, 64)]), file(&[]), file(&[(1, 1, 64), (10, 2, 64)])];
    let (packets, merged) = merged(files);
    assert_eq!(packets, [(1, 1), (10, 2), (20, 3), (30, 4)]);
    assert_eq!((merged.doubled(), merged.errors().len()), (0, 0));
}

/// The last packet of a file and the first one of the next may be equal.
#[test]
fn equal_packets_of_files_that_do_not_overlap_are_two() {
    let (packets, merged) = merged(vec![file(&[(1, 1, 64), (2, 7, 64)]), file(&[(3, 7, 64), (4, 8, 64)])]);
    assert_eq!((packets.len(), merged.doubled()), (4, 0));
}

/// A router forwards packets with one hop less: the copy is left out, and counted.
#[test]
fn a_packet_that_is_in_two_files_at_once_is_used_once() {
    let inside = file(&[(1, 1, 64), (2, 2, 64), (5, 3, 64), (9, 3, 64), (20, 4, 64)]);
    let outside = file(&[(1, 1, 63), (3, 9, 63), (6, 3, 63), (10, 3, 63), (21, 4, 63)]);
    let (packets, merged) = merged(vec![inside, outside]);
    assert_eq!(packets, [(1, 1), (2, 2), (3, 9), (5, 3), (9, 3), (20, 4)]);
    assert_eq!(merged.doubled(), 4, "packet 3 was sent twice, and is in both files twice");
}

#[test]
fn the_same_file_twice_is_used_once() {
    let one: Vec<_> = (0..200).map(|number| (u64::from(number), number, 64)).collect();
    let (packets, merged) = merged(vec![file(&one), file(&one), file(&one)]);
    assert_eq!(packets.len() as u64 * 2, merged.doubled());
    assert_eq!(packets.len(), 200);
}

/// A damaged file ends early, and the others go on.
#[test]
fn damage_ends_only_its_own_file() {
    let mut damaged = file(&[(1, 1, 64), (5, 2, 64)]);
    damaged.truncate(damaged.len() - 1);
    let (packets, merged) = merged(vec![damaged, file(&[(2, 3, 64), (9, 4, 64)])]);
    assert_eq!(packets, [(1, 1), (2, 3), (9, 4)]);
    let [(0, CaptureError::Damaged { packets: 1, .. })] = merged.errors() else {
        panic!("{:?}", merged.errors())
    };
}

#[test]
fn a_file_that_is_no_capture_is_named_by_its_number() {
    let (number, error) = Merged::new(vec![part(file(&[])), part(b"PK\x03\x04".to_vec())]).unwrap_err();
    assert_eq!(number, 1);
    assert!(error.to_string().contains("zip"));
}
