//! Metrics over HTTP, in the OpenMetrics format: one request per connection, `GET /` or `GET /metrics`.

use std::io::{self, Read};

/// Largest size of the head of a request, in bytes.
pub const LONGEST_HEAD: usize = 8192;

/// Media type of error messages.
const TEXT: &str = "text/plain; charset=utf-8";

/// True if `bytes` contain the complete head of an HTTP request. An empty line ends the head (RFC 9112,
/// section 2.1).
pub fn is_complete(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    // The bytes after the last line feed are not a complete line yet.
    lines.next_back();
    lines.any(|line| line.is_empty() || line == b"\r")
}

/// Reads a request and returns the whole answer: head and body.
///
/// # Errors
/// The error of the reader.
pub fn respond(request: impl Read, metrics: impl FnOnce() -> String) -> io::Result<Vec<u8>> {
    let mut request = request.take(LONGEST_HEAD as u64 + 1);
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    while !is_complete(&bytes) && bytes.len() <= LONGEST_HEAD {
        match request.read(&mut chunk)? {
            0 => break,
            more => bytes.extend(&chunk[..more]),
        }
    }
    Ok(answer(&bytes, metrics))
}

/// The answer to the bytes of a request: its whole head, or as much of it as was received.
pub fn answer(bytes: &[u8], metrics: impl FnOnce() -> String) -> Vec<u8> {
    let (status, kind, body) = if !is_complete(bytes) && bytes.len() > LONGEST_HEAD {
        let message = format!("a request has at most {LONGEST_HEAD} bytes\n");
        ("431 Request Header Fields Too Large", TEXT, message)
    } else {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        reply(&String::from_utf8_lossy(line), metrics)
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Status, content type and body of the answer to the first line of a request.
fn reply(request: &str, metrics: impl FnOnce() -> String) -> (&'static str, &'static str, String) {
    let mut words = request.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some(path)) if matches!(path.split('?').next(), Some("/" | "/metrics")) => {
            ("200 OK", giveway_watch::openmetrics::CONTENT_TYPE, metrics())
        }
        (Some("GET"), Some(_)) => ("404 Not Found", TEXT, "the metrics are at /metrics\n".to_owned()),
        (Some(_), Some(_)) => ("405 Method Not Allowed", TEXT, "use GET\n".to_owned()),
        _ => ("400 Bad Request", TEXT, "this is not an HTTP request\n".to_owned()),
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

    #[test]
    fn a_head_ends_with_an_empty_line() {
        let whole = |text: &str| is_complete(text.as_bytes());
        assert!(whole("GET / HTTP/1.1\r\nHost: a\r\n\r\n") && whole("GET /\n\n") && whole("\r\n"));
        assert!(!whole("GET / HTTP/1.1\r\nHost: a\r\n") && !whole("GET / HTTP/1.1\r\n\r") && !whole(""));
    }

    #[test]
    fn long_and_cut_off_requests_are_answered() {
        let answer_to = |request: &[u8]| {
            let answer = respond(request, || "# EOF\n".to_owned()).expect("bytes can be read");
            String::from_utf8(answer).expect("it is text")
        };
        assert!(answer_to(&[b'a'; 100_000]).starts_with("HTTP/1.1 431 "));
        assert!(answer_to(b"GET /metrics HTTP/1.1\r\nHost").ends_with("\r\n\r\n# EOF\n"));
        assert!(answer_to(b"").starts_with("HTTP/1.1 400 "));
    }
}
