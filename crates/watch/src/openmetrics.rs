//! Snapshots as OpenMetrics 1.0 text, the format of Prometheus.
//!
//! - One family for each quantity, with its unit in its name. Labels identify the port: `interface` (the
//!   outgoing one), `direction`, `handle` and `kind` (the name of the discipline). The spec of the discipline
//!   and the incoming interface are labels of `giveway_discipline_info` only, so that not every sample
//!   repeats them.
//! - Counters come from the port. They decrease only when the program restarts; after a change of discipline
//!   they continue with another `handle` and `kind`. Every reason of drops has a sample from the start, so
//!   that rates can be computed.
//! - Delays are summaries. `giveway_sojourn_seconds` counts since the start; `giveway_sojourn_recent_seconds`
//!   is the last second and has quantiles only. Quantile 1 is the maximum.
//! - There are no series of flows, because their number has no bound. The terminal view shows the largest
//!   flows.
//! - Times are exact decimal fractions of a second.
//!
//! References: OpenMetrics 1.0, sections 4 (data model) and 5 (text format).

use std::fmt::{Display, Write as _};

use giveway_qdisc::{Backlog, ClassState, Span};

use crate::delays::Quantiles;
use crate::snapshot::{Reservations, Snapshot};
use crate::status::Fragments;

/// Media type of the text, for HTTP servers.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Formats snapshots. No two of them may have the same interface, direction and handle.
pub fn render(snapshots: &[Snapshot]) -> String {
    let mut page = Page { text: String::new(), snapshots, ports: snapshots.iter().map(port).collect() };
    page.info();
    page.gauge("giveway_link_rate_bits_per_second", "bits_per_second", "Shaped rate of the link.", |of| {
        of.status.rate.as_bit()
    });
    page.gauge("giveway_uptime_seconds", "seconds", "Time since the start.", |of| {
        Decimal::of(of.status.uptime)
    });
    page.gauge(
        "giveway_plain_forwarding",
        "",
        "1 while frames bypass the discipline because the direction has failed.",
        |of| u8::from(of.status.plain.is_some()),
    );
    page.counts("arrived", "offered to the port", |of| of.status.counters.arrived);
    page.counts("sent", "sent", |of| of.status.counters.sent);
    page.drops();
    page.packets("marked", "Packets marked with congestion experienced.", |of| of.status.counters.marked);
    page.packets("link_emulation_lost", "Packets lost by the link emulation, as configured.", |of| {
        of.status.losses.emulated
    });
    page.backlog();
    page.packets("ring_dropped", "Frames that the kernel dropped because the receive ring was full.", |of| {
        of.status.losses.ring
    });
    page.counter(
        "giveway_stalls",
        "",
        "Times that the thread was so late that transmission time of the link was lost.",
        |of| of.status.stalls,
    );
    page.fragments();
    page.delays("sojourn", "Sojourn time in the queue", |of| &of.status.sojourn);
    page.delays("lateness", "Delay between due and actual transmission", |of| &of.status.lateness);
    page.gauges();
    page.classes();
    page.reservations();
    page.text.push_str("# EOF\n");
    page.text
}

