//! Pages: requests of one client to web servers without a quiet time between them.
//!
//! Which requests belong to one click cannot be seen in headers. A client that was quiet for a second and then asks is
//! taken to have clicked: Smith et al. 2001 and others before them use the same threshold. Uploads are no pages.

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
    /// More is asked than answered.
    pub is_upload: bool,
    pub from: u64,
    pub until: u64,
}

/// Numbers pages and tells each exchange of web traffic which one it is a part of. Returns how long each took in the
/// capture, ns.
pub(crate) fn number(connections: &mut [Connection], mut asked: Vec<Asked>) -> Vec<u64> {
    asked.retain(|asked| {
        let connection = &connections[asked.connection];
        names::is_web(&connection.group) && connection.way == Way::Up && !asked.is_upload
    });
    asked.sort_by_key(|asked| (asked.from, asked.connection, asked.exchange));
    let mut pages: Vec<(u64, u64)> = Vec::new();
    let mut open: BTreeMap<[u8; 16], usize> = BTreeMap::new();
    for asked in asked {
        let still =
            open.get(&asked.client).filter(|page| asked.from <= pages[**page].1.saturating_add(QUIET));
        let page = still.copied().unwrap_or_else(|| {
            pages.push((asked.from, asked.until));
            pages.len() - 1
        });
        open.insert(asked.client, page);
        pages[page].1 = pages[page].1.max(asked.until);
        connections[asked.connection].exchanges[asked.exchange].page = Some(page as u32);
    }
    pages.into_iter().map(|(from, until)| until - from).collect()
}
