//! A capture of bounded length: weeks of capturing must not fill a disk.
//!
//! Packets are written to a pcapng file ([`giveway_capture::Writer`]) up to its limit, and then to the next
//! file, if more than one is allowed. Packets after that are left out, which is reported once when it starts,
//! and as a counter at the end. Each file is a complete capture. Lengths are counted block by block, so that
//! no file exceeds its limit. The closure that opens the files decides what happens to them (overwritten in
//! turn, compressed, discarded).

use std::io::{self, Write};

use giveway_capture::{EnhancedPacket, InterfaceDescription, LinkType, Writer};
use giveway_qdisc::DropReason;

/// A capture interface: an [`InterfaceDescription`] with owned texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Description of the interface: the discipline in front of it.
    pub description: String,
    /// Type of the link header.
    pub link: LinkType,
    /// Speed in bit/s; 0 if it has none.
    pub speed: u64,
    /// Largest number of bytes kept of a packet; 0 for no limit.
    pub snap: u32,
}

/// The result of writing a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The packet is in the capture.
    Written,
    /// The packet is in the capture, as the first one of the file with this number, from 0.
    NextFile(u32),
    /// The packet is the first one that is left out because the capture is full.
    Full,
    /// The packet is left out because the capture is full, or because it alone exceeds the limit of a file.
    LeftOut,
}

/// Counters of a finished capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Packets in the files.
    pub packets: u64,
    /// Packets that were left out.
    pub left_out: u64,
    /// Number of files.
    pub files: u32,
    /// Bytes in all files.
    pub bytes: u64,
}

/// A capture of bounded length.
pub struct Bounded<W: Write, F: FnMut(u32) -> io::Result<W>> {
    open: F,
    application: String,
    interfaces: Vec<Interface>,
    limit: u64,
    most_files: u32,
    /// `None` once the capture is full.
    writer: Option<Writer<Counted<W>>>,
    /// Length of the headers of a file, in bytes.
    begins: u64,
    /// Bytes in the current file.
    length: u64,
    summary: CaptureSummary,
}

/// Counts the bytes that are written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write, F: FnMut(u32) -> io::Result<W>> Bounded<W, F> {
    /// Starts a capture of at most `files` files of at most `limit` bytes each. `open` opens them, by number
    /// from 0; their outputs should be buffered. Interfaces are numbered in their order.
    ///
    /// # Errors
    /// The error of the output; `InvalidInput` if the limit is smaller than the headers of a file, or if
    /// `files` is zero.
    pub fn new(
        open: F,
        application: &str,
        interfaces: Vec<Interface>,
        limit: u64,
        files: u32,
    ) -> io::Result<Bounded<W, F>> {
        if files == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a capture of no files: write 1 or more",
            ));
        }
        let mut bounded = Bounded {
            open,
            application: application.to_owned(),
            interfaces,
            limit,
            most_files: files,
            writer: None,
            begins: 0,
            length: 0,
            summary: CaptureSummary::default(),
        };
        // Written to memory first, so that a limit that is too small creates no file.
        bounded.begins = begin(io::sink(), &bounded.application, &bounded.interfaces)?.finish()?.bytes;
        if bounded.begins > limit {
            let begins = bounded.begins;
            let what = format!("a capture of at most {limit} bytes: its headers alone have {begins}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        bounded.next_file()?;
        Ok(bounded)
    }

    /// Writes a packet if the limit permits it.
    ///
    /// # Errors
    /// The error of the output or of [`Writer::packet`].
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) -> io::Result<Kept> {
        let needs = block_bytes(packet);
        if self.writer.is_none() || self.begins + needs > self.limit {
            self.summary.left_out += 1;
            return Ok(Kept::LeftOut);
        }
        let mut kept = Kept::Written;
        if self.length + needs > self.limit {
            self.close_file()?;
            if self.summary.files == self.most_files {
                self.summary.left_out += 1;
                return Ok(Kept::Full);
            }
            kept = Kept::NextFile(self.summary.files);
            self.next_file()?;
        }
        self.writer.as_mut().expect("it is `None` only if the capture is full").packet(packet)?;
        self.length += needs;
        self.summary.packets += 1;
        Ok(kept)
    }

    /// True if the capture is full.
    pub fn is_full(&self) -> bool {
        self.writer.is_none()
    }

    /// Flushes buffered data.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<CaptureSummary> {
        self.close_file()?;
        Ok(self.summary)
    }

    fn next_file(&mut self) -> io::Result<()> {
        let out = (self.open)(self.summary.files)?;
        let writer = begin(out, &self.application, &self.interfaces)?;
        self.length = self.begins;
        self.writer = Some(writer);
        self.summary.files += 1;
        Ok(())
    }

    fn close_file(&mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            let bytes = writer.finish()?.bytes;
            debug_assert_eq!(bytes, self.length, "blocks have the computed lengths");
            self.summary.bytes += bytes;
        }
        Ok(())
    }
}

