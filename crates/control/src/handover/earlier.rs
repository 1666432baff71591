//! The side of the bridge that is taken over, as a state machine without clocks and sockets.

use super::messages::{HandOverAnswer, HandOverRequest};
use crate::error::ControlError;

/// Longest time between two requests before [`HandOverAnswer::Given`], and longest time before it in which
/// this side sends no frame, in nanoseconds.
pub const SILENT: u64 = 3_000_000_000;
/// Time limit for sending the queue, in nanoseconds. Frames that are left then are not sent.
pub const DRAIN: u64 = 30_000_000_000;
/// The instant of a hand-over is at most this far ahead, in nanoseconds.
const AHEAD: u64 = 1_000_000_000;

/// Number of a connection to the control socket.
pub type Client = u64;

/// The circumstances of a request.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wall clock, in nanoseconds since 1970.
    pub wall: u64,
    /// The monotonic clock, in nanoseconds.
    pub now: u64,
    /// True if all frames before the instant have left.
    pub drained: bool,
}

/// The frames that the bridge forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All.
    #[default]
    All,
    /// Those with time stamps before this one, in nanoseconds since 1970.
    Before(u64),
    /// None: those that are left in the queue stay there.
    Nothing,
    /// Those with time stamps from this one on, because the other process may have sent earlier ones.
    Since(u64),
}

/// The hand-over of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Earlier {
    session: Option<Session>,
    /// Frames from then on are forwarded again after a hand-over that its process did not survive.
    since: Option<u64>,
    /// The process that has taken over.
    successor: Option<u32>,
}

/// A hand-over that has started.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Session {
    /// The connection of the other process. Its end is the end of that process.
    client: Client,
    /// The instant.
    at: u64,
    progress: Progress,
    /// Time of the last request by the monotonic clock, in nanoseconds.
    asked: u64,
    /// Time at which this side had frames to send, by the monotonic clock, in nanoseconds.
    busy: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Progress {
    /// The instant is set.
    Offered,
    /// The queue is sent until this time of the monotonic clock at the latest, in nanoseconds.
    Draining { until: u64 },
    /// The queue is empty, or its time is over.
    Drained { empty: bool },
    /// The other process forwards. This one waits for its request to end, or for its death.
    Given { empty: bool },
    /// This process ends once the connection is closed.
    Ended { empty: bool, process: u32 },
}

impl Earlier {
    /// Carries out a request.
    ///
    /// # Errors
    /// If the request does not fit the state. No change is made then.
    pub fn request(
        &mut self,
        client: Client,
        request: HandOverRequest,
        moment: Moment,
    ) -> Result<HandOverAnswer, ControlError> {
        self.advance(moment);
        if let HandOverRequest::At(at) = request {
            return self.offer(client, at, moment);
        }
        let session = self.session.as_mut().filter(|session| session.client == client).ok_or_else(|| {
            ControlError::unavailable(
                "there is no such hand-over: it was cancelled, because three seconds passed without a request; \
                 the bridge continues; try again",
            )
        })?;
        let (progress, answer) = match (request, session.progress) {
            (HandOverRequest::Confirm, Progress::Offered) => {
                (Progress::Draining { until: moment.now + DRAIN }, HandOverAnswer::Draining)
            }
            (HandOverRequest::State, Progress::Draining { .. }) => {
                (session.progress, HandOverAnswer::Draining)
            }
            (HandOverRequest::State, Progress::Drained { .. }) => (session.progress, HandOverAnswer::Drained),
            (HandOverRequest::Commit, Progress::Drained { empty }) => {
                (Progress::Given { empty }, HandOverAnswer::Given)
            }
            (HandOverRequest::End(process), Progress::Given { empty } | Progress::Ended { empty, .. }) => {
                (Progress::Ended { empty, process }, HandOverAnswer::Ended)
            }
            _ => {
                let message = format!("{request:?} does not follow {:?} in a hand-over", session.progress);
                return Err(ControlError::unavailable(message));
            }
        };
        (session.progress, session.asked) = (progress, moment.now);
        Ok(answer)
    }

    /// Changes the state to that at a later moment. Must be called several times a second.
    pub fn advance(&mut self, moment: Moment) {
        let Some(session) = &mut self.session else { return };
        if matches!(session.progress, Progress::Draining { .. }) && !moment.drained {
            session.busy = moment.now;
        }
        match session.progress {
            Progress::Given { .. } | Progress::Ended { .. } => {}
            // The other process may not forward without a request, so this one may forward again. A process
            // that is stopped again and again asks in time, and does not come to the point.
            _ if moment.now >= session.asked.min(session.busy).saturating_add(SILENT) => self.session = None,
            Progress::Draining { until } if moment.drained || moment.now >= until => {
                session.progress = Progress::Drained { empty: moment.drained };
            }
            Progress::Offered | Progress::Draining { .. } | Progress::Drained { .. } => {}
        }
    }

