//! Opens the sockets of a run.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use giveway_qdisc::Ecn;
use giveway_sim::net::{Settings, Side};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4Tos, RcvBufForce, TcpCongestion};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt, socket,
};

/// Port of servers: the web's port, so that a capture of a run shows pages.
const PORT: u16 = 80;

/// Port of servers of QUIC, at which a capture of a run shows them.
pub(super) const QUIC_PORT: u16 = 443;

pub(super) fn listener() -> io::Result<TcpListener> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, PORT))?;
    // The kernel takes this as the limit of the system, `net.core.somaxconn`, by default 4,096. With the
    // headers of musl, `Backlog::new` refuses more than 128.
    listen(&socket, Backlog::MAXALLOWABLE)?;
    Ok(TcpListener::from(socket))
}

pub(super) fn udp_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    socket.set_nonblocking(true)?;
    setsockopt(&socket, RcvBufForce, &(8 << 20))?;
    Ok(socket)
}

/// A socket of a host for QUIC: of a server at its port, or of a client at any port.
pub(super) fn quic_socket(address: Ipv4Addr, side: Side) -> io::Result<UdpSocket> {
    let port = if side == Side::Server { QUIC_PORT } else { 0 };
    let socket = UdpSocket::bind((address, port))?;
    socket.set_nonblocking(true)?;
    setsockopt(&socket, RcvBufForce, &(8 << 20))?;
    Ok(socket)
}

pub(super) fn prepare(socket: &TcpStream, settings: &Settings) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let name = OsString::from(settings.tcp.congestion.name());
    Ok(setsockopt(socket, TcpCongestion, &name)?)
}

/// Opens a connection. Returns the socket and its local address.
pub(super) fn open_client(
    from: Ipv4Addr,
    to: Ipv4Addr,
    settings: &Settings,
) -> io::Result<(TcpStream, SocketAddrV4)> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = TcpStream::from(socket(AddressFamily::Inet, SockType::Stream, flags, None)?);
    prepare(&socket, settings)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
    match connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(to, PORT))) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    match socket.local_addr()? {
        SocketAddr::V4(local) => Ok((socket, local)),
        SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

pub(super) fn open_sender(from: Ipv4Addr, to: Ipv4Addr, settings: &Settings) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect((to, PORT))?;
    socket.set_nonblocking(true)?;
    if settings.ecn() == Ecn::Ect0 {
        setsockopt(&socket, Ipv4Tos, &0b10)?;
    }
    Ok(socket)
}
