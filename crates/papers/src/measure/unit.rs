//! Units of numbers, and how figures draw them.

use giveway_measure::{MetricName, Statistic, Subject, Unit as Defined, named};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// None.
    Plain,
    /// Seconds.
    Seconds,
    /// Nanoseconds, for the cost of a packet.
    Nanoseconds,
    /// A share, 0 to 1.
    Share,
    /// Bytes of traffic, drawn in megabytes.
    Bytes,
    /// Bytes of queues and memory, drawn in kilobytes.
    Memory,
    /// Packets.
    Packets,
    /// Bits per second, drawn in Mbit/s.
    Rate,
}

impl Unit {
    /// The unit of a metric. Counts have none, and papers on switches write shares of slots as plain numbers.
    pub fn of_metric(name: &str) -> Unit {
        let Some(MetricName { definition, statistic, .. }) = named(name) else { return Unit::Plain };
        match (definition.unit, definition.subject) {
            _ if statistic == Some(Statistic::Count) => Unit::Plain,
            (Defined::Share, Subject::Switch) => Unit::Plain,
            (Defined::Share, _) => Unit::Share,
            (Defined::BitPerSecond, _) => Unit::Rate,
            (Defined::Seconds, _) => Unit::Seconds,
            (Defined::Bytes, _) => Unit::Memory,
            (Defined::Packets, _) => Unit::Packets,
            (Defined::Index | Defined::Number | Defined::Flows | Defined::Slots | Defined::Cells, _) => {
                Unit::Plain
            }
        }
    }

    /// The unit of a gauge, which has no definition, from the end of its name.
    pub fn of_gauge(name: &str) -> Unit {
        let ends: [(&str, Unit); 4] = [
            ("_bps", Unit::Rate),
            ("_s", Unit::Seconds),
            ("_bytes", Unit::Memory),
            ("_packets", Unit::Packets),
        ];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map_or(Unit::Plain, |(_, unit)| unit)
    }

    /// The unit in figures: its size in units of the numbers, and its symbol.
    fn drawn(self) -> (f64, &'static str) {
        match self {
            Unit::Plain | Unit::Share => (1.0, ""),
            Unit::Packets => (1.0, "packets"),
            Unit::Seconds => (1.0, "s"),
            Unit::Nanoseconds => (1.0, "ns"),
            Unit::Bytes => (1e6, "MB"),
            Unit::Memory => (1e3, "kB"),
            Unit::Rate => (1e6, "Mbit/s"),
        }
    }

    /// The size of the unit in figures, in units of the numbers.
    pub fn scale(self) -> f64 {
        self.drawn().0
    }

    /// The title of an axis, with the unit in figures.
    pub fn titled(self, what: &str) -> String {
        match self.drawn().1 {
            "" => what.to_owned(),
            unit => format!("{what} ({unit})"),
        }
    }
}
