//! QUIC connections over UDP sockets. The library quinn implements the protocol; this file moves its packets.
//!
//! # Principles
//! - The library has no sockets and no clock: it gets packets and times, and returns packets, events and
//!   the time of its next timer. So it runs in the thread of the load, like everything else.
//! - Each client has its own socket for each connection, as browsers do. A server opens one socket for each
//!   of its addresses.
//! - A stream of the source has the same number on the connection: clients open streams in both
//!   directions, and a server answers on them.
//! - Packets are not encrypted: [`plain`](super::plain).
//!
//! # Deviations
//! - Each packet is a system call: no segmentation offload.
//! - The maximal length of a packet is fixed; the library does not search for a larger one.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use giveway_qdisc::{Ending, FlowReport, Span, Time};
use giveway_sim::QuicConfig;
use giveway_sim::net::{ConnId, Event, Side};
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig,
    StreamEvent, StreamId, TransportConfig, ValidationTokenConfig, VarInt, WriteError,
};

use super::plain::{NoKey, Plain};
use super::transfer::Transfer;

/// Numbers of connections from here on belong to QUIC.
const FIRST: u32 = 1 << 31;
/// Largest UDP payload that is received.
const LARGEST: usize = 2048;
/// Bytes that are written to a stream at once.
const CHUNK: usize = 64 << 10;
/// Streams that a client may have open: the usual number. The library sets up all of them with a
/// connection.
const STREAMS: u32 = 100;

/// All QUIC connections of a run.
pub(super) struct Quic {
    /// The zero of the clock, for the library. Only differences matter.
    zero: Instant,
    /// The ends of all clients, and of all servers.
    endpoints: [Endpoint; 2],
    sockets: Vec<Socket>,
    /// Sockets of servers, by their addresses.
    servers: BTreeMap<Ipv4Addr, usize>,
    conns: Vec<Conn>,
    /// Connections by the handles of both endpoints.
    by_handle: [BTreeMap<usize, usize>; 2],
    /// Connections that the server has not seen yet, by the address of the client.
    expected: BTreeMap<SocketAddr, usize>,
    /// Ends with work to do.
    touched: Vec<(usize, Side)>,
    measured_from: Time,
    chunk: Vec<u8>,
    /// Events that were not taken yet, with their sources and times.
    pub events: Vec<(u16, Event, Time)>,
    /// Reports that were not taken yet.
    pub reports: Vec<FlowReport>,
}

struct Socket {
    udp: UdpSocket,
    address: Ipv4Addr,
    side: Side,
}

struct Conn {
    source: u16,
    ends: (u16, u16),
    client: End,
    /// `None` until its first packet has arrived.
    server: Option<End>,
    transfer: Option<Transfer>,
    /// True once the event of its end was returned.
    over: bool,
    /// Certificates and parameters.
    config: QuicConfig,
}

struct End {
    handle: ConnectionHandle,
    connection: Connection,
    /// Index of its socket.
    socket: usize,
    /// The streams, by number.
    streams: BTreeMap<u32, Stream>,
    /// Number of streams that this end has opened.
    opened: u32,
    /// True if the application has closed this end.
    closing: bool,
    closed: bool,
}

#[derive(Default)]
struct Stream {
    /// `u64::MAX` for an endless flow.
    to_write: u64,
    /// True if the stream ends after these bytes.
    ends: bool,
    /// True once its end was written.
    ended: bool,
    received: u64,
    received_measured: u64,
}

