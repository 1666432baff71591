//! The hand-over of a running bridge to another process, which forwards from then on.
//!
//! The other process has opened the interfaces, too. Its requests are such that one of both forwards whatever
//! happens to the other:
//!
//! 1. `hand-over at NS` names an instant, in nanoseconds since 1970. The bridge ignores frames from then on.
//! 2. `hand-over confirm` comes when the other process has received frames from then on. The bridge sends its
//!    queue.
//! 3. `hand-over state` tells whether the queue is empty. The other process sends nothing before.
//! 4. `hand-over end` ends the bridge.
//!
//! If no request comes for [`SILENT`], the other process has ended, and the bridge forwards everything again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use giveway_live::Handle;
use giveway_live::clock::{monotonic_ns, wall_ns};

use crate::error::ControlError;

/// Longest time between two requests, in nanoseconds.
pub const SILENT: u64 = 3_000_000_000;
/// The instant of a hand-over is at most this far ahead, in nanoseconds.
const AHEAD: u64 = 500_000_000;
/// Time limit for sending the queue, in nanoseconds.
const DRAIN: u64 = 5_000_000_000;

/// A request about a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverRequest {
    /// Ignore frames with time stamps from this one on, in nanoseconds since 1970.
    At(u64),
    /// The other process forwards these frames: send the queue, and end.
    Confirm,
    /// Tell how far the hand-over is.
    State,
    /// The other process needs this one no more.
    End,
}

impl HandOverRequest {
    /// Parses the words after `hand-over`.
    ///
    /// # Errors
    /// If they are not a request.
    pub fn parse(words: &str) -> Result<HandOverRequest, ControlError> {
        match words.trim().split_once(' ').unwrap_or((words.trim(), "")) {
            ("confirm", "") => Ok(HandOverRequest::Confirm),
            ("state", "") => Ok(HandOverRequest::State),
            ("end", "") => Ok(HandOverRequest::End),
            ("at", ns) if ns.trim().parse::<u64>().is_ok() => {
                Ok(HandOverRequest::At(ns.trim().parse().unwrap_or_default()))
            }
            _ => Err(ControlError::invalid(
                "hand-over needs at NS, confirm, state or end: giveway live --take-over sends them",
            )),
        }
    }
}

/// Progress of a hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// There is none.
    #[default]
    None,
    /// The instant is set.
    Offered,
    /// The other process forwards. The queue is sent until this time of the monotonic clock at the latest.
    Draining { until: u64 },
    /// The queue is empty.
    Drained,
    /// The bridge ends.
    Ended,
}

/// The hand-over of a bridge.
#[derive(Debug, Default)]
pub struct HandOver(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    progress: Progress,
    /// Time of the last request by the monotonic clock, in nanoseconds.
    asked: u64,
}

impl HandOver {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a request, and returns the text of the answer.
    ///
    /// # Errors
    /// If the request does not fit the state. Nothing is changed then.
    pub fn request(&self, request: HandOverRequest, handles: &[Handle]) -> Result<String, ControlError> {
        self.request_at(request, handles, wall_ns(), monotonic_ns())
    }

