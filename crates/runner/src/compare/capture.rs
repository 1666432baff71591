//! The capture: its traffic, its local side, and sentences on both.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ::giveway_capture::{CaptureError, Reader};
use giveway_qdisc::Span;
use giveway_workload::{Adu, Direction, Extraction, Local, Seen, Side, Workload};
use serde_json::{Value, json};

use super::{Mode, shown};
use crate::{Bar, Frontend};

/// A capture that was read.
pub struct Capture {
    /// The traffic of its applications.
    pub(super) workload: Workload,
    /// Counts of packets, bytes and connections.
    seen: Seen,
    /// The local side of the link.
    pub(super) local: Local,
    /// Why these are local; none where the user said so.
    why: Option<String>,
    /// What ended the reading early.
    damage: Option<String>,
}

impl Capture {
    /// Reads a capture once. Nothing in it but headers, lengths and times is used.
    ///
    /// # Errors
    /// A sentence when it cannot be read, or its local side is not known.
    pub fn read(path: &Path, local: Option<&Local>, frontend: &dyn Frontend) -> Result<Capture, String> {
        let wrong = |error: CaptureError| format!("{} {error}", shown(path));
        let file = File::open(path).map_err(|error| wrong(CaptureError::Open(error)))?;
        let bytes = file.metadata().map_or(0, |about| about.len());
        let bar = (bytes >= LONG).then(|| frontend.bar("reading", bytes));
        let reader = Reader::new(Watched { file, bar }).map_err(wrong)?;
        let mut extraction = Extraction::default();
        let mut damage = None;
        for packet in reader {
            match packet {
                Ok(packet) => extraction.packet(&packet),
                Err(error) => damage = Some(error.to_string()),
            }
        }
        if extraction.seen().packets == extraction.seen().foreign {
            let why = damage.unwrap_or_else(|| match extraction.seen().foreign {
                0 => "holds no packet".to_owned(),
                foreign => format!("holds no IP packet, only {foreign} others"),
            });
            return Err(format!("{} {why}", shown(path)));
        }
        let (local, why) = match local {
            Some(local) => (local.clone(), None),
            None => match extraction.guess() {
                Some((local, why)) => (local, Some(why)),
                None => {
                    let busiest = extraction.busiest();
                    let example = busiest.first().cloned().unwrap_or_default();
                    return Err(format!(
                        "which side of the link is local cannot be told from the addresses ({}, ...); \
                         say it, for example --link {example}",
                        busiest.join(", ")
                    ));
                }
            },
        };
        if !extraction.crosses(&local) {
            return Err(format!(
                "no packet crosses between {local} and the rest; the busiest addresses are {}",
                extraction.busiest().join(", ")
            ));
        }
        let (workload, seen) = extraction.finish(&local);
        // Beyond a few months the clock of a run would not reach.
        let days = seen.span / 86_400_000_000_000;
        if seen.span > Workload::LONGEST {
            return Err(format!("{} spans {days} days; at most 200 can be done again", shown(path)));
        }
        Ok(Capture { workload, seen, local, why, damage })
    }

