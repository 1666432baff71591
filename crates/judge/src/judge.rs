//! The judgement of a candidate.
//!
//! 1. It runs in the public cells. Mistakes, packets that it keeps and acknowledgements that it delays are
//!    found in each run.
//! 2. Two runs are repeated: they must be equal.
//! 3. The public cells run again behind a hidden change of clock, count, names and seed. If outcomes differ
//!    by more than chance, each part runs alone, to say which one the candidate noticed.
//! 4. It runs in the held-out cells.
//!
//! A rejection is read by the program that searches. What it says about public runs may help: it names the
//! cell, the seed and the numbers. Runs that the secret has drawn (behind a hidden change, or held out) add
//! only the kind of the reason to the answer ([`Rejected::veiled`]): an exception could carry the
//! rate of a held-out cell in its text, and a thousand rejections would tell the cells one by one. The size
//! and the fuel of a rejected candidate count its runs in public cells only, for the same reason.

use std::collections::BTreeMap;

use giveway_evaluate::{Cell, EvaluateError, Outcome, Prepared, Question, Timing, prepare, run};
use giveway_qdisc::{Span, Streams};
use giveway_trials::{Frontend, Memory};

use crate::candidate::Candidate;
use crate::gain::{Score, of_cell, systematic};
use crate::perturbation::{Part, Perturbation};
use crate::rejected::{Code, Rejected};
use crate::split::{HeldOut, held_out, public, streams};
use crate::watch::{LATE, Seen};
use crate::work::{Bench, Ended, Observed, Purpose, Stores};

/// The request of a judgement.
#[derive(Clone, Debug)]
pub struct Request {
    /// The discipline to compare with.
    pub baseline: String,
    /// The text that draws held-out cells and hidden changes.
    pub secret: String,
    /// The number of seeds of public and of held-out cells.
    pub seeds: u32,
    /// The number of held-out cells that are not public.
    pub unseen: usize,
    /// The number of threads.
    pub jobs: usize,
}

impl Default for Request {
    fn default() -> Request {
        Request { baseline: "fq_codel".to_owned(), secret: String::new(), seeds: 2, unseen: 12, jobs: 1 }
    }
}

/// A judgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The name of the candidate.
    pub candidate: String,
    /// The discipline that it was compared with.
    pub baseline: String,
    /// The reason for which it is rejected.
    pub rejected: Option<Rejected>,
    /// The gains in the public cells, by name.
    pub cells: Vec<(String, BTreeMap<Question, f64>)>,
    /// The score in the public cells.
    pub public: Option<Score>,
    /// The score in all held-out cells.
    pub held_out: Option<Score>,
    /// The mean fuel for each packet; `None` for a candidate without fuel.
    pub fuel: Option<f64>,
    /// The runs of the candidate, and the packets that judged links sent in them.
    pub size: (u64, u64),
}

impl Judgement {
    /// The judgement of a candidate that is rejected before it runs.
    pub fn refused(candidate: &str, baseline: &str, rejected: Rejected) -> Judgement {
        Judgement {
            candidate: candidate.to_owned(),
            baseline: baseline.to_owned(),
            rejected: Some(rejected),
            ..Judgement::default()
        }
    }
}

/// The longest time that a link may be free while packets are queued.
const IDLE: Span = Span::s(1);
/// The share of packets that may stay long after a later packet of their flow has left. Hash tables whose
/// slots change hands cause up to 1.2 % (CAKE with a flow for each packet).
const OVERTAKEN: f64 = 0.05;
/// The minimum number of acknowledgements for a judgement, and the delays that are rejected: a mean time on a
/// free link, seconds; a mean sojourn time, seconds; the ratio of the first to the mean of other packets; and
/// the ratio of the second to the mean of all bytes. On a link that carries little but acknowledgements the
/// second ratio is near 1, whatever goes first: they wait for each other.
const ACKS: u64 = 50;
const HELD_S: f64 = 0.002;
const BEHIND_S: f64 = 0.02;
const TIMES: f64 = 5.0;
const TIMES_OF_ALL: f64 = 3.0;
/// The share of the packets of the baseline that a candidate must send, and the share of cells.
const BLOCKED: f64 = 0.5;

/// The number of runs that are repeated.
const REPEATED: usize = 2;

/// Judges a candidate.
///
/// # Errors
/// If the baseline is wrong, or the front end stopped it. A mistake of the candidate is a judgement.
pub fn judge(
    candidate: &dyn Candidate,
    request: &Request,
    frontend: &dyn Frontend,
) -> Result<Judgement, EvaluateError> {
    let stores = Stores { candidate: &Memory::default(), baseline: &Memory::default() };
    judge_with(candidate, request, stores, frontend)
}

