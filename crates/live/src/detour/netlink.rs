//! The requests of a detour to the kernel about interfaces: create a pair, configure an end, and remove it.
//!
//! Three messages are few enough to be written here; a crate for all of netlink would be the largest
//! dependency of the live path. Only `socket`, `write` and `read` are called, which the cleanup process may.
//!
//! References: netlink(7), rtnetlink(7); linux/if_link.h, linux/veth.h; RFC 3549.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::unistd::{read, write};

/// A socket for requests about interfaces.
pub struct Netlink(OwnedFd);

// linux/netlink.h.
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const ERROR: u16 = 2;
// linux/rtnetlink.h.
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const SET_LINK: u16 = 19;
// linux/if_link.h.
const NAME: u16 = 3;
const MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const KIND: u16 = 1;
const DATA: u16 = 2;
const FAMILIES: u16 = 26;
const ADDRESS_MODE: u16 = 8;
/// VETH_INFO_PEER of linux/veth.h.
const PEER: u16 = 1;
/// IN6_ADDR_GEN_MODE_NONE: the interface gets no address.
const NO_ADDRESS: u8 = 1;

impl Netlink {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open() -> io::Result<Netlink> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened above, and nothing else owns it.
        Ok(Netlink(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Creates a pair of virtual interfaces.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create_pair(&self, [first, second]: [&str; 2], mtu: u32) -> io::Result<()> {
        let end = |name: &str| -> Vec<u8> {
            let name = [name.as_bytes(), &[0]].concat();
            [attribute(NAME, &name), attribute(MTU, &mtu.to_ne_bytes())].concat()
        };
        let peer = attribute(PEER, &[interface(0, 0), end(second)].concat());
        let info = [attribute(KIND, b"veth\0"), attribute(DATA, &peer)].concat();
        let body = [interface(0, 0), end(first), attribute(LINK_INFO, &info)].concat();
        self.request(NEW_LINK, CREATE | EXCLUSIVE, &body)
    }

    /// Brings an interface up without ARP and addresses, so that the kernel sends nothing there by itself.
    ///
    /// # Errors
    /// The error of the system.
    pub fn use_without_addresses(&self, index: i32) -> io::Result<()> {
        let mode = attribute(ADDRESS_MODE, &[NO_ADDRESS]);
        let families = attribute(FAMILIES, &attribute(libc::AF_INET6 as u16, &mode));
        match self.request(SET_LINK, 0, &[interface(index, 0), families].concat()) {
            Ok(()) => {}
            // A kernel without IPv6.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            Err(error) => return Err(error),
        }
        let flags = (libc::IFF_UP | libc::IFF_NOARP).unsigned_abs();
        self.request(SET_LINK, 0, &interface(index, flags))
    }

    /// Removes a virtual interface, and the other end of its pair.
    ///
    /// # Errors
    /// The error of the system.
    pub fn remove(&self, index: i32) -> io::Result<()> {
        self.request(DELETE_LINK, 0, &interface(index, 0))
    }

    /// Sends a request, and waits for its acknowledgement.
    fn request(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let message = message(kind, flags, body);
        write(&self.0, &message)?;
        let mut answer = [0; 4096];
        let length = read(&self.0, &mut answer)?;
        acknowledgement(&answer[..length])
    }
}

/// A request: `struct nlmsghdr` and its body.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = (HEADER + body.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((flags | REQUEST | ACKNOWLEDGE).to_ne_bytes());
    // Number of the request, and number of the socket, which the kernel knows.
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

/// `struct ifinfomsg`: an interface, and the flags to set.
fn interface(index: i32, flags: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(index.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // The flags that change.
    bytes.extend(flags.to_ne_bytes());
    bytes
}

/// `struct rtattr`, with its value and padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Parses `struct nlmsgerr`, whose error is zero for an acknowledgement.
fn acknowledgement(answer: &[u8]) -> io::Result<()> {
    let field = |at: usize, bytes: usize| answer.get(at..at + bytes);
    let kind = field(4, 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let error = field(HEADER, 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, error) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(error)) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel sent no acknowledgement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_lengths_and_padding() {
        assert_eq!(attribute(3, b"gw7\0").len(), 8);
        assert_eq!(attribute(3, b"gw7-stack\0")[..4], [14, 0, 3, 0].map(|byte: u8| byte.to_le()));
        assert_eq!(attribute(3, b"gw7-stack\0").len(), 16, "a multiple of four");
        let whole = message(DELETE_LINK, 0, &interface(7, 0));
        assert_eq!((whole.len(), whole[0]), (32, 32));
        assert_eq!(whole[20..24], 7i32.to_ne_bytes());
    }

    #[test]
    fn an_answer_is_an_acknowledgement_or_an_error() {
        let answer = |kind: u16, error: i32| {
            let body = error.to_ne_bytes();
            let mut bytes = message(kind, 0, &body);
            bytes.extend([0; 16]);
            bytes
        };
        assert!(acknowledgement(&answer(ERROR, 0)).is_ok());
        let refused = acknowledgement(&answer(ERROR, -libc::EPERM)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert!(acknowledgement(&answer(NEW_LINK, 0)).is_err());
        assert!(acknowledgement(&[]).is_err());
    }

    /// The kernel answers a request about an interface that does not exist.
    #[test]
    fn the_kernel_refuses_to_remove_an_interface_that_does_not_exist() {
        let Ok(netlink) = Netlink::open() else {
            println!("skipped: no netlink sockets");
            return;
        };
        let refused = netlink.remove(i32::MAX).unwrap_err().raw_os_error();
        // Without privileges the kernel refuses before it looks.
        assert!(matches!(refused, Some(libc::ENODEV | libc::EPERM)), "{refused:?}");
    }
}
