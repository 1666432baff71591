//! Reads and sets properties of interfaces by ioctl: netdevice(7) and ethtool.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket for ioctl requests about interfaces.
pub(crate) struct InterfaceQuery(OwnedFd);

/// A feature of an interface, as in `ethtool -k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// Name in the kernel, as in `tx-tcp-segmentation`.
    pub(crate) name: String,
    pub(crate) active: bool,
    /// True if it can be turned on and off.
    pub(crate) available: bool,
    /// Index in the list of features.
    bit: usize,
}

impl InterfaceQuery {
    pub(crate) fn new() -> io::Result<InterfaceQuery> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened above, and nothing else owns it.
        Ok(InterfaceQuery(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Index of an interface.
    pub(crate) fn index(&self, name: &str) -> io::Result<i32> {
        let request = self.query(name, libc::SIOCGIFINDEX)?;
        // SAFETY: the kernel has written this field of the union, and every bit pattern is a valid integer.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// MTU of an interface, in bytes.
    pub(crate) fn mtu(&self, name: &str) -> io::Result<usize> {
        let request = self.query(name, libc::SIOCGIFMTU)?;
        // SAFETY: the kernel has written this field of the union, and every bit pattern is a valid integer.
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
    }

    /// Flags of an interface, such as `IFF_UP`.
    pub(crate) fn flags(&self, name: &str) -> io::Result<i32> {
        let request = self.query(name, libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel has written this field of the union, and every bit pattern is a valid integer.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Brings an interface up.
    pub(crate) fn bring_up(&self, name: &str) -> io::Result<()> {
        let flags = self.flags(name)?;
        let mut request = request(name)?;
        request.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as libc::c_short;
        // SAFETY: the pointer is to an `ifreq` whose name ends with zero. The kernel only reads it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// ARP hardware type of an interface: 1 is Ethernet.
    pub(crate) fn hardware(&self, name: &str) -> io::Result<u16> {
        let request = self.query(name, libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has written this field of the union, and every bit pattern is a valid address.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
    }

    /// Link address of an Ethernet interface.
    pub(crate) fn address(&self, name: &str) -> io::Result<[u8; 6]> {
        let request = self.query(name, libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has written this field of the union, and every bit pattern is a valid address of
        // 14 bytes.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
        Ok(std::array::from_fn(|at| address[at] as u8))
    }

    /// All features of an interface.
    pub(crate) fn features(&self, name: &str) -> io::Result<Vec<Feature>> {
        let names = self.feature_names(name)?;
        let blocks = names.len().div_ceil(32);
        // `struct ethtool_gfeatures`: the command, the number of blocks, and four words for each block.
        let mut words = vec![GET_FEATURES, blocks as u32];
        words.resize(2 + 4 * blocks, 0);
        self.ethtool(name, &mut words)?;
        Ok(features(&names, &words[2..]))
    }

    /// Turns features on or off.
    pub(crate) fn set_features(&self, name: &str, features: &[Feature], on: bool) -> io::Result<()> {
        let blocks = self.feature_names(name)?.len().div_ceil(32);
        // `struct ethtool_sfeatures`: the command, the number of blocks, and for each block a mask of the
        // features to change and their new values.
        let mut words = vec![SET_FEATURES, blocks as u32];
        words.resize(2 + 2 * blocks, 0);
        for feature in features.iter().filter(|feature| feature.bit / 32 < blocks) {
            let (block, bit) = (feature.bit / 32, 1 << (feature.bit % 32));
            words[2 + 2 * block] |= bit;
            words[3 + 2 * block] |= if on { bit } else { 0 };
        }
        self.ethtool(name, &mut words)
    }

    /// Names of all features of the kernel, by bit.
    fn feature_names(&self, name: &str) -> io::Result<Vec<String>> {
        // `struct ethtool_sset_info`: the command, a reserved word, a mask of 64 bits, and the number of
        // strings.
        let mut info = [SET_INFO, 0, 1 << FEATURE_STRINGS, 0, 0];
        self.ethtool(name, &mut info)?;
        // More than any kernel has, so that the allocation is bounded.
        let count = info[4].min(1024);
        // `struct ethtool_gstrings`: the command, the set, the number of strings, and the strings.
        let mut words = vec![GET_STRINGS, FEATURE_STRINGS, count];
        words.resize(3 + count as usize * NAME_BYTES / 4, 0);
        self.ethtool(name, &mut words)?;
        let bytes: Vec<u8> = words[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(names(&bytes))
    }

    /// An ethtool request: words, of which the first is the command.
    fn ethtool(&self, name: &str, words: &mut [u32]) -> io::Result<()> {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request has a name that ends with zero, and a pointer to words that is valid during the
        // call. The callers above allocate as many words as linux/ethtool.h requires for their command and
        // count, and the kernel accesses no more. SFEATURES returns bits on success, too.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL, &mut request) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends a request that reads a property of an interface.
    fn query(&self, name: &str, question: libc::c_ulong) -> io::Result<libc::ifreq> {
        let mut request = request(name)?;
        // SAFETY: the pointer is to an `ifreq` whose name ends with zero. The kernel writes only into it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), question as libc::Ioctl, &mut request) } {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

// linux/ethtool.h.
const GET_STRINGS: u32 = 0x1b;
const SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const FEATURE_STRINGS: u32 = 4;
const NAME_BYTES: usize = 32;

/// Parses names of a fixed length, padded with zeros.
fn names(bytes: &[u8]) -> Vec<String> {
    let text = |name: &[u8]| {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    bytes.chunks_exact(NAME_BYTES).map(text).collect()
}

/// Parses blocks of four words, each with a bit per feature: available, requested, active, never changed.
fn features(names: &[String], blocks: &[u32]) -> Vec<Feature> {
    let has = |bit: usize, word: usize| {
        blocks.get(4 * (bit / 32) + word).is_some_and(|block| block & (1 << (bit % 32)) != 0)
    };
    let named = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
    named
        .map(|(bit, name)| Feature { name: name.clone(), available: has(bit, 0), active: has(bit, 2), bit })
        .collect()
}

/// linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// An empty request about an interface.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "the name of an interface has 1 to 15 bytes");
    let name = CString::new(name).map_err(|_| wrong())?;
    let bytes = name.as_bytes();
    // SAFETY: an `ifreq` consists of integers, arrays and unions of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if bytes.is_empty() || bytes.len() >= request.ifr_name.len() {
        return Err(wrong());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok(request)
}

/// Names of all interfaces.
pub(crate) fn all() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_parsed_with_their_names() {
        let mut bytes = vec![0; 40 * NAME_BYTES];
        for (bit, name) in [(0, "tx-scatter-gather"), (33, "rx-gro"), (39, "rx-lro")] {
            bytes[bit * NAME_BYTES..][..name.len()].copy_from_slice(name.as_bytes());
        }
        let names = names(&bytes);
        // Available, requested, active, never changed: gro is on, lro is off, scatter-gather cannot be
        // changed.
        let blocks = [0, 1, 1, 1, 0b1000_0010, 0, 0b10, 0];
        let all = features(&names, &blocks);
        let seen: Vec<_> = all.iter().map(|of| (of.name.as_str(), of.active, of.available, of.bit)).collect();
        assert_eq!(
            seen,
            [("tx-scatter-gather", true, false, 0), ("rx-gro", true, true, 33), ("rx-lro", false, true, 39)]
        );
        assert!(features(&names, &[]).iter().all(|of| !of.active), "features without bits are off");
    }

    #[test]
    fn the_kernel_has_features() {
        let all = InterfaceQuery::new()
            .and_then(|query| query.features("lo"))
            .expect("every machine has the interface lo");
        assert!(all.iter().any(|of| of.name == "rx-gro"), "{all:?}");
    }
}
