//! Records of loaded disciplines: a file for each interface below [`STATE`], because the kernel does not
//! store which object belongs to which interface, nor which qdisc was there before.
//!
//! Each network namespace has its own interfaces: `eth0` in one namespace is not `eth0` in another. The
//! [file name](Attached::file_stem) of a record therefore has both the interface and the namespace. Objects
//! belong to the whole machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::KernelError;

/// Folder of the records.
pub const STATE: &str = "/run/giveway/kernel";

/// Record of a loaded discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The interface.
    pub device: String,
    /// The kernel's number of the network namespace of the interface; none: the namespace of process 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
    /// The qdisc's name in `tc`.
    pub name: String,
    /// The discipline as the user wrote it.
    pub discipline: String,
    /// Rate of the shaper, bit/s; 0: the interface's own rate.
    pub rate: u64,
    /// The kernel's number of the object.
    pub(crate) object: u64,
    /// The kernel's number of the map with the counters.
    pub(crate) counters: u64,
    /// The kernel's number of the map with the parameters.
    pub(crate) params: u64,
    /// The replaced qdisc, as arguments of `tc qdisc add dev DEVICE root`; none if it was the default qdisc.
    #[serde(alias = "before")]
    pub(crate) previous: Option<String>,
    /// The process that removes the discipline at its end, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "keeper")]
    pub(crate) owner: Option<Process>,
}

impl Attached {
    /// Name of the interface's files, without an extension: `eth0`, or `eth0@4026` in a network namespace.
    pub(crate) fn file_stem(&self) -> String {
        file_stem(&self.device, self.namespace)
    }

    /// Path of the record.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(STATE).join(format!("{}.json", self.file_stem()))
    }

    /// Writes the record. The file is renamed when it is complete, so readers never see a part of it.
    pub(crate) fn write(&self) -> Result<(), KernelError> {
        let path = self.path();
        let text = serde_json::to_string_pretty(self).expect("a record is plain data");
        let partial = path.with_extension("partial");
        fs::write(&partial, text).map_err(KernelError::file(&partial))?;
        fs::rename(&partial, &path).map_err(KernelError::file(&path))
    }

    /// True if the process that would have removed the discipline was killed.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.owner.is_some_and(|owner| !owner.is_alive())
    }
}

/// A process, identified by its number and its start in clock ticks since the boot, because numbers are
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    number: u32,
    #[serde(alias = "began")]
    started: u64,
}

impl Process {
    /// The calling process.
    pub fn own() -> Option<Process> {
        let number = std::process::id();
        Some(Process { number, started: start_of(number)? })
    }

    fn is_alive(self) -> bool {
        start_of(self.number) == Some(self.started)
    }
}

fn start_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // proc(5): field 22 is `starttime`. Field 2, the program's name in brackets, may contain spaces and
    // brackets, so the fields are counted from the last bracket: the 20th after it.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Records of all disciplines on this machine, in all network namespaces, ordered by interface.
///
/// # Errors
/// If a record cannot be read.
pub fn all() -> Result<Vec<Attached>, KernelError> {
    let mut all = Vec::new();
    let entries = match fs::read_dir(STATE) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        Err(error) => return Err(KernelError::file(STATE)(error)),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // Another process has unloaded the discipline since the folder was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(KernelError::file(&path)(error)),
        };
        all.push(
            serde_json::from_str(&text).map_err(|error| {
                KernelError::precondition(format!("{}: {error}; remove it", path.display()))
            })?,
        );
    }
    all.sort_by(|one: &Attached, other: &Attached| {
        (&one.device, one.namespace).cmp(&(&other.device, other.namespace))
    });
    Ok(all)
}

/// The record of an interface in the caller's network namespace.
///
/// # Errors
/// If a record cannot be read.
pub fn find(device: &str) -> Result<Option<Attached>, KernelError> {
    let here = namespace();
    Ok(all()?.into_iter().find(|attached| attached.device == device && attached.namespace == here))
}

/// Name of the files of an interface.
pub(crate) fn file_stem(device: &str, namespace: Option<u64>) -> String {
    namespace.map_or_else(|| device.to_owned(), |number| format!("{device}@{number}"))
}

/// The kernel's number of the calling thread's network namespace; none: the namespace of process 1.
pub(crate) fn namespace() -> Option<u64> {
    let number = |process: &str| {
        let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
        link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    // A caller that may not read the link of process 1 is not root, and loads nothing.
    number("thread-self").filter(|here| number("1").is_some_and(|first| first != *here))
}

/// True if a network namespace exists: a process is in it, or a mount keeps it, as with `ip netns`.
pub(crate) fn has_namespace(number: u64) -> bool {
    let text = format!("net:[{number}]");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    mounts.contains(&text)
        || processes.into_iter().any(|process| {
            fs::read_link(process.path().join("ns/net")).is_ok_and(|link| link.as_os_str() == text.as_str())
        })
}

/// True if the caller's network namespace has an interface. Unlike `/sys/class/net`, this file follows the
/// calling thread.
pub(crate) fn has_interface(device: &str) -> bool {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().any(|line| line.split_once(':').is_some_and(|(name, _)| name.trim() == device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_start_time_is_not_this_process() {
        let own = Process::own().unwrap();
        assert!(own.is_alive() && !Process { started: own.started + 1, ..own }.is_alive());
    }

    #[test]
    fn interfaces_of_two_namespaces_have_two_records() {
        assert_eq!([file_stem("eth0", None), file_stem("eth0", Some(4026))], ["eth0", "eth0@4026"]);
        let own = fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy().into_owned();
        let own = own.trim_start_matches("net:[").trim_end_matches(']').parse().unwrap();
        assert!(has_namespace(own) && !has_namespace(1));
        assert!(has_interface("lo") && !has_interface("no-such"));
    }

    #[test]
    fn records_of_older_versions_are_accepted() {
        let text = r#"{"device":"lo","name":"giveway_efd","discipline":"efd","rate":0,"object":1,"counters":2,"params":3,
            "before":"pfifo","keeper":{"number":7,"began":9}}"#;
        let attached: Attached = serde_json::from_str(text).unwrap();
        assert_eq!(attached.previous.as_deref(), Some("pfifo"));
        assert_eq!(attached.owner, Some(Process { number: 7, started: 9 }));
    }
}
