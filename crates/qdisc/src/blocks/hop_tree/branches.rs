//! Branches. A packet creates the branches of its route; empty ones are removed when there are too many
//! nodes.
//!
//! All empty branches are removed at once, and the others keep their order. The service order does not
//! change, because empty branches have no turns.

use std::num::NonZeroU32;

use super::HopTree;
use super::node::{Node, ONE, Share};
use crate::blocks::Turns;
use crate::packet::{FlowKey, NextHops};
use crate::units::Rate;

impl<P> HopTree<P> {
    /// The node of a route. Missing branches are created.
    #[inline]
    pub(super) fn find(&mut self, next_hops: NextHops) -> usize {
        let first = next_hops.first(self.shape.depth);
        let mut at = match first {
            0 => return 0,
            first => match self.routes.get(route(first)) {
                Some(node) => node.get() as usize,
                None => self.explore(next_hops, first),
            },
        };
        if self.shape.depth > FIRST {
            for hop in next_hops.iter().take(self.shape.depth).skip(FIRST) {
                at = self.step(at, hop);
            }
        }
        at
    }

    /// The node at the end of the first hops. Later look-ups of these hops find it directly.
    #[cold]
    fn explore(&mut self, next_hops: NextHops, first: u64) -> usize {
        let mut at = 0;
        for hop in next_hops.iter().take(self.shape.depth.min(FIRST)) {
            at = self.step(at, hop);
        }
        let number = NonZeroU32::new(at as u32).expect("a hop leads away from the root");
        self.routes.entry(route(first), || number);
        at
    }

    fn step(&mut self, at: usize, hop: u16) -> usize {
        match self.branches.get(branch(at, hop)) {
            Some(child) => child.get() as usize,
            None => self.create(at, hop),
        }
    }

    #[cold]
    fn create(&mut self, parent: usize, hop: u16) -> usize {
        let index = self.nodes.len() as u32;
        let number = NonZeroU32::new(index).expect("the root is not created");
        self.branches.entry(branch(parent, hop), || number);
        // A link of rate zero would be the slowest, and weights are divided by the rate of the slowest.
        let known = self.shape.weighted.then(|| self.downstream.rate(self.nodes[parent].hop, hop)).flatten();
        let rate = known.filter(|rate| rate.as_bit() > 0);
        let node = &mut self.nodes[parent];
        node.children.push(index);
        if node.children.len() == 1 && node.own.packets > 0 {
            // With the first branch, the own queue begins to take turns.
            node.turns.wake(0, self.shape.inner.turns(node.own_share));
        }
        let slower = rate.is_some_and(|rate| node.slowest.is_none_or(|slowest| rate < slowest));
        let slowest = if slower { rate } else { node.slowest };
        node.slowest = slowest;
        let place = node.children.len() as u32;
        // A spare node is empty but has allocated memory.
        let Node { children, turns, .. } = self.spare.pop().unwrap_or_default();
        let share = Share { weight: weight(rate, slowest), deficit: 0 };
        let above = parent as u32;
        self.nodes.push(Node { children, turns, share, parent: above, place, hop, rate, ..Node::default() });
        self.most = self.most.max(self.nodes.len());
        // Weights are relative to the slowest link of the siblings, which is this one now.
        if slower {
            self.weigh(parent);
        }
        index as usize
    }

    /// Computes the weights of all branches again after the slowest link has changed.
    fn weigh(&mut self, parent: usize) {
        let slowest = self.nodes[parent].slowest;
        for nth in 0..self.nodes[parent].children.len() {
            let child = self.nodes[parent].children[nth];
            let child = &mut self.nodes[child as usize];
            let (old, backlogged, place) = (child.share, child.is_backlogged(), child.place);
            child.share.weight = weight(child.rate, slowest);
            let new = child.share;
            if backlogged {
                let turns = &mut self.nodes[parent].turns;
                turns.sleep(place, self.shape.inner.turns(old));
                turns.wake(place, self.shape.inner.turns(new));
            }
        }
    }

