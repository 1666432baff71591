//! The schedule of a tree of classes with service curves, without packets.
//!
//! A leaf with a real-time curve has an eligible time and a deadline for its next packet. All classes with a
//! link-share curve have a virtual time, by which the classes below one parent share its service.

use giveway_qdisc::Time;
use giveway_qdisc::blocks::FlowHeap;

use super::curve::{Curve, Running};

/// No class.
const NONE: u32 = u32::MAX;

/// A class as it is built. A parent comes before its children, and children of one parent follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Number of the class above.
    pub parent: Option<u32>,
    /// Real-time curve of a leaf.
    pub real_time: Option<Curve>,
    /// Link-share curve.
    pub link_share: Option<Curve>,
    /// Upper limit.
    pub upper_limit: Option<Curve>,
}

/// A link-share class among the classes of its parent.
#[derive(Debug)]
struct Share {
    curve: Curve,
    running: Option<Running>,
    /// Virtual time of its next packet.
    at: u64,
    /// Bytes of all its packets.
    total: u64,
}

/// The classes below a parent that have packets to send.
#[derive(Debug)]
struct Below {
    /// Those that may send, by virtual time. Numbers count from the first child.
    fit: FlowHeap<u64>,
    /// Those that have reached their upper limit, by the time at which they may send again.
    limited: FlowHeap<Time>,
    /// The latest virtual time of a class that went idle.
    latest: u64,
    /// The latest virtual time of an active class so far.
    newest: u64,
}

#[derive(Debug)]
struct Node {
    parent: u32,
    first_child: u32,
    /// Position among the classes of its parent.
    position: u32,
    share: Option<Share>,
    limit: Option<(Curve, Option<Running>)>,
    below: Below,
    /// Number of active children; of a leaf 1 while it has packets to send.
    active: u32,
}

/// The real-time part of a leaf.
#[derive(Debug)]
struct Deadline {
    curve: Curve,
    deadlines: Option<Running>,
    eligible: Option<Running>,
    /// Bytes that were sent by this criterion.
    served: u64,
}

/// A tree of classes with service curves.
#[derive(Debug)]
pub struct Schedule {
    /// The link itself, then the classes: class n is node n + 1.
    nodes: Vec<Node>,
    real_time: Vec<Option<Deadline>>,
    /// Leaves that are not eligible yet, by eligible time.
    coming: FlowHeap<Time>,
    /// Eligible leaves, by deadline.
    due: FlowHeap<Time>,
    /// Deadline of each leaf's next packet.
    deadline: Vec<Time>,
}

/// The class that sends next, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Number of the class.
    pub class: u32,
    /// True if its deadline decided; false if the shares of the link did.
    pub by_deadline: bool,
}

impl Below {
    fn new(children: usize) -> Below {
        Below {
            fit: FlowHeap::with_capacity(children),
            limited: FlowHeap::with_capacity(children),
            latest: 0,
            newest: 0,
        }
    }
}

impl Schedule {
    /// A tree of these classes, all without anything to send.
    pub fn new(shapes: &[Shape]) -> Schedule {
        let link = Node {
            parent: NONE,
            first_child: NONE,
            position: 0,
            share: None,
            limit: None,
            below: Below::new(0),
            active: 0,
        };
        let mut nodes = vec![link];
        for (class, shape) in shapes.iter().enumerate() {
            let parent = shape.parent.map_or(0, |above| above + 1);
            let above = &mut nodes[parent as usize];
            if above.first_child == NONE {
                above.first_child = class as u32 + 1;
            }
            let position = class as u32 + 1 - above.first_child;
            let share = shape.link_share.map(|curve| Share { curve, running: None, at: 0, total: 0 });
            nodes.push(Node {
                parent,
                first_child: NONE,
                position,
                share,
                limit: shape.upper_limit.map(|curve| (curve, None)),
                below: Below::new(0),
                active: 0,
            });
        }
        let mut children = vec![0usize; nodes.len()];
        nodes[1..].iter().for_each(|node| children[node.parent as usize] += 1);
        for (node, count) in nodes.iter_mut().zip(children) {
            node.below = Below::new(count);
        }
        let real_time = shapes.iter().map(|shape| {
            shape.real_time.map(|curve| Deadline { curve, deadlines: None, eligible: None, served: 0 })
        });
        Schedule {
            nodes,
            real_time: real_time.collect(),
            coming: FlowHeap::with_capacity(shapes.len()),
            due: FlowHeap::with_capacity(shapes.len()),
            deadline: vec![Time::ZERO; shapes.len()],
        }
    }

    /// True if a leaf is known to have packets to send.
    pub fn is_active(&self, class: u32) -> bool {
        self.nodes[class as usize + 1].active > 0
    }

