//! Checks before a bridge starts: conditions that would silently falsify its results, each with a remedy.

use std::io;

use crate::error::LiveError;
use crate::interface::{Feature, InterfaceQuery, all};

/// Receive offloads that merge several packets into one, by their names in `ethtool -k`.
const MERGES: [&str; 5] = ["rx-gro", "rx-gro-hw", "rx-gro-list", "rx-lro", "rx-udp-gro-forwarding"];

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Fatal: the bridge cannot run. Otherwise it runs, but its measurements would be misleading.
    pub fatal: bool,
    /// Description of the problem.
    pub what: String,
    /// The remedy, usually a command to type; empty if there is none.
    pub remedy: String,
}

impl Finding {
    fn fatal(what: String, remedy: impl Into<String>) -> Finding {
        Finding { fatal: true, what, remedy: remedy.into() }
    }
    fn warning(what: String, remedy: impl Into<String>) -> Finding {
        Finding { fatal: false, what, remedy: remedy.into() }
    }
}

/// The privilege that this process lacks for a bridge; `None` if it has all.
pub fn privileges() -> Option<Finding> {
    let lacking = Finding::fatal(
        "this user may not open packet sockets (CAP_NET_RAW is missing)".to_owned(),
        "run it with sudo, or once: sudo setcap cap_net_raw,cap_net_admin,cap_sys_nice,cap_ipc_lock+ep \
         \"$(command -v giveway-net)\"",
    );
    (!may_open_raw_sockets()).then_some(lacking)
}

/// The offloads that merge packets before a bridge sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Features of both directions: frames that another machine or this one sends may be merged.
    All,
    /// Features of received frames only. The bridge sends the frames of a detour itself.
    Received,
}

impl Merging {
    fn includes(self, name: &str) -> bool {
        if self == Merging::All { merges(name) } else { MERGES.contains(&name) }
    }
}

/// Checks the WAN interface of a router. It has an address, unlike the interfaces of a bridge.
pub fn check_detour(name: &str, merging: Merging) -> Vec<Finding> {
    match InterfaceQuery::new() {
        Ok(query) => privileges().into_iter().chain(check_interface(&query, name, merging)).collect(),
        Err(error) => vec![no_socket(&error)],
    }
}

fn no_socket(error: &io::Error) -> Finding {
    Finding::fatal(format!("cannot open a socket for the checks: {error}"), "")
}

/// Checks two interfaces for a bridge. `None` is an interface that the program creates itself.
pub fn check(a: Option<&str>, b: Option<&str>) -> Vec<Finding> {
    let mut found = Vec::new();
    let query = match InterfaceQuery::new() {
        Ok(query) => query,
        Err(error) => return vec![no_socket(&error)],
    };
    if a.is_some() && a == b {
        let name = a.unwrap_or_default();
        found.push(Finding::fatal(
            format!("--in and --out are the same interface, {name}: a bridge needs two"),
            "",
        ));
        return found;
    }
    found.extend(privileges());
    let mut mtus = Vec::new();
    for name in [a, b].into_iter().flatten() {
        let of_interface = check_interface(&query, name, Merging::All);
        let is_missing = of_interface.iter().any(|finding| finding.fatal);
        found.extend(of_interface);
        if is_missing {
            continue;
        }
        if has_address(name) {
            found.push(Finding::warning(
                format!(
                    "{name} has an IP address: this host answers on it, too, and routes may bypass the bridge"
                ),
                // Not `flush`: the user may be logged in over this interface.
                format!(
                    "use an interface without an address, or remove the address: ip address show dev {name}"
                ),
            ));
        }
        if let Ok(mtu) = query.mtu(name) {
            mtus.push((name, mtu));
        }
    }
    if let [(a, of_a), (b, of_b)] = mtus[..]
        && of_a != of_b
    {
        found.push(Finding::warning(
            format!("the MTU of {a} is {of_a} and that of {b} {of_b}: longer frames are dropped"),
            format!("ip link set {} mtu {}", if of_a < of_b { b } else { a }, of_a.min(of_b)),
        ));
    }
    found
}

