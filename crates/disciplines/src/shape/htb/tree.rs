//! The schedule of a tree of shaped classes, without packets: which leaf sends next, and when.
//!
//! A class has one of three modes: it may send at its own rate, it may borrow from the class above, or it may
//! not send. A class that has packets to send is in one *turn list*: with an own rate in the list of its
//! level, and when it borrows in the list of its parent, so that a parent that may send finds those below
//! that may borrow.

use giveway_qdisc::blocks::NumberSet;
use giveway_qdisc::{Bytes, Rate, Time};

use super::bucket::Bucket;
use super::changes::Changes;
use crate::common::classes::plan::LEVELS;

/// Number of priorities, as in Linux.
pub const PRIOS: usize = 8;
/// No class.
const NONE: u32 = u32::MAX;

const _: () = assert!(LEVELS * PRIOS == u64::BITS as usize, "each turn list of a level has a bit");

/// A class as it is built. A parent comes before its children, and children of one parent follow each other.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of the class above.
    pub parent: Option<u32>,
    /// The guaranteed rate.
    pub rate: Rate,
    /// The rate that it cannot exceed.
    pub ceil: Rate,
    /// Bytes at the speed of the link, of the guaranteed rate.
    pub burst: Bytes,
    /// Bytes at the speed of the link, of the largest rate.
    pub cburst: Bytes,
    /// Priority of a leaf; 0 goes first.
    pub prio: u8,
    /// Bytes of a leaf's turn.
    pub quantum: u32,
}

/// The packets that a class may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Send at its own rate.
    Send,
    /// Send if a class above lends.
    Borrow,
    /// Nothing: its largest rate is used up.
    Wait,
}

#[derive(Debug)]
struct Node {
    rate: Bucket,
    ceil: Bucket,
    parent: u32,
    /// Number of the first child; [`NONE`] for a leaf.
    first_child: u32,
    /// Turn list of the lowest priority below it.
    first_list: u32,
    /// Bytes that classes above were charged for it.
    borrowed: u64,
    /// Priorities of the leaves below it.
    below: u8,
    /// Priorities in which it has packets to send.
    active: u8,
    /// 0 for a leaf; otherwise the larger, the closer the class is to the link.
    level: u8,
    mode: Mode,
}

impl Node {
    #[inline]
    fn is_leaf(&self) -> bool {
        self.first_child == NONE
    }

    /// Its mode at `now`, and the time of the next change.
    #[inline]
    fn mode_at(&self, now: Time) -> (Mode, Option<Time>) {
        let (ceil, rate) = (self.ceil.ready(), self.rate.ready());
        if ceil > now {
            (Mode::Wait, Some(ceil))
        } else if rate > now {
            (Mode::Borrow, Some(rate))
        } else {
            (Mode::Send, None)
        }
    }
}

/// A leaf's part of the state.
#[derive(Debug)]
struct Turns {
    quantum: i32,
    /// Bytes that are left of its turn, by the level of the lender.
    left: [i32; LEVELS],
}

/// Classes that take turns, by number.
#[derive(Debug)]
struct TurnList {
    members: NumberSet,
    /// The member whose turn it is; `None` after the last one.
    turn: Option<u32>,
    /// The class whose turn it was when it left; at the next turn it, or the one behind it, continues.
    left: Option<u32>,
    /// Number of the class that is 0 in the set.
    base: u32,
}

/// The leaf that sends, and at whose expense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Number of the class.
    pub class: u32,
    /// Level of the class that is charged.
    lender: u8,
    prio: u8,
}

/// A tree of classes.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// By class; unused for inner classes.
    turns: Vec<Turns>,
    /// Number of a leaf's turns.
    turn_of: Vec<u32>,
    /// Turn lists of inner classes: of those below that borrow.
    borrowing: Vec<TurnList>,
    /// Turn lists of the levels, by level and priority: of classes that send at their own rates.
    sending: Vec<Option<TurnList>>,
    /// Turn lists in `sending` that are not empty, a bit each. The lowest comes first.
    ready: u64,
    /// Classes with packets to send whose mode will change, by the time of the change.
    changes: Changes,
}

impl TurnList {
    fn new(base: u32, classes: usize) -> TurnList {
        TurnList { members: NumberSet::new(classes), turn: None, left: None, base }
    }

    #[inline]
    fn insert(&mut self, class: u32) {
        self.members.insert(class - self.base);
    }

    /// Removes a class of those that send at their own rates. If it has the turn, the turn passes on.
    #[inline]
    fn remove_sending(&mut self, class: u32) {
        self.pass_on(class);
        self.members.remove(class - self.base);
    }

    /// Removes a class of those that borrow. If it has the turn and is back in time, it continues.
    #[inline]
    fn remove_borrowing(&mut self, class: u32) {
        if self.turn == Some(class) {
            (self.turn, self.left) = (None, Some(class));
        }
        self.members.remove(class - self.base);
    }

