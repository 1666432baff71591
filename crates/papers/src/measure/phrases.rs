//! Parts of sentences. Several measures share them.

use giveway_qdisc::Span;

/// The name of a source in a sentence.
pub(super) fn called(source: &str) -> &str {
    match source.strip_suffix('*') {
        Some("") => "all traffic",
        Some(beginning) => beginning.trim_end_matches(['-', '_', '.']),
        None => source,
    }
}

/// A gauge in words: its name without the unit.
pub(crate) fn gauge_words(name: &str) -> String {
    let bare = ["_bps", "_s", "_bytes", "_packets"].iter().find_map(|unit| name.strip_suffix(unit));
    bare.unwrap_or(name).replace('_', " ")
}

/// " of udp" for a source, and nothing for all traffic.
pub(super) fn of(source: Option<&str>) -> String {
    source.map_or_else(String::new, |source| format!(" of {}", called(source)))
}

/// ", in means over 1 s" for a window, and nothing for samples.
pub(super) fn over(window: Option<Span>) -> String {
    window.map_or_else(String::new, |window| format!(", in means over {window}"))
}

/// "web up to 7 segments": the transfers of a source, or all, of these sizes.
pub(super) fn sizes_of(source: Option<&str>, from: u64, to: Option<u64>) -> String {
    let whose = source.map_or("transfers", called);
    match (from, to) {
        (0, None) if source.is_none() => "all transfers".to_owned(),
        (0, None) => whose.to_owned(),
        (0, Some(to)) => format!("{whose} up to {to} segments"),
        (from, None) => format!("{whose} from {from} segments"),
        (from, Some(to)) => format!("{whose} of {from} to {to} segments"),
    }
}
