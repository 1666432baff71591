//! GRED: one queue, and RED with other thresholds for each class of packets. Routers call it WRED.
//!
//! # Principles
//! - Packets leave in the order of their arrival. Only the drops differ: a packet belongs to a virtual queue,
//!   which has its own thresholds, probability and limit.
//! - Each virtual queue is written as a `red`: `vqs [(red min 60kb max 90kb) (red min 20kb max 40kb)]`. A
//!   packet belongs to the one with the number of its class, or of its drop precedence with `key dscp` (AF11
//!   1, AF12 2, AF13 3); if there is none, to `default`.
//! - A virtual queue counts its own packets. With `grio` it counts the packets of every virtual queue of the
//!   same or a higher priority (`prios`, 1 the highest), as in RIO: packets out of profile are dropped for
//!   the length of all, those in profile for theirs. With equal priorities all count the whole queue, as
//!   in WRED.
//!
//! # Deviations
//! - tc sets up each virtual queue with a separate command (`setup vqs 3 default 2`, then `vq 1 prio 2 limit
//!   ...`). Here they are a list, in the order of their numbers, from 0 on.
//! - In Linux the number is the low bits of `tc_index`, which another qdisc or a filter sets from the DSCP.
//! - With `grio` the kernel adds up the averages of the queues; here the sum of their lengths is averaged.
//! - A packet that belongs to no virtual queue has no limit in the kernel; here it belongs to `default`.
//! - RED is the same as in `red`, so `weight`, `gentle`, `wait`, `adaptive` and others may be written, too.
//!   Only the arriving packet is dropped.
//!
//! # Cost
//! - The same as `red`; with `grio` a step per virtual queue for each arrival and departure.
//!
//! # References
//! - Linux: the usage text of tc for `gred`; tc-red(8). Hadi Salim, "gred", 1999.
//! - Clark and Fang 1998, "Explicit Allocation of Best-Effort Packet Delivery Service", IEEE/ACM Transactions
//!   on Networking 6(4), for RIO. RFC 2597 for drop precedences.

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::red::RedDecision;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, Dscp, Invalid, Limit, LinkContext, Meta, Next, Packet, Properties, Qdisc,
    Rate, Rng, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::thresholds::Monitor;
use crate::red::{self, Setup, Victim};
use crate::{Discipline, Spec};

/// Parameters of `gred`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The virtual queues 0, 1, 2 and so on, at most 16, each a `red`. By default four, for packets without a
    /// drop precedence and for the precedences 1 to 3.
    pub vqs: Vec<Spec>,
    /// Number of the virtual queue of packets that belong to no other.
    pub default: u16,
    /// Source of the number of a packet's virtual queue.
    pub key: Key,
    /// Count the packets of the same or a higher priority.
    pub grio: bool,
    /// Priority of each virtual queue for `grio`, 1 the highest; those beyond the list have 16.
    pub prios: Vec<u16>,
    /// Capacity of the whole queue in bytes; by default 1,000 packets of the link's MTU.
    pub limit: Option<Bytes>,
    /// Mark packets of all virtual queues instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Above `max`, packets of all virtual queues are dropped even if their sender supports ECN.
    pub harddrop: bool,
}

/// Source of the number of a virtual queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Key {
    /// The traffic class.
    Class,
    /// The drop precedence of an AF class, RFC 2597: 1 to 3.
    Dscp,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            vqs: Vec::new(),
            default: 0,
            key: Key::Dscp,
            grio: false,
            prios: Vec::new(),
            limit: None,
            ecn: false,
            harddrop: false,
        }
    }
}

/// The thresholds of the default virtual queues, bytes: the first is for packets without a precedence.
const THRESHOLDS: [(u64, u64); 4] = [(30_000, 90_000), (30_000, 90_000), (20_000, 60_000), (10_000, 30_000)];
/// Largest number of virtual queues, and the lowest priority.
const MAX: u16 = 16;
/// The usual transmit queue length of an interface, in packets.
const QUEUE: u64 = 1000;

/// The backlog of each virtual queue, as gauges.
const GAUGES: [&str; MAX as usize] = [
    "vq0_packets",
    "vq1_packets",
    "vq2_packets",
    "vq3_packets",
    "vq4_packets",
    "vq5_packets",
    "vq6_packets",
    "vq7_packets",
    "vq8_packets",
    "vq9_packets",
    "vq10_packets",
    "vq11_packets",
    "vq12_packets",
    "vq13_packets",
    "vq14_packets",
    "vq15_packets",
];

