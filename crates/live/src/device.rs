//! The interface of a bridge to network devices: receive and send frames. AF_PACKET ([`crate::packet`]) and
//! TUN ([`crate::tun`]) implement it; AF_XDP would be a third implementation of the same two traits.

use std::io;
use std::os::fd::RawFd;

use giveway_capture::LinkType;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Bytes of the frame, from the link header on.
    pub bytes: &'a [u8],
    /// VLAN tag that the kernel has stripped, if there was one: the four bytes (EtherType and tag) that
    /// follow the addresses in the frame.
    pub vlan: Option<[u8; 4]>,
    /// Receive time stamp of the kernel, in nanoseconds since 1970; zero if there is none.
    pub wall_ns: u64,
    /// Length on the wire, in bytes; longer than `bytes` if the kernel truncated the frame.
    pub length: u32,
    /// True if the sender left the TCP or UDP checksum to its network card, and no card has written it.
    pub checksum_missing: bool,
}

impl Arrival<'_> {
    /// Length with the VLAN tag inserted again, in bytes.
    pub fn whole(&self) -> usize {
        self.bytes.len() + self.tag().map_or(0, |tag| tag.len())
    }

    /// Writes the frame with its VLAN tag into `place`, which has [`Arrival::whole`] bytes.
    pub fn write(&self, place: &mut [u8]) {
        match self.tag() {
            Some(tag) => {
                let (addresses, rest) = self.bytes.split_at(ADDRESSES);
                place[..ADDRESSES].copy_from_slice(addresses);
                place[ADDRESSES..ADDRESSES + tag.len()].copy_from_slice(&tag);
                place[ADDRESSES + tag.len()..].copy_from_slice(rest);
            }
            None => place.copy_from_slice(self.bytes),
        }
    }

    /// Writes a missing checksum into `frame`, which [`Arrival::write`] has written. `ip_at` returns the
    /// offset of the IP header, or `None` if the frame is not IP; it is called only if the checksum is
    /// missing. Returns true if a checksum was written. Call this before a frame is sent: no network card
    /// completes the checksum later, and the receiver would discard the packet.
    pub(crate) fn complete_checksum(
        &self,
        frame: &mut [u8],
        ip_at: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> bool {
        self.checksum_missing
            && ip_at(frame).is_some_and(|at| giveway_wire::checksum::complete(&mut frame[at..]))
    }

    /// True if the frame is longer than `longest` bytes or was truncated: it is more than one packet, because
    /// a host left segmentation to its network card, or not all of one. Such a frame cannot be forwarded.
    pub(crate) fn is_too_long(&self, longest: usize) -> bool {
        self.whole() > longest.max(ETHERNET) || self.length as usize > self.bytes.len()
    }

    /// The VLAN tag, if the frame is long enough to have addresses in front of it.
    fn tag(&self) -> Option<[u8; 4]> {
        self.vlan.filter(|_| self.bytes.len() >= ADDRESSES)
    }
}

/// Length of the addresses of an Ethernet header, in bytes.
const ADDRESSES: usize = 12;
/// Length of an Ethernet header, in bytes.
const ETHERNET: usize = 14;

/// Type of the link header of an interface.
pub(crate) fn link_type(ethernet: bool) -> LinkType {
    if ethernet { LinkType::ETHERNET } else { LinkType::RAW }
}

/// The receiving half of an interface.
pub trait Receiver: Send {
    /// Passes received frames to `take`, at most `most`, and returns their number. Does not block.
    ///
    /// # Errors
    /// The error of the system. An interface that is down is not an error: it receives no frames.
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize>;

    /// Descriptor to wait for until more frames arrive.
    fn fd(&self) -> RawFd;

    /// Number of frames that the kernel dropped since the last call because the ring was full.
    fn missed(&mut self) -> u64;

    /// Starts to receive, if the socket was opened as a spare.
    ///
    /// # Errors
    /// The error of the system.
    fn activate(&mut self) -> io::Result<()>;

    /// Clears the error of the socket, so that waiting blocks again. Returns true if the interface is down.
    fn recover(&mut self) -> bool;

    /// True if the interface was removed or moved to another network namespace. An interface that is created
    /// under its name later is another one; this socket never receives again.
    fn is_gone(&mut self) -> bool;
}

/// The sending half of an interface.
pub trait Sender: Send {
    /// Sends frames in order, without blocking, and returns the number of frames that were sent. If it is
    /// less than all, the interface accepts no more for the moment.
    ///
    /// # Errors
    /// The frame after those that were sent can never be sent; the caller skips it and continues.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError>;

    /// Descriptor to wait for until the interface accepts more frames.
    fn fd(&self) -> RawFd;
}

/// An error of [`Sender::send`]: frames `0..sent` were sent, and the next one cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("frame {sent} of the batch cannot be sent: {error}")]
pub struct SendError {
    /// Number of frames that were sent.
    pub sent: usize,
    /// Error of the system.
    #[source]
    pub error: io::Error,
}

impl SendError {
    /// True if the interface was removed. An interface that is only down gives another error (ENETDOWN, or
    /// EIO for TUN).
    pub fn is_gone(&self) -> bool {
        // ENXIO and ENODEV: packet sockets, packet(7). EBADFD: a TUN device without its interface.
        matches!(self.error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EBADFD))
    }
}

/// Largest number of frames in one call of [`Sender::send`].
pub const BATCH: usize = 64;

/// The open sockets of an interface: a pair for shaping, and a spare pair for plain forwarding.
pub struct Ends {
    /// Name of the interface.
    pub name: String,
    /// True if frames start with an Ethernet header.
    pub ethernet: bool,
    /// Link address; zeros if there is none.
    pub address: [u8; 6],
    /// Length of the longest frame, link header included, in bytes.
    pub longest: usize,
    /// Receives frames.
    pub receiver: Box<dyn Receiver>,
    /// Sends frames.
    pub sender: Box<dyn Sender>,
    /// Spare receiver.
    pub spare_receiver: Box<dyn Receiver>,
    /// Spare sender.
    pub spare_sender: Box<dyn Sender>,
}
