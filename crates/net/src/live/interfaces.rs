//! The interfaces of a bridge: two, or one of a router with a detour ([`giveway_live::detour`]).

use giveway_live::checks::{self, Finding, Merging};
use giveway_live::detour::Detour;
use giveway_live::device::Ends;

use super::error::BridgeError;
use giveway_program::commands::live::Args;

/// The place where frames are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarder {
    /// This program.
    Program,
    /// The kernel, with qdiscs that this program has loaded.
    Kernel,
}

/// The interfaces by name, as flags give them.
#[derive(Clone, Copy, Debug)]
pub enum Interfaces<'a> {
    /// `--in` and `--out`.
    Two([&'a str; 2]),
    /// `--wan`.
    One(&'a str),
}

impl<'a> Interfaces<'a> {
    /// The interfaces of the flags.
    pub fn of(args: &'a Args) -> Interfaces<'a> {
        match (&args.inside, &args.outside, &args.wan) {
            (_, _, Some(wan)) => Interfaces::One(wan),
            (inside, outside, None) => {
                // The parser requires both.
                Interfaces::Two([inside, outside].map(|name| name.as_deref().unwrap_or_default()))
            }
        }
    }

    /// The interfaces that exist already. `tun:NAME` is created later.
    pub fn real(&self) -> Vec<&'a str> {
        let all = match self {
            Interfaces::Two(ends) => ends.to_vec(),
            Interfaces::One(wan) => vec![*wan],
        };
        all.into_iter().filter(|name| !is_tun(name)).collect()
    }

    /// Names of the two sides in messages: the first is the interface of `--in`, or the network stack of
    /// a router.
    pub fn sides(&self) -> [String; 2] {
        match self {
            Interfaces::Two(ends) => ends.map(str::to_owned),
            Interfaces::One(wan) => [format!("stack of {wan}"), (*wan).to_owned()],
        }
    }

    /// An interface of the form `tun:NAME`.
    pub fn tun(&self) -> Option<&'a str> {
        match self {
            Interfaces::Two(ends) => ends.iter().copied().find(|name| is_tun(name)),
            Interfaces::One(_) => None,
        }
    }

    /// Checks the interfaces.
    pub fn check(&self, forwarder: Forwarder) -> Vec<Finding> {
        match self {
            Interfaces::Two(ends) => {
                let [a, b] = ends.map(|name| Some(name).filter(|name| !is_tun(name)));
                checks::check(a, b)
            }
            Interfaces::One(wan) => checks::check_detour(wan, self.merging(forwarder)),
        }
    }

    /// The offloads that must be off.
    pub fn merging(&self, forwarder: Forwarder) -> Merging {
        match (self, forwarder) {
            (Interfaces::One(_), Forwarder::Program) => Merging::Received,
            // The qdisc gets the frames that the network stack sends.
            (Interfaces::One(_), Forwarder::Kernel) | (Interfaces::Two(_), _) => Merging::All,
        }
    }

    /// The detour through this program; `None` if there is none.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn detour(&self, forwarder: Forwarder) -> Result<Option<Detour>, BridgeError> {
        match (self, forwarder) {
            (Interfaces::One(wan), Forwarder::Program) => Ok(Some(Detour::of(wan)?)),
            (Interfaces::One(_), Forwarder::Kernel) | (Interfaces::Two(_), _) => Ok(None),
        }
    }

    /// Opens both ends of the bridge, which must be of the same kind.
    ///
    /// # Errors
    /// The error of the system, with the interface.
    pub fn open(&self, ring: u32) -> Result<(Ends, Ends), BridgeError> {
        let (a, b) = match self {
            Interfaces::Two([inside, outside]) => (open(inside, ring)?, open(outside, ring)?),
            Interfaces::One(wan) => {
                let (stack, link) = Detour::of(wan)?.open(Some(ring as usize))?;
                // The pair of a detour is not for users, who know the interface only.
                let [name, _] = self.sides();
                (Ends { name, ..stack }, link)
            }
        };
        if a.ethernet != b.ethernet {
            let [first, second] = [&a, &b].map(|ends| (ends.name.clone(), payload(ends)));
            return Err(BridgeError::DifferentKinds { first, second });
        }
        Ok((a, b))
    }
}

/// True for an interface that this program creates.
fn is_tun(name: &str) -> bool {
    name.starts_with("tun:")
}

/// Opens an interface.
fn open(name: &str, ring: u32) -> Result<Ends, BridgeError> {
    let opened = match name.strip_prefix("tun:") {
        Some(name) => giveway_live::tun::open(name),
        None => giveway_live::packet::open(name, Some(ring as usize)),
    };
    opened.map_err(|source| BridgeError::Open { interface: name.to_owned(), source })
}

/// A word for the payload of an interface.
fn payload(ends: &Ends) -> &'static str {
    if ends.ethernet { "Ethernet frames" } else { "IP packets" }
}
