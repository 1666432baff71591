//! Selection of the packet to drop.

use super::HopTree;
use crate::packet::Packet;
use crate::store::Place;

/// Policy for the choice of a packet to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The oldest packet of the largest queue of one node, without its branches.
    HeadOfLargest,
    /// A random packet of the largest queue.
    RandomInLargest,
    /// The oldest packet of the queue at the end of the largest parts: from the root on, the larger of the
    /// own queue and the branches, each branch with everything below it.
    HeadOfHeaviest,
    /// The oldest packet of the queue that is served next.
    Next,
    /// A random packet of all queues.
    Random,
}

impl<P> HopTree<P> {
    /// Removes a packet to drop, and returns it with its place. It may be the packet that arrived last.
    /// `draw` returns a uniform number in 0 to 1.
    ///
    /// # Panics
    /// If there is no backlog, or if `pick` needs the largest queue and
    /// [`Shape::largest`](super::Shape::largest) is `None`.
    pub fn evict(&mut self, pick: Pick, draw: impl FnOnce() -> f64) -> (Place, Packet<P>) {
        let (at, nth) = match pick {
            Pick::HeadOfLargest => (self.largest(), 0),
            Pick::RandomInLargest => {
                let at = self.largest();
                (at, nth_of(self.nodes[at].own.packets, draw()))
            }
            Pick::HeadOfHeaviest => (self.heaviest(), 0),
            Pick::Next => (self.next(), 0),
            Pick::Random => {
                let mut nth = nth_of(self.backlog().packets, draw());
                let mut at = 0;
                while nth >= self.nodes[at].own.packets {
                    nth -= self.nodes[at].own.packets;
                    at += 1;
                }
                (at, nth)
            }
        };
        let place =
            self.packets.nth_place(&self.nodes[at].queue, nth as usize).expect("the queue has that packet");
        let pkt = self.packets.remove(&mut self.nodes[at].queue, place);
        self.count_out(at, place, pkt.bytes());
        (place, pkt)
    }

    /// The node with the largest queue; the first of several.
    fn largest(&mut self) -> usize {
        let measure = self.shape.largest.expect("the shape has a measure of the largest queue");
        self.largest.first(measure, &self.nodes)
    }

    /// The node of [`Pick::HeadOfHeaviest`].
    fn heaviest(&mut self) -> usize {
        let measure = self.shape.largest.unwrap_or_default();
        let HopTree { nodes, sums, .. } = self;
        sums.clear();
        sums.extend(nodes.iter().map(|node| measure.of(node.own)));
        // A branch has a higher number than its parent, so the sums are complete in this order.
        for (at, node) in nodes.iter().enumerate().skip(1).rev() {
            sums[node.parent as usize] += sums[at];
        }
        let mut at = 0;
        loop {
            let node = &nodes[at];
            let mut most = measure.of(node.own);
            let mut best = at;
            for child in node.children.iter().map(|child| *child as usize) {
                if sums[child] > most {
                    (best, most) = (child, sums[child]);
                }
            }
            if best == at {
                return at;
            }
            at = best;
        }
    }
}

/// Index of one of `count` items for a draw in 0 to 1.
fn nth_of(count: u64, draw: f64) -> u64 {
    ((draw * count as f64) as u64).min(count - 1)
}
