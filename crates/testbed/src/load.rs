//! The load generator: sources of traffic of the simulator, over sockets.
//!
//! # Principles
//! - The sources are the simulator's, built from the same streams of random numbers; they see a [`Net`] and do not know that
//!   there are sockets behind it. So a run here and a simulation with the same seed are asked for the same.
//! - One thread does everything: a socket stays in the namespace in which it was made, so the thread goes through one door
//!   or the other before it makes one, and waits for all of them together. Both ends of a connection see one clock, and a
//!   source needs no lock.
//! - A source that asked to be woken at a time is told that time, however late it is woken. What it schedules next, and what
//!   counts as the start of a transfer, is then what it would be in a simulation; being late is part of how long the transfer
//!   took. How late it was is measured ([`Lateness`]), since a machine that is too busy measures itself. The thread asks for a real-time
//!   scheduling class.
//! - A transfer is complete when the receiving application has read the last byte.
//! - A FIN goes with the last data: these are held back (`MSG_MORE`) until the end is closed. Where data fill their last
//!   segment TCP does not hold it back, and a FIN would follow alone, a small packet that no simulation has; there the
//!   receiver closes first.
//!
//! # Deviations
//! - What TCP counts for itself (segments, retransmissions, timeouts) is not asked for: these metrics are missing.
//! - Datagrams carry their number and the time of sending, so that the smallest is an IP packet of 40 bytes. Those that
//!   arrive within [`GRACE`] after the end of the run are neither received nor lost, as in a simulation; later ones are lost.
//!
//! # Cost
//! - A system call or two per wake-up of a source, and one per 256 kB that are read or written; what is received is discarded in
//!   the kernel (`MSG_TRUNC`).

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::sockopt::{Ipv4Tos, RcvBufForce, TcpCongestion};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, bind, connect, listen, recv, send,
    setsockopt, socket,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use qdisc::{Ecn, Ending, FlowKey, FlowKind, FlowReport, Span, Time};
use sim::net::{Caller, Carrier, ConnId, Datagram, Event, HostId, Net, Settings, Side, StreamId};
use sim::segment::UDP_HEADER;
use sim::tally::{Datagrams, Pauses};
use sim::traffic::flow;
use sim::engine::SourcePlan;

use crate::command::run;
use crate::lateness::Lateness;
use crate::space::{Corner, Door, Space};
use crate::trouble::Trouble;

/// How long datagrams may be on their way when the run is over.
pub const GRACE: Span = Span::ms(500);
/// Where servers listen, for connections and for datagrams.
const PORT: u16 = 5000;
/// What is written, over and over, and where what is discarded would go.
const BUFFER: usize = 256 << 10;
/// Number of the stream, and the time of sending in picoseconds.
const HEADER: usize = 12;

/// What is to be driven, and until when.
pub struct Load {
    /// The sources, as the simulator would have them.
    pub sources: Vec<SourcePlan>,
    /// When the run ends.
    pub until: Time,
    /// When its measurement interval begins.
    pub measured_from: Time,
}

/// What came of it, beside the reports of flows.
#[derive(Debug, Default)]
pub struct Driven {
    /// How late sources were woken.
    pub lateness: Lateness,
    /// What sources have to say, each with its number.
    pub remarks: Vec<(u16, String)>,
    /// How often a source was woken or told something.
    pub events: u64,
}

impl Load {
    /// Drives the load through a test bed, in real time. Every flow is reported to `report`. Now and then `go_on` is told
    /// how much of it is done, 0 to 1; when it answers false there is no result.
    ///
    /// Call it on a thread of its own: the thread ends in a namespace of the test bed.
    ///
    /// # Errors
    /// When sockets cannot be made.
    pub fn drive(
        self,
        space: &Space,
        report: &mut dyn FnMut(&FlowReport),
        go_on: &dyn Fn(f64) -> bool,
    ) -> Result<Option<Driven>, Trouble> {
        urgent();
        let until = self.until;
        let places = sim::origin::places(&self.sources);
        let sources = self.sources.into_iter().map(|plan| Running {
            settings: Settings { tcp: Rc::new(plan.tcp), class: plan.class, reserved: plan.reserved },
            source: plan.source,
            wake: plan.start,
            told: Time::ZERO,
        });
        let mut running = Drive {
            sources: sources.collect(),
            sockets: Sockets::open(space, self.measured_from, places)?,
            driven: Driven::default(),
        };
        if !running.run(until, report, go_on)? {
            return Ok(None);
        }
        running.finish(until, report)?;
        Ok(Some(running.driven))
    }
}

