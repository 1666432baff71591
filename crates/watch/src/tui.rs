//! Snapshots as lines for a terminal: utilisation of the link, backlog, drops by reason, sojourn times and
//! the largest flows.
//!
//! [`screen`] is a function of snapshots and a size: it returns at most `height` lines of at most `width`
//! columns, without escape codes, so that they can also be logged. The caller draws them. Each direction gets
//! its share of the height; lines that do not fit are left out from the bottom, flows first.
//!
//! Numbers have three or four digits and a unit, for reading at a glance; the metrics have exact ones.

use giveway_qdisc::{Backlog, Span};

use crate::delays::Quantiles;
use crate::snapshot::Snapshot;
use crate::status::tuple_text;

/// Style of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True for plain ASCII: `->`, `us`, `#`.
    pub ascii: bool,
}

/// Maximum number of classes shown per discipline.
const MAX_CLASSES: usize = 8;

/// Formats snapshots for a terminal of `width` columns and `height` lines.
pub fn screen(snapshots: &[Snapshot], width: usize, height: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, of) in snapshots.iter().enumerate() {
        // The height that is left is shared among the directions that are left. An empty line separates two.
        let share = (height - lines.len().min(height)) / (snapshots.len() - at);
        let between = usize::from(at + 1 < snapshots.len());
        let mut own = direction(of, width, style);
        own.truncate(share.saturating_sub(between));
        lines.append(&mut own);
        if between > 0 && share > 0 {
            lines.push(String::new());
        }
    }
    lines.truncate(height);
    lines.iter().map(|line| fitted(line, width, style)).collect()
}

/// Lines of one direction, the most important first.
fn direction(of: &Snapshot, width: usize, style: Style) -> Vec<String> {
    let arrow = if style.ascii { "->" } else { "→" };
    let mut lines = vec![format!(
        "{} {arrow} {}   {}   {}   up {}",
        of.from,
        of.to,
        of.spec,
        rate(of.status.rate.as_bit()),
        uptime(of.status.uptime)
    )];
    if of.status.plain.is_some() {
        lines.push(
            "PLAIN FORWARDING: frames bypass the discipline because the direction has failed".to_owned(),
        );
    }
    lines.push(link(of, width, style));
    lines.push(format!("backlog   {}", amount(of.status.backlog)));
    lines.push(format!("drops     {}", drops(of)));
    for (name, [all, last]) in [("sojourn", &of.status.sojourn), ("lateness", &of.status.lateness)] {
        lines.push(quantiles(name, "1 s", last, width, style));
        lines.push(quantiles("", "all", all, width, style));
    }
    let (arrived, sent) = (of.status.counters.arrived, of.status.counters.sent);
    lines.push(format!("passed    arrived {}   sent {}", amount(arrived), amount(sent)));
    if !of.status.gauges.is_empty() {
        let gauges: Vec<String> =
            of.status.gauges.iter().map(|(name, value)| format!("{name} {}", digits(*value))).collect();
        lines.push(format!("gauges    {}", gauges.join("   ")));
    }
    lines.extend(of.status.classes.iter().take(MAX_CLASSES).enumerate().map(|(at, class)| {
        let head = if at == 0 { "classes" } else { "" };
        format!(
            "{head:<10}{}   sent {}   drops {}   backlog {}",
            class.path,
            amount(class.sent),
            class.dropped.packets,
            amount(class.backlog)
        )
    }));
    for (at, flow) in of.status.top.iter().enumerate() {
        let head = if at == 0 { "flows" } else { "" };
        let Backlog { packets, bytes } = flow.arrived;
        let text = flow.tuple.as_ref().map_or_else(|| "not IP".to_owned(), tuple_text);
        lines.push(format!(
            "{head:9} {:>11} {:>8} p/s  {text}",
            rate(bytes.saturating_mul(8)),
            count(packets)
        ));
    }
    lines
}

/// The line with the utilisation of the link in the last second, with a bar.
fn link(of: &Snapshot, width: usize, style: Style) -> String {
    let Backlog { packets, bytes } = of.status.last_second;
    let bits = u128::from(bytes) * 8;
    let whole = u128::from(of.status.rate.as_bit());
    let share = (bits * 1000).checked_div(whole).unwrap_or(0);
    let cells = width.saturating_sub(52).clamp(10, 40);
    // Rounded down, but any traffic shows at least one cell. More than the rate is shown as a full bar.
    let full = (bits * cells as u128).checked_div(whole).map_or(0, |full| full.min(cells as u128) as usize);
    let full = if bits > 0 { full.max(1) } else { full };
    let (on, off) = if style.ascii { ("#", ".") } else { ("█", "░") };
    format!(
        "link      {}{} {:>3}.{} %  {:>11}  {:>8} p/s",
        on.repeat(full),
        off.repeat(cells - full),
        share / 10,
        share % 10,
        rate(bytes.saturating_mul(8)),
        count(packets)
    )
}

fn quantiles(name: &str, window: &str, of: &Quantiles, width: usize, style: Style) -> String {
    let head = format!("{name:8}{window:>4}");
    if of.count == 0 {
        return format!("{head}  no packets");
    }
    let one = |name: &str, span| format!("  {name} {:>8}", time(span, style));
    let Quantiles { p50, p90, p99, p999, max, .. } = *of;
    let all = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
    // A narrow terminal has room for three of the five.
    let shown = all.iter().filter(|(name, _)| width >= 84 || !["p90", "p99.9"].contains(name));
    head + &shown.map(|(name, span)| one(name, *span)).collect::<String>()
}

