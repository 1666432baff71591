//! What a bridge needs of an interface: frames in, frames out. AF_PACKET ([`crate::packet`]) and TUN ([`crate::tun`]) are
//! two; AF_XDP would be a third, behind the same two traits.

use std::io;
use std::os::fd::RawFd;

use capture::LinkType;

/// A frame that came in.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its bytes, from the link header on.
    pub bytes: &'a [u8],
    /// Where it had a VLAN tag that the kernel has taken out: type and tag, as they belong behind the addresses.
    pub vlan: Option<[u8; 4]>,
    /// When the kernel received it: nanoseconds since 1970. Zero where it does not say.
    pub wall_ns: u64,
    /// How long it was, of which `bytes` may be only the beginning.
    pub length: u32,
    /// The sender left the checksum of TCP or UDP to its network card, and no card has written it.
    pub checksum_missing: bool,
}

impl Arrival<'_> {
    /// How long it is with its tag back in place, in bytes.
    pub fn whole(&self) -> usize {
        self.bytes.len() + self.tag().map_or(0, |tag| tag.len())
    }

    /// Writes it with its tag back in place. `place` has [`Arrival::whole`] bytes.
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

    /// Writes the checksum that the sender has left to its card into `frame`, which is this arrival as
    /// [`Arrival::write`] wrote it. `ip_at` is the offset of its IP header; it is asked for only when a checksum is
    /// missing, and `None` means that the frame is not IP. Returns true when a checksum was written. A frame must pass
    /// through here before it is sent: no card completes it later, and the receiver would discard the packet.
    pub(crate) fn complete_checksum(
        &self,
        frame: &mut [u8],
        ip_at: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> bool {
        self.checksum_missing && ip_at(frame).is_some_and(|at| wire::checksum::complete(&mut frame[at..]))
    }

    /// Whether it is more than one packet, or not all of one: longer than `longest` bytes, or cut off by the
    /// kernel. A host has left it to its card to cut it, and it cannot be sent on.
    pub(crate) fn is_too_long(&self, longest: usize) -> bool {
        self.whole() > longest.max(ETHERNET) || self.length as usize > self.bytes.len()
    }

    /// Its tag, where there are addresses behind which it belongs.
    fn tag(&self) -> Option<[u8; 4]> {
        self.vlan.filter(|_| self.bytes.len() >= ADDRESSES)
    }
}

/// Both addresses of an Ethernet header.
const ADDRESSES: usize = 12;
/// An Ethernet header.
const ETHERNET: usize = 14;

/// How the frames of an interface begin.
pub(crate) fn link_type(ethernet: bool) -> LinkType {
    if ethernet { LinkType::ETHERNET } else { LinkType::RAW }
}

/// The receiving half of an interface.
pub trait Receiver: Send {
    /// Hands over what has come, at most `most` frames, and returns how many. Does not wait.
    ///
    /// # Errors
    /// What the system says. An interface that is down is none: nothing comes from it.
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize>;

    /// What to wait for until there is more.
    fn fd(&self) -> RawFd;

    /// Frames that the kernel could not hand over since the last call, because nobody took those before them.
    fn missed(&mut self) -> u64;

    /// Begins to receive, where it was opened only to stand by.
    ///
    /// # Errors
    /// What the system says.
    fn activate(&mut self) -> io::Result<()>;

    /// Something happened to the interface: clears the error, so that waiting waits again. True when it is down.
    fn recover(&mut self) -> bool;

    /// Whether the interface is no more: removed, or moved to another network namespace. One that is made
    /// under its name later is another interface, and nothing ever comes from this one again.
    fn is_gone(&mut self) -> bool;
}

/// The sending half of an interface.
pub trait Sender: Send {
    /// Sends frames, in order, and returns how many of them are dealt with; does not wait. Fewer than all means that the
    /// interface takes no more for the moment.
    ///
    /// # Errors
    /// Why the frame behind those that were sent can never be sent; the caller leaves it out and goes on.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Refused>;

    /// What to wait for until it takes more.
    fn fd(&self) -> RawFd;
}

/// Frames `0..sent` went out, and the next one cannot.
#[derive(Debug)]
pub struct Refused {
    /// How many were sent before it.
    pub sent: usize,
    /// Why.
    pub error: io::Error,
}

impl Refused {
    /// Whether the reason is that the interface is no more. One that is only down gives another (ENETDOWN, or
    /// EIO for TUN).
    pub fn is_gone(&self) -> bool {
        // The first two are of packet sockets, packet(7); the third of a TUN device without its interface.
        matches!(self.error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EBADFD))
    }
}

/// The most frames that a [`Sender`] is given at once.
pub const BATCH: usize = 64;

/// Both halves of an interface, and a second pair that stands by for plain forwarding.
pub struct Ends {
    /// What the interface is called.
    pub name: String,
    /// Frames begin with an Ethernet header.
    pub ethernet: bool,
    /// Its link address; zeros where it has none.
    pub address: [u8; 6],
    /// The longest frame that it takes, link header included, in bytes.
    pub longest: usize,
    /// Frames in.
    pub receiver: Box<dyn Receiver>,
    /// Frames out.
    pub sender: Box<dyn Sender>,
    /// Stands by.
    pub spare_receiver: Box<dyn Receiver>,
    /// Stands by.
    pub spare_sender: Box<dyn Sender>,
}
