//! The flags of `giveway live --reserve`, and `--flow-hash`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use giveway_qdisc::{FlowHash, Rate, Share, Span};
use giveway_reserve::{EtherTypes, Limits};

use super::ether_types::ether_types;

/// Flags of reservations.
#[derive(clap::Args)]
#[command(next_help_heading = "Reservations")]
pub struct Reserving {
    /// Accept reservations (`giveway live reserve`), and give flows their reserved rates
    #[arg(long)]
    pub reserve: bool,
    /// Share of the link rate that may be reserved
    #[arg(long, value_name = "SHARE", default_value = "95%", requires = "reserve")]
    pub reserve_share: Share,
    /// Lifetime of a reservation that its client does not refresh
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "reserve")]
    pub reserve_lifetime: Span,
    /// Largest number of reservations in each direction
    #[arg(long, value_name = "FLOWS", default_value_t = Limits::MAX as u32, requires = "reserve",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub reserve_most: u32,
    /// Smallest rate of a reservation
    #[arg(long, value_name = "RATE", default_value_t = Limits::MIN, requires = "reserve")]
    pub reserve_least: Rate,
    /// Share of the reservable rate that one machine may reserve
    #[arg(long, value_name = "SHARE", default_value = "50%", requires = "reserve")]
    pub reserve_owner_share: Share,
    /// Largest number of reservations of one machine in each direction
    #[arg(long, value_name = "FLOWS", default_value_t = Limits::OWNER_FLOWS as u32, requires = "reserve",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub reserve_owner_flows: u32,
    /// File with the key of trusted clients: 32 hexadecimal digits, as `openssl rand -hex 16` prints them
    #[arg(long, value_name = "FILE", requires = "reserve")]
    pub reserve_key_file: Option<PathBuf>,
    /// Share of the reservable rate, and of the reservations, for all clients without the key together
    /// [default: 50% without --reserve-key-file, otherwise 0%]
    #[arg(long, value_name = "SHARE", requires = "reserve")]
    pub reserve_open: Option<Share>,
    /// Largest clock difference to a client with the key
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "reserve_key_file")]
    pub reserve_skew: Span,
    /// EtherTypes of control frames: one for all, or START,END as in the TRR paper: 0x0801,0x0802
    #[arg(long, value_name = "TYPES", default_value = "0x88b5", requires = "reserve", value_parser = ether_types)]
    pub reserve_types: EtherTypes,
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
