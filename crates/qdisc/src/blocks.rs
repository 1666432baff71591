//! Mechanisms that several disciplines share, each under its own name and with its own tests.

mod flow_map;

pub use flow_map::FlowMap;
