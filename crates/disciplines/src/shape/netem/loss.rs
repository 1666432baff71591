//! Losses of `netem`: independent, correlated, or by a chain of states.

use giveway_qdisc::blocks::Gilbert;
use giveway_qdisc::{Invalid, Rng, Share};

use super::delay::Correlated;

/// A decision with a probability and a correlation with the one before.
#[derive(Debug)]
pub(super) struct Chance {
    share: Share,
    correlated: Correlated,
}

impl Chance {
    pub fn new(share: Share, correlation: Share, rng: Rng) -> Chance {
        Chance { share, correlated: Correlated::new(correlation, rng) }
    }

    /// True if the probability is above zero.
    #[inline]
    pub fn is_possible(&self) -> bool {
        self.share.get() > 0.0
    }

    /// The next decision.
    #[inline]
    pub fn next(&mut self) -> bool {
        self.is_possible() && self.correlated.uniform() < self.share.get()
    }
}

/// The losses.
#[derive(Debug)]
pub(super) enum Loss {
    Random(Chance),
    Gilbert { model: Gilbert, in_bad: bool, rng: Rng },
    States { model: States, state: State, rng: Rng },
}

impl Loss {
    /// The one model that has parameters: a probability with a correlation, `gemodel` or `state`.
    pub fn new(
        (share, correlation): (Share, Share),
        gemodel: &[Share],
        state: &[Share],
        rng: Rng,
    ) -> Result<Loss, Invalid> {
        let chosen = [share.get() > 0.0, !gemodel.is_empty(), !state.is_empty()];
        if chosen.iter().filter(|chosen| **chosen).count() > 1 {
            let message = "loss, gemodel and state are three models: write one of them";
            return Err(Invalid::new("loss", message));
        }
        if let [p, rest @ ..] = gemodel {
            let part = |at: usize, default| rest.get(at).copied().unwrap_or(default);
            let model = Gilbert {
                p: *p,
                r: part(0, rest_of(*p)),
                bad: part(1, rest_of(Share::default())),
                good: part(2, Share::default()),
            };
            at_most("gemodel", gemodel, 4, "[p r 1-h 1-k]")?;
            return Ok(Loss::Gilbert { model, in_bad: false, rng });
        }
        if !state.is_empty() {
            at_most("state", state, 5, "[p13 p31 p32 p23 p14]")?;
            return Ok(Loss::States { model: States::new(state)?, state: State::Good, rng });
        }
        Ok(Loss::Random(Chance::new(share, correlation, rng)))
    }

    /// True if the next packet is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self {
            Loss::Random(chance) => chance.next(),
            Loss::Gilbert { model, in_bad, rng } => model.loses(in_bad, rng),
            Loss::States { model, state, rng } => {
                *state = model.after(*state, rng.uniform());
                matches!(state, State::BurstLoss | State::Isolated)
            }
        }
    }

    /// Returns to the state of good reception.
    pub fn reset(&mut self) {
        match self {
            Loss::Random(_) => {}
            Loss::Gilbert { in_bad, .. } => *in_bad = false,
            Loss::States { state, .. } => *state = State::Good,
        }
    }
}

fn rest_of(share: Share) -> Share {
    Share::new(1.0 - share.get()).expect("the rest of a share is one")
}

fn at_most(parameter: &'static str, list: &[Share], most: usize, form: &str) -> Result<(), Invalid> {
    if list.len() > most {
        return Err(Invalid::new(parameter, format!("{} values are too many: write {form}", list.len())));
    }
    Ok(())
}

/// A state of the chain of Salsano et al., which a packet meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// 1: good reception.
    Good,
    /// 2: good reception within a burst.
    BurstGood,
    /// 3: loss within a burst.
    BurstLoss,
    /// 4: an isolated loss.
    Isolated,
}

/// The probabilities of the transitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct States {
    p13: f64,
    p31: f64,
    p32: f64,
    p23: f64,
    p14: f64,
}

impl States {
    fn new(list: &[Share]) -> Result<States, Invalid> {
        let part = |at: usize, default: f64| list.get(at).map_or(default, |share| share.get());
        let p13 = part(0, 0.0);
        let states =
            States { p13, p31: part(1, 1.0 - p13), p32: part(2, 0.0), p23: part(3, 1.0), p14: part(4, 0.0) };
        for (sum, names) in
            [(states.p13 + states.p14, "p13 and p14"), (states.p31 + states.p32, "p31 and p32")]
        {
            // A sum of rounded shares may be a trifle above one.
            if sum > 1.0 + 1e-9 {
                let message = format!("{names} leave the same state, so their sum is at most 100 %");
                return Err(Invalid::new("state", message));
            }
        }
        Ok(states)
    }

    /// The next state, by a uniform number in 0 to 1.
    fn after(&self, state: State, draw: f64) -> State {
        match state {
            State::Good if draw < self.p13 => State::BurstLoss,
            State::Good if draw < self.p13 + self.p14 => State::Isolated,
            State::Good | State::Isolated => State::Good,
            State::BurstLoss if draw < self.p31 => State::Good,
            State::BurstLoss if draw < self.p31 + self.p32 => State::BurstGood,
            State::BurstGood if draw >= self.p23 => State::BurstGood,
            State::BurstLoss | State::BurstGood => State::BurstLoss,
        }
    }
}
