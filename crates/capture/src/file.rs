//! File formats: splits pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng) into frames.
//!
//! Every length in a file is checked before it is used, and only the current record is held in memory.

use std::io::Read;

use crate::compression::{Compression, read_up_to, uncompressed};
use crate::error::CaptureError;
use crate::foreign::Foreign;
use crate::link::LinkType;

/// Largest record. A longer one is damage, not a packet: libpcap ends at 256 KiB, the largest blocks of
/// pcapng hold key material.
const LARGEST_RECORD: u32 = 16 << 20;
/// Largest number of interfaces, more than any host has. They are kept in memory, and a file could consist of
/// them.
const MAX_INTERFACES: usize = 65_536;

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Length on the wire, bytes.
    pub wire_bytes: u32,
    /// The link type of its interface.
    pub link: LinkType,
    /// Number of the interface, counted over all sections.
    pub interface: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// Reads the frames of a file without parsing their headers, for example to copy frames.
/// [`Reader`](crate::Reader) parses headers.
pub struct Frames {
    input: Box<dyn Read + Send>,
    /// Bytes taken from the input, uncompressed.
    offset: u64,
    packets: u64,
    format: Format,
    record: Vec<u8>,
    /// The current frame, in `record`.
    found: Option<PacketPosition>,
}

enum Format {
    Pcap {
        order: Order,
        ns_per_tick: u64,
        padding: usize,
        link: LinkType,
    },
    /// `earlier`: number of interfaces of the sections before this one.
    Pcapng {
        order: Order,
        interfaces: Vec<Interface>,
        earlier: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// An interface of a section.
#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    /// Maximum number of bytes kept of a frame; 0 for all.
    snap: u32,
    resolution: Resolution,
    /// Seconds to add to every time.
    shift: i64,
}

/// A packet within a record.
#[derive(Clone, Copy)]
struct PacketPosition {
    time: u64,
    wire_bytes: u32,
    link: LinkType,
    interface: u32,
    /// Position in the record.
    at: usize,
    captured: usize,
}

/// Units per second: a power of ten, or of two.
#[derive(Clone, Copy)]
enum Resolution {
    Ten(u8),
    Two(u8),
}

// Block types of pcapng.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET_OLD: u32 = 2;
const PACKET_SIMPLE: u32 = 3;
const PACKET: u32 = 6;
/// The byte-order magic of a section.
const ORDER_MARK: u32 = 0x1a2b_3c4d;

impl Frames {
    /// Reads the header of a capture: pcap or pcapng, compressed with gzip, zstd or lz4, or not.
    ///
    /// # Errors
    /// If the file is not a capture. A format of another program is named, with the command that converts it.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Frames, CaptureError> {
        let (mut input, head) = uncompressed(input).map_err(at_start)?;
        let Some(magic) = head.first_chunk::<4>().copied() else {
            return Err(unknown(&head));
        };
        // `head` was put in front of the input again.
        read_up_to(&mut input, &mut [0; 4]).map_err(at_start)?;
        let mut frames = Frames {
            input,
            offset: 4,
            packets: 0,
            format: Format::Pcapng { order: Order::Little, interfaces: Vec::new(), earlier: 0 },
            record: Vec::new(),
            found: None,
        };
        if magic == SECTION.to_be_bytes() {
            frames.section(0)?;
        } else {
            frames.format = frames.pcap_header(magic)?.ok_or_else(|| unknown(&head))?;
        }
        Ok(frames)
    }

