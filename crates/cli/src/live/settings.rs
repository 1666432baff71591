//! What a bridge is to do: one table of names for flags, the settings file and `giveway control set`.

use std::path::Path;

use disciplines::Spec;
use live::direction::Build;
use live::line;
use qdisc::{Limit, Rate, Share, Site, Span, Streams, units};
use replay::Tracer;

use super::Args;

/// One of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From --in to --out.
    Forward,
    /// From --out to --in.
    Back,
}

/// What one direction is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The rate of its link.
    pub rate: Rate,
    /// Its discipline.
    pub qdisc: Spec,
    /// What is behind the link.
    pub line: line::Settings,
}

/// What both are to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Wishes {
    forward: Wish,
    back: Wish,
}

/// A link that never makes anybody wait: 1 Tbit/s.
pub const UNLIMITED: Rate = Rate::gbit(1000);

/// Every name, as flags have them. The other direction's end with `-back`.
pub const NAMES: [&str; 10] = [
    "rate",
    "rate-back",
    "qdisc",
    "qdisc-back",
    "delay",
    "delay-back",
    "jitter",
    "jitter-back",
    "loss",
    "loss-back",
];

impl Default for Wishes {
    fn default() -> Wishes {
        let spec: Spec = "fq_codel".parse().expect("it is in the registry");
        let wish = Wish { rate: UNLIMITED, qdisc: spec, line: line::Settings::none() };
        Wishes { forward: wish.clone(), back: wish }
    }
}

impl Wishes {
    /// What one direction is to do.
    pub fn of(&self, side: Side) -> &Wish {
        match side {
            Side::Forward => &self.forward,
            Side::Back => &self.back,
        }
    }

    /// Changes one thing, by its name.
    ///
    /// # Errors
    /// A sentence on what is wrong, and what to write instead. Nothing was changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.replace('_', "-");
        if !NAMES.contains(&name.as_str()) {
            let near = units::nearest(&name, NAMES).map(|near| format!("did you mean {near}? "));
            return Err(format!(
                "unknown setting \"{name}\"; {}there are {}",
                near.unwrap_or_default(),
                NAMES.join(", ")
            ));
        }
        let (what, wish) = match name.strip_suffix("-back") {
            Some(what) => (what, &mut self.back),
            None => (name.as_str(), &mut self.forward),
        };
        let wrong = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        match what {
            "rate" if value == "unlimited" => wish.rate = UNLIMITED,
            "rate" => {
                let rate: Rate = value.parse().map_err(|error| wrong(&error))?;
                if rate < SLOWEST {
                    return Err(wrong(&format!("{value} is too slow: at least {SLOWEST}")));
                }
                wish.rate = rate;
            }
            "qdisc" => {
                let spec: Spec = value.parse().map_err(|error: disciplines::SpecError| {
                    let help = error.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                    wrong(&format!("{}{help}", error.message))
                })?;
                // Whatever cannot be built is refused now, not in the thread that forwards.
                let site = Site::new(wish.rate, Streams::new(0));
                spec.build::<live::Frame>(&site).map_err(|invalid| wrong(&invalid))?;
                wish.qdisc = spec;
            }
            "delay" => wish.line.delay = time(value).map_err(|error| wrong(&error))?,
            "jitter" => wish.line.jitter = time(value).map_err(|error| wrong(&error))?,
            _ => wish.line.loss = value.parse::<Share>().map_err(|error| wrong(&error))?,
        }
        // A discipline may have been right for the old rate and be wrong for the new one.
        let site = Site::new(wish.rate, Streams::new(0));
        wish.qdisc.build::<live::Frame>(&site).map_err(|invalid| wrong(&invalid)).map(|_| ())
    }

    /// What differs from others: names with the values of `self`, in the order of [`NAMES`].
    pub fn differs(&self, from: &Wishes) -> Vec<(&'static str, String)> {
        NAMES
            .iter()
            .map(|name| (*name, self.get(name)))
            .filter(|(name, value)| from.get(name) != *value)
            .collect()
    }

    /// One thing, as it would be written.
    pub fn get(&self, name: &str) -> String {
        let (what, wish) = match name.strip_suffix("-back") {
            Some(what) => (what, &self.back),
            None => (name, &self.forward),
        };
        match what {
            "rate" => rate(wish.rate),
            "qdisc" => wish.qdisc.to_string(),
            "delay" => wish.line.delay.to_string(),
            "jitter" => wish.line.jitter.to_string(),
            _ => wish.line.loss.to_string(),
        }
    }
}

/// Below this a single packet takes minutes.
const SLOWEST: Rate = Rate::kbit(1);
/// Longer delays are a mistake in the unit.
const LONGEST: Span = Span::s(60);

fn time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: units::UnitError| error.to_string())?;
    if span > LONGEST { Err(format!("{text} is too long: at most {LONGEST}")) } else { Ok(span) }
}

/// A rate, for people.
pub fn rate(rate: Rate) -> String {
    if rate == UNLIMITED { "unlimited".to_owned() } else { rate.to_string() }
}

