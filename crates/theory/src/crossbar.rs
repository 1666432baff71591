//! Crossbar switches with queues at their inputs: what they carry, how long one waits, how fast the fabric must be.
//!
//! A switch has N inputs and N outputs. Time is in slots: one slot is what a port needs for one cell. In a slot an input
//! sends at most one cell and an output receives at most one, so what crosses is a matching of inputs and outputs. A load
//! is a share of what a port carries, 0 to 1. A fabric with speedup s makes s matchings a slot.
//!
//! | file | what |
//! |---|---|
//! | [`fifo`] | one queue per input, first come first served: how much is lost to heads that wait |
//! | [`cells`] | queues at the outputs, and parallel iterative matching, cell by cell |
//! | [`mix`] | packets of several cells, some of them short |
//! | [`preemption`] | short packets that interrupt long ones: P-SPF, as its paper has it and as it should be |
//! | [`rates`] | matrices of rates: what is admissible, and a schedule for it |
//! | [`speedup`] | how much faster than its ports a fabric must be |

pub mod cells;
pub mod fifo;
pub mod mix;
pub mod preemption;
pub mod rates;
pub mod speedup;

/// How many inputs and as many outputs a switch has: N, or the limit of large N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// N. Formulas answer `None` for 0.
    Finite(u32),
    /// N → ∞.
    Infinite,
}

impl Ports {
    /// (N − 1)/N, the share of traffic that a given input does not send, or a given output does not get, when all are
    /// alike. `None` for no ports.
    fn others(self) -> Option<f64> {
        match self {
            Ports::Finite(0) => None,
            Ports::Finite(n) => Some(f64::from(n - 1) / f64::from(n)),
            Ports::Infinite => Some(1.0),
        }
    }
}