/// Like [`judge`]. Runs that the stores have are taken from them, and they keep the others: a judgement that
/// was stopped resumes.
///
/// # Errors
/// As [`judge`].
pub fn judge_with(
    candidate: &dyn Candidate,
    request: &Request,
    stores: Stores<'_>,
    frontend: &dyn Frontend,
) -> Result<Judgement, EvaluateError> {
    let mut judgement = Judgement {
        candidate: candidate.name().to_owned(),
        baseline: request.baseline.clone(),
        ..Judgement::default()
    };
    let secret = streams(&request.secret);
    let bench = Bench { stores, jobs: request.jobs, frontend };
    let (used, used_in_public) = (Used::default(), Used::default());
    let mut work = Work { candidate, request, bench, used, used_in_public };
    let ended = work.judged(&secret, &mut judgement);
    let Used { fuel: (fuel, arrived), size } = match ended {
        Ok(()) => work.used,
        Err(Ended::Rejected(rejected)) => {
            judgement.rejected = Some(rejected);
            judgement.held_out = None;
            work.used_in_public
        }
        Err(Ended::Other(error)) => return Err(error),
    };
    judgement.size = size;
    judgement.fuel = (arrived > 0 && fuel > 0).then(|| fuel as f64 / arrived as f64);
    Ok(judgement)
}

/// The step between the public cells of a sample.
const SAMPLED: usize = 8;

/// The runs of a judgement, and of a sample of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The runs of the sample.
    pub runs: usize,
    /// All runs, unless the candidate is rejected.
    pub all: usize,
}

/// Runs a candidate in a few public cells, so that a caller with a clock can estimate the time of the
/// judgement. The stores keep the runs, and [`judge_with`] does not repeat them.
///
/// # Errors
/// As [`judge`]. A mistake of the candidate is none: the judgement finds it again.
pub fn sample(
    candidate: &dyn Candidate,
    request: &Request,
    stores: Stores<'_>,
    frontend: &dyn Frontend,
) -> Result<Sample, EvaluateError> {
    let cells: Vec<Cell> = public().into_iter().step_by(SAMPLED).collect();
    let bench = Bench { stores, jobs: request.jobs, frontend };
    let prepared = prepared(&cells, candidate.stands_for(), &[1])?;
    match bench.all(candidate, &prepared, only("sample")) {
        Err(Ended::Other(error)) => return Err(error),
        Ok(_) | Err(Ended::Rejected(_)) => {}
    }
    // Public cells plainly and behind a hidden change, all held-out cells, and two repetitions.
    let all = request.seeds as usize * (3 * public().len() + request.unseen) + REPEATED;
    Ok(Sample { runs: cells.len(), all })
}

/// Like [`sample`], of the baseline.
///
/// # Errors
/// As [`judge`].
pub fn sample_baseline(
    request: &Request,
    stores: Stores<'_>,
    frontend: &dyn Frontend,
) -> Result<Sample, EvaluateError> {
    let cells: Vec<Cell> = public().into_iter().step_by(SAMPLED).collect();
    let prepared = prepared(&cells, &request.baseline, &[1])?;
    run(&prepared, stores.baseline, request.jobs, "sample of the baseline", frontend)?;
    let all = request.seeds as usize * (2 * public().len() + request.unseen);
    Ok(Sample { runs: cells.len(), all })
}

struct Work<'a> {
    candidate: &'a dyn Candidate,
    request: &'a Request,
    bench: Bench<'a>,
    /// Of all runs, and of those in public cells without a hidden change.
    used: Used,
    used_in_public: Used,
}

/// The sums over runs of a candidate.
#[derive(Clone, Copy, Default)]
struct Used {
    /// Fuel, and the packets that arrived.
    fuel: (u64, u64),
    /// Runs, and the packets that judged links sent.
    size: (u64, u64),
}

impl Used {
    fn add(&mut self, observed: &Observed) {
        self.fuel = (self.fuel.0 + observed.fuel.0, self.fuel.1 + observed.fuel.1);
        self.size = (self.size.0 + 1, self.size.1 + observed.outcome.packets);
    }
}

