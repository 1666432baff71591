//! A medium that several links share, such as the channel of a Wi-Fi network.
//!
//! # Principles
//! One link transmits at a time, and it sends a burst of packets (A-MPDU, IEEE 802.11). A node that has
//! packets waits until the medium is free, then for the `access` time, then for a backoff, which is uniform
//! from zero to `backoff`. The node whose backoff ends first gets the medium. The others keep what is left of
//! theirs for the next time, so that in the long run all nodes get the medium equally often: this is the
//! distributed coordination function. A node uses one backoff for all its links, as an access point does for
//! its stations. [`Airtime`] says which of its links is next.
//!
//! A burst takes `overhead` (preamble, SIFS and block acknowledgement) and the transmission times of its
//! packets. It takes packets from the queue of its link until one more of the largest length would exceed a
//! limit of [`BurstLimit`]. All its packets arrive at its end.
//!
//! # Deviations from IEEE 802.11
//! - Backoffs are not counted in slots, so no two end at the same time and nothing collides. The window does
//!   not grow.
//! - A node waits for its backoff even if the medium has been free for long.
//! - Packets carry no headers of the medium: a rate counts IP packets. A lost packet is not repeated by the
//!   link, and no rate is adapted.
//!
//! # Cost
//! Constant per burst if links of a node take turns; with fair airtime amortized constant.
//!
//! # References
//! - IEEE 802.11-2020, section 10.3 (DCF) and 10.12 (A-MPDU): the default times come from 802.11n at 5 GHz.
//! - T. Høiland-Jørgensen, M. Kazior, D. Täht, P. Hurtig, A. Brunstrom, "Ending the Anomaly: Achieving Low
//!   Latency and Airtime Fairness in WiFi", USENIX ATC 2017: the scheduler of airtime.
//! - M. Heusse, F. Rousseau, G. Berger-Sabbatel, A. Duda, "Performance anomaly of 802.11b", INFOCOM 2003.

use std::collections::VecDeque;

use giveway_qdisc::{Rng, Span, Streams, Time};

/// The choice among the links of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Airtime {
    /// The links take turns, a burst each. A slow link then takes most of the time: the performance anomaly.
    #[default]
    Turns,
    /// Each link gets the same time: deficit round robin over the time of bursts in both directions. A link
    /// that had no packets to send goes first once.
    Fair,
}

/// The limits of a burst. The first packet is sent even if it exceeds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLimit {
    /// Bytes.
    pub bytes: u64,
    /// Transmission time, without the overhead.
    pub time: Span,
    /// Packets.
    pub packets: u32,
}

/// The parameters of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumSpec {
    /// The time for which the medium must be free before a backoff counts.
    pub access: Span,
    /// The largest backoff.
    pub backoff: Span,
    /// The time that each burst takes in addition to its packets.
    pub overhead: Span,
    /// The limits of a burst.
    pub limit: BurstLimit,
    /// The choice among the links of a node.
    pub airtime: Airtime,
}

impl Default for MediumSpec {
    /// 802.11n at 5 GHz, best effort. The access time is AIFS, 16 µs + 3 * 9 µs. The largest backoff is 15
    /// slots of 9 µs. The overhead is a preamble of 36 µs, SIFS of 16 µs, and a block acknowledgement of 32
    /// µs. A burst has at most 65,535 bytes and 64 packets, and lasts 4 ms, which is the limit of Linux.
    fn default() -> MediumSpec {
        MediumSpec {
            access: Span::us(43),
            backoff: Span::us(135),
            overhead: Span::us(84),
            limit: BurstLimit { bytes: 65_535, time: Span::ms(4), packets: 64 },
            airtime: Airtime::default(),
        }
    }
}

/// The time that a link may use before the next one of its node, with [`Airtime::Fair`]. The paper leaves it
/// open; this is less than most bursts, so that a link gets a burst at a time.
const QUANTUM: Span = Span::us(300);

/// A link that uses a medium, numbered by the order in which links are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station(u32);

