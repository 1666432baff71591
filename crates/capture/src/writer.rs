//! Writes pcapng (draft-ietf-opsawg-pcapng): one section, in little-endian order, with times in nanoseconds.

use std::io::{self, ErrorKind, Write};

use crate::LinkType;

/// Writes a capture, block by block. The output should be buffered.
///
/// ```
/// use giveway_capture::{EnhancedPacket, InterfaceDescription, LinkType, Writer};
///
/// let mut writer = Writer::new(Vec::new(), "an example")?;
/// let uplink = InterfaceDescription { name: "uplink", link: LinkType::RAW, ..Default::default() };
/// let interface = writer.interface(&uplink)?;
/// let data = [0x45; 20];
/// let comment = Some("marked");
/// writer.packet(&EnhancedPacket { interface, time: 1_500, bytes: 1000, data: &data, comment })?;
/// let file = writer.finish()?;
/// # assert_eq!(giveway_capture::Reader::new(std::io::Cursor::new(file)).unwrap().count(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    interfaces: u32,
    /// The body of the current block, reused for the next.
    body: Vec<u8>,
}

/// An interface at which packets were captured: draft-ietf-opsawg-pcapng, section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDescription<'a> {
    /// Name; empty for none.
    pub name: &'a str,
    /// Description; empty for none.
    pub description: &'a str,
    /// Link type of its packets.
    pub link: LinkType,
    /// Speed in bit/s; 0 for none.
    pub speed: u64,
    /// Maximum number of bytes kept of a packet; 0 for no limit.
    pub snap: u32,
}

impl Default for InterfaceDescription<'_> {
    /// An interface of raw IP without name and limit.
    fn default() -> Self {
        InterfaceDescription { name: "", description: "", link: LinkType::RAW, speed: 0, snap: 0 }
    }
}

/// A packet to write: draft-ietf-opsawg-pcapng, section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhancedPacket<'a> {
    /// Its interface, as [`Writer::interface`] numbered it.
    pub interface: u32,
    /// Time: nanoseconds since 1970, or since the epoch of the clock.
    pub time: u64,
    /// Length on the wire, bytes, including the link header.
    pub bytes: u32,
    /// The captured bytes, from the link header on.
    pub data: &'a [u8],
    /// Comment; `None` for none.
    pub comment: Option<&'a str>,
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const ORDER_MARK: u32 = 0x1a2b_3c4d;

// Options: section 3.5 for those of every block, 4.1 and 4.2 for those of sections and interfaces.
const END: u16 = 0;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const SPEED: u16 = 8;
const RESOLUTION: u16 = 9;

impl<W: Write> Writer<W> {
    /// Starts a capture with the name of the application that writes it.
    ///
    /// # Errors
    /// The error of `out`; `InvalidInput` for a name of more than 65,535 bytes.
    pub fn new(out: W, application: &str) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, interfaces: 0, body: Vec::new() };
        writer.word(ORDER_MARK);
        writer.body.extend([1, 0, 0, 0]); // version 1.0
        writer.body.extend(u64::MAX.to_le_bytes()); // the length of the section is not known yet
        writer.option(APPLICATION, application.as_bytes())?;
        writer.option(END, &[])?;
        writer.block(SECTION)?;
        Ok(writer)
    }

    /// Adds an interface and returns its number. Interfaces may be added between packets.
    ///
    /// # Errors
    /// The error of the output; `InvalidInput` for a text of more than 65,535 bytes.
    pub fn interface(&mut self, interface: &InterfaceDescription<'_>) -> io::Result<u32> {
        self.body.extend(interface.link.0.to_le_bytes());
        self.body.extend([0, 0]);
        self.word(interface.snap);
        if !interface.name.is_empty() {
            self.option(NAME, interface.name.as_bytes())?;
        }
        if !interface.description.is_empty() {
            self.option(DESCRIPTION, interface.description.as_bytes())?;
        }
        if interface.speed > 0 {
            self.option(SPEED, &interface.speed.to_le_bytes())?;
        }
        self.option(RESOLUTION, &[9])?;
        self.option(END, &[])?;
        self.block(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// The error of the output; `InvalidInput` for an interface that was not added, for more data than bytes
    /// on the wire, and for a comment of more than 65,535 bytes.
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) -> io::Result<()> {
        let EnhancedPacket { interface, time, bytes, data, comment } = *packet;
        if interface >= self.interfaces {
            let known = self.interfaces;
            return Err(invalid(format!("a packet of interface {interface}, and {known} are known")));
        }
        if data.len() > bytes as usize {
            return Err(invalid(format!("{} captured bytes of a packet of {bytes}", data.len())));
        }
        for word in [interface, (time >> 32) as u32, time as u32, data.len() as u32, bytes] {
            self.word(word);
        }
        self.body.extend(data);
        self.pad();
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes())?;
            self.option(END, &[])?;
        }
        self.block(PACKET)
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn word(&mut self, word: u32) {
        self.body.extend(word.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) -> io::Result<()> {
        let Ok(length) = u16::try_from(value.len()) else {
            self.body.clear();
            return Err(invalid(format!("a text of {} bytes", value.len())));
        };
        self.body.extend(code.to_le_bytes());
        self.body.extend(length.to_le_bytes());
        self.body.extend(value);
        self.pad();
        Ok(())
    }

    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the body as a block: type, length, body, and the length again.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&length)?;
        self.body.clear();
        Ok(())
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}
