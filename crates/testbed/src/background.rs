//! A program that runs in parallel with the load: the router, or the capture.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Time limit for the start and for the end of a program.
const TIMEOUT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(5);

/// A program in the background. Dropping it ends the program, which happens if a run is interrupted.
pub(crate) struct Background(Child);

impl Background {
    pub(crate) fn new(child: Child) -> Background {
        Background(child)
    }

    /// Sends a signal. If the program has ended already, nothing happens.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), signal);
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits until `ready` returns true. Returns false on timeout, or if the program has ended before.
    pub(crate) fn starts(&mut self, ready: impl Fn() -> bool) -> bool {
        self.wait(|program| ready() || program.has_ended()) && !self.has_ended()
    }

    /// Waits for the end of the program. Returns false on timeout.
    pub(crate) fn ends(&mut self) -> bool {
        self.wait(Background::has_ended)
    }

    /// The exit status of a program that has ended.
    pub(crate) fn status(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }

    #[expect(clippy::disallowed_methods, reason = "waits for another process in real time")]
    fn wait(&mut self, mut until: impl FnMut(&mut Background) -> bool) -> bool {
        let mut waited = Duration::ZERO;
        while !until(self) {
            if waited > TIMEOUT {
                return false;
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
        true
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