impl Station {
    /// Its number, from 0.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// A medium in use. The backend adds its links first. Then it calls [`request`](Medium::request) for a link
/// that has packets, [`grant`](Medium::grant) at the time of [`next`](Medium::next), and
/// [`end`](Medium::end) with the burst of the link.
#[derive(Debug)]
pub struct Medium {
    spec: MediumSpec,
    rng: Rng,
    /// End of the current or last burst.
    free_at: Time,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

/// A node that sends.
#[derive(Debug)]
struct Node {
    number: u16,
    /// Number of its links that have packets to send.
    waiting: u32,
    /// The time at which its backoff ends, and the backoff, if it waits for the medium.
    due: Option<(Time, Span)>,
    /// The rest of its backoff at the beginning of the next free time.
    left: Option<Span>,
    /// Its links that wait, the next one first. With fair airtime these are the links that had packets when
    /// they were last served, and may have none now.
    turns: VecDeque<u32>,
    /// With fair airtime, the links that had no packets to send; they go first.
    fresh: VecDeque<u32>,
}

/// A link that uses the medium.
#[derive(Debug)]
struct Link {
    /// Index of the sending node.
    node: usize,
    to: u16,
    /// True if it has packets to send.
    waits: bool,
    /// True if it is in a list of its node.
    listed: bool,
    /// Airtime that it may still use, in picoseconds; negative if it has used more.
    deficit: i128,
    /// The link in the other direction, if there is one.
    reverse: Option<u32>,
}

impl Medium {
    /// A free medium without links.
    pub fn new(spec: MediumSpec, streams: &Streams) -> Medium {
        let rng = streams.within("backoff").rng();
        Medium { spec, rng, free_at: Time::ZERO, nodes: Vec::new(), links: Vec::new() }
    }

    /// Adds a link between two nodes.
    pub fn add(&mut self, from: u16, to: u16) -> Station {
        let node = self.nodes.iter().position(|node| node.number == from).unwrap_or_else(|| {
            let (turns, fresh) = (VecDeque::new(), VecDeque::new());
            self.nodes.push(Node { number: from, waiting: 0, due: None, left: None, turns, fresh });
            self.nodes.len() - 1
        });
        let number = self.links.len() as u32;
        let is_reverse = |link: &Link| link.to == from && self.nodes[link.node].number == to;
        let reverse = self.links.iter().position(is_reverse).map(|link| link as u32);
        if let Some(reverse) = reverse {
            self.links[reverse as usize].reverse = Some(number);
        }
        let deficit = QUANTUM.as_ps().into();
        self.links.push(Link { node, to, waits: false, listed: false, deficit, reverse });
        Station(number)
    }

    /// The parameters.
    pub fn spec(&self) -> &MediumSpec {
        &self.spec
    }

    /// A link has packets to send from `now` on.
    pub fn request(&mut self, station: Station, now: Time) {
        let link = &mut self.links[station.0 as usize];
        if std::mem::replace(&mut link.waits, true) {
            return;
        }
        let sender = link.node;
        let node = &mut self.nodes[sender];
        node.waiting += 1;
        if !std::mem::replace(&mut link.listed, true) {
            match self.spec.airtime {
                Airtime::Turns => node.turns.push_back(station.0),
                Airtime::Fair => {
                    // What it used before is forgotten, as the state of a new flow in FQ-CoDel.
                    link.deficit = QUANTUM.as_ps().into();
                    node.fresh.push_back(station.0);
                }
            }
        }
        self.contend(sender, now);
    }

    /// The time at which a link may transmit next; [`Time::NEVER`] if none has packets.
    pub fn next(&self) -> Time {
        self.nodes.iter().filter_map(|node| node.due).map(|(at, _)| at).min().unwrap_or(Time::NEVER)
    }

    /// The link that may transmit at `now`, which is [`next`](Medium::next). It does not wait any more.
    pub fn grant(&mut self, now: Time) -> Option<Station> {
        let winner = self.nodes.iter().position(|node| node.due.is_some_and(|(due, _)| due <= now))?;
        self.nodes[winner].due = None;
        for node in &mut self.nodes {
            if let Some((due, backoff)) = node.due.take() {
                // A node that still waits for the access time has counted nothing.
                node.left = Some(due.since(now).min(backoff));
            }
        }
        let station = self.choose(winner)?;
        self.links[station.0 as usize].waits = false;
        self.nodes[winner].waiting -= 1;
        Some(station)
    }

