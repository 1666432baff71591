//! Memory for frames: buffers of one size, allocated once.

/// A pool of buffers for frames. Buffers are identified by their numbers.
pub struct Pool {
    memory: Box<[u8]>,
    /// Size of a buffer, in bytes.
    size: usize,
    /// Free buffers that were used before. The most recently used one is last: it is probably still in the
    /// cache.
    free: Vec<u32>,
    /// Number of the first buffer that was never used. The system need not have provided its memory yet.
    fresh: u32,
    capacity: u32,
    /// Minimum number of buffers that were ever free.
    least_free: u32,
}

impl Pool {
    /// Creates a pool of `capacity` buffers for frames of at most `longest` bytes.
    pub fn new(capacity: u32, longest: usize) -> Pool {
        // Whole cache lines, so that no frame shares one with its neighbour.
        let size = longest.next_multiple_of(64);
        Pool {
            // The system provides zeroed memory page by page, on first use.
            memory: vec![0; size * capacity as usize].into_boxed_slice(),
            size,
            free: Vec::with_capacity(capacity as usize),
            fresh: 0,
            capacity,
            least_free: capacity,
        }
    }

    /// Allocates a buffer; `None` if none is free.
    #[inline]
    pub fn allocate(&mut self) -> Option<u32> {
        let allocated = match self.free.pop() {
            Some(number) => Some(number),
            None if self.fresh < self.capacity => {
                self.fresh += 1;
                Some(self.fresh - 1)
            }
            None => None,
        };
        self.least_free = self.least_free.min(self.free());
        allocated
    }

    /// Frees a buffer. Its content stays until the buffer is allocated again.
    #[inline]
    pub fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// The bytes of a buffer.
    #[inline]
    pub fn buffer(&self, number: u32) -> &[u8] {
        let at = number as usize * self.size;
        &self.memory[at..at + self.size]
    }

    /// The bytes of a buffer, mutable.
    #[inline]
    pub fn buffer_mut(&mut self, number: u32) -> &mut [u8] {
        let at = number as usize * self.size;
        &mut self.memory[at..at + self.size]
    }

    /// The bytes of two buffers, the second one mutable.
    ///
    /// # Panics
    /// If both numbers are equal.
    #[inline]
    pub fn two(&mut self, from: u32, to: u32) -> (&[u8], &mut [u8]) {
        let [from, to] = [from, to].map(|number| number as usize * self.size);
        let buffers = self.memory.get_disjoint_mut([from..from + self.size, to..to + self.size]);
        let [from, to] = buffers.expect("the buffers are different");
        (from, to)
    }

    /// Number of free buffers.
    pub fn free(&self) -> u32 {
        self.free.len() as u32 + (self.capacity - self.fresh)
    }
    /// Number of all buffers.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
    /// Smallest number of free buffers so far.
    pub fn least_free(&self) -> u32 {
        self.least_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_allocated_released_and_exhausted() {
        let mut pool = Pool::new(2, 100);
        let (a, b) = (pool.allocate().unwrap(), pool.allocate().unwrap());
        assert_eq!((pool.allocate(), pool.free(), pool.least_free()), (None, 0, 0));
        pool.buffer_mut(a).fill(1);
        pool.buffer_mut(b).fill(2);
        assert!(pool.buffer(a).iter().all(|byte| *byte == 1), "buffers do not overlap");
        assert_eq!(pool.buffer(a).len(), 128);
        for (one, other) in [(a, b), (b, a)] {
            let (from, to) = pool.two(one, other);
            assert_ne!(from[0], to[0]);
        }
        pool.release(a);
        assert_eq!((pool.allocate(), pool.free(), pool.capacity()), (Some(a), 0, 2));
    }
}
