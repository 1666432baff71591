//! Models of loss.

use giveway_qdisc::{Rng, Share, Span, Time};

/// The packets that a wire loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each with this probability, independently of all others.
    Random(Share),
    /// The model of Gilbert and Elliott with the parameters of `netem`'s `loss gemodel`: a good and a bad
    /// state, which change before a packet. A stationary share of p / (p + r) of the packets meets the bad
    /// state, whose runs have a mean of 1 / r packets.
    Gilbert {
        /// Probability that the good state ends.
        p: Share,
        /// Probability that the bad state ends.
        r: Share,
        /// Probability of a loss in the bad state, 1-h.
        bad: Share,
        /// Probability of a loss in the good state, 1-k.
        good: Share,
    },
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
            Loss::Gilbert { p, bad, good, .. } => good.get() == 0.0 && (p.get() == 0.0 || bad.get() == 0.0),
            Loss::Handover { lasts, percent, .. } => lasts.is_zero() || percent.get() == 0.0,
        }
    }

    /// The mean share of lost packets.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Random(share) => share.get(),
            Loss::Gilbert { p, r, bad, good } => {
                let (p, r) = (p.get(), r.get());
                let in_bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
                in_bad * bad.get() + (1.0 - in_bad) * good.get()
            }
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
            Loss::Gilbert { p, r, bad, good } => {
                let leaves = if *in_bad { r } else { p };
                *in_bad ^= rng.uniform() < leaves.get();
                let share = if *in_bad { bad } else { good };
                rng.uniform() < share.get()
            }
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
