//! Who is served next.

use super::{HopTree, Inner, Order, Share};
use crate::blocks::Turn;
use crate::packet::NextHops;

/// A turn that a node gave, on the way to a packet.
#[derive(Clone, Copy, Default)]
struct Step {
    at: usize,
    place: u32,
    /// Where the turns are then; none when the place still has the turn.
    turn: Option<Turn>,
}

/// The turns that nodes gave, the root's first.
#[derive(Default)]
struct Way {
    steps: [Step; NextHops::MOST],
    len: usize,
}

impl<P> HopTree<P> {
    /// The node whose queue is served next where packets are held. Every node on the way there gives a turn.
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
            let place = node.turns.advance(&mut node.turn, places).expect("a place holds packets");
            match place {
                0 => return at,
                place => at = node.children[place as usize - 1] as usize,
            }
        }
    }

    /// The same where turns are measured in bytes: whether a turn goes on is only known when the packet is, so the turns are
    /// chosen first and given then.
    #[inline(never)]
    fn give_bytes(&mut self) -> usize {
        let mut way = Way::default();
        let chosen = self.choose(0, &mut way);
        let bytes = u64::from(self.first_bytes(chosen));
        for Step { at, place, turn } in way.steps.into_iter().take(way.len) {
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
            // A packet above the largest of the link is sent all the same, and takes what there is.
            share.deficit = share.deficit.saturating_sub(bytes);
        }
        chosen
    }

    /// The node whose queue is served next, below a node that holds packets, and the way to it.
    fn choose(&self, at: usize, way: &mut Way) -> usize {
        let node = &self.nodes[at];
        if node.children.is_empty() {
            return at;
        }
        let before = way.len;
        if let Some(place) = node.visit {
            let chosen = self.choose_at(Step { at, place, turn: None }, way);
            if u64::from(self.first_bytes(chosen)) <= self.share(at, place).deficit {
                return chosen;
            }
            way.len = before;
        }
        let (place, turn) = node.turns.next(node.turn, node.places()).expect("a place holds packets");
        self.choose_at(Step { at, place, turn: Some(turn) }, way)
    }

    fn choose_at(&self, step: Step, way: &mut Way) -> usize {
        way.steps[way.len] = step;
        way.len += 1;
        match step.place {
            0 => step.at,
            place => self.choose(self.nodes[step.at].children[place as usize - 1] as usize, way),
        }
    }

    /// One look of the listing, at each node on the way. The next look is at the next place.
    pub(super) fn look(&mut self, at: usize) -> Option<usize> {
        let node = &mut self.nodes[at];
        let (place, places) = (node.look, node.places());
        node.look = (place + 1) % places;
        if place == 0 {
            return (node.own.packets > 0).then_some(at);
        }
        let child = node.children[place as usize - 1] as usize;
        let found = self.look(child)?;
        if self.shape.order == Order::Double {
            self.nodes[at].look = (place + 2) % places;
        }
        Some(found)
    }

    /// The node whose queue is served next, where packets are held. Nobody's turn passes.
    pub(super) fn next(&self) -> usize {
        match self.shape.order {
            Order::Corrected => self.choose(0, &mut Way::default()),
            Order::Fifo => self.oldest(),
            Order::Literal | Order::Double => {
                let mut at = 0;
                loop {
                    let node = &self.nodes[at];
                    if node.children.is_empty() {
                        return at;
                    }
                    let place = node.turns.waiting_from(node.look).or_else(|| node.turns.waiting_from(0));
                    match place.expect("a place holds packets") {
                        0 => return at,
                        place => at = node.children[place as usize - 1] as usize,
                    }
                }
            }
        }
    }

    /// The node that has the oldest packet, where packets are held and [`Order::Fifo`] counts them.
    #[inline]
    pub(super) fn oldest(&self) -> usize {
        *self.arrivals.nodes.front(&self.arrivals.order).expect("packets are held") as usize
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
