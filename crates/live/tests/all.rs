//! The integration tests of this crate, as modules of one program, which is linked once.

mod fail_open;
mod fragments;
mod life;
mod measure;
mod namespaces;
mod varying;

mod bed;
