//! A lock for each interface: a second bridge on an interface would send every frame twice.
//!
//! The lock is a socket that listens at an abstract address, which contains the number of the interface.
//! Abstract addresses belong to a network namespace, as interfaces do (unix(7)). The kernel frees them when
//! their process ends, however it ends. A process that connects gets the credentials of the listening process
//! from the kernel. Connections are never served.
//!
//! A process that takes an interface over from a running bridge has another lock meanwhile, with an address
//! that ends in `-next`: so one process at a time takes over, and no other one starts if the running bridge
//! is killed. It protects what a take-over renames, too: the control socket and the state files.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::Duration;

use giveway_live::clock::monotonic_ns;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, UnixCredentials, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};

use crate::error::ControlError;

/// The locks of this process. Dropping them frees the interfaces.
#[derive(Debug, Default)]
pub struct InterfaceLocks(Vec<UnixListener>);

/// The process with the lock of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id; `None` if this PID namespace does not contain it.
    pub process: Option<u32>,
    /// Its user when it took the lock.
    pub user: Option<u32>,
    /// Words of its command line; empty if it cannot be read.
    pub command: Vec<String>,
}

/// Takes the lock of each of these interfaces, for a process that starts. The caller leaves out interfaces
/// that the program creates (`tun:NAME`): the kernel gives a TUN interface to one process only.
///
/// # Errors
/// If there is no such interface, or another process has its lock or takes it over. The error names that
/// process and a remedy.
pub fn take(interfaces: &[&str]) -> Result<InterfaceLocks, ControlError> {
    let locks = take_for(interfaces, Purpose::Forward)?;
    // After the lock: who begins to take over later finds this process as the running bridge.
    drop(take_for(interfaces, Purpose::TakeOver)?);
    Ok(locks)
}

/// Takes the lock of each of these interfaces, for a process that has their other locks, from [`take_next`].
///
/// # Errors
/// The errors of [`take`].
pub fn take_over(interfaces: &[&str]) -> Result<InterfaceLocks, ControlError> {
    take_for(interfaces, Purpose::Forward)
}

/// Takes the lock of each of these interfaces for taking over, once no other process has one. `waits` is
/// called before each wait, with a message that names the other process; if it returns false, there is no
/// wait.
///
/// # Errors
/// The errors of [`take`].
pub fn take_next(
    interfaces: &[&str],
    mut waits: impl FnMut(&ControlError) -> bool,
) -> Result<InterfaceLocks, ControlError> {
    loop {
        match take_for(interfaces, Purpose::TakeOver) {
            Err(error @ ControlError::Locked(_)) if waits(&error) => {}
            taken => return taken,
        }
    }
}

/// The work for which a process takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To forward frames.
    Forward,
    /// To take over from the process that forwards.
    TakeOver,
}

fn take_for(interfaces: &[&str], purpose: Purpose) -> Result<InterfaceLocks, ControlError> {
    let mut locks = Vec::new();
    for name in interfaces {
        let lock_error = |reason, cause: io::Error| {
            let cause = cause.into();
            ControlError::Lock { interface: (*name).to_owned(), reason, cause }
        };
        let number = nix::net::if_::if_nametoindex(*name)
            .map_err(|error| lock_error("the interface has no number", error.into()))?;
        let address = address(number, purpose);
        let system_error = |error| lock_error("the lock of the interface cannot be taken", error);
        let at = SocketAddr::from_abstract_name(&address).map_err(system_error)?;
        let bound = bind(&at, &address).map_err(system_error)?;
        let listener = bound.map_err(|holder| ControlError::Locked(refusal(name, &holder, purpose)))?;
        listener.set_nonblocking(true).map_err(system_error)?;
        locks.push(listener);
    }
    Ok(InterfaceLocks(locks))
}

/// Takes a lock, or returns its holder. The lock of a bridge that was killed stays with its cleanup process,
/// so this waits for that process.
fn bind(at: &SocketAddr, address: &[u8]) -> io::Result<Result<UnixListener, Holder>> {
    const PATIENCE: Duration = Duration::from_secs(3);
    const PAUSE: Duration = Duration::from_millis(20);
    let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
    loop {
        match UnixListener::bind_addr(at) {
            Ok(listener) => return Ok(Ok(listener)),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => {}
        }
        let holder = holder(address);
        // `None`: the holder has ended meanwhile, or is in another PID namespace.
        let lives = holder.process.is_some_and(|process| Path::new(&format!("/proc/{process}")).exists());
        if lives || monotonic_ns() > until {
            return Ok(Err(holder));
        }
        std::thread::park_timeout(PAUSE);
    }
}

impl InterfaceLocks {
    /// Closes pending connections: the kernel queues a limited number, and refuses later ones, which could
    /// then not learn the holder. Call this regularly.
    pub fn forget_clients(&self) {
        for lock in &self.0 {
            while lock.accept().is_ok() {}
        }
    }

    /// The descriptors, which a copy of this process must close to leave the locks to it.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.0.iter().map(AsRawFd::as_raw_fd).collect()
    }
}

