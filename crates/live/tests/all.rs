//! The tests of this crate, in one program: one link for all of them.

mod fail_open;
mod fragments;
mod life;
mod measure;
mod namespaces;

mod bed;