    /// Number of frames that were read.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The next frame, or none at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read, is truncated or damaged. The error states the offset; the frames before it
    /// are valid.
    #[allow(
        clippy::should_implement_trait,
        reason = "a frame borrows the buffer, which an iterator cannot lend"
    )]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        self.found = None;
        self.found = match self.format {
            Format::Pcap { order, ns_per_tick, padding, link } => {
                self.pcap_record(order, ns_per_tick, padding, link)?
            }
            Format::Pcapng { .. } => self.pcapng_packet()?,
        };
        Ok(self.current())
    }

    /// The frame that [`Frames::next`] returned last; none before the first one and after the last one.
    pub fn current(&self) -> Option<Frame<'_>> {
        let PacketPosition { time, wire_bytes, link, interface, at, captured } = self.found?;
        Some(Frame { time, wire_bytes, link, interface, data: &self.record[at..at + captured] })
    }

    // -- pcap ---------------------------------------------------------------------------------------

    /// Reads the rest of the header; `None` if the magic number is not one of pcap.
    fn pcap_header(&mut self, magic: [u8; 4]) -> Result<Option<Format>, CaptureError> {
        let Some((order, ns_per_tick, padding)) = pcap_magic(magic) else { return Ok(None) };
        let mut rest = [0; 20];
        let got = self.fill(&mut rest)?;
        if got < rest.len() {
            return Err(self.damaged(0, "the file ends within its header"));
        }
        // The upper half of the field describes frame check sequences.
        let link = LinkType((order.u32(&rest, 16) & 0xffff) as u16);
        if !link.is_known() {
            return Err(CaptureError::UnknownLink(link.0));
        }
        Ok(Some(Format::Pcap { order, ns_per_tick, padding, link }))
    }

    fn pcap_record(
        &mut self,
        order: Order,
        ns_per_tick: u64,
        padding: usize,
        link: LinkType,
    ) -> Result<Option<PacketPosition>, CaptureError> {
        let start = self.offset;
        let mut head = [0; 24];
        let head = &mut head[..16 + padding];
        let got = self.fill(head)?;
        if got == 0 {
            return Ok(None);
        }
        if got < head.len() {
            return Err(self.damaged(start, "the file ends within the header of a packet"));
        }
        let captured = order.u32(head, 8);
        self.read_record(start, captured)?;
        self.packets += 1;
        Ok(Some(PacketPosition {
            time: u64::from(order.u32(head, 0)) * 1_000_000_000 + u64::from(order.u32(head, 4)) * ns_per_tick,
            wire_bytes: order.u32(head, 12).max(captured),
            link,
            interface: 0,
            at: 0,
            captured: captured as usize,
        }))
    }

    // -- pcapng -------------------------------------------------------------------------------------

    /// Reads blocks until one is a packet.
    fn pcapng_packet(&mut self) -> Result<Option<PacketPosition>, CaptureError> {
        loop {
            let start = self.offset;
            let mut kind = [0; 4];
            match self.fill(&mut kind)? {
                0 => return Ok(None),
                4 => {}
                _ => return Err(self.damaged(start, "the file ends within the type of a block")),
            }
            if kind == SECTION.to_be_bytes() {
                self.section(start)?;
                continue;
            }
            let Format::Pcapng { order, .. } = self.format else { unreachable!("only pcapng has blocks") };
            let kind = order.u32(&kind, 0);
            self.block(start, order, None)?;
            match kind {
                INTERFACE => {
                    let interface = self.interface(start, order)?;
                    if let Format::Pcapng { interfaces, .. } = &mut self.format {
                        if interfaces.len() == MAX_INTERFACES {
                            return Err(self.damaged(
                                start,
                                format!("more than {MAX_INTERFACES} interfaces in a section"),
                            ));
                        }
                        interfaces.push(interface);
                    }
                }
                PACKET | PACKET_OLD | PACKET_SIMPLE => {
                    let found = self.find_packet(start, kind, order)?;
                    self.packets += 1;
                    return Ok(Some(found));
                }
                _ => {} // names, statistics and secrets do not matter to a queue
            }
        }
    }

    /// Starts a section with its own byte order and interfaces. The block type has been read already.
    fn section(&mut self, start: u64) -> Result<(), CaptureError> {
        let mut head = [0; 8];
        if self.fill(&mut head)? < head.len() {
            return Err(self.damaged(start, "the file ends within the header of a section"));
        }
        let order = match Order::Little.u32(&head, 4) {
            ORDER_MARK => Order::Little,
            mark if mark == ORDER_MARK.swap_bytes() => Order::Big,
            mark => {
                return Err(
                    self.damaged(start, format!("a section with byte order mark {mark:#010x}, not 1a2b3c4d"))
                );
            }
        };
        self.block(start, order, Some((order.u32(&head, 0), 4)))?;
        let earlier = match &self.format {
            Format::Pcapng { interfaces, earlier, .. } => earlier.saturating_add(interfaces.len() as u32),
            Format::Pcap { .. } => 0,
        };
        self.format = Format::Pcapng { order, interfaces: Vec::new(), earlier };
        Ok(())
    }

    /// Reads the body of a block, between its two lengths, into `record`. `known` contains the first length,
    /// if it was read already, and the number of bytes of the body that were read with it.
    fn block(&mut self, start: u64, order: Order, known: Option<(u32, u32)>) -> Result<(), CaptureError> {
        let (length, read) = match known {
            Some(known) => known,
            None => {
                let mut length = [0; 4];
                if self.fill(&mut length)? < 4 {
                    return Err(self.damaged(start, "the file ends within the length of a block"));
                }
                (order.u32(&length, 0), 0)
            }
        };
        if length < 12 + read || length % 4 > 0 {
            return Err(self.damaged(start, format!("a block of {length} bytes")));
        }
        self.read_record(start, length - 8 - read)?;
        let body = self.record.len() - 4;
        let again = order.u32(&self.record, body);
        if again != length {
            return Err(self
                .damaged(start, format!("a block that begins with length {length} and ends with {again}")));
        }
        self.record.truncate(body);
        Ok(())
    }

    fn interface(&self, start: u64, order: Order) -> Result<Interface, CaptureError> {
        if self.record.len() < 8 {
            return Err(self.damaged(start, "an interface block without its link type"));
        }
        let mut interface = Interface {
            link: LinkType(order.u16(&self.record, 0)),
            snap: order.u32(&self.record, 4),
            resolution: Resolution::Ten(6),
            shift: 0,
        };
        let mut rest = &self.record[8..];
        while let Some((head, values)) = rest.split_first_chunk::<4>() {
            let (code, length) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
            let Some(value) = values.get(..length) else { break };
            match (code, length) {
                (0, _) => break,
                (9, 1) => interface.resolution = Resolution::of(value[0]),
                (14, 8) => interface.shift = order.u64(value) as i64,
                _ => {}
            }
            rest = values.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(interface)
    }

    /// The packet in `record`, a block that starts at byte `start` of the file.
    fn find_packet(&self, start: u64, kind: u32, order: Order) -> Result<PacketPosition, CaptureError> {
        let Format::Pcapng { interfaces, earlier, .. } = &self.format else {
            unreachable!("only pcapng has blocks")
        };
        let record = &self.record[..];
        let data_at = if kind == PACKET_SIMPLE { 4 } else { 20 };
        let Some(space) = record.len().checked_sub(data_at) else {
            return Err(self.damaged(start, format!("a packet block of {} bytes", record.len() + 12)));
        };
        let number = match kind {
            PACKET => order.u32(record, 0),
            PACKET_OLD => u32::from(order.u16(record, 0)),
            _ => 0,
        };
        let Some(interface) = interfaces.get(number as usize) else {
            let damage = format!("a packet of interface {number}, and {} are known", interfaces.len());
            return Err(self.damaged(start, damage));
        };
        let (captured, wire_bytes, time) = if kind == PACKET_SIMPLE {
            // It has no time and no captured length. The length is the snap length of the interface, but no
            // more than the block holds.
            let wire = order.u32(record, 0);
            let kept = if interface.snap > 0 { wire.min(interface.snap) } else { wire };
            (kept.min(space as u32), wire, 0)
        } else {
            let ticks = (u64::from(order.u32(record, 4)) << 32) | u64::from(order.u32(record, 8));
            (order.u32(record, 12), order.u32(record, 16), interface.time(ticks))
        };
        if captured as usize > space {
            let damage = format!("a packet of {captured} bytes in a block that holds {space}");
            return Err(self.damaged(start, damage));
        }
        Ok(PacketPosition {
            time,
            wire_bytes: wire_bytes.max(captured),
            link: interface.link,
            interface: earlier.saturating_add(number),
            at: data_at,
            captured: captured as usize,
        })
    }

    // -- both ---------------------------------------------------------------------------------------

    /// Reads `bytes` bytes into `record`.
    fn read_record(&mut self, start: u64, bytes: u32) -> Result<(), CaptureError> {
        if bytes > LARGEST_RECORD {
            return Err(self.damaged(start, format!("a record of {bytes} bytes")));
        }
        let mut record = std::mem::take(&mut self.record);
        record.resize(bytes as usize, 0);
        let got = self.fill(&mut record);
        self.record = record;
        match got? {
            got if got == bytes as usize => Ok(()),
            got => {
                Err(self.damaged(start, format!("the file ends after {got} of {bytes} bytes of a record")))
            }
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, CaptureError> {
        match read_up_to(&mut self.input, buffer) {
            Ok(got) => {
                self.offset += got as u64;
                Ok(got)
            }
            Err(error) => Err(CaptureError::Read { offset: self.offset, packets: self.packets, error }),
        }
    }

    fn damaged(&self, offset: u64, reason: impl Into<String>) -> CaptureError {
        CaptureError::Damaged { offset, packets: self.packets, reason: reason.into() }
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("offset", &self.offset).field("packets", &self.packets).finish()
    }
}

impl Interface {
    /// Nanoseconds since 1970.
    fn time(&self, ticks: u64) -> u64 {
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = match self.resolution {
            // With 10^29 units per second, 64 bits of them are zero nanoseconds.
            Resolution::Ten(digits) => scaled / 10u128.pow(u32::from(digits.min(29))),
            Resolution::Two(bits) => scaled >> bits,
        };
        let shifted = ns as i128 + i128::from(self.shift) * 1_000_000_000;
        shifted.clamp(0, i128::from(u64::MAX)) as u64
    }
}

impl Resolution {
    /// The option if_tsresol: the highest bit selects the base.
    fn of(option: u8) -> Resolution {
        if option & 0x80 == 0 { Resolution::Ten(option) } else { Resolution::Two(option & 0x7f) }
    }
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, bytes: &[u8]) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, 0)), u64::from(self.u32(bytes, 4)));
        match self {
            Order::Little => (second << 32) | first,
            Order::Big => (first << 32) | second,
        }
    }
}

