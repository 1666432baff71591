//! Pages: the requests of one client to web servers that belong to one click.
//!
//! Headers do not show which requests belong to one click. The structure of the traffic shows it:
//!
//! - A request *starts* with its connection, or on a connection that was open already. One that starts soon
//!   after the last response on the same connection is a further round of its page.
//! - Any other start has a cause if a response to the same client ended within the last tenth of a second.
//!   Browsers need some milliseconds to read a response. A person needs longer. The limit is shorter for a
//!   client that is quicker: four times the median time after its documents.
//! - A response is a *document* if more requests start after its end than were open before. Responses that
//!   only free a connection for the next object are none.
//! - A click is a start without cause whose response is a document, or several starts at once without cause.
//!   A single start without cause is a click, too, if no page of the client is loading, unless the
//!   client has just loaded a page from another server: that may be a late part of the page.
//! - Starts with a cause belong to the page of their cause. Starts without one belong to the page whose
//!   document is arriving, if there is one such page. A connection without cause that opens within a quarter
//!   of a second after a click, before anything has arrived, is a spare one for the same click.
//! - On an open connection, a request within a second after the last response is a late round of its page:
//!   Smith et al. 2001 and others before them take a quiet second as a click.
//!
//! Some structures have two readings. A document that starts just as a part of another page ends is a click
//! or a frame of that page; both pages are left out. So are pages with more than one late round, which may be
//! several pages. If more than one page in five is left out, none is reported: the others would be a
//! selection. Single requests that may belong to a page or not are left out of pages, and do not count as
//! one.
//!
//! Uploads do not belong to pages; they may wait for one another ([`uploads`](crate::uploads)).

use std::collections::BTreeMap;

use crate::model::{After, Connection, Direction, Side};
use crate::names;

/// Largest time from the end of a response to a request that it causes, ns.
pub(crate) const SOON: u64 = 100_000_000;
/// Requests that responses cause come within so many times the median time after documents of a client.
const USUAL: u64 = 4;
/// Largest time from the first to the last of several requests at once, ns.
const TOGETHER: u64 = 20_000_000;
/// Largest time from a click to a spare connection for it, ns. A person does not click again so soon.
const SPARE: u64 = 250_000_000;
/// A quiet time after which a request on an open connection is a click, ns.
const QUIET: u64 = 1_000_000_000;
/// Late rounds of a page. One with more may be several pages.
const LATE: u32 = 1;
/// If more than one page in this many is unsure, no page is reported.
const UNSURE: usize = 5;

/// A request with its response: an epoch with its client and its times.
pub(crate) struct Request {
    pub connection: usize,
    pub epoch: usize,
    /// Index of its first ADU.
    pub adu: usize,
    pub client: [u8; 16],
    pub server: [u8; 16],
    /// True if the request is larger than the response.
    pub is_upload: bool,
    pub from: u64,
    pub until: u64,
    /// Times at which data of the server passed, and its bytes since the connection started.
    pub arrivals: Vec<(u64, u64)>,
    /// Bytes of the server from the start of the connection to the end of the response.
    pub total: u64,
    /// Round trip from the capture point to the client, ns.
    pub path: u64,
}

impl Request {
    /// The earliest time at which a reaction of the client to the end of the response passes.
    pub(crate) fn received(&self) -> u64 {
        self.until.saturating_add(self.path)
    }
}

/// The pages of a capture.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Duration of each page in the capture, ns.
    pub took: Vec<u64>,
    /// Number of pages with two readings.
    pub unsure: u64,
    /// Number of all pages.
    pub all: u64,
    /// Number of single requests that may belong to a page or not.
    pub lone: u64,
}

