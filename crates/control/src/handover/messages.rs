//! The requests of a hand-over and their answers, as text.

use crate::error::ControlError;

/// The version of the requests, their second word. Version 1 had no such word, and let both processes forward
/// after one of them had been stopped.
const VERSION: &str = "2";

/// A request about a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandOverRequest {
    /// Ignore frames with time stamps from this one on, in nanoseconds since 1970.
    At(u64),
    /// This process receives these frames: send the queue.
    Confirm,
    /// Tell how far the hand-over is.
    State,
    /// Send no frame from now on, unless the process that asks ends.
    Commit,
    /// The process with this number needs the other one no more.
    End(u32),
}

/// The answer to a request that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandOverAnswer {
    /// The instant is set.
    Offered,
    /// The queue is sent.
    Draining,
    /// The queue is empty.
    Drained,
    /// The link belongs to the process that asked.
    Given,
    /// The bridge ends once the connection is closed.
    Ended,
}

impl HandOverRequest {
    /// Parses the words after `hand-over`.
    ///
    /// # Errors
    /// If they are not a request of this version.
    pub fn parse(words: &str) -> Result<HandOverRequest, ControlError> {
        let wrong = || {
            ControlError::invalid(
                "hand-over needs 2, and at NS, confirm, state, commit or end PROCESS: giveway live --take-over sends them",
            )
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        match words[..] {
            [VERSION, "at", ns] => Ok(HandOverRequest::At(ns.parse().map_err(|_| wrong())?)),
            [VERSION, "confirm"] => Ok(HandOverRequest::Confirm),
            [VERSION, "state"] => Ok(HandOverRequest::State),
            [VERSION, "commit"] => Ok(HandOverRequest::Commit),
            [VERSION, "end", process] => Ok(HandOverRequest::End(process.parse().map_err(|_| wrong())?)),
            ["at" | "confirm" | "state" | "end", ..] => Err(ControlError::invalid(
                "the program that takes over is too old for this bridge: use one of the same version, or a later one",
            )),
            _ => Err(wrong()),
        }
    }

    /// The line for the control socket, without its line feed.
    pub fn to_line(&self) -> String {
        let words = match self {
            HandOverRequest::At(ns) => format!("at {ns}"),
            HandOverRequest::Confirm => "confirm".to_owned(),
            HandOverRequest::State => "state".to_owned(),
            HandOverRequest::Commit => "commit".to_owned(),
            HandOverRequest::End(process) => format!("end {process}"),
        };
        format!("hand-over {VERSION} {words}")
    }
}

impl HandOverAnswer {
    const ALL: [HandOverAnswer; 5] = [
        HandOverAnswer::Offered,
        HandOverAnswer::Draining,
        HandOverAnswer::Drained,
        HandOverAnswer::Given,
        HandOverAnswer::Ended,
    ];

    /// The text after `ok`.
    pub fn text(self) -> &'static str {
        match self {
            HandOverAnswer::Offered => "offered",
            HandOverAnswer::Draining => "draining",
            HandOverAnswer::Drained => "drained",
            HandOverAnswer::Given => "given",
            HandOverAnswer::Ended => "ended",
        }
    }

    /// Parses the text after `ok`; `None` if it is not an answer.
    pub fn parse(text: &str) -> Option<HandOverAnswer> {
        HandOverAnswer::ALL.into_iter().find(|answer| answer.text() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_parsed_as_they_are_written() {
        use HandOverRequest::{At, Commit, Confirm, End, State};
        for request in [At(17), At(u64::MAX), Confirm, State, Commit, End(4000)] {
            let line = request.to_line();
            assert_eq!(HandOverRequest::parse(line.strip_prefix("hand-over").unwrap()).unwrap(), request);
        }
        for answer in HandOverAnswer::ALL {
            assert_eq!(HandOverAnswer::parse(answer.text()), Some(answer));
        }
        for wrong in ["", "2", "2 at", "2 at -1", "2 at 1 2", "2 confirm now", "2 end", "3 state", "later"] {
            let error = HandOverRequest::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with("hand-over needs"), "{wrong:?}: {error}");
        }
    }

    /// The requests of version 1.
    #[test]
    fn an_older_successor_is_refused_before_it_has_changed_anything() {
        for old in ["at 17", "confirm", "state", "end"] {
            let error = HandOverRequest::parse(old).unwrap_err().to_string();
            assert!(error.contains("too old for this bridge"), "{error}");
        }
    }
}
