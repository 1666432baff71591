//! Excerpts for messages: the lines around a mistake. Long lines are clipped, so an excerpt is short even if
//! the file is not.

use std::ops::Range;

use crate::origin::Origin;

/// Lines longer than this many bytes are clipped.
const LONG: usize = 400;
/// Maximum number of bytes of a clipped line before the underlined place.
const BEFORE: usize = 60;
/// Maximum number of bytes of a clipped line from the beginning of the underlined place.
const AFTER: usize = 120;
/// Maximum number of lines of an underlined place. Of a longer one only the first line is underlined.
const MAX_LINES: usize = 20;
/// The mark at a clipped end of a line.
const ELLIPSIS: char = '…';

/// The lines of a place in a file or flag, with the bytes to underline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines. Long ones are clipped, with an ellipsis at each clipped end. The text of a flag
    /// follows its name: `--set link.0.rate=5mbit`.
    pub text: String,
    /// The bytes of `text` to underline.
    pub span: Range<usize>,
    /// The number of the first line in the file, from 1.
    pub first_line: usize,
}

impl Origin {
    /// The lines of a span, with up to `around` lines before and after them.
    pub fn excerpt(&self, span: &Range<usize>, around: usize) -> Excerpt {
        let (part, span) = self.within(span);
        let (text, lines) = (part.text(), part.line_starts());
        let line_of = |at: usize| lines.partition_point(|start| *start <= at) - 1;
        let first = line_of(span.start);
        let mut last = line_of(span.end.saturating_sub(1).max(span.start));
        if last - first >= MAX_LINES {
            last = first;
        }
        let shown = first.saturating_sub(around)..(last + around + 1).min(lines.len());
        let first_line = shown.start + 1;
        let mut excerpt = Clipped::default();
        for number in shown {
            let end = lines.get(number + 1).map_or(text.len(), |next| next - 1);
            let line = &text[lines[number]..end];
            let marked = (first..=last).contains(&number).then(|| {
                let within = |at: usize| at.clamp(lines[number], end) - lines[number];
                within(span.start)..within(span.end)
            });
            let prefix = if number == 0 { part.prefix() } else { String::new() };
            excerpt.line(&prefix, line, marked, lines.get(number + 1).is_some());
        }
        Excerpt { span: excerpt.span.unwrap_or(0..0), text: excerpt.text, first_line }
    }
}

/// An excerpt while it is built.
#[derive(Default)]
struct Clipped {
    /// The lines so far.
    text: String,
    /// The bytes of `text` to underline; `None` before the first of them.
    span: Option<Range<usize>>,
}

impl Clipped {
    /// Adds a line after a prefix, which is never clipped. `marked` are the bytes of the line to underline.
    /// `ends` is true if a line feed follows.
    fn line(&mut self, prefix: &str, line: &str, marked: Option<Range<usize>>, ends: bool) {
        let mark = marked.clone().unwrap_or(0..0);
        let whole = line.len() <= LONG;
        let from = if whole { 0 } else { boundary(line, mark.start.saturating_sub(BEFORE)) };
        let to = if whole { line.len() } else { boundary(line, (mark.start + AFTER).min(line.len())) };
        self.text.push_str(prefix);
        self.text.extend((from > 0).then_some(ELLIPSIS));
        let start = self.text.len();
        self.text.push_str(&line[from..to]);
        if marked.is_some() {
            let end = start + (mark.end.min(to) - from);
            let begin = start + (mark.start - from);
            self.span = Some(self.span.as_ref().map_or(begin, |span| span.start)..end.max(begin));
        }
        self.text.extend((to < line.len()).then_some(ELLIPSIS));
        self.text.extend(ends.then_some('\n'));
    }
}

/// The last boundary between characters at or before a byte.
fn boundary(line: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}
