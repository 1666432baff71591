//! Any bytes are parsed as a capture, or rejected with a position. A workload is extracted from the packets.

use std::io::Cursor;

use giveway_capture::{Frames, MergeInput, Merged, Moment, Packet, Timeline, utc};

#[allow(dead_code)]
#[path = "../../../capture/tests/support/bytes.rs"]
mod bytes;
#[path = "../../../workload/tests/support/bytes.rs"]
mod workloads;

/// Input: a capture file, or the text of a moment.
pub fn run(input: &[u8]) {
    let (packets, _) = bytes::capture(input);
    workloads::extract(&packets);
    merge(input, &packets);
    cut(&packets);
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(moment) = text.parse::<Moment>()
    {
        utc(moment.resolve(u64::MAX));
    }
}

/// Merges a capture with itself: every packet is returned, or counted as one of two.
fn merge(input: &[u8], packets: &[Packet]) {
    // A merge reads its input four times, so an eighth of the inputs is enough.
    if packets.len() > 1_000 || !input.len().is_multiple_of(8) {
        return;
    }
    let part = || {
        let input = input.to_vec();
        MergeInput::File(Box::new(move || Frames::new(Box::new(Cursor::new(input.clone())))))
    };
    let Ok(mut merged) = Merged::new(vec![part(), part()]) else { return };
    let mut count = 0;
    while merged.next_packet().is_some() {
        count += 1;
    }
    assert_eq!(count + merged.doubled(), 2 * packets.len() as u64);
}

/// Without pauses a capture is at most a minute a packet.
fn cut(packets: &[Packet]) {
    let mut line = Timeline::default();
    let times: Vec<u64> = packets.iter().map(|packet| line.at(packet.time)).collect();
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        assert!(last.saturating_sub(*first) <= 60_000_000_000 * times.len() as u64);
    }
}
