//! CIOQ, combined input and output queueing with critical cells first: at a speedup of 2, the delays of output queueing.
//!
//! # Principles
//! - Beside the switch runs the account of one with output queues: it gives each cell that arrives its deadline, the slot in
//!   which the link of its output would send it, first come first served.
//! - Outputs send the cell with the smallest deadline of those that have crossed.
//! - Each input keeps its cells in one list. A new cell is put behind as many cells as its cushion allows: as many as wait at
//!   its output and will leave before it; at the end of the list if that has fewer. With a cushion of 0 it is critical and
//!   comes first.
//! - In each slot of the fabric inputs and outputs are matched stably: inputs prefer cells by their list, outputs by their
//!   deadline. So for each cell that stays, one ahead of it in the list goes, or its cushion grows. Two slots of the fabric
//!   make up for the at most one cell that comes ahead of it and the one that its output sends: no cell's cushion is ever
//!   smaller than the number of cells ahead of it, and each has crossed when its deadline comes.
//! - With packets of one cell, at most one in a slot and input, and a speedup of 2, every cell leaves in the very slot in
//!   which output queueing would send it, whatever arrives. With less, the same rules do as well as they can.
//!
//! # Deviations
//! - The article has the second matching of a slot after the outputs have sent; here they send after both. At speedups
//!   between 1 and 2 a link sends what has crossed by the begin of its slot.
//! - 2 - 1/N are enough for the article's bound, with a slot left out here and there; here only 2 has the promise.
//! - Cells of larger packets come in their slots and have deadlines of their own; a packet has left with its last cell. `oq`
//!   sends whole packets that it has whole, so the two agree on packets of one cell only. Where all cells of a packet come at
//!   once (Bernoulli arrivals, or store_and_forward), an input gets more than one in a slot, and the promise does not hold.
//! - Only cells: there is no other mode.
//! - A packet counts as gone through when it is sent; with `oq`, whose links know all in advance, when it joins its queue. At
//!   the ends of the measurement interval a few packets are counted in one of them and not in the other.
//!
//! # Cost
//! At most a look at each cell that waits at an input, in each slot of the fabric; N at least. Heaps at the outputs.
//!
//! # References
//! S.-T. Chuang, A. Goel, N. McKeown, B. Prabhakar, Matching Output Queueing with a Combined Input/Output-Queued Switch, IEEE
//! Journal on Selected Areas in Communications 17(6), 1999: critical cells first, theorem 1; D. Gale, L. Shapley, College
//! Admissions and the Stability of Marriage, The American Mathematical Monthly 69(1), 1962.

use qdisc::Invalid;

use super::config::config;
use super::oq::NoArbiter;
use crate::arbiter::{Arbiter, Site};
use crate::options::{Mode, Queueing};
use crate::registry::ArbiterConfig;
use crate::speed::Speedup;

config!(none, "CIOQ has no parameters.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "combined input and output queueing, speedup 2: delays as with output queueing";
    const MODE: Mode = Mode::Cell;
    const QUEUEING: Queueing = Queueing::Combined;
    const SPEEDUP: Speedup = Speedup::TWO;

    /// Nobody is asked: it is the queues that decide.
    fn arbiter<const W: usize>(&self, _: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(NoArbiter))
    }
}