fn begin<W: Write>(out: W, application: &str, interfaces: &[Interface]) -> io::Result<Writer<Counted<W>>> {
    let mut writer = Writer::new(Counted { out, bytes: 0 }, application)?;
    for Interface { name, description, link, speed, snap } in interfaces {
        let described = InterfaceDescription { name, description, link: *link, speed: *speed, snap: *snap };
        writer.interface(&described)?;
    }
    Ok(writer)
}

/// The length of an enhanced packet block: draft-ietf-opsawg-pcapng, section 4.3, with at most one comment.
fn block_bytes(packet: &EnhancedPacket<'_>) -> u64 {
    /// Type, length, and length again; interface, two halves of the time, two lengths.
    const FIXED: usize = 12 + 20;
    const OPTION: usize = 4;
    let options = packet.comment.map_or(0, |text| OPTION + text.len().next_multiple_of(4) + OPTION);
    (FIXED + packet.data.len().next_multiple_of(4) + options) as u64
}

/// Comment on a dropped packet: "dropped: overlimit", as in `giveway run --export`.
pub const fn comment(why: DropReason) -> &'static str {
    match why {
        DropReason::Overlimit => "dropped: overlimit",
        DropReason::Pushout => "dropped: pushout",
        DropReason::Early => "dropped: early",
        DropReason::Congested => "dropped: congested",
        DropReason::FlowLimit => "dropped: flow_limit",
        DropReason::TooLarge => "dropped: too_large",
        DropReason::NoClass => "dropped: no_class",
        DropReason::Policy => "dropped: policy",
        DropReason::Reset => "dropped: reset",
        DropReason::Wire => "lost on the wire",
        DropReason::Unreachable => "dropped: unreachable",
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Cursor;
    use std::rc::Rc;

    use super::*;

    /// Files in memory, by number.
    type Files = Rc<RefCell<Vec<Vec<u8>>>>;

    struct File(Files, usize);

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut()[self.1].extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn opener(files: &Files) -> impl FnMut(u32) -> io::Result<File> + use<> {
        let files = Rc::clone(files);
        move |number| {
            assert_eq!(number as usize, files.borrow().len());
            files.borrow_mut().push(Vec::new());
            Ok(File(Rc::clone(&files), number as usize))
        }
    }

    fn interfaces() -> Vec<Interface> {
        let interface = |name: &str| Interface {
            name: name.to_owned(),
            description: "fifo limit 10p".to_owned(),
            link: LinkType::RAW,
            speed: 10_000_000,
            snap: 0,
        };
        vec![interface("eth0"), interface("eth1")]
    }

    fn packet(number: u64, data: &[u8], comment: Option<&'static str>) -> Owned {
        Owned { number, data: data.to_vec(), comment }
    }

    struct Owned {
        number: u64,
        data: Vec<u8>,
        comment: Option<&'static str>,
    }

    impl Owned {
        fn of(&self) -> EnhancedPacket<'_> {
            let bytes = 1500;
            EnhancedPacket { interface: 1, time: self.number, bytes, data: &self.data, comment: self.comment }
        }
    }

    #[test]
    fn files_are_filled_one_after_the_other_and_never_beyond_the_limit() {
        for (limit, most, comment) in [
            (1000, 2, None),
            (1000, 1, Some(comment(DropReason::Overlimit))),
            (1001, 3, Some(comment(DropReason::Early))),
            (4096, 2, Some("")),
        ] {
            let files = Files::default();
            let mut bounded = Bounded::new(opener(&files), "a test", interfaces(), limit, most).unwrap();
            let (mut written, mut firsts, mut fulls) = (0, Vec::new(), 0);
            for number in 0..500 {
                let data = [0x45; 1500];
                let packet = packet(number, &data[..20 + (number % 23) as usize], comment);
                match bounded.packet(&packet.of()).unwrap() {
                    Kept::Written => written += 1,
                    Kept::NextFile(file) => {
                        firsts.push(file);
                        written += 1;
                    }
                    Kept::Full => fulls += 1,
                    Kept::LeftOut => assert!(bounded.is_full() && fulls == 1),
                }
            }
            let summary = bounded.finish().unwrap();
            assert_eq!((summary.packets, summary.left_out, summary.files), (written, 500 - written, most));
            assert_eq!((firsts, fulls), ((1..most).collect::<Vec<_>>(), 1), "Full is returned once");
            let files = files.borrow();
            assert_eq!(summary.bytes, files.iter().map(|file| file.len() as u64).sum::<u64>());
            let mut next = 0;
            for file in files.iter() {
                let longest = 12 + 20 + 44 + comment.map_or(0, |text| 8 + text.len().next_multiple_of(4));
                assert!(file.len() as u64 <= limit, "{} of {limit}", file.len());
                assert!(file.len() + longest > limit as usize, "no further packet fits: {}", file.len());
                for packet in giveway_capture::Reader::new(Cursor::new(file.clone())).unwrap() {
                    let packet = packet.unwrap();
                    assert_eq!((packet.time, packet.interface), (next, 1));
                    next += 1;
                }
                if let Some(comment) = comment {
                    let text = comment.as_bytes();
                    assert!(text.is_empty() || file.windows(text.len()).any(|some| some == text));
                }
            }
            assert_eq!(next, written, "no packet is missing or duplicated");
        }
    }

    #[test]
    fn invalid_limits_are_refused() {
        let files = Files::default();
        let error_of = |limit, most| {
            let bounded = Bounded::new(opener(&files), "a test", interfaces(), limit, most);
            bounded.err().expect("it is refused").to_string()
        };
        // A section of 12 + 16 + 12 (its application) + 4; twice 12 + 8 + 8 (name) + 20 (description) + 12
        // (speed) + 8 + 4.
        assert_eq!(error_of(100, 1), "a capture of at most 100 bytes: its headers alone have 188");
        assert_eq!(error_of(1000, 0), "a capture of no files: write 1 or more");
        assert!(files.borrow().is_empty(), "nothing was opened");
    }

    /// A packet that is longer than a file is left out, and no further file is opened.
    #[test]
    fn a_packet_longer_than_a_file_is_left_out() {
        let files = Files::default();
        let mut bounded = Bounded::new(opener(&files), "a test", interfaces(), 1000, 9).unwrap();
        assert_eq!(bounded.packet(&packet(0, &[0; 40], None).of()).unwrap(), Kept::Written);
        assert_eq!(bounded.packet(&packet(1, &[0; 1400], None).of()).unwrap(), Kept::LeftOut);
        assert_eq!(bounded.packet(&packet(2, &[0; 40], None).of()).unwrap(), Kept::Written);
        let summary = bounded.finish().unwrap();
        assert_eq!((summary.packets, summary.left_out, summary.files), (2, 1, 1));
    }

    #[test]
    fn comments_have_the_names_of_drop_reasons() {
        for why in DropReason::ALL.into_iter().filter(|why| *why != DropReason::Wire) {
            assert_eq!(comment(why), format!("dropped: {}", why.name()));
        }
    }
}
