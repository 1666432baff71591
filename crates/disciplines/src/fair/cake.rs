//! CAKE: a shaper, tins by DSCP, fair queues among hosts and flows, and COBALT in each queue, in one
//! discipline for a home gateway.
//!
//! # Principles
//! - The shaper sends at `bandwidth` by a virtual clock: each packet leaves when those before it would have
//!   been sent. There is no bucket, so no burst fills the modem behind. It counts what the link adds to a
//!   packet: `overhead`, `mpu`, and the cells of `atm` or `ptm`, or a word such as `docsis` for all of them.
//! - A packet's DSCP selects a tin. A tin goes before tins of lower urgency while it is below its threshold,
//!   a share of the rate; above the threshold it gets what they leave. So urgent traffic has low delay, and a
//!   sender that marks too much of it as urgent gains nothing.
//! - A tin has 1,024 queues in sets of eight. A flow whose place is taken gets another place of its set, so
//!   flows share a queue only if nine are in one set.
//! - Turns are counted in bytes, and new flows go first, as in `fq_codel`. The quantum of a flow is divided
//!   by the number of backlogged flows of its host: of the source, of the destination, or of the one with
//!   more flows (`triple-isolate`). So a host gains nothing by opening more flows. What is less than a byte
//!   is decided by a draw.
//! - Each queue has COBALT, whose state decays after the last packet before the queue is free again. `rtt`
//!   sets the interval; the target is a twentieth of it, or one and a half packets on a slow link. As in the
//!   kernel, the second packet above the target is signalled at once in a queue that has had no congestion
//!   before, or whose last packet below the target left more than an interval ago.
//! - If the link stands still during congestion, each queue makes up for the signals of that time by drops,
//!   as in `cobalt` and in the kernel, and may lose all but its last packet.
//! - When the memory is full, the queue with the most bytes loses packets from its head, and its BLUE starts
//!   to drop.
//! - `ack-filter` drops acknowledgements of TCP that a later one in the same queue makes redundant: if three
//!   of a flow that advance ([`giveway_qdisc::Header`]) are one behind another at the end of the queue, the
//!   first of them. So two remain, and one with `ack-filter-aggressive`. It is for a link whose way back is
//!   so slow that acknowledgements limit the way forth. A duplicate, or one with SACK blocks, feedback of ECN
//!   or data, is never dropped.
//!
//! The tins of each mode, the least urgent first, with their thresholds:
//! - `besteffort`: all packets, 100 %.
//! - `diffserv3`: best effort, 100 %; bulk (LE, CS1), 6.25 %; voice (VA, EF, CS6, CS7, 4), 25 %.
//! - `diffserv4`: best effort, 100 %; bulk (LE, CS1), 6.25 %; video (CS2, CS3, AF2x, AF3x, AF4x, 4), 50 %;
//!   voice (CS4 to CS7, VA, EF), 25 %.
//! - `diffserv8`: background (LE), high throughput (CS1, AF1x, 2), best effort, video (CS3, AF3x, AF4x),
//!   transactions (AF2x, 4), interactive (CS2), minimum latency (CS4, CS5, VA, EF), network control (CS6,
//!   CS7). The first has 100 %, and each other one 7/8 of the one before.
//! - `precedence`: the upper three bits of the DSCP, with the thresholds of `diffserv8`.
//!
//! # Deviations
//! - Lengths are those that the backend counts: IP lengths in the simulator, and in `giveway live` with its
//!   `--overhead`, which is 14 by default. tc takes the IP length as soon as there is a word about overhead.
//! - `overhead` and a kind of link cannot be combined, except with `raw` and `ether-vlan`: in tc the later
//!   word wins. `mpu` and the framing replace the values from the kind of link.
//! - `nat` has no effect, since the backends have no address translation: hosts come from the
//!   packet's addresses.
//! - `fwmark` is refused: the metadata of a packet has no mark.
//! - `split-gso` has no effect, because a discipline gets packets and no aggregates. A sender of the
//!   simulator with `gso` sends several packets at once, which it has cut itself. `giveway live` asks for
//!   interfaces that do not merge packets.
//! - The ack filter knows the order of a flow's acknowledgements, not their numbers, so it looks at the end
//!   of the queue. A packet of another kind between two acknowledgements keeps both, where the kernel
//!   compares all in the queue. An acknowledgement with data, or with SACK blocks, makes none redundant.
//! - `memlimit` counts the bytes of packets, and a packet as 256 bytes at least; the kernel counts the size
//!   of its buffers.
//! - If all backlogged flows of a tin have a host in common, their quantum is not divided. All of them would
//!   have the same part, and shares are equal as before, with fewer turns.
//! - Where a set is full, the further flow shares the queue of its own place, and gets its own queue when one
//!   is free. Then packets of this flow may leave in another order.
//! - The square root of COBALT is exact, and BLUE's probability has 16 bits.
//! - Without `bandwidth` the tins share the link by turns of up to 1,024 bytes, in proportion to their
//!   thresholds, as in the kernel; `target` and `quantum` do not depend on the rate of the link. A change of
//!   the link's rate has no effect.
//! - `autorate-ingress` changes the rate every 250 ms to 15/16 of the peak rate of arrivals, as the kernel.
//!
//! # Cost
//! - O(1) per packet, and a division for the shaper. Without a shaper a tin of 1/16 has a turn of 64 bytes,
//!   so a packet of full size costs up to 24 rounds of the tins. A host with n backlogged flows next to
//!   another host costs up to n turns per packet, since each turn is worth 1/n of a quantum. The largest
//!   queue is found in O(log queues) amortised, as in `fq_codel`.
//! - 80 KB per tin: 64 bytes per queue, and 16 for its hash, its neighbours and its hosts.
//!
//! # References
//! - Høiland-Jørgensen, Täht, Morton 2018: "Piece of CAKE: A Comprehensive Queue Management Solution for Home
//!   Gateways", LANMAN 2018. tc-cake(8) for names and defaults.
//! - MacGregor and Shi 2000 (DRR++). Palmei et al. 2019 (COBALT). RFC 8290 (FQ-CoDel).

