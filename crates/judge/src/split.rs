//! The public cells, and the held-out ones that a secret draws.
//!
//! Every second cell of the card is public: a candidate may be written for it. The held-out part has two
//! halves. One is cells that are not public. The other is public cells in disguise: the judged link has
//! another rate, the other links have other delays, the test has another length, and the seeds are others. A
//! candidate that knows the public cells is better in them than in their disguise.

use giveway_evaluate::{Cell, EvaluateError, cells};
use giveway_qdisc::{Rate, Rng, Span, Streams};
use toml::{Table, Value};

/// The smallest and the largest factor of a rate, of a delay, and of the length of a test.
const RATE: (f64, f64) = (0.85, 1.2);
const DELAY: (f64, f64) = (0.8, 1.25);
const LENGTH: (f64, f64) = (1.0, 1.4);

/// The cells that a candidate may be written for.
pub fn public() -> Vec<Cell> {
    cells().into_iter().step_by(2).collect()
}

/// The cells that are not public.
pub fn others() -> Vec<Cell> {
    cells().into_iter().skip(1).step_by(2).collect()
}

/// The held-out cells of a secret.
pub struct HeldOut {
    /// Public cells in disguise, in the order of [`public`].
    pub disguised: Vec<Cell>,
    /// Cells that are not public, changed as well.
    pub unseen: Vec<Cell>,
    /// Their seeds.
    pub seeds: Vec<u64>,
}

/// The streams of random numbers that a secret text names.
pub fn streams(secret: &str) -> Streams {
    // The path of a stream is hashed with its seed.
    Streams::new(0x6769_7665_7761_7900).within(secret)
}

/// Draws the held-out cells, with this number of seeds, and `unseen` cells that are not public.
///
/// # Errors
/// If a cell cannot be changed, which a test excludes.
pub fn held_out(
    public: &[Cell],
    secret: &Streams,
    unseen: usize,
    seeds: u32,
) -> Result<HeldOut, EvaluateError> {
    let mut rng = secret.within("cells").rng();
    let disguised: Vec<Cell> = public.iter().map(|cell| changed(cell, &mut rng)).collect::<Result<_, _>>()?;
    let mut left = others();
    let mut chosen = Vec::new();
    while chosen.len() < unseen && !left.is_empty() {
        let place = rng.below(left.len() as u64) as usize;
        chosen.push(changed(&left.remove(place), &mut rng)?);
    }
    // Far from the seeds of public runs.
    let seeds = (0..seeds).map(|_| 1_000 + rng.below(1 << 40)).collect();
    Ok(HeldOut { disguised, unseen: chosen, seeds })
}

/// A cell with another rate, other delays and another length.
fn changed(cell: &Cell, rng: &mut Rng) -> Result<Cell, EvaluateError> {
    let wrong = |why: String| EvaluateError::Usage(format!("{} cannot be changed: {why}", cell.name));
    let mut table: Table =
        cell.scenario.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let mut factor = |(low, high): (f64, f64)| low * libm::pow(high / low, rng.uniform());
    let (rate, delay, length) = (factor(RATE), factor(DELAY), factor(LENGTH));
    for link in table.get_mut("link").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(link) = link.as_table_mut() else { continue };
        let judged = link.get("qdisc").and_then(Value::as_str) == Some("compare");
        let back_judged = link
            .get("back")
            .and_then(Value::as_table)
            .and_then(|back| back.get("qdisc"))
            .and_then(Value::as_str)
            == Some("compare");
        if judged {
            scale_rate(link, rate);
        } else {
            scale_span(link, "delay", delay);
        }
        if let Some(back) = link.get_mut("back").and_then(Value::as_table_mut).filter(|_| back_judged) {
            scale_rate(back, rate);
        }
    }
    scale_span(&mut table, "duration", length);
    if let Some(short) = table.get_mut("short").and_then(Value::as_table_mut) {
        scale_span(short, "duration", length);
    }
    Ok(Cell { scenario: toml::to_string(&table).map_err(|error| wrong(error.to_string()))?, ..cell.clone() })
}

/// Multiplies a rate that is one text. A rate that varies keeps its profile.
fn scale_rate(table: &mut Table, factor: f64) {
    let rate = table.get("rate").and_then(Value::as_str).and_then(|text| text.parse::<Rate>().ok());
    if let Some(rate) = rate {
        // Whole kbit/s.
        let kbit = (rate.as_bit() as f64 * factor / 1e3).round().max(1.0) as u64;
        table.insert("rate".to_owned(), Value::String(format!("{kbit}kbit")));
    }
}

/// Multiplies a time that is one text.
fn scale_span(table: &mut Table, key: &str, factor: f64) {
    let span = table.get(key).and_then(Value::as_str).and_then(|text| text.parse::<Span>().ok());
    if let Some(span) = span {
        // Whole microseconds.
        let us = (span.as_s() * factor * 1e6).round().max(1.0) as u64;
        table.insert(key.to_owned(), Value::String(format!("{us}us")));
    }
}
