//! Reads the keys of a link that varies: tables in place of a constant rate, delay or loss, and the
//! impairments of the wire.

use std::path::{Path, PathBuf};

use giveway_links::{
    Gilbert, Impairments, Loss, Model, Police, Profile, Quantity, Reorder, Shape, TraceError, Wake,
};
use giveway_qdisc::{Bytes, Rate, Share, Span};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::keys::DirectionKeys;
use super::lateness::lateness;
use super::varying_keys::{BurstyLoss, PoliceKeys, ReorderKeys, VaryingDelay, VaryingRate};
use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, head};
use crate::hints::{choices, clipped, listed};
use crate::tree::{Node, Table, Value};

/// The varying quantities in one direction of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variation {
    /// The varying quantities, for the simulator.
    pub impairments: Impairments,
    /// The policer.
    pub police: Option<Police>,
    /// Of so many acknowledgements in a row, one is sent.
    pub thin_acks: Option<u32>,
    /// The files that are read, as written.
    pub files: Vec<String>,
}

/// Reads what varies in one direction of a link. Files are relative to `folder`.
pub(crate) fn read(reading: &mut Reading, table: &Table, keys: &DirectionKeys, folder: &Path) -> Variation {
    let mut variation = Variation::default();
    let tables = ["rate", "delay", "loss"].map(|key| table.get(key).and_then(Node::table));
    let [rate, delay, loss] = tables;
    if let Some(table) = rate {
        variation.impairments.rate = rate_of(reading, table, folder, &mut variation.files);
    }
    if let Some(table) = delay {
        variation.impairments.delay = delay_of(reading, table, folder, &mut variation.files);
    }
    if let Some(table) = loss {
        variation.impairments.loss = loss_of(reading, table);
    }
    variation.impairments.corrupt = keys.corrupt.unwrap_or_default();
    variation.impairments.duplicate = keys.duplicate.unwrap_or_default();
    variation.impairments.unordered = keys.unordered.unwrap_or(false);
    variation.impairments.reorder =
        keys.reorder.map(|ReorderKeys { percent, distance }| Reorder { percent, distance });
    if let Some((node, written)) = table.get("dispatch_jitter").zip(keys.dispatch_jitter.as_deref()) {
        let files = &mut variation.files;
        let read = lateness(reading, node, "dispatch_jitter", written, Wake::Timer, folder, files);
        variation.impairments.dispatch_jitter = read;
    }
    if let Some(ReorderKeys { distance, .. }) = keys.reorder
        && !(1..=MAX_DISTANCE).contains(&distance)
    {
        let message = format!("reorder: a distance of {distance} is not between 1 and {MAX_DISTANCE}");
        let wrong = Diagnostic::error(table.place("reorder"), message);
        reading.report(wrong.help("write for example reorder = { percent = \"1%\", distance = 3 }"));
    }
    if keys.thin_acks.is_some_and(|most| most < 2) {
        let wrong = Diagnostic::error(table.place("thin_acks"), "thin_acks: must be at least 2");
        reading.report(wrong.help("write for example thin_acks = 4, or leave it out"));
    }
    variation.thin_acks = keys.thin_acks;
    if let Some(PoliceKeys { rate, burst }) = keys.police {
        let wrong = if rate.as_bit() == 0 {
            Some("the rate must be above 0".to_owned())
        } else if burst.0 < keys.mtu.unwrap_or(Bytes(1500)).0 {
            Some(format!("a burst of {burst} drops every packet of full size"))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let wrong = Diagnostic::error(table.place("police"), format!("police: {wrong}"));
            reading.report(wrong.help("write for example police = { rate = \"10mbit\", burst = \"100kb\" }"));
        }
        variation.police = Some(Police { rate, burst });
    }
    variation
}

/// Maximum number of packets that overtake another.
const MAX_DISTANCE: u32 = 10_000;