    /// Passes the turn of a class on to the next member.
    #[inline]
    fn pass_on(&mut self, class: u32) {
        if self.turn == Some(class) {
            self.turn = self.from(class + 1);
        }
    }

    /// The class whose turn it is; `None` after the last one.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        if self.turn.is_none()
            && let Some(class) = self.left.take()
        {
            self.turn = self.from(class);
        }
        self.turn
    }

    /// Gives the first member the turn.
    #[inline]
    fn restart(&mut self) {
        self.turn = self.from(self.base);
    }

    /// The first member with this number or a larger one.
    #[inline]
    fn from(&self, class: u32) -> Option<u32> {
        self.members.next(class - self.base).map(|at| at + self.base)
    }

    fn clear(&mut self) {
        self.members.clear();
        (self.turn, self.left) = (None, None);
    }
}

impl Tree {
    /// A tree of these classes, all without anything to send.
    ///
    /// # Panics
    /// If there are more than [`LEVELS`] levels or [`PRIOS`] priorities.
    pub fn new(shapes: &[Shape]) -> Tree {
        let mut nodes: Vec<Node> = shapes
            .iter()
            .map(|shape| Node {
                rate: Bucket::new(shape.rate, shape.burst),
                ceil: Bucket::new(shape.ceil, shape.cburst),
                parent: shape.parent.unwrap_or(NONE),
                first_child: NONE,
                first_list: NONE,
                borrowed: 0,
                below: 1 << shape.prio,
                active: 0,
                level: 0,
                mode: Mode::Send,
            })
            .collect();
        let mut children = vec![0usize; nodes.len()];
        let depths = depths(shapes);
        assert!(depths.iter().all(|depth| usize::from(*depth) < LEVELS), "at most {LEVELS} levels");
        for class in (0..nodes.len()).rev() {
            let Node { parent, below, .. } = nodes[class];
            let Some(above) = nodes.get_mut(parent as usize) else { continue };
            if above.first_child == NONE {
                // Until now it counted as a leaf.
                above.below = 0;
            }
            above.first_child = class as u32;
            above.below |= below;
            // Levels count from the link, as in Linux, so inner classes of one depth have one level.
            above.level = LEVELS as u8 - 1 - depths[parent as usize];
            children[parent as usize] += 1;
        }
        let mut tree = Tree {
            turns: Vec::new(),
            turn_of: vec![NONE; nodes.len()],
            borrowing: Vec::new(),
            sending: (0..LEVELS * PRIOS).map(|_| None).collect(),
            ready: 0,
            changes: Changes::new(),
            nodes,
        };
        for (class, shape) in shapes.iter().enumerate() {
            let node = &mut tree.nodes[class];
            if node.is_leaf() {
                tree.turn_of[class] = tree.turns.len() as u32;
                let quantum = i32::try_from(shape.quantum).unwrap_or(i32::MAX);
                tree.turns.push(Turns { quantum, left: [0; LEVELS] });
            } else {
                node.first_list = tree.borrowing.len() as u32;
                let lists =
                    (0..node.below.count_ones()).map(|_| TurnList::new(node.first_child, children[class]));
                tree.borrowing.extend(lists);
            }
        }
        tree
    }

    /// True if a leaf is known to have packets to send.
    #[inline]
    pub fn is_active(&self, leaf: u32) -> bool {
        self.nodes[leaf as usize].active != 0
    }

    /// Number of bytes that classes above were charged for a leaf.
    pub fn borrowed(&self, class: u32) -> u64 {
        self.nodes[class as usize].borrowed
    }

    /// A leaf has packets to send.
    pub fn activate(&mut self, leaf: u32, now: Time) {
        let prios = self.nodes[leaf as usize].below;
        self.join(leaf, prios, now);
    }

    /// A leaf has no packets to send.
    pub fn deactivate(&mut self, leaf: u32) {
        let prios = self.nodes[leaf as usize].active;
        self.nodes[leaf as usize].active = 0;
        self.leave(leaf, prios);
        self.changes.remove(leaf);
    }

