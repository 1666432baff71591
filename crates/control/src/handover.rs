//! The hand-over of a running bridge to another process, which forwards from then on.
//!
//! The other process has opened the interfaces, too. It sends its requests on one connection to the control
//! socket, which it closes only when it needs the bridge no more:
//!
//! 1. `hand-over 2 at NS` names an instant, in nanoseconds since 1970. The bridge ignores frames from then
//!    on.
//! 2. `hand-over 2 confirm` comes when the other process has received frames from then on. The bridge sends
//!    its queue.
//! 3. `hand-over 2 state` tells whether the queue is empty. The other process sends no frame before.
//! 4. `hand-over 2 commit` gives the link away. The other process sends from the answer on.
//! 5. `hand-over 2 end PROCESS` ends the bridge, once the connection is closed.
//!
//! Either process may be stopped at any time (SIGSTOP, a debugger, the freezer), be killed, or be late. No
//! process can know how long it was stopped before its next instruction, so no process decides by its clock
//! that it may send. It may send for one of two reasons:
//!
//! - the bridge, because it has not answered `given`; or because it has, and the connection has ended, which
//!   the kernel does after the last instruction of the other process;
//! - the other process, because it has read the answer `given`, and keeps the connection open; or because it
//!   has the locks of the interfaces, which the kernel frees after the last instruction of the bridge.
//!
//! Anything else, such as a refusal or an answer that does not come, means that the link belongs to the other
//! side: the process that takes over ends without sending a frame.
//!
//! *Fixed*: two never forward. If no request comes for [`SILENT`], or the hand-over lasts that long after the
//! queue was sent, the bridge cancels it and forwards everything again. If the other process ends before it
//! is done, the bridge forwards again at once. So no frame is taken for three seconds at the longest, or six
//! if the answer `given` is lost. Frames that arrive in this time are lost.
//!
//! *Open*: a process that is stopped while it has the link forwards no frame, as any bridge. After `given`
//! this is the process that takes over: the other one may not forward while it lives. If the bridge and its
//! successor are both killed, a service manager must start another one.
//!
//! [`Earlier`] and [`Successor`] are the two sides, without clocks and sockets. A test searches all their
//! interleavings.

mod earlier;
mod messages;
#[cfg(test)]
mod model_tests;
mod successor;

use std::sync::{Mutex, MutexGuard, PoisonError};

use giveway_live::Handle;
use giveway_live::clock::{monotonic_ns, wall_ns};

use crate::error::ControlError;

pub use earlier::{Client, Earlier, Moment, SILENT, Share};
pub use messages::{HandOverAnswer, HandOverRequest};
pub use successor::{PATIENCE, Received, Step, Successor};

/// The hand-over of a bridge in this process.
#[derive(Debug, Default)]
pub struct HandOver(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    earlier: Earlier,
    /// The frames that the directions forward.
    share: Share,
}

impl HandOver {
    /// Carries out a request of a client.
    ///
    /// # Errors
    /// If the request does not fit the state. No change is made then.
    pub fn request(
        &self,
        client: Client,
        request: HandOverRequest,
        handles: &[Handle],
    ) -> Result<HandOverAnswer, ControlError> {
        let mut state = self.state();
        let answer = state.earlier.request(client, request, moment(handles));
        state.apply(handles);
        answer
    }

    /// The connection of a client has ended.
    pub fn left(&self, client: Client, handles: &[Handle]) {
        let mut state = self.state();
        state.earlier.left(client, wall_ns());
        state.apply(handles);
    }

    /// True if the connection of this client must stay open.
    pub fn is_with(&self, client: Client) -> bool {
        self.state().earlier.is_with(client)
    }

    /// Must be called several times a second. Returns the process that has taken over, once the bridge shall
    /// end.
    pub fn tick(&self, handles: &[Handle]) -> Option<u32> {
        let mut state = self.state();
        state.earlier.advance(moment(handles));
        state.apply(handles);
        state.earlier.successor()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets the directions forward the frames that the state requires.
    fn apply(&mut self, handles: &[Handle]) {
        let share = self.earlier.share();
        if share == std::mem::replace(&mut self.share, share) {
            return;
        }
        for handle in handles {
            match share {
                Share::All => handle.end_at(None),
                Share::Before(ns) => handle.end_at(Some(ns)),
                Share::Nothing => handle.hold(),
                Share::Since(ns) => {
                    handle.resume_at(ns);
                    handle.release();
                }
            }
        }
    }
}

fn moment(handles: &[Handle]) -> Moment {
    let drained = handles.iter().all(Handle::is_drained);
    Moment { wall: wall_ns(), now: monotonic_ns(), drained }
}
