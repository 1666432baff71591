//! Any request to the port for metrics gets one HTTP response.

use giveway_control::http;

const METRICS: &str = "# EOF\n";

/// Input: one byte with the number of bytes that arrive at once, then the bytes that the client sends.
pub fn run(input: &[u8]) {
    let Some((piece, request)) = input.split_first() else { return };
    let answer = http::answer(request, || METRICS.to_owned());
    let text = String::from_utf8(answer.clone()).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.starts_with("HTTP/1.1 "), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    assert_eq!(head.starts_with("HTTP/1.1 200 "), body == METRICS, "{head}");
    // The response does not depend on the division of the request into pieces.
    let pieces = Pieces { rest: request, most: usize::from(*piece).max(1) };
    let respond = http::respond(pieces, || METRICS.to_owned()).expect("memory can be read");
    let first = |answer: &[u8]| answer.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
    if request.len() <= http::LONGEST_HEAD {
        assert_eq!(first(&respond), first(&answer));
    }
}

/// A reader that returns at most `most` bytes per call.
struct Pieces<'a> {
    rest: &'a [u8],
    most: usize,
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.most.min(into.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(count);
        into[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }
}
