//! A capture on an interface of this machine, by tcpdump.
//!
//! tcpdump opens the socket and gives up its privileges (`-Z`) before it reads a packet, so this program
//! needs no code for sockets, and parses the packets in a process that has not opened one. If it was started
//! through sudo, it becomes the user who called sudo as soon as tcpdump captures, and is never root again.

use std::ffi::CString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::unistd::{Gid, Uid, geteuid, initgroups, setresgid, setresuid};

use giveway_runner::RunnerError;

/// A capture to make.
#[derive(Clone, Debug)]
pub struct Live {
    /// The interface.
    pub interface: String,
    /// The length of the capture.
    pub duration: Duration,
    /// The pcapng file that keeps the packets; `None` keeps none.
    pub keep: Option<PathBuf>,
    /// The user that the whole process becomes once tcpdump captures; `None` keeps its user.
    pub user: Option<User>,
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, as in the list of users.
    pub name: String,
    /// The number of the user.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
}

impl User {
    /// The user who called sudo, if this process is root through sudo. `variable` reads the environment.
    pub fn of_sudo(variable: &dyn Fn(&str) -> Option<String>) -> Option<User> {
        let number = |name: &str| variable(name)?.parse().ok();
        let user =
            User { name: variable("SUDO_USER")?, user: number("SUDO_UID")?, group: number("SUDO_GID")? };
        (geteuid().is_root() && user.user != 0).then_some(user)
    }

    /// Makes the whole process, with all its threads, this user permanently. Capabilities end with it.
    fn settle(&self) -> Result<(), RunnerError> {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        let change = || {
            let name = CString::new(self.name.as_str()).map_err(|_| nix::Error::EINVAL)?;
            // Groups first: the new user may not change them.
            initgroups(&name, group)?;
            setresgid(group, group, group)?;
            setresuid(user, user, user)
        };
        let failed = |error: nix::Error| {
            RunnerError::Usage(format!("--live: this process cannot become {}: {error}", self.name))
        };
        change().map_err(failed)
    }
}

/// Bytes of each packet that are captured: enough for headers in several encapsulations.
const SNAP: &str = "160";

/// The capture while it runs. It ends when this is dropped.
pub(super) struct Running {
    child: Child,
    out: ChildStdout,
    /// The process to end; none once it was waited for, since its number may then belong to another one.
    process: Arc<Mutex<Option<u32>>>,
    /// Ends the thread that waits for the end of the capture.
    _running: mpsc::Sender<()>,
}

impl Live {
    /// Gives up the privileges of root, if there is a user to become. Returns a sentence about it.
    pub(super) fn settle(&self) -> Result<Option<String>, RunnerError> {
        let Some(user) = &self.user else { return Ok(None) };
        user.settle()?;
        Ok(Some(format!("runs as {} from now on, without privileges", user.name)))
    }

    /// Starts tcpdump. Returns its output, and its messages.
    pub(super) fn start(&self) -> Result<(Running, ChildStderr), RunnerError> {
        // A process may end those of its own user only, so tcpdump becomes the same user.
        let user = self.user.as_ref().map_or("nobody", |user| &user.name);
        let mut child = Command::new("tcpdump")
            .args(["-i", &self.interface, "-s", SNAP, "-n", "-U", "-w", "-", "-Z", user])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(RunnerError::io("--live needs tcpdump, which cannot be started"))?;
        let (out, messages) = (child.stdout.take(), child.stderr.take());
        let (Some(out), Some(messages)) = (out, messages) else { unreachable!("both are pipes") };
        let process = Arc::new(Mutex::new(Some(child.id())));
        let (later, duration) = (Arc::clone(&process), self.duration);
        let (running, ended) = mpsc::channel();
        thread::spawn(move || {
            if ended.recv_timeout(duration) == Err(RecvTimeoutError::Timeout) {
                interrupt(&later);
            }
        });
        Ok((Running { child, out, process, _running: running }, messages))
    }

    /// The error for a capture without a header, from the messages of tcpdump.
    pub(super) fn failed(&self, mut messages: ChildStderr) -> RunnerError {
        let mut text = String::new();
        let _ = messages.read_to_string(&mut text);
        let first = text.lines().find_map(|line| {
            let line = line.strip_prefix("tcpdump: ").unwrap_or(line);
            (!line.starts_with("listening") && !line.starts_with("data link")).then_some(line)
        });
        let why = match first {
            Some(line) if line.contains("ermission") => {
                format!("{line}; capturing needs root: write sudo giveway ...")
            }
            Some(line) => format!("{line}; `ip link` lists the interfaces"),
            None => "tcpdump wrote no packets".to_owned(),
        };
        RunnerError::Usage(format!("--live {}: {why}", self.interface))
    }
}

impl Read for Running {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.out.read(buffer)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        interrupt(&self.process);
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.child.wait();
        *process = None;
    }
}

/// Sends the signal of Ctrl-C, after which tcpdump writes what it has and ends.
fn interrupt(process: &Mutex<Option<u32>>) {
    if let Some(number) = *process.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = Command::new("sh").args(["-c", &format!("kill -INT {number} 2>/dev/null")]).status();
    }
}
