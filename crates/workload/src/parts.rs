//! The parts of a workload: from flows that were taken apart to connections with think times and pages.

use giveway_qdisc::FiveTuple;

use crate::model::{Connection, Direction, Epoch, Side, Train, Workload};
use crate::names::{self, HTTPS, UDP};
use crate::pages::{self, Request};
use crate::paths::Paths;
use crate::quic;
use crate::seen::CaptureStatistics;
use crate::tcp::Tracker;
use crate::think::{Route, Service, Thinking, Waits};
use crate::timed::TimedAdu;
use crate::uploads;

/// Data bytes of a packet that counts as full, and its headers with the usual options.
const FULL: u64 = 1_000;
const HEADERS: u64 = 52;
/// Number of pairs of full packets from which their distances are a rate.
const MANY: usize = 20;

/// The parts of a workload, while flows are taken apart.
pub(crate) struct Parts {
    /// Time of the last packet.
    last: u64,
    /// Connections without their ADUs, which have their times here, and their ends.
    connections: Vec<(Connection, Vec<TimedAdu>, Option<FiveTuple>)>,
    pub trains: Vec<Train>,
}

impl Parts {
    /// Nothing yet, of a capture whose last packet has this time.
    pub fn new(last: u64) -> Parts {
        Parts { last, connections: Vec::new(), trains: Vec::new() }
    }

    pub fn connection(
        &mut self,
        tuple: FiveTuple,
        direction: Direction,
        tracker: Tracker,
        paths: &Paths,
        seen: &mut CaptureStatistics,
    ) {
        let Tracker { start, begun, ended, .. } = tracker;
        let rtt = paths.rtt(&tuple);
        let (adus, epochs) = tracker.close();
        seen.open_before += u64::from(!begun);
        seen.cut_off += u64::from(!ended);
        seen.empty += u64::from(adus.is_empty());
        seen.without_rtt += u64::from(rtt.is_none());
        let bytes = |side| {
            adus.iter().map(|timed| &timed.adu).filter(|adu| adu.side == side).map(|adu| adu.bytes).sum()
        };
        let group = names::connection(tuple.to_port, bytes(Side::Client), bytes(Side::Server));
        let (after, quic) = (None, false);
        let connection =
            Connection { quic, start, after, direction, rtt, group, begun, ended, adus: Vec::new(), epochs };
        self.connections.push((connection, adus, Some(tuple)));
    }

    pub fn quic_connection(
        &mut self,
        direction: Direction,
        tracker: quic::Tracker,
        rtt: Option<u64>,
        seen: &mut CaptureStatistics,
    ) {
        let (start, ended) = (tracker.start, tracker.is_over(self.last));
        let rtt = rtt.filter(|rtt| *rtt <= Workload::LONGEST);
        let (adus, epochs) = tracker.close(ended);
        seen.without_rtt += u64::from(rtt.is_none());
        let (group, after, quic, begun) = (names::other(UDP, HTTPS), None, true, true);
        let connection =
            Connection { quic, start, after, direction, rtt, group, begun, ended, adus: Vec::new(), epochs };
        self.connections.push((connection, adus, None));
    }

