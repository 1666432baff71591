//! Token bucket filter: sends no faster than a rate, except for a burst of saved credit.
//!
//! # Principles
//! - Credit grows at `rate` up to `burst`, and a packet leaves when the credit covers it. Over any interval
//!   of length t no more than `rate` t + `burst` leaves.
//! - With `peakrate` a second, small bucket limits the rate of the burst.
//! - Credit is an exact integer, and a packet leaves at the first picosecond at which it may: it returns the
//!   time of the next departure, so that no backend polls.
//! - A shaper does not schedule. Packets wait in a child: a fifo with this filter's limit, or any discipline.
//! - Parameters can be changed while packets are queued: the credit stays, up to the new burst. When the
//!   limit is lowered, the newest packets above it are dropped. With a smaller `burst` or another kind of
//!   child the queued packets leave at the old rate, ahead of later arrivals.
//!
//! # Deviations
//! - The length of the child's next packet must be known before it may leave, so that packet waits outside
//!   the child. Packets that arrive in the meantime come after it, even urgent ones, and an AQM in the child
//!   counts it as sent. Linux does the same.
//! - `limit` bounds the whole backlog, that packet included. With an explicit child the limit is the child's,
//!   and the backlog may be one packet more.
//! - tc requires `rate`, `burst` and one of `limit` and `latency`. Here the rate defaults to the link's, the
//!   burst to 5 kb, and the limit to 1,000 packets. `mpu`, `overhead` and `linklayer` are left out: lengths
//!   are IP lengths.
//! - Without `rate` the filter follows the rate of a link that varies. A limit from `latency` still follows
//!   from the rate for which it was built.
//! - A packet that is larger than a bucket could never leave, and is refused on arrival. Linux splits large
//!   GSO packets.
//!
//! # Cost
//! - Two multiplications per packet, and the cost of the child. A division when a packet must wait.
//!
//! # References
//! - Linux: tc-tbf(8). The bucket follows RFC 2697 and RFC 2698, in one colour.

use std::any::Any;

use giveway_qdisc::blocks::{Head, Lookahead, TokenBucket};
use giveway_qdisc::check_limit;
use giveway_qdisc::{
    Backlog, Bytes, ClassState, Cx, DropReason, FlowTable, Guarantee, Invalid, Limit, LinkContext,
    MAX_PACKETS, Next, Packet, Properties, Qdisc, Rate, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::frame;
use crate::common::taking::same;
use crate::fifo::{self, Fifo};
use crate::{Advice, Discipline, Spec};

/// Parameters of `tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The rate at which credit grows. Default: the link's rate.
    pub rate: Option<Rate>,
    /// Largest credit. tc also calls it `buffer` and `maxburst`.
    #[schemars(extend("x-aliases" = ["buffer", "maxburst"]))]
    pub burst: Bytes,
    /// Capacity, in packets or in bytes; 1,000 packets if neither this nor `latency` is given. A number
    /// without a unit counts bytes, as in tc.
    #[schemars(extend("x-bare" = "b"))]
    pub limit: Option<Limit>,
    /// The limit as the longest time that a packet waits for credit. tc also calls it `lat`.
    #[schemars(extend("x-aliases" = ["lat"]))]
    pub latency: Option<Span>,
    /// Rate at which a burst is sent. Default: the link's rate.
    pub peakrate: Option<Rate>,
    /// Part of a burst that is sent at once if there is a peak rate. By default the largest packet of the
    /// link. tc also calls it `minburst`.
    #[schemars(extend("x-aliases" = ["minburst"]))]
    pub mtu: Option<Bytes>,
    /// The discipline in which packets wait. By default a fifo with this filter's limit.
    pub child: Option<Box<Spec>>,
}

