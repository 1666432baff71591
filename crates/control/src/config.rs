//! The configuration of a bridge. Flags, the settings file and `giveway control set` use the same names for
//! its values.

use disciplines::Spec;
use live::LinkEmulation;
use qdisc::{Bytes, Rate, Share, Site, Span, Streams, units};
pub use watch::Direction;
use wire::fragment::{self, Size};

/// What one direction is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// The rate of its link.
    pub rate: Rate,
    /// Its discipline.
    pub qdisc: Spec,
    /// What is behind the link.
    pub emulation: LinkEmulation,
    /// Frames are cut to this size.
    pub fragment: Option<Size>,
    /// Fragments are put together.
    pub reassemble: bool,
}

/// What both are to do.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeConfig {
    forward: DirectionConfig,
    reverse: DirectionConfig,
}

/// A link that never makes anybody wait: 1 Tbit/s.
pub const UNLIMITED: Rate = Rate::gbit(1000);

/// Every name, as flags have them. Those of the reverse direction end with `-reverse`.
pub const NAMES: [&str; 14] = [
    "rate",
    "rate-reverse",
    "qdisc",
    "qdisc-reverse",
    "delay",
    "delay-reverse",
    "jitter",
    "jitter-reverse",
    "loss",
    "loss-reverse",
    "fragment",
    "fragment-reverse",
    "reassemble",
    "reassemble-reverse",
];

/// What the interfaces can do.
#[derive(Clone, Copy, Debug)]
pub struct LinkLimits {
    /// Frames begin with an Ethernet header.
    pub ethernet: bool,
    /// The longest frame, link header and tag included, in bytes.
    pub longest: usize,
}

impl Default for BridgeConfig {
    fn default() -> BridgeConfig {
        let spec: Spec = "fq_codel".parse().expect("it is in the registry");
        let emulation = LinkEmulation::none();
        let config =
            DirectionConfig { rate: UNLIMITED, qdisc: spec, emulation, fragment: None, reassemble: false };
        BridgeConfig { forward: config.clone(), reverse: config }
    }
}

impl BridgeConfig {
    /// What one direction is to do.
    pub fn of(&self, side: Direction) -> &DirectionConfig {
        match side {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    /// Changes one thing, by its name.
    ///
    /// # Errors
    /// A sentence on what is wrong, and what to write instead. Nothing was changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = canonical(name);
        if !NAMES.contains(&name.as_str()) {
            let near = units::nearest(&name, NAMES).map(|near| format!("did you mean {near}? "));
            return Err(format!(
                "unknown setting \"{name}\"; {}there are {}",
                near.unwrap_or_default(),
                NAMES.join(", ")
            ));
        }
        let (what, config) = match name.strip_suffix("-reverse") {
            Some(what) => (what, &mut self.reverse),
            None => (name.as_str(), &mut self.forward),
        };
        let wrong = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        match what {
            "rate" if value == "unlimited" => config.rate = UNLIMITED,
            "rate" => {
                let rate: Rate = value.parse().map_err(|error| wrong(&error))?;
                if rate < SLOWEST {
                    return Err(wrong(&format!("{value} is too slow: at least {SLOWEST}")));
                }
                config.rate = rate;
            }
            "qdisc" => {
                let spec: Spec = value.parse().map_err(|error: disciplines::SpecError| {
                    let help = error.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                    wrong(&format!("{}{help}", error.message))
                })?;
                // Whatever cannot be built is refused now, not in the thread that forwards.
                let site = Site::new(config.rate, Streams::new(0));
                spec.build::<live::Frame>(&site).map_err(|invalid| wrong(&invalid))?;
                config.qdisc = spec;
            }
            "delay" => config.emulation.delay = time(value).map_err(|error| wrong(&error))?,
            "jitter" => config.emulation.jitter = time(value).map_err(|error| wrong(&error))?,
            "fragment" => config.fragment = size(value).map_err(|error| wrong(&error))?,
            "reassemble" => {
                config.reassemble = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong(&format!("\"{value}\" is neither yes nor no"))),
                }
            }
            _ => config.emulation.loss = value.parse::<Share>().map_err(|error| wrong(&error))?,
        }
        // A discipline may have been right for the old rate and be wrong for the new one.
        let site = Site::new(config.rate, Streams::new(0));
        config.qdisc.build::<live::Frame>(&site).map_err(|invalid| wrong(&invalid)).map(|_| ())
    }

    /// Checks that interfaces with these limits can carry out this configuration.
    ///
    /// # Errors
    /// A sentence that begins with what cannot be done.
    pub fn within(&self, limits: &LinkLimits) -> Result<(), String> {
        for (config, suffix) in [(&self.forward, ""), (&self.reverse, "-reverse")] {
            let asks = [("fragment", config.fragment.is_some()), ("reassemble", config.reassemble)];
            if let Some((name, _)) = asks.into_iter().find(|(_, asks)| *asks && !limits.ethernet) {
                return Err(format!(
                    "{name}{suffix}: fragments have an Ethernet type of their own, and a TUN interface carries IP packets only; \
                     name two Ethernet interfaces"
                ));
            }
            // Behind the Ethernet header and a tag.
            let packet = limits.longest.saturating_sub(18);
            if let Some(size) = config.fragment.filter(|size| packet > size.longest()) {
                let least = packet.div_ceil(fragment::MOST) + fragment::HEADER;
                let (bytes, most) = (size.bytes(), fragment::MOST);
                return Err(format!(
                    "fragment{suffix}: an MTU of {packet} bytes in fragments of {bytes} is more than {most} of them, and there can be no \
                     more; ask for {least} at least"
                ));
            }
        }
        Ok(())
    }

    /// What differs from others: names with the values of `self`, in the order of [`NAMES`].
    pub fn differs(&self, from: &BridgeConfig) -> Vec<(&'static str, String)> {
        NAMES
            .iter()
            .map(|name| (*name, self.get(name)))
            .filter(|(name, value)| from.get(name) != *value)
            .collect()
    }

    /// One thing, as it would be written.
    pub fn get(&self, name: &str) -> String {
        let (what, config) = match name.strip_suffix("-reverse") {
            Some(what) => (what, &self.reverse),
            None => (name, &self.forward),
        };
        match what {
            "rate" => rate(config.rate),
            "qdisc" => config.qdisc.to_string(),
            "delay" => config.emulation.delay.to_string(),
            "jitter" => config.emulation.jitter.to_string(),
            "fragment" => config.fragment.map_or("none".to_owned(), |size| size.bytes().to_string()),
            "reassemble" => if config.reassemble { "yes" } else { "no" }.to_owned(),
            _ => config.emulation.loss.to_string(),
        }
    }
}

