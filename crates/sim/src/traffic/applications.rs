//! Applications: connections and packet trains that were taken out of a capture, once more.
//!
//! # Principles
//! - Closed loop: what is done again is what the applications did, not the packets. Each write waits for its
//!   cue (bytes of the other side, or its own data having arrived), thinks as long as it did, and goes
//!   through TCP at whatever pace the network allows now.
//! - A connection crosses the network between the pair's nodes; the rest of its path is the distance of the
//!   far host, so that its round trip without queues is the one that was measured.
//! - Datagrams leave when they were captured: nobody knows how their senders would have reacted.
//! - An exchange, a request with its response, is reported as a transfer of its heavier direction: from its
//!   first write (the connection's beginning for the first) to the last byte at the reader. Pages are
//!   reported beside, as groups.
//!
//! # Deviations
//! - What the model cannot know stands in the header of the crate `workload`. Connections begin when they
//!   began, later by at most `spread`, which makes runs with different seeds differ.
//! - Connections without a measured round trip have the median of the others, or 30 ms where there are none.
//! - How long a client thinks before its first write is exact from half a round trip on. Up to a quarter it
//!   is taken for nothing, between the two for a half: it is the server's hearing of the connection that the
//!   source is told of.
//! - A connection closes when its last write has arrived.
//!
//! # Cost
//! - An entry in a heap for each pause; packets of far hosts go through one more event each.
//!
//! # References
//! - Weigle et al., "Tmix", ACM CCR 36(3), 2006.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use qdisc::{Ending, FlowKind, FlowReport, Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{Connection, Cue, Cursor, Side as End, Train, Way, Workload, Write};

use super::{Place, Source, Traffic, flow};
use crate::net::{ConnId, Event, Net, Side, StreamId};

/// Parameters of `applications`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A workload file, as giveway compare takes it out of a capture.
    pub file: PathBuf,
    /// Only this group of it.
    #[serde(default)]
    pub group: Option<String>,
    /// The round-trip time of every connection, in place of what was measured.
    #[serde(default)]
    pub rtt: Option<Span>,
    /// Each connection and train begins up to so much later, drawn evenly. Default: 0 s.
    #[serde(default)]
    pub spread: Span,
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "what the applications of a capture did: connections with requests, responses and think times";

    fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid> {
        let [(near, far)] = place.pairs[..] else {
            return Err(Invalid::new(
                "from",
                "the capture has one link: name one node on the local side and one beyond",
            ));
        };
        let path = place.folder.join(&self.file);
        let wrong = |message: String| Invalid::new("file", format!("{} {message}", path.display()));
        let file = File::open(&path).map_err(|error| wrong(format!("cannot be opened: {error}")))?;
        let workload = Workload::read(BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
        let total = |plan: &Connection| plan.writes.iter().map(|write| u128::from(write.bytes)).sum::<u128>();
        let all = workload.connections.iter().map(total).sum::<u128>();
        if all > MOST_BYTES {
            let message =
                format!("has connections of {all} bytes together, and at most {MOST_BYTES} are possible");
            return Err(wrong(message));
        }
        let median = Span::ns(workload.rtt().unwrap_or(Workload::UNKNOWN_RTT));
        let mine = |group: &str| self.group.as_deref().is_none_or(|wanted| wanted == group);
        let mut rng = place.streams.within("spread").rng();
        let mut begins = |at: u64| {
            let late = if self.spread.is_zero() { 0 } else { rng.below(self.spread.as_ps()) };
            place.start + Span::ns(at) + Span::from_ps(late)
        };
        let mut pending = BinaryHeap::new();
        let mut talks = Vec::new();
        for plan in workload.connections.into_iter().filter(|plan| mine(&plan.group)) {
            let rtt = self.rtt.unwrap_or_else(|| plan.rtt.map_or(median, Span::ns));
            // A client beyond the link begins earlier than its packet passes.
            let away = if plan.way == Way::Up { 0 } else { (rtt / 2).as_ps() / 1000 };
            pending.push(Reverse((begins(plan.start.saturating_sub(away)), talks.len(), What::Begin)));
            talks.push(Talk::new(plan, rtt, (near, far)));
        }
        let mut trains = Vec::new();
        for plan in workload.trains.into_iter().filter(|plan| mine(&plan.group)) {
            pending.push(Reverse((begins(plan.start), trains.len(), What::Packet)));
            let mut next = Cursor::default();
            let bytes = next.next(&plan.packets).map_or(0, |(_, bytes)| bytes);
            trains.push(Running { plan, next, bytes, stream: None });
        }
        if talks.is_empty() && trains.is_empty() {
            let group = self.group.as_deref().unwrap_or_default();
            return Err(Invalid::new("group", format!("\"{group}\" has nothing in {}", path.display())));
        }
        let pages = Pages::of(&talks);
        Ok(Box::new(Applications {
            near,
            far,
            talks,
            trains,
            by_conn: BTreeMap::new(),
            pending,
            pages,
            stop: place.stop,
        }))
    }
}

