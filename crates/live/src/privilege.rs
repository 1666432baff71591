//! Requests real-time scheduling and locked memory at the start, and drops all privileges that are not needed
//! afterwards.
//!
//! Users, capabilities, Landlock rules and system call filters are attributes of threads, so each thread
//! calls [`settle`] itself. The C library changes the user of all threads at once, which would fail in
//! threads with a filter already; the system calls are therefore made directly.

mod calls;
mod files;
pub mod outputs;
pub mod start;

use std::io;
use std::sync::OnceLock;

use caps::{CapSet, Capability};
use nix::sys::mman::{MlockAllFlags, mlockall};

use self::calls::{CLEANUP, FORWARD, SERVE, WATCH, WRITE};
pub use self::files::Folder;
use crate::error::LiveError;

/// Role of a thread, which determines the system calls that it may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Forwards frames between open sockets.
    Forward,
    /// Writes to open files, and opens none.
    Write,
    /// Answers on listening sockets, and opens no files.
    Serve,
    /// Supervises other threads, reads files in the folders of [`confine`], and writes to a terminal.
    Watch,
}

/// Numbers of a user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: u32,
    /// The group; all supplementary groups are dropped.
    pub group: u32,
}

/// The restrictions that threads apply in [`settle`].
#[derive(Debug, Default)]
pub struct Confinement {
    /// User of the threads; `None` keeps the current user.
    pub user: Option<Identity>,
    /// Folders in which threads of the role [`Role::Watch`] may read files.
    pub folders: Vec<Folder>,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// Sets the restrictions that threads apply in [`settle`]. Call it once per process, before the first thread
/// settles; later calls have no effect and return false.
pub fn confine(to: Confinement) -> bool {
    CONFINEMENT.set(to).is_ok()
}

/// Requests real-time scheduling (SCHED_FIFO) and exact timers for this thread. Returns the result in words.
pub fn realtime() -> String {
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    match schedule(0, libc::SCHED_FIFO, 50) {
        Ok(()) => "real-time scheduling (SCHED_FIFO 50)".to_owned(),
        Err(error) => format!(
            "ordinary scheduling, so frames may leave milliseconds late when the machine is busy: {error}"
        ),
    }
}

/// Sets the scheduling policy and the priority of a thread; zero is the calling thread. The system call is
/// made directly, because the function of the C library musl always fails.
///
/// # Errors
/// The error of the system.
pub(crate) fn schedule(thread: libc::pid_t, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // The kernel's `struct sched_param` has one member, the priority.
    let parameters: *const libc::c_int = &priority;
    // SAFETY: the pointer to the parameters is valid during the call.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Locks the current memory of the process, each page on its first use. Returns the result in words.
///
/// Later allocations are not locked: once the capability is dropped, locked memory counts toward a small
/// limit, and an allocation that would exceed it fails.
pub fn lock_memory() -> String {
    // MCL_ONFAULT: rings and pools are large and mostly never used.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    match mlockall(MlockAllFlags::MCL_CURRENT | on_fault) {
        Ok(()) => "memory locked".to_owned(),
        Err(error) => format!("memory not locked: {error}"),
    }
}

/// Changes this thread to the user of [`confine`], and permanently drops all its capabilities and the access
/// to all files and system calls that its role does not need.
///
/// # Errors
/// The privileges that could not be dropped.
pub fn settle(role: Role) -> Result<(), LiveError> {
    let mut errors = Vec::new();
    let nothing = Confinement::default();
    let confinement = CONFINEMENT.get().unwrap_or(&nothing);
    // Needs CAP_SETPCAP. A thread without it has few capabilities in its bounding set.
    let _ = caps::clear(None, CapSet::Bounding);
    if let Some(identity) = confinement.user
        && let Err(error) = become_user(identity)
    {
        errors.push(LiveError::privilege("the user is not changed: ", error));
    }
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        if let Err(error) = caps::clear(None, set) {
            errors.push(LiveError::privilege("capabilities are kept: ", error));
        }
    }
    let folders: &[Folder] = if role == Role::Watch { &confinement.folders } else { &[] };
    // The system call filter of other roles forbids opening files anyway, so the error matters only for this
    // role.
    if let Err(error) = files::restrict(folders)
        && role == Role::Watch
    {
        errors.push(LiveError::privilege("files are not restricted to the folders of outputs: ", error));
    }
    let filtered = match role {
        Role::Forward => calls::allow(&[FORWARD], &[]),
        Role::Write => calls::allow(&[FORWARD, WRITE], &[]),
        // FIONBIO makes sockets non-blocking; no other ioctl is allowed.
        Role::Serve => calls::allow(&[FORWARD, SERVE], &[libc::FIONBIO]),
        Role::Watch => calls::allow(&[FORWARD, WRITE, SERVE, WATCH], &[]),
    };
    if let Err(error) = filtered {
        errors.push(LiveError::privilege("system calls are not filtered: ", error));
    }
    LiveError::all(errors)
}

