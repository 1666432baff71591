//! Reads, replaces and restores the qdisc at the root of an interface, with `tc`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::KernelError;
use crate::printed;
use crate::tools::{TC, UNSHARE};

/// Qdiscs with classes. `tc qdisc show` prints no classes, so these qdiscs cannot be restored.
const CLASSFUL: [&str; 9] = ["htb", "hfsc", "drr", "qfq", "ets", "prio", "cbq", "mqprio", "taprio"];

/// The largest packet of an interface, as the kernel's qdiscs count it: with the Ethernet header, if it has
/// one.
///
/// # Errors
/// If the interface does not exist.
pub fn largest_packet(device: &str) -> Result<u64, KernelError> {
    let folder = Path::new("/sys/class/net").join(device);
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let valid = !device.is_empty() && !device.contains('/');
    let (true, Some(mtu), Some(kind)) = (valid, number("mtu"), number("type")) else {
        let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut existing: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        existing.sort();
        return Err(KernelError::precondition(format!(
            "there is no interface {device:?}: there are {}",
            existing.join(", ")
        )));
    };
    // ARPHRD_ETHER.
    Ok(mtu + if kind == 1 { 14 } else { 0 })
}

/// The name of the qdisc at the root of an interface.
pub(crate) fn root_name(device: &str) -> Result<Option<String>, KernelError> {
    Ok(root(device)?.and_then(|root| root["kind"].as_str().map(str::to_owned)))
}

/// The qdisc that must be restored later, as arguments of `tc qdisc add dev DEVICE root`; `None` if it is the
/// default qdisc.
///
/// # Errors
/// If the interface has a qdisc that must not be replaced, or that could not be restored.
pub(crate) fn previous(device: &str, replace: bool) -> Result<Option<String>, KernelError> {
    let Some(root) = root(device)? else { return Ok(None) };
    let kind = root["kind"].as_str().unwrap_or_default();
    // The kernel gives a default qdisc no handle; every other one has a handle.
    if root["handle"] == "0:" {
        return Ok(None);
    }
    if kind.starts_with("giveway_") {
        let what =
            format!("{device} already has {kind}, added by hand; remove it: tc qdisc del dev {device} root");
        return Err(KernelError::precondition(what));
    }
    if CLASSFUL.contains(&kind) {
        let what = format!(
            "{device} has {kind} with classes, which could not be restored: remove it (tc qdisc del dev {device} root), or use another \
             interface"
        );
        return Err(KernelError::precondition(what));
    }
    if !replace {
        let what =
            format!("{device} already has the qdisc {kind}: write --replace to replace it until unload");
        return Err(KernelError::precondition(what));
    }
    let text = TC.run(&["qdisc", "show", "dev", device, "root"])?;
    let Some(typed) = text.lines().next().map(printed::as_typed) else { return Ok(None) };
    if let Err(KernelError::Failed { output, .. }) = try_elsewhere(&typed) {
        let what = format!(
            "{device} has the qdisc \"{typed}\", which could not be restored ({output}): remove it (tc qdisc del dev {device} root), or \
             use another interface"
        );
        return Err(KernelError::precondition(what));
    }
    Ok(Some(typed))
}

/// Replaces the qdisc at the root of an interface. `overhead` is added to the length of each packet.
pub(crate) fn replace(device: &str, name: &str, overhead: i32) -> Result<(), KernelError> {
    let more = overhead.to_string();
    let stab = ["stab", "overhead", &more, "linklayer", "ethernet"];
    let stab: &[&str] = if overhead == 0 { &[] } else { &stab };
    TC.run(&[&["qdisc", "replace", "dev", device, "root"], stab, &[name]].concat()).map(drop)
}

/// Removes the qdisc at the root of an interface.
pub(crate) fn delete(device: &str) -> Result<(), KernelError> {
    TC.run(&["qdisc", "del", "dev", device, "root"]).map(drop)
}

/// Adds a qdisc at the root of an interface, from the words that [`previous`] returned.
pub(crate) fn restore(device: &str, typed: &str) -> Result<(), KernelError> {
    let words = ["qdisc", "add", "dev", device, "root"].into_iter().chain(typed.split(' '));
    TC.run(&words.collect::<Vec<_>>()).map(drop)
}

fn root(device: &str) -> Result<Option<Value>, KernelError> {
    let all = TC.json(&["-j", "qdisc", "show", "dev", device])?;
    Ok(printed::root_qdisc(&all).cloned())
}

/// Adds a qdisc in a temporary network namespace. An error shows that `tc` does not accept these words.
fn try_elsewhere(typed: &str) -> Result<String, KernelError> {
    let words = ["--net", TC.name, "qdisc", "add", "dev", "lo", "root"].into_iter().chain(typed.split(' '));
    UNSHARE.run(&words.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_interface_lists_the_existing_ones() {
        let error = largest_packet("no such thing").unwrap_err().to_string();
        assert!(error.contains("there are ") && error.contains("lo"), "{error}");
        assert_eq!(largest_packet("lo").unwrap(), 65_536);
    }
}
