//! A detour of the frames of one interface, the WAN port of a router, through a bridge in this program.
//!
//! A router has one interface for the slow link, and its own network stack is on the other side. The detour
//! gives that side an interface, so that the bridge has two ends as usual: a pair of virtual interfaces
//! (veth), of which the kernel uses one and the bridge the other.
//!
//! ```text
//!   network stack of the router
//!      | sends                              ^ receives
//!      v                                    |
//!   WAN, egress hook                     WAN, ingress hook: passes marked frames, drops others
//!      | all frames                         ^
//!      v                                    | marked
//!   pair, end of the kernel ------------- pair, end of the kernel: ingress hook
//!      |                                    ^
//!      v                                    |
//!   pair, end of the program             pair, end of the program
//!      | receives                           ^ sends
//!      v                                    |
//!   [forward: discipline and shaper]     [reverse: discipline and shaper]
//!      |                                    ^
//!      v                                    | receives frames without the mark
//!   WAN: sends past all hooks            WAN
//! ```
//!
//! # Principles
//! - **The kernel ends the detour with this program.** The hooks are three small programs of the kernel
//!   (BPF, at the hooks that Linux 6.6 has as tcx), and each is held by a descriptor. If the bridge is
//!   killed, the kernel closes the descriptors, and frames take the usual path at once. An unused pair
//!   remains, which the cleanup process removes.
//! - **The bridge does not know the detour.** A packet socket receives a frame before the ingress hook, which
//!   then drops the original. A packet socket sends past the egress hook (PACKET_QDISC_BYPASS).
//! - **A mark distinguishes frames that come back from frames of the link** (`MARK`). The ingress hook clears
//!   it, so that no rule of the router sees it.
//! - **Two processes may have hooks at once**, while one takes over from the other. Each hook gives the same
//!   answer as the other process's, and ends the chain.
//!
//! # Limits
//! - Qdiscs and tc filters of the interface have no effect on frames that take the detour.
//! - The interface has Ethernet frames. For PPPoE it is the Ethernet interface below `ppp0`.
//! - A capture on the interface (tcpdump) shows received frames twice: before the queue, and after it.
//!
//! References: the kernel's Documentation/bpf/ and include/uapi/linux/bpf.h; veth(4); packet(7).

mod netlink;
mod program;

use std::io;
use std::os::fd::OwnedFd;

use self::netlink::Netlink;
use self::program::{Hook, Program};
use crate::checks;
use crate::device::Ends;
use crate::error::LiveError;
use crate::interface::InterfaceQuery;
use crate::packet::{self, Use};

/// The mark of frames from the program to the network stack: "gw" and two bytes. It is below 2^31.
const MARK: u32 = 0x6777_d701;

/// The interface with the slow link, and the pair of virtual interfaces of its detour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub number: u32,
}

