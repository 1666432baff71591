//! Tests of whole sweeps.

mod indices;
mod support;
mod sweeps;
