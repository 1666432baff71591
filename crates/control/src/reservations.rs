//! How reservations are shown, and which disciplines do something with them.

use disciplines::Spec;
use live::reservations::LinkReservations;
use live::station::EVERYONE;
use qdisc::{Qdisc, Rate, Site, Streams};
use reserve::{Malformed, Reservation};
use serde_json::{Value, json};

use crate::config::DirectionConfig;

/// Whether a discipline does anything with a reservation.
pub fn guarantees(spec: &Spec, rate: Rate) -> bool {
    let mut knows = false;
    if let Ok(built) = spec.build::<live::Frame>(&Site::new(rate, Streams::new(0))) {
        // Those that do say what they have admitted.
        built.gauges(&mut |name, _| knows |= name == "reserved_bit");
    }
    knows
}

/// Whether the configured discipline does anything with a reservation.
pub fn config_guarantees(config: &DirectionConfig) -> bool {
    guarantees(&config.qdisc, config.rate)
}

/// What to say about a discipline that was changed while reservations are kept.
pub fn about_change(kept: bool, config: &DirectionConfig) -> Option<String> {
    let name = config.qdisc.name();
    match (kept, config_guarantees(config)) {
        (true, false) => Some(format!("{name} does nothing with reservations, which are kept")),
        (false, true) => {
            Some(format!("{name} would know reservations, but that direction began without: begin anew"))
        }
        _ => None,
    }
}

/// What happened, by name: messages that were decided about, reservations that went, messages that were
/// wrong.
pub fn counts(link: &LinkReservations) -> Vec<(&'static str, u64)> {
    let of = &link.counts;
    let mut all = vec![
        ("granted", of.granted),
        ("refused", of.refused),
        ("ended", of.ended),
        ("expired", of.expired),
        ("revoked", of.revoked),
        ("unknown_end", of.unknown_ends),
        ("answer_passed", of.stray_answers),
        ("overflow", link.overflow),
    ];
    // Without its first two bytes a frame is not one of ours.
    all.extend(Malformed::NAMES.into_iter().zip(link.malformed).filter(|(name, _)| *name != "magic"));
    all
}

/// For programs.
pub fn to_json(link: &LinkReservations) -> Value {
    let counts: serde_json::Map<String, Value> =
        counts(link).into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "reservable_bps": link.capacity.as_bit(),
        "reserved_bps": link.reserved.as_bit(),
        "flows": link.list.len(),
        "messages": counts,
    })
}

/// For programs, one reservation. Times are Unix times in seconds; a finish that never comes is null.
pub fn listed(direction: &str, of: &Reservation) -> Value {
    let time = |ns: u64| (ns != u64::MAX).then_some(ns as f64 / 1e9);
    let owner: [u8; 8] = of.owner.id.to_be_bytes();
    json!({
        "direction": direction,
        "flow": of.tuple.to_string(),
        "rate_bps": of.rate.as_bit(),
        "start": time(of.start),
        "finish": time(of.finish),
        "lapses": time(of.until),
        "owner": address(std::array::from_fn(|at| owner[at + 2])),
        "key": !of.owner.open,
    })
}

/// A link address, for people.
pub fn address(bytes: [u8; 6]) -> String {
    if bytes == EVERYONE {
        return "everyone".to_owned();
    }
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// For people, in a line of the summary; nothing when nobody asked for anything.
pub fn in_words(link: &LinkReservations) -> Option<String> {
    let counts = &link.counts;
    let wrong: u64 = link.malformed.iter().sum();
    let parts = [
        ("granted", counts.granted),
        ("refused", counts.refused),
        ("ended", counts.ended),
        ("expired", counts.expired),
        ("revoked", counts.revoked),
        ("malformed or forged", wrong),
        ("lost", link.overflow),
    ];
    let said = parts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}"));
    let said: Vec<String> = said.collect();
    (!said.is_empty())
        .then(|| format!("{}; {} of {} in the end", said.join(", "), link.reserved, link.capacity))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which disciplines do something with reservations is not written down twice: they show it.
    #[test]
    fn who_guarantees_rates_is_known() {
        let knows = |name: &str| guarantees(&name.parse().unwrap(), Rate::mbit(10));
        assert!(["trr_sound", "wfq", "qfq", "vc"].into_iter().all(knows));
        assert!(!["fifo", "fq_codel", "drr"].into_iter().any(knows));
    }
}
