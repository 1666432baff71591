//! `--reserve` and `--flow-hash`: what they ask for, and how reservations are shown.

use std::num::NonZeroU32;
use std::path::PathBuf;

use disciplines::{ALL, Spec};
use live::reservations::{Settings, Shown};
use live::station::EVERYONE;
use qdisc::{FlowHash, Qdisc, Rate, Share, Site, Span, Streams};
use reserve::{EtherTypes, Malformed, Reservation, Table};
use serde_json::{Value, json};

use super::settings::{Side, UNLIMITED, Wish, Wishes};
use crate::reserve::{ether_types, key};

/// Keep reservations.
#[derive(clap::Args)]
#[command(next_help_heading = "Reservations")]
pub struct Reserving {
    /// Grant rates to flows that ask for them (`giveway reserve`), and tell the discipline
    #[arg(long)]
    pub reserve: bool,
    /// The share of a link that may be reserved
    #[arg(long, value_name = "SHARE", default_value = "95%", requires = "reserve")]
    reserve_share: Share,
    /// How long a reservation lives when its sender does not repeat it
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "reserve")]
    reserve_lifetime: Span,
    /// The most flows that may have a reservation, in each direction
    #[arg(long, value_name = "FLOWS", default_value_t = Table::MOST as u32, requires = "reserve",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    reserve_most: u32,
    /// Only who has this key may reserve: a file with 32 hexadecimal digits, as `openssl rand -hex 16` writes
    #[arg(long, value_name = "FILE", requires = "reserve")]
    reserve_key_file: Option<PathBuf>,
    /// The EtherTypes of control packets: one for all, or start,end; 0x0801,0x0802 are those of the paper
    #[arg(long, value_name = "TYPES", default_value = "0x88b5", requires = "reserve", value_parser = ether_types)]
    reserve_types: EtherTypes,
    /// How flows are told apart: keyed, or xor:PRIME as the TRR paper does, which is easily fooled
    #[arg(long, value_name = "HASH", default_value = "keyed", value_parser = flow_hash)]
    pub flow_hash: Telling,
}

/// The prime of a hash that is not keyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telling(pub Option<NonZeroU32>);

fn flow_hash(text: &str) -> Result<Telling, String> {
    let FlowHash::XorMod(published) = FlowHash::PUBLISHED else { unreachable!("the paper's is that") };
    let prime = match text.split_once(':') {
        _ if text == "keyed" => return Ok(Telling(None)),
        None if text == "xor" => published,
        Some(("xor", number)) => {
            number.parse().map_err(|_| format!("\"{number}\" is no number: write xor:{published}"))?
        }
        _ => return Err(format!("there are keyed and xor:PRIME, as in xor:{published}")),
    };
    let is_prime =
        |n: u32| n > 1 && (2..).take_while(|d: &u32| d.saturating_mul(*d) <= n).all(|d| !n.is_multiple_of(d));
    if !is_prime(prime) {
        let next = (prime.max(2)..=u32::MAX).find(|n| is_prime(*n)).unwrap_or(published);
        return Err(format!("{prime} is no prime, and the paper's hash is modulo one: write xor:{next}"));
    }
    Ok(Telling(NonZeroU32::new(prime)))
}

/// The rate of each direction that keeps reservations.
type Links = [Option<Rate>; 2];

/// Whether a discipline does anything with a reservation.
fn guarantees(spec: &Spec, rate: Rate) -> bool {
    let mut knows = false;
    if let Ok(built) = spec.build::<live::Frame>(&Site::new(rate, Streams::new(0))) {
        // Those that do say what they have admitted.
        built.gauges(&mut |name, _| knows |= name == "reserved_bit");
    }
    knows
}

fn wish_guarantees(wish: &Wish) -> bool {
    guarantees(&wish.qdisc, wish.rate)
}

impl Reserving {
    /// How reservations are kept, if they are, and the rate of each direction that keeps them.
    ///
    /// # Errors
    /// A sentence on what is wrong, and what to type instead.
    pub fn settings(&self, wishes: &Wishes) -> Result<Option<(Settings, Links)>, String> {
        if !self.reserve {
            return Ok(None);
        }
        let share = self.reserve_share.get();
        if share <= 0.0 {
            return Err("--reserve-share: with 0 % nothing can be reserved: write for example 95%".to_owned());
        }
        if self.reserve_lifetime < Span::s(1) {
            return Err(format!(
                "--reserve-lifetime: {} is too short: senders repeat every few seconds, so at least 1s",
                self.reserve_lifetime
            ));
        }
        let links = [Side::Forward, Side::Back].map(|side| {
            let wish = wishes.of(side);
            wish_guarantees(wish).then_some(wish.rate)
        });
        if links == [None, None] {
            let names: Vec<&str> = ALL
                .iter()
                .filter(|entry| guarantees(&(entry.default)(), Rate::mbit(10)))
                .map(|entry| entry.name)
                .collect();
            return Err(format!(
                "--reserve: {} does nothing with a reservation: write --qdisc with one of {}",
                wishes.of(Side::Forward).qdisc.name(),
                names.join(", ")
            ));
        }
        if links.iter().flatten().all(|rate| *rate == UNLIMITED) {
            return Err(
                "--reserve: a link without a rate has nothing to reserve: write --rate, as in --rate 10mbit"
                    .to_owned(),
            );
        }
        let settings = Settings {
            types: self.reserve_types,
            key: self.reserve_key_file.as_deref().map(|file| key("--reserve-key-file", file)).transpose()?,
            share: (share * 1e6).round() as u64,
            most: self.reserve_most as usize,
            lifetime: self.reserve_lifetime,
        };
        Ok(Some((settings, links)))
    }
}

