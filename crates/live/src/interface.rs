//! Questions to the kernel about an interface, by ioctl: netdevice(7), and ethtool's.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket to ask with.
pub(crate) struct Asker(OwnedFd);

/// What an offload is called by `ethtool -K`, and by which numbers the kernel is asked and told.
pub(crate) struct Offload {
    pub(crate) name: &'static str,
    get: u32,
    set: u32,
}

/// Those that turn several packets into one, or leave checksums unfinished. Numbers of linux/ethtool.h.
pub(crate) const OFFLOADS: [Offload; 3] = [
    Offload { name: "tso", get: 0x1e, set: 0x1f },
    Offload { name: "gso", get: 0x23, set: 0x24 },
    Offload { name: "gro", get: 0x2b, set: 0x2c },
];

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

impl Asker {
    pub(crate) fn new() -> io::Result<Asker> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened here and belongs to nobody else.
        Ok(Asker(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Its number, or why it has none.
    pub(crate) fn index(&self, name: &str) -> io::Result<i32> {
        let request = self.ask(name, libc::SIOCGIFINDEX)?;
        // SAFETY: the kernel has filled in the index, and any bits are an integer.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// The longest packet that it takes, without the link header.
    pub(crate) fn mtu(&self, name: &str) -> io::Result<usize> {
        let request = self.ask(name, libc::SIOCGIFMTU)?;
        // SAFETY: as above.
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
    }

    /// Its flags, `IFF_UP` and the like.
    pub(crate) fn flags(&self, name: &str) -> io::Result<i32> {
        let request = self.ask(name, libc::SIOCGIFFLAGS)?;
        // SAFETY: as above.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Brings it up.
    pub(crate) fn bring_up(&self, name: &str) -> io::Result<()> {
        let flags = self.flags(name)?;
        let mut request = request(name)?;
        request.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as libc::c_short;
        // SAFETY: the request is one, its name ends with zero, and the kernel only reads it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What kind of hardware it is, as ARP numbers them: 1 is Ethernet.
    pub(crate) fn hardware(&self, name: &str) -> io::Result<u16> {
        let request = self.ask(name, libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has filled in the address, whose family is the kind.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
    }

    /// Its link address, where it is Ethernet.
    pub(crate) fn address(&self, name: &str) -> io::Result<[u8; 6]> {
        let request = self.ask(name, libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has filled in the address: 14 bytes, of which Ethernet has 6.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
        Ok(std::array::from_fn(|at| address[at] as u8))
    }

    /// Whether an offload is on. Drivers that do not know it have it off.
    pub(crate) fn offload(&self, name: &str, offload: &Offload) -> bool {
        let mut value = Value { command: offload.get, data: 0 };
        self.ethtool(name, &mut value).is_ok() && value.data != 0
    }

    /// Turns an offload off.
    pub(crate) fn turn_off(&self, name: &str, offload: &Offload) -> io::Result<()> {
        self.ethtool(name, &mut Value { command: offload.set, data: 0 })
    }

    fn ethtool(&self, name: &str, value: &mut Value) -> io::Result<()> {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
        // SAFETY: the request has a name that ends with zero, and points to a value that lives until the call returns; the
        // kernel reads and writes no more of it than `struct ethtool_value`.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL, &mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn ask(&self, name: &str, question: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = request(name)?;
        // SAFETY: the request is one, its name ends with zero, and the kernel writes only into it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), question, &mut request) } {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// An empty request about an interface.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "names of interfaces have 1 to 15 bytes");
    let name = CString::new(name).map_err(|_| wrong())?;
    let bytes = name.as_bytes();
    // SAFETY: a request is integers, arrays of them and a union of such: zeros are one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if bytes.is_empty() || bytes.len() >= request.ifr_name.len() {
        return Err(wrong());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok(request)
}

/// The interfaces that there are.
pub(crate) fn all() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
