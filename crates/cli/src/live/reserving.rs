//! The flags of `--reserve`, and `--flow-hash`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use giveway_control::config::{BridgeConfig, Direction, UNLIMITED};
use giveway_control::reservations::{config_guarantees, guarantees};
use giveway_disciplines::ALL;
use giveway_live::reservations::Settings;
use giveway_qdisc::{FlowHash, Rate, Share, Span};
use giveway_reserve::{EtherTypes, Limits};

use super::error::BridgeError;
use crate::reservation_args::{ether_types, key};

/// Flags of reservations.
#[derive(clap::Args)]
#[command(next_help_heading = "Reservations")]
pub struct Reserving {
    /// Accept reservations (`giveway reserve`), and give flows their reserved rates
    #[arg(long)]
    pub reserve: bool,
    /// Share of the link rate that may be reserved
    #[arg(long, value_name = "SHARE", default_value = "95%", requires = "reserve")]
    reserve_share: Share,
    /// Lifetime of a reservation that its client does not refresh
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "reserve")]
    reserve_lifetime: Span,
    /// Largest number of reservations in each direction
    #[arg(long, value_name = "FLOWS", default_value_t = Limits::MAX as u32, requires = "reserve",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    reserve_most: u32,
    /// Smallest rate of a reservation
    #[arg(long, value_name = "RATE", default_value_t = Limits::MIN, requires = "reserve")]
    reserve_least: Rate,
    /// Share of the reservable rate that one machine may reserve
    #[arg(long, value_name = "SHARE", default_value = "50%", requires = "reserve")]
    reserve_owner_share: Share,
    /// Largest number of reservations of one machine in each direction
    #[arg(long, value_name = "FLOWS", default_value_t = Limits::OWNER_FLOWS as u32, requires = "reserve",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    reserve_owner_flows: u32,
    /// File with the key of trusted clients: 32 hexadecimal digits, as `openssl rand -hex 16` prints them
    #[arg(long, value_name = "FILE", requires = "reserve")]
    reserve_key_file: Option<PathBuf>,
    /// Share of the reservable rate, and of the reservations, for all clients without the key together
    /// [default: 50% without --reserve-key-file, otherwise 0%]
    #[arg(long, value_name = "SHARE", requires = "reserve")]
    reserve_open: Option<Share>,
    /// Largest clock difference to a client with the key
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "reserve_key_file")]
    reserve_skew: Span,
    /// EtherTypes of control frames: one for all, or START,END as in the TRR paper: 0x0801,0x0802
    #[arg(long, value_name = "TYPES", default_value = "0x88b5", requires = "reserve", value_parser = ether_types)]
    reserve_types: EtherTypes,
    /// Flow hash: keyed, or xor:PRIME as in the TRR paper, which is easy to attack. It applies to all
    /// disciplines
    #[arg(long, value_name = "HASH", default_value = "keyed", value_parser = flow_hash)]
    pub flow_hash: HashPrime,
}

/// The prime of the paper's flow hash; `None` for the keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashPrime(pub Option<NonZeroU32>);

fn flow_hash(text: &str) -> Result<HashPrime, String> {
    let FlowHash::XorMod(published) = FlowHash::PUBLISHED else {
        unreachable!("the paper's hash is a remainder")
    };
    let prime = match text.split_once(':') {
        _ if text == "keyed" => return Ok(HashPrime(None)),
        None if text == "xor" => published,
        Some(("xor", number)) => {
            number.parse().map_err(|_| format!("\"{number}\" is not a number: write xor:{published}"))?
        }
        _ => return Err(format!("there are keyed and xor:PRIME, as in xor:{published}")),
    };
    let is_prime =
        |n: u32| n > 1 && (2..).take_while(|d: &u32| d.saturating_mul(*d) <= n).all(|d| !n.is_multiple_of(d));
    if !is_prime(prime) {
        let next = (prime.max(2)..=u32::MAX).find(|n| is_prime(*n)).unwrap_or(published);
        return Err(format!(
            "{prime} is not prime, but the modulus of the paper's hash is: write xor:{next}"
        ));
    }
    Ok(HashPrime(NonZeroU32::new(prime)))
}