impl Work<'_> {
    fn judged(&mut self, secret: &Streams, judgement: &mut Judgement) -> Result<(), Ended> {
        let seeds: Vec<u64> = (1..=u64::from(self.request.seeds)).collect();
        let cells = public();
        let first = self.candidate(&cells, &seeds, only("public cells"))?;
        self.watched(&cells, &seeds, &first)?;
        self.repeated(&cells, &first)?;
        let first = outcomes(first);
        let baseline = self.baseline(&cells, &seeds, "baseline")?;
        blocked(&cells, &baseline, &first)?;
        let gains: Vec<BTreeMap<Question, f64>> = gains(&cells, &baseline, &first);
        judgement.public = Some(Score::of(&gains));
        judgement.cells = cells.iter().map(|cell| cell.name.clone()).zip(gains.iter().cloned()).collect();
        self.hidden(secret, &cells, &seeds, &first)?;
        let HeldOut { disguised, unseen, seeds } =
            held_out(&cells, secret, self.request.unseen, self.request.seeds)?;
        let both: Vec<Cell> = disguised.iter().chain(&unseen).cloned().collect();
        let held = self.candidate(&both, &seeds, Purpose { secret: true, ..only("held-out cells") })?;
        self.watched(&both, &seeds, &held).map_err(veiled)?;
        let base = self.baseline(&both, &seeds, "baseline, held out")?;
        let held = self::gains(&both, &base, &outcomes(held));
        judgement.held_out = Some(Score::of(&held));
        memorised(&gains, &held)?;
        Ok(())
    }

    fn candidate(
        &mut self,
        cells: &[Cell],
        seeds: &[u64],
        purpose: Purpose<'_>,
    ) -> Result<Vec<Vec<Observed>>, Ended> {
        let prepared = prepared(cells, self.candidate.stands_for(), seeds)?;
        let found = self.bench.all(self.candidate, &prepared, purpose)?;
        for observed in found.iter().flatten() {
            self.used.add(observed);
            if !purpose.secret {
                self.used_in_public.add(observed);
            }
        }
        Ok(found)
    }

    fn baseline(&self, cells: &[Cell], seeds: &[u64], title: &str) -> Result<Vec<Vec<Outcome>>, Ended> {
        let prepared = prepared(cells, &self.request.baseline, seeds)?;
        let Bench { stores, jobs, frontend } = self.bench;
        let found = run(&prepared, stores.baseline, jobs, title, frontend)?;
        Ok(found.into_iter().map(|mut cell| cell.remove(0)).collect())
    }

    /// Rejects a candidate that keeps packets or delays acknowledgements.
    fn watched(&self, cells: &[Cell], seeds: &[u64], found: &[Vec<Observed>]) -> Result<(), Ended> {
        for (cell, found) in cells.iter().zip(found) {
            for (seed, observed) in seeds.iter().zip(found) {
                if let Some(rejected) = observed.seen.iter().find_map(keeps) {
                    return Err(Ended::Rejected(rejected.at(&cell.name, *seed)));
                }
            }
        }
        Ok(())
    }

    /// Rejects a candidate with randomness that does not come from the seed.
    fn repeated(&mut self, cells: &[Cell], found: &[Vec<Observed>]) -> Result<(), Ended> {
        let places: [usize; REPEATED] = [0, cells.len() / 2];
        for place in places {
            let purpose = Purpose { again: true, ..only("repetition") };
            let again = self.candidate(&cells[place..=place], &[1], purpose)?;
            if again[0][0].outcome.fingerprint != found[place][0].outcome.fingerprint {
                let sentence = "two runs with the same seed differ: take random numbers from the seed only";
                let rejected = Rejected::new(Code::Random, sentence.to_owned());
                return Err(Ended::Rejected(rejected.at(&cells[place].name, 1)));
            }
        }
        Ok(())
    }

    /// Rejects a candidate that notices a hidden change.
    fn hidden(
        &mut self,
        secret: &Streams,
        cells: &[Cell],
        seeds: &[u64],
        plain: &[Vec<Outcome>],
    ) -> Result<(), Ended> {
        let mut noticed = |parts: &[Part], title: &str| -> Result<bool, Ended> {
            let drawn = |cell: &str, seed: u64| {
                Perturbation::drawn(&secret.within(cell).within(&seed.to_string()), parts)
            };
            let purpose = Purpose { perturbation: Some(&drawn), secret: true, ..only(title) };
            let changed = outcomes(self.candidate(cells, seeds, purpose)?);
            Ok(systematic(&gains(cells, &changed, plain)).is_some())
        };
        if !noticed(&Part::ALL, "hidden change")? {
            return Ok(());
        }
        for part in Part::ALL {
            if noticed(&[part], part.name())? {
                return Err(Ended::Rejected(Rejected::new(part.code(), part.says().to_owned())));
            }
        }
        let sentence = "outcomes differ with another clock, other packets before the test, other numbers of flows \
                        and hosts, and another seed together";
        Err(Ended::Rejected(Rejected::new(Code::Hidden, sentence.to_owned())))
    }
}

