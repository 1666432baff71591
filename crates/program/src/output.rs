//! The standard output of a command, on which a terminal obeys this program only.
//!
//! A command writes text from files, packets and other programs, and its own styles. Both arrive here as
//! bytes. The escape sequences of this program are between two marks, which no text from outside can have,
//! since they are drawn when the program starts. They pass; everything else is made [`harmless`].

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write};
use std::sync::LazyLock;

use giveway_text::harmless;

/// The mark before and behind an escape sequence of this program.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\x1b{:016x}", RandomState::new().build_hasher().finish()));

/// An escape sequence of this program, for an [`Output`].
pub fn own(sequence: &str) -> String {
    let mark = &*MARK;
    format!("{mark}{sequence}{mark}")
}

/// A writer that passes harmless text, and the escape sequences of [`own`].
pub struct Output<W> {
    inner: W,
    /// The beginning of a character or of a mark, whose rest is missing.
    held: Vec<u8>,
    /// True between two marks.
    is_own: bool,
}

impl<W: Write> Output<W> {
    /// A writer in front of this one.
    pub fn new(inner: W) -> Output<W> {
        Output { inner, held: Vec::new(), is_own: false }
    }

    /// The inner writer, without what is held back until the next call.
    pub fn into_inner(self) -> W {
        self.inner
    }

    /// Writes bytes without a mark in them.
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.is_own {
            true => self.inner.write_all(bytes),
            false => self.inner.write_all(harmless(&String::from_utf8_lossy(bytes)).as_bytes()),
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while let Some(at) = place_of_mark(rest) {
            self.pass(&rest[..at])?;
            self.is_own = !self.is_own;
            rest = &rest[at + MARK.len()..];
        }
        let (whole, begun) = rest.split_at(rest.len() - unfinished(rest));
        self.pass(whole)?;
        self.held = begun.to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held)?;
        self.inner.flush()
    }
}

fn place_of_mark(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes())
}

/// The number of bytes at the end that may be the beginning of a mark or of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let begun = (1..MARK.len()).rev().find(|length| bytes.ends_with(&MARK.as_bytes()[..*length]));
    begun.unwrap_or_else(|| {
        // The last byte that does not continue a character begins one (RFC 3629, section 3).
        let last = bytes.iter().rev().take(3).position(|byte| byte & 0xc0 != 0x80).map_or(0, |back| back + 1);
        let length = match bytes[bytes.len() - last..].first() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..) => 4,
            _ => 1,
        };
        if length > last { last } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes pieces of this length.
    fn written(text: &[u8], length: usize) -> String {
        let mut output = Output::new(Vec::new());
        for piece in text.chunks(length) {
            output.write_all(piece).unwrap();
        }
        output.flush().unwrap();
        String::from_utf8(output.into_inner()).unwrap()
    }

    #[test]
    fn only_our_own_escape_sequences_pass_in_pieces_of_any_length() {
        let title = "\x1b]0;owned\x07 2 µs\u{9b}31m\u{202e}€😀\r\n";
        let text = format!("{}{title}{}end\n", own("\x1b[1m"), own("\x1b[0m"));
        let expected = "\x1b[1m\\u001b]0;owned\\u0007 2 µs\\u009b31m\\u202e€😀\\u000d\n\x1b[0mend\n";
        for length in 1..text.len() {
            assert_eq!(written(text.as_bytes(), length), expected, "pieces of {length} bytes");
        }
    }

    #[test]
    fn a_guessed_mark_and_bytes_that_are_no_text_do_not_pass() {
        let guess = "\x1b0123456789abcdef";
        let shown = written(format!("{guess}\x1b[2J{guess}.").as_bytes(), 7);
        assert_eq!(shown, "\\u001b0123456789abcdef\\u001b[2J\\u001b0123456789abcdef.");
        // 0x9b is the beginning of a sequence in terminals with eight bits.
        assert_eq!(written(b"\x9b2J", 1), "\u{fffd}2J");
    }
}
