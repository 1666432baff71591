//! The capture: its traffic, its local side, and sentences on both.

use std::collections::BTreeSet;
use std::path::Path;

use ::giveway_capture::Pauses;
use giveway_qdisc::{Rate, Span};
use giveway_workload::{Adu, CaptureStatistics, Direction, Local, Side, Workload};
use serde_json::{Value, json};

use super::hours::{HOUR, Hours, busy_and_idle};
use super::mode::{Mode, word};
use super::reading::{Reading, Source, Started};
use super::traffic;
use giveway_runner::RunnerError;
use giveway_trials::Frontend;

/// A capture that was read.
pub struct Capture {
    /// The traffic of its applications.
    pub(super) workload: Workload,
    /// Counts of packets, bytes and connections.
    seen: CaptureStatistics,
    /// The local side of the link.
    pub(super) local: Local,
    /// The reason for the guess; `None` if the user named the local side.
    why: Option<String>,
    /// The error that ended the reading early.
    damage: Option<String>,
    /// Sentences on what was cut, merged, unpacked and left out.
    notes: Vec<String>,
    /// The pauses that were cut.
    pub(super) pauses: Pauses,
}

impl Capture {
    /// Reads a capture once, a live one from `started`. Only its headers, lengths and times are used. The
    /// headers of its packets are written to `copy`.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] if the capture cannot be read, or its local side is not known.
    pub fn read(
        source: &Source,
        started: Option<Started>,
        local: Option<&Local>,
        copy: Option<&Path>,
        frontend: &dyn Frontend,
    ) -> Result<Capture, RunnerError> {
        let path = source.shown();
        let Reading { extraction, mut notes, damage, pauses } = source.read(started, copy, frontend)?;
        if extraction.seen().packets == extraction.seen().foreign {
            let why = damage.unwrap_or_else(|| match extraction.seen().foreign {
                0 => "has no packets".to_owned(),
                1 => "has no IP packets, only 1 other".to_owned(),
                foreign => format!("has no IP packets, only {foreign} others"),
            });
            return Err(RunnerError::Usage(format!("{path} {why}")));
        }
        if extraction.seen().is_loopback() && local.is_none() {
            return Err(RunnerError::Usage(traffic::loopback(&path, extraction.seen())));
        }
        let (local, why) = match local {
            Some(local) => (local.clone(), None),
            None => match extraction.guess() {
                Some((local, why)) => (local, Some(why)),
                None => {
                    let busiest = extraction.busiest();
                    let example = busiest.first().cloned().unwrap_or_default();
                    return Err(RunnerError::Usage(format!(
                        "the addresses do not show which side of the link is local ({}, ...); write for example --link {example}",
                        busiest.join(", ")
                    )));
                }
            },
        };
        if !extraction.crosses(&local) {
            return Err(RunnerError::Usage(format!(
                "no packet crosses between {local} and the rest; the busiest addresses are {}",
                extraction.busiest().join(", ")
            )));
        }
        let (workload, seen) = extraction.finish(&local);
        notes.extend(traffic::notes(&seen));
        // The clock of a run has a limit of a few months.
        let days = seen.span / 86_400_000_000_000;
        if seen.span > Workload::LONGEST {
            return Err(RunnerError::Usage(format!("{path} spans {days} days; at most 200 can be replayed")));
        }
        Ok(Capture { workload, seen, local, why, damage, notes, pauses })
    }

    /// The busy and the idle hours of a long capture; `None` if it is short, or all hours are alike.
    pub(super) fn hours(&self) -> Option<[Hours; 2]> {
        let [up, down] = &self.seen.hours;
        let of = |hours: &[u64], at: usize| hours.get(at).copied().unwrap_or(0);
        let bytes: Vec<u64> = (0..up.len().max(down.len())).map(|at| of(up, at) + of(down, at)).collect();
        // Pauses that were cut shift the clock.
        let begin = (self.pauses == Pauses::default()).then_some(self.seen.begin);
        busy_and_idle(&bytes, begin)
    }

    /// The part of the capture with these hours, one after the other.
    pub(super) fn part(&self, hours: &Hours) -> Capture {
        let workload = self.workload.arranged(HOUR, &hours.numbers);
        let bytes = |direction: usize| {
            let of = |at: &usize| self.seen.hours[direction].get(*at).copied().unwrap_or(0);
            hours.numbers.iter().map(of).sum::<u64>()
        };
        let seen = CaptureStatistics {
            span: workload.span,
            up: (0, bytes(0)),
            down: (0, bytes(1)),
            connections: workload.connections.iter().filter(|one| !one.quic).count() as u64,
            quic: workload.connections.iter().filter(|one| one.quic).count() as u64,
            trains: workload.trains.len() as u64,
            // Page load times are known for the whole capture only.
            pages: Vec::new(),
            ..self.seen.clone()
        };
        let missed = (self.missing() * 1e6) as u64;
        let (local, why, damage) = (self.local.clone(), self.why.clone(), self.damage.clone());
        let part =
            Capture { workload, seen, local, why, damage, notes: self.notes.clone(), pauses: self.pauses };
        // The share of missing data is that of the whole capture.
        let played = part.played();
        Capture {
            seen: CaptureStatistics { missed: played / 1_000_000 * missed, ..part.seen.clone() },
            ..part
        }
    }

