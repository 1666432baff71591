//! Parts of messages: suggestions for unknown names, grouped digits, clipped quotations.

use giveway_qdisc::units::nearest;

/// The help for an unknown name: the nearest known name, or all of them.
pub(crate) fn choices<N: AsRef<str>>(wrong: &str, names: &[N]) -> String {
    match nearest(wrong, names.iter().map(AsRef::as_ref)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => listed(names),
    }
}

/// The help that lists the known names, up to twelve of them.
pub(crate) fn listed<N: AsRef<str>>(names: &[N]) -> String {
    const MAX: usize = 12;
    if names.is_empty() {
        return "there are none".to_owned();
    }
    let listed: Vec<&str> = names.iter().take(MAX).map(AsRef::as_ref).collect();
    let more = if names.len() > MAX { ", ..." } else { "" };
    format!("there are {}{more}", listed.join(", "))
}

/// A number with commas between groups of three digits: 10,000.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Clips a text to 600 characters, the length of a message. Quotations from a file can have any length.
pub(crate) fn clipped(text: String) -> String {
    const MAX: usize = 600;
    let count = text.chars().count();
    if count <= MAX {
        return text;
    }
    let head: String = text.chars().take(MAX / 2).collect();
    let tail: String = text.chars().skip(count - MAX / 2).collect();
    format!("{head} ... {tail}")
}
