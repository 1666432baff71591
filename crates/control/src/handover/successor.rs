//! The side of the process that takes over, as a state machine without clocks and sockets.

use super::messages::{HandOverAnswer, HandOverRequest};

/// Time from the first request to the instant of the hand-over, in nanoseconds. The other process must get
/// the request before the instant, which takes longer on a busy machine.
const LEAD: u64 = 500_000_000;
/// Time limit for an answer of the other process, in nanoseconds. That process has cancelled the hand-over
/// then, unless the answer was the one that gave the link away.
pub const PATIENCE: u64 = 3_000_000_000;

/// The next thing that the process must do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Send a request. Before [`HandOverRequest::At`], keep the frames from this instant on in the queue.
    Ask(HandOverRequest),
    /// Wait a little, and ask for the next step.
    Pause,
    /// Take the locks of the interfaces, which are free if the other process has ended.
    TakeLocks,
    /// Send the queue: the link belongs to this process.
    Release,
    /// End without sending a frame. The text is the reason.
    GiveUp(String),
    /// The hand-over is over.
    Done,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The request was carried out.
    Answer(HandOverAnswer),
    /// The request was refused with this message.
    Refused(String),
    /// There is no answer, for this reason: the other process has ended, or is stopped.
    Silence(String),
    /// The locks of the interfaces are taken (true), or another process has one.
    Locks(bool),
    /// The queue is sent from now on.
    Released,
}

/// The progress of a process that takes over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Successor(Stage);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    /// No request was sent.
    #[default]
    New,
    /// The other process ignores frames from this instant on.
    Offered { at: u64 },
    /// The other process sends its queue.
    Draining,
    /// The queue is empty.
    Drained,
    /// The other process does not answer, for this reason.
    Silent(String),
    /// The link belongs to this process. The other one, if it lives, must get the request to end.
    Mine { lives: bool },
    /// The queue is sent.
    Forwards { lives: bool },
    /// The other process knows.
    Done,
    /// This process leaves, for this reason.
    GivenUp(String),
}

impl Successor {
    /// The next step at this time of the wall clock, in nanoseconds since 1970. `process` is the number of
    /// this process.
    pub fn next(&self, wall: u64, process: u32) -> Step {
        match &self.0 {
            Stage::New => Step::Ask(HandOverRequest::At(wall.saturating_add(LEAD))),
            Stage::Offered { at } if wall < *at => Step::Pause,
            Stage::Offered { .. } => Step::Ask(HandOverRequest::Confirm),
            Stage::Draining => Step::Ask(HandOverRequest::State),
            Stage::Drained => Step::Ask(HandOverRequest::Commit),
            Stage::Silent(_) => Step::TakeLocks,
            Stage::Mine { .. } => Step::Release,
            Stage::Forwards { lives: true } => Step::Ask(HandOverRequest::End(process)),
            Stage::Forwards { lives: false } | Stage::Done => Step::Done,
            Stage::GivenUp(reason) => Step::GiveUp(reason.clone()),
        }
    }

    /// Continues after `step` had this result.
    pub fn received(&mut self, step: &Step, received: Received) {
        use HandOverRequest::{At, Commit, Confirm, End, State};
        self.0 = match (step, received) {
            (Step::Ask(At(at)), Received::Answer(HandOverAnswer::Offered)) => Stage::Offered { at: *at },
            (Step::Ask(Confirm | State), Received::Answer(HandOverAnswer::Draining)) => Stage::Draining,
            (Step::Ask(State), Received::Answer(HandOverAnswer::Drained)) => Stage::Drained,
            (Step::Ask(Commit), Received::Answer(HandOverAnswer::Given)) => Stage::Mine { lives: true },
            // Whatever the answer is, the link stays with this process.
            (Step::Ask(End(_)), _) => Stage::Done,
            (Step::Ask(_), Received::Silence(reason)) => Stage::Silent(reason),
            (Step::Ask(_), Received::Refused(reason)) => Stage::GivenUp(reason),
            // The kernel frees a lock when its process ends, so the other one forwards no more.
            (Step::TakeLocks, Received::Locks(true)) => Stage::Mine { lives: false },
            (Step::TakeLocks, Received::Locks(false)) => match std::mem::take(&mut self.0) {
                Stage::Silent(reason) => {
                    Stage::GivenUp(format!("the running bridge does not answer, and has not ended: {reason}"))
                }
                other => other,
            },
            (Step::Release, Received::Released) => match self.0 {
                Stage::Mine { lives } => Stage::Forwards { lives },
                _ => Stage::GivenUp("the link does not belong to this process".to_owned()),
            },
            (step, received) => Stage::GivenUp(format!("unexpected after {step:?}: {received:?}")),
        };
    }
}