impl Default for Config {
    fn default() -> Config {
        let burst = Bytes(5 * 1024);
        Config { rate: None, burst, limit: None, latency: None, peakrate: None, mtu: None, child: None }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "token bucket filter: shapes to a rate and a burst";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Tbf<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Tbf<P>, Invalid> {
        let limit = self.own_limit(context)?;
        if let Some(limit) = limit {
            check_limit(if self.latency.is_some() { "latency" } else { "limit" }, limit, context.mtu)?;
        }
        let child = self.waiting().build_within(&context.child("child"));
        let child = child.map_err(|invalid| Invalid::new("child", invalid.to_string()))?;
        let sustained = bucket("rate", self.rate(context), "burst", self.burst)?;
        let peak = match self.peakrate {
            Some(rate) if rate < self.rate(context) => {
                return Err(Invalid::new(
                    "peakrate",
                    format!("{rate} is below the rate of {}", self.rate(context)),
                ));
            }
            Some(rate) => Some(bucket("peakrate", rate, "mtu", self.mtu.unwrap_or(context.mtu))?),
            None if self.mtu.is_some() => {
                return Err(Invalid::new(
                    "mtu",
                    "it limits the burst at the peak rate, so it needs \"peakrate\"",
                ));
            }
            None => None,
        };
        Ok(Tbf { limit, sustained, peak, follows_link: self.rate.is_none(), queue: Lookahead::new(child) })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        let child = self.waiting().properties(&context.child("child"));
        // The child would base a guarantee on the rate of the link, which the filter does not provide.
        let guarantee = Guarantee::Nothing;
        Properties {
            work_conserving: false,
            limit: self.own_limit(context).ok().flatten(),
            guarantee,
            ..child
        }
    }

    fn shaped_rate(&self, context: &LinkContext) -> Option<Rate> {
        self.rate.filter(|rate| *rate < context.rate)
    }

    fn lookahead(&self) -> usize {
        self.waiting().lookahead()
    }

    fn variants() -> Vec<Config> {
        let plain = Config { rate: Some(Rate::mbit(3)), ..Config::default() };
        let read = |text: &str| Some(Box::new(text.parse().expect("the constant is a spec")));
        vec![
            plain.clone(),
            Config { burst: Bytes(1000), limit: Some(Limit::Packets(3)), ..plain.clone() },
            Config { latency: Some(Span::ms(5)), peakrate: Some(Rate::mbit(7)), ..plain.clone() },
            Config { rate: Some(Rate::bit(999_983)), child: read("drr limit 6p"), ..plain.clone() },
            Config { child: read("tbf rate 2mbit burst 1500b child (sfq limit 9)"), ..plain },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.rate(context) >= context.rate {
            warnings.push(format!(
                "rate {} is not below the rate of the link, {}: nothing is shaped",
                self.rate(context),
                context.rate
            ));
        }
        let largest = self.peakrate.and(self.mtu).map_or(self.burst, |mtu| mtu.min(self.burst));
        if largest < context.mtu {
            warnings.push(format!(
                "packets of more than {largest} can never leave, but the MTU of the link is {}",
                context.mtu
            ));
        } else if largest < frame(context) {
            warnings.push(format!(
                "burst: {largest} hold no packet of {} with its Ethernet header, which Linux and giveway live count: \
                 they drop it; write burst {}b, or more",
                context.mtu,
                frame(context).0
            ));
        }
        if let Some(child) = &self.child {
            warnings.extend(child.warnings(context));
        }
        warnings
    }

    fn advice(&self, largest: Bytes, context: &LinkContext) -> Vec<Advice> {
        self.child.iter().flat_map(|child| child.advice(largest, context)).collect()
    }
}

impl Config {
    fn rate(&self, context: &LinkContext) -> Rate {
        self.rate.unwrap_or(context.rate)
    }

    /// The discipline in which packets wait. The filter enforces its limit, so its own fifo has none.
    fn waiting(&self) -> Spec {
        match &self.child {
            Some(child) => Spec::clone(child),
            None => {
                Spec::fifo(fifo::Config { limit: Limit::Packets(MAX_PACKETS), ..fifo::Config::default() })
            }
        }
    }

    /// Capacity of the filter; `None` if the child has the limit.
    fn own_limit(&self, context: &LinkContext) -> Result<Option<Limit>, Invalid> {
        match (self.limit, self.latency, &self.child) {
            (Some(_), Some(_), _) => {
                Err(Invalid::new("latency", "latency and limit both set the capacity: give one of them"))
            }
            (Some(_), None, Some(_)) => {
                Err(Invalid::new("limit", "the child has its own limit: set it there"))
            }
            (None, Some(_), Some(_)) => {
                Err(Invalid::new("latency", "the child has its own limit: set it there"))
            }
            (None, None, Some(_)) => Ok(None),
            (Some(limit), None, None) => Ok(Some(limit)),
            (None, Some(latency), None) => Ok(Some(Limit::Bytes(self.filled_in(latency, context)))),
            (None, None, None) => Ok(Some(fifo::Config::default().limit)),
        }
    }

    /// Bytes of which the last leaves after `latency` when the buckets are full, tc-tbf(8).
    fn filled_in(&self, latency: Span, context: &LinkContext) -> u64 {
        let sustained = self.rate(context).bytes_in(latency).saturating_add(self.burst.0);
        match self.peakrate {
            Some(rate) => {
                sustained.min(rate.bytes_in(latency).saturating_add(self.mtu.unwrap_or(context.mtu).0))
            }
            None => sustained,
        }
    }
}

/// Refuses a bucket through which nothing would ever pass.
fn bucket(
    rate_name: &'static str,
    rate: Rate,
    burst_name: &'static str,
    burst: Bytes,
) -> Result<TokenBucket, Invalid> {
    if rate == Rate::bit(0) {
        return Err(Invalid::new(rate_name, "must be above 0 bit/s, for example \"1mbit\""));
    }
    if burst == Bytes::ZERO {
        return Err(Invalid::new(burst_name, "must be at least 1 byte, for example \"5kb\""));
    }
    Ok(TokenBucket::new(rate, burst))
}

/// The buckets, and the packets that wait for credit.
pub struct Tbf<P> {
    limit: Option<Limit>,
    sustained: TokenBucket,
    peak: Option<TokenBucket>,
    /// True if the rate is the link's.
    follows_link: bool,
    queue: Lookahead<P, Box<dyn Qdisc<P>>>,
}

impl<P: 'static> Qdisc<P> for Tbf<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if u64::from(pkt.bytes()) > self.largest().0 {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        if let Some(limit) = self.limit
            && !limit.admits(self.queue.backlog(), pkt.bytes())
        {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.queue.enqueue(pkt, cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let now = cx.now();
        let bytes = match self.queue.head(cx) {
            Head::Bytes(bytes) => bytes,
            Head::At(at) => return Next::At(at),
            Head::Empty => return Next::Empty,
        };
        let ready = self.sustained.ready(bytes, now);
        let ready = self.peak.as_mut().map_or(ready, |peak| ready.max(peak.ready(bytes, now)));
        if ready > now {
            return Next::At(ready);
        }
        self.sustained.spend(bytes, now);
        if let Some(peak) = &mut self.peak {
            peak.spend(bytes, now);
        }
        self.queue.dequeue(cx)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.sustained.refill();
        if let Some(peak) = &mut self.peak {
            peak.refill();
        }
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        if self.follows_link {
            self.sustained.set_rate(rate, now);
        }
        self.queue.rate_changed(rate, now);
    }

    fn flow_table(&self) -> FlowTable {
        self.queue.flow_table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("tokens_bytes", self.sustained.tokens().0 as f64);
        self.queue.gauges(visit);
    }
    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        self.queue.classes(visit);
    }

    /// The credit, and the child with its packets. They stay if they might not fit a smaller bucket.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Tbf<P>>(old) else { return };
        self.sustained.take_over(old.sustained, cx.now());
        if let (Some(peak), Some(old)) = (&mut self.peak, old.peak) {
            peak.take_over(old, cx.now());
        }
        if self.largest() < old.largest() {
            return;
        }
        self.queue.take_over(&mut old.queue, cx);
        let Some(limit) = self.limit else { return };
        while !limit.allows(self.queue.backlog()) {
            let waiting = same::<P, Fifo<P>>(self.queue.child_mut()).and_then(Fifo::pop_last);
            // The fifo is empty, and the packet in front of it alone is too large.
            let victim = waiting.or_else(|| self.queue.dequeue(cx).packet());
            cx.drop(victim.expect("what exceeds the limit is queued"), DropReason::Overlimit);
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> Tbf<P> {
    /// Length of the largest packet that can ever leave.
    #[inline]
    fn largest(&self) -> Bytes {
        self.peak.map_or(self.sustained.burst(), |peak| peak.burst().min(self.sustained.burst()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::build_error;
    use crate::testing::trace::trace;
    use giveway_qdisc::{FlowKey, Outbox, Streams, Time};
    use proptest::prelude::*;

    #[test]
    fn a_saved_burst_passes_and_then_the_rate_holds() {
        // 2,000 bytes are saved; after that 1,000 bytes need 2 ms at 4 Mbit/s, on a link of 8 Mbit/s.
        assert_eq!(
            trace(
                "tbf rate 4mbit burst 2000b",
                1000,
                "0 A1 1000; 0 A2 1000; 0 A3 1000; 0 A4 1000; 20 A5 1000; 20 A6 1000"
            ),
            "A1[0-1] A2[1-2] A3[2-3] A4[4-5] A5[20-21] A6[21-22] |"
        );
    }

    #[test]
    fn a_peak_rate_spreads_the_burst() {
        assert_eq!(
            trace(
                "tbf rate 1mbit burst 3000b peakrate 4mbit mtu 1000b",
                1000,
                "0 A1 1000; 0 A2 1000; 0 A3 1000; 0 A4 1000"
            ),
            // The peak bucket has credit for a packet every 2 ms. A4 needs 1,000 bytes, less the credit of
            // 4 ms, and waits until 8 ms.
            "A1[0-1] A2[2-3] A3[4-5] A4[8-9] |"
        );
    }

    #[test]
    fn the_backlog_stays_within_the_limit() {
        let arrivals = "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 B1 1500";
        assert_eq!(
            trace("tbf rate 1mbit burst 1000b limit 2p", 1000, arrivals),
            "A1[0-1] A2[8-9] A3[16-17] | A4@0.3 B1@0.4"
        );
        // 16 ms at 1 Mbit/s are 2,000 bytes, in addition to the burst.
        assert_eq!(
            trace("tbf rate 1mbit burst 1000b latency 16ms", 1000, arrivals),
            "A1[0-1] A2[8-9] A3[16-17] A4[24-25] | B1@0.4"
        );
    }

    #[test]
    fn the_head_packet_is_outside_the_child() {
        // B1 is more urgent than A2, but A2 was taken from the child first.
        assert_eq!(
            trace(
                "tbf rate 4mbit burst 1000b child (prio bands 2 children [(fifo) (fifo)])",
                1000,
                "0 B1 1000; 0.1 B2 1000; 0.2 B3 1000; 1.5 A1 1000"
            ),
            "B1[0-1] B2[2-3] A1[4-5] B3[6-7] |"
        );
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(build_error("tbf rate 1mbit limit 10p latency 5ms").parameter, "latency");
        assert_eq!(build_error("tbf rate 1mbit limit 10p child (fifo)").parameter, "limit");
        assert_eq!(build_error("tbf rate 1mbit latency 5ms child (fifo)").parameter, "latency");
        assert_eq!(build_error("tbf rate 1mbit peakrate 500kbit").parameter, "peakrate");
        assert_eq!(build_error("tbf rate 1mbit mtu 1500b").parameter, "mtu");
        assert_eq!(build_error("tbf rate 0bit").parameter, "rate");
        assert_eq!(build_error("tbf burst 0b").parameter, "burst");
        assert_eq!(build_error("tbf child (efd limit 10b)").parameter, "child");
    }

    /// The simulator counts IP lengths, and everything else 14 bytes more.
    #[test]
    fn a_burst_below_a_frame_is_warned_of() {
        let warnings = |text: &str| {
            text.parse::<Spec>().unwrap().warnings(&LinkContext::new(Rate::gbit(1), Streams::new(1)))
        };
        assert_eq!(
            warnings("tbf rate 1mbit burst 1500b"),
            [
                "burst: 1500b hold no packet of 1500b with its Ethernet header, which Linux and giveway live count: they drop it; write burst 1514b, or more"
            ]
        );
        assert!(warnings("tbf rate 1mbit burst 1514b").is_empty());
        assert!(warnings("tbf rate 1mbit burst 1kb")[0].contains("can never leave"));
    }

    /// `tc qdisc show` writes "lat", and tc-tbf(8) has the other names.
    #[test]
    fn every_name_of_tc_for_a_parameter_is_read() {
        let read = |text: &str| text.parse::<Spec>().map(|spec| spec.to_string());
        for burst in ["burst", "buffer", "maxburst"] {
            let text = format!("tbf rate 10mbit {burst} 10kb peakrate 20mbit minburst 1600b lat 600ms");
            assert_eq!(
                read(&text).expect("tc reads it"),
                "tbf rate 10mbit burst 10kb latency 600ms peakrate 20mbit mtu 1600b"
            );
        }
        let twice = read("tbf lat 5ms latency 6ms").expect_err("one of them would be lost");
        assert_eq!(twice.to_string(), "\"latency\" is given twice");
        let twice = read("tbf latency 5ms lat 6ms").expect_err("one of them would be lost");
        assert_eq!(twice.to_string(), "\"latency\" is given twice, here as \"lat\"");
        let bare = read("tbf lat").expect_err("there is no value");
        assert_eq!(bare.to_string(), "\"latency\" needs a value; see giveway explain tbf");
    }

    proptest! {
        /// Over any interval at most rate and burst leave, and no packet leaves a picosecond later than
        /// possible: at each departure that had to wait, the rest in some bucket is less than the credit of a
        /// picosecond.
        #[test]
        fn the_envelope_is_kept_and_used(
            rate in 8_000u64..1_000_000_000, burst in 1500u64..10_000,
            packets in prop::collection::vec((40u32..=1500, 0u64..3000), 1..60),
        ) {
            let config = Config { rate: Some(Rate::bit(rate)), burst: Bytes(burst), ..Config::default() };
            let mut tbf = config.build::<u64>(&LinkContext::new(Rate::gbit(10), Streams::new(1))).unwrap();
            let mut out = Outbox::default();
            let mut now = Time::ZERO;
            let mut sent: Vec<(Time, u128, bool)> = Vec::new();
            let mut left = packets.iter().peekable();
            let mut due = Time::ZERO;
            loop {
                while let Some((bytes, gap)) = left.next_if(|_| due <= now) {
                    tbf.enqueue(Packet::new(FlowKey(0), *bytes, 0), &mut Cx::new(now, &mut out));
                    due += Span::us(*gap);
                }
                let mut waited = false;
                loop {
                    match tbf.dequeue(&mut Cx::new(now, &mut out)) {
                        Next::Packet(pkt) => sent.push((now, u128::from(pkt.bytes()) * 8_000_000_000_000, waited)),
                        Next::At(at) if left.len() == 0 || at <= due => {
                            let early = Time::from_ps(at.as_ps() - 1);
                            if early > now {
                                prop_assert!(matches!(tbf.dequeue(&mut Cx::new(early, &mut out)), Next::At(same) if same == at));
                            }
                            now = at;
                            waited = true;
                            continue;
                        }
                        Next::At(_) | Next::Empty => break,
                    }
                    waited = false;
                }
                if left.len() == 0 {
                    break;
                }
                now = now.max(due);
            }
            prop_assert_eq!(sent.len(), packets.len());
            let (rate, burst) = (u128::from(rate), u128::from(burst) * 8_000_000_000_000);
            let margin = |from: usize, until: usize| {
                let bits: u128 = sent[from..=until].iter().map(|(_, bits, _)| bits).sum();
                (rate * u128::from(sent[until].0.since(sent[from].0).as_ps()) + burst).checked_sub(bits)
            };
            for (until, (_, _, waited)) in sent.iter().enumerate() {
                let margins: Option<Vec<u128>> = (0..=until).map(|from| margin(from, until)).collect();
                let Some(margins) = margins else { return Err(TestCaseError::fail("more left than rate and burst")) };
                if *waited {
                    prop_assert!(*margins.iter().min().unwrap() < rate, "packet {} could have left earlier", until);
                }
            }
        }
    }
}