/// A rate that varies; `None` if anything is wrong, which is reported.
fn rate_of(reading: &mut Reading, table: &Table, folder: &Path, files: &mut Vec<String>) -> Option<Profile> {
    const SHAPES: [&str; 5] = ["trace", "csv", "steps", "ramp", "model"];
    let keys: VaryingRate = varying(reading, table, "rate", &SHAPES)?;
    let repeats = keys.r#loop.unwrap_or(keys.trace.is_some());
    if let Some(name) = &keys.model {
        let allowed: &[&str] = match name.as_str() {
            "lte" => &["mean", "spread", "hold"],
            "wifi" => &["high", "hold"],
            "satellite" => &["high", "low", "every"],
            "cable" => &["mean", "every"],
            "diurnal" => &["high", "low", "period"],
            _ => return unknown_model(reading, table, "rate", name, &Model::NAMES),
        };
        only(reading, table, &format!("model \"{name}\""), allowed)?;
        let needed: Vec<&str> =
            ["mean", "high", "low"].into_iter().filter(|key| allowed.contains(key)).collect();
        needs(reading, table, &format!("model \"{name}\""), &needed)?;
        let [mean, high, low] = [keys.mean, keys.high, keys.low].map(Option::unwrap_or_default);
        let hold = keys.hold.unwrap_or(Span::ms(200));
        let model = match name.as_str() {
            "lte" => Model::Lte { mean, spread: keys.spread.unwrap_or(20.0), hold },
            "wifi" => Model::Wifi { high, hold },
            "satellite" => Model::Satellite {
                quantity: Quantity::Rate,
                low: low.as_bit(),
                high: high.as_bit(),
                every: keys.every.unwrap_or(Span::s(15)),
            },
            "cable" => Model::Cable { mean, every: keys.every.unwrap_or(Span::ms(2)) },
            _ => Model::Diurnal { high, low, period: keys.period.unwrap_or(Span::s(24 * 3600)) },
        };
        return checked(reading, table, "model", Profile::model(model, keys.seed.unwrap_or(1)));
    }
    only(reading, table, "this rate", &["loop"])?;
    if let Some(file) = &keys.trace {
        return from_file(reading, table, "trace", file, folder, files, &|path| {
            Profile::mahimahi(path, repeats)
        });
    }
    let written = Written { csv: keys.csv, steps: bits(keys.steps), ramp: bits(keys.ramp) };
    written.profile(reading, table, Quantity::Rate, repeats, folder, files)
}

/// A delay that varies; `None` if anything is wrong, which is reported.
fn delay_of(reading: &mut Reading, table: &Table, folder: &Path, files: &mut Vec<String>) -> Option<Profile> {
    const SHAPES: [&str; 4] = ["csv", "steps", "ramp", "model"];
    let keys: VaryingDelay = varying(reading, table, "delay", &SHAPES)?;
    let repeats = keys.r#loop.unwrap_or(false);
    if let Some(name) = &keys.model {
        if name != "satellite" {
            return unknown_model(reading, table, "delay", name, &["satellite"]);
        }
        only(reading, table, "model \"satellite\"", &["high", "low", "every"])?;
        needs(reading, table, "model \"satellite\"", &["high", "low"])?;
        let model = Model::Satellite {
            quantity: Quantity::Delay,
            low: keys.low?.as_ps(),
            high: keys.high?.as_ps(),
            every: keys.every.unwrap_or(Span::s(15)),
        };
        return checked(reading, table, "model", Profile::model(model, keys.seed.unwrap_or(1)));
    }
    only(reading, table, "this delay", &["loop"])?;
    let written = Written { csv: keys.csv, steps: picoseconds(keys.steps), ramp: picoseconds(keys.ramp) };
    written.profile(reading, table, Quantity::Delay, repeats, folder, files)
}

/// Points as they are written: times and values.
type Points<T> = Option<Vec<(Span, T)>>;

fn bits(points: Points<Rate>) -> Points<u64> {
    Some(points?.into_iter().map(|(at, rate)| (at, rate.as_bit())).collect())
}

fn picoseconds(points: Points<Span>) -> Points<u64> {
    Some(points?.into_iter().map(|(at, delay)| (at, delay.as_ps())).collect())
}

/// The ways to write a rate or a delay, of which exactly one is used.
struct Written {
    csv: Option<String>,
    steps: Points<u64>,
    ramp: Points<u64>,
}

impl Written {
    /// The profile; `None` if anything is wrong, which is reported.
    fn profile(
        self,
        reading: &mut Reading,
        table: &Table,
        quantity: Quantity,
        repeats: bool,
        folder: &Path,
        files: &mut Vec<String>,
    ) -> Option<Profile> {
        if let Some(file) = &self.csv {
            return from_file(reading, table, "csv", file, folder, files, &|path| {
                Profile::csv(quantity, path, repeats)
            });
        }
        let (key, shape, points) = match (self.steps, self.ramp) {
            (Some(steps), _) => ("steps", Shape::Steps, steps),
            (None, ramp) => ("ramp", Shape::Ramp, ramp?),
        };
        checked(reading, table, key, Profile::points(quantity, shape, &points, repeats))
    }
}

