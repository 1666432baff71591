//! A capture on an interface of this machine, by tcpdump.
//!
//! tcpdump opens the socket and gives up its privileges (`-Z`) before it reads a packet, so this program
//! needs no code for sockets, and parses the packets in a process that has not opened one.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::RunnerError;

/// A capture to make.
#[derive(Clone, Debug)]
pub struct Live {
    /// The interface.
    pub interface: String,
    /// The length of the capture.
    pub duration: Duration,
    /// The pcapng file that keeps the packets; `None` keeps none.
    pub keep: Option<PathBuf>,
}

/// Bytes of each packet that are captured: enough for headers in several encapsulations.
const SNAP: &str = "160";

/// The capture while it runs. It ends when this is dropped.
pub(super) struct Running {
    child: Child,
    out: ChildStdout,
    /// The process to end; none once it was waited for, since its number may then be that of another one.
    process: Arc<Mutex<Option<u32>>>,
    /// Ends the thread that waits for the end of the capture.
    _running: mpsc::Sender<()>,
}

impl Live {
    /// Starts tcpdump. Returns its output, and its messages.
    pub(super) fn start(&self) -> Result<(Running, ChildStderr), RunnerError> {
        let mut child = Command::new("tcpdump")
            .args(["-i", &self.interface, "-s", SNAP, "-n", "-U", "-w", "-", "-Z", "nobody"])
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
