//! Real-time scheduling and locked memory at the start, and the drop of all privileges that are not needed afterwards.
//!
//! Users, capabilities, Landlock rules and system call filters are attributes of threads, so each thread calls [`settle`]
//! itself. The C library changes the user of all threads at once, which would fail in threads that have a filter already;
//! the system calls are therefore made directly. A system call that a filter forbids fails with EPERM and does not end the
//! process: a bridge must go on forwarding.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;

use caps::{CapSet, Capability};
use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};
use nix::sys::mman::{MlockAllFlags, mlockall};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// The role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Forwards frames between open sockets.
    Forward,
    /// Writes to open files, and opens none.
    Write,
    /// Answers on listening sockets, and opens no files.
    Serve,
    /// Watches, opens files in the folders of [`confine`], and draws on a terminal.
    Watch,
}

/// A user and its group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: u32,
    /// The group; all supplementary groups are dropped.
    pub group: u32,
}

/// Access rights of a watching thread below a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read files and list folders.
    Read,
    /// Also create, change, rename and remove files and folders.
    Write,
}

/// A folder that was opened before privileges were dropped.
#[derive(Debug)]
pub struct Folder {
    file: File,
    rights: Rights,
}

impl Folder {
    /// Opens a folder, with O_PATH: what may be done in it later depends on the rights of its user then, but
    /// not on those to the folders above.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path, rights: Rights) -> io::Result<Folder> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Folder { file, rights })
    }

    /// Its descriptor, which stays open as long as the process lives once it is handed to [`confine`].
    pub fn descriptor(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.file)
    }
}

/// The restrictions that threads apply in [`settle`].
#[derive(Debug, Default)]
pub struct Confinement {
    /// User of the threads; `None` keeps the current user.
    pub user: Option<Identity>,
    /// Folders in which watching threads may open files.
    pub folders: Vec<Folder>,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// Sets the restrictions that threads apply in [`settle`]. Call it once per process, before the first thread settles; later
/// calls have no effect and return false.
pub fn confine(to: Confinement) -> bool {
    CONFINEMENT.set(to).is_ok()
}

/// Requests real-time scheduling (SCHED_FIFO) and exact timers for this thread. Returns the result in words.
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

/// Locks the current memory of the process, each page on its first use. Returns the result in words.
///
/// Later allocations are not locked: once the capability is dropped, locked memory counts toward a small limit, and an
/// allocation that would exceed it fails.
pub fn lock_memory() -> String {
    // MCL_ONFAULT: rings and pools are large and mostly never used.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    match mlockall(MlockAllFlags::MCL_CURRENT | on_fault) {
        Ok(()) => "memory locked".to_owned(),
        Err(error) => format!("memory not locked: {error}"),
    }
}

/// Changes this thread to the user of [`confine`], and permanently drops all its capabilities and the access to all files and
/// system calls that its role does not need.
///
/// # Errors
/// A message with the privileges that could not be dropped.
pub fn settle(role: Role) -> Result<(), String> {
    let mut wrong = Vec::new();
    let nothing = Confinement::default();
    let confinement = CONFINEMENT.get().unwrap_or(&nothing);
    // Needs CAP_SETPCAP. Without it a thread has little in its bounding set to lose.
    let _ = caps::clear(None, CapSet::Bounding);
    if let Some(identity) = confinement.user
        && let Err(error) = become_user(identity)
    {
        wrong.push(format!("the user stays the same: {error}"));
    }
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        if let Err(error) = caps::clear(None, set) {
            wrong.push(format!("capabilities are kept: {error}"));
        }
    }
    let folders: &[Folder] = if role == Role::Watch { &confinement.folders } else { &[] };
    // The system call filter of other roles forbids opening files anyway, so the error matters only for this role.
    if let Err(why) = restrict_files(folders)
        && role == Role::Watch
    {
        wrong.push(format!("files are not restricted to the folders that are written: {why}"));
    }
    if let Err(why) = filter(role).and_then(|program| apply_filter(&program).map_err(|e| e.to_string())) {
        wrong.push(format!("no filter of system calls: {why}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Changes the user of this thread, and drops its groups. To the kernel these are attributes of a thread, credentials(7).
fn become_user(Identity { user, group }: Identity) -> io::Result<()> {
    let [user, group] = [user, group].map(|number| number as usize);
    let done = |answer: libc::c_long| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // Groups and group first: the new user may not change them.
    // SAFETY: no group is read from the pointer, since there are none.
    done(unsafe { libc::syscall(libc::SYS_setgroups, 0_usize, std::ptr::null::<libc::gid_t>()) })?;
    // SAFETY: numbers only.
    done(unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) })?;
    // SAFETY: numbers only.
    done(unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) })
}

