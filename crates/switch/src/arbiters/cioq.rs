//! CIOQ, combined input and output queueing with critical cells first: at a speedup of 2, the delays of
//! output queueing.
//!
//! # Principles
//! - An output-queued switch is computed alongside. It gives each arriving cell its deadline: the slot in
//!   which the link of its output would send it, first come, first served.
//! - Outputs send the cell with the smallest deadline of those that have crossed.
//! - Each input keeps its cells in one list. The cushion of a new cell is the number of cells that have
//!   crossed to its output and will leave before it. The cell is inserted behind as many cells as its
//!   cushion, or at the end of a shorter list. A cell with a cushion of 0 is critical and comes first.
//! - In each slot of the fabric inputs and outputs are matched stably: inputs prefer cells by their list,
//!   outputs by their deadline. So for each cell that stays, one ahead of it in the list crosses, or its
//!   cushion grows. Two slots of the fabric compensate for at most one cell that is inserted ahead of it and
//!   one that its output sends: the cushion of a cell is never smaller than the number of cells ahead of it,
//!   and each cell has crossed by its deadline.
//! - With packets of one cell, at most one per slot and input, and a speedup of 2, every cell leaves in the
//!   slot in which output queueing would send it, whatever arrives. With less speedup the same rules have no
//!   guarantee.
//!
//! # Deviations
//! - In the article the outputs send before the second matching of a slot; here they send after both. At
//!   speedups between 1 and 2 a link sends cells that have crossed by the start of its slot.
//! - A speedup of 2 - 1/N, with some slots left out, is enough for the bound of the article; here only 2
//!   guarantees it.
//! - Cells of larger packets arrive in their slots and have their own deadlines; a packet has left with its
//!   last cell. `oq` sends only complete packets, so the two agree on packets of one cell only. Where all
//!   cells of a packet arrive at once (Bernoulli arrivals, or store_and_forward), an input gets more than one
//!   in a slot, and the guarantee does not hold.
//! - There is only cell mode.
//! - A packet counts as gone through when it is sent; with `oq`, whose links compute all times in advance,
//!   when it joins its queue. At the ends of the measurement interval a few packets are counted by one of
//!   them and not by the other.
//!
//! # Cost
//! At most a step for each cell that waits at an input, in each slot of the fabric, and at least N. Heaps at
//! the outputs.
//!
//! # References
//! S.-T. Chuang, A. Goel, N. McKeown, B. Prabhakar, Matching Output Queueing with a Combined
//! Input/Output-Queued Switch, IEEE Journal on Selected Areas in Communications 17(6), 1999: critical cells
//! first, theorem 1; D. Gale, L. Shapley, College Admissions and the Stability of Marriage, The American
//! Mathematical Monthly 69(1), 1962.

use giveway_qdisc::Invalid;

use super::config::config;
use super::oq::NoArbiter;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext};
use crate::options::{Mode, Queueing};
use crate::speed::Speedup;

config!(none, "CIOQ has no parameters.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "combined input and output queueing, speedup 2: delays as with output queueing";
    const MODE: Mode = Mode::Cell;
    const QUEUEING: Queueing = Queueing::Combined;
    const SPEEDUP: Speedup = Speedup::TWO;

    /// The fabric does not call an arbiter; its queues decide.
    fn arbiter<const W: usize>(&self, _: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(NoArbiter))
    }
}
