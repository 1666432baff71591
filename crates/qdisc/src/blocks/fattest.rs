//! The bucket with the most bytes, without a scan, for disciplines that hash flows into a fixed number of
//! buckets.
//!
//! Sixteen buckets form a group, sixteen groups form a larger one, and so on. Each group has an upper bound
//! of the bytes of its buckets. Growth beyond the bound raises it at once. A bucket that shrinks changes
//! nothing: the search, which follows the highest bounds down to a bucket, lowers a bound that proves too
//! high. So a packet that comes and goes costs one comparison, and each correction is amortised by an earlier
//! departure.
//!
//! The result is exact, also for ties: of buckets with equally many bytes it is the first one.
//! [`LongestQueue`](super::LongestQueue) is for queues that come and go, and whose ties follow another order.

/// Upper bounds of the bytes of groups of buckets.
#[derive(Debug)]
pub struct Fattest {
    buckets: usize,
    /// The bounds of groups of buckets, then of groups of such groups, up to the bound of all buckets.
    bounds: Box<[u64]>,
    /// Number of groups of each level.
    groups: Vec<usize>,
}

/// Members of a group. Their bounds fill two cache lines; 65,536 buckets have four levels of groups.
const MEMBERS: usize = 16;

impl Fattest {
    /// Bounds for this many empty buckets.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(buckets: usize) -> Fattest {
        assert!(buckets > 0, "there is at least one bucket");
        let mut groups = vec![buckets.div_ceil(MEMBERS)];
        while let Some(more) = groups.last().filter(|last| **last > 1) {
            groups.push(more.div_ceil(MEMBERS));
        }
        Fattest { buckets, bounds: vec![0; groups.iter().sum()].into_boxed_slice(), groups }
    }

    /// Records that a bucket has grown to `bytes`.
    #[inline]
    pub fn record_growth(&mut self, bucket: usize, bytes: u64) {
        if bytes > self.bounds[bucket / MEMBERS] {
            self.raise(bucket, bytes);
        }
    }

    #[cold]
    fn raise(&mut self, bucket: usize, bytes: u64) {
        let (mut first, mut group) = (0, bucket);
        for groups in &self.groups {
            group /= MEMBERS;
            let bound = &mut self.bounds[first + group];
            // A larger group's bound is at least as high.
            if bytes <= *bound {
                return;
            }
            *bound = bytes;
            first += groups;
        }
    }

    /// The bucket with the most bytes; `None` if all have none. `bytes` returns the bytes of a bucket.
    pub fn first(&mut self, bytes: impl Fn(usize) -> u64) -> Option<usize> {
        let top = self.groups.len() - 1;
        // Index of the first bound of the level.
        let mut first = self.bounds.len() - 1;
        let (mut level, mut group) = (top, 0);
        while self.bounds[self.bounds.len() - 1] > 0 {
            let below = if level == 0 { self.buckets } else { self.groups[level - 1] };
            let (mut most, mut at) = (0, 0);
            for member in group * MEMBERS..below.min((group + 1) * MEMBERS) {
                let bound = if level == 0 { bytes(member) } else { self.bounds[first - below + member] };
                if bound > most {
                    (most, at) = (bound, member);
                }
            }
            let bound = &mut self.bounds[first + group];
            debug_assert!(most <= *bound, "growth is always recorded");
            if most < *bound {
                *bound = most;
                // Another member of the larger group may be the first now.
                if level < top {
                    first += self.groups[level];
                    (level, group) = (level + 1, group / MEMBERS);
                }
            } else if level == 0 {
                return Some(at);
            } else {
                first -= below;
                (level, group) = (level - 1, at);
            }
        }
        None
    }

    /// Records that all buckets are empty.
    pub fn clear(&mut self) {
        self.bounds.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result equals a search of all buckets, after any growth and reduction.
        #[test]
        fn equals_a_search_of_all_buckets(
            buckets in prop_oneof![1..20usize, 200..600usize],
            ops in prop::collection::vec((0..8u8, any::<prop::sample::Index>(), 1..5u64), 0..600),
        ) {
            let mut index = Fattest::new(buckets);
            let mut bytes = vec![0; buckets];
            for (op, bucket, by) in ops {
                let bucket = bucket.index(buckets);
                match op {
                    0..=3 => {
                        bytes[bucket] += by;
                        index.record_growth(bucket, bytes[bucket]);
                    }
                    4 => bytes[bucket] = bytes[bucket].saturating_sub(by),
                    5 if by == 1 => {
                        bytes.fill(0);
                        index.clear();
                    }
                    5 => bytes[bucket] = 0,
                    _ => {
                        let most = bytes.iter().copied().max().filter(|most| *most > 0);
                        let first = most.and_then(|most| bytes.iter().position(|each| *each == most));
                        prop_assert_eq!(index.first(|each| bytes[each]), first);
                        // Those that are found shrink, as with drops.
                        first.into_iter().for_each(|first| bytes[first] -= 1);
                    }
                }
            }
        }
    }
}
