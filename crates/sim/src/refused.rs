//! The reasons for which a link cannot be changed while a simulation runs.

/// The reason for which a change of a link is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChangeError {
    /// The network has no link of this number.
    NoLink,
    /// The departures of the link are computed, because the simulation is not interactive.
    Computed,
    /// The rate of the link follows a profile.
    RateVaries,
    /// The delay of the link follows a profile.
    DelayVaries,
    /// The loss of the link follows a model, and is more than a probability.
    LossVaries,
    /// A rate of zero stops a link for ever. Give it an outage instead.
    NoRate,
}

impl std::fmt::Display for LinkChangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LinkChangeError::NoLink => "the network has no link of this number",
            LinkChangeError::Computed => {
                "the departures of this link are computed in advance: make the simulation interactive before its first step"
            }
            LinkChangeError::RateVaries => "the rate of this link varies by itself, and cannot be set",
            LinkChangeError::DelayVaries => "the delay of this link varies by itself, and cannot be set",
            LinkChangeError::LossVaries => "the loss of this link follows a model, and cannot be set to a probability",
            LinkChangeError::NoRate => "a rate must be above 0 bit/s, for example \"1mbit\"",
        })
    }
}
impl std::error::Error for LinkChangeError {}
