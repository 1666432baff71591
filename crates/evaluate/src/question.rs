//! The questions that a card answers.

use serde::{Deserialize, Serialize};

/// A question about a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Are delays low?
    Delay,
    /// Are transfers complete soon?
    Fct,
    /// Is the link used?
    Use,
    /// Do flows have equal shares, if nothing says otherwise?
    Fair,
    /// Does everybody get through, with hostile traffic too?
    Safe,
    /// Does a packet cost few instructions?
    Cost,
}

impl Question {
    /// All questions, in the order of a card.
    pub const ALL: [Question; 6] =
        [Question::Delay, Question::Fct, Question::Use, Question::Fair, Question::Safe, Question::Cost];

    /// The question in words.
    pub fn label(self) -> &'static str {
        match self {
            Question::Delay => "keeps delays low",
            Question::Fct => "completes transfers soon",
            Question::Use => "uses the link",
            Question::Fair => "is fair",
            Question::Safe => "is safe",
            Question::Cost => "costs little",
        }
    }

    /// A sentence that explains the question.
    pub fn about(self) -> &'static str {
        match self {
            Question::Delay => "Sojourn times in the queue, and delays of calls, streams and pings.",
            Question::Fct => {
                "Mean flow completion times of transfers and pages; transfers that did not end count with their age."
            }
            Question::Use => "Utilization of the link, and goodput of those that need it.",
            Question::Fair => {
                "Jain's index of the goodput of flows, and the goodput of who should have as much as others."
            }
            Question::Safe => {
                "Losses of streams, transfers that never ended, and what is left for others next to hostile traffic."
            }
            Question::Cost => {
                "Instructions per packet of a queue with 100 and with 10,000 flows, counted, so without uncertainty."
            }
        }
    }
}
