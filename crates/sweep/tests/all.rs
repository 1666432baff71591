//! Tests of whole sweeps.

mod support;
mod sweeps;