struct Page<'a> {
    text: String,
    snapshots: &'a [Snapshot],
    /// Labels of each snapshot.
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
        writeln!(self.text, "{line}").expect("writing to a String cannot fail");
    }

    fn sample(&mut self, name: &str, port: usize, more: &str, value: impl Display) {
        let labels = &self.ports[port];
        writeln!(self.text, "{name}{{{labels}{more}}} {value}").expect("writing to a String cannot fail");
    }

    fn info(&mut self) {
        self.family(
            "giveway_discipline",
            "info",
            "",
            "The discipline of a port, and the interface that its packets come from.",
        );
        for (port, of) in self.snapshots.iter().enumerate() {
            let more = format!(",from=\"{}\",spec=\"{}\"", escaped(&of.from), escaped(&of.spec));
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

    /// A counter of packets.
    fn packets(&mut self, what: &str, help: &str, value: impl Fn(&Snapshot) -> u64) {
        self.counter(&format!("giveway_{what}_packets"), "packets", help, value);
    }

    /// A counter of packets and one of bytes.
    fn counts(&mut self, what: &str, participle: &str, value: impl Fn(&Snapshot) -> Backlog) {
        self.packets(what, &format!("Packets {participle}."), |of| value(of).packets);
        let help = format!("Bytes {participle}, IP length.");
        self.counter(&format!("giveway_{what}_bytes"), "bytes", &help, |of| value(of).bytes);
    }

    fn drops(&mut self) {
        self.drops_in("packets", "Packets dropped.", |count| count.packets);
        self.drops_in("bytes", "Bytes dropped, IP length.", |count| count.bytes);
    }

    fn drops_in(&mut self, unit: &str, help: &str, number: impl Fn(Backlog) -> u64) {
        let name = format!("giveway_dropped_{unit}");
        self.family(&name, "counter", unit, help);
        for (port, of) in self.snapshots.iter().enumerate() {
            for (why, count) in of.status.dropped.iter() {
                let more = format!(",reason=\"{}\"", why.name());
                self.sample(&format!("{name}_total"), port, &more, number(count));
            }
        }
    }

    /// Only directions that cut or join frames, or did.
    fn fragments(&mut self) {
        let snapshots = self.snapshots;
        let used: Vec<(usize, &Fragments)> = snapshots
            .iter()
            .map(|of| &of.status.fragments)
            .enumerate()
            .filter(|(_, fragments)| fragments.is_used())
            .collect();
        if used.is_empty() {
            return;
        }
        type Value = fn(&Fragments) -> u64;
        let families: [(&str, &str, Value); 6] = [
            ("giveway_cut_frames", "Frames that were cut into fragments.", |of| of.cut),
            ("giveway_cut_fragments", "Fragments that frames were cut into.", |of| of.pieces),
            (
                "giveway_spared_fragments",
                "Fragments that were not queued because another one of their frame was dropped.",
                |of| of.spared,
            ),
            ("giveway_whole_frames", "Frames longer than a fragment that passed whole.", |of| of.whole),
            ("giveway_joined_fragments", "Fragments that became part of frames.", |of| of.joined.joined),
            ("giveway_joined_frames", "Frames that were joined from fragments.", |of| of.joined.packets),
        ];
        for (name, help, value) in families {
            let (_, unit) = name.rsplit_once('_').expect("each name ends with a unit");
            self.family(name, "counter", unit, help);
            for (port, of) in &used {
                self.sample(&format!("{name}_total"), *port, "", value(of));
            }
        }
        let name = "giveway_lost_fragments";
        self.family(name, "counter", "fragments", "Fragments that did not become part of a frame.");
        for (port, of) in &used {
            for (why, lost) in of.joined.lost() {
                self.sample(&format!("{name}_total"), *port, &format!(",reason=\"{}\"", why.name()), lost);
            }
        }
    }

    fn backlog(&mut self) {
        self.gauge("giveway_backlog_packets", "packets", "Packets in the queue.", |of| {
            of.status.backlog.packets
        });
        self.gauge("giveway_backlog_bytes", "bytes", "Bytes in the queue, IP length.", |of| {
            of.status.backlog.bytes
        });
    }

    /// Quantiles since the start, and quantiles of the last second.
    fn delays(&mut self, what: &str, help: &str, of: impl Fn(&Snapshot) -> &[Quantiles; 2]) {
        let name = format!("giveway_{what}_seconds");
        self.summary(&name, &format!("{help}, since the start."), true, |snapshot| &of(snapshot)[0]);
        let name = format!("giveway_{what}_recent_seconds");
        self.summary(&name, &format!("{help}, in the last second."), false, |snapshot| &of(snapshot)[1]);
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
            // Counts and sums must not decrease, so they exist only since the start.
            if whole {
                self.sample(&format!("{name}_count"), port, "", quantiles.count);
                self.sample(&format!("{name}_sum"), port, "", Decimal(quantiles.sum_ps));
            }
        }
    }

    /// Only directions that keep reservations.
    fn reservations(&mut self) {
        let snapshots = self.snapshots;
        let kept =
            || snapshots.iter().enumerate().filter_map(|(port, of)| Some((port, of.reservations.as_ref()?)));
        if kept().next().is_none() {
            return;
        }
        type Number = fn(&Reservations) -> u64;
        let numbers: [(&str, &str, &str, Number); 7] = [
            ("giveway_reservable_bits_per_second", "bits_per_second", "Rate that may be reserved.", |of| {
                of.capacity.as_bit()
            }),
            ("giveway_reserved_bits_per_second", "bits_per_second", "Rate that is reserved now.", |of| {
                of.reserved.as_bit()
            }),
            ("giveway_reservations", "", "Reservations, including future ones.", |of| of.flows),
            (
                "giveway_open_reservable_bits_per_second",
                "bits_per_second",
                "Rate that all clients without a key may reserve together.",
                |of| of.open.capacity.as_bit(),
            ),
            (
                "giveway_open_reserved_bits_per_second",
                "bits_per_second",
                "Rate that clients without a key have reserved now.",
                |of| of.open.reserved.as_bit(),
            ),
            ("giveway_open_reservations", "", "Reservations of clients without a key.", |of| of.open.flows),
            (
                "giveway_open_reservation_owners",
                "",
                "Link addresses of clients without a key that have reservations. They can be forged.",
                |of| of.open.owners,
            ),
        ];
        for (name, unit, help, value) in numbers {
            self.family(name, "gauge", unit, help);
            for (port, of) in kept() {
                self.sample(name, port, "", value(of));
            }
        }
        let name = "giveway_reservation_messages";
        self.family(name, "counter", "", "Control packets by outcome, and reservations that ended.");
        for (port, of) in kept() {
            for (outcome, count) in of.all_messages() {
                let more = format!(",outcome=\"{}\"", escaped(outcome));
                self.sample(&format!("{name}_total"), port, &more, count);
            }
        }
    }

    /// Gauges of disciplines. Each discipline has other names, so the name is a label.
    fn gauges(&mut self) {
        self.family("giveway_gauge", "gauge", "", "Gauges of the discipline, by name.");
        for (port, of) in self.snapshots.iter().enumerate() {
            for (name, value) in &of.status.gauges {
                self.sample("giveway_gauge", port, &format!(",name=\"{}\"", escaped(name)), Float(*value));
            }
        }
    }

    /// Counters of the classes of disciplines that have some.
    fn classes(&mut self) {
        if self.snapshots.iter().all(|of| of.status.classes.is_empty()) {
            return;
        }
        let counters: [(&str, &str, &str, Counter); 6] = [
            ("sent_packets", "packets", "Packets that a class sent.", |of| of.sent.packets),
            ("sent_bytes", "bytes", "Bytes that a class sent, IP length.", |of| of.sent.bytes),
            ("dropped_packets", "packets", "Packets that a class dropped.", |of| of.dropped.packets),
            ("dropped_bytes", "bytes", "Bytes that a class dropped, IP length.", |of| of.dropped.bytes),
            ("borrowed_bytes", "bytes", "Bytes for which a class above was charged.", |of| of.borrowed),
            ("waited_microseconds", "microseconds", "Sum of the waits of a class's packets.", |of| {
                of.waited.as_ps() / 1_000_000
            }),
        ];
        for (name, unit, help, value) in counters {
            let family = format!("giveway_class_{name}");
            self.family(&family, "counter", unit, help);
            self.of_classes(&format!("{family}_total"), value);
        }
        let family = "giveway_class_backlog_packets";
        self.family(family, "gauge", "packets", "Packets in the queues of a class.");
        self.of_classes(family, |of| of.backlog.packets);
    }

    fn of_classes(&mut self, name: &str, value: Counter) {
        for (port, of) in self.snapshots.iter().enumerate() {
            for class in &of.status.classes {
                self.sample(name, port, &format!(",class=\"{}\"", escaped(&class.path)), value(class));
            }
        }
    }
}

/// A counter of a class.
type Counter = fn(&ClassState) -> u64;

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

/// Escapes backslash, line feed and quote (section 5.1).
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

/// Picoseconds, formatted in seconds without rounding.
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

/// A number that may be NaN or infinite (section 5.1).
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