/// The most bytes that all connections may have together: a pebibyte. Sums of bytes stay far from the largest
/// number then.
const MOST_BYTES: u128 = 1 << 50;

struct Applications {
    near: u16,
    far: u16,
    talks: Vec<Talk>,
    trains: Vec<Running>,
    /// Which talk goes over an open connection.
    by_conn: BTreeMap<ConnId, usize>,
    /// Who does what when.
    pending: BinaryHeap<Reverse<(Time, usize, What)>>,
    pages: Pages,
    stop: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Begin,
    /// This side has thought.
    Write(End),
    Packet,
}

/// A connection on its way.
struct Talk {
    plan: Connection,
    rtt: Span,
    /// Nodes of client and server.
    nodes: (u16, u16),
    state: State,
    conn: Option<ConnId>,
    began: Time,
    client: Half,
    server: Half,
    /// The first exchange that is not over, and when those that began did.
    exchange: usize,
    starts: VecDeque<Time>,
    /// The place of that exchange's first write.
    first_write: usize,
    /// Exchanges that began, and how many writes these have.
    begun: usize,
    begun_writes: usize,
    /// Bytes of the client and the server in the exchanges that are over.
    before: (u64, u64),
    /// Sender's counts when the last exchange was over.
    counted: [(u64, u64, u64); 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Open,
    Over,
}

/// One application.
#[derive(Default)]
struct Half {
    /// The place of its next write in the list of all, and whether that one thinks already.
    next: usize,
    thinking: bool,
    written: u64,
    received: u64,
}

struct Running {
    plan: Train,
    /// The place behind the packet that is due.
    next: Cursor,
    /// The length of that packet.
    bytes: u16,
    stream: Option<StreamId>,
}

impl Source for Applications {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(Reverse((at, number, what))) = self.pending.peek().copied()
            && at <= net.now()
        {
            self.pending.pop();
            if at >= self.stop && what == What::Begin {
                continue;
            }
            match what {
                What::Begin => self.begin(number, net),
                What::Write(side) => self.write(number, side, net),
                What::Packet => self.packet(number, net),
            }
        }
        self.sleep(net);
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        match event {
            Event::Connected(conn) => {
                if let Some(number) = self.by_conn.get(&conn).copied() {
                    self.cue(number, End::Server, net);
                    self.cue(number, End::Client, net);
                }
            }
            Event::Received { conn, side, total } => {
                if let Some(number) = self.by_conn.get(&conn).copied() {
                    self.received(number, side, total, net);
                }
            }
            Event::Closed(conn) | Event::Aborted(conn) => {
                if let Some(number) = self.by_conn.remove(&conn) {
                    self.over(number, net);
                }
            }
        }
        self.sleep(net);
    }

    fn finish(&mut self, net: &mut Net<'_>) {
        for number in 0..self.talks.len() {
            if self.talks[number].state == State::Open {
                self.talks[number].give_up(Ending::Unfinished, &mut self.pages, net);
            }
        }
        self.pages.finish((self.near, self.far), net);
    }

    fn remark(&self) -> Option<String> {
        let waiting = self.talks.iter().filter(|talk| talk.state == State::Waiting).count();
        (waiting > 0).then(|| format!("{waiting} connections have not begun when the run ends"))
    }
}

impl Applications {
    fn sleep(&self, net: &mut Net<'_>) {
        if let Some(Reverse((at, ..))) = self.pending.peek() {
            net.wake_at((*at).max(net.now()));
        }
    }

    fn begin(&mut self, number: usize, net: &mut Net<'_>) {
        let talk = &mut self.talks[number];
        let (client, server) = talk.nodes;
        let host = net.host(self.far, talk.rtt / 2);
        let conn = net.connect_host(client, server, host);
        self.by_conn.insert(conn, number);
        talk.conn = Some(conn);
        talk.state = State::Open;
        talk.began = net.now();
        talk.client.next = talk.following(End::Client, 0);
        talk.server.next = talk.following(End::Server, 0);
        if talk.plan.writes.is_empty() {
            net.close(conn, Side::Client);
            net.close(conn, Side::Server);
            return;
        }
        // What the client says at once waits in its socket for the connection; a pause counts from when it
        // stands.
        if let Some(first) = talk.plan.writes.get(talk.client.next)
            && first.cue == Cue::Peer(0)
            && Span::ns(first.pause) <= talk.rtt / 4
        {
            talk.client.thinking = true;
            self.pending.push(Reverse((net.now(), number, What::Write(End::Client))));
        }
    }

