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
pub(crate) struct PagePart {
    pub connection: usize,
    pub epoch: usize,
    pub client: [u8; 16],
    /// True if the request is larger than the response.
    pub is_upload: bool,
    pub from: u64,
    pub until: u64,
}

/// Numbers the pages and sets the page of each epoch of web traffic. Returns the duration of each page in the
/// capture, ns.
pub(crate) fn number(connections: &mut [Connection], mut parts: Vec<PagePart>) -> Vec<u64> {
    parts.retain(|part| {
        let connection = &connections[part.connection];
        names::is_web(&connection.group) && connection.direction == Direction::Up && !part.is_upload
    });
    parts.sort_by_key(|part| (part.from, part.connection, part.epoch));
    let mut pages: Vec<(u64, u64)> = Vec::new();
    let mut open: BTreeMap<[u8; 16], usize> = BTreeMap::new();
    for part in parts {
        let still = open.get(&part.client).filter(|page| part.from <= pages[**page].1.saturating_add(QUIET));
        let page = still.copied().unwrap_or_else(|| {
            pages.push((part.from, part.until));
            pages.len() - 1
        });
        open.insert(part.client, page);
        pages[page].1 = pages[page].1.max(part.until);
        connections[part.connection].epochs[part.epoch].page = Some(page as u32);
    }
    pages.into_iter().map(|(from, until)| until - from).collect()
}
