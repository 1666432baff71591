//! Applications: replays the connections and packet trains of a workload that was extracted from a capture.
//!
//! # Principles
//! - Closed loop: the behaviour of the applications is replayed, not the packets. Each application data unit
//!   (ADU) waits for its trigger (bytes of the other side, or the acknowledgement of its own data), then for
//!   its think time, and goes through TCP at the rate that the simulated network allows. A QUIC connection
//!   goes through QUIC, as one stream in each direction.
//! - A connection that a page opens starts when the connection before it has made the progress that its
//!   client waited for. Its captured start counts only if that connection is not played.
//! - A connection crosses the network between the pair's nodes; the rest of its path is the access delay of
//!   the far host, so that its round-trip time without queueing delay is the measured one.
//! - Datagrams leave at their captured times, because the reaction of their senders is not known.
//! - An epoch, a request with its response, is reported as a transfer of its heavier direction: from its
//!   first write (the beginning of the connection for the first epoch) to the last byte at the reader. Pages
//!   are reported in addition, as groups.
//!
//! # Deviations
//! - The header of the crate `workload` lists the limitations of the model. Connections start at their
//!   captured times plus a random delay of at most `spread`, with which runs with different seeds differ.
//!   Those that wait for another connection have no delay of their own.
//! - Connections without a measured round trip get the median of the others, or 30 ms where there are none.
//! - The think time of a client before its first write is exact if it is at least half a round trip. Up to a
//!   quarter it is taken as zero, and between the two as a half: the source receives an event when the
//!   connection is established at the server, not at the client.
//! - A connection closes when its last write has arrived.
//! - With `resample`, a draw may have no traffic of a group.
//!
//! # Cost
//! - An entry in a heap for each think time; packets of far hosts take one more event each.
//!
//! # References
//! - Weigle et al., "Tmix", ACM CCR 36(3), 2006.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use giveway_qdisc::{Ending, FlowKind, FlowReport, Invalid, Span, Streams, Time};
use giveway_workload::{Adu, After, Connection, Cursor, Direction, Side as End, Train, Trigger, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, SourceContext, Traffic, flow};
use crate::net::{ConnId, Event, Net, Protocol, Sent, Side, StreamId};

/// Parameters of `applications`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A workload file, as `giveway compare` extracts it from a capture.
    pub file: PathBuf,
    /// Replay only this group of the workload.
    #[serde(default)]
    pub group: Option<String>,
    /// The round-trip time of every connection, in place of the measured ones.
    #[serde(default)]
    pub rtt: Option<Span>,
    /// Upper bound of the random delay of each connection and train, which is uniform. Default: 0 s.
    #[serde(default)]
    pub spread: Span,
    /// Draw stretches of about this length from the workload, with replacement, as many as the whole has.
    /// Each seed has another draw, the same for all groups of the file. Default: no draw, the whole workload.
    #[serde(default)]
    pub resample: Option<Span>,
    /// The think times that are played where the capture does not show them.
    #[serde(default)]
    pub think: Think,
}