/// A rejection in runs that a secret has drawn.
fn veiled(ended: Ended) -> Ended {
    match ended {
        Ended::Rejected(rejected) => Ended::Rejected(Rejected::veiled(rejected.code)),
        other => other,
    }
}

/// Runs for the first time, without a hidden change.
fn only(title: &str) -> Purpose<'_> {
    Purpose { title, perturbation: None, secret: false, again: false }
}

fn prepared<'a>(cells: &'a [Cell], spec: &str, seeds: &[u64]) -> Result<Vec<Prepared<'a>>, EvaluateError> {
    let spec = [spec.to_owned()];
    cells.iter().map(|cell| prepare(cell, &spec, seeds, Timing::Ideal, true)).collect()
}

fn outcomes(found: Vec<Vec<Observed>>) -> Vec<Vec<Outcome>> {
    found.into_iter().map(|cell| cell.into_iter().map(|observed| observed.outcome).collect()).collect()
}

fn gains(cells: &[Cell], from: &[Vec<Outcome>], to: &[Vec<Outcome>]) -> Vec<BTreeMap<Question, f64>> {
    let each = cells.iter().zip(from).zip(to);
    each.map(|((cell, from), to)| of_cell(&cell.measures, from, to)).collect()
}

/// The reason if observations at a link show that packets are kept.
fn keeps(seen: &Seen) -> Option<Rejected> {
    let keeps = |sentence: String| Some(Rejected::new(Code::Keeps, sentence));
    if seen.stuck > 0 {
        let packets = seen.stuck;
        return keeps(format!("it keeps packets: {packets} did not leave within a minute after the test"));
    }
    if seen.longest_idle > IDLE {
        let idle = seen.longest_idle;
        return keeps(format!("it keeps packets while the link is free: once for {idle}"));
    }
    let (acks, others) = (&seen.acks, &seen.others);
    let all = acks.packets + others.packets;
    if seen.overtaken as f64 > OVERTAKEN * all as f64 {
        let overtaken = seen.overtaken;
        return keeps(format!(
            "it keeps packets while later ones of their flow leave: {overtaken} of {all} stayed {LATE} longer"
        ));
    }
    if acks.packets.min(others.packets) < ACKS {
        return None;
    }
    let delays =
        |what: String| Some(Rejected::new(Code::Acks, format!("it delays acknowledgements: they {what}")));
    let (held, others_held) = (acks.held_mean_s(), others.held_mean_s());
    if held > HELD_S && held > TIMES * others_held {
        return delays(format!(
            "wait while the link is free for {:.1} ms on average, other packets for {:.1} ms",
            1e3 * held,
            1e3 * others_held
        ));
    }
    let behind = seen.acks_behind().filter(|times| *times > TIMES_OF_ALL)?;
    let waited = acks.sojourn_mean_s();
    (waited > BEHIND_S).then(|| {
        delays(format!("wait for {:.1} ms on average, {behind:.1} times as long as all bytes", 1e3 * waited))
    })?
}

/// Rejects a candidate that sends much less than the baseline in most cells.
fn blocked(cells: &[Cell], baseline: &[Vec<Outcome>], found: &[Vec<Outcome>]) -> Result<(), Ended> {
    let packets = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.packets).sum::<u64>() as f64;
    let less =
        baseline.iter().zip(found).filter(|(base, found)| packets(found) < BLOCKED * packets(base)).count();
    if 2 * less > cells.len() {
        let sentence = format!(
            "it blocks traffic: in {less} of {} cells it sends less than half of the packets of the baseline",
            cells.len()
        );
        return Err(Ended::Rejected(Rejected::new(Code::Blocks, sentence)));
    }
    Ok(())
}

/// Rejects a candidate that is better in the public cells than in their disguises.
fn memorised(public: &[BTreeMap<Question, f64>], held: &[BTreeMap<Question, f64>]) -> Result<(), Ended> {
    // `held` begins with the disguises.
    let lost: Vec<BTreeMap<Question, f64>> = public
        .iter()
        .zip(held)
        .map(|(public, held)| {
            let both =
                public.iter().filter_map(|(question, gain)| Some((*question, gain - held.get(question)?)));
            both.collect()
        })
        .collect();
    match systematic(&lost) {
        Some((_, lost)) if lost > 0.0 => {
            let sentence =
                "it knows the public cells: with other rates, delays, lengths and seeds it is worse";
            Err(Ended::Rejected(Rejected::new(Code::Memorises, sentence.to_owned())))
        }
        _ => Ok(()),
    }
}
