//! Service curves of two pieces, and the curves of a running class, which are the minimum of the curves that
//! started with its busy periods (Stoica, Zhang and Ng, 1997, sections III and V).

use giveway_qdisc::Rate;

/// Picoseconds per second, times the bits of a byte.
const BIT_PS: u128 = 8 * 1_000_000_000_000;

/// A service curve: the slope `m1` for a time `d`, then the slope `m2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// First slope, bit/s.
    pub m1: u64,
    /// Length of the first piece, picoseconds.
    pub d: u64,
    /// Second slope, bit/s.
    pub m2: u64,
}

impl Curve {
    /// A line.
    pub fn line(rate: Rate) -> Curve {
        Curve { m1: rate.as_bit(), d: 0, m2: rate.as_bit() }
    }

    /// True if the first piece is the steeper one.
    pub fn is_concave(self) -> bool {
        self.d > 0 && self.m1 > self.m2
    }
}

/// Bytes of a slope in a time, rounded down.
fn bytes(time: u64, slope: u64) -> u64 {
    u64::try_from(u128::from(time) * u128::from(slope) / BIT_PS).unwrap_or(u64::MAX)
}

/// The time of so many bytes at a slope, rounded up; without end if the slope is zero.
fn time(bytes: u64, slope: u64) -> u64 {
    match slope {
        0 if bytes == 0 => 0,
        0 => u64::MAX,
        _ => u64::try_from((u128::from(bytes) * BIT_PS).div_ceil(u128::from(slope))).unwrap_or(u64::MAX),
    }
}

/// A curve of a running class, from a point on. Times are real or virtual, in picoseconds, and service is in
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    x: u64,
    y: u64,
    dx: u64,
    dy: u64,
    m1: u64,
    m2: u64,
}

impl Running {
    /// The service curve from a point on.
    pub fn new(curve: Curve, x: u64, y: u64) -> Running {
        Running { x, y, dx: curve.d, dy: bytes(curve.d, curve.m1), m1: curve.m1, m2: curve.m2 }
    }

    /// The curve without its first piece: the eligible curve of a convex service curve is a line.
    pub fn second_piece(self) -> Running {
        Running { dx: 0, dy: 0, ..self }
    }

    /// The time at which the curve reaches a service.
    pub fn time_of(&self, y: u64) -> u64 {
        if y < self.y {
            return self.x;
        }
        let above = y - self.y;
        let since = match above.checked_sub(self.dy) {
            None => time(above, self.m1),
            // With a flat first piece, service begins after it.
            Some(0) if self.dy == 0 && above == 0 => self.dx,
            Some(0) => time(above, self.m1).min(self.dx),
            Some(further) => self.dx.saturating_add(time(further, self.m2)),
        };
        self.x.saturating_add(since)
    }

    /// The service of the curve up to a time.
    pub fn service(&self, x: u64) -> u64 {
        let since = x.saturating_sub(self.x);
        let more = match since.checked_sub(self.dx) {
            None => bytes(since, self.m1),
            Some(further) => self.dy.saturating_add(bytes(further, self.m2)),
        };
        self.y.saturating_add(more)
    }

    /// The minimum of this curve and a service curve that starts at a point, from its time on: equation (7)
    /// of the paper. For two curves of the same shape of two pieces, it has two pieces again.
    pub fn least_with(&self, curve: Curve, x: u64, y: u64) -> Running {
        let fresh = Running::new(curve, x, y);
        let old = self.service(x);
        if !curve.is_concave() {
            // A convex curve that begins higher stays higher.
            return if old < y { *self } else { fresh };
        }
        if old <= y {
            return *self;
        }
        if self.service(x.saturating_add(curve.d)) >= y.saturating_add(fresh.dy) {
            return fresh;
        }
        // The steep piece of the fresh curve crosses the old one where that has its flat piece.
        let ahead = u128::from(old - y) * BIT_PS / u128::from(curve.m1 - curve.m2);
        let parallel = self.x.saturating_add(self.dx).saturating_sub(x);
        let dx = u64::try_from(ahead).unwrap_or(u64::MAX).saturating_add(parallel);
        Running { dx, dy: bytes(dx, curve.m1), ..fresh }
    }

    /// The curve, later by some time.
    pub fn delayed(self, by: u64) -> Running {
        Running { x: self.x.saturating_add(by), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000_000;

    #[test]
    fn a_curve_has_two_pieces() {
        // 8 Mbit/s for 10 ms, which is 10,000 bytes, then 1 Mbit/s.
        let running = Running::new(Curve { m1: 8_000_000, d: 10 * MS, m2: 1_000_000 }, 5 * MS, 100);
        assert_eq!(running.service(5 * MS), 100);
        assert_eq!(running.service(6 * MS), 1100);
        assert_eq!(running.service(15 * MS), 10_100);
        assert_eq!(running.service(23 * MS), 11_100);
        assert_eq!(running.time_of(1100), 6 * MS);
        assert_eq!(running.time_of(11_100), 23 * MS);
        assert_eq!(running.time_of(50), 5 * MS);
    }

    #[test]
    fn a_convex_curve_begins_later() {
        let running = Running::new(Curve { m1: 0, d: 10 * MS, m2: 8_000_000 }, 0, 0);
        assert_eq!((running.service(10 * MS), running.service(11 * MS)), (0, 1000));
        assert_eq!((running.time_of(0), running.time_of(1)), (10 * MS, 10 * MS + MS / 1000));
    }

    fn curve() -> impl Strategy<Value = Curve> {
        (1u64..100, 1u64..50, 1u64..100).prop_map(|(m1, d, m2)| Curve {
            m1: m1 * 80_000,
            d: d * MS,
            m2: m2 * 80_000,
        })
    }

    proptest! {
        /// Time and service are inverse to each other, up to a byte.
        #[test]
        fn time_and_service_are_inverse(curve in curve(), x in 0u64..100, y in 0u64..10_000, at in 0u64..100_000) {
            let running = Running::new(curve, x * MS, y);
            let reached = running.time_of(y + at);
            let service = running.service(reached);
            prop_assert!(service >= y + at && service <= y + at + 1, "{service} of {}", y + at);
        }

        /// The minimum of two curves is the minimum at every time, from the start of the second on, up to
        /// two bytes.
        #[test]
        fn the_least_is_the_least(
            curve in curve(), first in (0u64..50, 0u64..5000), wait in 0u64..100, below in 0u64..20_000,
            times in prop::collection::vec(0u64..200, 10),
        ) {
            let old = Running::new(curve, first.0 * MS, first.1);
            let x = (first.0 + wait) * MS;
            // A class is served at least by its curve, or it is ahead of it.
            let y = old.service(x).saturating_sub(below);
            let fresh = Running::new(curve, x, y);
            let least = old.least_with(curve, x, y);
            for time in times {
                let at = x + time * MS;
                let wanted = old.service(at).min(fresh.service(at));
                prop_assert!(least.service(at).abs_diff(wanted) <= 2, "{} instead of {wanted}", least.service(at));
            }
        }
    }
}