mod choices;
mod classes;
mod gauges;
mod ring;
mod sets;
mod shaper;
mod tin;

use giveway_qdisc::blocks::Fattest;
use giveway_qdisc::blocks::cobalt::{Law, Probability};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, Dscp, FlowKey, FlowTable, Invalid, Limit, LinkContext, Meta, Next,
    Packet, Properties, Qdisc, Rate, Rng, Slots, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, InLinux};
use sets::PLACES;
use shaper::{Arrivals, OnWire, Shaper};
use tin::{Flow, Tin, Tuning};

pub use choices::{Framing, Isolation, LinkLayer, Tins};
pub use classes::{Class, classes, tins};

/// Parameters of `cake`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Rate of the shaper. By default, or with `unlimited`, there is no shaping.
    #[schemars(extend("x-words" = { "unlimited": null }))]
    pub bandwidth: Option<Rate>,
    /// Follow the rate of the arrivals; `bandwidth` is the rate at the beginning.
    pub autorate_ingress: bool,
    /// The tins. Each choice may be written alone, as in tc.
    #[schemars(extend("x-words" = true))]
    pub tins: Tins,
    /// Flows and hosts that get equal shares. Each choice may be written alone, as in tc.
    #[schemars(extend("x-words" = true))]
    pub isolation: Isolation,
    /// Use the addresses behind a translation; without effect, because there is none here.
    pub nat: bool,
    /// Set the DSCP of each packet to 0, after it has selected the tin. `giveway live` writes it into whole
    /// IP packets behind an Ethernet header.
    pub wash: bool,
    /// Split aggregates into packets; without effect, because a discipline gets no aggregates here.
    #[schemars(extend("x-opposite" = "no-split-gso"))]
    pub split_gso: bool,
    /// The usual round-trip time, from which target and interval follow. `datacentre` (100 us), `lan` (1 ms),
    /// `metro` (10 ms), `regional` (30 ms), `internet` (100 ms), `oceanic` (300 ms), `satellite` (1 s) and
    /// `interplanetary` (1 h) may be written alone.
    #[schemars(extend("x-words" = {
        "datacentre": "100us", "lan": "1ms", "metro": "10ms", "regional": "30ms", "internet": "100ms",
        "oceanic": "300ms", "satellite": "1s", "interplanetary": "1h"
    }))]
    pub rtt: Span,
    /// The kind of link, which sets overhead, smallest length and framing. Each choice may be written alone,
    /// as in tc.
    #[schemars(extend("x-words" = true))]
    pub link: Option<LinkLayer>,
    /// Bytes that the link adds to each packet, -64 to 256.
    pub overhead: Option<i32>,
    /// Bytes of a VLAN tag, 4, in addition.
    pub ether_vlan: bool,
    /// Smallest length of a packet on the link, overhead included, 0 to 256 bytes.
    pub mpu: Option<u32>,
    /// The framing of the link. Each choice may be written alone, as in tc.
    #[schemars(extend("x-words" = true))]
    pub framing: Option<Framing>,
    /// Capacity of all queues together. By default four times what the link sends in an `rtt`, at least 4 MB
    /// and at most 10,240 packets of full size, which it is without `bandwidth`.
    pub memlimit: Option<Bytes>,
    /// Count dropped packets for the shaper, which is behind the bottleneck (`egress`: in front of it).
    #[schemars(extend("x-opposite" = "egress"))]
    pub ingress: bool,
    /// Drop redundant acknowledgements of TCP, and keep at least two of a flow that are in a row.
    #[schemars(extend("x-opposite" = "no-ack-filter"))]
    pub ack_filter: bool,
    /// Drop redundant acknowledgements of TCP, and keep only the last in a row.
    pub ack_filter_aggressive: bool,
    /// Refused: packets have no mark of a firewall.
    #[schemars(extend("x-hidden" = true))]
    pub fwmark: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bandwidth: None,
            autorate_ingress: false,
            tins: Tins::default(),
            isolation: Isolation::default(),
            nat: false,
            wash: false,
            split_gso: true,
            rtt: Span::ms(100),
            link: None,
            overhead: None,
            ether_vlan: false,
            mpu: None,
            framing: None,
            memlimit: None,
            ingress: false,
            ack_filter: false,
            ack_filter_aggressive: false,
            fwmark: None,
        }
    }
}

