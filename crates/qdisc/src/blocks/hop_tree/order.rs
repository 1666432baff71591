//! The service order: selects the queue that is served next.

use super::node::Share;
use super::{HopTree, Inner, ServiceOrder};
use crate::blocks::Turn;
use crate::packet::NextHops;

/// A turn of a node on the path to a packet.
#[derive(Clone, Copy, Default)]
struct Step {
    at: usize,
    place: u32,
    /// Position of the turns afterwards; `None` if the place still has the turn.
    turn: Option<Turn>,
}

/// Turns on the path from the root to a packet.
#[derive(Default)]
struct Path {
    steps: [Step; NextHops::MAX],
    len: usize,
}

impl<P> HopTree<P> {
    /// The node whose queue is served next. Each node on the path gives a turn. There must be a backlog.
    #[inline]
    pub(super) fn give_turns(&mut self) -> usize {
        if self.shape.inner != Inner::Smooth {
            return self.give_bytes();
        }
        let mut at = 0;
        loop {
            let node = &mut self.nodes[at];
            if node.children.is_empty() {
                return at;
            }
            let places = node.places();
            let place = node.turns.advance(&mut node.turn, places).expect("a place has packets");
            match place {
                0 => return at,
                place => at = node.children[place as usize - 1] as usize,
            }
        }
    }

    /// The node whose queue is served next, if turns are measured in bytes. A turn may end with the length of
    /// the packet, so the path is chosen first, and the turns are given when the packet is known.
    #[inline(never)]
    fn give_bytes(&mut self) -> usize {
        let mut path = Path::default();
        let chosen = self.choose(0, &mut path);
        let bytes = u64::from(self.first_bytes(chosen));
        for Step { at, place, turn } in path.steps.into_iter().take(path.len) {
            let allowance = self.shape.inner.allowance(self.shape.most, self.share(at, place));
            let node = &mut self.nodes[at];
            if let Some(turn) = turn {
                node.turn = turn;
                node.visit = Some(place);
            }
            let share = self.share_mut(at, place);
            if turn.is_some() {
                share.deficit += allowance;
            }
            // A packet longer than the MTU is sent, too. It uses up the deficit.
            share.deficit = share.deficit.saturating_sub(bytes);
        }
        chosen
    }

    /// The node whose queue is served next, at or below a backlogged node; appends the path to it.
    fn choose(&self, at: usize, path: &mut Path) -> usize {
        let node = &self.nodes[at];
        if node.children.is_empty() {
            return at;
        }
        let before = path.len;
        if let Some(place) = node.visit {
            let chosen = self.choose_at(Step { at, place, turn: None }, path);
            // The visit continues while the deficit covers the next packet; otherwise the next place has its
            // turn.
            if u64::from(self.first_bytes(chosen)) <= self.share(at, place).deficit {
                return chosen;
            }
            path.len = before;
        }
        let (place, turn) = node.turns.next(node.turn, node.places()).expect("a place has packets");
        self.choose_at(Step { at, place, turn: Some(turn) }, path)
    }

    fn choose_at(&self, step: Step, path: &mut Path) -> usize {
        path.steps[path.len] = step;
        path.len += 1;
        match step.place {
            0 => step.at,
            place => self.choose(self.nodes[step.at].children[place as usize - 1] as usize, path),
        }
    }

    /// One look of the listing, at each node on the path. The next look is at the next place.
    pub(super) fn look(&mut self, at: usize) -> Option<usize> {
        let node = &mut self.nodes[at];
        let (place, places) = (node.look, node.places());
        // The listing advances before it looks, so an empty place costs the call.
        node.look = (place + 1) % places;
        if place == 0 {
            return (node.own.packets > 0).then_some(at);
        }
        let child = node.children[place as usize - 1] as usize;
        let found = self.look(child)?;
        if self.shape.order == ServiceOrder::Double {
            self.nodes[at].look = (place + 2) % places;
        }
        Some(found)
    }

    /// The node whose queue is served next, without giving a turn. There must be a backlog.
    pub(super) fn next(&self) -> usize {
        match self.shape.order {
            ServiceOrder::Corrected => self.choose(0, &mut Path::default()),
            ServiceOrder::Fifo => self.oldest(),
            ServiceOrder::Literal | ServiceOrder::Double => {
                let mut at = 0;
                loop {
                    let node = &self.nodes[at];
                    if node.children.is_empty() {
                        return at;
                    }
                    let place = node.turns.waiting_from(node.look).or_else(|| node.turns.waiting_from(0));
                    match place.expect("a place has packets") {
                        0 => return at,
                        place => at = node.children[place as usize - 1] as usize,
                    }
                }
            }
        }
    }

    /// The node with the oldest packet, in [`ServiceOrder::Fifo`]. There must be a backlog.
    #[inline]
    pub(super) fn oldest(&self) -> usize {
        *self.arrivals.nodes.front(&self.arrivals.order).expect("there is a backlog") as usize
    }

    fn first_bytes(&self, at: usize) -> u32 {
        self.packets[self.first(at)].bytes()
    }

    fn share(&self, at: usize, place: u32) -> Share {
        match place {
            0 => self.nodes[at].own_share,
            place => self.nodes[self.nodes[at].children[place as usize - 1] as usize].share,
        }
    }

    #[inline]
    pub(super) fn share_mut(&mut self, at: usize, place: u32) -> &mut Share {
        match place {
            0 => &mut self.nodes[at].own_share,
            place => {
                let child = self.nodes[at].children[place as usize - 1];
                &mut self.nodes[child as usize].share
            }
        }
    }
}
