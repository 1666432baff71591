//! Snapshots as OpenMetrics 1.0 text, which Prometheus and its like collect.
//!
//! - One family per quantity, and its unit in its name. Labels say which port: `interface` (where the queue is), `direction`, `handle`
//!   and `kind` (the discipline's name). The spelling of the discipline and the interface at which packets come are in
//!   `giveway_discipline_info`, so that they need not be on every sample.
//! - Counters are those of the port. They never go back but with the program; after a change of discipline they go on with another
//!   `handle` and `kind`. All reasons of drops are there from the start with zero, so that rates can be computed.
//! - Delays are summaries. `giveway_sojourn_seconds` is since the start; `giveway_sojourn_recent_seconds` is of the last second, and has
//!   quantiles only. Quantile 1 is the longest.
//! - Flows are not here: each would make series that never end. The terminal view has them.
//! - Times are written exactly, as decimal fractions of a second.
//!
//! References: OpenMetrics 1.0, sections 4 (data model) and 5 (text format).

use std::fmt::{Display, Write as _};

use giveway_qdisc::{Backlog, Span};

use crate::delays::Quantiles;
use crate::snapshot::{Fragments, Reservations, Snapshot};

/// What an HTTP server says that this is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Snapshots as text: one for each direction. No two of them have the same interface, direction and handle.
pub fn render(snapshots: &[Snapshot]) -> String {
    let mut page = Page { text: String::new(), snapshots, ports: snapshots.iter().map(port).collect() };
    page.info();
    page.gauge("giveway_link_rate_bits_per_second", "bits_per_second", "Shaped rate of the link.", |of| {
        of.rate.as_bit()
    });
    page.gauge("giveway_uptime_seconds", "seconds", "Time since the start.", |of| {
        Decimal(of.uptime.as_nanos() * 1000)
    });
    page.gauge(
        "giveway_plain_forwarding",
        "",
        "1 while packets bypass the discipline, since something went wrong.",
        |of| u8::from(of.plain_forwarding),
    );
    page.counts("arrived", "offered to the port", |of| of.arrived);
    page.counts("sent", "sent", |of| of.sent);
    page.drops();
    page.counts("marked", "marked with congestion experienced", |of| of.marked);
    page.counts("line_lost", "lost on the emulated line, on purpose", |of| of.line_lost);
    page.held();
    page.counter(
        "giveway_ring_dropped_packets",
        "packets",
        "Frames for which the kernel's ring had no room.",
        |of| of.ring_drops,
    );
    page.counter("giveway_stalls", "", "Times that the port was found stuck.", |of| of.stalls);
    page.fragments();
    let waits = "that packets waited in the queue";
    let late = "by which packets were sent later than the shaper said";
    page.summary("giveway_sojourn_seconds", &format!("Time {waits}, since the start."), true, |of| {
        &of.sojourn
    });
    page.summary(
        "giveway_sojourn_recent_seconds",
        &format!("Time {waits}, in the last second."),
        false,
        |of| &of.recent.sojourn,
    );
    page.summary("giveway_lateness_seconds", &format!("Time {late}, since the start."), true, |of| {
        &of.lateness
    });
    page.summary(
        "giveway_lateness_recent_seconds",
        &format!("Time {late}, in the last second."),
        false,
        |of| &of.recent.lateness,
    );
    page.gauges();
    page.reservations();
    page.text.push_str("# EOF\n");
    page.text
}

struct Page<'a> {
    text: String,
    snapshots: &'a [Snapshot],
    /// The labels of each.
    ports: Vec<String>,
}