/// Ethernet's header, which Linux counts into the MTU.
const HEADER: u64 = 14;
/// Bytes as which a packet counts at least for the memory.
const MIN_MEMORY: u64 = 256;
/// The largest default memory, in packets of full size.
const PACKETS: u64 = 10_240;
/// The minimum of the default memory.
const MIN_DEFAULT: u64 = 4 << 20;
/// The largest memory: queues count their bytes in 32 bits.
const MAX_MEMORY: u64 = u32::MAX as u64;
/// The minimum quantum, bytes.
const MIN_QUANTUM: u64 = 300;
/// The target as a part of the round-trip time.
const TARGETS: u64 = 20;
/// The longest round-trip time.
const LONGEST_RTT: Span = Span::s(36_000);

impl Config {
    /// Lengths on the link.
    fn on_wire(&self) -> Result<OnWire, Invalid> {
        let (given, least, framing) = self.link.map_or((0, 0, Framing::Noatm), LinkLayer::parts);
        if let (Some(_), Some(link)) = (self.overhead, self.link)
            && link != LinkLayer::Raw
        {
            let message = format!("the kind of link sets it to {given}: leave out one of them");
            return Err(Invalid::new("overhead", message));
        }
        let overhead = self.overhead.unwrap_or(given);
        if !(-64..=256).contains(&overhead) {
            let message = format!("{overhead} bytes are not between -64 and 256: write for example 18");
            return Err(Invalid::new("overhead", message));
        }
        let least = self.mpu.unwrap_or(least);
        if least > 256 {
            let message = format!("{least} bytes are not between 0 and 256: write for example 64");
            return Err(Invalid::new("mpu", message));
        }
        let overhead = overhead + if self.ether_vlan { 4 } else { 0 };
        Ok(OnWire { overhead, least, framing: self.framing.unwrap_or(framing) })
    }

