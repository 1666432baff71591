//! What a fuzzer's bytes mean: shared by the fuzz target and by tests that run without a fuzzer.

use std::io::Cursor;

use giveway_capture::{CaptureError, Packet, Reader};

/// Bytes are read as a capture to their end, or to an error that points into them. Nothing is counted that is
/// not there. Returns what was read.
///
/// # Panics
/// When this does not hold.
pub fn capture(bytes: &[u8]) -> (Vec<Packet>, Option<CaptureError>) {
    // Places are told in the uncompressed file, and deflate makes no more than 1,032 bytes of one.
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
            assert!(reader.next().is_none(), "after the end there is nothing");
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
        CaptureError::Damaged { offset, packets: told, .. }
        | CaptureError::Read { offset, packets: told, .. },
    ) = &error
    {
        assert!(*offset <= longest, "byte {offset} of {longest}");
        assert_eq!(*told, packets.len() as u64, "what was read before is counted");
    }
    (packets, error)
}
