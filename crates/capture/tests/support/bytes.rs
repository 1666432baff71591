//! The interpretation of fuzzed bytes, shared by the fuzz target and by tests without a fuzzer.

use std::io::Cursor;

use giveway_capture::{CaptureError, Packet, Reader};

/// Reads any bytes as a capture, to their end or to an error. Checks that the position of the error is within
/// the bytes, and that all counts are possible. Returns the packets and the error.
///
/// # Panics
/// If this does not hold.
pub fn capture(bytes: &[u8]) -> (Vec<Packet>, Option<CaptureError>) {
    // Positions are those of the uncompressed file, and deflate expands a byte to at most 1,032.
    let longest = if bytes.starts_with(&[0x1f, 0x8b]) { bytes.len() * 1032 } else { bytes.len() } as u64;
    let mut packets = Vec::new();
    let mut error = None;
    match Reader::new(Cursor::new(bytes.to_vec())) {
        Err(wrong) => error = Some(wrong),
        Ok(mut reader) => {
            for packet in &mut reader {
                match packet {
                    Ok(packet) => packets.push(packet),
                    Err(wrong) => error = Some(wrong),
                }
            }
            assert!(reader.next().is_none(), "there are no packets after the end");
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