    /// True if draws of tenths of the capture have the same kind of traffic as the whole: it is long enough,
    /// and has many connections, none of which has most of the data. A draw may have a connection twice.
    pub(super) fn can_be_drawn(&self) -> bool {
        const LONG: Span = Span::s(120);
        const MANY: usize = 30;
        const LARGEST: u64 = 5; // a fifth of all data
        let sizes =
            || self.workload.connections.iter().map(|one| one.adus.iter().map(|adu| adu.bytes).sum::<u64>());
        self.span() >= LONG
            && self.workload.connections.len() >= MANY
            && sizes().max().unwrap_or(0) * LARGEST <= sizes().sum()
    }

    /// True if the capture leaves think times of servers open.
    pub(super) fn has_open_thinks(&self) -> bool {
        self.seen.unknown_thinks > 0
    }

    /// The kind of line that the capture shows, as a word of tc-cake(8), and the reason for the guess.
    pub(super) fn overhead(&self) -> Option<(&'static str, &'static str)> {
        // An MTU of 1492 leaves 8 of Ethernet's 1500 bytes to PPPoE (RFC 2516, section 7).
        (self.seen.largest == 1492)
            .then_some(("pppoe-ptm", "the largest packet has 1492 bytes, as over PPPoE"))
    }

    /// Checks that the capture has traffic for this mode.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] with another mode or option to write.
    pub fn check(&self, mode: Mode) -> Result<(), RunnerError> {
        let missing = |direction: Direction| {
            format!(
                "this capture has no {} packets, with {} as the local side, and connections need both directions. If the \
                 local side is wrong, write another --link; otherwise write --mode replay",
                word(direction),
                self.local
            )
        };
        if mode == Mode::Flows && self.seen.is_one_way() {
            return Err(RunnerError::Usage(traffic::one_way(&self.seen)));
        }
        if mode == Mode::Flows && !self.workload.connections.is_empty() {
            for direction in [Direction::Up, Direction::Down] {
                if self.bytes(direction) == 0 {
                    return Err(RunnerError::Usage(missing(direction)));
                }
            }
        }
        let nothing = self.workload.connections.is_empty() && self.workload.trains.is_empty();
        if mode == Mode::Flows && nothing {
            let message =
                "this capture has no connection and no stream of datagrams to replay; write --mode replay";
            return Err(RunnerError::Usage(message.to_owned()));
        }
        Ok(())
    }

    /// Sentences on the capture: its size, its local side, its connections, its damage, and what is left out.
    pub fn messages(&self, source: &Source) -> Vec<String> {
        let path = source.shown();
        let seen = &self.seen;
        let mut messages = vec![format!(
            "{path}: {} packets, {:.1} MB in {:.1} s",
            seen.packets,
            seen.bytes as f64 / 1e6,
            seen.span as f64 / 1e9,
        )];
        messages.push(match &self.why {
            Some(why) => format!("local side: {} (a guess: {why}; --link overrides it)", self.local),
            None => format!("local side: {}", self.local),
        });
        messages.push(format!("{}.", self.contents()));
        if let Some(damage) = &self.damage {
            messages.push(format!("{path} {damage}; the packets before that are used"));
        }
        messages.extend(self.notes.iter().cloned());
        messages.extend(self.left_out());
        messages.extend(self.how_sure());
        messages
    }

    /// The certainty of the extraction of QUIC connections, in one sentence.
    fn how_sure(&self) -> Option<String> {
        (self.seen.quic > 0).then(|| {
            format!(
                "QUIC ({}) is encrypted: connections, directions, lengths and times are certain; which packets only \
                 acknowledge is guessed from their length, requests and responses from directions and pauses, data \
                 retransmitted count as new, and each connection has one stream",
                bytes(self.seen.quic_bytes)
            )
        })
    }

