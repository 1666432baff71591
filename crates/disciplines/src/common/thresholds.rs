//! Common parts of `red` and `choke`: thresholds and weight as configured, and the average of a queue with
//! the idle time of its link.

use giveway_qdisc::blocks::red::{Curve, Detector, weight_for_burst, weight_for_rate};
use giveway_qdisc::{Backlog, Bytes, Invalid, Limit, LinkContext, Packets, Rate, Share, Time};

/// The unit of the average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    /// Length of a queue in this unit.
    #[inline]
    pub fn length(self, backlog: Backlog) -> f64 {
        match self {
            Unit::Packets => backlog.packets as f64,
            Unit::Bytes => backlog.bytes as f64,
        }
    }

    /// The nearest length that a parameter can have.
    pub fn limit(self, length: f64) -> Limit {
        let whole = libm::round(length) as u64;
        match self {
            Unit::Packets => Limit::Packets(whole),
            Unit::Bytes => Limit::Bytes(whole),
        }
    }

    /// Name of the gauge of the average.
    pub fn average(self) -> &'static str {
        match self {
            Unit::Packets => "average_packets",
            Unit::Bytes => "average_bytes",
        }
    }
}

/// A length with its unit.
pub(crate) fn amount(limit: Limit) -> (Unit, f64) {
    match limit {
        Limit::Packets(packets) => (Unit::Packets, packets as f64),
        Limit::Bytes(bytes) => (Unit::Bytes, bytes as f64),
    }
}

/// The parameters that determine the curve and the weight; the configurations document them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub limit: Limit,
    pub min: Option<Limit>,
    pub max: Option<Limit>,
    pub gentle: bool,
    pub avpkt: Bytes,
    pub burst: Option<Packets>,
    pub weight: Option<Share>,
    pub auto_weight: bool,
}

impl Thresholds {
    /// The thresholds and their unit.
    pub fn curve(&self) -> Result<(Unit, Curve), Invalid> {
        let (limit_unit, limit) = amount(self.limit);
        let (unit, max) = self.max.map_or((limit_unit, limit / 4.0), amount);
        let (min_unit, min) = self.min.map_or((unit, max / 3.0), amount);
        if min_unit != unit {
            return Err(Invalid::new(
                "min",
                "min and max have different units: write both in packets or both in bytes",
            ));
        }
        if !(min > 0.0 && min < max) {
            return Err(Invalid::new("min", format!("min ({min}) must lie above 0 and below max ({max})")));
        }
        if unit == limit_unit && max > limit {
            return Err(Invalid::new(
                "max",
                format!("the average never reaches {max} with a limit of {}", self.limit),
            ));
        }
        Ok((unit, Curve { min, max, gentle: self.gentle }))
    }

    /// One average packet in the unit of the thresholds.
    fn mean(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Packets => 1.0,
            Unit::Bytes => self.avpkt.0 as f64,
        }
    }

    /// `min`, `max` and `burst` with the values that they have if they are not given; `None` if they are
    /// invalid. There is no burst if something else sets the weight.
    pub fn filled(&self) -> Option<(Limit, Limit, Option<Packets>)> {
        let (unit, curve) = self.curve().ok()?;
        let other = self.weight.is_some() || self.auto_weight;
        let burst =
            if other { self.burst } else { self.burst.or(Some(Packets(self.usual_burst(unit, &curve)))) };
        Some((unit.limit(curve.min), unit.limit(curve.max), burst))
    }

    /// The burst if it is not given, in average packets.
    fn usual_burst(&self, unit: Unit, curve: &Curve) -> u64 {
        let (min, max) = (curve.min / self.mean(unit), curve.max / self.mean(unit));
        libm::floor((2.0 * min + max) / 3.0).max(libm::ceil(min)) as u64
    }

    /// Weight of the newest length.
    pub fn weight(&self, unit: Unit, curve: &Curve, bandwidth: Rate) -> Result<f64, Invalid> {
        match (self.weight, self.auto_weight, self.burst) {
            (Some(weight), false, None) if weight.get() > 0.0 => Ok(weight.get()),
            (Some(_), false, None) => Err(Invalid::new(
                "weight",
                "must be above 0, for example 0.002: with 0 the average never changes",
            )),
            (None, true, None) => Ok(weight_for_rate(bandwidth.bytes_per_s() / self.avpkt.0 as f64)),
            (None, false, burst) => {
                let (min, usual) = (curve.min / self.mean(unit), self.usual_burst(unit, curve));
                weight_for_burst(burst.map_or(usual, |burst| burst.0), min).ok_or_else(|| {
                    Invalid::new(
                        "burst",
                        format!("must be at least min ({min:.1} packets); about {usual} is usual"),
                    )
                })
            }
            _ => Err(Invalid::new(
                "weight",
                "weight, auto_weight and burst all set the speed of the average: give one of them",
            )),
        }
    }

    /// Refuses a packet of no length, which burst and idle times divide by.
    pub fn check_avpkt(&self) -> Result<(), Invalid> {
        match self.avpkt.0 {
            0 => Err(Invalid::new("avpkt", "must be at least 1 byte, for example \"1000b\"")),
            bytes if bytes > 65_535 => {
                let message = format!(
                    "{} is longer than any packet: write at most 65535 bytes, for example \"1000b\"",
                    self.avpkt
                );
                Err(Invalid::new("avpkt", message))
            }
            _ => Ok(()),
        }
    }

    /// Warnings about valid parameters that are usually a mistake; none if they are invalid.
    pub fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        let Ok((unit, curve)) = self.curve() else { return warnings };
        if curve.max < 2.0 * curve.min {
            warnings.push(format!(
                "max: {} is less than twice min ({}): all senders get the signal at once and slow down at once",
                curve.max, curve.min
            ));
        }
        let (limit_unit, limit) = amount(self.limit);
        if limit_unit == unit && limit < 1.5 * curve.max {
            warnings.push(format!(
                "limit: {} leaves little room above max ({}): bursts overflow the buffer before the average rises; several times max is usual",
                self.limit, curve.max
            ));
        }
        let least = if unit == Unit::Bytes { context.mtu.0 as f64 } else { self.mean(unit) };
        if curve.min < 2.0 * least {
            warnings.push(format!(
                "min: {} is less than two packets: the queue is too short to keep the link busy",
                curve.min
            ));
        }
        warnings
    }
}

