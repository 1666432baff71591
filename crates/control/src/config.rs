//! The configuration of a bridge. Flags, the settings file and `giveway live control set` use the same
//! names for its values.

mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use giveway_disciplines::Spec;
use giveway_live::LinkEmulation;
use giveway_qdisc::{Bytes, Rate, Share, Span, Streams, units};
use giveway_scenario::link_key;
pub use giveway_watch::Direction;
use giveway_wire::fragment::{self, Size};

use crate::error::ControlError;

/// Configuration of one direction.
#[derive(Clone, Debug)]
pub struct DirectionConfig {
    /// Rate of the link; the mean if it varies.
    pub rate: Rate,
    /// Discipline.
    pub qdisc: Spec,
    /// The rate over time, and delay, loss and other impairments behind the link. The constant delay and
    /// loss are the means of those that vary.
    pub emulation: LinkEmulation,
    /// The tables in place of constants, by setting, as they were written.
    tables: BTreeMap<&'static str, String>,
    /// Size into which frames are cut; `None` to cut none.
    pub fragment: Option<Size>,
    /// True to join incoming fragments.
    pub reassemble: bool,
}

/// Configuration of both directions.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    forward: DirectionConfig,
    reverse: DirectionConfig,
}

/// Rate of a link without a limit: 1 Tbit/s.
pub const UNLIMITED: Rate = Rate::gbit(1000);

/// Names of all settings, as flags have them. Names for the reverse direction end with `-reverse`.
pub const NAMES: [&str; 22] = [
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
    "reorder",
    "reorder-reverse",
    "duplicate",
    "duplicate-reverse",
    "corrupt",
    "corrupt-reverse",
    "unordered",
    "unordered-reverse",
    "fragment",
    "fragment-reverse",
    "reassemble",
    "reassemble-reverse",
];

/// Limits of the interfaces.
#[derive(Clone, Copy, Debug)]
pub struct LinkLimits {
    /// True if frames start with an Ethernet header.
    pub ethernet: bool,
    /// Length of the longest frame, link header and tag included, in bytes.
    pub longest: usize,
}

impl Default for BridgeConfig {
    fn default() -> BridgeConfig {
        let spec: Spec = "fq_codel".parse().expect("it is in the registry");
        let config = DirectionConfig {
            rate: UNLIMITED,
            qdisc: spec,
            emulation: LinkEmulation::none(),
            tables: BTreeMap::new(),
            fragment: None,
            reassemble: false,
        };
        BridgeConfig { forward: config.clone(), reverse: config }
    }
}

/// Equal settings, as they would be written.
impl PartialEq for BridgeConfig {
    fn eq(&self, other: &BridgeConfig) -> bool {
        NAMES.iter().all(|name| self.get(name) == other.get(name))
    }
}

