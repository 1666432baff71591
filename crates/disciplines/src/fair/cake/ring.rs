//! The lists of queues of a tin, linked by the neighbours of each queue.

use super::sets::PLACES;

const NONE: u16 = u16::MAX;

/// The neighbours of each queue in its list: before and after. A queue is in one list at most.
#[derive(Debug)]
pub struct Links(Box<[(u16, u16); PLACES]>);

impl Links {
    /// Links of queues that are in no list.
    pub fn new() -> Links {
        Links(Box::new([(NONE, NONE); PLACES]))
    }

    /// The link of a queue. A number that is known to be below `PLACES` needs no check.
    #[inline]
    fn of(&mut self, flow: u16) -> &mut (u16, u16) {
        &mut self.0[usize::from(flow) % PLACES]
    }
}

/// Queues in order.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    head: u16,
    tail: u16,
}

impl Ring {
    /// No queues.
    pub const EMPTY: Ring = Ring { head: NONE, tail: NONE };

    /// The first queue.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        (self.head != NONE).then_some(usize::from(self.head) % PLACES)
    }

    /// Appends a queue that is in no list.
    #[inline]
    pub fn push(&mut self, links: &mut Links, flow: usize) {
        let flow = flow as u16;
        *links.of(flow) = (self.tail, NONE);
        match self.tail {
            NONE => self.head = flow,
            tail => links.of(tail).1 = flow,
        }
        self.tail = flow;
    }

    /// Removes the first queue of a list that has one.
    #[inline]
    pub fn pop(&mut self, links: &mut Links) {
        self.head = links.of(self.head).1;
        match self.head {
            NONE => self.tail = NONE,
            head => links.of(head).0 = NONE,
        }
    }

    /// Moves the first queue of a list that has one to its end.
    #[inline]
    pub fn rotate(&mut self, links: &mut Links) {
        let (first, last) = (self.head, self.tail);
        if first == last {
            return;
        }
        self.head = links.of(first).1;
        links.of(self.head).0 = NONE;
        *links.of(first) = (last, NONE);
        links.of(last).1 = first;
        self.tail = first;
    }

    /// Removes a queue of this list.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, flow: usize) {
        let (before, after) = *links.of(flow as u16);
        match before {
            NONE => self.head = after,
            before => links.of(before).1 = after,
        }
        match after {
            NONE => self.tail = before,
            after => links.of(after).0 = before,
        }
    }
}