fn drops(of: &Snapshot) -> String {
    let mut parts: Vec<String> = of
        .status
        .dropped
        .iter()
        .filter(|(_, some)| some.packets > 0)
        .map(|(why, some)| format!("{} {}", why.name(), count(some.packets)))
        .collect();
    if parts.is_empty() {
        parts.push("none".to_owned());
    }
    parts.push(format!("marked {}", count(of.status.counters.marked)));
    let others = of.status.losses.named().into_iter().chain([("stalls", of.status.stalls)]);
    let others = others.filter(|(_, some)| *some > 0);
    parts.extend(others.map(|(name, some)| format!("{name} {}", count(some))));
    parts.join("   ")
}

fn amount(of: Backlog) -> String {
    format!(
        "{} packets, {}",
        count(of.packets),
        scaled(of.bytes.into(), &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
    )
}

/// Formats a count: exact with separators ("1,234,567") below ten million, and with a prefix from there.
fn count(number: u64) -> String {
    if number >= 10_000_000 {
        return scaled(number.into(), &["", "k", "M", "G", "T", "P", "E"]);
    }
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|some| std::str::from_utf8(some).expect("digits")).collect();
    groups.join(",")
}

fn rate(bits: u64) -> String {
    scaled(bits.into(), &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s"])
}

fn time(span: Span, style: Style) -> String {
    let units = ["ps", "ns", if style.ascii { "us" } else { "µs" }, "ms", "s"];
    scaled(span.as_ps().into(), &units)
}

/// Formats three digits, truncated, with the unit that fits. Units are a factor of 1,000 apart; the last one
/// takes all larger numbers.
fn scaled(number: u128, units: &[&str]) -> String {
    let mut one = 1;
    let mut at = 0;
    while number / one >= 1000 && at + 1 < units.len() {
        (one, at) = (one * 1000, at + 1);
    }
    let whole = number / one;
    let places = if at == 0 { 0 } else { 3usize.saturating_sub(whole.to_string().len()) };
    let part = number % one * 1000 / one;
    let part = &format!("{part:03}")[..places];
    let point = if places > 0 { "." } else { "" };
    let space = if units[at].is_empty() { "" } else { " " };
    format!("{whole}{point}{part}{space}{}", units[at])
}

/// Formats a gauge, whose magnitude is not known, with four digits.
fn digits(value: f64) -> String {
    match value {
        value if !value.is_finite() => value.to_string(),
        value if value == value.trunc() && value.abs() < 1e15 => format!("{value}"),
        value if value.abs() >= 1000.0 => format!("{value:.0}"),
        value if value.abs() >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

fn uptime(since: Span) -> String {
    let s = since.as_ps() / Span::s(1).as_ps();
    let clock = format!("{:02}:{:02}:{:02}", s / 3600 % 24, s / 60 % 60, s % 60);
    match s / 86_400 {
        0 => clock,
        days => format!("{days} d {clock}"),
    }
}

/// Cuts a line to the width of the terminal.
fn fitted(line: &str, width: usize, style: Style) -> String {
    // Interfaces and disciplines may have any name: control characters must not move the cursor.
    let line: String = line.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if line.chars().count() <= width {
        return line;
    }
    let end = if style.ascii { '~' } else { '…' };
    line.chars().take(width.saturating_sub(1)).chain((width > 0).then_some(end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Rate;

    #[test]
    fn numbers_are_short() {
        for (bits, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (1000, "1.00 kbit/s"),
            (99_999, "99.9 kbit/s"),
            (100_000_000, "100 Mbit/s"),
            (u64::MAX, "18.4 Ebit/s"),
        ] {
            assert_eq!(rate(bits), text);
        }
        let counts = [0, 999, 1000, 1_234_567, 10_000_000, 12_345_678].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567", "10.0 M", "12.3 M"]);
        let style = Style { ascii: true };
        assert_eq!(time(Span::us(1234), style), "1.23 ms");
        assert_eq!([time(Span::ZERO, style), time(Span::s(2000), style)], ["0 ps", "2000 s"]);
        assert_eq!(time(Span::us(12), Style::default()), "12.0 µs");
        assert_eq!(uptime(Span::s(59)), "00:00:59");
        assert_eq!(uptime(Span::s(40 * 86_400 + 3_661)), "40 d 01:01:01");
        assert_eq!([0.5, 3.0, 1234.5, 1.239, f64::NAN].map(digits), ["0.5000", "3", "1234", "1.24", "NaN"]);
    }

    #[test]
    fn the_bar_shows_the_utilisation() {
        let of = |rate, bytes| {
            let mut of = Snapshot::default();
            (of.status.rate, of.status.last_second) = (Rate::bit(rate), Backlog { packets: 1, bytes });
            let line = link(&of, 62, Style { ascii: true });
            line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(1000, 0), ".......... 0.0");
        assert_eq!(of(1000, 1), "#......... 0.8", "any traffic is visible");
        assert_eq!(of(8000, 500), "#####..... 50.0");
        assert_eq!(of(8000, 1010), "########## 101.0", "the bar is full");
        assert_eq!(of(0, 10), "#......... 0.0", "without a rate the share is zero");
        assert!(of(1, u64::MAX).starts_with("########## "));
    }
}