/// What the flags say, by name.
pub fn of_flags(args: &Args) -> Result<Vec<(String, String)>, String> {
    let values = [
        &args.rate,
        &args.rate_back,
        &args.qdisc,
        &args.qdisc_back,
        &args.delay,
        &args.delay_back,
        &args.jitter,
        &args.jitter_back,
        &args.loss,
        &args.loss_back,
    ];
    let given =
        NAMES.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Ok(given.collect())
}

/// The file, and then the flags, over the defaults. A discipline that is named for one direction only holds for both.
pub fn wishes(file: Option<&Path>, flags: &[(String, String)]) -> Result<Wishes, String> {
    let mut wishes = Wishes::default();
    let filed = file.map(read).transpose()?.unwrap_or_default();
    let all: Vec<&(String, String)> = filed.iter().chain(flags).collect();
    let mut set = |name: &str, value: &str, place: &str| {
        wishes.set(name, value).map_err(|sentence| format!("{place}{sentence}"))
    };
    let last = |name: &str| all.iter().rev().find(|(other, _)| other.replace('_', "-") == name);
    if last("qdisc-back").is_none()
        && let Some((_, value)) = last("qdisc")
    {
        set("qdisc-back", value, "--")?;
    }
    for (name, value) in &filed {
        let place = file.map_or(String::new(), |file| format!("{}: ", file.display()));
        set(name, value, &place)?;
    }
    for (name, value) in flags {
        set(name, value, "--")?;
    }
    Ok(wishes)
}

/// The pairs of a settings file.
fn read(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| format!("{}: {error}", file.display()))?;
    table
        .into_iter()
        .map(|(name, value)| match value {
            toml::Value::String(text) => Ok((name, text)),
            other => Err(format!(
                "{}: {name} is {}: write it in quotation marks, with its unit, as in rate = \"20 Mbit/s\"",
                file.display(),
                other.type_str()
            )),
        })
        .collect()
}

/// Builds a discipline wherever it is wanted, each time with random numbers of its own; traced where there is a trace.
pub fn builder(spec: Spec, streams: Streams, tracer: Option<Tracer>, name: &'static str) -> Build {
    let mut built = 0u64;
    Box::new(move |rate| {
        built += 1;
        let place = streams.within("qdisc").within(&built.to_string());
        let site = Site::new(rate, place);
        let right = "it was built when it was asked for";
        match &tracer {
            Some(tracer) => Box::new(tracer.build(name, &spec, &site).expect(right)),
            None => spec.build(&site).expect(right),
        }
    })
}

/// How many frames a direction must be able to hold: as its discipline may, and what is on the line.
pub fn rooms(wish: &Wish, streams: &Streams) -> u32 {
    /// Frames of this length are taken for what limits in bytes and lines hold.
    const SMALL: u64 = 256;
    let site = Site::new(wish.rate, streams.clone());
    let queued = match wish.qdisc.nature(&site).limit {
        Some(Limit::Packets(packets)) => packets,
        Some(Limit::Bytes(bytes)) => bytes / SMALL,
        None => 10_240,
    };
    let on_line = if wish.line.is_none() {
        0
    } else {
        let rate = wish.rate.min(Rate::gbit(1));
        rate.bytes_in(wish.line.delay + wish.line.jitter) / SMALL
    };
    // What is between the ring and the queue, and the next discipline that somebody may ask for.
    (queued + on_line + 4096).clamp(8192, 131_072) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, value: &str) -> String {
        Wishes::default().set(name, value).unwrap_err()
    }

    #[test]
    fn wrong_settings_are_told_with_what_would_be_right() {
        assert!(said("rte", "1mbit").starts_with("unknown setting \"rte\"; did you mean rate?"));
        assert!(said("rate", "20").contains("has no unit"), "{}", said("rate", "20"));
        assert!(said("qdisc-back", "fq_codl").contains("did you mean \"fq_codel\""));
        assert!(said("delay", "20min").starts_with("delay: "));
        assert!(said("loss", "half").starts_with("loss: "));
        assert_eq!(said("rate", "10bit"), "rate: 10bit is too slow: at least 1kbit");
    }

    #[test]
    fn every_name_is_read_and_written() {
        let values =
            ["8mbit", "unlimited", "drr", "fifo limit 10p", "20ms", "0s", "2ms", "1ms", "0.001", "0.005"];
        let mut wishes = Wishes::default();
        for (name, value) in NAMES.iter().zip(values) {
            wishes.set(name, value).unwrap();
            assert_eq!(wishes.get(name), value, "{name}");
        }
        let changed = wishes.differs(&Wishes::default());
        assert_eq!(changed.len(), 8, "{changed:?}: two are as they are by default");
    }

    #[test]
    fn flags_win_over_the_file_and_one_discipline_is_for_both() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("live.toml");
        std::fs::write(&file, "rate = \"5mbit\"\nqdisc = \"drr\"\n").unwrap();
        let flags = [("rate".to_owned(), "6mbit".to_owned())];
        let wishes = wishes(Some(&file), &flags).unwrap();
        assert_eq!(wishes.get("rate"), "6mbit");
        assert_eq!([wishes.get("qdisc"), wishes.get("qdisc-back")], ["drr", "drr"]);
        std::fs::write(&file, "rate = 5\n").unwrap();
        let sentence = super::wishes(Some(&file), &[]).unwrap_err();
        assert!(sentence.contains("rate is integer: write it in quotation marks"), "{sentence}");
    }
}
