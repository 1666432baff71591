//! The lines around a mistake, clipped: what a message shows of a file of any size and with lines of any length.

use std::ops::Range;

use crate::origin::Origin;

/// Lines longer than this many bytes are clipped.
const LONG: usize = 400;
/// How much of a clipped line is shown before the underlined place.
const BEFORE: usize = 60;
/// How much of a clipped line is shown from the beginning of the underlined place.
const AFTER: usize = 120;
/// A place of more lines than this is underlined in its first line only.
const MOST_LINES: usize = 20;
/// Stands for what was clipped.
const ELLIPSIS: char = '…';

/// Some lines of a file or flag, in which a place can be underlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines. Long ones are clipped, with an ellipsis for what is left out.
    pub text: String,
    /// Which bytes of `text` to underline.
    pub span: Range<usize>,
    /// The number of its first line in the file, from 1.
    pub first_line: usize,
}

impl Origin {
    /// The lines of a span, with so many lines before and after them.
    pub fn excerpt(&self, span: &Range<usize>, around: usize) -> Excerpt {
        let (part, span) = self.within(span);
        let (text, lines) = (part.text(), part.line_starts());
        let line_of = |at: usize| lines.partition_point(|start| *start <= at) - 1;
        let first = line_of(span.start);
        let mut last = line_of(span.end.saturating_sub(1).max(span.start));
        if last - first >= MOST_LINES {
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
            excerpt.line(line, marked, lines.get(number + 1).is_some());
        }
        Excerpt { span: excerpt.span.unwrap_or(0..0), text: excerpt.text, first_line }
    }
}

#[derive(Default)]
struct Clipped {
    text: String,
    span: Option<Range<usize>>,
}

impl Clipped {
    fn line(&mut self, line: &str, marked: Option<Range<usize>>, ends: bool) {
        let mark = marked.clone().unwrap_or(0..0);
        let whole = line.len() <= LONG;
        let from = if whole { 0 } else { boundary(line, mark.start.saturating_sub(BEFORE)) };
        let to = if whole { line.len() } else { boundary(line, (mark.start + AFTER).min(line.len())) };
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

/// The last boundary of characters up to a byte.
fn boundary(line: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_whole_and_long_ones_are_clipped_around_the_place() {
        let origin = Origin::new("file", "one\ntwo three\nfour\n");
        let excerpt = origin.excerpt(&(8..13), 1);
        assert_eq!(excerpt.text, "one\ntwo three\nfour\n");
        assert_eq!(&excerpt.text[excerpt.span], "three");
        assert_eq!(excerpt.first_line, 1);

        let long = format!("{}wrong{}", "ä".repeat(40_000), "b".repeat(80_000));
        let origin = Origin::new("file", format!("first\n{long}\n{long}"));
        let at = 6 + 80_000;
        let excerpt = origin.excerpt(&(at..at + 5), 1);
        assert_eq!(&excerpt.text[excerpt.span.clone()], "wrong");
        assert!(excerpt.text.len() < 600, "{}", excerpt.text.len());
        let line = excerpt.text.lines().nth(1).unwrap();
        assert!(line.starts_with("…ä") && line.ends_with("b…"), "{line}");
        // A place as long as the line is clipped with it.
        let excerpt = origin.excerpt(&(6..6 + long.len()), 0);
        assert_eq!(excerpt.span.end, excerpt.text.trim_end_matches(['…', '\n']).len());
    }

    #[test]
    fn a_place_of_many_lines_is_underlined_in_the_first() {
        let origin = Origin::new("file", "word\n".repeat(1000));
        let excerpt = origin.excerpt(&(10..4000), 1);
        assert_eq!(excerpt.text, "word\nword\nword\n");
        assert_eq!(excerpt.first_line, 2);
        assert_eq!(excerpt.span, 5..9);
    }
}
