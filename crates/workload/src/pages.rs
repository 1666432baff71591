//! Pages: requests of one client to web servers without a quiet time between them.
//!
//! Which requests belong to one click cannot be seen in headers. A client that was quiet for a second and then asks is
//! taken to have clicked: Smith et al. 2001 and others before them use the same threshold.

use std::collections::BTreeMap;

use crate::model::{Connection, Way};
use crate::names;

/// A quiet time that ends a page, ns.
const QUIET: u64 = 1_000_000_000;

/// What pages are made of: an exchange with its client and its time.
pub(crate) struct Asked {
    pub connection: usize,
    pub exchange: usize,
    pub client: [u8; 16],
    pub from: u64,
    pub until: u64,
}

/// Numbers pages and tells each exchange of web traffic which one it is a part of. Returns how many there are.
pub(crate) fn number(connections: &mut [Connection], mut asked: Vec<Asked>) -> u32 {
    asked.retain(|asked| {
        let connection = &connections[asked.connection];
        names::is_web(&connection.group) && connection.way == Way::Up
    });
    asked.sort_by_key(|asked| (asked.from, asked.connection, asked.exchange));
    let mut pages = 0;
    let mut open: BTreeMap<[u8; 16], (u32, u64)> = BTreeMap::new();
    for asked in asked {
        let (page, until) = open.entry(asked.client).or_insert((u32::MAX, 0));
        if *page == u32::MAX || asked.from > until.saturating_add(QUIET) {
            *page = pages;
            pages += 1;
        }
        *until = asked.until.max(*until);
        connections[asked.connection].exchanges[asked.exchange].page = Some(*page);
    }
    pages
}