    /// Removes empty branches. At most the number of packets times the depth remain. The next call is at
    /// twice as many nodes, so that no traffic can cause a call per packet.
    #[cold]
    pub(super) fn prune(&mut self) {
        const GONE: u32 = u32::MAX;
        let HopTree { nodes, branches, routes, arrivals, renamed, spare, shape, .. } = self;
        renamed.clear();
        let mut kept = 0;
        for (at, node) in nodes.iter().enumerate() {
            let stays = at == 0 || node.is_backlogged();
            renamed.push(if stays { kept } else { GONE });
            kept += u32::from(stays);
        }
        let stays = |child: &u32| renamed[*child as usize] != GONE;
        for node in nodes.iter_mut() {
            let children = &node.children;
            // Place 0 is the own queue, which always stays.
            let renumbered = |place: u32| {
                let before = children.iter().take((place as usize).saturating_sub(1));
                place.min(1) + before.filter(|child| stays(child)).count() as u32
            };
            node.turn = node.turn.renumbered(renumbered);
            node.visit = node.visit.map(renumbered);
            node.look = renumbered(node.look);
            node.children.retain(stays);
            node.children.iter_mut().for_each(|child| *child = renamed[*child as usize]);
            // The place of the next look may have been the last, and removed.
            node.look %= node.places();
            node.parent = renamed[node.parent as usize];
            node.turns.clear();
            if node.own.packets > 0 && !node.children.is_empty() {
                node.turns.wake(0, shape.inner.turns(node.own_share));
            }
        }
        let mut next = 0;
        for (at, name) in renamed.iter().enumerate() {
            if *name != GONE {
                nodes.swap(next, at);
                next += 1;
            }
        }
        spare.extend(nodes.drain(next..));
        branches.clear();
        routes.clear();
        for parent in 0..nodes.len() {
            let children = std::mem::take(&mut nodes[parent].children);
            let slowest = children.iter().filter_map(|child| nodes[*child as usize].rate).min();
            for (place, child) in (1..).zip(&children) {
                let node = &mut nodes[*child as usize];
                node.place = place;
                node.share.weight = weight(node.rate, slowest);
                let (hop, share) = (node.hop, node.share);
                let number = NonZeroU32::new(*child).expect("the root is not a branch");
                branches.entry(branch(parent, hop), || number);
                nodes[parent].turns.wake(place, shape.inner.turns(share));
            }
            nodes[parent].slowest = slowest;
            nodes[parent].children = children;
        }
        arrivals.nodes.items_mut().for_each(|at| *at = renamed[*at as usize]);
        self.largest.recount();
        // Twice as many nodes must be created before the next call, so the cost per node is constant.
        self.full = self.shape.branches.max(2).max(2 * self.nodes.len());
    }
}

/// Number of hops in one look-up ([`NextHops::first`]).
const FIRST: usize = 4;

/// Key of the first hops of a route. The table uses low bits, so high bits are folded into them.
#[inline]
fn route(first: u64) -> FlowKey {
    FlowKey(first ^ first >> 24)
}

/// Key of the branch of a node towards a next hop.
#[inline]
fn branch(parent: usize, hop: u16) -> FlowKey {
    FlowKey((parent as u64) << 16 | u64::from(hop))
}

/// Rate of a link divided by the rate of the slowest link of its siblings; 1 if unknown.
pub(super) fn weight(rate: Option<Rate>, slowest: Option<Rate>) -> u64 {
    let (Some(rate), Some(slowest)) = (rate, slowest) else { return ONE };
    let sixteenths = (u128::from(ONE) * u128::from(rate.as_bit()) + u128::from(slowest.as_bit() / 2))
        / u128::from(slowest.as_bit());
    u64::try_from(sixteenths).unwrap_or(u64::MAX).clamp(1, Turns::MAX)
}