/// Changes the user of this thread, and drops its groups. To the kernel these are attributes of a thread,
/// credentials(7).
fn become_user(Identity { user, group }: Identity) -> io::Result<()> {
    let [user, group] = [user, group].map(|number| number as usize);
    let done = |answer: libc::c_long| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // Groups and group first: the new user may not change them.
    // SAFETY: the length of the list is zero, so the kernel does not read the pointer.
    done(unsafe { libc::syscall(libc::SYS_setgroups, 0_usize, std::ptr::null::<libc::gid_t>()) })?;
    // SAFETY: no pointers are passed.
    done(unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) })?;
    // SAFETY: no pointers are passed.
    done(unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) })
}

/// Drops the capabilities that `tc` and `bpftool` do not need, for a thread that continues to run them, and
/// for these children. User, files and system calls stay, because the two programs need them.
///
/// # Errors
/// The capabilities that could not be dropped.
pub fn limit_to_loading() -> Result<(), LiveError> {
    // Neither program creates device nodes, opens raw sockets, ends processes of other users, sets clocks,
    // restarts the machine and so on. Capabilities that either may need for some kind of object stay.
    const UNUSED: [Capability; 25] = [
        Capability::CAP_AUDIT_CONTROL,
        Capability::CAP_AUDIT_READ,
        Capability::CAP_AUDIT_WRITE,
        Capability::CAP_BLOCK_SUSPEND,
        Capability::CAP_CHECKPOINT_RESTORE,
        Capability::CAP_IPC_OWNER,
        Capability::CAP_KILL,
        Capability::CAP_LEASE,
        Capability::CAP_LINUX_IMMUTABLE,
        Capability::CAP_MAC_ADMIN,
        Capability::CAP_MAC_OVERRIDE,
        Capability::CAP_MKNOD,
        Capability::CAP_NET_BIND_SERVICE,
        Capability::CAP_NET_BROADCAST,
        Capability::CAP_NET_RAW,
        Capability::CAP_SETFCAP,
        Capability::CAP_SYS_BOOT,
        Capability::CAP_SYS_CHROOT,
        Capability::CAP_SYS_NICE,
        Capability::CAP_SYS_PACCT,
        Capability::CAP_SYS_RAWIO,
        Capability::CAP_SYS_TIME,
        Capability::CAP_SYS_TTY_CONFIG,
        Capability::CAP_SYSLOG,
        Capability::CAP_WAKE_ALARM,
    ];
    let mut errors = Vec::new();
    for capability in UNUSED {
        // Also from the bounding set, so that children of root do not get it back. A set without it is fine.
        for set in [CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
            if caps::has_cap(None, set, capability).unwrap_or(false)
                && let Err(error) = caps::drop(None, set, capability)
            {
                errors.push(LiveError::privilege("", error));
            }
        }
    }
    // SAFETY: no pointers are passed.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        errors.push(LiveError::privilege("", io::Error::last_os_error()));
    }
    LiveError::all(errors)
}

/// Keeps only the capabilities and system calls of [`crate::cleanup`], in a process of one thread that keeps
/// its user.
pub(crate) fn settle_for_cleanup() -> Result<(), LiveError> {
    let failed = |error: caps::errors::CapsError| LiveError::privilege("", error);
    let kept: caps::CapsHashSet =
        [Capability::CAP_NET_ADMIN, Capability::CAP_DAC_OVERRIDE, Capability::CAP_FOWNER]
            .into_iter()
            .collect();
    let _ = caps::clear(None, CapSet::Bounding);
    let _ = caps::clear(None, CapSet::Ambient);
    let _ = caps::clear(None, CapSet::Inheritable);
    let had = caps::read(None, CapSet::Permitted).map_err(failed)?;
    let kept = had.intersection(&kept).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(failed)?;
    }
    calls::allow(&[FORWARD, CLEANUP], &[])
}

#[cfg(test)]
mod tests;
