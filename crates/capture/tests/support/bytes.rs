//! The interpretation of fuzzed bytes, shared by the fuzz target and by tests without a fuzzer.

use std::io::Cursor;

use giveway_capture::{CaptureError, Packet, Reader};

/// Packets after which reading ends: a small compressed file can have very many.
const MAX: usize = 1 << 17;

/// Reads any bytes as a capture, to their end or to an error. Checks that the position of the error is within
/// the bytes, and that all counts are possible. Returns the packets and the error.
///
/// # Panics
/// If this does not hold.
pub fn capture(bytes: &[u8]) -> (Vec<Packet>, Option<CaptureError>) {
    // Positions are those of the uncompressed file. Deflate expands a byte to at most 1,032, lz4 to 255. A
    // block of zstd has four bytes, and up to 128 KiB of content.
    let expanded = match bytes {
        [0x1f, 0x8b, ..] => 1032,
        [0x28 | 0x50..=0x5f, ..] => 1 << 15,
        [0x02 | 0x04, ..] => 255,
        _ => 1,
    };
    let longest = bytes.len() as u64 * expanded;
    let mut packets = Vec::new();
    let mut error = None;
    match Reader::new(Cursor::new(bytes.to_vec())) {
        Err(wrong) => error = Some(wrong),
        Ok(mut reader) => {
            for packet in (&mut reader).take(MAX) {
                match packet {
                    Ok(packet) => packets.push(packet),
                    Err(wrong) => error = Some(wrong),
                }
            }
            assert!(packets.len() == MAX || reader.next().is_none(), "there are no packets after the end");
            assert_eq!(reader.packets(), packets.len() as u64);
        }
    }
    // The shortest record of a packet has 16 bytes.
    assert!(packets.len() as u64 <= longest / 16, "{} packets in {longest} bytes", packets.len());
    for packet in &packets {
        assert!(u64::from(packet.interface) <= longest / 20, "an interface takes 20 bytes: {packet:?}");
        if let Some(ip) = packet.ip {
            assert!(packet.bytes >= 20, "{packet:?}");
            assert!(ip.data.is_none_or(|data| data < packet.bytes), "{packet:?}");
            assert!(!ip.short || packet.bytes <= 64, "{packet:?}");
        }
    }
    if let Some(
        CaptureError::Damaged { offset, packets: count, .. }
        | CaptureError::Read { offset, packets: count, .. },
    ) = &error
    {
        assert!(*offset <= longest, "byte {offset} of {longest}");
        assert_eq!(*count, packets.len() as u64, "the error has the number of packets before it");
    }
    (packets, error)
}
