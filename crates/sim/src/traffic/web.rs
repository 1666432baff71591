//! Web: users who open a page, wait for it, read it, and open the next one.
//!
//! # Principles
//! - Closed loop: a user requests the next page only after the last one has arrived and was read, so a slow
//!   network gets fewer requests. Users notice the load time of a page, so pages are the flows that are
//!   reported: from the click to the last byte.
//! - A page is a number of objects, over several connections at once. Each object is a request upstream and a
//!   response downstream: the upstream direction matters, since on a home link it is often the congested one.
//! - With `main` the document comes first and its objects are requested when it has arrived, as browsers do.
//! - Connections serve one object each, as in HTTP/1.0, or one object after another, as in HTTP/1.1.
//!   Connections of HTTP/1.1 end with their page, or are kept for the user's next one: then only the first
//!   page has handshakes in its load time, and TCP's windows and round-trip estimates outlive a page (after a
//!   pause the window restarts: RFC 5681, section 4.1).
//! - Over QUIC (`transport = "quic"`) a page has one connection with a stream for each object, as in HTTP/3.
//!   A lost packet delays the objects whose data it has, and no other; over TCP it delays everything behind
//!   it on its connection.
//! - Each user draws think times, numbers and sizes from its own random streams: its n-th page is the same
//!   under every discipline.
//!
//! # Deviations
//! - No name resolution, no TLS handshake over TCP, and no caching.
//! - Servers respond at once, or after an exponential time (`respond`). The n-th request of a user has the
//!   same time under every discipline. A server never responds in parts.
//! - By default a new page opens new connections: users go from site to site. With `connections = "kept"` a
//!   user stays on one site, and neither end closes an idle connection. HTTP/2 with one connection is
//!   `parallel = 1` here, where objects come one after another instead of interleaved; the page load time is
//!   nearly the same.
//! - Packets and retransmissions over QUIC are counted for a page and not for an object, because a packet may
//!   have data of several.
//! - When a connection is aborted, the page requests nothing more; it is reported as aborted as soon as the
//!   objects in flight have arrived. Where connections are kept, the next page opens another in its place.
//! - The model of the defaults requests a document before 0 to 53 objects; here `main` is off, and 2 to 55
//!   objects are requested at once.
//! - The default think time of 5 s is shorter than the 30 s of the model that the other defaults come from,
//!   so that short runs contain pages.
//!
//! # Cost
//! - One connection per object, or `parallel` per page, or per user; one table look-up per segment received.
//!
//! # References
//! - IEEE 802.16m evaluation methodology, and 3GPP2 C.R1002 before it: the model of web traffic whose numbers
//!   and sizes of objects are the defaults. Truncated Pareto numbers of objects, lognormal sizes.
//! - RFC 9112, section 9: connections of HTTP/1.1. Browsers open six at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use giveway_qdisc::{Bytes, Ending, FlowReport, Invalid, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_count, flow};
use crate::counts::{CountSampler, Counts};
use crate::net::{ConnId, Event, HostId, Net, Protocol, Sent, Side};
use crate::sizes::{Sampler, Sizes};

/// Parameters of `web`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of users of each pair of nodes; the client is the pair's first node, the server its second.
    pub users: u32,
    /// Mean time between the end of a page and the next click, exponential.
    pub think: Span,
    /// The document of a page, which must arrive before its objects are requested. Without it they are
    /// requested at once.
    pub main: Option<Sizes>,
    /// Number of objects of a page.
    pub objects: Counts,
    /// Distribution of object sizes.
    pub object: Sizes,
    /// Protocol of the connections.
    pub transport: Protocol,
    /// Use of a connection: for one object, for the objects of a page, or for one page after another.
    pub connections: Connections,
    /// Largest number of objects of a page at once: each has a connection over TCP, and a stream over QUIC.
    /// Default: 6, or 100 over QUIC.
    pub parallel: Option<u32>,
    /// Size of the other direction of each object: the request, or the response if objects are uploaded.
    pub request: Bytes,
    /// Mean time after which a server responds to a request, exponential. Default: 0, at once.
    pub respond: Span,
    /// True if objects are sent from the client to the server.
    pub upload: bool,
    /// The unit that is reported as a flow.
    pub report: Report,
}