    /// A leaf has packets to send; its first packet has `bytes` bytes.
    pub fn activate(&mut self, class: u32, bytes: u32, now: Time) {
        if let Some(own) = &mut self.real_time[class as usize] {
            let (curve, x) = (own.curve, now.as_ps());
            let begins = |running: Option<Running>| match running {
                Some(running) => running.least_with(curve, x, own.served),
                None => Running::new(curve, x, own.served),
            };
            let deadlines = begins(own.deadlines);
            own.deadlines = Some(deadlines);
            own.eligible = Some(if curve.is_concave() { deadlines } else { deadlines.second_piece() });
            self.set_deadline(class, bytes);
        }
        if self.nodes[class as usize + 1].share.is_some() {
            self.joins(class + 1, now);
        } else {
            self.nodes[class as usize + 1].active = 1;
        }
    }

    /// A leaf has no packets to send.
    pub fn deactivate(&mut self, class: u32) {
        self.coming.remove(class);
        self.due.remove(class);
        if self.nodes[class as usize + 1].share.is_some() {
            self.leaves(class + 1);
        } else {
            self.nodes[class as usize + 1].active = 0;
        }
    }

    /// The class that sends next.
    pub fn choose(&mut self, now: Time) -> Option<Choice> {
        while let Some((at, class)) = self.coming.first()
            && at <= now
        {
            self.coming.pop();
            self.due.set(class, self.deadline[class as usize]);
        }
        if let Some((_, class)) = self.due.first() {
            return Some(Choice { class, by_deadline: true });
        }
        if self.nodes[0].active == 0 {
            return None;
        }
        self.least(0, now).map(|node| Choice { class: node - 1, by_deadline: false })
    }

    /// The time at which a class may send, if none may now.
    pub fn next_change(&self) -> Option<Time> {
        let limited = self.nodes[0].below.limited.first();
        let times = [self.coming.first().map(|(at, _)| at), limited.map(|(at, _)| at)];
        times.into_iter().flatten().min()
    }

    /// Charges a packet of the chosen class. `next` is the length of its next packet, if there is one.
    pub fn charge(&mut self, choice: Choice, bytes: u32, next: Option<u32>, now: Time) {
        let class = choice.class;
        if let Some(own) = &mut self.real_time[class as usize] {
            if choice.by_deadline {
                own.served += u64::from(bytes);
            }
            if let Some(next) = next {
                self.set_deadline(class, next);
            }
        }
        let mut node = class + 1;
        while node != 0 {
            self.serve(node, bytes, now);
            node = self.nodes[node as usize].parent;
        }
        if next.is_none() {
            self.deactivate(class);
        }
    }

    /// Forgets everything that happened.
    pub fn reset(&mut self) {
        for node in &mut self.nodes {
            node.active = 0;
            node.below.fit.clear();
            node.below.limited.clear();
            (node.below.latest, node.below.newest) = (0, 0);
            if let Some(share) = &mut node.share {
                (share.running, share.at, share.total) = (None, 0, 0);
            }
            if let Some((_, running)) = &mut node.limit {
                *running = None;
            }
        }
        for own in self.real_time.iter_mut().flatten() {
            (own.deadlines, own.eligible, own.served) = (None, None, 0);
        }
        self.coming.clear();
        self.due.clear();
    }

    /// Computes eligible time and deadline of a packet.
    fn set_deadline(&mut self, class: u32, bytes: u32) {
        let Some(own) = &self.real_time[class as usize] else { return };
        let (Some(deadlines), Some(eligible)) = (own.deadlines, own.eligible) else { return };
        self.deadline[class as usize] =
            Time::from_ps(deadlines.time_of(own.served.saturating_add(u64::from(bytes))));
        self.due.remove(class);
        self.coming.set(class, Time::from_ps(eligible.time_of(own.served)));
    }

    /// A class has packets to send: it gets a virtual time among the classes of its parent, and the parent
    /// has packets to send, too.
    fn joins(&mut self, node: u32, now: Time) {
        let mut node = node;
        // The time from which the upper limits so far permit a packet.
        let mut from = Time::ZERO;
        while node != 0 {
            let Node { parent, position, active, .. } = self.nodes[node as usize];
            self.nodes[node as usize].active = active + 1;
            if active > 0 {
                return self.frees(node, from, now);
            }
            let below = &self.nodes[parent as usize].below;
            let is_first = below.fit.is_empty() && below.limited.is_empty();
            // The middle of the range of the others, so that nobody waits for long; or where the last period
            // ended.
            let begin = match below.fit.first() {
                Some((least, _)) if !is_first => least.midpoint(below.newest.max(least)),
                _ if is_first => below.latest,
                _ => below.newest,
            };
            let total = self.nodes[node as usize].share.as_ref().map_or(0, |share| share.total);
            if let Some((curve, running)) = &mut self.nodes[node as usize].limit {
                let begun = match running {
                    Some(running) => running.least_with(*curve, now.as_ps(), total),
                    None => Running::new(*curve, now.as_ps(), total),
                };
                *running = Some(begun);
            }
            if let Some(share) = &mut self.nodes[node as usize].share {
                let begin = begin.max(share.at);
                let running = match share.running {
                    Some(running) => running.least_with(share.curve, begin, share.total),
                    None => Running::new(share.curve, begin, share.total),
                };
                share.running = Some(running);
                share.at = running.time_of(share.total).max(begin);
                let at = share.at;
                let may = self.may_send_at(node);
                from = from.max(may);
                let others = &mut self.nodes[parent as usize].below;
                others.newest = others.newest.max(at);
                match may > now {
                    true => others.limited.set(position, may),
                    false => others.fit.set(position, at),
                }
            }
            node = parent;
        }
        self.nodes[0].active += 1;
    }

