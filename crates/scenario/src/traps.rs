//! What is legal on every host but hardly meant: bytes for bits.

use giveway_qdisc::Rate;

use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Table;

/// tc's "mbps" are megabytes per second; who writes it usually means megabits.
pub(crate) fn bytes_for_bits(reading: &mut Reading, root: &Table) {
    let mut told = Vec::new();
    for entry in root.entries.iter().filter(|entry| !["title", "description"].contains(&entry.key.as_str())) {
        entry.node.visit_texts(&mut |node, text| {
            for word in spelled_rates(text) {
                let Ok(rate) = word.parse::<Rate>() else { continue };
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                told.push((node.span.clone(), text.to_owned(), start..start + word.len(), rate));
            }
        });
    }
    for (literal, text, bytes, rate) in told {
        let span = reading.origin.inside(&literal, &text, &bytes);
        let message = format!("\"{}\" are bytes per second, as in tc: {rate}", &text[bytes]);
        reading.tell(
            Diagnostic::warning(span, message).help("megabits per second are written \"mbit\" or \"Mbit/s\""),
        );
    }
}

/// Words like "10mbps", and whole texts like "10 Mbps".
fn spelled_rates(text: &str) -> impl Iterator<Item = &str> {
    let whole = text.split_whitespace().count() == 2 && text.starts_with(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = if whole { vec![text] } else { text.split([' ', '(', ')', '[', ']']).collect() };
    words.into_iter().filter(|word| word.to_ascii_lowercase().ends_with("bps"))
}