    /// The capacity in bytes.
    fn memory(&self, context: &LinkContext) -> u64 {
        let given = self.memlimit.map(|bytes| bytes.0);
        given.unwrap_or_else(|| {
            let packets = PACKETS * (context.mtu.0 + HEADER);
            let by_rate = self.bandwidth.map(|rate| rate.bytes_in(self.rtt * 4).max(MIN_DEFAULT));
            by_rate.map_or(packets, |bytes| bytes.min(packets))
        })
    }

    /// Refuses what a packet's metadata does not allow.
    fn check_words(&self) -> Result<(), Invalid> {
        if self.ack_filter && self.ack_filter_aggressive {
            let message = "it drops more than ack-filter: write one of the two";
            return Err(Invalid::new("ack-filter-aggressive", message));
        }
        if self.fwmark.is_some() {
            let message =
                "packets have no mark of a firewall here: select tins by DSCP, for example with diffserv4";
            return Err(Invalid::new("fwmark", message));
        }
        Ok(())
    }

    /// Number of acknowledgements in a row that the filter keeps; `None` without a filter.
    fn kept_acks(&self) -> Option<usize> {
        match (self.ack_filter, self.ack_filter_aggressive) {
            (false, false) => None,
            (true, _) => Some(2),
            (false, true) => Some(1),
        }
    }