impl Config {
    fn limit(&self, context: &LinkContext) -> Limit {
        Limit::Bytes(self.limit.map_or(QUEUE * context.mtu.0, |limit| limit.0))
    }

    /// The virtual queues, written or by default.
    fn vqs(&self) -> Vec<Spec> {
        if !self.vqs.is_empty() {
            return self.vqs.clone();
        }
        let vq = |(min, max)| {
            let (min, max) = (Some(Limit::Bytes(min)), Some(Limit::Bytes(max)));
            Spec::red(red::Config { min, max, ..red::Config::default() })
        };
        THRESHOLDS.map(vq).to_vec()
    }

    fn check(&self, count: usize) -> Result<(), Invalid> {
        if count > usize::from(MAX) {
            let message = format!("{count} virtual queues are more than {MAX}: remove some");
            return Err(Invalid::new("vqs", message));
        }
        if usize::from(self.default) >= count {
            let message = format!("there is no virtual queue {}: they are 0 to {}", self.default, count - 1);
            return Err(Invalid::new("default", message));
        }
        if self.prios.len() > count {
            let message = format!("{} priorities for {count} virtual queues: remove some", self.prios.len());
            return Err(Invalid::new("prios", message));
        }
        if let Some(wrong) = self.prios.iter().find(|prio| !(1..=MAX).contains(prio)) {
            return Err(Invalid::new(
                "prios",
                format!("{wrong} is not between 1 and {MAX}; 1 is the highest"),
            ));
        }
        if !self.prios.is_empty() && !self.grio {
            return Err(Invalid::new(
                "prios",
                "priorities have an effect with grio only: write \"grio\", too",
            ));
        }
        Ok(())
    }

