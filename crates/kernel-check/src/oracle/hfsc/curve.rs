//! Curves of a running class: exact, and with the ticks and scaled slopes of Linux.

/// The arithmetic of times and slopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// In picoseconds, with slopes in bit/s.
    Exact,
    /// In ticks of 64 ns. A slope is stored twice: as bytes per tick with 24 fractional bits, and as ticks
    /// per byte with 14 fractional bits, each rounded up.
    Ticks,
}

/// Picoseconds per second, times the bits of a byte.
const BIT_PS: u128 = 8_000_000_000_000;
/// Picoseconds of a tick.
const TICK: u64 = 64_000;
const TICKS_PER_SECOND: u128 = 15_625_000;

/// A service curve: the slope `m1` in bit/s for a time `d` in picoseconds, then the slope `m2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    pub m1: u64,
    pub d: u64,
    pub m2: u64,
}

impl Clock {
    /// A time of this clock, from one in picoseconds.
    pub fn of(self, ps: u64) -> u64 {
        match self {
            Clock::Exact => ps,
            Clock::Ticks => ps / TICK,
        }
    }

    /// A span of a curve, which Linux rounds up to ticks.
    fn span(self, ps: u64) -> u64 {
        match self {
            Clock::Exact => ps,
            Clock::Ticks => ps.div_ceil(TICK),
        }
    }

    /// Bytes per tick with 24 fractional bits.
    fn scaled(slope: u64) -> u128 {
        ((u128::from(slope) / 8) << 24).div_ceil(TICKS_PER_SECOND)
    }

    fn bytes(self, time: u64, slope: u64) -> u64 {
        let bytes = match self {
            Clock::Exact => u128::from(time) * u128::from(slope) / BIT_PS,
            Clock::Ticks => (u128::from(time) * Clock::scaled(slope)) >> 24,
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn time(self, bytes: u64, slope: u64) -> u64 {
        let time = match (self, slope / 8) {
            _ if bytes == 0 => 0,
            (_, 0) => u128::MAX,
            (Clock::Exact, _) => (u128::from(bytes) * BIT_PS).div_ceil(u128::from(slope)),
            (Clock::Ticks, slope) => {
                (u128::from(bytes) * (TICKS_PER_SECOND << 14).div_ceil(u128::from(slope))) >> 14
            }
        };
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

/// The curve of a running class from a point on: two pieces, of which the first one lasts `dx` and has `dy`
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    clock: Clock,
    curve: Curve,
    x: u64,
    y: u64,
    dx: u64,
    dy: u64,
}

impl Running {
    pub fn new(clock: Clock, curve: Curve, x: u64, y: u64) -> Running {
        let dx = clock.span(curve.d);
        Running { clock, curve, x, y, dx, dy: clock.bytes(dx, curve.m1) }
    }

    /// The line of the second slope, for the eligible times of a curve that is not concave.
    pub fn eligible(self) -> Running {
        if self.is_concave() { self } else { Running { dx: 0, dy: 0, ..self } }
    }

    fn is_concave(&self) -> bool {
        self.curve.d > 0 && self.curve.m1 > self.curve.m2
    }

    /// Time at which the curve reaches a service.
    pub fn time_of(&self, y: u64) -> u64 {
        let Running { clock, curve, dx, dy, .. } = *self;
        let Some(above) = y.checked_sub(self.y) else { return self.x };
        let since = if above > dy {
            dx.saturating_add(clock.time(above - dy, curve.m2))
        } else if dy == 0 {
            dx
        } else {
            let first = clock.time(above, curve.m1);
            // Rounded up, a time can exceed the piece.
            if clock == Clock::Exact && above == dy { first.min(dx) } else { first }
        };
        self.x.saturating_add(since)
    }

    fn service(&self, x: u64) -> u64 {
        let since = x.saturating_sub(self.x);
        let more = match since.checked_sub(self.dx) {
            None => self.clock.bytes(since, self.curve.m1),
            Some(further) => self.dy.saturating_add(self.clock.bytes(further, self.curve.m2)),
        };
        self.y.saturating_add(more)
    }

    /// The minimum of this curve and the service curve from a point on.
    pub fn least_from(&self, x: u64, y: u64) -> Running {
        let Running { clock, curve, .. } = *self;
        let fresh = Running::new(clock, curve, x, y);
        let old = self.service(x);
        if !self.is_concave() {
            // Also the bytes of a piece that was removed stay removed.
            return if old < y { *self } else { Running { dx: self.dx, dy: self.dy, ..fresh } };
        }
        if old <= y {
            return *self;
        }
        if self.service(x.saturating_add(fresh.dx)) >= y.saturating_add(fresh.dy) {
            return fresh;
        }
        // The first piece of the fresh curve meets the second piece of the old one.
        let ahead = u128::from(old - y);
        let meets = match clock {
            Clock::Exact => ahead * BIT_PS / u128::from(curve.m1 - curve.m2),
            Clock::Ticks => (ahead << 24) / (Clock::scaled(curve.m1) - Clock::scaled(curve.m2)),
        };
        let dx = (meets as u64).saturating_add(self.x.saturating_add(self.dx).saturating_sub(x));
        Running { dx, dy: clock.bytes(dx, curve.m1), ..fresh }
    }

    /// The curve, later by some time.
    pub fn delayed(self, by: u64) -> Running {
        Running { x: self.x.saturating_add(by), ..self }
    }
}
