//! Compressed captures, and files of other formats, which are named.

use std::io::{Cursor, Read, Write};

use giveway_capture::{CaptureError, Frames, looks_like_capture};

use crate::support::{Order, pcap, read, read_whole};

/// A capture of about 1.5 MB, with packets that differ.
fn capture() -> Vec<u8> {
    let packets = (0..10_000_u64).map(|number| {
        let mut packet = vec![0x45, 0, 0, 128, 0, 0, 0, 0, 64, 17];
        packet.extend(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(15));
        packet.truncate(128);
        (number * 1_000_000, 128, packet)
    });
    pcap(Order::Little, false, 101, &packets.collect::<Vec<_>>())
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let small = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(small, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_recognised_by_its_first_bytes() {
    let plain = capture();
    let whole = read_whole(&plain);
    for (name, compress) in [("zstd", zstd as fn(&[u8]) -> Vec<u8>), ("lz4", lz4), ("gzip", gzip)] {
        let file = compress(&plain);
        assert!(looks_like_capture(&file), "{name}");
        assert_eq!(read_whole(&file), whole, "{name}");
        // `cat a.zst b.zst` is a valid file as well.
        let half = plain.len() / 2;
        let joined = [compress(&plain[..half]), compress(&plain[half..])].concat();
        assert_eq!(read_whole(&joined), whole, "two frames of {name}");
    }
    // pzstd writes a skippable frame before every frame.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    assert_eq!(read_whole(&[skippable.as_slice(), &zstd(&plain)].concat()), whole);
}

/// Everything before the damage is used, also what a decoder would keep back.
#[test]
fn a_damaged_stream_has_the_packets_before_the_damage() {
    let plain = capture();
    let whole = read_whole(&plain);
    for (name, compress) in [("zstd", zstd as fn(&[u8]) -> Vec<u8>), ("lz4", lz4), ("gzip", gzip)] {
        let file = compress(&plain);
        let (packets, error) = read(&file[..file.len() * 3 / 4]);
        assert!(packets.len() > whole.len() / 2, "{name}: {} packets", packets.len());
        assert_eq!(packets, whole[..packets.len()], "{name}");
        let error = error.expect("the file is damaged").to_string();
        let place = format!("(after {} packets): ", packets.len());
        assert!(error.contains(" byte ") && error.contains(&place), "{name}: {error}");
    }
    let mut garbage = zstd(&plain);
    garbage.extend(b"garbage");
    let (packets, error) = read(&garbage);
    assert_eq!(packets.len(), whole.len());
    assert!(error.unwrap().to_string().contains("cannot be read beyond byte"));
}

/// The error of a file that starts so.
fn refusal(head: &[u8]) -> String {
    let error = Frames::new(Box::new(Cursor::new(head.to_vec()))).unwrap_err();
    error.about("in.file")
}

#[test]
fn formats_of_other_programs_are_named_with_the_command_that_converts_them() {
    let editcap = "convert it with `editcap -F pcapng in.file out.pcapng`";
    for (head, name) in [
        (&b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"[..], "a Sun snoop file"),
        (b"GMBU\0\x02\x01\0", "a Microsoft Network Monitor file"),
        (b"RTSS\0\x02\x01\0", "a Microsoft Network Monitor 1 file"),
        (b"TRSNIFF data    \x1a", "a Network General Sniffer file"),
        (b"XCP\x00002.002\0", "a NetXRay or Windows Sniffer file"),
        (b"iptrace 2.0", "an AIX iptrace file"),
        // 2020-09-13 12:26:40; Ethernet, 96 bytes of record, 78 on the wire.
        (&[0, 0, 0, 0x80, 0x80, 0x16, 0x5e, 0x5f, 2, 4, 0, 96, 0, 0, 0, 78, 0, 0], "an Endace ERF file"),
    ] {
        assert_eq!(refusal(head), format!("in.file is {name}: {editcap}"));
    }
    for (head, name, command) in [
        (&b"\xfd7zXZ\0\0"[..], "an xz file", "xz -dc in.file"),
        (b"BZh91AY&SY", "a bzip2 file", "bzip2 -dc in.file"),
        (b"PK\x03\x04\x14\0", "a zip archive", "unzip -p in.file"),
        (b"7z\xbc\xaf\x27\x1c\0", "a 7z archive", "7z x -so in.file"),
    ] {
        assert_eq!(refusal(head), format!("in.file is {name}: write `{command} | giveway compare - ...`"));
    }
    let mut etl = [0; 80];
    etl[72..76].copy_from_slice(&[2, 0, 2, 0xc0]);
    for (head, wanted) in [
        (&etl[..], "is an ETL file of Windows: convert it with `etl2pcapng in.file out.pcapng`"),
        (b"12:34:56.789012 IP 10.0.0.1.443 > 10.0.0.2.50000: Flags", "is the printed output of tcpdump: "),
        (b"2026-11-26 12:34:56.789012 IP6 ::1.443 > ", "is the printed output of tcpdump: "),
        (b"[\n  {\n    \"_index\": \"packets\"", "is a JSON file: save the capture itself"),
        (b"{\"timestamp\":\"1\"}", "is a JSON file: save the capture itself"),
        (b"<?xml version=\"1.0\"?>", "is an XML file: it is an export for people"),
        (b"# a note", "is a text file: give a capture"),
    ] {
        assert!(refusal(head).contains(wanted), "{}", refusal(head));
    }
}

#[test]
fn the_name_of_a_file_is_written_as_a_shell_takes_it() {
    let error = Frames::new(Box::new(&b"BZh91AY&SY"[..])).unwrap_err();
    assert!(error.about("my capture.bz2").contains("`bzip2 -dc 'my capture.bz2' | giveway"));
    assert!(error.to_string().contains("`bzip2 -dc FILE | giveway"), "without a name: {error}");
}

#[test]
fn a_compressed_file_of_another_format_is_named() {
    assert!(refusal(&gzip(b"snoop\0\0\0\0\0\0\x02")).contains("is a Sun snoop file"));
    assert!(refusal(&zstd(b"")).contains("nothing, because it is empty"));
}

#[test]
fn scenarios_do_not_look_like_captures() {
    for head in [&b"title = \"a scenario\""[..], b"# a comment", b"", b"[[link]]"] {
        assert!(!looks_like_capture(head));
    }
    assert!(looks_like_capture(&pcap(Order::Big, true, 1, &[])));
}

/// Frames of Wi-Fi in the air are mostly encrypted, so the message says where to capture.
#[test]
fn link_types_that_people_capture_on_are_named() {
    let error = refusal(&pcap(Order::Little, false, 127, &[]));
    assert!(
        error.contains("link type 127 (frames of Wi-Fi in the air, mostly encrypted: capture on"),
        "{error}"
    );
}

/// A pipe returns what it has, which may be a byte at a time.
#[test]
fn a_slow_pipe_is_read_like_a_file() {
    struct Slow(Cursor<Vec<u8>>);
    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let some = buffer.len().min(1);
            self.0.read(&mut buffer[..some])
        }
    }
    for file in [capture(), zstd(&capture()), lz4(&capture())] {
        let reader = giveway_capture::Reader::new(Slow(Cursor::new(file))).unwrap();
        assert_eq!(reader.map(Result::<_, CaptureError>::unwrap).count(), 10_000);
    }
}