struct Running {
    source: Box<dyn sim::Source>,
    settings: Settings,
    /// When it wants to be woken.
    wake: Time,
    /// The latest time that it was told.
    told: Time,
}

struct Drive {
    sources: Vec<Running>,
    sockets: Sockets,
    driven: Driven,
}

impl Drive {
    fn run(
        &mut self,
        until: Time,
        report: &mut dyn FnMut(&FlowReport),
        go_on: &dyn Fn(f64) -> bool,
    ) -> Result<bool, Trouble> {
        /// Often enough for a progress bar and for Ctrl-C.
        const TELL: Span = Span::ms(100);
        let mut tell = Time::ZERO;
        let mut happened = [EpollEvent::empty(); 64];
        self.sockets.clock = Clock::start();
        loop {
            let now = self.sockets.clock.now();
            if now >= until {
                return Ok(go_on(1.0));
            }
            if now >= tell {
                if !go_on(now.as_s() / until.as_s()) {
                    return Ok(false);
                }
                tell = now + TELL;
            }
            self.wake(now, report)?;
            let next = self.sources.iter().map(|source| source.wake).min().unwrap_or(Time::NEVER);
            self.sockets.sleep(next.min(until).min(tell))?;
            let count = self.sockets.wait(&mut happened)?;
            for event in &happened[..count] {
                self.sockets.handle(event)?;
                self.settle(report)?;
            }
        }
    }

    /// Wakes every source whose time has come, in the order of these times.
    fn wake(&mut self, now: Time, report: &mut dyn FnMut(&FlowReport)) -> Result<(), Trouble> {
        while self.wake_next(now) {
            self.settle(report)?;
        }
        Ok(())
    }

    /// Wakes the source that wanted it first, if that was up to now.
    fn wake_next(&mut self, now: Time) -> bool {
        let due = self.sources.iter().map(|source| source.wake).zip(0u16..).min();
        let Some((at, number)) = due.filter(|(at, _)| *at <= now) else { return false };
        self.driven.lateness.record(self.sockets.clock.now().since(at));
        self.sources[usize::from(number)].wake = Time::NEVER;
        self.act(number, at, |source, net| source.wake(net));
        true
    }

    /// Lets a source act at a time, but never before a time that it was told already.
    fn act(&mut self, number: u16, now: Time, act: impl FnOnce(&mut dyn sim::Source, &mut Net<'_>)) {
        let running = &mut self.sources[usize::from(number)];
        running.told = running.told.max(now);
        let caller = Caller { source: number, settings: &running.settings, now: running.told };
        act(&mut *running.source, &mut Net::new(caller, &mut self.sockets, &mut running.wake));
        self.driven.events += 1;
    }

    /// Writes what sources want to send and tells them and the record what happened, until nothing is left to say.
    ///
    /// Who wanted to be woken before something happened is woken before it is told: a machine that was busy for a while must
    /// not make a transfer that it kept waiting begin later.
    fn settle(&mut self, report: &mut dyn FnMut(&FlowReport)) -> Result<(), Trouble> {
        loop {
            self.sockets.flush();
            if let Some(trouble) = self.sockets.trouble.take() {
                return Err(trouble);
            }
            self.sockets.reports.drain(..).for_each(|flow| report(&flow));
            let Some(at) = self.sockets.events.front().map(|(_, _, at)| *at) else { return Ok(()) };
            if self.wake_next(at) {
                continue;
            }
            let (source, event, at) = self.sockets.events.pop_front().expect("there is one");
            self.act(source, at, |source, net| source.on(event, net));
            if let Event::Closed(conn) | Event::Aborted(conn) = event {
                self.sockets.release(conn);
            }
        }
    }

    /// The end of the run: what is still open is reported.
    fn finish(&mut self, until: Time, report: &mut dyn FnMut(&FlowReport)) -> Result<(), Trouble> {
        self.sockets.late_datagrams(until)?;
        for number in 0..self.sources.len() as u16 {
            self.act(number, until, |source, net| source.finish(net));
            if let Some(remark) = self.sources[usize::from(number)].source.remark() {
                self.driven.remarks.push((number, remark));
            }
        }
        self.sockets.finish(until);
        self.sockets.reports.drain(..).for_each(|flow| report(&flow));
        Ok(())
    }
}

/// Time since the start of the run.
#[derive(Clone, Copy)]
struct Clock {
    /// Nanoseconds of the monotonic clock.
    start: i64,
}

impl Clock {
    fn start() -> Clock {
        Clock { start: Clock::read() }
    }

