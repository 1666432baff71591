//! The sockets of a run: the carrier of the load, in place of a simulated network.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use giveway_qdisc::{Ending, FlowKey, FlowKind, FlowReport, Span, Time};
use giveway_sim::counters::Datagrams;
use giveway_sim::net::{
    Caller, Carrier, ConnId, Datagram, Event, HostId, QuicCarrier, Sent, Settings, Side, StreamId,
};
use giveway_sim::segment::UDP_HEADER;
use giveway_sim::traffic::flow;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::clock::{Clock, GRACE};
use super::open::{QUIC_PORT, listener, open_client, open_sender, prepare, quic_socket, udp_socket};
use super::quic::Quic;
use super::token::Token;
use super::transfer::Transfer;
use crate::error::TestbedError;
use crate::topology::{Namespace, NamespaceHandle, Topology};

/// Size of the buffer for reads and writes, in bytes.
const BUFFER: usize = 256 << 10;
/// Header of a datagram, in bytes: number of the stream, and time of sending in picoseconds.
const HEADER: usize = 12;

/// All sockets of a run: the carrier of the load.
pub(super) struct Sockets {
    pub(super) clock: Clock,
    measured_from: Time,
    /// By node number.
    hosts: Vec<Option<(Namespace, Ipv4Addr)>>,
    namespaces: [NamespaceHandle; 2],
    current_namespace: Option<Namespace>,
    epoll: Epoll,
    timer: TimerFd,
    listeners: [TcpListener; 2],
    udp_sockets: [UdpSocket; 2],
    conns: Vec<Option<Conn>>,
    /// Free entries of `conns`.
    free: Vec<u32>,
    serial: u32,
    /// Connections that the server has not accepted yet, by client address.
    expected: BTreeMap<SocketAddrV4, u32>,
    streams: Vec<Stream>,
    /// Number of flows of each source.
    flows: Vec<u64>,
    /// Place of each source in its group, and the size of the group: the flows of a group are numbered in
    /// turns, as in a simulation.
    places: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    /// Ends with data to write or a connection to close.
    touched: Vec<(u32, Side)>,
    /// Events that the sources have not got yet, with their times.
    pub(super) events: VecDeque<(u16, Event, Time)>,
    pub(super) reports: Vec<FlowReport>,
    /// QUIC connections.
    quic: Quic,
    /// Error while a source was called.
    pub(super) error: Option<TestbedError>,
}

struct Conn {
    serial: u32,
    source: u16,
    ends: (u16, u16),
    settings: Settings,
    client: End,
    server: End,
    /// A one-way transfer closes and reports itself.
    transfer: Option<Transfer>,
    /// True if the receiver of a transfer closes first, so that no FIN is a separate packet.
    receiver_first: bool,
    /// True once the event of its end is queued for the source.
    over: bool,
}

#[derive(Default)]
struct End {
    /// `None` until the connection is accepted.
    socket: Option<TcpStream>,
    /// True once the socket is connected. A socket that is shut down before that never connects.
    connected: bool,
    /// Bytes that the application has written and the socket has not accepted; `u64::MAX` for an endless
    /// flow.
    to_write: u64,
    /// True if the application has closed this end.
    closing: bool,
    /// True once the socket is shut down for writing.
    shut: bool,
    received: u64,
    received_measured: u64,
    peer_closed: bool,
}

struct Stream {
    id: u64,
    source: u16,
    ends: (u16, u16),
    start: Time,
    socket: UdpSocket,
    counters: Datagrams,
}

const SIDES: [Namespace; 2] = [Namespace::Near, Namespace::Far];