/// The rate of each direction; `None` for a direction without reservations.
type Links = [Option<Rate>; 2];

impl Reserving {
    /// The settings of the reservation service, and the rate of each direction that keeps reservations;
    /// `None` without `--reserve`.
    ///
    /// # Errors
    /// The first flag with an invalid value. The message says what to type.
    pub fn settings(&self, config: &BridgeConfig) -> Result<Option<(Settings, Links)>, BridgeError> {
        if !self.reserve {
            return Ok(None);
        }
        self.check().map_err(BridgeError::Usage)?;
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
        let key = self.reserve_key_file.as_deref().map(|file| key("--reserve-key-file", file)).transpose()?;
        let open_share = match (self.reserve_open, key) {
            (Some(share), _) => millionths(share),
            (None, Some(_)) => 0,
            (None, None) => Limits::OPEN_SHARE,
        };
        let settings = Settings {
            types: self.reserve_types,
            key,
            share: millionths(self.reserve_share),
            most: self.reserve_most as usize,
            lifetime: self.reserve_lifetime,
            least: self.reserve_least,
            owner_flows: self.reserve_owner_flows as usize,
            owner_share: millionths(self.reserve_owner_share),
            open_share,
            skew: self.reserve_skew,
        };
        for limits in links.iter().flatten().map(|rate| settings.limits(*rate)) {
            // If every permitted rate is below the smallest rate, no request can be granted.
            let open = if key.is_none() { limits.open() } else { limits.capacity };
            let most = limits.per_owner().min(open);
            if most < self.reserve_least {
                return Err(BridgeError::Usage(format!(
                    "--reserve-least: {} is more than one machine may reserve here, {most}: write a lower rate, or a \
                     larger --reserve-owner-share",
                    self.reserve_least
                )));
            }
        }
        Ok(Some((settings, links)))
    }

    /// Checks the flags that do not depend on the disciplines.
    fn check(&self) -> Result<(), String> {
        if self.reserve_share.get() <= 0.0 {
            return Err("--reserve-share: with 0 % nothing can be reserved: write for example 95%".to_owned());
        }
        if self.reserve_lifetime < Span::s(1) {
            return Err(format!(
                "--reserve-lifetime: {} is too short: clients refresh every few seconds, so write at least 1s",
                self.reserve_lifetime
            ));
        }
        for (flag, share) in [("owner-share", Some(self.reserve_owner_share)), ("open", self.reserve_open)] {
            let is_zero = share.is_some_and(|share| share.get() <= 0.0);
            // With a key, clients without the key may be excluded.
            if is_zero && !(flag == "open" && self.reserve_key_file.is_some()) {
                return Err(format!(
                    "--reserve-{flag}: with 0 % no reservation is possible: write for example 50%"
                ));
            }
        }
        if self.reserve_skew < Span::s(1) || self.reserve_skew > Span::s(3600) {
            return Err(format!(
                "--reserve-skew: {} is not between 1s and 1h: clocks in a network may differ by a second, and message numbers \
                 are kept for this time",
                self.reserve_skew
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_parsed() {
        let prime = |n| Ok(HashPrime(NonZeroU32::new(n)));
        assert_eq!(flow_hash("keyed"), Ok(HashPrime(None)));
        assert_eq!((flow_hash("xor"), flow_hash("xor:101")), (prime(1021), prime(101)));
        let wrong = |text: &str| flow_hash(text).unwrap_err();
        assert!(wrong("xor:1000").ends_with("write xor:1009"), "{}", wrong("xor:1000"));
        assert!(wrong("xor:0").ends_with("write xor:2"), "{}", wrong("xor:0"));
        assert!(wrong("md5").contains("there are keyed and xor:PRIME"));
        assert!(wrong("xor:many").contains("is not a number"));
    }
}
