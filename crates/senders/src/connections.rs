//! Bulk connections from the client to the server.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, bind, connect, listen, recv,
    send, setsockopt, shutdown, socket, sockopt,
};

use crate::error::SendersError;
use crate::network::{CLIENT, SERVER, within};

/// Port of the server for the first connection; the next connection has the next port.
const SERVER_PORT: u16 = 5001;
/// Port of the client for the first connection.
pub(crate) const CLIENT_PORT: u16 = 40001;
/// Bytes of a write or of a read.
const CHUNK: usize = 1 << 16;

/// A receiver of one connection, which discards what it receives.
pub(crate) struct Receiver {
    thread: JoinHandle<()>,
}

/// A sender of one connection.
pub(crate) struct Sender {
    fd: Arc<OwnedFd>,
    thread: JoinHandle<Result<(), SendersError>>,
}

impl Receiver {
    /// Listens for the connection with this number.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub(crate) fn listen(number: u16, control: &str) -> Result<Receiver, SendersError> {
        let control = control.to_owned();
        let listener = within("server", move || -> Result<OwnedFd, SendersError> {
            let fd = tcp(&control)?;
            bound(&fd, SERVER, SERVER_PORT + number)?;
            listen(&fd, Backlog::MAXCONN).map_err(SendersError::system("listen"))?;
            Ok(fd)
        })??;
        let thread = thread::spawn(move || {
            let Ok((stream, _)) = TcpListener::from(listener).accept() else { return };
            let mut buffer = [0; CHUNK];
            // The kernel discards the data instead of copying them: MSG_TRUNC, tcp(7).
            while recv(stream.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC).is_ok_and(|bytes| bytes > 0) {}
        });
        Ok(Receiver { thread })
    }

    /// Waits for the end of the connection.
    pub(crate) fn finish(self) {
        let _ = self.thread.join();
    }
}

impl Sender {
    /// Prepares the connection with this number, opens it on a thread and sends `bytes`, or for ever
    /// without a limit.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(crate) fn start(number: u16, control: &str, bytes: Option<usize>) -> Result<Sender, SendersError> {
        let control = control.to_owned();
        let fd = within("client", move || -> Result<OwnedFd, SendersError> {
            let fd = tcp(&control)?;
            bound(&fd, CLIENT, CLIENT_PORT + number)?;
            Ok(fd)
        })??;
        let fd = Arc::new(fd);
        let writing = Arc::clone(&fd);
        let thread = thread::spawn(move || {
            let [a, b, c, d] = SERVER;
            connect(writing.as_raw_fd(), &SockaddrIn::new(a, b, c, d, SERVER_PORT + number))
                .map_err(SendersError::system("connect to the server"))?;
            let zeros = [0; CHUNK];
            let mut left = bytes.unwrap_or(usize::MAX);
            while left > 0 {
                // A write fails when the connection is stopped.
                match send(writing.as_raw_fd(), &zeros[..left.min(CHUNK)], MsgFlags::MSG_NOSIGNAL) {
                    Ok(written) => left -= written,
                    Err(_) => return Ok(()),
                }
            }
            let _ = shutdown(writing.as_raw_fd(), Shutdown::Write);
            Ok(())
        });
        Ok(Sender { fd, thread })
    }

    /// Resets the connection.
    ///
    /// # Errors
    /// If it was never opened.
    pub(crate) fn stop(self) -> Result<(), SendersError> {
        // Closing with this option discards what is not sent yet: socket(7), SO_LINGER.
        let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&self.fd, sockopt::Linger, &at_once).map_err(SendersError::system("set SO_LINGER"))?;
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Both);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A TCP socket with a congestion control.
fn tcp(control: &str) -> Result<OwnedFd, SendersError> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
    let fd = fd.map_err(SendersError::system("open a socket"))?;
    setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(control))
        .map_err(SendersError::system(&format!("select the congestion control {control}")))?;
    Ok(fd)
}

fn bound(fd: &OwnedFd, [a, b, c, d]: [u8; 4], port: u16) -> Result<(), SendersError> {
    bind(fd.as_raw_fd(), &SockaddrIn::new(a, b, c, d, port)).map_err(SendersError::system("bind a socket"))
}