impl BridgeConfig {
    /// The configuration of a direction.
    pub fn of(&self, side: Direction) -> &DirectionConfig {
        match side {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    /// Changes a setting by its name. A file in its value, such as a trace, is relative to `folder`, and is
    /// refused without a folder.
    ///
    /// # Errors
    /// If the name is unknown or the value is invalid; the error names a correction. No change is made then.
    pub fn set(&mut self, name: &str, value: &str, folder: Option<&Path>) -> Result<(), ControlError> {
        let name = canonical(name);
        if !is_setting(&name) {
            let near = units::nearest(&name, NAMES).map(|near| format!("did you mean {near}? "));
            let help = format!("{}there are {}", near.unwrap_or_default(), NAMES.join(", "));
            return Err(ControlError::UnknownSetting { name, help });
        }
        let (setting, config) = match name.strip_suffix("-reverse") {
            Some(setting) => (setting, &mut self.reverse),
            None => (name.as_str(), &mut self.forward),
        };
        let message = |message: String| ControlError::setting(&name, message);
        match setting {
            "rate" | "delay" | "loss" | "reorder" if value.starts_with('{') => {
                config.vary(setting, value, folder).map_err(message)?;
            }
            "rate" if value == "unlimited" => {
                config.rate = UNLIMITED;
                config.constant("rate");
            }
            "rate" => {
                let rate: Rate = value.parse().map_err(|error| ControlError::setting(&name, error))?;
                if rate < SLOWEST {
                    return Err(message(format!("{value} is too slow: at least {SLOWEST}")));
                }
                config.rate = rate;
                config.constant("rate");
            }
            "qdisc" => {
                let spec: Spec = value.parse().map_err(|error: giveway_disciplines::SpecError| {
                    let help = error.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                    message(format!("{}{help}", error.message))
                })?;
                // Build it once here, so that an error is reported now and not in the forwarding thread.
                let context = crate::link::context(config.rate, Streams::new(0));
                spec.build::<giveway_live::Frame>(&context)
                    .map_err(|invalid| message(invalid.to_string()))?;
                config.qdisc = spec;
            }
            "delay" => {
                config.emulation.delay = time(&name, value)?;
                config.constant("delay");
            }
            "jitter" => config.emulation.jitter = time(&name, value)?,
            "fragment" => config.fragment = size(&name, value)?,
            "reassemble" => {
                config.reassemble = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(message(format!("\"{value}\" is neither yes nor no"))),
                }
            }
            "reorder" if value == "none" => config.constant("reorder"),
            "reorder" => {
                let example = "{ percent = \"1%\", distance = 3 }";
                return Err(message(format!("\"{value}\" is not a table: write none, or {example}")));
            }
            "duplicate" | "corrupt" | "unordered" => {
                let read = link_key(setting, value, None);
                let read = read.map_err(|error| ControlError::setting(&name, error))?;
                let impairments = &mut config.emulation.impairments;
                match setting {
                    "duplicate" => impairments.duplicate = read.duplicate,
                    "corrupt" => impairments.corrupt = read.corrupt,
                    _ => impairments.unordered = read.unordered,
                }
            }
            _ => {
                let loss = value.parse::<Share>();
                config.emulation.loss = loss.map_err(|error| ControlError::setting(&name, error))?;
                config.constant("loss");
            }
        }
        // A discipline that is valid for the old rate may be invalid for the new one.
        config.check_built().map_err(message)
    }

    /// Checks that interfaces with these limits support this configuration.
    ///
    /// # Errors
    /// The first setting that they do not support.
    pub fn within(&self, limits: &LinkLimits) -> Result<(), ControlError> {
        for (config, suffix) in [(&self.forward, ""), (&self.reverse, "-reverse")] {
            let used = [("fragment", config.fragment.is_some()), ("reassemble", config.reassemble)];
            if let Some((name, _)) = used.into_iter().find(|(_, used)| *used && !limits.ethernet) {
                return Err(ControlError::setting(
                    &format!("{name}{suffix}"),
                    "fragments have an EtherType, and a TUN interface carries only IP packets; use two Ethernet interfaces",
                ));
            }
            // Ethernet header and a VLAN tag have 18 bytes.
            let packet = limits.longest.saturating_sub(18);
            if let Some(size) = config.fragment.filter(|size| packet > size.longest()) {
                let least = packet.div_ceil(fragment::MAX) + fragment::HEADER;
                let (bytes, most) = (size.bytes(), fragment::MAX);
                let message = format!(
                    "an MTU of {packet} bytes needs more than {most} fragments of {bytes} bytes, which is the limit; write {least} at \
                     least"
                );
                return Err(ControlError::setting(&format!("fragment{suffix}"), message));
            }
        }
        Ok(())
    }

    /// The settings that differ from `from`: names and values of `self`, in the order of [`NAMES`].
    pub fn differs(&self, from: &BridgeConfig) -> Vec<(&'static str, String)> {
        NAMES
            .iter()
            .map(|name| (*name, self.get(name)))
            .filter(|(name, value)| from.get(name) != *value)
            .collect()
    }

    /// The value of a setting, as it would be written.
    pub fn get(&self, name: &str) -> String {
        let (setting, config) = match name.strip_suffix("-reverse") {
            Some(setting) => (setting, &self.reverse),
            None => (name, &self.forward),
        };
        if let Some(text) = config.tables.get(setting) {
            return text.clone();
        }
        let LinkEmulation { impairments, .. } = &config.emulation;
        match setting {
            "rate" => rate(config.rate),
            "qdisc" => config.qdisc.to_string(),
            "delay" => config.emulation.delay.to_string(),
            "jitter" => config.emulation.jitter.to_string(),
            "fragment" => config.fragment.map_or("none".to_owned(), |size| size.bytes().to_string()),
            "reassemble" => yes_or_no(config.reassemble),
            "reorder" => "none".to_owned(),
            "duplicate" => impairments.duplicate.to_string(),
            "corrupt" => impairments.corrupt.to_string(),
            "unordered" => yes_or_no(impairments.unordered),
            _ => config.emulation.loss.to_string(),
        }
    }
}

/// True if a setting has this name, in any of its forms.
pub(crate) fn is_setting(name: &str) -> bool {
    NAMES.contains(&canonical(name).as_str())
}

/// The name in [`NAMES`] for `name`: `rate_reverse` and the former `rate-back` are `rate-reverse`.
pub fn canonical(name: &str) -> String {
    let name = name.replace('_', "-");
    match name.strip_suffix("-back") {
        Some(setting) => format!("{setting}-reverse"),
        None => name,
    }
}

/// Smallest rate: below it a single packet takes minutes.
const SLOWEST: Rate = Rate::kbit(1);
/// Longest delay: a longer one is probably a mistake in the unit.
const LONGEST: Span = Span::s(60);

/// Parses the time `text` of the setting `name`.
fn time(name: &str, text: &str) -> Result<Span, ControlError> {
    let span: Span = text.parse().map_err(|error| ControlError::setting(name, error))?;
    if span > LONGEST {
        return Err(ControlError::setting(name, format!("{text} is too long: at most {LONGEST}")));
    }
    Ok(span)
}

/// Parses the size of fragments in the setting `name`: a number of bytes, or none.
fn size(name: &str, text: &str) -> Result<Option<Size>, ControlError> {
    if text == "none" {
        return Ok(None);
    }
    let bytes = text.parse::<u64>().ok().or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0));
    let bytes = bytes.ok_or_else(|| {
        ControlError::setting(name, format!("\"{text}\" is not a number of bytes: write 500, 800, or none"))
    })?;
    Size::new(bytes).map(Some).map_err(|error| ControlError::setting(name, error))
}