impl Sockets {
    pub(super) fn open(
        topology: &Topology,
        measured_from: Time,
        places: Vec<(u64, u64)>,
    ) -> Result<Sockets, TestbedError> {
        let namespaces = [topology.handle(Namespace::Near)?, topology.handle(Namespace::Far)?];
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(TestbedError::system("make an epoll"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(TestbedError::system("make a timer"))?;
        let listen_at = |handle: &NamespaceHandle| {
            handle.enter()?;
            listener().map_err(TestbedError::system("listen for connections"))
        };
        let receive_at = |handle: &NamespaceHandle| {
            handle.enter()?;
            udp_socket().map_err(TestbedError::system("listen for datagrams"))
        };
        let listeners = [listen_at(&namespaces[0])?, listen_at(&namespaces[1])?];
        let udp_sockets = [receive_at(&namespaces[0])?, receive_at(&namespaces[1])?];
        let watch = |fd: &dyn AsFdDyn, token: Token| {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, token.pack());
            epoll.add(fd.fd(), event).map_err(TestbedError::system("watch a socket"))
        };
        watch(&timer, Token::Timer)?;
        for side in 0..2 {
            watch(&listeners[side], Token::Listener(side))?;
            watch(&udp_sockets[side], Token::Udp(side))?;
        }
        Ok(Sockets {
            clock: Clock::start(),
            measured_from,
            hosts: topology.hosts().to_vec(),
            namespaces,
            current_namespace: None,
            epoll,
            timer,
            listeners,
            udp_sockets,
            conns: Vec::new(),
            free: Vec::new(),
            serial: 0,
            expected: BTreeMap::new(),
            streams: Vec::new(),
            flows: vec![0; places.len()],
            places,
            buffer: vec![0; BUFFER],
            touched: Vec::new(),
            events: VecDeque::new(),
            reports: Vec::new(),
            quic: Quic::new(measured_from),
            error: None,
        })
    }

    /// Arms the timer, so that the next [`Sockets::wait`] ends at this time.
    pub(super) fn sleep(&mut self, until: Time) -> Result<(), TestbedError> {
        let until = until.min(self.quic.next_timer());
        // A time of zero would disarm the timer.
        let at = Expiration::OneShot(self.clock.at(until.max(Time::from_ps(1))));
        let set = self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        set.map_err(TestbedError::system("set a timer"))
    }

    pub(super) fn wait(&mut self, epoll_events: &mut [EpollEvent]) -> Result<usize, TestbedError> {
        loop {
            match self.epoll.wait(epoll_events, EpollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                other => return other.map_err(TestbedError::system("wait for sockets")),
            }
        }
    }

    pub(super) fn handle(&mut self, event: &EpollEvent) -> Result<(), TestbedError> {
        match Token::unpack(event.data()) {
            Token::Timer => {
                // The timer only ends the wait.
                let _ = self.timer.unset();
                Ok(())
            }
            Token::Listener(side) => self.accept(side),
            Token::Quic(socket) => {
                let clock = self.clock;
                let received = self.quic.receive(socket, &|| clock.now());
                received.map_err(TestbedError::system("receive a packet of QUIC"))
            }
            Token::Udp(side) => {
                while let Some((stream, bytes, sent, now)) = self.receive_datagram(side)? {
                    let counters = &mut self.streams[stream].counters;
                    counters.on_arrival(bytes, now, now >= self.measured_from);
                    if sent >= self.measured_from {
                        counters.on_receipt(bytes, sent, now);
                    }
                }
                Ok(())
            }
            Token::End { conn, serial, side } => {
                let current = self.conns.get_mut(conn as usize).and_then(Option::as_mut);
                if let Some(current) = current.filter(|conn| conn.serial == serial) {
                    let broken = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
                    if event.events().contains(EpollFlags::EPOLLOUT) && !event.events().intersects(broken) {
                        current.end(side).connected = true;
                    }
                    if !event.events().intersection(readable()).is_empty() {
                        self.read(conn, side);
                    }
                    self.touched.push((conn, side));
                }
                Ok(())
            }
        }
    }

    /// Accepts all pending connections.
    fn accept(&mut self, side: usize) -> Result<(), TestbedError> {
        loop {
            let (socket, from) = match self.listeners[side].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has gone already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(TestbedError::system::<io::Error>("accept a connection")(error)),
            };
            let SocketAddr::V4(from) = from else { continue };
            let Some(number) = self.expected.remove(&from) else { continue };
            let now = self.clock.now();
            let Some(conn) = self.conns[number as usize].as_mut() else { continue };
            let prepared = prepare(&socket, &conn.settings).and_then(|()| socket.set_nonblocking(true));
            prepared.map_err(TestbedError::system("prepare a connection"))?;
            let token = Token::End { conn: number, serial: conn.serial, side: Side::Server };
            watch_end(&self.epoll, &socket, token).map_err(TestbedError::system("watch a connection"))?;
            conn.server = End { socket: Some(socket), connected: true, ..std::mem::take(&mut conn.server) };
            if conn.transfer.is_none() {
                self.events.push_back((conn.source, Event::Connected(ConnId(number)), now));
            }
            // Data that arrived before the socket was registered cause an event, too.
            self.touched.push((number, Side::Server));
        }
    }