    fn read() -> i64 {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
        now.expect("Linux has this clock").num_nanoseconds()
    }

    fn now(self) -> Time {
        Time::ZERO + Span::ns((Clock::read() - self.start) as u64)
    }

    /// The same on the monotonic clock, rounded up: whoever sleeps until then does not wake too early.
    fn at(self, time: Time) -> TimeSpec {
        TimeSpec::nanoseconds(self.start + time.since(Time::ZERO).as_ps().div_ceil(1000) as i64)
    }
}

/// Every socket of a run: the carrier of the load.
struct Sockets {
    clock: Clock,
    measured_from: Time,
    /// By number of the node.
    hosts: Vec<Option<(Corner, Ipv4Addr)>>,
    doors: [Door; 2],
    inside: Option<Corner>,
    epoll: Epoll,
    timer: TimerFd,
    listeners: [TcpListener; 2],
    mailboxes: [UdpSocket; 2],
    conns: Vec<Option<Conn>>,
    /// Places of connections that are over.
    free: Vec<u32>,
    serial: u32,
    /// Connections whose server has not accepted yet, by the address of the client.
    expected: BTreeMap<SocketAddrV4, u32>,
    streams: Vec<Stream>,
    /// How many flows each source has numbered, and its place in its group: as in a simulation, flows of a group take their
    /// numbers by turns.
    flows: Vec<u64>,
    places: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    /// Ends that have something to write or to close.
    touched: Vec<(u32, Side)>,
    /// What sources have not heard yet, and when it happened.
    events: VecDeque<(u16, Event, Time)>,
    reports: Vec<FlowReport>,
    /// What went wrong while a source acted.
    trouble: Option<Trouble>,
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
    /// Its source was told that it is over.
    over: bool,
}

#[derive(Default)]
struct End {
    /// None until it is accepted.
    socket: Option<TcpStream>,
    /// Whether it may be written to: a socket that is shut down before it is connected never will be.
    connected: bool,
    /// Bytes that the application has for it and that the socket has not taken; `u64::MAX` never end.
    to_write: u64,
    /// No more will come.
    closing: bool,
    /// It was told so.
    shut: bool,
    received: u64,
    received_measured: u64,
    peer_closed: bool,
}

struct Transfer {
    id: u64,
    start: Time,
    /// `u64::MAX`: for ever.
    bytes: u64,
    pauses: Pauses,
    reported: bool,
    /// The receiver closes first, so that no FIN goes alone.
    receiver_first: bool,
}

struct Stream {
    id: u64,
    source: u16,
    ends: (u16, u16),
    start: Time,
    socket: UdpSocket,
    tally: Datagrams,
}

/// What a number in an event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Timer,
    Listener(usize),
    Mailbox(usize),
    End { conn: u32, serial: u32, side: Side },
}

impl Token {
    fn pack(self) -> u64 {
        match self {
            Token::Timer => 0,
            Token::Listener(side) => 1 + side as u64,
            Token::Mailbox(side) => 3 + side as u64,
            Token::End { conn, serial, side } => {
                let server = u64::from(side == Side::Server);
                1 << 63 | u64::from(serial & 0x3fff_ffff) << 33 | u64::from(conn) << 1 | server
            }
        }
    }

