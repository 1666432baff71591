//! Ways: the hops beyond the neighbour that packets with a mark will take, as an operator tells them to `bsq`.
//!
//! A router that looks ahead has the routing tables of those behind it. The kernel has its own only; so the ways are told, a mark
//! for each, and rules of the operator's say which packets have which mark.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use giveway_qdisc::Ahead;

use crate::PlanError;

/// Hops of a way, the nearest first: one to four nodes, with numbers that the operator chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way(Vec<u16>);

impl Way {
    /// The most hops that the kernel's discipline looks at.
    pub const MOST: usize = 4;
    /// The most links beyond one router: with its own queue they are the bits of a word.
    const LINKS: usize = 63;

    /// What the kernel's discipline is told: 16 bits for each hop, its number and one, the nearest in the lowest.
    pub fn word(&self) -> u64 {
        self.0.iter().rev().fold(0, |word, hop| word << 16 | u64::from(hop + 1))
    }

    /// What that says. Zero is no way.
    pub fn ahead(word: u64) -> Ahead {
        let hops = (0..Way::MOST).map(|at| (word >> (16 * at)) as u16);
        Ahead::new(hops.take_while(|hop| *hop != 0).map(|hop| hop - 1))
    }

    /// Whether a tree of so many nodes has room for these ways to a depth: then no branch is ever forgotten.
    pub(crate) fn check(ways: &[(u32, Way)], level: usize, branches: u32) -> Result<(), PlanError> {
        let nodes: BTreeSet<&[u16]> = ways
            .iter()
            .flat_map(|(_, way)| (1..=way.0.len().min(level)).map(|hops| &way.0[..hops]))
            .collect();
        let mut links = BTreeMap::new();
        for node in &nodes {
            *links.entry(&node[..node.len() - 1]).or_insert(0usize) += 1;
        }
        if let Some((node, links)) = links.into_iter().find(|(_, links)| *links > Way::LINKS) {
            let at = node.last().map_or("the neighbour".to_owned(), |hop| format!("node {hop}"));
            let most = Way::LINKS;
            return Err(PlanError::new(format!(
                "{at} has {links} links beyond it: at most {most} are told apart"
            )));
        }
        // The root is one, too.
        let needed = nodes.len() + 2;
        if needed > branches as usize {
            return Err(PlanError::new(format!(
                "these ways have {} nodes: say branches {needed}",
                nodes.len()
            )));
        }
        Ok(())
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let hops: Option<Vec<u16>> =
            text.split('.').map(|hop| hop.parse().ok().filter(|hop| *hop < u16::MAX)).collect();
        hops.filter(|hops| hops.len() <= Way::MOST).map(Way).ok_or_else(|| {
            "write the numbers of one to four nodes, the nearest first, as 4 or 4.7".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(texts: &[&str]) -> Vec<(u32, Way)> {
        (1..).zip(texts.iter().map(|text| text.parse().unwrap())).collect()
    }

    #[test]
    fn a_way_is_a_word() {
        let way: Way = "4.0.65534".parse().unwrap();
        assert_eq!(way.word(), 0xffff_0001_0005);
        assert_eq!(Way::ahead(way.word()), Ahead::new([4, 0, 65534]));
        assert_eq!(Way::ahead(0), Ahead::default());
        for wrong in ["", "4.", "65535", "1.2.3.4.5", "a"] {
            assert!(wrong.parse::<Way>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tree_has_room_for_all_ways_or_says_what_it_needs() {
        let three = ways(&["4", "5.7", "5.8"]);
        // 4, 5, 5.7, 5.8, the root, and one more: the Rust tree forgets branches when it has as many as it may.
        let said = Way::check(&three, 2, 5).unwrap_err().to_string();
        assert!(said.contains("branches 6"), "{said}");
        assert!(Way::check(&three, 2, 6).is_ok() && Way::check(&three, 1, 4).is_ok());
        let many: Vec<String> = (0..64).map(|link| format!("1.{link}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let said = Way::check(&ways(&many), 2, 1000).unwrap_err().to_string();
        assert!(said.contains("node 1 has 64 links"), "{said}");
        assert!(Way::check(&ways(&many[..63]), 2, 1000).is_ok());
    }
}