    /// Reads all received data of an end.
    fn read(&mut self, number: u32, side: Side) {
        loop {
            let Some(conn) = self.conns[number as usize].as_mut() else { return };
            let end = conn.end(side);
            let Some(socket) = &end.socket else { return };
            // The kernel discards the data; the buffer only limits the amount.
            let got = recv(socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC);
            let now = self.clock.now();
            match got {
                Ok(0) => {
                    end.peer_closed = true;
                    if conn.transfer.is_some() {
                        // The other end of a transfer closes when its peer does.
                        conn.end(side).closing = true;
                        self.touched.push((number, side));
                    }
                    return self.over(number, now);
                }
                Ok(bytes) => {
                    end.received += bytes as u64;
                    if now >= self.measured_from {
                        end.received_measured += bytes as u64;
                    }
                    let total = end.received;
                    match &mut conn.transfer {
                        Some(_) => self.progress(number, now),
                        None => {
                            let event = Event::Received { conn: ConnId(number), side, stream: 0, total };
                            self.events.push_back((conn.source, event, now));
                        }
                    }
                }
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                Err(_) => return self.abort(number, now),
            }
        }
    }

    /// Records progress of a transfer.
    fn progress(&mut self, number: u32, now: Time) {
        let conn = self.conns[number as usize].as_mut().expect("it just received something");
        let transfer = conn.transfer.as_mut().expect("it is a transfer");
        transfer.pauses.progress(now);
        if conn.server.received == transfer.bytes && !transfer.reported {
            transfer.reported = true;
            if conn.receiver_first {
                conn.server.closing = true;
                self.touched.push((number, Side::Server));
            }
            self.reports.extend(conn.report(now, Ending::Completed));
        }
    }

    /// Records that a socket of a connection failed: its TCP gave up or was reset. The source gets one event.
    fn abort(&mut self, number: u32, now: Time) {
        let Some(conn) = self.conns[number as usize].as_mut() else { return };
        if std::mem::replace(&mut conn.over, true) {
            return;
        }
        let unreported = conn.transfer.as_ref().is_some_and(|transfer| !transfer.reported);
        if unreported {
            self.reports.extend(conn.report(now, Ending::Aborted));
        }
        self.events.push_back((conn.source, Event::Aborted(ConnId(number)), now));
    }

    /// Queues an event for the source once both ends are closed.
    fn over(&mut self, number: u32, now: Time) {
        let Some(conn) = self.conns[number as usize].as_mut() else { return };
        let closed = |end: &End| end.shut && end.peer_closed;
        if !conn.over && closed(&conn.client) && closed(&conn.server) {
            conn.over = true;
            self.events.push_back((conn.source, Event::Closed(ConnId(number)), now));
        }
    }

    /// Frees the entry of a connection after the source has processed the event of its end.
    pub(super) fn release(&mut self, conn: ConnId) {
        if Quic::has(conn) {
            return; // its packets may still arrive
        }
        if let Some(conn) = self.conns[conn.0 as usize].take()
            && let Some(socket) = &conn.client.socket
            && let Ok(SocketAddr::V4(from)) = socket.local_addr()
        {
            self.expected.remove(&from);
        }
        self.free.push(conn.0);
    }

    /// Writes pending data and closes ends.
    pub(super) fn flush(&mut self) {
        while let Some((number, side)) = self.touched.pop() {
            self.write(number, side);
        }
        let clock = self.clock;
        self.quic.expire(clock.now());
        self.quic.flush(&|| clock.now());
        self.events.extend(self.quic.events.drain(..));
        self.reports.append(&mut self.quic.reports);
    }