/// The think times that are played where the capture does not show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// The likeliest ones.
    #[default]
    Likely,
    /// The least ones that the capture allows.
    Least,
    /// The greatest ones that the capture allows.
    Most,
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "the applications of a capture: connections with requests, responses and think times";

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        let [(near, far)] = context.pairs[..] else {
            return Err(Invalid::new(
                "from",
                "the capture has one link: name one node on the local side and one on the far side",
            ));
        };
        let path = context.folder.join(&self.file);
        let wrong = |message: String| Invalid::new("file", format!("{} {message}", path.display()));
        let file = File::open(&path).map_err(|error| wrong(format!("cannot be opened: {error}")))?;
        let workload = Workload::read(BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
        let total = |plan: &Connection| plan.adus.iter().map(|write| u128::from(write.bytes)).sum::<u128>();
        let all = workload.connections.iter().map(total).sum::<u128>();
        if all > MAX_BYTES {
            let message =
                format!("has connections of {all} bytes together, and at most {MAX_BYTES} are possible");
            return Err(wrong(message));
        }
        let workload = match self.resample {
            Some(length) => drawn(&workload, length, context.streams.seed())
                .ok_or_else(|| Invalid::new("resample", resample_hint(&workload)))?,
            None => workload,
        };
        let median = Span::ns(workload.rtt().unwrap_or(Workload::UNKNOWN_RTT));
        let mine = |group: &str| self.group.as_deref().is_none_or(|wanted| wanted == group);
        let mut rng = context.streams.within("spread").rng();
        let mut begins = |at: u64| {
            let late = if self.spread.is_zero() { 0 } else { rng.below(self.spread.as_ps()) };
            context.start + Span::ns(at) + Span::from_ps(late)
        };
        let mut pending = BinaryHeap::new();
        let mut replays: Vec<Replay> = Vec::new();
        let mut waiting = Waiting::default();
        // The place of each connection of the file among those that are played.
        let mut numbers = 0..;
        let place = |plan: &Connection| if mine(&plan.group) { numbers.next() } else { None };
        let places: Vec<Option<usize>> = workload.connections.iter().map(place).collect();
        for mut plan in workload.connections.into_iter().filter(|plan| mine(&plan.group)) {
            let number = replays.len();
            waiting.add(&mut plan, number, &places);
            for adu in &mut plan.adus {
                adu.think_time = self.think.of(adu);
            }
            let rtt = self.rtt.unwrap_or_else(|| plan.rtt.map_or(median, Span::ns));
            // The start of a connection is when its first packet passes the link. A client on the far side
            // sends it half a round trip earlier.
            let away = if plan.direction == Direction::Up { 0 } else { (rtt / 2).as_ps() / 1000 };
            if plan.after.is_none() {
                pending.push(Reverse((begins(plan.start.saturating_sub(away)), number, Action::Begin)));
            }
            replays.push(Replay::new(plan, rtt, (near, far)));
        }
        let mut trains = Vec::new();
        for plan in workload.trains.into_iter().filter(|plan| mine(&plan.group)) {
            pending.push(Reverse((begins(plan.start), trains.len(), Action::Packet)));
            let mut next = Cursor::default();
            let bytes = next.next(&plan.packets).map_or(0, |(_, bytes)| bytes);
            trains.push(Running { plan, next, bytes, stream: None });
        }
        if replays.is_empty() && trains.is_empty() && self.resample.is_none() {
            let group = self.group.as_deref().unwrap_or_default();
            return Err(Invalid::new("group", format!("\"{group}\" has no traffic in {}", path.display())));
        }
        let pages = Pages::of(&replays);
        Ok(Box::new(Applications {
            near,
            far,
            replays,
            trains,
            by_conn: BTreeMap::new(),
            pending,
            waiting,
            pages,
            stop: context.stop,
        }))
    }
}

/// Stretches of about this length, drawn with replacement; `None` if the workload has fewer than two.
fn drawn(workload: &Workload, about: Span, seed: u64) -> Option<Workload> {
    let count = (workload.span as f64 / (about.as_s() * 1e9)).round();
    if !(2.0..=MAX_STRETCHES).contains(&count) {
        return None;
    }
    // The stretches are equally long, so that the draw is as long as the workload.
    let length = workload.span.div_ceil(count as u64);
    // Not from the stream of the source: the groups of one file must have the same draw.
    let mut rng = Streams::new(seed).within("resample").rng();
    let order: Vec<usize> = (0..count as u64).map(|_| rng.below(count as u64) as usize).collect();
    Some(workload.arranged(length, &order))
}

fn resample_hint(workload: &Workload) -> String {
    let example = Span::ms((workload.span / 10_000_000).max(1));
    format!(
        "the workload of {:.1} s has no 2 to {MAX_STRETCHES} stretches of this length; write for example {example}",
        workload.span as f64 / 1e9
    )
}

/// Largest number of stretches of a draw.
const MAX_STRETCHES: f64 = 1e6;

/// Largest number of bytes of all connections together: a pebibyte. With it no sum of bytes overflows.
const MAX_BYTES: u128 = 1 << 50;

struct Applications {
    near: u16,
    far: u16,
    replays: Vec<Replay>,
    trains: Vec<Running>,
    /// Index of the replay of each open connection.
    by_conn: BTreeMap<ConnId, usize>,
    pending: Pending,
    waiting: Waiting,
    pages: Pages,
    stop: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Begin,
    /// The ADU with this index waits for no other connection any more.
    Release(usize),
    /// The think time of this side is over.
    Write(End),
    Packet,
}