    fn request_at(
        &self,
        request: HandOverRequest,
        handles: &[Handle],
        wall: u64,
        now: u64,
    ) -> Result<String, ControlError> {
        let mut state = self.state();
        state.advance(now, handles);
        match (request, state.progress) {
            (HandOverRequest::At(ns), Progress::None) => {
                if ns < wall || ns > wall.saturating_add(AHEAD) {
                    return Err(ControlError::unavailable(
                        "the instant of the hand-over is not in the next half second: the machine is busy, or the wall clock was set; try again",
                    ));
                }
                handles.iter().for_each(|handle| handle.end_at(Some(ns)));
                state.progress = Progress::Offered;
            }
            (HandOverRequest::At(_), _) => {
                return Err(ControlError::unavailable("another process takes the bridge over already"));
            }
            (HandOverRequest::Confirm, Progress::Offered) => {
                state.progress = Progress::Draining { until: now + DRAIN };
            }
            (HandOverRequest::Confirm, _) => {
                return Err(ControlError::unavailable(
                    "there is no hand-over to confirm: it was cancelled, because three seconds passed",
                ));
            }
            (HandOverRequest::End, Progress::Drained | Progress::Ended) => {
                state.progress = Progress::Ended;
            }
            (HandOverRequest::End, _) => {
                return Err(ControlError::unavailable("the queue is not empty yet: ask for hand-over state"));
            }
            (HandOverRequest::State, _) => {}
        }
        state.asked = now;
        Ok(match state.progress {
            Progress::None => "none",
            Progress::Offered => "offered",
            Progress::Draining { .. } => "draining",
            Progress::Drained | Progress::Ended => "drained",
        }
        .to_owned())
    }

    /// Must be called several times a second. Returns true once the bridge shall end.
    pub(crate) fn tick(&self, handles: &[Handle]) -> bool {
        let mut state = self.state();
        state.advance(monotonic_ns(), handles);
        state.progress == Progress::Ended
    }
}

impl State {
    /// Changes the state to that at a time of the monotonic clock.
    fn advance(&mut self, now: u64, handles: &[Handle]) {
        match self.progress {
            Progress::None | Progress::Ended => {}
            _ if now >= self.asked.saturating_add(SILENT) => {
                handles.iter().for_each(|handle| handle.end_at(None));
                self.progress = Progress::None;
            }
            Progress::Draining { until } if now >= until || handles.iter().all(Handle::is_drained) => {
                self.progress = Progress::Drained;
            }
            Progress::Offered | Progress::Draining { .. } | Progress::Drained => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed() {
        let parse = |words| HandOverRequest::parse(words);
        assert_eq!(parse("at 17").unwrap(), HandOverRequest::At(17));
        assert_eq!(parse(" confirm ").unwrap(), HandOverRequest::Confirm);
        assert_eq!(parse("state").unwrap(), HandOverRequest::State);
        for wrong in ["", "at", "at -1", "at 1 2", "confirm now", "later"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_hand_over_is_confirmed_or_cancelled() {
        use HandOverRequest::{At, Confirm, End, State};
        let hand_over = HandOver::default();
        let ask =
            |request, now| hand_over.request_at(request, &[], 1000, now).map_err(|error| error.to_string());
        assert_eq!(ask(State, 0).unwrap(), "none");
        assert!(ask(End, 0).unwrap_err().contains("not empty"));
        assert!(ask(Confirm, 0).unwrap_err().contains("no hand-over to confirm"));
        assert!(ask(At(999), 0).unwrap_err().contains("the wall clock was set"), "the instant has passed");
        assert!(ask(At(1001 + AHEAD), 0).is_err(), "it is too far ahead");
        assert_eq!(ask(At(2000), 0).unwrap(), "offered");
        assert!(ask(At(2000), 1).unwrap_err().contains("another process"));
        assert!(ask(Confirm, SILENT).unwrap_err().contains("was cancelled"), "too late");
        let mut now = SILENT;
        assert_eq!(ask(At(2000), now).unwrap(), "offered", "another try");
        assert_eq!(ask(Confirm, now).unwrap(), "draining");
        now += SILENT;
        assert_eq!(ask(State, now).unwrap(), "none", "the other process was killed");
        assert_eq!(ask(At(2000), now).unwrap(), "offered");
        assert_eq!(ask(Confirm, now).unwrap(), "draining");
        // No direction has frames here.
        assert_eq!(ask(State, now).unwrap(), "drained");
        assert!(ask(At(2000), now).is_err(), "another process forwards");
        assert_eq!(ask(End, now).unwrap(), "drained");
        assert!(hand_over.tick(&[]), "the bridge ends");
    }
}