    /// The link that [`grant`](Medium::grant) chose has sent from `begin` to `end`, or nothing if both are
    /// equal. It `waits` if it has more packets. All nodes that wait contend for the time after it.
    pub fn end(&mut self, station: Station, begin: Time, end: Time, waits: bool) {
        self.free_at = end;
        let link = &mut self.links[station.0 as usize];
        link.waits = waits;
        let used = i128::from(end.since(begin).as_ps());
        link.deficit -= used;
        let (node, reverse) = (link.node, link.reverse);
        self.nodes[node].waiting += u32::from(waits);
        match self.spec.airtime {
            Airtime::Turns if waits => self.nodes[node].turns.push_back(station.0),
            Airtime::Turns => link.listed = false,
            Airtime::Fair => {}
        }
        if let Some(reverse) = reverse {
            self.links[reverse as usize].deficit -= used;
        }
        for other in 0..self.nodes.len() {
            if self.nodes[other].waiting > 0 {
                self.contend(other, end);
            }
        }
    }

    /// A node takes part in the competition for the medium from `now` on, if it does not yet.
    fn contend(&mut self, node: usize, now: Time) {
        let node = &mut self.nodes[node];
        if node.due.is_none() {
            let left = node.left.take();
            let backoff =
                left.unwrap_or_else(|| Span::from_ps(self.rng.below(self.spec.backoff.as_ps() + 1)));
            node.due = Some((self.free_at.max(now) + self.spec.access + backoff, backoff));
        }
    }

