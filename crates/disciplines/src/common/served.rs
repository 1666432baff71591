//! Common part of `las` and `lars`: a buffer whose packets are ranked by the service that their flow has
//! attained, and the table of flows.

use std::num::NonZeroU32;

use giveway_qdisc::blocks::{Memory, RankedPackets, RecentFlows};
use giveway_qdisc::{Backlog, Cx, DropReason, FlowKey, FlowTable, Limit, Next, Packet};

/// Packets by rank, and the flows that have sent recently.
pub(crate) struct Served<P> {
    limit: Limit,
    pub(crate) flows: RecentFlows<Flow>,
    pub(crate) queue: RankedPackets<P>,
}

/// A flow that has sent recently.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Service that it has attained, its queued packets included, on the scale of the discipline.
    pub(crate) attained: u64,
    /// Number of its queued packets, plus one.
    queued: NonZeroU32,
}

/// Two flows share a cache line.
const _: () = assert!(RecentFlows::<Flow>::bytes_per_slot() == 32);

impl Flow {
    const NEW: Flow = Flow { attained: 0, queued: NonZeroU32::MIN };

    fn is_queued(&self) -> bool {
        self.queued > NonZeroU32::MIN
    }

    /// Records that one of its packets is no longer queued.
    #[inline]
    fn count_out(&mut self) {
        self.queued = NonZeroU32::new(self.queued.get() - 1).expect("a packet that leaves was queued");
    }
}

impl<P> Served<P> {
    pub(crate) fn new(limit: Limit, memory: Memory) -> Served<P> {
        Served {
            limit,
            flows: RecentFlows::new(memory, Flow::is_queued),
            queue: RankedPackets::with_capacity(limit.initial_capacity()),
        }
    }

    /// Enqueues a packet. `serve` returns the rank of the packet and the attained service of its flow with
    /// it, from that without it. `revert` returns the attained service without a dropped packet, from that
    /// with it, the rank of the packet and its length; a dropped packet is the last one of its flow.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        pkt: Packet<P>,
        cx: &mut Cx<'_, P>,
        serve: impl FnOnce(u64) -> (u64, u64),
        revert: impl Fn(u64, u64, u32) -> u64,
    ) {
        let Served { limit, flows, queue } = self;
        flows.sweep(cx.now());
        if !limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let flow = flows.record(pkt.meta.flow, cx.now(), || Flow::NEW);
        let (rank, attained) = serve(flow.attained);
        flow.attained = attained;
        flow.queued = flow.queued.saturating_add(1);
        queue.push_within(*limit, rank, pkt, cx, |lost, victim| {
            let of_victim = entry(flows, victim.meta.flow);
            of_victim.attained = revert(of_victim.attained, lost, victim.bytes());
            of_victim.count_out();
        });
    }

    /// Dequeues the packet with the lowest rank.
    #[inline]
    pub(crate) fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.flows.sweep(cx.now());
        let Some((_, pkt)) = self.queue.pop() else { return Next::Empty };
        entry(&mut self.flows, pkt.meta.flow).count_out();
        Next::Packet(pkt)
    }

    /// Drops the backlog and removes all flows.
    pub(crate) fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.flows.clear();
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    pub(crate) fn table(&self) -> FlowTable {
        self.flows.table()
    }
}

/// The entry of a queued flow.
#[inline]
fn entry(flows: &mut RecentFlows<Flow>, flow: FlowKey) -> &mut Flow {
    flows.get_mut(flow).expect("a flow with a packet queued is never forgotten")
}

/// Warning about a table that is smaller than the number of flows in a full buffer.
pub(crate) fn small_table(flows: u32, limit: Limit) -> Option<String> {
    match limit {
        Limit::Packets(packets) if u64::from(flows) < packets => Some(format!(
            "{flows} flows are fewer than limit {limit} can hold: flows are forgotten although they sent recently"
        )),
        _ => None,
    }
}