/// Numbers the pages, sets the page of each epoch of web traffic, and what its start waits for.
pub(crate) fn number(connections: &mut [Connection], requests: Vec<Request>) -> Pages {
    let mut of_clients: BTreeMap<[u8; 16], Vec<Request>> = BTreeMap::new();
    for request in requests {
        let connection = &connections[request.connection];
        if names::is_web(&connection.group) && connection.direction == Direction::Up && !request.is_upload {
            of_clients.entry(request.client).or_default().push(request);
        }
    }
    let clients: Vec<Client> = of_clients.into_values().map(Client::read).collect();
    for client in &clients {
        client.link(connections);
    }
    let pages = || clients.iter().flat_map(|client| client.pages.iter().map(move |page| (client, page)));
    let mut sure: Vec<(&Client, &Page)> = pages().filter(|(_, page)| !page.is_unsure()).collect();
    let all = pages().count();
    let unsure = all - sure.len();
    if unsure * UNSURE > all {
        sure.clear();
    }
    sure.sort_by_key(|(client, page)| client.requests[page.requests[0]].from);
    let mut took = Vec::new();
    for (number, (client, page)) in (0..).zip(sure) {
        took.push(page.until - client.requests[page.requests[0]].from);
        for request in page.requests.iter().map(|at| &client.requests[*at]) {
            connections[request.connection].epochs[request.epoch].page = Some(number);
        }
    }
    let lone = clients.iter().map(|client| client.lone).sum();
    Pages { took, unsure: unsure as u64, all: all as u64, lone }
}

/// The requests of one client.
struct Client {
    /// In the order of their starts.
    requests: Vec<Request>,
    /// The time at which a reaction to the end of each response passes at the earliest, and its request, in
    /// order.
    ends: Vec<(u64, usize)>,
    /// The request before on the same connection.
    before: Vec<Option<usize>>,
    /// Requests whose response may be a document, and is one for certain.
    documents: BTreeMap<usize, bool>,
    /// Longest time of this client from the end of a response to a request that it causes, ns.
    usual: u64,
    pages: Vec<Page>,
    /// Pages of the last second, in the order of their clicks.
    recent: Vec<usize>,
    /// The page of each request.
    page: Vec<Option<usize>>,
    /// The event that a request waits for.
    links: Vec<(usize, After)>,
    lone: u64,
}

struct Page {
    /// Its requests, the first one first.
    requests: Vec<usize>,
    until: u64,
    /// True if it was one request after another until now, as of a document behind a redirection.
    chain: bool,
    late: u32,
    /// True if a document in it has two readings.
    split: bool,
}

/// Requests that start together, neither of them behind a response on its own connection, and the response
/// that ended before.
struct Burst {
    requests: Vec<usize>,
    cause: Option<usize>,
}

impl Client {
    fn read(mut requests: Vec<Request>) -> Client {
        requests.sort_by_key(|request| (request.from, request.connection, request.epoch));
        let mut last = BTreeMap::new();
        let before = requests.iter().enumerate();
        let before = before.map(|(at, request)| last.insert(request.connection, at)).collect();
        let mut ends: Vec<(u64, usize)> =
            requests.iter().enumerate().map(|(at, request)| (request.received(), at)).collect();
        ends.sort_unstable();
        let page = vec![None; requests.len()];
        let (documents, pages, recent, links, lone) =
            (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new(), 0);
        let mut client =
            Client { requests, ends, before, documents, usual: SOON, pages, recent, page, links, lone };
        let bursts = client.bursts();
        client.find_documents(&bursts);
        let mut bursts = bursts.into_iter().peekable();
        for at in 0..client.requests.len() {
            let (from, pages) = (client.requests[at].from, &client.pages);
            client.recent.retain(|page| pages[*page].until.saturating_add(QUIET) > from);
            if let Some(before) = client.continues(at) {
                client.join(at, client.page[before]);
            } else if let Some(burst) = bursts.next_if(|burst| burst.requests[0] == at) {
                client.start(&burst);
            }
        }
        client
    }

    /// The request before on the same connection, if its response ended soon before this one.
    fn continues(&self, at: usize) -> Option<usize> {
        let from = self.requests[at].from;
        self.before[at].filter(|before| from.saturating_sub(self.requests[*before].received()) <= SOON)
    }

    fn bursts(&self) -> Vec<Burst> {
        let mut bursts: Vec<Burst> = Vec::new();
        for at in (0..self.requests.len()).filter(|at| self.continues(*at).is_none()) {
            let from = self.requests[at].from;
            let cause = self.ended_soon_before(from).last().map(|(_, cause)| *cause);
            let same = |burst: &&mut Burst| {
                let first = self.requests[burst.requests[0]].from;
                burst.cause == cause && from - first <= TOGETHER
            };
            match bursts.last_mut().filter(same) {
                Some(burst) => burst.requests.push(at),
                None => bursts.push(Burst { requests: vec![at], cause }),
            }
        }
        bursts
    }

    /// The responses that ended at most [`SOON`] before.
    fn ended_soon_before(&self, now: u64) -> &[(u64, usize)] {
        let since = self.ends.partition_point(|(end, _)| end.saturating_add(SOON) < now);
        let until = self.ends.partition_point(|(end, _)| *end <= now);
        &self.ends[since.min(until)..until]
    }

