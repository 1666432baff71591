//! Captures: reads pcap and pcapng files packet by packet, with the fields that a queue uses, and
//! [writes](Writer) pcapng for tools that read captures.
//!
//! A file is read on demand and never held in memory. `file` splits it into frames, `link` removes the link
//! header of a frame, and `ip` reads the headers below. A damaged file yields the packets before the damage,
//! then one error with its position.
//!
//! ```
//! use giveway_capture::{EnhancedPacket, InterfaceDescription, LinkType, Reader, Writer};
//!
//! let mut writer = Writer::new(Vec::new(), "an example")?;
//! let interface = InterfaceDescription { name: "eth0", link: LinkType::RAW, ..Default::default() };
//! writer.interface(&interface)?;
//! writer.packet(&EnhancedPacket { interface: 0, time: 7, bytes: 1500, data: &[0x45; 64], comment: None })?;
//! let file = writer.finish()?;
//!
//! let packets: Vec<_> = Reader::new(std::io::Cursor::new(file))?.collect::<Result<_, _>>()?;
//! assert_eq!((packets.len(), packets[0].time), (1, 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod compression;
mod error;
mod file;
mod foreign;
mod headers;
mod ip;
mod link;
mod merge;
mod reader;
mod timeline;
mod tunnel;
mod window;
mod writer;

pub use error::CaptureError;
pub use file::{Frame, Frames, looks_like_capture};
pub use foreign::Foreign;
pub use headers::{Headers, Transport};
pub use ip::{Ip, Tcp};
pub use link::{LinkType, Macs};
pub use merge::{MergeInput, Merged};
pub use reader::{FrameHeaders, Packet, Reader, parse_headers};
pub use timeline::{Pauses, Timeline};
pub use tunnel::{Tunnel, Tunnels};
pub use window::{Moment, NoMoment, utc};
pub use writer::{EnhancedPacket, InterfaceDescription, Writer};
