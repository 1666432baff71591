//! Snapshots as the closing summary of a bridge. Counters that are zero are left out, except arrived, sent
//! and dropped.

use std::fmt::Write as _;

use giveway_qdisc::{Backlog, Span};

use crate::snapshot::{OpenShare, Reservations, Snapshot};
use crate::status::{Fragments, Status};

/// The summary, a few lines for each snapshot.
pub fn render(snapshots: &[Snapshot]) -> String {
    snapshots.iter().map(direction).collect()
}

fn direction(of: &Snapshot) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} to {}, {:.1} s", of.from, of.to, of.status.uptime.as_s());
    for (name, value) in rows(of) {
        let _ = writeln!(text, "  {name:<10} {value}");
    }
    text
}

/// Names and values, in the order of output.
fn rows(of: &Snapshot) -> Vec<(&'static str, String)> {
    let Status { counters, backlog, fragments, .. } = &of.status;
    let mut rows = vec![
        ("arrived", amount(counters.arrived)),
        ("sent", amount(counters.sent)),
        ("dropped", format!("{}{}", amount(counters.dropped), reasons(&of.status))),
    ];
    if counters.marked > 0 {
        rows.push(("marked", counters.marked.to_string()));
    }
    if backlog.packets > 0 {
        rows.push(("backlog", amount(*backlog)));
    }
    for (name, quantiles) in [("sojourn", &of.status.sojourn[0]), ("lateness", &of.status.lateness[0])] {
        if quantiles.count > 0 {
            let [p50, _, p99, p999, max] = quantiles.shares().map(|(_, span)| short(span));
            rows.push((name, format!("half at most {p50}, 99 % {p99}, 99.9 % {p999}, the longest {max}")));
        }
    }
    let losses = of.status.losses.named().into_iter().filter(|(_, count)| *count > 0);
    rows.extend(losses.map(|(name, count)| ("lost", format!("{count} {name}"))));
    let Fragments { cut, pieces, whole, joined, .. } = fragments;
    if *cut > 0 || *whole > 0 {
        let passed = if *whole > 0 { format!("; {whole} passed whole") } else { String::new() };
        rows.push(("cut", format!("{cut} frames into {pieces} fragments{passed}")));
    }
    if joined.fragments > 0 {
        let lost = joined.lost().filter(|(_, lost)| *lost > 0);
        let lost: String = lost.map(|(why, lost)| format!(", {lost} {}", why.name())).collect();
        rows.push(("joined", format!("{} fragments to {} frames{lost}", joined.joined, joined.packets)));
    }
    if of.status.stalls > 0 {
        let Status { stalls, stalled, .. } = &of.status;
        let stalled = short(*stalled);
        rows.push(("stalls", format!("{stalls}, with {stalled} of transmission time lost")));
    }
    rows.extend(of.reservations.as_ref().and_then(reservations).map(|text| ("reserved", text)));
    if let Some(why) = &of.status.plain {
        let frames = of.status.plain_frames;
        rows.push(("plain", format!("{frames} frames after the direction failed: {why}")));
    }
    rows
}

fn amount(of: Backlog) -> String {
    format!("{} packets, {} bytes", of.packets, of.bytes)
}

/// Reasons of drops, in parentheses; empty if nothing was dropped.
fn reasons(status: &Status) -> String {
    let reasons = status.dropped.iter().filter(|(_, lost)| lost.packets > 0);
    let reasons: Vec<String> =
        reasons.map(|(why, lost)| format!("{} {}", why.name(), lost.packets)).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) }
}

/// Reservations in one line; `None` if there was no control packet.
fn reservations(of: &Reservations) -> Option<String> {
    let malformed = of.malformed.iter().map(|(_, count)| count).sum();
    // Ends of unknown reservations, and answers that only pass, do not matter to an operator.
    let shown =
        |name: &str| ["granted", "refused", "ended", "expired", "revoked", "overflow"].contains(&name);
    let outcomes = of.messages.iter().copied().filter(|(name, _)| shown(name));
    let counts: Vec<String> = outcomes
        .chain([("malformed or forged", malformed)])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let OpenShare { capacity, reserved, flows, owners } = of.open;
    // Many addresses that hold all of it may be one machine.
    let open = match flows {
        0 => String::new(),
        _ => format!("; without a key: {reserved} of {capacity}, {flows} reservations of {owners} addresses"),
    };
    (!counts.is_empty())
        .then(|| format!("{}; {} of {} at the end{open}", counts.join(", "), of.reserved, of.capacity))
}

/// Formats a time with three digits.
fn short(span: Span) -> String {
    let (value, unit) = match span.as_s() {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}