    /// The virtual queue with a number, as it starts.
    fn vq(&self, number: usize, spec: &Spec, context: &LinkContext) -> Result<Vq, Invalid> {
        let Spec::red(red) = spec else {
            let name = spec.name();
            let message = format!("virtual queue {number} is a {name}: write it as \"(red ...)\"");
            return Err(Invalid::new("vqs", message));
        };
        let inside = |invalid: Invalid| Invalid::new("vqs", format!("virtual queue {number}: {invalid}"));
        if red.drop != Victim::Tail {
            return Err(inside(Invalid::new("drop", "only the arriving packet is dropped: leave it out")));
        }
        let red =
            red::Config { ecn: red.ecn || self.ecn, harddrop: red.harddrop || self.harddrop, ..red.clone() };
        let (setup, monitor) = red.parts(context).map_err(inside)?;
        let prio = self.prios.get(number).copied().unwrap_or(MAX);
        Ok(Vq { setup, monitor, prio, backlog: Backlog::ZERO })
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "one queue with a RED for each class or drop precedence, also known as WRED";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Gred<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Gred<P>, Invalid> {
        let vqs = self.vqs();
        self.check(vqs.len())?;
        let limit = self.limit(context);
        check_limit("limit", limit, context.mtu)?;
        Ok(Gred {
            vqs: (0..).zip(&vqs).map(|(at, spec)| self.vq(at, spec, context)).collect::<Result<_, _>>()?,
            default: usize::from(self.default),
            key: self.key,
            grio: self.grio,
            limit,
            rng: context.streams.rng(),
            queue: Queue::new(limit),
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        let marks = self.ecn || self.vqs.iter().any(|vq| vq.properties(context).marks);
        Properties::plain(self.limit(context)).marking(marks)
    }

    fn variants() -> Vec<Config> {
        let read = |text: &str| text.parse().expect("the constant is a spec");
        let short = vec![read("red limit 6p min 1p max 3p weight 0.5"), read("red limit 6000b weight 0.5")];
        vec![
            Config { vqs: short.clone(), key: Key::Class, limit: Some(Bytes(9000)), ..Config::default() },
            Config { vqs: short.clone(), grio: true, prios: vec![2, 1], default: 1, ..Config::default() },
            Config {
                vqs: vec![read("red limit 6p min 1p max 3p weight 0.5 ecn"); 16],
                key: Key::Class,
                grio: true,
                harddrop: true,
                ..Config::default()
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let of = |(number, vq): (usize, &Spec)| {
            let warnings = vq.warnings(context);
            warnings.into_iter().map(move |warning| format!("vqs: virtual queue {number}: {warning}"))
        };
        self.vqs().iter().enumerate().flat_map(of).collect()
    }
}

/// A virtual queue.
struct Vq {
    setup: Setup,
    monitor: Monitor,
    prio: u16,
    /// Its own packets.
    backlog: Backlog,
}

/// The discipline `gred`: one queue, and the virtual queues that decide about it.
pub struct Gred<P> {
    vqs: Vec<Vq>,
    default: usize,
    key: Key,
    grio: bool,
    limit: Limit,
    rng: Rng,
    queue: Queue<P>,
}

impl<P> Qdisc<P> for Gred<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let at = self.number(&pkt.meta);
        let counted = self.counted(at);
        let Gred { vqs, rng, queue, limit, .. } = self;
        let Vq { setup, monitor, backlog, .. } = &mut vqs[at];
        let length = monitor.observe(counted, cx.now());
        let verdict = monitor.detector.decide(length, setup.size(pkt.bytes()), || rng.uniform());
        let full = !limit.admits(queue.backlog(), pkt.bytes());
        if full || !setup.limit.admits(*backlog, pkt.bytes()) {
            monitor.detector.on_overflow();
            return cx.drop(pkt, if full { DropReason::Overlimit } else { DropReason::FlowLimit });
        }
        if verdict != RedDecision::Accept && !setup.spares(&mut pkt, verdict, cx) {
            return cx.drop(pkt, DropReason::Early);
        }
        backlog.add(pkt.bytes());
        queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Some(pkt) = self.queue.pop() else { return Next::Empty };
        let at = self.number(&pkt.meta);
        self.vqs[at].backlog.sub(pkt.bytes());
        let prio = self.vqs[at].prio;
        for (number, vq) in self.vqs.iter_mut().enumerate() {
            // A virtual queue that counts the packet was not idle while it was there.
            if number == at || (self.grio && prio <= vq.prio) {
                vq.monitor.idle.on_departure(pkt.bytes(), cx.now());
            }
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        for vq in &mut self.vqs {
            vq.monitor.reset();
            vq.backlog = Backlog::ZERO;
        }
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        for vq in self.vqs.iter_mut().filter(|vq| vq.setup.follows_link) {
            vq.monitor.idle.rate_changed(rate);
        }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        for (name, vq) in GAUGES.iter().zip(&self.vqs) {
            visit(name, vq.backlog.packets as f64);
        }
    }
}

impl<P> Gred<P> {
    /// Number of the virtual queue of a packet.
    #[inline]
    fn number(&self, meta: &Meta) -> usize {
        let number = match self.key {
            Key::Class => Some(usize::from(meta.class)),
            Key::Dscp => precedence(meta.header.dscp()),
        };
        number.filter(|number| *number < self.vqs.len()).unwrap_or(self.default)
    }

    /// The packets that a virtual queue counts.
    #[inline]
    fn counted(&self, at: usize) -> Backlog {
        if !self.grio {
            return self.vqs[at].backlog;
        }
        let prio = self.vqs[at].prio;
        let counts = self.vqs.iter().filter(|vq| vq.prio <= prio);
        counts.fold(Backlog::ZERO, |sum, vq| sum.plus(vq.backlog))
    }
}

/// The drop precedence of a code point; `None` outside the AF classes.
fn precedence(dscp: Dscp) -> Option<usize> {
    // RFC 2597, section 6: AFxy is 8 x + 2 y.
    let (class, of_class) = (dscp.number() / 8, dscp.number() % 8);
    let assured = (1..=4).contains(&class) && [2, 4, 6].contains(&of_class);
    assured.then_some(usize::from(of_class / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{any_flows, build_error, context, events};
    use crate::testing::trace::{trace, trace_on};
    use giveway_qdisc::{FlowKey, Header, Outbox};
    use proptest::prelude::*;

    /// With weight 1 the average is the length that an arrival finds, and above `max` all are dropped.
    const SHARP: &str = "key class vqs [(red limit 9p min 1p max 4p weight 1 probability 0) \
                         (red limit 9p min 1p max 2p weight 1 probability 0)]";
    const ARRIVALS: &str = "0 A1 1000, A2 1000, B1 1000, B2 1000, B3 1000, A3 1000, A4 1000, A5 1000";

    #[test]
    fn each_virtual_queue_counts_its_own_packets() {
        assert_eq!(
            trace(&format!("gred {SHARP}"), 1000, ARRIVALS),
            "A1[0-1] A2[1-2] B1[2-3] B2[3-4] A3[4-5] A4[5-6] | B3@0 A5@0"
        );
    }

    /// B counts the packets of A, which are more urgent, and A does not count B's packets.
    #[test]
    fn with_grio_the_lower_priority_counts_all() {
        assert_eq!(
            trace(&format!("gred grio prios [1 2] {SHARP}"), 1000, ARRIVALS),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] | B1@0 B2@0 B3@0 A5@0"
        );
        // With equal priorities both count the whole queue.
        assert_eq!(
            trace(
                &format!("gred grio {SHARP}"),
                1000,
                "0 B1 1000, B2 1000, A1 1000, A2 1000, A3 1000, B3 1000"
            ),
            "B1[0-1] B2[1-2] A1[2-3] A2[3-4] | A3@0 B3@0"
        );
    }

    #[test]
    fn limits_are_those_of_the_whole_and_of_each() {
        let vqs = "key class vqs [(red limit 2p min 1p max 2p weight 0.001) (red limit 9p min 5p max 9p weight 0.001)]";
        assert_eq!(
            trace(&format!("gred limit 3000 {vqs}"), 1000, ARRIVALS),
            "A1[0-1] A2[1-2] B1[2-3] | B2@0 B3@0 A3@0 A4@0 A5@0"
        );
        let why = |limit: &str| {
            let mut q =
                format!("gred {limit} {vqs}").parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
            let mut out = Outbox::default();
            for number in 0..3 {
                q.enqueue(Packet::new(FlowKey(0), 1000, number), &mut Cx::new(Time::ZERO, &mut out));
            }
            out.dropped.pop().map(|(_, why)| why)
        };
        assert_eq!([why("limit 2000"), why("")], [Some(DropReason::Overlimit), Some(DropReason::FlowLimit)]);
    }

    /// Drop precedences of AF are the numbers of virtual queues; all else is in the default one.
    #[test]
    fn the_drop_precedence_selects_the_queue() {
        let of = |name: &str| precedence(name.parse().unwrap());
        assert_eq!(["AF11", "AF22", "AF33", "AF43"].map(of), [Some(1), Some(2), Some(3), Some(3)]);
        assert_eq!(["CS0", "CS1", "CS4", "EF", "VA", "LE"].map(of), [None; 6]);
        let spec = "gred vqs [(red limit 9p min 1p max 2p weight 1 probability 0) (red limit 9p) (red limit 9p) \
                    (red limit 9p min 1p max 3p weight 1 probability 0)]";
        let codes = ["CS0", "AF13", "AF23", "EF"].map(|code| code.parse::<Dscp>().unwrap());
        let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
        let arrivals = "0 A1 1000, B1 1000, C1 1000, D1 1000, B2 1000, C2 1000, A2 1000";
        let out = trace_on(qdisc, 1000, arrivals, |meta| {
            meta.header = Header::new(codes[usize::from(meta.class)], false);
        });
        assert_eq!(out, "A1[0-1] B1[1-2] C1[2-3] D1[3-4] B2[4-5] | C2@0 A2@0");
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (spec, error) in [
            ("gred vqs [(red) (fifo)]", "vqs: virtual queue 1 is a fifo: write it as \"(red ...)\""),
            (
                "gred vqs [(red drop head)]",
                "vqs: virtual queue 0: drop: only the arriving packet is dropped: leave it out",
            ),
            (
                "gred vqs [(red min 80kb)]",
                "vqs: virtual queue 0: min: min (81920) must lie above 0 and below max (75000)",
            ),
            ("gred default 4", "default: there is no virtual queue 4: they are 0 to 3"),
            ("gred prios [1 2]", "prios: priorities have an effect with grio only: write \"grio\", too"),
            ("gred grio prios [0]", "prios: 0 is not between 1 and 16; 1 is the highest"),
        ] {
            assert_eq!(build_error(spec).to_string(), error);
        }
    }

    proptest! {
        /// With one virtual queue, or with equal priorities and equal thresholds, it is `red`, packet by
        /// packet.
        #[test]
        fn one_virtual_queue_is_red(ops in any_flows(), min in 1..5u64, more in 1..9u64, ecn in any::<bool>()) {
            let switch = if ecn { "ecn" } else { "noecn" };
            let red = format!("red limit 20p min {min}p max {}p weight 0.3 probability 0.5 {switch}", min + more);
            let of = |text: String| events(&text.parse().unwrap(), &ops);
            prop_assert_eq!(of(format!("gred vqs [({red})]")), of(red));
        }
    }
}
