//! CoDel: one queue, kept short by dropping from its head when the sojourn time stays above a target.
//!
//! # Principles
//! - The measure is the sojourn time of packets, not their number, so one setting fits every rate.
//! - A queue that empties now and then is useful; only a delay that stays above `target` for a whole
//!   `interval` is excessive.
//! - Then one packet is dropped, and the next after `interval` / sqrt(n) for the n-th: TCP's rate falls with
//!   the root of the drop rate, so this lowers it in equal steps.
//! - Drops happen at the head, so that the sender detects them a queue's length earlier.
//! - It never empties the queue: while at most an MTU is queued behind the head, there are no drops.
//! - With `ecn` a packet is marked where it would have been dropped, if its sender supports ECN.
//! - Parameters can be changed while packets are queued: the count and the time of the next drop stay. When
//!   the limit is lowered, the oldest packets above it are dropped, as `tc qdisc change` does.
//!
//! # Deviations
//! - The square root is exact, in integers. The kernel keeps 1/sqrt(n) in 16 bits and makes one Newton step
//!   when n changes.
//! - One call drops all packets that are due (RFC 8289, section 5.5). The kernel drops 256 at most, and the
//!   next one `interval` / sqrt(n) later: it forgets the others. The difference needs a queue of more than
//!   256 packets behind a link that has stood still. Otherwise `codel` of Linux 7.2 drops the same packets at
//!   the same times (`cargo xtask test-kernel --oracle`).
//! - The drop that ends a drop state counts, as in the kernel, so that the next state starts from all drops
//!   of the previous one. Programs that follow the RFC's pseudo-code line by line do not count this drop.
//! - "An MTU" is the link's (RFC 8289, section 5.3), as in the kernel, which adds the header of the link.
//! - When several drops are overdue and the head can be marked, it gets one mark, and packets behind it get
//!   the others. The RFC's pseudo-code has no ECN; the kernel does the same.
//!
//! # Cost
//! - One queue operation and one subtraction per packet; a square root per drop. 32 bytes of state.
//!
//! # References
//! - Nichols, Jacobson, McGregor, Iyengar 2018: RFC 8289, sections 4 (parameters) and 5 (pseudo-code).
//! - tc-codel(8) for names and defaults.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::codel::{Codel as State, Law};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc, Span,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::taking::same;
use crate::common::warnings::low_limit;
use crate::{Discipline, InLinux};

/// Parameters of `codel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in packets; packets beyond it are dropped.
    pub limit: Packets,
    /// The acceptable standing delay.
    pub target: Span,
    /// Time above the target before the first drop: about the longest usual round-trip time.
    pub interval: Span,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Sojourn time above which packets are always marked if their sender supports ECN.
    pub ce_threshold: Option<Span>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(1000),
            target: Span::ms(5),
            interval: Span::ms(100),
            ecn: false,
            ce_threshold: None,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "CoDel: drops from the head when the sojourn time stays above a target (RFC 8289)";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Codel<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Codel<P>, Invalid> {
        let law = law(self.limit, self.target, self.interval, self.ecn, self.ce_threshold, context)?;
        Ok(Codel {
            limit: self.limit.0,
            law,
            state: State::default(),
            queue: Queue::new(Limit::Packets(self.limit.0)),
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("codel"))
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn || self.ce_threshold.is_some())
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Packets(5), ..Config::default() },
            Config { target: Span::us(50), interval: Span::us(500), ..Config::default() },
            Config { target: Span::us(50), interval: Span::us(500), ecn: true, ..Config::default() },
            Config { ce_threshold: Some(Span::ms(1)), ..Config::default() },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = law_warnings(self.target, self.interval, self.ce_threshold, context);
        let bytes = self.limit.0.saturating_mul(context.mtu.0);
        let effect = "the queue overflows before CoDel acts";
        warnings.extend(low_limit(self.limit, bytes, self.target, effect, context));
        warnings
    }
}

/// Checks CoDel's parameters, also for disciplines that run CoDel in each queue.
pub(crate) fn law(
    limit: Packets,
    target: Span,
    interval: Span,
    ecn: bool,
    ce_threshold: Option<Span>,
    context: &LinkContext,
) -> Result<Law, Invalid> {
    giveway_qdisc::check_limit("limit", Limit::Packets(limit.0), context.mtu)?;
    if interval.is_zero() {
        return Err(Invalid::new("interval", "must be above 0, for example \"100ms\""));
    }
    Ok(Law { target, interval, mtu: context.mtu, ecn, ce_threshold })
}

/// Warnings about usual mistakes in CoDel's parameters.
pub(crate) fn law_warnings(
    target: Span,
    interval: Span,
    ce_threshold: Option<Span>,
    context: &LinkContext,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let packet = context.rate.time_for(context.mtu.0);
    // Users may write it, so it is rounded up.
    let takes = Span::us(packet.as_ps().div_ceil(1_000_000));
    // RFC 8289, section 4 and RFC 8290, section 5.2: the target is at least the time of one packet.
    if target < packet {
        warnings.push(format!(
            "target: {target} is less than one packet of {} bytes takes at {} ({takes}): write at least that",
            context.mtu.0, context.rate
        ));
    }
    if interval <= target {
        warnings.push(format!(
            "interval: {interval} is not above the target of {target}; use about one round-trip time, ten to twenty times the target"
        ));
    }
    if let Some(threshold) = ce_threshold.filter(|threshold| *threshold < packet) {
        warnings.push(format!(
            "ce_threshold: {threshold} is less than one packet takes at {} ({takes}): every packet that is queued is marked",
            context.rate
        ));
    }
    warnings
}

