//! CUBIC against a second implementation, written from RFC 9438 alone: `validation/cubic/oracle.py`.
//!
//! The table contains the events of that program's traces and the window after each. Both sides compute in
//! double precision with the same whole microseconds, so the windows may differ by the rounding of a sum or a
//! cube root. That can change the integer part of a window near a whole byte, so a difference of one byte
//! is allowed.

use giveway_qdisc::{Span, Time};
use giveway_sim::tcp::controller::{Ack, Controller, Loss, Start};
use giveway_sim::tcp::{Congestion, Counting, HyStartRule};

const TABLE: &str = include_str!("data/cubic_trace.csv");

/// A row: an event, and window and threshold of the oracle after it.
struct Row<'a> {
    trace: &'a str,
    event: &'a str,
    now: Time,
    /// Bytes: acknowledged, in flight, or of a segment, depending on the event.
    bytes: u64,
    rtt: Span,
    window: u64,
    threshold: u64,
}

impl Row<'_> {
    fn parse(line: &str) -> Row<'_> {
        let fields: Vec<&str> = line.split(',').collect();
        let [trace, event, now, bytes, rtt, window, threshold] = fields[..] else {
            panic!("seven fields in {line:?}");
        };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text:?} in {line:?}"));
        Row {
            trace,
            event,
            now: Time::us(number(now)),
            bytes: number(bytes),
            rtt: Span::us(if rtt.is_empty() { 0 } else { number(rtt) }),
            window: number(window),
            threshold: if threshold.is_empty() { u64::MAX } else { number(threshold) },
        }
    }

    fn start(&self, counting: Counting) -> Box<dyn Controller> {
        Congestion::named("cubic").build(Start {
            preset: giveway_sim::tcp::Preset::Rfc,
            mss: self.bytes,
            initial_window: self.window,
            counting,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            seed: 0,
        })
    }

    fn ack(&self, cwnd_limited: bool) -> Ack {
        Ack {
            now: self.now,
            bytes: self.bytes,
            rtt: self.rtt,
            sample: None,
            una: 0,
            next: 0,
            flight: self.bytes,
            cwnd_limited,
        }
    }
}

#[test]
fn every_window_equals_that_of_the_oracle() {
    let mut cubic = None;
    let mut compared = 0;
    let mut wrong = Vec::new();
    for line in TABLE.lines().skip(1) {
        let row = Row::parse(line);
        match row.event {
            "start_bytes" => cubic = Some(row.start(Counting::Bytes)),
            "start_acks" => cubic = Some(row.start(Counting::Acks)),
            event => {
                let cubic = cubic.as_mut().expect("a trace begins with a start");
                match event {
                    "ack" => cubic.on_ack(&row.ack(true)),
                    "ack_unlimited" => cubic.on_ack(&row.ack(false)),
                    "loss" => cubic.on_loss(&Loss { flight: row.bytes, now: row.now, next: 0 }),
                    "mark" => cubic.on_mark(&Loss { flight: row.bytes, now: row.now, next: 0 }),
                    "timeout" => cubic.on_timeout(&Loss { flight: row.bytes, now: row.now, next: 0 }, true),
                    "timeout_again" => {
                        cubic.on_timeout(&Loss { flight: row.bytes, now: row.now, next: 0 }, false)
                    }
                    _ => panic!("unknown event in {line:?}"),
                }
                let (window, threshold) = (cubic.window(), cubic.threshold());
                compared += 1;
                if window.abs_diff(row.window) > 1 || threshold.abs_diff(row.threshold) > 1 {
                    wrong.push(format!("{}: {line}: window {window}, threshold {threshold}", row.trace));
                }
            }
        }
    }
    assert!(compared > 5000, "the table has only {compared} rows");
    let first = wrong.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {compared} rows differ:\n{first}", wrong.len());
}