/// A name as [`NAMES`] has it: `rate_reverse` and the former `rate-back` are `rate-reverse`.
pub fn canonical(name: &str) -> String {
    let name = name.replace('_', "-");
    match name.strip_suffix("-back") {
        Some(what) => format!("{what}-reverse"),
        None => name,
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

/// The size of fragments: bytes, as an MTU is written, or none.
fn size(text: &str) -> Result<Option<Size>, String> {
    if text == "none" {
        return Ok(None);
    }
    let bytes = text.parse::<u64>().ok().or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0));
    let bytes = bytes.ok_or_else(|| format!("\"{text}\" is no number of bytes: write 500, 800, or none"))?;
    Size::new(bytes).map(Some).map_err(|error| error.to_string())
}

/// The EtherType of fragments, as in 0x88b6.
pub fn fragment_type(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let number = u16::from_str_radix(digits, 16);
    let number =
        number.map_err(|_| format!("\"{text}\" is no EtherType: four hexadecimal digits, as in 0x88b6"))?;
    fragment::ether_type(number).map_err(|error| error.to_string())
}

/// A rate, for people.
pub fn rate(rate: Rate) -> String {
    if rate == UNLIMITED { "unlimited".to_owned() } else { rate.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, value: &str) -> String {
        BridgeConfig::default().set(name, value).unwrap_err()
    }

    #[test]
    fn wrong_settings_are_told_with_what_would_be_right() {
        assert!(said("rte", "1mbit").starts_with("unknown setting \"rte\"; did you mean rate?"));
        assert!(said("rate", "20").contains("has no unit"), "{}", said("rate", "20"));
        assert!(said("qdisc-reverse", "fq_codl").contains("did you mean \"fq_codel\""));
        assert!(said("delay", "20min").starts_with("delay: "));
        assert!(said("loss", "half").starts_with("loss: "));
        assert_eq!(said("rate", "10bit"), "rate: 10bit is too slow: at least 1kbit");
    }

    #[test]
    fn every_name_is_read_and_written() {
        let values = [
            "8mbit",
            "unlimited",
            "drr",
            "fifo limit 10p",
            "20ms",
            "0s",
            "2ms",
            "1ms",
            "0.001",
            "0.005",
            "800",
            "none",
            "yes",
            "no",
        ];
        let mut config = BridgeConfig::default();
        for (name, value) in NAMES.iter().zip(values) {
            config.set(name, value).unwrap();
            assert_eq!(config.get(name), value, "{name}");
        }
        let changed = config.differs(&BridgeConfig::default());
        assert_eq!(changed.len(), 10, "{changed:?}: four are as they are by default");
    }

    #[test]
    fn fragments_that_cannot_be_are_refused() {
        assert!(said("fragment", "60").contains("60 bytes: fragments have 68 to 9000 bytes"));
        assert!(said("fragment-reverse", "large").contains("write 500, 800, or none"));
        assert!(said("reassemble", "maybe").contains("neither yes nor no"));
        assert_eq!(fragment_type("0x88B5"), Ok(0x88b5));
        assert!(fragment_type("0x0800").unwrap_err().contains("IPv4"));
        assert!(fragment_type("ether").unwrap_err().contains("as in 0x88b6"));
        let within = |name: &str, value: &str, ethernet, longest| {
            let mut config = BridgeConfig::default();
            config.set(name, value).unwrap();
            config.within(&LinkLimits { ethernet, longest })
        };
        assert_eq!(within("fragment", "68", true, 1518), Ok(()));
        assert!(
            within("reassemble-reverse", "yes", false, 1500).unwrap_err().starts_with("reassemble-reverse: ")
        );
        let refused = within("fragment-reverse", "68", true, 9018).unwrap_err();
        assert!(
            refused.starts_with("fragment-reverse: ") && refused.ends_with("ask for 79 at least"),
            "{refused}"
        );
        assert_eq!(within("fragment", "79", true, 9018), Ok(()));
    }
}