    fn write(&mut self, number: u32, side: Side) {
        let Some(conn) = self.conns[number as usize].as_mut() else { return };
        let end = conn.end(side);
        let Some(socket) = &end.socket else { return };
        if end.shut || !end.connected {
            return;
        }
        while end.to_write > 0 {
            let chunk = end.to_write.min(BUFFER as u64) as usize;
            // The last data wait for the FIN.
            let last = end.closing && chunk as u64 == end.to_write;
            let more = if last { MsgFlags::from_bits_retain(nix::libc::MSG_MORE) } else { MsgFlags::empty() };
            match send(socket.as_raw_fd(), &self.buffer[..chunk], MsgFlags::MSG_NOSIGNAL | more) {
                Ok(_) if end.to_write == u64::MAX => {}
                Ok(taken) => end.to_write -= taken as u64,
                // The socket buffer is full: an event follows when it has space.
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                Err(_) => {
                    let now = self.clock.now();
                    return self.abort(number, now);
                }
            }
        }
        if end.closing {
            // An error means that the peer has reset the connection, which closes it as well.
            let _ = socket.shutdown(Shutdown::Write);
            end.shut = true;
            let now = self.clock.now();
            self.over(number, now);
        }
    }

    /// Receives a datagram: its stream, its data bytes, the time of sending, and the time now.
    fn receive_datagram(&mut self, side: usize) -> Result<Option<(usize, u32, Time, Time)>, TestbedError> {
        loop {
            let bytes = match self.udp_sockets[side].recv(&mut self.buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(TestbedError::system::<io::Error>("receive a datagram")(error)),
            };
            let now = self.clock.now();
            let header = &self.buffer[..HEADER];
            let number = u32::from_be_bytes(header[..4].try_into().expect("four bytes")) as usize;
            let sent = Time::from_ps(u64::from_be_bytes(header[4..].try_into().expect("eight bytes")));
            if bytes >= HEADER && number < self.streams.len() {
                return Ok(Some((number, bytes as u32, sent, now)));
            }
        }
    }

