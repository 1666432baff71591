//! The leaves of a discipline with classes: a discipline for each class, with counters.
//!
//! A leaf may drop packets at any call, and may itself hold packets back. The total backlog follows each
//! call, so that it costs the same for three leaves and for 100,000.

use giveway_qdisc::blocks::{Head, Lookahead};
use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{
    Backlog, ClassState, Cx, FlowTable, Invalid, LinkContext, Next, Packet, Qdisc, Rate, Span, Time,
};

use crate::{Discipline, Spec, fifo};

/// Hash of a discipline as it is written.
pub fn written(spec: Option<&Spec>) -> u64 {
    spec.map_or(0, |spec| SipHasher::new(0, 0).hash(spec.to_string().as_bytes()))
}

/// Maximum number of leaves that request the memory for their packets in advance. There may be 100,000.
const FEW: usize = 256;

/// A class with its own queue.
pub struct Leaf<P> {
    qdisc: Lookahead<P, Box<dyn Qdisc<P>>>,
    /// Backlog of the discipline after the last call.
    backlog: Backlog,
    arrived: Backlog,
    sent: Backlog,
    waited: Span,
    longest: Span,
    /// The maximum of its rate of the link.
    most: Option<Rate>,
    /// The rate that its discipline knows.
    rate: Rate,
    /// Hash of the discipline as it is written: leaves with equal ones are alike.
    written: u64,
}

/// The leaves of a discipline, by number.
pub struct Leaves<P> {
    leaves: Vec<Leaf<P>>,
    backlog: Backlog,
}

impl<P: 'static> Leaf<P> {
    /// A leaf with the discipline `spec`, whose text has the hash `written`, of the class `name`, one of
    /// `count`, whose packets leave at up to `most`. By default it is a fifo of 1,000 packets.
    ///
    /// # Errors
    /// The parameter of the discipline that is not valid.
    pub fn build(
        spec: Option<&Spec>,
        written: u64,
        (name, count): (&str, usize),
        most: Option<Rate>,
        context: &LinkContext,
    ) -> Result<Leaf<P>, Invalid> {
        let mut inside = context.child(name);
        inside.rate = most.map_or(context.rate, |most| most.min(context.rate));
        let qdisc = match spec {
            Some(spec) => spec.build_within(&inside)?,
            None if count <= FEW => Box::new(fifo::Config::default().build::<P>(&inside)?),
            None => Box::new(fifo::Config::default().growing()),
        };
        Ok(Leaf {
            qdisc: Lookahead::new(qdisc),
            backlog: Backlog::ZERO,
            arrived: Backlog::ZERO,
            sent: Backlog::ZERO,
            waited: Span::ZERO,
            longest: Span::ZERO,
            most,
            rate: inside.rate,
            written,
        })
    }
}

impl<P> Leaf<P> {
    /// Its counters, for a class without other properties yet.
    pub fn state(&self) -> ClassState {
        ClassState {
            leaf: true,
            arrived: self.arrived,
            sent: self.sent,
            dropped: Backlog {
                packets: self.arrived.packets - self.sent.packets - self.backlog.packets,
                bytes: self.arrived.bytes - self.sent.bytes - self.backlog.bytes,
            },
            backlog: self.backlog,
            waited: self.waited,
            longest: self.longest,
            ..ClassState::default()
        }
    }

    /// Visits the classes of the leaf's own discipline, below the class `path` of the level `level`.
    pub fn below(&self, path: &str, level: u16, visit: &mut dyn FnMut(ClassState)) {
        self.qdisc.classes(&mut |mut inner| {
            inner.path = format!("{path}/{}", inner.path);
            inner.level += level;
            visit(inner);
        });
    }
}

impl<P> Leaves<P> {
    /// These leaves.
    pub fn new(leaves: Vec<Leaf<P>>) -> Leaves<P> {
        Leaves { leaves, backlog: Backlog::ZERO }
    }

    /// A leaf.
    pub fn get(&self, at: u32) -> &Leaf<P> {
        &self.leaves[at as usize]
    }

    /// Packets and bytes in all leaves.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// True if a leaf has no backlog.
    #[inline]
    pub fn is_empty(&self, at: u32) -> bool {
        self.leaves[at as usize].backlog.packets == 0
    }