/// Formats a truth value.
fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Formats a rate; [`UNLIMITED`] is `unlimited`.
pub fn rate(rate: Rate) -> String {
    if rate == UNLIMITED { "unlimited".to_owned() } else { rate.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_error(name: &str, value: &str) -> String {
        BridgeConfig::default().set(name, value, None).unwrap_err().to_string()
    }

    #[test]
    fn errors_of_settings_name_a_correction() {
        assert!(set_error("rte", "1mbit").starts_with("unknown setting \"rte\"; did you mean rate?"));
        assert!(set_error("rate", "20").contains("has no unit"), "{}", set_error("rate", "20"));
        assert!(set_error("qdisc-reverse", "fq_codl").contains("did you mean \"fq_codel\""));
        assert!(set_error("delay", "20min").starts_with("delay: "));
        assert!(set_error("loss", "half").starts_with("loss: "));
        assert_eq!(set_error("rate", "10bit"), "rate: 10bit is too slow: at least 1kbit");
    }

    #[test]
    fn every_setting_is_parsed_and_written() {
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
            "{ percent = \"1%\", distance = 3 }",
            "none",
            "0.01",
            "0",
            "0",
            "0.02",
            "yes",
            "no",
            "800",
            "none",
            "yes",
            "no",
        ];
        let mut config = BridgeConfig::default();
        for (name, value) in NAMES.iter().zip(values) {
            config.set(name, value, None).unwrap();
            assert_eq!(config.get(name), value, "{name}");
        }
        let changed = config.differs(&BridgeConfig::default());
        assert_eq!(changed.len(), 14, "{changed:?}: eight are as they are by default");
    }

    #[test]
    fn tables_take_the_place_of_constants_and_constants_that_of_tables() {
        let tables = [
            (
                "rate",
                "{ steps = [[\"0s\", \"50mbit\"], [\"4s\", \"10mbit\"], [\"8s\", \"1mbit\"]] }",
                "8mbit",
            ),
            ("delay-reverse", "{ ramp = [[\"0s\", \"20ms\"], [\"1s\", \"60ms\"]] }", "5ms"),
            ("loss", "{ model = \"gemodel\", p = \"1%\", r = \"20%\" }", "0.001"),
        ];
        let mut config = BridgeConfig::default();
        for (name, table, _) in tables {
            config.set(name, table, None).unwrap();
            assert_eq!(config.get(name), table);
        }
        let (forward, reverse) = (config.of(Direction::Forward), config.of(Direction::Reverse));
        assert_eq!((forward.rate, reverse.emulation.delay), (Rate::mbit(30), Span::ms(40)), "the means");
        assert!(forward.emulation.impairments.loss.is_some());
        config.for_time(Span::s(16)).unwrap();
        assert_eq!(config.of(Direction::Forward).rate, Rate::bit(15_500_000));
        let mut other = BridgeConfig::default();
        assert!(other.take_over("rate", tables[0].1, &config) && !other.take_over("rate", "8mbit", &config));
        assert_eq!(other.of(Direction::Forward).rate, Rate::bit(15_500_000));
        for (name, _, constant) in tables {
            config.set(name, constant, None).unwrap();
            assert_eq!(config.get(name), constant);
        }
        assert!(config.of(Direction::Forward).emulation.impairments.rate.is_none());
        assert_eq!(
            set_error("rate", "{ steps = [[\"1s\", \"5mbit\"]] }"),
            "rate: steps: the first point is at 1s, and nothing says what is before; begin with a point at \"0s\""
        );
        assert!(set_error("rate", "{ trace = \"x.mahi\" }").contains("a running bridge opens no files"));
        assert!(set_error("delay", "{ steps = [[\"0s\", \"2min\"]] }").contains("too long"));
        assert!(set_error("reorder", "1%").contains("is not a table: write none, or { percent"));
    }

    #[test]
    fn invalid_fragment_sizes_are_errors() {
        assert!(set_error("fragment", "60").contains("60 bytes: fragments have 68 to 9000 bytes"));
        assert!(set_error("fragment-reverse", "large").contains("write 500, 800, or none"));
        assert!(set_error("reassemble", "maybe").contains("neither yes nor no"));
        let within = |name: &str, value: &str, ethernet, longest| {
            let mut config = BridgeConfig::default();
            config.set(name, value, None).unwrap();
            config.within(&LinkLimits { ethernet, longest }).map_err(|error| error.to_string())
        };
        assert_eq!(within("fragment", "68", true, 1518), Ok(()));
        assert!(
            within("reassemble-reverse", "yes", false, 1500).unwrap_err().starts_with("reassemble-reverse: ")
        );
        let refused = within("fragment-reverse", "68", true, 9018).unwrap_err();
        assert!(
            refused.starts_with("fragment-reverse: ") && refused.ends_with("write 79 at least"),
            "{refused}"
        );
        assert_eq!(within("fragment", "79", true, 9018), Ok(()));
    }
}
