//! The table `docs/cards.csv`: a row for each deployed discipline, each baseline and each question of a card.

use serde::{Deserialize, Serialize};

use crate::recorded::{Recorded, some_digits};

/// The verdicts on a question: numbers of metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuestionVerdicts {
    pub discipline: String,
    pub baseline: String,
    /// The question in one word, such as `delay`.
    pub question: String,
    /// The verdict in words, such as `better`.
    pub verdict: String,
    pub better: u32,
    pub worse: u32,
    /// No difference that matters.
    pub same: u32,
    pub undecided: u32,
    /// The verdicts that are the opposite with the timing of real machines.
    pub opposite: u32,
    /// The median ratio of the values to the baseline's; above 1 the discipline has the better ones. `None`
    /// if no metric has positive values.
    #[serde(serialize_with = "some_digits::<3, _>")]
    pub ratio: Option<f64>,
}

impl Recorded for QuestionVerdicts {
    const FILE: &'static str = "docs/cards.csv";
}
