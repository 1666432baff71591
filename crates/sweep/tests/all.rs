//! Tests of whole sweeps.

mod indices;
mod seals;
mod support;
mod sweeps;
