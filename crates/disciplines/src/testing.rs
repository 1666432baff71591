//! Test support: traces as text, models that are written as plainly as possible, and small drivers.

pub(crate) mod line;
pub(crate) mod rates;
pub(crate) mod reserved;
mod rfcs;
pub(crate) mod shares;
pub(crate) mod trace;