/// Rate of the link for idle times: the parameter, or the rate of the port.
pub(crate) fn bandwidth(written: Option<Rate>, context: &LinkContext) -> Result<Rate, Invalid> {
    match written.unwrap_or(context.rate) {
        rate if rate == Rate::bit(0) => {
            Err(Invalid::new("bandwidth", "must be above 0, for example \"10mbit\""))
        }
        rate => Ok(rate),
    }
}

/// A RED detector of a queue, which measures the length and the idle time.
pub(crate) struct Monitor {
    unit: Unit,
    pub detector: Detector,
    pub idle: Idle,
}

impl Monitor {
    pub fn new(unit: Unit, detector: Detector, idle: Idle) -> Monitor {
        Monitor { unit, detector, idle }
    }

    /// Length of a queue in the unit of the thresholds.
    #[inline]
    pub fn length(&self, backlog: Backlog) -> f64 {
        self.unit.length(backlog)
    }

    /// Updates the average for an arrival that finds this backlog. Returns the length of the backlog.
    #[inline]
    pub fn observe(&mut self, backlog: Backlog, now: Time) -> f64 {
        let length = self.unit.length(backlog);
        let missed = self.idle.take_missed(backlog, now);
        self.detector.observe(length, missed, now);
        length
    }

    /// Continues another monitor of the same queue, which has this backlog. If the thresholds have another
    /// unit than before, the average starts with the backlog.
    pub fn take_over(&mut self, old: &Monitor, backlog: Backlog) {
        let same = self.unit == old.unit;
        let average = if same { old.detector.average() } else { self.unit.length(backlog) };
        self.detector.take_over(&old.detector, average);
        self.idle = Idle { bandwidth: self.idle.bandwidth, avpkt: self.idle.avpkt, ..old.idle };
    }

    /// Returns to the initial state.
    pub fn reset(&mut self) {
        self.detector.reset();
        self.idle.reset();
    }

    /// Visits the average and the drop probability.
    pub fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit(self.unit.average(), self.detector.average());
        visit("drop_probability", self.detector.base());
    }
}

/// Average packets that a link could have sent while it was idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    bandwidth: Rate,
    avpkt: u64,
    /// The last departure.
    departed: Option<(Time, u32)>,
    /// End of the transmission of the last packet, in the future or in the past; later, the time up to which
    /// idle time is counted.
    pub since: Option<Time>,
}

impl Idle {
    pub fn new(bandwidth: Rate, avpkt: u64) -> Idle {
        Idle { bandwidth, avpkt, departed: None, since: None }
    }

    /// The link has another rate from `now` on. An idle time before that counts at the rate of its end.
    pub fn rate_changed(&mut self, rate: Rate) {
        self.bandwidth = rate;
    }

    /// Records a departure to the link.
    #[inline]
    pub fn on_departure(&mut self, bytes: u32, now: Time) {
        self.departed = Some((now, bytes));
    }

    /// Packets that the link could have sent while it was idle before an arrival that finds the backlog
    /// `backlog`. Each is counted once.
    #[inline]
    pub fn take_missed(&mut self, backlog: Backlog, now: Time) -> u64 {
        if backlog.packets > 0 {
            return 0;
        }
        if let Some((at, bytes)) = self.departed.take() {
            self.since = Some(at + self.bandwidth.time_for(u64::from(bytes)));
        }
        let Some(since) = self.since else { return 0 };
        // The idle time is counted once, even if this arrival is not queued.
        self.since = Some(since.max(now));
        self.bandwidth.bytes_in(now.since(since)) / self.avpkt
    }

    /// Returns to the initial state.
    pub fn reset(&mut self) {
        *self = Idle::new(self.bandwidth, self.avpkt);
    }
}
