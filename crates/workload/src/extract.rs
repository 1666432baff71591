//! The extraction of a workload from packets, in one pass.

use std::collections::BTreeMap;

use giveway_capture::{Ip, Macs, Packet};
use giveway_qdisc::FiveTuple;
use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::hash::SipHasher;

use crate::busiest::{Seconds, Sum};
use crate::datagrams::Datagrams;
use crate::local::{Local, Pair};
use crate::model::{Direction, Side, Train, Workload};
use crate::names::{self, HTTPS, UDP};
use crate::pace;
use crate::parts::Parts;
use crate::paths::{Paths, RoundTrips};
use crate::quic;
use crate::seen::CaptureStatistics;
use crate::tcp::{ACK, SYN, Tracker};
use crate::think::{Measured, Waits};

/// Flows are found by a keyed hash of their addresses and ports; the key is fixed, so that the same capture
/// gives the same workload.
const HASHER: SipHasher = SipHasher::new(0x776f_726b_6c6f_6164, 0x6361_7074_7572_6564);

/// Largest number of flows. Packets of further flows are counted and left out, so that memory is bounded.
const MAX_FLOWS: usize = 2_000_000;

/// Number of groups with their own name in tables; the rest is "other".
const MAX_GROUPS: usize = 6;

/// Extracts a workload from the packets of a capture, which are added in the order of the file.
#[derive(Default)]
pub struct Extraction {
    /// Index in `flows` by 5-tuple, the smaller end first.
    indices: FlowMap<u32>,
    flows: Vec<Flow>,
    first: Option<u64>,
    last: u64,
    round_trips: Measured,
    seen: CaptureStatistics,
}

/// Both directions between two ends.
struct Flow {
    /// The 5-tuple in the direction from the client, or from the end that was seen first.
    tuple: FiveTuple,
    macs: Option<Macs>,
    /// Packets and IP bytes in the direction of `tuple`.
    forward: (u64, u64),
    /// Packets and IP bytes in the reverse direction.
    reverse: (u64, u64),
    /// IP bytes in each second, in the direction of `tuple` and in the reverse direction.
    seconds: [Seconds; 2],
    kind: FlowState,
}

enum FlowState {
    Tcp(Box<Tracker>),
    Other {
        forward: Times,
        reverse: Times,
        /// Set if it starts like a QUIC connection.
        quic: Option<Box<quic::Tracker>>,
    },
}

/// The packets of a train: gap before each, ns, and length.
#[derive(Default)]
struct Times {
    start: u64,
    last: u64,
    packets: Datagrams,
}

const TCP: u8 = 6;
/// Packets of a TCP flow in one direction from which a missing answer is not an accident.
const ONE_WAY: u64 = 5;

impl Extraction {
    /// Adds the next packet.
    pub fn packet(&mut self, packet: &Packet) {
        self.seen.packets += 1;
        let Some(ip) = &packet.ip else {
            self.seen.foreign += 1;
            return;
        };
        self.seen.bytes += u64::from(packet.bytes);
        self.seen.largest = self.seen.largest.max(packet.bytes);
        self.seen.kind(packet, ip);
        let first = *self.first.get_or_insert(packet.time);
        // Times of captures of several interfaces may step back a little; larger steps are limited to one
        // second.
        let now = packet.time.saturating_sub(first).max(self.last.saturating_sub(1_000_000_000));
        self.last = self.last.max(now);
        let is_tcp = ip.tuple.protocol == TCP;
        let Some((tcp, len)) = ip.tcp.zip(ip.data) else {
            if is_tcp {
                self.seen.headless += 1;
            } else {
                self.other(packet, ip, now);
            }
            return;
        };
        let Some(index) = self.flow_of(packet, ip, now) else { return };
        let flow = &self.flows[index];
        let from = if flow.tuple == ip.tuple { Side::Client } else { Side::Server };
        if let FlowState::Tcp(tracker) = &flow.kind
            && tracker.is_over(from, &tcp)
        {
            if self.flows.len() >= MAX_FLOWS {
                self.seen.crowded += 1;
                return;
            }
            let key = canonical(&ip.tuple).key(&HASHER);
            let next = self.add(packet, ip, now);
            *self.indices.get_mut(key).expect("the flow was found above") = next;
            return self.tcp(next as usize, packet, ip, (&tcp, len), now);
        }
        self.tcp(index, packet, ip, (&tcp, len), now);
    }