fn address(interface: u32, purpose: Purpose) -> Vec<u8> {
    let suffix = if purpose == Purpose::TakeOver { "-next" } else { "" };
    format!("giveway-live-{interface}{suffix}").into_bytes()
}

/// The process with the lock of an interface; `None` if the lock is free.
pub fn holder_of(interface: &str) -> Option<Holder> {
    let address = address(nix::net::if_::if_nametoindex(interface).ok()?, Purpose::Forward);
    Some(holder(&address)).filter(|holder| holder.user.is_some())
}

/// The process that listens at a socket of the file system; `None` if it is in another PID namespace.
///
/// # Errors
/// The error of the system if no process listens there.
pub fn process_at(path: &Path) -> io::Result<Option<u32>> {
    Ok(process_of(&credentials(&UnixAddr::new(path)?)?))
}

/// The credentials of the process that listens at an address, from the kernel.
fn credentials(address: &UnixAddr) -> nix::Result<UnixCredentials> {
    // Without blocking: the queue of the process may be full.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let client = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(client.as_raw_fd(), address)?;
    getsockopt(&client, PeerCredentials)
}

/// The number of a process; `None` for a process of another PID namespace.
fn process_of(peer: &UnixCredentials) -> Option<u32> {
    u32::try_from(peer.pid()).ok().filter(|process| *process > 0)
}

/// The process that listens at an abstract address.
fn holder(address: &[u8]) -> Holder {
    let peer = UnixAddr::new_abstract(address).and_then(|address| credentials(&address));
    let Ok(peer) = peer else { return Holder::default() };
    let process = process_of(&peer);
    let command = process.and_then(|process| std::fs::read(format!("/proc/{process}/cmdline")).ok());
    let words = |bytes: Vec<u8>| {
        let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).escape_debug().to_string()).collect()
    };
    Holder { process, user: Some(peer.uid()), command: command.map(words).unwrap_or_default() }
}

/// The message for an interface whose lock another process has.
fn refusal(name: &str, holder: &Holder, purpose: Purpose) -> String {
    /// Number of characters of a command line that are shown.
    const SHOWN: usize = 200;
    let mut owner = holder.process.map_or("a process".to_owned(), |process| format!("process {process}"));
    if let Some(user) = holder.user.filter(|user| *user != 0) {
        owner.push_str(&format!(" of user {user}"));
    }
    if !holder.command.is_empty() {
        let command: String = holder.command.join(" ").chars().take(SHOWN).collect();
        owner.push_str(&format!(", {command}"));
    }
    if purpose == Purpose::TakeOver {
        return format!(
            "{name}: another giveway live takes over already ({owner}); wait until it has, and try again"
        );
    }
    let end = match (holder.control_socket(), holder.process) {
        (Some(socket), _) => format!("end it with: giveway live control {socket} stop"),
        (None, Some(process)) => format!("end it with: kill {process}"),
        (None, None) => "end it, or use other interfaces".to_owned(),
    };
    format!(
        "{name} belongs to another giveway live already ({owner}), and two would send every frame twice; {end}"
    )
}

impl Holder {
    /// The control socket in its command line.
    pub fn control_socket(&self) -> Option<&str> {
        let mut words = self.command.iter();
        words.find_map(|word| word.strip_prefix("--control=")).or_else(|| {
            let at = self.command.iter().position(|word| word == "--control")?;
            self.command.get(at + 1).map(String::as_str)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_holder_and_a_command_that_ends_it() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let holder = |command: &str| Holder { process: Some(7), user: Some(0), command: words(command) };
        let refused = |holder: &Holder| refusal("eth0", holder, Purpose::Forward);
        let text = refused(&holder("giveway live --in eth0 --control /run/gw.sock"));
        assert!(
            text.starts_with(
                "eth0 belongs to another giveway live already (process 7, giveway live --in eth0"
            )
        );
        assert!(text.ends_with("end it with: giveway live control /run/gw.sock stop"), "{text}");
        assert!(refused(&holder("giveway --control=/a")).ends_with("giveway live control /a stop"));
        assert!(refused(&holder("giveway live")).ends_with("end it with: kill 7"));
        let other = Holder { user: Some(1000), ..holder("") };
        assert!(refused(&other).contains("(process 7 of user 1000)"));
        assert!(refused(&Holder::default()).ends_with("end it, or use other interfaces"));
    }

    /// An abstract address needs no interface and no privilege.
    #[test]
    fn the_kernel_names_the_holder_of_a_lock() {
        let address = format!("giveway-live-test-{}", std::process::id()).into_bytes();
        let at = SocketAddr::from_abstract_name(&address).unwrap();
        let lock = UnixListener::bind_addr(&at).unwrap();
        lock.set_nonblocking(true).unwrap();
        let locks = InterfaceLocks(vec![lock]);
        for round in 0..600 {
            if round % 50 == 0 {
                locks.forget_clients();
            }
            assert_eq!(holder(&address).process, Some(std::process::id()), "in round {round}");
        }
        assert!(!holder(&address).command.is_empty());
        drop(locks);
        assert!(UnixListener::bind_addr(&at).is_ok(), "it is free again");
    }
}
