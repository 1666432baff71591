//! Pages: requests of one client to web servers that follow each other.
//!
//! Headers do not show which requests belong to one click. A request belongs to the page before if the
//! client asked for something, or had received all of something, within the last second: Smith et al. 2001
//! and others before them take a quiet second as a click. A response that is still on its way does not hold
//! a page open, because a browser that waits for it would not ask for more. Uploads do not belong to pages.
//!
//! A page consists of up to two rounds of requests: the document, and what it names. Requests of a third
//! round, more than a second after the second one, may belong to another page: several tabs, or a click
//! before the page was complete. Such a page counts as unsure, and is not reported. If more than one page in
//! five is unsure, none is reported.

use std::collections::BTreeMap;

use crate::model::{Connection, Direction};
use crate::names;

/// A quiet time that ends a page, ns.
const QUIET: u64 = 1_000_000_000;
/// The rounds of requests of one page: the document, and what it names.
const ROUNDS: u32 = 2;
/// If more than one page in this many is unsure, no page is reported.
const UNSURE: usize = 5;

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

/// A page, while its requests are read in order.
struct Page {
    from: u64,
    until: u64,
    last_request: u64,
    rounds: u32,
    /// The ends of its responses that had not ended at its last request.
    on_their_way: Vec<u64>,
    /// The last end of a response before its last request.
    last_end: u64,
    parts: Vec<(usize, usize)>,
}

impl Page {
    fn new(part: &PagePart) -> Page {
        let mut page = Page {
            from: part.from,
            until: part.until,
            last_request: part.from,
            rounds: 1,
            on_their_way: Vec::new(),
            last_end: 0,
            parts: Vec::new(),
        };
        page.add(part);
        page
    }

    /// True if the page is still open when a request starts.
    fn is_open(&mut self, now: u64) -> bool {
        let ended = self.on_their_way.iter().copied().filter(|end| *end <= now).max();
        self.on_their_way.retain(|end| *end > now);
        self.last_end = self.last_end.max(ended.unwrap_or(0));
        now <= self.last_request.max(self.last_end).saturating_add(QUIET)
    }

    fn add(&mut self, part: &PagePart) {
        self.rounds += u32::from(part.from > self.last_request.saturating_add(QUIET));
        self.last_request = part.from;
        self.until = self.until.max(part.until);
        self.on_their_way.push(part.until);
        self.parts.push((part.connection, part.epoch));
    }
}

/// Numbers the pages and sets the page of each epoch of web traffic. Returns the duration of each page in the
/// capture, ns, the number of pages that may be several at once, and the number of all pages.
pub(crate) fn number(connections: &mut [Connection], mut parts: Vec<PagePart>) -> (Vec<u64>, u64, u64) {
    parts.retain(|part| {
        let connection = &connections[part.connection];
        names::is_web(&connection.group) && connection.direction == Direction::Up && !part.is_upload
    });
    parts.sort_by_key(|part| (part.from, part.connection, part.epoch));
    let mut pages: Vec<Page> = Vec::new();
    let mut open: BTreeMap<[u8; 16], usize> = BTreeMap::new();
    for part in parts {
        match open.get(&part.client).copied().filter(|page| pages[*page].is_open(part.from)) {
            Some(page) => pages[page].add(&part),
            None => {
                open.insert(part.client, pages.len());
                pages.push(Page::new(&part));
            }
        }
    }
    let all = pages.len();
    pages.retain(|page| page.rounds <= ROUNDS);
    let unsure = all - pages.len();
    if unsure * UNSURE > all {
        pages.clear();
    }
    for (number, page) in (0..).zip(&pages) {
        for (connection, epoch) in &page.parts {
            connections[*connection].epochs[*epoch].page = Some(number);
        }
    }
    (pages.into_iter().map(|page| page.until - page.from).collect(), unsure as u64, all as u64)
}
