//! Reasons of refusals.

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The link has less unreserved rate at some time between start and finish.
    NoRoom = 1,
    /// The table is full.
    TableFull = 2,
    /// The rate is zero.
    NoRate = 3,
    /// The finish is not after the start.
    Backwards = 4,
    /// The finish is in the past.
    Over = 5,
    /// Another owner has a reservation for the flow.
    NotYours = 6,
    /// The rate is below the smallest rate of the router.
    TooLittle = 7,
    /// The sender has reached the limit of one owner on rate or flows.
    Quota = 8,
    /// Senders without a key have reached their common limit.
    OpenFull = 9,
    /// The message, or a later one of the same sender, was received before.
    Replayed = 10,
    /// The clocks of sender and router differ too much to tell whether the message is new.
    Clock = 11,
    /// The message is of an older version.
    OldVersion = 12,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 12] = [
        Reason::NoRoom,
        Reason::TableFull,
        Reason::NoRate,
        Reason::Backwards,
        Reason::Over,
        Reason::NotYours,
        Reason::TooLittle,
        Reason::Quota,
        Reason::OpenFull,
        Reason::Replayed,
        Reason::Clock,
        Reason::OldVersion,
    ];
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::NoRoom => "the link has too little unreserved rate in that time: request a lower rate, or another time",
            Reason::TableFull => "the table of reservations is full: try again when other reservations have ended",
            Reason::NoRate => "the rate is zero: request at least 1 bit/s",
            Reason::Backwards => "the finish is not after the start: request a later finish",
            Reason::Over => "the finish is in the past: request a finish in the future",
            Reason::NotYours => "another machine has reserved a rate for this flow, and only that machine can change it",
            Reason::TooLittle => {
                "the rate is below the smallest rate of the router (--reserve-least): request a higher rate"
            }
            Reason::Quota => {
                "this machine has reserved as much as one machine may (--reserve-owner-share, --reserve-owner-flows): \
                 end another reservation, or request less"
            }
            Reason::OpenFull => {
                "machines without a key have reserved as much as they may together (--reserve-open): use a key, or \
                 request less"
            }
            Reason::Replayed => {
                "the router has received this message or a later one before, or has just started: send the request again"
            }
            Reason::Clock => {
                "the clocks of this machine and the router differ by more than the router allows (--reserve-skew): \
                 set both, as with NTP"
            }
            Reason::OldVersion => {
                "the request is from an older version of Giveway: use the same version on both sides"
            }
        })
    }
}