/// Use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// One connection for each object; the server closes it.
    PerObject,
    /// A connection serves objects until its page is complete.
    Persistent,
    /// A connection stays open from page to page of its user.
    Kept,
}

/// The unit that is reported as a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Each page: from the click to its last byte.
    Pages,
    /// Each object: from its request to its last byte, with the handshake if it has its own connection.
    Objects,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            users: 1,
            think: Span::s(5),
            main: None,
            objects: Counts::Pareto { shape: 1.1, min: 2, max: 55 },
            object: Sizes::Lognormal { mean: Bytes(7758), sigma: 2.36, max: Some(Bytes(2_000_000)) },
            transport: Protocol::Tcp,
            connections: Connections::Persistent,
            parallel: None,
            request: Bytes(350),
            respond: Span::ZERO,
            upload: false,
            report: Report::Pages,
        }
    }
}

/// Connections that browsers open at once to a server over TCP.
const CONNECTIONS: u32 = 6;
/// Streams at once: the minimum that RFC 9114, section 6.1, recommends.
const STREAMS: u32 = 100;

impl Traffic for Config {
    const SUMMARY: &'static str = "web users: pages of objects over TCP or QUIC, with think times";

    fn protocol(&self) -> Protocol {
        self.transport
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        let sampler = |parameter, sizes: &Sizes| sizes.sampler(parameter, context.tcp.mss, &context.folder);
        check_count("users", self.users, MAX_FLOWS, context)?;
        let usual = if self.transport == Protocol::Quic { STREAMS } else { CONNECTIONS };
        let parallel = self.parallel.unwrap_or(usual);
        if parallel == 0 {
            return Err(Invalid::new("parallel", "a page needs at least 1 connection"));
        }
        if self.transport == Protocol::Quic && self.connections == Connections::PerObject {
            return Err(Invalid::new(
                "connections",
                "a QUIC connection serves all objects of a page: write \"persistent\" or \"kept\"",
            ));
        }
        if self.request == Bytes(0) {
            return Err(Invalid::new(
                "request",
                "a request needs at least 1 byte: write for example \"350b\"",
            ));
        }
        let kind = UserModel {
            config: self.clone(),
            parallel,
            main: self.main.as_ref().map(|sizes| sampler("main", sizes)).transpose()?,
            object: sampler("object", &self.object)?,
            count: self.objects.sampler().map_err(|error| Invalid::new("objects", error.to_string()))?,
            think_s: self.think.as_s(),
            stop: context.stop,
        };
        let users =
            (0..self.users).flat_map(|_| &context.pairs).enumerate().map(|(number, (client, server))| {
                let streams = context.streams.within(&number.to_string());
                let [think, pages, respond] =
                    ["think", "pages", "respond"].map(|name| streams.within(name).rng());
                let (client, server) = (*client, *server);
                User { client, server, think, pages, respond, page: None, kept: Vec::new(), streams: 0 }
            });
        let users = users.collect();
        let mut web = Web {
            kind,
            users,
            clicks: BinaryHeap::new(),
            responses: BinaryHeap::new(),
            connections: BTreeMap::new(),
            users_of: BTreeMap::new(),
        };
        for user in 0..web.users.len() {
            web.think(user, context.start);
        }
        Ok(Box::new(web))
    }
}

/// Parameters and samplers that all users share.
struct UserModel {
    config: Config,
    parallel: u32,
    main: Option<Sampler>,
    object: Sampler,
    count: CountSampler,
    think_s: f64,
    stop: Time,
}

