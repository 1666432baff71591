//! The rows of a recording as bytes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use giveway_measure::{
    DelayRow, DelaySummary, Fingerprint, Layout, LinkRow, Metrics, Packets, QueueRow, Record, ShareRow,
    SojournRow, Summary,
};
use giveway_qdisc::{Backlog, PortId, Rate, Span, Time};

use crate::carry::{Carry, carried_as, fields};
use crate::{Part, Request, SIDES, Stretch};

/// The most names of gauges that a process keeps, and the longest in bytes. A name is kept until the process
/// ends; the disciplines use a few dozen.
const NAMES: usize = 1024;
const LONGEST_NAME: usize = 64;

carried_as!(Time, u64, |time| time.as_ps(), |ps| Some(Time::from_ps(ps)));
carried_as!(Span, u64, |span| span.as_ps(), |ps| Some(Span::from_ps(ps)));
carried_as!(Rate, u64, |rate| rate.as_bit(), |bit| Some(Rate::bit(bit)));
carried_as!(PortId, u32, |port| port.0, |number| Some(PortId(number)));
carried_as!(Fingerprint, String, ToString::to_string, |text| text.parse().ok());
carried_as!(Packets, bool, |what| *what == Packets::All, |all| Some(if all {
    Packets::All
} else {
    Packets::Small
}));
carried_as!(
    Metrics,
    Vec<(String, Option<f64>)>,
    |metrics| metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    |all| {
        let mut metrics = Metrics::default();
        all.into_iter().for_each(|(name, value)| metrics.push(name, value));
        Some(metrics)
    }
);
carried_as!(&'static str, String, |name| (*name).to_owned(), kept);

fields!(Backlog { packets, bytes });
fields!(Summary { fingerprint, events, metrics });
fields!(QueueRow { time, port, backlog, gauge });
fields!(SojournRow { port, what, share, sojourn_s });
fields!(ShareRow { time, span, port, source, bytes });
fields!(DelaySummary { packets, mean_s, max_s });
fields!(DelayRow { time, span, port, source, sojourn, one_way, rate });
fields!(LinkRow { port, rate, arrived, sent, dropped, marked, utilization, drops, drops_measured });
fields!(Part { side, title, stretches, version, commit });
fields!(Stretch { qdisc, rate, record });

// The fields that a bridge sets in its layout.
fields!(Layout {
    measured, port_names, source_names, from, until, rates, small_packet_bytes, size_classes, keep_series, sample,
    open_ended; ..Layout::default()
});

impl Carry for Record {
    fn put(&self, to: &mut Vec<u8>) {
        self.summary.put(to);
        self.queue.put(to);
        self.links.put(to);
        self.sojourn_times.put(to);
        self.shares.put(to);
        self.delays.put(to);
        self.layout.put(to);
    }
    fn get(from: &mut &[u8]) -> Option<Record> {
        Some(Record {
            summary: Carry::get(from)?,
            queue: Carry::get(from)?,
            links: Carry::get(from)?,
            sojourn_times: Carry::get(from)?,
            shares: Carry::get(from)?,
            delays: Carry::get(from)?,
            layout: Carry::get(from)?,
            flows: Vec::new(),
            progress: Vec::new(),
            episodes: Vec::new(),
            bursts: Vec::new(),
        })
    }
}

impl Carry for Request {
    fn put(&self, to: &mut Vec<u8>) {
        let part = match self {
            Request::Check => None,
            Request::Write(part) => Some(part),
        };
        part.is_some().put(to);
        part.iter().for_each(|part| part.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Request> {
        match <Option<Part>>::get(from)? {
            None => Some(Request::Check),
            Some(part) if usize::from(part.side) >= SIDES.len() || part.stretches.is_empty() => None,
            Some(part) => Some(Request::Write(Box::new(part))),
        }
    }
}

/// Names that last as long as the process.
struct Names(BTreeSet<&'static str>);

impl Names {
    /// A name; `None` if there are too many, or it is too long.
    fn keep(&mut self, name: String) -> Option<&'static str> {
        if let Some(known) = self.0.get(&*name) {
            return Some(known);
        }
        if self.0.len() == NAMES || name.len() > LONGEST_NAME {
            return None;
        }
        let name: &'static str = Box::leak(name.into_boxed_str());
        self.0.insert(name);
        Some(name)
    }
}

fn kept(name: String) -> Option<&'static str> {
    static KEPT: Mutex<Names> = Mutex::new(Names(BTreeSet::new()));
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).keep(name)
}

#[cfg(test)]
mod tests {
    use giveway_measure::Recorder;
    use giveway_qdisc::{DropReason, FlowTable, Meta, Probe};

    use super::*;

    /// A part whose record contains rows of all kinds.
    fn part() -> Part {
        let port = PortId(0);
        let mut recorder = Recorder::<()>::new(Layout {
            measured: vec![port],
            port_names: vec![(port, "forward".to_owned())],
            source_names: vec!["all".to_owned()],
            rates: vec![(port, Rate::mbit(1))],
            until: Time::s(10),
            keep_series: true,
            sample: Span::ms(200),
            open_ended: true,
            ..Layout::default()
        });
        for second in 1..=3 {
            let (now, arrived) = (Time::s(second), Time::ms(1000 * second - 7));
            let meta = Meta { bytes: 1000, arrived, ..Meta::default() };
            recorder.on_arrival(port, &meta, now);
            match second {
                3 => recorder.on_drop(port, &meta, &(), DropReason::Pushout, now),
                _ => recorder.on_transmission(port, &meta, &(), now),
            }
            let gauges = [("flow_table", 0.1), ("ratio", f64::NAN)];
            recorder.on_sample(port, Backlog::ZERO, &FlowTable::NONE, &gauges, now);
        }
        let record = recorder.ended(Time::s(4)).finish();
        let [title, qdisc, rate, version] = ["a to b", "fifo", "1mbit", "0.1.0"].map(str::to_owned);
        Part { side: 1, title, stretches: vec![Stretch { qdisc, rate, record }], version, commit: None }
    }

    #[test]
    fn a_part_arrives_as_it_was_sent() {
        let part = part();
        let Record { queue, links, sojourn_times, shares, delays, .. } = &part.stretches[0].record;
        let rows = [queue.len(), links.len(), sojourn_times.len(), shares.len(), delays.len()];
        assert!(rows.iter().all(|rows| *rows > 0), "{rows:?}");
        let sent = Request::Write(Box::new(part));
        let mut bytes = Vec::new();
        sent.put(&mut bytes);
        let received = Request::get(&mut &bytes[..]).unwrap();
        // The text has all digits of all numbers.
        assert_eq!(format!("{received:?}"), format!("{sent:?}"));
        for end in 0..bytes.len() {
            assert!(Request::get(&mut &bytes[..end]).is_none(), "{end} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn only_the_two_directions_have_a_folder() {
        let mut bytes = Vec::new();
        Request::Write(Box::new(Part { side: 2, ..part() })).put(&mut bytes);
        assert!(Request::get(&mut &bytes[..]).is_none());
        // A recording has a stretch at least.
        let mut bytes = Vec::new();
        Request::Write(Box::new(Part { stretches: Vec::new(), ..part() })).put(&mut bytes);
        assert!(Request::get(&mut &bytes[..]).is_none());
    }

    #[test]
    fn names_of_gauges_are_kept_once_and_in_a_bounded_number() {
        let mut names = Names(BTreeSet::new());
        let name = |number: usize| format!("gauge {number}");
        let first = names.keep(name(0)).unwrap();
        assert!(std::ptr::eq(first, names.keep(name(0)).unwrap()));
        assert!(names.keep("x".repeat(LONGEST_NAME + 1)).is_none());
        assert_eq!((0..2 * NAMES).filter(|number| names.keep(name(*number)).is_some()).count(), NAMES);
        assert!(names.keep(name(0)).is_some());
    }
}
