//! Matchings of a bipartite graph, which is what a crossbar needs in every slot: of maximum size, of maximum weight, and
//! the greedy one.
//!
//! A graph is given as rows of bits, weights are whole numbers, and every buffer is made once. None of them is the only
//! answer to its question, and which of several is taken matters: a switch that always prefers the same ports loses
//! some four thousandths of its throughput for ever. So all of them take their ports in an [`order`] that is told.

pub(crate) mod greedy;
pub(crate) mod order;
pub(crate) mod size;
mod small;
pub(crate) mod weight;
pub(crate) mod weights;

pub use order::Ties;
pub use weights::Weight;

#[cfg(test)]
pub(crate) mod table;
#[cfg(test)]
mod tests;
