//! Network emulation: packets are delayed, lost, reordered and slowed down, as `netem` does it in Linux.
//!
//! # Principles
//! - A packet waits for `delay`, which varies by `jitter`. The queue is in the order of departure times, so
//!   packets with different delays overtake each other.
//! - `loss` loses packets independently, `gemodel` and `state` in bursts. A lost packet is reported with the
//!   reason `wire`, since it stands for a loss behind the queue. With `ecn` it is marked instead, if its
//!   sender supports ECN.
//! - `reorder` sends a share of the packets at once, past those that wait: after each `gap` - 1 packets that
//!   wait, packets are sent at once with this probability until one is.
//! - `rate` is a transmitter in front of the delay. It counts what a link adds: `overhead` bytes per packet,
//!   and `cellsize` bytes per cell with `celloverhead` more.
//! - `slot` releases packets in bursts: a slot opens, releases all packets that are due, at most `packets`
//!   and `bytes` of them, and the next one opens after a time between the two that are written.
//! - `limit` counts all packets that netem holds, those in the delay line included. A line of 100 ms at 1
//!   Gbit/s holds 8,333 packets of 1,500 bytes, so the default of 1,000 loses most of them. A warning says
//!   so.
//!
//! # Deviations
//! - Each value has a name, and lists have brackets: `delay 100ms jitter 10ms correlation 25%`, `loss 1%
//!   loss_correlation 25%`, `rate 1mbit overhead 20 cellsize 48 celloverhead 5`, `gemodel [1% 20%]`, `slot
//!   [5ms 10ms]`. The syntax of tc is read as well: `delay 100ms 10ms 25%`, `loss 1% 25%`, `reorder 25% 50%`,
//!   `rate 1mbit 20 48 5`, `loss gemodel 1% 20%`, `loss state 1%`, `slot 5ms 10ms`.
//! - A share without `%` is a part of 1, not percent: `loss 0.5` loses half of the packets. tc reads 0.5 %.
//! - `seed` is read and has no effect: random numbers follow from the seed of the run.
//! - `duplicate` and `corrupt` are refused: a discipline cannot copy a packet, and does not see its bytes. A
//!   link of a scenario has both keys.
//! - A correlation keeps the distribution: normal variables with this correlation are mapped to the one that
//!   is asked for. The kernel mixes uniform variables, so that a correlation also changes the mean share of
//!   losses and narrows the jitter; the manual calls it deprecated.
//! - Without `distribution` the jitter is uniform, from `delay` - `jitter` to `delay` + `jitter`, as in the
//!   kernel; the manual says normal. With one, `jitter` is the standard deviation. `pareto` contains the
//!   shape 3, and `paretonormal` adds a quarter of a normal variable to three quarters of one of Pareto. A
//!   negative delay is none. tc reads these distributions from tables.
//! - A packet that `reorder` sends at once does not wait for the transmitter of `rate`.
//! - `slot` has no distributions. tc puts another discipline behind netem; here the link follows.
//!
//! # Cost
//! - Some random draws per packet, and O(log packets) where packets overtake each other.
//!
//! # References
//! - Linux: tc-netem(8) for names and defaults. Hemminger 2005, "Network Emulation with NetEm", LCA 2005.
//! - Salsano, Ludovici, Ordine, Giannuzzi 2012, "Definition of a general and intuitive loss model for packet
//!   networks and its implementation in the Netem module in the Linux kernel", for `state` and `gemodel`.

mod delay;
mod loss;
mod slots;
#[cfg(test)]
mod tests;

use giveway_qdisc::blocks::RankedPackets;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc,
    Rate, Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use delay::{Correlated, Delay, Distribution, Transmitter};
use loss::{Chance, Loss};
use slots::Slotted;