struct Web {
    kind: UserModel,
    users: Vec<User>,
    /// Time of the next click of each user.
    clicks: BinaryHeap<Reverse<(Time, usize)>>,
    /// Times of the responses of servers that do not respond at once.
    responses: BinaryHeap<Reverse<(Time, StreamKey)>>,
    /// Connections that carry an object, and those that are kept; over QUIC the streams that carry one, by
    /// connection and number.
    connections: BTreeMap<StreamKey, Connection>,
    /// The user of each QUIC connection.
    users_of: BTreeMap<ConnId, usize>,
}

/// A connection, and the number of a stream: 0 over TCP.
type StreamKey = (ConnId, u32);

struct User {
    client: u16,
    server: u16,
    think: Rng,
    pages: Rng,
    respond: Rng,
    page: Option<Page>,
    /// Connections that wait for the next page.
    kept: Vec<ConnId>,
    /// Streams of its QUIC connection so far.
    streams: u32,
}

/// A page that is being loaded.
struct Page {
    id: u64,
    start: Time,
    bytes: u64,
    /// Objects not requested yet.
    to_request: VecDeque<u64>,
    /// Objects that wait for the document.
    after_main: VecDeque<u64>,
    /// Number of objects requested and not complete.
    in_flight: u32,
    got: Got,
    failed: bool,
    /// Its connections, all of them and those without an object.
    connections: Vec<ConnId>,
    idle: Vec<ConnId>,
    /// Counters of its QUIC connection when the page started.
    before: Sent,
}

/// Bytes received, and the cost of the sender.
#[derive(Clone, Copy, Default)]
struct Got {
    bytes: u64,
    measured: u64,
    sent: Sent,
}

/// A connection and the object that it carries.
struct Connection {
    user: usize,
    /// Number of the flow of the object, if objects are reported.
    id: u64,
    requested: Time,
    object: u64,
    /// Time after which the server responds to the request.
    respond: Span,
    /// Bytes of requests at the server, and of responses at the client, when the object is complete.
    up: u64,
    down: u64,
    answered: bool,
    done: bool,
    got: Got,
    /// Counters of the connection before this object.
    before: Sent,
}

impl Source for Web {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(Reverse((at, user))) = self.clicks.peek().copied()
            && at <= net.now()
        {
            self.clicks.pop();
            self.click(user, net);
        }
        while let Some(Reverse((at, place))) = self.responses.peek().copied()
            && at <= net.now()
        {
            self.responses.pop();
            self.respond(place, net);
        }
        self.sleep(net);
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        match event {
            Event::Connected(_) => {}
            Event::Received { conn, side, stream, total } => {
                self.on_receipt((conn, stream), side, total, net)
            }
            // Only an aborted connection is still in the table: others are removed before they close.
            Event::Closed(conn) | Event::Aborted(conn) => {
                if let Some(user) = self.users_of.remove(&conn) {
                    self.aborted_quic(conn, user, net);
                } else if let Some(connection) = self.connections.remove(&(conn, 0)) {
                    self.on_abort(conn, connection, net);
                }
            }
        }
    }

    fn finish(&mut self, net: &mut Net<'_>) {
        for (place, mut connection) in std::mem::take(&mut self.connections) {
            if !connection.done {
                self.kind.account(place, &mut connection, net);
                self.report_object(&connection, Ending::Unfinished, net);
            }
        }
        for user in &mut self.users {
            if let Some(mut page) = user.page.take() {
                self.kind.account_page(&mut page, net);
                self.kind.report_page(user.client, user.server, &page, Ending::Unfinished, net);
            }
        }
    }
}

impl Web {
    fn think(&mut self, user: usize, now: Time) {
        let click = now + Span::from_s_f64(self.users[user].think.exponential(self.kind.think_s));
        if click < self.kind.stop {
            self.clicks.push(Reverse((click, user)));
        }
    }

    fn sleep(&self, net: &mut Net<'_>) {
        let click = self.clicks.peek().map(|Reverse((at, _))| *at);
        let response = self.responses.peek().map(|Reverse((at, _))| *at);
        if let Some(at) = click.into_iter().chain(response).min() {
            net.wake_at(at);
        }
    }

