//! Arrays with one value for each port.

use std::ops::{Index, IndexMut};

/// A value for each of up to 64·`W` ports, as many as a [`PortSet`](crate::port_set::PortSet) has. An access
/// needs no bounds check where `W` is 1: the length is a constant, and the lower six bits of a port are
/// always in range.
#[derive(Clone, Debug)]
pub struct PerPort<T, const W: usize>(Box<[[T; 64]; W]>);

impl<T: Copy, const W: usize> PerPort<T, W> {
    /// An array with the same value for all ports.
    pub fn new(value: T) -> PerPort<T, W> {
        let words = vec![[value; 64]; W].into_boxed_slice();
        PerPort(words.try_into().unwrap_or_else(|_| unreachable!("it has {W} words")))
    }

    /// The values of ports 0 to `ports` - 1.
    ///
    /// # Panics
    /// If `ports` is above 64·`W`.
    pub fn first(&self, ports: usize) -> &[T] {
        &self.0.as_flattened()[..ports]
    }
}

impl<T, const W: usize> Index<usize> for PerPort<T, W> {
    type Output = T;
    #[inline]
    fn index(&self, port: usize) -> &T {
        debug_assert!(port < 64 * W);
        &self.0[if W == 1 { 0 } else { port >> 6 }][port & 63]
    }
}

impl<T, const W: usize> IndexMut<usize> for PerPort<T, W> {
    #[inline]
    fn index_mut(&mut self, port: usize) -> &mut T {
        debug_assert!(port < 64 * W);
        &mut self.0[if W == 1 { 0 } else { port >> 6 }][port & 63]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_its_own() {
        let mut values = PerPort::<u32, 2>::new(7);
        (values[0], values[63], values[64], values[127]) = (1, 2, 3, 4);
        assert_eq!(
            [values[0], values[1], values[63], values[64], values[65], values[127]],
            [1, 7, 2, 3, 7, 4]
        );
        assert_eq!(values.first(2), [1, 7]);
        assert_eq!(values.first(128)[127], 4);
    }
}
