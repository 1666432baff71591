//! A station on an Ethernet: sends and receives frames of a few EtherTypes, one at a time. `giveway live
//! reserve` uses it to exchange control packets with routers.
//!
//! References: packet(7).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::LiveError;
use crate::interface::{InterfaceQuery, all};
use crate::packet::{bind, set, socket};

/// The Ethernet broadcast address.
pub const EVERYONE: [u8; 6] = [0xff; 6];

/// Sockets on an interface, one for each EtherType.
pub struct Station {
    sockets: Vec<OwnedFd>,
    address: [u8; 6],
}

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Source address.
    pub from: [u8; 6],
    /// Bytes after the Ethernet header, padding included.
    pub body: Vec<u8>,
}

impl Station {
    /// Opens an interface for these EtherTypes.
    ///
    /// # Errors
    /// If this process may not open it, or it is not an Ethernet interface that is up. The error names a
    /// remedy.
    pub fn open(name: &str, types: &[u16]) -> Result<Station, LiveError> {
        let system_error = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => LiveError::RawFrames(error),
            _ => LiveError::Interface { interface: name.to_owned(), error },
        };
        let query = InterfaceQuery::new().map_err(system_error)?;
        let index = query.index(name).map_err(|_| {
            let there = all();
            let near = giveway_qdisc::units::nearest(name, there.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let help = format!("{near}write one of {}", there.join(", "));
            LiveError::NoInterface { name: name.to_owned(), help }
        })?;
        if query.hardware(name).map_err(system_error)? != libc::ARPHRD_ETHER {
            return Err(LiveError::NotEthernet(name.to_owned()));
        }
        if query.flags(name).is_ok_and(|flags| flags & libc::IFF_UP == 0) {
            return Err(LiveError::Down(name.to_owned()));
        }
        let address = query.address(name).map_err(system_error)?;
        let mut types = types.to_vec();
        types.sort_unstable();
        types.dedup();
        let sockets = types.into_iter().map(|kind| {
            let fd = socket()?;
            set(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
            bind(&fd, index, kind)?;
            Ok(fd)
        });
        Ok(Station { sockets: sockets.collect::<io::Result<_>>().map_err(system_error)?, address })
    }

    /// Link address of the interface.
    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The error of the system, for example if the interface is down.
    pub fn send(&self, to: [u8; 6], kind: u16, body: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(14 + body.len());
        frame.extend(to);
        frame.extend(self.address);
        frame.extend(kind.to_be_bytes());
        frame.extend(body);
        let fd = self.sockets.first().expect("a station has an EtherType").as_raw_fd();
        // SAFETY: the kernel reads `frame.len()` bytes of the frame, which lives until the call returns. The
        // address is null with length zero.
        let sent = unsafe { libc::sendto(fd, frame.as_ptr().cast(), frame.len(), 0, std::ptr::null(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives the next frame for this station or a group, if one arrives in time.
    ///
    /// # Errors
    /// The error of the system, for example if the interface was removed.
    pub fn receive(&self, within: Duration) -> io::Result<Option<Received>> {
        let mut fds: Vec<PollFd<'_>> =
            self.sockets.iter().map(|fd| PollFd::new(as_fd(fd), PollFlags::POLLIN)).collect();
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = fds.iter().position(|fd| fd.any().unwrap_or(false));
        let Some(fd) = ready.map(|at| &self.sockets[at]) else { return Ok(None) };
        let mut frame = [0u8; 2048];
        // SAFETY: the kernel writes at most `frame.len()` bytes into the buffer, which lives until the call
        // returns.
        let length = unsafe { libc::recv(fd.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let frame = &frame[..(length as usize).min(frame.len())];
        let (Some(to), Some(from), Some(body)) = (frame.get(..6), frame.get(6..12), frame.get(14..)) else {
            return Ok(None);
        };
        let is_addressed = to == self.address || to[0] & 1 == 1;
        Ok(is_addressed.then(|| Received { from: std::array::from_fn(|at| from[at]), body: body.to_vec() }))
    }
}

fn as_fd(fd: &OwnedFd) -> std::os::fd::BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(fd)
}