/// The replay of a connection.
struct Replay {
    plan: Connection,
    rtt: Span,
    /// Nodes of client and server.
    nodes: (u16, u16),
    state: State,
    conn: Option<ConnId>,
    began: Time,
    client: Half,
    server: Half,
    /// Index of the first epoch that is not complete.
    epoch: usize,
    /// Start of each epoch that has begun and is not complete.
    starts: VecDeque<Time>,
    /// Index of the first ADU of `epoch`.
    first_adu: usize,
    /// Number of epochs that have started, and number of their ADUs.
    begun: usize,
    begun_adus: usize,
    /// Bytes of the client and of the server in the complete epochs.
    before: (u64, u64),
    /// Counters of the senders when the last epoch was complete.
    counted: [Sent; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Open,
    Over,
}

/// The application at one end.
#[derive(Default)]
struct Half {
    /// Index of its next ADU in the list of both sides, and whether the think time of that ADU is running.
    next: usize,
    thinking: bool,
    written: u64,
    received: u64,
}

struct Running {
    plan: Train,
    /// Position after the packet that is due.
    next: Cursor,
    /// The length of that packet.
    bytes: u16,
    stream: Option<StreamId>,
}

/// Time, index of the replay or the train, and the action.
type Pending = BinaryHeap<Reverse<(Time, usize, Action)>>;

/// The connections and ADUs that wait for the progress of a connection.
#[derive(Default)]
struct Waiting {
    /// By the replay whose progress they wait for: bytes at its client, the time after them, and what happens
    /// then to which replay.
    of: BTreeMap<usize, Vec<(u64, Span, usize, Action)>>,
}

impl Source for Applications {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(Reverse((at, number, action))) = self.pending.peek().copied()
            && at <= net.now()
        {
            self.pending.pop();
            if at >= self.stop && action == Action::Begin {
                continue;
            }
            match action {
                Action::Begin => self.begin(number, net),
                Action::Release(adu) => {
                    self.replays[number].plan.adus[adu].after = None;
                    self.start_thinking(number, End::Client, net);
                }
                Action::Write(side) => self.write(number, side, net),
                Action::Packet => self.packet(number, net),
            }
        }
        self.sleep(net);
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        match event {
            Event::Connected(conn) => {
                if let Some(number) = self.by_conn.get(&conn).copied() {
                    self.start_thinking(number, End::Server, net);
                    self.start_thinking(number, End::Client, net);
                }
            }
            Event::Received { conn, side, total, .. } => {
                if let Some(number) = self.by_conn.get(&conn).copied() {
                    self.on_receipt(number, side, total, net);
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
        for number in 0..self.replays.len() {
            if self.replays[number].state == State::Open {
                self.replays[number].give_up(Ending::Unfinished, &mut self.pages, net);
            }
        }
        self.pages.finish((self.near, self.far), net);
    }

    fn remark(&self) -> Option<String> {
        let waiting = self.replays.iter().filter(|replay| replay.state == State::Waiting).count();
        (waiting > 0).then(|| format!("{waiting} connections had not begun at the end of the run"))
    }
}

impl Applications {
    fn sleep(&self, net: &mut Net<'_>) {
        if let Some(Reverse((at, ..))) = self.pending.peek() {
            net.wake_at((*at).max(net.now()));
        }
    }

    fn begin(&mut self, number: usize, net: &mut Net<'_>) {
        let replay = &mut self.replays[number];
        let (client, server) = replay.nodes;
        let host = net.host(self.far, replay.rtt / 2);
        let protocol = if replay.plan.quic { Protocol::Quic } else { Protocol::Tcp };
        let conn = net.connect_over(protocol, (client, server), host);
        self.by_conn.insert(conn, number);
        replay.conn = Some(conn);
        replay.state = State::Open;
        replay.began = net.now();
        replay.client.next = replay.following(End::Client, 0);
        replay.server.next = replay.following(End::Server, 0);
        self.waiting.progress(number, 0, net.now(), &mut self.pending);
        if replay.plan.adus.is_empty() {
            net.close(conn, Side::Client);
            net.close(conn, Side::Server);
            return;
        }
        // Data that the client writes at once waits in its socket for the handshake. A think time counts from
        // the end of the handshake.
        if let Some(first) = replay.plan.adus.get(replay.client.next)
            && first.trigger == Trigger::Peer(0)
            && first.after.is_none()
            && Span::ns(first.think_time) <= replay.rtt / 4
        {
            replay.client.thinking = true;
            self.pending.push(Reverse((net.now(), number, Action::Write(End::Client))));
        }
    }

    /// Starts the think time of the next ADU of a side, if its trigger has occurred.
    fn start_thinking(&mut self, number: usize, side: End, net: &Net<'_>) {
        let replay = &mut self.replays[number];
        let (me, peer) = replay.halves(side);
        let next = replay.plan.adus.get(me.next);
        let Some(write) = next.filter(|write| !me.thinking && write.after.is_none()) else { return };
        // The sender receives an acknowledgement half a round trip after the data has arrived, and the event
        // reports the arrival. The connection is established at the server half a round trip later than at
        // the client.
        let half = replay.rtt / 2;
        let pause = match (write.trigger, side) {
            (Trigger::Peer(0), End::Client) => Some(Span::ns(write.think_time).saturating_sub(half)),
            (Trigger::Peer(bytes), _) => (me.received >= bytes).then_some(Span::ns(write.think_time)),
            (Trigger::Own, _) => (peer.received >= me.written).then_some(half + Span::ns(write.think_time)),
        };
        let Some(pause) = pause else { return };
        replay.half(side).thinking = true;
        self.pending.push(Reverse((net.now() + pause, number, Action::Write(side))));
    }

    fn write(&mut self, number: usize, side: End, net: &mut Net<'_>) {
        let replay = &mut self.replays[number];
        let Some(conn) = replay.conn.filter(|_| replay.state == State::Open) else { return };
        let at = replay.half(side).next;
        let Adu { bytes, .. } = replay.plan.adus[at];
        let next = replay.following(side, at + 1);
        let me = replay.half(side);
        (me.thinking, me.next) = (false, next);
        me.written += bytes;
        replay.begin_epochs(at, net.now());
        net.send(conn, transport(side), bytes);
        self.start_thinking(number, side, net);
    }

    fn on_receipt(&mut self, number: usize, side: Side, total: u64, net: &mut Net<'_>) {
        let end = if side == Side::Client { End::Client } else { End::Server };
        if end == End::Client {
            self.waiting.progress(number, total, net.now(), &mut self.pending);
        }
        let replay = &mut self.replays[number];
        replay.half(end).received = total;
        replay.finish_epochs(&mut self.pages, net);
        if replay.is_done()
            && let Some(conn) = replay.conn
        {
            net.close(conn, Side::Client);
            net.close(conn, Side::Server);
            return;
        }
        self.start_thinking(number, end, net);
        self.start_thinking(number, end.other(), net);
    }

    fn over(&mut self, number: usize, net: &mut Net<'_>) {
        let replay = &mut self.replays[number];
        if !replay.is_done() {
            replay.give_up(Ending::Aborted, &mut self.pages, net);
        }
        replay.state = State::Over;
        replay.conn = None;
    }

    fn packet(&mut self, number: usize, net: &mut Net<'_>) {
        let train = &mut self.trains[number];
        let (from, to) = match train.plan.direction {
            Direction::Up => (self.near, self.far),
            Direction::Down => (self.far, self.near),
        };
        let stream = *train.stream.get_or_insert_with(|| net.stream(from, to));
        net.datagram(stream, u32::from(train.bytes));
        if let Some((gap, bytes)) = train.next.next(&train.plan.packets) {
            train.bytes = bytes;
            let at = net.now() + Span::ns(gap);
            if at < self.stop {
                self.pending.push(Reverse((at, number, Action::Packet)));
            }
        }
    }
}

impl Waiting {
    /// Adds what a connection waits for. It does not wait for connections that are not played.
    fn add(&mut self, plan: &mut Connection, number: usize, places: &[Option<usize>]) {
        let starts = std::iter::once((&mut plan.after, Action::Begin));
        let adus = plan.adus.iter_mut().enumerate();
        for (after, action) in starts.chain(adus.map(|(at, adu)| (&mut adu.after, Action::Release(at)))) {
            *after = after.filter(|after| places[after.connection].is_some());
            if let Some(After { connection, bytes, pause }) = *after
                && let Some(other) = places[connection]
            {
                self.of.entry(other).or_default().push((bytes, Span::ns(pause), number, action));
            }
        }
    }

    /// The client of a connection has received this many bytes.
    fn progress(&mut self, number: usize, bytes: u64, now: Time, pending: &mut Pending) {
        let Some(waiting) = self.of.get_mut(&number) else { return };
        for (_, pause, other, action) in waiting.extract_if(.., |(wanted, ..)| *wanted <= bytes) {
            pending.push(Reverse((now + pause, other, action)));
        }
        if waiting.is_empty() {
            self.of.remove(&number);
        }
    }
}

impl Think {
    /// The think time of an ADU, ns.
    fn of(self, adu: &Adu) -> u64 {
        match (self, adu.between) {
            (Think::Least, Some((least, _))) => least,
            (Think::Most, Some((_, most))) => most,
            _ => adu.think_time,
        }
    }
}

impl Replay {
    fn new(plan: Connection, rtt: Span, (near, far): (u16, u16)) -> Replay {
        Replay {
            nodes: if plan.direction == Direction::Up { (near, far) } else { (far, near) },
            plan,
            rtt,
            state: State::Waiting,
            conn: None,
            began: Time::ZERO,
            client: Half::default(),
            server: Half::default(),
            epoch: 0,
            starts: VecDeque::new(),
            first_adu: 0,
            begun: 0,
            begun_adus: 0,
            before: (0, 0),
            counted: [Sent::default(); 2],
        }
    }

    fn half(&mut self, side: End) -> &mut Half {
        if side == End::Client { &mut self.client } else { &mut self.server }
    }

    fn halves(&self, side: End) -> (&Half, &Half) {
        if side == End::Client { (&self.client, &self.server) } else { (&self.server, &self.client) }
    }

    /// Index of the first ADU of a side from `from` on; the length of the list if there is none.
    fn following(&self, side: End, from: usize) -> usize {
        let later = self.plan.adus[from..].iter().position(|write| write.side == side);
        later.map_or(self.plan.adus.len(), |skip| from + skip)
    }

    /// True if all data has arrived.
    fn is_done(&self) -> bool {
        self.epoch == self.plan.epochs.len()
    }

    /// Records the start of the epoch of this ADU, and of those before it.
    fn begin_epochs(&mut self, write: usize, now: Time) {
        while self.begun_adus <= write {
            let start = if self.begun == 0 { self.began } else { now };
            self.starts.push_back(start);
            self.begun_adus += self.plan.epochs[self.begun].adus as usize;
            self.begun += 1;
        }
    }

    /// Bytes of the client and of the server in the first epoch that is not complete.
    fn bytes(&self) -> (u64, u64) {
        let writes = &self.plan.adus[self.first_adu..][..self.plan.epochs[self.epoch].adus as usize];
        (Adu::sum(writes, End::Client), Adu::sum(writes, End::Server))
    }

    /// Reports the epochs whose last byte has arrived.
    fn finish_epochs(&mut self, pages: &mut Pages, net: &mut Net<'_>) {
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

    /// Reports the epochs that are not complete, whether they started or not.
    fn give_up(&mut self, ending: Ending, pages: &mut Pages, net: &mut Net<'_>) {
        while !self.is_done() {
            if self.starts.is_empty() {
                // The epoch never began: the application has waited for it since the connection began.
                self.starts.push_back(self.began);
            }
            self.report(ending, pages, net);
        }
    }

    fn report(&mut self, ending: Ending, pages: &mut Pages, net: &mut Net<'_>) {
        let (up, down) = self.bytes();
        let start = self.starts.pop_front().expect("an epoch that is reported has begun");
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
        let sent = counts - std::mem::replace(&mut self.counted[heavy as usize], counts);
        let goodput_bytes = match self.conn {
            Some(conn) => net.measured(conn, transport(heavy.other()), before..before + bytes),
            None => 0,
        };
        let whole = flow(net.flow_id(), nodes, start, bytes);
        net.report(FlowReport {
            end: net.now(),
            delivered,
            goodput_bytes,
            packets: sent.packets,
            retransmitted: sent.retransmitted,
            causes: sent.causes,
            timeouts: sent.timeouts,
            ending,
            ..whole
        });
        if let Some(page) = self.plan.epochs[self.epoch].page {
            pages.part(page, (start, bytes, delivered), ending, (server, client), net);
        }
        self.before = (self.before.0 + up, self.before.1 + down);
        self.first_adu += self.plan.epochs[self.epoch].adus as usize;
        self.epoch += 1;
    }
}

/// Pages, each complete when all of its epochs are.
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
    fn of(replays: &[Replay]) -> Pages {
        let mut open: BTreeMap<u32, Page> = BTreeMap::new();
        for page in replays.iter().flat_map(|replay| &replay.plan.epochs).filter_map(|epoch| epoch.page) {
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

    /// Reports the pages that have started and are not complete.
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
