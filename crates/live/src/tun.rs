//! TUN: packets of an interface that this program creates, without Ethernet headers.
//!
//! TUN has the fewest pitfalls: no incomplete checksums, no offloads, no ARP. It needs one system call per
//! packet, so it is slower, and has no receive time stamps, so arrival times are the times of reading. The
//! interface exists as long as the program. Set its addresses and routes, or move it to another namespace,
//! while the program runs.
//!
//! References: the kernel's Documentation/networking/tuntap; linux/if_tun.h.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use crate::device::{Arrival, Ends, Receiver, SendError, Sender};
use crate::interface::{InterfaceQuery, request};

/// Request that attaches a descriptor to an interface, from linux/if_tun.h.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca_u32 as libc::Ioctl;

struct Tun {
    file: File,
    buffer: Vec<u8>,
    /// True once a read has shown that the interface was removed.
    gone: bool,
}

/// Creates the interface `name`, and brings it up.
///
/// # Errors
/// The error of the system; CAP_NET_ADMIN and /dev/net/tun are required.
pub fn open(name: &str) -> io::Result<Ends> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut ifreq = request(name)?;
    ifreq.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF takes a pointer to an `ifreq`, and the kernel accesses only these bytes during the
    // call: it reads the name, which ends with zero, and the flags, and writes the name.
    if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &mut ifreq) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointers are passed, and `file` owns the descriptor, so it is open.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let query = InterfaceQuery::new()?;
    query.bring_up(name)?;
    let mtu = query.mtu(name)?;
    let half = |file: File| Tun { file, buffer: vec![0; 1 << 16], gone: false };
    Ok(Ends {
        name: name.to_owned(),
        ethernet: false,
        address: [0; 6],
        longest: mtu,
        sender: Box::new(half(file.try_clone()?)),
        spare_receiver: Box::new(half(file.try_clone()?)),
        spare_sender: Box::new(half(file.try_clone()?)),
        receiver: Box::new(half(file)),
    })
}

impl Receiver for Tun {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Arrival<'_>)) -> io::Result<usize> {
        for taken in 0..most {
            match self.file.read(&mut self.buffer) {
                Ok(length) => {
                    let bytes = &self.buffer[..length];
                    let length = length as u32;
                    take(Arrival { bytes, vlan: None, wall_ns: 0, length, checksum_missing: false });
                }
                // There is no packet, or the interface is down.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(taken),
                // The interface of this descriptor was removed.
                Err(error) if error.raw_os_error() == Some(libc::EBADFD) => {
                    self.gone = true;
                    return Ok(taken);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(most)
    }

    fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
    fn missed(&mut self) -> u64 {
        // The kernel counts drops only for the interface (tx_dropped).
        0
    }
    fn activate(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn recover(&mut self) -> bool {
        false
    }
    fn is_gone(&mut self) -> bool {
        self.gone
    }
}

impl Sender for Tun {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        for (sent, frame) in frames.iter().enumerate() {
            match self.file.write(frame) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(sent),
                Err(error) => return Err(SendError { sent, error }),
            }
        }
        Ok(frames.len())
    }

    fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
