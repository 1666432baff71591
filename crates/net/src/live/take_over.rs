//! `giveway live --take-over SOCKET`: takes the interfaces over from a running bridge, which forwards until
//! this process does. [`giveway_control::handover`] describes the protocol, and has the states of this side.
//!
//! This process keeps its privileges until the other one has ended, because it takes the locks of the
//! interfaces then, and gives the control socket its name.

use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use giveway_bridge::pause;
use giveway_control::ControlError;
use giveway_control::client::{self, LONGEST_SHORT_ANSWER};
use giveway_control::handover::{HandOverAnswer, HandOverRequest, PATIENCE, Received, Step, Successor};
use giveway_control::lock::{self, InterfaceLocks};
use giveway_live::bridge::Bridge;
use giveway_live::clock::{monotonic_ns, wall_ns};

use super::error::BridgeError;

/// Time in which a frame that was stamped before the instant arrives.
pub const LATE: Duration = Duration::from_millis(100);
/// Interval between questions about the queue of the other process.
const ASK: Duration = Duration::from_millis(2);
/// Interval between attempts to take the locks.
pub const RETRY: Duration = Duration::from_millis(50);

/// The bridge that forwards until this process takes over.
#[derive(Debug)]
pub struct Predecessor {
    /// Its control socket.
    socket: PathBuf,
    /// The locks that only one process has which takes over.
    next: InterfaceLocks,
    state: Successor,
    /// The connection to its control socket. Its end tells the other process that this one has ended, so only
    /// the kernel closes it, after the last thread of this process; or this process, once the other one shall
    /// end.
    connection: Option<ManuallyDrop<UnixStream>>,
    /// The locks of the interfaces, if the other process has ended too early.
    locks: Option<InterfaceLocks>,
}

impl Predecessor {
    /// The bridge with this control socket. If another process takes the interfaces over, waits until it has.
    ///
    /// # Errors
    /// If no process listens there, or it is not the one that has these interfaces.
    pub fn find(
        socket: &Path,
        interfaces: &[&str],
        mut remark: impl FnMut(&str),
    ) -> Result<Predecessor, BridgeError> {
        /// A bridge that is taken over sends its queue, writes its recordings and ends meanwhile.
        const OTHERS: u64 = 75_000_000_000;
        let until = monotonic_ns() + OTHERS;
        let mut remarked = false;
        let next = lock::take_next(interfaces, |error| {
            if !std::mem::replace(&mut remarked, true) {
                remark(&format!("waits: {error}"));
            }
            pause(RETRY);
            monotonic_ns() < until
        })?;
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
        let state = Successor::default();
        Ok(Predecessor { socket: socket.to_owned(), next, state, connection: None, locks: None })
    }

    /// True if this is its control socket.
    pub fn listens_at(&self, path: &Path) -> bool {
        let place = |path: &Path| path.canonicalize().ok();
        place(path).is_some() && place(path) == place(&self.socket)
    }

    /// The descriptors of the locks of this take-over.
    pub fn next_descriptors(&self) -> Vec<RawFd> {
        self.next.descriptors()
    }

    /// Lets `bridge`, which waits, forward in place of the other process.
    ///
    /// # Errors
    /// If the other process refuses, or a thread of this bridge has failed. The other process then continues.
    pub fn hand_over(&mut self, bridge: &mut Bridge, interfaces: &[&str]) -> Result<(), BridgeError> {
        let handles = bridge.handles();
        loop {
            let step = self.state.next(wall_ns(), std::process::id());
            let received = match &step {
                Step::Ask(HandOverRequest::End(_)) | Step::Done => return Ok(()),
                Step::Ask(request) => {
                    match request {
                        // First, so that no frame is ignored by both.
                        HandOverRequest::At(at) => handles.iter().for_each(|handle| handle.begin_at(*at)),
                        HandOverRequest::State => pause(ASK),
                        _ => {}
                    }
                    if let Some(problem) = bridge.watch().first() {
                        return Err(self.refused(&format!("{problem}; the other process continues")));
                    }
                    self.ask(*request)
                }
                Step::Pause => {
                    pause(ASK);
                    continue;
                }
                Step::TakeLocks => Received::Locks(self.is_alone(interfaces)),
                Step::Release => {
                    handles.iter().for_each(|handle| handle.release());
                    Received::Released
                }
                Step::GiveUp(reason) => return Err(self.refused(reason)),
            };
            self.state.received(&step, received);
        }
    }

    /// Tells the other process, which forwards no more, that it shall end once [`Predecessor::leave`] is
    /// called. Returns true if it knows.
    pub fn end(&mut self) -> bool {
        match self.state.next(wall_ns(), std::process::id()) {
            Step::Ask(request) => self.ask(request) == Received::Answer(HandOverAnswer::Ended),
            _ => false,
        }
    }

    /// Lets the other process end.
    pub fn leave(&mut self) {
        drop(self.connection.take().map(ManuallyDrop::into_inner));
    }

    /// Takes the locks of the interfaces, which are free once the other process has ended.
    ///
    /// # Errors
    /// If it has not.
    pub fn take_locks(&mut self, interfaces: &[&str]) -> Result<InterfaceLocks, ControlError> {
        self.locks.take().map_or_else(|| lock::take_over(interfaces), Ok)
    }

    /// The locks of a process that takes over, for one that could not take the locks of the interfaces.
    pub fn into_next(self) -> InterfaceLocks {
        self.next
    }

    /// True if the other process has ended. Then this one has the locks of the interfaces.
    fn is_alone(&mut self, interfaces: &[&str]) -> bool {
        // The lock of a process that was killed stays with its cleanup process, and a process that starts has
        // it until it sees that this one takes over.
        let until = monotonic_ns() + PATIENCE;
        while self.locks.is_none() && monotonic_ns() < until {
            self.locks = lock::take_over(interfaces).ok();
            pause(RETRY);
        }
        self.locks.is_some()
    }

    /// Sends a request, and returns what it led to.
    fn ask(&mut self, request: HandOverRequest) -> Received {
        if self.connection.is_none() {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => self.connection = Some(ManuallyDrop::new(stream)),
                Err(error) => return Received::Silence(error.to_string()),
            }
        }
        let Some(stream) = &self.connection else { return Received::Silence("not connected".to_owned()) };
        let patience = Duration::from_nanos(PATIENCE);
        let answer = match client::ask(stream, &request.to_line(), LONGEST_SHORT_ANSWER, patience) {
            Ok(answer) => answer,
            Err(error) => return Received::Silence(error.to_string()),
        };
        match client::parse(&answer).map(HandOverAnswer::parse) {
            Ok(Some(answer)) => Received::Answer(answer),
            Ok(None) => Received::Refused(format!("{request:?} has an unknown answer")),
            Err(error) => {
                let message = error.to_string();
                // Programs without this version of the protocol.
                let unknown =
                    ["unknown command", "hand-over needs"].iter().any(|text| message.starts_with(text));
                let old = "the running program is too old: end it, and start this one";
                Received::Refused(if unknown { old.to_owned() } else { message })
            }
        }
    }

    fn refused(&self, message: &str) -> BridgeError {
        BridgeError::Usage(format!("--take-over {}: {message}", self.socket.display()))
    }
}
