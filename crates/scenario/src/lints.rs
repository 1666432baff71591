//! Lints for every backend: rates in bytes where bits were probably meant.

use giveway_qdisc::Rate;

use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Table;

/// Warns of rates in bytes per second. In the notation of tc, "mbps" is megabytes per second, and most users
/// mean megabits.
pub(crate) fn bytes_for_bits(reading: &mut Reading, root: &Table) {
    let mut rates = Vec::new();
    for entry in root.entries.iter().filter(|entry| !["title", "description"].contains(&entry.key.as_str())) {
        entry.node.visit_texts(&mut |node, text| {
            for word in written_rates(text) {
                let Ok(rate) = word.parse::<Rate>() else { continue };
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                rates.push((node.span.clone(), text.to_owned(), start..start + word.len(), rate));
            }
        });
    }
    for (literal, text, bytes, rate) in rates {
        let span = reading.origin.inside(&literal, &text, &bytes);
        let message = format!("\"{}\" is a rate in bytes per second, as in tc: {rate}", &text[bytes]);
        reading.report(
            Diagnostic::warning(span, message).help("megabits per second are written \"mbit\" or \"Mbit/s\""),
        );
    }
}

/// The parts of a text that can be rates in bytes per second: words like "10mbps", or the whole text, like
/// "10 Mbps".
fn written_rates(text: &str) -> impl Iterator<Item = &str> {
    let whole = text.split_whitespace().count() == 2 && text.starts_with(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = if whole { vec![text] } else { text.split([' ', '(', ')', '[', ']']).collect() };
    words.into_iter().filter(|word| word.to_ascii_lowercase().ends_with("bps"))
}