impl Detour {
    /// The detour of an interface.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn of(interface: &str) -> Result<Detour, LiveError> {
        let number = InterfaceQuery::new().and_then(|query| query.index(interface)).map_err(on(interface))?;
        Ok(Detour { interface: interface.to_owned(), number: number.unsigned_abs() })
    }

    /// Names of the pair's ends: the program's and the kernel's. They name the number of the interface,
    /// because the name of an interface may be as long as is possible.
    pub fn pair(&self) -> [String; 2] {
        [format!("gw{}", self.number), format!("gw{}-stack", self.number)]
    }

    /// Creates the pair, with the MTU of the interface, and without offloads and addresses. The caller has
    /// the lock of the interface, so an existing pair is one that a killed process has left. It is replaced.
    ///
    /// # Errors
    /// If the interface has no Ethernet frames, or the error of the system; CAP_NET_ADMIN is required.
    pub fn create(&self) -> Result<(), LiveError> {
        let query = InterfaceQuery::new().map_err(on(&self.interface))?;
        if query.hardware(&self.interface).map_err(on(&self.interface))? != libc::ARPHRD_ETHER {
            return Err(LiveError::NoDetour(self.interface.clone()));
        }
        let mtu = query.mtu(&self.interface).map_err(on(&self.interface))? as u32;
        let [program, kernel] = self.pair();
        self.remove()?;
        let netlink = Netlink::open().map_err(|error| self.failed(error))?;
        netlink.create_pair([&program, &kernel], mtu).map_err(|error| self.failed(error))?;
        for end in [&program, &kernel] {
            let index = query.index(end).map_err(on(end))?;
            let (_, merging) = checks::merging_offloads(end, checks::Merging::All)?;
            checks::switch_offloads(end, &merging, false)?;
            netlink.use_without_addresses(index).map_err(on(end))?;
        }
        Ok(())
    }

    /// Removes the pair, if it exists. A process without threads and with few privileges may call it.
    ///
    /// # Errors
    /// The error of the system; CAP_NET_ADMIN is required.
    pub fn remove(&self) -> Result<(), LiveError> {
        let [program, kernel] = self.pair();
        let query = InterfaceQuery::new().map_err(on(&program))?;
        // The kernel removes both ends at once.
        match query.index(&program).and(query.index(&kernel)) {
            Ok(index) => Netlink::open().and_then(|netlink| netlink.remove(index)).map_err(on(&program)),
            Err(_) => Ok(()),
        }
    }

    /// Opens the ends of a bridge, towards the router and towards the link.
    ///
    /// # Errors
    /// The error of the system, with the interface; CAP_NET_RAW is required.
    pub fn open(&self, ring_frames: Option<usize>) -> Result<(Ends, Ends), LiveError> {
        let [program, _] = self.pair();
        let detour = Use::Detour { except: MARK };
        let stack = packet::open_for(detour, &program, ring_frames).map_err(on(&program))?;
        let link = packet::open_for(detour, &self.interface, ring_frames).map_err(on(&self.interface))?;
        Ok((stack, link))
    }

    /// Leads the frames of the interface through the pair, until the returned value is dropped.
    ///
    /// # Errors
    /// If the kernel is too old, or this process lacks CAP_BPF or CAP_NET_ADMIN.
    pub fn begin(&self) -> Result<Hooks, LiveError> {
        let [_, kernel] = self.pair();
        let end = InterfaceQuery::new().and_then(|query| query.index(&kernel)).map_err(on(&kernel))?;
        let end = end.unsigned_abs();
        let attach = |program: Program, interface, hook| {
            program.attach(interface, hook).map_err(|error| match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => LiveError::DetourUnknown(error),
                _ => self.failed(error),
            })
        };
        // A frame that comes back finds its way before the first one leaves it.
        let back = attach(Program::mark_and_receive_at(self.number, MARK), end, Hook::Ingress)?;
        let out = attach(Program::send_to(end), self.number, Hook::Egress)?;
        let received = attach(Program::pass_only(MARK), self.number, Hook::Ingress)?;
        Ok(Hooks { _of_the_interface: [out, received], back })
    }

    /// The error of a request that changes the system.
    fn failed(&self, error: io::Error) -> LiveError {
        match error.raw_os_error() {
            // A service may be limited to other families of sockets.
            Some(libc::EPERM | libc::EACCES | libc::EAFNOSUPPORT) => LiveError::DetourForbidden(error),
            _ => on(&self.interface)(error),
        }
    }
}

/// The hooks of a detour. Frames take the usual path once it is dropped.
#[derive(Debug)]
pub struct Hooks {
    _of_the_interface: [OwnedFd; 2],
    back: OwnedFd,
}

impl Hooks {
    /// Lets the frames of the interface take the usual path. Frames that are in the program still return to
    /// the network stack until the returned value is dropped.
    #[must_use]
    pub fn end(self) -> OwnedFd {
        self.back
    }
}

/// Adds an interface to an error of the system.
fn on(interface: &str) -> impl Fn(io::Error) -> LiveError + use<> {
    let interface = interface.to_owned();
    move |error| LiveError::Interface { interface: interface.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_gives_names_that_the_kernel_accepts() {
        let detour = Detour { interface: "eth0".to_owned(), number: u32::MAX >> 12 };
        // IFNAMSIZ is 16, with the zero at the end.
        assert!(detour.pair().iter().all(|name| name.len() < 16), "{:?}", detour.pair());
        assert_eq!(Detour { number: 7, ..detour }.pair(), ["gw7", "gw7-stack"]);
    }
}