    /// Applies all changes of modes up to `now`.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        while let Some((at, class)) = self.changes.first()
            && at <= now
        {
            self.refresh(class, now);
        }
    }

    /// Time of the next change of a mode.
    pub fn next_change(&self) -> Option<Time> {
        self.changes.first().map(|(at, _)| at)
    }

    /// The leaf that sends next, after [`Tree::advance`]: of the lowest level with a class that may send, the
    /// highest priority, and of those the one whose turn it is.
    #[inline(always)]
    pub fn choose(&mut self) -> Option<Choice> {
        if self.ready == 0 {
            return None;
        }
        let first = self.ready.trailing_zeros() as usize;
        let (lender, prio) = ((first / PRIOS) as u8, (first % PRIOS) as u8);
        let list = self.sending[first].as_mut()?;
        loop {
            let top = list.turn().unwrap_or_else(|| {
                list.restart();
                list.turn().expect("a ready priority has a class")
            });
            let leaf = match &self.nodes[top as usize] {
                node if node.is_leaf() => Some(top),
                node => Self::descend(&self.nodes, &mut self.borrowing, node, prio),
            };
            if let Some(class) = leaf {
                return Some(Choice { class, lender, prio });
            }
            list.pass_on(top);
        }
    }

    /// The leaf whose turn it is below an inner class; `None` if all have had their turn.
    fn descend(nodes: &[Node], borrowing: &mut [TurnList], class: &Node, prio: u8) -> Option<u32> {
        let list = list_of(class, prio);
        while let Some(child) = borrowing[list].turn() {
            let node = &nodes[child as usize];
            if node.is_leaf() {
                return Some(child);
            }
            if let Some(leaf) = Self::descend(nodes, borrowing, node, prio) {
                return Some(leaf);
            }
            borrowing[list].pass_on(child);
        }
        borrowing[list].restart();
        None
    }

    /// Charges a packet of the chosen leaf: its turn, the rate of the lender and of all classes above it, and
    /// the largest rates of all classes.
    #[inline(always)]
    pub fn charge(&mut self, choice: Choice, bytes: u32, now: Time) {
        self.spend_turn(choice, bytes);
        let mut class = choice.class;
        while class != NONE {
            let node = &mut self.nodes[class as usize];
            let owes = node.level >= choice.lender;
            if owes {
                node.rate.charge(bytes, now);
            } else {
                node.borrowed += u64::from(bytes);
            }
            node.ceil.charge(bytes, now);
            let parent = node.parent;
            // A class that still may send has no change ahead, and one that still borrows and was not charged
            // has the same as before.
            let (mode, until) = node.mode_at(now);
            let changes = mode != node.mode || mode == Mode::Wait || mode == Mode::Borrow && owes;
            if changes && node.active != 0 {
                self.set_mode(class, mode, until, now);
            }
            class = parent;
        }
    }

    /// Lengths are known only after a departure, so a turn ends with the packet that exceeds it, and the next
    /// one is shorter by the excess.
    #[inline]
    fn spend_turn(&mut self, choice: Choice, bytes: u32) {
        let Choice { class, lender, prio } = choice;
        let turns = &mut self.turns[self.turn_of[class as usize] as usize];
        let left = &mut turns.left[usize::from(lender)];
        *left = left.saturating_sub_unsigned(bytes);
        if *left >= 0 {
            return;
        }
        *left = left.saturating_add(turns.quantum);
        if lender == 0 {
            if let Some(list) = &mut self.sending[usize::from(prio)] {
                list.pass_on(class);
            }
        } else {
            let parent = &self.nodes[self.nodes[class as usize].parent as usize];
            let list = list_of(parent, prio);
            self.borrowing[list].pass_on(class);
        }
    }

    /// Continues the credits and the debts of another tree, for classes of both: the number here and there. A
    /// class that is changed again and again does not exceed its rates.
    pub fn take_over(&mut self, old: &Tree, both: &[(u32, u32)], now: Time) {
        for (here, there) in both {
            let (node, old) = (&mut self.nodes[*here as usize], &old.nodes[*there as usize]);
            node.rate.take_over(&old.rate, now);
            node.ceil.take_over(&old.ceil, now);
            node.borrowed = old.borrowed;
        }
    }

    /// Fills all buckets, and forgets what there is to send.
    pub fn reset(&mut self) {
        for node in &mut self.nodes {
            node.rate.refill();
            node.ceil.refill();
            (node.active, node.mode, node.borrowed) = (0, Mode::Send, 0);
        }
        self.turns.iter_mut().for_each(|turns| turns.left = [0; LEVELS]);
        for list in self.borrowing.iter_mut().chain(self.sending.iter_mut().flatten()) {
            list.clear();
        }
        self.ready = 0;
        self.changes.clear();
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        let lists = self.borrowing.iter().chain(self.sending.iter().flatten());
        (self.nodes.capacity() * size_of::<Node>()
            + self.turns.capacity() * size_of::<Turns>()
            + self.turn_of.capacity() * size_of::<u32>()
            + self.borrowing.capacity() * size_of::<TurnList>()) as u64
            + lists.map(|list| list.members.bytes()).sum::<u64>()
            + self.changes.bytes()
    }

    /// Brings the mode of a class with packets to send up to date.
    #[inline]
    fn refresh(&mut self, class: u32, now: Time) {
        let node = &self.nodes[class as usize];
        if node.active != 0 {
            let (mode, until) = node.mode_at(now);
            self.set_mode(class, mode, until, now);
        }
    }

    /// Sets the mode of a class with packets to send, and the time of its next change.
    #[inline(always)]
    fn set_mode(&mut self, class: u32, mode: Mode, until: Option<Time>, now: Time) {
        let node = &self.nodes[class as usize];
        if mode == node.mode {
            return self.schedule(class, until);
        }
        let prios = node.active;
        self.leave(class, prios);
        let changed = &mut self.nodes[class as usize];
        (changed.mode, changed.active) = (mode, 0);
        self.schedule(class, until);
        self.enter(class, prios, now);
    }

    #[inline]
    fn schedule(&mut self, class: u32, until: Option<Time>) {
        match until {
            Some(at) => self.changes.set(class, at),
            None => self.changes.remove(class),
        }
    }

    /// A class has packets to send in further priorities.
    fn join(&mut self, class: u32, prios: u8, now: Time) {
        if prios == 0 {
            return;
        }
        let node = &mut self.nodes[class as usize];
        if node.active == 0 {
            // Its mode may be out of date.
            let (mode, until) = node.mode_at(now);
            node.mode = mode;
            self.schedule(class, until);
        }
        self.enter(class, prios, now);
    }

    /// A class whose mode is up to date enters the turn lists for its mode, and so do the classes above that
    /// have to lend for it.
    #[inline(always)]
    fn enter(&mut self, class: u32, prios: u8, now: Time) {
        let node = &mut self.nodes[class as usize];
        node.active |= prios;
        match node.mode {
            Mode::Wait => {}
            Mode::Send => {
                let first = usize::from(node.level) * PRIOS;
                self.ready |= u64::from(prios) << first;
                for prio in each(prios) {
                    let list = &mut self.sending[first + usize::from(prio)];
                    match list {
                        Some(list) => list.insert(class),
                        None => list.insert(TurnList::new(0, self.nodes.len())).insert(class),
                    }
                }
            }
            Mode::Borrow => self.enter_above(class, prios, now),
        }
    }

    // The recursion is in a function of its own, so that the others are short.
    #[inline(never)]
    fn enter_above(&mut self, class: u32, prios: u8, now: Time) {
        let above = self.nodes[class as usize].parent;
        let Some(parent) = self.nodes.get(above as usize) else { return };
        let mut further = 0;
        for prio in each(prios) {
            let list = &mut self.borrowing[list_of(parent, prio)];
            if list.members.is_empty() {
                further |= 1 << prio;
            }
            list.insert(class);
        }
        self.join(above, further, now);
    }

    /// A class has no more packets to send in some priorities, the inverse of [`Tree::enter`].
    #[inline(always)]
    fn leave(&mut self, class: u32, prios: u8) {
        let node = &self.nodes[class as usize];
        match node.mode {
            Mode::Wait => {}
            Mode::Send => {
                let first = usize::from(node.level) * PRIOS;
                for prio in each(prios) {
                    let at = first + usize::from(prio);
                    let list = self.sending[at].as_mut().expect("it entered this list");
                    list.remove_sending(class);
                    if list.members.is_empty() {
                        self.ready &= !(1 << at);
                    }
                }
            }
            Mode::Borrow => self.leave_above(class, prios),
        }
    }

    #[inline(never)]
    fn leave_above(&mut self, class: u32, prios: u8) {
        let above = self.nodes[class as usize].parent;
        let Some(parent) = self.nodes.get(above as usize) else { return };
        let mut gone = 0;
        for prio in each(prios) {
            let list = &mut self.borrowing[list_of(parent, prio)];
            list.remove_borrowing(class);
            if list.members.is_empty() {
                gone |= 1 << prio;
            }
        }
        if gone == 0 {
            return;
        }
        let lender = &mut self.nodes[above as usize];
        lender.active &= !gone;
        if lender.active == 0 {
            self.changes.remove(above);
        }
        self.leave(above, gone);
    }
}

/// The number of classes above each class.
fn depths(shapes: &[Shape]) -> Vec<u8> {
    let mut depths: Vec<u8> = Vec::with_capacity(shapes.len());
    for shape in shapes {
        depths.push(shape.parent.map_or(0, |above| depths[above as usize].saturating_add(1)));
    }
    depths
}

/// Number of the turn list of an inner class for a priority.
#[inline]
fn list_of(node: &Node, prio: u8) -> usize {
    node.first_list as usize + (node.below & ((1 << prio) - 1)).count_ones() as usize
}

/// The priorities of a set, the most urgent first.
#[inline]
fn each(prios: u8) -> impl Iterator<Item = u8> {
    let mut left = prios;
    std::iter::from_fn(move || {
        let prio = left.trailing_zeros() as u8;
        left &= left.wrapping_sub(1);
        (prio < 8).then_some(prio)
    })
}