    /// Refuses what the mode can make nothing of.
    pub fn check(&self, mode: Mode) -> Result<(), String> {
        let one_way = |way: Direction| {
            format!(
                "no packet goes {} in this capture, with {} as the local side: connections cannot be told from \
                 one direction. If that side is wrong, write another --link; otherwise write --mode replay",
                way.name(),
                self.local
            )
        };
        if mode == Mode::Flows && !self.workload.connections.is_empty() {
            for way in [Direction::Up, Direction::Down] {
                if self.bytes(way) == 0 {
                    return Err(one_way(way));
                }
            }
        }
        let nothing = self.workload.connections.is_empty() && self.workload.trains.is_empty();
        if mode == Mode::Flows && nothing {
            return Err(
                "there is no connection and no stream of datagrams in this capture that could be done \
                        again; write --mode replay"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Sentences on the capture: its size, its local side, its connections, its damage, and what is left out.
    pub fn messages(&self, path: &Path) -> Vec<String> {
        let seen = &self.seen;
        let mut messages = vec![format!(
            "{}: {} packets, {:.1} MB in {:.1} s",
            shown(path),
            seen.packets,
            seen.bytes as f64 / 1e6,
            seen.span as f64 / 1e9,
        )];
        messages.push(match &self.why {
            Some(why) => format!("local side: {} (a guess: {why}; --link says it otherwise)", self.local),
            None => format!("local side: {}", self.local),
        });
        messages.push(format!("{}.", self.contents()));
        if let Some(damage) = &self.damage {
            messages.push(format!("{} {damage}; what comes before is used", shown(path)));
        }
        messages.extend(self.left_out());
        messages
    }

    fn contents(&self) -> String {
        let seen = &self.seen;
        let mut parts = vec![format!("{} TCP connections", seen.connections)];
        let mut some = |count: u64, what: &str| {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        };
        some(seen.open_before, "of them open before it began");
        some(seen.cut_off, "cut off by its end, both used as far as seen");
        some(seen.pages.len() as u64, "pages");
        some(seen.trains, "streams of other packets");
        if let Some(rtt) = seen.rtt {
            parts.push(format!("median round trip {:.1} ms", rtt as f64 / 1e6));
        }
        parts.join(", ")
    }

    fn left_out(&self) -> Vec<String> {
        let seen = &self.seen;
        let some = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        [
            some(seen.foreign, "packets are not IP: left out"),
            some(seen.inside, "packets stay on one side of the link: left out"),
            some(seen.unanswered, "connections were refused or not answered: left out"),
            some(seen.strays, "connections open before show no data: left out"),
            some(seen.headless, "TCP packets without a readable header: left out"),
            some(seen.crowded, "packets belong to more flows than can be told apart: left out"),
            some(seen.missed, "bytes were acknowledged and never captured: filled in"),
            some(
                seen.without_rtt,
                "connections show no round trip: they get the median of the others, or 30 ms",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// For the scenario and the report.
    pub fn description(&self, mode: Mode) -> String {
        let model = match mode {
            Mode::Flows => {
                "Connections do again what their applications did: requests, responses and think times, over TCP. \
                 They begin when they began in the capture; datagrams are sent as they were captured, so whoever \
                 adapts to the network (QUIC, video calls) is not seen to."
            }
            Mode::Replay => "Packets arrive when they were captured; senders do not react to delay or loss.",
        };
        let damage =
            self.damage.iter().map(|damage| format!("The capture {damage}; what comes before is used."));
        let left_out = self.left_out().into_iter().map(|left_out| format!("{left_out}."));
        let notes: String = damage.chain(left_out).map(|note| format!(" {note}")).collect();
        format!("{}; local side: {}. {model}{notes}", self.contents(), self.local)
    }

    /// IP bytes that cross the link this way.
    pub fn bytes(&self, way: Direction) -> u64 {
        if way == Direction::Up { self.seen.up.1 } else { self.seen.down.1 }
    }

    /// From its first packet to its last.
    pub fn span(&self) -> Span {
        Span::ns(self.seen.span)
    }

    /// The median round trip.
    pub fn rtt(&self) -> Span {
        Span::ns(self.seen.rtt.unwrap_or(Workload::UNKNOWN_RTT)).min(Span::s(1))
    }

    /// What flows are counted under, by name.
    pub fn groups(&self) -> Vec<String> {
        let connections = self.workload.connections.iter().map(|connection| &connection.group);
        let groups = connections.chain(self.workload.trains.iter().map(|train| &train.group));
        groups.cloned().collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The completion times in the capture itself, one way.
    pub fn responses(&self, way: Direction) -> giveway_measure::Metrics {
        let mut times: Vec<(u64, Span)> = Vec::new();
        let mut cut_off = 0;
        for connection in &self.workload.connections {
            for (exchange, writes) in connection.epochs_with_adus() {
                let (ask, answer) = (Adu::sum(writes, Side::Client), Adu::sum(writes, Side::Server));
                let heavy = if ask > answer { connection.direction } else { connection.direction.other() };
                if heavy == way && exchange.whole {
                    times.push((ask.max(answer), Span::ns(exchange.took)));
                } else if heavy == way {
                    cut_off += 1;
                }
            }
        }
        let pages = if way == Direction::Down { &self.seen.pages[..] } else { &[] };
        let pages: Vec<Span> = pages.iter().map(|took| Span::ns(*took)).collect();
        giveway_measure::responses(&times, cut_off, &pages)
    }

    /// What was read, for programs.
    pub fn to_json(&self, path: &Path) -> Value {
        let seen = &self.seen;
        json!({
            "file": shown(path),
            "packets": seen.packets,
            "bytes": seen.bytes,
            "span_s": seen.span as f64 / 1e9,
            "local": self.local.to_string(),
            "local_guessed": self.why,
            "damage": self.damage,
            "connections": seen.connections,
            "open_before": seen.open_before,
            "cut_off": seen.cut_off,
            "unanswered": seen.unanswered,
            "streams": seen.trains,
            "pages": seen.pages.len(),
            "rtt_median_s": seen.rtt.map(|rtt| rtt as f64 / 1e9),
            "not_ip": seen.foreign,
            "on_one_side": seen.inside,
            "bytes_missed": seen.missed,
        })
    }
}

/// Files from this length on, in bytes, take long enough for a progress bar.
const LONG: u64 = 64 << 20;

/// A file whose reading moves a progress bar.
struct Watched {
    file: File,
    bar: Option<Box<dyn Bar>>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if let Some(bar) = &self.bar {
            bar.advance(count as u64);
        }
        Ok(count)
    }
}