/// True if a file that starts with these bytes is a pcap or pcapng file, or is compressed as captures are.
pub fn looks_like_capture(head: &[u8]) -> bool {
    let Some(magic) = head.first_chunk::<4>() else { return false };
    *magic == SECTION.to_be_bytes() || pcap_magic(*magic).is_some() || Compression::of(head).is_some()
}

/// The byte order of a pcap file, the nanoseconds of its unit of time, and the number of further bytes in the
/// header of a record.
fn pcap_magic(magic: [u8; 4]) -> Option<(Order, u64, usize)> {
    match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((Order::Little, 1000, 0)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((Order::Big, 1000, 0)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((Order::Little, 1, 0)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((Order::Big, 1, 0)),
        // Kuznetzov's variant, which adds eight bytes to the header of each record.
        [0x34, 0xcd, 0xb2, 0xa1] => Some((Order::Little, 1000, 8)),
        [0xa1, 0xb2, 0xcd, 0x34] => Some((Order::Big, 1000, 8)),
        _ => None,
    }
}

fn at_start(error: std::io::Error) -> CaptureError {
    CaptureError::Read { offset: 0, packets: 0, error }
}

/// The error for a file that starts with `head`.
fn unknown(head: &[u8]) -> CaptureError {
    match (Foreign::of(head), head) {
        (_, []) => CaptureError::NotACapture("nothing, because it is empty".to_owned()),
        (Some(foreign), _) => CaptureError::Foreign(foreign),
        (None, _) => {
            let first = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
            CaptureError::NotACapture(first.join(" "))
        }
    }
}
