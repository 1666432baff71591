//! Draws of a controller, from the number of its connection: splitmix64 (Steele, Lea and Flood 2014). A test
//! gives the next one.

/// The draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws(u64, #[cfg(test)] pub Option<u64>);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(
            seed,
            #[cfg(test)]
            None,
        )
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        #[cfg(test)]
        if let Some(given) = self.1.take() {
            return given;
        }
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}
