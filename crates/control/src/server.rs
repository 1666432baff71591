//! Serves several clients at once in one thread: one poll loop, sockets that do not block, a deadline for
//! each connection, and bounds on connections and bytes. A slow client does not delay the others.
//!
//! A service may keep a connection for further requests. It then has no deadline, and is closed for no other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeFrom;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use giveway_live::clock::monotonic_ns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::handover::Client;
use crate::http;
use crate::protocol::{self, ControlApi, LONGEST_LINE};

/// Largest number of open connections. When another client connects, the oldest connection without a complete
/// request is closed.
pub const CLIENTS: usize = 16;
/// Time limit for a client of the metrics: request and answer together.
pub const METRICS_DEADLINE: Duration = Duration::from_secs(2);
/// Time limit for a client of the control socket: request and answer together.
pub const CONTROL_DEADLINE: Duration = Duration::from_secs(5);

/// A protocol with one request and one answer for each connection, unless the service keeps the connection.
pub trait Service {
    /// Largest length of a request, in bytes. A longer one is answered without reading the rest.
    const LONGEST: usize;
    /// Time limit of a connection.
    const DEADLINE: Duration;
    /// True if these bytes are a complete request.
    fn is_complete(&self, bytes: &[u8]) -> bool;
    /// The answer to these bytes of a client: a complete request, one that is too long, or one that the
    /// client broke off.
    fn answer(&mut self, client: Client, bytes: &[u8]) -> Vec<u8>;
    /// True if the connection stays open for another request after an answer.
    fn keeps(&self, client: Client) -> bool {
        let _ = client;
        false
    }
    /// The connection of a client has ended.
    fn left(&mut self, client: Client) {
        let _ = client;
    }
}

/// The service of the control socket.
pub struct Control<A>(pub Arc<A>);

impl<A: ControlApi> Service for Control<A> {
    const LONGEST: usize = LONGEST_LINE;
    const DEADLINE: Duration = CONTROL_DEADLINE;
    fn is_complete(&self, bytes: &[u8]) -> bool {
        bytes.contains(&b'\n')
    }
    fn answer(&mut self, client: Client, bytes: &[u8]) -> Vec<u8> {
        protocol::answer(client, bytes, &*self.0).into_bytes()
    }
    fn keeps(&self, client: Client) -> bool {
        self.0.keeps(client)
    }
    fn left(&mut self, client: Client) {
        self.0.left(client);
    }
}

/// The service of metrics over HTTP.
pub struct Metrics<A>(pub Arc<A>);

impl<A: ControlApi> Service for Metrics<A> {
    const LONGEST: usize = http::LONGEST_HEAD;
    const DEADLINE: Duration = METRICS_DEADLINE;
    fn is_complete(&self, bytes: &[u8]) -> bool {
        http::is_complete(bytes)
    }
    fn answer(&mut self, _: Client, bytes: &[u8]) -> Vec<u8> {
        http::answer(bytes, || giveway_watch::openmetrics::render(&self.0.snapshots().unwrap_or_default()))
    }
}

