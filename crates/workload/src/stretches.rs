//! Stretches of a workload: parts of equal length, which can be arranged anew.
//!
//! # Principles
//! - A block bootstrap (H. R. Künsch, "The jackknife and the bootstrap for general stationary observations",
//!   Annals of Statistics 17(3), 1989): stretches are drawn with replacement, and each draw is as long as the
//!   whole. What belongs together within a stretch stays together, so a draw has the bursts of the capture.
//! - A connection belongs to the stretch in which it starts, and continues beyond its end. Connections that
//!   wait for each other belong to the stretch of the first of them. Trains are cut at
//!   the ends of stretches, because a call that lasts for hours would otherwise be in one stretch only. The
//!   parts that are drawn are one train again, so that quantiles cover the whole call.
//! - A page whose connections start in several stretches is not a page any more: its parts would be
//!   repeated separately.

use std::collections::BTreeMap;

use crate::datagrams::Datagrams;
use crate::model::{Connection, Train, Workload};

impl Workload {
    /// These stretches of `length` ns, one after the other: the first number is the stretch that comes first.
    /// Stretch 0 starts with the workload.
    ///
    /// # Panics
    /// If `length` is 0.
    #[must_use]
    pub fn arranged(&self, length: u64, order: &[usize]) -> Workload {
        let places = places(order);
        let stretches = self.stretches(length);
        let pages = self.pages_of_one_stretch(&stretches);
        // Each connection with its place and its number here.
        let mut connections = Vec::new();
        for (number, connection) in self.connections.iter().enumerate() {
            for place in places.get(&stretches[number]).into_iter().flatten() {
                let shift = (*place as u64 * length, stretches[number] as u64 * length);
                connections.push((moved(connection, *place, shift, &pages), *place, number));
            }
        }
        let trains = self.trains.iter().filter_map(|train| joined(cut(train, length), &places, length));
        let mut trains: Vec<Train> = trains.collect();
        connections.sort_by_key(|(connection, ..)| connection.start);
        trains.sort_by_key(|train: &Train| train.start);
        let numbers = connections.iter().enumerate();
        let numbers: BTreeMap<(usize, usize), usize> =
            numbers.map(|(at, (_, place, number))| ((*place, *number), at)).collect();
        let connections = connections.into_iter().map(|(mut connection, place, _)| {
            for after in connection.afters_mut() {
                after.connection = numbers[&(place, after.connection)];
            }
            connection
        });
        let whole = |number: &usize| self.span.saturating_sub(*number as u64 * length).min(length);
        let last = order.last().map_or(0, whole);
        let span = (order.len().saturating_sub(1) as u64) * length + last;
        Workload { span, connections: connections.collect(), trains }
    }

    /// The stretch of each connection: that in which the first of all connections starts that wait for
    /// each other.
    fn stretches(&self, length: u64) -> Vec<usize> {
        // Each connection points to one of its group, and the first one to itself.
        let mut groups: Vec<usize> = (0..self.connections.len()).collect();
        fn first(groups: &mut [usize], mut at: usize) -> usize {
            while groups[at] != at {
                groups[at] = groups[groups[at]];
                at = groups[at];
            }
            at
        }
        for (number, connection) in self.connections.iter().enumerate() {
            for other in connection.waits_for() {
                let (a, b) = (first(&mut groups, number), first(&mut groups, other));
                let start = |at: usize| (self.connections[at].start, at);
                if start(a) < start(b) { groups[b] = a } else { groups[a] = b }
            }
        }
        let stretch = |at| (self.connections[first(&mut groups, at)].start / length) as usize;
        (0..self.connections.len()).map(stretch).collect()
    }

    /// The number of pages, and the stretch of each page that starts and ends in one.
    fn pages_of_one_stretch(&self, stretches: &[usize]) -> (u32, BTreeMap<u32, bool>) {
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        let mut one: BTreeMap<u32, bool> = BTreeMap::new();
        let mut most = 0;
        for (connection, stretch) in self.connections.iter().zip(stretches) {
            for page in connection.epochs.iter().filter_map(|epoch| epoch.page) {
                most = most.max(page + 1);
                let first = *seen.entry(page).or_insert(*stretch);
                *one.entry(page).or_insert(true) &= first == *stretch;
            }
        }
        (most, one)
    }
}

/// The places of each stretch in an order.
fn places(order: &[usize]) -> BTreeMap<usize, Vec<usize>> {
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, stretch) in order.iter().enumerate() {
        places.entry(*stretch).or_default().push(place);
    }
    places
}

/// A connection at another place, which starts at the first time instead of the second. A page that is
/// repeated gets a new number each time.
fn moved(
    connection: &Connection,
    place: usize,
    (there, here): (u64, u64),
    (pages, one): &(u32, BTreeMap<u32, bool>),
) -> Connection {
    let start = there + (connection.start - here);
    let mut moved = Connection { start, ..connection.clone() };
    for epoch in &mut moved.epochs {
        epoch.page = epoch.page.filter(|page| one.get(page) == Some(&true)).map(|page| {
            let first = u32::try_from(place).unwrap_or(u32::MAX).saturating_mul(*pages);
            first.saturating_add(page)
        });
    }
    moved
}

