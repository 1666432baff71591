//! The fragments of a frame go together: when the discipline drops one, the link sends none of the others any more.
//!
//! Disciplines know packets, not frames. A full queue that takes one fragment for each that leaves, and drops the next, would fill with frames
//! of which each has lost something: at three times the link's rate, 7 % of what a queue of 100 packets sends can be joined. So
//! [`Together`] stands between the port and the discipline, and drops what the discipline lets go when a fragment of the same frame was
//! dropped before, for the same reason; and those that are not yet offered are not offered. Packets that go so take no time of the link. It is
//! what ATM switches do with the cells of a packet (partial packet discard: Romanow and Floyd, IEEE JSAC 13(4), 1995), only at the other end of the
//! queue as well.

use std::cell::RefCell;
use std::rc::Rc;

use qdisc::{Backlog, Cx, DropReason, FlowTable, Next, Outbox, Packet, Qdisc};

use crate::look::Frame;

/// Frames whose fragments are queued.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// From 1 on: a frame that is whole is in group 0.
    groups: Vec<Group>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Fragments that are queued.
    inside: u8,
    /// More are to come.
    open: bool,
    /// One was dropped, for this reason.
    broken: Option<DropReason>,
}

impl Groups {
    /// For a pool of so many rooms.
    pub(crate) fn new(rooms: u32) -> Rc<RefCell<Groups>> {
        // A fragment has a room, and a frame that is open another.
        let most = rooms as usize + 1;
        Rc::new(RefCell::new(Groups { groups: Vec::with_capacity(most), free: Vec::with_capacity(most) }))
    }

    /// A group for the fragments of a frame.
    pub(crate) fn open(&mut self) -> u32 {
        let group = self.free.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() as u32
        });
        *self.at(group) = Group { open: true, ..Group::default() };
        group
    }

    /// A fragment is about to be offered. False: there is no use in it.
    #[inline]
    pub(crate) fn enter(&mut self, group: u32) -> bool {
        let of = self.at(group);
        let whole = of.broken.is_none();
        of.inside += u8::from(whole);
        whole
    }

    /// No more fragments are to come.
    pub(crate) fn close(&mut self, group: u32) {
        self.at(group).open = false;
        self.end(group);
    }

    /// How many groups there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.groups.len() - self.free.len()
    }

    #[inline]
    fn at(&mut self, group: u32) -> &mut Group {
        &mut self.groups[group as usize - 1]
    }

    /// A fragment was dropped.
    fn dropped(&mut self, group: u32, why: DropReason) {
        self.at(group).broken.get_or_insert(why);
        self.left(group);
    }

    /// A fragment is no longer queued. Why it is of no use, if it is.
    #[inline]
    fn left(&mut self, group: u32) -> Option<DropReason> {
        let of = self.at(group);
        of.inside -= 1;
        let broken = of.broken;
        self.end(group);
        broken
    }

    /// A group with nothing in it that nothing comes to is free.
    #[inline]
    fn end(&mut self, group: u32) {
        let of = self.at(group);
        if of.inside == 0 && !of.open {
            self.free.push(group);
        }
    }
}

/// A discipline whose fragments go together.
pub(crate) struct Together {
    discipline: Box<dyn Qdisc<Frame>>,
    groups: Rc<RefCell<Groups>>,
    said: Outbox<Frame>,
}

impl Together {
    pub(crate) fn new(discipline: Box<dyn Qdisc<Frame>>, groups: Rc<RefCell<Groups>>) -> Together {
        Together { discipline, groups, said: Outbox::default() }
    }

    /// Asks the discipline, and hears what it drops.
    #[inline]
    fn ask<R>(
        &mut self,
        cx: &mut Cx<'_, Frame>,
        ask: impl FnOnce(&mut dyn Qdisc<Frame>, &mut Cx<'_, Frame>) -> R,
    ) -> R {
        let answer = ask(&mut *self.discipline, &mut Cx::new(cx.now(), &mut self.said));
        if !self.said.dropped.is_empty() {
            let mut groups = self.groups.borrow_mut();
            let fragments = self.said.dropped.iter().filter(|(pkt, _)| pkt.payload.group > 0);
            fragments.for_each(|(pkt, why)| groups.dropped(pkt.payload.group, *why));
        }
        cx.relay(&mut self.said, |frame| frame);
        answer
    }
}

impl Qdisc<Frame> for Together {
    fn enqueue(&mut self, pkt: Packet<Frame>, cx: &mut Cx<'_, Frame>) {
        self.ask(cx, |discipline, cx| discipline.enqueue(pkt, cx));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Frame>) -> Next<Frame> {
        loop {
            let next = self.ask(cx, |discipline, cx| discipline.dequeue(cx));
            let Next::Packet(pkt) = next else { return next };
            if pkt.payload.group == 0 {
                return Next::Packet(pkt);
            }
            match self.groups.borrow_mut().left(pkt.payload.group) {
                None => return Next::Packet(pkt),
                Some(why) => cx.drop(pkt, why),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, Frame>) {
        self.ask(cx, |discipline, cx| discipline.reset(cx));
    }
    fn flow_table(&self) -> FlowTable {
        self.discipline.flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.discipline.gauges(visit);
    }
}