/// A socket that listens.
pub trait Listener: AsFd {
    /// Type of its connections.
    type Stream: Read + Write + AsFd;
    /// Accepts the next connection without blocking. The connection does not block either.
    ///
    /// # Errors
    /// `WouldBlock` if no client waits, otherwise the error of the system.
    fn accept_now(&self) -> io::Result<Self::Stream>;
    /// Switches the socket to non-blocking mode.
    ///
    /// # Errors
    /// The error of the system.
    fn never_wait(&self) -> io::Result<()>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    fn accept_now(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
    fn never_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    fn accept_now(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
    fn never_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// A warning that other machines reach this address; `None` for a loopback address.
pub fn exposure(at: SocketAddr) -> Option<String> {
    let ip = at.ip().to_canonical();
    let reached = match ip {
        _ if ip.is_loopback() => return None,
        _ if ip.is_unspecified() => "any address of this machine".to_owned(),
        _ => ip.to_string(),
    };
    Some(format!(
        "--metrics {at}: every machine that reaches {reached} may read the metrics without a password: rates, queues and drops; for \
         programs on this machine only, write --metrics 127.0.0.1:{}",
        at.port()
    ))
}

/// A client.
struct Connection<S> {
    client: Client,
    stream: S,
    /// Bytes that it has sent.
    request: Vec<u8>,
    /// The answer; `None` until the request is complete.
    answer: Option<Vec<u8>>,
    /// Number of bytes of the answer that were sent.
    taken: usize,
    /// Deadline by the monotonic clock, in nanoseconds.
    until: u64,
}

enum Next {
    Wait,
    Close,
}

/// The state of a request and its answer.
enum Exchange {
    /// Bytes are missing, or cannot be sent yet.
    Waits,
    /// The answer was sent.
    Complete,
    /// The connection has ended.
    Broken,
}

impl<S: Read + Write> Connection<S> {
    /// Reads and writes as much as is possible without blocking.
    fn advance<V: Service>(&mut self, service: &mut V) -> Next {
        loop {
            match self.exchange(service) {
                Exchange::Waits => return Next::Wait,
                Exchange::Complete if service.keeps(self.client) => {
                    (self.answer, self.taken, self.until) = (None, 0, u64::MAX);
                    self.request.clear();
                }
                Exchange::Complete | Exchange::Broken => return Next::Close,
            }
        }
    }

    fn exchange<V: Service>(&mut self, service: &mut V) -> Exchange {
        let mut chunk = [0; 2048];
        while self.answer.is_none() {
            let whole = match self.stream.read(&mut chunk) {
                // This is not a request that the client broke off: it was served before.
                Ok(0) if service.keeps(self.client) => return Exchange::Broken,
                Ok(0) => true,
                Ok(more) => {
                    self.request.extend(&chunk[..more]);
                    service.is_complete(&self.request) || self.request.len() > V::LONGEST
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Exchange::Waits,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
                Err(_) => return Exchange::Broken,
            };
            if whole {
                self.answer = Some(service.answer(self.client, &self.request));
            }
        }
        let answer = self.answer.as_deref().unwrap_or_default();
        while self.taken < answer.len() {
            match self.stream.write(&answer[self.taken..]) {
                Ok(0) => return Exchange::Broken,
                Ok(more) => self.taken += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Exchange::Waits,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Exchange::Broken,
            }
        }
        Exchange::Complete
    }
}

/// Serves clients concurrently in the calling thread, until the listener fails.
///
/// # Errors
/// The error of the system if it cannot wait for clients.
pub fn serve<L: Listener, V: Service>(listener: &L, service: &mut V) -> io::Result<()> {
    /// Pause after the system had no free descriptor and there was no connection to close.
    const RETRY: Duration = Duration::from_millis(100);
    listener.never_wait()?;
    let lifetime = V::DEADLINE.as_nanos() as u64;
    // The oldest first.
    let mut clients: Vec<Connection<L::Stream>> = Vec::with_capacity(CLIENTS);
    let mut accepts = true;
    let mut numbers = 0..;
    loop {
        let ready = wait(accepts.then(|| listener.as_fd()), &clients, RETRY)?;
        let now = monotonic_ns();
        let mut at = 0;
        // A client without an event may still have reached its deadline.
        clients.retain_mut(|client| {
            let woken = ready.clients[at];
            at += 1;
            let stays = now < client.until && !(woken && matches!(client.advance(service), Next::Close));
            if !stays {
                service.left(client.client);
            }
            stays
        });
        accepts = true;
        if ready.listener {
            accepts = welcome(listener, service, &mut clients, &mut numbers, now + lifetime);
        }
        // The time of computing answers does not count towards the deadlines of other clients.
        let spent = monotonic_ns() - now;
        clients.iter_mut().for_each(|client| client.until = client.until.saturating_add(spent));
    }
}

/// Accepts waiting clients. Returns false if the system has no free descriptor and no connection can be
/// closed.
fn welcome<L: Listener, V: Service>(
    listener: &L,
    service: &mut V,
    clients: &mut Vec<Connection<L::Stream>>,
    numbers: &mut RangeFrom<Client>,
    until: u64,
) -> bool {
    // A bound, so that accepted clients make progress under a flood of new ones.
    for _ in 0..CLIENTS {
        let stream = match listener.accept_now() {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            // The client has closed the connection meanwhile.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) if clients.is_empty() => return false,
            Err(_) => {
                close_one(service, clients);
                continue;
            }
        };
        let client = numbers.next().unwrap_or_default();
        let mut client = Connection { client, stream, request: Vec::new(), answer: None, taken: 0, until };
        match client.advance(service) {
            Next::Close => service.left(client.client),
            Next::Wait => {
                if clients.len() == CLIENTS {
                    close_one(service, clients);
                }
                clients.push(client);
            }
        }
    }
    true
}

/// Closes the oldest connection without a complete request, or the oldest one if all requests are complete.
/// A connection that the service keeps stays.
fn close_one<S, V: Service>(service: &mut V, clients: &mut Vec<Connection<S>>) {
    let first = |clients: &[Connection<S>], is: fn(&Connection<S>) -> bool| {
        clients.iter().position(|client| is(client) && !service.keeps(client.client))
    };
    let idle = first(clients, |client| client.answer.is_none());
    if let Some(at) = idle.or_else(|| first(clients, |_| true)) {
        service.left(clients.remove(at).client);
    }
}

/// Sockets with an event, from [`wait`].
struct Ready {
    listener: bool,
    clients: Vec<bool>,
}

fn wait<S: AsFd>(
    listener: Option<BorrowedFd<'_>>,
    clients: &[Connection<S>],
    retry: Duration,
) -> io::Result<Ready> {
    let first = clients.iter().map(|client| client.until).min();
    let left = first.map(|until| Duration::from_nanos(until.saturating_sub(monotonic_ns())));
    let left = if listener.is_none() { Some(left.unwrap_or(retry).min(retry)) } else { left };
    // Rounded up, so that the loop does not spin in the last millisecond.
    let timeout = left.map(|left| left.as_millis() as u64 + 1);
    let timeout = timeout.map_or(PollTimeout::NONE, |ms| {
        PollTimeout::try_from(Duration::from_millis(ms)).unwrap_or(PollTimeout::MAX)
    });
    let waits = |client: &Connection<S>| {
        if client.answer.is_none() { PollFlags::POLLIN } else { PollFlags::POLLOUT }
    };
    let mut fds: Vec<PollFd<'_>> =
        clients.iter().map(|client| PollFd::new(client.stream.as_fd(), waits(client))).collect();
    fds.extend(listener.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    match poll(&mut fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut woken = fds.iter().map(|fd| fd.any().unwrap_or(true));
    let clients = woken.by_ref().take(clients.len()).collect();
    Ok(Ready { listener: woken.next().unwrap_or(false), clients })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes a line. Its deadline is long, so that a busy machine does not reach it.
    struct Echo;

    impl Service for Echo {
        const LONGEST: usize = 100;
        const DEADLINE: Duration = Duration::from_secs(60);
        fn is_complete(&self, bytes: &[u8]) -> bool {
            bytes.contains(&b'\n')
        }
        fn answer(&mut self, _: Client, bytes: &[u8]) -> Vec<u8> {
            bytes.to_vec()
        }
    }

    /// Echoes a line, with a short deadline.
    struct Hasty(Echo);

    impl Service for Hasty {
        const LONGEST: usize = Echo::LONGEST;
        const DEADLINE: Duration = Duration::from_millis(200);
        fn is_complete(&self, bytes: &[u8]) -> bool {
            self.0.is_complete(bytes)
        }
        fn answer(&mut self, client: Client, bytes: &[u8]) -> Vec<u8> {
            self.0.answer(client, bytes)
        }
    }

    fn start<V: Service + Send + 'static>(mut service: V) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let at = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || serve(&listener, &mut service));
        at
    }

    fn ask(at: SocketAddr, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(request).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn silent_clients_do_not_delay_others() {
        let at = start(Echo);
        let silent: Vec<TcpStream> = (0..CLIENTS - 1).map(|_| TcpStream::connect(at).unwrap()).collect();
        for stream in &silent {
            let mut stream = stream;
            stream.write_all(b"he").unwrap();
        }
        assert_eq!(ask(at, b"hello\n"), b"hello\n");
        // They are served, too, once their request is complete.
        let mut last = silent.last().unwrap();
        last.write_all(b"y\n").unwrap();
        let mut answer = Vec::new();
        last.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"hey\n");
    }

    #[test]
    fn the_oldest_silent_client_is_closed_for_a_new_one() {
        let at = start(Echo);
        let silent: Vec<TcpStream> = (0..CLIENTS + 3).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert_eq!(ask(at, b"hello\n"), b"hello\n");
        for mut oldest in &silent[..3] {
            // Reading ends, since the other side has closed.
            assert!(matches!(oldest.read(&mut [0; 8]), Ok(0) | Err(_)));
        }
        let mut youngest = silent.last().unwrap();
        youngest.write_all(b"me\n").unwrap();
        let mut answer = Vec::new();
        youngest.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"me\n");
    }

    /// A byte every 50 ms does not keep a connection open: the deadline is for the complete request.
    #[test]
    fn a_slow_client_is_closed_at_its_deadline() {
        let at = start(Hasty(Echo));
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // The loop ends before the request has 100 bytes, at which it would be answered.
        for _ in 0..90 {
            let wrote = stream.write_all(b"a");
            match stream.read(&mut [0; 8]) {
                Ok(0) => return,
                Ok(_) => panic!("a request that is not complete is not answered"),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wrote.unwrap(),
                Err(_) => return,
            }
        }
        panic!("the connection was not closed");
    }

    #[test]
    fn long_and_incomplete_requests_are_answered() {
        let at = start(Echo);
        assert!(ask(at, &[b'a'; 101]).len() >= 101);
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(b"abc").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"abc");
    }

    /// An answer that a client does not read does not delay other clients.
    #[test]
    fn an_unread_answer_does_not_delay_others() {
        struct Large;
        impl Service for Large {
            const LONGEST: usize = 100;
            const DEADLINE: Duration = Duration::from_secs(60);
            fn is_complete(&self, bytes: &[u8]) -> bool {
                bytes.contains(&b'\n')
            }
            fn answer(&mut self, _: Client, bytes: &[u8]) -> Vec<u8> {
                if bytes == b"all\n" { vec![7; 64 << 20] } else { bytes.to_vec() }
            }
        }
        let at = start(Large);
        let mut greedy = TcpStream::connect(at).unwrap();
        greedy.write_all(b"all\n").unwrap();
        assert_eq!(ask(at, b"hello\n"), b"hello\n");
        let mut answer = Vec::new();
        greedy.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 64 << 20);
    }

    /// Neither its deadline nor a flood of clients closes the connection, and its end is reported once.
    #[test]
    fn a_connection_that_is_kept_ends_with_its_client_only() {
        struct Keeper(Option<Client>, std::sync::mpsc::Sender<()>);
        impl Service for Keeper {
            const LONGEST: usize = 100;
            const DEADLINE: Duration = Duration::from_millis(50);
            fn is_complete(&self, bytes: &[u8]) -> bool {
                bytes.contains(&b'\n')
            }
            fn answer(&mut self, client: Client, bytes: &[u8]) -> Vec<u8> {
                if bytes == b"keep\n" {
                    self.0 = Some(client);
                }
                bytes.to_vec()
            }
            fn keeps(&self, client: Client) -> bool {
                self.0 == Some(client)
            }
            fn left(&mut self, client: Client) {
                if self.0.take_if(|kept| *kept == client).is_some() {
                    self.1.send(()).unwrap();
                }
            }
        }
        let (sender, left) = std::sync::mpsc::channel();
        let at = start(Keeper(None, sender));
        let mut kept = TcpStream::connect(at).unwrap();
        for line in ["keep\n", "more\n", "keep\n"] {
            kept.write_all(line.as_bytes()).unwrap();
            let mut answer = [0; 5];
            kept.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, line.as_bytes());
            let others: Vec<TcpStream> = (0..2 * CLIENTS).map(|_| TcpStream::connect(at).unwrap()).collect();
            // Each of them reaches its deadline, or is closed for another one.
            for mut other in others {
                let _ = other.read(&mut [0; 8]);
            }
        }
        assert!(left.try_recv().is_err());
        drop(kept);
        left.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn addresses_that_other_machines_reach_have_a_warning() {
        let warning = |at: &str| exposure(at.parse().unwrap());
        assert_eq!(
            (warning("127.0.0.1:9100"), warning("[::1]:9100"), warning("127.8.0.1:1")),
            (None, None, None)
        );
        assert_eq!(warning("[::ffff:127.0.0.1]:9100"), None);
        assert!(warning("0.0.0.0:9100").unwrap().contains("any address of this machine"));
        assert!(warning("[::]:9100").unwrap().ends_with("--metrics 127.0.0.1:9100"));
        assert!(warning("192.0.2.1:80").unwrap().contains("reaches 192.0.2.1 may read"));
    }
}