/// Checks that an interface exists, is up, and merges no packets.
fn check_interface(query: &InterfaceQuery, name: &str, merging: Merging) -> Vec<Finding> {
    let mut found = Vec::new();
    if query.index(name).is_err() {
        let there = all();
        let near = giveway_qdisc::units::nearest(name, there.iter().map(String::as_str));
        let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
        found.push(Finding::fatal(
            format!("no interface {name}"),
            format!("{near}write one of {}", there.join(", ")),
        ));
        return found;
    }
    if query.flags(name).is_ok_and(|flags| flags & libc::IFF_UP == 0) {
        found.push(Finding::warning(
            format!("{name} is down: no frame passes until it is up"),
            format!("ip link set {name} up"),
        ));
    }
    let features = query.features(name).unwrap_or_default();
    let on = features.iter().filter(|of| of.active && merging.includes(&of.name)).map(|of| of.name.as_str());
    let on = short_names(on);
    if !on.is_empty() {
        found.push(Finding::warning(
            format!(
                "{name} merges packets ({}): frames longer than the MTU are dropped, and others are \
                 scheduled as one packet",
                on.join(", ")
            ),
            format!("--fix-offloads, or: ethtool -K {name} {}", on.map_off()),
        ));
    }
    found
}

/// Checks that a receive ring of this size does not overflow while the thread sleeps or waits for a
/// processor.
pub fn check_ring(frames: usize) -> Option<Finding> {
    /// Frames of a millisecond at a million frames a second: the longest sleep while the link is busy.
    const MIN: usize = 1000;
    (frames < MIN).then(|| {
        Finding::warning(
            format!(
                "a ring of {frames} frames is full after {:.2} ms at a million frames a second, and the thread may sleep \
                 for 1 ms: the kernel drops frames that do not fit",
                frames as f64 / 1000.0
            ),
            "leave --ring out, or write at least --ring 1000",
        )
    })
}

/// True if a feature merges packets, so that a bridge receives frames that were never on a wire: receive
/// offloads (GRO in all variants, LRO), and segmentation that is left to the interface, of any protocol (TSO
/// with and without accurate ECN, UDP, tunnels, and GSO).
fn merges(name: &str) -> bool {
    let segments = name.starts_with("tx-") && name.ends_with("-segmentation");
    segments || name == "tx-gso-list" || MERGES.contains(&name)
}

/// Names as `ethtool -K` takes them, each once: one name for all kinds of TCP segmentation.
fn short_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut short: Vec<&str> = Vec::new();
    for name in names {
        let name = match name {
            "rx-gro" => "gro",
            "rx-lro" => "lro",
            "tx-generic-segmentation" => "gso",
            name if name.starts_with("tx-tcp") => "tso",
            name => name,
        };
        if !short.contains(&name) {
            short.push(name);
        }
    }
    short
}

/// The number of an interface, and the names of its features that merge these packets, are on, and can be
/// turned off.
///
/// # Errors
/// The error of the system, for example if there is no such interface.
pub fn merging_offloads(name: &str, merging: Merging) -> Result<(u32, Vec<String>), LiveError> {
    let system_error = |error| LiveError::Interface { interface: name.to_owned(), error };
    let query = InterfaceQuery::new().map_err(system_error)?;
    let number = query.index(name).map_err(system_error)?;
    let features = query.features(name).map_err(system_error)?;
    let on = features.into_iter().filter(|of| of.active && of.available && merging.includes(&of.name));
    Ok((number.unsigned_abs(), on.map(|of| of.name).collect()))
}