    /// The next link of a node with the medium.
    fn choose(&mut self, node: usize) -> Option<Station> {
        let node = &mut self.nodes[node];
        if self.spec.airtime == Airtime::Turns {
            return node.turns.pop_front().map(Station);
        }
        loop {
            let fresh = !node.fresh.is_empty();
            let list = if fresh { &mut node.fresh } else { &mut node.turns };
            let number = *list.front()?;
            let link = &mut self.links[number as usize];
            if link.deficit <= 0 {
                link.deficit += i128::from(QUANTUM.as_ps());
                list.pop_front();
                node.turns.push_back(number);
            } else if link.waits {
                return Some(Station(number));
            } else {
                list.pop_front();
                // A link that goes first does so once in a round, even if it always has one packet.
                if fresh {
                    node.turns.push_back(number);
                } else {
                    link.listed = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Rate;

    const SPEC: MediumSpec = MediumSpec {
        access: Span::us(40),
        backoff: Span::us(100),
        overhead: Span::us(80),
        limit: BurstLimit { bytes: 65_535, time: Span::ms(4), packets: 64 },
        airtime: Airtime::Turns,
    };
    const ACCESS_POINT: u16 = 0;

    /// Airtime and bursts of each link if all always have packets, each burst of this length.
    fn saturated(airtime: Airtime, links: &[((u16, u16), Span)], until: Time) -> Vec<(Span, u64)> {
        let mut medium = Medium::new(MediumSpec { airtime, ..SPEC }, &Streams::new(1));
        let stations: Vec<Station> = links.iter().map(|((from, to), _)| medium.add(*from, *to)).collect();
        stations.iter().for_each(|station| medium.request(*station, Time::ZERO));
        let mut used = vec![(Span::ZERO, 0); links.len()];
        let mut last_end = Time::ZERO;
        while medium.next() < until {
            let now = medium.next();
            assert!(now >= last_end + SPEC.access, "the medium is free for the access time");
            let station = medium.grant(now).expect("all have packets");
            let burst = links[station.0 as usize].1;
            medium.end(station, now, now + burst, true);
            last_end = now + burst;
            used[station.0 as usize].0 += burst;
            used[station.0 as usize].1 += 1;
        }
        used
    }

    /// The performance anomaly (Heusse et al., 2003): a burst each, so the slow link has most of the time.
    #[test]
    fn with_turns_each_link_of_a_node_sends_as_many_bursts() {
        let links = [((ACCESS_POINT, 1), Span::ms(1)), ((ACCESS_POINT, 2), Span::ms(4))];
        let used = saturated(Airtime::Turns, &links, Time::s(10));
        assert!(used[0].1.abs_diff(used[1].1) <= 1, "{used:?}");
    }

    #[test]
    fn with_fair_airtime_each_link_of_a_node_has_as_much_time() {
        let links = [
            ((ACCESS_POINT, 1), Span::ms(1)),
            ((ACCESS_POINT, 2), Span::ms(4)),
            ((ACCESS_POINT, 3), Span::us(200)),
        ];
        let used = saturated(Airtime::Fair, &links, Time::s(10));
        let times: Vec<u64> = used.iter().map(|(time, _)| time.as_ps()).collect();
        let spread = times.iter().max().unwrap() - times.iter().min().unwrap();
        assert!(spread <= 2 * Span::ms(4).as_ps(), "the times differ by at most two bursts: {used:?}");
    }

    /// The bursts of a station count for it at the access point.
    #[test]
    fn fair_airtime_counts_both_directions() {
        let links = [
            ((ACCESS_POINT, 1), Span::ms(1)),
            ((ACCESS_POINT, 2), Span::ms(1)),
            ((1, ACCESS_POINT), Span::ms(1)),
        ];
        let used = saturated(Airtime::Fair, &links, Time::s(20));
        // The access point and station 1 each get half of the bursts. The half of station 1 is its share and
        // more, so nearly all of the access point's bursts go to station 2.
        assert!(used[1].1 > 10 * used[0].1, "{used:?}");
        assert!(used[2].1.abs_diff(used[0].1 + used[1].1) < 200, "both nodes get as many bursts: {used:?}");
    }

    /// Nodes get the medium equally often, and the time between two bursts is the access time and the
    /// shortest of their backoffs. With two nodes that keep what is left of theirs, a node starts a new
    /// backoff of 50 us on average after each of its bursts, and half of the bursts are its own. So the free
    /// time between bursts has a mean of 40 + 25 us.
    #[test]
    fn nodes_share_the_medium_equally() {
        let links = [((1, ACCESS_POINT), Span::ms(1)), ((2, ACCESS_POINT), Span::ms(1))];
        let until = Time::s(40);
        let used = saturated(Airtime::Turns, &links, until);
        let bursts = used[0].1 + used[1].1;
        assert!(used[0].1.abs_diff(used[1].1) < bursts / 20, "{used:?}");
        let expected = until.as_ps() / Span::us(1065).as_ps();
        assert!(bursts.abs_diff(expected) < expected / 500, "{bursts} bursts, expected {expected}");
    }

    /// A station with a packet now and then waits for the burst in progress, and for nobody's turn.
    #[test]
    fn a_link_that_had_nothing_goes_first_with_fair_airtime() {
        let mut medium = Medium::new(MediumSpec { airtime: Airtime::Fair, ..SPEC }, &Streams::new(1));
        let busy: Vec<Station> = (1..=4).map(|station| medium.add(ACCESS_POINT, station)).collect();
        let sparse = medium.add(ACCESS_POINT, 5);
        busy.iter().for_each(|station| medium.request(*station, Time::ZERO));
        for round in 0..20 {
            let now = medium.next();
            let station = medium.grant(now).unwrap();
            medium.end(station, now, now + Span::ms(2), true);
            if round == 10 {
                medium.request(sparse, now + Span::ms(1));
                let next = medium.next();
                assert_eq!(medium.grant(next), Some(sparse));
                return medium.end(sparse, next, next + Span::us(100), false);
            }
        }
        unreachable!("the eleventh round returns");
    }

    #[test]
    fn a_medium_without_packets_is_silent() {
        let mut medium = Medium::new(SPEC, &Streams::new(1));
        let station = medium.add(ACCESS_POINT, 1);
        assert_eq!(medium.next(), Time::NEVER);
        medium.request(station, Time::ms(7));
        let at = medium.next();
        assert!((Time::us(7040)..=Time::us(7140)).contains(&at));
        assert_eq!(medium.grant(at), Some(station));
        medium.end(station, at, at + Rate::mbit(100).time_for(1500), false);
        assert_eq!(medium.next(), Time::NEVER);
        assert_eq!(medium.grant(Time::s(1)), None);
    }
}
