//! A process without files, network, other processes and signals.

/// Takes almost all system calls from this thread and all that it starts: what is left is memory, the
/// descriptors that are open, and the end. A forbidden call fails with `EPERM`. Returns the reason if this
/// system has no filter of system calls (seccomp); limits of resources are then all that holds.
///
/// # Errors
/// The reason.
#[cfg(target_os = "linux")]
pub fn confine() -> Result<(), String> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let rules = ALLOWED.iter().map(|number| (*number, Vec::new())).collect();
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, eperm, SeccompAction::Allow, arch);
    let program = filter.and_then(BpfProgram::try_from).map_err(|error| error.to_string())?;
    apply_filter(&program).map_err(|error| error.to_string())
}

/// Has no effect: only Linux has the filter.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine() -> Result<(), String> {
    Err("only Linux has a filter of system calls".to_owned())
}

/// System calls of a program that computes, reads and writes what is open, and ends. None of them opens a
/// file, makes a socket or a process, or reaches another process.
#[cfg(target_os = "linux")]
const ALLOWED: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_read,
    // An `UnixStream` is written with `sendto`, which has no address here: the descriptor is connected.
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_write,
];
