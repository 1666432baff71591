//! Mechanisms that several disciplines share, each under its own name and with its own tests.

pub mod codel;
mod flow_map;
pub mod red;

pub use flow_map::FlowMap;
