//! Captures the packets of a namespace with the timestamps of the kernel: packet(7).
//!
//! A packet that arrives is captured before it is routed, and a packet that leaves is captured behind the
//! queue of its interface.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::error::SendersError;
use crate::network::{CLIENT, within};
use crate::tcp::Segment;

/// The direction of a packet at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The interface received it.
    In,
    /// The interface sent it.
    Out,
}

/// A captured packet.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    /// Time in nanoseconds since 1970.
    pub at: u64,
    /// Its direction.
    pub way: Way,
    /// Its headers.
    pub segment: Segment,
}

/// A capture in progress.
pub(crate) struct Sniffer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sighting>, SendersError>>,
}

/// Bytes of a frame that are captured: Ethernet, IPv4, and TCP with all options.
const SNAP: usize = 14 + 20 + 60;
/// Value of `sll_pkttype` of packets that the interface sends, packet(7).
const OUTGOING: u8 = 4;
/// Buffer of the socket in bytes.
const BUFFER: usize = 256 << 20;
/// Time between two looks at the socket.
const PAUSE: Duration = Duration::from_millis(100);

impl Sniffer {
    /// Starts to capture the packets at these interfaces of a namespace. Only packets of the client are kept
    /// if `data_only`, and only those with data.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub(crate) fn start(namespace: &str, devices: &[&str], data_only: bool) -> Result<Sniffer, SendersError> {
        let names: Vec<String> = devices.iter().map(|device| (*device).to_owned()).collect();
        let (socket, devices) = within(namespace, move || open(&names))??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || capture(&socket, &devices, data_only, &stopped));
        Ok(Sniffer { stop, thread })
    }

    /// Stops the capture and returns the packets in the order of their times.
    ///
    /// # Errors
    /// If the kernel lost a packet of the capture.
    pub(crate) fn stop(self) -> Result<Vec<Sighting>, SendersError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn open(names: &[String]) -> Result<(OwnedFd, Vec<usize>), SendersError> {
    let devices: Result<Vec<usize>, _> =
        names.iter().map(|name| if_nametoindex(name.as_str()).map(|index| index as usize)).collect();
    let devices = devices.map_err(SendersError::system("find an interface"))?;
    let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
    let fd = fd.map_err(SendersError::system("open a packet socket"))?;
    let explain = || SendersError::system("set an option of a packet socket");
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(explain())?;
    setsockopt(&fd, sockopt::RcvBufForce, &BUFFER).map_err(explain())?;
    Ok((fd, devices))
}

#[allow(clippy::disallowed_methods, reason = "a measurement waits")]
fn capture(
    fd: &OwnedFd,
    devices: &[usize],
    data_only: bool,
    stop: &AtomicBool,
) -> Result<Vec<Sighting>, SendersError> {
    let mut found = Vec::with_capacity(1 << 18);
    let mut frame = [0; SNAP];
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut frame)];
        match recvmsg::<LinkAddr>(fd.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => {
                let Some(address) = message.address.filter(|from| devices.contains(&from.ifindex())) else {
                    continue;
                };
                let mut messages = message.cmsgs().map_err(SendersError::system("read a timestamp"))?;
                let at = messages.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(at) => Some(at),
                    _ => None,
                });
                let way = if address.pkttype() == OUTGOING { Way::Out } else { Way::In };
                let bytes = message.bytes;
                let Some(at) = at else { continue };
                let Some(segment) = Segment::read(&frame[..bytes.min(SNAP)], CLIENT) else { continue };
                if data_only && (segment.from != CLIENT || segment.bytes == 0) {
                    continue;
                }
                let at = at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64;
                found.push(Sighting { at, way, segment });
            }
            Err(Errno::EAGAIN | Errno::EINTR) if stop.load(Ordering::Relaxed) => break,
            // Packets are collected, because a wake-up for each of them would take more time than the packet.
            Err(Errno::EAGAIN | Errno::EINTR) => thread::sleep(PAUSE),
            Err(error) => return Err(SendersError::system("capture a packet")(error)),
        }
    }
    // A packet that is received and one that is sent may reach the socket in the other order.
    found.sort_by_key(|sighting: &Sighting| sighting.at);
    Ok(found)
}
