//! Memory for frames: rooms of one size, set aside once.

/// Rooms for frames. Which room a frame lies in is its number.
pub struct Pool {
    memory: Box<[u8]>,
    room: usize,
    /// Numbers of rooms that nobody has, the one that was used last at the end: it is still in the cache.
    free: Vec<u32>,
    /// Numbers of rooms that were never used: their memory need not be there yet.
    fresh: u32,
    rooms: u32,
    /// The fewest that were ever left.
    least: u32,
}

impl Pool {
    /// `rooms` rooms for frames of at most `longest` bytes.
    pub fn new(rooms: u32, longest: usize) -> Pool {
        // Whole cache lines, so that no frame shares one with its neighbour.
        let room = longest.next_multiple_of(64);
        Pool {
            // Zeroed memory comes from the system page by page, when it is first used.
            memory: vec![0; room * rooms as usize].into_boxed_slice(),
            room,
            free: Vec::with_capacity(rooms as usize),
            fresh: 0,
            rooms,
            least: rooms,
        }
    }

    /// Takes a room, if one is left.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let taken = match self.free.pop() {
            Some(number) => Some(number),
            None if self.fresh < self.rooms => {
                self.fresh += 1;
                Some(self.fresh - 1)
            }
            None => None,
        };
        self.least = self.least.min(self.left());
        taken
    }

    /// Gives a room back. Its content stays until it is taken again.
    #[inline]
    pub fn give(&mut self, number: u32) {
        self.free.push(number);
    }

    /// The bytes of a room.
    #[inline]
    pub fn room(&self, number: u32) -> &[u8] {
        let at = number as usize * self.room;
        &self.memory[at..at + self.room]
    }

    /// The bytes of a room.
    #[inline]
    pub fn room_mut(&mut self, number: u32) -> &mut [u8] {
        let at = number as usize * self.room;
        &mut self.memory[at..at + self.room]
    }

    /// The bytes of two rooms, the second to write into.
    ///
    /// # Panics
    /// When they are the same.
    #[inline]
    pub fn two(&mut self, from: u32, to: u32) -> (&[u8], &mut [u8]) {
        let [from, to] = [from, to].map(|number| number as usize * self.room);
        let rooms = self.memory.get_disjoint_mut([from..from + self.room, to..to + self.room]);
        let [from, to] = rooms.expect("they are two rooms");
        (from, to)
    }

    /// How many rooms are left.
    pub fn left(&self) -> u32 {
        self.free.len() as u32 + (self.rooms - self.fresh)
    }
    /// How many there are.
    pub fn rooms(&self) -> u32 {
        self.rooms
    }
    /// The fewest that were ever left.
    pub fn least(&self) -> u32 {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_taken_given_back_and_used_up() {
        let mut pool = Pool::new(2, 100);
        let (a, b) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((pool.take(), pool.left(), pool.least()), (None, 0, 0));
        pool.room_mut(a).fill(1);
        pool.room_mut(b).fill(2);
        assert!(pool.room(a).iter().all(|byte| *byte == 1), "rooms do not overlap");
        assert_eq!(pool.room(a).len(), 128);
        for (one, other) in [(a, b), (b, a)] {
            let (from, to) = pool.two(one, other);
            assert_ne!(from[0], to[0]);
        }
        pool.give(a);
        assert_eq!((pool.take(), pool.left(), pool.rooms()), (Some(a), 0, 2));
    }
}
