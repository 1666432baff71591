//! Models of loss.

use giveway_qdisc::blocks::Gilbert;
use giveway_qdisc::{Rng, Share, Span, Time};

/// The packets that a wire loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each with this probability, independently of all others.
    Random(Share),
    /// In bursts, by the model of Gilbert and Elliott.
    Gilbert(Gilbert),
    /// A share of the packets that end their transmission in the first part of each interval but the first:
    /// the seam of a hand-over.
    Handover {
        /// The interval between two hand-overs.
        every: Span,
        /// The length of the seam.
        lasts: Span,
        /// The probability of a loss in it.
        percent: Share,
    },
}

impl Loss {
    /// True if it never loses a packet.
    pub fn is_none(&self) -> bool {
        match self {
            Loss::Random(share) => share.get() == 0.0,
            Loss::Gilbert(Gilbert { p, bad, good, .. }) => {
                good.get() == 0.0 && (p.get() == 0.0 || bad.get() == 0.0)
            }
            Loss::Handover { lasts, percent, .. } => lasts.is_zero() || percent.get() == 0.0,
        }
    }

    /// The mean share of lost packets.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Random(share) => share.get(),
            Loss::Gilbert(model) => model.mean(),
            Loss::Handover { every, lasts, percent } => percent.get() * lasts.as_s() / every.as_s(),
        }
    }

    /// True if the next packet, whose transmission ends at `end`, is lost. Hand-overs are counted from
    /// `start`. `in_bad` is the state.
    #[inline]
    pub(crate) fn loses(&self, end: Time, start: Time, in_bad: &mut bool, rng: &mut Rng) -> bool {
        match self {
            // Without loss no random number is drawn, so that a lossless wire leaves its stream untouched.
            Loss::Random(share) => share.get() > 0.0 && rng.uniform() < share.get(),
            Loss::Gilbert(model) => model.loses(in_bad, rng),
            Loss::Handover { every, lasts, percent } => {
                let since = end.since(start);
                let passed = since.as_ps() % every.as_ps().max(1);
                let at_a_seam = since >= *every && passed < lasts.as_ps();
                at_a_seam && rng.uniform() < percent.get()
            }
        }
    }
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::Random(Share::default())
    }
}