/// Parameters of `netem`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-idle" = ["seed *"]))]
pub struct Config {
    /// Largest number of packets, those in the delay line included.
    pub limit: Packets,
    /// Time for which a packet waits.
    #[schemars(extend("x-then" = ["jitter", "correlation"]))]
    pub delay: Span,
    /// Variation of the delay: the largest of a uniform distribution, otherwise the standard deviation.
    pub jitter: Span,
    /// Correlation of the delay of a packet with the delay of the one before.
    pub correlation: Share,
    /// Distribution of the delay.
    pub distribution: Distribution,
    /// Probability that a packet is lost.
    #[schemars(extend(
        "x-then" = ["loss_correlation"],
        "x-forms" = { "random": "loss", "gemodel": "gemodel", "state": "state" }
    ))]
    pub loss: Share,
    /// Correlation of the loss of a packet with the loss of the one before.
    pub loss_correlation: Share,
    /// Losses in bursts, by Gilbert and Elliott: `[p r 1-h 1-k]`, the probabilities that the good and the bad
    /// state end, and of a loss in the bad and in the good state. By default r is 1 - p, 1-h 100 % and 1-k 0.
    #[schemars(extend("x-labels" = ["p", "r", "1-h", "1-k"]))]
    pub gemodel: Box<[Share]>,
    /// Losses by a chain of four states: `[p13 p31 p32 p23 p14]`, the probabilities of its transitions. By
    /// default p31 is 1 - p13, p23 100 %, and the others 0.
    #[schemars(extend("x-labels" = ["p13", "p31", "p32", "p23", "p14"]))]
    pub state: Box<[Share]>,
    /// Mark packets instead of losing them if their sender supports ECN.
    pub ecn: bool,
    /// Probability that a packet is sent at once.
    #[schemars(extend("x-then" = ["reorder_correlation"]))]
    pub reorder: Share,
    /// Correlation of that with the packet before.
    pub reorder_correlation: Share,
    /// The gap-th packet after one that was sent at once is the first that may be sent at once.
    pub gap: u32,
    /// Rate at which packets enter the delay line. By default any.
    #[schemars(extend("x-then" = ["overhead", "cellsize", "celloverhead"]))]
    pub rate: Option<Rate>,
    /// Bytes that the link of `rate` adds to each packet; negative if it carries less.
    #[schemars(extend("x-aliases" = ["packetoverhead"]))]
    pub overhead: i32,
    /// Bytes of a packet in each cell of that link; 0 for no cells.
    pub cellsize: u32,
    /// Bytes that the link adds to each cell.
    pub celloverhead: i32,
    /// Shortest and longest time between two slots; one time for both.
    pub slot: Box<[Span]>,
    /// Largest number of packets in a slot; 0 for any.
    pub packets: u32,
    /// Number of bytes in a slot, after which no more packets are released; 0 for any.
    pub bytes: Bytes,
    /// Refused above 0: a discipline cannot copy a packet.
    #[schemars(extend("x-hidden" = true))]
    pub duplicate: Share,
    /// Refused above 0: a discipline does not see the bytes of a packet.
    #[schemars(extend("x-hidden" = true))]
    pub corrupt: Share,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(1000),
            delay: Span::ZERO,
            jitter: Span::ZERO,
            correlation: Share::default(),
            distribution: Distribution::Uniform,
            loss: Share::default(),
            loss_correlation: Share::default(),
            gemodel: Box::default(),
            state: Box::default(),
            ecn: false,
            reorder: Share::default(),
            reorder_correlation: Share::default(),
            gap: 1,
            rate: None,
            overhead: 0,
            cellsize: 0,
            celloverhead: 0,
            slot: Box::default(),
            packets: 0,
            bytes: Bytes::ZERO,
            duplicate: Share::default(),
            corrupt: Share::default(),
        }
    }
}

impl Config {
    /// Refuses what a discipline cannot do.
    fn check_words(&self) -> Result<(), Invalid> {
        if self.duplicate.get() > 0.0 {
            let message = "a discipline cannot copy a packet: a [[link]] of a scenario has the key duplicate";
            return Err(Invalid::new("duplicate", message));
        }
        if self.corrupt.get() > 0.0 {
            let message = "a discipline does not see the bytes of a packet: a [[link]] of a scenario has the key corrupt";
            return Err(Invalid::new("corrupt", message));
        }
        Ok(())
    }

    /// Checks that words which need another one have it.
    fn check_company(&self) -> Result<(), Invalid> {
        let share = |share: Share| share.get() > 0.0;
        let lone = [
            ("correlation", share(self.correlation) && self.jitter.is_zero(), "jitter", "jitter 10ms"),
            ("loss_correlation", share(self.loss_correlation) && !share(self.loss), "loss", "loss 1%"),
            ("gap", self.gap != 1 && !share(self.reorder), "reorder", "reorder 25%"),
            (
                "reorder_correlation",
                share(self.reorder_correlation) && !share(self.reorder),
                "reorder",
                "reorder 25%",
            ),
            ("reorder", share(self.reorder) && self.delay.is_zero(), "delay", "delay 10ms"),
            ("overhead", self.overhead != 0 && self.rate.is_none(), "rate", "rate 1mbit"),
            ("cellsize", self.cellsize != 0 && self.rate.is_none(), "rate", "rate 1mbit"),
            ("celloverhead", self.celloverhead != 0 && self.cellsize == 0, "cellsize", "cellsize 48"),
            ("packets", self.packets != 0 && self.slot.is_empty(), "slot", "slot [5ms 10ms]"),
            ("bytes", self.bytes != Bytes::ZERO && self.slot.is_empty(), "slot", "slot [5ms 10ms]"),
        ];
        for (word, alone, needs, example) in lone {
            if alone {
                let message = format!("it needs {needs}: write for example \"{example}\", too");
                return Err(Invalid::new(word, message));
            }
        }
        Ok(())
    }