impl Quic {
    /// No connections yet. Data count from `measured_from` on.
    #[expect(clippy::disallowed_methods, reason = "any instant can be the zero of the clock")]
    pub fn new(measured_from: Time) -> Quic {
        let endpoint = || {
            let mut config = EndpointConfig::new(Arc::new(NoKey));
            config.rng_seed(Some([7; 32]));
            config
        };
        let plain = Arc::new(Plain { certificates: QuicConfig::default().certificates.0 as usize });
        let server = server(plain, &QuicConfig::default());
        Quic {
            zero: Instant::now(),
            endpoints: [
                Endpoint::new(Arc::new(endpoint()), None, false, None),
                Endpoint::new(Arc::new(endpoint()), Some(Arc::new(server)), false, None),
            ],
            sockets: Vec::new(),
            servers: BTreeMap::new(),
            conns: Vec::new(),
            by_handle: [BTreeMap::new(), BTreeMap::new()],
            expected: BTreeMap::new(),
            touched: Vec::new(),
            measured_from,
            chunk: vec![0; CHUNK],
            events: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// True for the number of a QUIC connection.
    pub fn has(conn: ConnId) -> bool {
        conn.0 >= FIRST
    }

    /// True if a server with this address has a socket.
    pub fn serves(&self, address: Ipv4Addr) -> bool {
        self.servers.contains_key(&address)
    }

    /// Adds a socket, and returns its number.
    pub fn add_socket(&mut self, udp: UdpSocket, address: Ipv4Addr, side: Side) -> usize {
        let number = self.sockets.len();
        if side == Side::Server {
            self.servers.insert(address, number);
        }
        self.sockets.push(Socket { udp, address, side });
        number
    }

    /// Opens a connection from its own socket to a server. With a transfer, its bytes are sent at once.
    pub fn connect(
        &mut self,
        (source, ends): (u16, (u16, u16)),
        (socket, server): (usize, SocketAddrV4),
        config: &QuicConfig,
        transfer: Option<Transfer>,
        now: Time,
    ) -> io::Result<ConnId> {
        let plain = Arc::new(Plain { certificates: config.certificates.0 as usize });
        let mut client = ClientConfig::new(plain);
        client.transport_config(Arc::new(transport(config)));
        let at = self.instant(now);
        let begun = self.endpoints[0].connect(at, client, server.into(), "server");
        let (handle, connection) = begun.map_err(io::Error::other)?;
        let index = self.conns.len();
        self.by_handle[0].insert(handle.0, index);
        self.expected.insert(self.sockets[socket].udp.local_addr()?, index);
        let mut end = End::new(handle, connection, socket);
        if let Some(transfer) = &transfer {
            let ends = transfer.bytes < u64::MAX;
            end.streams.insert(0, Stream { to_write: transfer.bytes, ends, ..Stream::default() });
        }
        let config = config.clone();
        self.conns.push(Conn { source, ends, client: end, server: None, transfer, over: false, config });
        self.touched.push((index, Side::Client));
        Ok(ConnId(FIRST + index as u32))
    }

    /// Writes to a stream, and ends it if `last` is true.
    pub fn write(&mut self, (conn, side): (ConnId, Side), stream: u32, bytes: u64, last: bool) {
        let index = index(conn);
        let Some(end) = self.conns[index].end(side) else { return };
        let stream = end.streams.entry(stream).or_default();
        stream.to_write += bytes;
        stream.ends |= last;
        self.touched.push((index, side));
    }

    /// Closes one end. The connection ends when its client does.
    pub fn close(&mut self, conn: ConnId, side: Side) {
        let index = index(conn);
        if let Some(end) = self.conns[index].end(side) {
            end.closing = true;
            self.touched.push((index, side));
        }
    }

    /// Number of bytes of a stream that one end has received within the measurement interval.
    pub fn measured(&self, conn: ConnId, side: Side, stream: u32) -> u64 {
        let conn = &self.conns[index(conn)];
        let end = if side == Side::Client { Some(&conn.client) } else { conn.server.as_ref() };
        end.and_then(|end| end.streams.get(&stream)).map_or(0, |stream| stream.received_measured)
    }

    /// The time of the next timer.
    pub fn next_timer(&mut self) -> Time {
        let zero = self.zero;
        let ends = self.conns.iter_mut().flat_map(|conn| [Some(&mut conn.client), conn.server.as_mut()]);
        let timers = ends.flatten().filter_map(|end| end.connection.poll_timeout());
        let time = |at: Instant| Time::ZERO + Span::ns(at.saturating_duration_since(zero).as_nanos() as u64);
        timers.map(time).min().unwrap_or(Time::NEVER)
    }

    /// Lets the timers expire that are due.
    pub fn expire(&mut self, now: Time) {
        let at = self.instant(now);
        for (index, conn) in self.conns.iter_mut().enumerate() {
            for side in [Side::Client, Side::Server] {
                let Some(end) = conn.end(side) else { continue };
                if end.connection.poll_timeout().is_some_and(|timer| timer <= at) {
                    end.connection.handle_timeout(at);
                    self.touched.push((index, side));
                }
            }
        }
    }

    /// Receives all packets of a socket.
    pub fn receive(&mut self, socket: usize, clock: &dyn Fn() -> Time) -> io::Result<()> {
        loop {
            let mut packet = BytesMut::zeroed(LARGEST);
            let Socket { udp, address, side } = &self.sockets[socket];
            let (address, side) = (*address, *side);
            let (length, from) = match udp.recv_from(&mut packet) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // An answer that the peer has no socket any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            packet.truncate(length);
            let at = self.instant(clock());
            let endpoint = &mut self.endpoints[side as usize];
            let mut answer = Vec::new();
            let local = Some(IpAddr::V4(address));
            match endpoint.handle(at, from, local, None, packet, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    let Some(index) = self.by_handle[side as usize].get(&handle.0).copied() else { continue };
                    if let Some(end) = self.conns[index].end(side) {
                        end.connection.handle_event(event);
                        self.touched.push((index, side));
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let Some(index) = self.expected.remove(&from) else {
                        endpoint.ignore(incoming);
                        continue;
                    };
                    let config = &self.conns[index].config;
                    let plain = Arc::new(Plain { certificates: config.certificates.0 as usize });
                    let config = Some(Arc::new(server(plain, config)));
                    if let Ok((handle, connection)) = endpoint.accept(incoming, at, &mut answer, config) {
                        self.by_handle[1].insert(handle.0, index);
                        self.conns[index].server = Some(End::new(handle, connection, socket));
                        self.touched.push((index, Side::Server));
                    }
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
            self.flush(clock);
        }
    }

    /// Sends what the ends must send, and collects their events.
    pub fn flush(&mut self, clock: &dyn Fn() -> Time) {
        while let Some((index, side)) = self.touched.pop() {
            self.advance(index, side, clock());
        }
    }

    /// Reports the transfers that are not complete at the end of a run.
    pub fn finish(&mut self, now: Time) {
        for conn in &self.conns {
            if let Some(transfer) = conn.transfer.as_ref().filter(|transfer| !transfer.reported) {
                self.reports.push(transfer.report(
                    (conn.source, conn.ends),
                    conn.received(),
                    now,
                    Ending::Unfinished,
                ));
            }
        }
    }

    /// Advances one end until its work is done.
    fn advance(&mut self, index: usize, side: Side, now: Time) {
        let at = self.instant(now);
        let id = ConnId(FIRST + index as u32);
        let conn = &mut self.conns[index];
        let (source, has_transfer) = (conn.source, conn.transfer.is_some());
        let measured = now >= self.measured_from;
        let Some(end) = conn.end(side) else { return };
        let mut lost = false;
        let mut progress = Vec::new();
        loop {
            while let Some(event) = end.connection.poll() {
                match event {
                    quinn_proto::Event::Connected if side == Side::Server && !has_transfer => {
                        self.events.push((source, Event::Connected(id), now));
                    }
                    quinn_proto::Event::ConnectionLost { .. } => lost = true,
                    quinn_proto::Event::Stream(StreamEvent::Readable { id }) => progress.push(id),
                    _ => {}
                }
            }
            while let Some(stream) = end.connection.streams().accept(Dir::Bi) {
                progress.push(stream);
            }
            for stream in progress.drain(..) {
                let number = stream.index() as u32;
                if let Some(bytes) = end.read(stream).filter(|bytes| *bytes > 0) {
                    let counted = end.streams.entry(number).or_default();
                    counted.received += bytes;
                    counted.received_measured += if measured { bytes } else { 0 };
                    if !has_transfer {
                        let total = counted.received;
                        let event = Event::Received { conn: id, side, stream: number, total };
                        self.events.push((source, event, now));
                    }
                }
            }
            end.open_streams();
            end.write_streams(&self.chunk);
            if end.closing && !end.closed && side == Side::Client {
                end.closed = true;
                end.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
            }
            let mut packet = Vec::with_capacity(LARGEST);
            while let Some(transmit) = end.connection.poll_transmit(at, 1, &mut packet) {
                // A packet that the host refuses is lost like any other.
                let _ = self.sockets[end.socket].udp.send_to(&packet[..transmit.size], transmit.destination);
                packet.clear();
            }
            let mut again = false;
            while let Some(event) = end.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoints[side as usize].handle_event(end.handle, event) {
                    end.connection.handle_event(event);
                    again = true;
                }
            }
            if !again {
                break;
            }
        }
        self.ended(index, side, lost, now);
    }

    /// Reports a transfer that is complete, and the end of a connection.
    fn ended(&mut self, index: usize, side: Side, lost: bool, now: Time) {
        let id = ConnId(FIRST + index as u32);
        let conn = &mut self.conns[index];
        let received = conn.received();
        if let Some(transfer) = &mut conn.transfer {
            if side == Side::Server {
                transfer.pauses.progress(now);
            }
            if received.0 == transfer.bytes && !transfer.reported {
                transfer.reported = true;
                let report = transfer.report((conn.source, conn.ends), received, now, Ending::Completed);
                self.reports.push(report);
                conn.client.closing = true;
                self.touched.push((index, Side::Client));
            }
        }
        let is_over = lost || conn.client.closed;
        if conn.over || !is_over {
            return;
        }
        conn.over = true;
        let event = if conn.client.closed { Event::Closed(id) } else { Event::Aborted(id) };
        if let (Event::Aborted(_), Some(transfer)) = (&event, &mut conn.transfer)
            && !std::mem::replace(&mut transfer.reported, true)
        {
            let report = transfer.report((conn.source, conn.ends), received, now, Ending::Aborted);
            self.reports.push(report);
        }
        self.events.push((conn.source, event, now));
    }

    /// A time on the clock of the library.
    fn instant(&self, time: Time) -> Instant {
        self.zero + Duration::from_nanos(time.since(Time::ZERO).as_ps() / 1000)
    }
}

impl Conn {
    fn end(&mut self, side: Side) -> Option<&mut End> {
        match side {
            Side::Client => Some(&mut self.client),
            Side::Server => self.server.as_mut(),
        }
    }

    /// Bytes of a transfer that the server has received, and those within the measurement interval.
    fn received(&self) -> (u64, u64) {
        let stream = self.server.as_ref().and_then(|end| end.streams.get(&0));
        stream.map_or((0, 0), |stream| (stream.received, stream.received_measured))
    }
}

impl End {
    fn new(handle: ConnectionHandle, connection: Connection, socket: usize) -> End {
        let streams = BTreeMap::new();
        End { handle, connection, socket, streams, opened: 0, closing: false, closed: false }
    }

    /// Reads all data of a stream that are in order. Returns their number; `None` if it cannot be read.
    fn read(&mut self, stream: StreamId) -> Option<u64> {
        let mut receiving = self.connection.recv_stream(stream);
        let mut chunks = receiving.read(true).ok()?;
        let mut bytes = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        // Credit for more data leaves with the next packets.
        let _ = chunks.finalize();
        Some(bytes)
    }

    /// Opens the streams of a client that are not open yet. Before the handshake there is no credit for them.
    fn open_streams(&mut self) {
        if self.connection.side() == quinn_proto::Side::Server {
            return;
        }
        let wanted = self.streams.keys().next_back().map_or(0, |last| last + 1);
        while self.opened < wanted && self.connection.streams().open(Dir::Bi).is_some() {
            self.opened += 1;
        }
    }

    fn write_streams(&mut self, chunk: &[u8]) {
        let is_client = self.connection.side() == quinn_proto::Side::Client;
        let open = if is_client { self.opened } else { u32::MAX };
        for (number, stream) in self.streams.range_mut(..open).filter(|(_, stream)| !stream.ended) {
            let id = StreamId::new(quinn_proto::Side::Client, Dir::Bi, u64::from(*number));
            let mut sending = self.connection.send_stream(id);
            while stream.to_write > 0 {
                let length = stream.to_write.min(chunk.len() as u64) as usize;
                match sending.write(&chunk[..length]) {
                    Ok(_) if stream.to_write == u64::MAX => {}
                    Ok(taken) => stream.to_write -= taken as u64,
                    Err(WriteError::Blocked) => break,
                    Err(_) => {
                        stream.ended = true;
                        break;
                    }
                }
            }
            if stream.to_write == 0 && stream.ends && !stream.ended {
                stream.ended = true;
                // An error means that the peer wants no more data.
                let _ = sending.finish();
            }
        }
    }
}

/// Parameters of a server.
fn server(plain: Arc<Plain>, config: &QuicConfig) -> ServerConfig {
    let mut server = ServerConfig::new(plain, Arc::new(NoKey));
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    server.transport_config(Arc::new(transport(config))).validation_token_config(tokens);
    server
}

/// The parameters of the library for the parameters of a scenario. All others must have their usual values.
fn transport(config: &QuicConfig) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
    let length = config.datagram.0 as u16;
    let mut cubic = CubicConfig::default();
    cubic.initial_window(config.initial_window.0 * config.datagram.0);
    transport
        .initial_mtu(length)
        .mtu_discovery_config(None)
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .receive_window(window(config.max_data.0))
        .stream_receive_window(window(config.max_stream_data.0))
        .send_window(config.max_data.0)
        .initial_rtt(Duration::from_nanos(config.initial_rtt.as_ps() / 1000))
        .enable_segmentation_offload(false)
        .congestion_controller_factory(Arc::new(cubic));
    transport
}

fn index(conn: ConnId) -> usize {
    (conn.0 - FIRST) as usize
}

#[cfg(test)]
mod tests {
    use giveway_sim::net::Side::{Client as AtClient, Server as AtServer};

    use super::*;

    /// Both ends on the loopback interface. The clock advances by a millisecond per step.
    struct Loop {
        quic: Quic,
        now: Time,
    }

    impl Loop {
        fn new() -> Loop {
            Loop { quic: Quic::new(Time::ZERO), now: Time::ZERO }
        }

        fn socket(&mut self, side: Side) -> (usize, SocketAddrV4) {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback interface");
            udp.set_nonblocking(true).expect("Linux can");
            let SocketAddr::V4(address) = udp.local_addr().expect("it is bound") else { panic!("IPv4") };
            (self.quic.add_socket(udp, Ipv4Addr::LOCALHOST, side), address)
        }

        fn connect(&mut self, transfer: Option<Transfer>) -> ConnId {
            let (_, server) = self.socket(AtServer);
            let (client, _) = self.socket(AtClient);
            let config = QuicConfig::default();
            let begun = self.quic.connect((3, (0, 1)), (client, server), &config, transfer, self.now);
            begun.expect("a client can connect")
        }

        /// Runs until the events and reports satisfy `done`.
        fn run(&mut self, done: &dyn Fn(&Quic) -> bool) {
            for _ in 0..20_000 {
                let now = self.now;
                self.quic.expire(now);
                self.quic.flush(&|| now);
                for socket in 0..self.quic.sockets.len() {
                    self.quic.receive(socket, &|| now).expect("the loopback interface receives");
                }
                if done(&self.quic) {
                    return;
                }
                self.now += Span::ms(1);
            }
            panic!("it takes longer than 20 s: {:?}", self.quic.events);
        }
    }

    #[test]
    fn a_transfer_reports_itself_and_closes() {
        let mut both = Loop::new();
        let conn = both.connect(Some(Transfer::new(7, Time::ZERO, Some(100_000))));
        both.run(&|quic| !quic.reports.is_empty() && !quic.events.is_empty());
        let [report] = &both.quic.reports[..] else { panic!("one report: {:?}", both.quic.reports) };
        assert_eq!((report.bytes, report.delivered, report.ending), (100_000, 100_000, Ending::Completed));
        assert_eq!(
            both.quic.events.iter().map(|(source, event, _)| (*source, *event)).collect::<Vec<_>>(),
            [(3, Event::Closed(conn))]
        );
    }

    /// Two streams at once: each is answered as soon as its request is complete.
    #[test]
    fn streams_have_the_numbers_of_the_source() {
        let mut both = Loop::new();
        let conn = both.connect(None);
        both.quic.write((conn, AtClient), 0, 300, true);
        both.quic.write((conn, AtClient), 1, 400, true);
        let has = |event: Event| move |quic: &Quic| quic.events.iter().any(|(_, other, _)| *other == event);
        for (stream, total) in [(0, 300), (1, 400)] {
            both.run(&has(Event::Received { conn, side: AtServer, stream, total }));
            both.quic.write((conn, AtServer), stream, 5000 * u64::from(stream + 1), true);
        }
        both.run(&has(Event::Received { conn, side: AtClient, stream: 1, total: 10_000 }));
        assert_eq!(both.quic.measured(conn, AtClient, 0), 5000);
        assert!(has(Event::Connected(conn))(&both.quic));
    }

    /// The first message of a client is padded, and the certificates need three packets.
    #[test]
    fn the_handshake_takes_one_round_trip() {
        let mut both = Loop::new();
        let conn = both.connect(None);
        both.quic.write((conn, AtClient), 0, 300, true);
        both.run(&|quic| !quic.events.is_empty());
        let conn = &both.quic.conns[0];
        let (client, server) =
            (conn.client.connection.stats(), conn.server.as_ref().unwrap().connection.stats());
        assert!(client.udp_tx.bytes >= 1200, "{:?}", client.udp_tx);
        assert!((3000..6000).contains(&server.udp_tx.bytes), "{:?}", server.udp_tx);
    }
}
