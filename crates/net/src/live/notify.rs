//! Messages to the service manager: sd_notify(3), the protocol of systemd. Without a service manager they go
//! nowhere.
//!
//! The socket is connected at the start, because the program later drops the right to open others. The crates
//! for this protocol open one for each message.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use giveway_live::clock::monotonic_ns;

/// Interval of signs of life if the limit is not known, in nanoseconds.
const OFTEN: u64 = 1_000_000_000;

/// The connection to the service manager.
#[derive(Debug)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    /// Interval of signs of life, in nanoseconds; `None` if none are expected.
    every: Option<u64>,
    /// Time of the last sign of life by the monotonic clock, in nanoseconds.
    last: u64,
}

impl Manager {
    /// Connects to the service manager that started this process, if there is one. `takes_over` is true if
    /// this process will be the service in place of a running one.
    pub fn connect(takes_over: bool) -> Manager {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|place| {
            let socket = UnixDatagram::unbound().ok()?;
            match place.to_str().and_then(|place| place.strip_prefix('@')) {
                Some(name) => socket.connect_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()?,
                None => socket.connect(&place).ok()?,
            }
            socket.set_nonblocking(true).ok()?;
            Some(socket)
        });
        // sd_watchdog_enabled(3): half of the time limit.
        let limit = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse::<u64>().ok());
        let every = limit.filter(|limit| *limit > 0).map(|limit| limit * 1000 / 2);
        // systemd gives the limit to the first process of a service only.
        let every = every.or((takes_over && socket.is_some()).then_some(OFTEN));
        Manager { socket, every, last: 0 }
    }

    /// Tells that frames pass, with a line about the configuration.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Tells that another process is the service now. The manager believes the process that is the service,
    /// and the one that it started for a reload.
    pub fn replaced_by(&self, process: u32) {
        self.send(&format!("MAINPID={process}"));
    }

    /// Tells that the bridge ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Sends a sign of life, if one is due. Call this several times a second.
    pub fn tick(&mut self) {
        let Some(every) = self.every else { return };
        let now = monotonic_ns();
        if now >= self.last.saturating_add(every) {
            self.last = now;
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // A manager that does not read must not stop the bridge.
            let _ = socket.send(text.as_bytes());
        }
    }
}

/// A text without line feeds, which separate assignments.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