    /// The connection of a client has ended at this time of the wall clock, in nanoseconds since 1970.
    pub fn left(&mut self, client: Client, wall: u64) {
        let Some(session) = self.session.take_if(|session| session.client == client) else { return };
        match session.progress {
            Progress::Offered | Progress::Draining { .. } | Progress::Drained { .. } => {}
            Progress::Given { .. } => self.since = Some(wall),
            Progress::Ended { process, .. } => {
                self.successor = Some(process);
                self.session = Some(session);
            }
        }
    }

    /// True if the hand-over belongs to this connection, which must then stay open.
    pub fn is_with(&self, client: Client) -> bool {
        self.session.as_ref().is_some_and(|session| session.client == client)
    }

    /// The process that has taken over; `None` until this one shall end.
    pub fn successor(&self) -> Option<u32> {
        self.successor
    }

    /// True if the link belongs to the other process, as long as that lives.
    #[cfg(test)]
    pub(super) fn has_given(&self) -> bool {
        let progress = self.session.as_ref().map(|session| session.progress);
        matches!(progress, Some(Progress::Given { .. } | Progress::Ended { .. }))
    }

    /// The frames that the bridge forwards.
    pub fn share(&self) -> Share {
        match &self.session {
            None => self.since.map_or(Share::All, Share::Since),
            Some(session) => match session.progress {
                Progress::Given { empty: false } | Progress::Ended { empty: false, .. } => Share::Nothing,
                _ => Share::Before(session.at),
            },
        }
    }

    fn offer(&mut self, client: Client, at: u64, moment: Moment) -> Result<HandOverAnswer, ControlError> {
        if self.session.is_some() {
            return Err(ControlError::unavailable("another process takes the bridge over already"));
        }
        if at < moment.wall || at > moment.wall.saturating_add(AHEAD) {
            return Err(ControlError::unavailable(
                "the instant of the hand-over is not in the next second: the machine is busy, or the wall clock was set; try again",
            ));
        }
        self.session =
            Some(Session { client, at, progress: Progress::Offered, asked: moment.now, busy: moment.now });
        Ok(HandOverAnswer::Offered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_over_is_confirmed_or_cancelled() {
        use HandOverRequest::{At, Commit, Confirm, End, State};
        const WALL: u64 = 1000;
        let mut earlier = Earlier::default();
        let mut ask = |client, request, now, drained| {
            let answer = earlier.request(client, request, Moment { wall: WALL, now, drained });
            (answer.map(HandOverAnswer::text).map_err(|error| error.to_string()), earlier.share())
        };
        let mut refused = |client, request, now, text: &str| {
            let error = ask(client, request, now, false).0.unwrap_err();
            assert!(error.contains(text), "{error}");
        };
        refused(1, State, 0, "cancelled");
        refused(1, End(7), 0, "cancelled");
        refused(1, At(WALL - 1), 0, "the wall clock was set");
        refused(1, At(WALL + AHEAD + 1), 0, "the machine is busy");
        let mut now = 0;
        for _ in 0..2 {
            assert_eq!(ask(1, At(2000), now, false), (Ok("offered"), Share::Before(2000)));
            assert!(ask(2, At(2000), now, false).0.unwrap_err().contains("another process"));
            assert!(ask(2, Confirm, now, false).0.is_err(), "it is another connection");
            assert!(ask(1, Commit, now, false).0.unwrap_err().contains("does not follow"));
            now += SILENT;
            assert!(ask(1, Confirm, now, false).0.unwrap_err().contains("three seconds"));
            assert_eq!(ask(1, State, now, false).1, Share::All);
        }
        assert_eq!(ask(1, At(2000), now, false).0, Ok("offered"));
        assert_eq!(ask(1, Confirm, now, false).0, Ok("draining"));
        assert!(ask(1, Commit, now, false).0.is_err(), "the queue is not empty");
        assert_eq!(ask(1, State, now, true).0, Ok("drained"));
        assert_eq!(ask(1, Commit, now, true), (Ok("given"), Share::Before(2000)));
        now += 100 * SILENT;
        assert_eq!(ask(1, End(7), now, true).0, Ok("ended"), "the other process may be stopped");
        assert!(earlier.is_with(1) && earlier.successor().is_none());
        earlier.left(2, WALL);
        assert_eq!(earlier.successor(), None);
        earlier.left(1, WALL);
        assert_eq!(earlier.successor(), Some(7));
    }

    #[test]
    fn a_queue_that_does_not_get_empty_is_not_sent_beside_that_of_the_successor() {
        let mut earlier = Earlier::default();
        let mut now = 0;
        let mut ask = |earlier: &mut Earlier, request| {
            now += SILENT - 1;
            earlier.request(1, request, Moment { wall: 0, now, drained: false }).unwrap()
        };
        ask(&mut earlier, HandOverRequest::At(5));
        ask(&mut earlier, HandOverRequest::Confirm);
        let mut asked = 0;
        while ask(&mut earlier, HandOverRequest::State) == HandOverAnswer::Draining {
            asked += 1;
        }
        assert_eq!(asked, DRAIN / SILENT);
        assert_eq!(earlier.share(), Share::Before(5));
        ask(&mut earlier, HandOverRequest::Commit);
        assert_eq!(earlier.share(), Share::Nothing);
        earlier.left(1, 77);
        assert_eq!(earlier.share(), Share::Since(77), "the successor was killed");
    }
}
