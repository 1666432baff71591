//! Writes pcapng (draft-ietf-opsawg-pcapng): one section, in little-endian order, with times in nanoseconds.

use std::io::{self, ErrorKind, Write};

use crate::LinkType;

/// Writes a capture, block by block. What it writes to should be buffered.
///
/// ```
/// use capture::{EnhancedPacket, InterfaceDescription, LinkType, Writer};
///
/// let mut writer = Writer::new(Vec::new(), "an example")?;
/// let uplink = InterfaceDescription { name: "uplink", link: LinkType::RAW, ..InterfaceDescription::default() };
/// let interface = writer.interface(&uplink)?;
/// let data = [0x45; 20];
/// writer.packet(&EnhancedPacket { interface, time: 1_500, bytes: 1000, data: &data, comment: Some("marked") })?;
/// let file = writer.finish()?;
/// # assert_eq!(capture::Reader::new(std::io::Cursor::new(file)).unwrap().count(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    interfaces: u32,
    /// The body of the block at hand, used again for the next.
    body: Vec<u8>,
}

/// A place at which packets were seen; section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDescription<'a> {
    /// What it is called; empty for no name.
    pub name: &'a str,
    /// What it is; empty for nothing to say.
    pub description: &'a str,
    /// What stands in front of its packets.
    pub link: LinkType,
    /// Its speed in bit/s; 0 where it has none.
    pub speed: u64,
    /// Most bytes kept of a packet; 0 for no limit.
    pub snap: u32,
}

impl Default for InterfaceDescription<'_> {
    /// A nameless one of raw IP, unlimited.
    fn default() -> Self {
        InterfaceDescription { name: "", description: "", link: LinkType::RAW, speed: 0, snap: 0 }
    }
}

/// A packet to be written; section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhancedPacket<'a> {
    /// Its interface, as [`Writer::interface`] numbered it.
    pub interface: u32,
    /// When: nanoseconds since 1970, or since whatever the clock counts from.
    pub time: u64,
    /// Bytes that it had on the wire, link header included.
    pub bytes: u32,
    /// What was kept of it, from the link header on.
    pub data: &'a [u8],
    /// What is to be said about it.
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
    /// Begins a capture that says which application wrote it.
    ///
    /// # Errors
    /// What `out` says; `InvalidInput` for a name beyond 65,535 bytes.
    pub fn new(out: W, application: &str) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, interfaces: 0, body: Vec::new() };
        writer.word(ORDER_MARK);
        writer.body.extend([1, 0, 0, 0]); // version 1.0
        writer.body.extend(u64::MAX.to_le_bytes()); // the section's length is not known yet
        writer.option(APPLICATION, application.as_bytes())?;
        writer.option(END, &[])?;
        writer.block(SECTION)?;
        Ok(writer)
    }

    /// Adds an interface, and tells its number. Interfaces may be added between packets.
    ///
    /// # Errors
    /// What the output says; `InvalidInput` for a text beyond 65,535 bytes.
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
    /// What the output says; `InvalidInput` for an interface that was not added, for more data than bytes on the wire,
    /// and for a comment beyond 65,535 bytes.
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) -> io::Result<()> {
        let EnhancedPacket { interface, time, bytes, data, comment } = *packet;
        if interface >= self.interfaces {
            let known = self.interfaces;
            return Err(invalid(format!("a packet of interface {interface}, and {known} are known")));
        }
        if data.len() > bytes as usize {
            return Err(invalid(format!("{} bytes kept of a packet of {bytes}", data.len())));
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

    /// Flushes the output and gives it back.
    ///
    /// # Errors
    /// What the output says.
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

    /// Writes the body as a block: it stands between its type and length, and its length again.
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

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