/// Restricts this thread to files below these folders (Landlock, landlock(7)).
fn restrict_files(folders: &[Folder]) -> Result<(), String> {
    let told = |error: landlock::RulesetError| error.to_string();
    let all = AccessFs::from_all(ABI::V5);
    let mut ruleset = Ruleset::default().handle_access(all).and_then(|rules| rules.create()).map_err(told)?;
    for folder in folders {
        let rights: BitFlags<AccessFs> = match folder.rights {
            Rights::Read => AccessFs::ReadFile | AccessFs::ReadDir,
            Rights::Write => {
                AccessFs::ReadFile
                    | AccessFs::ReadDir
                    | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::MakeReg
                    | AccessFs::MakeDir
                    | AccessFs::RemoveFile
                    | AccessFs::RemoveDir
                    | AccessFs::Refer
            }
        };
        ruleset = ruleset.add_rule(PathBeneath::new(&folder.file, rights)).map_err(told)?;
    }
    match ruleset.restrict_self().map_err(told)?.ruleset {
        RulesetStatus::NotEnforced => Err(
            "this kernel has no Landlock: it needs Linux 5.13 or later, with landlock in its list of LSMs"
                .to_owned(),
        ),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// Gives up what a thread does not need that goes on loading BPF programs and qdiscs with `tc` and `bpftool`,
/// for itself and for these children. It keeps its user, its files and its system calls: they are what the
/// tools need, and they are other programs.
///
/// # Errors
/// A sentence on what could not be given up.
pub fn limit_to_loading() -> Result<(), String> {
    // What neither tool does: make device nodes, open raw sockets, end processes of others, set clocks,
    // restart the machine, and the like. What they may need for a kind of object stays.
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
    let mut wrong = Vec::new();
    for capability in UNUSED {
        // From the bounding set, too, so that children of root do not get it back. Some sets may not have it:
        // then it is no error.
        for set in [CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
            if caps::has_cap(None, set, capability).unwrap_or(false)
                && let Err(error) = caps::drop(None, set, capability)
            {
                wrong.push(error.to_string());
            }
        }
    }
    // SAFETY: numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        wrong.push(io::Error::last_os_error().to_string());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Keeps only these capabilities, in a process of one thread that goes on with its user, and only the system
/// calls of cleaning up: see [`crate::cleanup`].
pub(crate) fn settle_for_cleanup() -> Result<(), String> {
    let kept: caps::CapsHashSet =
        [Capability::CAP_NET_ADMIN, Capability::CAP_DAC_OVERRIDE, Capability::CAP_FOWNER]
            .into_iter()
            .collect();
    let _ = caps::clear(None, CapSet::Bounding);
    let _ = caps::clear(None, CapSet::Ambient);
    let _ = caps::clear(None, CapSet::Inheritable);
    let had = caps::read(None, CapSet::Permitted).map_err(|error| error.to_string())?;
    let kept = had.intersection(&kept).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(|error| error.to_string())?;
    }
    let program = rules(&[FORWARD, CLEANUP], &[])?;
    apply_filter(&program).map_err(|error| error.to_string())
}

fn filter(role: Role) -> Result<BpfProgram, String> {
    match role {
        Role::Forward => rules(&[FORWARD], &[]),
        Role::Write => rules(&[FORWARD, WRITE], &[]),
        // FIONBIO makes sockets non-blocking; no other ioctl is allowed.
        Role::Serve => rules(&[FORWARD, SERVE], &[libc::FIONBIO]),
        Role::Watch => rules(&[FORWARD, WRITE, SERVE, WATCH], &[]),
    }
}

/// Builds a filter that allows these system calls, and these requests of ioctl.
fn rules(allowed: &[&[i64]], ioctls: &[u64]) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| format!("{error:?}"))?;
    let allowed = allowed.iter().copied().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed.map(|number| (*number, Vec::new())).collect();
    for request in ioctls {
        let asks = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *request);
        let rule = asks.and_then(|asks| SeccompRule::new(vec![asks])).map_err(|error| error.to_string())?;
        rules.entry(libc::SYS_ioctl).or_default().push(rule);
    }
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, eperm, SeccompAction::Allow, arch);
    let filter = filter.map_err(|error| error.to_string())?;
    BpfProgram::try_from(filter).map_err(|error| error.to_string())
}

/// System calls of forwarding, and those that every thread needs to run, to panic and to end.
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
const WRITE: &[i64] = &[
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_lseek,
    libc::SYS_pwrite64,
    libc::SYS_statx,
    libc::SYS_newfstatat,
];

/// Additional system calls for cleaning up: reading and changing interfaces, and removing files.
const CLEANUP: &[i64] = &[
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_newfstatat,
    libc::SYS_socket,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
];

/// Additional system calls for answering clients.
const SERVE: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_shutdown,
];

