//! Routes: the hops after the next router that packets with a mark will take. `bsq` has a sub-queue for each.
//!
//! In a simulation the routing tables of all routers are available. A kernel has only its own table, so the
//! operator configures the routes, one for each mark, and sets the marks with firewall rules.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use giveway_qdisc::NextHops;

use crate::PlanError;

/// The text is not a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write the numbers of one to four nodes, the nearest first, as 4 or 4.7")]
pub struct RouteError;

/// A route: one to four hops, the nearest first. A hop is the number of a node, which the operator chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(Vec<u16>);

impl Route {
    /// Largest number of hops of a route.
    pub const MAX: usize = 4;
    /// Largest number of downstream links of a router: with its own queue they are the bits of a word.
    const LINKS: usize = 63;

    /// The route as a word for the kernel: 16 bits for each hop, its number plus one, the nearest hop in the
    /// lowest bits.
    pub fn word(&self) -> u64 {
        self.0.iter().rev().fold(0, |word, hop| word << 16 | u64::from(hop + 1))
    }

    /// The hops of a word that [`Route::word`] returned. Zero has no hops.
    pub fn next_hops(word: u64) -> NextHops {
        let hops = (0..Route::MAX).map(|at| (word >> (16 * at)) as u16);
        NextHops::new(hops.take_while(|hop| *hop != 0).map(|hop| hop - 1))
    }

    /// Checks that a tree of `branches` nodes can hold these routes to a depth of `level` hops. Then the
    /// discipline never removes a branch.
    pub(crate) fn check(routes: &[(u32, Route)], level: usize, branches: u32) -> Result<(), PlanError> {
        let nodes: BTreeSet<&[u16]> = routes
            .iter()
            .flat_map(|(_, route)| (1..=route.0.len().min(level)).map(|hops| &route.0[..hops]))
            .collect();
        let mut links = BTreeMap::new();
        for node in &nodes {
            *links.entry(&node[..node.len() - 1]).or_insert(0usize) += 1;
        }
        if let Some((node, links)) = links.into_iter().find(|(_, links)| *links > Route::LINKS) {
            let at = node.last().map_or("the next router".to_owned(), |hop| format!("node {hop}"));
            let most = Route::LINKS;
            return Err(PlanError::new(format!(
                "{at} has {links} downstream links: at most {most} are possible"
            )));
        }
        // One more for the root, and one free node: the Rust tree removes a branch as soon as no node is
        // free.
        let needed = nodes.len() + 2;
        if needed > branches as usize {
            return Err(PlanError::new(format!(
                "these routes have {} nodes: write branches {needed}",
                nodes.len()
            )));
        }
        Ok(())
    }
}

impl FromStr for Route {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<Route, RouteError> {
        let hops: Option<Vec<u16>> =
            text.split('.').map(|hop| hop.parse().ok().filter(|hop| *hop < u16::MAX)).collect();
        hops.filter(|hops| hops.len() <= Route::MAX).map(Route).ok_or(RouteError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(texts: &[&str]) -> Vec<(u32, Route)> {
        (1..).zip(texts.iter().map(|text| text.parse().unwrap())).collect()
    }

    #[test]
    fn a_route_is_encoded_as_a_word() {
        let route: Route = "4.0.65534".parse().unwrap();
        assert_eq!(route.word(), 0xffff_0001_0005);
        assert_eq!(Route::next_hops(route.word()), NextHops::new([4, 0, 65534]));
        assert_eq!(Route::next_hops(0), NextHops::default());
        for wrong in ["", "4.", "65535", "1.2.3.4.5", "a"] {
            assert!(wrong.parse::<Route>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_error_for_a_tree_that_is_too_small_has_the_required_size() {
        let three = routes(&["4", "5.7", "5.8"]);
        // 4, 5, 5.7, 5.8, the root, and a free node: the Rust tree removes a branch when no node is free.
        let error = Route::check(&three, 2, 5).unwrap_err().to_string();
        assert!(error.contains("branches 6"), "{error}");
        assert!(Route::check(&three, 2, 6).is_ok() && Route::check(&three, 1, 4).is_ok());
        let many: Vec<String> = (0..64).map(|link| format!("1.{link}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let error = Route::check(&routes(&many), 2, 1000).unwrap_err().to_string();
        assert!(error.contains("node 1 has 64 downstream links"), "{error}");
        assert!(Route::check(&routes(&many[..63]), 2, 1000).is_ok());
    }
}
