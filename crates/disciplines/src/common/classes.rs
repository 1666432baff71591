//! Classes: what every discipline with classes shares. [`filter`] chooses the class of a packet, [`ranges`] writes
//! many classes as one, [`leaves`] has the disciplines in which packets wait, with their counters, and [`bands`] is a
//! numbered list of them.

pub(crate) mod bands;
pub(crate) mod filter;
pub(crate) mod leaves;
pub(crate) mod ranges;

pub(crate) use bands::{BandFilter, Bands, Children};
pub(crate) use filter::{Classifier, Filter};
pub(crate) use leaves::{Leaf, Leaves};
