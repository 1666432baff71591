//! System call filters (seccomp). C libraries reach the same function of the kernel by different calls: musl
//! has `stat`, `lstat` and `open` on x86_64, where glibc has `newfstatat` and `openat`.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use crate::error::LiveError;

/// Applies a filter to this thread that allows these system calls, and these requests of ioctl.
pub(super) fn allow(allowed: &[&[i64]], ioctls: &[libc::Ioctl]) -> Result<(), LiveError> {
    let failed = |error: seccompiler::BackendError| LiveError::privilege("", error);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(failed)?;
    let allowed = allowed.iter().copied().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed.map(|number| (*number, Vec::new())).collect();
    for request in ioctls {
        // The type of requests depends on the C library, and the kernel reads 32 bits.
        let request = u64::from(*request as u32);
        let is_request = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request);
        let rule = is_request.and_then(|condition| SeccompRule::new(vec![condition])).map_err(failed)?;
        rules.entry(libc::SYS_ioctl).or_default().push(rule);
    }
    // A forbidden call fails. It does not end the process, because a bridge must continue to forward.
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, eperm, SeccompAction::Allow, arch).map_err(failed)?;
    let program = BpfProgram::try_from(filter).map_err(failed)?;
    apply_filter(&program).map_err(|error| LiveError::privilege("", error))
}

/// System calls of forwarding, and those that every thread needs to run, to panic and to end.
pub(super) const FORWARD: &[i64] = &[
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
    libc::SYS_getsockname,
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

/// Additional system calls for writing to open files.
pub(super) const WRITE: &[i64] = &[
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_lseek,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_pwrite64,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    libc::SYS_statx,
];

/// Additional system calls for cleaning up: reading and changing interfaces, and removing files.
pub(super) const CLEANUP: &[i64] = &[
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_socket,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
];

/// Additional system calls for answering clients.
pub(super) const SERVE: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_shutdown,
];

/// Additional system calls for watching: files, terminals, listening sockets, new threads.
pub(super) const WATCH: &[i64] = &[
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getrusage,
    libc::SYS_ioctl,
    libc::SYS_getuid,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_pread64,
    libc::SYS_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_recvmsg,
    libc::SYS_sched_setscheduler,
    libc::SYS_sendmsg,
    libc::SYS_uname,
    // For the cleanup process.
    libc::SYS_wait4,
    libc::SYS_waitid,
    // A new thread inherits the filter and may only add to it.
    libc::SYS_seccomp,
    libc::SYS_capget,
    libc::SYS_capset,
];