    /// Number of requests that started before `started` and had not ended before `ended`.
    fn open(&self, started: u64, ended: u64) -> usize {
        let started = self.requests.partition_point(|request| request.from < started);
        started.saturating_sub(self.ends.partition_point(|(end, _)| *end < ended))
    }

    /// Responses after which more requests are open than before may be documents.
    fn find_documents(&mut self, bursts: &[Burst]) {
        let mut pauses = Vec::new();
        for Burst { requests, cause } in bursts {
            let (Some(cause), [first, ..], [.., last]) = (cause, &requests[..], &requests[..]) else {
                continue;
            };
            self.find_document(*first, *last);
            if self.documents.get(cause) == Some(&true) {
                pauses.push(self.requests[*first].from - self.requests[*cause].received());
            }
        }
        pauses.sort_unstable();
        if let Some(median) = pauses.get(pauses.len() / 2) {
            self.usual = median.saturating_mul(USUAL).clamp(TOGETHER, SOON);
        }
    }

    fn find_document(&mut self, first: usize, last: usize) {
        let now = self.requests[last].from;
        // Requests on connections that are used again leave about as soon.
        let after = self.open(now.saturating_add(TOGETHER / 4), now.saturating_add(1));
        let ended = self.ended_soon_before(self.requests[first].from);
        // Places that other requests have taken since count no more, nor do those that have been free for
        // long.
        let Some((last_end, _)) = ended.last() else { return };
        let started = self.requests.partition_point(|request| request.from < *last_end);
        let last_start = started.checked_sub(1).map_or(0, |last| self.requests[last].from);
        let since = last_start.max(last_end.saturating_sub(TOGETHER));
        let ended = &ended[ended.partition_point(|(end, _)| *end < since)..];
        let before = ended.iter().map(|(end, _)| self.open(*end, *end)).max();
        let Some(before) = before.filter(|before| after > *before) else { return };
        // One more than several may be the place of a request that ended a little earlier.
        let certain = before == 1 || after > before + 1;
        let ended: Vec<usize> = ended.iter().map(|(_, at)| *at).collect();
        for at in ended {
            *self.documents.entry(at).or_insert(certain) |= certain;
        }
    }

    /// Assigns the requests of a burst to a page.
    fn start(&mut self, burst: &Burst) {
        let first = burst.requests[0];
        let (from, single) = (self.requests[first].from, burst.requests.len() == 1);
        let document = self.documents.get(&first).copied().filter(|_| single);
        let cause = burst.cause.map(|cause| self.document_before(burst).unwrap_or(cause));
        if let Some(cause) = cause.filter(|cause| from - self.requests[*cause].received() <= self.usual) {
            let page = self.page[cause];
            if document == Some(true) && !page.is_some_and(|page| self.is_chain(page, from)) {
                // A click, or a frame of that page.
                if let Some(page) = page {
                    self.pages[page].split = true;
                }
                self.click(&burst.requests);
                self.pages.last_mut().expect("a click adds a page").split = true;
                return;
            }
            let Request { connection, total, until, .. } = self.requests[cause];
            self.follow(burst, page, (connection, total, until));
            return;
        }
        if document.is_some() {
            return self.click(&burst.requests);
        }
        let arriving: Vec<usize> =
            self.loading(from).filter(|page| self.arrival(*page, from).is_some()).collect();
        if let Some(before) = self.before[first].filter(|_| single && arriving.is_empty())
            && from.saturating_sub(self.requests[before].until) < QUIET
        {
            if let Some(page) = self.page[before] {
                self.pages[page].late += 1;
            }
            return self.join(first, self.page[before]);
        }
        let clicked = |page: &usize| from - self.requests[self.pages[*page].requests[0]].from <= SPARE;
        let spare = self.loading(from).filter(|page| !arriving.contains(page)).rfind(clicked);
        if let Some(page) = spare {
            let click = &self.requests[self.pages[page].requests[0]];
            let (connection, began) = (click.connection, click.from);
            return self.follow(burst, Some(page), (connection, 0, began));
        }
        match arriving[..] {
            [page] => {
                let after = self.arrival(page, from).expect("it is arriving");
                self.follow(burst, Some(page), after);
            }
            [] if !single || !self.is_late_part(first) => self.click(&burst.requests),
            _ => self.lone += burst.requests.len() as u64,
        }
    }

