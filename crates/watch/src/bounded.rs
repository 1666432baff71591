//! A capture of bounded length: what a host writes for weeks must not fill a disk.
//!
//! Packets go to a pcapng file ([`capture::Writer`]) as long as there is room; then to the next, where more than one is allowed; then
//! nowhere, and that is said: once when it happens, and in numbers at the end. Each file is a capture of its own. Lengths are counted
//! as they are written, block by block, so that a file is never longer than its limit. What becomes of the files (overwritten in turn,
//! compressed, thrown away) is decided by the closure that opens them.

use std::io::{self, Write};

use capture::{EnhancedPacket, InterfaceDescription, LinkType, Writer};
use qdisc::DropReason;

/// A place at which packets are seen: as [`InterfaceDescription`], with texts of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What it is called.
    pub name: String,
    /// What it is: the discipline in front of it.
    pub description: String,
    /// What stands in front of its packets.
    pub link: LinkType,
    /// Its speed in bit/s; 0 where it has none.
    pub speed: u64,
    /// Most bytes kept of a packet; 0 for no limit.
    pub snap: u32,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in the capture.
    Written,
    /// It is in the capture, as the first of the file with this number, from 0.
    NextFile(u32),
    /// It is not, and no other will be: the first time that this is said.
    Full,
    /// It is not: there is no room, as was said before, or it alone is longer than a file may be.
    LeftOut,
}

/// What there is in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Packets in the files.
    pub packets: u64,
    /// Packets for which there was no room.
    pub left_out: u64,
    /// Files.
    pub files: u32,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// A capture of bounded length.
pub struct Bounded<W: Write, F: FnMut(u32) -> io::Result<W>> {
    open: F,
    application: String,
    interfaces: Vec<Interface>,
    limit: u64,
    most_files: u32,
    /// None once all is full.
    writer: Option<Writer<Counted<W>>>,
    /// Bytes that a file begins with.
    begins: u64,
    /// Bytes of the file at hand.
    length: u64,
    told: Told,
}

/// Counts what goes through.
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
    /// Begins a capture of at most `files` files of at most `limit` bytes each. `open` opens them, by number from 0; what they write to
    /// should be buffered. Interfaces are numbered in their order.
    ///
    /// # Errors
    /// What the output says; `InvalidInput` where the limit has no room for what a file begins with, or there are no files.
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
            told: Told::default(),
        };
        // In memory, so that a limit that is too small makes no file.
        bounded.begins = begin(io::sink(), &bounded.application, &bounded.interfaces)?.finish()?.bytes;
        if bounded.begins > limit {
            let begins = bounded.begins;
            let what = format!("a capture of at most {limit} bytes: its headers alone have {begins}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        bounded.next_file()?;
        Ok(bounded)
    }

    /// Writes a packet, if there is room.
    ///
    /// # Errors
    /// What the output says, and what [`Writer::packet`] refuses.
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) -> io::Result<Kept> {
        let needs = block_bytes(packet);
        if self.writer.is_none() || self.begins + needs > self.limit {
            self.told.left_out += 1;
            return Ok(Kept::LeftOut);
        }
        let mut kept = Kept::Written;
        if self.length + needs > self.limit {
            self.close_file()?;
            if self.told.files == self.most_files {
                self.told.left_out += 1;
                return Ok(Kept::Full);
            }
            kept = Kept::NextFile(self.told.files);
            self.next_file()?;
        }
        self.writer.as_mut().expect("it is there until all is full").packet(packet)?;
        self.length += needs;
        self.told.packets += 1;
        Ok(kept)
    }

    /// Whether there is no room any more.
    pub fn is_full(&self) -> bool {
        self.writer.is_none()
    }

    /// Passes on what is buffered.
    ///
    /// # Errors
    /// What the output says.
    pub fn finish(mut self) -> io::Result<Told> {
        self.close_file()?;
        Ok(self.told)
    }

    fn next_file(&mut self) -> io::Result<()> {
        let out = (self.open)(self.told.files)?;
        let writer = begin(out, &self.application, &self.interfaces)?;
        self.length = self.begins;
        self.writer = Some(writer);
        self.told.files += 1;
        Ok(())
    }

    fn close_file(&mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            let bytes = writer.finish()?.bytes;
            debug_assert_eq!(bytes, self.length, "blocks have the lengths that were foreseen");
            self.told.bytes += bytes;
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

/// What is said about a packet that was dropped: "dropped: overlimit". As `giveway run --export` says it.
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
            let told = bounded.finish().unwrap();
            assert_eq!((told.packets, told.left_out, told.files), (written, 500 - written, most));
            assert_eq!((firsts, fulls), ((1..most).collect::<Vec<_>>(), 1), "it is said once");
            let files = files.borrow();
            assert_eq!(told.bytes, files.iter().map(|file| file.len() as u64).sum::<u64>());
            let mut next = 0;
            for file in files.iter() {
                let longest = 12 + 20 + 44 + comment.map_or(0, |text| 8 + text.len().next_multiple_of(4));
                assert!(file.len() as u64 <= limit, "{} of {limit}", file.len());
                assert!(file.len() + longest > limit as usize, "there is no room left: {}", file.len());
                for packet in capture::Reader::new(Cursor::new(file.clone())).unwrap() {
                    let packet = packet.unwrap();
                    assert_eq!((packet.time, packet.interface), (next, 1));
                    next += 1;
                }
                if let Some(comment) = comment {
                    let text = comment.as_bytes();
                    assert!(text.is_empty() || file.windows(text.len()).any(|some| some == text));
                }
            }
            assert_eq!(next, written, "none is missing, none is twice");
        }
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        let files = Files::default();
        let said = |limit, most| {
            let bounded = Bounded::new(opener(&files), "a test", interfaces(), limit, most);
            bounded.err().expect("it is refused").to_string()
        };
        // A section of 12 + 16 + 12 (its application) + 4; twice 12 + 8 + 8 (name) + 20 (description) + 12 (speed) + 8 + 4.
        assert_eq!(said(100, 1), "a capture of at most 100 bytes: its headers alone have 188");
        assert_eq!(said(1000, 0), "a capture of no files: write 1 or more");
        assert!(files.borrow().is_empty(), "nothing was opened");
    }

    /// A packet that is longer than a whole file is left out, and opens no further files in vain.
    #[test]
    fn a_packet_that_never_fits() {
        let files = Files::default();
        let mut bounded = Bounded::new(opener(&files), "a test", interfaces(), 1000, 9).unwrap();
        assert_eq!(bounded.packet(&packet(0, &[0; 40], None).of()).unwrap(), Kept::Written);
        assert_eq!(bounded.packet(&packet(1, &[0; 1400], None).of()).unwrap(), Kept::LeftOut);
        assert_eq!(bounded.packet(&packet(2, &[0; 40], None).of()).unwrap(), Kept::Written);
        let told = bounded.finish().unwrap();
        assert_eq!((told.packets, told.left_out, told.files), (2, 1, 1));
    }

    #[test]
    fn comments_have_the_names_of_their_reasons() {
        for why in DropReason::ALL.into_iter().filter(|why| *why != DropReason::Wire) {
            assert_eq!(comment(why), format!("dropped: {}", why.name()));
        }
    }
}