    fn click(&mut self, user: usize, net: &mut Net<'_>) {
        let this = &mut self.users[user];
        let count = self.kind.count.draw(&mut this.pages);
        let main = self.kind.main.as_ref().map(|main| main.draw(&mut this.pages));
        let objects: VecDeque<u64> = (0..count).map(|_| self.kind.object.draw(&mut this.pages)).collect();
        let bytes = objects.iter().sum::<u64>() + main.unwrap_or(0);
        let (to_request, after_main) = match main {
            Some(main) => (VecDeque::from([main]), objects),
            None => (objects, VecDeque::new()),
        };
        let kept = std::mem::take(&mut this.kept);
        this.page = Some(Page {
            id: net.flow_id(),
            start: net.now(),
            bytes,
            to_request,
            after_main,
            in_flight: 0,
            got: Got::default(),
            failed: false,
            before: match kept.first() {
                Some(conn) if self.kind.over_quic() => net.counts(*conn, self.kind.writer()),
                _ => Sent::default(),
            },
            connections: kept.clone(),
            idle: kept,
        });
        self.request(user, net);
    }

    /// Requests objects as long as connections are available.
    fn request(&mut self, user: usize, net: &mut Net<'_>) {
        let this = &mut self.users[user];
        let page = this.page.as_mut().expect("only an open page has requests");
        while page.in_flight < self.kind.parallel
            && let Some(object) = page.to_request.pop_front()
        {
            page.in_flight += 1;
            let requested = net.now();
            let over_quic = self.kind.over_quic();
            let usable = if over_quic { page.connections.first().copied() } else { page.idle.pop() };
            let conn = usable.unwrap_or_else(|| {
                let ends = (this.client, this.server);
                let conn = net.connect_over(self.kind.config.transport, ends, HostId::default());
                page.connections.push(conn);
                this.streams = 0;
                if over_quic {
                    self.users_of.insert(conn, user);
                }
                conn
            });
            let stream = if over_quic { this.streams } else { 0 };
            this.streams += u32::from(over_quic);
            let (up, down) = self.kind.up_and_down(object);
            let respond = match self.kind.config.respond {
                Span::ZERO => Span::ZERO,
                mean => Span::from_s_f64(this.respond.exponential(mean.as_s())),
            };
            let connection = self.connections.entry((conn, stream)).or_insert(Connection {
                user,
                id: 0,
                requested,
                object,
                respond,
                up: 0,
                down: 0,
                answered: false,
                done: false,
                got: Got::default(),
                before: Sent::default(),
            });
            connection.id = if self.kind.config.report == Report::Objects { net.flow_id() } else { page.id };
            (connection.requested, connection.object, connection.respond) = (requested, object, respond);
            (connection.answered, connection.done) = (false, false);
            connection.got = Got::default();
            connection.up += up;
            connection.down += down;
            self.kind.send((conn, stream), Side::Client, up, net);
        }
    }

    fn on_receipt(&mut self, place: StreamKey, side: Side, total: u64, net: &mut Net<'_>) {
        let Some(connection) = self.connections.get_mut(&place) else { return };
        if side == self.kind.reader() {
            self.kind.count_bytes(connection, total);
        }
        if side == Side::Server && total >= connection.up && !connection.answered {
            connection.answered = true;
            if connection.respond.is_zero() {
                return self.respond(place, net);
            }
            self.responses.push(Reverse((net.now() + connection.respond, place)));
            self.sleep(net);
        } else if side == Side::Client && total >= connection.down && connection.answered && !connection.done
        {
            self.complete(place, net);
        }
    }

    /// The server responds, unless the connection was aborted while it waited.
    fn respond(&mut self, place: StreamKey, net: &mut Net<'_>) {
        let Some(connection) = self.connections.get(&place) else { return };
        let (_, down) = self.kind.up_and_down(connection.object);
        self.kind.send(place, Side::Server, down, net);
        if self.kind.config.connections == Connections::PerObject {
            net.close(place.0, Side::Server);
        }
    }

