//! A second process that restores the settings of the machine when the bridge has ended, also after a kill.
//!
//! The threads of a bridge drop the privileges for this work: to change interfaces, and to remove files from
//! folders of other users. A process is therefore forked before, which waits until the bridge has ended and
//! then does the work. Its only input is a pipe: what the bridge reports at the start, and the end of the
//! pipe, which the kernel closes with the bridge.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use crate::privilege;

/// The cleanup process. Dropping this value starts its work and waits for its end.
#[derive(Debug)]
pub struct Cleanup {
    process: Pid,
    /// The cleanup process waits until this is closed.
    pipe: Option<PipeWriter>,
}

impl Cleanup {
    /// Starts the process. It closes its copies of the descriptors `closed`, so that it does not keep them
    /// open for this process. `work` runs at the end, with the bytes of [`Cleanup::report`]; it may only
    /// change interfaces and remove files.
    ///
    /// # Errors
    /// The error of the system; `Other` if the process has other threads: their locks would stay locked in
    /// the copy.
    pub fn start(closed: &[RawFd], work: impl FnOnce(&[u8])) -> io::Result<Cleanup> {
        if std::fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("the process has several threads already"));
        }
        let (reader, writer) = io::pipe()?;
        // SAFETY: this process has one thread. No other thread can hold a lock in the copy, so the child may
        // allocate and take locks.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Cleanup { process: child, pipe: Some(writer) }),
            ForkResult::Child => {
                drop(writer);
                for descriptor in closed {
                    // SAFETY: no pointers are passed. The owner is in the parent; `_exit` drops none here.
                    unsafe { libc::close(*descriptor) };
                }
                wait_and_work(reader, work);
                // SAFETY: no pointers are passed. `_exit` does not run the exit handlers of the parent.
                unsafe { libc::_exit(0) }
            }
        }
    }

    /// Gives the work bytes that were not known when the process started: fewer than a pipe takes at once.
    ///
    /// # Errors
    /// The error of the system.
    pub fn report(&self, bytes: &[u8]) -> io::Result<()> {
        self.pipe.as_ref().map_or(Ok(()), |mut pipe| pipe.write_all(bytes))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The cleanup process may have been killed.
        let _ = waitpid(self.process, None);
    }
}

fn wait_and_work(mut pipe: PipeReader, work: impl FnOnce(&[u8])) {
    // A terminal sends Ctrl-C to all its processes, and a service manager sends SIGTERM to all processes of a
    // service. This process must outlive the bridge.
    for end in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGPIPE]
    {
        // SAFETY: ignoring a signal installs no handler.
        let _ = unsafe { signal(end, SigHandler::SigIgn) };
    }
    // SAFETY: the name is a C string of fewer than 16 bytes, and static.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"gw-cleanup".as_ptr()) };
    // Closes the standard streams: a reader of the output of the bridge must not wait for this process.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        for standard in [0, 1] {
            // SAFETY: no pointers are passed. No Rust object owns the standard descriptors.
            unsafe { libc::dup2(null.as_raw_fd(), standard) };
        }
    }
    // A privilege that cannot be dropped is not used either.
    let _ = privilege::settle_for_cleanup();
    let mut reported = Vec::new();
    // It reads until the bridge has ended, and again after a signal.
    let _ = pipe.read_to_end(&mut reported);
    work(&reported);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test harness runs each test in a thread, so the process has several.
    #[test]
    fn a_process_with_several_threads_is_not_copied() {
        assert!(Cleanup::start(&[], |_| ()).is_err());
    }
}
