//! Parts that several disciplines share and that are not disciplines themselves.

pub(crate) mod admission;
#[macro_use]
pub(crate) mod classes;
pub(crate) mod clock;
#[macro_use]
pub(crate) mod guaranteed;
pub(crate) mod priority;
pub(crate) mod sent;
pub(crate) mod served;
pub(crate) mod stamped;
pub(crate) mod taking;
pub(crate) mod thresholds;
pub(crate) mod warnings;