    fn unpack(number: u64) -> Token {
        match number {
            0 => Token::Timer,
            1 | 2 => Token::Listener(number as usize - 1),
            3 | 4 => Token::Mailbox(number as usize - 3),
            _ => Token::End {
                conn: (number >> 1) as u32,
                serial: (number >> 33) as u32 & 0x3fff_ffff,
                side: if number & 1 == 1 { Side::Server } else { Side::Client },
            },
        }
    }
}

const SIDES: [Corner; 2] = [Corner::Near, Corner::Far];

impl Sockets {
    fn open(space: &Space, measured_from: Time, places: Vec<(u64, u64)>) -> Result<Sockets, Trouble> {
        let doors = [space.door(Corner::Near)?, space.door(Corner::Far)?];
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(Trouble::system("make an epoll"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(Trouble::system("make a timer"))?;
        let listen_at = |door: &Door| {
            door.enter()?;
            listener().map_err(Trouble::system("listen for connections"))
        };
        let receive_at = |door: &Door| {
            door.enter()?;
            mailbox().map_err(Trouble::system("listen for datagrams"))
        };
        let listeners = [listen_at(&doors[0])?, listen_at(&doors[1])?];
        let mailboxes = [receive_at(&doors[0])?, receive_at(&doors[1])?];
        let watch = |fd: &dyn AsFdDyn, token: Token| {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, token.pack());
            epoll.add(fd.fd(), event).map_err(Trouble::system("watch a socket"))
        };
        watch(&timer, Token::Timer)?;
        for side in 0..2 {
            watch(&listeners[side], Token::Listener(side))?;
            watch(&mailboxes[side], Token::Mailbox(side))?;
        }
        Ok(Sockets {
            clock: Clock::start(),
            measured_from,
            hosts: space.hosts().to_vec(),
            doors,
            inside: None,
            epoll,
            timer,
            listeners,
            mailboxes,
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
            trouble: None,
        })
    }

    /// The timer goes off then.
    fn sleep(&mut self, until: Time) -> Result<(), Trouble> {
        // A time of zero would disarm it.
        let at = Expiration::OneShot(self.clock.at(until.max(Time::from_ps(1))));
        let set = self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        set.map_err(Trouble::system("set a timer"))
    }

    fn wait(&mut self, happened: &mut [EpollEvent]) -> Result<usize, Trouble> {
        loop {
            match self.epoll.wait(happened, EpollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                other => return other.map_err(Trouble::system("wait for sockets")),
            }
        }
    }

    fn handle(&mut self, event: &EpollEvent) -> Result<(), Trouble> {
        match Token::unpack(event.data()) {
            Token::Timer => {
                // It only ends the wait; setting it again disarms it.
                let _ = self.timer.unset();
                Ok(())
            }
            Token::Listener(side) => self.accept(side),
            Token::Mailbox(side) => {
                while let Some((stream, bytes, sent, now)) = self.letter(side)? {
                    let tally = &mut self.streams[stream].tally;
                    tally.arrived(bytes, now, now >= self.measured_from);
                    if sent >= self.measured_from {
                        tally.received(bytes, sent, now);
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

    /// Takes all connections that wait to be accepted.
    fn accept(&mut self, side: usize) -> Result<(), Trouble> {
        loop {
            let (socket, from) = match self.listeners[side].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // It was gone again before we came.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(Trouble::system::<io::Error>("accept a connection")(error)),
            };
            let SocketAddr::V4(from) = from else { continue };
            let Some(number) = self.expected.remove(&from) else { continue };
            let now = self.clock.now();
            let Some(conn) = self.conns[number as usize].as_mut() else { continue };
            let prepared = prepare(&socket, &conn.settings).and_then(|()| socket.set_nonblocking(true));
            prepared.map_err(Trouble::system("prepare a connection"))?;
            let token = Token::End { conn: number, serial: conn.serial, side: Side::Server };
            watch_end(&self.epoll, &socket, token).map_err(Trouble::system("watch a connection"))?;
            conn.server = End { socket: Some(socket), connected: true, ..std::mem::take(&mut conn.server) };
            if conn.transfer.is_none() {
                self.events.push_back((conn.source, Event::Connected(ConnId(number)), now));
            }
            // What came before it was watched is told by an event: there is one for what is already there.
            self.touched.push((number, Side::Server));
        }
    }

    /// Reads everything that an end has.
    fn read(&mut self, number: u32, side: Side) {
        loop {
            let Some(conn) = self.conns[number as usize].as_mut() else { return };
            let end = conn.end(side);
            let Some(socket) = &end.socket else { return };
            // The kernel discards what is read; the buffer only says how much at a time.
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
                            let event = Event::Received { conn: ConnId(number), side, total };
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

    /// Something of a transfer arrived.
    fn progress(&mut self, number: u32, now: Time) {
        let conn = self.conns[number as usize].as_mut().expect("it just received something");
        let transfer = conn.transfer.as_mut().expect("it is a transfer");
        transfer.pauses.progress(now);
        if conn.server.received == transfer.bytes && !transfer.reported {
            transfer.reported = true;
            if transfer.receiver_first {
                conn.server.closing = true;
                self.touched.push((number, Side::Server));
            }
            self.reports.extend(conn.report(now, Ending::Completed));
        }
    }

    /// One end gave up.
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

    /// Tells the source if both ends are closed.
    fn over(&mut self, number: u32, now: Time) {
        let Some(conn) = self.conns[number as usize].as_mut() else { return };
        let closed = |end: &End| end.shut && end.peer_closed;
        if !conn.over && closed(&conn.client) && closed(&conn.server) {
            conn.over = true;
            self.events.push_back((conn.source, Event::Closed(ConnId(number)), now));
        }
    }

    /// The source has heard that a connection is over: its place is free.
    fn release(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns[conn.0 as usize].take()
            && let Some(socket) = &conn.client.socket
            && let Ok(SocketAddr::V4(from)) = socket.local_addr()
        {
            self.expected.remove(&from);
        }
        self.free.push(conn.0);
    }

    /// Writes and closes where there is something to write or to close.
    fn flush(&mut self) {
        while let Some((number, side)) = self.touched.pop() {
            self.write(number, side);
        }
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
                // Full: there will be an event.
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                Err(_) => {
                    let now = self.clock.now();
                    return self.abort(number, now);
                }
            }
        }
        if end.closing {
            // Where it fails the peer has reset the connection: it is as good as closed.
            let _ = socket.shutdown(Shutdown::Write);
            end.shut = true;
            let now = self.clock.now();
            self.over(number, now);
        }
    }

    /// A datagram that arrived: its stream, its data bytes, when it was sent, and now.
    fn letter(&mut self, side: usize) -> Result<Option<(usize, u32, Time, Time)>, Trouble> {
        loop {
            let bytes = match self.mailboxes[side].recv(&mut self.buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(Trouble::system::<io::Error>("receive a datagram")(error)),
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

    /// The run is over; datagrams that arrive a little later were on their way.
    fn late_datagrams(&mut self, until: Time) -> Result<(), Trouble> {
        if self.streams.is_empty() {
            return Ok(());
        }
        let end = until + GRACE;
        let mut happened = [EpollEvent::empty(); 64];
        while self.clock.now() < end {
            self.sleep(end)?;
            let count = self.wait(&mut happened)?;
            for event in &happened[..count] {
                match Token::unpack(event.data()) {
                    Token::Timer => drop(self.timer.unset()),
                    Token::Mailbox(side) => {
                        while let Some((stream, _, sent, _)) = self.letter(side)? {
                            if sent >= self.measured_from {
                                self.streams[stream].tally.under_way();
                            }
                        }
                    }
                    Token::Listener(side) => drop(self.listeners[side].accept()),
                    Token::End { .. } => {}
                }
            }
        }
        Ok(())
    }

    /// Reports everything that is still open.
    fn finish(&mut self, until: Time) {
        for conn in self.conns.iter_mut().flatten() {
            if conn.transfer.as_ref().is_some_and(|transfer| !transfer.reported) {
                self.reports.extend(conn.report(until, Ending::Unfinished));
            }
        }
        for stream in &self.streams {
            let known = flow(stream.id, stream.ends, stream.start, 0);
            let known = FlowReport { source: stream.source, kind: FlowKind::Datagrams, ..known };
            self.reports.push(stream.tally.report(FlowReport { ending: Ending::Completed, ..known }, until));
        }
    }

    /// Goes where sockets of a host are made, and says under which address.
    fn go_to(&mut self, node: u16) -> Result<Ipv4Addr, Trouble> {
        let (corner, address) = self.hosts[usize::from(node)].expect("every node of the traffic is a host");
        if self.inside != Some(corner) {
            let at = SIDES.iter().position(|side| *side == corner).expect("hosts are on a side");
            self.doors[at].enter()?;
            self.inside = Some(corner);
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
    ) -> Result<u32, Trouble> {
        let from = self.go_to(ends.0)?;
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
            over: false,
        };
        if let Some(transfer) = &conn.transfer {
            conn.client.to_write = transfer.bytes;
            conn.client.closing = transfer.bytes < u64::MAX && !transfer.receiver_first;
        }
        let opened = open_client(from, to, by.settings);
        let (socket, local) = opened.map_err(Trouble::system("open a connection"))?;
        let token = Token::End { conn: number, serial: conn.serial, side: Side::Client };
        watch_end(&self.epoll, &socket, token).map_err(Trouble::system("watch a connection"))?;
        conn.client.socket = Some(socket);
        self.expected.insert(local, number);
        self.conns[number as usize] = Some(conn);
        Ok(number)
    }

    fn open_stream(&mut self, by: Caller<'_>, ends: (u16, u16), start: Time) -> Result<StreamId, Trouble> {
        let from = self.go_to(ends.0)?;
        let to = self.address(ends.1);
        let opened = open_sender(from, to, by.settings);
        let socket = opened.map_err(Trouble::system("open a stream of datagrams"))?;
        let id = self.flow_id(by);
        self.streams.push(Stream { id, source: by.source, ends, start, socket, tally: Datagrams::default() });
        Ok(StreamId(self.streams.len() as u32 - 1))
    }

    /// What a source gets where nothing could be opened; the run ends as soon as it has acted.
    fn failed(&mut self, trouble: Trouble) -> u32 {
        self.trouble = Some(trouble);
        self.conns.push(None);
        self.conns.len() as u32 - 1
    }
}

impl Carrier for Sockets {
    fn host(&mut self, _node: u16, _distance: Span) -> HostId {
        // Sources that ask for one are refused when the scenario is read.
        HostId::default()
    }

    fn connect(&mut self, by: Caller<'_>, ends: (u16, u16), _host: HostId) -> ConnId {
        ConnId(self.open_connection(by, ends, None).unwrap_or_else(|trouble| self.failed(trouble)))
    }

    fn transfer(&mut self, by: Caller<'_>, ends: (u16, u16), bytes: Option<u64>, asked: Time) -> ConnId {
        let id = self.flow_id(by);
        let bytes = bytes.unwrap_or(u64::MAX);
        let whole_segments = bytes.is_multiple_of(by.settings.tcp.mss.0);
        let transfer = Transfer {
            id,
            start: asked,
            bytes,
            pauses: Pauses::since(asked),
            reported: false,
            receiver_first: bytes < u64::MAX && whole_segments,
        };
        let opened = self.open_connection(by, ends, Some(transfer));
        ConnId(opened.unwrap_or_else(|trouble| self.failed(trouble)))
    }

    fn send(&mut self, conn: ConnId, side: Side, bytes: u64, _now: Time) {
        if let Some(open) = self.conns[conn.0 as usize].as_mut() {
            open.end(side).to_write += bytes;
            self.touched.push((conn.0, side));
        }
    }

    fn close(&mut self, conn: ConnId, side: Side, _now: Time) {
        if let Some(open) = self.conns[conn.0 as usize].as_mut() {
            open.end(side).closing = true;
            self.touched.push((conn.0, side));
        }
    }

    fn counts(&self, _conn: ConnId, _side: Side) -> (u64, u64, u64) {
        (0, 0, 0)
    }

    fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64 {
        let Some(conn) = self.conns[conn.0 as usize].as_ref() else { return 0 };
        let end = match side {
            Side::Client => &conn.client,
            Side::Server => &conn.server,
        };
        let before = end.received - end.received_measured;
        end.received.min(part.end).saturating_sub(part.start.max(before))
    }

    fn stream(&mut self, by: Caller<'_>, ends: (u16, u16), _flow: Option<FlowKey>, start: Time) -> StreamId {
        self.open_stream(by, ends, start).unwrap_or_else(|trouble| StreamId(self.failed(trouble)))
    }

    fn datagram(&mut self, stream: StreamId, bytes: u32, _now: Time) {
        let Some(stream_of) = self.streams.get_mut(stream.0 as usize) else { return };
        let length = (bytes.saturating_sub(UDP_HEADER) as usize).max(HEADER);
        let now = self.clock.now();
        let letter = &mut self.buffer[..length];
        letter[..4].copy_from_slice(&stream.0.to_be_bytes());
        letter[4..HEADER].copy_from_slice(&now.since(Time::ZERO).as_ps().to_be_bytes());
        if now >= self.measured_from {
            stream_of.tally.sent(length as u32);
        }
        // What its own host does not take is lost like any other.
        let _ = stream_of.socket.send(letter);
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

    /// The report of a transfer.
    fn report(&self, now: Time, ending: Ending) -> Option<FlowReport> {
        let transfer = self.transfer.as_ref()?;
        let endless = transfer.bytes == u64::MAX;
        let (longest_pause, paused) = transfer.pauses.until(now);
        Some(FlowReport {
            source: self.source,
            kind: if endless { FlowKind::Endless } else { FlowKind::Transfer },
            end: now,
            bytes: if endless { self.server.received } else { transfer.bytes },
            delivered: self.server.received,
            goodput_bytes: self.server.received_measured,
            longest_pause,
            paused,
            ending,
            ..flow(transfer.id, self.ends, transfer.start, 0)
        })
    }
}

/// Asks that the calling thread does not wait for a processor (SCHED_FIFO, below what a router has). Where that is not allowed, or
/// there is no `chrt`, sources are woken later, which is measured and said.
fn urgent() {
    let thread = nix::unistd::gettid().to_string();
    let _ = run(&["chrt", "-f", "-p", "10", &thread]);
}

/// Events after which there is something to read: data, an end, an error.
fn readable() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR
}

/// Each event is told once: whoever hears of one reads and writes until the socket has had enough.
fn watch_end(epoll: &Epoll, socket: &TcpStream, token: Token) -> nix::Result<()> {
    let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    epoll.add(socket, EpollEvent::new(flags, token.pack()))
}

fn listener() -> io::Result<TcpListener> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, PORT))?;
    listen(&socket, Backlog::new(4096)?)?;
    Ok(TcpListener::from(socket))
}

fn mailbox() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    socket.set_nonblocking(true)?;
    setsockopt(&socket, RcvBufForce, &(8 << 20))?;
    Ok(socket)
}

fn prepare(socket: &TcpStream, settings: &Settings) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let name = OsString::from(settings.tcp.congestion.name());
    Ok(setsockopt(socket, TcpCongestion, &name)?)
}

/// A connection that begins, and its own address.
fn open_client(from: Ipv4Addr, to: Ipv4Addr, settings: &Settings) -> io::Result<(TcpStream, SocketAddrV4)> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = TcpStream::from(socket(AddressFamily::Inet, SockType::Stream, flags, None)?);
    prepare(&socket, settings)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
    match connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(to, PORT))) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    match socket.local_addr()? {
        SocketAddr::V4(local) => Ok((socket, local)),
        SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

fn open_sender(from: Ipv4Addr, to: Ipv4Addr, settings: &Settings) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect((to, PORT))?;
    socket.set_nonblocking(true)?;
    if settings.ecn() == Ecn::Ect0 {
        setsockopt(&socket, Ipv4Tos, &0b10)?;
    }
    Ok(socket)
}

/// What can be watched.
trait AsFdDyn {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_>;
}

impl<T: AsFd> AsFdDyn for T {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart() {
        let end = |conn, serial, side| Token::End { conn, serial, side };
        let all = [
            Token::Timer,
            Token::Listener(0),
            Token::Listener(1),
            Token::Mailbox(0),
            Token::Mailbox(1),
            end(0, 0, Side::Client),
            end(0, 0, Side::Server),
            end(u32::MAX, 0x3fff_ffff, Side::Server),
            end(7, 1, Side::Client),
        ];
        for token in all {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
