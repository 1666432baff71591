//! Pages: requests of one client to web servers without a quiet time between them.
//!
//! Headers do not show which requests belong to one click. A request after a quiet time of one second is
//! taken as a click: Smith et al. 2001 and others before them use the same threshold. Uploads do not belong
//! to pages.

use std::collections::BTreeMap;

use crate::model::{Connection, Direction};
use crate::names;

/// A quiet time that ends a page, ns.
const QUIET: u64 = 1_000_000_000;

/// A part of a page: an epoch with its client and its time.
pub(crate) struct Asked {
    pub connection: usize,
    pub epoch: usize,
    pub client: [u8; 16],
    /// The request is larger than the response.
    pub is_upload: bool,
    pub from: u64,
    pub until: u64,
}

/// Numbers the pages and sets the page of each epoch of web traffic. Returns the duration of each page in the
/// capture, ns.
pub(crate) fn number(connections: &mut [Connection], mut asked: Vec<Asked>) -> Vec<u64> {
    asked.retain(|asked| {
        let connection = &connections[asked.connection];
        names::is_web(&connection.group) && connection.direction == Direction::Up && !asked.is_upload
    });
    asked.sort_by_key(|asked| (asked.from, asked.connection, asked.epoch));
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
        connections[asked.connection].epochs[asked.epoch].page = Some(page as u32);
    }
    pages.into_iter().map(|(from, until)| until - from).collect()
}