/// The parts of a train, each with the number of its stretch.
fn cut(train: &Train, length: u64) -> Vec<(usize, Train)> {
    let mut parts: Vec<(usize, Train)> = Vec::new();
    let mut now = train.start;
    for (at, (gap, bytes)) in train.packets.iter().enumerate() {
        now += if at == 0 { 0 } else { gap };
        let stretch = (now / length) as usize;
        match parts.last_mut().filter(|(number, _)| *number == stretch) {
            Some((_, part)) => part.packets.push(gap, bytes),
            None => {
                let mut packets = Datagrams::default();
                packets.push(0, bytes);
                let (direction, group) = (train.direction, train.group.clone());
                parts.push((stretch, Train { start: now, direction, group, packets }));
            }
        }
    }
    parts
}

/// One train of the parts with a place: a call stays one call, however it is cut. `None` if no part has one.
fn joined(parts: Vec<(usize, Train)>, places: &BTreeMap<usize, Vec<usize>>, length: u64) -> Option<Train> {
    let mut placed: Vec<(u64, &Train)> = Vec::new();
    for (number, part) in &parts {
        let starts = places.get(number).into_iter().flatten();
        placed.extend(starts.map(|place| (*place as u64 * length + part.start % length, part)));
    }
    placed.sort_by_key(|(start, _)| *start);
    let (first, train) = *placed.first()?;
    let mut packets = Datagrams::default();
    let mut last = first;
    for (start, part) in placed {
        let mut now = start;
        for (at, (gap, bytes)) in part.packets.iter().enumerate() {
            now += if at == 0 { 0 } else { gap };
            packets.push(now - last, bytes);
            last = now;
        }
    }
    Some(Train { start: first, direction: train.direction, group: train.group.clone(), packets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{After, Direction, Epoch};

    fn connection(start: u64, page: Option<u32>) -> Connection {
        Connection {
            quic: false,
            start,
            after: None,
            direction: Direction::Up,
            rtt: None,
            group: "web".into(),
            begun: true,
            ended: true,
            adus: Vec::new(),
            epochs: vec![Epoch { adus: 0, took: 1, page, whole: true }],
        }
    }

    fn starts(workload: &Workload) -> Vec<(u64, Option<u32>)> {
        workload.connections.iter().map(|one| (one.start, one.epochs[0].page)).collect()
    }

    /// Three stretches of 10 ns: the second one twice, and the third one, which is shorter.
    #[test]
    fn stretches_are_repeated_and_left_out() {
        let connections = vec![
            connection(3, Some(0)),
            connection(12, Some(1)),
            connection(13, Some(1)),
            connection(21, None),
        ];
        let workload = Workload { span: 25, connections, trains: Vec::new() };
        let drawn = workload.arranged(10, &[1, 1, 2]);
        // Page 1 has another number each time.
        assert_eq!(starts(&drawn), [(2, Some(1)), (3, Some(1)), (12, Some(3)), (13, Some(3)), (21, None)]);
        assert_eq!(drawn.span, 25);
        assert_eq!(workload.arranged(10, &[0, 1, 2]).connections.len(), 4);
    }

    /// Half of a page alone would be a faster page.
    #[test]
    fn a_page_of_two_stretches_is_none() {
        let connections = vec![connection(8, Some(0)), connection(11, Some(0)), connection(12, Some(1))];
        let workload = Workload { span: 20, connections, trains: Vec::new() };
        assert_eq!(starts(&workload.arranged(10, &[0, 1])), [(8, None), (11, None), (12, Some(3))]);
    }

    /// A page opens its second connection in the next stretch. It stays a page, and waits for the copy of its
    /// document that is drawn with it.
    #[test]
    fn connections_that_wait_for_each_other_stay_together() {
        let mut object = connection(12, Some(0));
        object.after = Some(After { connection: 0, bytes: 9, pause: 2 });
        let workload =
            Workload { span: 30, connections: vec![connection(8, Some(0)), object], trains: Vec::new() };
        let drawn = workload.arranged(10, &[0, 1, 0]);
        assert_eq!(starts(&drawn), [(8, Some(0)), (12, Some(0)), (28, Some(2)), (32, Some(2))]);
        let waits: Vec<_> =
            drawn.connections.iter().map(|one| one.after.map(|after| after.connection)).collect();
        assert_eq!(waits, [None, Some(0), None, Some(2)]);
        assert_eq!(workload.arranged(10, &[1, 1]).connections, []);
    }

    /// Packets at 4, 9, 14 and 19 ns: two in each stretch. They stay one train, as a call stays one call.
    #[test]
    fn trains_are_cut_and_joined() {
        let packets = [(0, 100), (5, 101), (5, 102), (5, 103)].into_iter().collect();
        let train = Train { start: 4, direction: Direction::Down, group: "call".into(), packets };
        let workload = Workload { span: 20, connections: Vec::new(), trains: vec![train] };
        let drawn = |order: &[usize]| -> Vec<(u64, Vec<(u64, u16)>)> {
            let drawn = workload.arranged(10, order);
            drawn.trains.iter().map(|train| (train.start, train.packets.iter().collect())).collect()
        };
        assert_eq!(drawn(&[1, 0]), [(4, vec![(0, 102), (5, 103), (5, 100), (5, 101)])]);
        assert_eq!(drawn(&[1, 1]), [(4, vec![(0, 102), (5, 103), (5, 102), (5, 103)])]);
        assert_eq!(workload.arranged(10, &[0, 1]), workload);
        assert_eq!(drawn(&[7]), []);
    }
}