    /// Receives datagrams for [`GRACE`] after the end: they were in flight.
    pub(super) fn late_datagrams(&mut self, until: Time) -> Result<(), TestbedError> {
        if self.streams.is_empty() {
            return Ok(());
        }
        let end = until + GRACE;
        let mut epoll_events = [EpollEvent::empty(); 64];
        while self.clock.now() < end {
            self.sleep(end)?;
            let count = self.wait(&mut epoll_events)?;
            for event in &epoll_events[..count] {
                match Token::unpack(event.data()) {
                    Token::Timer => drop(self.timer.unset()),
                    Token::Udp(side) => {
                        while let Some((stream, _, sent, _)) = self.receive_datagram(side)? {
                            if sent >= self.measured_from {
                                self.streams[stream].counters.under_way();
                            }
                        }
                    }
                    Token::Listener(side) => drop(self.listeners[side].accept()),
                    Token::End { .. } | Token::Quic(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Reports all open flows.
    pub(super) fn finish(&mut self, until: Time) {
        for conn in self.conns.iter_mut().flatten() {
            if conn.transfer.as_ref().is_some_and(|transfer| !transfer.reported) {
                self.reports.extend(conn.report(until, Ending::Unfinished));
            }
        }
        self.quic.finish(until);
        self.reports.append(&mut self.quic.reports);
        for stream in &self.streams {
            let known = flow(stream.id, stream.ends, stream.start, 0);
            let known = FlowReport { source: stream.source, kind: FlowKind::Datagrams, ..known };
            self.reports
                .push(stream.counters.report(FlowReport { ending: Ending::Completed, ..known }, until));
        }
    }

    /// Enters the namespace of a host, and returns its address.
    fn enter_namespace_of(&mut self, node: u16) -> Result<Ipv4Addr, TestbedError> {
        let (namespace, address) =
            self.hosts[usize::from(node)].expect("every node of the traffic is a host");
        if self.current_namespace != Some(namespace) {
            let at = SIDES.iter().position(|side| *side == namespace).expect("hosts are on a side");
            self.namespaces[at].enter()?;
            self.current_namespace = Some(namespace);
        }
        Ok(address)
    }

    fn address(&self, node: u16) -> Ipv4Addr {
        self.hosts[usize::from(node)].expect("every node of the traffic is a host").1
    }

    fn open_connection(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        transfer: Option<Transfer>,
    ) -> Result<u32, TestbedError> {
        let from = self.enter_namespace_of(ends.0)?;
        let to = self.address(ends.1);
        let number = self.free.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() as u32 - 1
        });
        self.serial = (self.serial + 1) & 0x3fff_ffff;
        let mut conn = Conn {
            serial: self.serial,
            source: by.source,
            ends,
            settings: by.settings.clone(),
            client: End::default(),
            server: End::default(),
            transfer,
            receiver_first: false,
            over: false,
        };
        if let Some(transfer) = &conn.transfer {
            let ends = transfer.bytes < u64::MAX;
            conn.receiver_first = ends && transfer.bytes.is_multiple_of(by.settings.tcp.mss.0);
            conn.client.to_write = transfer.bytes;
            conn.client.closing = ends && !conn.receiver_first;
        }
        let opened = open_client(from, to, by.settings);
        let (socket, local) = opened.map_err(TestbedError::system("open a connection"))?;
        let token = Token::End { conn: number, serial: conn.serial, side: Side::Client };
        watch_end(&self.epoll, &socket, token).map_err(TestbedError::system("watch a connection"))?;
        conn.client.socket = Some(socket);
        self.expected.insert(local, number);
        self.conns[number as usize] = Some(conn);
        Ok(number)
    }

    fn open_stream(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        start: Time,
    ) -> Result<StreamId, TestbedError> {
        let from = self.enter_namespace_of(ends.0)?;
        let to = self.address(ends.1);
        let opened = open_sender(from, to, by.settings);
        let socket = opened.map_err(TestbedError::system("open a stream of datagrams"))?;
        let id = self.flow_id(by);
        self.streams.push(Stream {
            id,
            source: by.source,
            ends,
            start,
            socket,
            counters: Datagrams::default(),
        });
        Ok(StreamId(self.streams.len() as u32 - 1))
    }

    fn open_quic(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        transfer: Option<Transfer>,
    ) -> Result<ConnId, TestbedError> {
        let server = self.address(ends.1);
        if !self.quic.serves(server) {
            self.quic_socket(ends.1, Side::Server)?;
        }
        let socket = self.quic_socket(ends.0, Side::Client)?;
        let to = SocketAddrV4::new(server, QUIC_PORT);
        let now = self.clock.now();
        let opened = self.quic.connect((by.source, ends), (socket, to), &by.settings.quic, transfer, now);
        opened.map_err(TestbedError::system("open a connection over QUIC"))
    }

    /// Opens a socket of a host for QUIC, and returns its number.
    fn quic_socket(&mut self, node: u16, side: Side) -> Result<usize, TestbedError> {
        let address = self.enter_namespace_of(node)?;
        let socket = quic_socket(address, side).map_err(TestbedError::system("open a socket for QUIC"))?;
        let fd = socket.try_clone().map_err(TestbedError::system("open a socket for QUIC"))?;
        let number = self.quic.add_socket(socket, address, side);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, Token::Quic(number).pack());
        self.epoll.add(&fd, event).map_err(TestbedError::system("watch a socket"))?;
        Ok(number)
    }

    /// Records an error and returns an unused number: the run ends as soon as the source returns.
    fn failed(&mut self, error: TestbedError) -> u32 {
        self.error = Some(error);
        self.conns.push(None);
        self.conns.len() as u32 - 1
    }
}

impl QuicCarrier for Sockets {
    fn quic_connect(&mut self, by: Caller<'_>, ends: (u16, u16), _host: HostId) -> ConnId {
        self.open_quic(by, ends, None).unwrap_or_else(|error| ConnId(self.failed(error)))
    }

    fn quic_transfer(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        bytes: Option<u64>,
        requested: Time,
    ) -> ConnId {
        let transfer = Transfer::new(self.flow_id(by), requested, bytes);
        self.open_quic(by, ends, Some(transfer)).unwrap_or_else(|error| ConnId(self.failed(error)))
    }

    fn send_stream(&mut self, conn: ConnId, side: Side, stream: u32, bytes: u64, _now: Time) {
        self.quic.write((conn, side), stream, bytes, true);
    }

    fn measured_stream(&mut self, conn: ConnId, side: Side, stream: u32) -> u64 {
        self.quic.measured(conn, side, stream)
    }
}

impl Carrier for Sockets {
    fn host(&mut self, _node: u16, _distance: Span) -> HostId {
        // The scenario reader rejects sources that need one.
        HostId::default()
    }

    fn connect(&mut self, by: Caller<'_>, ends: (u16, u16), _host: HostId) -> ConnId {
        ConnId(self.open_connection(by, ends, None).unwrap_or_else(|error| self.failed(error)))
    }

    fn transfer(&mut self, by: Caller<'_>, ends: (u16, u16), bytes: Option<u64>, requested: Time) -> ConnId {
        let id = self.flow_id(by);
        let transfer = Transfer::new(id, requested, bytes);
        let opened = self.open_connection(by, ends, Some(transfer));
        ConnId(opened.unwrap_or_else(|error| self.failed(error)))
    }

    fn quic(&mut self) -> Option<&mut dyn QuicCarrier> {
        Some(self)
    }

    fn send(&mut self, conn: ConnId, side: Side, bytes: u64, _now: Time) {
        if Quic::has(conn) {
            return self.quic.write((conn, side), 0, bytes, false);
        }
        if let Some(open) = self.conns[conn.0 as usize].as_mut() {
            open.end(side).to_write += bytes;
            self.touched.push((conn.0, side));
        }
    }

    fn close(&mut self, conn: ConnId, side: Side, _now: Time) {
        if Quic::has(conn) {
            return self.quic.close(conn, side);
        }
        if let Some(open) = self.conns[conn.0 as usize].as_mut() {
            open.end(side).closing = true;
            self.touched.push((conn.0, side));
        }
    }

    fn counts(&self, _conn: ConnId, _side: Side) -> Sent {
        Sent::default()
    }

    fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64 {
        if Quic::has(conn) {
            return self.quic.measured(conn, side, 0);
        }
        let Some(conn) = self.conns[conn.0 as usize].as_ref() else { return 0 };
        let end = match side {
            Side::Client => &conn.client,
            Side::Server => &conn.server,
        };
        let before = end.received - end.received_measured;
        end.received.min(part.end).saturating_sub(part.start.max(before))
    }

    fn stream(&mut self, by: Caller<'_>, ends: (u16, u16), _flow: Option<FlowKey>, start: Time) -> StreamId {
        self.open_stream(by, ends, start).unwrap_or_else(|error| StreamId(self.failed(error)))
    }

    fn datagram(&mut self, stream: StreamId, bytes: u32, _now: Time) {
        let Some(stream_of) = self.streams.get_mut(stream.0 as usize) else { return };
        let length = (bytes.saturating_sub(UDP_HEADER) as usize).max(HEADER);
        let now = self.clock.now();
        let data = &mut self.buffer[..length];
        data[..4].copy_from_slice(&stream.0.to_be_bytes());
        data[4..HEADER].copy_from_slice(&now.since(Time::ZERO).as_ps().to_be_bytes());
        if now >= self.measured_from {
            stream_of.counters.sent(length as u32);
        }
        // A datagram that the sending host rejects is lost like any other.
        let _ = stream_of.socket.send(data);
    }

    /// Sockets here have no departure times: the reader of scenarios refuses the sources that write them.
    fn datagram_at(&mut self, stream: StreamId, bytes: u32, _departure: Time, now: Time) {
        self.datagram(stream, bytes, now);
    }

    fn datagram_as(&mut self, stream: StreamId, datagram: Datagram, now: Time) {
        self.datagram(stream, datagram.bytes, now);
    }

    fn flow_id(&mut self, by: Caller<'_>) -> u64 {
        let next = &mut self.flows[usize::from(by.source)];
        let (number, (place, of)) = (*next, self.places[usize::from(by.source)]);
        *next += 1;
        number * of + place
    }

    fn report(&mut self, report: FlowReport) {
        self.reports.push(report);
    }
}

impl Conn {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Report of a transfer.
    fn report(&self, now: Time, ending: Ending) -> Option<FlowReport> {
        let received = (self.server.received, self.server.received_measured);
        Some(self.transfer.as_ref()?.report((self.source, self.ends), received, now, ending))
    }
}

/// Events after which a read returns something: data, an end, an error.
fn readable() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR
}

/// Registers a socket, edge-triggered: after an event the caller reads and writes until the socket would
/// block.
fn watch_end(epoll: &Epoll, socket: &TcpStream, token: Token) -> nix::Result<()> {
    let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    epoll.add(socket, EpollEvent::new(flags, token.pack()))
}

/// A descriptor that epoll can watch.
trait AsFdDyn {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_>;
}

impl<T: AsFd> AsFdDyn for T {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.as_fd()
    }
}