/// The discipline `codel`: one queue and the state of CoDel.
pub struct Codel<P> {
    limit: u64,
    law: Law,
    state: State,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Codel<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.queue.backlog().packets >= self.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        // RFC 8289, section 5.4: enqueueing only records the time of arrival, which the port does.
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Codel { law, state, queue, .. } = self;
        let sent = state.dequeue(law, cx, || {
            let pkt = queue.pop()?;
            Some((pkt, queue.backlog().bytes))
        });
        match sent {
            Some(pkt) => Next::Packet(pkt),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.state = State::default();
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("dropping", f64::from(u8::from(self.state.dropping())));
        visit("count", f64::from(self.state.count()));
    }

    /// The queue, and the state of the law, which has its new parameters from the next dequeue on.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Codel<P>>(old) else { return };
        self.state = std::mem::take(&mut old.state);
        std::mem::swap(&mut self.queue, &mut old.queue);
        self.queue.shorten_from_the_head(Limit::Packets(self.limit), cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trace::{T1, trace, trace_on};
    use giveway_qdisc::{Ecn, Rate, Streams};

    /// Packets of 1,000 bytes, one every half millisecond: twice what a link of 1,000 bytes per ms can send.
    fn overload(from: u64, until_ms: u64) -> String {
        let arrival = |i: u64| format!("{}.{} P{} 1000", i / 2, if i.is_multiple_of(2) { 0 } else { 5 }, i);
        (2 * from..2 * until_ms).map(arrival).collect::<Vec<_>>().join("; ")
    }

    fn drops(trace: &str) -> &str {
        trace.split_once('|').expect("departures, then drops").1.trim()
    }

    #[test]
    fn is_a_fifo_while_there_is_no_delay() {
        assert_eq!(trace("codel limit 4p", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    /// Dropped packets and their times under a constant overload.
    ///
    /// At time t the head is the packet that arrived at (t + drops)/2. The first packet with a sojourn time
    /// of 5 ms is P10, at 10 ms. 100 ms later the head is P110, which is dropped. Drop n+1 is due 100/sqrt(n)
    /// ms after the time at which drop n was due.
    #[test]
    fn drops_at_the_pace_of_the_inverse_root() {
        let out = trace("codel", 1000, &overload(0, 900));
        let mut due = 110.0;
        let mut expected = Vec::new();
        for n in 0u32.. {
            // The link sends one packet per millisecond, and each earlier drop removed one more.
            let departure = libm::ceil(due) as u64;
            if departure >= 900 {
                break;
            }
            expected.push(format!("P{}@{departure}", departure + u64::from(n)));
            due += 100.0 / libm::sqrt(f64::from(n + 1));
        }
        assert_eq!(expected[..5].join(" "), "P110@110 P211@210 P283@281 P342@339 P393@389");
        assert!(expected.len() > 20);
        // The comparison ends with the last arrival.
        let during: Vec<&str> = drops(&out).split(' ').take(expected.len()).collect();
        assert_eq!(during, expected);
    }

    #[test]
    fn stops_as_soon_as_the_delay_is_below_target() {
        // The delay is above the target from 10 ms on, so one packet is dropped at 210 ms. By then arrivals
        // have stopped, and the delay falls below the target before the next drop is due.
        let arrivals = overload(0, 115);
        let out = trace("codel interval 200ms", 1000, &arrivals);
        assert_eq!(drops(&out), "P210@210");
        assert!(out.starts_with("P0[0-1] P1[1-2] P2[2-3]"));
        assert!(out.contains("P209[209-210] P211[210-211]"), "the next packet leaves instead");
    }

    #[test]
    fn marks_instead_of_dropping() {
        let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
        let capable = |spec: &str| {
            let qdisc = spec.parse::<crate::Spec>().unwrap().build_numbered(&context).unwrap();
            trace_on(qdisc, 1000, &overload(0, 300), |meta| meta.ecn = Ecn::Ect0)
        };
        assert_eq!(drops(&capable("codel ecn")), "");
        assert!(!drops(&capable("codel")).is_empty());
    }

    #[test]
    fn a_full_buffer_refuses_the_newest() {
        let out = trace("codel limit 2p", 1000, "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000");
        assert_eq!(out, "A1[0-1] A2[1-2] A3[2-3] | A4@0.3");
    }

    #[test]
    fn usual_mistakes_cause_warnings() {
        let warnings = |spec: &str, rate| {
            spec.parse::<crate::Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)))
        };
        assert!(warnings("codel", Rate::mbit(10)).is_empty());
        assert!(warnings("codel", Rate::mbit(1))[0].starts_with("target: 5ms is less than one packet"));
        assert!(warnings("codel limit 3p", Rate::mbit(10))[0].starts_with("limit: 3p drain in 3600us"));
        assert!(warnings("codel interval 5ms", Rate::mbit(10))[0].starts_with("interval: "));
        assert!(warnings("codel ce_threshold 1ms", Rate::mbit(10))[0].starts_with("ce_threshold: "));
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let zero = Config { interval: Span::ZERO, ..Config::default() };
        assert_eq!(zero.build::<u64>(&context).map(|_| ()).unwrap_err().parameter, "interval");
    }
}
