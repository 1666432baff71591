//! Parts that several disciplines share and that are not disciplines themselves.

#[macro_use]
pub(crate) mod guaranteed;
pub(crate) mod sent;
pub(crate) mod thresholds;