    /// A class below this one starts to share, and may send from this time on. Classes that wait only for
    /// those that were there before wait no longer than until then.
    fn frees(&mut self, node: u32, from: Time, now: Time) {
        let (mut node, mut from) = (node, from);
        while node != 0 {
            let Node { parent, position, .. } = self.nodes[node as usize];
            from = from.max(self.may_send_at(node));
            let at = self.nodes[node as usize].share.as_ref().map_or(0, |share| share.at);
            let below = &mut self.nodes[parent as usize].below;
            if below.limited.key(position).is_some_and(|until| until > from) {
                if from > now {
                    below.limited.set(position, from);
                } else {
                    below.limited.remove(position);
                    below.fit.set(position, at);
                }
            }
            node = parent;
        }
    }

    /// A class has no more packets to send, the inverse of [`Schedule::joins`].
    fn leaves(&mut self, node: u32) {
        let mut node = node;
        while node != 0 {
            let Node { parent, position, active, .. } = self.nodes[node as usize];
            self.nodes[node as usize].active = active.saturating_sub(1);
            if active > 1 {
                return;
            }
            let at = self.nodes[node as usize].share.as_ref().map_or(0, |share| share.at);
            let below = &mut self.nodes[parent as usize].below;
            below.fit.remove(position);
            below.limited.remove(position);
            below.latest = below.latest.max(at);
            node = parent;
        }
        self.nodes[0].active -= 1;
    }

    /// Time from which the upper limit of a class permits a packet.
    fn may_send_at(&self, node: u32) -> Time {
        let Node { limit, share, .. } = &self.nodes[node as usize];
        let total = share.as_ref().map_or(0, |share| share.total);
        match limit {
            Some((_, Some(running))) => Time::from_ps(running.time_of(total)),
            _ => Time::ZERO,
        }
    }

    /// Counts a packet of a class, and moves the class among the classes of its parent.
    fn serve(&mut self, node: u32, bytes: u32, now: Time) {
        let Node { parent, position, active, .. } = self.nodes[node as usize];
        let least = self.nodes[parent as usize].below.fit.first().map(|(least, _)| least);
        let Some(share) = &mut self.nodes[node as usize].share else { return };
        share.total += u64::from(bytes);
        // Only a leaf without shares has something to send below.
        if active == 0 {
            return;
        }
        if let Some(running) = &mut share.running {
            let at = running.time_of(share.total);
            share.at = share.at.max(at);
            // A class that its upper limit held back does not catch up.
            if let Some(least) = least
                && at < least
            {
                *running = running.delayed(least - at);
                share.at = share.at.max(least);
            }
        }
        let at = share.at;
        let may = self.may_send_at(node);
        let below = &mut self.nodes[parent as usize].below;
        below.newest = below.newest.max(at);
        if may > now {
            below.fit.remove(position);
            below.limited.set(position, may);
        } else {
            below.limited.remove(position);
            below.fit.set(position, at);
        }
    }

    /// The leaf with the smallest virtual times below a node; `None` if upper limits hold all back.
    fn least(&mut self, node: u32, now: Time) -> Option<u32> {
        let Node { first_child, .. } = self.nodes[node as usize];
        if first_child == NONE {
            return Some(node);
        }
        loop {
            while let Some((may, position)) = self.nodes[node as usize].below.limited.first()
                && may <= now
            {
                let child = &self.nodes[(first_child + position) as usize];
                let at = child.share.as_ref().map_or(0, |share| share.at);
                let below = &mut self.nodes[node as usize].below;
                below.limited.pop();
                below.fit.set(position, at);
            }
            let (_, position) = self.nodes[node as usize].below.fit.first()?;
            let child = first_child + position;
            if let Some(leaf) = self.least(child, now) {
                return Some(leaf);
            }
            // All below this child are held back: so is it, until the first of them may send.
            let until = self.nodes[child as usize].below.limited.first().map(|(at, _)| at);
            let below = &mut self.nodes[node as usize].below;
            below.fit.remove(position);
            if let Some(until) = until {
                below.limited.set(position, until);
            }
        }
    }
}