/// A loss that comes in bursts; `None` if anything is wrong, which is reported.
fn loss_of(reading: &mut Reading, table: &Table) -> Option<Loss> {
    let keys: BurstyLoss = varying(reading, table, "loss", &["model"])?;
    let name = keys.model.as_deref()?;
    let what = format!("model \"{name}\"");
    match name {
        "gemodel" => {
            only(reading, table, &what, &["p", "r", "1-h", "1-k"])?;
            needs(reading, table, &what, &["p"])?;
            let p = keys.p?;
            // The defaults of netem: with p alone losses are independent.
            let r = keys.r.or_else(|| Share::new(1.0 - p.get()))?;
            let bad = keys.bad.or_else(|| Share::new(1.0))?;
            Some(Loss::Gilbert(Gilbert { p, r, bad, good: keys.good.unwrap_or_default() }))
        }
        "handover" => {
            only(reading, table, &what, &["every", "lasts", "percent"])?;
            let every = keys.every.unwrap_or(Span::s(15));
            let lasts = keys.lasts.unwrap_or(Span::ms(100));
            if every <= lasts {
                let message = format!("loss: a seam of {lasts} does not end before the next, {every} later");
                let wrong = Diagnostic::error(table.span.clone(), message);
                reading.report(wrong.help("write for example every = \"15s\", lasts = \"100ms\""));
                return None;
            }
            Some(Loss::Handover { every, lasts, percent: keys.percent.or_else(|| Share::new(1.0))? })
        }
        _ => unknown_model(reading, table, "loss", name, &["gemodel", "handover"]),
    }
}

/// The keys of a table that varies. Exactly one of `shapes` must be there.
fn varying<T>(reading: &mut Reading, table: &Table, what: &str, shapes: &[&str]) -> Option<T>
where
    T: Default + DeserializeOwned + JsonSchema,
{
    let errors = reading.diagnostics.len();
    reading.unknown_keys(table, what, fields::keys::<T>());
    let keys = reading.fields(table, what);
    if reading.diagnostics.len() > errors {
        return None;
    }
    let written: Vec<&str> = shapes.iter().copied().filter(|key| table.has(key)).collect();
    match written[..] {
        [_] => keys,
        [] => {
            let wrong = Diagnostic::error(
                head(&reading.origin, table),
                format!("{what}: nothing says how it varies"),
            );
            reading.report(wrong.help(format!("write one of {}", shapes.join(", "))));
            None
        }
        [first, second, ..] => {
            let message = format!("{what}: \"{first}\" and \"{second}\" exclude each other");
            reading.report(Diagnostic::error(table.place(second), message).help("leave one of them out"));
            None
        }
    }
}

/// Refuses keys without effect. `allowed` are the keys besides the one that says how it varies, and the seed
/// of a model.
fn only(reading: &mut Reading, table: &Table, what: &str, allowed: &[&str]) -> Option<()> {
    const SHAPES: [&str; 5] = ["trace", "csv", "steps", "ramp", "model"];
    let known =
        |key: &str| allowed.contains(&key) || SHAPES.contains(&key) || (key == "seed" && table.has("model"));
    let wrong = table.entries.iter().find(|entry| !known(&entry.key));
    if let Some(entry) = wrong {
        let message = format!("{what} has no \"{}\"", entry.key);
        reading.report(Diagnostic::error(entry.key_span.clone(), message).help(listed(allowed)));
        return None;
    }
    Some(())
}

/// Reports the first of some keys that is missing.
fn needs(reading: &mut Reading, table: &Table, what: &str, keys: &[&str]) -> Option<()> {
    match keys.iter().find(|key| !table.has(key)) {
        Some(key) => {
            reading.missing(table, what, key);
            None
        }
        None => Some(()),
    }
}

fn unknown_model<T>(
    reading: &mut Reading,
    table: &Table,
    what: &str,
    name: &str,
    names: &[&str],
) -> Option<T> {
    let wrong = Diagnostic::error(table.place("model"), format!("{what}: unknown model \"{name}\""));
    reading.report(wrong.help(choices(name, names)));
    None
}

/// A function that reads a profile from a file.
type FromFile<'a> = &'a dyn Fn(&Path) -> Result<Profile, TraceError>;

/// A profile from a file, which is added to `files`.
fn from_file(
    reading: &mut Reading,
    table: &Table,
    key: &str,
    written: &str,
    folder: &Path,
    files: &mut Vec<String>,
    read: FromFile<'_>,
) -> Option<Profile> {
    let path: PathBuf = folder.join(written);
    files.push(written.to_owned());
    let named = |error: TraceError| TraceError {
        message: match error.line {
            Some(line) => format!("{written}, line {line}: {}", error.message),
            None => format!("{written}: {}", error.message),
        },
        line: None,
        ..error
    };
    checked(reading, table, key, read(&path).map_err(named))
}

/// A profile, or a report of its error at the point of the table that is wrong.
fn checked(
    reading: &mut Reading,
    table: &Table,
    key: &str,
    profile: Result<Profile, TraceError>,
) -> Option<Profile> {
    let TraceError { line, message, help } = match profile {
        Ok(profile) => return Some(profile),
        Err(error) => error,
    };
    let points = match table.get(key).map(|node| &node.value) {
        Some(Value::List(points)) => points.as_slice(),
        _ => &[],
    };
    let point = line.and_then(|number| points.get(number as usize - 1));
    let place = point.map_or_else(|| table.place(key), |node| node.span.clone());
    reading.report(Diagnostic::error(place, format!("{key}: {}", clipped(message))).help(help));
    None
}
