//! Output of reservations, and the disciplines that honour them.

use giveway_disciplines::Spec;
use giveway_live::reservations::LinkReservations;
use giveway_live::station::EVERYONE;
use giveway_qdisc::{Qdisc, Rate, Streams};
use giveway_reserve::{MessageError, Reservation};
use serde_json::{Value, json};

use crate::config::DirectionConfig;

/// True if a discipline honours reservations.
pub fn guarantees(spec: &Spec, rate: Rate) -> bool {
    let mut guarantees_rates = false;
    if let Ok(built) = spec.build::<giveway_live::Frame>(&crate::link::context(rate, Streams::new(0))) {
        // A discipline that honours reservations has a gauge of the rate that it has admitted.
        built.gauges(&mut |name, _| guarantees_rates |= name == "reserved_bit");
    }
    guarantees_rates
}

/// True if the configured discipline honours reservations.
pub fn config_guarantees(config: &DirectionConfig) -> bool {
    guarantees(&config.qdisc, config.rate)
}

/// The remark about a changed discipline of a bridge with reservations, if there is one.
pub fn about_change(kept: bool, config: &DirectionConfig) -> Option<String> {
    let name = config.qdisc.name();
    match (kept, config_guarantees(config)) {
        (true, false) => Some(format!("{name} ignores reservations; they stay in the table")),
        (false, true) => Some(format!(
            "{name} honours reservations, but this direction was started without them: restart the bridge"
        )),
        _ => None,
    }
}

/// Counters of control packets and reservations, by outcome.
pub fn outcomes(link: &LinkReservations) -> Vec<(&'static str, u64)> {
    let of = &link.counts;
    vec![
        ("granted", of.granted),
        ("refused", of.refused),
        ("ended", of.ended),
        ("expired", of.expired),
        ("revoked", of.revoked),
        ("unknown_end", of.unknown_ends),
        ("answer_passed", of.stray_answers),
        ("overflow", link.overflow),
    ]
}

/// Counters of malformed control packets, by reason.
pub fn malformed(link: &LinkReservations) -> Vec<(&'static str, u64)> {
    // A frame without the magic bytes is not a control packet, so this counter is always zero.
    MessageError::NAMES.into_iter().zip(link.malformed).filter(|(name, _)| *name != "magic").collect()
}

/// A reservation, as JSON. Times are Unix times in seconds; an open end is null.
pub fn listed(direction: &str, of: &Reservation) -> Value {
    let time = |ns: u64| (ns != u64::MAX).then_some(ns as f64 / 1e9);
    let owner: [u8; 8] = of.owner.id.to_be_bytes();
    json!({
        "direction": direction,
        "flow": of.tuple.to_string(),
        "rate_bps": of.rate.as_bit(),
        "start": time(of.start),
        "finish": time(of.finish),
        "expires": time(of.until),
        "owner": address(std::array::from_fn(|at| owner[at + 2])),
        "key": !of.owner.open,
    })
}

/// Formats a link address.
pub fn address(bytes: [u8; 6]) -> String {
    if bytes == EVERYONE {
        return "everyone".to_owned();
    }
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A discipline that honours reservations has a gauge for them; there is no list of such disciplines.
    #[test]
    fn disciplines_that_guarantee_rates_are_recognised() {
        let guarantees_rates = |name: &str| guarantees(&name.parse().unwrap(), Rate::mbit(10));
        assert!(["trr_sound", "wfq", "qfq", "vc"].into_iter().all(guarantees_rates));
        assert!(!["fifo", "fq_codel", "drr"].into_iter().any(guarantees_rates));
    }
}
