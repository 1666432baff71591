//! Text from outside, for a terminal.
//!
//! Titles, names, comments and answers come from files, packets and other programs. With control characters
//! in them an author could move the cursor, set the title of the window, hide text or show it in another
//! order.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with each character that a terminal obeys in the notation of JSON, such as `\u001b`: so a JSON
/// text keeps its meaning. Line feeds and tabs stay.
///
/// ```
/// use giveway_text::harmless;
///
/// assert_eq!(harmless("red: \u{1b}[31m"), r"red: \u001b[31m");
/// assert_eq!(harmless("10 Mbit/s\n"), "10 Mbit/s\n");
/// ```
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => write!(shown, "\\u{:04x}", u32::from(c)).expect("writing to a string does not fail"),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// True for a character that a terminal obeys: control characters of ASCII and of ISO 6429 (C1), and those
/// that change the direction of text (Unicode, annex 9, section 2).
fn is_obeyed(c: char) -> bool {
    let directs = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_character_that_is_left() {
        let all: String = ('\0'..=char::MAX).collect();
        let shown = harmless(&all);
        let left =
            |c: char| c < ' ' || ('\u{7f}'..'\u{a0}').contains(&c) || ('\u{202a}'..'\u{202f}').contains(&c);
        assert_eq!(shown.chars().filter(|c| left(*c)).collect::<String>(), "\t\n");
        assert!(!shown.contains(|c| ('\u{2066}'..'\u{206a}').contains(&c)));
        // C0 without two, DEL, C1, and nine for the direction.
        assert_eq!(shown.matches("\\u").count(), 30 + 1 + 32 + 9);
    }

    #[test]
    fn a_json_text_keeps_its_meaning() {
        let value = serde_json::json!({ "title": "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}txt\r" });
        let shown = harmless(&value.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
