//! The forest plot of a study: the decisive test of each claim, with its interval and its band.
//!
//! Tests have different units, so each is drawn relative to the limit of its band: 1 is the limit, and the
//! band is on one side of it. With two limits, 1 is the upper one. A test without a positive limit, such as
//! a difference that should be above zero, has no place on such an axis and is left out.

use giveway_document::{Forest, ForestRow};

use crate::verdict::{Judged, JudgedTest, Verdict};

/// The plot; `None` without a claim with a place on it.
pub(crate) fn of(judged: &[Judged]) -> Option<Forest> {
    let rows: Vec<ForestRow> = judged.iter().filter_map(row).collect();
    let tested = judged.iter().filter(|claim| is_judged(claim)).count();
    if rows.is_empty() {
        return None;
    }
    let left_out = tested - rows.len();
    let mut caption = "The decisive test of each claim, relative to the limit of its band, on a logarithmic axis. The thick bar is the band \
                       that was fixed before the measurement; the dot is our mean over the seeds, and the thin line its 95 % interval. A \
                       claim reproduces if its tests hold for the mean and for 8 of 10 seeds."
        .to_owned();
    if left_out > 0 {
        caption.push_str(&format!(" {left_out} claims have a limit of zero and are only in the table."));
    }
    Some(Forest { id: "claims".to_owned(), title: "Claims at a glance".to_owned(), caption, rows })
}

fn is_judged(claim: &Judged) -> bool {
    matches!(claim.verdict, Verdict::Reproduces | Verdict::Differs)
}

fn row(claim: &Judged) -> Option<ForestRow> {
    let decides = claim.decisive().filter(|_| is_judged(claim))?;
    let JudgedTest { mean, ci95, at_least, at_most, .. } = decides;
    let mean = (*mean)?;
    let limit = at_most.or(*at_least).filter(|limit| *limit > 0.0)?;
    let half = ci95.unwrap_or(0.0);
    Some(ForestRow {
        name: claim.id.clone(),
        about: format!("{}: {}", claim.statement, decides.said),
        group: claim.verdict.word().to_owned(),
        good: claim.verdict == Verdict::Reproduces,
        value: mean / limit,
        low: (mean - half) / limit,
        high: (mean + half) / limit,
        band: (at_least.map(|least| least / limit), at_most.map(|most| most / limit)),
    })
}