    /// The traffic of the capture in one line.
    fn contents(&self) -> String {
        let seen = &self.seen;
        let open = open_connections(seen.connections, seen.open_before, seen.cut_off);
        let mut parts = vec![format!("{}{open}", counted(seen.connections, "TCP connection"))];
        if seen.quic > 0 {
            parts.push(counted(seen.quic, "QUIC connection"));
        }
        if !seen.pages.is_empty() {
            parts.push(counted(seen.pages.len() as u64, "page"));
        }
        if seen.trains > 0 {
            parts.push(counted(seen.trains, "stream") + " of other packets");
        }
        if let Some(rtt) = seen.rtt {
            parts.push(format!("median round-trip time {:.1} ms", rtt as f64 / 1e6));
        }
        parts.join(", ")
    }

    /// Sentences on traffic that is left out or completed.
    fn left_out(&self) -> Vec<String> {
        let seen = &self.seen;
        let some = |count: u64, what: &str, rest: &str| {
            (count > 0).then(|| format!("{} {rest}", counted(count, what)))
        };
        let missed = (seen.missed > 0).then(|| {
            format!(
                "{} of the data of connections are not in the capture ({:.1} % of what is played): they were synthesised",
                bytes(seen.missed),
                100.0 * self.missing()
            )
        });
        let unsure = (seen.unsure_pages > 0).then(|| {
            let rest =
                if seen.pages.is_empty() { "so page load times are left out" } else { "which are left out" };
            format!(
                "{} of {} have two readings (a document that begins as a part of another page ends, or several late requests), {rest}",
                seen.unsure_pages,
                counted(seen.all_pages, "page")
            )
        });
        [
            some(seen.foreign, "packet", "without an IP header: left out"),
            some(seen.inside, "packet", "within one side of the link: left out"),
            some(seen.unanswered, "connection", "without an answer: left out"),
            some(seen.strays, "connection", "without data, open from the start: left out"),
            some(seen.headless, "TCP packet", "without a readable header: left out"),
            some(seen.crowded, "packet", "of too many flows to distinguish: left out"),
            missed,
            unsure,
            some(seen.lone_requests, "single web request", "beside or soon after a page: in no page"),
            self.unknown_thinks(),
            some(
                seen.without_rtt,
                "connection",
                "without a round-trip time: the median of the others is used, or 30 ms",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The think times of servers that the capture does not show, and their bounds, in one sentence.
    fn unknown_thinks(&self) -> Option<String> {
        let CaptureStatistics { responses, unknown_thinks: count, think_bounds: (least, most), .. } =
            self.seen;
        let mean = |sum: u64| sum as f64 / count as f64 / 1e6;
        (count > 0).then(|| {
            format!(
                "the think times of {count} of {} are not known: between {:.1} and {:.1} ms in the mean; the likeliest are played",
                counted(responses, "response"),
                mean(least),
                mean(most)
            )
        })
    }

    /// The description of the scenario, for the report.
    pub fn description(&self, mode: Mode) -> String {
        let model = match mode {
            Mode::Flows => {
                "Connections repeat the requests, responses and think times of their applications, over TCP or QUIC. They \
                 begin at their captured times, and those that a page opens when the page has made the same progress. \
                 Datagrams are sent as captured, so applications that adapt to the network \
                 (video calls, and QUIC that was open before) do not adapt here."
            }
            Mode::Replay => "Packets arrive when they were captured; senders do not react to delay or loss.",
        };
        let damage = self
            .damage
            .iter()
            .map(|damage| format!("The capture {damage}; the packets before that are used."));
        let left_out = self
            .notes
            .iter()
            .cloned()
            .chain(self.left_out())
            .chain(self.how_sure())
            .map(|left_out| format!("{left_out}."));
        let notes: String = damage.chain(left_out).map(|note| format!(" {note}")).collect();
        format!("{}; local side: {}. {model}{notes}", self.contents(), self.local)
    }

    /// The IP bytes that cross the link in this direction.
    pub fn bytes(&self, direction: Direction) -> u64 {
        if direction == Direction::Up { self.seen.up.1 } else { self.seen.down.1 }
    }

    /// The message that the rate of the link is missing, with the busiest second as a guess.
    pub fn rate_is_missing(&self) -> String {
        let [up, down] = self.seen.busiest.map(|bit| Rate::kbit(bit.div_ceil(1000).max(1)));
        format!(
            "the rate of the link is missing. The highest rates that last for three seconds in this capture are {up} upstream and {down} downstream. If the \
             line was full then, that is its rate; otherwise it has more. Write for example --rate-up {up} --rate-down {down}"
        )
    }

    /// The share of the played data that the capture does not hold, 0 to 1.
    pub fn missing(&self) -> f64 {
        match self.played() {
            0 => 0.0,
            played => self.seen.missed as f64 / played as f64,
        }
    }

    /// The data that are played, bytes.
    fn played(&self) -> u64 {
        let Workload { connections, trains, .. } = &self.workload;
        let written: u64 =
            connections.iter().flat_map(|connection| &connection.adus).map(|adu| adu.bytes).sum();
        let datagrams: u64 = trains
            .iter()
            .map(|train| train.packets.iter().map(|(_, bytes)| u64::from(bytes)).sum::<u64>())
            .sum();
        written + datagrams
    }

    /// The time from the first packet to the last.
    pub fn span(&self) -> Span {
        Span::ns(self.seen.span)
    }

    /// The median round-trip time, at most 1 s; 30 ms if the capture shows none.
    pub fn rtt(&self) -> Span {
        Span::ns(self.seen.rtt.unwrap_or(Workload::UNKNOWN_RTT)).min(Span::s(1))
    }

    /// The names of the groups of flows.
    pub fn groups(&self) -> Vec<String> {
        let connections = self.workload.connections.iter().map(|connection| &connection.group);
        let groups = connections.chain(self.workload.trains.iter().map(|train| &train.group));
        groups.cloned().collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The completion times of the transfers and pages in the capture, in one direction.
    pub fn responses(&self, direction: Direction) -> giveway_measure::Metrics {
        let mut times: Vec<(u64, Span)> = Vec::new();
        let mut cut_off = 0;
        for connection in &self.workload.connections {
            for (exchange, writes) in connection.epochs_with_adus() {
                let (ask, answer) = (Adu::sum(writes, Side::Client), Adu::sum(writes, Side::Server));
                let heavy = if ask > answer { connection.direction } else { connection.direction.other() };
                if heavy == direction && exchange.whole {
                    times.push((ask.max(answer), Span::ns(exchange.took)));
                } else if heavy == direction {
                    cut_off += 1;
                }
            }
        }
        let pages = if direction == Direction::Down { &self.seen.pages[..] } else { &[] };
        let pages: Vec<Span> = pages.iter().map(|took| Span::ns(*took)).collect();
        giveway_measure::responses(&times, cut_off, &pages)
    }

    /// The statistics of the capture, for programs.
    pub fn to_json(&self, source: &Source) -> Value {
        let seen = &self.seen;
        json!({
            "file": source.shown(),
            "files": source.files,
            "notes": self.notes,
            "pauses_cut": self.pauses.count,
            "pauses_cut_s": self.pauses.cut as f64 / 1e9,
            "packets": seen.packets,
            "bytes": seen.bytes,
            "span_s": seen.span as f64 / 1e9,
            "local": self.local.to_string(),
            "local_guessed": self.why,
            "damage": self.damage,
            "connections": seen.connections,
            "quic_connections": seen.quic,
            "quic_bytes": seen.quic_bytes,
            "open_before": seen.open_before,
            "cut_off": seen.cut_off,
            "unanswered": seen.unanswered,
            "streams": seen.trains,
            "pages": seen.pages.len(),
            "rtt_median_s": seen.rtt.map(|rtt| rtt as f64 / 1e9),
            "not_ip": seen.foreign,
            "on_one_side": seen.inside,
            "bytes_missed": seen.missed,
            "share_missed": self.missing(),
            "pages_unsure": seen.unsure_pages,
            "web_requests_alone": seen.lone_requests,
            "responses": seen.responses,
            "think_times_unknown": seen.unknown_thinks,
            "think_times_least_s": seen.think_bounds.0 as f64 / 1e9,
            "think_times_most_s": seen.think_bounds.1 as f64 / 1e9,
        })
    }
}

/// A number with its noun.
fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A size for people.
fn bytes(count: u64) -> String {
    match count {
        0..1_000 => counted(count, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// A remark on the connections that the capture does not have completely.
fn open_connections(all: u64, at_start: u64, at_end: u64) -> String {
    let part = |count: u64| if count == all { "all".to_owned() } else { count.to_string() };
    let start = (at_start > 0).then(|| format!("{} open from the start", part(at_start)));
    let end = (at_end > 0).then(|| format!("{} still open at the end", part(at_end)));
    let parts: Vec<String> = start.into_iter().chain(end).collect();
    if parts.is_empty() { String::new() } else { format!(" ({}; used as far as captured)", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_connections_are_reported() {
        assert_eq!(open_connections(25, 0, 25), " (all still open at the end; used as far as captured)");
        assert_eq!(
            open_connections(25, 2, 3),
            " (2 open from the start, 3 still open at the end; used as far as captured)"
        );
        assert_eq!(open_connections(25, 0, 0), "");
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!([1, 999, 1_500, 6_471_847].map(bytes), ["1 byte", "999 bytes", "1.5 kB", "6.5 MB"]);
    }
}