    fn check(&self, context: &LinkContext) -> Result<(), Invalid> {
        self.check_words()?;
        self.check_company()?;
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        if self.rate.is_some_and(|rate| rate.as_bit() == 0) {
            return Err(Invalid::new("rate", "must be above 0 bit/s; leave it out for any"));
        }
        if self.gap == 0 {
            return Err(Invalid::new("gap", "must be at least 1, which lets each packet be sent at once"));
        }
        Ok(())
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "network emulation: delay, jitter, loss, reordering, rate and slots";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Netem<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Netem<P>, Invalid> {
        self.check(context)?;
        let streams = |name: &str| context.streams.within(name).rng();
        Ok(Netem {
            limit: self.limit.0,
            ecn: self.ecn,
            loss: Loss::new((self.loss, self.loss_correlation), &self.gemodel, &self.state, streams("loss"))?,
            delay: Delay::new(
                self.delay,
                self.jitter,
                self.distribution,
                Correlated::new(self.correlation, streams("delay")),
            ),
            transmitter: Transmitter::new(self.rate, self.overhead, (self.cellsize, self.celloverhead)),
            reorder: Chance::new(self.reorder, self.reorder_correlation, streams("reorder")),
            gap: self.gap,
            waited: 0,
            slots: Slotted::new(&self.slot, self.packets, self.bytes, streams("slot"))?,
            queue: RankedPackets::with_capacity(Limit::Packets(self.limit.0).initial_capacity()),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        let constant = self.jitter.is_zero() && self.reorder.get() == 0.0;
        let at_once = self.delay.is_zero() && self.jitter.is_zero();
        Properties {
            keeps_flow_order: constant,
            work_conserving: at_once && self.rate.is_none() && self.slot.is_empty(),
            ..Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn)
        }
    }

    fn shaped_rate(&self, context: &LinkContext) -> Option<Rate> {
        self.rate.filter(|rate| *rate < context.rate)
    }

    fn variants() -> Vec<Config> {
        let share = |share| Share::new(share).expect("it is between 0 and 1");
        let delayed = Config { delay: Span::ms(3), limit: Packets(20), ..Config::default() };
        vec![
            Config { loss: share(0.1), loss_correlation: share(0.3), ecn: true, ..Config::default() },
            Config {
                jitter: Span::ms(2),
                correlation: share(0.5),
                distribution: Distribution::Paretonormal,
                gemodel: Box::new([share(0.05), share(0.3)]),
                ..delayed.clone()
            },
            Config { reorder: share(0.5), gap: 3, state: Box::new([share(0.1)]), ..delayed.clone() },
            Config {
                rate: Some(Rate::mbit(5)),
                overhead: -14,
                cellsize: 48,
                celloverhead: 5,
                ..delayed.clone()
            },
            Config { slot: Box::new([Span::ms(2), Span::ms(5)]), packets: 3, bytes: Bytes(3000), ..delayed },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        let rate = self.rate.map_or(context.rate, |rate| rate.min(context.rate));
        let line = rate.bytes_in(self.delay + self.jitter) / context.mtu.0;
        if line > self.limit.0 {
            warnings.push(format!(
                "limit: {} also counts the packets in the delay line: {} at {rate} hold {line} packets of {} bytes, and the rest is dropped",
                self.limit,
                self.delay + self.jitter,
                context.mtu.0
            ));
        }
        if self.loss.get() == 1.0 {
            warnings.push("loss: all packets are lost; one percent is written \"1%\"".into());
        }
        if self.distribution == Distribution::Uniform && self.jitter > self.delay {
            warnings.push(format!(
                "jitter: {} is more than the delay of {}: shorter delays than none become none",
                self.jitter, self.delay
            ));
        }
        warnings
    }
}

/// The discipline `netem`: its random parts, and the packets by the time at which they may leave.
pub struct Netem<P> {
    limit: u64,
    ecn: bool,
    loss: Loss,
    delay: Delay,
    transmitter: Transmitter,
    reorder: Chance,
    gap: u32,
    /// Packets that have waited since the last one that was sent at once.
    waited: u32,
    slots: Option<Slotted>,
    /// Packets by departure time in picoseconds.
    queue: RankedPackets<P>,
}

impl<P> Qdisc<P> for Netem<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.loss.loses() && !(self.ecn && cx.mark(&mut pkt)) {
            return cx.drop(pkt, DropReason::Wire);
        }
        if self.queue.backlog().packets >= self.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let now = cx.now();
        let at = if self.skips() { now } else { self.transmitter.end(pkt.bytes(), now) + self.delay.next() };
        // The packet fits, so none is dropped.
        self.queue.push_within(Limit::Packets(self.limit), at.as_ps(), pkt, cx, |_, _| {});
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Some((first, _)) = self.queue.ranks() else { return Next::Empty };
        let due = Time::from_ps(first);
        let at = match &mut self.slots {
            Some(slots) => slots.release(due, cx.now()),
            None => due,
        };
        if at > cx.now() {
            return Next::At(at);
        }
        let (_, pkt) = self.queue.pop().expect("the queue has a first packet");
        if let Some(slots) = &mut self.slots {
            slots.on_departure(pkt.bytes());
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, pkt)) = self.queue.pop() {
            cx.drop(pkt, DropReason::Reset);
        }
        self.transmitter.reset();
        self.loss.reset();
        self.waited = 0;
        if let Some(slots) = &mut self.slots {
            slots.reset();
        }
    }
}

impl<P> Netem<P> {
    /// True if the arriving packet is sent at once.
    #[inline]
    fn skips(&mut self) -> bool {
        self.waited = self.waited.saturating_add(1);
        let skips = self.reorder.is_possible() && self.waited >= self.gap && self.reorder.next();
        if skips {
            self.waited = 0;
        }
        skips
    }
}
