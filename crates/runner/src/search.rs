//! Searches for a load of a switch by bisection, with simulations at each load.
//!
//! - [`Question::Capacity`]: the largest load at which the queues of each arbiter do not grow.
//! - [`Question::Crossover`]: the load at which two arbiters are equal in a metric.

mod capacity;
mod crossover;
mod runs;
mod table;

pub use runs::{Question, Search, SearchError};

/// The answer of a search.
pub struct Found {
    /// The result as text.
    pub table: String,
    /// The result as a JSON object.
    pub json: serde_json::Value,
}

impl Search<'_> {
    /// Answers the question.
    ///
    /// # Errors
    /// When the user stopped it, or a run failed.
    pub fn find(&self) -> Result<Found, SearchError> {
        match self.question {
            Question::Capacity => {
                capacity::search(self).map(|found| Found { table: found.table(), json: found.json() })
            }
            Question::Crossover { metric, .. } => crossover::search(self, metric)
                .map(|found| Found { table: found.table(), json: found.json() }),
        }
    }
}
