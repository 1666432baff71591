//! Scheduling class and memory at the start, and then no privilege that is not needed any more.
//!
//! Capabilities and filters of system calls belong to threads: each thread calls [`settle`] itself. What a filter does not
//! allow fails with EPERM, as if it were not permitted, and does not end the process: a bridge must go on forwarding.

use std::collections::BTreeMap;

use caps::CapSet;
use nix::sys::mman::{MlockAllFlags, mlockall};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Forwards frames between sockets that are open.
    Forward,
    /// Watches, writes files, answers on sockets that listen, draws on a terminal.
    Watch,
}

/// Asks for the scheduling class of what must not wait (SCHED_FIFO), and for exact timers. Says what it got.
pub fn realtime() -> String {
    // SAFETY: a change to this thread's timers; no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    let parameters = libc::sched_param { sched_priority: 50 };
    // SAFETY: the parameters live until the call returns; 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => "real-time scheduling (SCHED_FIFO 50)".to_owned(),
        _ => format!(
            "ordinary scheduling, so frames may leave milliseconds late when the machine is busy: {}",
            std::io::Error::last_os_error()
        ),
    }
}

/// Keeps all memory of the process from being paged out, page by page as it is first used. Says what it got.
pub fn lock_memory() -> String {
    // MCL_ONFAULT: rings and pools are large and mostly never used.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    match mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault) {
        Ok(()) => "memory locked".to_owned(),
        Err(error) => format!("memory not locked: {error}"),
    }
}

/// Gives up every capability of this thread, for good, and every system call that its role does not need.
///
/// # Errors
/// A sentence on what could not be given up.
pub fn settle(role: Role) -> Result<(), String> {
    let mut wrong = Vec::new();
    // The bounding set can be emptied only by who may; without that right there is little in it to fear.
    let _ = caps::clear(None, CapSet::Bounding);
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        if let Err(error) = caps::clear(None, set) {
            wrong.push(format!("capabilities are kept: {error}"));
        }
    }
    if let Err(why) = filter(role).and_then(|program| apply_filter(&program).map_err(|e| e.to_string())) {
        wrong.push(format!("no filter of system calls: {why}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn filter(role: Role) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| format!("{error:?}"))?;
    let watch = if role == Role::Watch { WATCH } else { &[] };
    let rules: BTreeMap<i64, Vec<_>> =
        FORWARD.iter().chain(watch).map(|number| (*number, Vec::new())).collect();
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, eperm, SeccompAction::Allow, arch);
    let filter = filter.map_err(|error| error.to_string())?;
    BpfProgram::try_from(filter).map_err(|error| error.to_string())
}

/// What forwarding needs, and what every thread needs to live, to panic and to end.
const FORWARD: &[i64] = &[
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmmsg,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
];

/// What watching needs beyond that: files, terminals, sockets that listen, threads for whoever asks.
const WATCH: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_fchmod,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpeername,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getuid,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_pread64,
    libc::SYS_prctl,
    libc::SYS_pwrite64,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    libc::SYS_statx,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    // A new thread inherits the filter and may only add to it.
    libc::SYS_seccomp,
    libc::SYS_capget,
    libc::SYS_capset,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own: the others keep what they have.
    #[test]
    fn a_settled_thread_has_no_capabilities_and_may_open_nothing() {
        let (caps_left, socket, file) = std::thread::spawn(|| {
            settle(Role::Forward).expect("this system has filters");
            let caps_left = caps::read(None, CapSet::Effective).map(|set| set.len());
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").map(|_| ()).map_err(|e| e.kind());
            let file = std::fs::File::open("/proc/self/status").map(|_| ()).map_err(|e| e.kind());
            (caps_left, socket, file)
        })
        .join()
        .expect("it says what it may");
        let denied = Err(std::io::ErrorKind::PermissionDenied);
        // Not even asking is allowed.
        assert!(caps_left.is_err() || caps_left.is_ok_and(|left| left == 0));
        assert_eq!((socket, file), (denied, denied));
    }

    #[test]
    fn a_watcher_may_write_files_and_not_run_programs() {
        let dir = std::env::temp_dir().join(format!("giveway-settled-{}", std::process::id()));
        let place = dir.clone();
        let (written, ran) = std::thread::spawn(move || {
            settle(Role::Watch).expect("this system has filters");
            let written = std::fs::create_dir_all(&place)
                .and_then(|()| std::fs::write(place.join("a"), "1"))
                .and_then(|()| std::fs::rename(place.join("a"), place.join("b")))
                .and_then(|()| std::fs::read_to_string(place.join("b")));
            (written, std::process::Command::new("true").status().map(|_| ()))
        })
        .join()
        .expect("it says what it may");
        std::fs::remove_dir_all(dir).unwrap();
        assert_eq!(written.unwrap(), "1");
        assert!(ran.is_err(), "no program may be run");
    }
}
