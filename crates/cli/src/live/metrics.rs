//! `--metrics`: OpenMetrics over HTTP, for Prometheus and its like. One request per connection, GET / or /metrics.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::operator::Answers;

/// Nobody waits longer for the other side.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that a request's head may have.
const LONGEST: u64 = 8192;

/// Listens from now on.
///
/// # Errors
/// A sentence.
pub fn listen(at: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(at).map_err(|error| format!("--metrics {at}: {error}"))
}

/// Answers, in a thread of its own, as long as the process lives.
pub fn serve<A: Answers>(listener: TcpListener, operator: &Arc<A>) {
    let operator = Arc::clone(operator);
    let accept = move || listener.accept().map(|(stream, _)| stream);
    super::answer_each("gw-metrics", A::RUNS_PROGRAMS, accept, move |stream| answer(&stream, &*operator));
}

fn answer(stream: &TcpStream, operator: &impl Answers) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = BufReader::new(stream.take(LONGEST));
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    // The rest of the head is of no interest, but whoever sends it wants it read.
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, kind, body) = reply(&request, || watch::openmetrics::render(&operator.snapshots()));
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Status, kind and text of the answer to the first line of a request.
fn reply(request: &str, metrics: impl FnOnce() -> String) -> (&'static str, &'static str, String) {
    let mut words = request.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some(path)) if matches!(path.split('?').next(), Some("/" | "/metrics")) => {
            ("200 OK", watch::openmetrics::CONTENT_TYPE, metrics())
        }
        (Some("GET"), Some(_)) => ("404 Not Found", TEXT, "there is /metrics\n".to_owned()),
        (Some(_), Some(_)) => ("405 Method Not Allowed", TEXT, "ask with GET\n".to_owned()),
        _ => ("400 Bad Request", TEXT, "this is no HTTP request\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_get_their_answers() {
        let status = |request: &str| reply(request, || "# EOF\n".to_owned()).0;
        assert_eq!(status("GET /metrics HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status("GET /metrics?name=a HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.0\r\n"), "200 OK");
        assert_eq!(status("GET /etc/passwd HTTP/1.1\r\n"), "404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n"), "405 Method Not Allowed");
        assert_eq!(status("\u{16}\u{3}"), "400 Bad Request");
        assert_eq!(reply("GET / HTTP/1.1", || "# EOF\n".to_owned()).2, "# EOF\n");
    }
}