impl Page<'_> {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        self.line(format_args!("# TYPE {name} {kind}"));
        if !unit.is_empty() {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {}", escaped(help)));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a text takes everything");
    }

    fn sample(&mut self, name: &str, port: usize, more: &str, value: impl Display) {
        let labels = &self.ports[port];
        writeln!(self.text, "{name}{{{labels}{more}}} {value}").expect("a text takes everything");
    }

    fn info(&mut self) {
        self.family(
            "giveway_discipline",
            "info",
            "",
            "The discipline of a port, and where its packets come from.",
        );
        for (port, of) in self.snapshots.iter().enumerate() {
            let more = format!(",from=\"{}\",spelling=\"{}\"", escaped(&of.from), escaped(&of.spelling));
            self.sample("giveway_discipline_info", port, &more, 1);
        }
    }

    fn gauge<V: Display>(&mut self, name: &str, unit: &str, help: &str, value: impl Fn(&Snapshot) -> V) {
        self.family(name, "gauge", unit, help);
        for (port, of) in self.snapshots.iter().enumerate() {
            self.sample(name, port, "", value(of));
        }
    }

    fn counter(&mut self, name: &str, unit: &str, help: &str, value: impl Fn(&Snapshot) -> u64) {
        self.family(name, "counter", unit, help);
        for (port, of) in self.snapshots.iter().enumerate() {
            self.sample(&format!("{name}_total"), port, "", value(of));
        }
    }

    /// Packets and bytes.
    fn counts(&mut self, what: &str, said: &str, value: impl Fn(&Snapshot) -> Backlog) {
        self.counter(&format!("giveway_{what}_packets"), "packets", &format!("Packets {said}."), |of| {
            value(of).packets
        });
        self.counter(&format!("giveway_{what}_bytes"), "bytes", &format!("Bytes {said}, IP length."), |of| {
            value(of).bytes
        });
    }

    fn drops(&mut self) {
        self.drops_in("packets", "Packets dropped.", |count| count.packets);
        self.drops_in("bytes", "Bytes dropped, IP length.", |count| count.bytes);
    }

    fn drops_in(&mut self, unit: &str, help: &str, number: impl Fn(Backlog) -> u64) {
        let name = format!("giveway_dropped_{unit}");
        self.family(&name, "counter", unit, help);
        for (port, of) in self.snapshots.iter().enumerate() {
            for (why, count) in of.dropped.iter() {
                let more = format!(",reason=\"{}\"", why.name());
                self.sample(&format!("{name}_total"), port, &more, number(count));
            }
        }
    }

    /// Only where frames are cut or joined.
    fn fragments(&mut self) {
        let told: Vec<(usize, &Fragments)> = self
            .snapshots
            .iter()
            .enumerate()
            .filter_map(|(port, of)| Some((port, of.fragments.as_ref()?)))
            .collect();
        if told.is_empty() {
            return;
        }
        type Value = fn(&Fragments) -> u64;
        let families: [(&str, &str, Value); 6] = [
            ("giveway_cut_frames", "Frames that were cut into fragments.", |of| of.cut),
            ("giveway_cut_fragments", "Fragments that frames were cut into.", |of| of.pieces),
            ("giveway_spared_fragments", "Fragments left out, as one of their frame was dropped.", |of| {
                of.spared
            }),
            ("giveway_uncut_frames", "Frames longer than a fragment that passed whole.", |of| of.whole),
            ("giveway_joined_fragments", "Fragments that became part of frames.", |of| of.joined),
            ("giveway_joined_frames", "Frames put together from fragments.", |of| of.frames),
        ];
        for (name, help, value) in families {
            let (_, unit) = name.rsplit_once('_').expect("a unit ends each name");
            self.family(name, "counter", unit, help);
            for (port, of) in &told {
                self.sample(&format!("{name}_total"), *port, "", value(of));
            }
        }
        let name = "giveway_lost_fragments";
        self.family(name, "counter", "fragments", "Fragments that became no part of a frame.");
        for (port, of) in &told {
            for (why, lost) in &of.lost {
                self.sample(&format!("{name}_total"), *port, &format!(",reason=\"{}\"", escaped(why)), *lost);
            }
        }
    }

    fn held(&mut self) {
        self.gauge("giveway_held_packets", "packets", "Packets in the queue.", |of| of.held.packets);
        self.gauge("giveway_held_bytes", "bytes", "Bytes in the queue, IP length.", |of| of.held.bytes);
    }

    fn summary(&mut self, name: &str, help: &str, whole: bool, of: impl Fn(&Snapshot) -> &Quantiles) {
        self.family(name, "summary", "seconds", help);
        for (port, snapshot) in self.snapshots.iter().enumerate() {
            let quantiles = of(snapshot);
            // Without a packet there is no quantile.
            if quantiles.count > 0 {
                for (share, span) in quantiles.shares() {
                    self.sample(name, port, &format!(",quantile=\"{share}\""), Decimal::of(span));
                }
            }
            // Counts and sums may not go back, so they are there only since the start.
            if whole {
                self.sample(&format!("{name}_count"), port, "", quantiles.count);
                self.sample(&format!("{name}_sum"), port, "", Decimal(quantiles.sum_ps));
            }
        }
    }

    /// Only where some direction keeps them.
    fn reservations(&mut self) {
        let snapshots = self.snapshots;
        let kept =
            || snapshots.iter().enumerate().filter_map(|(port, of)| Some((port, of.reservations.as_ref()?)));
        if kept().next().is_none() {
            return;
        }
        type Number = fn(&Reservations) -> u64;
        let numbers: [(&str, &str, &str, Number); 3] = [
            ("giveway_reservable_bits_per_second", "bits_per_second", "What may be reserved.", |of| {
                of.capacity.as_bit()
            }),
            ("giveway_reserved_bits_per_second", "bits_per_second", "What is reserved now.", |of| {
                of.reserved.as_bit()
            }),
            ("giveway_reservations", "", "Flows that have a reservation, now or later.", |of| of.flows),
        ];
        for (name, unit, help, value) in numbers {
            self.family(name, "gauge", unit, help);
            for (port, of) in kept() {
                self.sample(name, port, "", value(of));
            }
        }
        let name = "giveway_reservation_messages";
        self.family(
            name,
            "counter",
            "",
            "Control packets and what became of them, and reservations that went.",
        );
        for (port, of) in kept() {
            for (outcome, count) in &of.messages {
                let more = format!(",outcome=\"{}\"", escaped(outcome));
                self.sample(&format!("{name}_total"), port, &more, count);
            }
        }
    }

    /// Inner state of disciplines: each has other names, so that the name is a label.
    fn gauges(&mut self) {
        self.family("giveway_gauge", "gauge", "", "Inner state of the discipline, by name.");
        for (port, of) in self.snapshots.iter().enumerate() {
            for (name, value) in &of.gauges {
                self.sample("giveway_gauge", port, &format!(",name=\"{}\"", escaped(name)), Float(*value));
            }
        }
    }
}

/// The labels of a port.
fn port(of: &Snapshot) -> String {
    format!(
        "interface=\"{}\",direction=\"{}\",handle=\"{}\",kind=\"{}\"",
        escaped(&of.to),
        of.direction.name(),
        escaped(&of.handle),
        escaped(&of.kind)
    )
}

/// What may not stand in a quoted text, section 5.1: backslash, line feed, quote.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

/// Picoseconds, written in seconds, exactly.
struct Decimal(u128);

impl Decimal {
    fn of(span: Span) -> Decimal {
        Decimal(span.as_ps().into())
    }
}

impl Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SECOND: u128 = 1_000_000_000_000;
        let (whole, part) = (self.0 / SECOND, self.0 % SECOND);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let part = format!("{part:012}");
        write!(f, "{whole}.{}", part.trim_end_matches('0'))
    }
}

/// A number that may be none or without bounds, section 5.1.
struct Float(f64);

impl Display for Float {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            value if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => write!(f, "{value}"),
        }
    }
}