    /// Enqueues a packet in a leaf. The leaf may be empty afterwards, if it dropped the packet.
    #[inline]
    pub fn enqueue(&mut self, at: u32, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let leaf = &mut self.leaves[at as usize];
        leaf.arrived.add(pkt.bytes());
        leaf.qdisc.enqueue(pkt, &mut cx.child());
        self.recount(at);
    }

    /// The packet that a leaf sends next. After this call the leaf's discipline has released it, so it leaves
    /// next whatever arrives.
    #[inline]
    pub fn head(&mut self, at: u32, cx: &mut Cx<'_, P>) -> Head {
        let head = self.leaves[at as usize].qdisc.head(cx);
        self.recount(at);
        head
    }

    /// Dequeues a packet of a leaf.
    #[inline]
    pub fn dequeue(&mut self, at: u32, cx: &mut Cx<'_, P>) -> Next<P> {
        let leaf = &mut self.leaves[at as usize];
        if leaf.backlog.packets == 0 {
            return Next::Empty;
        }
        let next = leaf.qdisc.dequeue(&mut cx.child());
        if let Next::Packet(pkt) = &next {
            leaf.sent.add(pkt.bytes());
            let wait = cx.now().since(pkt.meta.arrived);
            leaf.waited += wait;
            leaf.longest = leaf.longest.max(wait);
        }
        self.recount(at);
        next
    }

    /// Continues a leaf of other leaves: with its discipline, if both are written alike. Otherwise the new
    /// discipline takes over what it can, and gets all other packets. The counters go on.
    pub fn take_over(&mut self, at: u32, others: &mut Leaves<P>, other: u32, cx: &mut Cx<'_, P>) {
        let (leaf, old) = (&mut self.leaves[at as usize], &mut others.leaves[other as usize]);
        (leaf.arrived, leaf.sent) = (old.arrived, old.sent);
        (leaf.waited, leaf.longest) = (old.waited, old.longest);
        if leaf.written == old.written {
            std::mem::swap(&mut leaf.qdisc, &mut old.qdisc);
            if leaf.rate != old.rate {
                leaf.qdisc.rate_changed(leaf.rate, cx.now());
            }
        } else {
            leaf.qdisc.take_over(&mut old.qdisc, cx);
            others.drain(other, cx, &mut |pkt, inner| leaf.qdisc.enqueue(pkt, inner));
        }
        others.recount(other);
        self.recount(at);
    }

    /// Takes all packets from a leaf. Those that its discipline holds back are dropped.
    pub fn drain(&mut self, at: u32, cx: &mut Cx<'_, P>, give: &mut dyn FnMut(Packet<P>, &mut Cx<'_, P>)) {
        let leaf = &mut self.leaves[at as usize];
        while let Next::Packet(pkt) = leaf.qdisc.dequeue(&mut cx.child()) {
            give(pkt, &mut cx.child());
        }
        leaf.qdisc.reset(&mut cx.child());
        self.recount(at);
    }

    /// Updates the total by the change of a leaf's backlog.
    #[inline]
    fn recount(&mut self, at: u32) {
        let leaf = &mut self.leaves[at as usize];
        let now = leaf.qdisc.backlog();
        self.backlog.packets = self.backlog.packets + now.packets - leaf.backlog.packets;
        self.backlog.bytes = self.backlog.bytes + now.bytes - leaf.backlog.bytes;
        leaf.backlog = now;
    }

    /// Drops all packets, and resets the counters.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for leaf in &mut self.leaves {
            leaf.qdisc.reset(&mut cx.child());
            leaf.backlog = Backlog::ZERO;
            (leaf.arrived, leaf.sent) = (Backlog::ZERO, Backlog::ZERO);
            (leaf.waited, leaf.longest) = (Span::ZERO, Span::ZERO);
        }
        self.backlog = Backlog::ZERO;
    }

    /// Informs the leaves of the rate of the link, up to what each may have.
    pub fn rate_changed(&mut self, rate: Rate, now: Time) {
        for leaf in &mut self.leaves {
            leaf.rate = leaf.most.map_or(rate, |most| most.min(rate));
            leaf.qdisc.rate_changed(leaf.rate, now);
        }
    }

    /// State per flow of all leaves.
    pub fn flow_table(&self) -> FlowTable {
        self.leaves.iter().fold(FlowTable::NONE, |sum, leaf| sum.plus(leaf.qdisc.flow_table()))
    }
}