    fn tcp(
        &mut self,
        index: usize,
        packet: &Packet,
        ip: &Ip,
        (tcp, len): (&giveway_capture::Tcp, u32),
        now: u64,
    ) {
        let flow = &mut self.flows[index];
        let is_forward = flow.count(packet, ip, now);
        if let FlowState::Tcp(tracker) = &mut flow.kind {
            tracker.packet(if is_forward { Side::Client } else { Side::Server }, tcp, len, packet.bytes, now);
            if let Some(trip) = tracker.measured {
                self.round_trips.add(index as u32, trip);
            }
        }
    }

    fn other(&mut self, packet: &Packet, ip: &Ip, now: u64) {
        let Some(index) = self.flow_of(packet, ip, now) else { return };
        let flow = &mut self.flows[index];
        let is_forward = flow.count(packet, ip, now);
        if let FlowState::Other { forward, reverse, quic } = &mut flow.kind {
            if let (Some(tracker), Some(payload)) = (quic, ip.data) {
                let from = if is_forward { Side::Client } else { Side::Server };
                tracker.packet(from, payload, ip.first, now);
            }
            let times = if is_forward { forward } else { reverse };
            if times.packets.is_empty() {
                (times.start, times.last) = (now, now);
            }
            times.packets.push(now.saturating_sub(times.last), packet.bytes.min(65_535) as u16);
            // If times step back, the sum of the gaps still ends at the last packet.
            times.last = times.last.max(now);
        }
    }

    /// Index of the flow of a packet, which is added if it is new; `None` if the table of flows is full.
    fn flow_of(&mut self, packet: &Packet, ip: &Ip, now: u64) -> Option<usize> {
        let key = canonical(&ip.tuple).key(&HASHER);
        if let Some(index) = self.indices.get(key) {
            return Some(*index as usize);
        }
        if self.flows.len() >= MAX_FLOWS {
            self.seen.crowded += 1;
            return None;
        }
        let index = self.add(packet, ip, now);
        self.indices.entry(key, || index);
        Some(index as usize)
    }

    fn add(&mut self, packet: &Packet, ip: &Ip, now: u64) -> u32 {
        let mut flow = Flow {
            tuple: ip.tuple,
            macs: packet.mac,
            forward: (0, 0),
            reverse: (0, 0),
            seconds: Default::default(),
            kind: FlowState::Other { forward: Times::default(), reverse: Times::default(), quic: None },
        };
        if let Some(tcp) = ip.tcp {
            let opens = tcp.flags & SYN > 0;
            let answers = opens && tcp.flags & ACK > 0;
            let by_port =
                !opens && names::server_port(ip.tuple.from_port, ip.tuple.to_port) == ip.tuple.from_port;
            if answers || (by_port && ip.tuple.from_port != ip.tuple.to_port) {
                flow.tuple = ip.tuple.reversed();
                flow.macs = packet.mac.map(|macs| Macs { from: macs.to, to: macs.from });
            }
            flow.kind =
                FlowState::Tcp(Box::new(Tracker::new(now, names::is_web(&names::tcp(flow.tuple.to_port)))));
        }
        if let FlowState::Other { quic, .. } = &mut flow.kind
            && (ip.tuple.protocol, ip.tuple.to_port) == (UDP, HTTPS)
            && ip.first.is_some_and(quic::is_long)
        {
            *quic = Some(Box::new(quic::Tracker::new(now)));
        }
        self.flows.push(flow);
        self.flows.len() as u32 - 1
    }

    /// A guess of the local side from the packets, and the reason as a sentence.
    pub fn guess(&self) -> Option<(Local, String)> {
        let pairs: Vec<Pair> = self.flows.iter().map(Flow::pair).collect();
        Local::guess(&pairs)
    }

