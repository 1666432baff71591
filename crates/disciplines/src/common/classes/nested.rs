//! Classes in a tree, with their leaves: what a discipline needs in addition to its schedule.

use std::collections::BTreeMap;

use giveway_qdisc::blocks::Head;
use giveway_qdisc::{
    Backlog, Bytes, ClassState, Cx, FlowTable, Guarantee, Invalid, LinkContext, Meta, Next, Packet,
    Properties, Rate, Time,
};

use super::plan::{ClassConfig, Plan, wrong};
use super::{Classifier, Leaf, Leaves, leaves};
use crate::{Advice, Spec};

/// No leaf: an inner class.
const INNER: u32 = u32::MAX;

/// The classes of a discipline.
pub struct Nested<P> {
    /// Names and parents of the classes.
    names: Vec<(Box<str>, Option<u32>)>,
    leaves: Leaves<P>,
    /// Leaf of each class; [`INNER`] for an inner class.
    leaf_of: Vec<u32>,
    classifier: Classifier,
    default: Option<u32>,
}

impl<P: 'static> Nested<P> {
    /// The classes of a plan. Packets of leaf `n` leave at up to `most(n)`, by the number of the class.
    ///
    /// # Errors
    /// The leaf that is not valid.
    pub fn build<C: ClassConfig>(
        plan: Plan<'_, C>,
        most: impl Fn(usize) -> Option<Rate>,
        context: &LinkContext,
    ) -> Result<Nested<P>, Invalid> {
        let mut leaf_of = vec![INNER; plan.classes.len()];
        let mut leaves = Vec::new();
        let count = (0..plan.classes.len()).filter(|class| plan.is_leaf(*class)).count();
        let mut alike: Option<(&C, u64)> = None;
        for (class, planned) in plan.classes.iter().enumerate().filter(|(class, _)| plan.is_leaf(*class)) {
            let path = plan.path(class);
            // The classes of a range are written once.
            let known = alike.filter(|(written, _)| std::ptr::eq(*written, planned.written));
            let spec = planned.written.leaf();
            let hash = known.map_or_else(|| leaves::written(spec), |(_, hash)| hash);
            alike = Some((planned.written, hash));
            let leaf = Leaf::build(spec, hash, (&path, count), most(class), context);
            leaf_of[class] = leaves.len() as u32;
            leaves.push(leaf.map_err(|invalid| wrong(&planned.name, format!("leaf: {invalid}")))?);
        }
        leaves.shrink_to_fit();
        let names = plan.classes.iter().map(|planned| (planned.name.as_str().into(), planned.parent));
        Ok(Nested {
            names: names.collect(),
            leaves: Leaves::new(leaves),
            leaf_of,
            classifier: plan.classifier,
            default: plan.default,
        })
    }
}

impl<P> Nested<P> {
    /// The class of a packet, which is a leaf; `None` without a matching filter and a default.
    #[inline]
    pub fn of(&self, meta: &Meta, cx: &Cx<'_, P>) -> Option<u32> {
        self.classifier.of(meta, cx).or(self.default)
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Enqueues a packet in a class. Returns false if its queue is empty afterwards.
    #[inline]
    pub fn enqueue(&mut self, class: u32, pkt: Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        let leaf = self.leaf_of[class as usize];
        self.leaves.enqueue(leaf, pkt, cx);
        !self.leaves.is_empty(leaf)
    }

    /// Dequeues a packet of a class.
    #[inline]
    pub fn dequeue(&mut self, class: u32, cx: &mut Cx<'_, P>) -> Next<P> {
        self.leaves.dequeue(self.leaf_of[class as usize], cx)
    }

    /// The packet that a class sends next.
    #[inline]
    pub fn head(&mut self, class: u32, cx: &mut Cx<'_, P>) -> Head {
        self.leaves.head(self.leaf_of[class as usize], cx)
    }

    /// True if the queue of a class is empty.
    #[inline]
    pub fn is_empty(&self, class: u32) -> bool {
        self.leaves.is_empty(self.leaf_of[class as usize])
    }

    /// Takes over the queues of other classes, by their paths. Packets of a leaf that exists no more go where
    /// the filters send them now; `homeless` gets those without class. Returns the classes that both have, as
    /// their numbers here and there.
    pub fn take_over(
        &mut self,
        old: &mut Nested<P>,
        cx: &mut Cx<'_, P>,
        homeless: &mut dyn FnMut(Packet<P>, &mut Cx<'_, P>),
    ) -> Vec<(u32, u32)> {
        let here: BTreeMap<String, u32> = self.paths().into_iter().zip(0..).collect();
        let mut both = Vec::new();
        let mut gone = Vec::new();
        for (path, there) in old.paths().iter().zip(0..) {
            let here = here.get(path).copied();
            both.extend(here.map(|here| (here, there)));
            let leaf = here.map_or(INNER, |here| self.leaf_of[here as usize]);
            match old.leaf_of[there as usize] {
                INNER => {}
                from if leaf == INNER => gone.push(from),
                from => self.leaves.take_over(leaf, &mut old.leaves, from, cx),
            }
        }
        // They come last, so that none of them overtakes a packet of a class that stays.
        for leaf in gone {
            old.leaves.drain(leaf, cx, &mut |pkt, inner| match self.of(&pkt.meta, inner) {
                Some(class) => drop(self.enqueue(class, pkt, inner)),
                None => homeless(pkt, inner),
            });
        }
        both
    }

    /// The classes that have packets.
    pub fn busy(&self) -> Vec<u32> {
        let leaves = self.leaf_of.iter().zip(0..);
        leaves
            .filter(|(leaf, _)| **leaf != INNER && !self.leaves.is_empty(**leaf))
            .map(|(_, at)| at)
            .collect()
    }

    /// The paths of all classes, by number.
    fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::with_capacity(self.names.len());
        for (name, parent) in &self.names {
            let above = parent.map(|above| format!("{}/", paths[above as usize]));
            paths.push(above.unwrap_or_default() + name);
        }
        paths
    }

    /// Packets and bytes in all classes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.leaves.reset(cx);
    }

