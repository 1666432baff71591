//! The process that writes a recording: `giveway`, which this program started without its privileges.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_files::Dir;
use giveway_live::clock::monotonic_ns;
use giveway_live::privilege::{self, Identity};
use giveway_recording::{RecordingError, Request};

use crate::pause::pause;

/// The command of `giveway` that writes recordings. Its argument is the folder, for messages.
const COMMAND: &str = "write-recording";
/// The variables that it gets: the time of builds and recordings that shall repeat.
const VARIABLES: [&str; 1] = ["SOURCE_DATE_EPOCH"];
/// The interval between looks at the end of the bridge, while the process is silent.
const LOOK: Duration = Duration::from_millis(200);
/// The time limit for its answer after the end of the bridge.
const PATIENCE: Duration = Duration::from_secs(30);

/// A recording cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The process could not write it. This is its message.
    #[error("{0}")]
    Refused(String),
    /// The process ended, or does not answer.
    #[error("the process that writes the recording is gone ({0})")]
    Gone(io::Error),
}

/// The process, and the connection to it.
pub struct WritingProcess {
    child: Child,
    connection: Connection,
}

/// Requests and answers. While the bridge runs it waits for them without a limit.
struct Connection {
    socket: File,
    /// True once the bridge has ended.
    stop: Arc<AtomicBool>,
    /// The time at which an answer is late, by the monotonic clock, in nanoseconds.
    late: Option<u64>,
}

impl WritingProcess {
    /// Starts the program `giveway` for a folder, whose path for messages is `shown`. After `stop` was set,
    /// answers are awaited for a limited time.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(
        giveway: &Path,
        folder: &Dir,
        shown: &Path,
        user: Option<Identity>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<WritingProcess> {
        let (own, other) = UnixStream::pair()?;
        own.set_read_timeout(Some(LOOK))?;
        own.set_write_timeout(Some(LOOK))?;
        let arguments = [COMMAND.as_ref(), shown.as_os_str()];
        let child =
            privilege::start::program(giveway, &arguments, &VARIABLES, user, folder, &OwnedFd::from(other))?;
        let mut connection = Connection { socket: OwnedFd::from(own).into(), stop, late: None };
        giveway_recording::start(&mut connection)?;
        Ok(WritingProcess { child, connection })
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// The message of the process, or that it is gone.
    pub fn ask(&mut self, request: &Request) -> Result<(), WriteError> {
        match giveway_recording::send(&mut self.connection, request) {
            Ok(()) => {}
            Err(RecordingError::Io(error)) => return Err(WriteError::Gone(error)),
            Err(other) => return Err(WriteError::Refused(other.to_string())),
        }
        let answer = giveway_recording::answered(&mut self.connection).map_err(WriteError::Gone)?;
        answer.map_err(WriteError::Refused)
    }

    /// Ends the connection, and waits until the process has ended, for a limited time.
    pub fn end(self) {
        let WritingProcess { mut child, connection } = self;
        drop(connection);
        let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
        while monotonic_ns() < until && child.try_wait().is_ok_and(|ended| ended.is_none()) {
            pause(Duration::from_millis(5));
        }
    }
}

impl Connection {
    /// Repeats an operation until it does not time out.
    fn patiently<T>(&mut self, mut operation: impl FnMut(&File) -> io::Result<T>) -> io::Result<T> {
        loop {
            match operation(&self.socket) {
                // A signal interrupts an operation with a time limit.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                done => return done,
            }
            if self.stop.load(Ordering::Acquire) {
                let now = monotonic_ns();
                let late = *self.late.get_or_insert(now + PATIENCE.as_nanos() as u64);
                if now >= late {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
        }
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(|mut socket| socket.read(bytes))
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|mut socket| socket.write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