/// Turns these features of an interface off, or on again. Features that it does not have are ignored.
///
/// # Errors
/// The features that could not be changed.
pub fn switch_offloads(name: &str, features: &[String], on: bool) -> Result<(), LiveError> {
    let to = if on { "on" } else { "off" };
    let system_error = |error| LiveError::Offloads {
        interface: name.to_owned(),
        features: list_offloads(features),
        to,
        error,
    };
    let query = InterfaceQuery::new().map_err(system_error)?;
    let all = query.features(name).map_err(system_error)?;
    let wanted: Vec<Feature> = all.into_iter().filter(|of| features.contains(&of.name)).collect();
    query.set_features(name, &wanted, on).map_err(system_error)?;
    // Some drivers report success without a change.
    let now = query.features(name).map_err(system_error)?;
    let unchanged = now.iter().filter(|of| features.contains(&of.name) && of.active != on);
    let unchanged = short_names(unchanged.map(|of| of.name.as_str()));
    if unchanged.is_empty() {
        return Ok(());
    }
    let (interface, features) = (name.to_owned(), unchanged.join(", "));
    Err(LiveError::OffloadsUnchanged { interface, features, to })
}

/// Short names of features, separated by commas.
pub fn list_offloads(features: &[String]) -> String {
    short_names(features.iter().map(String::as_str)).join(", ")
}

/// Arguments of `ethtool -K`.
trait Off {
    fn map_off(&self) -> String;
}
impl Off for Vec<&str> {
    fn map_off(&self) -> String {
        self.iter().map(|name| format!("{name} off")).collect::<Vec<_>>().join(" ")
    }
}

fn may_open_raw_sockets() -> bool {
    caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_NET_RAW).unwrap_or(false)
}

/// True if the interface has an IPv4 address. Every interface has an IPv6 address, so those do not count.
fn has_address(name: &str) -> bool {
    nix::ifaddrs::getifaddrs().is_ok_and(|all| {
        all.into_iter().any(|entry| {
            let family = entry.address.as_ref().and_then(nix::sys::socket::SockaddrLike::family);
            entry.interface_name == name && family == Some(nix::sys::socket::AddressFamily::Inet)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fatal(a: &str, b: &str) -> Vec<String> {
        check(Some(a), Some(b)).into_iter().filter(|found| found.fatal).map(|found| found.what).collect()
    }

    #[test]
    fn a_missing_interface_is_reported_with_the_existing_ones() {
        let found = check(Some("lo"), Some("nosuch0"));
        let missing = found.iter().find(|found| found.what == "no interface nosuch0").unwrap();
        assert!(missing.fatal && missing.remedy.contains("write one of ") && missing.remedy.contains("lo"));
    }

    /// The features come from `ethtool -k` in Linux 6.18, one of each kind, and others with similar names.
    #[test]
    fn features_that_merge_packets_are_recognised() {
        let all = [
            "tx-tcp-segmentation",
            "tx-tcp-accecn-segmentation",
            "tx-tcp6-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
            "tx-gre-csum-segmentation",
            "tx-gso-list",
            "rx-gro",
            "rx-gro-hw",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
            "rx-lro",
        ];
        assert!(all.into_iter().all(merges));
        let others =
            ["rx-checksum", "tx-checksum-ip-generic", "tx-gso-robust", "tx-gso-partial", "rx-vlan-filter"];
        assert!(!others.into_iter().any(merges));
        let short = short_names(all.into_iter());
        let first = ["tso", "gso", "tx-udp-segmentation", "tx-gre-csum-segmentation", "tx-gso-list", "gro"];
        assert_eq!((&short[..6], *short.last().unwrap()), (&first[..], "lro"));
    }

    #[test]
    fn a_small_ring_is_reported() {
        assert_eq!(check_ring(4096), None);
        let message = check_ring(256).expect("the ring is too small");
        assert!(!message.fatal && message.what.contains("full after 0.26 ms"), "{}", message.what);
    }

    #[test]
    fn a_bridge_from_an_interface_to_itself_is_refused() {
        assert_eq!(fatal("lo", "lo"), ["--in and --out are the same interface, lo: a bridge needs two"]);
    }
}
