//! A set of numbers as sorted ranges: the packets that were received, the data that were acknowledged.

/// Disjoint ranges [from, to), ascending, with a gap between any two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    list: Vec<(u64, u64)>,
}

impl Spans {
    /// The ranges, ascending.
    pub fn list(&self) -> &[(u64, u64)] {
        &self.list
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.list.first().copied()
    }

    /// True if `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.list.partition_point(|(_, to)| *to <= number);
        self.list.get(at).is_some_and(|(from, _)| *from <= number)
    }

    /// Adds [from, to).
    pub fn insert(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        // The usual case: the set grows at its end.
        if let Some((_, last)) = self.list.last_mut()
            && *last == from
        {
            *last = to;
            return;
        }
        // All ranges that touch the new one become one with it.
        let begin = self.list.partition_point(|(_, end)| *end < from);
        let end = self.list.partition_point(|(start, _)| *start <= to);
        if begin == end {
            return self.list.insert(begin, (from, to));
        }
        let merged = (from.min(self.list[begin].0), to.max(self.list[end - 1].1));
        self.list[begin] = merged;
        self.list.drain(begin + 1..end);
    }

    /// Removes [from, to).
    pub fn remove(&mut self, from: u64, to: u64) {
        let begin = self.list.partition_point(|(_, end)| *end <= from);
        let end = self.list.partition_point(|(start, _)| *start < to);
        if begin >= end || from >= to {
            return;
        }
        let (left, right) = (self.list[begin].0, self.list[end - 1].1);
        self.list.drain(begin..end);
        if right > to {
            self.list.insert(begin, (to, right));
        }
        if left < from {
            self.list.insert(begin, (left, from));
        }
    }

    /// Removes the first range.
    pub fn forget_first(&mut self) {
        self.list.remove(0);
    }

    /// Frees the memory of a set that is empty.
    pub fn rest(&mut self) {
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.list.capacity() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set_of_numbers(steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0_u64..12), 1..60)) {
            let (mut spans, mut model) = (Spans::default(), BTreeSet::new());
            for (adds, from, len) in steps {
                let to = from + len;
                if adds {
                    spans.insert(from, to);
                    model.extend(from..to);
                } else {
                    spans.remove(from, to);
                    model.retain(|number| !(from..to).contains(number));
                }
                let all: Vec<u64> = spans.list().iter().flat_map(|(from, to)| *from..*to).collect();
                prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
                prop_assert!(spans.list().windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", spans);
                prop_assert_eq!(spans.contains(from), model.contains(&from));
            }
        }
    }
}