    /// Statistics of the packets so far.
    pub fn seen(&self) -> &CaptureStatistics {
        &self.seen
    }

    /// Counts connections of which only one direction is in the capture.
    fn count_one_way(&mut self) {
        for flow in self.flows.iter().filter(|flow| matches!(flow.kind, FlowState::Tcp(_))) {
            let bytes = flow.forward.1 + flow.reverse.1;
            self.seen.tcp_bytes += bytes;
            let (less, more) = (flow.forward.0.min(flow.reverse.0), flow.forward.0.max(flow.reverse.0));
            if less == 0 && more >= ONE_WAY {
                self.seen.one_way_bytes += bytes;
            }
        }
    }

    /// True if any flow crosses the link between `local` and the rest.
    pub fn crosses(&self, local: &Local) -> bool {
        self.flows.iter().any(|flow| flow.direction(local).is_some())
    }

    /// The addresses with the most packets, for a message.
    pub fn busiest(&self) -> Vec<String> {
        let mut packets: BTreeMap<[u8; 16], u64> = BTreeMap::new();
        for flow in &self.flows {
            *packets.entry(flow.tuple.from).or_default() += flow.forward.0 + flow.reverse.0;
            *packets.entry(flow.tuple.to).or_default() += flow.forward.0 + flow.reverse.0;
        }
        let mut packets: Vec<(u64, [u8; 16])> =
            packets.into_iter().map(|(address, count)| (count, address)).collect();
        packets.sort_unstable_by(|a, b| b.cmp(a));
        packets.iter().take(4).map(|(_, address)| crate::local::address_text(address)).collect()
    }

    /// The workload of everything that crosses the link between `local` and the rest.
    pub fn finish(mut self, local: &Local) -> (Workload, CaptureStatistics) {
        self.count_one_way();
        let Extraction { flows, round_trips, mut seen, last, .. } = self;
        seen.span = last;
        let paths = Paths::of(flows.iter().filter_map(|flow| Some((flow.tuple, flow.round_trips()?))));
        let mut sums: [Sum; 2] = Default::default();
        for flow in &flows {
            let Some(direction) = flow.direction(local) else {
                seen.inside += flow.forward.0 + flow.reverse.0;
                continue;
            };
            seen.count(direction, flow.forward);
            seen.count(direction.other(), flow.reverse);
            for (seconds, direction) in flow.seconds.iter().zip([direction, direction.other()]) {
                sums[direction as usize].add(seconds);
            }
        }
        seen.hours = [sums[0].hours(), sums[1].hours()];
        seen.begin = self.first.unwrap_or(0);
        seen.busiest = sums.map(|sum| sum.busiest());
        let waits = Waits::new(round_trips, |flow, side| {
            let flow = &flows[flow as usize];
            let direction = flow.direction(local)?;
            let direction = if side == Side::Client { direction } else { direction.other() };
            Some((direction, paths.to(&flow.tuple, side.other())?))
        });
        let mut parts = Parts::new(last);
        for flow in flows {
            let Some(direction) = flow.direction(local) else { continue };
            match flow.kind {
                FlowState::Tcp(tracker) => {
                    if tracker.refused || (tracker.begun && flow.reverse.0 == 0) {
                        seen.unanswered += 1;
                        continue;
                    }
                    if !tracker.begun && tracker.has_no_data() {
                        seen.strays += 1;
                        continue;
                    }
                    seen.missed += tracker.missed();
                    parts.connection(flow.tuple, direction, *tracker, &paths, &mut seen);
                }
                FlowState::Other { quic: Some(tracker), .. } if tracker.is_answered() => {
                    seen.quic += 1;
                    seen.quic_bytes += flow.forward.1 + flow.reverse.1;
                    let rtt = paths.rtt(&flow.tuple);
                    parts.quic_connection(direction, *tracker, rtt, &mut seen);
                }
                FlowState::Other { forward, reverse, .. } => {
                    let port = names::server_port(flow.tuple.from_port, flow.tuple.to_port);
                    let group = names::other(flow.tuple.protocol, port);
                    for (times, direction) in [(forward, direction), (reverse, direction.other())] {
                        parts.trains.extend(times.train(direction, &group));
                    }
                }
            }
        }
        let mut workload = parts.finish(&waits, &paths, &mut seen);
        seen.connections = workload.connections.len() as u64 - seen.quic;
        seen.trains = workload.trains.len() as u64;
        seen.rtt = workload.rtt();
        join_small_groups(&mut workload);
        (workload, seen)
    }
}

