//! Preparations that need privileges, before the interfaces are opened: the user of the process, locks of the
//! interfaces, changes that an earlier bridge left, the control socket, offloads, and the cleanup process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use giveway_control::leftovers::{self, Changed};
use giveway_control::lock::{self, InterfaceLocks};
use giveway_live::checks;
use giveway_live::cleanup::Cleanup;
use giveway_live::privilege::Identity;
use nix::net::if_::if_nametoindex;
use nix::unistd::{Uid, User, geteuid};

use super::args::Args;
use super::error::BridgeError;
use super::messages::remark;
use super::socket;
use crate::show;

/// Resources that last as long as the bridge.
pub struct Prepared {
    /// The control socket.
    pub listener: Option<UnixListener>,
    /// Dropped before the locks, so that no other bridge starts before the cleanup.
    _cleanup: Option<Cleanup>,
    locks: InterfaceLocks,
}

impl Prepared {
    /// Closes connections to the locks of the interfaces. Must be called regularly while the bridge runs.
    pub fn tick(&self) {
        self.locks.forget_clients();
    }
}

/// The user that this process becomes, with its name; `None` if the process does not run as root.
///
/// # Errors
/// If there is no such user, or the process may not become it.
pub fn user(args: &Args) -> Result<Option<(Identity, String)>, BridgeError> {
    let of = |user: User| (Identity { user: user.uid.as_raw(), group: user.gid.as_raw() }, user.name);
    let own = geteuid();
    if let Some(wanted) = &args.user {
        let by_number =
            || wanted.parse().ok().and_then(|number| User::from_uid(Uid::from_raw(number)).ok()?);
        let found = User::from_name(wanted).ok().flatten().or_else(by_number);
        let found = found.ok_or_else(|| {
            BridgeError::Usage(format!("--user: there is no user \"{wanted}\" on this machine"))
        })?;
        if !own.is_root() && found.uid != own {
            return Err(BridgeError::Usage(format!(
                "--user: only root can become {wanted}: leave it out, or run it with sudo"
            )));
        }
        return Ok(Some(of(found)).filter(|_| own.is_root()));
    }
    if !own.is_root() {
        return Ok(None);
    }
    // sudo(8) sets the user that called it. That user then owns the files.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if let Some(user) = number("SUDO_UID").filter(|user| *user != 0) {
        let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
        let group = number("SUDO_GID").or(known.as_ref().map(|known| known.gid.as_raw())).unwrap_or(user);
        return Ok(Some((Identity { user, group }, known.map_or(user.to_string(), |known| known.name))));
    }
    let nobody = User::from_name("nobody").ok().flatten().map(of);
    // The kernel uses this number for users that it cannot map.
    Ok(Some(nobody.unwrap_or((Identity { user: 65_534, group: 65_534 }, "nobody".to_owned()))))
}

/// Checks the interfaces, takes their locks, undoes changes of an earlier bridge, opens the control socket,
/// and turns offloads off if requested. Returns `None` if a check failed; its message was printed.
///
/// # Errors
/// If a lock, the control socket or the cleanup process is not available, or offloads cannot be read.
pub fn prepare(args: &Args) -> Result<Option<Prepared>, BridgeError> {
    let ends = [args.inside.as_str(), args.outside.as_str()];
    let real: Vec<&str> = ends.into_iter().filter(|name| !name.starts_with("tun:")).collect();
    if report_findings(args, true) {
        return Ok(None);
    }
    let prepared = acquire(args, &real)?;
    report_findings(args, false);
    Ok(Some(prepared))
}

/// Acquires the resources. `real` are the interfaces that exist already.
fn acquire(args: &Args, real: &[&str]) -> Result<Prepared, BridgeError> {
    let locks = lock::take(real)?;
    for name in real {
        if let Some(message) = if_nametoindex(*name).ok().and_then(|number| leftovers::mend(name, number)) {
            show::message(&message);
        }
    }
    let listener = args.control.as_deref().map(socket::listen).transpose()?;
    let mut changes = Vec::new();
    for name in real.iter().filter(|_| args.fix_offloads) {
        let (number, features) = checks::merging_offloads(name)?;
        if !features.is_empty() {
            changes.push(Changed { interface: (*name).to_owned(), number, features });
        }
    }
    let mut states = Vec::new();
    for change in &changes {
        match change.remember() {
            Ok(path) => states.push(path),
            Err(error) => remark(
                args,
                &format!(
                    "if giveway is killed, offloads may stay off, because this cannot be recorded: {error}"
                ),
            ),
        }
    }
    let socket = args.control.as_deref().map(|path| (path.to_owned(), identity_of(path)));
    let cleanup = if socket.is_some() || !changes.is_empty() {
        let work = (socket, changes.clone(), states);
        let started = Cleanup::start(move || clean_up(work));
        Some(started.map_err(BridgeError::Cleanup)?)
    } else {
        None
    };
    for Changed { interface, features, .. } in &changes {
        match checks::switch_offloads(interface, features, false) {
            Ok(()) => {
                let names = checks::list_offloads(features);
                remark(
                    args,
                    &format!("{interface}: turned off {names}; they are turned on again at the end"),
                );
            }
            Err(error) => show::error(&error),
        }
    }
    Ok(Prepared { listener, _cleanup: cleanup, locks })
}

/// Device and inode of a file, which stay the same if it is renamed.
type FileIdentity = Option<(u64, u64)>;

fn identity_of(path: &Path) -> FileIdentity {
    fs::symlink_metadata(path).ok().map(|of| (of.dev(), of.ino()))
}

/// The work of the cleanup process, after the bridge has ended.
fn clean_up((socket, changes, states): (Option<(PathBuf, FileIdentity)>, Vec<Changed>, Vec<PathBuf>)) {
    if let Some((path, was)) = socket
        // Another process may have replaced the socket.
        && was.is_some()
        && identity_of(&path) == was
        && let Err(error) = fs::remove_file(&path)
    {
        show::message(&format!("--control {}: the socket stays: {error}", path.display()));
    }
    for Changed { interface, number, features } in changes {
        // The interface may be gone, and another one may have its name.
        if if_nametoindex(interface.as_str()) == Ok(number)
            && let Err(error) = checks::switch_offloads(&interface, &features, true)
        {
            show::error(&error);
        }
    }
    // The changes are undone, so the state files are obsolete.
    states.iter().for_each(|state| drop(fs::remove_file(state)));
}

/// Prints the findings of the checks: only fatal ones, or only the others. Returns true if there are any.
fn report_findings(args: &Args, fatal: bool) -> bool {
    let own = |name: &str| !name.starts_with("tun:");
    let (a, b) = (args.inside.as_str(), args.outside.as_str());
    let mut found = checks::check(Some(a).filter(|name| own(name)), Some(b).filter(|name| own(name)));
    found.extend(checks::check_ring(args.ring as usize));
    found.retain(|finding| finding.fatal == fatal);
    for finding in found.iter().filter(|finding| finding.fatal || !args.quiet) {
        show::message(&finding.what);
        if !finding.remedy.is_empty() {
            show::message(&format!("  {}", finding.remedy));
        }
    }
    !found.is_empty()
}
