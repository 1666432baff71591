//! AF_PACKET: receives the frames of an interface through a ring of memory that is shared with the kernel,
//! packet(7).
//!
//! The ring is version 2, which returns frames one by one. Version 3 returns blocks of frames with a timer of
//! a millisecond, which is too long for a queue. Frames are sent in batches with sendmmsg, bypassing the
//! queue disciplines of the kernel (PACKET_QDISC_BYPASS), because the queue is in this program.
//!
//! The kernel strips VLAN tags and reports them separately: [`Arrival::vlan`]. It also reports checksums that
//! a sender left to its network card ([`Arrival::checksum_missing`]), because a virtual interface has no
//! card.
//!
//! References: packet(7); the kernel's Documentation/networking/packet_mmap; linux/if_packet.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::device::{Arrival, BATCH, Ends, Receiver, SendError, Sender};
use crate::interface::InterfaceQuery;

/// Default size of a ring, in frames: four milliseconds at a million packets a second.
const FRAMES: usize = 4096;
/// Smallest size of a block of the ring, in bytes.
const BLOCK: usize = 1 << 16;

/// The receiving half.
pub struct PacketReceiver {
    fd: OwnedFd,
    ring: Ring,
    index: i32,
    purpose: Use,
    /// True once the socket is bound to the interface; a spare is bound later.
    bound: bool,
}

/// Memory into which the kernel writes frames.
struct Ring {
    start: NonNull<u8>,
    bytes: usize,
    frame: usize,
    frames: usize,
    /// Index of the next frame.
    next: usize,
}

// SAFETY: only the ring refers to the mapping, and a mapping is valid in all threads.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping, and no reference into it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The sending half.
pub struct PacketSender {
    fd: OwnedFd,
    headers: Box<[libc::mmsghdr; BATCH]>,
    parts: Box<[libc::iovec; BATCH]>,
}

// SAFETY: the descriptor may be used in any thread. The pointers in `headers` and `parts` are not used
// between calls: `send` overwrites all that it passes to the kernel.
unsafe impl Send for PacketSender {}

/// The use of an interface, which determines the frames that its sockets receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// One end of a bridge: all frames, also those for other machines.
    Bridge,
    /// One end of a detour ([`crate::detour`]): frames for this machine, except those with a mark.
    Detour {
        /// The mark.
        except: u32,
    },
}

/// Opens the sockets of an interface for a bridge, and a spare pair.
///
/// # Errors
/// The error of the system; CAP_NET_RAW is required.
pub fn open(name: &str, ring_frames: Option<usize>) -> io::Result<Ends> {
    open_for(Use::Bridge, name, ring_frames)
}

/// Opens the sockets of an interface, and a spare pair.
///
/// # Errors
/// The error of the system; CAP_NET_RAW is required.
pub(crate) fn open_for(purpose: Use, name: &str, ring_frames: Option<usize>) -> io::Result<Ends> {
    let query = InterfaceQuery::new()?;
    let index = query.index(name)?;
    let mtu = query.mtu(name)?;
    let ethernet = matches!(query.hardware(name)?, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK);
    // Link header and VLAN tag.
    let longest = mtu + if ethernet { 18 } else { 0 };
    let frames = ring_frames.unwrap_or(FRAMES);
    Ok(Ends {
        name: name.to_owned(),
        ethernet,
        address: query.address(name)?,
        longest,
        receiver: Box::new(PacketReceiver::open(index, longest, frames, purpose)?.activated()?),
        sender: Box::new(PacketSender::open(index)?),
        spare_receiver: Box::new(PacketReceiver::open(index, longest, frames / 4, purpose)?),
        spare_sender: Box::new(PacketSender::open(index)?),
    })
}

pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol zero: the socket receives nothing until it is bound to a protocol.
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened above, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn set<T>(fd: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads at most `length` bytes, the size of the value, which is borrowed during the
    // call. Every T of the callers consists of integers without padding, so all its bytes are initialised,
    // and none is a pointer that the kernel would follow.
    match unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(crate) fn bind(fd: &OwnedFd, index: i32, protocol: u16) -> io::Result<()> {
    // SAFETY: a `sockaddr_ll` consists of integers and an array of them, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads at most `length` bytes of the address, its size. It lives until the call
    // returns.
    match unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl PacketReceiver {
    fn open(index: i32, longest: usize, frames: usize, purpose: Use) -> io::Result<PacketReceiver> {
        let fd = socket()?;
        set(
            &fd,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
        )?;
        // Frames that this program sends must not be received again.
        set(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        let frame = (longest + HEADROOM).next_power_of_two().max(2048);
        let block = BLOCK.max(frame);
        let blocks = (frames * frame).div_ceil(block).max(1);
        let frames = blocks * (block / frame);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: frames as u32,
        };
        stamp_at_interface(&fd)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let bytes = block * blocks;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: with a null address the kernel chooses an unused range, so the mapping overlaps no memory
        // of this program. The descriptor is open, and no pointers are passed.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        let start = if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) };
        let start = start.ok_or_else(io::Error::last_os_error)?;
        let ring = Ring { start, bytes, frame, frames, next: 0 };
        if let Use::Detour { except } = purpose {
            ignore_mark(&fd, except)?;
        }
        Ok(PacketReceiver { fd, ring, index, purpose, bound: false })
    }

    fn activated(mut self) -> io::Result<PacketReceiver> {
        self.activate()?;
        Ok(self)
    }
}

/// Requests the time stamps of the interface instead of the ring's. So a frame has the same stamp in all
/// sockets, and the stamp does not include the wait for a processor.
fn stamp_at_interface(fd: &OwnedFd) -> io::Result<()> {
    // The first option makes the kernel stamp all frames, and the second one use that stamp in the ring.
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMP, &1)?;
    set(fd, libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &(libc::SOF_TIMESTAMPING_SOFTWARE as i32))
}

/// Lets a socket ignore frames with this mark. The filter is classic BPF: the kernel's
/// Documentation/networking/filter.
fn ignore_mark(fd: &OwnedFd, mark: u32) -> io::Result<()> {
    /// SKF_AD_OFF + SKF_AD_MARK: the place of the mark, as an address.
    const MARK: u32 = (-0x1000 + 20_i32) as u32;
    let step = |code, jump_if_true, k| libc::sock_filter { code, jt: jump_if_true, jf: 0, k };
    let mut steps = [
        // Loads the mark.
        step(0x20, 0, MARK),
        // Skips one step if it is this one.
        step(0x15, 1, mark),
        // Accepts the whole frame.
        step(0x06, 0, u32::MAX),
        // Ignores it.
        step(0x06, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the kernel reads the program, of its size, and as many steps as `len` says. Both live until the
    // call returns, and the kernel copies the steps.
    let answer = unsafe {
        let (option, value) = (libc::SO_ATTACH_FILTER, (&raw const program).cast());
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Space that the kernel needs in front of a frame: `tpacket2_hdr`, an address, alignment and a reserve.
const HEADROOM: usize = 128;
/// Status of a frame without a checksum, from linux/if_packet.h.
const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;

impl Ring {
    /// The header of the next frame.
    fn header(&self) -> NonNull<libc::tpacket2_hdr> {
        let frames_of_a_block = BLOCK.max(self.frame) / self.frame;
        debug_assert!(self.frames.is_multiple_of(frames_of_a_block), "blocks are full of frames");
        // SAFETY: `next` is below the number of frames, and the frames fill the mapping without gaps, since
        // the size of a block is a multiple of that of a frame. Both are powers of two and at least 2,048, so
        // the header is aligned.
        unsafe { self.start.add(self.next * self.frame).cast() }
    }
}

impl Receiver for PacketReceiver {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize> {
        let mut taken = 0;
        while taken < most {
            let header = self.ring.header();
            // SAFETY: `header` points to an aligned header in the mapping, which lives as long as the ring.
            // The kernel changes the status concurrently, and this thread accesses it only atomically while
            // the kernel owns the frame.
            let status = unsafe { AtomicU32::from_ptr(&raw mut (*header.as_ptr()).tp_status) };
            let flags = status.load(Ordering::Acquire);
            if flags & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the header is inside the mapping and consists of integers. The status gives the frame
            // to this process until the store below, so the kernel does not write it now, and the load above
            // acquired the writes of the kernel.
            let header_copy = unsafe { header.read() };
            let at = usize::from(header_copy.tp_mac);
            // The kernel never writes past the end of a frame, but memory safety must not depend on the
            // numbers in the shared memory.
            let length = (header_copy.tp_snaplen as usize).min(self.ring.frame.saturating_sub(at));
            let at = at.min(self.ring.frame);
            // SAFETY: `at + length` is at most the size of the frame, so the slice is inside the mapping,
            // whose bytes are initialised. The kernel does not write the frame until the store below, and
            // `take` cannot keep the slice longer.
            let bytes = unsafe { std::slice::from_raw_parts(header.cast::<u8>().as_ptr().add(at), length) };
            let vlan = (flags & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
                let kind = match flags & libc::TP_STATUS_VLAN_TPID_VALID {
                    0 => 0x8100,
                    _ => header_copy.tp_vlan_tpid,
                };
                let ([a, b], [c, d]) = (kind.to_be_bytes(), header_copy.tp_vlan_tci.to_be_bytes());
                [a, b, c, d]
            });
            take(Arrival {
                bytes,
                vlan,
                wall_ns: u64::from(header_copy.tp_sec) * 1_000_000_000 + u64::from(header_copy.tp_nsec),
                length: header_copy.tp_len,
                checksum_missing: flags & TP_STATUS_CSUMNOTREADY != 0,
            });
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.ring.next = (self.ring.next + 1) % self.ring.frames;
            taken += 1;
        }
        Ok(taken)
    }

    fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn missed(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the statistics, which have this size, and
        // writes the length. Both are integers and live until the call returns. Reading resets the counters.
        let answer = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if answer == 0 { u64::from(statistics.tp_drops) } else { 0 }
    }

    fn activate(&mut self) -> io::Result<()> {
        if self.bound {
            return Ok(());
        }
        if self.purpose == Use::Bridge {
            // Promiscuous mode as long as the socket is open: the bridge needs frames for others, too.
            let membership = libc::packet_mreq {
                mr_ifindex: self.index,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set(&self.fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        bind(&self.fd, self.index, libc::ETH_P_ALL as u16)?;
        self.bound = true;
        // Resets the counter of drops, which started when the socket was opened.
        self.missed();
        Ok(())
    }

    fn recover(&mut self) -> bool {
        take_error(&self.fd) == Some(libc::ENETDOWN)
    }

    fn is_gone(&mut self) -> bool {
        self.bound && bound_to(&self.fd).is_ok_and(|index| index != self.index)
    }
}

/// The index of the interface that a socket is bound to. The kernel sets it to -1 when the interface is
/// removed or leaves the network namespace (`packet_notifier` in net/packet/af_packet.c), but not when the
/// interface is only down. The index is compared and not the name, because another interface may have the
/// name by now.
fn bound_to(fd: &OwnedFd) -> io::Result<i32> {
    // SAFETY: a `sockaddr_ll` consists of integers and an array of them, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the address, its size, and writes the length.
    // Both live until the call returns, and every bit pattern is a valid address.
    match unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) } {
        0 => Ok(address.sll_ifindex),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads the error of a socket, which clears it.
pub(crate) fn take_error(fd: &OwnedFd) -> Option<i32> {
    let mut error = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the integer, its size, and writes the length.
    // Both live until the call returns.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut length,
        )
    };
    (answer == 0 && error != 0).then_some(error)
}

impl PacketSender {
    fn open(index: i32) -> io::Result<PacketSender> {
        let fd = socket()?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        // Enough for the queue of a network card; a virtual interface needs none of it.
        set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &(4 << 20))?;
        bind(&fd, index, 0)?;
        // SAFETY: `mmsghdr` and `iovec` consist of integers and raw pointers, for which zeros are valid: no
        // name, no control data, no parts.
        let (headers, parts) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Ok(PacketSender { fd, headers: Box::new(headers), parts: Box::new(parts) })
    }
}

impl Sender for PacketSender {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        let frames = &frames[..frames.len().min(BATCH)];
        for ((header, part), frame) in self.headers.iter_mut().zip(self.parts.iter_mut()).zip(frames) {
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the loop above set the first `frames.len()` headers, at most BATCH of them. Each points to
        // one part, and each part to a frame that is borrowed until the call returns; all other pointers are
        // null. The kernel reads the frames and writes only `msg_len` of the headers. The system call is made
        // directly, because the C library musl sends each frame with a call of its own. Its headers have the
        // layout of the kernel, with zeros as the upper halves of lengths.
        let sent = unsafe {
            let (fd, headers) = (self.fd.as_raw_fd(), self.headers.as_mut_ptr());
            libc::syscall(libc::SYS_sendmmsg, fd, headers, frames.len() as u32, 0)
        };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Temporary conditions. ENOBUFS: the queue of the card is full.
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(0),
            _ => Err(SendError { sent: 0, error }),
        }
    }

    fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