    /// The last document among the responses that ended before several requests: it was all that its page
    /// waited for.
    fn document_before(&self, burst: &Burst) -> Option<usize> {
        let ended = self.ended_soon_before(self.requests[burst.requests[0]].from).iter().rev();
        let mut ended =
            ended.filter(|(end, at)| self.page[*at].is_some_and(|page| self.is_chain(page, *end)));
        ended.next().filter(|_| burst.requests.len() > 1).map(|(_, at)| *at)
    }

    /// True if a page has waited for a single response at each time until now.
    fn is_chain(&self, page: usize, now: u64) -> bool {
        self.pages[page].chain && self.pages[page].until <= now
    }

    /// The pages that are loading, in the order of their clicks.
    fn loading(&self, now: u64) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.recent.iter().copied().filter(move |page| self.pages[*page].until > now)
    }

    /// The last data that arrived before `now` of a response of a page that has not ended: its connection,
    /// its bytes, and the time.
    fn arrival(&self, page: usize, now: u64) -> Option<(usize, u64, u64)> {
        let requests = self.pages[page].requests.iter().map(|at| &self.requests[*at]);
        let arrivals = requests.filter(|request| request.until > now).filter_map(|request| {
            let count =
                request.arrivals.partition_point(|(time, _)| time.saturating_add(request.path) <= now);
            let (time, bytes) = *request.arrivals.get(count.checked_sub(1)?)?;
            Some((request.connection, bytes, time))
        });
        arrivals.max_by_key(|(.., time)| *time)
    }

    /// True if the client has just loaded a page from another server.
    fn is_late_part(&self, at: usize) -> bool {
        let Request { from, server, .. } = self.requests[at];
        let last = self.recent.iter().map(|page| &self.pages[*page]).rfind(|page| page.until <= from);
        last.is_some_and(|page| self.requests[page.requests[0]].server != server)
    }

    /// A new page.
    fn click(&mut self, requests: &[usize]) {
        let page = self.pages.len();
        self.pages.push(Page { requests: Vec::new(), until: 0, chain: true, late: 0, split: false });
        self.recent.push(page);
        let Request { connection, from, .. } = self.requests[requests[0]];
        let burst = Burst { requests: requests[1..].to_vec(), cause: None };
        self.join(requests[0], Some(page));
        if self.before[requests[0]].is_none() {
            self.follow(&burst, Some(page), (connection, 0, from));
        } else {
            requests[1..].iter().for_each(|at| self.join(*at, Some(page)));
        }
    }

    /// Requests of a page that wait for the progress of one of its connections: its number, its bytes, and
    /// the time.
    fn follow(&mut self, burst: &Burst, page: Option<usize>, (connection, bytes, since): (usize, u64, u64)) {
        for at in &burst.requests {
            let Request { from, path, .. } = self.requests[*at];
            // The reaction to data passes the capture point later by the path to the client and back. Two
            // starts pass it equally late.
            let path = if bytes == 0 { 0 } else { path };
            let pause = from.saturating_sub(since).saturating_sub(path);
            if page.is_some() && self.requests[*at].connection != connection {
                self.links.push((*at, After { connection, bytes, pause }));
            }
            self.join(*at, page);
        }
    }

    fn join(&mut self, at: usize, page: Option<usize>) {
        self.page[at] = page;
        if let Some(page) = page.map(|page| &mut self.pages[page]) {
            page.requests.push(at);
            page.chain &= page.until <= self.requests[at].from;
            page.until = page.until.max(self.requests[at].until);
        } else {
            self.lone += 1;
        }
    }

    /// Sets what the starts of connections and requests wait for.
    fn link(&self, connections: &mut [Connection]) {
        for (at, after) in &self.links {
            let Request { connection, epoch, adu, .. } = self.requests[*at];
            let waiting = &mut connections[connection];
            if epoch == 0 && waiting.begun {
                // Connections are in the order of their starts, except where times step back.
                waiting.after = Some(*after).filter(|after| after.connection < connection);
            } else if let Some(adu) = waiting.adus.get_mut(adu).filter(|adu| adu.side == Side::Client) {
                (adu.after, adu.think_time, adu.between) = (Some(*after), 0, None);
            }
        }
    }
}

impl Page {
    fn is_unsure(&self) -> bool {
        self.split || self.late > LATE
    }
}
