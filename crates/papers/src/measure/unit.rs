//! Units of numbers, and how figures draw them.

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Plain,
    Seconds,
    /// Of what a packet costs.
    Nanoseconds,
    Share,
    /// Of traffic: megabytes.
    Bytes,
    /// Of queues and memory: bytes, kilobytes or megabytes.
    Room,
    Packets,
    Rate,
}

impl Unit {
    /// By the end of a metric's or a gauge's name.
    pub fn of_name(name: &str) -> Unit {
        let ends: [(&str, Unit); 4] = [
            ("_bps", Unit::Rate),
            ("_s", Unit::Seconds),
            ("_bytes", Unit::Room),
            ("_packets", Unit::Packets),
        ];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map_or(Unit::Plain, |(_, unit)| unit)
    }

    /// The unit that figures draw: its size in units of the numbers, and its symbol.
    fn drawn(self) -> (f64, &'static str) {
        match self {
            Unit::Plain | Unit::Share => (1.0, ""),
            Unit::Packets => (1.0, "packets"),
            Unit::Seconds => (1.0, "s"),
            Unit::Nanoseconds => (1.0, "ns"),
            Unit::Bytes => (1e6, "MB"),
            Unit::Room => (1e3, "kB"),
            Unit::Rate => (1e6, "Mbit/s"),
        }
    }

    /// The size of the drawn unit, in units of the numbers.
    pub fn scale(self) -> f64 {
        self.drawn().0
    }

    /// The title of an axis, with the unit that is drawn.
    pub fn titled(self, what: &str) -> String {
        match self.drawn().1 {
            "" => what.to_owned(),
            unit => format!("{what} ({unit})"),
        }
    }
}