    /// Informs the leaves of the rate of the link.
    pub fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.leaves.rate_changed(rate, now);
    }

    /// State per flow of all leaves.
    pub fn flow_table(&self) -> FlowTable {
        self.leaves.flow_table()
    }

    /// Visits all classes, each before those below it. `complete` adds what only the schedule knows about a
    /// class.
    pub fn visit(&self, complete: impl Fn(u32, &mut ClassState), visit: &mut dyn FnMut(ClassState)) {
        let mut states: Vec<ClassState> = Vec::with_capacity(self.names.len());
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.names.len()];
        for (class, (name, parent)) in self.names.iter().enumerate() {
            let leaf = self.leaf_of[class];
            let mut state = if leaf == INNER { ClassState::default() } else { self.leaves.get(leaf).state() };
            let above = parent.map(|above| &states[above as usize]);
            state.path = above.map_or(String::new(), |above| format!("{}/", above.path)) + name;
            state.level = above.map_or(1, |above| above.level + 1);
            complete(class as u32, &mut state);
            states.push(state);
            parent.iter().for_each(|parent| below[*parent as usize].push(class as u32));
        }
        // Children come after their parents.
        for class in (0..states.len()).rev() {
            if let Some(above) = self.names[class].1 {
                let own = states[class].clone();
                states[above as usize].include(&own);
            }
        }
        let top = (0..self.names.len()).rev().filter(|class| self.names[*class].1.is_none());
        let mut left: Vec<u32> = top.map(|class| class as u32).collect();
        while let Some(class) = left.pop() {
            left.extend(below[class as usize].iter().rev());
            let state = std::mem::take(&mut states[class as usize]);
            let (path, level) = (state.path.clone(), state.level);
            visit(state);
            if let Some(leaf) = self.leaf_of.get(class as usize).filter(|leaf| **leaf != INNER) {
                self.leaves.get(*leaf).below(&path, level, visit);
            }
        }
    }
}

/// The disciplines that are written in a tree.
pub fn leaf_specs<C: ClassConfig>(classes: &[C]) -> Vec<&Spec> {
    classes.iter().flat_map(|class| class.leaf().into_iter().chain(leaf_specs(class.classes()))).collect()
}

/// Properties of a discipline with these classes, if it always serves a leaf with a packet to send.
pub fn properties<C: ClassConfig>(classes: &[C], context: &LinkContext) -> Properties {
    let leaves: Vec<Properties> =
        leaf_specs(classes).into_iter().map(|spec| spec.properties(context)).collect();
    Properties {
        // A flow whose packets match several filters is in several classes.
        keeps_flow_order: false,
        work_conserving: leaves.iter().all(|leaf| leaf.work_conserving),
        limit: None,
        marks: leaves.iter().any(|leaf| leaf.marks),
        guarantee: Guarantee::Nothing,
    }
}

/// Number of next hops that the leaves use.
pub fn lookahead<C: ClassConfig>(classes: &[C]) -> usize {
    leaf_specs(classes).into_iter().map(Spec::lookahead).max().unwrap_or(0)
}

/// Advice about the leaves.
pub fn advice<C: ClassConfig>(classes: &[C], largest: Bytes, context: &LinkContext) -> Vec<Advice> {
    leaf_specs(classes).into_iter().flat_map(|spec| spec.advice(largest, context)).collect()
}
