//! A run, from event to event.
pub struct Plan;
