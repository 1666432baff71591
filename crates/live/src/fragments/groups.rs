//! Partial frame discard: when the discipline drops a fragment, the link sends no more fragments of that
//! frame.
//!
//! Disciplines handle packets, not frames. A full queue that accepts one fragment for each departure and
//! drops the next one would fill with incomplete frames: at three times the link's rate, only 7 % of the
//! bytes that a queue of 100 packets sends can be joined. [`PartialFrameDiscard`] is therefore between the
//! port and the discipline. It drops each dequeued fragment of a frame that has lost another fragment, for
//! the same reason, and fragments that are not yet offered are not offered. Such dropped packets take no time
//! of the link. ATM switches treat the cells of a packet in the same way (partial packet discard: Romanow and
//! Floyd, IEEE JSAC 13(4), 1995), but only at the tail of the queue.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use giveway_qdisc::{
    Backlog, ClassState, Cx, DropReason, FlowTable, Next, Outbox, Packet, Qdisc, Rate, Time,
};

use crate::headers::Frame;

/// Groups of queued fragments. A group contains the fragments of one frame.
#[derive(Debug, Default)]
pub(crate) struct FragmentGroups {
    /// Groups from number 1; whole frames have number 0.
    groups: Vec<Group>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Number of queued fragments.
    queued: u8,
    /// True while more fragments may be added.
    open: bool,
    /// Reason for which a fragment was dropped, if one was.
    broken: Option<DropReason>,
}

impl FragmentGroups {
    /// Creates the groups for a pool of `buffers` buffers.
    pub(crate) fn new(buffers: u32) -> Rc<RefCell<FragmentGroups>> {
        // Each fragment has a buffer, and so has the frame that is being cut.
        let most = buffers as usize + 1;
        Rc::new(RefCell::new(FragmentGroups {
            groups: Vec::with_capacity(most),
            free: Vec::with_capacity(most),
        }))
    }

    /// Opens a group for the fragments of a frame.
    pub(crate) fn open(&mut self) -> u32 {
        let group = self.free.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() as u32
        });
        *self.at(group) = Group { open: true, ..Group::default() };
        group
    }

    /// Adds a fragment. Returns false if the frame has lost a fragment: the new one should not be offered.
    #[inline]
    pub(crate) fn enter(&mut self, group: u32) -> bool {
        let of = self.at(group);
        let whole = of.broken.is_none();
        of.queued += u8::from(whole);
        whole
    }

    /// Closes a group: no more fragments are added.
    pub(crate) fn close(&mut self, group: u32) {
        self.at(group).open = false;
        self.end(group);
    }

    /// Number of groups.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.groups.len() - self.free.len()
    }

    #[inline]
    fn at(&mut self, group: u32) -> &mut Group {
        &mut self.groups[group as usize - 1]
    }

    /// Removes a fragment that the discipline dropped.
    fn dropped(&mut self, group: u32, why: DropReason) {
        self.at(group).broken.get_or_insert(why);
        self.left(group);
    }

    /// Removes a fragment that is no longer queued. Returns the reason for which another fragment of its
    /// frame was dropped, if one was.
    #[inline]
    fn left(&mut self, group: u32) -> Option<DropReason> {
        let of = self.at(group);
        of.queued -= 1;
        let broken = of.broken;
        self.end(group);
        broken
    }

    /// Frees a group that is closed and empty.
    #[inline]
    fn end(&mut self, group: u32) {
        let of = self.at(group);
        if of.queued == 0 && !of.open {
            self.free.push(group);
        }
    }
}

/// A discipline with partial frame discard.
pub(crate) struct PartialFrameDiscard {
    discipline: Box<dyn Qdisc<Frame>>,
    groups: Rc<RefCell<FragmentGroups>>,
    outbox: Outbox<Frame>,
}

impl PartialFrameDiscard {
    pub(crate) fn new(
        discipline: Box<dyn Qdisc<Frame>>,
        groups: Rc<RefCell<FragmentGroups>>,
    ) -> PartialFrameDiscard {
        PartialFrameDiscard { discipline, groups, outbox: Outbox::default() }
    }

    /// Calls the discipline, and removes the fragments that it drops from their groups.
    #[inline]
    fn call<R>(
        &mut self,
        cx: &mut Cx<'_, Frame>,
        call: impl FnOnce(&mut dyn Qdisc<Frame>, &mut Cx<'_, Frame>) -> R,
    ) -> R {
        let result = call(&mut *self.discipline, &mut cx.within(&mut self.outbox));
        if !self.outbox.dropped.is_empty() {
            let mut groups = self.groups.borrow_mut();
            let fragments = self.outbox.dropped.iter().filter(|(pkt, _)| pkt.payload.group > 0);
            fragments.for_each(|(pkt, why)| groups.dropped(pkt.payload.group, *why));
        }
        cx.relay(&mut self.outbox, |frame| frame);
        result
    }
}

impl Qdisc<Frame> for PartialFrameDiscard {
    fn enqueue(&mut self, pkt: Packet<Frame>, cx: &mut Cx<'_, Frame>) {
        self.call(cx, |discipline, cx| discipline.enqueue(pkt, cx));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Frame>) -> Next<Frame> {
        loop {
            let next = self.call(cx, |discipline, cx| discipline.dequeue(cx));
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

    fn take_over(&mut self, old: &mut dyn Qdisc<Frame>, cx: &mut Cx<'_, Frame>) {
        self.call(cx, |discipline, cx| discipline.take_over(old, cx));
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        self.discipline.as_any_mut()
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, Frame>) {
        self.call(cx, |discipline, cx| discipline.reset(cx));
    }
    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.discipline.rate_changed(rate, now);
    }
    fn flow_table(&self) -> FlowTable {
        self.discipline.flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.discipline.gauges(visit);
    }
    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        self.discipline.classes(visit);
    }
}
