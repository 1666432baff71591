//! The settings of `--reserve`, from its flags.

use giveway_control::config::{BridgeConfig, Direction, UNLIMITED};
use giveway_control::reservations::{config_guarantees, guarantees};
use giveway_disciplines::ALL;
use giveway_live::reservations::Settings;
use giveway_program::commands::reserving::Reserving;
use giveway_qdisc::{Rate, Share, Span};
use giveway_reserve::Limits;

use super::error::BridgeError;
use crate::key::key;

/// The rate of each direction; `None` for a direction without reservations.
type Links = [Option<Rate>; 2];

/// The settings of the reservation service, and the rate of each direction that keeps reservations;
/// `None` without `--reserve`.
///
/// # Errors
/// The first flag with an invalid value. The message says what to type.
pub fn settings(flags: &Reserving, config: &BridgeConfig) -> Result<Option<(Settings, Links)>, BridgeError> {
    if !flags.reserve {
        return Ok(None);
    }
    check(flags).map_err(BridgeError::Usage)?;
    let varies = |side: &Direction| config.of(*side).emulation.impairments.rate.is_some();
    if Direction::ALL.iter().any(varies) {
        let message = "--reserve: a rate that varies has no share to reserve: set a constant --rate";
        return Err(BridgeError::Usage(message.to_owned()));
    }
    let links = [Direction::Forward, Direction::Reverse].map(|side| {
        let config = config.of(side);
        config_guarantees(config).then_some(config.rate)
    });
    if links == [None, None] {
        let names: Vec<&str> = ALL
            .iter()
            .filter(|entry| guarantees(&entry.default(), Rate::mbit(10)))
            .map(|entry| entry.name)
            .collect();
        return Err(BridgeError::Usage(format!(
            "--reserve: {} ignores reservations: set --qdisc to one of {}",
            config.of(Direction::Forward).qdisc.name(),
            names.join(", ")
        )));
    }
    if links.iter().flatten().all(|rate| *rate == UNLIMITED) {
        let message =
            "--reserve: a link without a rate has nothing to reserve: set --rate, as in --rate 10mbit";
        return Err(BridgeError::Usage(message.to_owned()));
    }
    let millionths = |share: Share| (share.get() * 1e6).round() as u64;
    let key = flags.reserve_key_file.as_deref().map(|file| key("--reserve-key-file", file)).transpose()?;
    let open_share = match (flags.reserve_open, key) {
        (Some(share), _) => millionths(share),
        (None, Some(_)) => 0,
        (None, None) => Limits::OPEN_SHARE,
    };
    let settings = Settings {
        types: flags.reserve_types,
        key,
        share: millionths(flags.reserve_share),
        most: flags.reserve_most as usize,
        lifetime: flags.reserve_lifetime,
        least: flags.reserve_least,
        owner_flows: flags.reserve_owner_flows as usize,
        owner_share: millionths(flags.reserve_owner_share),
        open_share,
        skew: flags.reserve_skew,
    };
    for limits in links.iter().flatten().map(|rate| settings.limits(*rate)) {
        // If every permitted rate is below the smallest rate, no request can be granted.
        let open = if key.is_none() { limits.open() } else { limits.capacity };
        let most = limits.per_owner().min(open);
        if most < flags.reserve_least {
            return Err(BridgeError::Usage(format!(
                "--reserve-least: {} is more than one machine may reserve here, {most}: write a lower rate, or a \
                 larger --reserve-owner-share",
                flags.reserve_least
            )));
        }
    }
    Ok(Some((settings, links)))
}

/// Checks the flags that do not depend on the disciplines.
fn check(flags: &Reserving) -> Result<(), String> {
    if flags.reserve_share.get() <= 0.0 {
        return Err("--reserve-share: with 0 % nothing can be reserved: write for example 95%".to_owned());
    }
    if flags.reserve_lifetime < Span::s(1) {
        return Err(format!(
            "--reserve-lifetime: {} is too short: clients refresh every few seconds, so write at least 1s",
            flags.reserve_lifetime
        ));
    }
    for (flag, share) in [("owner-share", Some(flags.reserve_owner_share)), ("open", flags.reserve_open)] {
        let is_zero = share.is_some_and(|share| share.get() <= 0.0);
        // With a key, clients without the key may be excluded.
        if is_zero && !(flag == "open" && flags.reserve_key_file.is_some()) {
            return Err(format!(
                "--reserve-{flag}: with 0 % no reservation is possible: write for example 50%"
            ));
        }
    }
    if flags.reserve_skew < Span::s(1) || flags.reserve_skew > Span::s(3600) {
        return Err(format!(
            "--reserve-skew: {} is not between 1s and 1h: clocks in a network may differ by a second, and message numbers \
             are kept for this time",
            flags.reserve_skew
        ));
    }
    Ok(())
}
