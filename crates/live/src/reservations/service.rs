//! The thread that runs admission control, and its client.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use giveway_qdisc::Rate;

use crate::clock::wall_ns;
use crate::command::Command;
use crate::privilege::{self, Role};
use crate::reservations::admission::{AdmissionControl, LinkReservations, Settings};
use crate::reservations::change::Change;
use crate::reservations::flows::ReservedFlows;
use crate::reservations::request::Request;
use crate::shared::Handle;

/// Length of the queue of requests to the service.
pub const QUEUE: usize = 64;
/// Interval between searches for expired reservations.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// Time limit of [`ReservationClient::status`].
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// A reservation service that has not started.
pub struct ReservationService {
    pub(super) admission: AdmissionControl,
    pub(super) requests: Receiver<Request>,
}

/// Sends requests to the thread of a [`ReservationService`].
#[derive(Clone)]
pub struct ReservationClient(SyncSender<Request>);

/// Creates the parts of reservations on a bridge: the service, the table of each direction whose link has a
/// rate in `links`, and a client. `addresses` belong to the incoming interfaces of the directions.
pub fn create(
    settings: Settings,
    links: [Option<Rate>; 2],
    addresses: [[u8; 6]; 2],
) -> (ReservationService, [Option<ReservedFlows>; 2], ReservationClient) {
    let (sender, requests) = sync_channel(QUEUE);
    let admission = AdmissionControl::new(settings, links, addresses, wall_ns());
    let flows = [0, 1].map(|direction| {
        let overflow = admission.overflow(direction)?;
        Some(ReservedFlows::new(settings.types, direction, sender.clone(), overflow, settings.most))
    });
    (ReservationService { admission, requests }, flows, ReservationClient(sender))
}

impl ReservationService {
    /// Starts the service in a separate thread without privileges, until the process ends. `handles` come
    /// from the bridge, in the order of its directions.
    ///
    /// # Errors
    /// The error of the system if the thread cannot be started.
    pub fn run(self, handles: Vec<Handle>) -> io::Result<()> {
        let ReservationService { mut admission, requests } = self;
        thread::Builder::new().name("gw-reserve".to_owned()).spawn(move || {
            let _ = privilege::settle(Role::Forward);
            loop {
                let request = requests.recv_timeout(SWEEP_INTERVAL);
                let now = wall_ns();
                let mut changes = admission.sweep(now);
                match request {
                    Ok(Request::Frame(frame)) => {
                        let decision = admission.decide(&frame, now);
                        changes.extend(decision.change.map(|change| (frame.direction, change)));
                        let frames =
                            [(1 - frame.direction, decision.answer), (frame.direction, decision.forward)];
                        // A grant takes effect before its answer is sent.
                        send_changes(&handles, &mut changes);
                        for (direction, frame) in frames {
                            if let Some(frame) = frame {
                                // The sender retransmits a lost message.
                                handles[direction].try_send(Command::Frame(frame));
                            }
                        }
                    }
                    Ok(Request::Rate(direction, rate)) => {
                        changes.extend(admission.resize(direction, rate, now));
                    }
                    Ok(Request::Status(reply)) => {
                        // The client may have given up waiting.
                        let _ = reply.try_send(admission.status(now));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                send_changes(&handles, &mut changes);
            }
        })?;
        Ok(())
    }
}

fn send_changes(handles: &[Handle], changes: &mut Vec<(usize, Change)>) {
    for (direction, change) in changes.drain(..) {
        // A direction that accepts no command has failed: it forwards plainly, without reservations.
        handles[direction].try_send(Command::Reserve(change));
    }
}

impl ReservationClient {
    /// Sets the rate of the link of a direction.
    pub fn set_rate(&self, direction: usize, rate: Rate) {
        // An error means that the service has ended.
        let _ = self.0.send(Request::Rate(direction, rate));
    }

    /// The reservations of both directions; `None` for a direction without a table, and for both if the
    /// service does not answer within a second.
    pub fn status(&self) -> [Option<LinkReservations>; 2] {
        let (reply, answer) = sync_channel(1);
        let sent = self.0.send(Request::Status(reply));
        sent.ok().and_then(|()| answer.recv_timeout(STATUS_TIMEOUT).ok()).unwrap_or_default()
    }
}