    /// The workload: its think times and its pages.
    pub fn finish(mut self, waits: &Waits, paths: &Paths, seen: &mut CaptureStatistics) -> Workload {
        self.connections.sort_by_key(|(connection, ..)| connection.start);
        self.trains.sort_by_key(|train| train.start);
        let byte = self.time_of_a_byte(waits, seen);
        let mut thinking = Thinking::default();
        let mut requests = Vec::new();
        for (number, (connection, adus, tuple)) in self.connections.iter_mut().enumerate() {
            let Some(tuple) = tuple else { continue };
            for (at, timed) in adus.iter().enumerate() {
                let Some(reaction) = &timed.reaction else { continue };
                let side = timed.adu.side;
                let host = if side == Side::Client { tuple.from } else { tuple.to };
                let service: Service = (host, tuple.to_port, side);
                // The data of the other side are what it waits for.
                let direction =
                    if side == Side::Server { connection.direction } else { connection.direction.other() };
                let path = paths.to(tuple, side);
                let route = Route { direction, path, waits, byte };
                thinking.add((number, at), service, reaction, timed.first, &route);
            }
            let path = paths.to(tuple, Side::Client).unwrap_or(0);
            requests.extend(requests_of(number, connection, adus, tuple, path));
        }
        let connections = self.connections.into_iter().map(|(connection, adus, _)| Connection {
            adus: adus.into_iter().map(|timed| timed.adu).collect(),
            ..connection
        });
        let mut workload =
            Workload { span: self.last, connections: connections.collect(), trains: self.trains };
        let unknown = thinking.resolve(&mut workload.connections);
        seen.responses = unknown.responses;
        seen.unknown_thinks = unknown.count;
        seen.think_bounds = (unknown.least, unknown.most);
        uploads::chain(&mut workload.connections, &requests);
        let pages = pages::number(&mut workload.connections, requests);
        (seen.pages, seen.unsure_pages, seen.all_pages) = (pages.took, pages.unsure, pages.all);
        seen.lone_requests = pages.lone;
        workload
    }

    /// Time that a byte takes in each direction, ns, where the capture shows it; otherwise 0.
    fn time_of_a_byte(&self, waits: &Waits, seen: &CaptureStatistics) -> [f64; 2] {
        [Direction::Up, Direction::Down].map(|direction| match waits.full[direction as usize] {
            0 => self.between_packets(direction),
            full => 8e9 / seen.busiest[direction as usize].max(full) as f64,
        })
    }

    /// The time of full packets that arrive one after another, in a direction that only data of servers show:
    /// a quarter of them is closer together. 0 if they are few.
    fn between_packets(&self, direction: Direction) -> f64 {
        let servers = self.connections.iter().filter(|(connection, ..)| connection.direction != direction);
        let arrivals = servers.flat_map(|(_, adus, _)| adus.iter().map(|timed| &timed.arrivals));
        let gaps = arrivals.flat_map(|arrivals| arrivals.windows(2)).filter_map(|pair| {
            let bytes = pair[1].1 - pair[0].1;
            (bytes >= FULL).then(|| (pair[1].0 - pair[0].0) as f64 / (bytes + HEADERS) as f64)
        });
        let mut gaps: Vec<f64> = gaps.collect();
        gaps.sort_unstable_by(f64::total_cmp);
        if gaps.len() < MANY { 0.0 } else { gaps[gaps.len() / 4] }
    }
}

/// The requests of a connection, for its pages.
fn requests_of(
    number: usize,
    connection: &Connection,
    adus: &[TimedAdu],
    tuple: &FiveTuple,
    path: u64,
) -> Vec<Request> {
    let mut requests = Vec::new();
    let (mut adu, mut total) = (0, 0);
    for (epoch, Epoch { adus: count, took, .. }) in connection.epochs.iter().enumerate() {
        let mine = &adus[adu..][..*count as usize];
        let from = if epoch == 0 { connection.start } else { mine[0].first };
        let mut sent = 0;
        let mut arrivals = Vec::new();
        for TimedAdu { adu, arrivals: more, .. } in mine {
            if adu.side == Side::Server {
                arrivals.extend(more.iter().map(|(time, bytes)| (*time, total + bytes)));
                total += adu.bytes;
            } else {
                sent += adu.bytes;
            }
        }
        let received = mine.iter().map(|timed| timed.adu.bytes).sum::<u64>() - sent;
        requests.push(Request {
            connection: number,
            epoch,
            adu,
            client: tuple.from,
            server: tuple.to,
            is_upload: sent > received,
            from,
            until: from + took,
            arrivals,
            total,
            path,
        });
        adu += mine.len();
    }
    requests
}