    /// An object is complete.
    fn complete(&mut self, place: StreamKey, net: &mut Net<'_>) {
        let (conn, _) = place;
        let connection = self.connections.get_mut(&place).expect("the connection carries the object");
        connection.done = true;
        self.kind.account(place, connection, net);
        let (user, got) = (connection.user, connection.got);
        let this = &mut self.users[user];
        self.kind.report_object(this.client, this.server, connection, Ending::Completed, net);
        let page = this.page.as_mut().expect("its page is open");
        page.got.add(&got);
        page.in_flight -= 1;
        page.to_request.append(&mut page.after_main);
        match self.kind.config.connections {
            Connections::PerObject => {
                net.close(conn, Side::Client);
                self.connections.remove(&place);
                page.connections.retain(|known| *known != conn);
            }
            Connections::Persistent | Connections::Kept if self.kind.over_quic() => {
                self.connections.remove(&place);
            }
            Connections::Persistent | Connections::Kept => page.idle.push(conn),
        }
        self.continue_page(user, net);
    }

    /// A connection was aborted with an object on it, or while it was idle.
    fn on_abort(&mut self, conn: ConnId, mut connection: Connection, net: &mut Net<'_>) {
        let user = connection.user;
        self.users[user].kept.retain(|known| *known != conn);
        let Some(page) = self.users[user].page.as_mut() else { return };
        page.connections.retain(|known| *known != conn);
        page.idle.retain(|known| *known != conn);
        if connection.done {
            return; // another connection is opened when it is needed
        }
        page.failed = true;
        page.in_flight -= 1;
        page.to_request.clear();
        page.after_main.clear();
        self.kind.account((conn, 0), &mut connection, net);
        self.report_object(&connection, Ending::Aborted, net);
        self.continue_page(user, net);
    }

    /// The QUIC connection of a user was aborted, or closed after its page.
    fn aborted_quic(&mut self, conn: ConnId, user: usize, net: &mut Net<'_>) {
        self.users[user].kept.retain(|known| *known != conn);
        let streams: Vec<StreamKey> =
            self.connections.range((conn, 0)..=(conn, u32::MAX)).map(|(place, _)| *place).collect();
        let Some(page) = self.users[user].page.as_mut().filter(|page| page.connections.contains(&conn))
        else {
            return;
        };
        page.failed = true;
        page.to_request.clear();
        page.after_main.clear();
        page.in_flight -= streams.len() as u32;
        self.kind.account_page(page, net);
        page.connections.retain(|known| *known != conn);
        for place in streams {
            if let Some(mut object) = self.connections.remove(&place) {
                self.kind.account(place, &mut object, net);
                self.report_object(&object, Ending::Aborted, net);
            }
        }
        self.continue_page(user, net);
    }

    /// Counts an object that will never be complete.
    fn report_object(&mut self, connection: &Connection, ending: Ending, net: &mut Net<'_>) {
        let user = &mut self.users[connection.user];
        self.kind.report_object(user.client, user.server, connection, ending, net);
        if let Some(page) = &mut user.page {
            page.got.add(&connection.got);
        }
    }

    /// Requests more objects, or ends the page.
    fn continue_page(&mut self, user: usize, net: &mut Net<'_>) {
        let this = &mut self.users[user];
        let open = this.page.as_ref().expect("its page is open");
        if !open.to_request.is_empty() {
            return self.request(user, net);
        }
        if open.in_flight > 0 {
            return;
        }
        let mut page = this.page.take().expect("its page is open");
        self.kind.account_page(&mut page, net);
        if self.kind.config.connections == Connections::Kept {
            // All of them: no object is in flight.
            let all = if self.kind.over_quic() { &mut page.connections } else { &mut page.idle };
            this.kept = std::mem::take(all);
        } else {
            for conn in &page.connections {
                self.connections.remove(&(*conn, 0));
                self.users_of.remove(conn);
                net.close(*conn, Side::Client);
                net.close(*conn, Side::Server);
            }
        }
        let ending = if page.failed { Ending::Aborted } else { Ending::Completed };
        self.kind.report_page(this.client, this.server, &page, ending, net);
        self.think(user, net.now());
        self.sleep(net);
    }
}

