//! Matchings of a bipartite graph, one of which a crossbar needs in every slot: of maximum size, of maximum
//! weight, and the greedy one.
//!
//! A graph is given as rows of bits, weights are whole numbers, and every buffer is allocated once. Several
//! matchings may be equally good, and the choice matters: a switch that always prefers the same ports loses
//! about 0.4 % of its throughput permanently. So all algorithms take the ports in a given [`order`].

mod assignment;
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
