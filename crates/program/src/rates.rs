//! A warning about rates in bytes per second, in the arguments of any command.
//!
//! tc reads "10mbps" as ten megabytes per second, and so does Giveway. Most people mean megabits.

use std::ffi::OsString;

use giveway_qdisc::Rate;

use crate::show;

/// Shows a message for each argument with a rate in bytes per second.
pub fn warn(arguments: &[OsString]) {
    let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    warnings(words).iter().for_each(|warning| show::message(warning));
}

/// A sentence for each argument with a rate in bytes per second. Changes of a scenario (`--set`) are left
/// out, since the scenario reports them with their place.
fn warnings(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut before = String::new();
    for argument in arguments {
        if before != "--set" && !argument.starts_with("--set=") {
            warnings.extend(words(&argument).filter_map(warning));
        }
        before = argument;
    }
    warnings
}

/// The parts of an argument that can be a rate, without a space between number and unit.
fn words(argument: &str) -> impl Iterator<Item = String> + '_ {
    let whole =
        argument.split_whitespace().count() == 2 && argument.starts_with(|c: char| c.is_ascii_digit());
    let parts: Vec<String> = match whole {
        true => vec![argument.split_whitespace().collect()],
        false => argument.split([' ', '(', ')', '[', ']', ',', '=', '"']).map(str::to_owned).collect(),
    };
    parts.into_iter()
}

fn warning(word: String) -> Option<String> {
    let bits = word.to_ascii_lowercase().strip_suffix("bps").map(|number| format!("{number}bit"))?;
    let rate: Rate = word.parse().ok()?;
    Some(format!("\"{word}\" is a rate in bytes per second, as in tc: {rate}; for bits write {bits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Vec<String> {
        warnings(arguments.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn rates_in_bytes_per_second_are_reported_wherever_they_are() {
        assert_eq!(
            of(&["compare", "x.pcap", "--rate", "10Mbps"]),
            ["\"10Mbps\" is a rate in bytes per second, as in tc: 80mbit; for bits write 10mbit"]
        );
        assert_eq!(of(&["live", "--rate=1mbps,2mbit", "--qdisc", "cake bandwidth 8kbps"]).len(), 2);
        assert_eq!(of(&["live", "--rate", "10 MBps"]).len(), 1);
        assert_eq!(of(&["compare", "10mbit.pcap", "--rate", "10mbit"]), [""; 0]);
        assert_eq!(of(&["run", "x.toml", "--set", "link.0.rate=10mbps"]), [""; 0], "the scenario says it");
        assert_eq!(of(&["run", "notes-bps"]), [""; 0]);
    }
}
