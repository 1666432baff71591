//! Hosts that a backend knows by name, for filters.

use std::sync::Arc;

use crate::units::nearest;

/// Hosts by name, with the numbers that [`Meta::from`](crate::Meta::from) and [`Meta::to`](crate::Meta::to)
/// carry. Without any names, a host is written as its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Names and numbers, sorted by name.
    named: Arc<[(Box<str>, u16)]>,
    /// True if the numbers of packets do not name hosts.
    hashed: bool,
}

impl Hosts {
    /// These hosts.
    pub fn new(hosts: impl IntoIterator<Item = (Box<str>, u16)>) -> Hosts {
        let mut named: Vec<(Box<str>, u16)> = hosts.into_iter().collect();
        named.sort();
        Hosts { named: named.into(), hashed: false }
    }

    /// The hosts of real frames, whose numbers are hashes of addresses: no host can be named.
    pub fn hashed() -> Hosts {
        Hosts { hashed: true, ..Hosts::default() }
    }

    /// True if packets may have real addresses and ports ([`Cx::headers`](crate::Cx::headers)): wherever
    /// hosts have no names.
    pub fn have_addresses(&self) -> bool {
        self.named.is_empty()
    }

    /// The number of a host.
    ///
    /// # Errors
    /// A sentence, if there is no such host.
    pub fn number(&self, name: &str) -> Result<u16, String> {
        if self.hashed {
            return Err(format!(
                "host \"{name}\": hosts have names in simulations only: filter by src_ip or dst_ip, dscp or class"
            ));
        }
        if self.named.is_empty() {
            let wrong = || format!("\"{name}\" is not a host: no names are known here, write its number");
            return name.parse().map_err(|_| wrong());
        }
        let found = self.named.binary_search_by(|(known, _)| (**known).cmp(name));
        found.map(|at| self.named[at].1).map_err(|_| {
            let help = match nearest(name, self.named.iter().map(|(known, _)| &**known)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "see the names of the links".to_owned(),
            };
            format!("unknown host \"{name}\"; {help}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_names_or_numbers() {
        let hosts = Hosts::new([("nas".into(), 3), ("home".into(), 0)]);
        assert_eq!((hosts.number("nas"), hosts.number("home")), (Ok(3), Ok(0)));
        assert_eq!(hosts.number("hme").unwrap_err(), "unknown host \"hme\"; did you mean \"home\"?");
        assert_eq!(Hosts::default().number("17"), Ok(17));
        assert!(Hosts::hashed().number("17").unwrap_err().contains("filter by src_ip or dst_ip"));
        assert!(Hosts::default().number("nas").unwrap_err().contains("write its number"));
    }
}
