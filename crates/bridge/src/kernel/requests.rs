//! The interface of a bridge in the kernel to the control socket and the metrics server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use giveway_control::handover::{Client, HandOverAnswer, HandOverRequest};
use giveway_control::{ControlApi, ControlError};
use giveway_watch::Snapshot;

use super::KernelBridge;

/// Time limit for `tc` and `bpftool` to answer a client, below the time limit of its connection.
const ANSWER: Duration = Duration::from_millis(1500);

/// A request of a serving thread to the watching thread, the only one that may run `tc` and `bpftool`.
pub enum Request {
    /// Changes a setting: its name, its value, and the channel of the answer.
    Set(String, String, mpsc::Sender<Result<String, ControlError>>),
    /// Reads the counters of both directions.
    Snapshots(mpsc::Sender<Result<Vec<Snapshot>, ControlError>>),
}

impl Request {
    /// Carries out the request, and sends the answer to the serving thread.
    pub fn answer(self, bridge: &KernelBridge) {
        // Sending fails if the client has given up, which is fine.
        let _ = match self {
            Request::Set(name, value, to) => to.send(bridge.set(&name, &value)).is_ok(),
            Request::Snapshots(to) => to.send(bridge.snapshots().map_err(ControlError::unavailable)).is_ok(),
        };
    }
}

/// Answers clients by requests to the watching thread, because serving threads have no privileges and may not
/// run programs.
pub struct RequestSender {
    /// Channel to the watching thread.
    pub requests: mpsc::SyncSender<Request>,
    /// True once a client has requested a stop.
    pub stopped: Arc<AtomicBool>,
}

impl RequestSender {
    fn ask<T>(&self, request: impl FnOnce(mpsc::Sender<T>) -> Request) -> Result<T, ControlError> {
        let (to, answer) = mpsc::channel();
        let busy = || ControlError::unavailable("tc or bpftool took too long to answer: try again");
        self.requests.try_send(request(to)).map_err(|_| busy())?;
        answer.recv_timeout(ANSWER).map_err(|_| busy())
    }
}

impl ControlApi for RequestSender {
    fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError> {
        self.ask(Request::Snapshots)?
    }

    fn reservations(&self) -> Result<String, ControlError> {
        Err(ControlError::unavailable(
            "a discipline in the kernel reserves rates by the marks of packets; they are in a map: bpftool map dump pinned \
             /sys/fs/bpf/giveway/IF/reservations",
        ))
    }

    fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        self.ask(|to| Request::Set(name.to_owned(), value.to_owned(), to))?
    }

    fn hand_over(&self, _: Client, _: HandOverRequest) -> Result<HandOverAnswer, ControlError> {
        Err(ControlError::unavailable(
            "the disciplines of this bridge are in the kernel, which forwards on without a program: kill -9 it, and start the other \
             one",
        ))
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