impl UserModel {
    /// Bytes upstream and downstream for an object.
    fn up_and_down(&self, object: u64) -> (u64, u64) {
        let other = self.config.request.0;
        if self.config.upload { (object, other) } else { (other, object) }
    }

    /// The end that receives objects.
    fn reader(&self) -> Side {
        if self.config.upload { Side::Server } else { Side::Client }
    }

    /// The end that sends objects.
    fn writer(&self) -> Side {
        if self.config.upload { Side::Client } else { Side::Server }
    }

    /// Counts bytes of the object that have arrived; `total` counts from the beginning of the connection.
    fn count_bytes(&self, connection: &mut Connection, total: u64) {
        let end = self.end(connection);
        connection.got.bytes = connection.object.saturating_sub(end.saturating_sub(total));
    }

    /// The end of the object in the stream to its reader, in bytes.
    fn end(&self, connection: &Connection) -> u64 {
        if self.config.upload { connection.up } else { connection.down }
    }

    fn over_quic(&self) -> bool {
        self.config.transport == Protocol::Quic
    }

    /// Sends a request, or a response.
    fn send(&self, (conn, stream): StreamKey, side: Side, bytes: u64, net: &mut Net<'_>) {
        match self.config.transport {
            Protocol::Tcp => net.send(conn, side, bytes),
            Protocol::Quic => net.send_stream(conn, side, stream, bytes),
        }
    }

    /// Counters of the QUIC connection of a page since it started.
    fn account_page(&self, page: &mut Page, net: &Net<'_>) {
        if let Some(conn) = page.connections.first().filter(|_| self.over_quic()) {
            let now = net.counts(*conn, self.writer());
            page.got.sent = now - page.before;
        }
    }

    /// Counters of the connection since this object started.
    fn account(&self, (conn, stream): StreamKey, connection: &mut Connection, net: &mut Net<'_>) {
        if self.over_quic() {
            connection.got.measured = net.measured_stream(conn, self.reader(), stream);
            return;
        }
        let end = self.end(connection);
        connection.got.measured = net.measured(conn, self.reader(), end - connection.object..end);
        let now = net.counts(conn, self.writer());
        connection.got.sent = now - connection.before;
        connection.before = now;
    }

    fn report_object(
        &self,
        client: u16,
        server: u16,
        connection: &Connection,
        ending: Ending,
        net: &mut Net<'_>,
    ) {
        if self.config.report == Report::Objects {
            let whole =
                flow(connection.id, self.direction(client, server), connection.requested, connection.object);
            self.report(whole, &connection.got, ending, net);
        }
    }

    fn report_page(&self, client: u16, server: u16, page: &Page, ending: Ending, net: &mut Net<'_>) {
        if self.config.report == Report::Pages {
            let whole = flow(page.id, self.direction(client, server), page.start, page.bytes);
            self.report(whole, &page.got, ending, net);
        }
    }

    fn direction(&self, client: u16, server: u16) -> (u16, u16) {
        if self.config.upload { (client, server) } else { (server, client) }
    }

    fn report(&self, whole: FlowReport, got: &Got, ending: Ending, net: &mut Net<'_>) {
        net.report(FlowReport {
            end: net.now(),
            delivered: got.bytes,
            goodput_bytes: got.measured,
            packets: got.sent.packets,
            retransmitted: got.sent.retransmitted,
            causes: got.sent.causes,
            timeouts: got.sent.timeouts,
            ending,
            ..whole
        });
    }
}

impl Got {
    fn add(&mut self, more: &Got) {
        self.bytes += more.bytes;
        self.measured += more.measured;
        self.sent += more.sent;
    }
}
