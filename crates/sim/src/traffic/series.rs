//! Flows that start one after the other: each a fixed time after the one before it.
//!
//! Flows are counted from 0: the first flow of each pair of nodes in the order in which the scenario writes
//! them, then the second of each pair, and so on.

use giveway_qdisc::{Invalid, Span, Time};

use super::SourceContext;

/// The beginnings of the flows of a source: an arithmetic series.
pub(super) struct Series {
    start: Time,
    stagger: Span,
    count: u64,
    /// True if the last flow starts first.
    reversed: bool,
}

impl Series {
    /// The first of `count` flows starts with the source, and each further one `stagger` later; `reversed`
    /// reverses the order.
    ///
    /// # Errors
    /// If the source stops before all flows have started: a study would miss flows without a warning.
    pub fn new(
        stagger: Span,
        count: u64,
        reversed: bool,
        context: &SourceContext,
    ) -> Result<Series, Invalid> {
        let series = Series { start: context.start, stagger, count, reversed };
        let late = (0..count).find(|number| series.begin(*number) >= context.stop);
        match late {
            Some(number) => {
                let message = format!(
                    "flow {number} of 0 to {} would begin {} after the source, which stops before that: \
                     write less than {stagger}",
                    count - 1,
                    series.begin(number).since(context.start),
                );
                Err(Invalid::new("stagger", message))
            }
            None => Ok(series),
        }
    }

    /// The beginning of a flow.
    pub fn begin(&self, number: u64) -> Time {
        let turn = if self.reversed { self.count - 1 - number } else { number };
        self.start + self.stagger * turn
    }
}
