//! DCTCP, Vegas and LEDBAT++ against second implementations, written from their documents alone:
//! `oracle.py` in `validation/dctcp`, `validation/vegas` and `validation/ledbat`.
//!
//! The tables contain the events of those programs' traces and the state after each. Windows may differ by
//! two bytes, because those programs do not round them.

use giveway_qdisc::{Span, Time};
use giveway_sim::tcp::controller::{Ack, Controller, Loss, Marks, Start};
use giveway_sim::tcp::{Congestion, Counting, HyStartRule};

/// A row of a table, by the names of its columns.
struct Row<'a> {
    names: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn text(&self, name: &str) -> &'a str {
        let at = self.names.iter().position(|one| *one == name);
        self.fields[at.unwrap_or_else(|| panic!("no column {name}"))]
    }
    fn number(&self, name: &str) -> Option<u64> {
        let text = self.text(name);
        (!text.is_empty()).then(|| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
    }
    fn required(&self, name: &str) -> u64 {
        self.number(name).unwrap_or_else(|| panic!("{name} is empty in {:?}", self.fields))
    }
    fn now(&self) -> Time {
        Time::us(self.required("time_us"))
    }
    fn start(&self) -> Start {
        Start {
            preset: giveway_sim::tcp::Preset::Rfc,
            mss: self.required("mss"),
            initial_window: self.required("bytes"),
            counting: Counting::Bytes,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            seed: 0,
        }
    }
    /// The sender passes at most the window as the data in flight.
    fn loss(&self, window: u64) -> Loss {
        Loss { now: self.now(), flight: self.required("flight").min(window), next: self.required("next") }
    }
    fn ack(&self) -> Ack {
        let sample = self.number("rtt_us").map(Span::us);
        Ack {
            now: self.now(),
            bytes: self.required("bytes"),
            rtt: sample.unwrap_or(Span::ZERO),
            sample,
            una: self.required("una"),
            next: self.required("next"),
            flight: self.required("flight"),
            cwnd_limited: true,
        }
    }
    /// Fails if the windows differ by more than two bytes.
    fn compare(&self, controller: &dyn Controller) {
        let near = |name, value: u64| {
            let expected = self.number(name).unwrap_or(u64::MAX);
            assert!(
                value.abs_diff(expected) <= 2,
                "{name}: {value} instead of {expected} at {:?}",
                self.fields
            );
        };
        near("cwnd", controller.window());
        near("ssthresh", controller.threshold());
    }
}

/// Calls `event` for each row, which returns false if it is not its event. Rows of `start` start
/// a controller.
fn replay(table: &str, name: &str, mut event: impl FnMut(&Row<'_>, &mut dyn Controller)) {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let (mut controller, mut rows) = (None, 0);
    for line in lines {
        let row = Row { names: &names, fields: line.split(',').collect() };
        if row.text("event") == "start" {
            controller = Some(Congestion::named(name).build(row.start()));
        } else {
            event(&row, &mut **controller.as_mut().expect("a trace starts"));
        }
        row.compare(&**controller.as_ref().unwrap());
        rows += 1;
    }
    assert!(rows > 1000, "{rows} rows");
}

#[test]
fn dctcp_equals_the_second_implementation() {
    let mut reduced: Option<(String, u64)> = None;
    replay(include_str!("data/dctcp_trace.csv"), "dctcp", |row, dctcp| match row.text("event") {
        "loss" => {
            dctcp.on_loss(&row.loss(dctcp.window()));
            reduced = Some((row.text("trace").to_owned(), row.required("next")));
        }
        event @ ("timeout" | "timeout_again") => {
            dctcp.on_timeout(&row.loss(dctcp.window()), event == "timeout");
            reduced = Some((row.text("trace").to_owned(), row.required("next")));
        }
        event => {
            let ack = row.ack();
            let marked = row.required("marked");
            let Ack { now, una, next, rtt, .. } = ack;
            dctcp.on_mark_counts(&Marks { now, acked: ack.bytes, marked, una, next, rtt });
            // RFC 8257, section 3.3: once per window of data.
            let again = reduced.as_ref().is_some_and(|(trace, at)| trace == row.text("trace") && una <= *at);
            if marked > 0 && !again {
                dctcp.on_mark(&Loss { now, flight: ack.flight, next });
                reduced = Some((row.text("trace").to_owned(), next));
            } else {
                dctcp.on_ack(&Ack { cwnd_limited: event == "ack", ..ack });
            }
        }
    });
}

#[test]
fn vegas_equals_the_second_implementation() {
    replay(include_str!("data/vegas_trace.csv"), "vegas", |row, vegas| match row.text("event") {
        "loss" => vegas.on_loss(&row.loss(vegas.window())),
        event @ ("timeout" | "timeout_again") => {
            vegas.on_timeout(&row.loss(vegas.window()), event == "timeout")
        }
        _ => vegas.on_ack(&row.ack()),
    });
}

#[test]
fn ledbat_equals_the_second_implementation() {
    // An acknowledgement without a sample has the round-trip time of the last one.
    let mut rtt = Span::ZERO;
    replay(include_str!("data/ledbat_trace.csv"), "ledbat", |row, ledbat| match row.text("event") {
        "loss" => ledbat.on_loss(&row.loss(ledbat.window())),
        event @ ("timeout" | "timeout_again") => {
            ledbat.on_timeout(&row.loss(ledbat.window()), event == "timeout")
        }
        _ => {
            let ack = row.ack();
            rtt = ack.sample.unwrap_or(rtt);
            ledbat.on_ack(&Ack { rtt, ..ack });
        }
    });
}