/// Why nobody can reserve on an interface like this.
pub fn not_ethernet(name: &str) -> String {
    format!(
        "--reserve: control packets have an EtherType, and {name} carries IP packets without one: put it between two Ethernet \
         interfaces (a veth pair will do)"
    )
}

/// What to say about a discipline that was changed while reservations are kept.
pub fn about_change(kept: bool, wish: &Wish) -> Option<String> {
    let name = wish.qdisc.name();
    match (kept, wish_guarantees(wish)) {
        (true, false) => Some(format!("{name} does nothing with reservations, which are kept")),
        (false, true) => {
            Some(format!("{name} would know reservations, but that direction began without: begin anew"))
        }
        _ => None,
    }
}

/// What happened, by name: messages that were decided about, reservations that went, messages that were wrong.
pub fn counts(shown: &Shown) -> Vec<(&'static str, u64)> {
    let of = &shown.counts;
    let mut all = vec![
        ("granted", of.granted),
        ("refused", of.refused),
        ("ended", of.ended),
        ("expired", of.expired),
        ("revoked", of.revoked),
        ("unknown_end", of.unknown_ends),
        ("answer_passed", of.stray_answers),
        ("overflow", shown.overflow),
    ];
    // Without its first two bytes a frame is not one of ours.
    all.extend(Malformed::NAMES.into_iter().zip(shown.malformed).filter(|(name, _)| *name != "magic"));
    all
}

/// For programs.
pub fn to_json(shown: &Shown) -> Value {
    let counts: serde_json::Map<String, Value> =
        counts(shown).into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "reservable_bps": shown.capacity.as_bit(),
        "reserved_bps": shown.reserved.as_bit(),
        "flows": shown.list.len(),
        "messages": counts,
    })
}

/// For programs, one reservation. Times are Unix times in seconds; a finish that never comes is null.
pub fn listed(direction: &str, of: &Reservation) -> Value {
    let time = |ns: u64| (ns != u64::MAX).then_some(ns as f64 / 1e9);
    let owner: [u8; 8] = of.owner.to_be_bytes();
    json!({
        "direction": direction,
        "flow": of.tuple.to_string(),
        "rate_bps": of.rate.as_bit(),
        "start": time(of.start),
        "finish": time(of.finish),
        "lapses": time(of.until),
        "owner": address(std::array::from_fn(|at| owner[at + 2])),
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
pub fn in_words(shown: &Shown) -> Option<String> {
    let counts = &shown.counts;
    let wrong: u64 = shown.malformed.iter().sum();
    let parts = [
        ("granted", counts.granted),
        ("refused", counts.refused),
        ("ended", counts.ended),
        ("expired", counts.expired),
        ("revoked", counts.revoked),
        ("malformed or forged", wrong),
        ("lost", shown.overflow),
    ];
    let said = parts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}"));
    let said: Vec<String> = said.collect();
    (!said.is_empty())
        .then(|| format!("{}; {} of {} in the end", said.join(", "), shown.reserved, shown.capacity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read() {
        let prime = |n| Ok(Telling(NonZeroU32::new(n)));
        assert_eq!(flow_hash("keyed"), Ok(Telling(None)));
        assert_eq!((flow_hash("xor"), flow_hash("xor:101")), (prime(1021), prime(101)));
        let wrong = |text: &str| flow_hash(text).unwrap_err();
        assert!(wrong("xor:1000").ends_with("write xor:1009"), "{}", wrong("xor:1000"));
        assert!(wrong("xor:0").ends_with("write xor:2"), "{}", wrong("xor:0"));
        assert!(wrong("md5").contains("there are keyed and xor:PRIME"));
        assert!(wrong("xor:many").contains("is no number"));
    }

    /// Which disciplines do something with reservations is not written down twice: they show it.
    #[test]
    fn who_guarantees_rates_is_known() {
        let knows = |name: &str| guarantees(&name.parse().unwrap(), Rate::mbit(10));
        assert!(["trr_sound", "wfq", "qfq", "vc"].into_iter().all(knows));
        assert!(!["fifo", "fq_codel", "drr"].into_iter().any(knows));
    }
}
