//! Classes: what every discipline with classes shares. [`filter`] and [`headers`] choose the class of a
//! packet, [`ranges`] writes many classes as one, and [`leaves`] contains the disciplines in which packets
//! wait, with their counters. [`service`] is what a class is guaranteed. [`bands`] are classes with numbers;
//! [`plan`] and [`nested`] are classes with names, in a tree.

#[macro_use]
pub(crate) mod bands;
pub(crate) mod filter;
pub(crate) mod headers;
pub(crate) mod leaves;
pub(crate) mod nested;
pub(crate) mod plan;
pub(crate) mod ranges;
pub(crate) mod service;

pub(crate) use bands::{BandFilter, Bands, Children};
pub(crate) use filter::{Classifier, Filter};
pub(crate) use leaves::{Leaf, Leaves};
pub(crate) use nested::Nested;
pub(crate) use plan::{ClassConfig, Plan};
pub use service::ClassService;
