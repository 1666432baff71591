//! `giveway live --take-over SOCKET`: takes the interfaces over from a running bridge, which forwards until
//! this process does. [`giveway_control::handover`] describes the protocol.
//!
//! This process keeps its privileges until the other one has ended, because it takes the locks of the
//! interfaces then.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use giveway_bridge::pause;
use giveway_control::ControlError;
use giveway_control::lock;
use giveway_live::bridge::Bridge;
use giveway_live::clock::{monotonic_ns, wall_ns};

use super::error::BridgeError;
use super::socket;

/// Times from the first request to the instant of the hand-over, in nanoseconds. The other process must get
/// the request before the instant, which takes longer on a busy machine, so there are several attempts.
const LEADS: [u64; 3] = [50_000_000, 150_000_000, 450_000_000];
/// Time limit for the queue of the other process, in nanoseconds. It ends before, after five seconds.
const DRAIN: u64 = 8_000_000_000;
/// Time in which a frame that was stamped before the instant arrives.
const LATE: Duration = Duration::from_millis(100);
/// Interval between questions about that queue.
const ASK: Duration = Duration::from_millis(2);

/// The bridge that forwards until this process takes over.
#[derive(Debug)]
pub struct Predecessor {
    /// Its control socket.
    socket: PathBuf,
}

impl Predecessor {
    /// The bridge with this control socket.
    ///
    /// # Errors
    /// If no process listens there, or it is not the one that has these interfaces.
    pub fn find(socket: &Path, interfaces: &[&str]) -> Result<Predecessor, BridgeError> {
        let usage = |text: String| BridgeError::Usage(format!("--take-over {}: {text}", socket.display()));
        let process = lock::process_at(socket).map_err(|error| {
            usage(format!("no bridge answers there: {error}; without --take-over, a bridge is started"))
        })?;
        for name in interfaces {
            match lock::holder_of(name) {
                Some(holder) if holder.process.is_some() && holder.process == process => {}
                Some(_) => {
                    return Err(usage(format!(
                        "{name} belongs to another giveway live than the one that answers there"
                    )));
                }
                None => return Err(usage(format!("the bridge that answers there does not use {name}"))),
            }
        }
        Ok(Predecessor { socket: socket.to_owned() })
    }

    /// True if this is its control socket.
    pub fn listens_at(&self, path: &Path) -> bool {
        let place = |path: &Path| path.canonicalize().ok();
        place(path).is_some() && place(path) == place(&self.socket)
    }

    /// Lets `bridge`, which waits, forward in place of the other process.
    ///
    /// # Errors
    /// If the other process refuses, or a thread of this bridge has failed. The other process then continues.
    pub fn hand_over(&self, bridge: &mut Bridge) -> Result<(), BridgeError> {
        let handles = bridge.handles();
        let attempt = |lead: u64| {
            let at = wall_ns() + lead;
            // First, so that no frame is ignored by both.
            handles.iter().for_each(|handle| handle.begin_at(at));
            self.request(&format!("hand-over at {at}")).map(|_| at)
        };
        let [first, others @ ..] = LEADS;
        let at = others.into_iter().fold(attempt(first), |agreed, lead| agreed.or_else(|_| attempt(lead)))?;
        while wall_ns() < at {
            pause(ASK);
        }
        if let Some(problem) = bridge.watch().first() {
            return Err(self.refused(format!("{problem}; the other process continues")));
        }
        self.request("hand-over confirm")?;
        let until = monotonic_ns() + DRAIN;
        // If it does not answer any more, it has ended.
        while self.request("hand-over state").is_ok_and(|state| state != "drained") && monotonic_ns() < until
        {
            pause(ASK);
        }
        handles.iter().for_each(|handle| handle.release());
        Ok(())
    }

    /// Ends the other process, which forwards no more.
    pub fn end(&self) {
        // A frame that was stamped before the instant may still be on its way to the ring.
        pause(LATE);
        // If it does not answer, it has ended.
        let _ = self.request("hand-over end");
    }

    /// Sends a request, and returns the answer.
    fn request(&self, line: &str) -> Result<String, BridgeError> {
        let system_error = BridgeError::path("--take-over", &self.socket);
        let answer = socket::answer_to(line, &self.socket).map_err(system_error)?;
        match answer.trim_end().split_once(' ') {
            Some(("ok", text)) => Ok(text.to_owned()),
            Some((_, message)) if message.starts_with("unknown command") => {
                Err(self.refused("the running program is too old: end it, and start this one".to_owned()))
            }
            Some((_, message)) => Err(self.refused(message.to_owned())),
            None => {
                let cut = io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off");
                Err(BridgeError::path("--take-over", &self.socket)(cut))
            }
        }
    }

    fn refused(&self, message: String) -> BridgeError {
        BridgeError::Usage(format!("--take-over {}: {message}", self.socket.display()))
    }
}

/// Files that the other process still writes, under other names. They get their names back when this is
/// dropped, unless this process has taken over.
#[derive(Debug, Default)]
pub struct Earlier(Vec<[PathBuf; 2]>);

impl Earlier {
    /// Renames these files, so that this process writes new ones.
    ///
    /// # Errors
    /// The error of the system, with the flag.
    pub fn rename(files: [(&str, Option<&Path>); 2]) -> Result<Earlier, BridgeError> {
        let mut earlier = Earlier::default();
        for (flag, path) in files {
            if let Some(path) = path.filter(|path| path.is_file()) {
                let mut other = path.as_os_str().to_owned();
                other.push(".earlier");
                std::fs::rename(path, &other).map_err(BridgeError::path(flag, path))?;
                earlier.0.push([path.to_owned(), other.into()]);
            }
        }
        Ok(earlier)
    }

    /// Removes the files, because those of this process replace them.
    pub fn remove(mut self) {
        for [_, other] in self.0.drain(..) {
            let _ = std::fs::remove_file(other);
        }
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        for [path, other] in &self.0 {
            let _ = std::fs::rename(other, path);
        }
    }
}

/// Takes the locks of the interfaces once the other process has ended. `meanwhile` is called several times a
/// second, and returns false to give up.
///
/// # Errors
/// If the other process has not ended after a while.
pub fn succeed(
    interfaces: &[&str],
    mut meanwhile: impl FnMut() -> bool,
) -> Result<lock::InterfaceLocks, ControlError> {
    /// Writing a recording of hours takes seconds.
    const PATIENCE: u64 = 30_000_000_000;
    let until = monotonic_ns() + PATIENCE;
    loop {
        match lock::take(interfaces) {
            Err(ControlError::Locked(_)) if monotonic_ns() < until && meanwhile() => {
                pause(Duration::from_millis(50));
            }
            taken => return taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_file_stays_unless_this_process_takes_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcapng");
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        std::fs::write(&path, "earlier").unwrap();
        let flags = [("--pcap", Some(path.as_path())), ("--trace", None)];
        let earlier = Earlier::rename(flags).unwrap();
        std::fs::write(&path, "new").unwrap();
        drop(earlier);
        assert_eq!((std::fs::read_to_string(&path).unwrap(), names()), ("earlier".to_owned(), 1));
        let earlier = Earlier::rename(flags).unwrap();
        std::fs::write(&path, "new").unwrap();
        earlier.remove();
        assert_eq!((std::fs::read_to_string(&path).unwrap(), names()), ("new".to_owned(), 1));
    }
}