    /// Lets a side think about its next write, if what that waits for has happened.
    fn cue(&mut self, number: usize, side: End, net: &Net<'_>) {
        let talk = &mut self.talks[number];
        let (me, peer) = talk.halves(side);
        let Some(write) = talk.plan.writes.get(me.next).filter(|_| !me.thinking) else { return };
        // What a sender learns from acknowledgements it learns a way back later; the server hears that the
        // connection stands a way later than the client.
        let half = talk.rtt / 2;
        let news = match (write.cue, side) {
            (Cue::Peer(0), End::Client) => Some(Span::ns(write.pause).saturating_sub(half)),
            (Cue::Peer(bytes), _) => (me.received >= bytes).then_some(Span::ns(write.pause)),
            (Cue::Own, _) => (peer.received >= me.written).then_some(half + Span::ns(write.pause)),
        };
        let Some(pause) = news else { return };
        talk.half(side).thinking = true;
        self.pending.push(Reverse((net.now() + pause, number, What::Write(side))));
    }

    fn write(&mut self, number: usize, side: End, net: &mut Net<'_>) {
        let talk = &mut self.talks[number];
        let Some(conn) = talk.conn.filter(|_| talk.state == State::Open) else { return };
        let at = talk.half(side).next;
        let Write { bytes, .. } = talk.plan.writes[at];
        let next = talk.following(side, at + 1);
        let me = talk.half(side);
        (me.thinking, me.next) = (false, next);
        me.written += bytes;
        talk.begin_exchanges(at, net.now());
        net.send(conn, transport(side), bytes);
        self.cue(number, side, net);
    }

    fn received(&mut self, number: usize, side: Side, total: u64, net: &mut Net<'_>) {
        let end = if side == Side::Client { End::Client } else { End::Server };
        let talk = &mut self.talks[number];
        talk.half(end).received = total;
        talk.finish_exchanges(&mut self.pages, net);
        if talk.is_done()
            && let Some(conn) = talk.conn
        {
            net.close(conn, Side::Client);
            net.close(conn, Side::Server);
            return;
        }
        self.cue(number, end, net);
        self.cue(number, end.other(), net);
    }

    fn over(&mut self, number: usize, net: &mut Net<'_>) {
        let talk = &mut self.talks[number];
        if !talk.is_done() {
            talk.give_up(Ending::Aborted, &mut self.pages, net);
        }
        talk.state = State::Over;
        talk.conn = None;
    }

    fn packet(&mut self, number: usize, net: &mut Net<'_>) {
        let train = &mut self.trains[number];
        let (from, to) = match train.plan.way {
            Way::Up => (self.near, self.far),
            Way::Down => (self.far, self.near),
        };
        let stream = *train.stream.get_or_insert_with(|| net.stream(from, to));
        net.datagram(stream, u32::from(train.bytes));
        if let Some((gap, bytes)) = train.next.next(&train.plan.packets) {
            train.bytes = bytes;
            let at = net.now() + Span::ns(gap);
            if at < self.stop {
                self.pending.push(Reverse((at, number, What::Packet)));
            }
        }
    }
}

impl Talk {
    fn new(plan: Connection, rtt: Span, (near, far): (u16, u16)) -> Talk {
        Talk {
            nodes: if plan.way == Way::Up { (near, far) } else { (far, near) },
            plan,
            rtt,
            state: State::Waiting,
            conn: None,
            began: Time::ZERO,
            client: Half::default(),
            server: Half::default(),
            exchange: 0,
            starts: VecDeque::new(),
            first_write: 0,
            begun: 0,
            begun_writes: 0,
            before: (0, 0),
            counted: [(0, 0, 0); 2],
        }
    }

    fn half(&mut self, side: End) -> &mut Half {
        if side == End::Client { &mut self.client } else { &mut self.server }
    }

    fn halves(&self, side: End) -> (&Half, &Half) {
        if side == End::Client { (&self.client, &self.server) } else { (&self.server, &self.client) }
    }

    /// The place of a side's first write from `from` on; the end of the list when there is none.
    fn following(&self, side: End, from: usize) -> usize {
        let later = self.plan.writes[from..].iter().position(|write| write.side == side);
        later.map_or(self.plan.writes.len(), |skip| from + skip)
    }

    /// Everything has arrived.
    fn is_done(&self) -> bool {
        self.exchange == self.plan.exchanges.len()
    }

    /// The write at this place is being done: its exchange has begun, and those before it.
    fn begin_exchanges(&mut self, write: usize, now: Time) {
        while self.begun_writes <= write {
            let start = if self.begun == 0 { self.began } else { now };
            self.starts.push_back(start);
            self.begun_writes += self.plan.exchanges[self.begun].writes as usize;
            self.begun += 1;
        }
    }