/// Additional system calls for watching: files, terminals, listening sockets, new threads.
const WATCH: &[i64] = &[
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_fchmod,
    libc::SYS_flock,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getrusage,
    libc::SYS_ioctl,
    libc::SYS_getuid,
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_pread64,
    libc::SYS_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_recvmsg,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    libc::SYS_sched_setscheduler,
    libc::SYS_sendmsg,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    // The process that cleans up is waited for.
    libc::SYS_wait4,
    libc::SYS_waitid,
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

    /// What parses requests of strangers opens nothing, not even what everybody may read, and changes no
    /// interface.
    #[test]
    fn a_thread_that_serves_answers_on_its_socket_and_opens_no_file() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            settle(Role::Serve).expect("this system has filters");
            let (mut client, _) = listener.accept().expect("it may accept");
            client.set_nonblocking(true).expect("it may tell a socket not to wait");
            client.write_all(b"hello").expect("it may answer");
            let denied = |result: io::Result<()>| result.map_err(|error| error.kind());
            [
                denied(File::open("/etc/hostname").map(drop)),
                denied(File::open("/proc/self/status").map(drop)),
                denied(std::fs::write("/tmp/giveway-serves", "1")),
                denied(std::fs::rename("/tmp/giveway-serves", "/tmp/giveway-served")),
                denied(std::fs::remove_file("/tmp/giveway-serves")),
                denied(std::net::TcpListener::bind("127.0.0.1:0").map(drop)),
                denied(std::process::Command::new("true").status().map(drop)),
            ]
        });
        let mut said = String::new();
        std::net::TcpStream::connect(at).unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
        assert_eq!(serving.join().unwrap(), [Err(io::ErrorKind::PermissionDenied); 7]);
    }

    #[test]
    fn a_thread_that_writes_goes_on_with_its_file_and_opens_no_other() {
        use std::io::Write;
        use std::os::unix::fs::FileExt;
        let mut file = tempfile();
        let writing = std::thread::spawn(move || {
            settle(Role::Write).expect("this system has filters");
            file.write_all(b"one two").expect("it may write");
            file.set_len(3).expect("it may cut");
            file.write_at(b"3", 3).and_then(|_| file.sync_all()).expect("it may write anywhere");
            (file.metadata().map(|of| of.len()), File::open("/etc/hostname").is_err())
        });
        let (length, refused) = writing.join().unwrap();
        assert_eq!((length.unwrap(), refused), (4, true));
    }

    fn tempfile() -> File {
        let path = std::env::temp_dir().join(format!("giveway-writes-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    /// As root: another user in this thread, and root still in the others.
    #[test]
    fn a_thread_becomes_another_user_alone() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let other = Identity { user: 65_534, group: 65_534 };
        let ids = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
                line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
            };
            (line("Uid:"), line("Gid:"), line("Groups:"))
        };
        let became = std::thread::spawn(move || {
            become_user(other).expect("root may");
            ids()
        });
        let four = |number: &str| vec![number.to_owned(); 4];
        assert_eq!(became.join().unwrap(), (four("65534"), four("65534"), Vec::new()));
        assert_eq!(ids().0, four("0"));
    }

    #[test]
    fn files_are_opened_in_the_folders_that_were_named_only() {
        let dir = std::env::temp_dir().join(format!("giveway-folders-{}", std::process::id()));
        let (read, write, other) = (dir.join("read"), dir.join("write"), dir.join("other"));
        for folder in [&read, &write, &other] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("a"), "1").unwrap();
        }
        let folders = [(&read, Rights::Read), (&write, Rights::Write)];
        let folders = folders.map(|(path, rights)| Folder::open(path, rights).unwrap());
        let places = (read.clone(), write.clone(), other.clone());
        let tried = std::thread::spawn(move || {
            // Landlock asks for that, and the filter of system calls would set it.
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            if restrict_files(&folders).is_err() {
                return None;
            }
            let (read, write, other) = places;
            Some([
                std::fs::read_to_string(read.join("a")).is_ok(),
                std::fs::write(read.join("a"), "2").is_ok(),
                std::fs::create_dir(write.join("d"))
                    .and_then(|()| std::fs::write(write.join("d/b"), "2"))
                    .and_then(|()| std::fs::rename(write.join("d"), write.join("e")))
                    .and_then(|()| std::fs::remove_dir_all(write.join("e")))
                    .is_ok(),
                std::fs::read_to_string(other.join("a")).is_ok(),
                std::fs::remove_file(other.join("a")).is_ok(),
                // Not by a way around.
                std::fs::rename(other.join("a"), write.join("stolen")).is_ok(),
            ])
        });
        let tried = tried.join().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
        // A kernel without Landlock says so, and there is nothing to test.
        if let Some(tried) = tried {
            assert_eq!(tried, [true, false, true, false, false, false]);
        }
    }

    #[test]
    fn a_watcher_may_write_files_and_not_run_programs() {
        let dir = std::env::temp_dir().join(format!("giveway-settled-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        // The only test that says this: it is said once per process.
        let folders = vec![Folder::open(&dir, Rights::Write).unwrap()];
        assert!(confine(Confinement { user: None, folders }));
        let place = dir.clone();
        let (written, ran) = std::thread::spawn(move || {
            // A kernel without Landlock says so.
            let _ = settle(Role::Watch);
            let written = std::fs::create_dir_all(place.join("c"))
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
