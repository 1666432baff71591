//! Crossbar switches with queues at their inputs: throughput, waiting times, and the speedup that the fabric
//! needs.
//!
//! A switch has N inputs and N outputs. Time is in slots; one slot is the transmission time of a cell. In a
//! slot an input sends at most one cell and an output receives at most one, so the cells that cross form a
//! matching of inputs and outputs. A load is a share of the rate of a port, 0 to 1. A fabric with speedup s
//! makes s matchings per slot.
//!
//! | module | contents |
//! |---|---|
//! | [`fifo`] | one queue per input, first come, first served: throughput with head-of-line blocking |
//! | [`cells`] | output queueing and parallel iterative matching of single cells |
//! | [`mix`] | mixes of packet sizes |
//! | [`preemption`] | short packets that preempt long ones: formulae of the P-SPF paper, and corrections |
//! | [`rates`] | matrices of rates: admissibility, and a schedule for admissible ones |
//! | [`speedup`] | speedup that a fabric needs |

pub mod cells;
pub mod fifo;
pub mod mix;
pub mod preemption;
pub mod rates;
pub mod speedup;

/// Number of inputs, and of outputs, of a switch: N, or the limit of large N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// N. Formulas return `None` for 0.
    Finite(u32),
    /// N → ∞.
    Infinite,
}

impl Ports {
    /// (N − 1)/N, the share of uniform traffic that a given input does not send, or a given output does not
    /// receive. `None` for no ports.
    fn others(self) -> Option<f64> {
        match self {
            Ports::Finite(0) => None,
            Ports::Finite(n) => Some(f64::from(n - 1) / f64::from(n)),
            Ports::Infinite => Some(1.0),
        }
    }
}
