//! The tests of this crate, in one program that is linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod allocations;
mod arbiters;
mod captures;
mod cioq;
mod classics;
mod every_mode;
mod maxima;
mod outside;
mod p_spf_table;
mod quantiles;
mod speedup;
mod theory;
mod traces;
mod transcription;

mod bands;
mod support;
