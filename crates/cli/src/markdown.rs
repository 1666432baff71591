//! Renders Markdown, such as module headers, for the terminal.

pub use giveway_program::help::wrap;

use crate::terminal::bold;

/// Renders headings, paragraphs, lists, tables and code. Paragraphs and lists are wrapped at `width` columns.
pub fn render(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut block = Block::default();
    let mut code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            block.end(&mut out, width);
            code = !code;
        } else if code {
            out.push_str(&format!("    {line}\n"));
        } else if let Some(title) = line.strip_prefix('#') {
            block.end(&mut out, width);
            out.push_str(&format!("{}\n", bold(title.trim_start_matches('#').trim())));
        } else if line.trim().is_empty() {
            block.end(&mut out, width);
            out.push('\n');
        } else if line.starts_with('|') {
            block.end(&mut out, width);
            out.push_str(&format!("{line}\n"));
        } else if let Some(item) = line.strip_prefix("- ") {
            block.end(&mut out, width);
            block = Block { first: "- ", next: "  ", text: item.to_owned() };
        } else {
            block.add(line.trim());
        }
    }
    block.end(&mut out, width);
    out
}

/// The paragraph or list item that is being read.
#[derive(Default)]
struct Block {
    first: &'static str,
    next: &'static str,
    text: String,
}

impl Block {
    fn add(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line);
    }

    fn end(&mut self, out: &mut String, width: usize) {
        let block = std::mem::take(self);
        if !block.text.is_empty() {
            out.push_str(&wrap(&without_links(&block.text), width, block.first, block.next));
        }
    }
}

/// Replaces links by their texts: `[text](target)`, and `[text]` if the text is code.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']').map(|at| open + at) else { break };
        let inner = &rest[open + 1..close];
        let after = &rest[close + 1..];
        let target = after.strip_prefix('(').and_then(|target| target.find(')'));
        match target {
            Some(end) => {
                out.push_str(&rest[..open]);
                out.push_str(inner);
                rest = &after[end + 2..];
            }
            None if inner.starts_with('`') => {
                out.push_str(&rest[..open]);
                out.push_str(inner);
                rest = after;
            }
            None => {
                out.push_str(&rest[..=close]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_rendered_as_text() {
        let header = "First line\nand more of [`it`](crate::it) and [`that`].\n\n# Principles\n- A rule that goes on\n  over lines [1].\n- Another.\n\n```text\na  b\n```\n| x | y |";
        insta::assert_snapshot!(render(header, 24), @r#"
    First line and more of
    `it` and `that`.

    Principles
    - A rule that goes on
      over lines [1].
    - Another.

        a  b
    | x | y |
    "#);
    }
}