    /// The rate of IP packets of full size at `bandwidth`, without what the link adds to them.
    fn ip_rate(&self, context: &LinkContext) -> Option<Rate> {
        let (rate, on_wire) = (self.bandwidth?, self.on_wire().ok()?);
        let packet = u32::try_from(context.mtu.0).ok()?;
        let bits = u128::from(rate.as_bit()) * u128::from(packet) / u128::from(on_wire.bytes(packet).max(1));
        Some(Rate::bit(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    fn tuner(&self, context: &LinkContext) -> Tuner {
        Tuner { rtt: self.rtt, packet: context.mtu.0 + HEADER }
    }
}

/// Computes what follows from the rate.
#[derive(Clone, Copy, Debug)]
struct Tuner {
    rtt: Span,
    /// A packet of full size, bytes.
    packet: u64,
}

impl Tuner {
    /// Law and quantum of a tin if the rate is `rate`.
    fn tuning(&self, class: &Class, rate: Option<Rate>) -> Tuning {
        let (part, whole) = class.share;
        let own = rate.map(|rate| {
            let own = u128::from(rate.as_bit()) * u128::from(part) / u128::from(whole);
            Rate::bit(u64::try_from(own).expect("a share is no more than the rate").max(1))
        });
        let packet = own.map_or(Span::ZERO, |own| own.time_for(self.packet));
        let usual = self.rtt / TARGETS;
        let target = usual.max(packet * 3 / 2);
        let interval = self.rtt.saturating_sub(usual) + target;
        let quantum = own.map_or(u64::MAX, |own| (own.as_bit() / 8) >> 12);
        let quantum = quantum.max(MIN_QUANTUM).min(self.packet.max(MIN_QUANTUM));
        Tuning {
            law: Law {
                target,
                interval: interval.max(target * 2),
                ecn: true,
                at_once: true,
                increment: Probability::INCREMENT,
                decrement: Probability::DECREMENT,
            },
            above: target.max(packet * 4),
            packet,
            quantum: quantum as i32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "CAKE: a shaper, tins by DSCP, and fair queues among hosts and flows with COBALT in each";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Cake<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Cake<P>, Invalid> {
        self.check_words()?;
        let on_wire = self.on_wire()?;
        if self.bandwidth.is_some_and(|rate| rate.as_bit() == 0) {
            return Err(Invalid::new(
                "bandwidth",
                "must be above 0 bit/s; write \"unlimited\" for no shaper",
            ));
        }
        if self.rtt.is_zero() || self.rtt > LONGEST_RTT {
            let message = format!("{} is not between 1 ps and 10 h: write for example 100ms", self.rtt);
            return Err(Invalid::new("rtt", message));
        }
        let memory = self.memory(context);
        check_limit("memlimit", Limit::Bytes(memory), context.mtu)?;
        if memory > MAX_MEMORY {
            let message = format!("{} are more than 4 GB: write \"32mb\"", Bytes(memory));
            return Err(Invalid::new("memlimit", message));
        }
        let tuner = self.tuner(context);
        let made: Vec<Tin> = classes(self.tins)
            .into_iter()
            .map(|class| Tin::new(class, tuner.tuning(&class, self.bandwidth)))
            .collect();
        let mut rng = context.streams.rng();
        Ok(Cake {
            kept_acks: self.kept_acks(),
            config: self.clone(),
            on_wire: Some(on_wire).filter(|on_wire| *on_wire != OnWire::default()),
            memory,
            most_packets: (memory / MIN_MEMORY).max(1),
            tuner,
            perturbation: rng.word(),
            rng,
            tin_of: tins(self.tins),
            fattest: Fattest::new(made.len() * PLACES),
            tins: made,
            current: 0,
            shaper: Shaper::new(self.bandwidth),
            arrivals: self.autorate_ingress.then(Arrivals::default),
            packets: Slots::with_capacity((memory / MIN_MEMORY) as usize + 1),
            backlog: Backlog::ZERO,
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux { shapes: true, sqm: Some("piece_of_cake.qos"), ..InLinux::named("cake") })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties {
            // A flow may have packets of several tins, and may change its queue.
            keeps_flow_order: false,
            marks: true,
            work_conserving: self.bandwidth.is_none() && !self.autorate_ingress,
            ..Properties::plain(Limit::Bytes(self.memory(context)))
        }
    }

    fn shaped_rate(&self, context: &LinkContext) -> Option<Rate> {
        self.ip_rate(context).filter(|rate| *rate < context.rate && !self.autorate_ingress)
    }

    fn variants() -> Vec<Config> {
        let shaped = Config { bandwidth: Some(Rate::mbit(3)), ..Config::default() };
        let quick = Config { rtt: Span::ms(1), ..Config::default() };
        vec![
            shaped.clone(),
            Config { tins: Tins::Diffserv4, isolation: Isolation::DualSrchost, ..shaped.clone() },
            Config {
                tins: Tins::Besteffort,
                isolation: Isolation::Flows,
                link: Some(LinkLayer::PppoePtm),
                ack_filter: true,
                ..shaped.clone()
            },
            Config {
                tins: Tins::Diffserv8,
                memlimit: Some(Bytes(6000)),
                ingress: true,
                link: Some(LinkLayer::Conservative),
                ack_filter_aggressive: true,
                wash: true,
                ..shaped
            },
            Config { tins: Tins::Precedence, isolation: Isolation::Hosts, ..quick.clone() },
            Config {
                isolation: Isolation::DualDsthost,
                overhead: Some(-4),
                mpu: Some(84),
                memlimit: Some(Bytes(9000)),
                ..quick
            },
            Config { autorate_ingress: true, bandwidth: Some(Rate::mbit(2)), ..Config::default() },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(rate) = self.bandwidth.filter(|rate| *rate >= context.rate)
            && self.ip_rate(context) >= Some(context.rate)
        {
            warnings.push(format!(
                "bandwidth: {rate} is not below the rate of the link, {}: nothing is shaped",
                context.rate
            ));
        }
        if self.nat {
            warnings.push("nat: it has no effect, because there is no address translation: hosts come from the packet's addresses".into());
        }
        if self.ingress && self.bandwidth.is_none() && !self.autorate_ingress {
            warnings.push("ingress: it has no effect without bandwidth".into());
        }
        warnings
    }
}

/// The discipline `cake`: the shaper, and the tins with their queues.
pub struct Cake<P> {
    config: Config,
    /// Number of acknowledgements in a row that the filter keeps; `None` without a filter.
    kept_acks: Option<usize>,
    /// Lengths on the link; `None` if it adds nothing.
    on_wire: Option<OnWire>,
    /// Capacity in bytes.
    memory: u64,
    /// Capacity in packets of the minimum size.
    most_packets: u64,
    tuner: Tuner,
    /// Key of the hash, so that collisions differ from one instance to the next.
    perturbation: u64,
    rng: Rng,
    /// The tin of each DSCP.
    tin_of: [u8; Dscp::COUNT],
    tins: Vec<Tin>,
    /// The tin whose turn it is, without shaping.
    current: usize,
    shaper: Shaper,
    /// The estimate for `autorate-ingress`.
    arrivals: Option<Arrivals>,
    fattest: Fattest,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
}

impl<P> Qdisc<P> for Cake<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let now = cx.now();
        if self.arrivals.is_some() {
            self.follow_arrivals(pkt.bytes(), now);
        }
        let number = usize::from(self.tin_of[usize::from(pkt.meta.header.dscp().number())]);
        let hash = self.hash(&pkt.meta);
        let tin = &mut self.tins[number];
        if self.backlog.packets == 0 {
            self.shaper.starts(now);
        }
        if tin.backlog.packets == 0 {
            tin.clock.0 = tin.clock.0.max(now);
        }
        if self.config.wash {
            pkt.meta.header = pkt.meta.header.with_dscp(Dscp::default());
        }
        let flow = tin.queue_of(hash);
        let bytes = pkt.bytes();
        tin.arrives(flow, (pkt.meta.from, pkt.meta.to), self.config.isolation, &mut self.rng);
        let filtered = self.kept_acks.filter(|_| pkt.meta.header.advances());
        let filtered = filtered.map(|kept| (pkt.meta.flow, kept));
        let Flow { queue, bytes: queued, .. } = &mut tin.flows[flow];
        self.packets.push_back(queue, pkt);
        *queued += bytes;
        self.fattest.record_growth(number * PLACES + flow, u64::from(*queued));
        tin.backlog.add(bytes);
        self.backlog.add(bytes);
        tin.counters.packets += 1;
        tin.counters.bytes += u64::from(bytes);
        if let Some(filtered) = filtered {
            self.filter(number, flow, filtered, cx);
        }
        while self.is_full() {
            self.drop_from_the_fattest(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        if self.backlog.packets == 0 {
            return Next::Empty;
        }
        let now = cx.now();
        if self.shaper.rate.is_some()
            && let Some(at) = self.shaper.waits_until(now)
        {
            return Next::At(at);
        }
        let isolation = self.config.isolation;
        let mut rested = false;
        loop {
            let number = self.choose(now);
            let Cake { config, on_wire, tins, shaper, packets, backlog, rng, .. } = self;
            let tin = &mut tins[number];
            if !rested {
                tin.let_one_rest(now);
                rested = true;
            }
            let place = tin.whose_turn(isolation, rng);
            let above = tin.above(config.ingress);
            let Tin { class, tuning, flows, clock, credit, backlog: own, counters, .. } = tin;
            let Flow { queue, state, bytes: queued, deficit, .. } = &mut flows[place];
            // Nearly all packets move from the queue to the caller in one step.
            let passed = packets.pop_front_if(queue, |pkt| {
                let Meta { bytes, arrived, .. } = pkt.meta;
                let passes = state.passes(&tuning.law, above, arrived, now);
                if passes {
                    *queued -= bytes;
                    own.sub(bytes);
                    backlog.sub(bytes);
                    let length = OnWire::length(*on_wire, bytes);
                    clock.advance(class.share, shaper.charge(length, false), now);
                    *deficit = deficit.saturating_sub_unsigned(length);
                    *credit -= i64::from(length);
                    counters.on_departure(now.since(arrived), length);
                }
                passes
            });
            if let Some(pkt) = passed {
                return Next::Packet(pkt);
            }
            if let Some(pkt) = self.decide(number, place, cx) {
                return Next::Packet(pkt);
            }
            self.tins[number].on_empty(place, isolation, now);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for tin in &mut self.tins {
            for flow in tin.flows.iter_mut() {
                while let Some(pkt) = self.packets.pop_front(&mut flow.queue) {
                    cx.drop(pkt, DropReason::Reset);
                }
            }
        }
        self.shaper = Shaper::new(self.config.bandwidth);
        self.arrivals = self.config.autorate_ingress.then(Arrivals::default);
        self.retune();
        self.tins.iter_mut().for_each(Tin::reset);
        self.fattest.clear();
        self.current = 0;
        self.backlog = Backlog::ZERO;
    }

    /// The queues in use count as flows, also decaying ones. The memory includes all queues, which
    /// always exist.
    fn flow_table(&self) -> FlowTable {
        let sum = |of: fn(&Tin) -> u32| self.tins.iter().map(|tin| u64::from(of(tin))).sum();
        FlowTable {
            flows: sum(Tin::flows_in_use),
            most: sum(|tin| tin.most_flows),
            entry_bytes: (Tin::BYTES / PLACES) as u32,
            bytes: (self.tins.len() * Tin::BYTES) as u64,
        }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        gauges::visit(&self.shaper, &self.tins, visit);
    }
}

impl<P> Cake<P> {
    /// Hash of what has a queue.
    #[inline]
    fn hash(&self, meta: &Meta) -> u64 {
        let (from, to) = (u64::from(meta.from), u64::from(meta.to));
        let key = match self.config.isolation {
            isolation if isolation.has_queues_of_flows() => meta.flow.0,
            Isolation::Srchost => from,
            Isolation::Dsthost => to,
            Isolation::Hosts => from << 16 | to,
            _ => 0,
        };
        mix(key, self.perturbation)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.backlog.bytes > self.memory || self.backlog.packets > self.most_packets
    }

    /// The tin that sends next. There is a backlog.
    #[inline]
    fn choose(&mut self, now: Time) -> usize {
        if self.tins.len() == 1 {
            return 0;
        }
        if self.shaper.rate.is_some() { self.most_urgent(now) } else { self.next_in_turn() }
    }

    /// The most urgent tin below its threshold, or the tin that will be first.
    #[inline]
    fn most_urgent(&self, now: Time) -> usize {
        let (mut best, mut soonest) = (None, Time::NEVER);
        for (number, tin) in self.tins.iter().enumerate() {
            if tin.is_waiting() && (tin.clock.0 <= now || tin.clock.0 <= soonest) {
                (best, soonest) = (Some(number), tin.clock.0);
            }
        }
        best.expect("with a backlog a queue has its turn")
    }

    /// The tin whose turn it is: tins send bytes in proportion to their thresholds. An empty tin pays its
    /// debt, and keeps at most a turn of credit.
    #[inline]
    fn next_in_turn(&mut self) -> usize {
        let mut from = self.current;
        loop {
            for (number, tin) in self.tins.iter_mut().enumerate().skip(from) {
                if tin.credit < 0 {
                    tin.credit += tin.turn;
                } else if tin.is_waiting() {
                    self.current = number;
                    return number;
                } else if tin.credit == 0 {
                    tin.credit = tin.turn;
                }
            }
            from = 0;
        }
    }

    /// Dequeues a packet of one queue, after the drops of COBALT; `None` if it is empty.
    #[inline(never)]
    fn decide(&mut self, number: usize, place: usize, cx: &mut Cx<'_, P>) -> Option<Packet<P>> {
        let now = cx.now();
        let tin = &mut self.tins[number];
        let above = tin.above(self.config.ingress);
        loop {
            let Flow { queue, bytes, state, .. } = &mut tin.flows[place];
            let mut pkt = self.packets.pop_front(queue)?;
            *bytes -= pkt.bytes();
            tin.backlog.sub(pkt.bytes());
            self.backlog.sub(pkt.bytes());
            let ecn = pkt.meta.ecn;
            let drops = state.drops(&tin.tuning.law, above, &mut pkt, cx, &mut self.rng);
            // The last packet may be marked, and is not dropped.
            let dropped = drops && !queue.is_empty();
            tin.counters.marks += u64::from(pkt.meta.ecn != ecn);
            tin.counters.drops += u64::from(dropped);
            if !dropped || self.config.ingress {
                let length = OnWire::length(self.on_wire, pkt.bytes());
                tin.advance(self.shaper.charge(length, dropped), now);
                let deficit = &mut tin.flows[place].deficit;
                *deficit = deficit.saturating_sub_unsigned(length);
                tin.credit -= i64::from(length);
                if !dropped {
                    tin.counters.on_departure(now.since(pkt.meta.arrived), length);
                    return Some(pkt);
                }
            }
            cx.drop(pkt, DropReason::Congested);
        }
    }

    /// Drops the head of the queue with the most bytes.
    #[cold]
    #[inline(never)]
    fn drop_from_the_fattest(&mut self, cx: &mut Cx<'_, P>) {
        let Cake { tins, fattest, packets, backlog, .. } = self;
        let flow = |place: usize| &tins[place / PLACES].flows[place % PLACES];
        // Packets may have a length of 0. If all have, any queue with packets is the fattest.
        let fattest = fattest.first(|place| u64::from(flow(place).bytes));
        let fattest =
            fattest.or_else(|| (0..tins.len() * PLACES).find(|place| !flow(*place).queue.is_empty()));
        let place = fattest.expect("a full buffer holds packets");
        let tin = &mut tins[place / PLACES];
        let Flow { queue, bytes, state, .. } = &mut tin.flows[place % PLACES];
        let pkt = packets.pop_front(queue).expect("the fattest queue of a full buffer holds packets");
        *bytes -= pkt.bytes();
        tin.unresponsive_flows += u32::from(state.on_overflow(&tin.tuning.law, cx.now()));
        tin.backlog.sub(pkt.bytes());
        backlog.sub(pkt.bytes());
        tin.counters.drops += 1;
        if self.config.ingress {
            let length = OnWire::length(self.on_wire, pkt.bytes());
            let lasts = self.shaper.charge(length, true);
            tin.advance(lasts, cx.now());
        }
        cx.drop(pkt, DropReason::Pushout);
    }

    /// An acknowledgement has been appended to a queue. Drops the first of more than `kept` in a row.
    #[inline(never)]
    fn filter(&mut self, number: usize, place: usize, (key, kept): (FlowKey, usize), cx: &mut Cx<'_, P>) {
        let tin = &mut self.tins[number];
        let Flow { queue, bytes, .. } = &mut tin.flows[place];
        let Some(first) = queue.len().checked_sub(kept + 1) else { return };
        let packets = &self.packets;
        let in_a_row = (first..queue.len()).filter_map(|nth| packets.nth_place(queue, nth)).all(|at| {
            let meta = &packets[at].meta;
            meta.flow == key && meta.header.advances()
        });
        if let Some(redundant) = packets.nth_place(queue, first).filter(|_| in_a_row) {
            let pkt = self.packets.remove(queue, redundant);
            *bytes -= pkt.bytes();
            tin.backlog.sub(pkt.bytes());
            self.backlog.sub(pkt.bytes());
            tin.counters.acks += 1;
            if self.config.ingress {
                let lasts = self.shaper.charge(OnWire::length(self.on_wire, pkt.bytes()), true);
                tin.advance(lasts, cx.now());
            }
            cx.drop(pkt, DropReason::Policy);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_arrivals(&mut self, bytes: u32, now: Time) {
        let length = OnWire::length(self.on_wire, bytes);
        if let Some(rate) = self.arrivals.as_mut().and_then(|arrivals| arrivals.packet(length, now)) {
            self.shaper.rate = Some(rate);
            self.retune();
        }
    }

    /// The rate of the shaper; `None` without shaping.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.shaper.rate
    }

    /// Changes the rate of the shaper, and leaves target and quantum as they are.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.shaper.rate = Some(rate);
    }

    /// Computes what follows from the rate of the shaper.
    fn retune(&mut self) {
        for tin in &mut self.tins {
            tin.tuning = self.tuner.tuning(&tin.class, self.shaper.rate);
        }
    }
}

#[cfg(test)]
mod tests;