    /// Bytes of client and server in the exchange that is not over.
    fn bytes(&self) -> (u64, u64) {
        let writes =
            &self.plan.writes[self.first_write..][..self.plan.exchanges[self.exchange].writes as usize];
        (Write::sum(writes, End::Client), Write::sum(writes, End::Server))
    }

    /// Reports the exchanges whose last byte has arrived.
    fn finish_exchanges(&mut self, pages: &mut Pages, net: &mut Net<'_>) {
        while !self.starts.is_empty() {
            let (up, down) = self.bytes();
            let arrived =
                self.server.received >= self.before.0 + up && self.client.received >= self.before.1 + down;
            if !arrived {
                return;
            }
            self.report(Ending::Completed, pages, net);
        }
    }

    /// Reports what is not over, whether it began or not.
    fn give_up(&mut self, ending: Ending, pages: &mut Pages, net: &mut Net<'_>) {
        while !self.is_done() {
            if self.starts.is_empty() {
                // It never came to be: the application has been waiting for its turn since the connection
                // began.
                self.starts.push_back(self.began);
            }
            self.report(ending, pages, net);
        }
    }

    fn report(&mut self, ending: Ending, pages: &mut Pages, net: &mut Net<'_>) {
        let (up, down) = self.bytes();
        let start = self.starts.pop_front().expect("an exchange that is reported has begun");
        let (client, server) = self.nodes;
        let heavy = if up > down { End::Client } else { End::Server };
        let (nodes, bytes, before, reader) = match heavy {
            End::Client => ((client, server), up, self.before.0, &self.server),
            End::Server => ((server, client), down, self.before.1, &self.client),
        };
        let delivered = reader.received.saturating_sub(before).min(bytes);
        let counts = match self.conn {
            Some(conn) => net.counts(conn, transport(heavy)),
            None => self.counted[heavy as usize],
        };
        let counted = std::mem::replace(&mut self.counted[heavy as usize], counts);
        let goodput_bytes = match self.conn {
            Some(conn) => net.measured(conn, transport(heavy.other()), before..before + bytes),
            None => 0,
        };
        let whole = flow(net.flow_id(), nodes, start, bytes);
        net.report(FlowReport {
            end: net.now(),
            delivered,
            goodput_bytes,
            packets: counts.0 - counted.0,
            retransmitted: counts.1 - counted.1,
            timeouts: counts.2 - counted.2,
            ending,
            ..whole
        });
        if let Some(page) = self.plan.exchanges[self.exchange].page {
            pages.part(page, (start, bytes, delivered), ending, (server, client), net);
        }
        self.before = (self.before.0 + up, self.before.1 + down);
        self.first_write += self.plan.exchanges[self.exchange].writes as usize;
        self.exchange += 1;
    }
}

/// Pages: done when all of their exchanges are.
struct Pages {
    open: BTreeMap<u32, Page>,
}

struct Page {
    left: u32,
    start: Time,
    bytes: u64,
    delivered: u64,
    ending: Ending,
}

impl Pages {
    fn of(talks: &[Talk]) -> Pages {
        let mut open: BTreeMap<u32, Page> = BTreeMap::new();
        for page in talks.iter().flat_map(|talk| &talk.plan.exchanges).filter_map(|exchange| exchange.page) {
            let new = Page { left: 0, start: Time::NEVER, bytes: 0, delivered: 0, ending: Ending::Completed };
            open.entry(page).or_insert(new).left += 1;
        }
        Pages { open }
    }

    fn part(
        &mut self,
        page: u32,
        (start, bytes, delivered): (Time, u64, u64),
        ending: Ending,
        nodes: (u16, u16),
        net: &mut Net<'_>,
    ) {
        let Some(open) = self.open.get_mut(&page) else { return };
        open.left -= 1;
        open.start = open.start.min(start);
        open.bytes += bytes;
        open.delivered += delivered;
        open.ending = open.ending.max(ending);
        if open.left == 0
            && let Some(page) = self.open.remove(&page)
        {
            page.report(page.ending, nodes, net);
        }
    }

    /// Pages of which something began and something is missing.
    fn finish(&mut self, (near, far): (u16, u16), net: &mut Net<'_>) {
        for (_, page) in std::mem::take(&mut self.open) {
            if page.start < Time::NEVER {
                page.report(Ending::Unfinished, (far, near), net);
            }
        }
    }
}

impl Page {
    fn report(&self, ending: Ending, nodes: (u16, u16), net: &mut Net<'_>) {
        let whole = flow(net.flow_id(), nodes, self.start, self.bytes);
        net.report(FlowReport {
            kind: FlowKind::Group,
            end: net.now(),
            delivered: self.delivered,
            ending,
            ..whole
        });
    }
}

fn transport(side: End) -> Side {
    match side {
        End::Client => Side::Client,
        End::Server => Side::Server,
    }
}
