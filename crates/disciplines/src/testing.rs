//! Test support: traces as text, simple reference models, and small drivers.

pub(crate) mod events;
pub(crate) mod levels;
pub(crate) mod rates;
pub(crate) mod reserved;
mod rfcs;
pub(crate) mod shares;
pub(crate) mod trace;