impl Flow {
    /// Smallest round trips from the capture point to the client and to the server; `None` for datagrams.
    fn round_trips(&self) -> Option<RoundTrips> {
        match &self.kind {
            FlowState::Tcp(tracker) => Some(tracker.paths()),
            FlowState::Other { quic, .. } => quic.as_ref().map(|tracker| tracker.handshake()),
        }
    }

    /// Counts a packet. Returns true if it has the direction of the tuple.
    fn count(&mut self, packet: &Packet, ip: &Ip, now: u64) -> bool {
        let is_forward = ip.tuple == self.tuple;
        let counts = if is_forward { &mut self.forward } else { &mut self.reverse };
        counts.0 += 1;
        counts.1 += u64::from(packet.bytes);
        self.seconds[usize::from(!is_forward)].add(now, packet.bytes);
        is_forward
    }

    fn direction(&self, local: &Local) -> Option<Direction> {
        let (a, b) = self.ends();
        local.direction(a, b)
    }

    #[allow(clippy::type_complexity, reason = "the two ends need no type of their own")]
    fn ends(&self) -> (([u8; 16], Option<[u8; 6]>), ([u8; 16], Option<[u8; 6]>)) {
        ((self.tuple.from, self.macs.map(|macs| macs.from)), (self.tuple.to, self.macs.map(|macs| macs.to)))
    }

    fn pair(&self) -> Pair {
        let (a, b) = self.ends();
        let opened = matches!(&self.kind, FlowState::Tcp(tracker) if tracker.begun);
        Pair { a, b, packets: self.forward.0 + self.reverse.0, opened }
    }
}

impl Times {
    fn train(self, direction: Direction, group: &str) -> Option<Train> {
        if self.packets.is_empty() {
            return None;
        }
        let mut train =
            Train { start: self.start, direction, group: group.to_owned(), packets: self.packets };
        if let Some(interval) = pace::of(&train) {
            train.group = "voice-like".to_owned();
            train = pace::as_sent(&train, interval);
        }
        Some(train)
    }
}

/// A tuple that is equal for both directions of a flow.
fn canonical(tuple: &FiveTuple) -> FiveTuple {
    let reversed = tuple.reversed();
    if (tuple.from, tuple.from_port) <= (tuple.to, tuple.to_port) { *tuple } else { reversed }
}

/// Names only the groups with the most bytes.
fn join_small_groups(workload: &mut Workload) {
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    for connection in &workload.connections {
        *bytes.entry(connection.group.clone()).or_default() +=
            connection.adus.iter().map(|adu| adu.bytes).sum::<u64>();
    }
    for train in &workload.trains {
        *bytes.entry(train.group.clone()).or_default() += train.bytes();
    }
    if bytes.len() <= MAX_GROUPS {
        return;
    }
    // Calls have few bytes, but their delay is of interest, so they always keep their name.
    let weight = |(group, bytes): (&String, &u64)| if group == "voice-like" { u64::MAX } else { *bytes };
    let mut order: Vec<(u64, String)> = bytes.iter().map(|entry| (weight(entry), entry.0.clone())).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let named: Vec<String> = order.into_iter().take(MAX_GROUPS - 1).map(|(_, group)| group).collect();
    let groups = workload.connections.iter_mut().map(|connection| &mut connection.group);
    for group in groups.chain(workload.trains.iter_mut().map(|train| &mut train.group)) {
        if !named.contains(group) {
            "other".clone_into(group);
        }
    }
}
